"""Python objects, and rows of files, as graphs: a list of any known kind becomes a `GraphBatch`.

`fdgnn.graphs.libraries` and `fdgnn.graphs.molecules` find the fields of one graph; a `RawGraph` is
what a reader of files finds in a row. `join` makes a batch of rows by an `InputSchema`: what does
not fit the schema is an invalid row, and does not touch the others. `GraphBatch.collect` checks
the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Graph, GraphBatch, checks
from fdgnn.graphs.descriptors import Descriptors, Value, value_in
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.libraries import (
    Names,
    found_in_all,
    from_networkx,
    from_pyg,
    from_scipy,
    is_adjacency,
    is_graph,
    is_networkx,
    labels_or_features,
    names_in_schema,
    network_schema,
    plain,
    to_networkx,
    warn_unused_attributes,
    with_known_interface,
)
from fdgnn.graphs.molecules import (
    Molecule,
    MoleculeReader,
    is_molecule,
    molecule_batch,
    molecule_schema,
)
from fdgnn.limits import MAX_BARE_TOTAL, MAX_BARE_VERTICES, MAX_VERTICES
from fdgnn.schema import (
    USUAL_ATOMS,
    Atoms,
    InputSchema,
    ReadOptions,
    Standardize,
    schema_of,
)

__all__ = [
    "ValidGraphs",
    "as_batch",
    "from_networkx",
    "from_pyg",
    "from_scipy",
    "items_of",
    "to_networkx",
    "valid_graphs",
]


_NO_NAMES: Names = dict.fromkeys(
    ("label_attribute", "feature_attributes", "weight_attribute", "edge_label_attribute")
)


def as_batch(
    graphs: Any,
    *,
    like: Any = None,
    label_attribute: str | None = None,
    feature_attributes: str | Sequence[str] | None = None,
    weight_attribute: str | None = None,
    edge_label_attribute: str | None = None,
    directed: bool = False,
    atoms: Atoms | None = None,
    standardize: Standardize | None = None,
    stereo: bool | None = None,
    descriptors: Any = None,
) -> GraphBatch:
    """Make a `GraphBatch` of graphs of any known kind.

    Parameters
    ----------
    graphs : GraphBatch, or sequence of graphs
        A batch is returned as it is, and takes no options but `descriptors`. The items of a
        sequence may be

        - `Graph` objects; where vertices have labels and features, the labels become columns of
          zeros and ones after the features, the same for all graphs and for those of a model;
        - SMILES, or RDKit ``Mol`` objects: atoms are vertices, in their order, bonds are edges
          that carry their type, and hydrogens are implicit;
        - pairs ``(edge_index, x)``: arcs as (source, target) columns, and one integer or string
          per vertex (labels), a matrix with a row of numbers per vertex (features), or None; in
          an undirected graph each edge may be listed once or both ways;
        - adjacency matrices, SciPy sparse or square NumPy arrays, or pairs ``(matrix, x)``, see
          `from_scipy`;
        - networkx graphs of any class, see `from_networkx`, and igraph graphs, which are read in
          the same way;
        - PyG ``Data`` objects, or others with ``edge_index`` and, optionally, ``x`` and
          ``num_nodes``, see `from_pyg`. A whole PyG dataset or batch can be passed as well. DGL
          graphs are read in the same way: ``feat`` of vertices as ``x``, of edges as
          ``edge_attr``, and ``weight`` or ``w`` of edges as ``edge_weight``.
    like : fitted model or InputSchema, optional
        Read molecules and networkx graphs as those were read that the model was fitted on. An
        empty list is then an empty batch.
    label_attribute : str, optional
        The attribute of networkx nodes and PyG objects with the vertices' discrete labels.
    feature_attributes : str or sequence of str, optional
        The attributes of networkx nodes and PyG objects with the vertices' real features.
    weight_attribute : str, optional
        The attribute of networkx edges and PyG objects with the edges' weights. By default it is
        ``edge_weight`` of PyG objects, or ``edge_attr`` with one real number each.
    edge_label_attribute : str, optional
        The attribute of networkx edges and PyG objects with the edges' discrete labels; none if
        it is empty. By default it is ``label`` of networkx edges with one integer or text each,
        and ``edge_attr`` of PyG objects with one integer or a one-hot row each, if all graphs
        have it.
    directed : bool, default=False
        Whether pairs, matrices and PyG objects are directed. Other graphs have their own direction.
    atoms : {"typed", "element", "rich"}, optional
        What the atoms of molecules carry, see `read_graphs`; by default "typed".
    standardize : {"parent", "tautomer"}, optional
        Whether molecules are replaced by their largest fragment without charges, and whether by
        its canonical tautomer. The vertices are then the atoms of the molecule that results.
    stereo : bool, optional
        Whether labels distinguish mirror images, and cis from trans; by default they do not.
    descriptors : array, mapping or data frame, optional
        Columns with a value for each graph, as in `GraphBatch.with_descriptors`.

    Returns
    -------
    GraphBatch
        Its `schema` has how molecules were read, or which attributes of networkx graphs, so
        that a model reads others in that way.

    Raises
    ------
    GraphError
        For the first graph that cannot be used; it has the graph's position and the reason.

    Warns
    -----
    UnusedDataWarning
        Networkx or PyG graphs have attributes that are not used; it names the options.

    Examples
    --------
    >>> from fdgnn import as_batch
    >>> triangle = [[0, 1, 2], [1, 2, 0]]
    >>> as_batch([(triangle, ["C", "C", "O"]), ([[0], [1]], ["C", "N"])])
    GraphBatch(2 graphs, 5 vertices, 8 arcs, 3 vertex labels)
    """
    names = {
        "label_attribute": label_attribute,
        "feature_attributes": feature_attributes,
        "weight_attribute": weight_attribute,
        "edge_label_attribute": edge_label_attribute,
    }
    molecules = {"atoms": atoms, "standardize": standardize, "stereo": stereo}
    if isinstance(graphs, GraphBatch):
        _check_unread(**names, directed=directed or None, **molecules)
        _check_label_columns(graphs, like)
        return graphs if descriptors is None else graphs.with_descriptors(descriptors)
    items = items_of(graphs)
    if len(items) == 0:
        if like is None:
            raise GraphError("no graphs: a batch needs at least one")
        return GraphBatch.empty(schema_of(like))
    found = valid_graphs(items, like=like, names=names, directed=directed, molecules=molecules)
    if found.errors:
        first = min(found.errors)
        remedy = _REMEDY if hasattr(like, "valid_graphs") else ""
        raise GraphError(found.errors[first] + remedy, first)
    return found.graphs if descriptors is None else found.graphs.with_descriptors(descriptors)


_REMEDY = (
    '; predict(..., errors="missing") and explain(..., errors="missing") answer the others, and '
    "`valid_graphs` lists all such graphs"
)


def _check_unread(**options: Any) -> None:
    """Raise ValueError for an option of reading graphs that are a batch already."""
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name}={value!r} has no effect on a GraphBatch, whose graphs have been read; "
                "give it where the batch is made"
            )


def _check_label_columns(graphs: GraphBatch, like: Any) -> None:
    """Raise GraphError if the columns for labels are not those of a model."""
    known = None if like is None else schema_of(like)
    own = () if graphs.schema is None else graphs.schema.label_columns
    if like is not None and own != (() if known is None else known.label_columns):
        raise GraphError(
            "the batch has other labels beside its features than the model was fitted on, so that "
            "its columns mean something else; pass the graphs, or as_batch(graphs, like=model)"
        )


@dataclass(frozen=True)
class ValidGraphs:
    """The graphs of a list that can be used, and what is wrong with the others.

    Attributes
    ----------
    graphs : GraphBatch
        Those that can be used; there may be none.
    rows : (n_graphs,) int64
        Their positions in the list.
    errors : dict of str by int
        Positions of the others, and why they cannot be used.
    """

    graphs: GraphBatch
    rows: Ints
    errors: dict[int, str]

    def without(self, rejected: Mapping[int, str]) -> ValidGraphs:
        """Return the graphs without some more, by positions in the batch, each with a reason."""
        kept = np.setdiff1d(np.arange(len(self.graphs)), list(rejected))
        more = {int(self.rows[g]): reason for g, reason in rejected.items()}
        faults = dict(sorted((self.errors | more).items()))
        return ValidGraphs(self.graphs[kept], self.rows[kept], faults)


def valid_graphs(
    items: Sequence[Any],
    *,
    like: Any = None,
    names: Names = _NO_NAMES,
    directed: bool = False,
    molecules: Mapping[str, Any] | None = None,
    fits: Callable[[Kind], str | None] | None = None,
) -> ValidGraphs:
    """Convert the graphs of a list that can be used, and find out why the others cannot.

    Parameters are those of `as_batch`; `fits` returns what is wrong with a kind of graphs,
    or None.
    """
    schema = schema_of(like)
    columns = None if like is None else () if schema is None else schema.label_columns
    if items and all(type(item) is Graph for item in items):
        return _collected(dict(enumerate(items)), {}, fits, columns)[0]
    if _are_molecules(items) if like is None else _go_as_molecules(items, schema):
        return _read_molecules(items, _molecule_schema(molecules or {}, schema))
    items = [with_known_interface(item) for item in items]
    if schema is not None and schema.source == "networks" and any(map(is_networkx, items)):
        names = names_in_schema(schema)
        if schema.directed and schema.direction_given:  # each edge both ways
            items = [item.to_directed() if is_networkx(item) else item for item in items]
    return _converted(items, names, directed, fits, columns)


def _read_molecules(items: Sequence[Any], schema: InputSchema) -> ValidGraphs:
    read = MoleculeReader.of(schema).read
    molecules: dict[int, Raw] = {}
    faults: dict[int, str] = {}
    for i, item in enumerate(items):
        try:
            molecules[i] = read(item)
        except GraphError as error:
            faults[i] = error.reason
    found = join(molecules, schema)
    return _valid_graphs(
        found.graphs or GraphBatch.empty(schema), faults | found.errors, len(items)
    )


def _molecule_schema(given: Mapping[str, Any], known: InputSchema | None) -> InputSchema:
    """Return the schema of a model, if it is `known`, or else the one that was asked for."""
    if known is None:
        options = ReadOptions(**given)
        return molecule_schema(
            options.atoms or USUAL_ATOMS, options.standardize, bool(options.stereo)
        )
    if any(value is not None for value in given.values()):
        raise ValueError(
            "the model says how molecules are read; leave atoms, standardize and stereo out"
        )
    return known


def _converted(
    items: Sequence[Any],
    names: Names,
    directed: bool,
    fits: Callable[[Kind], str | None] | None,
    known: tuple[str | int, ...] | None,
) -> ValidGraphs:
    """Convert each item by itself; `known` are the labels that a model has columns for."""
    graphs: dict[int, Graph] = {}
    faults: dict[int, str] = {}
    for i, item in enumerate(items):
        try:
            graphs[i] = item if type(item) is Graph else _as_graph(item, directed, names)
        except GraphError as error:
            faults[i] = error.reason
    given, found = [items[i] for i in graphs], list(graphs.values())
    if any(graph.weights is not None for graph in found):  # matrices of ones have unit weights
        for i, (item, graph) in enumerate(zip(given, found, strict=True)):
            in_pair = isinstance(item, tuple | list)
            if graph.weights is None and is_adjacency(item[0] if in_pair else item, in_pair):
                found[i] = replace(graph, weights=np.ones(graph.edge_index.shape[1]))
    found = found_in_all(given, found, names)
    valid, columns = _collected(dict(zip(graphs, found, strict=True)), faults, fits, known)
    if len(valid.graphs) == 0:
        return valid
    if all(map(is_networkx, given)):
        schema = network_schema(valid.graphs, names, columns)
        valid = replace(valid, graphs=replace(valid.graphs, schema=schema))
    if known is None:  # there was a warning when the model was fitted
        warn_unused_attributes(given, found, names)
    return valid


def _collected(
    graphs: dict[int, Graph],
    faults: dict[int, str],
    fits: Callable[[Kind], str | None] | None,
    known: tuple[str | int, ...] | None,
) -> tuple[ValidGraphs, tuple[str | int, ...]]:
    """Join graphs, given by their positions; also return the labels with columns."""
    columns: tuple[str | int, ...] = ()
    n = len(graphs) + len(faults)
    if known != () and any(map(has_both, graphs.values())):
        graphs, columns, more = beside_features(graphs, known)
        faults |= more
    batch, _, errors = GraphBatch.collect(list(graphs.values()), fits)
    places = list(graphs)
    faults |= {places[error.graph]: error.reason for error in errors if error.graph is not None}
    if batch is not None and columns:
        batch = replace(batch, schema=schema_with(batch, columns))
    return _valid_graphs(GraphBatch.empty() if batch is None else batch, faults, n), columns


def _valid_graphs(graphs: GraphBatch, faults: dict[int, str], n: int) -> ValidGraphs:
    if not faults:
        return ValidGraphs(graphs, np.arange(n), faults)
    rows = np.array([i for i in range(n) if i not in faults], dtype=np.int64)
    return ValidGraphs(graphs, rows, dict(sorted(faults.items())))


# ---------------------------------------------------------------------- which kind is it?


def items_of(graphs: Any) -> list[Any]:
    """List the graphs of any collection of them."""
    if type(graphs) is list:
        return graphs
    if hasattr(graphs, "to_data_list"):  # a PyG batch
        return list(graphs.to_data_list())
    if is_graph(graphs) and not _is_pyg_dataset(graphs):
        raise GraphError(
            f"a single graph was given (a {type(graphs).__name__}); wrap it in a list: [graph]"
        )
    if is_molecule(graphs):
        raise GraphError(
            f"expected a list of graphs, got {_described(graphs)}; wrap a single molecule in a "
            "list: [molecule]"
        )
    if hasattr(graphs, "columns") and hasattr(graphs, "shape"):
        raise GraphError(
            f"a whole table was given (a {type(graphs).__name__}); pass its column of molecules, "
            "or fdgnn.read_graphs(table, like=model).graphs"
        )
    try:
        if isinstance(graphs, bytes | Mapping):
            raise TypeError
        return list(graphs)
    except TypeError:
        raise GraphError(f"expected a list of graphs, got {_described(graphs)}") from None


def _as_graph(item: Any, directed: bool, names: Names) -> Graph:
    if isinstance(item, Graph):
        return item
    if isinstance(item, tuple | list):
        return _from_pair(item, directed)
    if sp.issparse(item):
        return from_scipy(item, directed=directed)
    if is_networkx(item):
        return from_networkx(item, **names)
    if is_adjacency(item):
        return from_scipy(plain(item), directed=directed)
    if hasattr(item, "to_data_list"):
        raise GraphError("it is a batch of graphs itself; pass its to_data_list() instead")
    if hasattr(item, "is_homogeneous"):
        raise GraphError(
            "it has several types of vertices or edges; pass dgl.to_homogeneous(graph)"
        )
    if hasattr(item, "edge_index"):
        return from_pyg(item, **names, directed=directed)
    remedy = (
        "molecules go neither with other graphs, nor to a model that was not fitted on molecules"
        if is_molecule(item)
        else "pass a list of Graph objects, (edge_index, x) pairs, adjacency matrices, graphs of "
        "networkx, igraph, PyG or DGL, SMILES or RDKit Mols"
    )
    raise GraphError(f"it is {_described(item)}, not a graph; {remedy}")


def _from_pair(pair: Sequence[Any], directed: bool) -> Graph:
    if len(pair) != 2:
        raise GraphError(
            f"it is a {type(pair).__name__} of {len(pair)}, expected a pair (edge_index, x)"
        )
    arcs, x = plain(pair[0]), pair[1]
    labels, features = labels_or_features(plain(x))
    if is_adjacency(arcs, in_pair=True):
        return from_scipy(arcs, labels=labels, features=features, directed=directed)
    return Graph(arcs, labels=labels, features=features, directed=directed)


def _are_molecules(items: Sequence[Any]) -> bool:
    """Return whether most items of a list that are not missing are molecules."""
    n_molecules = sum(map(is_molecule, items))
    return n_molecules > len(items) - sum(map(_is_missing, items)) - n_molecules


def _go_as_molecules(items: Sequence[Any], schema: InputSchema | None) -> bool:
    """Return whether a model reads a list as molecules: if some are, or all are missing."""
    if schema is None or schema.source != "molecules":
        return False
    return any(map(is_molecule, items)) or all(map(_is_missing, items))


def _is_missing(item: Any) -> bool:
    """Return whether an item is None or a number, as NaN, where a molecule is missing."""
    return item is None or isinstance(item, Number)


def _is_pyg_dataset(item: Any) -> bool:
    """Return whether it is a PyG dataset, which has the ``edge_index`` of all its graphs."""
    bases = type(item).__mro__
    return any(b.__name__ == "Dataset" and b.__module__.startswith("torch") for b in bases)


def _described(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"a {type(item).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")


# ---------------------------------------------------------------------- graphs by a schema


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file has them; nothing about them is checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None  # what vertices carry
    carried: Array | None = None  # what arcs carry: a number, a row of numbers or a text each
    directed: bool | None = None  # if the file has it
    vertex_attributes: tuple[str, ...] = ()  # where x is from
    edge_attribute: str | None = None  # where `carried` is from
    cells: Mapping[str, Any] | None = None  # the columns with descriptors, by name

    @property
    def n_bare(self) -> int:
        """The least number of vertices without an arc."""
        n = self.n_vertices
        if n is None:
            whole = self.edges.dtype.kind in "iu"
            n = int(self.edges.max(initial=-1)) + 1 if whole else 0
        return max(0, n - self.edges.size)


class Joined(NamedTuple):
    """The valid graphs of some rows, read by one schema, and the errors of the other rows."""

    schema: InputSchema
    graphs: GraphBatch | None
    errors: dict[int, str]


Raw = RawGraph | Molecule


def join(raws: Mapping[int, Any], schema: InputSchema) -> Joined:
    """Join the valid graphs of numbered rows, and find out what is wrong with the others.

    They are all of type `Molecule` if the schema is one of molecules, else of type `RawGraph`.
    """
    if schema.source == "molecules":
        return _join_molecules(raws, schema)
    return _join_raw(raws, schema)


def _join_molecules(molecules: Mapping[int, Molecule], schema: InputSchema) -> Joined:
    faults: dict[int, str] = {}
    rows: list[dict[str, Value]] = []
    for i, molecule in molecules.items():
        try:
            described = _descriptors(molecule.cells, schema)
        except GraphError as error:
            faults[i] = error.reason
            continue
        rows += [] if described is None else [described]
    good = [molecule for i, molecule in molecules.items() if i not in faults]
    if not good:
        return Joined(schema, None, faults)
    batch = molecule_batch(good, schema)
    if rows:
        batch = replace(batch, descriptors=Descriptors.of_rows(rows))
    return Joined(schema, batch, faults)


def _join_raw(raws: Mapping[int, RawGraph], schema: InputSchema) -> Joined:
    faults: dict[int, str] = {}
    graphs: dict[int, Graph] = {}
    faults |= _too_bare(raws, schema)
    for i, raw in raws.items():
        if i in faults:
            continue
        try:
            graphs[i] = as_graph(raw, schema)
        except GraphError as error:
            faults[i] = error.reason
    batch, _, errors = GraphBatch.collect(list(graphs.values()))
    positions = list(graphs)
    faults |= {positions[e.graph]: e.reason for e in errors if e.graph is not None}
    if batch is None:
        return Joined(schema, None, faults)
    return Joined(schema, replace(batch, schema=schema), faults)


def _too_bare(raws: Mapping[int, RawGraph], schema: InputSchema) -> dict[int, str]:
    """Find rows with too many vertices that have no arc and carry nothing.

    They cost nothing in a file, so that a row can have any number of them. If all rows together
    have too many, those with most of them are left out.
    """
    if schema.vertex != "none":
        return {}
    counts = {i: raw.n_bare for i, raw in raws.items()}
    faults = {
        i: f"it has {n} vertices without arcs, labels or features; {MAX_BARE_VERTICES.in_words}"
        for i, n in counts.items()
        if MAX_BARE_VERTICES.is_below(n)
    }
    total = sum(n for i, n in counts.items() if i not in faults)
    for i in sorted(counts, key=counts.__getitem__, reverse=True):
        if not MAX_BARE_TOTAL.is_below(total):
            break
        if i not in faults:
            faults[i] = (
                f"it has {counts[i]} vertices without arcs, labels or features, and the table has "
                f"too many; {MAX_BARE_TOTAL.in_words}"
            )
            total -= counts[i]
    return faults


# ---------------------------------------------------------------------- one row


def as_graph(raw: RawGraph, schema: InputSchema) -> Graph:
    """Make a graph of a row by the schema; raise GraphError if the row does not fit it.

    `GraphBatch.collect` checks the rest.
    """
    if raw.directed not in (None, schema.directed):
        expected = "directed" if schema.directed else "undirected"
        found = "directed" if raw.directed else "undirected"
        raise GraphError(f"it is {found}, but {expected} graphs are expected")
    edges = raw.edges.T if schema.pairs and raw.edges.ndim == 2 else raw.edges
    labels = _labels(raw.x, schema) if schema.vertex == "labels" else None
    features = _features(raw.x, schema) if schema.vertex == "features" else None
    n = raw.n_vertices
    if n is not None and MAX_VERTICES.is_below(n):
        raise GraphError(f"it has {n} vertices; {MAX_VERTICES.in_words}")
    weights = _weights(raw.carried, schema, edges) if schema.edge_labels == "weights" else None
    edge_labels = (
        _edge_labels(raw.carried, schema, edges) if schema.edge_labels == "labels" else None
    )
    described = _descriptors(raw.cells, schema)
    return Graph(edges, n, labels, features, weights, schema.directed, edge_labels, described)


def _descriptors(cells: Mapping[str, Any] | None, schema: InputSchema) -> dict[str, Value] | None:
    """Read the descriptors of a row; a molecule that came without a row has none."""
    if cells is None or not schema.descriptors:
        return None
    return {
        name: value_in(name, cells.get(name), "category" if name in schema.categories else "number")
        for name in schema.descriptors
    }


def _labels(x: Array | None, schema: InputSchema) -> Array:
    x = _present(x, schema.vertex_attributes, schema.vertices_in_words)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.dtype.kind == "f" and (x == np.round(x)).all():
        x = x.astype(np.int64)
    text = checks.is_text(x)
    kind = "text" if text else "integer"
    discrete = text or x.dtype.kind in "biu"
    if len(x) and x.ndim == 1 and discrete and kind != schema.label_kind:
        raise GraphError(f"it has {kind} labels, expected {schema.vertices_in_words}")
    return x


def _features(x: Array | None, schema: InputSchema) -> Array:
    x = _present(x, schema.vertex_attributes, schema.vertices_in_words)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim == 2 and len(x) and x.shape[1] != schema.n_features:
        raise GraphError(f"it has {x.shape[1]} features per vertex, expected {schema.n_features}")
    return x


def _edge_labels(carried: Array | None, schema: InputSchema, edges: Array) -> Array:
    """Find one label per arc; an arc with several entries has them as one text."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        rows = _no_entries(schema)
    else:
        rows = _of_known_kind(carried, schema)
        rows = rows[:, None] if rows.ndim == 1 else rows
        shape = (edges.shape[-1], schema.edge_width or 0)
        checks.check_shape(rows, shape, f"entries of {schema.edge_attribute}")
    whole = rows.dtype.kind == "f" and bool(
        ((np.abs(rows) < 2.0**63) & (rows == np.round(rows))).all()
    )
    if whole or rows.dtype.kind == "b":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" and not checks.is_text(rows):
        raise GraphError(
            f"its {schema.edge_attribute} has entries of dtype {rows.dtype}, "
            f"expected {schema.edges_in_words}"
        )
    return checks.joined_labels(rows)


def _no_entries(schema: InputSchema) -> Array:
    dtype = str if schema.edge_kind == "text" else float
    return np.empty((0, schema.edge_width or 0), dtype=dtype)


def _of_known_kind(carried: Array | None, schema: InputSchema) -> Array:
    carried = _present(carried, (schema.edge_attribute or "",), schema.edges_in_words)
    kind = "text" if checks.is_text(carried) else "number"
    if kind != schema.edge_kind:
        raise GraphError(
            f"its {schema.edge_attribute} has entries of kind {kind}, "
            f"expected {schema.edges_in_words}"
        )
    return carried


def _weights(carried: Array | None, schema: InputSchema, edges: Array) -> Array:
    """Find one number per arc."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        return _no_entries(schema)[:, 0]
    carried = _of_known_kind(carried, schema)
    return carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"it has no {' or '.join(names)}, expected {expected}")
    return array


Label: TypeAlias = str | int


def has_both(graph: Graph) -> bool:
    """Return whether vertices have labels and features."""
    return graph.labels is not None and graph.features is not None


def beside_features(
    graphs: Mapping[int, Graph], known: tuple[Label, ...] | None = None
) -> tuple[dict[int, Graph], tuple[Label, ...], dict[int, str]]:
    """Append labels to features, a column for each label, where graphs have both.

    Parameters
    ----------
    graphs : mapping of Graph
    known : tuple, optional
        The labels that have a column, in order; another one has zeros only. By default all labels
        of these graphs have one.

    Returns
    -------
    graphs : dict of Graph
        The valid ones, in the same order.
    labels : tuple
        The labels that have a column.
    faults : dict of str
        What is wrong with the others.
    """
    labels = _labels_of(graphs.values()) if known is None else known
    found: dict[int, Graph] = {}
    faults: dict[int, str] = {}
    for i, graph in graphs.items():
        try:
            found[i] = _joined(graph, labels) if has_both(graph) else graph
        except GraphError as error:
            faults[i] = error.reason
    return found, labels, faults


def _labels_of(graphs: Iterable[Graph]) -> tuple[Label, ...]:
    """All labels of graphs with features, in order, of the kind that the first graph has."""
    found: list[Label] = []
    for graph in filter(has_both, graphs):
        try:
            found += dict.fromkeys(checks.label_array(graph.labels).tolist())
        except GraphError:  # reported where the graph is converted
            continue
    kind = type(found[0]) if found else str
    return tuple(sorted({label for label in found if isinstance(label, kind)}))


def _joined(graph: Graph, known: tuple[Label, ...]) -> Graph:
    labels = checks.label_array(graph.labels)
    features = checks.numbers(graph.features, "features")
    if features.ndim != 2 or len(features) != len(labels):
        raise GraphError(
            f"it has {len(labels)} labels and features of shape {features.shape}; give one label "
            "and one row of features per vertex"
        )
    text = checks.is_text(labels)
    if known and isinstance(known[0], str) != text:
        kinds = ("text", "integer") if text else ("integer", "text")
        raise GraphError(f"it has {kinds[0]} labels beside features, expected {kinds[1]} labels")
    return replace(graph, labels=None, features=with_label_columns(features, labels, known))


def with_label_columns(features: Array, labels: Array, known: Sequence[Label]) -> Array:
    """Append a column of zeros and ones to features for each known label."""
    return np.hstack([features, labels[:, np.newaxis] == np.array(known)])


def schema_with(graphs: GraphBatch, labels: tuple[Label, ...]) -> InputSchema:
    """Return the schema of graphs whose labels became columns, for other graphs."""
    assert graphs.features is not None
    return InputSchema(
        source="graphs",
        directed=graphs.directed,
        vertex="features",
        n_features=graphs.features.shape[1],
        edge_labels="ignore",
        label_columns=labels,
    )

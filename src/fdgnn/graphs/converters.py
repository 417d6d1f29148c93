"""Python objects as graphs: a list of graphs of any known kind becomes a `GraphBatch`.

`fdgnn.graphs.libraries` and `fdgnn.graphs.molecules` find the fields of one graph;
`GraphBatch.collect` checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Number
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Ints
from fdgnn.exceptions import GraphError
from fdgnn.graphs import Graph, GraphBatch
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
from fdgnn.graphs.molecules import MoleculeReader, is_molecule, molecule_schema
from fdgnn.graphs.raw import Raw, beside_features, has_both, join, schema_with
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

    def without(self, refused: Mapping[int, str]) -> ValidGraphs:
        """Return the graphs without some more, by positions in the batch, each with a reason."""
        kept = np.setdiff1d(np.arange(len(self.graphs)), list(refused))
        more = {int(self.rows[g]): reason for g, reason in refused.items()}
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
        found.graphs or GraphBatch.empty(schema), faults | found.faults, len(items)
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

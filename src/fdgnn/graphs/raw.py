"""Graphs as files and other libraries have them, and how many of them are read by one schema.

A `RawGraph` has the arrays of one graph, about which nothing is checked. `infer_schema` decides
how all of them are read; `join` makes a batch by this `InputSchema`. What does not fit the schema
is an invalid row, and does not affect the others. `GraphBatch.collect` checks the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError, warn_unused
from fdgnn.graphs import Graph, GraphBatch, checks
from fdgnn.graphs.descriptors import Descriptors, Value, kind_of_cells, value_in
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.molecules import Molecule, molecule_batch, molecule_schema
from fdgnn.limits import MAX_BARE_TOTAL, MAX_BARE_VERTICES, MAX_VERTICES
from fdgnn.schema import USUAL_ATOMS, EdgeChoice, InputSchema, ReadOptions, VertexChoice

Source = Literal["table", "molecules", "networks", "tu", "graphs"]


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file or an object has them; nothing about them is checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None  # what vertices carry
    carried: Array | None = None  # what arcs carry: a number, a row of numbers or a text each
    directed: bool | None = None  # if the file has it
    vertex_attributes: tuple[str, ...] = ()  # where x is from
    edge_attribute: str | None = None  # where `carried` is from
    cells: Mapping[str, Any] | None = None  # the columns with descriptors, by name
    labels: Array | None = None  # of vertices, beside x
    weights: Array | None = None  # of arcs, beside `carried`
    vertex_names: Sequence[Any] | None = None
    parallel: bool = False  # whether weights of arcs that are listed again are summed

    @property
    def n_bare(self) -> int:
        """The least number of vertices without an arc."""
        n = self.n_vertices
        if n is None:
            whole = self.edges.dtype.kind in "iu"
            n = int(self.edges.max(initial=-1)) + 1 if whole else 0
        return max(0, n - self.edges.size)


Raw: TypeAlias = RawGraph | Molecule | Graph
Fits = Callable[[Kind], str | None]
Label: TypeAlias = str | int


class Joined(NamedTuple):
    """The valid graphs of some rows, read by one schema, and the errors of the other rows."""

    schema: InputSchema | None
    graphs: GraphBatch | None
    errors: dict[int, str]


# ---------------------------------------------------------------------- all rows


def read_raw(
    raws: Mapping[int, Any],
    options: ReadOptions,
    source: Source,
    name: str,
    *,
    unused: Mapping[str, str] | None = None,
    warn: bool = True,
    fits: Fits | None = None,
    known: tuple[Label, ...] | None = None,
) -> Joined:
    """Infer the schema of numbered rows, and join their graphs.

    Values of edges that nobody chose make no row invalid: if they do not fit, they are ignored.

    Parameters
    ----------
    raws : mapping of RawGraph and Graph, or of Molecule
    options : ReadOptions
    source, name : str
        Where the rows are from, for the schema and for messages.
    unused : mapping, optional
        What the reader of the rows left out, and the options that read it; one warning lists all.
    warn : bool
        Whether to warn of what is not used.
    fits, known
        See `join`.

    Raises
    ------
    GraphError
        The rows have nothing that the options ask for.
    """
    remedies = dict(unused or {})
    found = [raw for raw in raws.values() if type(raw) is not Graph]
    schema = None
    if found:
        infer = infer_molecule_schema if source == "molecules" else infer_schema
        schema = replace_fields(infer(cast(Any, found), options), source=source)
    joined = join(raws, schema, fits=fits, known=known)
    if schema is not None and options.edge_labels == "auto" and source != "molecules":
        first = min(joined.errors, default=None)
        why = "" if first is None else f" (row {first}: {joined.errors[first]})"
        nothing = {"edge_labels": "ignore", "edge_kind": None, "edge_width": None}
        nothing["edge_attribute"] = None
        # Less of edges: no weights beside labels, no labels, neither.
        simpler = [replace_fields(schema, weighted=False)] if schema.weighted else []
        if schema.edge_labels != "ignore":
            simpler.append(replace_fields(schema, **nothing))
            simpler.append(replace_fields(schema, **nothing, weighted=False))
        for one in simpler if joined.errors else ():
            plain = join(raws, one, fits=fits, known=known)
            if len(plain.errors) < len(joined.errors):
                joined = plain
        used = joined.schema or schema
        if schema.weighted and not used.weighted:
            remedies["weights of edges"] = f"not all rows fit them{why}"
        if used.edge_labels == "ignore":
            carrying = (raw for raw in found if raw.carried is not None and raw.carried.size)
            for raw in islice(carrying, 1):
                what = f"the values of {raw.edge_attribute!r}"
                remedies[what] = _use_of_edges(raw) + why * (schema.edge_labels != "ignore")
    if warn and joined.graphs is not None:
        warn_unused(name, remedies)
    return joined


def _use_of_edges(raw: RawGraph) -> str:
    """Return the options that read what edges carry, which is not used by default."""
    form, name = _form(raw.carried), raw.edge_attribute
    none = "`edge_labels='ignore'` reads none without this warning"
    if raw.weights is not None and form == Form("real", 1):
        return f"`edge_attribute={name!r}` reads them as weights, and {none}"
    if form is not None and form.kind in ("integer", "real") and form.width > 1:
        return (
            f"`edge_attribute='{name}[0]'` reads the first of the {form.width} numbers of an edge, "
            f"`edge_labels='labels'` joins whole numbers to one label, and {none}"
        )
    ways = {"text": ("labels",), "real": ("weights",)}.get(
        form.kind if form else "", ("labels", "weights")
    )
    named = " or ".join(f"`edge_labels={way!r}`" for way in ways)
    return f"{named} reads them, and rejects rows that do not fit; {none}"


def join(
    raws: Mapping[int, Any],
    schema: InputSchema | None,
    *,
    fits: Fits | None = None,
    known: tuple[Label, ...] | None = None,
) -> Joined:
    """Join the valid graphs of numbered rows, and find out what is wrong with the others.

    Parameters
    ----------
    raws : mapping of RawGraph and Graph, or of Molecule
        Graphs that are a `Graph` already are taken as they are.
    schema : InputSchema or None
        None if all are of type `Graph`.
    fits : callable, optional
        See `GraphBatch.collect`.
    known : tuple, optional
        The labels beside features that have a column; by default all of these graphs.
    """
    if schema is not None and schema.source == "molecules":
        return _join_molecules(raws, schema)
    faults = {} if schema is None else _too_bare(raws, schema)
    known = known if schema is None else schema.label_columns or known
    graphs: dict[int, Graph] = {}
    for i, raw in raws.items():
        if i in faults:
            continue
        try:
            graphs[i] = raw if type(raw) is Graph else as_graph(raw, cast(InputSchema, schema))
        except GraphError as error:
            faults[i] = error.reason
    columns: tuple[Label, ...] = ()
    if known != () and any(map(_has_both, graphs.values())):
        columns = _labels_of(graphs.values()) if known is None else known
        for i, graph in list(graphs.items()):
            try:
                graphs[i] = _beside_features(graph, columns)
            except GraphError as error:
                faults[i] = error.reason
                del graphs[i]
    batch, errors = GraphBatch.collect(graphs, fits)
    faults |= errors
    if batch is None:
        return Joined(schema, None, faults)
    if columns:  # the schema for other graphs
        assert batch.features is not None
        width = batch.features.shape[1]
        if schema is not None:
            schema = replace_fields(schema, n_features=width, label_columns=columns)
        else:
            schema = InputSchema(
                source="graphs", directed=batch.directed, vertex="features", n_features=width,
                edge_labels="ignore", label_columns=columns,
            )  # fmt: skip
    return Joined(schema, replace(batch, schema=schema), faults)


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


def _too_bare(raws: Mapping[int, Any], schema: InputSchema) -> dict[int, str]:
    """Find rows with too many vertices that have no arc and carry nothing.

    They cost nothing in a file, so that a row can have any number of them. If all rows together
    have too many, those with most of them are left out.
    """
    if schema.vertex != "none" or schema.source == "networks":
        return {}
    counts = {i: raw.n_bare for i, raw in raws.items() if isinstance(raw, RawGraph)}
    faults: dict[int, str] = {}
    most, left = MAX_BARE_VERTICES.value, MAX_BARE_TOTAL.value
    for i in sorted(counts, key=counts.__getitem__):
        bare = f"it has {counts[i]} vertices without edges, labels or features"
        if counts[i] > most:
            faults[i] = f"{bare}; {MAX_BARE_VERTICES.in_words}"
        elif counts[i] > left:
            faults[i] = f"{bare}, and the table has too many; {MAX_BARE_TOTAL.in_words}"
        else:
            left -= counts[i]
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
    labels, features = raw.labels, None
    if schema.vertex == "labels":
        labels = _labels(raw.x, schema)
    elif schema.vertex == "features":
        features = _features(raw.x, schema)
    n = raw.n_vertices
    if n is not None and MAX_VERTICES.is_below(n):
        raise GraphError(f"it has {n} vertices; {MAX_VERTICES.in_words}")
    weights = edge_labels = None
    if schema.edge_labels != "ignore":
        carried = _of_known_kind(raw.carried, schema, edges)
        if schema.edge_labels == "labels":
            edge_labels = _edge_labels(carried, schema, edges.shape[-1])
        else:
            weights = carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried
    if schema.weighted:
        weights = np.empty(0) if raw.weights is None and edges.size == 0 else raw.weights
    if raw.parallel and weights is not None:
        weights = checks.numbers(weights, "weights")
        ends = edges if schema.directed else np.sort(edges, axis=0)
        edges, first, which = np.unique(ends, axis=1, return_index=True, return_inverse=True)
        which = which.ravel()
        if edge_labels is not None:
            if (edge_labels[first][which] != edge_labels).any():
                raise GraphError("it has parallel edges with different labels; drop one of them")
            edge_labels = edge_labels[first]
        weights = np.bincount(which, weights, minlength=edges.shape[1])
    described = _descriptors(raw.cells, schema)
    return Graph(
        edges, n, labels, features, weights, schema.directed, edge_labels, described,
        vertex_names=raw.vertex_names,
    )  # fmt: skip


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
    if len(x) and x.ndim == 1 and (text or x.dtype.kind in "biu") and kind != schema.label_kind:
        raise GraphError(f"it has {kind} labels, expected {schema.vertices_in_words}")
    return x


def _features(x: Array | None, schema: InputSchema) -> Array:
    x = _present(x, schema.vertex_attributes, schema.vertices_in_words)
    x = x[:, None] if x.ndim == 1 else x
    width = (schema.n_features or 0) - len(schema.label_columns)
    if x.ndim == 2 and len(x) and x.shape[1] != width:
        raise GraphError(f"it has {x.shape[1]} features per vertex, expected {width}")
    return x


def _edge_labels(rows: Array, schema: InputSchema, n_arcs: int) -> Array:
    """Find one label per arc; an arc with several entries has them as one text."""
    rows = rows[:, None] if rows.ndim == 1 else rows
    shape = (n_arcs, schema.edge_width or 0)
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


def _of_known_kind(carried: Array | None, schema: InputSchema, edges: Array) -> Array:
    """Return what arcs carry, of the schema's kind; no entries for a graph without arcs."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        dtype = str if schema.edge_kind == "text" else float
        return np.empty((0, schema.edge_width or 0), dtype=dtype)
    carried = _present(carried, (schema.edge_attribute or "",), schema.edges_in_words)
    kind = "text" if checks.is_text(carried) else "number"
    if kind != schema.edge_kind:
        raise GraphError(
            f"its {schema.edge_attribute} has entries of kind {kind}, "
            f"expected {schema.edges_in_words}"
        )
    return carried


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"it has no {' or '.join(names) or 'such data'}, expected {expected}")
    return array


# ---------------------------------------------------------------------- labels beside features


def _has_both(graph: Graph) -> bool:
    """Return whether vertices have labels and features."""
    return graph.labels is not None and graph.features is not None


def _labels_of(graphs: Iterable[Graph]) -> tuple[Label, ...]:
    """Return all labels of graphs with features, in order, of the kind that the first graph has."""
    found: list[Label] = []
    for graph in filter(_has_both, graphs):
        try:
            found += dict.fromkeys(checks.label_array(graph.labels).tolist())
        except GraphError:  # reported where the graph is converted
            continue
    kind = type(found[0]) if found else str
    return tuple(sorted({label for label in found if isinstance(label, kind)}))


def _beside_features(graph: Graph, known: tuple[Label, ...]) -> Graph:
    """Append labels to features, a column for each known one, where a graph has both."""
    if not _has_both(graph):
        return graph
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


# ---------------------------------------------------------------------- inference of the schema


@dataclass(frozen=True)
class Form:
    """The kind of entries that vertices or arcs carry, and how many each."""

    kind: Literal["none", "integer", "real", "text", "other"]
    width: int


NOTHING = Form("none", 0)
KINDS = {"b": "integer", "i": "integer", "u": "integer", "f": "real"}


def infer_schema(raws: Sequence[RawGraph], options: ReadOptions) -> InputSchema:
    """Decide how to read the rows: as the options say, or else as most rows suggest."""
    x = _commonest([_form(raw.x) for raw in raws])
    carried = _commonest([_form(raw.carried) for raw in raws])
    weighted = any(raw.weights is not None for raw in raws)
    vertex, use = options.vertex, options.edge_labels
    if vertex == "either":  # there is no more than one
        vertex = "auto"
    if vertex == "both":
        vertex = "features"
    if vertex == "auto":
        label = x.width == 1 and x.kind in ("integer", "text")
        label = label and all(raw.labels is None for raw in raws)
        vertex = "none" if x == NOTHING else "labels" if label else "features"
    if use == "auto":
        discrete = carried.kind in ("integer", "text") and carried.width > 0
        use = "weights" if carried == Form("real", 1) else "labels" if discrete else "ignore"
        if use == "weights" and weighted and options.edge_attribute is None:
            use = "ignore"  # there are weights already
    _check_possible(vertex, x, use, carried)
    directed = options.directed
    if directed is None:
        directed = Counter(bool(raw.directed) for raw in raws).most_common(1)[0][0]
    ignored = use == "ignore"
    attributes = (raw.vertex_attributes for raw in raws)
    edge_attributes = (raw.edge_attribute for raw in raws)
    return InputSchema(
        source="table",
        directed=directed,
        direction_given=options.directed is not None,
        vertex=vertex,
        label_kind=("text" if x.kind == "text" else "integer") if vertex == "labels" else None,
        n_features=x.width if vertex == "features" else None,
        edge_labels=use,
        edge_kind=None if ignored else "text" if carried.kind == "text" else "number",
        edge_width=None if ignored else carried.width,
        weighted=weighted and use != "weights",
        pairs=lists_pairs(raws),
        vertex_attributes=() if vertex == "none" else next(filter(None, attributes), ()),
        edge_attribute=None if ignored else next(filter(None, edge_attributes), None),
        **_described(raws, options),
    )


def infer_molecule_schema(molecules: Sequence[Molecule], options: ReadOptions) -> InputSchema:
    """Decide how to read molecules: as the options say; bonds have types, if there are any."""
    bonded = any(len(molecule.bonds) for molecule in molecules)
    use = options.edge_labels
    if use == "auto":
        use = "labels" if bonded else "ignore"
    if use != "ignore" and not bonded:
        raise _nothing_carried(use)
    atoms = options.atoms or USUAL_ATOMS
    schema = molecule_schema(atoms, options.standardize, bool(options.stereo), use)
    if options.vertex == "none":
        schema = replace_fields(schema, vertex="none", label_kind=None, n_features=None)
    elif options.vertex not in ("auto", schema.vertex):
        raise GraphError(
            f"with `atoms={atoms!r}`, the vertices carry {schema.vertex} and no "
            f"{options.vertex}; use `vertex='auto'`"
        )
    return replace_fields(
        schema,
        directed=bool(options.directed),
        direction_given=options.directed is not None,
        **_described(molecules, options),
    )


def _described(raws: Sequence[RawGraph | Molecule], options: ReadOptions) -> dict[str, Any]:
    """Find which descriptors are categories: those that the user names, and those with text."""
    names, categories = options.all_descriptors, []
    for name in names:
        cells = [(raw.cells or {}).get(name) for raw in raws]
        if name in options.categories or kind_of_cells(name, cells) == "category":
            categories.append(name)
    return {"descriptors": names, "categories": tuple(categories)}


def _commonest(forms: Sequence[Form | None]) -> Form:
    """Find the form of most rows; rows that carry nothing count only if all rows do."""
    counts = Counter(form for form in forms if form is not None and form != NOTHING)
    return counts.most_common(1)[0][0] if counts else NOTHING


def _form(array: Array | None) -> Form | None:
    """Find an array's form; an empty one has none."""
    if array is None:
        return NOTHING
    if array.size == 0:
        return None
    width = 1 if array.ndim == 1 else array.shape[1] if array.ndim == 2 else -1
    kind = "text" if checks.is_text(array) else KINDS.get(array.dtype.kind, "other")
    return Form(cast(Any, kind), width)


def _check_possible(vertex: VertexChoice, x: Form, use: EdgeChoice, carried: Form) -> None:
    if vertex in ("labels", "features") and x == NOTHING:
        raise GraphError(f"the vertices carry no {vertex}; use `vertex='auto'`")
    if use != "ignore" and carried == NOTHING:
        raise _nothing_carried(use)
    if use == "weights" and (carried.width != 1 or carried.kind == "text"):
        raise GraphError(
            f"an edge carries {carried.width} entries of kind {carried.kind}, and a weight is one "
            "number; use `edge_labels='ignore'`"
        )


def _nothing_carried(use: EdgeChoice) -> GraphError:
    return GraphError(
        f"the edges carry nothing that could become {use}; use `edge_labels='ignore'`"
    )


def lists_pairs(raws: Sequence[RawGraph]) -> bool:
    """Return whether most rows list pairs; a row with two edges could be read both ways."""
    shapes = [raw.edges.shape for raw in raws if raw.edges.ndim == 2 and raw.edges.size]
    pairs = sum(shape[1] == 2 and shape[0] != 2 for shape in shapes)
    columns = sum(shape[0] == 2 and shape[1] != 2 for shape in shapes)
    return bool(pairs > columns)

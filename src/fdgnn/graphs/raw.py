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
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.molecules import NOTHING_ON_EDGES, Molecule, molecule_batch, molecule_schema
from fdgnn.limits import MAX_BARE_TOTAL, MAX_BARE_VERTICES, MAX_VERTICES
from fdgnn.schema import InputSchema, ReadOptions

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
        if source == "molecules":
            schema = molecule_schema(options, bonded=any(len(raw.bonds) for raw in found))
        else:
            schema = replace_fields(infer_schema(found, options), source=source)
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
    if form is not None and form.kind in ("integer", "real") and form.width > 1:
        return (
            f"`edge_attribute='{name}[0]'` reads the first of the {form.width} numbers of an edge, "
            f"`edge_labels='labels'` joins whole numbers to one label, and {none}"
        )
    return (
        f"`edge_attribute={name!r}` with `edge_labels='labels'` or `edge_labels='weights'` reads "
        f"them, and rejects rows that do not fit; {none}"
    )


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
        molecules = list(raws.values())
        return Joined(schema, molecule_batch(molecules, schema) if molecules else None, {})
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
    if known != ():
        columns = _join_labels(graphs, known, faults)
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
    return Joined(schema, batch if schema is None else replace(batch, schema=schema), faults)


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
        bare = f"{counts[i]} vertices without edges, labels or features"
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
        raise GraphError(f"{found}, but {expected} graphs are expected")
    edges = raw.edges.T if schema.pairs and raw.edges.ndim == 2 else raw.edges
    labels, features = raw.labels, None
    if schema.vertex != "none":
        x = _present(raw.x, schema.vertex_attributes, schema.vertices_in_words)
    if schema.vertex == "labels":
        x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
        labels = x = x.astype(np.int64) if x.dtype.kind == "f" and (x == np.round(x)).all() else x
        kind = "text" if checks.is_text(x) else "integer"
        known = len(x) and x.ndim == 1 and (kind == "text" or x.dtype.kind in "biu")
        if known and kind != schema.label_kind:
            raise GraphError(f"{kind} labels, expected {schema.vertices_in_words}")
    elif schema.vertex == "features":
        features = x[:, None] if x.ndim == 1 else x
        width = (schema.n_features or 0) - len(schema.label_columns)
        if features.ndim == 2 and len(x) and features.shape[1] != width:
            found = features.shape[1]
            raise GraphError(f"{found} features per vertex, expected {width}")
    n = raw.n_vertices
    if n is not None and MAX_VERTICES.is_below(n):
        raise GraphError(f"{n} vertices; {MAX_VERTICES.in_words}")
    weights = edge_labels = None
    if schema.edge_labels == "labels":
        edge_labels = _edge_data(raw, schema, edges)
    elif schema.edge_labels == "weights":
        weights = _edge_data(raw, schema, edges)
    if schema.weighted:
        weights = np.empty(0) if raw.weights is None and edges.size == 0 else raw.weights
    if raw.parallel and weights is not None:
        weights = checks.numbers(weights, "weights")
        ends = edges if schema.directed else np.sort(edges, axis=0)
        edges, first, which = np.unique(ends, axis=1, return_index=True, return_inverse=True)
        which = which.ravel()
        if edge_labels is not None:
            if (edge_labels[first][which] != edge_labels).any():
                raise GraphError("parallel edges with different labels; drop one of them")
            edge_labels = edge_labels[first]
        weights = np.bincount(which, weights, minlength=edges.shape[1])
    names = raw.vertex_names
    return Graph(
        edges, n, labels, features, weights, schema.directed, edge_labels, vertex_names=names
    )


def _edge_data(raw: RawGraph, schema: InputSchema, edges: Array) -> Array:
    """Return what edges carry, of the schema's kind: one label each, or weights."""
    carried, attribute = raw.carried, schema.edge_attribute
    if edges.size == 0 and (carried is None or carried.size == 0):
        carried = np.empty((0, schema.edge_width or 0), dtype=float)
        if schema.edge_kind == "text":
            carried = carried.astype(str)
    carried = _present(carried, (attribute or "",), schema.edges_in_words)
    text = checks.is_text(carried) if carried.size else schema.edge_kind == "text"
    if text != (schema.edge_kind == "text"):
        raise GraphError(
            f"{attribute} has entries of kind {'text' if text else 'number'}, "
            f"expected {schema.edges_in_words}"
        )
    if schema.edge_labels == "weights":
        return carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried
    rows = carried[:, None] if carried.ndim == 1 else carried
    checks.check_shape(rows, (edges.shape[-1], schema.edge_width or 0), f"entries of {attribute}")
    whole = rows.dtype.kind == "f" and ((np.abs(rows) < 2.0**63) & (rows == np.round(rows))).all()
    if whole or rows.dtype.kind == "b":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" and not checks.is_text(rows):
        raise GraphError(
            f"{attribute} has entries of dtype {rows.dtype}, expected {schema.edges_in_words}"
        )
    return checks.joined_labels(rows)


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"no {' or '.join(names) or 'such data'}, expected {expected}")
    return array


# ---------------------------------------------------------------------- labels beside features


def _join_labels(
    graphs: dict[int, Graph], known: tuple[Label, ...] | None, faults: dict[int, str]
) -> tuple[Label, ...]:
    """Append labels to features, where graphs have both, and return the labels with a column.

    These are the known ones, or else all labels of the kind that the first graph has. Graphs that
    cannot be converted are moved to the faults.
    """
    found: dict[int, tuple[Array, Array]] = {}
    for i, graph in list(graphs.items()):
        if graph.labels is None or graph.features is None:
            continue
        try:
            labels = checks.label_array(graph.labels)
            features = checks.numbers(graph.features, "features")
            if features.ndim != 2 or len(features) != len(labels):
                raise GraphError(
                    f"{len(labels)} labels and features of shape {features.shape}; give one "
                    "label and one row of features per vertex"
                )
            found[i] = labels, features
        except GraphError as error:
            faults[i] = error.reason
            del graphs[i]
    if found and known is None:
        every = [label for labels, _ in found.values() for label in dict.fromkeys(labels.tolist())]
        known = tuple(sorted({each for each in every if isinstance(each, type(every[0]))}))
    for i, (labels, features) in found.items():
        text = checks.is_text(labels)
        if known and isinstance(known[0], str) != text:
            kinds = ("text", "integer") if text else ("integer", "text")
            faults[i] = f"{kinds[0]} labels beside features, expected {kinds[1]} labels"
            del graphs[i]
        else:
            both = with_label_columns(features, labels, known or ())
            graphs[i] = replace(graphs[i], labels=None, features=both)
    return known or () if found else ()


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
    x = _commonest(raw.x for raw in raws)
    carried = _commonest(raw.carried for raw in raws)
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
    if vertex in ("labels", "features") and x == NOTHING:
        raise GraphError(f"the vertices carry no {vertex}; use `vertex='auto'`")
    if use != "ignore" and carried == NOTHING:
        raise GraphError(NOTHING_ON_EDGES.format(use))
    if use == "weights" and (carried.width != 1 or carried.kind == "text"):
        raise GraphError(
            f"an edge carries {carried.width} entries of kind {carried.kind}, and a weight is one "
            "number; use `edge_labels='ignore'`"
        )
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
    )


def _commonest(arrays: Iterable[Array | None]) -> Form:
    """Find the form of most rows; rows that carry nothing count only if all rows do."""
    counts = Counter(form for form in map(_form, arrays) if form is not None and form != NOTHING)
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


def lists_pairs(raws: Sequence[RawGraph]) -> bool:
    """Return whether most rows list pairs; a row with two edges could be read both ways."""
    shapes = [raw.edges.shape for raw in raws if raw.edges.ndim == 2 and raw.edges.size]
    pairs = sum(shape[1] == 2 and shape[0] != 2 for shape in shapes)
    columns = sum(shape[0] == 2 and shape[1] != 2 for shape in shapes)
    return bool(pairs > columns)

"""From arrays as a file has them to graphs, by the reading that suits most rows of the file.

A row alone cannot tell whether the numbers ``[1, 2]`` are labels or features that happen to be
whole, nor whether ``[[0, 1], [1, 0]]`` lists sources and targets or pairs. The rows together can.
`settle` decides once, on the first chunk of rows; rows that do not fit the decision are bad rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.arcs import labels_of
from fdgnn.datasets.request import ArcLabels, ReadRequest, VertexChoice
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Graph, checks
from fdgnn.graphs.reading import Reading


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file has them; nothing about them is checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None  # what vertices carry
    carried: Array | None = None  # what arcs carry: a number, a row of numbers or a text each
    directed: bool | None = None  # if the file says so
    vertex_attributes: tuple[str, ...] = ()  # where x is from
    edge_attribute: str | None = None  # where `carried` is from


@dataclass(frozen=True)
class Form:
    """The kind of entries that vertices or arcs carry, and how many each."""

    kind: Literal["none", "integer", "real", "text", "other"]
    width: int


NOTHING = Form("none", 0)
KINDS = {"b": "integer", "i": "integer", "u": "integer", "f": "real", "U": "text"}


# ---------------------------------------------------------------------- all rows


def settle(raws: Sequence[RawGraph], request: ReadRequest) -> Reading:
    """Decide how to read the rows: as the request says, or else as most rows suggest."""
    x = _commonest([_form(raw.x) for raw in raws])
    carried = _commonest([_form(raw.carried) for raw in raws])
    vertex, use = request.vertex, request.arc_labels
    if vertex == "auto":
        label = x.width == 1 and x.kind in ("integer", "text")
        vertex = "none" if x == NOTHING else "labels" if label else "features"
    if use == "auto":
        discrete = carried.kind in ("integer", "text") and carried.width > 0
        use = "weights" if carried == Form("real", 1) else "labels" if discrete else "ignore"
    _check_possible(vertex, x, use, carried)
    directed = request.directed
    if directed is None:
        directed = Counter(bool(raw.directed) for raw in raws).most_common(1)[0][0]
    ignored = use == "ignore"
    return Reading(
        source="table",
        directed=directed,
        direction_given=request.directed is not None,
        vertex=vertex,
        label_kind=("text" if x.kind == "text" else "integer") if vertex == "labels" else None,
        n_features=x.width if vertex == "features" else None,
        arc_labels=use,
        arc_kind=None if ignored else "text" if carried.kind == "text" else "number",
        arc_width=None if ignored else carried.width,
        pairs=lists_pairs(raws),
        vertex_attributes=() if vertex == "none" else raws[0].vertex_attributes,
        edge_attribute=None if ignored else raws[0].edge_attribute,
    )


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
    return Form(cast(Any, KINDS.get(array.dtype.kind, "other")), width)


def _check_possible(vertex: VertexChoice, x: Form, use: ArcLabels, carried: Form) -> None:
    if vertex in ("labels", "features") and x == NOTHING:
        raise DatasetFormatError(f"the vertices carry no {vertex}; use `vertex='auto'`")
    if use != "ignore" and carried == NOTHING:
        raise DatasetFormatError(
            f"the arcs carry nothing that could become {use}; use `arc_labels='ignore'`"
        )
    if use == "weights" and (carried.width != 1 or carried.kind == "text"):
        raise DatasetFormatError(
            f"an arc carries {carried.width} entries of kind {carried.kind}, and a weight is one "
            "number; use `arc_labels='vertices'` or `arc_labels='ignore'`"
        )
    if use == "vertices" and vertex == "features" and carried.kind == "text":
        raise DatasetFormatError(
            "arcs carry text, and vertices carry numbers, so arcs cannot become vertices; use "
            "`arc_labels='ignore'`, or give the vertices labels"
        )


def lists_pairs(raws: Sequence[RawGraph]) -> bool:
    """Tell whether most rows list pairs; a row with two edges could be read both ways."""
    shapes = [raw.edges.shape for raw in raws if raw.edges.ndim == 2 and raw.edges.size]
    pairs = sum(shape[1] == 2 and shape[0] != 2 for shape in shapes)
    columns = sum(shape[0] == 2 and shape[1] != 2 for shape in shapes)
    return bool(pairs > columns)


# ---------------------------------------------------------------------- one row


def as_graph(raw: RawGraph, reading: Reading) -> tuple[Graph, Array | None]:
    """Make a graph of a row, as the reading says.

    Only what does not fit the reading is refused here; `GraphBatch.collect` checks the rest.

    Returns
    -------
    graph : Graph
    carried : (n_arcs, n_entries) array or None
        What the arcs carry, if that is more than one number each.

    Raises
    ------
    GraphError
        The row does not fit the reading.
    """
    if raw.directed not in (None, reading.directed):
        expected = "directed" if reading.directed else "undirected"
        found = "directed" if raw.directed else "undirected"
        raise GraphError(f"it is {found}, but {expected} graphs are expected")
    edges = raw.edges.T if reading.pairs and raw.edges.ndim == 2 else raw.edges
    labels = _labels(raw.x, reading) if reading.vertex == "labels" else None
    features = _features(raw.x, reading) if reading.vertex == "features" else None
    n = raw.n_vertices
    if reading.vertex == "none" and n is not None and n > checks.MOST_INFERRED:
        raise GraphError(f"it has {n} vertices that carry nothing; check its size")
    if reading.arc_labels == "labels":
        arc_labels = _arc_labels(raw.carried, reading, edges)
        return Graph(edges, n, labels, features, None, reading.directed, arc_labels), None
    weights, carried = _arc_data(raw.carried, reading, edges)
    return Graph(edges, n, labels, features, weights, reading.directed), carried


def _labels(x: Array | None, reading: Reading) -> Array:
    x = _present(x, reading.vertex_attributes, reading.vertices_in_words)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.dtype.kind == "f" and (x == np.round(x)).all():
        x = x.astype(np.int64)
    kind = "text" if x.dtype.kind == "U" else "integer"
    if len(x) and x.ndim == 1 and x.dtype.kind in "biuU" and kind != reading.label_kind:
        raise GraphError(f"it has {kind} labels, expected {reading.vertices_in_words}")
    return x


def _features(x: Array | None, reading: Reading) -> Array:
    x = _present(x, reading.vertex_attributes, reading.vertices_in_words)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim == 2 and len(x) and x.shape[1] != reading.n_features:
        raise GraphError(f"it has {x.shape[1]} features per vertex, expected {reading.n_features}")
    return x


def _arc_labels(carried: Array | None, reading: Reading, edges: Array) -> Array:
    """Find one label per arc; an arc with several entries has them as one text."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        rows = _no_entries(reading)
    else:
        rows = _of_known_kind(carried, reading)
        rows = rows[:, None] if rows.ndim == 1 else rows
        shape = (edges.shape[-1], reading.arc_width or 0)
        checks.check_shape(rows, shape, f"entries of {reading.edge_attribute}")
    whole = rows.dtype.kind == "f" and bool(
        ((np.abs(rows) < 2.0**63) & (rows == np.round(rows))).all()
    )
    if whole or rows.dtype.kind == "b":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iuU":
        raise GraphError(
            f"its {reading.edge_attribute} has entries of dtype {rows.dtype}, "
            f"expected {reading.arcs_in_words}"
        )
    return labels_of(rows)


def _no_entries(reading: Reading) -> Array:
    dtype = str if reading.arc_kind == "text" else float
    return np.empty((0, reading.arc_width or 0), dtype=dtype)


def _of_known_kind(carried: Array | None, reading: Reading) -> Array:
    carried = _present(carried, (reading.edge_attribute or "",), reading.arcs_in_words)
    kind = "text" if carried.dtype.kind == "U" else "number"
    if kind != reading.arc_kind:
        raise GraphError(
            f"its {reading.edge_attribute} has entries of kind {kind}, "
            f"expected {reading.arcs_in_words}"
        )
    return carried


def _arc_data(
    carried: Array | None, reading: Reading, edges: Array
) -> tuple[Array | None, Array | None]:
    """Split what arcs carry into weights, and rows that need a table (see `code_arcs`)."""
    if reading.arc_labels == "ignore":
        return None, None
    one_number = reading.arc_kind == "number" and reading.arc_width == 1
    if edges.size == 0 and (carried is None or carried.size == 0):
        empty = _no_entries(reading)
        return (empty[:, 0], None) if one_number else (None, empty)
    carried = _of_known_kind(carried, reading)
    if one_number:
        return (carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried), None
    return None, _arc_rows(carried, reading, edges.shape[-1])


def _arc_rows(carried: Array, reading: Reading, n_arcs: int) -> Array:
    """Check rows that do not enter the batch themselves, only their positions in a table."""
    name = reading.edge_attribute
    carried = carried[:, None] if carried.ndim == 1 else carried
    checks.check_shape(carried, (n_arcs, reading.arc_width or 0), f"entries of {name}")
    if reading.arc_kind == "text":
        return carried
    numbers = checks.numbers(carried, f"entries of {name}")
    if not np.isfinite(numbers).all():
        raise GraphError(f"its {name} is NaN or infinite; fill in or drop such values")
    return numbers


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"it has no {' or '.join(names)}, expected {expected}")
    return array

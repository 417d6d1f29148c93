"""One layout for all graphs of a file: what vertices and arcs carry, decided on the first chunk.

A row alone cannot tell whether the numbers ``[1, 2]`` are labels or features that happen to be
whole, nor whether ``[[0, 1], [1, 0]]`` lists sources and targets or pairs. The rows together can:
the commonest form is the file's, and rows of another form are bad rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.arcs import ArcLabels
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Graph, checks

Vertex = Literal["auto", "labels", "features", "none"]

_ROW = "row"  # where the door's messages say it is; the reader knows which


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file has them, of shapes that nobody has checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None
    carried: Array | None = None  # by arcs: a number, a row of numbers or a text each
    directed: bool | None = None  # where the file says so


@dataclass(frozen=True)
class Form:
    """Kind of entries, and how many a vertex or an arc has."""

    kind: Literal["none", "integer", "real", "text", "other"]
    width: int

    @property
    def discrete(self) -> bool:
        """Can it be a label?"""
        return self.width == 1 and self.kind in ("integer", "text")


NOTHING = Form("none", 0)


@dataclass(frozen=True)
class Layout:
    """What all graphs of a file have in common."""

    vertex: Vertex
    x: Form
    arcs: ArcLabels
    carried: Form
    pairs: bool
    directed: bool


def settle(
    raws: Sequence[RawGraph], vertex: Vertex, arc_labels: ArcLabels, directed: bool | None
) -> Layout:
    """Find the layout that most rows have; options that are not "auto" have the last word."""
    x = _commonest([_form(raw.x) for raw in raws])
    carried = _commonest([_form(raw.carried) for raw in raws])
    if vertex == "auto":
        vertex = "none" if x.kind == "none" else "labels" if x.discrete else "features"
    if arc_labels == "auto":
        arc_labels = "weights" if carried == Form("real", 1) else "ignore"
    _check_possible(vertex, x, arc_labels, carried)
    if directed is None:
        directed = _commonest([bool(raw.directed) for raw in raws])
    return Layout(vertex, x, arc_labels, carried, _lists_pairs(raws), directed)


def _commonest(values: Sequence[Any]) -> Any:
    """Having nothing is a form only where it is everybody's; else it is a row's fault."""
    counts = Counter(values)
    if len(counts) > 1:
        counts.pop(NOTHING, None)
    return counts.most_common(1)[0][0]


def _form(array: Array | None) -> Form:
    if array is None:
        return NOTHING
    kinds = {"b": "integer", "i": "integer", "u": "integer", "f": "real", "U": "text"}
    width = 1 if array.ndim == 1 else array.shape[1] if array.ndim == 2 else -1
    return Form(kinds.get(array.dtype.kind, "other"), width)  # type: ignore[arg-type]


def _check_possible(vertex: Vertex, x: Form, arc_labels: ArcLabels, carried: Form) -> None:
    if vertex in ("labels", "features") and x.kind == "none":
        raise DatasetFormatError(f"vertex={vertex!r}: the vertices carry nothing; use 'auto'")
    if arc_labels in ("weights", "vertices") and carried.kind == "none":
        raise DatasetFormatError(
            f"arc_labels={arc_labels!r}: the arcs carry nothing; use 'auto' or 'ignore'"
        )
    if arc_labels == "weights" and (carried.width != 1 or carried.kind == "text"):
        raise DatasetFormatError(
            f"arc_labels='weights': an arc carries {carried.width} entries of kind {carried.kind}, "
            "and a weight is one number; use 'vertices' or 'ignore'"
        )
    if arc_labels == "vertices" and vertex == "features" and carried.kind == "text":
        raise DatasetFormatError(
            "arc_labels='vertices': arcs carry text, and vertices numbers; use 'ignore', or give "
            "the vertices labels"
        )


def _lists_pairs(raws: Sequence[RawGraph]) -> bool:
    """Is an edge a row of two? Two edges could be either, and follow the others."""
    shapes = [raw.edges.shape for raw in raws if raw.edges.ndim == 2 and raw.edges.size]
    pairs = sum(shape[1] == 2 and shape[0] != 2 for shape in shapes)
    columns = sum(shape[0] == 2 and shape[1] != 2 for shape in shapes)
    return bool(pairs > columns)


# ---------------------------------------------------------------------- one graph


def as_graph(raw: RawGraph, layout: Layout) -> tuple[Graph, Array | None]:
    """Check one graph against the layout; return it, and what its arcs carry.

    Raises
    ------
    GraphError
        With the reason, and without saying which graph.
    """
    if raw.directed not in (None, layout.directed):
        raise GraphError(f"it is {'' if raw.directed else 'un'}directed, unlike other rows")
    arcs = checks.arc_array(_oriented(raw.edges, layout.pairs), _ROW)
    labels = _labels(raw.x, layout.x) if layout.vertex == "labels" else None
    features = _features(raw.x, layout.x) if layout.vertex == "features" else None
    rows = labels if labels is not None else features
    n = checks.n_vertices(raw.n_vertices, None if rows is None else len(rows), arcs, _ROW)
    if n == 0:
        checks.check_sizes(np.array([n]))
    if rows is None and n > checks.MOST_INFERRED:  # a slip that would cost gigabytes
        raise GraphError(f"it has {n} vertices that carry nothing")
    # The door would find this, too, but only by halving, see `rows`.
    if arcs.size and (arcs.min() < 0 or arcs.max() >= n):
        checks.check_inside(arcs, np.zeros(arcs.shape[1], dtype=np.int64), np.array([n]))
    carried = None if layout.arcs == "ignore" else _carried(raw.carried, layout, arcs.shape[1])
    return Graph(arcs, n, labels, features, directed=layout.directed), carried


def reason(error: GraphError) -> str:
    """Return the message without its "graph 0:"; the row is named by whoever reports it."""
    return re.sub(rf"^(graph \d+|the batch|{_ROW}): ", "", str(error))


def _oriented(edges: Array, pairs: bool) -> Array:
    return edges.T if pairs and edges.ndim == 2 else edges


def _labels(x: Array | None, form: Form) -> Array:
    x = _present(x, "vertices carry")
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.dtype.kind == "f" and (x == np.round(x)).all():
        x = x.astype(np.int64)
    labels = checks.label_array(x, _ROW, "vertex labels")
    if len(labels) and (labels.dtype.kind == "U") != (form.kind == "text"):
        raise GraphError(f"vertex labels have dtype {labels.dtype}, unlike those of other rows")
    return labels


def _features(x: Array | None, form: Form) -> Array:
    x = _present(x, "vertices carry")
    matrix = checks.feature_matrix(x[:, None] if x.ndim == 1 else x, _ROW, "vertex features")
    if matrix.shape[1] != form.width:
        raise GraphError(
            f"a vertex has {matrix.shape[1]} features, but in other rows it has {form.width}"
        )
    if not np.isfinite(matrix).all():
        raise GraphError("a vertex feature is NaN or infinite; fill in or drop such values")
    return matrix


def _carried(carried: Array | None, layout: Layout, n_arcs: int) -> Array:
    carried = _present(carried, "arcs carry")
    form = layout.carried
    if n_arcs == 0:
        return np.empty((0, form.width), dtype=str if form.kind == "text" else float)
    carried = carried[:, None] if carried.ndim == 1 else carried
    if carried.shape != (n_arcs, form.width):
        raise GraphError(
            f"the arcs' data has shape {carried.shape}, expected {(n_arcs, form.width)}"
        )
    if (carried.dtype.kind == "U") != (form.kind == "text"):
        raise GraphError(f"the arcs' data has dtype {carried.dtype}, unlike that of other rows")
    if form.kind == "text":
        return carried
    numbers = checks.numbers(carried, _ROW, "the arcs' data")
    if not np.isfinite(numbers).all():
        raise GraphError("what an arc carries is NaN or infinite; fill in or drop such values")
    return numbers


def _present(array: Array | None, what: str) -> Array:
    if array is None:
        raise GraphError(f"its {what} nothing, unlike those of other rows")
    return array

"""Hypothesis strategies for graphs: with loops, repeats and isolated vertices, dense and empty.

And `assert_same`, which says what it means for two batches to be equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from fdgnn import Graph, GraphBatch

ARRAYS = (
    "vertex_offsets", "indptr", "neighbors", "weights", "features", "labels", "edge_labels",
)  # fmt: skip
KINDS = ("plain", "integers", "text", "features")
ARC_KINDS = ("none", "integers", "text")
_numbers = st.floats(-2, 2, width=32)
_LABELS = {"integers": st.integers(-2, 3), "text": st.sampled_from(["C", "N", "Cl", ""])}


def circulant(n: int, reach: int) -> Graph:
    """A ring of n vertices, each joined to the next ones up to `reach` steps away."""
    edges = {tuple(sorted((v, (v + d) % n))) for v in range(n) for d in range(1, reach + 1)}
    return Graph(np.array(sorted(edges)).T, directed=False)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    kind: str = "plain",
    n_features: int = 2,
    weighted: bool = False,
    directed: bool = False,
    edge_kind: str = "none",
    min_vertices: int = 1,
    max_vertices: int = 8,
) -> Graph:
    """One valid graph, whose vertices have what `kind` (one of `KINDS`) says, and arcs likewise."""
    n = draw(st.integers(min_vertices, max_vertices))
    arcs = draw(_arcs(n))
    return Graph(
        edge_index=np.array(arcs, dtype=np.int64).reshape(-1, 2).T,
        n_vertices=n,
        weights=draw(_on_edges(arcs, directed, _numbers, float)) if weighted else None,
        directed=directed,
        edge_labels=draw(_edge_labels(arcs, directed, edge_kind)),
        **draw(_vertex_fields(kind, n, n_features)),
    )


@st.composite
def graph_lists(
    draw: st.DrawFn,
    *,
    kinds: tuple[str, ...] = KINDS,
    weighted: bool | None = None,
    directed: bool | None = None,
    arc_kinds: tuple[str, ...] = ("none",),
    min_size: int = 1,
    max_size: int = 6,
    max_vertices: int = 8,
) -> list[Graph]:
    """Graphs that fit in one batch; what is None is drawn, too."""
    one = graphs(
        kind=draw(st.sampled_from(kinds)),
        n_features=draw(st.integers(1, 3)),
        weighted=draw(st.booleans()) if weighted is None else weighted,
        directed=draw(st.booleans()) if directed is None else directed,
        edge_kind=draw(st.sampled_from(arc_kinds)),
        max_vertices=max_vertices,
    )
    return draw(st.lists(one, min_size=min_size, max_size=max_size))


def batches(**options: Any) -> st.SearchStrategy[GraphBatch]:
    """Batches of graphs; takes the options of `graph_lists`."""
    return graph_lists(**options).map(GraphBatch.from_graphs)


def _arcs(n: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    vertex = st.integers(0, n - 1)
    some = st.lists(st.tuples(vertex, vertex), max_size=3 * n)
    every = st.just([(u, v) for u in range(n) for v in range(u)])
    return st.one_of(some, some, st.just([]), every)


@st.composite
def _on_edges(
    draw: st.DrawFn,
    arcs: list[tuple[int, int]],
    directed: bool,
    values: st.SearchStrategy[Any],
    dtype: type,
) -> Any:
    """One value an arc, the same wherever the same edge is listed."""
    edges = [arc if directed else tuple(sorted(arc)) for arc in arcs]
    value = {edge: draw(values) for edge in sorted(set(edges))}
    return np.array([value[edge] for edge in edges], dtype=dtype)


def _edge_labels(arcs: list[tuple[int, int]], directed: bool, kind: str) -> st.SearchStrategy[Any]:
    if kind == "none":
        return st.none()
    return _on_edges(arcs, directed, _LABELS[kind], str if kind == "text" else np.int64)


@st.composite
def _vertex_fields(draw: st.DrawFn, kind: str, n: int, n_features: int) -> dict[str, Any]:
    if kind in _LABELS:
        return {"labels": np.array(draw(_column(_LABELS[kind], n)))}
    if kind == "features":
        values = draw(_column(_numbers, n * n_features))
        return {"features": np.array(values).reshape(n, n_features)}
    return {}


def _column(values: st.SearchStrategy[Any], n: int) -> st.SearchStrategy[list[Any]]:
    return st.lists(values, min_size=n, max_size=n)


def assert_same(a: GraphBatch, b: GraphBatch) -> None:
    """Equal but for the vocabulary, which may hold labels that are no longer there."""
    assert a.directed == b.directed
    for name in ARRAYS:
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype.kind == right.dtype.kind, name
            assert left.shape == right.shape, name
            np.testing.assert_array_equal(left, right, err_msg=name)

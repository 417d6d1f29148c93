"""WL labels in words: the first label of a vertex, and what is around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from fdgnn.encoders import WLCounts
from fdgnn.encoders.wl_parts import LabelRow
from fdgnn.graphs import GraphBatch

_MOST_KINDS = 5  # of neighbors that are named


def wl_label_in_words(
    encoder: WLCounts, graph: GraphBatch, row: LabelRow, vertex: int, names: Mapping[str, str]
) -> str:
    """Describe the WL label of a vertex of one graph, in a channel and iteration."""
    first: list[str] = list(encoder.in_words(graph, row.channel, names))
    if row.round == 0:
        return first[vertex]
    if row.round == 1:
        return f"{first[vertex]}, {_neighbors(encoder, graph, first, vertex)}"
    return f"{first[vertex]}, with all that is up to {row.round} steps away"


def _neighbors(encoder: WLCounts, graph: GraphBatch, first: list[str], vertex: int) -> str:
    """List the neighbors of a vertex, with the labels of the edges to them."""
    kinds = Counter(_neighbors_one_by_one(encoder, graph, first, vertex))
    if not kinds:
        return "without neighbors"
    named = [
        words if n == 1 else f"{n} \N{MULTIPLICATION SIGN} {words}"
        for words, n in sorted(kinds.items())
    ]
    if len(named) > _MOST_KINDS:
        named = [*named[: _MOST_KINDS - 1], f"{len(named) - _MOST_KINDS + 1} other kinds"]
    listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
    return f"{'with arcs' if graph.directed else 'next to'} {listed}"


def _neighbors_one_by_one(
    encoder: WLCounts, graph: GraphBatch, first: list[str], vertex: int
) -> list[str]:
    arcs = [(a, int(u), "") for a, u in _entering(graph, vertex)]
    if graph.directed:
        arcs = [(a, u, "from ") for a, u, _ in arcs]
        ends = np.repeat(np.arange(graph.n_vertices), np.diff(graph.indptr))
        leaving = np.flatnonzero(graph.neighbors == vertex)
        arcs += [(int(a), int(ends[a]), "to ") for a in leaving]
    return [f"{way}{first[u]}{_edge(encoder, graph, a)}" for a, u, way in arcs]


def _entering(graph: GraphBatch, vertex: int) -> list[tuple[int, int]]:
    arcs = range(int(graph.indptr[vertex]), int(graph.indptr[vertex + 1]))
    return [(a, int(graph.neighbors[a])) for a in arcs]


def _edge(encoder: WLCounts, graph: GraphBatch, arc: int) -> str:
    codes, values = graph.arc_label_codes, graph.arc_label_values
    if not encoder.uses_arc_labels or codes is None or values is None:
        return ""
    return f" (edge {values[codes[arc]]})"

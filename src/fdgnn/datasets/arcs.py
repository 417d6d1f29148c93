"""Graphs whose arcs carry labels, for a model that knows labels of vertices only.

Subdivision (also called the Levi graph) makes every edge a vertex of its own, between its two
ends and with the edge's label as its vertex label. Nothing is lost, vertices keep their numbers,
and labels on edges become labels on vertices, which reservoirs already read. Which of the ways to
use arc labels is worth what was measured: docs/decisions/0020-arc-labels.md.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from fdgnn._checks import Array, Floats, Ints
from fdgnn.graphs import GraphBatch

ArcLabels = Literal["auto", "ignore", "weights", "vertices"]


def subdivide(graphs: GraphBatch, arc_features: Floats | None = None) -> GraphBatch:
    """Make each edge a vertex between its ends, labelled by what the edge carries.

    Parameters
    ----------
    graphs : GraphBatch
        Whose weights are the arcs' labels, as numbers. In each graph, the old vertices come
        first and keep their order; the edges follow, in the order of their ends.
    arc_features : (n_codes, n_arc_features) float, optional
        If given, weights are positions in this table, whose rows are what the arcs carry.

    Returns
    -------
    GraphBatch
        Unweighted, with

        - text labels, if `graphs` has labels or nothing: a vertex keeps its label, or is called
          ``vertex``; an edge is called ``edge`` and its number or numbers, as in ``edge 1.5``;
        - features, if `graphs` has features: a vertex has its own and then zeros; an edge has
          zeros, then a one, then its numbers.
    """
    values = np.zeros(graphs.n_arcs) if graphs.weights is None else graphs.weights
    sources, targets = _arc_ends(graphs)
    # An undirected edge is listed both ways, a loop once.
    kept = slice(None) if graphs.directed else sources <= targets
    sources, targets, values = sources[kept], targets[kept], values[kept]
    carried = values[:, None] if arc_features is None else arc_features[values.astype(np.int64)]
    offsets, vertices, edges = _positions(graphs, sources)
    arcs = np.stack(
        [
            np.concatenate([vertices[sources], edges]),
            np.concatenate([edges, vertices[targets]]),
        ]
    )
    order = np.empty(len(vertices) + len(edges), dtype=np.int64)
    order[np.concatenate([vertices, edges])] = np.arange(len(order))
    labels = features = None
    if graphs.features is None:
        labels = _labels(graphs, carried)[order]
    else:
        features = _features(graphs.features, carried)[order]
    return GraphBatch.from_arcs(
        offsets, arcs, labels=labels, features=features, directed=graphs.directed
    )


def _arc_ends(graphs: GraphBatch) -> tuple[Ints, Ints]:
    """Sources and targets as vertices of the union."""
    targets = np.repeat(np.arange(graphs.n_vertices), np.diff(graphs.indptr))
    return graphs.neighbours + graphs.vertex_offsets[graphs.graph_of_vertex[targets]], targets


def _positions(graphs: GraphBatch, sources: Ints) -> tuple[Ints, Ints, Ints]:
    """New offsets, and the new numbers of old vertices and of edges."""
    graph_of_edge = graphs.graph_of_vertex[sources]
    n_edges = np.bincount(graph_of_edge, minlength=len(graphs))
    edge_offsets = np.concatenate([[0], np.cumsum(n_edges)])
    vertices = np.arange(graphs.n_vertices) + edge_offsets[graphs.graph_of_vertex]
    # Targets are in order, and so are the graphs: the edges of a graph are listed together.
    edges = np.arange(len(sources)) + graphs.vertex_offsets[graph_of_edge + 1]
    return graphs.vertex_offsets + edge_offsets, vertices, edges


def _labels(graphs: GraphBatch, carried: Floats) -> Array:
    own = graphs.labels
    of_vertices = np.full(graphs.n_vertices, "vertex") if own is None else own.astype(str)
    distinct, codes = np.unique(carried, axis=0, return_inverse=True)
    names = ["edge " + ",".join(f"{number:.15g}" for number in row) for row in distinct.tolist()]
    of_edges = np.array(names, dtype=str)[codes.ravel()]
    return np.concatenate([of_vertices, of_edges])


def _features(own: Floats, carried: Floats) -> Floats:
    n, m = len(own), len(carried)
    width = own.shape[1]
    features = np.zeros((n + m, width + 1 + carried.shape[1]))
    features[:n, :width] = own
    features[n:, width] = 1
    features[n:, width + 1 :] = carried
    return features

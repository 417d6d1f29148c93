"""What arcs carry, as labels; and as vertices, for a model that reads labels of vertices only.

Subdivision makes every edge a vertex of its own, between its two ends, with the edge's label as
its vertex label. The result is also called the Levi graph. Nothing is lost, and vertices keep
their numbers. docs/decisions/0020-arc-labels.md compares the ways to use arc labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.graphs import checks
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.labels import coded


def subdivide(graphs: GraphBatch, table: Array | None = None) -> GraphBatch:
    """Make each edge a vertex between its ends, labeled by what the edge carries.

    Parameters
    ----------
    graphs : GraphBatch
        Their weights are the arcs' labels, as numbers. In each graph, the old vertices come
        first and keep their order. The edges follow, in the order of their ends.
    table : (n_codes, n_entries) float or str, optional
        If given, weights are positions in this table. Its rows are what the arcs carry.

    Returns
    -------
    GraphBatch
        Without weights, and with

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
    offsets, vertices, edges = _positions(graphs, sources)
    arcs = np.stack(
        [
            np.concatenate([vertices[sources], edges]),
            np.concatenate([edges, vertices[targets]]),
        ]
    )
    order = np.argsort(np.concatenate([vertices, edges]))
    if graphs.features is not None:
        features = _features(graphs.features, _entries(values, table))[order]
        result = GraphBatch.from_arcs(offsets, arcs, features=features, directed=graphs.directed)
        return replace(result, reading=graphs.reading, descriptors=graphs.descriptors)
    names, codes = _labels(graphs, values, table)
    result = GraphBatch.from_arcs(offsets, arcs, labels=codes[order], directed=graphs.directed)
    return replace(
        result,
        label_values=names[result.label_values],
        reading=graphs.reading,
        descriptors=graphs.descriptors,
    )


def code_arcs(carried: Array) -> tuple[Floats, Array | None]:
    """Give each arc one number: its own, or its row in a table if arcs carry text or more."""
    if checks.is_text(carried):
        rows = list(map(tuple, carried.tolist()))
        place = {row: i for i, row in enumerate(sorted(set(rows)))}
        table = checks.text_array([text for row in place for text in row])
        positions = np.array([place[row] for row in rows], dtype=np.float64)
        return positions, table.reshape(len(place), carried.shape[1])
    if carried.shape[1] == 1:
        return carried[:, 0].astype(np.float64), None
    table, codes = np.unique(carried, axis=0, return_inverse=True)
    return codes.ravel().astype(np.float64), table


def labels_of(carried: Array) -> Array:
    """Give each arc one label: its own entry or, if it carries several, these joined by commas.

    Parameters
    ----------
    carried : (n_arcs, n_entries) int or str
    """
    if carried.shape[1] == 1:
        return carried[:, 0]
    return checks.text_array([",".join(map(str, row)) for row in carried.tolist()])


def _arc_ends(graphs: GraphBatch) -> tuple[Ints, Ints]:
    """Find the sources and targets, as vertices of the union."""
    targets = np.repeat(np.arange(graphs.n_vertices), np.diff(graphs.indptr))
    return graphs.neighbors + graphs.vertex_offsets[graphs.graph_of_vertex[targets]], targets


def _positions(graphs: GraphBatch, sources: Ints) -> tuple[Ints, Ints, Ints]:
    """Find the new offsets, and the new numbers of old vertices and of edges."""
    graph_of_edge = graphs.graph_of_vertex[sources]
    n_edges = np.bincount(graph_of_edge, minlength=len(graphs))
    edge_offsets = offsets_of(n_edges)
    vertices = np.arange(graphs.n_vertices) + edge_offsets[graphs.graph_of_vertex]
    # Targets are in order, and so are the graphs: the edges of a graph are listed together.
    edges = np.arange(len(sources)) + graphs.vertex_offsets[graph_of_edge + 1]
    return graphs.vertex_offsets + edge_offsets, vertices, edges


def _entries(values: Floats, table: Array | None) -> Array:
    """Find what arcs with these numbers carry, one row per arc."""
    return values[:, None] if table is None else table[values.astype(np.int64)]


def _labels(graphs: GraphBatch, arc_values: Floats, table: Array | None) -> tuple[Array, Ints]:
    """Find the names in order, and each vertex's and then each edge's position among them."""
    # Names are few and vertices many: sorting all vertices' names as text would take longest.
    codes, values = graphs.label_codes, graphs.label_values
    if codes is None or values is None:
        codes, values = np.zeros(graphs.n_vertices, dtype=np.int32), np.array(["vertex"])
    distinct, edge_codes = np.unique(arc_values, return_inverse=True)
    rows = _entries(distinct, table).tolist()
    edge_names = ["edge " + ",".join(map(_text, row)) for row in rows]
    everything = checks.text_array([*map(str, values.tolist()), *edge_names])
    position, names = coded(everything)
    assert position is not None
    assert names is not None
    return names, position[np.concatenate([codes, edge_codes + len(values)])]


def _text(entry: float | str) -> str:
    return entry if isinstance(entry, str) else f"{entry + 0.0:.15g}"  # no "-0"


def _features(own: Floats, carried: Floats) -> Floats:
    n, m = len(own), len(carried)
    width = own.shape[1]
    features = np.zeros((n + m, width + 1 + carried.shape[1]))
    features[:n, :width] = own
    features[n:, width] = 1
    features[n:, width + 1 :] = carried
    return features

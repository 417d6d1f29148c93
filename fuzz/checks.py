"""Checks of graphs that were read."""

from __future__ import annotations

import numpy as np

from fdgnn import GraphBatch


def is_sound(batch: GraphBatch) -> None:
    """Check what kernels rely on."""
    n, m = batch.n_vertices, len(batch.neighbors)
    assert batch.vertex_offsets[0] == 0
    assert batch.vertex_offsets[-1] == n
    assert (np.diff(batch.vertex_offsets) >= 0).all()
    assert len(batch.indptr) == n + 1
    assert batch.indptr[0] == 0
    assert batch.indptr[-1] == m
    assert (np.diff(batch.indptr) >= 0).all()
    graph_of = np.repeat(np.arange(len(batch)), np.diff(batch.vertex_offsets))
    size = np.diff(batch.vertex_offsets)[graph_of]  # of the graph of each vertex
    assert (batch.neighbors >= 0).all()
    assert (batch.neighbors < np.repeat(size, np.diff(batch.indptr))).all()
    for values, size in ((batch.weights, m), (batch.edge_labels, m), (batch.labels, n)):
        assert values is None or len(values) == size
    for real in (batch.weights, batch.features):
        assert real is None or np.isfinite(real).all()

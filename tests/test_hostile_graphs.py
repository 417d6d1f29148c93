"""Graphs that are small to write down take neither hours nor gigabytes."""

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from fdgnn import Graph, GraphReservoir, as_batch
from fdgnn.datasets import make_random_graphs
from fdgnn.kernels import count_triangles


def path(n, **fields):
    return Graph(np.stack([np.arange(n - 1), np.arange(1, n)]), n, **fields)


def ascending(n):
    return {"features": np.arange(n, dtype=float)[:, None] / n}


@contextmanager
def room_for(n_bytes):
    """Let this process take so much more memory and no more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def test_refining_a_long_path_stops():
    """It would take n / 2 rounds of n steps: days for a million vertices."""
    n = 15_000
    graphs = as_batch([path(n), path(n), path(20)])
    long, _, short = graphs.coloring.n_iterations.tolist()
    assert long * 3 * n < 2**27
    assert short == 10
    assert graphs.coloring.n_classes.tolist() == [n, n, 10]
    assert graphs.n_distinct_graphs == 3  # it is not known whether the long ones are the same


def test_a_path_that_is_not_refined_has_the_same_states():
    graphs = as_batch([path(9000)])
    assert graphs.coloring.n_classes.tolist() == [9000]
    encoder = GraphReservoir(n_units=5, tol=1e-6, max_iter=200, random_state=0).fit(graphs)
    expected = encoder.set_params(solver="paper").transform(graphs)
    np.testing.assert_allclose(encoder.set_params(solver="auto").transform(graphs), expected)


def hub(n, extra, directed):
    """A vertex with arcs to all others, some arcs between these, and a few loops."""
    rng = np.random.default_rng(extra)
    spokes = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)])
    if directed:
        spokes = np.concatenate([spokes, spokes[::-1]], axis=1)
    others = rng.integers(0, n, (2, extra))
    return Graph(np.concatenate([spokes, others], axis=1), n, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_triangles_at_a_hub_are_counted_right(directed):
    graphs = as_batch([hub(100, extra, directed) for extra in (0, 5, 60, 600)])
    counts = np.zeros(graphs.n_vertices, dtype=np.int64)
    count_triangles(0, 4, graphs.vertex_offsets, graphs.indptr, graphs.neighbors, counts)
    A = graphs.adjacency().toarray() != 0
    np.fill_diagonal(A, False)
    A = A.astype(float)
    np.testing.assert_array_equal(counts, ((A @ A) * A).sum(axis=1) // 2)


def test_triangles_of_a_star_take_no_square():
    """A million leaves would each look at a million leaves."""
    n = 1_000_000
    graphs = as_batch([hub(n, 0, False)])
    counts = np.zeros(n, dtype=np.int64)
    count_triangles(0, 1, graphs.vertex_offsets, graphs.indptr, graphs.neighbors, counts)
    assert not counts.any()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
def test_a_dense_graph_beside_a_long_one_takes_no_product_of_both():
    """The band of one times the length of the other would be 2 GB."""
    dense = Graph(np.stack(np.triu_indices(500, 1)), 500, **ascending(500))
    graphs = as_batch([dense, path(500_000, **ascending(500_000))])
    encoder = GraphReservoir(n_units=2, degree="max", random_state=0).fit(graphs)
    alone = encoder.transform(as_batch([dense]))
    with room_for(500_000_000):
        together = encoder.transform(graphs)
    np.testing.assert_array_equal(together[:1], alone)


def test_small_graphs_are_refined_to_the_end():
    graphs = make_random_graphs(30, n_vertices=(1, 80), random_state=0)
    assert (graphs.coloring.n_iterations < 20).all()

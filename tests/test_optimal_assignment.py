"""Thermometer counts are the optimal assignment kernel: GraKeL's, and that of the definition."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fdgnn import Graph, WLCounts, as_batch

HEIGHTS = (1, 2, 3, 5)


@pytest.fixture(scope="module")
def graphs():
    """Small labeled graphs, some with vertices that have no neighbor, one without any edge."""
    rng = np.random.default_rng(0)
    made = [_random_graph(rng, int(rng.integers(1, 12))) for _ in range(48)]
    assert any((np.diff(as_batch([g]).adjacency().indptr) == 0).any() for g in made)
    return [*made, Graph(np.empty((2, 0), int), labels=[0, 0, 2])]


def _random_graph(rng, n):
    upper = np.triu(rng.random((n, n)) < 0.3, 1)
    return Graph(np.array(np.nonzero(upper | upper.T)), labels=rng.integers(0, 3, n))


def our_kernel(graphs, height, **options):
    X = WLCounts(n_iterations=height, n_features=None, **options).fit_transform(as_batch(graphs))
    return (X @ X.T).toarray()


# ---------------------------------------------------------------------- GraKeL's


@pytest.mark.parametrize("height", HEIGHTS)
def test_it_is_the_kernel_of_grakel(graphs, height):
    """GraKeL's `n_iter` refinements come after the labels themselves, as our rounds do."""
    grakels = pytest.importorskip("grakel.kernels").WeisfeilerLehmanOptimalAssignment
    from fdgnn.evaluation.baselines.pipelines import as_grakel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        K = grakels(n_iter=height).fit_transform(as_grakel(as_batch(graphs)))
    np.testing.assert_array_equal(our_kernel(graphs, height), K)


def test_new_graphs_have_the_same_products_in_grakel(graphs):
    grakels = pytest.importorskip("grakel.kernels").WeisfeilerLehmanOptimalAssignment
    from fdgnn.evaluation.baselines.pipelines import as_grakel

    old, new = as_batch(graphs[:30]), as_batch(graphs[30:])
    encoder = WLCounts(n_iterations=3, n_features=None).fit(old)
    ours = (encoder.transform(new) @ encoder.transform(old).T).toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        K = grakels(n_iter=3).fit(as_grakel(old)).transform(as_grakel(new))
    np.testing.assert_array_equal(ours, K)


# ---------------------------------------------------------------------- the definition's


@pytest.mark.parametrize("height", [0, *HEIGHTS])
def test_it_is_the_best_assignment_of_vertices(graphs, height):
    """By solving the assignment problem: two vertices are worth the rounds in which they agree."""
    few = graphs[-25:]
    colors = [_rounds_of_colors(graph, height) for graph in few]
    expected = [[_best_assignment(a, b) for b in colors] for a in colors]
    np.testing.assert_array_equal(our_kernel(few, height), expected)


def _rounds_of_colors(graph, height):
    """Colors as nested tuples, (n_vertices, height + 1): nothing is hashed."""
    batch = as_batch([graph])
    arcs, labels = batch.adjacency(), batch.label_values[batch.label_codes].tolist()
    rounds = [labels]
    for _ in range(height):
        last = rounds[-1]
        around = [sorted(last[u] for u in arcs.indices[a:b]) for a, b in pairwise(arcs.indptr)]
        rounds.append([(own, tuple(others)) for own, others in zip(last, around, strict=True)])
    return list(zip(*rounds, strict=True))


def _best_assignment(a, b):
    worth = [[sum(x == y for x, y in zip(u, v, strict=True)) for v in b] for u in a]
    rows, columns = linear_sum_assignment(worth, maximize=True)
    return np.array(worth)[rows, columns].sum()


def test_hashing_into_buckets_changes_little(graphs):
    exact = our_kernel(graphs, 3)
    X = WLCounts(n_iterations=3).fit_transform(as_batch(graphs))
    hashed = (X @ X.T).toarray()
    assert (hashed >= exact).all()
    assert np.mean(hashed != exact) < 0.01

"""`PairCounts`: kernels against shortest paths by SciPy, and what does not depend on the order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.sparse.csgraph import shortest_path

from fdgnn import (
    EncoderUnion,
    Graph,
    GraphClassifier,
    PairCounts,
    WLCounts,
    as_batch,
    explain,
    load_model,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import pairs
from fdgnn.exceptions import GraphError, UnknownLabelWarning
from strategies import graph_lists

DISTANCE = 3


def pairs_of(graph, max_distance, labels):
    """How often each kind of pair occurs."""
    adjacency = as_batch([graph]).adjacency().copy()
    adjacency.data = np.ones_like(adjacency.data)  # weights are ignored
    distances = shortest_path(adjacency.T, unweighted=True)
    found = Counter()
    for u in range(graph.n_vertices):
        for v in range(graph.n_vertices):
            if distances[u, v] <= max_distance and (graph.directed or u <= v):
                ends = (labels[u], labels[v])
                found[ends if graph.directed else tuple(sorted(ends)), distances[u, v]] += 1
    return found


def rounded(count):
    """The count to four binary digits, rounded down."""
    unit = 1
    while count >= 16 * unit:
        unit *= 2
    return count // unit * unit


def smaller_counts(one, other):
    return sum(min(rounded(m), rounded(other[kind])) for kind, m in one.items() if kind in other)


@settings(max_examples=60, deadline=None)
@given(graph_lists(kinds=("integers", "text")))
def test_the_product_is_the_sum_of_the_smaller_counts(graphs):
    X = PairCounts(DISTANCE, n_features=2**24).fit_transform(graphs)
    labels = [np.asarray(graph.labels).tolist() for graph in as_batch(graphs)]
    counts = [
        pairs_of(graph, DISTANCE, own) for graph, own in zip(as_batch(graphs), labels, strict=True)
    ]
    expected = [[smaller_counts(one, other) for other in counts] for one in counts]
    np.testing.assert_allclose((X @ X.T).toarray(), expected, rtol=1e-12)


def test_large_counts_are_rounded_down():
    graphs = make_random_graphs(20, n_vertices=(20, 60), random_state=0)
    X = PairCounts(DISTANCE, vertices="nothing", n_features=2**24).fit_transform(graphs)
    counts = [pairs_of(graph, DISTANCE, [0] * graph.n_vertices) for graph in graphs]
    assert max(max(each.values()) for each in counts) > 500
    expected = [[smaller_counts(one, other) for other in counts] for one in counts]
    np.testing.assert_allclose((X @ X.T).toarray(), expected, rtol=1e-12)
    assert np.diff(X.indptr).max() < 4 * (16 + 8 * 7)


def test_neither_the_order_of_vertices_nor_threads_change_features():
    graphs, _ = make_motif_graphs(40, random_state=0)
    rng = np.random.default_rng(0)
    shuffled = []
    for graph in graphs:
        order = rng.permutation(graph.n_vertices)
        place = np.argsort(order)
        labels = None if graph.labels is None else np.asarray(graph.labels)[order]
        shuffled.append(Graph(place[graph.edge_index], graph.n_vertices, labels=labels))
    encoder = PairCounts().fit(graphs)
    X = encoder.transform(graphs)
    for other in (encoder.transform(shuffled), PairCounts(n_jobs=2).fit_transform(graphs)):
        assert (other != X).nnz == 0


def test_large_graphs_have_sampled_sources(monkeypatch):
    graphs = make_random_graphs(10, n_vertices=(60, 80), random_state=0)
    exact = PairCounts(DISTANCE, vertices="degree").fit_transform(graphs)
    monkeypatch.setattr(pairs, "MAX_SOURCES", 30)
    sampled = PairCounts(DISTANCE, vertices="degree").fit_transform(graphs)
    assert (sampled != PairCounts(DISTANCE, vertices="degree").fit_transform(graphs)).nnz == 0
    products = np.asarray(exact.multiply(sampled).sum(axis=1))
    squares = np.asarray(exact.multiply(exact).sum(axis=1))
    assert (exact != sampled).nnz > 0
    np.testing.assert_allclose(products, squares, rtol=0.3)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("vertices", ["labels", "degree", "features"])
def test_shares_of_vertices_add_up(directed, vertices, monkeypatch):
    monkeypatch.setattr(pairs, "MAX_SOURCES", 12)
    rng = np.random.default_rng(0)
    graphs = []
    for graph in make_random_graphs(12, n_vertices=(5, 25), random_state=0):
        n, arcs = graph.n_vertices, graph.edge_index
        labels = rng.integers(0, 3, n) if vertices == "labels" else None
        features = rng.normal(size=(n, 2)) if vertices == "features" else None
        graphs.append(Graph(arcs, n, labels=labels, features=features, directed=directed))
    batch = as_batch(graphs)
    encoder = PairCounts(DISTANCE, vertices, n_features=2**10).fit(batch)
    found = encoder.attribute(batch)
    assert (found.features != encoder.transform(batch)).nnz == 0
    directions, of_graph = rng.normal(size=(2, 2**10)), rng.integers(0, 2, len(batch))
    shares = found.contributions(directions, of_graph)
    expected = (found.features @ directions.T)[np.arange(len(batch)), of_graph]
    sums = np.add.reduceat(shares, batch.vertex_offsets[:-1])
    np.testing.assert_allclose(sums, expected, atol=1e-9)


def test_half_of_a_pair_goes_to_each_of_its_vertices():
    path = Graph([[0, 1], [1, 2]], labels=["A", "B", "C"])
    batch = as_batch([path])
    encoder = PairCounts(2, n_features=2**20).fit(batch)
    # Three vertices, two edges and one pair at distance 2: each counts 1.
    shares = encoder.attribute(batch).contributions(np.ones((1, 2**20)), np.array([0]))
    np.testing.assert_allclose(shares, [2.0, 2.0, 2.0])


def test_a_model_of_pairs_is_saved_explained_and_joined_with_wl_features(tmp_path):
    graphs, y = make_motif_graphs(80, random_state=0)
    union = EncoderUnion([("wl", WLCounts(2)), ("pairs", PairCounts(5))])
    for encoder in ("pairs", PairCounts(4), union):
        for readout in ("linear", "rbf"):
            model = GraphClassifier(encoder, readout, random_state=0)
            model.fit(graphs, y)
            save_model(model, tmp_path / "model.fdgnn")
            loaded = load_model(tmp_path / "model.fdgnn")
            np.testing.assert_array_equal(loaded.outputs(graphs), model.outputs(graphs))
            one = explain(model, graphs[:3], target=1)[2]
            np.testing.assert_allclose(one.vertices.sum(), one.score - one.base_score, atol=1e-9)


def test_unknown_labels_are_counted_or_rejected():
    known, new = Graph([[0], [1]], labels=["A", "A"]), Graph([[0], [1]], labels=["A", "B"])
    encoder = PairCounts().fit([known])
    with pytest.warns(UnknownLabelWarning):
        X = encoder.transform([new])
    assert X.sum() == 3
    with pytest.raises(GraphError, match="'B' was not seen"):
        PairCounts(handle_unknown="error").fit([known]).transform([new])


@pytest.mark.parametrize("wrong", [{"n_features": 100}, {"n_features": None}, {"max_distance": -1}])
def test_wrong_parameters_are_rejected(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        PairCounts(**wrong).fit([Graph([[0], [1]])])

"""Predicting one graph, and fitting a few: few calls of kernels, no threads, nothing twice.

Times depend on the machine; these are what they are made of.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fdgnn import (
    FDGNNClassifier,
    GraphClassifier,
    GraphReservoir,
    RandomExpansion,
    WLCounts,
    kernels,
    threads,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import EncoderUnion
from fdgnn.encoders.base import encode_each
from fdgnn.graphs import colors, converters
from fdgnn.seeds import seed_sequence


@pytest.fixture
def called(monkeypatch):
    """How often each kernel is called."""
    counts: Counter[str] = Counter()

    def counted(name, kernel):
        def call(*arguments):
            counts[name] += 1
            return kernel(*arguments)

        return call

    for name, kernel in list(vars(kernels).items()):
        if type(kernel).__name__ == "nb_func":
            monkeypatch.setattr(kernels, name, counted(name, kernel))
    return counts


def refused(*_, **__):
    raise AssertionError("this takes time, and brings nothing for one graph")


def test_kernels_are_called_once_for_the_graph_and_once_for_all_reservoirs(called, monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, n_estimators=3, random_state=0, n_jobs=-1).fit(graphs, y)
    model.predict([graphs[0]])  # what is kept with the model is made now

    monkeypatch.setattr(threads, "ThreadPoolExecutor", refused)
    monkeypatch.setattr(threads, "_set_blas_threads", refused)
    called.clear()
    model.predict([graphs[1]])
    assert called == {"merge_arcs": 1, "solve_few": 1, "read_out": 3}


KINDS = {
    "labels": {},
    "features": {"n_labels": None, "n_features": 2},
    "nothing": {"n_labels": None},
    "directed": {"directed": True},
    "weights": {"weighted": True},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_graphs_have_the_same_bits_by_one_call_for_all_reservoirs(kind):
    graphs = make_random_graphs(12, random_state=0, **KINDS[kind])
    reservoirs = [
        GraphReservoir(n_units=10, random_state=0),
        GraphReservoir(n_units=7, n_layers=2, n_connections=2, random_state=1),
        GraphReservoir(n_units=10, pooled_layers="all", random_state=2),
        # Without a certificate, so that it goes the paper's steps by itself.
        GraphReservoir(n_units=10, effective_spectral_radius=3.0, random_state=3),
    ]
    for each in reservoirs:
        each.draw(graphs, seed_sequence(each.random_state))
    for few in (graphs[:1], graphs[[3, 5, 3]], graphs):
        found = GraphReservoir.encode_each(reservoirs, few)
        for each, own in zip(reservoirs, found, strict=True):
            alone = each.encode(few)
            np.testing.assert_array_equal(own.features[0], alone.features[0], strict=True)
            np.testing.assert_array_equal(own.convergence.n_iter, alone.convergence.n_iter)
            np.testing.assert_array_equal(own.convergence.residual, alone.convergence.residual)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_outputs_of_a_few_graphs_are_those_of_many(n_classes, monkeypatch):
    graphs = make_random_graphs(40, random_state=0)
    y = np.arange(40) % n_classes
    described = graphs.with_descriptors({"size": np.diff(graphs.vertex_offsets).tolist()})
    for batch in (graphs, described):
        model = FDGNNClassifier(n_units=11, random_state=0).fit(batch, y)
        few = model.outputs(batch[:5])
        np.testing.assert_allclose(few, model.outputs(batch)[:5], rtol=0, atol=1e-12)
    monkeypatch.setattr(kernels, "read_out", refused)  # which knows nothing of descriptors
    model.outputs(described[:5])


def test_few_graphs_of_reservoirs_that_differ_in_labels_or_tol_go_one_by_one(called):
    graphs = make_random_graphs(12, random_state=0)
    others = make_random_graphs(12, n_labels=4, random_state=0)
    drawn_for = [(graphs, 1e-3), (graphs, 1e-3), (graphs, 1e-4), (others, 1e-3)]
    first, like_it, finer, other_labels = (
        GraphReservoir(n_units=10, tol=tol, random_state=i).draw(some, seed_sequence(i))
        for i, (some, tol) in enumerate(drawn_for)
    )
    for second, n_calls in ((like_it, 1), (finer, 0), (other_labels, 0)):
        called.clear()
        found = encode_each([first, second], graphs[:1])
        assert called["solve_few"] == n_calls
        np.testing.assert_array_equal(found[1].features, second.encode(graphs[:1]).features)


def test_what_kernels_find_is_kept_with_the_batch_and_the_model(called):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, y)
    model.predict(graphs)
    called.clear()
    model.predict(graphs)
    assert called == {"solve_graphs": 1, "tanh_all": 1}


def test_our_own_graphs_are_not_asked_what_else_they_could_be(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, y)
    for name in ("is_molecule", "is_adjacency", "read_raw"):
        monkeypatch.setattr(converters, name, refused)
    assert model.predict([graphs[0]]) == model.predict(graphs[:1])


def test_encoders_of_a_model_share_the_hashes_of_labels(monkeypatch):
    graphs = make_random_graphs(40, random_state=0)
    encoder = EncoderUnion([("one", WLCounts(n_iterations=1)), ("two", WLCounts(n_iterations=2))])
    model = GraphClassifier(encoder, random_state=0).fit(graphs, np.arange(40) % 2)
    hashed = []

    def counted(values):
        hashed.append(values)
        return hash_values(values)

    hash_values = colors.hash_values
    monkeypatch.setattr(colors, "hash_values", counted)
    model.predict([graphs[0]])
    assert len(hashed) == 1


def test_few_graphs_hold_blas_to_one_thread_and_give_the_others_back(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    seen = []

    def watched(self, X):
        seen.append({each["num_threads"] for each in threadpool_info() if of_blas(each)})
        return expand(self, X)

    def of_blas(library):
        return library["user_api"] == "blas"

    expand = RandomExpansion.expand
    monkeypatch.setattr(RandomExpansion, "expand", watched)
    with threadpool_limits(2, user_api="blas"):
        model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, y)
        model.predict(graphs)
        assert seen == [{1}, {1}]
        assert {each["num_threads"] for each in threadpool_info() if of_blas(each)} == {2}

"""Predicting one graph: few calls of kernels, no threads, nothing computed twice.

Times depend on the machine; these are what they are made of.
"""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from fdgnn import ColorCounts, FDGNNClassifier, kernels, threads
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import JoinedEncoder
from fdgnn.graphs import colors, converters


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


def test_kernels_are_called_once_for_the_graph_and_once_for_each_network(called, monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, n_networks=3, random_state=0, n_jobs=-1).fit(graphs, y)
    model.predict([graphs[0]])  # what is kept with the model is made now

    monkeypatch.setattr(threads, "ThreadPoolExecutor", refused)
    monkeypatch.setattr(threads, "one_blas_thread", refused)
    called.clear()
    model.predict([graphs[1]])
    once = ("merge_arcs", "refine_colors", "build_quotients", "spectral_radii")
    assert called == dict.fromkeys(once, 1) | {"solve_at_once": 3}


def test_what_kernels_find_is_kept_with_the_batch_and_the_model(called):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, y)
    model.predict(graphs)
    called.clear()
    model.predict(graphs)
    assert called == {"choose_ways": 1, "solve_blocks": 1}


def test_our_own_graphs_are_not_asked_what_else_they_could_be(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, y)
    for name in ("is_molecule", "is_networkx", "tell_unused"):
        monkeypatch.setattr(converters, name, refused)
    assert model.predict([graphs[0]]) == model.predict(graphs[:1])


def test_members_of_a_model_share_the_colors_of_labels(monkeypatch):
    graphs = make_random_graphs(40, random_state=0)
    encoder = JoinedEncoder([ColorCounts(n_rounds=1), ColorCounts(n_rounds=2)])
    model = FDGNNClassifier(encoder=encoder, random_state=0).fit(graphs, np.arange(40) % 2)
    hashed = []

    def counted(values):
        hashed.append(values)
        return hash_values(values)

    hash_values = colors.hash_values
    monkeypatch.setattr(colors, "hash_values", counted)
    model.predict([graphs[0]])
    assert len(hashed) == 1


def test_blas_is_told_to_take_one_thread_only_if_it_has_more():
    with threads.one_blas_thread():
        assert isinstance(threads.one_blas_thread(), nullcontext)
    with threadpool_limits(2, user_api="blas"):
        assert not isinstance(threads.one_blas_thread(), nullcontext)

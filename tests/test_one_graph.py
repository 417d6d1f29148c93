"""Predicting one graph: few calls of kernels, no threads, nothing computed twice.

Times depend on the machine; these are what they are made of.
"""

from __future__ import annotations

from collections import Counter

import pytest

from fdgnn import FDGNNClassifier, kernels, threads
from fdgnn.datasets import make_motif_graphs


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


def test_kernels_are_called_once_for_the_graph_and_once_for_each_network(called, monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(n_units=10, n_networks=3, random_state=0, n_jobs=-1).fit(graphs, y)
    model.predict([graphs[0]])  # what is kept with the model is made now

    def refused(*_, **__):
        raise AssertionError("one graph needs no threads, and no limit of them")

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

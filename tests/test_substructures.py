"""Substructures: complete, true where the truth is known, and told in words."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fdgnn import (
    AutoGraphClassifier,
    EncoderUnion,
    FDGNNClassifier,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    explain,
    explanations,
    substructures,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.explanations.substructures import _first_label_in_words
from fdgnn.linear import KernelRidge, Ridge

ALL = 10**6  # more than there are
QUIET = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")


def paths(n, seed=0):
    """Paths of carbon; those of class 1 have a nitrogen with an oxygen beside it."""
    rng = np.random.default_rng(seed)
    graphs, y = [], np.arange(n) % 2
    for label in y.tolist():
        length = int(rng.integers(4, 9))
        atoms = ["C"] * length
        where = int(rng.integers(1, length - 2))
        atoms[where] = "N"
        atoms[where + 1 if label else where - 1] = "O" if label else "C"
        ends = np.arange(length - 1)
        graphs.append(Graph([ends, ends + 1], labels=atoms, edge_labels=[1] * (length - 1)))
    return graphs, y


# ---------------------------------------------------------------------- complete


@QUIET
@pytest.mark.parametrize(
    "readout", [Ridge(alpha=0.1), KernelRidge(alpha=0.1)], ids=["linear", "rbf"]
)
@pytest.mark.parametrize("n_features", [None, 64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_all_weights_add_up_to_the_mean_score(readout, n_features, n_classes):
    graphs = make_random_graphs(40, random_state=0)
    encoder = WLCounts(n_iterations=2, n_features=n_features)
    model = GraphClassifier(encoder, readout)
    model.fit(graphs, np.arange(40) % n_classes)
    new = make_random_graphs(8, random_state=1)
    for target in range(n_classes):
        found = substructures(model, new, target=target, n_most=ALL)
        left = [e.score - e.base_score for e in explain(model, new, target=target)]
        assert sum(one.weight for one in found) == pytest.approx(np.mean(left), rel=1e-9)
        assert {one.target for one in found} == {target}


def test_an_ensemble_of_wl_features_adds_up_and_same_labels_are_one():
    graphs = make_random_graphs(40, random_state=0)
    model = AutoGraphClassifier("wl").fit(graphs, np.arange(40) % 2)
    assert len(model.estimators_) > 1
    graphs = graphs[:12]
    found = substructures(model, graphs, target=1, n_most=ALL)
    left = [e.score - e.base_score for e in explain(model, graphs, target=1)]
    assert sum(one.weight for one in found) == pytest.approx(np.mean(left), rel=1e-9)
    labels = [one.words for one in found if one.iteration == 0]
    assert sorted(labels) == sorted({f"label {label}" for label in graphs.label_values})
    for one in found:
        assert one.attribution * one.n_graphs == pytest.approx(one.weight * 12)


@QUIET
def test_wl_features_beside_a_reservoir_are_what_a_union_adds_by_them():
    every = make_random_graphs(40, random_state=0)
    graphs, y = every[:10], np.arange(40) % 2
    encoders = [("reservoir", GraphReservoir(n_units=8)), ("wl", WLCounts(n_features=128))]
    model = GraphClassifier(EncoderUnion(encoders), "linear", random_state=0)
    model.fit(every, y)
    found = substructures(model, graphs, target=1, n_most=ALL)
    network = model.estimators_[0]
    scale, width = network.encoder.blocks_[1].scale, 128
    X = network.encoder.blocks_[1].encoder.transform(graphs)
    expected = scale * (X @ network.readout.coef[0, -width:]).mean()
    assert sum(one.weight for one in found) == pytest.approx(expected, rel=1e-9)
    candidates = [("wl", WLCounts(), "linear"), ("reservoir", GraphReservoir(), "linear")]
    ensemble = AutoGraphClassifier(candidates, random_state=0).fit(every, y)
    kinds = [network.encoder.kind for network in ensemble.estimators_]
    assert "reservoir" in kinds, "this seed keeps the reservoir"
    weight = sum(one.weight for one in substructures(ensemble, graphs, target=1, n_most=ALL))
    colors = [n for n in ensemble.estimators_ if n.encoder.kind == "wl"]
    outputs = [
        n.outputs(n.encoder.encode(graphs), graphs) - n.readout.base_outputs() for n in colors
    ]
    expected = np.sum(outputs) / len(kinds) / len(graphs)
    assert weight == pytest.approx(expected, rel=1e-9)


def test_what_is_for_one_of_two_classes_is_against_the_other():
    graphs, y = paths(30)
    model = GraphClassifier("wl").fit(graphs, y)
    both = substructures(model, graphs, n_most=3)
    assert [one.target for one in both] == [0] * 6 + [1] * 6
    single = substructures(model, graphs, target=0, n_most=3) + substructures(
        model, graphs, target=1, n_most=3
    )
    for one, other in zip(both, single, strict=True):
        assert (one.words, one.graph, one.n_graphs) == (other.words, other.graph, other.n_graphs)
        assert one.weight == pytest.approx(other.weight)
    assert [one.words for one in both[:3]] == [one.words for one in both[9:]]
    assert [one.weight > 0 for one in both] == [True] * 3 + [False] * 3 + [True] * 3 + [False] * 3


def test_chunks_change_nothing(monkeypatch):
    graphs, y = paths(30)
    model = AutoGraphClassifier("wl").fit(graphs, y)
    whole = substructures(model, graphs)
    monkeypatch.setattr(explanations.attributions, "_AT_ONCE", 40)
    parts = substructures(model, graphs)
    for one, other in zip(whole, parts, strict=True):
        assert (one.words, one.graph, one.n_graphs) == (other.words, other.graph, other.n_graphs)
        assert one.weight == pytest.approx(other.weight, rel=1e-9)
        np.testing.assert_array_equal(one.steps, other.steps)


def test_models_without_wl_features_have_none_and_other_models_are_rejected():
    graphs = make_random_graphs(20, random_state=0)
    y = np.arange(20) % 2
    options = {"effective_spectral_radius": 0.5, "random_state": 0}
    assert substructures(FDGNNClassifier(**options).fit(graphs, y), graphs) == []
    model = GraphClassifier("wl").fit(graphs, y)
    with pytest.raises(ValueError, match="target=7: not a class"):
        substructures(model, graphs, target=7)
    with pytest.raises(TypeError, match="has no score"):
        substructures(WLCounts().fit(graphs), graphs)
    for n_most in (0, -1):
        with pytest.raises(ValueError, match=f"n_most is {n_most}; give 1 or more"):
            substructures(model, graphs, n_most=n_most)


# ---------------------------------------------------------------------- true


@pytest.mark.parametrize("readout", ["linear", "rbf"])
def test_the_planted_substructure_is_found_and_shown(readout):
    graphs, y = paths(60)
    encoder = WLCounts(n_iterations=1)
    model = GraphClassifier(encoder, readout).fit(graphs, y)
    new, truth = paths(40, seed=1)
    best = substructures(model, new, target=1, n_most=3, names={"N": "nitrogen"})[:3]
    words = [one.words for one in best]
    assert any("O" in text for text in words)
    assert "label O" in [o.words for o in substructures(model, new, target=1) if o.iteration == 0]
    assert any("nitrogen" in text for text in words)
    for one in best:
        graph = new[one.graph]
        assert truth[one.graph] == 1
        assert one.n_graphs <= truth.sum()
        # On a path, steps are differences of positions.
        far = np.abs(np.subtract.outer(np.arange(len(graph.labels)), one.vertices)).min(axis=1)
        np.testing.assert_array_equal(one.steps, np.where(far <= one.iteration, far, -1))
        np.testing.assert_array_equal(one.seen, np.flatnonzero(far <= one.iteration))


def test_an_example_has_the_wl_label_at_its_vertices():
    graphs, y = paths(30)
    batch = as_batch(graphs)
    model = GraphClassifier(WLCounts(n_iterations=2)).fit(batch, y)
    colors = model.estimators_[0].encoder.vertex_wl_labels(batch)
    for one in substructures(model, batch, n_most=5):
        start, end = batch.vertex_offsets[one.graph : one.graph + 2]
        own = colors[one.iteration, start:end]
        (color,) = np.unique(own[one.vertices])
        assert one.vertices.tolist() == np.flatnonzero(own == color).tolist()
        having = np.unique(batch.graph_of_vertex[colors[one.iteration] == color])
        assert one.n_graphs == len(having)


def test_a_regressor_is_raised_and_lowered():
    graphs, _ = paths(40)
    oxygen = [graph.labels.count("O") - len(graph.labels) / 10 for graph in graphs]
    model = GraphRegressor(WLCounts(n_iterations=0), "linear").fit(graphs, oxygen)
    found = {one.words: one for one in substructures(model, graphs)}
    assert found["label O"].weight > 0 > found["label C"].weight
    assert {one.target for one in found.values()} == {0}


# ---------------------------------------------------------------------- words


def words_of(graph, n_iterations, **options):
    """All that is said of the vertices of one graph."""
    graphs, y = [graph, graph], [0.0, 1.0]
    encoder = WLCounts(n_iterations=n_iterations, **options)
    model = GraphRegressor(encoder, KernelRidge(alpha=0.1)).fit(graphs, y)
    # Two equal graphs have nothing to tell apart, so the weights are given.
    (network,) = model.estimators_
    network.readout.dual[:] = [[1.0], [2.0]]
    return {one.words for one in substructures(model, [graph], n_most=ALL)}


def test_labels_and_neighbors_are_named():
    graph = Graph([[0, 1, 1], [1, 2, 3]], labels=["N", "C", "O", "O"], edge_labels=[1, 2, 2])
    assert words_of(graph, 0) == {"label C", "label N", "label O"}
    assert "label C, next to label N (edge 1) and 2 × label O (edge 2)" in words_of(graph, 1)
    plain = words_of(graph, 1, edge_labels=False)
    assert "label C, next to label N and 2 × label O" in plain
    assert "label O, with all that is up to 2 steps away" in words_of(graph, 2)
    alone = Graph(np.zeros((2, 0), dtype=int), labels=["N"])
    assert words_of(alone, 1) == {"label N", "label N, without neighbors"}
    oneway = Graph([[0, 1], [1, 2]], labels=["a", "b", "c"], directed=True)
    assert "label b, with edges from label a and to label c" in words_of(oneway, 1)


def test_structure_is_named():
    triangle = Graph([[0, 1, 2, 2], [1, 2, 0, 3]])
    words = words_of(triangle, 0)
    assert {"degree 1", "degree 2", "degree 3 to 4", "in 0 triangles", "in 1 triangle"} <= words
    assert "degree 2 and in 1 triangle" in words
    assert "pairs of neighbors that are linked: 100 %" in words
    assert "degree, of the graph's size: 25 to 30 %" in words
    exact = words_of(triangle, 1, vertices="degree")
    assert "degree 3, next to degree 1 and 2 × degree 2" in exact
    nothing = words_of(triangle, 0, vertices="nothing", histograms=False)
    assert nothing == {"any vertex"}


def test_real_features_are_named():
    rng = np.random.default_rng(0)
    graph = Graph([[0, 1], [1, 2]], features=rng.normal(size=(3, 2)))
    words = words_of(graph, 0)
    assert any(re.fullmatch(r"feature 1 in the bin of -?[\d.]+", text) for text in words)


@pytest.mark.parametrize("name", ["degree", "triangles"])
def test_ranges_hold_the_numbers_that_they_stand_for(name):
    graphs, _ = make_motif_graphs(20, motifs=("star", "clique"), random_state=0)
    encoder = WLCounts(n_iterations=0).fit(graphs)
    said = _first_label_in_words(encoder, graphs, name, {})
    A = graphs.adjacency()
    degree = np.diff(graphs.indptr)
    numbers = degree if name == "degree" else (A @ A @ A).diagonal() // 2
    for text, number in zip(said, numbers.tolist(), strict=True):
        ends = [int(part) for part in re.findall(r"\d+", text)]
        assert ends[0] <= number <= ends[-1], text


def test_what_structure_looks_at_is_seen():
    star = Graph([[0, 0, 0, 4], [1, 2, 3, 3]])
    other = Graph([[0, 1, 2], [1, 2, 0]])
    model = GraphClassifier(WLCounts(n_iterations=0)).fit([star, other] * 4, [0, 1] * 4)
    found = {one.words: one for one in substructures(model, [star, other], n_most=ALL)}
    center = found["degree 3 to 4"]
    assert center.steps.tolist() == [0, 1, 1, 1, -1]
    assert found["in 1 triangle"].steps.tolist() == [0, 0, 0]

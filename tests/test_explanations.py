"""Explanations: complete to rounding, true where the truth is known, and drawn."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphReservoir,
    draw_explanation,
    draw_molecule,
    explain,
    explanations,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import GraphError, MissingDependencyError
from fdgnn.explanations import Explanation

SMALL = {"n_layers": 2, "n_units": 20, "effective_spectral_radius": 0.5, "random_state": 0}
TRAINING = make_random_graphs(80, random_state=0)
MANY = make_random_graphs(1500, random_state=1)


def fitted(kind, n_outputs, **options):
    """A model of the given kind, and the scores it gives MANY, one column a target."""
    rng = np.random.default_rng(0)
    if kind is FDGNNRegressor:
        y = rng.normal(size=(80, n_outputs))
        model = kind(**SMALL | options).fit(TRAINING, y)
        return model, list(range(n_outputs)), model.predict(MANY)
    model = kind(**SMALL | options).fit(TRAINING, np.arange(80) % n_outputs)
    outputs = model.decision_function(MANY)
    outputs = np.stack([-outputs, outputs], axis=1) if n_outputs == 2 else outputs
    return model, model.classes_.tolist(), outputs


CASES = [
    (FDGNNClassifier, 2, {}),
    (FDGNNClassifier, 2, {"n_networks": 3, "alpha": 1e-8}),
    (FDGNNClassifier, 3, {"n_networks": 2, "solver": "paper"}),
    (FDGNNRegressor, 1, {"n_networks": 2}),
    (FDGNNRegressor, 2, {"n_connections": 3}),
]


# ---------------------------------------------------------------------- complete


@pytest.mark.parametrize(("kind", "n_outputs", "options"), CASES)
def test_contributions_add_up_to_score_minus_base_score(kind, n_outputs, options):
    model, targets, scores = fitted(kind, n_outputs, **options)
    # Rounding is relative to the readout's weights.
    weight = max(np.abs(n.readout.coef).sum() for n in model.networks_)
    for column, target in enumerate(targets):
        found = explain(model, MANY, target=target)
        assert len(found) == 1500
        score = np.array([e.score for e in found])
        total = np.array([e.vertices.sum() + e.base_score for e in found])
        np.testing.assert_allclose(total, score, rtol=0, atol=1e-13 * weight)
        np.testing.assert_allclose(score, scores[:, column], rtol=0, atol=1e-13 * weight)
        assert [len(e.vertices) for e in found] == np.diff(MANY.vertex_offsets).tolist()
        assert {e.target for e in found} == {target}


def test_the_closed_form_is_the_integral_of_the_gradient():
    model = FDGNNClassifier(**SMALL).fit(TRAINING, np.arange(80) % 2)
    graphs = TRAINING[:3]
    network = model.networks_[0]
    states, W_phi = network.encoder.vertex_states(graphs), network.expansion.projection_
    t, weights = np.polynomial.legendre.leggauss(60)
    for g, found in enumerate(explain(model, graphs, target=1)):
        X = states[graphs.vertex_offsets[g] : graphs.vertex_offsets[g + 1]]
        a = W_phi @ X.sum(axis=0)
        along = 1 - np.tanh(np.outer((t + 1) / 2, a)) ** 2
        gradient = W_phi.T @ (network.readout.coef[0] * (weights / 2 @ along))
        np.testing.assert_allclose(found.vertices, X @ gradient, atol=1e-5)


def test_an_empty_pool_has_contributions_without_warning():
    """Without input and bias all states are zero: there tanh(a) / a is 1."""
    model = FDGNNClassifier(**SMALL | {"input_scaling": 0.0, "inter_layer_scaling": 0.0})
    model.fit(TRAINING, np.arange(80) % 2)
    found = explain(model, TRAINING[:2])
    assert all((e.vertices == 0).all() and e.score == e.base_score for e in found)


def test_the_default_target_is_the_predicted_class():
    for n_classes in (2, 3):
        y = np.array(["a", "b", "c"])[np.arange(80) % n_classes]
        model = FDGNNClassifier(**SMALL).fit(TRAINING, y)
        found = explain(model, TRAINING)
        assert [e.target for e in found] == model.predict(TRAINING).tolist()
        named = explain(model, TRAINING[:1], target=found[0].target)[0]
        np.testing.assert_allclose(named.vertices, found[0].vertices, atol=1e-12)


def test_chunks_and_searches_change_nothing(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    search = FDGNNSearchCV(n_configurations=1, n_guesses=2, cv=2, random_state=0).fit(graphs, y)
    whole = explain(search, graphs, target=1)
    monkeypatch.setattr(explanations, "_AT_ONCE", 60)
    parts = explain(search.best_estimator_, list(graphs), target=1)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one.vertices, other.vertices, atol=1e-10)


def test_what_cannot_be_explained():
    model = FDGNNClassifier(**SMALL).fit(TRAINING, np.arange(80) % 2)
    with pytest.raises(ValueError, match=r"target=7 is not a class of the model; they are 0, 1"):
        explain(model, TRAINING, target=7)
    with pytest.raises(TypeError, match="GraphReservoir has no score"):
        explain(GraphReservoir(**SMALL).fit(TRAINING), TRAINING)
    both = FDGNNRegressor(**SMALL).fit(TRAINING, np.ones((80, 2)))
    with pytest.raises(ValueError, match="2 outputs; give the number of one"):
        explain(both, TRAINING)
    with pytest.raises(ValueError, match="outputs are 0 to 1"):
        explain(both, TRAINING, target=2)


# ---------------------------------------------------------------------- edges


@pytest.mark.parametrize("options", [{}, {"directed": True}, {"weighted": True, "n_features": 2}])
def test_edge_effects_are_what_taking_the_edge_away_does(options):
    graphs = make_random_graphs(30, n_vertices=(2, 8), density=0.4, random_state=0, **options)
    model = FDGNNClassifier(**SMALL).fit(graphs, np.arange(30) % 3)
    for graph, found in zip(graphs, explain(model, graphs, target=2, edges=True), strict=True):
        arcs = np.asarray(graph.edge_index).T.tolist()
        undirected = not graph.directed
        assert found.edges.shape[1] == len(arcs) // (1 + undirected)
        for (u, v), effect in zip(found.edges.T.tolist(), found.edge_effects, strict=True):
            gone = [[u, v], [v, u]] if undirected else [[u, v]]
            keep = [arc not in gone for arc in arcs]
            rest = Graph(
                np.array(arcs)[keep].T,
                graph.n_vertices,
                graph.labels,
                graph.features,
                None if graph.weights is None else graph.weights[keep],
                graph.directed,
            )
            left = model.decision_function([rest])[0, 2]
            np.testing.assert_allclose(effect, found.score - left, atol=1e-9)


def test_a_graph_without_edges_has_no_edge_effects():
    model = FDGNNClassifier(**SMALL).fit(make_cycles([3, 4, 5, 6]), [0, 1, 0, 1])
    found = explain(model, [Graph(np.zeros((2, 0), dtype=int), n_vertices=2)], edges=True)[0]
    assert found.edges.shape == (2, 0)
    assert found.edge_effects.shape == (0,)


# ---------------------------------------------------------------------- true


def motif_ranks(motifs, label):
    """Mean over graphs of one class of how well contributions rank the motif above the rest."""
    options = {"motifs": motifs, "n_vertices": (10, 30), "return_mask": True}
    graphs, y, _ = make_motif_graphs(600, random_state=0, **options)
    new, truth, mask = make_motif_graphs(200, random_state=1, **options)
    model = FDGNNClassifier(n_networks=5, alpha=1e-2, random_state=0).fit(graphs, y)
    assert model.score(new, truth) > 0.99
    masks = np.split(mask, new.vertex_offsets[1:-1])
    found = explain(model, new, target=label)
    ranks = [roc_auc_score(m, e.vertices) for m, e in zip(masks, found, strict=True)]
    return np.mean(np.array(ranks)[truth == label])


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("motif", "at_least"), [("clique", 0.9), ("house", 0.73), ("cycle", 0.65)])
def test_motifs_rank_above_the_tree_they_hang_on(motif, at_least):
    # A star is a tree, as the rest is: the other motif is what is there to be seen.
    assert motif_ranks(("star", motif), 1) > at_least


def test_counting_vertices_of_a_label_is_explained_by_them():
    def count(graphs):
        return np.array([(np.asarray(g.labels) == 2).sum() for g in graphs], dtype=float)

    train, new = make_random_graphs(600, random_state=0), make_random_graphs(200, random_state=1)
    model = FDGNNRegressor(n_networks=10, effective_spectral_radius=0.5, random_state=0)
    assert model.fit(train, count(train)).score(new, count(new)) > 0.97
    contributions = np.concatenate([e.vertices for e in explain(model, new)])
    counted = new.labels == 2
    difference = contributions[counted].mean() - contributions[~counted].mean()
    assert 0.9 < difference < 1.1  # one such vertex more makes the count larger by one
    assert roc_auc_score(counted, contributions) > 0.99


# ---------------------------------------------------------------------- drawn


@pytest.fixture(scope="module")
def drawn():
    graphs, y = make_motif_graphs(40, random_state=0)
    model = FDGNNClassifier(**SMALL).fit(graphs, y)
    return graphs[0], explain(model, graphs[:1], edges=True)[0]


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_pictures_of_graphs(drawn, tmp_path, ending):
    pytest.importorskip("matplotlib")
    graph, found = drawn
    path = tmp_path / f"graph.{ending}"
    ax = draw_explanation(graph, found, path)
    assert path.stat().st_size > 5000
    points = ax.collections[-1]
    above_mean = found.vertices - found.vertices.mean()
    np.testing.assert_allclose(points.get_array(), above_mean, rtol=0, atol=1e-12)
    assert -points.norm.vmin == points.norm.vmax == np.abs(points.get_array()).max()
    assert ax.figure.axes[-1].get_ylabel() == "contribution relative to the graph's mean"
    np.testing.assert_array_equal(ax.collections[-2].get_array(), found.edge_effects)
    assert len(ax.figure.axes) == 3  # the graph and two color bars
    assert ax.get_title().startswith(f"target {found.target}: score {found.score:.2f}")


def test_pictures_write_labels_and_take_axes(tmp_path):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    graph = Graph([[0, 1], [1, 2]], labels=["N", "C", "O"], n_vertices=3)
    found = Explanation("active", 1.0, 0.5, np.array([0.5, -0.25, 0.25]))
    ax = figure.subplots()
    assert draw_explanation(graph, found, ax=ax, title="mine") is ax
    assert [t.get_text() for t in ax.texts] == ["N", "C", "O"]
    assert ax.get_title() == "mine"
    two = Graph(np.zeros((2, 0), dtype=int), n_vertices=3)  # not connected, no edges
    ax = draw_explanation(two, found, tmp_path / "points.png", labels="abc")
    assert [t.get_text() for t in ax.texts] == ["a", "b", "c"]
    with pytest.raises(GraphError, match="3 vertices, but this one has 2"):
        draw_explanation(Graph([[0], [1]]), found)


def test_pictures_of_molecules(tmp_path):
    pytest.importorskip("rdkit")
    found = Explanation("toxic", 1.0, 0.25, np.array([0.5, 1.0, 1.5]))  # one above the mean
    svg = draw_molecule("CCO", found, tmp_path / "molecule.svg")
    assert svg == (tmp_path / "molecule.svg").read_bytes()
    for color in (b"#B2182B", b"#F7F7F7", b"#2166AC"):  # above the mean, at it, and below
        assert svg.upper().count(b"FILL:" + color) == 2  # one atom, and one part of the scale
    assert draw_molecule("CCO", found).startswith(b"<?xml")
    assert draw_molecule("CCO", found, tmp_path / "molecule.png")[:4] == b"\x89PNG"
    with pytest.raises(GraphError, match="cannot be parsed"):
        draw_molecule("C(C", found)
    with pytest.raises(GraphError, match="3 vertices, but this one has 2"):
        draw_molecule("CC", found)
    with pytest.raises(ValueError, match=r"\.svg or \.png"):
        draw_molecule("CCO", found, tmp_path / "molecule.gif")


def test_missing_libraries_name_the_extra(drawn, monkeypatch):
    for library in ("matplotlib", "rdkit"):
        monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=r"fdgnn\[plot\]"):
        draw_explanation(*drawn)
    with pytest.raises(MissingDependencyError, match=r"fdgnn\[chem\]"):
        draw_molecule("CCO", drawn[1])

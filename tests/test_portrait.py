"""Portraits: complete, held out, true to the oracle, bounded, and refused when damaged."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from msgspec.structs import replace
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    explain,
    load_tu,
    substructures,
)
from fdgnn.datasets import (
    make_cycles,
    make_motif_graphs,
    make_random_graphs,
    make_stars,
    read_graphs,
)
from fdgnn.encoders import Encoder, Encoding
from fdgnn.evaluation.running import run_study
from fdgnn.evaluation.study import Protocol, Study
from fdgnn.exceptions import (
    ConvergenceWarning,
    MissingDependencyError,
    StudyError,
    UnseenLabelWarning,
)
from fdgnn.explanations.drawing import _place_part, place_vertices
from fdgnn.html.model_data import drawings, machine, making
from fdgnn.html.model_data.data import counts_of
from fdgnn.html.model_data.dynamics import dynamics_of, residual_curves
from fdgnn.html.model_data.making import portrait_of_model, portrait_of_study
from fdgnn.html.model_data.mapping import principal_map
from fdgnn.html.model_data.records import (
    ClassSizes,
    Portrait,
    ShownModel,
    read_portrait,
    write_portrait,
)
from fdgnn.html.model_data.text import clipped_apart
from fdgnn.records import encode
from reference import embed_graph

pytest.importorskip("networkx")

SMALL = {"n_layers": 2, "n_units": 12, "effective_spectral_radius": 0.5, "random_state": 0}
ONE_GUESS = Protocol("tiny", n_configurations=4, n_guesses=1, n_outer=3, n_inner=3, max_layers=2)


def classifier(graphs, y, **options):
    return FDGNNClassifier(**SMALL | {"probability": True} | options).fit(graphs, y)


@pytest.fixture(scope="module")
def study():
    graphs, y = make_motif_graphs(60, random_state=0)
    y = np.where(np.arange(60) % 5 == 0, 1 - y, y)  # every fifth is told wrong, to have mistakes
    return Study("motifs <b>", graphs, y, ONE_GUESS, n_units=10)


@pytest.fixture(scope="module")
def result(study, tmp_path_factory):
    return run_study(study, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def portrait(study, result):
    return portrait_of_study(study, result, command="fdgnn evaluate motifs")


def of_kind(kind):
    """Graphs, targets and a fitted model of one kind of task."""
    options = {"three classes": {}, "features": {"n_features": 2}, "no labels": {"n_labels": None}}
    odd = {"directed": True, "weighted": True}
    extra = odd if kind == "directed" else options.get(kind, {})
    graphs = make_random_graphs(40, random_state=0, **extra)
    if kind == "regression":
        y = np.diff(graphs.vertex_offsets) / 7
        return graphs, y, FDGNNRegressor(**SMALL, n_estimators=2).fit(graphs, y)
    y = np.array(["a", "b", "c"])[np.arange(40) % (3 if kind == "three classes" else 2)]
    if kind == "no targets":
        return graphs, None, classifier(graphs, y)
    return graphs, y, classifier(graphs, y, probability=kind != "no probabilities")


KINDS = [
    "two classes", "three classes", "regression", "no labels", "features", "no targets",
    "no probabilities", "directed",
]  # fmt: skip


# ---------------------------------------------------------------------- complete


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_is_there_and_of_its_kind(kind, tmp_path):
    graphs, y, model = of_kind(kind)
    found = portrait_of_model(model, graphs, y, dataset=kind)
    write_portrait(tmp_path / "portrait.json", found)
    assert read_portrait(tmp_path / "portrait.json") == found
    assert found.task == ("regression" if kind == "regression" else "classification")
    assert (found.held_out, found.command) == (False, None)
    assert [row.graph for row in found.graphs] == list(range(40))
    assert len(found.drawings) == 40
    n = [graph.n_vertices for graph in graphs]
    assert [row.n_vertices for row in found.graphs] == n
    assert [d.graph for d in found.drawings] == list(range(40))
    n_edges = [len(drawing.edges) // 2 for drawing in found.drawings]
    assert n_edges == [row.n_edges for row in found.graphs]


def test_a_portrait_without_targets_says_only_what_is_known():
    graphs, _, model = of_kind("no targets")
    found = portrait_of_model(model, graphs, dataset="new")
    assert found.mistakes == found.data.class_counts == []
    assert found.confusion is found.calibration is found.regression is None
    assert found.data.majority is found.data.wl_ceiling is None
    assert [one.name for one in found.data.sizes.classes] == ["all"]
    assert {(row.actual, row.correct, row.fold) for row in found.graphs} == {(None, None, None)}
    predicted = model.predict(graphs).tolist()
    assert [row.predicted for row in found.graphs] == predicted
    chances = model.predict_proba(graphs).max(axis=1)
    given = [row.probability for row in found.graphs]
    np.testing.assert_allclose(given, chances, rtol=1e-4)


def test_a_portrait_of_a_regression():
    graphs, y, model = of_kind("regression")
    found = portrait_of_model(model, graphs, y, dataset="sizes", ids=[f"g{i}" for i in range(40)])
    errors = np.abs(model.predict(graphs) - y)
    assert found.mistakes == np.argsort(-errors)[:12].tolist()
    assert found.regression.r2 == pytest.approx(model.score(graphs, y), rel=1e-4)
    assert found.regression.mean_absolute_error == pytest.approx(errors.mean(), rel=1e-4)
    assert found.classes == found.data.class_counts == []
    assert sum(found.data.targets.counts) == 40
    row = found.graphs[5]
    assert (row.id, row.correct, row.probability) == ("g5", None, None)
    assert row.actual == pytest.approx(y[5], rel=1e-4)
    assert row.score == row.predicted == pytest.approx(model.predict(graphs)[5], rel=1e-4)
    constant = portrait_of_model(model, graphs, np.ones(40), dataset="constant")
    assert constant.regression.r2 is None


def test_classes_that_the_model_does_not_know_are_mistakes():
    graphs, y, model = of_kind("two classes")
    strange = np.where(np.arange(40) < 3, "zebra", y)
    found = portrait_of_model(model, graphs, strange, dataset="strange")
    assert found.classes == ["a", "b", "zebra"]
    assert [sum(row) for row in found.confusion] == [(strange == c).sum() for c in found.classes]
    assert [row[2] for row in found.confusion] == [0, 0, 0]
    assert found.roc_auc is None
    assert not any(row.correct for row in found.graphs[:3])


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_classes_keep_the_models_order():
    graphs = make_random_graphs(60, random_state=0)
    y = np.arange(60) % 12
    model = classifier(graphs, y, n_units=5)
    strange = np.where(y < 2, 100 * y + 20, y)  # 20 and 120 are unknown, 0 and 1 are not there
    found = portrait_of_model(model, graphs, strange, dataset="many")
    assert found.classes == [*map(str, range(12)), "20", "120"]
    counts = [0, 0, *[5] * 12]
    assert found.data.class_counts == list(zip(found.classes, counts, strict=True))
    assert [sum(row) for row in found.confusion] == counts
    sizes = found.data.sizes.classes
    assert [one.name for one in sizes] == found.classes
    assert [sum(one.counts) for one in sizes] == counts
    mixed = np.array([*strange[:-1], "none"], dtype=object)  # cannot be sorted
    last = portrait_of_model(model, graphs, mixed, dataset="many").classes[-3:]
    assert last == ["120", "20", "none"]


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_long_names_are_kept_apart():
    graphs = make_random_graphs(60, random_state=0)
    start = "x" * 80
    names = np.array([start + "a", start + "b", start + "c", "x" * 59 + "\N{HORIZONTAL ELLIPSIS}"])
    y = names[np.repeat([0, 1, 2, 3], [30, 15, 10, 5])]
    model = classifier(graphs, y)
    found = portrait_of_model(model, graphs, y, dataset="alike")
    cut = "\N{HORIZONTAL ELLIPSIS}"
    # In the order of the model, and the short name is left as it is.
    wanted = ["x" * 55 + cut + f" ({n})" for n in (2, 3, 4)] + ["x" * 59 + cut]
    assert found.classes == wanted
    assert found.data.class_counts == list(zip(wanted, [30, 15, 10, 5], strict=True))
    assert found.data.majority == 0.5
    assert found.data.wl_ceiling == graphs.wl_ceiling(y)
    assert [sum(row) for row in found.confusion] == [30, 15, 10, 5]
    assert [row.actual for row in found.graphs] == [
        wanted[names.tolist().index(name)] for name in y
    ]
    copies = clipped_apart([1, "1", "1 (2)", "y" * 61, "y" * 62])
    assert copies == ["1", "1 (3)", "1 (2)", "y" * 59 + cut, "y" * 55 + cut + " (2)"]


# ---------------------------------------------------------------------- held out


def test_held_out_predictions_reproduce_the_result(portrait, result, study):
    """With one random initialization, the models shown are those of the result."""
    assert portrait.held_out is True
    rows = portrait.graphs
    for fold, score in enumerate(result.fold_accuracies, start=1):
        right = [row.correct for row in rows if row.fold == fold]
        assert np.mean(right) == pytest.approx(score)
    tested = {row.graph: row.fold for row in rows}
    for o, fold in enumerate(study.task().folds, start=1):
        assert {g for g, held_out in tested.items() if held_out == o} == set(
            np.flatnonzero(fold < 0).tolist()
        )


def test_confusion_counts_every_graph_once(portrait, study):
    confusion = np.array(portrait.confusion)
    assert confusion.sum() == len(study.graphs)
    assert confusion.sum(axis=1).tolist() == [n for _, n in portrait.data.class_counts]
    assert np.trace(confusion) == sum(row.correct for row in portrait.graphs)


def test_calibration_is_of_the_probabilities_shown(portrait):
    rows, calibration = portrait.graphs, portrait.calibration
    p = np.array([row.probability for row in rows])
    right = np.array([row.correct for row in rows])
    assert sum(b.n for b in calibration.bins) == len(rows)
    gap = 0.0
    for b in calibration.bins:
        inside = (p >= b.start) & ((p < b.stop) | (b.stop == 1.0))
        assert b.n == inside.sum() > 0
        assert b.accuracy == pytest.approx(right[inside].mean(), rel=1e-4)
        assert b.probability == pytest.approx(p[inside].mean(), rel=1e-3)
        gap += inside.sum() * abs(right[inside].mean() - p[inside].mean())
    assert calibration.expected_error == pytest.approx(gap / len(p), abs=1e-4)
    # Two classes: the usual Brier score, of the predicted class being right.
    assert calibration.brier == pytest.approx(np.mean((p - right) ** 2), rel=1e-3)


def test_mistakes_are_the_most_confident_ones_first(portrait):
    by_graph = {row.graph: row for row in portrait.graphs}
    wrong = [row for row in portrait.graphs if not row.correct]
    assert wrong
    assert len(portrait.mistakes) == min(12, len(wrong))
    confidence = [by_graph[g].probability for g in portrait.mistakes]
    assert confidence == sorted(confidence, reverse=True)
    assert min(confidence) >= sorted([row.probability for row in wrong])[-len(confidence)]
    assert not any(by_graph[g].correct for g in portrait.mistakes)


def test_contributions_are_of_the_model_that_predicted(portrait, result, study):
    for fold, configuration in zip(study.task().folds, result.fold_configurations, strict=True):
        train, test = np.flatnonzero(fold >= 0), np.flatnonzero(fold < 0)
        model = study.estimator(configuration).fit(study.graphs[train], study.y[train])
        for g, why in zip(test.tolist(), explain(model, study.graphs[test]), strict=True):
            row = portrait.graphs[g]
            assert (row.predicted, row.score) == (
                str(why.target),
                pytest.approx(why.score, rel=1e-3, abs=1e-6),
            )
            shown = np.array(portrait.drawings[g].contributions)
            n, mean = len(shown), why.vertices.mean()
            np.testing.assert_allclose(shown, why.vertices - mean, rtol=6e-3, atol=1e-9)
            # What is shown and the mean of all add up to the score, but for an empty graph's.
            left = why.score - why.base_score - n * mean
            assert shown.sum() == pytest.approx(left, abs=1e-2 * np.abs(shown).sum() + 1e-9)


def test_the_shown_model_is_the_one_that_most_folds_chose(study, result, portrait):
    few, many = (
        {"n_layers": n, "effective_spectral_radius": 0.5, "random_state": n, "alpha": 1.0}
        for n in (1, 2)
    )
    other = replace(result, fold_configurations=[few, many, many | {"alpha": 0.1}])
    found = portrait_of_study(study, other)
    shown = {"encoder": "GraphReservoir", "n_layers": 2, "effective_spectral_radius": 0.5}
    assert found.shown == ShownModel(**shown, fold=2, folds_alike=2, n_folds=3)
    train = study.task().folds[1] >= 0
    model = study.estimator(many).fit(study.graphs[train], study.y[train])
    alone = portrait_of_model(model, study.graphs, study.y, dataset="second fold")
    assert alone.shown == ShownModel(**shown, fold=None, folds_alike=None, n_folds=None)
    assert found.dynamics == alone.dynamics
    assert found.explained == alone.explained
    places = [[(row.x, row.y) for row in p.graphs] for p in (found, alone)]
    assert places[0] == places[1]
    # Where each fold has its own, the first is shown.
    different = [many | {"random_state": i} for i in range(3)]
    last = portrait_of_study(study, replace(result, fold_configurations=different))
    assert (last.shown.fold, last.shown.folds_alike) == (1, 1)


def test_settings_are_lists_where_folds_differ(portrait, result):
    chosen = [c["effective_spectral_radius"] for c in result.fold_configurations]
    given = portrait.settings["effective_spectral_radius"]
    assert given == (chosen[0] if len(set(chosen)) == 1 else chosen)
    assert portrait.settings["n_units"] == 10
    assert portrait.settings["n_guesses"] == 1
    assert portrait.command == "fdgnn evaluate motifs"
    assert portrait.dataset == "motifs <b>"


class FewFolds(NamedTuple):
    """As much of another study's result as is looked at."""

    fold_configurations: list


def test_a_result_of_another_study_is_refused(study, result):
    other = FewFolds(result.fold_configurations[:2])
    with pytest.raises(StudyError, match="result has 2 outer folds, but the study has 3"):
        portrait_of_study(study, other)


# ---------------------------------------------------------------------- the dynamics


def test_iterations_and_curves_are_the_oracles():
    graphs = make_random_graphs(6, n_vertices=(3, 7), density=0.5, random_state=2)
    model = classifier(graphs, np.arange(6) % 2, effective_spectral_radius=0.9)
    found = portrait_of_model(model, graphs, dataset="small").dynamics
    network = model.estimators_[0].encoder.reservoir_
    steps, last = [], []
    for graph in graphs:
        _, t, distance = embed_graph(graph, network.layers, network.vocabulary)
        steps.append(t)
        last.append(distance)
    steps = np.array(steps).T
    for i, layer in enumerate(found.layers):
        values, counts = np.unique(steps[i], return_counts=True)
        assert layer.iterations == list(zip(values, counts, strict=True))
    assert len(found.curves) == 12
    for curve in found.curves:
        g, i = curve.graph, curve.layer - 1
        assert len(curve.residuals) == steps[i, g]
        assert curve.residuals[-1] == pytest.approx(last[g][i], rel=1e-4)


@pytest.mark.parametrize("options", [{"n_features": 2}, {"n_labels": None, "directed": True}])
def test_curves_start_with_the_first_states(options):
    """From zero, the first step goes to tanh of what the layer receives from outside."""
    graphs = make_random_graphs(5, random_state=0, **options)
    model = GraphReservoir(**SMALL).fit(graphs)
    states = as_batch(graphs)
    curves = residual_curves(dynamics_of(model), states)
    W_I, bias = model.layers_[0].input_weights, model.layers_[0].bias
    for g, curve in enumerate(curves):
        graph = states[g]
        u = np.ones((graph.n_vertices, 1)) if graph.features is None else graph.features
        assert curve[0][0] == pytest.approx(np.linalg.norm(np.tanh(u @ W_I.T.toarray() + bias)))


def test_certified_graphs_settle_and_the_others_are_told_apart():
    graphs = make_stars([4] * 20 + [60] * 5)
    with pytest.warns(ConvergenceWarning, match="5 of 25 graphs did not converge"):
        model = classifier(graphs, np.arange(25) % 2, effective_spectral_radius=0.99, degree=3.0)
    found = portrait_of_model(model, graphs, dataset="stars").dynamics
    for layer in found.layers:
        assert (layer.certified, layer.uncertified) == (20, 5)
        assert layer.effective == pytest.approx(0.99, rel=1e-4)
        assert layer.spectral_radius == pytest.approx(0.33, rel=1e-3)
        assert layer.norm >= layer.spectral_radius
        assert sum(n for _, n in layer.iterations) == found.n_graphs == 25
    assert {c.certified for c in found.curves} == {True, False}
    for curve in found.curves:
        assert curve.certified == (curve.graph < 20)
        if curve.certified:
            residuals = np.array(curve.residuals)
            assert residuals[-1] < found.tol < residuals[0]
            assert (residuals[6:] < 0.7 * residuals[:-6]).all()  # 0.99 / sqrt(3) a step, or less
    assert found.radii[22] == pytest.approx(np.sqrt(59), rel=1e-2)


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_the_certificate_can_be_told_from_radii():
    graphs = make_random_graphs(40, density=0.4, random_state=0)
    model = classifier(graphs, np.arange(40) % 2, n_connections=4, effective_spectral_radius=0.7)
    found = portrait_of_model(model, graphs, dataset="dense").dynamics
    for layer, weights in zip(
        found.layers, model.estimators_[0].encoder.reservoir_.layers, strict=True
    ):
        W = weights.recurrent_weights.toarray()
        radius = np.abs(np.linalg.eigvals(np.abs(W))).max()
        assert layer.absolute_radius == pytest.approx(radius, rel=1e-4)
        assert layer.absolute_radius > 1.1 * layer.spectral_radius
        sure = [layer.absolute_radius * rho < 1 for rho in found.radii]
        assert sum(sure) == layer.certified
        assert 0 < sum(sure) < 40


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_unconverged_graphs_are_counted_without_warning():
    graphs = make_random_graphs(20, density=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="20 of 20 graphs did not converge"):
        model = classifier(graphs, np.arange(20) % 2, max_iter=2, solver="paper")
    found = portrait_of_model(model, graphs, np.arange(20) % 2, dataset="impatient")
    assert [layer.unconverged for layer in found.dynamics.layers] == [20, 20]


# ---------------------------------------------------------------------- the data


def test_data_facts():
    loops = Graph([[0, 0, 1, 1], [0, 1, 2, 2]], labels=["C", "C", "O"], n_vertices=3)
    star = Graph([[0] * 50, list(range(1, 51))], labels=["C"] * 50 + ["N"], n_vertices=51)
    graphs, y = as_batch([loops, loops, star, star, star]), np.array([0, 1, 1, 1, 1])
    model = classifier(graphs, y, probability=False)
    data = portrait_of_model(model, graphs, y, dataset="facts").data
    assert data.n_graphs == 5
    assert data.n_distinct == 2
    assert (data.vertices_range, data.max_degree) == ((3, 51), 50)
    assert (data.n_self_loops, data.n_merged_arcs, data.undirected) == (2, 2, True)
    assert (data.majority, data.wl_ceiling) == (0.8, 0.8)
    assert data.class_counts == [("0", 1), ("1", 4)]
    assert data.labels == [("C", 154), ("N", 3), ("O", 2)]
    assert (data.n_labels, data.n_features) == (3, 0)
    edges = data.sizes.edges
    assert len(edges) <= 41
    for i, sizes in enumerate(([3], [3, 51, 51, 51])):
        counts = [sum(a <= n < b for n in sizes) for a, b in pairwise(edges)]
        assert data.sizes.classes[i] == ClassSizes(name=str(i), counts=counts)
    bars = data.degrees
    assert len(bars.labels) == len(bars.counts) <= 40
    assert sum(bars.counts) == data.n_vertices
    assert dict(zip(bars.labels, bars.counts, strict=True))["1"] == 2 + 150
    assert bars.counts[-1] == 3
    assert bars.labels[-1].endswith("-50")
    assert counts_of(graphs).majority is None


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_many_classes_and_long_names_stay_small():
    graphs = make_random_graphs(180, random_state=0)
    y = np.array([f"{c} " + "x" * 500 for c in np.arange(180) % 60])
    found = portrait_of_model(classifier(graphs, y, n_units=5), graphs, y, dataset="many")
    assert found.confusion is None
    assert [one.name for one in found.data.sizes.classes] == ["all"]
    assert max(map(len, found.classes)) == 60
    alike = np.array(["x" * 500 + str(c) for c in np.arange(180) % 2])  # cut, they are the same
    model = classifier(graphs, alike)
    found = portrait_of_model(model, graphs, alike, dataset="alike")
    assert np.trace(found.confusion) == (model.predict(graphs) == alike).sum() < 180
    labels = [f"{'C' * 100}{v}" for v in range(3)]
    chain = as_batch([Graph([[0, 1], [1, 2]], labels=labels)] * 4)
    model = classifier(chain, [0, 1, 0, 1], probability=False)
    shown = portrait_of_model(model, chain, dataset="labels").data.labels
    assert len({name for name, _ in shown}) == 3


# ---------------------------------------------------------------------- the map


def test_the_map_is_the_same_every_time(portrait, study, result):
    again = portrait_of_study(study, result, command="fdgnn evaluate motifs")
    assert encode(again) == encode(portrait)


def test_principal_map_is_that_of_the_covariance():
    X = np.random.default_rng(0).normal(size=(50, 6)) * [9, 5, 1, 1, 1, 1]
    places, shares = principal_map(X)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(shares, values[::-1][:2] / values.sum(), rtol=1e-4)
    scores = (X - X.mean(axis=0)) @ vectors[:, ::-1][:, :2]
    np.testing.assert_allclose(
        np.abs(places), np.abs(scores) / np.abs(scores).max(), rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(principal_map(-X)[0], -places, atol=1e-9)  # signs are the features'
    assert np.abs(places).max() == 1
    sparse, shares_of_sparse = principal_map(sp.csr_array(X))
    assert shares_of_sparse == pytest.approx(shares)
    np.testing.assert_allclose(np.abs(sparse), np.abs(places), atol=1e-9)
    alone, nothing = principal_map(np.ones((1, 4)))
    assert alone.tolist() == [[0.0, 0.0]]
    assert nothing == (0.0, 0.0)


def test_large_datasets_give_small_portraits(tmp_path, monkeypatch):
    graphs = make_random_graphs(3000, n_vertices=(20, 60), density=0.1, random_state=0)
    y = (np.arange(3000) % 10 == 0).astype(int)
    model = classifier(graphs, y, n_layers=1, n_units=5)
    # Space is what is tested here, so layouts may cost nothing.
    monkeypatch.setattr(drawings, "_SECONDS", np.inf)
    rng = np.random.default_rng(0)
    monkeypatch.setattr(drawings, "place_vertices", lambda g: rng.normal(size=(g.n_vertices, 2)))
    found = portrait_of_model(model, graphs, y, dataset="large")
    write_portrait(tmp_path / "large.json", found)
    assert 800_000 < (tmp_path / "large.json").stat().st_size < 1_500_000
    rows = found.graphs
    assert len(rows) == 1000
    assert set(found.mistakes) <= {row.graph for row in rows}
    assert len(found.mistakes) == 12
    assert 95 <= sum(row.actual == "1" for row in rows) <= 112  # a tenth, and the mistakes
    assert np.sum(found.confusion) == 3000
    assert len(found.dynamics.radii) == found.dynamics.n_graphs == 2000
    assert set(found.mistakes) <= {d.graph for d in found.drawings}
    assert 500 < len(found.drawings) < 1000
    monkeypatch.setattr(drawings, "_SECONDS", 0.5)
    assert 12 < len(portrait_of_model(model, graphs, y, dataset="large").drawings) < 100


def test_large_graphs_are_drawn_only_among_the_mistakes():
    graphs = make_stars([5, 6, 300, 300, 700, 8])
    y = np.array([0, 1, 0, 1, 1, 0])
    model = classifier(graphs, y, probability=False, degree="max")
    predicted = model.predict(graphs)
    wrong = predicted.copy()
    wrong[[3, 4]] = 1 - predicted[[3, 4]]
    found = portrait_of_model(model, graphs, wrong, dataset="stars")
    assert set(found.mistakes) == {3, 4}
    assert [d.graph for d in found.drawings] == [0, 1, 3, 5]


# ---------------------------------------------------------------------- drawings


def test_parts_lie_side_by_side():
    ring = [[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]]
    rings = Graph(np.concatenate([np.array(ring) + 6 * i for i in range(3)], axis=1), n_vertices=20)
    places = place_vertices(rings)
    boxes = [places[6 * i : 6 * i + 6] for i in range(3)] + [places[18:19], places[19:]]
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (one.min(axis=0) > other.max(axis=0)) | (other.min(axis=0) > one.max(axis=0))
            assert apart.any()
    ends = np.array(rings.edge_index)
    lengths = np.linalg.norm(places[ends[0]] - places[ends[1]], axis=1)
    np.testing.assert_allclose(lengths, 1, atol=0.05)
    np.testing.assert_array_equal(place_vertices(rings), places)
    _place_part.cache_clear()
    np.testing.assert_array_equal(place_vertices(rings), places)


def test_parts_that_repeat_are_placed_once(monkeypatch):
    import networkx as nx

    sizes, layout = [], nx.kamada_kawai_layout
    monkeypatch.setattr(
        nx, "kamada_kawai_layout", lambda g, **options: sizes.append(len(g)) or layout(g, **options)
    )
    _place_part.cache_clear()
    for n in (3, 4, 3):
        place_vertices(make_cycles([n, n])[0])
    place_vertices(make_stars([4])[0])  # as many vertices as a cycle, other edges
    assert sizes == [3, 4, 4]


def test_paths_lie_flat_and_large_graphs_have_places():
    path = Graph([list(range(9)), list(range(1, 10))], n_vertices=10)
    width, height = np.ptp(place_vertices(path), axis=0)
    assert width > 5 * height
    large = place_vertices(make_stars([200])[0])
    assert len(np.unique(large, axis=0)) == 200
    assert place_vertices(Graph([[0], [0]], n_vertices=1)).tolist() == [[0.0, 0.0]]


def test_threads_of_blas_do_not_wait_for_each_other_in_a_layout(monkeypatch):
    import networkx as nx
    from threadpoolctl import threadpool_info, threadpool_limits

    threads, layout = [], nx.kamada_kawai_layout

    def watched(*args, **options):
        threads.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        return layout(*args, **options)

    monkeypatch.setattr(nx, "kamada_kawai_layout", watched)
    _place_part.cache_clear()
    with threadpool_limits(2):
        place_vertices(make_stars([5])[0])
    assert set(threads) == {1}


def test_drawings_fill_the_canvas():
    graphs, y, model = of_kind("two classes")
    for drawing in portrait_of_model(model, graphs, y, dataset="two").drawings:
        places = np.array(drawing.positions).reshape(-1, 2)
        assert places.min() == 0
        assert places.max() == 1000
        assert (np.abs(places.min(axis=0) + places.max(axis=0) - 1000) <= 1).all()


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    pytest.importorskip("rdkit")
    path = tmp_path_factory.mktemp("molecules") / "molecules.csv"
    smiles = ["CCO", "c1ccccc1C#N", "CC(=O)O", "[Na+].[Cl-]", "CCN", "C"] * 3
    rows = [f"{s},{i % 2}" for i, s in enumerate(smiles)]
    path.write_text("\n".join(["smiles,y", *rows]) + "\n", encoding="utf-8")
    return read_graphs(path, target="y")


def test_molecules_are_drawn_as_such(molecules):
    model = classifier(molecules.graphs, molecules.y, n_units=40)
    found = portrait_of_model(
        model, molecules.graphs, molecules.y, dataset="molecules", smiles=molecules.smiles
    ).drawings
    ethanol, benzonitrile, acid, salt = found[:4]
    assert ethanol.labels == ["C", "C", "O"]
    assert (ethanol.molecule, ethanol.smiles) == (True, "CCO")
    assert sorted(benzonitrile.orders) == [1, *[1.5] * 6, 3]
    assert dict(zip(map(tuple, np.reshape(acid.edges, (-1, 2))), acid.orders, strict=True))[
        1, 2
    ] == 2  # fmt: skip
    assert salt.edges == salt.orders == []
    # A ring is drawn as a regular hexagon.
    ring = np.array(benzonitrile.positions).reshape(-1, 2)[:6]
    np.testing.assert_allclose(np.ptp(np.linalg.norm(ring - ring.mean(axis=0), axis=1)), 0, atol=3)


def test_graphs_that_are_not_their_smiles_are_drawn_plainly(molecules):
    model = classifier(molecules.graphs, molecules.y, n_units=40)
    wrong = ["OCC", "CCO", "not a molecule", "CC", "C1CN1", None, *molecules.smiles[6:]]
    drawn = portrait_of_model(model, molecules.graphs, dataset="wrong", smiles=wrong).drawings
    assert [drawing.molecule for drawing in drawn[:7]] == [True, *[False] * 5, True]
    assert drawn[4].labels == ["C 1 H3", "C 2 H2", "N 1 H2"]
    assert drawn[4].orders is None
    assert (drawn[4].smiles, drawn[5].smiles) == ("C1CN1", None)


# ---------------------------------------------------------------------- files


def damaged(portrait, change):
    found = json.loads(encode(portrait))
    change(found)
    return json.dumps(found)


DAMAGES = {
    "graphs[3].score": lambda p: p["graphs"][3].update(score="high"),
    "graphs[0]": lambda p: p["graphs"][0].pop("correct"),
    "graphs[1].actual": lambda p: p["graphs"][1].update(actual=[1]),
    "graphs[2].x": lambda p: p["graphs"][2].update(x=1e301),
    "data.sizes.classes[0].counts[0]": lambda p: p["data"]["sizes"]["classes"][0].update(
        counts=[0.5]
    ),
    "data.sizes": lambda p: p["data"]["sizes"]["edges"].pop(),
    "data.degrees": lambda p: p["data"]["degrees"]["labels"].pop(),
    "data.n_graphs": lambda p: p["data"].update(n_graphs=-1),
    "data.vertices_range": lambda p: p["data"].update(vertices_range=[1]),
    "data.labels": lambda p: p["data"].update(labels=[["C", 1]] * 1000),
    "dynamics.layers[1].iterations[0]": lambda p: p["dynamics"]["layers"][1].update(
        iterations=[[1, 2, 3]]
    ),
    "drawings[7].labels": lambda p: p["drawings"][7].update(labels=7),
    "drawings[8]": lambda p: p["drawings"][8]["edges"].__setitem__(0, 10**6),
    "drawings[9]": lambda p: p["drawings"][9]["positions"].pop(),
    "drawings[5].positions[0]": lambda p: p["drawings"][5]["positions"].__setitem__(0, 1001),
    "calibration.bins[0].n": lambda p: p["calibration"]["bins"][0].update(n=True),
    "calibration.bins[1].accuracy": lambda p: p["calibration"]["bins"][1].update(accuracy=1.5),
    "held_out": lambda p: p.update(held_out=1),
    "machine": lambda p: p.update(machine=[]),
    "machine.memory_gb": lambda p: p["machine"].update(memory_gb="much"),
    "shown": lambda p: p["shown"].pop("fold"),
}


@pytest.mark.parametrize("where", DAMAGES)
def test_damaged_portraits_are_refused_with_the_place(portrait, where, tmp_path):
    path = tmp_path / "portrait.json"
    path.write_text(damaged(portrait, DAMAGES[where]), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_portrait(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: the portrait is damaged (")
    assert message.endswith(f" - at `$.{where}`); make it again")


def test_confusion_that_is_not_square_is_refused(portrait, tmp_path):
    path = tmp_path / "portrait.json"
    path.write_text(damaged(portrait, lambda p: p["confusion"][1].pop()), encoding="utf-8")
    with pytest.raises(StudyError, match="the confusion matrix is not 2 x 2"):
        read_portrait(path)


OPTIONAL = {
    "format", "base_models", "dynamics_of", "substructures", "trust", "roc_auc", "descriptors",
}  # which have defaults  # fmt: skip


@pytest.mark.parametrize("name", sorted(set(Portrait.__struct_fields__) - OPTIONAL))
def test_no_field_may_be_missing(portrait, name, tmp_path):
    path = tmp_path / "portrait.json"
    path.write_text(damaged(portrait, lambda p: p.pop(name)), encoding="utf-8")
    with pytest.raises(StudyError, match=f"missing required field `{name}`"):
        read_portrait(path)


# ---------------------------------------------------------------------- ensembles and WL features


MODELS = {
    "auto": AutoGraphClassifier(random_state=0),
    "wl": GraphClassifier("wl"),
    "union": GraphClassifier(
        EncoderUnion([("reservoir", GraphReservoir(n_units=10)), ("wl", WLCounts())]),
        random_state=0,
    ),
    "numbers": AutoGraphRegressor(random_state=0),
    "numbers by WL features": GraphRegressor("wl", "linear"),
}


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("options", [{}, {"n_labels": None}, {"n_features": 2}])
@pytest.mark.parametrize("name", list(MODELS))
def test_every_model_has_a_portrait(name, options, tmp_path):
    graphs = make_random_graphs(40, random_state=0, **options)
    numbers = name.startswith("numbers")
    # Noise, so that no base model is clearly better than another.
    y = np.sin(np.arange(40)) if numbers else np.where(np.arange(40) % 2, "large", "small")
    model = clone(MODELS[name]).fit(graphs, y)
    found = portrait_of_model(model, graphs, y, dataset=name)
    write_portrait(tmp_path / "portrait.json", found)
    assert read_portrait(tmp_path / "portrait.json") == found
    kinds = [type(each.encoder).__name__ for each in model.estimators_]
    has_reservoir = "GraphReservoir" in kinds or "EncoderUnion" in kinds
    assert (found.dynamics is not None) == has_reservoir
    assert sum(one.n_estimators for one in found.base_models) == len(kinds) == found.n_estimators
    expected = substructures(model, graphs, n_most=6)
    assert [one.words for one in found.substructures] == [one.words for one in expected]
    assert [one.steps for one in found.substructures] == [one.steps.tolist() for one in expected]
    assert {one.graph for one in found.substructures} <= {d.graph for d in found.drawings}
    targets = {None} if numbers else {"large", "small"}
    assert {one.target for one in found.substructures} == targets
    if "EncoderUnion" in kinds:
        assert found.shown.encoder == "GraphReservoir and WLCounts"
        assert found.dynamics_of.encoder == "GraphReservoir"
    if len(found.base_models) > 1:
        assert found.shown.name == model.estimators_[0].name


@pytest.mark.filterwarnings(
    "ignore::fdgnn.exceptions.UnseenLabelWarning", "ignore::fdgnn.exceptions.ConvergenceWarning"
)
def test_graphs_with_new_labels_are_on_the_page():
    graphs = make_random_graphs(40, random_state=0)
    model = AutoGraphClassifier(random_state=0).fit(graphs, np.arange(40) % 2)
    names = [each.name for each in model.estimators_]
    reservoirs = [name for name in names if name.endswith("reservoir")]
    assert reservoirs, "this seed keeps some"
    assert names[0] not in reservoirs
    strange = Graph([[0, 1], [1, 2]], labels=[0, 99, 1])
    with pytest.warns(UnseenLabelWarning, match="1 of 41 graphs"):
        found = portrait_of_model(model, [*graphs, strange], dataset="new")
    assert [one.name for one in found.base_models] == names
    assert found.dynamics.n_graphs == 41
    assert found.shown.name == names[0]
    assert found.dynamics_of.name == reservoirs[0]
    assert len(found.graphs) == len(found.drawings) == 41


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_atoms_are_named_in_substructures():
    graphs, y = load_tu("MUTAG")
    model = GraphClassifier(WLCounts(n_iterations=1), "linear").fit(graphs, y)
    found = portrait_of_model(model, graphs, y, dataset="MUTAG")
    words = " ".join(one.words for one in found.substructures)
    assert "label" not in words
    assert "next to" in words
    other = portrait_of_model(model, graphs, y, dataset="mine")
    assert all(one.words.startswith("label") for one in other.substructures)
    ring = [Graph([[0, 1], [1, 2]], labels=["C", "C", last]) for last in "ONON"]
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(ring, [0, 1, 0, 1])
    smiles = ["CCO", "CCN"] * 2
    found = portrait_of_model(model, ring, dataset="mine", smiles=smiles)
    assert "O, next to C" in [one.words for one in found.substructures]


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_many_classes_and_long_labels_stay_bounded():
    graphs = make_random_graphs(60, n_labels=3, random_state=0)
    long = [replace_labels(graph, "x" * 250) for graph in graphs]
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(long, np.arange(60) % 12)
    found = portrait_of_model(model, long, dataset="long")
    assert len({one.target for one in found.substructures}) == 10
    assert max(len(one.words) for one in found.substructures) <= 240


def replace_labels(graph, start):
    labels = [f"{start}{label}" for label in graph.labels]
    return Graph(graph.edge_index, labels=labels)


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_a_substructure_that_does_not_fit_is_refused(tmp_path):
    graphs = make_random_graphs(20, random_state=0)
    model = GraphClassifier("wl").fit(graphs, np.arange(20) % 2)
    found = portrait_of_model(model, graphs, dataset="damaged")
    path = tmp_path / "portrait.json"

    def told(change):
        path.write_text(damaged(found, change), encoding="utf-8")
        with pytest.raises(StudyError) as error:
            read_portrait(path)
        return str(error.value)

    assert "does not fit the drawing" in told(lambda p: p["substructures"][0]["steps"].pop())
    strange = told(lambda p: p["substructures"][0].update(target="zebra"))
    assert "for the class zebra" in strange


def test_the_machine_is_told_as_far_as_it_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_PROC", tmp_path)
    found = machine.this_machine()
    assert (found.cpu_model, found.memory_gb) == (None, None)
    (tmp_path / "cpuinfo").write_text(
        "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Fast CPU @ 2 GHz\nmodel name\t: other\n"
    )
    (tmp_path / "meminfo").write_text("MemFree:  1 kB\nMemTotal:       16000000 kB\n")
    found = machine.this_machine()
    assert (found.cpu_model, found.memory_gb) == ("Fast CPU @ 2 GHz", 16.4)
    assert found.cores >= 1
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: \nmodel\t: 3\n")  # as on ARM
    assert machine.this_machine().cpu_model is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is no portrait"),
        (b"\xff\x00", "it is no portrait"),
        (b"[" * 100_000, "it is no portrait"),
        (b"[]", "it is no portrait"),
        (b"{}", "it is no portrait"),
        (b'{"format": 1}', "it has the format 1, but this version reads format 3"),
        (b'{"format": 3, "dataset": NaN}', "it is no portrait"),
    ],
)
def test_foreign_files_are_refused(tmp_path, content, message):
    path = tmp_path / "portrait.json"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=message) as caught:
        read_portrait(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(StudyError, match="cannot be read"):
        read_portrait(tmp_path / "missing.json")


def test_portraits_that_cannot_be_written_leave_no_trace(portrait, tmp_path):
    bad = replace(portrait, explained=(float("nan"), 0.1))
    with pytest.raises(ValueError, match="explained"):
        write_portrait(tmp_path / "portrait.json", bad)
    (tmp_path / "portrait.json").mkdir()
    with pytest.raises(StudyError, match="cannot be written"):
        write_portrait(tmp_path / "portrait.json", portrait)
    assert [path.name for path in tmp_path.iterdir()] == ["portrait.json"]


# ---------------------------------------------------------------------- at the door


def test_what_has_no_portrait():
    graphs, y, model = of_kind("two classes")
    with pytest.raises(NotFittedError):
        portrait_of_model(FDGNNClassifier(), graphs, y, dataset="x")
    with pytest.raises(TypeError, match="GraphReservoir predicts nothing"):
        portrait_of_model(GraphReservoir(**SMALL).fit(graphs), graphs, dataset="x")
    with pytest.raises(TypeError, match="got a dict"):
        portrait_of_model({}, graphs, dataset="x")
    with pytest.raises(ValueError, match="2 entries, but there are 40 graphs"):
        portrait_of_model(model, graphs, y[:2], dataset="x")
    for name in ("ids", "smiles"):
        with pytest.raises(ValueError, match=f"{name} has 1 entries, but there are 40 graphs"):
            portrait_of_model(model, graphs, dataset="x", **{name: ["C"]})
    both = FDGNNRegressor(**SMALL).fit(graphs, np.eye(40)[:, :2])
    with pytest.raises(ValueError, match="one target, but the model has 2"):
        portrait_of_model(both, graphs, dataset="x")
    one = FDGNNRegressor(**SMALL).fit(graphs, np.arange(40.0))
    with pytest.raises(ValueError, match="NaN or infinite"):
        portrait_of_model(one, graphs, np.full(40, np.nan), dataset="x")
    with pytest.raises(ValueError, match=r"shape \(40, 1\)"):
        portrait_of_model(one, graphs, np.ones((40, 1)), dataset="x")


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_searches_and_lists_of_graphs_have_portraits():
    graphs, y = make_motif_graphs(30, random_state=0)
    search = FDGNNSearchCV(
        FDGNNClassifier(n_estimators=2), n_configurations=1, cv=2, random_state=0
    )
    search.fit(graphs, y)
    found = portrait_of_model(search, list(graphs), y, dataset="motifs", held_out=True)
    assert found.n_estimators == 2
    assert found.held_out is True
    assert found.settings["alpha"] == search.best_params_["alpha"]


def test_without_networkx_the_extra_is_named_before_any_work(monkeypatch):
    graphs, y, model = of_kind("two classes")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match="extra 'plot'"):
        portrait_of_model(model, graphs, y, dataset="x")


def test_settings_show_whatever_the_parameters_are():
    *_, model = of_kind("two classes")
    model.tol, model.solver = np.inf, GraphReservoir(n_units=7)
    shown = making._shared_parameters([model])
    assert (shown["tol"], shown["solver"]) == ("inf", "GraphReservoir(n_units=7)")
    assert shown["n_units"] == 12


class Degrees(Encoder):
    """A trial encoder: each graph's histogram of degrees."""

    kind = "trial-degrees"

    def vertex_features(self, graphs):
        return np.eye(8)[np.minimum(np.diff(graphs.indptr), 7)]


class SparseDegrees(Degrees):
    """The same, with sparse features."""

    kind = "trial-sparse-degrees"

    def encode(self, graphs, depths=None, n_jobs=None):
        features = super().encode(graphs, depths, n_jobs).features
        return Encoding([sp.csr_array(X) for X in features])


@pytest.mark.usefixtures("vertices_on_a_circle")
@pytest.mark.parametrize("encoder", [Degrees(), SparseDegrees()])
def test_any_encoder_has_a_portrait(encoder, tmp_path):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = GraphClassifier(encoder, probability=True, random_state=0).fit(graphs, y)
    found = portrait_of_model(model, graphs, y, dataset="other")
    assert found.dynamics is None
    assert found.shown.encoder == type(encoder).__name__
    assert found.shown.n_layers is found.shown.effective_spectral_radius is None
    assert found.settings["encoder"] == repr(encoder)
    assert np.trace(found.confusion) == (model.predict(graphs) == y).sum()
    write_portrait(tmp_path / "portrait.json", found)
    assert read_portrait(tmp_path / "portrait.json") == found


def test_names_that_are_no_text_are_written(tmp_path):
    graphs, y, model = of_kind("two classes")
    ids = [f"\udcff{i}" for i in range(40)]
    found = portrait_of_model(model, graphs, y, dataset="a \udcff b", ids=ids)
    write_portrait(tmp_path / "portrait.json", found)
    assert (found.dataset, found.graphs[3].id) == ("a ? b", "?3")


def test_importing_costs_nothing_that_is_not_used():
    script = "import sys, fdgnn.html.model_data.making, fdgnn.plot; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"networkx", "rdkit", "matplotlib", "torch"}


@pytest.mark.real_data("MUTAG")
def test_atoms_of_known_molecules_are_named():
    graphs, y = load_tu("MUTAG")
    model = FDGNNClassifier(n_layers=1, n_units=50, random_state=0).fit(graphs, y)
    made = portrait_of_model(model, graphs, y, dataset="MUTAG")
    assert made.data.labels[0] == ("C", 2395)
    assert set(made.drawings[0].labels) <= {"C", "N", "O"}
    other = portrait_of_model(model, graphs[:50], y[:50], dataset="MUTAG")  # no longer that set
    assert other.data.labels[0][0] == "0"

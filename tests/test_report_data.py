"""Report data: complete, out of fold, true to the oracle, bounded, and rejected when damaged."""

from __future__ import annotations

import json
import subprocess
import sys

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
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask
from fdgnn.exceptions import (
    ConvergenceWarning,
    MissingDependencyError,
    StudyError,
    UnknownLabelWarning,
)
from fdgnn.explanations.drawing import _place_part, place_vertices
from fdgnn.folds import TEST, stratified
from fdgnn.html import collect
from fdgnn.html.collect import OutOfFold, report_data, run_data
from fdgnn.html.data_statistics import graph_counts
from fdgnn.html.model_views import principal_map
from fdgnn.html.report_data import ReportData, read_report_data, write_report_data
from fdgnn.html.words import clipped_apart
from fdgnn.records import encode
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import read_targets
from reference import embed_graph

pytest.importorskip("networkx")

SMALL = {"n_layers": 2, "n_units": 12, "effective_spectral_radius": 0.5, "random_state": 0}


def classifier(graphs, y, **options):
    return FDGNNClassifier(**SMALL | {"probability": True} | options).fit(graphs, y)


GRAPHS, Y = make_motif_graphs(60, random_state=0)
NOISY = np.where(np.arange(60) % 5 == 0, 1 - Y, Y)  # every fifth label is wrong: mistakes


@pytest.fixture(scope="module")
def held_out():
    """Predictions of three outer folds."""
    fold = stratified(NOISY, 3, 0)
    outputs, probabilities = np.empty((60, 1)), np.empty((60, 2))
    for f in range(3):
        model = classifier(GRAPHS[fold != f], NOISY[fold != f])
        outputs[fold == f] = model.outputs(GRAPHS[fold == f])
        probabilities[fold == f] = model.predict_proba(GRAPHS[fold == f])
    return OutOfFold(outputs, probabilities, fold)


@pytest.fixture(scope="module")
def data(held_out):
    return report_data(
        classifier(GRAPHS, NOISY), GRAPHS, NOISY, dataset="motifs <b>", out_of_fold=held_out,
        command="fdgnn evaluate motifs",
    )  # fmt: skip


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
    found = report_data(model, graphs, y, dataset=kind)
    write_report_data(tmp_path / "report.json", [found])
    assert read_report_data(tmp_path / "report.json") == [found]
    assert found.task == ("regression" if kind == "regression" else "classification")
    assert (found.predictions, found.command) == ("seen", None)
    assert [row.graph for row in found.graphs] == list(range(40))
    assert len(found.drawings) == 40
    n = [graph.n_vertices for graph in graphs]
    assert [row.n_vertices for row in found.graphs] == n
    assert [d.graph for d in found.drawings] == list(range(40))
    n_edges = [len(drawing.edges) // 2 for drawing in found.drawings]
    assert n_edges == [row.n_edges for row in found.graphs]


def test_without_targets_only_what_is_known_is_there():
    graphs, _, model = of_kind("no targets")
    found = report_data(model, graphs, dataset="new")
    assert found.mistakes == []
    assert found.scores == found.baseline == {}
    assert found.confusion is found.calibration is found.data.targets is None
    assert found.data.majority is found.data.wl_ceiling is None
    assert [name for name, _ in found.data.sizes.series] == [""]
    assert {(row.actual, row.correct, row.fold) for row in found.graphs} == {(None, None, None)}
    predicted = model.predict(graphs).tolist()
    assert [row.predicted for row in found.graphs] == predicted
    chances = model.predict_proba(graphs).max(axis=1)
    given = [row.probability for row in found.graphs]
    np.testing.assert_allclose(given, chances, rtol=1e-4)


def test_data_of_a_regression():
    graphs, y, model = of_kind("regression")
    found = report_data(model, graphs, y, dataset="sizes", ids=[f"g{i}" for i in range(40)])
    errors = np.abs(model.predict(graphs) - y)
    assert found.mistakes == np.argsort(-errors)[:12].tolist()
    assert found.scores["r2"] == pytest.approx(model.score(graphs, y), rel=1e-4)
    assert found.scores["mae"] == pytest.approx(errors.mean(), rel=1e-4)
    assert found.baseline["r2"] == pytest.approx(0, abs=1e-9)
    assert found.baseline["mae"] == pytest.approx(np.abs(y - y.mean()).mean(), rel=1e-4)
    assert found.classes == []
    assert sum(found.data.targets.totals) == 40
    row = found.graphs[5]
    assert (row.id, row.correct, row.probability) == ("g5", None, None)
    assert row.actual == pytest.approx(y[5], rel=1e-4)
    assert row.score == row.predicted == pytest.approx(model.predict(graphs)[5], rel=1e-4)
    constant = report_data(model, graphs, np.ones(40), dataset="constant")
    assert "r2" not in constant.scores


def test_unknown_classes_are_mistakes():
    graphs, y, model = of_kind("two classes")
    strange = np.where(np.arange(40) < 3, "zebra", y)
    found = report_data(model, graphs, strange, dataset="strange")
    assert found.classes == ["a", "b", "zebra"]
    assert [sum(row) for row in found.confusion] == [(strange == c).sum() for c in found.classes]
    assert [row[2] for row in found.confusion] == [0, 0, 0]
    assert "roc_auc" not in found.scores
    assert found.scores["accuracy"] == pytest.approx((model.predict(graphs) == strange).mean())
    assert found.notes == [
        "The training data have no class zebra, so the model cannot predict it for the 3 graphs "
        "that have it."
    ]
    assert not any(row.correct for row in found.graphs[:3])
    model = GraphClassifier("wl", probability=True, random_state=0).fit(graphs, y)
    usual = report_data(model, graphs[3:], y[3:], dataset="usual", unseen=True)
    found = report_data(model, graphs, strange, dataset="strange", unseen=True)
    assert found.coverages  # no prediction set contains an unknown class
    for one, known in zip(found.coverages, usual.coverages, strict=True):
        assert one.covered == pytest.approx(37 / 40 * known.covered, abs=1e-4)


def test_a_column_that_is_not_the_target_is_an_error():
    graphs, _, model = of_kind("two classes")
    wrong = np.array([f"row {i}" for i in range(40)])
    with pytest.raises(ValueError, match=r"no target is a class of the model: .* and 35 more, and"):
        report_data(model, graphs, wrong, dataset="wrong")
    graphs, _, model = of_kind("regression")
    with pytest.raises(ValueError, match=r"not all targets are numbers, .*: one is 'row 0'"):
        report_data(model, graphs, wrong, dataset="wrong")


def test_training_molecules_are_not_held_out(molecules):
    model = GraphClassifier("wl").fit(molecules.graphs[:4], molecules.y[:4])
    same = ["OCC", "CCCC", "N#Cc1ccccc1"]
    notes = report_data(model, same, ["0", "1", "1"], dataset="new", unseen=True).notes
    assert notes == [
        "2 of the 3 graphs are among the training molecules of the model: they are not held out, "
        "and scores are too high."
    ]
    assert report_data(model, same, dataset="new").notes == []


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_classes_keep_the_models_order():
    graphs = make_random_graphs(60, random_state=0)
    y = np.arange(60) % 12
    model = classifier(graphs, y, n_units=5)
    strange = np.where(y < 2, 100 * y + 20, y)  # 20 and 120 are unknown, 0 and 1 are not there
    found = report_data(model, graphs, strange, dataset="many")
    assert found.classes == [*map(str, range(12)), "20", "120"]
    counts = [0, 0, *[5] * 12]
    assert (found.data.targets.names, found.data.targets.totals) == (found.classes, counts)
    assert [sum(row) for row in found.confusion] == counts
    sizes = found.data.sizes.series
    assert [name for name, _ in sizes] == found.classes
    assert [sum(own) for _, own in sizes] == counts
    mixed = np.array([*strange[:-1], "none"], dtype=object)  # cannot be sorted
    last = report_data(model, graphs, mixed, dataset="many").classes[-3:]
    assert last == ["120", "20", "none"]


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_long_names_are_kept_apart():
    graphs = make_random_graphs(60, random_state=0)
    start = "x" * 80
    names = np.array([start + "a", start + "b", start + "c", "x" * 59 + "\N{HORIZONTAL ELLIPSIS}"])
    y = names[np.repeat([0, 1, 2, 3], [30, 15, 10, 5])]
    model = classifier(graphs, y)
    found = report_data(model, graphs, y, dataset="alike")
    cut = "\N{HORIZONTAL ELLIPSIS}"
    # In the order of the model, and the short name is left as it is.
    wanted = ["x" * 55 + cut + f" ({n})" for n in (2, 3, 4)] + ["x" * 59 + cut]
    assert found.classes == wanted
    assert found.data.targets.names == wanted
    assert found.data.targets.totals == [30, 15, 10, 5]
    assert found.data.majority == 0.5
    assert found.data.wl_ceiling == graphs.wl_ceiling(y)
    assert [sum(row) for row in found.confusion] == [30, 15, 10, 5]
    assert [row.actual for row in found.graphs] == [
        wanted[names.tolist().index(name)] for name in y
    ]
    copies = clipped_apart([1, "1", "1 (2)", "y" * 61, "y" * 62])
    assert copies == ["1", "1 (3)", "1 (2)", "y" * 59 + cut, "y" * 55 + cut + " (2)"]


# ---------------------------------------------------------------------- out of fold


def test_predictions_are_those_of_the_outer_folds(data, held_out):
    assert data.predictions == "out of fold"
    right = (held_out.outputs[:, 0] > 0) == NOISY
    assert [row.correct for row in data.graphs] == right.tolist()
    assert [row.fold for row in data.graphs] == (held_out.fold + 1).tolist()
    assert data.scores["accuracy"] == pytest.approx(right.mean(), rel=1e-4)
    assert data.baseline["accuracy"] == pytest.approx(np.bincount(NOISY).max() / 60, rel=1e-4)
    assert data.baseline["roc_auc"] == 0.5
    assert (data.dataset, data.command) == ("motifs <b>", "fdgnn evaluate motifs")
    assert data.parameters["n_units"] == 12


def test_sets_of_a_fold_are_judged_by_the_errors_of_the_others(data, held_out):
    assert [one.coverage for one in data.coverages] == [0.8, 0.9, 0.95]
    assert all(abs(one.covered - one.coverage) < 0.15 for one in data.coverages)
    wrong = 1 - held_out.probabilities[np.arange(60), NOISY]
    covered = []
    for f in range(3):
        others = np.sort(wrong[held_out.fold != f])
        limit = others[int(np.ceil((len(others) + 1) * 0.9)) - 1]
        covered += (wrong[held_out.fold == f] <= limit).tolist()
    assert data.coverages[1].covered == pytest.approx(np.mean(covered), rel=1e-4)
    assert data.domain is None  # the models of the folds are gone


def test_intervals_of_a_fold_are_judged_by_the_errors_of_the_others():
    graphs, y, model = of_kind("regression")
    noise = np.random.default_rng(0).normal(size=(40, 1))
    found = OutOfFold(y[:, None] + noise, None, np.arange(40) % 4)
    coverages = report_data(model, graphs, y, dataset="sizes", out_of_fold=found).coverages
    assert all(abs(one.covered - one.coverage) < 0.15 for one in coverages)
    assert coverages[0].size < coverages[-1].size
    assert coverages[0].empty is None


def test_intervals_of_folds_are_as_wide_as_the_errors_to_be_expected():
    """Noise grows with the size of a graph, so intervals of one width would be wide for all."""
    rng = np.random.default_rng(0)
    graphs = make_random_graphs(200, n_vertices=(4, 30), random_state=0)
    n = np.diff(graphs.vertex_offsets)
    y = n + rng.normal(size=200) * np.where(n > 15, 5.0, 0.05)
    task = EvaluationTask(
        "noisy",
        graphs,
        read_targets(y, graphs, classify=False),
        np.stack([np.where(np.arange(200) % 4 == f, TEST, 0) for f in range(4)]),
    )
    model = GraphRegressor("wl", intervals=True, random_state=0)
    outputs = np.full((4, 200, 1), np.nan)
    for f in range(4):
        own = np.arange(200) % 4 == f
        outputs[f, own] = clone(model).fit(graphs[~own], y[~own]).outputs(graphs[own])
    predictions = NestedPredictions(task.targets, task.folds == TEST, outputs)
    (found,) = run_data(EvaluationRun(task, None, predictions, model))
    errors = np.abs(predictions.last()[:, 0] - y)
    one_width = [2 * np.quantile(errors, c) for c in (0.8, 0.9, 0.95)]
    for one, width in zip(found.coverages, one_width, strict=True):
        assert abs(one.covered - one.coverage) < 0.1
        assert one.size < 0.9 * width


def test_confusion_counts_every_graph_once(data):
    confusion = np.array(data.confusion)
    assert confusion.sum() == 60
    assert confusion.sum(axis=1).tolist() == data.data.targets.totals
    assert np.trace(confusion) == sum(row.correct for row in data.graphs)


def test_calibration_is_of_the_probabilities_shown(data):
    rows, calibration = data.graphs, data.calibration
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


def test_mistakes_are_the_most_confident_ones_first(data):
    by_graph = {row.graph: row for row in data.graphs}
    wrong = [row for row in data.graphs if not row.correct]
    assert wrong
    assert len(data.mistakes) == min(12, len(wrong))
    confidence = [by_graph[g].probability for g in data.mistakes]
    assert confidence == sorted(confidence, reverse=True)
    assert min(confidence) >= sorted([row.probability for row in wrong])[-len(confidence)]
    assert not any(by_graph[g].correct for g in data.mistakes)


# ---------------------------------------------------------------------- uncertainty


LABELS = np.where(np.random.default_rng(0).random(60) < 0.2, 1 - Y, Y)
STRANGE = as_batch([*GRAPHS[40:], *make_cycles([50, 90])])
TRUTH = np.append(LABELS[40:], [0, 1])


def of_strange(model, y=TRUTH, **options):
    return report_data(model, STRANGE, y, dataset="motifs", **options)


def test_sets_are_counted_as_the_model_gives_them():
    model = GraphClassifier("wl", probability=True).fit(GRAPHS[:40], LABELS[:40])
    found = report_data(model, STRANGE, TRUTH, dataset="motifs", unseen=True)
    assert [one.coverage for one in found.coverages] == [0.8, 0.9, 0.95]
    for one in found.coverages:
        sets = model.predict_set(STRANGE, one.coverage)
        assert one.covered == pytest.approx(sets[np.arange(22), TRUTH].mean(), rel=1e-4)
        assert one.size == pytest.approx(sets.sum(axis=1).mean(), rel=1e-4)
        assert one.empty == pytest.approx((~sets.any(axis=1)).mean(), abs=1e-5)


def test_graphs_out_of_domain_are_listed_with_their_errors():
    model = GraphClassifier("wl").fit(GRAPHS[:40], LABELS[:40])
    data = of_strange(model, unseen=True, ids=[f"g{i}" for i in range(22)])
    found = data.domain
    outside = model.out_of_domain(STRANGE)
    assert {21, 20} <= set(outside)
    assert data.coverages == []  # the model was not asked to learn probabilities
    assert found.n_outside == len(outside)
    assert [one.graph for one in found.graphs[:2]] == [21, 20]
    assert {one.graph: one.reason for one in found.graphs} == outside
    assert {one.id for one in found.graphs} == {f"g{g}" for g in outside}
    wrong = model.predict(STRANGE) != TRUTH
    unlike = np.isin(np.arange(22), list(outside))
    assert found.error_outside == pytest.approx(wrong[unlike].mean(), rel=1e-4)
    assert found.error_inside == pytest.approx(wrong[~unlike].mean(), rel=1e-4)


def test_intervals_and_errors_of_a_regression():
    model = GraphRegressor("wl", intervals=True).fit(GRAPHS[:40], LABELS[:40])
    data = of_strange(model, unseen=True)
    found = data.domain
    errors = np.abs(model.predict(STRANGE) - TRUTH)
    for one in data.coverages:
        low, high = model.predict_interval(STRANGE, one.coverage).T
        assert one.covered == pytest.approx(((low <= TRUTH) & (high >= TRUTH)).mean(), rel=1e-4)
        assert one.size == pytest.approx((high - low).mean(), rel=1e-4)
        assert one.empty is None
    unlike = np.isin(np.arange(22), list(model.out_of_domain(STRANGE)))
    assert found.error_inside == pytest.approx(errors[~unlike].mean(), rel=1e-4)


def test_graphs_that_may_have_been_seen_have_no_uncertainty():
    model = GraphClassifier("wl", probability=True).fit(GRAPHS[:40], LABELS[:40])
    seen = of_strange(model)
    assert (seen.coverages, seen.domain) == ([], None)
    new = of_strange(model, y=None)  # without targets they are new ones
    assert [one.covered for one in new.coverages] == [None] * 3
    assert (new.domain.error_outside, new.domain.error_inside) == (None, None)
    model._domain = None  # as in a model of too many features
    assert of_strange(model, unseen=True).domain is None


# ---------------------------------------------------------------------- the dynamics


def test_iterations_are_the_oracles():
    graphs = make_random_graphs(6, n_vertices=(3, 7), density=0.5, random_state=2)
    model = classifier(graphs, np.arange(6) % 2, effective_spectral_radius=0.9)
    found = report_data(model, graphs, dataset="small").dynamics
    network = model.estimators_[0].encoder.reservoir_
    steps = [embed_graph(graph, network.layers, network.vocabulary)[1] for graph in graphs]
    steps = np.array(steps).T
    for i, layer in enumerate(found.layers):
        assert layer.mean_iterations == pytest.approx(steps[i].mean(), rel=1e-4)


def test_certified_graphs_are_counted():
    graphs = make_stars([4] * 20 + [60] * 5)
    with pytest.warns(ConvergenceWarning, match="5 of 25 graphs did not converge"):
        model = classifier(graphs, np.arange(25) % 2, effective_spectral_radius=0.99, degree=3.0)
    found = report_data(model, graphs, dataset="stars").dynamics
    for layer in found.layers:
        assert (layer.certified, layer.uncertified) == (20, 5)
        assert layer.effective == pytest.approx(0.99, rel=1e-4)
        assert layer.spectral_radius == pytest.approx(0.33, rel=1e-3)
        assert layer.norm >= layer.spectral_radius
        assert found.n_graphs == 25


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_the_certificate_can_be_told_from_radii():
    graphs = make_random_graphs(40, density=0.4, random_state=0)
    model = classifier(graphs, np.arange(40) % 2, n_connections=4, effective_spectral_radius=0.7)
    found = report_data(model, graphs, dataset="dense").dynamics
    for layer, weights in zip(
        found.layers, model.estimators_[0].encoder.reservoir_.layers, strict=True
    ):
        W = weights.recurrent_weights.toarray()
        radius = np.abs(np.linalg.eigvals(np.abs(W))).max()
        assert layer.absolute_radius == pytest.approx(radius, rel=1e-4)
        assert layer.absolute_radius > 1.1 * layer.spectral_radius
        sure = [layer.absolute_radius * rho < 1 for rho in as_batch(graphs).spectral_radii]
        assert sum(sure) == layer.certified
        assert 0 < sum(sure) < 40


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_unconverged_graphs_are_counted_without_warning():
    graphs = make_random_graphs(20, density=0.5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="20 of 20 graphs did not converge"):
        model = classifier(graphs, np.arange(20) % 2, max_iter=2, solver="paper")
    found = report_data(model, graphs, np.arange(20) % 2, dataset="impatient")
    assert [layer.unconverged for layer in found.dynamics.layers] == [20, 20]


# ---------------------------------------------------------------------- the data


def test_statistics_of_the_data():
    loops = Graph([[0, 0, 1, 1], [0, 1, 2, 2]], labels=["C", "C", "O"], n_vertices=3)
    star = Graph([[0] * 50, list(range(1, 51))], labels=["C"] * 50 + ["N"], n_vertices=51)
    graphs, y = as_batch([loops, loops, star, star, star]), np.array([0, 1, 1, 1, 1])
    model = classifier(graphs, y, probability=False)
    data = report_data(model, graphs, y, dataset="facts").data
    assert data.n_graphs == 5
    assert data.n_distinct == 2
    assert (data.vertices_range, data.max_degree) == ((3, 51), 50)
    assert (data.n_self_loops, data.n_merged_arcs, data.undirected) == (2, 2, True)
    assert (data.majority, data.wl_ceiling) == (0.8, 0.8)
    assert (data.targets.names, data.targets.totals) == (["0", "1"], [1, 4])
    assert (data.labels.names, data.labels.totals) == (["C", "N", "O"], [154, 3, 2])
    assert data.mean_sizes == [("0", 3), ("1", 39)]
    assert (data.n_labels, data.n_features) == (3, 0)
    spans = [[int(end) for end in name.split(" to ")] for name in data.sizes.names]
    assert len(spans) <= 40
    for i, sizes in enumerate(([3], [3, 51, 51, 51])):
        counts = [sum(span[0] <= n <= span[-1] for n in sizes) for span in spans]
        assert data.sizes.series[i] == (str(i), counts)
    degrees = dict(zip(data.degrees.names, data.degrees.totals, strict=True))
    assert len(degrees) <= 40
    assert sum(degrees.values()) == data.n_vertices
    assert degrees["1"] == 2 + 150
    assert data.degrees.totals[-1] == 3
    assert data.degrees.names[-1].endswith(" to 50")
    assert graph_counts(graphs)["majority"] is None


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_many_classes_and_long_names_stay_small():
    graphs = make_random_graphs(180, random_state=0)
    y = np.array([f"{c} " + "x" * 500 for c in np.arange(180) % 60])
    found = report_data(classifier(graphs, y, n_units=5), graphs, y, dataset="many")
    assert found.confusion is None
    assert [name for name, _ in found.data.sizes.series] == [""]
    assert len(found.data.targets.names) == 50
    assert max(map(len, found.classes)) == 60
    alike = np.array(["x" * 500 + str(c) for c in np.arange(180) % 2])  # cut, they are the same
    model = classifier(graphs, alike)
    found = report_data(model, graphs, alike, dataset="alike")
    assert np.trace(found.confusion) == (model.predict(graphs) == alike).sum() < 180
    labels = [f"{'C' * 100}{v}" for v in range(3)]
    chain = as_batch([Graph([[0, 1], [1, 2]], labels=labels)] * 4)
    model = classifier(chain, [0, 1, 0, 1], probability=False)
    shown = report_data(model, chain, dataset="labels").data.labels
    assert len(set(shown.names)) == 3


# ---------------------------------------------------------------------- the map


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


def test_data_of_large_datasets_are_small(tmp_path, monkeypatch):
    graphs = make_random_graphs(3000, n_vertices=(20, 60), density=0.1, random_state=0)
    y = (np.arange(3000) % 10 == 0).astype(int)
    model = classifier(graphs, y, n_layers=1, n_units=5)
    # Space is what is tested here, so layouts may cost nothing.
    monkeypatch.setattr(collect, "_SECONDS", np.inf)
    rng = np.random.default_rng(0)
    monkeypatch.setattr(collect, "place_vertices", lambda g: rng.normal(size=(g.n_vertices, 2)))
    found = report_data(model, graphs, y, dataset="large")
    write_report_data(tmp_path / "large.json", [found])
    assert 800_000 < (tmp_path / "large.json").stat().st_size < 1_500_000
    rows = found.graphs
    assert len(rows) == 1000
    assert set(found.mistakes) <= {row.graph for row in rows}
    assert len(found.mistakes) == 12
    assert 80 <= sum(row.actual == "1" for row in rows) <= 130  # about a tenth, and the mistakes
    assert np.sum(found.confusion) == 3000
    assert found.dynamics.n_graphs == 2000
    assert set(found.mistakes) <= {d.graph for d in found.drawings}
    assert 500 < len(found.drawings) < 1000
    monkeypatch.setattr(collect, "_SECONDS", 0.5)
    assert 12 < len(report_data(model, graphs, y, dataset="large").drawings) < 100


def test_large_graphs_are_drawn_only_among_the_mistakes():
    graphs = make_stars([5, 6, 300, 300, 700, 8])
    y = np.array([0, 1, 0, 1, 1, 0])
    model = classifier(graphs, y, probability=False, degree="max")
    predicted = model.predict(graphs)
    wrong = predicted.copy()
    wrong[[3, 4]] = 1 - predicted[[3, 4]]
    found = report_data(model, graphs, wrong, dataset="stars")
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
    for drawing in report_data(model, graphs, y, dataset="two").drawings:
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
    found = report_data(
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
    drawn = report_data(model, molecules.graphs, dataset="wrong", smiles=wrong).drawings
    assert [drawing.molecule for drawing in drawn[:7]] == [True, *[False] * 5, True]
    assert drawn[4].labels == ["C 1 H3", "C 2 H2", "N 1 H2"]
    assert drawn[4].orders is None
    assert (drawn[4].smiles, drawn[5].smiles) == ("C1CN1", None)


# ---------------------------------------------------------------------- files


def damaged(data, change):
    found = json.loads(encode(data))
    change(found)
    return json.dumps([found])


DAMAGES = {
    "graphs[3].score": lambda p: p["graphs"][3].update(score="high"),
    "graphs[0]": lambda p: p["graphs"][0].pop("correct"),
    "graphs[1].actual": lambda p: p["graphs"][1].update(actual=[1]),
    "graphs[2].x": lambda p: p["graphs"][2].update(x=1e301),
    "data.sizes.series[0][1][0]": lambda p: p["data"]["sizes"]["series"][0].__setitem__(1, [0.5]),
    "data.sizes": lambda p: p["data"]["sizes"]["names"].pop(),
    "data.n_graphs": lambda p: p["data"].update(n_graphs=-1),
    "data.vertices_range": lambda p: p["data"].update(vertices_range=[1]),
    "data.degrees.names": lambda p: p["data"]["degrees"].update(names=["C"] * 1000),
    "drawings[7].labels": lambda p: p["drawings"][7].update(labels=7),
    "drawings[8]": lambda p: p["drawings"][8]["edges"].__setitem__(0, 10**6),
    "drawings[9]": lambda p: p["drawings"][9]["positions"].pop(),
    "drawings[5].positions[0]": lambda p: p["drawings"][5]["positions"].__setitem__(0, 1001),
    "calibration.bins[0].n": lambda p: p["calibration"]["bins"][0].update(n=True),
    "calibration.bins[1].accuracy": lambda p: p["calibration"]["bins"][1].update(accuracy=1.5),
    "predictions": lambda p: p.update(predictions="known"),
    "machine": lambda p: p.update(machine=[]),
    "scores[...]": lambda p: p["scores"].update(accuracy="high"),
}


@pytest.mark.parametrize("where", DAMAGES)
def test_damaged_data_are_rejected_with_the_place(data, where, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(damaged(data, DAMAGES[where]), encoding="utf-8")
    with pytest.raises(StudyError) as caught:
        read_report_data(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: damaged (")
    assert f" - at `$[0].{where}`); make it again" in message


def test_confusion_that_is_not_square_is_rejected(data, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(damaged(data, lambda p: p["confusion"][1].pop()), encoding="utf-8")
    with pytest.raises(StudyError, match="the confusion matrix is not 2 x 2"):
        read_report_data(path)


OPTIONAL = {"format", "target", "notes"}  # which have defaults


@pytest.mark.parametrize("name", sorted(set(ReportData.__struct_fields__) - OPTIONAL))
def test_no_field_may_be_missing(data, name, tmp_path):
    path = tmp_path / "report.json"
    path.write_text(damaged(data, lambda p: p.pop(name)), encoding="utf-8")
    with pytest.raises(StudyError, match=f"missing required field `{name}`"):
        read_report_data(path)


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
def test_every_model_has_report_data(name, options, tmp_path):
    graphs = make_random_graphs(40, random_state=0, **options)
    numbers = name.startswith("numbers")
    # Noise, so that no base model is clearly better than another.
    y = np.sin(np.arange(40)) if numbers else np.where(np.arange(40) % 2, "large", "small")
    model = clone(MODELS[name]).fit(graphs, y)
    found = report_data(model, graphs, y, dataset=name)
    write_report_data(tmp_path / "report.json", [found])
    assert read_report_data(tmp_path / "report.json") == [found]
    kinds = [type(each.encoder).__name__ for each in model.estimators_]
    has_reservoir = "GraphReservoir" in kinds or "EncoderUnion" in kinds
    assert (found.dynamics is not None) == has_reservoir
    assert sum(one.n_estimators for one in found.base_models) == len(kinds)
    expected = substructures(model, graphs, n_most=6)
    expected = [one for one in expected if numbers or one.weight > 0]
    assert [one.words for one in found.substructures] == [one.words for one in expected]
    assert [one.steps for one in found.substructures] == [one.steps.tolist() for one in expected]
    assert {one.graph for one in found.substructures} <= {d.graph for d in found.drawings}
    targets = {None} if numbers else {"large", "small"}
    assert {one.target for one in found.substructures} == targets
    if name == "union":
        assert "GraphReservoir and WLCounts" in found.model
        assert "GraphReservoir" in found.dynamics.model
    if len(found.base_models) > 1:
        assert model.estimators_[0].name in found.model


@pytest.mark.filterwarnings(
    "ignore::fdgnn.exceptions.UnknownLabelWarning", "ignore::fdgnn.exceptions.ConvergenceWarning"
)
def test_graphs_with_new_labels_are_on_the_page():
    graphs = make_random_graphs(40, random_state=0)
    model = AutoGraphClassifier(random_state=0).fit(graphs, np.arange(40) % 2)
    names = [each.name for each in model.estimators_]
    reservoirs = [name for name in names if name.endswith("reservoir")]
    assert reservoirs, "this seed keeps some"
    assert names[0] not in reservoirs
    strange = Graph([[0, 1], [1, 2]], labels=[0, 99, 1])
    with pytest.warns(UnknownLabelWarning, match="1 of 41 graphs"):
        found = report_data(model, [*graphs, strange], dataset="new")
    assert [one.name for one in found.base_models] == names
    assert found.dynamics.n_graphs == 41
    assert names[0] in found.model
    assert reservoirs[0] in found.dynamics.model
    assert len(found.graphs) == len(found.drawings) == 41


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_atoms_are_named_in_substructures():
    graphs, y = load_tu("MUTAG")
    model = GraphClassifier(WLCounts(n_iterations=1), "linear").fit(graphs, y)
    found = report_data(model, graphs, y, dataset="MUTAG")
    words = " ".join(one.words for one in found.substructures)
    assert "label" not in words
    assert "next to" in words
    other = report_data(model, graphs, y, dataset="mine")
    assert all(one.words.startswith("label") for one in other.substructures)
    ring = [Graph([[0, 1], [1, 2]], labels=["C", "C", last]) for last in "ONON"]
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(ring, [0, 1, 0, 1])
    smiles = ["CCO", "CCN"] * 2
    found = report_data(model, ring, dataset="mine", smiles=smiles)
    assert "O, next to C" in [one.words for one in found.substructures]


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_many_classes_and_long_labels_stay_bounded():
    graphs = make_random_graphs(60, n_labels=3, random_state=0)
    long = [replace_labels(graph, "x" * 250) for graph in graphs]
    model = GraphClassifier(WLCounts(n_iterations=1)).fit(long, np.arange(60) % 12)
    found = report_data(model, long, dataset="long")
    assert len({one.target for one in found.substructures}) == 10
    assert max(len(one.words) for one in found.substructures) <= 240


def replace_labels(graph, start):
    labels = [f"{start}{label}" for label in graph.labels]
    return Graph(graph.edge_index, labels=labels)


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_a_substructure_that_does_not_fit_is_rejected(tmp_path):
    graphs = make_random_graphs(20, random_state=0)
    model = GraphClassifier("wl").fit(graphs, np.arange(20) % 2)
    found = report_data(model, graphs, dataset="damaged")
    path = tmp_path / "data.json"

    def told(change):
        path.write_text(damaged(found, change), encoding="utf-8")
        with pytest.raises(StudyError) as error:
            read_report_data(path)
        return str(error.value)

    assert "does not fit the drawing" in told(lambda p: p["substructures"][0]["steps"].pop())
    strange = told(lambda p: p["substructures"][0].update(target="zebra"))
    assert "for the class zebra" in strange


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\x00", b"[" * 100_000, b"{}", b"[{}]", b'[{"format": 1}]', b'[{"format": NaN}]'],
)
def test_other_files_are_rejected(tmp_path, content):
    path = tmp_path / "report.json"
    path.write_bytes(content)
    with pytest.raises(StudyError, match="damaged") as caught:
        read_report_data(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(StudyError, match="cannot be read"):
        read_report_data(tmp_path / "missing.json")


def test_data_that_cannot_be_written_leave_no_trace(data, tmp_path):
    bad = replace(data, explained=(float("nan"), 0.1))
    with pytest.raises(ValueError, match="explained"):
        write_report_data(tmp_path / "report.json", [bad])
    (tmp_path / "report.json").mkdir()
    with pytest.raises(StudyError, match="cannot be written"):
        write_report_data(tmp_path / "report.json", [data])
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


# ---------------------------------------------------------------------- arguments


def test_what_has_no_report_data():
    graphs, y, model = of_kind("two classes")
    with pytest.raises(NotFittedError):
        report_data(FDGNNClassifier(), graphs, y, dataset="x")
    with pytest.raises(TypeError, match="GraphReservoir predicts nothing"):
        report_data(GraphReservoir(**SMALL).fit(graphs), graphs, dataset="x")
    with pytest.raises(TypeError, match="got a dict"):
        report_data({}, graphs, dataset="x")
    with pytest.raises(ValueError, match="2 entries, but there are 40 graphs"):
        report_data(model, graphs, y[:2], dataset="x")
    for name in ("ids", "smiles"):
        with pytest.raises(ValueError, match=f"{name} has 1 entries, but there are 40 graphs"):
            report_data(model, graphs, dataset="x", **{name: ["C"]})
    both = FDGNNRegressor(**SMALL).fit(graphs, np.eye(40)[:, :2])
    with pytest.raises(ValueError, match="one target, but the model has 2"):
        report_data(both, graphs, dataset="x")
    one = FDGNNRegressor(**SMALL).fit(graphs, np.arange(40.0))
    with pytest.raises(ValueError, match="NaN or infinite"):
        report_data(one, graphs, np.full(40, np.nan), dataset="x")
    with pytest.raises(ValueError, match=r"shape \(40, 1\)"):
        report_data(one, graphs, np.ones((40, 1)), dataset="x")


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_searches_and_lists_of_graphs_have_report_data():
    graphs, y = make_motif_graphs(30, random_state=0)
    search = FDGNNSearchCV(
        FDGNNClassifier(n_estimators=2), n_configurations=1, cv=2, random_state=0
    )
    search.fit(graphs, y)
    found = report_data(search, list(graphs), y, dataset="motifs", unseen=True)
    assert sum(one.n_estimators for one in found.base_models) == 2
    assert found.predictions == "unseen"
    assert found.parameters["alpha"] == search.best_params_["alpha"]


def test_without_networkx_the_extra_is_named_before_any_work(monkeypatch):
    graphs, y, model = of_kind("two classes")
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(MissingDependencyError, match="extra 'plot'"):
        report_data(model, graphs, y, dataset="x")


def test_settings_show_whatever_the_parameters_are():
    encoder = GraphReservoir(n_units=7)
    model = GraphClassifier(encoder, n_estimators=np.int64(1)).fit(GRAPHS, Y)
    found = report_data(model, GRAPHS, Y, dataset="motifs").parameters
    assert found["encoder"] == "GraphReservoir(n_units=7)"
    assert found["n_estimators"] == 1


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
def test_any_encoder_has_report_data(encoder, tmp_path):
    graphs, y = make_motif_graphs(40, random_state=0)
    model = GraphClassifier(encoder, probability=True, random_state=0).fit(graphs, y)
    found = report_data(model, graphs, y, dataset="other")
    assert found.dynamics is None
    assert f"is shown: {type(encoder).__name__}." in found.model
    assert found.parameters["encoder"] == repr(encoder)
    assert np.trace(found.confusion) == (model.predict(graphs) == y).sum()
    write_report_data(tmp_path / "report.json", [found])
    assert read_report_data(tmp_path / "report.json") == [found]


def test_names_that_are_no_text_are_written(tmp_path):
    graphs, y, model = of_kind("two classes")
    ids = [f"\udcff{i}" for i in range(40)]
    found = report_data(model, graphs, y, dataset="a \udcff b", ids=ids)
    write_report_data(tmp_path / "report.json", [found])
    assert (found.dataset, found.graphs[3].id) == ("a ? b", "?3")


def test_importing_costs_nothing_that_is_not_used():
    script = "import sys, fdgnn.html.collect, fdgnn.plot; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"networkx", "rdkit", "matplotlib", "torch"}


@pytest.mark.real_data("MUTAG")
def test_atoms_of_known_molecules_are_named():
    graphs, y = load_tu("MUTAG")
    model = FDGNNClassifier(n_layers=1, n_units=50, random_state=0).fit(graphs, y)
    made = report_data(model, graphs, y, dataset="MUTAG")
    assert (made.data.labels.names[0], made.data.labels.totals[0]) == ("C", 2395)
    assert set(made.drawings[0].labels) <= {"C", "N", "O"}
    other = report_data(model, graphs[:50], y[:50], dataset="MUTAG")  # no longer that set
    assert other.data.labels.names[0] == "0"

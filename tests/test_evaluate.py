"""`fdgnn evaluate`: classes and numbers, one target and several, published splits, reports."""

from __future__ import annotations

import csv
import json
import pathlib
import shutil
from dataclasses import replace

import numpy as np
import pytest
from sklearn import metrics
from sklearn.base import clone

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    AutoGraphRegressor,
    FDGNNSearchCV,
    GraphClassifier,
    as_batch,
    explain,
    read_graphs,
)
from fdgnn.datasets import load_tu, make_motif_graphs, make_random_graphs
from fdgnn.encoders import GraphKind
from fdgnn.evaluation.record import Evaluation
from fdgnn.evaluation.run import EvaluationTask, evaluate, read_evaluations
from fdgnn.evaluation.splits import read_splits
from fdgnn.exceptions import StudyError
from fdgnn.folds import N_FOLDS, TEST, TRAIN, Split
from fdgnn.html.report_data import read_report_data
from fdgnn.records import decode
from fdgnn.seeds import seed_sequence
from fdgnn.targets import read_targets
from fdgnn.tasks import one_target
from fdgnn.training import NestedEvaluation, TrainingOptions, new_model
from methods_here import run_here
from tu_files import write_batch

# Reservoirs of an ensemble have fixed parameters; some small graphs converge slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

N = 60
WORDS = ("--target", "size", "--model", "wl")


def labeled_graphs(n=70, seed=0):
    """Graphs with labels; classes depend on them, with noise, so that base models differ."""
    graphs = make_random_graphs(n, random_state=seed)
    rng = np.random.default_rng(seed)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) > 4
    return graphs, np.where(rng.random(n) < 0.2, rng.random(n) < 0.5, y).astype(int)


def nested(graphs, y, classify=True, *, seed=0, split=None, **options):
    targets = read_targets(y, graphs, classify)
    asked = TrainingOptions(seed=seed, split=split or Split(), **options).with_defaults(targets)
    folds = asked.split.nested(targets, seed=seed)
    return NestedEvaluation(EvaluationTask("x", graphs, targets, folds, seed=seed), asked)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_batch(tmp_path_factory.mktemp("tu") / "NOISY", *labeled_graphs())


@pytest.fixture(scope="module")
def classes(folder):
    """The directory of a finished evaluation of classes, and what the command printed."""
    out = folder.with_name("run")
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", out)
    assert run.returncode == 0, run.stderr
    return out, run


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table of graphs; `size` is planted in labels, and `few` are a few whole numbers."""
    graphs = make_random_graphs(N, n_labels=2, density=0.05, random_state=0)
    path = tmp_path_factory.mktemp("data") / "planted.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        names = ["size", "other", "few", "batch", "word"]
        writer.writerow(["edge_index", "node_feat", "num_nodes", *names])
        for i, graph in enumerate(graphs):
            arcs, labels = np.asarray(graph.edge_index), graph.labels
            size = np.sum(labels == 0) + 0.31 * np.sum(labels == 1)
            other = "" if i % 5 == 0 else size / 2 + 0.01 * (i % 3)
            facts = [len(labels), size, other, len(labels) // 7, f"b{i % 8}", "ab"[i % 2]]
            writer.writerow([json.dumps(arcs.tolist()), json.dumps(labels.tolist()), *facts])
    return path


@pytest.fixture(scope="module")
def numbers(data, tmp_path_factory):
    """The directory of a finished evaluation of numbers, and what the command printed."""
    out = tmp_path_factory.mktemp("runs") / "run"
    run = fdgnn("evaluate", data, *WORDS, "--out", out)
    assert run.returncode == 0, run.stderr
    return out, run


@pytest.fixture(scope="module")
def table(data):
    return read_graphs(data, target="size", columns=["batch"])


def result_of(path):
    (found,) = read_evaluations(path)
    return found


# ---------------------------------------------------------------------- scores


def test_an_ensemble_of_classes(folder, classes):
    out, run = classes
    found = result_of(out)
    assert (found.dataset, found.model.name, found.n_graphs) == ("NOISY", "auto", 70)
    assert (found.status, found.task, found.protocol.scoring) == (
        "finished", "classification", "accuracy",
    )  # fmt: skip
    assert len(found.model.base_models) == len(found.base_models) > 1
    assert len(found.folds) == found.protocol.n_outer == 10
    assert found.score > 0.55
    for metric in ("accuracy", "balanced_accuracy", "roc_auc"):
        own, constant = found.by(metric), found.baseline("constant", metric)
        assert f"{own.mean:.3f} ± {own.std:.3f}" in run.stdout
        assert f"{constant.mean:.3f} ± {constant.std:.3f}" in run.stdout
        assert own.mean > constant.mean
    assert all(
        fold.kept and set(fold.kept) <= set(range(len(found.base_models))) for fold in found.folds
    )
    assert all(f"{one.name} " in run.stdout for one in found.base_models)
    assert "averaged in" in run.stdout
    assert str(folder) in found.command


def test_a_planted_number_is_found(numbers):
    out, run = numbers
    found = result_of(out)
    assert (found.dataset, found.n_graphs, len(found.folds)) == ("planted", N, 10)
    assert (found.task, found.protocol.scoring) == ("regression", "r2")
    assert found.score > 0.9
    assert found.by("spearman").mean > 0.9
    assert max(one.score for one in found.base_models) > 0.9
    assert found.baseline("constant", "rmse").mean > 3 * found.by("rmse").mean
    for words in ("R2", "RMSE", "mean absolute error", "Spearman", "averaged in", "random split"):
        assert words in run.stdout
    assert f"{found.score:.3f} ± {found.std:.3f}" in run.stdout


@pytest.mark.parametrize("scoring", ["r2", "rmse", "mae", "spearman"])
def test_scores_are_those_of_a_search_in_the_same_folds(table, tmp_path, scoring):
    evaluator = nested(table.graphs, table.y, False, model="wl", scoring=scoring)
    run = evaluate(evaluator, tmp_path / "run")
    cv, _ = Split().splitters(N_FOLDS, evaluator.task.targets, seed=0)
    model = AutoGraphRegressor("wl", random_state=0, scoring=scoring)
    search = FDGNNSearchCV(model, cv=cv, outer_cv=10, random_state=0)
    search.fit(table.graphs, table.y)
    folds = evaluator.task.folds
    np.testing.assert_array_equal(search.nested_folds_, folds)
    sign = -1 if scoring in ("rmse", "mae") else 1
    own = run.evaluation.by(scoring).folds
    np.testing.assert_allclose(own, sign * search.nested_scores_, rtol=1e-9)
    # By scikit-learn, from the predictions of models that have not seen the graphs.
    predicted = run.predictions.last()[:, 0]
    for name, score in (
        ("rmse", metrics.root_mean_squared_error),
        ("mae", metrics.mean_absolute_error),
    ):
        each = [score(table.y[fold == TEST], predicted[fold == TEST]) for fold in folds]
        assert run.evaluation.by(name).mean == pytest.approx(np.mean(each))


def test_the_default_model_of_a_table_is_auto(data, tmp_path):
    out = tmp_path / "run"
    words = ["--target", "size", "--scoring", "rmse", "--no-report", "--json", "-q"]
    run = fdgnn("evaluate", data, *words, "--out", out)
    assert run.returncode == 0, run.stderr
    found = decode(run.stdout, Evaluation)
    assert found == result_of(out)
    assert (found.model.name, found.protocol.scoring) == ("auto", "rmse")
    assert len(found.model.base_models) > 1
    assert run.stderr == ""


def test_several_targets_have_scores_each(data, tmp_path):
    out = tmp_path / "run"
    words = ["--target", "size", "--target", "other", "--model", "wl", "--json", "-q"]
    run = fdgnn("evaluate", data, *words, "--out", out)
    assert run.returncode == 0, run.stderr
    found = decode(run.stdout, Evaluation)
    assert [(one.name, one.n_known) for one in found.targets] == [("size", N), ("other", 48)]
    for target in found.targets:
        assert target.by("r2").mean > 0.8
        assert target.by("r2").std is not None
        assert target.baseline("constant").by("r2").mean < 0.1
    assert found.score == pytest.approx(np.mean([t.by("r2").mean for t in found.targets]))
    pytest.importorskip("vl_convert")
    reported = read_report_data(out / "report.json")
    assert [one.target for one in reported] == ["size", "other"]
    page = (out / "report.html").read_text()
    assert "planted, size" in page
    assert "planted, other" in page


def test_few_whole_numbers_are_classes_unless_told_otherwise(data, tmp_path):
    words = ["--target", "few", "--model", "wl", "--scoring", "mae", "--out", tmp_path / "run"]
    assert_one_clear_line(fdgnn("evaluate", data, *words), "--scoring mae", "--task")
    run = fdgnn("evaluate", data, *words, "--task", "regression", "--json", "-q", "--no-report")
    assert run.returncode == 0, run.stderr
    assert decode(run.stdout, Evaluation).by("r2").mean > 0.7


def test_a_rare_class_is_evaluated_as_it_is_fitted(tmp_path):
    """By ROC AUC, with a threshold that each outer fold chose without its test graphs."""
    graphs, y = make_motif_graphs(160, random_state=2)
    rare = np.flatnonzero((y == 0) | (np.cumsum(y) <= 6))
    folder = write_batch(tmp_path / "RARE", graphs[rare], y[rare])
    words = ["evaluate", folder, "--model", "wl", "--no-report", "--out"]
    run = fdgnn(*words, tmp_path / "run")
    assert run.returncode == 0, run.stderr
    assert "models are selected by ROC AUC, and the decision threshold by the F1" in run.stderr
    assert run.stdout.splitlines()[2].startswith("ROC AUC")  # the headline
    found = result_of(tmp_path / "run")
    assert (found.protocol.scoring, found.protocol.threshold) == ("roc_auc", "f1")
    evaluator = nested(*load_tu(folder), model="wl", scoring="roc_auc")
    uncut = replace(evaluator, options=replace(evaluator.options, threshold=None))
    plain = evaluate(uncut, tmp_path / "plain").evaluation
    assert [fold.alphas for fold in plain.folds] == [fold.alphas for fold in found.folds]
    assert plain.score == found.score
    assert plain.by("balanced_accuracy").mean < found.by("balanced_accuracy").mean
    weighted = fdgnn(
        *words, tmp_path / "weighted", "--class-weight", "balanced", "-q", "--scoring", "f1"
    )
    assert weighted.returncode == 0, weighted.stderr
    assert f"F1  {result_of(tmp_path / 'weighted').score:.3f}" in " ".join(
        weighted.stdout.split()
    ).replace("F1 ", "F1  ", 1)
    again = fdgnn(*words, tmp_path / "run", "--class-weight", "balanced")
    assert_one_clear_line(again, "class_weight")
    bad = fdgnn(*words, tmp_path / "bad", "--threshold", "nope")
    assert_one_clear_line(bad, "expected one of accuracy, balanced_accuracy, f1")
    paper = fdgnn("evaluate", folder, "--threshold", "f1", "--out", tmp_path / "bad")
    assert_one_clear_line(paper, "--threshold is not for --model paper")


def test_an_ensemble_is_chosen_by_the_scoring(folder, classes, tmp_path):
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", tmp_path / "run", "--scoring",
                "roc_auc", "--no-report", "-q")  # fmt: skip
    assert run.returncode == 0, run.stderr
    by_area, by_accuracy = result_of(tmp_path / "run"), result_of(classes[0])
    assert by_area.metrics[0].metric == "roc_auc"
    assert [f.alphas for f in by_area.folds] != [f.alphas for f in by_accuracy.folds]
    other = fdgnn("evaluate", folder, "--model", "auto", "--out", tmp_path / "run", "-q")
    assert_one_clear_line(other, "scoring = roc_auc, not accuracy")
    paper = fdgnn("evaluate", folder, "--scoring", "roc_auc", "--out", tmp_path / "p", "-q")
    assert "--scoring is not for --model paper" in paper.stderr


def test_a_score_that_is_not_defined_is_none(table, tmp_path):
    """Where each outer fold tests equal targets there is no R2, but there are errors."""
    split = Split("group", np.array(table.columns["batch"], dtype=object), "batch")
    folds = split.nested(read_targets(table.y, table.graphs, False), seed=1)
    y = np.argmax(folds == TEST, axis=0).astype(float)
    given = {"seed": 1, "split": split, "model": "wl"}
    evaluator = nested(table.graphs, y, False, scoring="rmse", **given)
    found = evaluate(evaluator, tmp_path / "rmse").evaluation
    assert (found.by("r2").mean, found.by("spearman").mean) == (None, None)
    assert min(found.by("rmse").mean, found.by("mae").mean) > 0
    assert result_of(tmp_path / "rmse") == found
    with pytest.raises(ValueError, match="no outer fold can be scored"):
        evaluate(nested(table.graphs, y, False, scoring="r2", **given), tmp_path / "r2")


# ---------------------------------------------------------------------- splits


def test_groups_are_held_out_together(data, table, tmp_path):
    out = tmp_path / "run"
    words = [*WORDS, "--split", "group", "batch", "--json", "-q", "--out", out, "--no-report"]
    run = fdgnn("evaluate", data, *words)
    assert run.returncode == 0, run.stderr
    found = decode(run.stdout, Evaluation)
    assert (found.protocol.split, len(found.folds)) == ("split by group (batch)", 4)
    batch = np.array(table.columns["batch"], dtype=object)
    folds = nested(
        table.graphs, table.y, False, split=Split("group", batch, "batch"), model="wl"
    ).task.folds
    for fold in folds:
        assert not set(batch[fold == TEST]) & set(batch[fold >= 0])
        for inner in range(fold.max() + 1):
            assert not set(batch[fold == inner]) & set(batch[(fold >= 0) & (fold != inner)])
    assert (folds == TEST).sum(axis=0).tolist() == [1] * N
    assert [fold.n_test for fold in found.folds] == (folds == TEST).sum(axis=1).tolist()


def test_molecules_of_a_scaffold_are_held_out_together(tmp_path):
    pytest.importorskip("rdkit")
    rings = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1", "c1ccncc1"]
    rows = [f"{'C' * n}O{ring},{0.5 * n}" for ring in rings for n in range(1, 9)]
    path = tmp_path / "ethers.csv"
    path.write_text("smiles,length\n" + "\n".join(rows) + "\n")
    words = ["--target", "length", "--task", "regression", "--split", "scaffold", "--json", "-q"]
    run = fdgnn("evaluate", path, *words, "--model", "wl", "--out", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    found = decode(run.stdout, Evaluation)
    assert (found.protocol.split, len(found.folds)) == ("scaffold split", 3)
    assert found.score > 0.9
    assert found.baseline("morgan", "r2").std is not None
    page = (tmp_path / "run" / "report.html").read_text()
    assert "mean of 3 outer folds, scaffold split" in page
    other = fdgnn("evaluate", path, *words[:4], "--model", "wl", "--out", tmp_path / "run")
    assert_one_clear_line(other, "split = scaffold split, not random split")


@pytest.mark.parametrize(
    ("n", "n_outer", "n_inner"), [(8, 2, 2), (20, 2, 2), (30, 6, 5), (60, 10, 5), (500, 10, 5)]
)
def test_folds_of_numbers_have_some_graphs_each(n, n_outer, n_inner):
    y = np.random.default_rng(0).normal(size=n)
    targets = one_target(y, "regression")
    folds = Split().nested(targets)
    assert (len(folds), folds.max() + 1) == (n_outer, n_inner)
    assert (folds == TEST).sum(axis=0).tolist() == [1] * n
    smallest = min(np.bincount(fold[fold >= 0]).min() for fold in folds)
    assert smallest >= min(4, n // 4)


@pytest.mark.parametrize("fewest", [4, 9, 10, 11, 23])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_inner_folds_do_not_change_the_outer_ones(fewest, task):
    """So that `compare`, whose methods select by ten inner folds, tests as `evaluate` does."""
    y = np.repeat([0, 1], [fewest, 23]) if task == "classification" else np.arange(2 * fewest)
    targets = one_target(y, task)
    folds, other = Split().nested(targets, seed=3), Split().nested(targets, 10, 10, seed=3)
    np.testing.assert_array_equal(folds == TEST, other == TEST)
    assert other.max() >= folds.max()


@pytest.mark.parametrize("n", [46, 60])
def test_commands_have_the_same_outer_folds(n, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = data.read_text().splitlines()
    pathlib.Path("some.csv").write_text("\n".join(lines[: n + 1]) + "\n")
    words = ("some.csv", "--target", "size", "--no-report", "-q", "--out")
    assert fdgnn("evaluate", *words, "one", "--model", "wl").returncode == 0
    monkeypatch.setattr("fdgnn.evaluation.comparison.run_in_process", run_here)
    assert fdgnn("compare", *words, "other", "--with", "labels-rf").returncode == 0
    sizes = [
        [(fold.n_train, fold.n_test) for fold in result_of(pathlib.Path(name)).folds]
        for name in ("one", "other")
    ]
    assert sizes[0] == sizes[1]


def splits_of(n, n_outer=4, n_valid=6):
    """Published splits in the format of Errica et al."""
    order = np.random.default_rng(0).permutation(n)
    found = []
    for test in np.array_split(order, n_outer):
        rest = np.setdiff1d(order, test)
        inner = {"train": rest[n_valid:].tolist(), "validation": rest[:n_valid].tolist()}
        found.append({"test": test.tolist(), "model_selection": [inner]})
    return found


def test_published_splits_train_select_and_test_as_published(tmp_path):
    """By hand: alpha is the best on validation graphs, then training takes both."""
    graphs, y = labeled_graphs()
    splits = splits_of(70)
    (tmp_path / "splits.json").write_text(json.dumps(splits))
    folds = read_splits(tmp_path / "splits.json", 70)
    assert [np.flatnonzero(row == TEST).tolist() for row in folds] == [
        sorted(one["test"]) for one in splits
    ]
    evaluator = nested(graphs, y, model="wl")
    task = replace(evaluator.task, folds=folds)
    run = evaluate(replace(evaluator, task=task), tmp_path / "run")
    base = new_model(evaluator.options, True)._base_models(
        GraphKind.of(graphs), 70, seed_sequence(0)
    )[0]
    alphas = base.readout.grid(70, True)
    for row, fold in enumerate(run.evaluation.folds):
        inner = splits[row]["model_selection"][0]
        train, valid = np.array(inner["train"]), np.array(inner["validation"])
        assert (fold.n_train, fold.n_test) == (len(train) + len(valid), len(splits[row]["test"]))

        def score(alpha, train=train, valid=valid):
            readout = clone(base.readout).set_params(alpha=alpha)
            model = GraphClassifier(clone(base.encoder), readout).fit(graphs[train], y[train])
            return model.score(graphs[valid], y[valid])

        assert score(fold.alphas[0]) == max(map(score, alphas))
    n_train = [one.n_train for one in run.evaluation.folds]
    assert ((folds == TRAIN).sum(axis=1) + 6).tolist() == n_train


@pytest.mark.parametrize("model", ["wl", "paper"])
def test_published_splits_from_the_command_line(folder, tmp_path, model):
    (tmp_path / "splits.json").write_text(json.dumps(splits_of(70)))
    few = ["--configurations", 2, "--initializations", 2] if model == "paper" else []
    words = ["evaluate", folder, "--model", model, "--splits", tmp_path / "splits.json", *few]
    run = fdgnn(*words, "--out", tmp_path / "run", "--json", "-q")
    assert run.returncode == 0, run.stderr
    found = decode(run.stdout, Evaluation)
    assert found.protocol.split == "published splits (splits.json)"
    assert (found.protocol.n_outer, found.protocol.n_inner) == (4, 1)
    assert found.score > 0.5
    pytest.importorskip("vl_convert")
    assert "published splits" in (tmp_path / "run" / "report.html").read_text()


def without_last(fold):
    def others(parts):
        return {name: [g for g in part if g != 69] for name, part in parts.items()}

    return others({"test": fold["test"]}) | {
        "model_selection": [others(each) for each in fold["model_selection"]]
    }


@pytest.mark.parametrize(("change", "told"), [
    (lambda s: s[:1], "at least two outer folds"),
    (lambda s: [{**s[0], "test": [70]}, *s[1:]], "names graph 70, but there are 70 graphs"),
    (lambda s: [{**s[0], "test": s[1]["test"]}, *s[1:]], "tests graphs that it trains on"),
    (lambda s: [s[0], s[0]], "tested in two folds"),
    (lambda s: [{**s[0], "model_selection": []}, *s[1:]], "no `model_selection`"),
    (lambda s: [{"test": s[0]["test"]}, *s[1:]], "missing required field `model_selection`"),
    (lambda s: [{**s[0], "test": [-1]}, *s[1:]], "damaged"),
    (lambda s: [{**s[0], "test": s[0]["test"] * 2}, *s[1:]], "named twice"),
    (lambda s: [{**each, **without_last(each)} for each in s], "1 of 70 graphs are in no fold"),
])  # fmt: skip
def test_splits_that_are_not_valid_are_rejected(folder, tmp_path, change, told):
    path = tmp_path / "splits.json"
    path.write_text(json.dumps(change(splits_of(70))))
    with pytest.raises(StudyError, match=told):
        read_splits(path, 70)
    run = fdgnn("evaluate", folder, "--splits", path, "--model", "wl", "--out", tmp_path / "run")
    assert_one_clear_line(run, "splits.json")
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------------- reports


@pytest.fixture(scope="module")
def shown(classes):
    pytest.importorskip("vl_convert")
    (data,) = read_report_data(classes[0] / "report.json")
    return data


def test_evaluate_writes_a_report(classes, shown, tmp_path):
    out, run = classes
    assert f"HTML report: {out / 'report.html'}" in run.stderr
    page = (out / "report.html").read_text()
    assert 'id="base-models-0"' in page
    assert 'id="map-0"' in page
    assert shown.command == result_of(out).command
    # Once more from the directory alone, as it is and without its report data.
    alone = shutil.copytree(out, tmp_path / "run")
    again = fdgnn("report", alone, "-o", tmp_path / "again.html")
    assert again.returncode == 0, again.stderr
    assert 'id="map-0"' in (tmp_path / "again.html").read_text()
    (alone / "report.json").unlink()
    bare = fdgnn("report", alone, "-o", tmp_path / "bare.html")
    assert bare.returncode == 0, bare.stderr
    assert 'id="map-0"' not in (tmp_path / "bare.html").read_text()
    assert 'id="base-models-0"' in (tmp_path / "bare.html").read_text()


def test_predictions_in_the_report_are_those_of_the_outer_folds(classes, shown):
    found = result_of(classes[0])
    assert shown.predictions == "out of fold"
    for fold, accuracy in enumerate(found.by("accuracy").folds, start=1):
        right = [row.correct for row in shown.graphs if row.fold == fold]
        assert np.mean(right) == pytest.approx(accuracy)
    assert np.sum(shown.confusion) == 70
    assert np.trace(shown.confusion) == sum(row.correct for row in shown.graphs) < 70


def test_vertices_in_the_report_speak_for_what_was_predicted(folder, shown):
    graphs, y = load_tu(folder)
    run = nested(graphs, y, model="auto").run(None, context=_quiet())
    model = run.model.fit(graphs, y)
    assert [one.name for one in shown.base_models] == [n.name for n in model.estimators_]
    own = model.predict(graphs).astype(str)
    changed = [row.graph for row in shown.graphs if row.predicted != own[row.graph]]
    assert changed  # graphs of which the model, trained on them, predicts otherwise
    drawn = {d.graph: d for d in shown.drawings}
    for g in [*changed[:3], 0, 1]:
        target = y.dtype.type(shown.graphs[g].predicted)
        (why,) = explain(model, graphs[[g]], target=target)
        expected = why.vertices - why.vertices.mean()
        np.testing.assert_allclose(drawn[g].attributions, expected, rtol=6e-3, atol=1e-9)


def _quiet():
    from fdgnn.context import Context

    return Context()


def test_probabilities_are_calibrated_without_the_test_graphs(folder):
    graphs, y = load_tu(folder)
    run = nested(graphs, y, model="wl").run(None, _quiet())
    chances = run.probabilities(0)
    fold = run.task.folds[3]
    outputs = run.predictions.outputs.copy()
    outputs[3, fold == TEST] *= -1  # its test graphs do not change the slope
    changed = replace(run, predictions=replace(run.predictions, outputs=outputs))
    np.testing.assert_allclose(
        changed.probabilities(0)[fold == TEST], chances[fold == TEST][:, ::-1]
    )


def test_a_report_of_numbers(numbers):
    out, run = numbers
    assert f"HTML report: {out / 'report.html'}" in run.stderr
    page = (out / "report.html").read_text()
    for part in ('id="map-0"', 'id="base-models-0"', "R2", "RMSE"):
        assert part in page
    (shown,) = read_report_data(out / "report.json")
    assert (shown.task, shown.predictions) == ("regression", "out of fold")
    assert shown.scores["r2"] > 0.9
    assert {row.fold for row in shown.graphs} == set(range(1, 11))


@pytest.mark.parametrize("transform", ["log10", "pIC50"])
def test_a_report_of_a_transform_has_its_scale_once(data, table, tmp_path, transform):
    with data.open(newline="") as file:
        rows = list(csv.DictReader(file))
    nanomolar = 10.0 ** -np.asarray(table.y, dtype=np.float64)  # below 1, so no log10 twice
    path, out = tmp_path / "ic50.csv", tmp_path / "run"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "ic50"])
        writer.writeheader()
        writer.writerows(
            row | {"ic50": repr(value)} for row, value in zip(rows, nanomolar.tolist(), strict=True)
        )
    words = ["--target", "ic50", "--model", "wl", "--transform", transform, "--out", out]
    run = fdgnn("evaluate", path, *words)
    assert run.returncode == 0, run.stderr
    (shown,) = read_report_data(out / "report.json")
    (target,) = result_of(out).targets
    expected = {each.metric: each.mean for each in target.scores}
    assert shown.scores["mae"] == pytest.approx(expected["mae"], rel=0.2)


def test_evaluate_without_a_report(folder, classes, tmp_path):
    whole = shutil.copytree(classes[0], tmp_path / "run")
    for name in ("report.json", "report.html"):
        (whole / name).unlink()
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", whole, "--no-report", "--json")
    assert run.returncode == 0, run.stderr
    assert not (whole / "report.json").exists()
    assert not (whole / "report.html").exists()
    found = decode(run.stdout, Evaluation)
    assert found.times.n_resumed == len(found.base_models)


@pytest.mark.parametrize("what", ["classes", "numbers"])
def test_out_of_fold_predictions_are_kept(what, request):
    out, _ = request.getfixturevalue(what)
    found = result_of(out)
    with (out / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found.n_graphs
    for number in (1, 5):
        own = [row for row in rows if row["fold"] == str(number)]
        assert len(own) == found.folds[number - 1].n_test
        if what == "classes":
            score = np.mean([row["prediction"] == row["target"] for row in own])
            for row in own:
                chances = {name: float(row[f"probability_{name}"]) for name in "01"}
                assert max(chances, key=chances.get) == row["prediction"]
                assert sum(chances.values()) == pytest.approx(1)
        else:
            score = metrics.r2_score(
                [float(row["target"]) for row in own], [float(row["prediction"]) for row in own]
            )
        assert score == pytest.approx(found.metrics[0].folds[number - 1])


# ---------------------------------------------------------------------- run directories


@pytest.mark.parametrize(("words", "told"), [
    (["--scoring", "mae"], "scoring = r2, not mae"),
    (["--seed", "1"], "seed = 0, not 1"),
    (["--target", "few"], "holds a run with data ="),
    (["--split", "group", "batch"], "split = random split, not split by group (batch)"),
])  # fmt: skip
def test_another_run_is_not_continued(data, numbers, tmp_path, words, told):
    whole = shutil.copytree(numbers[0], tmp_path / "run")
    target = [] if "--target" in words else ["--target", "size"]
    run = fdgnn("evaluate", data, *target, "--model", "wl", "--out", whole, *words)
    assert_one_clear_line(run, told)
    assert result_of(whole) == result_of(numbers[0])


def test_a_directory_with_other_files_is_rejected(folder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    used = fdgnn("evaluate", folder, "--model", "auto", "--out", other)
    assert_one_clear_line(used, "not those of a run")
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("n_graphs", [8, 12, 30, 60])
@pytest.mark.parametrize("kind", ["random", "group"])
def test_outer_folds_of_evaluate_and_compare_are_the_same(n_graphs, kind):
    """They differ in the number of inner folds only: 5 and 10."""
    y = np.random.default_rng(0).normal(size=n_graphs)
    split = Split() if kind == "random" else Split("group", np.arange(n_graphs) // 2, "lab")
    five, ten = (split.nested(one_target(y, "regression"), 10, n_inner) for n_inner in (5, 10))
    np.testing.assert_array_equal(five == TEST, ten == TEST)


# ---------------------------------------------------------------------- what is rejected


@pytest.mark.parametrize(("words", "told"), [
    (["--target", "size", "--scoring", "roc_auc"], "--scoring roc_auc is for classification"),
    (["--target", "word", "--scoring", "r2"], "--scoring r2: for classification, expected one"),
    (["--target", "size", "--scoring", "nonsense"], "--scoring nonsense: expected one of accuracy"),
    (["--target", "size", "--model", "paper"], "choose --model auto"),
    (["--target", "word", "--task", "regression"], "target is not a number"),
    (["--target", "size", "--split", "time", "batch"], "--split time is for fit"),
    (["--target", "word", "--split", "group", "batch", "--model", "paper"], "--split is not for"),
    (["--target", "size", "--splits", "x.json", "--split", "group", "batch"], "leave --split out"),
    (["--target", "size", "--target", "word"], "is a classification target and"),
])  # fmt: skip
def test_what_cannot_be_evaluated_is_one_clear_line(data, tmp_path, words, told):
    out = tmp_path / "run"
    assert_one_clear_line(fdgnn("evaluate", data, *words, "--out", out), told)
    assert not out.exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--configurations", "2"], ["--initializations", "1"], ["--units", "10"],
        ["--protocol", "quick"],
        ["--cluster", "local"],
    ],
)  # fmt: skip
def test_options_of_the_papers_model_are_rejected(folder, tmp_path, words):
    run = fdgnn("evaluate", folder, "--model", "union", "--out", tmp_path / "run", *words)
    assert_one_clear_line(run, f"{words[0]} is for --model paper", "--model union")
    assert not (tmp_path / "run").exists()


def test_a_word_is_not_said_to_be_a_number(data, tmp_path):
    words = ["--target", "word", "--scoring", "r2", "--out", tmp_path / "run"]
    assert "--task" not in fdgnn("evaluate", data, *words).stderr


def test_targets_that_teach_nothing_are_rejected(table):
    with pytest.raises(ValueError, match="one value only"):
        nested(table.graphs, np.ones(N), False, model="wl")
    with pytest.raises(ValueError, match="7 graphs are too few"):
        nested(table.graphs[np.arange(7)], table.y[:7], False, model="wl")
    holes = np.where(np.arange(N) == 3, np.nan, table.y)
    with pytest.raises(ValueError, match=r"y\[3\] is NaN"):
        nested(table.graphs, holes, False, model="wl")


def test_a_text_among_numbers_is_named(data, tmp_path):
    lines = data.read_text().splitlines()
    column = lines[0].split(",").index("size")
    rows = list(csv.reader(lines))
    rows[3][column] = "n.d."
    path = tmp_path / "censored.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    run = fdgnn("evaluate", path, "--target", "size", "--out", tmp_path / "run")
    assert_one_clear_line(run, "inferred to be classes because 'n.d.' is not a number")


def test_a_table_that_is_not_there_and_a_small_class(tmp_path):
    gone = fdgnn("evaluate", tmp_path / "gone.csv", "--target", "y", "--out", tmp_path / "run")
    assert_one_clear_line(gone, "gone.csv: no such file or folder")
    graphs = as_batch(list(make_motif_graphs(35, random_state=0)[0]))
    y = np.repeat([0, 1], [29, 6])
    folds = nested(graphs, y, model="wl").task.folds
    assert len(folds) == 6  # as many as the class has graphs, rather than ten


def test_a_tu_dataset_has_no_scaffolds(folder, tmp_path):
    words = ["--model", "auto", "--split", "scaffold", "--out", tmp_path / "run"]
    assert_one_clear_line(fdgnn("evaluate", folder, *words), "is for tables, and this is a TU")
    assert_one_clear_line(fdgnn("evaluate", folder, "--target", "y", *words), "--target is for")

"""Fingerprints and descriptors of molecules beside FDGNN, for classes and for numbers."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from commands import assert_one_clear_line, fdgnn
from fdgnn import as_batch, compare
from fdgnn.cli import app
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.baselines import Search, new_method
from fdgnn.evaluation.molecules import (
    linear_model,
    morgan_counts,
    murcko_scaffolds,
    simple_predictions,
)
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.folds import Split, nested_folds
from fdgnn.graphs.smiles import SmilesColumn
from fdgnn.targets import read_targets
from tu_files import write_batch

Chem = pytest.importorskip("rdkit.Chem", reason="molecules need RDKit: extra 'chem'")

HEADS = ("C", "CC", "CCC", "CC(C)C", "c1ccccc1", "C1CCCC1", "C1CCCCC1", "CCOC", "CCSC", "FCC")
TAILS = ("C", "N", "O", "C(=O)O", "C#N")
SMILES = [head + tail for head in HEADS for tail in TAILS]
Y = np.array([int("O)O" in smiles or "N" in smiles) for smiles in SMILES])
MASSES = np.array([len(smiles) + 3.0 * ("O" in smiles) for smiles in SMILES])


@pytest.fixture(scope="module")
def task():
    graphs = as_batch(SMILES)
    targets = read_targets(Y, graphs, True)
    return EvaluationTask("mine", graphs, targets, nested_folds(Y, 3, 3, seed=0))


@pytest.fixture(scope="module")
def masses(task):
    targets = read_targets(MASSES, task.graphs, False)
    return replace(task, targets=targets, folds=Split().nested(targets, 3, 3))


def test_counts_of_parsed_molecules_are_those_of_their_smiles():
    parsed = morgan_counts([Chem.MolFromSmiles(one) for one in SMILES])
    assert (parsed != morgan_counts(SMILES)).nnz == 0


def test_what_rdkit_says_of_molecules_is_not_said_again(capfd):
    Chem.MolFromSmiles("[H+].CCO")
    assert "not removing hydrogen" in capfd.readouterr().err
    morgan_counts(["[H+].CCO"])
    murcko_scaffolds(["[H+].CCO"])
    assert capfd.readouterr().err == ""


def test_logistic_regression_is_the_baseline_that_fit_prints(task):
    method = new_method("ecfp-lr", task, Search())
    known = simple_predictions(linear_model, morgan_counts(SMILES), task.targets, task.folds)
    assert method.only == {"C": 1.0}
    for fold, outputs in zip(task.folds, known.outputs, strict=True):
        model = method.model(method.only).fit(method.prepare(fold >= 0), Y[fold >= 0])
        found = method.outputs(model, method.prepare(fold < 0))
        np.testing.assert_allclose(found, outputs[fold < 0])
        assert method.n_parameters(model) == np.count_nonzero(model[-1].coef_) + 1


def test_validation_is_by_what_is_asked_for(task):
    asked = Search(scoring="roc_auc", class_weight="balanced")
    method = new_method("ecfp-lr", task, asked)
    trial = method.score(method.units[0])[0]
    assert trial.configuration == {"C": 1.0, "class_weight": "balanced"}
    X, fold, scores = morgan_counts(SMILES), task.folds[0], []
    for inner in range(3):
        train, valid = (fold >= 0) & (fold != inner), fold == inner
        model = LogisticRegression(max_iter=1000, class_weight="balanced").fit(X[train], Y[train])
        scores.append(roc_auc_score(Y[valid], model.decision_function(X[valid])))
    assert trial.score == pytest.approx(np.mean(scores))
    ensemble = new_method("fdgnn-wl", task, asked)
    model = ensemble.model(ensemble.only)
    assert (model.scoring, model.class_weight) == ("roc_auc", "balanced")


def test_a_forest_has_nothing_to_choose_and_is_the_same_again(task):
    method = new_method("ecfp-rf", task, Search())
    assert method.units == []
    models = [method.model({"n_estimators": 20}).fit(SMILES[::2], Y[::2]) for _ in range(2)]
    first, second = (model.predict(SMILES[1::2]) for model in models)
    np.testing.assert_array_equal(first, second)
    trees = models[0][-1].estimators_
    assert method.n_parameters(models[0]) == sum(tree.tree_.node_count for tree in trees)
    assert np.mean(first == Y[1::2]) > 0.8


def test_boosting_on_descriptors_is_that_of_scikit_learn(masses):
    method = new_method("desc-gb", masses, Search())
    fold = masses.folds[1]
    train, test = np.flatnonzero(fold >= 0), np.flatnonzero(fold < 0)
    model = method.model(method.only).fit(method.prepare(train), MASSES[train])
    X = SmilesColumn(np.array(SMILES, dtype=object), np.empty(0)).descriptors("fast")
    same = HistGradientBoostingRegressor(random_state=0).fit(X[train], MASSES[train])
    np.testing.assert_allclose(
        method.outputs(model, method.prepare(test))[:, 0], same.predict(X[test])
    )
    assert method.n_parameters(model) > 0


@pytest.mark.usefixtures("in_this_process")
def test_numbers_of_molecules_are_compared(monkeypatch):
    monkeypatch.setattr("fdgnn.evaluation.baselines.pipelines.TREES", 20)
    names = ["fdgnn-wl", "labels-rf", "ecfp-lr", "ecfp-rf", "ecfp-gb", "desc-rf", "desc-gb"]
    found = compare(SMILES, MASSES, names, task="regression", n_outer=3, n_inner=2)
    assert [(one.model.name, one.status) for one in found] == [(n, "finished") for n in names]
    for one in found:
        assert (one.task, one.protocol.scoring, len(one.folds)) == ("regression", "r2", 3)
        assert one.std is not None
        assert one.model.n_parameters > 0
    best = {one.model.name: one.score for one in found}
    assert best["desc-rf"] > 0.5
    assert best["ecfp-lr"] > 0.5


@pytest.mark.usefixtures("few_networks", "in_this_process")
def test_molecules_in_code():
    few = {"n_outer": 2, "n_inner": 2, "search": Search(n_configurations=1)}
    found = compare([Chem.MolFromSmiles(one) for one in SMILES], Y, ["ecfp-lr"], **few)
    assert [(one.model.name, one.status) for one in found] == [
        ("paper", "finished"), ("ecfp-lr", "finished"),
    ]  # fmt: skip
    assert found[1].score > 0.6


def written(folder, target=Y, more=""):
    path = folder / "mine.csv"
    rows = [f"{smiles},{value}\n" for smiles, value in zip(SMILES, target, strict=True)]
    path.write_text("smiles,active\n" + "".join(rows) + more)
    return path


@pytest.mark.usefixtures("few_networks", "in_this_process")
def test_a_file_of_molecules_from_the_shell(tmp_path, monkeypatch):
    path = written(tmp_path, more="C1CC,1\n")
    monkeypatch.chdir(tmp_path)
    asked = ["compare", str(path), "--target", "active", "--with", "ecfp-lr"]
    told = CliRunner().invoke(app, [*asked, "--configurations", "1", "--no-report", "--json"])
    assert told.exit_code == 0, told.output
    assert "1 of 51 rows rejected" in told.stderr
    found = json.loads(told.stdout)
    assert [(one["dataset"], one["model"]["name"], one["status"]) for one in found] == [
        ("mine", "paper", "finished"), ("mine", "ecfp-lr", "finished"),
    ]  # fmt: skip
    assert (tmp_path / "runs" / "mine" / "evaluation.json").exists()


@pytest.mark.usefixtures("in_this_process")
def test_a_file_of_numbers_from_the_shell_in_scaffolds(tmp_path, monkeypatch):
    path = written(tmp_path, MASSES + 0.25)
    monkeypatch.chdir(tmp_path)
    words = ["--target", "active", "--with", "ecfp-lr,desc-gb", "--split", "scaffold"]
    told = CliRunner().invoke(app, ["compare", str(path), *words])
    assert told.exit_code == 0, told.output
    assert "R2" in told.stdout
    assert "scaffold split" in told.stdout
    assert (tmp_path / "runs" / "mine" / "report.html").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["MOTIFS", "--with", "ecfp-rf"], "ecfp-rf is for molecules"),
        (["MOTIFS", "--target", "y"], "--target is for tables, and"),
        (["MOTIFS", "--atoms", "rich"], "--atoms is for tables, and"),
        (["mine.csv", "--with", "ecfp-lr"], "no target column is given"),
        (["mine.csv", "--target", "activity"], "activity"),
        (
            ["mine.csv", "--target", "active", "--target", "smiles"],
            "compare takes one",
        ),
        (["numbers.csv", "--target", "active", "--with", "wl"], "wl is for classification"),
        (["numbers.csv", "--target", "active", "--scoring", "roc_auc"], "scoring roc_auc"),
        (["mine.csv", "--target", "active", "--split", "time", "x"], "--split time is for fit"),
    ],
)
def test_what_cannot_be_compared_is_one_clear_line(tmp_path, options, words):
    write_batch(tmp_path / "MOTIFS", *make_motif_graphs(20, random_state=0))
    written(tmp_path, np.linspace(0, 1, len(Y))).rename(tmp_path / "numbers.csv")
    written(tmp_path)
    data, *others = options
    out = tmp_path / "run"
    assert_one_clear_line(fdgnn("compare", tmp_path / data, *others, "--out", out), words)
    assert not out.exists()

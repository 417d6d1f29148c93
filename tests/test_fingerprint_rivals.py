"""Molecules in a comparison: Morgan fingerprints as rivals, and files with SMILES."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from typer.testing import CliRunner

from commands import assert_one_clear_line, fdgnn
from fdgnn import as_batch, compare
from fdgnn.cli import app
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.baselines import Task, contestant
from fdgnn.evaluation.comparison import Search
from fdgnn.evaluation.measures import fit_and_test
from fdgnn.evaluation.molecules import morgan_counts, morgan_predictions, murcko_scaffolds
from fdgnn.folds import nested_folds
from fdgnn.targets import read_targets
from tu_files import write_batch

Chem = pytest.importorskip("rdkit.Chem", reason="molecules need RDKit: extra 'chem'")

HEADS = ("C", "CC", "CCC", "CC(C)C", "c1ccccc1", "C1CCCC1", "C1CCCCC1", "CCOC", "CCSC", "FCC")
TAILS = ("C", "N", "O", "C(=O)O", "C#N")
SMILES = [head + tail for head in HEADS for tail in TAILS]
Y = np.array([int("O)O" in smiles or "N" in smiles) for smiles in SMILES])


@pytest.fixture(scope="module")
def task():
    return Task(as_batch(SMILES), Y, nested_folds(Y, 3, 3, seed=0), smiles=SMILES)


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
    rival = contestant("ecfp-lr", task)
    answers = morgan_predictions(
        morgan_counts(SMILES), read_targets(Y, task.graphs, classify=True), task.folds
    )
    assert rival.only() == {"C": 1.0}
    for fold, outputs in zip(task.folds, answers.outputs, strict=True):
        model = rival.model(rival.only()).fit(rival.prepare(fold >= 0), Y[fold >= 0])
        predicted = model.predict(rival.prepare(fold < 0))
        np.testing.assert_array_equal(predicted, outputs[fold < 0, 0] > 0)
        assert model.n_parameters_ == np.count_nonzero(model.classifier.coef_) + 1


def test_validation_is_that_of_separate_fits(task):
    rival = contestant("ecfp-lr", task)
    assert [json.loads(unit) for unit in rival.units()] == [{"C": C} for C in (1, 0.1, 10, 0.01)]
    trials = rival.score(rival.units()[1])
    assert [trial.outer for trial in trials] == [0, 1, 2]
    X, fold = morgan_counts(SMILES), task.folds[2]
    by_hand = []
    for inner in range(3):
        train, valid = (fold >= 0) & (fold != inner), fold == inner
        model = LogisticRegression(C=0.1, max_iter=1000).fit(X[train], Y[train])
        by_hand.append(model.score(X[valid], Y[valid]))
    assert trials[2].score == pytest.approx(np.mean(by_hand))


def test_validation_is_by_what_is_asked_for(task):
    asked = replace(task, search=Search(scoring="roc_auc", class_weight="balanced"))
    rival = contestant("ecfp-lr", asked)
    trial = rival.score(rival.units()[0])[0]
    assert trial.configuration == {"C": 1.0, "class_weight": "balanced"}
    X, fold, scores = morgan_counts(SMILES), task.folds[0], []
    for inner in range(3):
        train, valid = (fold >= 0) & (fold != inner), fold == inner
        model = LogisticRegression(max_iter=1000, class_weight="balanced").fit(X[train], Y[train])
        scores.append(roc_auc_score(Y[valid], model.decision_function(X[valid])))
    assert trial.score == pytest.approx(np.mean(scores))
    ensemble = contestant("fdgnn-wl", asked).model(contestant("fdgnn-wl", asked).only())
    assert (ensemble.scoring, ensemble.class_weight) == ("roc_auc", "balanced")
    with pytest.raises(ValueError, match="scoring='rmse': expected one of accuracy, balanced"):
        Search(scoring="rmse")


@pytest.mark.parametrize("name", ["ecfp-lr", "ecfp-rf", "fdgnn-wl"])
def test_roc_auc_and_balanced_accuracy_are_measured_beside_accuracy(task, name):
    rival, fold = contestant(name, task), task.folds[0]
    found = fit_and_test(lambda: rival.model(rival.only()), rival.prepare, Y, fold)
    test = rival.prepare(fold < 0)
    truth, predicted = Y[fold < 0], found.model.predict(test)
    assert found.balanced_accuracy == pytest.approx(balanced_accuracy_score(truth, predicted))
    by_hand = roc_auc_score(truth, found.model.decision_function(test))
    assert found.roc_auc == pytest.approx(by_hand)


def test_a_forest_has_nothing_to_choose_and_is_the_same_again(task):
    rival = contestant("ecfp-rf", task)
    assert rival.units() == []
    models = [rival.model({"trees": 20}).fit(SMILES[::2], Y[::2]) for _ in range(2)]
    first, second = (model.predict(SMILES[1::2]) for model in models)
    np.testing.assert_array_equal(first, second)
    trees = models[0].classifier.estimators_
    assert models[0].n_parameters_ == sum(tree.tree_.node_count for tree in trees)
    assert np.mean(first == Y[1::2]) > 0.8


@pytest.mark.usefixtures("few_networks")
def test_molecules_in_code():
    few = {"n_outer": 2, "n_inner": 2, "search": Search(n_configurations=1)}
    rows = compare([Chem.MolFromSmiles(one) for one in SMILES], Y, ["ecfp-lr"], **few)
    assert [(row.model, row.status) for row in rows] == [
        ("fdgnn", "finished"), ("ecfp-lr", "finished"),
    ]  # fmt: skip
    assert rows[1].accuracy_mean > 0.6
    with pytest.raises(ValueError, match="ecfp-lr is for molecules, and these graphs were not"):
        compare(as_batch(SMILES), Y, ["ecfp-lr"], **few)


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
    rows = json.loads(told.stdout)
    assert [(row["dataset"], row["model"], row["status"]) for row in rows] == [
        ("mine", "fdgnn", "finished"), ("mine", "ecfp-lr", "finished"),
    ]  # fmt: skip
    assert (tmp_path / "runs" / "mine" / "compare.json").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["MOTIFS", "--with", "ecfp-rf"], "ecfp-rf is for molecules"),
        (["MOTIFS", "--target", "y"], "--target is for tables, and"),
        (["MOTIFS", "--atoms", "rich"], "--atoms is for tables, and"),
        (["mine.csv", "--with", "ecfp-lr"], "it is not known which column is the target"),
        (["mine.csv", "--target", "activity"], "activity"),
        (["mine.csv", "--target", "active", "--target", "smiles"], "compare takes one target"),
        (["numbers.csv", "--target", "active"], "compare is for classes"),
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

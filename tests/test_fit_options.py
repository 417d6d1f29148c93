"""``fdgnn fit``: what models are chosen by, how rows are held out, and what is told of it."""

from __future__ import annotations

import csv
import json
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fdgnn import load_model, read_graphs
from fdgnn.cli import main
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.molecules import (
    linear_model,
    morgan_counts,
    murcko_scaffolds,
    simple_predictions,
)
from fdgnn.evaluation.record import BaselineScores, MetricScores, TargetScores
from fdgnn.evaluation.scores import Baseline, baseline_note, target_scores
from fdgnn.evaluation.splits import duplicates_note
from fdgnn.folds import TEST, Split, fold_rows
from fdgnn.graphs import GraphBatch
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, Scoring, squared_error
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.tasks import infer_task, one_target
from fdgnn.training import TrainingOptions, train

rdkit = pytest.importorskip("rdkit")
from rdkit.Chem import MolFromSmiles  # noqa: E402
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator  # noqa: E402

CORES = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccsc1", "C1CCOC1", "c1ccc2ccccc2c1"]
ENDS = ["O", "N", "F", "Cl", "CC", "C#N", "C(=O)O", "OC", "NC", "CO", "C=C", "S"]


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    """Rings with an end; those with a carbonyl or nitrogen in the end are active."""
    path = tmp_path_factory.mktemp("molecules") / "table.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file)
        out.writerow(["smiles", "active", "year", "family", "mass"])
        for i, (core, end) in enumerate((c, e) for c in CORES for e in ENDS):
            active = int("N" in end or "=O" in end)
            out.writerow(
                [f"{end}{core}" if end != "C#N" else f"N#C{core}", active, 1990 + i, core, i]
            )
    return path


@pytest.fixture(scope="module")
def table(molecules):
    return read_graphs(molecules, target="active", atoms="typed", columns=["year", "family"])


@pytest.fixture
def run_fdgnn(capsys, monkeypatch):
    """Run a command in this process; gives its exit code, and what it printed."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["fdgnn", *map(str, words)])
        monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # main takes its own
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return SimpleNamespace(exit_code=ended.value.code or 0, output=printed.out + printed.err)

    return run


# ---------------------------------------------------------------------- training


def trained(graphs, y, options=None, **more):
    task = None if options is None else options.task
    return train(graphs, one_target(y, task or infer_task(y)), options, **more).evaluation_


def test_scores_that_everyone_asks_for_are_always_there(table):
    options = TrainingOptions(scoring="average_precision")
    found = trained(table.graphs, table.y, options)
    metrics = [each.metric for each in found.metrics]
    assert metrics == ["average_precision", "accuracy", "balanced_accuracy", "roc_auc"]
    assert (found.metric, found.score) == ("average precision", found.metrics[0].mean)
    for name in metrics:
        assert 0 <= found.baseline("constant", name).mean <= 1
        assert 0 <= found.baseline("morgan", name).mean <= 1
    assert found.baseline("constant", "roc_auc").mean == 0.5
    assert found.baseline("constant").mean == pytest.approx(table.y.mean(), abs=0.05)
    assert found.notes == [note for note in found.notes if "duplicate" in note]


def test_numbers_have_errors_that_are_positive(table):
    y = np.bincount(table.graphs.graph_of_vertex) + 0.1
    options = TrainingOptions(scoring="rmse", task="regression")
    found = trained(table.graphs, y, options)
    assert [each.metric for each in found.metrics] == ["rmse", "r2", "mae", "spearman"]
    assert 0 < found.score < found.baseline("constant").mean == pytest.approx(y.std(), rel=0.1)
    assert found.std == pytest.approx(np.std(found.by("rmse").folds, ddof=1))
    assert found.baseline("morgan", "rmse").mean > 0


def test_a_constant_is_scored_in_the_folds_of_the_model(table):
    """In time the first graphs are never tested."""
    y = (np.arange(len(table.y)) > 60).astype(int)
    year = np.array([float(v) for v in table.columns["year"]])
    options = TrainingOptions(scoring="accuracy", split=Split("time", year, "year"))
    found = trained(table.graphs, y, options)
    tested = y[len(y) // 6 :]  # six spans of time, the first of which is trained on only
    assert found.baseline("constant").mean == pytest.approx(1 - tested.mean())


def test_a_threshold_for_three_classes_is_rejected_before_the_search(table, monkeypatch):
    monkeypatch.setattr("fdgnn.training.new_search", lambda *_: pytest.fail("searched"))
    y = np.arange(len(table.y)) % 3
    with pytest.raises(ValueError, match="`threshold` is for two classes, but the target has 3"):
        trained(table.graphs, y, TrainingOptions(threshold="f1"))


def test_too_few_graphs_to_search_on_are_told(table):
    with pytest.raises(
        ValueError, match=r"`search_on` draws 4 of 84 graphs.* too few.*; draw more"
    ):
        trained(table.graphs, table.y, TrainingOptions(search_on=4))


def test_a_text_among_numbers_is_named(table):
    y = np.array([f"{i}.5" for i in range(len(table.y) - 1)] + [">4.5"])
    with pytest.raises(ValueError, match=r"inferred to be classes because '>4\.5' is not a number"):
        trained(table.graphs, y)


def test_a_row_without_a_time_is_named(molecules, run_fdgnn, tmp_path):
    lines = molecules.read_text().splitlines()
    lines[3] = lines[3].replace("1992", "")
    data = tmp_path / "gap.csv"
    data.write_text("\n".join(lines))
    told = run_fdgnn(
        "fit", data, "--target", "active", "--split", "time", "year", "-o", tmp_path / "m.fdgnn"
    )
    assert told.exit_code == 1
    text = "--split time: 1 of 84 graphs has no value in 'year', the first in row 2; fill it in"
    assert text in told.output


def test_a_rare_class_is_ranked_and_cut(table):
    some = np.flatnonzero((table.y == 0) | (np.arange(len(table.y)) % 5 == 1))
    y = table.y[some]
    y[np.flatnonzero(y == 1)[4:]] = 0
    found = trained(table.graphs[some], y)
    assert found.metric == "ROC AUC"
    note = found.notes[0]
    assert note.startswith("class 1 has ")
    assert "selected by ROC AUC, and the decision threshold by the F1 of this class" in note
    assert found.protocol.threshold == "f1"


def test_scaffolds_are_held_out_together(table):
    scaffolds = murcko_scaffolds(table.smiles)
    assert len(set(scaffolds)) == len(CORES)
    split = Split("group", scaffolds, "scaffold")
    found = trained(table.graphs, table.y, TrainingOptions(split=split))
    assert found.score < trained(table.graphs, table.y).score + 0.2
    one = Split("group", np.repeat("c1ccccc1", len(table.y)), "scaffold")
    with pytest.raises(ValueError, match="all graphs have one scaffold, c1ccccc1"):
        trained(table.graphs, table.y, TrainingOptions(split=one))
    three = Split("group", np.arange(len(table.y)) % 3, "family")
    with pytest.raises(ValueError, match="only 3 different values of family, too few to hold"):
        trained(table.graphs, table.y, TrainingOptions(split=three))


@pytest.mark.parametrize(("times", "tested"), [
    (np.repeat(np.arange(12), 5), 3),
    (np.repeat([0, 1, 2, 3], [50, 2, 3, 5]), 1),
    (np.r_[0, 1, np.repeat(2, 30), np.repeat(3, 20)], 2),
])  # fmt: skip
def test_equal_times_are_on_one_side_of_every_cut(times, tested):
    split, y = Split("time", times, "year"), np.arange(len(times)) % 2
    targets = one_target(y, "classification")
    rows = fold_rows(*split.splitters(3, targets, 0), targets, split.groups, 0)
    assert len(rows) == tested + 1
    for row in rows:
        assert all(len(set(row[times == one])) == 1 for one in set(times))
        assert len(set(row[row >= 0])) > 1  # something to choose by
    for row in rows[:-1]:
        assert times[row >= 0].max() < times[row == -1].min()


def test_time_is_kept_in_order(table):
    years = np.array([int(year) for year in table.columns["year"]])
    mixed = np.random.default_rng(0).permutation(len(years))
    split = Split("time", years[mixed], "year")
    np.testing.assert_array_equal(years[mixed][split.order(len(years))], np.sort(years))
    dates = Split("time", np.array(["2001-02-03", "1999-12-31", "2001-01-01"], dtype=object))
    assert dates.order(3).tolist() == [1, 2, 0]
    found = trained(table.graphs[mixed], table.y[mixed], TrainingOptions(split=split))
    again = trained(table.graphs, table.y, TrainingOptions(split=Split("time", years, "year")))
    assert found.targets == again.targets
    for missing in (None, "", "NA"):
        with pytest.raises(ValueError, match="the time of graph 1 is missing"):
            Split("time", np.array([3, missing], dtype=object)).order(2)
    for given, words in (
        (["9/30/2019", "10/1/2010"], "'9/30/2019', is neither a number nor a date in ISO format"),
        (["2011-02-02", "2010"], "graph 1, '2010', is neither a number nor a date"),
        (["3", "?", "4"], r"the time of graph 1, '\?', is not a number"),
        ([3.0, 4.0, np.inf], "the time of graph 2, inf, is not a number"),
        (["7", "7"], "all graphs have one time, 7; choose another split"),
    ):
        with pytest.raises(ValueError, match=words):
            Split("time", np.array(given, dtype=object)).order(2)


def test_folds_that_lack_classes_do_not_stop_the_baseline():
    X = sp.csr_array(np.eye(9))
    for y in (np.repeat([0, 1, 2], 3), np.repeat([0, 1, 1], 3)):
        folds = np.array([[0] * 3 + [TEST] * 6, [0] * 6 + [TEST] * 3, [0, 1, TEST] * 3])
        found = simple_predictions(linear_model, X, one_target(y, "classification"), folds)
        assert np.isnan(found.scores(OF_CLASSES["accuracy"])).tolist() == [[True, False, False]]
        for tested, outputs in zip(found.tested[1:], found.outputs[1:], strict=True):
            assert np.isfinite(outputs[tested]).all()
    alone = simple_predictions(linear_model, X, one_target(y, "classification"), folds[:1])
    assert np.isnan(alone.score(OF_CLASSES["roc_auc"]))


@pytest.mark.parametrize("name", ["threshold", "class_weight"])
def test_what_is_for_classes_is_not_for_numbers(table, name):
    options = TrainingOptions(task="regression", **{name: "balanced" if "weight" in name else "f1"})
    with pytest.raises(ValueError, match=f"`{name}` is for classification, but"):
        trained(table.graphs, table.y, options)


@pytest.mark.parametrize(
    ("y", "task", "message"),
    [
        (["no"] * 19 + ["yes"], None, "class yes has 1 graph, too few for cross-validation; add"),
        (np.arange(5.0), "regression", "5 graphs are too few for cross-validation; add some"),
    ],
)
def test_too_few_graphs_are_told_in_the_words_of_the_task(table, y, task, message):
    with pytest.raises(ValueError, match=message):
        trained(table.graphs[: len(y)], np.array(y), TrainingOptions(task=task, model="wl"))


# ---------------------------------------------------------------------- the baseline


def test_the_baseline_is_logistic_regression_in_the_same_folds(table):
    X = morgan_counts(table.smiles)
    made = GetMorganGenerator(radius=2, fpSize=2048)
    theirs = [made.GetCountFingerprintAsNumPy(MolFromSmiles(one)) for one in table.smiles]
    np.testing.assert_array_equal(X.toarray(), theirs)
    folds = np.array([np.where(np.arange(len(table.y)) % 2 == o, TEST, 0) for o in (0, 1)])
    found = simple_predictions(linear_model, X, one_target(table.y, "classification"), folds)
    by_hand = []
    for fold in folds:
        model = LogisticRegression(max_iter=1000).fit(X[fold >= 0], table.y[fold >= 0])
        by_hand.append(roc_auc_score(table.y[fold < 0], model.decision_function(X[fold < 0])))
    assert found.score(OF_CLASSES["roc_auc"]) == pytest.approx(np.mean(by_hand))


# ---------------------------------------------------------------------- duplicates


def test_duplicates_across_folds_are_counted(monkeypatch):
    graphs, y = make_motif_graphs(40, random_state=0)
    twice = GraphBatch.from_graphs([*graphs, *graphs[:6]])
    labels = np.concatenate([y, y[:4], 1 - y[4:6]])
    apart = np.repeat([0, 1], [40, 6])
    note = duplicates_note(twice, labels, apart)
    start = "12 of 46 graphs have a duplicate in another fold (4 of them one with another target); "
    assert note.startswith(start)
    near = int(note.removeprefix(start).split()[0])
    assert 12 <= near <= 46
    assert note == f"{start}{near} have an exact or near duplicate"
    monkeypatch.setattr("fdgnn.evaluation.splits._MOST_COMPARED", 20)
    assert " of 20 compared have" in duplicates_note(twice, labels, apart)
    assert duplicates_note(twice, labels, np.zeros(46, dtype=int)) is None


@pytest.mark.parametrize(
    ("metric", "ours", "theirs", "verdict"),
    [("rmse", 0.65, 0.55, "is better"), ("rmse", 0.5, 0.55, None), ("r2", 0.5, 0.55, "is better"),
     ("r2", 0.6, 0.55, None), ("r2", 0.52, 0.55, "does as well")],
)  # fmt: skip
def test_a_simple_model_that_is_better_is_named(metric, ours, theirs, verdict):
    def scores(mean):
        return [MetricScores.of(metric, "the score", [mean, mean])]

    simple = BaselineScores(name="b", title="boosting", scores=scores(theirs), standard_error=0.02)
    target = TargetScores(n_known=9, scores=scores(ours), baselines=[simple])
    found = baseline_note(SimpleNamespace(task="regression", targets=[target]))
    assert (found is not None) == (verdict is not None)
    if found is not None:
        assert found.startswith(f"a simple model {verdict}: ")
        assert f"of boosting is {theirs:.3f}" in found
        assert "standard error of the difference 0.020" in found


def test_the_standard_error_of_a_difference_is_that_of_its_mean():
    """Of the mean error of paired numbers it is known: their deviation over the root of n."""
    rng = np.random.default_rng(0)
    y, ours, theirs = rng.normal(size=(3, 400))
    targets = one_target(y, "regression")
    tested = np.ones((1, 400), dtype=bool)
    pair = [NestedPredictions(targets, tested, each[None, :, None]) for each in (ours, theirs)]
    scoring = Scoring("mse", "mean squared error", squared_error, error=True)
    baseline = Baseline("other", "another", pair[1])
    (found,) = target_scores(None, pair[0], scoring, [baseline])
    expected = np.std((ours - y) ** 2 - (theirs - y) ** 2) / 20
    assert found.baselines[0].standard_error == pytest.approx(expected, rel=0.25)


def test_the_standard_error_of_r2_where_most_targets_are_equal():
    """Draws in which nearly all targets are equal have an R2 far below zero."""
    rng = np.random.default_rng(0)
    y = np.r_[np.zeros(28), 1, 2]
    ours, theirs = rng.normal(scale=0.5, size=(2, 30))
    targets = one_target(y, "regression")
    tested = np.ones((1, 30), dtype=bool)
    pair = [NestedPredictions(targets, tested, each[None, :, None]) for each in (ours, theirs)]
    baseline = Baseline("other", "another", pair[1])
    (found,) = target_scores(None, pair[0], OF_NUMBERS["r2"], [baseline])
    expected = np.std((ours - y) ** 2 - (theirs - y) ** 2) / np.sqrt(30) / y.var()
    assert found.baselines[0].standard_error == pytest.approx(expected, rel=0.25)


# ---------------------------------------------------------------------- the command


def test_the_command_prints_all_of_it(molecules, run_fdgnn, tmp_path):
    out = tmp_path / "m.fdgnn"
    run = run_fdgnn("fit", molecules, "--target", "active", "-o", out, "--scoring", "roc_auc",
                    "--split", "scaffold", "--threshold", "balanced_accuracy", "-q")  # fmt: skip
    assert run.exit_code == 0, run.output
    for words in (
        "nested cross-validation, scaffold split", "always the majority class",
        "Morgan + logistic", "descriptors + boosting",
    ):  # fmt: skip
        assert words in run.output.splitlines()[0]
    rows = {line.split("  ")[0]: line for line in run.output.splitlines()}
    for metric in ("ROC AUC", "accuracy", "balanced accuracy"):
        assert rows[metric].count("±") == 4  # of the model and of each baseline
    assert "ROC AUC, standard error of the difference" in rows
    by_year = run_fdgnn("fit", molecules, "--target", "active", "-o", out, "--split", "time",
                        "year", "--json", "-q", "--force")  # fmt: skip
    assert '"name": "morgan"' in by_year.output
    assert '"split": "split by time (year)"' in by_year.output
    told = run_fdgnn("model", out)
    assert "nested cross-validation, split by time (year)" in " ".join(told.output.split())


def test_the_model_file_and_its_page_have_baseline_and_duplicates(molecules, run_fdgnn, tmp_path):
    twice, out, page = tmp_path / "twice.csv", tmp_path / "m.fdgnn", tmp_path / "page.html"
    lines = molecules.read_text().splitlines()
    twice.write_text("\n".join([*lines, *lines[1:4]]) + "\n")
    words = ["--model", "wl", "--iterations", 2, "--json", "-q", "--report", page]
    run = run_fdgnn("fit", twice, "--target", "active", "-o", out, *words)
    (target,) = json.loads(run.output.splitlines()[0])["evaluation"]["targets"]
    (simple,) = [each for each in target["baselines"] if each["name"] == "morgan"]
    morgan = {each["words"]: each["mean"] for each in simple["scores"]}
    model = load_model(out)
    found = model.evaluation_
    assert {m.words: found.baseline("morgan", m.metric).mean for m in found.metrics} == morgan
    (note,) = [each for each in found.notes if "duplicate" in each]
    assert note.startswith(f"6 of {len(lines) + 2} graphs have a duplicate in")
    assert (found.command, found.times.total, found.machine) == (None, None, {})
    told = run_fdgnn("model", out).output
    assert f"{morgan['accuracy']:.3f} ±" in told
    assert note in told
    shown = page.read_text()
    assert note in shown
    row = shown[shown.index("twice: Morgan + logistic") :]
    assert f">{100 * morgan['accuracy']:.2f}\xa0±" in row[: row.index("</tr>")]


def test_rows_without_a_group_are_told(run_fdgnn, tmp_path):
    path, out = tmp_path / "some.csv", tmp_path / "m.fdgnn"
    rows = [f"{'C' * (1 + n // 2)}{'ON'[n % 2]},{n % 2},{'abc'[n % 3]}" for n in range(20)]
    rows += [f"CC(C){'C' * n}{'ON'[n % 2]},{n % 2},{empty}" for n, empty in enumerate(("", "NA"))]
    path.write_text("smiles,active,batch\n" + "\n".join(rows) + "\n")
    words = ["fit", path, "--target", "active", "-o", out, "--model", "wl", "--iterations", 1]
    run = run_fdgnn(*words, "--split", "group", "batch")
    assert run.exit_code == 0, run.output
    assert "2 of 22 graphs have no value in 'batch'; they are one group" in run.output
    assert "have no value" not in run_fdgnn(*words).output


@pytest.mark.parametrize(("options", "message"), [
    (["--split", "group"], "--split group needs a column: --split group COLUMN"),
    (["--split=time"], "--split time needs a column: --split time COLUMN"),
    (["--split", "family"], "--split 'family': expected random, scaffold, group COLUMN or time"),
    (["--split", "group", "famly"], "no column 'famly' for --split; did you mean 'family'"),
    (["--split=group", "famly"], "did you mean 'family'"),
    (["--scoring", "rmse"], "--scoring rmse: for classification, expected one of"),
    (["--threshold", "r2"], "--threshold r2: expected one of accuracy, balanced_accuracy"),
    (["--task", "regression", "--threshold", "f1"], "--threshold is for classification"),
    (["--memory", "2GB", "--split", "scaffold"], "--split has no effect out of core"),
    (["--memory", "2GB", "--report", "page.html"], "--report has no effect out of core"),
    (["--memory", "much"], "--memory: expected an amount such as 2GB"),
    (["--task", "regression", "--class-weight", "balanced"], "--class-weight is for"),
])  # fmt: skip
def test_bad_choices_are_told_in_one_line(molecules, run_fdgnn, options, message, tmp_path):
    out = tmp_path / "m.fdgnn"
    run = run_fdgnn("fit", molecules, "--target", "active", "-o", out, *options, "-q")
    assert run.exit_code != 0
    assert message in run.output
    assert "Traceback" not in run.output
    assert not out.exists()


def test_a_scaffold_split_with_one_scaffold_is_one_line(run_fdgnn, tmp_path):
    for core, what in (("c1ccccc1", "c1ccccc1"), ("CCCC", "that without rings")):
        path = tmp_path / "one.csv"
        rows = [f"{end}{core}{'C' * n},{n % 2}" for n in range(3) for end in ("O", "N", "F", "CC")]
        path.write_text("smiles,active\n" + "\n".join(rows) + "\n")
        words = ["--target", "active", "--split", "scaffold", "-o", tmp_path / "m.fdgnn", "-q"]
        run = run_fdgnn("fit", path, *words)
        assert run.exit_code == 1
        lines = run.output.strip().splitlines()
        assert len(lines) == 1
        assert f"all graphs have one scaffold, {what}, and graphs of one are held out" in lines[0]

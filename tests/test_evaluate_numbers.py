"""`fdgnn evaluate` where the target is a number: scores, run directories, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest
from sklearn import metrics

from commands import assert_one_clear_line, fdgnn
from fdgnn import AutoGraphRegressor, FDGNNSearchCV, read_graphs
from fdgnn.datasets import make_random_graphs
from fdgnn.evaluation.committee_files import read_committee
from fdgnn.evaluation.committee_records import CommitteeSettings, QuantityResult
from fdgnn.evaluation.models import CommitteeStudy, evaluate_committee
from fdgnn.evaluation.rundir import read_file
from fdgnn.exceptions import StudyError
from fdgnn.folds import N_FOLDS, Split
from fdgnn.html.old_runs import data_of_ensemble
from fdgnn.records import as_plain, decode, encode

# Reservoirs of an ensemble have fixed parameters; some small graphs converge slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

N = 60
WORDS = ("--target", "size", "--model", "wl")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table of graphs; `size` is planted in labels, and `few` are a few whole numbers."""
    graphs = make_random_graphs(N, n_labels=2, density=0.05, random_state=0)
    path = tmp_path_factory.mktemp("data") / "planted.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "node_feat", "num_nodes", "size", "few", "batch", "word"])
        for i, graph in enumerate(graphs):
            arcs, labels = np.asarray(graph.edge_index), graph.labels
            size = np.sum(labels == 0) + 0.31 * np.sum(labels == 1)
            facts = [len(labels), size, len(labels) // 7, f"b{i % 8}", "ab"[i % 2]]
            writer.writerow([json.dumps(arcs.tolist()), json.dumps(labels.tolist()), *facts])
    return path


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """The directory of a finished run, and what the command printed."""
    out = tmp_path_factory.mktemp("runs") / "run"
    run = fdgnn("evaluate", data, *WORDS, "--out", out)
    assert run.returncode == 0, run.stderr
    return out, run


@pytest.fixture(scope="module")
def table(data):
    return read_graphs(data, target="size", columns=["batch"])


def result_of(directory):
    return read_file(directory / "result.json", QuantityResult)


def comparable(directory):
    """A result without what differs from run to run."""
    plain = as_plain(result_of(directory))
    return {k: v for k, v in plain.items() if k not in ("member_seconds", "command")}


# ---------------------------------------------------------------------- scores


def test_a_planted_number_is_found(finished):
    out, run = finished
    result = result_of(out)
    assert result.r2_mean > 0.9
    assert result.spearman_mean > 0.9
    assert (result.scoring, result.score_mean) == ("r2", pytest.approx(result.r2_mean))
    assert (result.dataset, result.n_graphs, len(result.fold_scores)) == ("planted", N, 10)
    assert result.score_std == pytest.approx(np.std(result.fold_scores, ddof=1))
    assert max(result.member_scores) > 0.9
    for words in ("R2", "RMSE", "mean absolute error", "Spearman", "averaged in", "random split"):
        assert words in run.stdout
    assert f"{result.score_mean:.3f} ± {result.score_std:.3f}" in run.stdout
    assert all(name in run.stdout for name in result.members)


@pytest.mark.parametrize("scoring", ["r2", "rmse", "mae", "spearman"])
def test_scores_are_those_of_a_search_in_the_same_folds(table, tmp_path, scoring):
    study = CommitteeStudy(
        "planted", table.graphs, table.y, "wl", scoring=scoring, kind="regression"
    )
    result = evaluate_committee(study, tmp_path / "run")
    splitters = Split().splitters(N_FOLDS, classify=False, seed=0)
    model = AutoGraphRegressor("wl", random_state=0, scoring=scoring)
    search = FDGNNSearchCV(model, cv=splitters.inner, outer_cv=10, random_state=0)
    search.fit(table.graphs, table.y)
    np.testing.assert_array_equal(search.nested_folds_, study.task.folds)
    sign = -1 if scoring in ("rmse", "mae") else 1
    np.testing.assert_allclose(result.fold_scores, sign * search.nested_scores_, rtol=1e-9)
    for name, value in {"r2": result.r2_mean, "spearman": result.spearman_mean}.items():
        assert value == pytest.approx(search.nested_score_by(name))
    # By scikit-learn, from what each graph was told by the models that have not seen it.
    told = search.nested_outputs_[:, 0]
    for name, score in (
        ("rmse_mean", metrics.root_mean_squared_error),
        ("mae_mean", metrics.mean_absolute_error),
    ):
        each = [score(table.y[fold == -1], told[fold == -1]) for fold in study.task.folds]
        assert getattr(result, name) == pytest.approx(np.mean(each))
        assert getattr(result, name) > 0


def test_the_model_that_a_table_takes_by_default_is_auto(data, tmp_path):
    out = tmp_path / "run"
    words = ["--target", "size", "--scoring", "rmse", "--no-report", "--json", "-q"]
    run = fdgnn("evaluate", data, *words, "--out", out)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["model"], told["scoring"]) == ("auto", "rmse")
    assert told["score_mean"] == told["rmse_mean"] > 0
    assert told["r2_mean"] > 0.95
    assert {"reservoir", "another reservoir"} < set(told["members"])
    assert decode(run.stdout, QuantityResult) == result_of(out)
    assert run.stderr == ""


def test_few_whole_numbers_are_classes_unless_told_otherwise(data, tmp_path):
    words = ["--target", "few", "--model", "wl", "--scoring", "mae", "--out", tmp_path / "run"]
    assert_one_clear_line(fdgnn("evaluate", data, *words), "--scoring mae", "--task")
    run = fdgnn("evaluate", data, *words, "--task", "regression", "--json", "-q")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["r2_mean"] > 0.7


def test_groups_are_held_out_together(data, table, tmp_path):
    out = tmp_path / "run"
    words = [*WORDS, "--split", "group", "batch", "--json", "-q", "--out", out]
    run = fdgnn("evaluate", data, *words)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["split"], len(told["fold_scores"])) == ("split by group (batch)", 4)
    batch = np.array(table.columns["batch"], dtype=object)
    study = CommitteeStudy(
        "planted", table.graphs, table.y, "wl", split=Split("group", batch, "batch"),
        kind="regression",
    )  # fmt: skip
    for fold in study.task.folds:
        assert not set(batch[fold == -1]) & set(batch[fold >= 0])
        for inner in range(fold.max() + 1):
            assert not set(batch[fold == inner]) & set(batch[(fold >= 0) & (fold != inner)])
    assert (study.task.folds == -1).sum(axis=0).tolist() == [1] * N
    again = evaluate_committee(study, out)  # the directory is that of the same run
    assert again.fold_scores == told["fold_scores"]


def test_molecules_of_a_scaffold_are_held_out_together(tmp_path):
    pytest.importorskip("rdkit")
    rings = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1", "c1ccncc1"]
    rows = [f"{'C' * n}O{ring},{0.5 * n}" for ring in rings for n in range(1, 9)]
    path = tmp_path / "ethers.csv"
    path.write_text("smiles,length\n" + "\n".join(rows) + "\n")
    words = ["--target", "length", "--task", "regression", "--split", "scaffold", "--json", "-q"]
    run = fdgnn("evaluate", path, *words, "--model", "wl", "--out", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["split"], len(told["fold_scores"])) == ("scaffold split", 3)
    assert told["r2_mean"] > 0.9


@pytest.mark.parametrize(
    ("n", "n_outer", "n_inner"), [(8, 2, 2), (20, 2, 2), (30, 6, 5), (60, 10, 5), (500, 10, 5)]
)
def test_folds_of_numbers_have_some_graphs_each(n, n_outer, n_inner):
    y = np.random.default_rng(0).normal(size=n)
    folds = Split().nested(y, 10, N_FOLDS, 0, classify=False)
    assert (len(folds), folds.max() + 1) == (n_outer, n_inner)
    assert (folds == -1).sum(axis=0).tolist() == [1] * n
    smallest = min(np.bincount(fold[fold >= 0]).min() for fold in folds)
    assert smallest >= min(4, n // 4)


# ---------------------------------------------------------------------- run directories


def test_a_run_goes_on_after_its_first_member(data, finished, tmp_path):
    out = tmp_path / "run"
    out.mkdir()
    for name in ("committee.json", "member-0.npz"):
        shutil.copy2(finished[0] / name, out / name)
    before = (out / "member-0.npz").stat().st_mtime_ns
    run = fdgnn("evaluate", data, *WORDS, "--out", out, "--no-report")
    assert run.returncode == 0, run.stderr
    assert (out / "member-0.npz").stat().st_mtime_ns == before
    assert comparable(out) == comparable(finished[0])


@pytest.mark.parametrize(("words", "told"), [
    (["--scoring", "mae"], "scoring = r2, not mae"),
    (["--seed", "1"], "seed = 0, not 1"),
    (["--target", "few"], "task = regression, not classification"),
    (["--target", "few", "--task", "regression"], "it holds a run with data ="),
    (["--split", "group", "batch"], "split = random split, not split by group (batch)"),
])  # fmt: skip
def test_another_run_is_not_continued(data, finished, tmp_path, words, told):
    whole = shutil.copytree(finished[0], tmp_path / "run")
    target = [] if "--target" in words else ["--target", "size"]
    run = fdgnn("evaluate", data, *target, "--model", "wl", "--out", whole, *words)
    assert_one_clear_line(run, told)
    assert comparable(whole) == comparable(finished[0])


def test_settings_from_before_are_of_classes(finished):
    settings = read_file(finished[0] / "committee.json", CommitteeSettings)
    assert settings.task == "regression"
    plain = as_plain(settings)
    del plain["task"]
    assert decode(json.dumps(plain), CommitteeSettings).task == "classification"


@pytest.mark.parametrize(("change", "told"), [
    ({"scoring": "accuracy"}, "scoring"),
    ({"rmse_mean": -1.0}, "rmse_mean"),
    ({"r2_mean": 1.5}, "r2_mean"),
    ({"spearman_mean": -2.0}, "spearman_mean"),
    ({"fold_scores": []}, "fold_scores"),
    ({"fold_scores": [0.5]}, "1 fold_scores, but 10 fold_kept"),
    ({"member_scores": [0.5]}, "but 1 member_scores"),
    ({"fold_kept": [[9]] * 10}, "an outer fold does not fit"),
    ({"accuracy_mean": 1.0}, "accuracy_mean"),
])  # fmt: skip
def test_a_changed_result_is_refused(finished, change, told):
    result = result_of(finished[0])
    assert decode(encode(result), QuantityResult) == result
    with pytest.raises(ValueError, match=told):
        decode(json.dumps(as_plain(result) | change), QuantityResult)


# ---------------------------------------------------------------------- pages


def test_there_is_no_page_of_numbers_and_a_line_says_so(data, finished, table, tmp_path):
    out, run = finished
    lines = [line for line in run.stderr.splitlines() if "page" in line]
    assert len(lines) == 1
    assert "for classes" in lines[0]
    assert "fdgnn fit" in lines[0]
    assert not {"report.html", "report.json"} & {path.name for path in out.iterdir()}
    page = tmp_path / "page.html"
    assert_one_clear_line(fdgnn("report", out, "-o", page), str(out), "for classes", "fdgnn fit")
    assert not page.exists()
    study = CommitteeStudy("planted", table.graphs, table.y, "wl", kind="regression")
    with pytest.raises(StudyError, match="for classes"):
        data_of_ensemble(study, out)
    with pytest.raises(StudyError, match="for classes"):
        read_committee(out)
    silent = fdgnn("evaluate", data, *WORDS, "--out", out, "--no-report")
    assert "page" not in silent.stderr


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(("words", "told"), [
    (["--target", "size", "--scoring", "roc_auc"], "--scoring roc_auc is for classes"),
    (["--target", "word", "--scoring", "r2"], "--scoring r2 is for numbers"),
    (["--target", "size", "--scoring", "nonsense"], "--scoring nonsense: for numbers, expected"),
    (["--target", "size", "--model", "paper"], "choose --model auto"),
    (["--target", "word", "--task", "regression"], "its target is not a number"),
    (["--target", "size", "--split", "time", "batch"], "--split time is for fit"),
    (["--target", "size", "--target", "few", "--task", "regression"], "takes one target"),
])  # fmt: skip
def test_what_cannot_be_evaluated_is_one_clear_line(data, tmp_path, words, told):
    out = tmp_path / "run"
    assert_one_clear_line(fdgnn("evaluate", data, *words, "--out", out), told)
    assert not out.exists()


def test_a_word_is_not_said_to_be_a_number(data, tmp_path):
    words = ["--target", "word", "--scoring", "r2", "--out", tmp_path / "run"]
    assert "--task" not in fdgnn("evaluate", data, *words).stderr


def test_targets_that_teach_nothing_are_refused(table, tmp_path):
    def study(graphs, y):
        return CommitteeStudy("planted", graphs, y, "wl", kind="regression")

    with pytest.raises(ValueError, match="one value only"):
        evaluate_committee(study(table.graphs, np.ones(N)), tmp_path / "run")
    with pytest.raises(ValueError, match="7 graphs are too few"):
        evaluate_committee(study(table.graphs[np.arange(7)], table.y[:7]), tmp_path / "run")
    holes = np.where(np.arange(N) == 3, np.nan, table.y)
    with pytest.raises(ValueError, match=r"y\[3\] is NaN"):
        evaluate_committee(study(table.graphs, holes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_score_that_is_not_defined_is_none(table, tmp_path):
    """Where each outer fold tests equal targets there is no R2, but there are errors."""
    split = Split("group", np.array(table.columns["batch"], dtype=object), "batch")
    y = np.argmax(split.nested(table.y, 10, N_FOLDS, 1, classify=False) == -1, axis=0).astype(float)

    def study(scoring):
        return CommitteeStudy("x", table.graphs, y, "wl", 1, scoring, split, "regression")

    result = evaluate_committee(study("rmse"), tmp_path / "rmse")
    assert (result.r2_mean, result.spearman_mean) == (None, None)
    assert min(result.rmse_mean, result.mae_mean) > 0
    assert result_of(tmp_path / "rmse") == result
    with pytest.raises(ValueError, match="no outer fold can be scored"):
        evaluate_committee(study("r2"), tmp_path / "r2")


def test_a_text_among_numbers_is_named(data, tmp_path):
    lines = data.read_text().splitlines()
    column = lines[0].split(",").index("size")
    rows = list(csv.reader(lines))
    rows[3][column] = "n.d."
    path = tmp_path / "odd.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    run = fdgnn("evaluate", path, "--target", "size", "--out", tmp_path / "run")
    assert_one_clear_line(run, "taken for classes because 'n.d.' is no number")

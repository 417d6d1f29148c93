"""FDGNN beside its rivals: one protocol, limits, resuming, rows."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from typer.testing import CliRunner

import fdgnn
from contests import take_here
from fdgnn.cli import app
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation import paper
from fdgnn.evaluation.baselines import RIVALS, Task, contestant, graph_kernels
from fdgnn.evaluation.baselines.base import Rival
from fdgnn.evaluation.baselines.graph_kernels import KernelContestant, as_grakel
from fdgnn.evaluation.baselines.networks import NetworkContestant, smoothed
from fdgnn.evaluation.comparison import Limits, Search, compare, compare_study, contest, runner
from fdgnn.evaluation.comparison.contest import Turn, best, take
from fdgnn.evaluation.measures import fit_and_test
from fdgnn.evaluation.records import (
    ComparisonRow,
    FoldLine,
    PublishedAccuracy,
    SummaryLine,
    Trial,
    TrialsLine,
)
from fdgnn.evaluation.running import run_study
from fdgnn.evaluation.study import PROTOCOLS, plan
from fdgnn.exceptions import MissingDependencyError, StudyError
from fdgnn.folds import N_FOLDS, nested_folds
from fdgnn.records import decode
from tu_files import write_batch

grakel = pytest.importorskip("grakel")


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(40, random_state=0)


@pytest.fixture(scope="module")
def study(motifs):
    protocol = replace(
        PROTOCOLS["quick"], n_configurations=2, n_guesses=1, n_outer=3, n_inner=3, max_layers=2
    )
    return plan("motifs", *motifs, protocol)


def run(study, directory, models, search=None, limits=None):
    return compare_study(study, directory, models, search=search or few(2), limits=limits)


def few(n_configurations, **options):
    return Search(n_configurations=n_configurations, **options)


def without_times(row):
    kept = [n for n in row.__struct_fields__ if "seconds" not in n and n != "peak_mb"]
    return {name: getattr(row, name) for name in kept}


# ---------------------------------------------------------------------- kernels


@pytest.fixture(scope="module")
def task(motifs):
    graphs, y = motifs
    return Task(graphs, y, nested_folds(y, 3, 3, seed=0))


@pytest.mark.parametrize("name", ["wl", "wl-oa", "pk", "gk", "rw"])
def test_kernel_models_fit_and_predict(task, name, monkeypatch):
    monkeypatch.setattr(graph_kernels, "GRAPHLETS_DRAWN", 50)  # of each graph, in place of 500
    rival = contestant(name, replace(task, search=few(1)))
    assert rival.units() == []  # nothing to choose
    model = rival.model(rival.only()).fit(task.graphs[:30], task.y[:30])
    predicted = model.predict(task.graphs[30:])
    assert set(predicted) <= set(task.y)
    assert model.n_parameters_ > 0
    rival.warm_up()


def test_wl_learns_what_degrees_cannot_tell(task):
    rival = contestant("wl", task)
    model = rival.model({"height": 3, "C": 10.0}).fit(task.graphs[:30], task.y[:30])
    assert np.mean(model.predict(task.graphs[30:]) == task.y[30:]) > 0.8


def test_wl_kernel_is_the_one_of_its_definition():
    """By hand: normalized dot products of the counts of labels, then of refined ones."""
    graphs = fdgnn.as_batch([
        fdgnn.Graph([[0, 1], [1, 2]], labels=["a", "b", "a"]),
        fdgnn.Graph([[0, 1, 2], [1, 2, 0]], labels=["a", "b", "a"]),
    ])  # fmt: skip
    y = np.array([0, 1])
    rival = contestant("wl", Task(graphs, y, np.array([[0, 1]])))
    K = rival.make({"height": 1}).fit_transform(as_grakel(graphs))
    # labels: (a:2, b:1) and (a:2, b:1); refined: path (a,b) twice, (b,aa); triangle
    # (a,ab) twice, (b,aa): in common only (b,aa)
    between, own = 5 + 1, 5 + 5
    assert K[0, 1] == pytest.approx(between / own)


def test_kernel_validation_is_that_of_separate_fits(task):
    rival = contestant("wl", replace(task, search=few(2)))
    (unit,) = rival.units()
    trials = rival.score(unit)
    assert len(trials) == 2 * len(task.folds)
    trial = trials[1]
    fold = task.folds[trial.outer]
    by_hand = []
    for f in range(3):
        train, valid = (fold >= 0) & (fold != f), fold == f
        model = rival.model(trial.configuration).fit(task.graphs[train], task.y[train])
        by_hand.append(np.mean(model.predict(task.graphs[valid]) == task.y[valid]))
    assert trial.score == pytest.approx(np.mean(by_hand))


def test_budget_takes_the_head_of_the_grid(task):
    whole, head = contestant("wl", task), contestant("wl", replace(task, search=few(9)))
    assert whole.n_configurations == 42
    assert head.n_configurations == 9
    assert head.units()[0] == whole.units()[0]
    assert head.units()[1] not in whole.units()  # two of its seven C only
    assert sum(len(head.score(unit)) for unit in head.units()) == 9 * len(task.folds)
    assert contestant("wl", replace(task, search=Search(inner_folds=1))).inner_folds == 1
    assert contestant("wl", replace(task, search=Search(inner_folds=99))).inner_folds == 3


def test_unlabeled_and_empty_graphs_have_kernels():
    graphs = fdgnn.as_batch([
        fdgnn.Graph(np.empty((2, 0), int), n_vertices=3),
        fdgnn.Graph([[0], [1]], n_vertices=2),
        fdgnn.Graph([[0, 1, 2], [1, 2, 0]], n_vertices=3),
        fdgnn.Graph([[0, 1], [1, 2]], n_vertices=4),
    ])  # fmt: skip
    y = np.array([0, 1, 1, 0])
    for name in ("wl", "wl-oa", "pk", "rw"):
        rival = contestant(name, Task(graphs, y, np.array([[0, 0, 1, 1]])))
        model = rival.model(rival.only()).fit(graphs, y)
        assert len(model.predict(graphs)) == 4


def test_grid_of_the_assignment_kernel(task):
    rival = contestant("wl-oa", task)
    assert rival.n_configurations == 35
    trials = rival.score(rival.units()[0])
    assert {t.configuration["height"] for t in trials} == {5}
    assert max(t.score for t in trials) > 0.8


def test_networks_choose_their_epochs_by_validation(task):
    """With a network whose curve is known, and that tells which graphs it was shown."""
    seen = []
    task = replace(task, y=np.arange(len(task.y)))

    class Known:
        MAX_EPOCHS = 40
        grid = staticmethod(lambda graphs: [{"a": 1}, {"a": 2}])

        def __init__(self, *, seed, epochs, a):
            self.a = a

        def validation_curve(self, graphs, y, valid_graphs, valid_y):
            assert len(graphs) == len(y)
            seen.append((set(y), set(valid_y)))  # graphs by number
            peak = 10 * self.a
            return -np.abs(np.arange(40) - peak) / 40.0

    rival = NetworkContestant(task, Known)
    assert len(rival.units()) == 2 * len(task.folds)
    (trial,) = rival.score(rival.units()[1])
    assert trial.outer == 0
    assert trial.configuration == {"a": 2, "epochs": 21}
    fold = task.folds[0]
    assert seen == [(set(np.flatnonzero(fold > 0)), set(np.flatnonzero(fold == 0)))]
    whole = NetworkContestant(replace(task, search=Search(choose_epochs=False)), Known)
    (trial,) = whole.score(whole.units()[0])
    assert trial.configuration == {"a": 1, "epochs": 40}
    assert set(whole.units()).isdisjoint(rival.units())
    one = NetworkContestant(replace(task, search=few(1, choose_epochs=False)), Known)
    assert one.units() == []
    assert one.only() == {"a": 1, "epochs": 40}


def test_curves_are_smoothed_with_shorter_windows_at_the_ends():
    curve = np.arange(30.0) ** 2
    expected = [curve[max(0, i - 5) : i + 6].mean() for i in range(30)]
    np.testing.assert_allclose(smoothed(curve), expected)


# ---------------------------------------------------------------------- variants of our own

VARIANTS = {"fdgnn-auto": "all", "fdgnn-wl": "wl", "fdgnn-union": "union"}


@pytest.mark.parametrize("name", VARIANTS)
def test_variants_are_the_classifier(task, name):
    variant = contestant(name, replace(task, seed=3))
    train, test = task.graphs[:30], task.graphs[30:]
    model = variant.model(variant.only()).fit(train, task.y[:30])
    same = fdgnn.AutoGraphClassifier(VARIANTS[name], random_state=3)
    expected = same.fit(train, task.y[:30]).decision_function(test)
    np.testing.assert_array_equal(model.decision_function(test), expected)
    assert variant.units() == []
    variant.warm_up()


@pytest.mark.usefixtures("in_this_process")
def test_rows_of_variants(study, tmp_path):
    """Each outer fold's model is fitted on its training graphs, and tested on the others."""
    rows = run(study, tmp_path, ["wl", "fdgnn-wl", "fdgnn-auto"])
    assert [row.model for row in rows] == ["fdgnn", "wl", "fdgnn-wl", "fdgnn-auto"]
    kept = decode((tmp_path / "compare.json").read_bytes(), list[ComparisonRow])
    assert [row.model for row in kept] == ["fdgnn", "fdgnn-auto", "fdgnn-wl", "wl"]
    auto = rows[3]
    assert auto.status == "finished"
    assert auto.published is None
    for o, fold in enumerate(study.task().folds):
        model = fdgnn.AutoGraphClassifier(random_state=study.seed)
        model.fit(study.graphs[fold >= 0], study.y[fold >= 0])
        assert auto.fold_accuracies[o] == model.score(study.graphs[fold < 0], study.y[fold < 0])
    assert auto.train_seconds > 0
    assert 50 < auto.peak_mb < 4000
    assert auto.selection_seconds == 0  # it is a part of training
    assert auto.inner_folds == N_FOLDS
    assert auto.n_configurations % 8 == 0  # alphas of each base model
    assert auto.fold_configurations[0] == {"candidates": "all", "random_state": study.seed}


def test_a_variant_goes_on_where_it_stopped(study, tmp_path):
    (tmp_path / "rivals").mkdir(parents=True)
    turn = Turn("fdgnn-wl", study, tmp_path, Search())
    take(turn, lambda event: None)
    lines = turn.lines.path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3 + 1  # folds, summary
    whole = runner.finished_row(turn)
    turn.lines.path.write_bytes(b"".join(lines[:2]) + lines[2][:9])
    heard = []
    take(turn, heard.append)
    assert turn.lines.path.read_bytes().splitlines(keepends=True)[:2] == lines[:2]
    assert without_times(runner.finished_row(turn)) == without_times(whole)
    assert heard[0].spent > 0


def test_variants_have_limits(study, tmp_path):
    rows = run(study, tmp_path, ["fdgnn-auto"], limits=Limits(seconds=1e-3))
    assert rows[1].status == "out of time"
    rows = run(study, tmp_path, ["fdgnn-auto"], limits=Limits(megabytes=30))
    assert rows[1].status == "out of memory"


def test_weights_that_training_sets(task):
    variant = contestant("fdgnn-wl", task)
    model = variant.model(variant.only()).fit(task.graphs, task.y)
    readouts = [fitted.readout for fitted in model.estimators_]
    by_hand = 0
    for readout in readouts:
        weights = readout.dual if hasattr(readout, "dual") else readout.coef
        by_hand += int((weights != 0).sum()) + len(readout.intercept)
    assert contest.n_trained_weights(model) == by_hand
    largest = 2**18 * len(readouts)
    assert 0 < by_hand < largest  # most buckets are empty


# ---------------------------------------------------------------------- the protocol


def test_training_is_timed_without_preparation_and_repeated(motifs, monkeypatch):
    graphs, y = motifs
    made, prepared, clock = [], [], [0.0]
    monkeypatch.setattr("fdgnn.evaluation.measures.time.process_time", lambda: clock[0])
    monkeypatch.setattr("fdgnn.evaluation.measures.MOST_REPETITIONS", 5)

    class Slow:
        def fit(self, graphs, y):
            made.append(self)
            clock[0] += 0.01
            return self

        def predict(self, graphs):
            return np.full(len(graphs), y[0])

    def prepare(mask):
        prepared.append(mask)
        clock[0] += 0.05
        return graphs[mask]

    fold = nested_folds(y, 3, 3, seed=0)[0]
    found = fit_and_test(Slow, prepare, y, fold)
    assert len(made) == 5
    assert len(prepared) == 10
    assert found.train_seconds == pytest.approx(0.01)
    assert found.test_seconds == 0.0
    assert found.accuracy == np.mean(y[fold < 0] == y[0])


def test_rows(study, tmp_path):
    rows = run(study, tmp_path, ["wl"])
    assert [row.model for row in rows] == ["fdgnn", "wl"]
    for row in rows:
        assert row.status == "finished"
        assert row.dataset == "motifs"
        assert row.accuracy_mean == pytest.approx(np.mean(row.fold_accuracies))
        assert len(row.fold_accuracies) == 3
        assert row.train_seconds > 0
        assert row.test_seconds > 0
        assert 50 < row.peak_mb < 4000
    assert rows[0].parameters == 2 * study.n_units + 1
    assert rows[1].n_configurations == 2
    assert decode((tmp_path / "compare.json").read_bytes(), list[ComparisonRow]) == rows


@pytest.mark.usefixtures("in_this_process")
def test_fdgnn_row_is_the_evaluation(study, tmp_path):
    result = run_study(study, tmp_path)
    records = (tmp_path / "records.jsonl").read_bytes()
    row = run(study, tmp_path, [])[0]
    assert row.fold_accuracies == result.fold_accuracies
    assert (tmp_path / "records.jsonl").read_bytes() == records  # taken over, not repeated


@pytest.mark.usefixtures("in_this_process")
def test_folds_are_those_of_the_evaluation(study, tmp_path):
    """The rival's test accuracy of an outer fold, made again with scikit-learn alone."""
    row = run(study, tmp_path, ["wl"])[1]
    y = study.y
    outer = StratifiedKFold(3, shuffle=True, random_state=study.seed)
    for o, (train, test) in enumerate(outer.split(y, y)):
        choice = row.fold_configurations[o]
        kernel = grakel.WeisfeilerLehman(
            n_iter=choice["height"], base_graph_kernel=grakel.VertexHistogram, normalize=True
        )
        K = kernel.fit_transform(as_grakel(study.graphs[train]))
        svc = SVC(C=choice["C"], kernel="precomputed").fit(K, y[train])
        accuracy = svc.score(kernel.transform(as_grakel(study.graphs[test])), y[test])
        assert row.fold_accuracies[o] == pytest.approx(accuracy)


@pytest.mark.usefixtures("in_this_process")
def test_published_numbers_are_the_papers(study, tmp_path):
    named = replace(study, dataset="MUTAG")
    rows = {row.model: row for row in run(named, tmp_path, ["wl"], few(1))}
    wl = paper.ACCURACY["WL"]["MUTAG"]
    assert rows["wl"].published == PublishedAccuracy(
        accuracy_mean=wl.mean / 100, accuracy_std=wl.std / 100, reference="zhang2018"
    )
    assert rows["fdgnn"].published.accuracy_mean == 0.8851


# ---------------------------------------------------------------------- resuming


@pytest.mark.usefixtures("in_this_process")
def test_resuming_after_every_record_gives_the_same_row(study, tmp_path):
    whole = run(study, tmp_path / "whole", ["wl"], few(9))[1]
    lines = (tmp_path / "whole/rivals/wl.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == 2 + 3 + 1  # kernels, folds, summary
    for n in range(len(lines)):
        directory = tmp_path / str(n)
        (directory / "rivals").mkdir(parents=True)
        (directory / "settings.json").write_bytes((tmp_path / "whole/settings.json").read_bytes())
        torn = lines[n][: len(lines[n]) // 2]
        path = directory / "rivals/wl.jsonl"
        path.write_bytes(b"".join(lines[:n]) + torn)
        take(Turn("wl", study, directory, few(9)), lambda event: None)
        kept = path.read_bytes().splitlines(keepends=True)
        assert kept[:n] == lines[:n]
        assert len(kept) == len(lines)
        again = runner.finished_row(Turn("wl", study, directory, few(9)))
        assert without_times(again) == without_times(whole)


@pytest.mark.usefixtures("in_this_process")
def test_finished_turns_are_not_taken_again(study, tmp_path, monkeypatch):
    first = run(study, tmp_path, ["wl"])
    log = (tmp_path / "rivals/wl.jsonl").read_bytes()
    second = run(study, tmp_path, ["wl"])
    assert second[1] == first[1]
    assert (tmp_path / "rivals/wl.jsonl").read_bytes() == log
    wider = run(study, tmp_path, ["wl"], few(9))[1]
    assert wider.n_configurations == 9
    assert (tmp_path / "rivals/wl.jsonl").read_bytes().startswith(log)
    fresh = run(study, tmp_path / "fresh", ["wl"], few(9))[1]
    assert without_times(wider) == without_times(fresh)  # whatever was tried before


def test_the_best_validated_is_chosen():
    found = [(0, 1, 0.5), (0, 2, 0.9), (0, 3, 0.9), (1, 4, 1.0)]
    trials = [Trial(outer=o, configuration={"a": a}, score=score) for o, a, score in found]
    assert best(trials, 0).configuration == {"a": 2}
    assert best(trials, 1).configuration == {"a": 4}


def test_warm_up_comes_before_the_clock(study, tmp_path, monkeypatch):
    told = []

    class Told(KernelContestant):
        def warm_up(self):
            told.append("warm up")

        def model(self, configuration):
            told.append("model")
            return super().model(configuration)

    make = contestant("wl", Task(study.graphs, study.y, study.task().folds)).make
    monkeypatch.setattr(contest, "contestant", lambda name, task: Told(task, make, [{"height": 1}]))
    (tmp_path / "rivals").mkdir()
    take(Turn("wl", study, tmp_path, few(1)), lambda event: None)
    assert told[0] == "warm up"
    assert told.count("warm up") == 1
    assert "model" in told


def test_everything_runs_on_one_thread(study, tmp_path, monkeypatch):
    """Asked of the libraries in a contestant's environment."""
    script = (
        "import numpy, threadpoolctl as t; print({p['num_threads'] for p in t.threadpool_info()})"
    )
    for name in runner.ONE_THREAD:
        monkeypatch.setenv(name, "2")
    environment = runner._environment()
    found = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.split() == ["{1}"]


@pytest.mark.usefixtures("in_this_process")
def test_time_spent_before_counts_if_it_is_used_again(study, tmp_path):
    heard = []
    run(study, tmp_path, ["wl"], few(2))
    take(Turn("wl", study, tmp_path, few(2)), heard.append)
    lines = list(Turn("wl", study, tmp_path, few(2)).lines)
    used = sum(line.seconds for line in lines if not isinstance(line, SummaryLine))
    assert heard[0].spent == pytest.approx(used)
    again = []
    take(Turn("wl", study, tmp_path, few(2, inner_folds=1)), again.append)
    folds = sum(line.seconds for line in lines if isinstance(line, FoldLine))
    assert again[0].spent == pytest.approx(folds)  # another selection's parts do not


def test_a_worker_does_not_outlive_its_parent(study, tmp_path):
    """The parent is killed as hard as can be while a contestant works."""
    script = (
        "import sys, pickle\n"
        "from fdgnn.evaluation.comparison import *\n"
        "study = pickle.load(sys.stdin.buffer)\n"
        "compare_study(study, __import__('pathlib').Path(sys.argv[1]), ['gk'],"
        " search=Search(), limits=Limits())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")], stdin=subprocess.PIPE
    )
    pickle.dump(study, process.stdin)
    process.stdin.close()
    log = tmp_path / "run" / "rivals" / "gk.log"
    _wait_until(lambda: log.exists() and psutil.Process(process.pid).children())
    (worker,) = psutil.Process(process.pid).children()
    process.kill()
    process.wait()
    _wait_until(lambda: not worker.is_running())


def _wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_that_has_more_networks_is_refused_at_once(study, tmp_path):
    larger = replace(study, protocol=replace(study.protocol, n_guesses=2))
    run_study(larger, tmp_path)
    (tmp_path / "result.json").unlink()  # as if it had been stopped
    with pytest.raises(StudyError, match="more configurations or guesses"):
        run(study, tmp_path, [])


@pytest.mark.usefixtures("in_this_process")
def test_rows_of_other_rivals_stay(study, tmp_path):
    run(study, tmp_path, ["wl"])
    run(study, tmp_path, ["pk"])
    models = [row["model"] for row in json.loads((tmp_path / "compare.json").read_text())]
    assert models == ["fdgnn", "wl", "pk"]


@pytest.mark.usefixtures("in_this_process")
def test_other_settings_are_refused(study, tmp_path):
    run(study, tmp_path, [])
    with pytest.raises(StudyError, match="seed"):
        run(replace(study, seed=1), tmp_path, [])


@pytest.mark.usefixtures("in_this_process")
def test_a_second_comparison_at_the_same_time_is_refused(study, tmp_path):
    from fdgnn.evaluation.rundir import locked

    run(study, tmp_path, [])
    with locked(tmp_path / "rivals" / "lock"), pytest.raises(StudyError, match="another process"):
        run(study, tmp_path, [])


# ---------------------------------------------------------------------- limits


def test_running_out_of_time_does_not_stop_the_others(study, tmp_path, monkeypatch):
    rows = run(study, tmp_path, ["gk", "wl"], few(1), Limits(seconds=1e-3))
    assert [r.status for r in rows] == ["out of time"] * 3
    for row in rows:
        assert row.accuracy_mean is None
        assert "0.001 s" in row.reason
    monkeypatch.setattr(runner, "_run", take_here)
    rows = run(study, tmp_path, ["wl"], few(1), Limits(seconds=600))  # more than before
    assert [r.status for r in rows] == ["finished"] * 2


def test_running_out_of_time_again_is_known_beforehand(study, tmp_path, monkeypatch):
    run(study, tmp_path, ["wl"], limits=Limits(seconds=1e-3))
    started = []
    monkeypatch.setattr(
        runner, "_run", lambda turn, *_: started.append(turn.name) or ("failed", "")
    )
    rows = run(study, tmp_path, ["wl"], limits=Limits(seconds=1e-3))
    assert started == ["fdgnn"]
    assert rows[1].status == "out of time"


def test_running_out_of_memory(study, tmp_path):
    rows = run(study, tmp_path, ["wl"], limits=Limits(megabytes=30))
    assert [r.status for r in rows] == ["out of memory"] * 2
    assert rows[1].reason == "it was given 30 MB"


def test_a_rival_that_crashes_says_why(study, tmp_path, monkeypatch):
    home = "fdgnn.evaluation.baselines.graph_kernels:no_such_thing"
    broken = Rival(
        "broken", "WL", "fdgnn.evaluation.baselines.graph_kernels:no_such_thing", ("grakel",)
    )
    monkeypatch.setitem(RIVALS, "broken", broken)
    (tmp_path / "sitecustomize.py").write_text(
        "import fdgnn.evaluation.baselines.base as b\n"
        "b.RIVALS['broken'] = b.Rival('broken', 'WL', '" + home + "',"
        " ('grakel',))\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    in_its_own = runner._run

    def take_turn(turn, limits):
        return (in_its_own if turn.name == "broken" else take_here)(turn, limits)

    monkeypatch.setattr(runner, "_run", take_turn)
    rows = run(study, tmp_path / "run", ["broken", "wl"])
    assert [r.status for r in rows] == ["finished", "failed", "finished"]
    assert "no_such_thing" in rows[1].reason
    assert "\n" not in rows[1].reason


def test_a_killed_contestant_is_a_failed_one(study, tmp_path, monkeypatch):
    monkeypatch.setattr(
        runner, "_megabytes", lambda pid: subprocess.run(["kill", "-9", str(pid)]) and 0
    )
    rows = run(study, tmp_path, ["gk"])
    assert rows[1].status == "failed"
    assert "-9" in rows[1].reason


# ---------------------------------------------------------------------- doors


@pytest.mark.usefixtures("in_this_process", "few_networks")
def test_own_graphs_in_code(motifs):
    graphs, y = motifs
    rows = compare(list(graphs), np.where(y, "yes", "no").tolist(), ["wl"], n_outer=2, n_inner=2,
                   search=few(1))  # fmt: skip
    assert [row.status for row in rows] == ["finished"] * 2
    assert rows[1].accuracy_mean > 0.7
    assert rows[0].dataset == "graphs"


def test_bad_input_in_code(motifs):
    graphs, y = motifs
    for wrong in ({"n_configurations": 0}, {"inner_folds": -1}):
        with pytest.raises(ValueError, match="give 1 or more"):
            Search(**wrong)
    with pytest.raises(ValueError, match="must be positive"):
        Limits(seconds=-5)
    with pytest.raises(ValueError, match="no rival 'xyz'"):
        compare(graphs, y, "xyz")
    with pytest.raises(
        ValueError, match=r"no rival 'xyz'; there are fdgnn-auto, .*, wl, wl-oa, pk"
    ):
        compare(graphs, y, ["xyz"])
    with pytest.raises(ValueError, match="no protocol 'slow'"):
        compare(graphs, y, protocol="slow")
    with pytest.raises(ValueError, match="39 entries"):
        compare(graphs, y[1:])
    with pytest.raises(ValueError, match="one class only"):
        compare(graphs, np.zeros(40))
    with pytest.raises(ValueError, match="too few"):
        compare(graphs[:12], y[:12], n_outer=10)


def test_a_missing_library_is_told_before_anything_runs(study, tmp_path, monkeypatch):
    monkeypatch.setitem(RIVALS, "wl", replace(RIVALS["wl"], libraries=("no_such_library",)))
    with pytest.raises(MissingDependencyError, match="extra 'compare'"):
        run(study, tmp_path / "run", ["wl"])
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("in_this_process", "few_networks")
def test_command(tmp_path, motifs, monkeypatch):
    folder = write_batch(tmp_path / "MOTIFS", *motifs)
    monkeypatch.chdir(tmp_path)
    options = ["--with", "wl", "--configurations", "1", "--time-limit", "300", "-q"]
    told = CliRunner().invoke(app, ["compare", str(folder), *options])
    assert told.exit_code == 0, told.output
    assert "wl" in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 80
    rows = json.loads((tmp_path / "runs/MOTIFS/compare.json").read_text())
    assert [row["model"] for row in rows] == ["fdgnn", "wl"]
    assert (tmp_path / "runs/MOTIFS/report.html").exists()
    again = CliRunner().invoke(app, ["compare", str(folder), *options, "--json", "--no-report"])
    assert [row["model"] for row in json.loads(again.stdout)] == ["fdgnn", "wl"]


def test_our_committee_is_compared_by_default():
    from fdgnn.cli.compare import compare as command

    assert inspect.signature(command).parameters["rivals"].default is None
    assert inspect.signature(compare).parameters["models"].default is None
    assert runner.default_models(molecules=False) == ("fdgnn-auto", "wl")
    assert runner.default_models(molecules=True) == ("fdgnn-auto", "ecfp-lr", "ecfp-rf")


def test_every_contestant_can_be_asked_for_by_name():
    from typing import get_type_hints

    from fdgnn.cli.compare import compare as command

    (option,) = get_type_hints(command, include_extras=True)["rivals"].__metadata__
    assert option.help.startswith(f"Some of {','.join(RIVALS)}.")
    for molecules in (True, False):
        assert ",".join(runner.default_models(molecules)) in option.help


def test_command_refuses_nonsense(tmp_path, motifs, monkeypatch):
    folder = write_batch(tmp_path / "MOTIFS", *motifs)
    monkeypatch.chdir(tmp_path)
    for arguments in (["--with", "foo"], ["--time-limit", "0"], ["--configurations", "0"]):
        told = CliRunner().invoke(app, ["compare", str(folder), *arguments])
        assert told.exit_code != 0
    told = CliRunner().invoke(app, ["compare", "no-such-dataset"])
    assert told.exit_code != 0
    assert not (tmp_path / "runs").exists()


def test_damaged_lines_of_a_rival_do_not_count(study, tmp_path):
    turn = Turn("wl", study, tmp_path, few(2))
    turn.lines.path.parent.mkdir()
    whole = TrialsLine(unit="a", trials=[], seconds=1.0, inner_folds=3, peak_mb=1.0)
    fold = FoldLine(
        outer=2, configuration={}, accuracy=0.5, train_seconds=1.0, test_seconds=1.0,
        parameters=1, peak_mb=1.0, seconds=2.0,
    )  # fmt: skip
    other = TrialsLine(unit="b", trials=[], seconds=1.0, inner_folds=1, peak_mb=1.0)
    for line in (whole, other, fold):
        turn.lines.append(line)
    with turn.lines.path.open("a") as file:
        file.write('{"kind": "trials"}\n{"kind": "fold", "outer": 1}\nnonsense\n{"kind": "fo')
    assert list(turn.lines.lines()) == [whole, other, fold, None, None, None, None]
    assert contest._scored(turn.lines, SimpleNamespace(inner_folds=3), turn.search) == {"a": whole}
    assert contest._folds_of(turn.lines) == {2: fold}


def test_no_processes_are_refused_at_once(tmp_path):
    graphs, y = make_motif_graphs(40, random_state=0)
    with pytest.raises(ValueError, match="n_jobs=0"):
        compare(graphs, y, [], out=tmp_path / "run", n_jobs=0, n_outer=3, n_inner=3)
    assert not (tmp_path / "run").exists()

"""Run directories: resumable, the same to the last digit however they were interrupted."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fdgnn.context import Context
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation, Protocol
from fdgnn.evaluation.run import EvaluationTask, RunDirectory, evaluate, read_evaluations
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.folds import nested_folds
from fdgnn.metrics import OF_CLASSES
from fdgnn.targets import read_targets
from fdgnn.training import NestedEvaluation, TrainingOptions

TINY = Protocol("tiny", n_configurations=4, n_initializations=2, max_layers=2)
SMALLER = replace(TINY, n_configurations=2, n_initializations=1)


def task_of(n_graphs=45, seed=0):
    graphs, y = make_motif_graphs(n_graphs, random_state=0)
    folds = nested_folds(y, 3, 3, seed)
    return EvaluationTask("motifs", graphs, read_targets(y, graphs, True), folds, seed=seed)


def paper_of(protocol=TINY, **options):
    return PaperEvaluation(task_of(**options), protocol, n_units=10)


def run(evaluator, path, context=None):
    return evaluate(evaluator, path, context).evaluation


def numbers(found):
    """All that must not depend on the way the run went."""
    return found.reproducible()


def checkpoints(path):
    return sorted((path / "parts").glob("*.npz"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(paper_of(), tmp_path_factory.mktemp("undisturbed"))


# ---------------------------------------------------------------------- the result


def test_the_directory_has_the_result(undisturbed, tmp_path):
    found = run(paper_of(), tmp_path, Context(command="fdgnn evaluate"))
    assert read_evaluations(tmp_path) == [found]
    assert found.command == "fdgnn evaluate"
    assert (found.status, found.protocol.name, len(found.folds)) == ("finished", "tiny", 3)
    assert found.score == pytest.approx(np.mean(found.targets[0].scores[0].folds))
    assert found.std == pytest.approx(np.std(found.targets[0].scores[0].folds, ddof=1))
    best = found.variants["best_on_test_folds"].mean
    assert best >= max(found.variants["best_for_all_test_folds"].mean, found.score)
    assert len(found.tried) == 4
    assert found.baseline("constant", "roc_auc").mean == 0.5
    assert len(checkpoints(tmp_path)) == 8


def test_selected_models_score_as_recorded_when_fitted(tmp_path):
    """The closed form and the estimator are one model: the first initialization of each fold."""
    paper = paper_of(replace(TINY, n_initializations=1))
    found = run(paper, tmp_path)
    graphs, y = paper.task.graphs, paper.task.targets.of_target(0)
    scores = found.targets[0].scores[0].folds
    for fold, one, score in zip(paper.task.folds, found.folds, scores, strict=True):
        model = paper.model(one.configuration).fit(graphs[fold >= 0], y[fold >= 0])
        assert model.score(graphs[fold < 0], y[fold < 0]) == pytest.approx(score)
    assert found.variants["ensemble"].folds == scores  # of one network it is that network


def test_ensemble_averages_the_outputs_of_fitted_networks(tmp_path):
    paper = paper_of()
    found = run(paper, tmp_path)
    graphs, y = paper.task.graphs, paper.task.targets.of_target(0)
    for o, (fold, one) in enumerate(zip(paper.task.folds, found.folds, strict=True)):
        assert one.configuration["alpha"] == one.alphas[0]
        outputs = []
        for number, alpha in enumerate(one.alphas):
            model = paper.model(one.configuration).set_params(n_estimators=2, alpha=alpha)
            model.fit(graphs[fold >= 0], y[fold >= 0])
            model.estimators_ = model.estimators_[number : number + 1]
            outputs.append(model.decision_function(graphs[fold < 0]))
        predicted = model.classes_[(np.mean(outputs, axis=0) > 0).astype(int)]
        score = np.mean(predicted == y[fold < 0])
        assert found.variants["ensemble"].folds[o] == pytest.approx(score)


def test_predictions_are_those_of_the_first_initialization(tmp_path):
    done = evaluate(paper_of(replace(TINY, n_initializations=1)), tmp_path)
    accuracy = done.predictions.by_fold(OF_CLASSES["accuracy"])
    np.testing.assert_allclose(accuracy, done.evaluation.targets[0].scores[0].folds)
    chances = done.probabilities(0)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    right = np.argmax(chances, axis=1) == done.task.targets.values[:, 0]
    assert right.mean() == pytest.approx(np.mean(accuracy), abs=0.1)


def test_processes_do_not_change_the_result(undisturbed, tmp_path):
    assert numbers(run(paper_of(), tmp_path, Context(n_jobs=2))) == numbers(undisturbed)


# ---------------------------------------------------------------------- resuming


def nested_of(y=None):
    task = task_of()
    options = TrainingOptions(model="wl").with_defaults(task.targets)
    folds = options.split.nested(task.targets, seed=0)
    return NestedEvaluation(replace(task, folds=folds), options)


@pytest.mark.parametrize("make", [paper_of, nested_of])
def test_what_is_damaged_or_gone_is_made_again(make, tmp_path):
    whole = run(make(), tmp_path)
    first, second, *others = checkpoints(tmp_path)
    first.write_bytes(first.read_bytes()[:-20])
    second.unlink()
    (tmp_path / "evaluation.json").unlink()
    before = {path: path.stat().st_mtime_ns for path in others}
    again = run(make(), tmp_path)
    assert numbers(again) == numbers(whole)
    assert again.times.n_resumed == len(others)
    assert {path: path.stat().st_mtime_ns for path in others} == before


def test_a_run_may_be_extended(undisturbed, tmp_path):
    run(paper_of(SMALLER), tmp_path)
    found = run(paper_of(), tmp_path)
    assert found.times.n_resumed == 2
    assert numbers(found) == numbers(undisturbed)


def test_a_run_is_never_made_smaller(tmp_path):
    run(paper_of(), tmp_path)
    before = (tmp_path / "evaluation.json").read_bytes()
    with pytest.raises(RunMismatchError, match="more configurations or random initializations"):
        run(paper_of(SMALLER), tmp_path)
    assert (tmp_path / "evaluation.json").read_bytes() == before


_SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_runs import {make}, run
run({make}(), Path(sys.argv[1]))
"""


@pytest.mark.parametrize("make", [paper_of, nested_of])
def test_kill_minus_nine_loses_nothing_that_was_finished(make, tmp_path):
    script = _SCRIPT.format(tests=str(Path(__file__).parent), make=make.__name__)
    path = tmp_path / "run"
    for wanted in (1, 3):
        process = subprocess.Popen([sys.executable, "-c", script, str(path)])
        _wait_for_checkpoints(path, wanted, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = {path: path.read_bytes() for path in checkpoints(path)}
    assert numbers(run(make(), path)) == numbers(run(make(), tmp_path / "undisturbed"))
    assert {path: path.read_bytes() for path in before} == before


def _wait_for_checkpoints(path, wanted, process, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if len(checkpoints(path)) >= wanted:
            return
        time.sleep(0.005)
    assert process.poll() == 0, "the run ended badly or took too long"


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch):
    run(paper_of(SMALLER), tmp_path)
    kept = {path: path.read_bytes() for path in checkpoints(tmp_path)}

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        run(paper_of(), tmp_path)
    monkeypatch.undo()
    assert {path: path.read_bytes() for path in checkpoints(tmp_path)} == kept


# ---------------------------------------------------------------------- other directories


@pytest.mark.parametrize(
    "other", [{"seed": 1}, {"n_graphs": 48}, {"protocol": replace(TINY, max_layers=3)}]
)
def test_a_directory_of_another_run_is_rejected(tmp_path, other):
    RunDirectory(tmp_path, [paper_of().described]).close()
    with pytest.raises(RunMismatchError, match="holds a run with"):
        RunDirectory(tmp_path, [paper_of(**other).described])


def test_another_model_on_the_same_folds_is_kept_beside(undisturbed, tmp_path):
    run(paper_of(), tmp_path)
    nested = nested_of()
    three = replace(nested, task=task_of())
    run(three, tmp_path)
    assert [one.model.name for one in read_evaluations(tmp_path)] == ["paper", "wl"]
    assert numbers(read_evaluations(tmp_path)[0]) == numbers(undisturbed)
    with pytest.raises(RunMismatchError, match="with n_outer = 3, not 10"):
        run(nested, tmp_path)


def test_an_unfinished_run_is_written_as_such(tmp_path):
    RunDirectory(tmp_path, [paper_of().described]).close()
    (found,) = read_evaluations(tmp_path)
    assert (found.status, found.targets, found.model.name) == ("unfinished", [], "paper")


def test_one_class_is_an_error_before_anything_is_computed(tmp_path):
    graphs, y = make_motif_graphs(20, random_state=0)
    with pytest.raises(ValueError, match="one class only"):
        read_targets(np.ones_like(y), graphs, True)


def test_only_one_run_at_a_time(tmp_path):
    first = RunDirectory(tmp_path, [paper_of().described])
    with pytest.raises(StudyError, match="another process"):
        RunDirectory(tmp_path, [paper_of().described])
    first.close()
    RunDirectory(tmp_path, [paper_of().described]).close()


def test_foreign_directories_and_files_are_rejected(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(RunMismatchError, match="not those of a run"):
        RunDirectory(tmp_path, [])
    with pytest.raises(StudyError, match="cannot be used"):
        RunDirectory(tmp_path / "thesis.tex", [])
    with pytest.raises(StudyError, match="not a run directory"):
        read_evaluations(tmp_path)


def test_damaged_results_are_reported(tmp_path):
    (tmp_path / "evaluation.json").write_text('{"data')
    with pytest.raises(StudyError, match="damaged"):
        RunDirectory(tmp_path, [paper_of().described])


def test_the_papers_sizes_are_the_default():
    task = replace(task_of(), dataset="NCI1")
    assert PaperEvaluation(task, PROTOCOLS["paper"]).units == 500
    assert PaperEvaluation(task, n_units=7).units == 7
    assert PaperEvaluation(replace(task, dataset="mine")).units == 50


# ---------------------------------------------------------------------- on a cluster


@pytest.mark.xdist_group("dask")
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bits(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        victim = next(iter(cluster.workers.values()))
        with ThreadPoolExecutor() as pool:
            killing = pool.submit(_kill_in_mid_run, victim.pid, tmp_path)
            found = run(replace(paper_of(), cluster=cluster.scheduler_address), tmp_path)
            assert 1 <= killing.result() < 8
    assert numbers(found) == numbers(undisturbed)


def _kill_in_mid_run(pid, path):
    """Kill once the first checkpoint is there; return how many were there then."""
    end = time.monotonic() + 120
    while not checkpoints(path) and time.monotonic() < end:
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return len(checkpoints(path))


def test_an_unreachable_scheduler_is_reported(tmp_path):
    pytest.importorskip("distributed")
    for address, words in (
        ("tcp://127.0.0.1:9", r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"),
        ("tls://127.0.0.1:9", r"answers at tls:.* \(TLS expects"),
    ):
        with pytest.raises(StudyError, match=words):
            run(replace(paper_of(), cluster=address), tmp_path)


def test_no_processes_leave_no_trace(tmp_path):
    with pytest.raises(ValueError, match="n_jobs=0"):
        run(paper_of(), tmp_path / "run", Context(n_jobs=0))
    assert not (tmp_path / "run").exists()


def test_results_are_plain_json(tmp_path):
    run(paper_of(SMALLER), tmp_path)
    (found,) = json.loads((tmp_path / "evaluation.json").read_text())
    assert found["targets"][0]["scores"][0]["metric"] == "accuracy"
    assert found["folds"][0]["n_test"] == 15

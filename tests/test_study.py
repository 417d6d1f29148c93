"""Runs on disk: resumable, the same to the last digit however they were interrupted."""

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
from fdgnn.evaluation.records import NetworkScores
from fdgnn.evaluation.rundir import RunDirectory, read_run
from fdgnn.evaluation.running import finished_result, run_study
from fdgnn.evaluation.study import ENGINE, PROTOCOLS, Protocol, Study, plan
from fdgnn.exceptions import RunMismatchError, StudyError

TINY = Protocol("tiny", n_configurations=4, n_guesses=2, n_outer=3, n_inner=3, max_layers=2)


def study_of(protocol=TINY, n_graphs=45, **options):
    graphs, y = make_motif_graphs(n_graphs, random_state=0)
    return Study("motifs", graphs, y, protocol, n_units=10, **options)


def numbers(result):
    """All that must not depend on the way the run went."""
    return {n: getattr(result, n) for n in result.__struct_fields__ if n != "times"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run_study(study_of(), tmp_path_factory.mktemp("undisturbed"))


def test_result_is_what_the_records_say(tmp_path):
    study = study_of()
    result = run_study(study, tmp_path)
    run = read_run(tmp_path)
    assert run.result == result
    records = list(run.networks)
    assert {(r.configuration, r.guess) for r in records} == set(np.ndindex(4, 2))
    by_configuration = [[r for r in records if r.configuration == c] for c in range(4)]
    for row, own in ((result.single_layer, 0), (result, 1)):
        for o, score in enumerate(row.fold_accuracies):
            candidates = []  # mean validation and test scores, each guess with its own penalty
            for guesses in by_configuration:
                own_best = []
                for r in guesses:
                    validation = np.array(r.validation)[own, o][::-1]
                    test = np.array(r.test)[own, o][::-1]
                    own_best.append((validation.max(), test[validation.argmax()]))
                candidates.append(np.mean(own_best, axis=0))
            most = max(validation for validation, _ in candidates)
            assert score in [test for validation, test in candidates if validation == most]
    for o, score in enumerate(result.common_penalty.fold_accuracies):
        means = np.array(
            [[np.mean([np.array(getattr(r, part))[1, o] for r in guesses], axis=0)
              for part in ("validation", "test")] for guesses in by_configuration]
        )  # fmt: skip
        assert score in means[:, 1][means[:, 0] == means[:, 0].max()]
    assert result.accuracy_mean == pytest.approx(np.mean(result.fold_accuracies))
    assert set(result.single_layer.fold_depths) == {1}
    chosen = result.chosen_on_test_folds
    assert chosen.one_for_each_fold >= max(chosen.one_for_all_folds, result.accuracy_mean)


def test_selected_models_score_as_recorded_when_fitted(tmp_path):
    """The closed form and the estimator are one model: guess 0 of each selected configuration."""
    study = study_of(Protocol("one", 4, 1, n_outer=3, n_inner=3, max_layers=2))
    result = run_study(study, tmp_path)
    task = study.task()
    for fold, configuration, score in zip(
        task.folds, result.fold_configurations, result.fold_accuracies, strict=True
    ):
        model = study.estimator(configuration).fit(study.graphs[fold >= 0], study.y[fold >= 0])
        assert model.score(study.graphs[fold < 0], study.y[fold < 0]) == pytest.approx(score)


def test_ensemble_averages_the_outputs_of_fitted_networks(tmp_path):
    study = study_of()
    result = run_study(study, tmp_path)
    chosen = zip(study.task().folds, result.fold_configurations, result.fold_alphas, strict=True)
    for o, (fold, configuration, alphas) in enumerate(chosen):
        assert configuration["alpha"] == alphas[0]
        outputs = []
        for guess, alpha in enumerate(alphas):
            model = study.estimator(configuration).set_params(n_estimators=2, alpha=alpha)
            model.fit(study.graphs[fold >= 0], study.y[fold >= 0])
            model.estimators_ = model.estimators_[guess : guess + 1]
            outputs.append(model.decision_function(study.graphs[fold < 0]))
        predicted = model.classes_[(np.mean(outputs, axis=0) > 0).astype(int)]
        score = np.mean(predicted == study.y[fold < 0])
        assert result.ensemble.fold_accuracies[o] == pytest.approx(score)


def test_ensemble_of_one_network_is_that_network(tmp_path):
    study = study_of(Protocol("one", 4, 1, n_outer=3, n_inner=3, max_layers=2))
    result = run_study(study, tmp_path)
    assert result.ensemble.fold_accuracies == result.fold_accuracies


def test_result_has_numbers_for_each_fold(undisturbed):
    assert len(undisturbed.times.fold_train_seconds) == 3
    assert len(undisturbed.ensemble.fold_accuracies) == 3
    assert undisturbed.protocol == "tiny"


def test_processes_do_not_change_the_result(undisturbed, tmp_path):
    result = run_study(study_of(), tmp_path, Context(n_jobs=2))
    assert numbers(result) == numbers(undisturbed)


def test_a_run_is_continued_after_a_torn_record(undisturbed, tmp_path):
    run_study(study_of(), tmp_path)
    lines = (tmp_path / "records.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "records.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:40])
    (tmp_path / "result.json").unlink()
    assert numbers(run_study(study_of(), tmp_path)) == numbers(undisturbed)
    again = (tmp_path / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert again[:3] == lines[:3]
    assert len(again) == 8


@pytest.mark.parametrize(
    "damage",
    [
        {"validation": [[1.0]]},
        {"test": [[[float("nan")] * 12] * 3] * 2},
        {"validation": [[[7.0] * 12] * 3] * 2},
        {"configuration": float("inf")},
        {"guess": None},
    ],
)
def test_damaged_records_are_made_again(undisturbed, tmp_path, damage):
    run_study(study_of(), tmp_path)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    lines[2] = json.dumps(json.loads(lines[2]) | damage)
    (tmp_path / "records.jsonl").write_text("\n".join(lines) + "\n")
    assert numbers(run_study(study_of(), tmp_path)) == numbers(undisturbed)


def test_one_class_is_told_before_anything_is_computed(tmp_path):
    study = study_of()
    with pytest.raises(ValueError, match="one class only"):
        run_study(replace(study, y=np.ones_like(study.y)), tmp_path)
    assert not (tmp_path / "records.jsonl").exists()


def test_a_killed_process_is_reported_in_one_line(tmp_path):
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    from fdgnn.evaluation.running import _dead_workers_reported

    with (
        pytest.raises(StudyError, match="run the same command again"),
        _dead_workers_reported(tmp_path),
    ):
        raise TerminatedWorkerError("killed")


def test_a_run_may_be_extended(undisturbed, tmp_path):
    smaller = Protocol("tiny", 2, 1, n_outer=3, n_inner=3, max_layers=2)
    run_study(study_of(smaller), tmp_path)
    assert numbers(run_study(study_of(), tmp_path)) == numbers(undisturbed)


_SCRIPT = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_study import run_study, study_of
run_study(study_of(), Path(sys.argv[1]))
"""


def test_kill_minus_nine_loses_nothing_that_was_recorded(undisturbed, tmp_path):
    script = _SCRIPT.format(tests=str(Path(__file__).parent))
    for wanted in (1, 4):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
        _wait_for_lines(tmp_path / "records.jsonl", wanted, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
    before = (tmp_path / "records.jsonl").read_bytes()
    assert numbers(run_study(study_of(), tmp_path)) == numbers(undisturbed)
    complete = before[: before.rfind(b"\n") + 1]
    assert (tmp_path / "records.jsonl").read_bytes().startswith(complete)


def _wait_for_lines(path, wanted, process, seconds=120):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= wanted:
            return
        time.sleep(0.005)
    assert process.poll() == 0, "the run ended badly or took too long"


@pytest.mark.parametrize("other", [{"seed": 1}, {"n_graphs": 48}, {"protocol": PROTOCOLS["quick"]}])
def test_a_directory_of_another_run_is_refused(tmp_path, other):
    RunDirectory(tmp_path, study_of().settings()).close()
    with pytest.raises(RunMismatchError, match="it holds a run with"):
        RunDirectory(tmp_path, study_of(**other).settings())


def test_a_run_is_never_made_smaller(tmp_path):
    run_study(study_of(), tmp_path)
    smaller = Protocol("tiny", 2, 1, n_outer=3, n_inner=3, max_layers=2)
    before = (tmp_path / "result.json").read_bytes()
    with pytest.raises(RunMismatchError, match="more configurations or guesses"):
        run_study(study_of(smaller), tmp_path)
    assert (tmp_path / "result.json").read_bytes() == before


def test_a_run_of_another_engine_is_not_continued(tmp_path):
    run_study(study_of(), tmp_path)
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings.pop("engine") == ENGINE
    for engine in ({}, {"engine": ENGINE + 1}):  # before there was a number, and a later one
        (tmp_path / "settings.json").write_text(json.dumps(settings | engine))
        with pytest.raises(RunMismatchError, match="it holds a run with engine"):
            run_study(study_of(), tmp_path)


def test_a_run_directory_is_read_as_it_was_written(undisturbed, tmp_path):
    with pytest.raises(StudyError, match="no run directory"):
        read_run(tmp_path)
    study = study_of()
    result = run_study(study, tmp_path, Context(command="fdgnn evaluate"))
    run = read_run(tmp_path)
    assert run.settings == study.settings()
    assert run.asked.command == "fdgnn evaluate"
    assert run.asked.n_guesses == 2
    assert run.result == result
    assert run.rivals == ()
    with (tmp_path / "records.jsonl").open("a") as file:
        file.write("torn")
    assert [n is None for n in read_run(tmp_path).networks.lines()] == [False] * 8 + [True]
    (tmp_path / "result.json").write_text('{"accuracy_mean": "high"}')
    with pytest.raises(StudyError, match=r"result\.json: it is damaged"):
        read_run(tmp_path)


def test_only_one_run_at_a_time(tmp_path):
    run = RunDirectory(tmp_path, study_of().settings())
    with pytest.raises(StudyError, match="another process"):
        RunDirectory(tmp_path, study_of().settings())
    run.close()
    RunDirectory(tmp_path, study_of().settings()).close()


def test_damaged_and_repeated_records_do_not_count(undisturbed, tmp_path):
    run_study(study_of(), tmp_path)
    records = tmp_path / "records.jsonl"
    lines = records.read_bytes().splitlines(keepends=True)
    damage = [
        b"[" * 100_000 + b"\n",
        b"garbage\n",
        b"\n",
        b'{"configuration": 1}\n',
        b"[]\n",
        lines[0],
    ]
    records.write_bytes(b"".join([lines[0], *damage, *lines[2:]]))
    assert numbers(run_study(study_of(), tmp_path)) == numbers(undisturbed)


def test_no_processes_leave_no_trace(tmp_path):
    with pytest.raises(ValueError, match="n_jobs=0"):
        run_study(study_of(), tmp_path / "run", Context(n_jobs=0))
    assert not (tmp_path / "run").exists()


def test_foreign_directories_and_files_are_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(RunMismatchError, match="not those of a run"):
        RunDirectory(tmp_path, study_of().settings())
    with pytest.raises(StudyError, match="cannot be used"):
        RunDirectory(tmp_path / "thesis.tex", study_of().settings())


def test_damaged_settings_are_told(tmp_path):
    (tmp_path / "settings.json").write_text('{"data')
    with pytest.raises(StudyError, match="damaged"):
        RunDirectory(tmp_path, study_of().settings())


def test_a_full_disk_keeps_what_was_written(tmp_path, monkeypatch, request):
    run = RunDirectory(tmp_path, study_of().settings())
    request.addfinalizer(run.close)
    scores = np.zeros((2, 3, 4)).tolist()
    record = NetworkScores(configuration=0, guess=0, seconds=0.1, validation=scores, test=scores)
    run.append(record)
    kept = (tmp_path / "records.jsonl").read_bytes()
    real_open = Path.open

    def full(self, mode="r", *args, **kwargs):
        if "a" in mode:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real_open(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(StudyError, match=r"No space left on device.*run the same command again"):
        run.append(record)
    monkeypatch.undo()
    assert (tmp_path / "records.jsonl").read_bytes() == kept


def test_plans_take_the_papers_sizes():
    graphs, y = make_motif_graphs(10, random_state=0)
    assert plan("NCI1", graphs, y, PROTOCOLS["paper"]).n_units == 500
    assert plan("mine", graphs, y, PROTOCOLS["paper"], n_guesses=2).protocol.n_guesses == 2
    assert plan("MUTAG", graphs, y, PROTOCOLS["paper"], n_units=7).n_units == 7


# ---------------------------------------------------------------------- on a cluster


@pytest.mark.xdist_group("dask")
def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bits(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0"
    ) as cluster:
        victim = next(iter(cluster.workers.values()))
        records = tmp_path / "records.jsonl"
        with ThreadPoolExecutor() as pool:
            killing = pool.submit(_kill_in_mid_run, victim.pid, records)
            result = run_study(study_of(), tmp_path, cluster=cluster.scheduler_address)
            assert 1 <= killing.result() < 8
    assert numbers(result) == numbers(undisturbed)


def _kill_in_mid_run(pid, records):
    """Kill once the first record is there; return how many were there then."""
    end = time.monotonic() + 120
    while not (records.exists() and records.stat().st_size) and time.monotonic() < end:
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return records.read_bytes().count(b"\n")


def test_an_unreachable_scheduler_is_told(tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(StudyError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_study(study_of(), tmp_path, cluster="tcp://127.0.0.1:9")
    with pytest.raises(StudyError, match=r"answers at tls:.* \(TLS expects"):
        run_study(study_of(), tmp_path, cluster="tls://127.0.0.1:9")


@pytest.mark.parametrize(
    ("asked", "taken"), [((2, 2), True), ((1, 1), True), ((1, 5), True), ((3, 2), False)]
)
def test_a_finished_run_is_taken_unless_it_would_be_extended(asked, taken, tmp_path):
    graphs, y = make_motif_graphs(40, random_state=0)
    protocol = Protocol("quick", n_configurations=2, n_guesses=2, n_outer=2, n_inner=2)
    study = Study("motifs", graphs, y, protocol, n_units=5)
    assert finished_result(study, tmp_path) is None
    result = run_study(study, tmp_path)
    c, g = asked
    other = replace(study, protocol=replace(protocol, n_configurations=c, n_guesses=g))
    assert finished_result(other, tmp_path) == (result if taken else None)


def test_a_result_that_lacks_its_folds_is_summed_up_anew(tmp_path):
    study = study_of()
    whole = run_study(study, tmp_path)
    assert finished_result(study, tmp_path).fold_accuracies == whole.fold_accuracies
    (tmp_path / "result.json").write_text('{"n_configurations": 4, "n_guesses": 2}')
    assert finished_result(study, tmp_path) is None


def test_edge_labels_are_not_part_of_the_fingerprint():
    """The paper's model ignores them, so a run that was begun without them goes on."""
    study = study_of(protocol=replace(TINY, n_configurations=1, n_guesses=1))
    codes = np.zeros(study.graphs.n_arcs, dtype=np.int32)
    labeled = replace(study.graphs, edge_label_codes=codes, edge_label_values=np.array(["single"]))
    assert replace(study, graphs=labeled).settings() == study.settings()

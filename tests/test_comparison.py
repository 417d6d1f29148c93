"""FDGNN beside other methods: one protocol, limits, resuming, partial results."""

from __future__ import annotations

import inspect
import json
import pickle
import subprocess
import sys
import time
from dataclasses import replace

import msgspec
import numpy as np
import psutil
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC
from typer.testing import CliRunner

import fdgnn
from fdgnn.cli import app
from fdgnn.context import Context
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.evaluation import baselines, comparison, paper
from fdgnn.evaluation.baselines import (
    METHODS,
    Method,
    MethodEntry,
    Trial,
    best_trial,
    new_method,
    pipelines,
)
from fdgnn.evaluation.baselines.pipelines import as_grakel
from fdgnn.evaluation.comparison import (
    Limits,
    Search,
    compare,
    compare_methods,
    default_methods,
)
from fdgnn.evaluation.protocol import PaperEvaluation, Protocol
from fdgnn.evaluation.record import PublishedScore
from fdgnn.evaluation.run import EvaluationTask, evaluate, read_evaluations
from fdgnn.evaluation.scores import n_trained_weights
from fdgnn.exceptions import MissingDependencyError, StudyError
from fdgnn.folds import N_FOLDS, TEST, Split, nested_folds
from fdgnn.targets import read_targets
from methods_here import run_here
from tu_files import write_batch

grakel = pytest.importorskip("grakel")

QUICK = Protocol("quick", n_configurations=2, n_initializations=1, max_layers=2)


def task_of(graphs, y, **options):
    targets = read_targets(y, graphs, True)
    return EvaluationTask("motifs", graphs, targets, nested_folds(y, 3, 3, 0), **options)


@pytest.fixture(scope="module")
def motifs():
    return make_motif_graphs(40, random_state=0)


@pytest.fixture(scope="module")
def task(motifs):
    return task_of(*motifs)


@pytest.fixture(scope="module")
def numbers():
    """Graphs with a number that their labels tell."""
    graphs = make_random_graphs(40, random_state=0)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) + 0.5
    targets = read_targets(y, graphs, False)
    return EvaluationTask("numbers", graphs, targets, Split().nested(targets, 3, 3))


def few(n_configurations, **options):
    return Search(n_configurations=n_configurations, **options)


def run(task, path, methods, search=None, limits=None):
    search = search or few(2)
    return compare_methods(task, path, methods, protocol=QUICK, search=search, limits=limits)


def y_of(task):
    return task.targets.values[:, 0]


# ---------------------------------------------------------------------- kernels


@pytest.mark.filterwarnings("ignore")  # of GraKeL
@pytest.mark.parametrize("name", ["wl", "wl-oa", "pk", "gk", "rw"])
def test_kernel_models_fit_and_predict(task, name, monkeypatch):
    monkeypatch.setattr(pipelines, "GRAPHLETS_DRAWN", 50)  # of each graph, in place of 500
    method = new_method(name, task, few(1))
    assert method.units == []  # nothing to choose
    model = method.model(method.only).fit(method.prepare(np.arange(30)), y_of(task)[:30])
    assert set(model.predict(method.prepare(np.arange(30, 40)))) <= {0, 1}
    assert method.n_parameters(model) > 0
    method.warm_up([method.only])


def test_wl_learns_what_degrees_cannot_tell(task):
    method, y = new_method("wl", task, Search()), y_of(task)
    model = method.model({"height": 3, "C": 10.0}).fit(method.prepare(np.arange(30)), y[:30])
    assert np.mean(model.predict(method.prepare(np.arange(30, 40))) == y[30:]) > 0.8


def test_wl_kernel_is_the_one_of_its_definition():
    """By hand: normalized dot products of the counts of labels, then of refined ones."""
    graphs = fdgnn.as_batch([
        fdgnn.Graph([[0, 1], [1, 2]], labels=["a", "b", "a"]),
        fdgnn.Graph([[0, 1, 2], [1, 2, 0]], labels=["a", "b", "a"]),
    ])  # fmt: skip
    targets = read_targets([0, 1], graphs, True)
    method = new_method("wl", EvaluationTask("x", graphs, targets, np.array([[0, 1]])), Search())
    K = method.model({"height": 1, "C": 1.0})[0].fit_transform(as_grakel(graphs))
    # labels: (a:2, b:1) and (a:2, b:1); refined: path (a,b) twice, (b,aa); triangle
    # (a,ab) twice, (b,aa): in common only (b,aa)
    between, own = 5 + 1, 5 + 5
    assert K[0, 1] == pytest.approx(between / own)


@pytest.mark.parametrize("name", ["wl", "labels-rf"])
def test_validation_is_that_of_separate_fits(task, name):
    method, y = new_method(name, task, few(2)), y_of(task)
    configuration = {"height": 5, "C": 10.0} if name == "wl" else {"n_estimators": 20}
    trial = method.score(json.dumps(configuration))[1]
    assert (trial.outer, trial.configuration) == (1, configuration)
    fold, by_hand = task.folds[1], []
    for f in range(3):
        train, valid = (np.flatnonzero(m) for m in ((fold >= 0) & (fold != f), fold == f))
        model = method.model(configuration).fit(method.prepare(train), y[train])
        by_hand.append(np.mean(model.predict(method.prepare(valid)) == y[valid]))
    assert trial.score == pytest.approx(np.mean(by_hand))


def test_budget_takes_the_head_of_the_grid(task):
    whole, head = new_method("wl", task, Search()), new_method("wl", task, few(9))
    assert whole.n_configurations == 42
    assert head.n_configurations == 9
    assert head.units == whole.units[:9]
    assert new_method("wl", task, Search(inner_folds=1)).inner_folds == 1
    assert new_method("wl", task, Search(inner_folds=99)).inner_folds == 3
    assert new_method("wl-oa", task, Search()).n_configurations == 35


@pytest.mark.filterwarnings("ignore")  # of GraKeL
def test_unlabeled_and_empty_graphs_have_kernels():
    graphs = fdgnn.as_batch([
        fdgnn.Graph(np.empty((2, 0), int), n_vertices=3),
        fdgnn.Graph([[0], [1]], n_vertices=2),
        fdgnn.Graph([[0, 1, 2], [1, 2, 0]], n_vertices=3),
        fdgnn.Graph([[0, 1], [1, 2]], n_vertices=4),
    ])  # fmt: skip
    targets = read_targets([0, 1, 1, 0], graphs, True)
    task = EvaluationTask("x", graphs, targets, np.array([[0, 0, 1, 1]]))
    for name in ("wl", "wl-oa", "pk", "rw", "labels-rf"):
        method, every = new_method(name, task, Search()), np.arange(4)
        model = method.model(method.only).fit(method.prepare(every), y_of(task))
        assert len(model.predict(method.prepare(every))) == 4


# ---------------------------------------------------------------------- networks


def networks():
    pytest.importorskip("torch_geometric")
    from fdgnn.evaluation.baselines import networks

    return networks


def test_networks_choose_their_epochs_by_validation(task):
    """With a network whose curve is known, and that tells which graphs it was shown."""
    seen = []

    class Numbered(networks().NetworkMethod):
        y = np.arange(len(task.targets))

    class Known:
        MAX_EPOCHS = 40
        grid = staticmethod(lambda graphs: [{"a": 1}, {"a": 2}])

        def __init__(self, *, seed, epochs, a):
            self.a = a

        def validation_curve(self, graphs, y, valid_graphs, valid_y):
            assert len(graphs) == len(y)
            seen.append((set(y), set(valid_y)))  # graphs by number
            return -np.abs(np.arange(40) - 10 * self.a) / 40.0

    method = Numbered("gin", task, Search(), Known)
    assert len(method.units) == 2 * len(task.folds)
    (trial,) = method.score(method.units[1])
    assert trial.outer == 0
    assert trial.configuration == {"a": 2, "epochs": 21}
    fold = task.folds[0]
    assert seen == [(set(np.flatnonzero(fold > 0)), set(np.flatnonzero(fold == 0)))]
    whole = Numbered("gin", task, Search(choose_epochs=False), Known)
    (trial,) = whole.score(whole.units[0])
    assert trial.configuration == {"a": 1, "epochs": 40}
    one = Numbered("gin", task, few(1, choose_epochs=False), Known)
    assert one.units == []
    assert one.only == {"a": 1, "epochs": 40}


def test_curves_are_smoothed_with_shorter_windows_at_the_ends():
    curve = np.arange(30.0) ** 2
    expected = [curve[max(0, i - 5) : i + 6].mean() for i in range(30)]
    np.testing.assert_allclose(networks().smoothed(curve), expected)


# ---------------------------------------------------------------------- ensembles of our own

ENSEMBLES = {"fdgnn-auto": "all", "fdgnn-wl": "wl", "fdgnn-union": "union"}


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", ENSEMBLES)
def test_ensembles_are_fitted_on_training_graphs_alone(task, tmp_path, name):
    found = run(task, tmp_path, [name])[1]
    graphs, y = task.graphs, y_of(task)
    for o, fold in enumerate(task.folds):
        model = fdgnn.AutoGraphClassifier(ENSEMBLES[name], random_state=task.seed)
        model.fit(graphs[fold >= 0], y[fold >= 0])
        score = model.score(graphs[fold == TEST], y[fold == TEST])
        assert found.by("accuracy").folds[o] == pytest.approx(score)
    assert found.status == "finished"
    assert found.published is None
    assert found.folds[0].train_seconds > 0
    assert 50 < found.peak_mb < 4000
    assert found.times.selection == 0  # it is a part of training
    assert found.protocol.n_inner == N_FOLDS
    assert found.folds[0].configuration == {"candidates": ENSEMBLES[name], "random_state": 0}
    assert found.model.n_parameters > 0


def test_weights_that_training_sets(task):
    model = fdgnn.AutoGraphClassifier("wl", random_state=0).fit(task.graphs, y_of(task))
    by_hand = 0
    for fitted in model.estimators_:
        readout = fitted.readout
        weights = readout.dual if hasattr(readout, "dual") else readout.coef
        by_hand += int((weights != 0).sum()) + len(readout.intercept)
    assert n_trained_weights(model) == by_hand > 0


# ---------------------------------------------------------------------- the protocol


def test_training_is_timed_without_preparation_and_repeated(task, monkeypatch):
    made, prepared, clock = [], [], [0.0]
    monkeypatch.setattr("fdgnn.evaluation.timing.time.process_time", lambda: clock[0])
    monkeypatch.setattr("fdgnn.evaluation.timing.MOST_REPETITIONS", 5)

    class Slow:
        n_parameters_ = 7

        def fit(self, graphs, y):
            made.append(self)
            clock[0] += 0.01
            return self

        def predict(self, graphs):
            return np.zeros(len(graphs))

        def outputs(self, graphs):
            clock[0] += 1.0
            return np.zeros((len(graphs), 1))

    class SlowMethod(Method):
        def __init__(self):
            super().__init__("slow", task, Search(), [{}])

        def model(self, configuration):
            return Slow()

        def prepare(self, graphs):
            prepared.append(graphs)
            clock[0] += 0.05
            return super().prepare(graphs)

    found = SlowMethod()._test(task.folds[0], {})
    assert len(made) == 5
    assert len(prepared) == 10
    assert found.train_seconds == pytest.approx(0.01)
    assert found.test_seconds == 0.0
    assert found.n_parameters == 7
    assert [each == [0.0] for each in found.outputs] == (task.folds[0] == TEST).tolist()


def test_each_method_has_an_evaluation(task, tmp_path):
    found = run(task, tmp_path, ["wl"])
    assert [one.model.name for one in found] == ["paper", "wl"]
    for one in found:
        assert (one.status, one.dataset, len(one.folds)) == ("finished", "motifs", 3)
        assert one.score == pytest.approx(np.mean(one.by("accuracy").folds))
        assert one.std is not None
        assert one.folds[0].train_seconds > 0
        assert 50 < one.peak_mb < 4000
        assert one.baseline("constant", "roc_auc").mean == 0.5
    assert found[0].model.n_parameters == 2 * 50 + 1
    assert found[1].protocol.n_configurations == 2
    assert read_evaluations(tmp_path) == found


@pytest.mark.usefixtures("in_this_process")
def test_numbers_are_compared_as_well(numbers, tmp_path):
    found = run(numbers, tmp_path, None)
    assert [one.model.name for one in found] == ["fdgnn-auto", "labels-rf"]
    for one in found:
        assert (one.status, one.task, one.protocol.scoring) == ("finished", "regression", "r2")
        assert one.by("rmse").mean < one.baseline("constant", "rmse").mean
        assert one.score > 0.5
    with pytest.raises(ValueError, match="wl is for classification, but the target is numeric"):
        run(numbers, tmp_path, ["wl"])


@pytest.mark.usefixtures("in_this_process")
def test_the_papers_model_is_evaluated_as_by_evaluate(task, tmp_path):
    whole = evaluate(PaperEvaluation(task, QUICK), tmp_path).evaluation
    parts = sorted(path.name for path in (tmp_path / "parts").iterdir())
    found = run(task, tmp_path, [])[0]
    assert msgspec.structs.replace(found, limits=None).reproducible() == whole.reproducible()
    assert parts == sorted(path.name for path in (tmp_path / "parts").iterdir())
    larger = replace(QUICK, n_initializations=2)
    evaluate(PaperEvaluation(task, larger), tmp_path)
    with pytest.raises(StudyError, match="more configurations or random initializations"):
        run(task, tmp_path, [])


@pytest.mark.usefixtures("in_this_process")
def test_folds_are_those_of_the_task(task, tmp_path):
    """The test accuracy of an outer fold, made again with scikit-learn alone."""
    found, y = run(task, tmp_path, ["wl"])[1], y_of(task)
    outer = StratifiedKFold(3, shuffle=True, random_state=0)
    for o, (train, test) in enumerate(outer.split(y, y)):
        choice = found.folds[o].configuration
        kernel = grakel.WeisfeilerLehman(
            n_iter=choice["height"], base_graph_kernel=grakel.VertexHistogram, normalize=True
        )
        K = kernel.fit_transform(as_grakel(task.graphs[train]))
        svc = SVC(C=choice["C"], kernel="precomputed").fit(K, y[train])
        accuracy = svc.score(kernel.transform(as_grakel(task.graphs[test])), y[test])
        assert found.by("accuracy").folds[o] == pytest.approx(accuracy)


@pytest.mark.usefixtures("in_this_process")
def test_published_numbers_are_the_papers(task, tmp_path):
    found = run(replace(task, dataset="MUTAG"), tmp_path, ["wl"], few(1))
    wl = paper.ACCURACY["WL"]["MUTAG"]
    assert found[1].published == PublishedScore(
        mean=wl.mean / 100, std=wl.std / 100, reference="zhang2018"
    )
    assert found[0].published.mean == 0.8851


# ---------------------------------------------------------------------- resuming


@pytest.mark.usefixtures("in_this_process")
def test_resuming_without_some_checkpoints_gives_the_same(task, tmp_path):
    whole = run(task, tmp_path, ["wl"], few(9))[1]
    parts = sorted((tmp_path / "parts").glob("*.json"))[:3]
    folds = sorted((tmp_path / "parts").glob("*.npz"))[:2]
    parts[0].write_bytes(parts[0].read_bytes()[:50])  # damaged
    for path in [*parts[1:], *folds]:
        path.unlink()
    again = run(task, tmp_path, ["wl"], few(9))[1]
    assert again.reproducible() == whole.reproducible()


def test_finished_methods_are_not_run_again(task, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "run_in_process", run_here)
    first = run(task, tmp_path, ["wl"])
    monkeypatch.setattr(comparison, "run_in_process", None)
    assert run(task, tmp_path, ["wl"]) == first
    monkeypatch.setattr(comparison, "run_in_process", run_here)
    wider = run(task, tmp_path, ["wl"], few(9))[1]
    fresh = run(task, tmp_path / "fresh", ["wl"], few(9))[1]
    assert wider.protocol.n_configurations == 9
    assert wider.reproducible() == fresh.reproducible()  # whatever was tried before


def test_the_best_validated_is_chosen():
    found = [(0, 1, 0.5), (0, 2, 0.9), (0, 3, 0.9), (1, 4, None), (1, 5, 0.1)]
    trials = [Trial(outer=o, configuration={"a": a}, score=score) for o, a, score in found]
    assert best_trial(trials, 0) == {"a": 2}
    assert best_trial(trials, 1) == {"a": 5}


def test_everything_runs_on_one_thread(monkeypatch):
    """Asked of the libraries in the environment of a method."""
    script = (
        "import numpy, threadpoolctl as t; print({p['num_threads'] for p in t.threadpool_info()})"
    )
    for name in comparison.ONE_THREAD:
        monkeypatch.setenv(name, "2")
    found = subprocess.run(
        [sys.executable, "-P", "-c", script],
        env=comparison._environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout.split() == ["{1}"]


@pytest.mark.usefixtures("in_this_process")
def test_time_spent_before_counts(task, tmp_path, monkeypatch):
    run(task, tmp_path, ["wl"], few(2))
    spent = new_method("wl", task, few(2)).finished(tmp_path / "parts").times.total
    given = []
    monkeypatch.setattr(
        comparison, "run_in_process", lambda *them: given.append(them) or ("out of time", "")
    )
    run(task, tmp_path, ["wl"], few(9))
    ((*_, counted),) = given
    assert 0 < counted < spent  # of the selection, and not of folds
    run(task, tmp_path, ["wl"], few(2, inner_folds=1))
    assert given[1][-1] == 0  # another selection


def test_a_limit_that_is_spent_stops_a_method_at_once(task, tmp_path):
    given = new_method("gk", task, few(2)), tmp_path, Limits(seconds=50.0), Context()
    assert comparison.run_in_process(*given, spent=60.0)[0] == "out of time"


def test_a_worker_does_not_outlive_its_parent(task, tmp_path):
    """The parent is killed as hard as can be while a method works."""
    script = (
        "import sys, pickle\n"
        "from fdgnn.evaluation.comparison import compare_methods\n"
        "task = pickle.load(sys.stdin.buffer)\n"
        "compare_methods(task, __import__('pathlib').Path(sys.argv[1]), ['gk'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "run")], stdin=subprocess.PIPE
    )
    pickle.dump(task, process.stdin)
    process.stdin.close()
    log = tmp_path / "run" / "paper.log"
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


@pytest.mark.usefixtures("in_this_process")
def test_other_methods_stay_and_other_settings_are_rejected(task, tmp_path):
    run(task, tmp_path, ["wl"])
    run(task, tmp_path, ["pk"])
    models = [one.model.name for one in read_evaluations(tmp_path)]
    assert models == ["paper", "wl", "pk"]
    with pytest.raises(StudyError, match="seed"):
        run(replace(task, seed=1), tmp_path, [])


# ---------------------------------------------------------------------- limits


def test_running_out_of_time_does_not_stop_the_others(task, tmp_path, monkeypatch):
    found = run(task, tmp_path, ["gk", "wl"], few(1), Limits(seconds=1e-3))
    assert [one.status for one in found[1:]] == ["out of time"] * 2  # the first is the majority
    for one in found[1:]:
        assert "0.001 s" in one.reason
    started = []
    monkeypatch.setattr(
        comparison,
        "run_in_process",
        lambda *given: started.append(given) or ("out of time", ""),
    )
    again = run(task, tmp_path, ["gk", "wl"], few(1), Limits(seconds=1e-3))
    assert started == []  # the same would happen
    assert again == found
    monkeypatch.setattr(comparison, "run_in_process", run_here)
    found = run(task, tmp_path, ["wl"], few(1), Limits(seconds=600))  # more than before
    assert [one.status for one in found] == ["finished"] * 2


def test_folds_that_were_finished_in_time_are_kept(task, tmp_path, monkeypatch):
    """The method is stopped after its first outer fold."""

    def stopped(method, path, *_):
        test = type(method)._test

        def first(self, fold, configuration):
            if (fold != self.task.folds[0]).any():
                raise TimeoutError
            return test(self, fold, configuration)

        with monkeypatch.context() as patch:
            patch.setattr(type(method), "_test", first)
            with pytest.raises(TimeoutError):
                method.run(path / "parts", Context())
        return "out of time", "limit of 1 s"

    monkeypatch.setattr(comparison, "run_in_process", stopped)
    found = compare_methods(numbers_like(task), tmp_path, ["labels-rf"])[0]
    assert (found.status, found.reason) == ("out of time", "limit of 1 s")
    assert len(found.folds) == len(found.by("r2").folds) == 1
    assert found.score == found.by("r2").folds[0]
    assert found.std is None
    monkeypatch.setattr(comparison, "run_in_process", run_here)
    whole = compare_methods(
        numbers_like(task), tmp_path, ["labels-rf"], limits=Limits(seconds=700)
    )[0]
    assert (whole.status, whole.reason, len(whole.folds)) == ("finished", None, 3)
    assert whole.by("r2").folds[0] == found.by("r2").folds[0]


def numbers_like(task):
    sizes = np.diff(task.graphs.vertex_offsets).astype(float)
    return replace(task, targets=read_targets(sizes, task.graphs, False))


def test_running_out_of_memory(task, tmp_path):
    found = run(task, tmp_path, ["wl"], limits=Limits(megabytes=30))
    assert [one.status for one in found] == ["out of memory"] * 2
    assert found[1].reason == "limit of 30 MB"


def test_a_method_that_crashes_says_why(task, tmp_path, monkeypatch):
    def crashing(compared, *arguments):
        if isinstance(compared, PaperEvaluation):
            return run_here(compared, *arguments)
        return in_its_own(compared, *arguments)

    in_its_own = comparison.run_in_process
    monkeypatch.setattr(comparison, "run_in_process", crashing)
    (tmp_path / "sitecustomize.py").write_text(
        "import fdgnn.evaluation.baselines.pipelines as v\n"
        "def broken(*_):\n    raise RuntimeError('no such\\n thing')\n"
        "v.LabelHistogram.__call__ = broken\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = run(task, tmp_path / "run", ["labels-rf", "wl"])
    assert [one.status for one in found] == ["finished", "failed", "finished"]
    assert found[1].reason == "RuntimeError: no such thing"


def test_a_killed_method_is_a_failed_one(task, tmp_path, monkeypatch):
    monkeypatch.setattr(
        comparison, "_megabytes", lambda pid: subprocess.run(["kill", "-9", str(pid)]) and 0
    )
    found = run(task, tmp_path, ["gk"])
    assert found[1].status == "failed"
    assert "-9" in found[1].reason


# ---------------------------------------------------------------------- Python and the command


@pytest.mark.usefixtures("in_this_process", "few_networks")
def test_own_graphs_in_code(motifs):
    graphs, y = motifs
    found = compare(list(graphs), np.where(y, "yes", "no").tolist(), ["wl"], n_outer=2, n_inner=2,
                    search=few(1))  # fmt: skip
    assert [one.status for one in found] == ["finished"] * 2
    assert found[1].score > 0.7
    assert found[0].dataset == "graphs"
    (only,) = compare(graphs, np.linspace(0, 1, 40), "labels-rf", n_outer=3, n_inner=2)
    assert (only.task, only.status) == ("regression", "finished")


def test_bad_input_in_code(motifs):
    graphs, y = motifs
    for wrong in ({"n_configurations": 0}, {"inner_folds": -1}):
        with pytest.raises(ValueError, match="give 1 or more"):
            Search(**wrong)
    with pytest.raises(ValueError, match="must be positive"):
        Limits(seconds=-5)
    with pytest.raises(ValueError, match=r"no method 'xyz'; there are fdgnn-auto, .*, wl, wl-oa"):
        compare(graphs, y, ["xyz"])
    with pytest.raises(ValueError, match="ecfp-rf is for molecules"):
        compare(graphs, y, "ecfp-rf")
    with pytest.raises(ValueError, match="no protocol 'slow'"):
        compare(graphs, y, protocol="slow")
    with pytest.raises(ValueError, match="39 entries"):
        compare(graphs, y[1:])
    with pytest.raises(ValueError, match="one class only"):
        compare(graphs, np.zeros(40))
    with pytest.raises(ValueError, match="scoring='rmse'"):
        compare(graphs, y, "wl", search=Search(scoring="rmse"))


def test_a_missing_library_is_reported_before_anything_runs(task, tmp_path, monkeypatch):
    broken = replace(METHODS["wl"], libraries=("no_such_library",))
    monkeypatch.setitem(baselines.METHODS, "wl", broken)
    assert isinstance(broken, MethodEntry)
    with pytest.raises(MissingDependencyError, match="extra 'compare'"):
        run(task, tmp_path / "run", ["wl"])
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("in_this_process", "few_networks")
def test_command(tmp_path, motifs, monkeypatch):
    folder = write_batch(tmp_path / "MOTIFS", *motifs)
    monkeypatch.chdir(tmp_path)
    options = ["--with", "wl", "--configurations", "1", "--time-limit", "300", "-q"]
    told = CliRunner().invoke(app, ["compare", str(folder), *options])
    assert told.exit_code == 0, told.output
    assert max(map(len, told.stdout.splitlines())) <= 80
    found = read_evaluations(tmp_path / "runs/MOTIFS")
    assert [one.model.name for one in found] == ["paper", "wl"]
    for one in found:
        assert f"{one.score:.3f} ± {one.std:.3f}" in told.stdout
    page = (tmp_path / "runs/MOTIFS/report.html").read_text()
    assert 'id="map-0"' in page
    again = CliRunner().invoke(app, ["compare", str(folder), *options, "--json", "--no-report"])
    assert [one["model"]["name"] for one in json.loads(again.stdout)] == ["paper", "wl"]


def test_methods_by_default():
    from fdgnn.cli.evaluate import compare as command

    assert inspect.signature(command).parameters["methods"].default is None
    assert inspect.signature(compare).parameters["methods"].default is None
    assert default_methods(molecules=False, classify=True) == ("fdgnn-auto", "labels-rf", "wl")
    assert default_methods(molecules=False, classify=False) == ("fdgnn-auto", "labels-rf")
    for name in default_methods(molecules=True, classify=False):
        assert METHODS[name].regression


def test_every_method_can_be_asked_for_by_name():
    from typing import get_type_hints

    from fdgnn.cli.evaluate import compare as command

    (option,) = get_type_hints(command, include_extras=True)["methods"].__metadata__
    listed = option.help.replace("and for classification also ", "")
    assert listed.startswith(f"Methods, separated by commas: {', '.join(METHODS)}. ")
    for molecules in (True, False):
        assert ", ".join(default_methods(molecules=molecules, classify=True)) in option.help


def test_command_rejects_nonsense(tmp_path, motifs, monkeypatch):
    folder = write_batch(tmp_path / "MOTIFS", *motifs)
    monkeypatch.chdir(tmp_path)
    for arguments in (["--with", "foo"], ["--time-limit", "0"], ["--configurations", "0"]):
        told = CliRunner().invoke(app, ["compare", str(folder), *arguments])
        assert told.exit_code != 0
    told = CliRunner().invoke(app, ["compare", "no-such-dataset"])
    assert told.exit_code != 0
    assert not (tmp_path / "runs").exists()


def test_no_processes_are_rejected_at_once(tmp_path):
    graphs, y = make_motif_graphs(40, random_state=0)
    with pytest.raises(ValueError, match="n_jobs=0"):
        compare(graphs, y, [], out=tmp_path / "run", n_jobs=0, n_outer=3, n_inner=3)
    assert not (tmp_path / "run").exists()

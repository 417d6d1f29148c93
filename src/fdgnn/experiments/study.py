"""The paper's evaluation of one dataset: nested cross validation over random configurations.

Each network (a configuration's guess) takes its own penalty, by validation score. For each outer
fold, the configuration with the best validation score, averaged over guesses and inner folds, is
taken; its test accuracy, averaged over the same guesses, is the fold's (decision 6). The same
networks, cut after their first layer, give the single-layer row; with one penalty for all guesses
of a configuration, another; and with their outputs averaged, the row of the ensemble.
"""

from __future__ import annotations

import hashlib
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from fdgnn._version import __version__
from fdgnn.estimators import FDGNNClassifier
from fdgnn.exceptions import (
    ConvergenceWarning,
    MissingDependencyError,
    RunMismatchError,
    StudyError,
)
from fdgnn.experiments import paper
from fdgnn.experiments.choice import Choice, Selection, select
from fdgnn.experiments.rundir import RunDirectory, read_json
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.progress import track
from fdgnn.readout.coding import code_classes
from fdgnn.reservoir import average_degree
from fdgnn.selection.scores import (
    ALPHAS,
    PAPER_RANGES,
    Ensemble,
    Task,
    Unit,
    accuracy,
    draw_configurations,
    fit_and_test,
    nested_folds,
    score_ensembles,
    score_networks,
)


@dataclass(frozen=True)
class Protocol:
    """How thorough an evaluation is."""

    name: str
    n_configurations: int
    n_guesses: int
    n_outer: int = 10
    n_inner: int = 10
    max_layers: int = 5


PROTOCOLS = {
    "paper": Protocol("paper", n_configurations=100, n_guesses=20),
    "quick": Protocol("quick", n_configurations=20, n_guesses=3),
}


MEASURED_WARM = 100  # graphs on which selected models are tried before they are timed


@dataclass(frozen=True)
class Study:
    """One dataset, one protocol, one seed: everything a run's numbers depend on."""

    dataset: str
    graphs: GraphBatch
    y: Array
    protocol: Protocol
    n_units: int = 50
    seed: int = 0

    def settings(self) -> dict[str, Any]:
        """What must agree for a run to be continued.

        How many configurations and guesses are run is left out: a run may be extended, since
        configuration c and guess g do not depend on how many others there are.
        """
        return {
            "dataset": self.dataset,
            "data": _fingerprint(self.graphs, self.y),
            "n_outer": self.protocol.n_outer,
            "n_inner": self.protocol.n_inner,
            "max_layers": self.protocol.max_layers,
            "n_units": self.n_units,
            "alphas": list(ALPHAS),
            "seed": self.seed,
            "fdgnn": __version__,
        }

    def configurations(self) -> list[dict[str, Any]]:
        """The random configurations: rho, omega(1), omega and the depth."""
        depths = {"n_layers": list(range(1, self.protocol.max_layers + 1))}
        return draw_configurations(PAPER_RANGES | depths, self.protocol.n_configurations, self.seed)

    def estimator(self, configuration: dict[str, Any]) -> FDGNNClassifier:
        """The model of a configuration, with the whole dataset's k as in the paper."""
        return FDGNNClassifier(
            n_units=self.n_units, degree=average_degree(self.graphs) or 1.0, **configuration
        )

    def task(self) -> Task:
        """What the networks are scored on."""
        classes, targets = code_classes(self.y)
        folds = nested_folds(self.y, self.protocol.n_outer, self.protocol.n_inner, self.seed)
        codes = np.searchsorted(classes, self.y)
        return Task(self.graphs, targets, codes, folds, np.array(ALPHAS), accuracy)

    def units(self) -> list[Unit]:
        """All networks, guess by guess, so that a part of them covers all configurations.

        Each is scored at its own depth and at depth one.
        """
        configurations = self.configurations()
        return [
            Unit(c, g, self.estimator(configuration), (1, configuration["n_layers"]))
            for g in range(self.protocol.n_guesses)
            for c, configuration in enumerate(configurations)
        ]


def plan(
    dataset: str,
    graphs: GraphBatch,
    y: Array,
    protocol: Protocol,
    *,
    n_configurations: int | None = None,
    n_guesses: int | None = None,
    n_units: int | None = None,
    seed: int = 0,
) -> Study:
    """Put a study together; what is not given is the protocol's and, for H, the paper's."""
    protocol = replace(
        protocol,
        n_configurations=n_configurations or protocol.n_configurations,
        n_guesses=n_guesses or protocol.n_guesses,
    )
    facts = paper.DATASETS.get(dataset)
    return Study(dataset, graphs, y, protocol, n_units or (facts.n_units if facts else 50), seed)


def run_study(
    study: Study,
    directory: Path,
    *,
    n_jobs: int | None = None,
    cluster: str | None = None,
    quiet: bool = False,
    command: str | None = None,
    after_each: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Run or resume an evaluation; return the result, which is also in ``result.json``.

    `command` is what a user would type for the same; it is only written down. `after_each` is
    called when a network is finished.
    """
    check_jobs(n_jobs)
    task = study.task()
    with closing(RunDirectory(directory, study.settings())) as run:
        run.write_asked(
            {
                "command": command,
                "protocol": study.protocol.name,
                "n_configurations": study.protocol.n_configurations,
                "n_guesses": study.protocol.n_guesses,
            }
        )
        result = _run(study, task, run, n_jobs, cluster, quiet, after_each) | {"command": command}
        run.write_result(result)
        return result


def check_jobs(n_jobs: int | None) -> None:
    """Raise ValueError if nobody is to do the work."""
    if n_jobs == 0:
        raise ValueError("no processes cannot do anything; give 1 or more, or -1 for all cores")


def finished_result(study: Study, directory: Path) -> dict[str, Any] | None:
    """The summary of a finished run in the directory, unless this study would extend it."""
    path = directory / "result.json"
    if not path.exists():
        return None
    RunDirectory(directory, study.settings()).close()  # is it this study's?
    result, asked = read_json(path), study.protocol
    if not {"fold_configurations", "fold_accuracies", "times"} <= result.keys():
        return None  # damaged, or of a version that wrote less: summed up anew
    found = (result.get("n_configurations", 0), result.get("n_guesses", 0))
    wanted = (asked.n_configurations, asked.n_guesses)
    extends = found != wanted and all(f <= w for f, w in zip(found, wanted, strict=True))
    return None if extends else result


def _run(
    study: Study,
    task: Task,
    run: RunDirectory,
    n_jobs: int | None,
    cluster: str | None,
    quiet: bool,
    after_each: Callable[[], None] | None,
) -> dict[str, Any]:
    units = study.units()
    wanted = {(u.configuration, u.guess) for u in units}
    finished = check_not_more(study, run)
    missing = [u for u in units if (u.configuration, u.guess) not in finished]
    start = time.perf_counter()
    with _engine(cluster, n_jobs) as n_workers, _told_of_dead_workers(run.path):
        records = score_networks(task, missing, n_workers)
        for record in track(
            records, len(units), f"{study.dataset} networks", done=len(finished), quiet=quiet
        ):
            run.append(record)
            if after_each is not None:
                after_each()
        networks = (r for r in run.records() if (r.configuration, r.guess) in wanted)
        asked = study.protocol
        selection = select(networks, asked.n_configurations, asked.n_guesses, task.alphas)
        selected = time.perf_counter()
        ensemble = _score_ensembles(study, task, selection.deep, n_workers, quiet)
    result = summarize(study, task, selection, ensemble)
    end = time.perf_counter()
    # What comes after the networks is the ensembles, and the selected models fitted for the clock.
    result["times"] |= {"this_run_seconds": end - start, "after_networks_seconds": end - selected}
    return result


def _score_ensembles(
    study: Study, task: Task, chosen: Choice, n_jobs: int | None, quiet: bool
) -> Floats:
    """Test accuracy in each outer fold, of the chosen configuration's guesses together."""
    if study.protocol.n_guesses == 1:
        return chosen.accuracies
    drawn = study.configurations()
    ensembles = [
        Ensemble(
            study.estimator(drawn[c]),
            {
                int(o): chosen.penalties[o].tolist()
                for o in np.flatnonzero(chosen.configurations == c)
            },
        )
        for c in np.unique(chosen.configurations)
    ]
    found = score_ensembles(task, ensembles, n_jobs)
    scores: dict[int, float] = {}
    for part in track(found, len(ensembles), f"{study.dataset} ensembles", quiet=quiet):
        scores |= part
    return np.array([scores[o] for o in range(len(task.folds))])


def check_not_more(study: Study, run: RunDirectory) -> set[tuple[int, int]]:
    """The networks that are finished, or an error if some are not asked for."""
    finished = {(r.configuration, r.guess) for r in run.records()}
    if finished - {(u.configuration, u.guess) for u in study.units()}:
        raise RunMismatchError(
            f"{run.path}: it holds a run of more configurations or guesses than are asked for; "
            "ask for as many, or use another directory"
        )
    return finished


@contextmanager
def _engine(cluster: str | None, n_jobs: int | None) -> Iterator[int | None]:
    """Local processes, or a Dask cluster: an address, or "local" to start one."""
    if cluster is None:
        yield n_jobs
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingDependencyError(
            "a cluster needs Dask; install it with: pip install 'fdgnn[cluster]'"
        ) from error
    try:
        client = Client(_local_cluster(n_jobs) if cluster == "local" else cluster, timeout=10)
    except (OSError, ValueError) as error:
        raise StudyError(f"no Dask scheduler answers at {cluster} ({error})") from error
    with client, joblib.parallel_config("dask", client=client):
        yield -1


@contextmanager
def _told_of_dead_workers(path: Path) -> Iterator[None]:
    """Say what to do when the system has killed one of the local processes."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield
    except TerminatedWorkerError as error:
        raise StudyError(
            f"{path}: a worker process was killed, perhaps for want of memory; what is finished is "
            "kept, so run the same command again, if need be with fewer --jobs"
        ) from error


def _local_cluster(n_jobs: int | None) -> Any:
    from distributed import LocalCluster

    return LocalCluster(n_workers=joblib.effective_n_jobs(n_jobs or -1), threads_per_worker=1)


# ---------------------------------------------------------------------- from scores to a result


def summarize(study: Study, task: Task, selection: Selection, ensemble: Floats) -> dict[str, Any]:
    """Collect the tables' numbers."""
    drawn, deep = study.configurations(), selection.deep
    depths, common = (
        np.array([drawn[c]["n_layers"] for c in choice.configurations])
        for choice in (deep, selection.common_penalty)
    )
    # Guess 0 stands for its configuration wherever one network is wanted.
    chosen = [
        drawn[c] | {"alpha": float(alphas[0])}
        for c, alphas in zip(deep.configurations, deep.penalties, strict=True)
    ]
    return {
        "dataset": study.dataset,
        "protocol": study.protocol.name,
        "n_graphs": len(study.graphs),
        "n_units": study.n_units,
        "n_configurations": study.protocol.n_configurations,
        "n_guesses": study.protocol.n_guesses,
        "seed": study.seed,
        **_row(deep.accuracies, depths),
        "fold_configurations": chosen,
        "fold_alphas": deep.penalties.tolist(),
        "configurations": drawn,
        "alphas": task.alphas.tolist(),
        "single_layer": _row(selection.single_layer.accuracies, np.ones(len(depths), dtype=int)),
        "common_penalty": _row(selection.common_penalty.accuracies, common),
        "ensemble": _row(ensemble, depths),
        "chosen_on_test_folds": selection.on_test_folds,
        "published": _published(study.dataset),
        "times": {"networks_seconds": selection.seconds, **_time_selected(study, task, chosen)},
        "versions": versions(),
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
    }


def _row(scores: Floats, depths: Array) -> dict[str, Any]:
    """Means and, as MATLAB computes it, the standard deviation over outer folds."""
    return {
        "accuracy_mean": float(scores.mean()),
        "accuracy_std": float(scores.std(ddof=1)),
        "fold_accuracies": scores.tolist(),
        "depth_mean": float(depths.mean()),
        "depth_std": float(depths.std(ddof=1)),
        "fold_depths": depths.tolist(),
    }


def _time_selected(study: Study, task: Task, chosen: list[dict[str, Any]]) -> dict[str, Any]:
    """Table 3: seconds to train and to test the selected model of each fold, on one core."""
    measured = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted below instead
        compile_kernels(study, chosen)
        for fold, configuration in zip(task.folds, chosen, strict=True):
            make = partial(study.estimator, configuration)
            measured.append(fit_and_test(make, study.graphs, study.y, fold))
    return {
        "fold_train_seconds": [m.train_seconds for m in measured],
        "fold_test_seconds": [m.test_seconds for m in measured],
        # Of the training graphs.
        "fold_unconverged_graphs": [int((~m.model.converged_).sum()) for m in measured],
    }


def compile_kernels(study: Study, configurations: list[dict[str, Any]]) -> None:
    """Use each configuration on some graphs, off the clock.

    Kernels are compiled for what they meet: one layer or several, some graphs certified or all,
    fixed points that float32 resolves or not.
    """
    first = [np.flatnonzero(study.y == c)[:2] for c in np.unique(study.y)]
    some = np.random.default_rng(0).permutation(len(study.y))[:MEASURED_WARM]
    chosen = np.unique(np.concatenate([*first, some]))
    graphs, y = study.graphs[chosen], study.y[chosen]
    kinds = {c["n_layers"] > 1: c for c in configurations}.values()
    for configuration in kinds:
        for change in ({}, {"effective_spectral_radius": 10.0}, {"tol": 1e-9}):
            study.estimator(configuration | change).fit(graphs, y).predict(graphs)


def _published(dataset: str) -> dict[str, Any] | None:
    """The paper's row, as shares rather than per cent; None for other datasets."""
    if dataset not in paper.DATASETS:
        return None
    deep, single = (paper.ACCURACY[model][dataset] for model in ("FDGNN", "FDGNN(L=1)"))
    return {
        "accuracy_mean": round(deep.mean / 100, 6),
        "accuracy_std": round((deep.std or 0.0) / 100, 6),
        "single_layer_accuracy_mean": round(single.mean / 100, 6),
        "depth_mean": paper.DEPTH[dataset].mean,
        "train_seconds": paper.TIMES[dataset].train.mean,
        "test_seconds": paper.TIMES[dataset].test.mean,
    }


def _fingerprint(graphs: GraphBatch, y: Array) -> str:
    digest = hashlib.sha256(np.asarray(y).astype(str).tobytes())
    for field in fields(graphs):
        value = getattr(graphs, field.name)
        if isinstance(value, np.ndarray):
            digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:16]


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    names = ("numpy", "scipy", "scikit-learn", "numba", "joblib")
    return {"fdgnn": __version__} | {name: version(name) for name in names}

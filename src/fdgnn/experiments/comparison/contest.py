"""One contestant's turn: select for each outer fold, then train and test what was selected."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fdgnn.exceptions import ConvergenceWarning
from fdgnn.experiments.rivals import Contestant, Model, Task, Trial, contestant
from fdgnn.experiments.rundir import RunDirectory
from fdgnn.experiments.study import Study, compile_kernels, finished_result, run_study
from fdgnn.files import JsonLines
from fdgnn.graphs import GraphBatch
from fdgnn.selection.scores import Trained, fit_and_test

Record = dict[str, Any]
Tell = Callable[[Record], None]


@dataclass(frozen=True)
class Search:
    """How much of the published grids is searched.

    Attributes
    ----------
    n_configurations : int, optional
        Points of a rival's grid, in its order; by default all.
    inner_folds : int, optional
        Inner folds on which they are validated; by default all for kernels, one for networks.
    choose_epochs : bool, default=True
        Whether networks choose their number of epochs, too, or are trained for all published ones.
    """

    n_configurations: int | None = None
    inner_folds: int | None = None
    choose_epochs: bool = True

    def __post_init__(self) -> None:
        for name in ("n_configurations", "inner_folds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give 1 or more, or None for the default")


@dataclass(frozen=True)
class Turn:
    """Everything a contestant's process needs to know."""

    name: str  # "fdgnn", or one of `fdgnn.experiments.rivals.RIVALS`
    study: Study
    directory: Path
    search: Search
    n_jobs: int | None = None
    command: str | None = None

    @property
    def records(self) -> JsonLines:
        """What the contestant has finished."""
        return JsonLines(self.directory / "rivals" / f"{self.name}.jsonl")


def take(turn: Turn, tell: Tell) -> None:
    """Do what is not done yet of a turn; its last record is the summary.

    `tell` hears how many steps there are, how many are done and how long they took; then of each
    step.
    """
    if turn.name == "fdgnn":
        _take_ours(turn, tell)
    else:
        _take_rivals(turn, tell)


# ---------------------------------------------------------------------- a rival


def _take_rivals(turn: Turn, tell: Tell) -> None:
    study, lines = turn.study, turn.records
    task = Task(
        study.graphs, study.y, study.task().folds, study.seed, **asdict(turn.search)
    )  # fmt: skip
    rival = contestant(turn.name, task)
    scored = _scored(lines, rival)
    missing = [unit for unit in rival.units() if unit not in scored]
    known = [scored[unit] for unit in rival.units() if unit in scored]
    spent = sum(r.get("seconds", 0.0) for r in [*known, *_folds_of(lines).values()])
    n_steps = len(rival.units()) + len(task.folds)
    tell({"steps": n_steps, "done": len(known), "spent": spent})
    for unit in missing:
        start = time.perf_counter()
        trials = rival.score(unit)
        scored[unit] = {
            "kind": "trials",
            "unit": unit,
            "inner_folds": rival.inner_folds,
            "seconds": time.perf_counter() - start,
            "peak_mb": peak_megabytes(),
            "trials": [asdict(t) for t in trials],
        }
        lines.append(scored[unit])
        tell({})
    used = [scored[unit] for unit in rival.units()]
    trials = [Trial(**t) for record in used for t in record["trials"]]
    choices = [
        _best(trials, o) if trials else Trial(o, rival.only(), float("nan"))
        for o in range(len(task.folds))
    ]
    rival.warm_up()
    folds = _measure_folds(turn, [c.configuration for c in choices], rival.model, rival, tell)
    lines.append(
        _summary(turn, folds)
        | {
            "peak_mb": max(r["peak_mb"] for r in [*used, *folds]),
            "fold_accuracies": [f["accuracy"] for f in folds],
            "fold_validation": [c.score for c in choices] if trials else None,
            "selection_seconds": sum(r["seconds"] for r in used),
            "n_configurations": rival.n_configurations,
            "inner_folds": rival.inner_folds,
        }
    )


def _scored(lines: JsonLines, rival: Contestant) -> dict[str, Record]:
    """Finished parts of the selection that were validated on as many inner folds."""
    return {
        r["unit"]: r
        for r in lines
        if r.get("kind") == "trials"
        and {"unit", "trials", "seconds"} <= r.keys()
        and r.get("inner_folds") == rival.inner_folds
    }


def _best(trials: list[Trial], outer: int) -> Trial:
    """Among equals the first of the grid."""
    return max((t for t in trials if t.outer == outer), key=lambda t: t.score)


# ---------------------------------------------------------------------- ourselves


def _take_ours(turn: Turn, tell: Tell) -> None:
    """The networks of `fdgnn evaluate` are the selection; test scores average its guesses."""
    study = turn.study
    n_folds = study.protocol.n_outer
    result = finished_result(study, turn.directory)
    if result is None:
        with closing(RunDirectory(turn.directory, study.settings())) as run:
            seconds = [record.seconds for record in run.records()]
        n_steps = len(study.units()) + n_folds
        tell({"steps": n_steps, "done": len(seconds), "spent": sum(seconds)})
        result = run_study(
            study,
            turn.directory,
            n_jobs=turn.n_jobs,
            quiet=True,
            command=turn.command,
            after_each=lambda: tell({}),
        )
    else:
        tell({"steps": n_folds, "done": 0, "spent": 0.0})
    choices = result["fold_configurations"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # counted by the run
        compile_kernels(study, choices)
        folds = _measure_folds(turn, choices, study.estimator, None, tell)
    turn.records.append(
        _summary(turn, folds)
        | {
            "fold_accuracies": result["fold_accuracies"],
            "selection_seconds": result["times"]["networks_seconds"],
            "n_configurations": result["n_configurations"],
            "n_guesses": result["n_guesses"],
            "inner_folds": study.protocol.n_inner,
        }
    )


# ---------------------------------------------------------------------- training and testing


def _measure_folds(
    turn: Turn,
    choices: list[dict[str, Any]],
    make: Callable[[dict[str, Any]], Model],
    rival: Contestant | None,
    tell: Tell,
) -> list[Record]:
    """Train and test each outer fold's choice; what was measured with the same choice stands."""
    study, lines = turn.study, turn.records
    done = _folds_of(lines) if rival else {}
    records = []
    for outer, (fold, choice) in enumerate(zip(study.task().folds, choices, strict=True)):
        record = done.get(outer)
        if record is None or record["configuration"] != choice:
            start = time.perf_counter()
            found = fit_and_test(
                partial(make, choice),
                study.graphs,
                study.y,
                fold,
                rival.prepare if rival else _as_it_is,
            )
            seconds = time.perf_counter() - start
            record = _fold_record(outer, choice, found) | {"seconds": seconds}
            lines.append(record)
        tell({})
        records.append(record)
    return records


def _folds_of(lines: JsonLines) -> dict[int, Record]:
    return {
        r["outer"]: r
        for r in lines
        if r.get("kind") == "fold" and {"outer", "configuration", "accuracy"} <= r.keys()
    }


def _as_it_is(graphs: GraphBatch) -> GraphBatch:
    return graphs


def _fold_record(outer: int, choice: dict[str, Any], found: Trained) -> Record:
    return {
        "kind": "fold",
        "outer": outer,
        "configuration": choice,
        "accuracy": found.accuracy,
        "train_seconds": found.train_seconds,
        "test_seconds": found.test_seconds,
        "parameters": n_trained_weights(found.model),
        "peak_mb": peak_megabytes(),
    }


def _summary(turn: Turn, folds: list[Record]) -> Record:
    return {
        "kind": "summary",
        "search": asdict(turn.search),
        "fold_train_seconds": [f["train_seconds"] for f in folds],
        "fold_test_seconds": [f["test_seconds"] for f in folds],
        "fold_parameters": [f["parameters"] for f in folds],
        "fold_configurations": [f["configuration"] for f in folds],
        "peak_mb": max(f["peak_mb"] for f in folds),
    }


def n_trained_weights(model: Any) -> int:
    """Of our readout, or as a rival counts its own."""
    if hasattr(model, "coef_"):
        return int(model.coef_.size + model.intercept_.size)
    return int(model.n_parameters_)


def peak_megabytes() -> float:
    """The most memory this process ever held (resident, in 10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # of this program alone, where getrusage may count its parent's
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(float(x.split()[1]) for x in lines if x.startswith("VmHWM")) * 1024 / 1e6
    import psutil

    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return float(memory.peak_wset) / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6

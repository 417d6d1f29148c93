"""One contestant's turn: select for each outer fold, then train and test what was selected."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fdgnn.context import Context
from fdgnn.evaluation.baselines import Contestant, Model, Task, contestant
from fdgnn.evaluation.lines import RecordLines
from fdgnn.evaluation.measures import Trained, fit_and_test, warm_up
from fdgnn.evaluation.records import (
    Configuration,
    FoldLine,
    RivalLine,
    RunResult,
    Search,
    SummaryLine,
    Trial,
    TrialsLine,
)
from fdgnn.evaluation.rundir import RunDirectory
from fdgnn.evaluation.running import finished_result, run_study
from fdgnn.evaluation.study import Study
from fdgnn.exceptions import FDGNNWarning
from fdgnn.fitting import Readout
from fdgnn.graphs import Array
from fdgnn.linear import KernelReadout
from fdgnn.records import Record


class Began(Record, frozen=True, kw_only=True, tag="began"):
    """A turn has begun: its steps, how many were done before, and the seconds they took."""

    steps: int
    done: int
    spent: float


class Stepped(Record, frozen=True, kw_only=True, tag="stepped"):
    """A step is done."""


Event: TypeAlias = Began | Stepped
Tell = Callable[[Event], None]


@dataclass(frozen=True)
class Turn:
    """Everything that the process of a contestant needs to know."""

    name: str  # "fdgnn", or one of `fdgnn.evaluation.baselines.RIVALS`
    study: Study
    directory: Path
    search: Search
    context: Context = Context()  # noqa: RUF009  (it is immutable)

    @property
    def lines(self) -> RecordLines[RivalLine]:
        """What the contestant has finished."""
        path = self.directory / "rivals" / f"{self.name}.jsonl"
        return RecordLines(path, TrialsLine | FoldLine | SummaryLine)


def take(turn: Turn, tell: Tell) -> None:
    """Do what is not done yet of a turn; its last line is the summary.

    `tell` hears first that the turn began, then of each step.
    """
    turn.lines.drop_torn_line()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FDGNNWarning)  # a row has no place for them
        if turn.name == "fdgnn":
            _take_ours(turn, tell)
        else:
            _take_rivals(turn, tell)


# ---------------------------------------------------------------------- a rival, or a variant


def _take_rivals(turn: Turn, tell: Tell) -> None:
    study = turn.study
    folds = study.task().folds
    task = Task(study.graphs, study.y, folds, study.seed, turn.search, study.smiles)
    rival = contestant(turn.name, task)
    parts = _score_parts(turn, rival, tell)
    trials = [trial for part in parts for trial in part.trials]
    choices = [best(trials, o).configuration if trials else rival.only() for o in range(len(folds))]
    rival.warm_up()
    done = _folds_of(turn.lines)
    measured = _measure_folds(turn, choices, rival.model, tell, rival.prepare, done)
    used: list[TrialsLine | FoldLine] = [*parts, *measured]
    turn.lines.append(
        _summary(
            turn,
            measured,
            peak_mb=max(line.peak_mb for line in used),
            fold_accuracies=[f.accuracy for f in measured],
            selection_seconds=sum(part.seconds for part in parts),
            n_configurations=rival.n_configurations,
            inner_folds=rival.inner_folds if trials or rival.chooses_in_training else 0,
        )
    )


def _score_parts(turn: Turn, rival: Contestant, tell: Tell) -> list[TrialsLine]:
    """Give all parts of the selection; score those that are not there yet."""
    lines, units = turn.lines, rival.units()
    scored = _scored(lines, rival, turn.search)
    known = [scored[unit] for unit in units if unit in scored]
    done: list[TrialsLine | FoldLine] = [*known, *_folds_of(lines).values()]
    spent = sum(line.seconds for line in done)
    tell(Began(steps=len(units) + turn.study.protocol.n_outer, done=len(known), spent=spent))
    for unit in units:
        if unit not in scored:
            scored[unit] = _score_part(rival, unit, turn.search)
            lines.append(scored[unit])
            tell(Stepped())
    return [scored[unit] for unit in units]


def _score_part(rival: Contestant, unit: str, search: Search) -> TrialsLine:
    start = time.perf_counter()
    trials = rival.score(unit)
    return TrialsLine(
        unit=unit,
        inner_folds=rival.inner_folds,
        seconds=time.perf_counter() - start,
        peak_mb=peak_megabytes(),
        trials=trials,
        scoring=search.scoring,
        class_weight=search.class_weight,
    )


def _scored(lines: Iterable[RivalLine], rival: Contestant, search: Search) -> dict[str, TrialsLine]:
    """Give the finished parts of the selection that were validated in the same way."""
    asked = (rival.inner_folds, search.scoring, search.class_weight)
    return {
        line.unit: line
        for line in lines
        if isinstance(line, TrialsLine)
        and (line.inner_folds, line.scoring, line.class_weight) == asked
    }


def best(trials: Sequence[Trial], outer: int) -> Trial:
    """Give the trial of an outer fold with the best score; among equals the first of the grid."""
    return max((t for t in trials if t.outer == outer), key=lambda t: t.score)


# ---------------------------------------------------------------------- the paper's model


def _take_ours(turn: Turn, tell: Tell) -> None:
    """Select by an evaluation, with test scores averaged over its random initializations."""
    study = turn.study
    result = finished_result(study, turn.directory)
    if result is None:
        result = _evaluate(turn, tell)
    else:
        tell(Began(steps=study.protocol.n_outer, done=0, spent=0.0))
    choices = result.fold_configurations
    warm_up(study, choices)
    folds = _measure_folds(turn, choices, study.estimator, tell, study.graphs.__getitem__)
    turn.lines.append(
        _summary(
            turn,
            folds,
            peak_mb=max(f.peak_mb for f in folds),
            fold_accuracies=result.fold_accuracies,
            selection_seconds=result.times.networks_seconds,
            n_configurations=result.n_configurations,
            n_guesses=result.n_guesses,
            inner_folds=study.protocol.n_inner,
        )
    )


def _evaluate(turn: Turn, tell: Tell) -> RunResult:
    study = turn.study
    with closing(RunDirectory(turn.directory, study.settings())) as run:
        seconds = [network.seconds for network in run.networks]
    protocol = study.protocol
    n_steps = protocol.n_configurations * protocol.n_guesses + protocol.n_outer
    tell(Began(steps=n_steps, done=len(seconds), spent=sum(seconds)))
    quiet = replace(turn.context, quiet=True)
    return run_study(study, turn.directory, quiet, after_each=lambda: tell(Stepped()))


# ---------------------------------------------------------------------- training and testing


def _measure_folds(
    turn: Turn,
    choices: Sequence[Configuration],
    make: Callable[[Configuration], Model],
    tell: Tell,
    prepare: Callable[[Array], Any],
    done: Mapping[int, FoldLine] | None = None,
) -> list[FoldLine]:
    """Train and test the choice of each outer fold; what was `done` with the same choice stands."""
    study, folds = turn.study, []
    for outer, (fold, choice) in enumerate(zip(study.task().folds, choices, strict=True)):
        line = (done or {}).get(outer)
        if line is None or line.configuration != choice:
            start = time.perf_counter()
            found = fit_and_test(partial(make, choice), prepare, study.y, fold)
            line = _fold_line(outer, choice, found, time.perf_counter() - start)
            turn.lines.append(line)
        tell(Stepped())
        folds.append(line)
    return folds


def _folds_of(lines: Iterable[RivalLine]) -> dict[int, FoldLine]:
    return {line.outer: line for line in lines if isinstance(line, FoldLine)}


def _fold_line(outer: int, choice: Configuration, found: Trained, seconds: float) -> FoldLine:
    return FoldLine(
        outer=outer,
        configuration=choice,
        accuracy=found.accuracy,
        balanced_accuracy=found.balanced_accuracy,
        roc_auc=found.roc_auc,
        train_seconds=found.train_seconds,
        test_seconds=found.test_seconds,
        parameters=n_trained_weights(found.model),
        peak_mb=peak_megabytes(),
        seconds=seconds,
    )


def _summary(turn: Turn, folds: Sequence[FoldLine], **others: Any) -> SummaryLine:
    return SummaryLine(
        search=turn.search,
        fold_train_seconds=[f.train_seconds for f in folds],
        fold_test_seconds=[f.test_seconds for f in folds],
        fold_parameters=[f.parameters for f in folds],
        fold_configurations=[f.configuration for f in folds],
        balanced_accuracy_mean=_mean([f.balanced_accuracy for f in folds]),
        roc_auc_mean=_mean([f.roc_auc for f in folds]),
        **others,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean over the folds that have a value; None if none has."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def n_trained_weights(model: Any) -> int:
    """Count the weights of our readouts, or ask a rival for its own.

    Weights of features that no training graph has are zero, and do not count.
    """
    if hasattr(model, "estimators_"):
        return sum(_readout_weights(fitted.readout) for fitted in model.estimators_)
    return int(model.n_parameters_)


def _readout_weights(readout: Readout) -> int:
    weights = readout.dual if isinstance(readout, KernelReadout) else readout.coef
    return int(np.count_nonzero(weights)) + readout.intercept.size


def peak_megabytes() -> float:
    """Give the most memory that this process ever held (resident, in 10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # this program alone, while getrusage may count its parent's memory
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(float(x.split()[1]) for x in lines if x.startswith("VmHWM")) * 1024 / 1e6
    import psutil

    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return float(memory.peak_wset) / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6

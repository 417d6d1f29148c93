"""From shards of graphs to a trained model, without having all graphs in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.context import Context
from fdgnn.datasets.rows import Reject
from fdgnn.ensemble import combine
from fdgnn.evaluation.record import (
    Evaluation,
    EvaluationProtocol,
    FoldResult,
    ModelDescription,
)
from fdgnn.evaluation.scores import machine, target_scores, versions
from fdgnn.exceptions import DatasetFormatError
from fdgnn.fitting import FitTask
from fdgnn.folds import salt_of
from fdgnn.metrics import OF_NUMBERS, named_scoring, usual_scoring
from fdgnn.scale.coding import Coding, task_of_survey
from fdgnn.scale.executors import AsRejects, AsTargets, Executor, TrainingParts
from fdgnn.scale.members import ScaleTask, TrainedModel, check_supported, novelty_of
from fdgnn.scale.parts import Block, PartTargets, Report, in_row_order, joined_survey
from fdgnn.scale.shards import Shard, ShardRequest, rows_about
from fdgnn.scale.survey import Survey, SurveyedGraphs
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import Targets
from fdgnn.tasks import TaskName

_BLOCKS_PER_WORKER = 4  # so that workers end together
_TOO_MANY = 2**40  # graphs


@dataclass(frozen=True)
class ReadShards:
    """Shards that were read: their blocks, and what is known of all graphs."""

    handles: list[Any]
    asked: ShardRequest
    survey: Survey
    n_rejects: int
    n_rows: int
    n_new: int  # parts that were not there before
    seconds: float

    @property
    def graphs(self) -> SurveyedGraphs:
        """All that encoders ask of the graphs."""
        return SurveyedGraphs(self.survey, self.asked.schema)

    def rejects(self, executor: Executor) -> Iterator[Sequence[Reject]]:
        """Yield the rejected rows, some at a time: there may be more than fit in memory."""
        for handle in self.handles if self.n_rejects else ():
            yield from executor.gather(tuple, [handle], AsRejects())


@dataclass(frozen=True)
class ScaledTraining:
    """A model that was trained on shards, and how it does on graphs held out."""

    model: Any
    task: TaskName
    metric: str
    score: float
    scores: dict[str, float]
    n_graphs: int
    n_held_out: int
    members: list[str]
    alphas: list[Any]
    seconds: dict[str, float]


def read_shards(
    shards: Sequence[Shard], asked: ShardRequest, executor: Executor, context: Context
) -> ReadShards:
    """Read all shards; what was read before is found again."""
    start = time.perf_counter()
    settled = asked.settled(shards[0])
    blocks = [block for shard in shards for block in _blocks(shard, len(shards), executor)]
    watch = _Progress(rows_about(shards), context)
    handles = executor.parse(settled, blocks, watch)
    reports = watch.reports
    parts = in_row_order([r.block for r in reports], [r.parts for r in reports])
    survey = joined_survey([part.survey for part in parts])
    n_rows = sum(report.n_rows for report in reports)
    if survey is None:
        first = next((each.first_reject for each in parts if each.n_rejects), None)
        why = "" if first is None else f", the first because of: {first}"
        raise DatasetFormatError(f"none of the {n_rows} rows can be used{why}")
    n_rejects = sum(part.n_rejects for part in parts)
    n_new = sum(report.n_new for report in reports)
    seconds = time.perf_counter() - start
    return ReadShards(handles, settled, survey, n_rejects, n_rows, n_new, seconds)


def _blocks(shard: Shard, n_shards: int, executor: Executor) -> list[Block]:
    """Cut a shard into blocks, if there are few shards for the workers.

    Each block goes through the lines of its whole shard, so that there are no more of them than
    workers.
    """
    wanted = -(-_BLOCKS_PER_WORKER * executor.n_workers // n_shards)
    stride = min(wanted, executor.n_workers)
    return [Block(shard, first, stride) for first in range(stride)]


class _Progress:
    """Rows as they are read, their rate, and the time left for about as many as there are."""

    def __init__(self, n_rows: int | None, context: Context) -> None:
        self.reports: list[Report] = []
        self._n = 0
        self._new: list[int] = []
        self._shown = context.track(self._each(), n_rows, "rows read", size=int)

    def _each(self) -> Iterator[int]:
        while True:
            yield self._new.pop()

    def block(self, report: Report) -> None:
        """Keep what is said of a block."""
        self.reports.append(report)

    def rows(self, n_rows: int) -> None:
        """Show how many rows were read until now."""
        if n_rows > self._n:
            self._new.append(n_rows - self._n)
            self._n = n_rows
            next(self._shown)


def task_asked(survey: Survey, names: tuple[str, ...], task: str | None) -> TaskName:
    """Tell whether targets are classes or numbers: as is asked, or as they look."""
    return task or task_of_survey(survey, names)  # type: ignore[return-value]


def train_on_shards(
    model: Any, read: ReadShards, names: tuple[str, ...], executor: Executor, context: Context,
    *, task: TaskName | None = None,
) -> ScaledTraining:  # fmt: skip
    """Choose alpha and base models by out-of-fold predictions, and train the model on all graphs.

    `model` is an estimator that is not fitted, for targets of the kind of `task`.
    """
    start = time.perf_counter()
    found: TaskName = task or task_of_survey(read.survey, names)
    graphs = read.graphs
    model._check_parameters()
    model._begin(graphs)
    coding = Coding.of(names, read.survey, found, salt_of(model.seed_))
    if model.class_weight == "balanced":
        coding = coding.balanced(read.survey)
    sampled = executor.gather(_SampledRows(coding), read.handles, AsTargets())
    values, folds = (np.concatenate(part) for part in zip(*sampled, strict=True))
    targets = Targets(names, values, coding.classes, flat=len(names) == 1)
    model._check_threshold(targets)
    fit_task = FitTask(targets, folds[None], model._metric(targets))
    parts = TrainingParts(executor, read.handles, coding)
    trained = _trained(model, ScaleTask(parts, graphs, fit_task), context)
    ensemble = combine([each.fit for each in trained], fit_task)
    kept = [one for one, keep in zip(trained, ensemble.kept[-1], strict=True) if keep]
    models = [fitted for one in kept for fitted in one.fit.fitted]
    predictions = ensemble.predictions[-1]
    model._take(models, targets, predictions, coding.weights(targets))
    model._novelty = novelty_of(kept)
    model.evaluation_ = found_scores = _evaluation(model, targets, predictions, fit_task)
    return ScaledTraining(
        model=model,
        task=found,
        metric=found_scores.metric,
        score=found_scores.score or 0.0,
        scores={each.words: each.mean or 0.0 for each in found_scores.metrics},
        n_graphs=read.survey.n_graphs,
        n_held_out=len(targets),
        members=[fitted.name for fitted in models],
        alphas=[fitted.alpha for fitted in models],
        seconds={"read": read.seconds, "train": time.perf_counter() - start},
    )


@dataclass(frozen=True)
class _SampledRows:
    """Targets and folds of graphs whose out-of-fold predictions are kept."""

    coding: Coding

    def __call__(self, answers: PartTargets) -> tuple[Array, Array]:
        some = self.coding.sampled(answers)
        values = self.coding.values(answers).values[some]
        return np.asarray(values), np.asarray(self.coding.folds(answers)[some])


def _trained(model: Any, task: ScaleTask, context: Context) -> list[TrainedModel]:
    """Fit all base models."""
    # No kernel matrix of so many graphs fits in memory: all readouts are linear.
    bases = model._base_models(model._graph_kind, _TOO_MANY, model.seed_)
    check_supported(bases, task.graphs)
    return [task.train(base, _steps(base.name, context)) for base in bases]


def _steps(name: str, context: Context) -> Callable[[int, int], None]:
    """Show how far a solver is."""
    import sys

    said = [time.monotonic()]

    def tell(steps: int, left: int) -> None:
        now = time.monotonic()
        if not context.quiet and now - said[0] > 10:
            said[0] = now
            text = f"{name}: {steps} steps of the solver, {left} systems left"
            print(text, file=sys.stderr, flush=True)

    return tell


def _evaluation(model: Any, targets: Targets, predictions: Floats, task: FitTask) -> Evaluation:
    """Score out-of-fold predictions, by which alpha was chosen as well, as one fold."""
    classify = targets.classify
    if model._scoring is not None:
        chosen = named_scoring(model._scoring, classify)
    else:
        chosen = usual_scoring(targets.rarest()) if classify else OF_NUMBERS["r2"]
    tested = np.ones((1, len(targets)), dtype=bool)
    n_folds = int(task.folds.max()) + 1
    return Evaluation(
        n_graphs=len(targets),
        task="classification" if classify else "regression",
        model=ModelDescription(name="", title=type(model).__name__, kind=type(model).__name__),
        protocol=EvaluationProtocol(
            name="out-of-fold", n_outer=1, n_inner=n_folds, scoring=chosen.name, seed=0
        ),
        targets=target_scores(None, NestedPredictions(targets, tested, predictions[None]), chosen),
        folds=[FoldResult(n_train=0, n_test=len(targets))],
        versions=versions(),
        machine=machine(),
    )

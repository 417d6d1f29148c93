"""From shards of graphs to a trained model, without having all graphs in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.committee import LARGE_PENALTIES, kept_members
from fdgnn.context import Context
from fdgnn.datasets.rows import Reject
from fdgnn.estimators import AUTO
from fdgnn.exceptions import DatasetFormatError
from fdgnn.networks import Goal, TrainingGoal, salt_of
from fdgnn.readout.dual import MOST_SAMPLES
from fdgnn.readout.metrics import OF_CLASSES, OF_NUMBERS, Scoring, named_scoring, usual_scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.scale.coding import Coding, task_of_survey
from fdgnn.scale.executors import AsTargets, Executor, TrainingParts
from fdgnn.scale.members import MemberTask, TrainedMember, check_supported, novelty_of
from fdgnn.scale.parts import Block, PartTargets, Report, in_row_order, joined_survey
from fdgnn.scale.shards import Shard, ShardRequest, rows_about
from fdgnn.scale.survey import Survey, SurveyedGraphs
from fdgnn.seeds import child_seed
from fdgnn.workflow.asking import TaskName

_BLOCKS_PER_WORKER = 4  # so that workers end together


@dataclass(frozen=True)
class ReadShards:
    """Shards that were read: their blocks, and what is known of all graphs."""

    handles: list[Any]
    asked: ShardRequest
    survey: Survey
    rejects: tuple[tuple[str, Reject], ...]  # with the shard of each
    n_rows: int
    n_new: int  # parts that were not there before
    seconds: float

    @property
    def graphs(self) -> SurveyedGraphs:
        """All that encoders ask of the graphs."""
        return SurveyedGraphs(self.survey, self.asked.reading)


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
    penalties: list[Any]
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
    named = [[(r.block.shard.path, part) for part in r.parts] for r in reports]
    parts = in_row_order([r.block for r in reports], named)
    survey = joined_survey([part.survey for _, part in parts])
    rejects = [(path, reject) for path, part in parts for reject in part.rejects]
    n_rows = sum(report.n_rows for report in reports)
    if survey is None:
        first = f", the first because of: {rejects[0][1]}" if rejects else ""
        raise DatasetFormatError(f"none of the {n_rows} rows can be used{first}")
    n_new = sum(report.n_new for report in reports)
    seconds = time.perf_counter() - start
    return ReadShards(handles, settled, survey, tuple(rejects), n_rows, n_new, seconds)


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
    """Choose penalties and members by graphs held out, and train the model on all graphs.

    `model` is an `FDGNNClassifier` or `FDGNNRegressor` that is not fitted, for targets of the kind
    of `task`.
    """
    start = time.perf_counter()
    found: TaskName = task or task_of_survey(read.survey, names)
    graphs, classify = read.graphs, found == "classification"
    model.begin(graphs)
    salt = salt_of(model.seed_)
    coding = Coding.of(names, read.survey, found, salt)
    if getattr(model, "class_weight", None) == "balanced":
        coding = coding.balanced(read.survey)
    sampled = executor.gather(_SampledValues(coding), read.handles, AsTargets())
    several = SeveralTargets(names, np.concatenate(sampled), coding.classes)
    goal = _goal(model, several, coding, classify)
    parts = TrainingParts(executor, read.handles, coding)
    trained = _trained(model, MemberTask(parts, graphs, model.n_projections), goal, context)
    outputs = np.asarray(np.mean([each.held_out.outputs for each in trained], axis=0))
    model.assemble([each.network for each in trained], novelty_of(trained))
    _finish(model, several, outputs, goal)
    scoring, scores = _scores(model, several, outputs, classify)
    return ScaledTraining(
        model=model,
        task=found,
        metric=scoring.words,
        score=scores[scoring.words],
        scores=scores,
        n_graphs=read.survey.n_graphs,
        n_held_out=len(several),
        members=[each.network.name for each in trained],
        penalties=[each.network.alpha for each in trained],
        seconds={"read": read.seconds, "train": time.perf_counter() - start},
    )


@dataclass(frozen=True)
class _SampledValues:
    """Targets of graphs whose held-out outputs are kept."""

    coding: Coding

    def __call__(self, answers: PartTargets) -> Array:
        return np.asarray(self.coding.values(answers).values[self.coding.sampled(answers)])


def _goal(model: Any, several: SeveralTargets, coding: Coding, classify: bool) -> Goal:
    weights = coding.weights(several)
    if len(several.names) > 1:
        return model.several_goals(several, weights)  # type: ignore[no-any-return]
    codes = several.values[:, 0] if classify else None
    own = None if weights is None else weights[:, 0]
    return TrainingGoal(several.coded, codes, own, model.seed_, model.metric_for(codes))


def _trained(model: Any, task: MemberTask, goal: Goal, context: Context) -> list[TrainedMember]:
    """Train all members, and leave the clearly worse ones out."""
    graphs = task.graphs
    members = list(model.members(model.graph_kind_, max(len(graphs), MOST_SAMPLES + 1)))
    if model.encoder != AUTO:
        members = members * model.n_networks
    check_supported(members, graphs)
    trained = []
    for i, member in enumerate(members):
        known = member.encoder.default_alpha if model.alpha is None else model.alpha
        alphas = LARGE_PENALTIES if known is None or model.encoder == AUTO else (known,)
        if model.alpha is not None:
            alphas = (model.alpha,)
        tell = _steps(member.name, context)
        trained.append(task.train(member, child_seed(model.seed_, i), alphas, goal, tell))
    if model.encoder == AUTO:
        outputs = [each.held_out.outputs for each in trained]
        kept = kept_members(outputs, goal.targets, goal.codes is not None, goal.ranking)
        trained = [each for each, keep in zip(trained, kept, strict=True) if keep]
    return trained


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


def _finish(model: Any, several: SeveralTargets, outputs: Floats, goal: Goal) -> None:
    """Let the model know what its outputs mean, and learn from those of graphs held out."""
    if several.classes is None:
        model.learn_numbers(several, outputs)
    else:
        model.learn_classes(several, outputs, goal)


def _scores(
    model: Any, several: SeveralTargets, outputs: Floats, classify: bool
) -> tuple[Scoring, dict[str, float]]:
    rarest = several.rarest()
    chosen = (
        named_scoring(model.scoring, classify)
        if model.scoring is not None
        else usual_scoring(rarest)
        if classify
        else OF_NUMBERS["r2"]
    )
    known = OF_CLASSES if classify else OF_NUMBERS
    usual = ("accuracy", "balanced_accuracy", "roc_auc") if classify else ("r2", "rmse")
    scores: dict[str, float] = {}
    for name in dict.fromkeys([chosen.name, *usual]):
        scoring, each = known[name], []
        for t, own in enumerate(several.parts(outputs)):
            each.append(float(scoring.metric(several.values[several.known[:, t], t], own, None)))
        scores[scoring.words] = scoring.shown(float(np.mean(each)))
    return chosen, scores

"""`Method`: a family of models with its grid, and how much of the grid is searched."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.evaluation.record import Configuration, Count
from fdgnn.evaluation.run import EvaluationTask, model_outputs
from fdgnn.folds import Folds, trained_on
from fdgnn.metrics import named_scoring
from fdgnn.records import Record

WARM_GRAPHS = 100  # on which models are tried before they are timed


class Search(Record, frozen=True, kw_only=True):
    """The part of the published grids that is searched.

    Attributes
    ----------
    n_configurations : int, optional
        Points of a method's grid, in its order; by default all.
    inner_folds : int, optional
        Inner folds on which they are validated; by default all, for networks one.
    choose_epochs : bool, default=True
        Whether networks choose their number of epochs as well, or are trained for all published
        ones.
    scoring : str, optional
        What methods choose by; by default accuracy, or R2. Networks choose by accuracy.
    class_weight : "balanced", optional
        Whether errors on rare classes count more in training, except that of networks.
    """

    n_configurations: int | None = None
    inner_folds: int | None = None
    choose_epochs: bool = True
    scoring: str | None = None
    class_weight: Literal["balanced"] | None = None

    def __post_init__(self) -> None:
        for name in ("n_configurations", "inner_folds"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; give 1 or more, or None for the default")


class Trial(Record, frozen=True, kw_only=True):
    """The validation score of one configuration on the inner folds of one outer fold."""

    outer: Count
    configuration: Configuration
    score: float | None  # None if it is not defined


class Method(ABC):
    """A family of models with its grid, on a task.

    Parameters
    ----------
    task : EvaluationTask
        Of one target. Models learn class codes, or numbers.
    search : Search
    grid : sequence of Configuration
        The most promising configuration first.
    """

    #: The class of the model, for the record.
    kind: str
    #: Inner folds that are used by default; None for all.
    usual_folds: ClassVar[int | None] = None

    def __init__(self, task: EvaluationTask, search: Search, grid: Sequence[Configuration]) -> None:
        self.task, self.search = task, search
        self.y: Array = task.targets.values[:, 0]
        self.classify = task.targets.classify
        self.grid = list(grid)[: search.n_configurations]
        self.n_configurations = len(self.grid)
        n_inner = int(task.folds.max()) + 1
        self.inner_folds = min(search.inner_folds or self.usual_folds or n_inner, n_inner)
        self.scoring = named_scoring(
            search.scoring or ("accuracy" if self.classify else "r2"), self.classify
        )

    @abstractmethod
    def model(self, configuration: Configuration) -> Any:
        """Return a model that is not trained, with ``fit`` and ``predict``."""

    def prepare(self, graphs: Array) -> Any:
        """Return some of the graphs in the library's own form; this is not timed."""
        return self.task.graphs[graphs]

    def outputs(self, model: Any, graphs: Any) -> Floats:
        """Return the outputs (n, q) of a trained model."""
        return model_outputs(model, graphs, self.task.targets.each[0])

    # ------------------------------------------------------------------ selection

    @property
    def units(self) -> list[str]:
        """The parts of the selection, each a checkpoint; none where there is nothing to choose."""
        return [json.dumps(each) for each in self.grid] if self.n_configurations > 1 else []

    def score(self, unit: str) -> list[Trial]:
        """Validate the configurations of one part in all outer folds."""
        configuration = json.loads(unit)
        return [
            Trial(outer=o, configuration=configuration, score=self._mean_score(configuration, fold))
            for o, fold in enumerate(self.task.folds)
        ]

    def _mean_score(self, configuration: Configuration, fold: Folds) -> float | None:
        """Return the mean over the inner folds that have a score."""
        scores = []
        for train, valid in self.inner_parts(fold):
            outputs = self.validate(configuration, train, valid)
            scores.append(float(self.scoring.metric(self.y[valid], outputs)))
        known = [score for score in scores if not np.isnan(score)]
        return float(np.mean(known)) if known else None

    def validate(self, configuration: Configuration, train: Ints, valid: Ints) -> Floats:
        """Train a model on some graphs, and return its outputs (n, q) for others."""
        model = self.model(configuration).fit(self.prepare(train), self.y[train])
        return self.outputs(model, self.prepare(valid))

    def inner_parts(self, fold: Folds) -> Iterator[tuple[Ints, Ints]]:
        """Yield training and validation graphs of the first inner folds of an outer one."""
        for inner in range(self.inner_folds):
            yield np.flatnonzero(trained_on(fold) & (fold != inner)), np.flatnonzero(fold == inner)

    @property
    def selects(self) -> bool:
        """Whether anything is chosen, before training or in training."""
        return bool(self.units)

    @property
    def only(self) -> Configuration:
        """The configuration where there is nothing to choose: the first of the grid."""
        return self.grid[0]

    def warm_up(self) -> None:
        """Import, compile and allocate what the first use needs."""
        few = few_graphs(self.y)
        graphs = self.prepare(few)
        self.model(self.only).fit(graphs, self.y[few]).predict(graphs)


def few_graphs(y: Array) -> Ints:
    """Return some graphs, of each class, on which models are tried before they are timed."""
    first = [np.flatnonzero(y == c)[:5] for c in np.unique(y)[:20]]
    some = np.random.default_rng(0).permutation(len(y))[:WARM_GRAPHS]
    return np.unique(np.concatenate([*first, some]))

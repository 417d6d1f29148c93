"""Trained graph networks as contestants: the number of epochs is chosen with the rest."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from fdgnn.evaluation.baselines.base import Task
from fdgnn.evaluation.records import Configuration, Trial
from fdgnn.graphs import Array, Floats, GraphBatch

SMOOTHED_OVER = 11  # epochs: a fold has few graphs, so single points of its curve are noise


def gin(task: Task) -> NetworkContestant:
    """Graph Isomorphism Network."""
    from fdgnn.evaluation.baselines.gin import GINClassifier

    return NetworkContestant(task, GINClassifier)


def dgcnn(task: Task) -> NetworkContestant:
    """Deep Graph Convolutional Neural Network."""
    from fdgnn.evaluation.baselines.dgcnn import DGCNNClassifier

    return NetworkContestant(task, DGCNNClassifier)


def gnn(task: Task) -> NetworkContestant:
    """The original Graph Neural Network."""
    from fdgnn.evaluation.baselines.scarselli import GNNClassifier

    return NetworkContestant(task, GNNClassifier)


class NetworkContestant:
    """A network with its published grid.

    A configuration is trained once for each inner fold used, and scored after every epoch; the
    number of epochs that validates best, averaged over those folds, belongs to the configuration.
    """

    chooses_in_training = False

    def __init__(self, task: Task, network: Any) -> None:
        self.task = task
        self.network = network
        self._grid: list[Configuration] = network.grid(task.graphs)[: task.search.n_configurations]
        self.n_configurations = len(self._grid)
        self.inner_folds = min(task.search.inner_folds or 1, int(task.folds.max()) + 1)

    def units(self) -> list[str]:
        """Name one part for each configuration in each outer fold."""
        choose_epochs = self.task.search.choose_epochs
        if self.n_configurations == 1 and not choose_epochs:
            return []
        return [
            json.dumps([o, c] if choose_epochs else [o, c, "all epochs"])
            for o in range(len(self.task.folds))
            for c in self._grid
        ]

    def only(self) -> Configuration:
        """Give the first configuration, for all published epochs."""
        return self._grid[0] | {"epochs": self.network.MAX_EPOCHS}

    def score(self, unit: str) -> list[Trial]:
        """Train one configuration on the inner folds of one outer fold."""
        outer, configuration, *_ = json.loads(unit)
        curve = np.mean(
            [self._curve(configuration, outer, f) for f in range(self.inner_folds)], axis=0
        )
        smooth = smoothed(curve)
        best = int(smooth.argmax()) if self.task.search.choose_epochs else len(curve) - 1
        configuration = configuration | {"epochs": best + 1}
        return [Trial(outer=outer, configuration=configuration, score=float(smooth[best]))]

    def _curve(self, configuration: Configuration, outer: int, inner: int) -> Floats:
        fold, graphs, y = self.task.folds[outer], self.task.graphs, self.task.y
        train, valid = np.flatnonzero((fold >= 0) & (fold != inner)), np.flatnonzero(fold == inner)
        model = self.model(configuration | {"epochs": self.network.MAX_EPOCHS})
        curve: Floats = model.validation_curve(graphs[train], y[train], graphs[valid], y[valid])
        return curve

    def model(self, configuration: Configuration) -> Any:
        """Make an untrained model."""
        return self.network(seed=self.task.seed, **configuration)

    def prepare(self, mask: Array) -> GraphBatch:
        """Give the graphs as they are: networks take a batch."""
        return self.task.graphs[mask]

    def warm_up(self) -> None:
        """Train for one epoch."""
        graphs, y = self.task.graphs, self.task.y
        self.model(self._grid[0] | {"epochs": 1}).fit(graphs, y).predict(graphs[:10])


def smoothed(curve: Floats) -> Floats:
    """Means over windows centered on each epoch, shorter at the ends."""
    half = SMOOTHED_OVER // 2
    sums = np.concatenate([[0.0], np.cumsum(curve)])
    start = np.maximum(np.arange(len(curve)) - half, 0)
    stop = np.minimum(np.arange(len(curve)) + half + 1, len(curve))
    means: Floats = (sums[stop] - sums[start]) / (stop - start)
    return means

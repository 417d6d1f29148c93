"""Our own variants beside the paper's FDGNN: ``FDGNNClassifier(encoder="auto", candidates=...)``.

A committee chooses its members and their penalties itself, by held-out predictions on the graphs
that it is trained on (`fdgnn.committee`). So the selection is a part of training, and of the time
that training takes. The test graphs of an outer fold are seen by nothing before they are predicted.
"""

from __future__ import annotations

import numpy as np

from fdgnn.committee import PENALTIES
from fdgnn.encoders import GraphKind
from fdgnn.estimators import AUTO, FOLDS, FDGNNClassifier
from fdgnn.experiments.records import Configuration, Trial
from fdgnn.experiments.rivals.base import Task
from fdgnn.graphs import Array, GraphBatch

WARM_GRAPHS = 100  # on which a committee is tried before it is timed


def committee(task: Task) -> CommitteeContestant:
    """Colors of several rounds and a reservoir; only colors where vertices carry nothing."""
    return CommitteeContestant(task, "all")


def colors(task: Task) -> CommitteeContestant:
    """Colors of several rounds."""
    return CommitteeContestant(task, "colors")


def both(task: Task) -> CommitteeContestant:
    """Models that read colors and a reservoir side by side."""
    return CommitteeContestant(task, "both")


class CommitteeContestant:
    """A committee; there are no parts of a selection, since its `fit` selects."""

    chooses_in_training = True

    def __init__(self, task: Task, candidates: str) -> None:
        self.task = task
        self.candidates = candidates
        members = self.model(self.only()).members(GraphKind.of(task.graphs), len(task.graphs))
        self.n_configurations = len(members) * len(PENALTIES)
        self.inner_folds = FOLDS

    def units(self) -> list[str]:
        """Nothing is chosen before training."""
        return []

    def score(self, unit: str) -> list[Trial]:
        """There are no parts."""
        raise ValueError(f"no part {unit!r}: a committee chooses while it is trained")

    def only(self) -> Configuration:
        """Give the parameters of the classifier."""
        given = {"scoring": self.task.search.scoring, "class_weight": self.task.search.class_weight}
        known = {name: value for name, value in given.items() if value is not None}
        return {
            "encoder": AUTO, "candidates": self.candidates, "random_state": self.task.seed, **known,
        }  # fmt: skip

    def model(self, configuration: Configuration) -> FDGNNClassifier:
        """Make an untrained model."""
        model = FDGNNClassifier()
        model.set_params(**configuration)
        return model

    def prepare(self, mask: Array) -> GraphBatch:
        """Give the graphs as they are."""
        return self.task.graphs[mask]

    def warm_up(self) -> None:
        """Train on some graphs, of each class."""
        graphs, y = self.task.graphs, self.task.y
        first = [np.flatnonzero(y == c)[:FOLDS] for c in np.unique(y)]
        some = np.random.default_rng(0).permutation(len(y))[:WARM_GRAPHS]
        few = np.unique(np.concatenate([*first, some]))
        self.model(self.only()).fit(graphs[few], y[few]).predict(graphs[few])

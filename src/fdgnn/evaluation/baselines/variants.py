"""Our own variants beside the paper's FDGNN: ``AutoGraphClassifier(candidates)``.

An ensemble chooses its base models and their alphas itself, by out-of-fold predictions for the
graphs that it is trained on (`fdgnn.ensemble`). So the selection is a part of training, and of the
time that training takes. The test graphs of an outer fold are seen by nothing before they are
predicted.
"""

from __future__ import annotations

import numpy as np

from fdgnn.encoders import GraphKind
from fdgnn.estimators import AutoGraphClassifier
from fdgnn.evaluation.baselines.base import Task
from fdgnn.evaluation.records import Configuration, Trial
from fdgnn.folds import N_FOLDS
from fdgnn.graphs import Array, GraphBatch
from fdgnn.seeds import seed_sequence

WARM_GRAPHS = 100  # on which an ensemble is tried before it is timed


def mixed(task: Task) -> EnsembleContestant:
    """WL features of several iterations and reservoirs; only WL where vertices carry nothing."""
    return EnsembleContestant(task, "all")


def wl(task: Task) -> EnsembleContestant:
    """WL features of several iterations."""
    return EnsembleContestant(task, "wl")


def union(task: Task) -> EnsembleContestant:
    """Base models that read WL features and a reservoir side by side."""
    return EnsembleContestant(task, "union")


class EnsembleContestant:
    """An ensemble; there are no parts of a selection, because its `fit` selects."""

    chooses_in_training = True
    inner_folds = N_FOLDS

    def __init__(self, task: Task, candidates: str) -> None:
        self.task = task
        self.candidates = candidates
        n_graphs, seed = len(task.graphs), seed_sequence(task.seed)
        model = self.model(self.only())
        bases = model._base_models(GraphKind.of(task.graphs), n_graphs, seed)
        grids = [base.readout.grid(n_graphs, classify=True) for base in bases]
        self.n_configurations = sum(len(grid) for grid in grids)

    def units(self) -> list[str]:
        """Return no parts: nothing is chosen before training."""
        return []

    def score(self, unit: str) -> list[Trial]:
        """Raise ValueError: there are no parts."""
        raise ValueError(f"no part {unit!r}: an ensemble chooses while it is trained")

    def only(self) -> Configuration:
        """Return the parameters of the classifier."""
        given = {"scoring": self.task.search.scoring, "class_weight": self.task.search.class_weight}
        known = {name: value for name, value in given.items() if value is not None}
        return {"candidates": self.candidates, "random_state": self.task.seed, **known}

    def model(self, configuration: Configuration) -> AutoGraphClassifier:
        """Make an untrained model."""
        model = AutoGraphClassifier()
        model.set_params(**configuration)
        return model

    def prepare(self, mask: Array) -> GraphBatch:
        """Return the graphs as they are."""
        return self.task.graphs[mask]

    def warm_up(self) -> None:
        """Train on some graphs, of each class."""
        graphs, y = self.task.graphs, self.task.y
        first = [np.flatnonzero(y == c)[:N_FOLDS] for c in np.unique(y)]
        some = np.random.default_rng(0).permutation(len(y))[:WARM_GRAPHS]
        few = np.unique(np.concatenate([*first, some]))
        self.model(self.only()).fit(graphs[few], y[few]).predict(graphs[few])

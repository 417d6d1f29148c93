"""Models of several targets: one set of networks, and a model of each target beside them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from numbers import Integral
from typing import Any, Self, cast

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.committee import (
    HeldOut,
)
from fdgnn.estimators.base import Chosen, GraphModel
from fdgnn.graphs import GraphBatch
from fdgnn.networks import (
    DrawnNetwork,
    SeveralGoals,
    TrainingGoal,
    signatures_of_many,
)
from fdgnn.readout.conformal import ConformalScores
from fdgnn.readout.metrics import (
    Metric,
)
from fdgnn.readout.several import SeveralTargets, Target, coded_like, scores_by_target
from fdgnn.readout.targets import sample_weights
from fdgnn.scikit import (
    check_is_fitted,
    clone,
)

# What a model of several targets knows that a model of one of them does not.
_OF_ALL_TARGETS = (
    "each_", "targets_", "training_score_", "training_score_nested_", "training_scores_",
    "training_rival_", "conformal_",
)  # fmt: skip


class SeveralTargetsModel(GraphModel):
    """A model whose outputs may be those of several targets, side by side."""

    def _fit_targets(
        self,
        graphs: GraphBatch,
        several: SeveralTargets,
        sample_weight: Any,
        chosen: Chosen,
        class_weight: Any = None,
    ) -> tuple[SeveralGoals, list[tuple[DrawnNetwork, HeldOut]]]:
        """Fit networks to several targets, and keep a model of each."""
        some = several.usable(sample_weight)
        given = None if sample_weight is None else np.asarray(sample_weight)[some]
        graphs, several = graphs if some.all() else graphs[some], several[some]
        several.check_learnable()
        self._start_fit(graphs)
        weights, many = several.weights(given, class_weight), signatures_of_many(graphs)
        goals = self.several_goals(several, weights, many)
        pairs = self._fit_networks(graphs, goals, chosen)
        self.split(several.targets)
        return goals, pairs

    def split(self, targets: tuple[Target, ...]) -> None:
        """Take several targets for what the outputs mean, and make a model of each."""
        self.targets_ = targets
        self.each_ = tuple(self._alone(t, target) for t, target in enumerate(targets))

    def several_goals(
        self, several: SeveralTargets, weights: Floats | None, signatures: Array | None = None
    ) -> SeveralGoals:
        """What networks are trained for, and a goal for each target alone.

        All targets are scored alike: if one has a rare class, as is good for that one.
        """
        classify, metric = several.classes is not None, self.metric_for(several.rarest())
        goals = [
            TrainingGoal(targets, codes if classify else None, own, self.seed_, metric)
            for targets, codes, own in several.of_each(weights)
        ]
        return SeveralGoals(several, tuple(goals), weights, self.seed_, signatures)

    def _alone(self, number: int, target: Target) -> Self:
        """Give a model of one target: the same networks, with the outputs of this one."""
        alone: Self = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in _OF_ALL_TARGETS:
                setattr(alone, name, value)
        alone.networks_ = tuple(n.only(number, target.outputs) for n in self.networks_)
        alone.answer_for(target)
        return alone

    def shared_out(self, outputs: Floats) -> Iterator[tuple[Any, Floats]]:
        """Give the model of each of several targets, with its own of the outputs (n_graphs, q)."""
        for one, target in zip(self.each_, self.targets_, strict=True):
            yield one, outputs[:, target.outputs]

    def mean_score(self, X: Any, y: Any, metric: Metric, sample_weight: Any = None) -> float:
        """Mean over several targets of a score, each on the graphs for which it is known."""
        graphs = self.check_graphs(X)
        truth = coded_like(self.targets_, y, graphs)
        weights = sample_weights(sample_weight, len(graphs))
        return float(np.nanmean(scores_by_target(metric, truth, self.outputs(graphs), weights)))

    def share_out_scores(self) -> None:
        """Give the model of each target its own of the held-out scores: by class, or all."""
        groups = iter(self.conformal_.groups)
        for one, target in zip(self.each_, self.targets_, strict=True):
            width = 1 if target.classes is None else len(target.classes)
            one.conformal_ = ConformalScores(tuple(islice(groups, width)))

    def answer_for(self, target: Target) -> None:
        """Take one target for what the outputs mean."""
        raise NotImplementedError

    def for_target(self, target: str | int) -> Self:
        """Give the model of one of several targets, by its name or number.

        It is a model of its own, with the same networks, so that it can be explained, saved and
        shown like any other.
        """
        check_is_fitted(self)
        if not self.each_:
            raise ValueError("the model was fitted on one target, so that there is none to choose")
        names = [each.name for each in self.targets_]
        if isinstance(target, Integral) and 0 <= target < len(names):
            return cast(Self, self.each_[target])
        if target not in names:
            known = ", ".join(map(repr, names[:10]))
            raise ValueError(f"target={target!r} is none of the model's; they are {known}")
        return cast(Self, self.each_[names.index(str(target))])

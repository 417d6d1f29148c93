"""Training a base model on parts: sparse features by passes, dense ones by moments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from fdgnn.applicability import Novelty, SeenFeatures
from fdgnn.arrays import Floats
from fdgnn.encoders import GraphReservoir, WLCounts
from fdgnn.fitting import BaseModel, Choice, FitTask, FittedModel, ModelFit, alpha_of_outputs
from fdgnn.linear import Ridge
from fdgnn.scale.coding import Coding
from fdgnn.scale.dense import DenseTraining
from fdgnn.scale.executors import Tell, TrainingParts
from fdgnn.scale.sparse import SparseTraining
from fdgnn.scale.survey import SurveyedGraphs


class TrainedModel(NamedTuple):
    """A fitted base model, and its applicability domain by the sampled graphs."""

    fit: ModelFit
    novelty: tuple[SeenFeatures, Floats] | None  # where WL features are counted


@dataclass(frozen=True, eq=False)
class ScaleTask:
    """What the training of every base model needs to know."""

    parts: TrainingParts
    graphs: SurveyedGraphs
    task: FitTask  # of the graphs whose out-of-fold predictions are kept

    def train(self, base: BaseModel, tell: Tell) -> TrainedModel:
        """Fit the encoders of a base model, choose alpha for all, and train the readouts."""
        start, targets = time.thread_time(), self.task.targets
        trainers = [self._trainer(base, seed, tell) for seed in base.seeds]
        alphas = base.readout.grid(len(self.graphs), targets.classify)
        predictions = [each.held_out(np.array(alphas, dtype=np.float64)) for each in trainers]
        choice = self.task.choose(np.mean(predictions, axis=0)[None], alphas)
        found = ModelFit(base.name, alphas, choice, (), [], None, 0.0)
        chosen, first = found.alpha, trainers[0]
        if first.tried_on_few:
            times = _raised(self.parts.coding) if len(alphas) > 1 else (1.0,)
            raised = first.of_all(alpha_of_outputs(chosen, targets), np.array(times))
            again: Choice = self.task.choose(raised[None], times)
            chosen = _product(chosen, replace(found, alphas=times, choice=again).alpha)
            found = replace(found, choice=again)
        each = alpha_of_outputs(chosen, targets)
        models = tuple(
            FittedModel(one.encoder, one.expansion, one.finished(each), chosen, base.name)
            for one in trainers
        )
        found = replace(found, fitted=models, seconds=time.thread_time() - start)
        return TrainedModel(found, first.novelty)

    def _trainer(self, base: BaseModel, seed: np.random.SeedSequence, tell: Tell) -> Any:
        encoder = clone(base.encoder).draw(self.graphs, seed)
        assert isinstance(base.readout, Ridge)
        normalize = base.readout.normalize
        if isinstance(encoder, WLCounts):
            return SparseTraining(self.parts, encoder, normalize, tell)
        return DenseTraining(self.parts, encoder, normalize, base.n_projections, seed)


def _raised(coding: Coding) -> tuple[float, ...]:
    """Return by what an alpha that some graphs chose may be multiplied for all of them.

    Errors that are noise want the same alpha for any number of graphs; those of a model that is
    too simple want one that grows with it. Which of both it is, the graphs held out tell.
    """
    assert coding.tried is not None
    times = 1.0 / coding.tried
    return 1.0, times**0.5, times


Alpha = float | tuple[float, ...]


def _product(alpha: Alpha, times: Alpha) -> Alpha:
    """Multiply alphas, of each target if there are several."""
    if isinstance(alpha, tuple):
        each = times if isinstance(times, tuple) else (times,) * len(alpha)
        return tuple(a * t for a, t in zip(alpha, each, strict=True))
    assert not isinstance(times, tuple)
    return alpha * times


def check_supported(bases: Sequence[BaseModel], graphs: SurveyedGraphs) -> None:
    """Raise ValueError for what cannot be trained out of core."""
    for base in bases:
        encoder = base.encoder
        if not isinstance(base.readout, Ridge):
            raise ValueError("out of core only linear readouts are trained; leave `readout` out")
        if isinstance(encoder, WLCounts):
            if encoder.n_features is None:
                raise ValueError("out of core WL features are hashed; give `n_features` a number")
            if graphs.features is not None or not graphs.survey.whole_weights:
                raise ValueError(
                    "out of core WL labels cannot cut real features of vertices, or edge weights, "
                    "into bins; choose --model paper, or leave them out"
                )
        elif not isinstance(encoder, GraphReservoir):
            raise ValueError(
                f"{base.name} cannot be trained out of core; choose --model wl, auto or paper"
            )


def novelty_of(trained: Sequence[TrainedModel]) -> Novelty | None:
    """Return the applicability domain of the first base model that counts WL features."""
    for number, model in enumerate(trained):
        if model.novelty is not None:
            return Novelty.of_own(number, *model.novelty)
    return None

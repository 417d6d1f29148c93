"""Training one member of a model on parts: sparse features by passes, dense ones by moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.committee import HeldOut, Member, Penalty
from fdgnn.encoders import ColorCounts, GraphReservoir
from fdgnn.networks import Goal, Network
from fdgnn.novelty import Novelty, SeenColors
from fdgnn.scale.coding import Coding
from fdgnn.scale.dense import DenseTraining
from fdgnn.scale.executors import Tell, TrainingParts
from fdgnn.scale.sparse import SparseTraining
from fdgnn.scale.survey import SurveyedGraphs


class TrainedMember(NamedTuple):
    """A member with its penalty and readout, and what it says of graphs held out."""

    network: Network
    held_out: HeldOut
    novelty: tuple[SeenColors, Floats] | None  # of the sampled graphs, where colors are counted


@dataclass(frozen=True, eq=False)
class MemberTask:
    """What the training of every member needs to know."""

    parts: TrainingParts
    graphs: SurveyedGraphs
    n_projections: int | None = None

    def train(
        self,
        member: Member,
        seed: np.random.SeedSequence,
        alphas: Sequence[float],
        goal: Goal,
        tell: Tell,
    ) -> TrainedMember:
        """Draw the encoder of a member, choose its penalty, and train its readout."""
        encoder = member.encoder.draw(self.graphs, seed)  # type: ignore[arg-type]
        relative = bool(getattr(member.recipe, "relative", False))
        if isinstance(encoder, ColorCounts):
            trainer: Any = SparseTraining(self.parts, encoder, relative, tell)
        else:
            trainer = DenseTraining(self.parts, encoder, relative, self.n_projections, seed)
        outputs = trainer.held_out(np.array(alphas, dtype=np.float64))
        found = goal.best(outputs, alphas)
        if trainer.tried_on_few:
            times = _raised(self.parts.coding) if len(alphas) > 1 else (1.0,)
            outputs = trainer.of_all(goal.penalty_of_outputs(found.penalty), np.array(times))
            raised = goal.best(outputs, times)
            found = HeldOut(_product(found.penalty, raised.penalty), raised.outputs)
        readout = trainer.finished(goal.penalty_of_outputs(found.penalty))
        network = Network(encoder, trainer.expansion, readout, found.penalty, member.name)
        return TrainedMember(network, found, trainer.novelty)


def _raised(coding: Coding) -> tuple[float, ...]:
    """By what penalties that some graphs chose are multiplied for all of them.

    Errors that are noise want the same penalty for any number of graphs; those of a model that is
    too simple want one that grows with it. Which of both it is, the graphs held out tell.
    """
    assert coding.tried is not None
    times = 1.0 / coding.tried
    return 1.0, times**0.5, times


def _product(penalty: Penalty, times: Penalty) -> Penalty:
    """Multiply penalties, of each target if there are several."""
    if isinstance(penalty, tuple):
        each = times if isinstance(times, tuple) else (times,) * len(penalty)
        return tuple(p * t for p, t in zip(penalty, each, strict=True))
    assert not isinstance(times, tuple)
    return penalty * times


def check_supported(members: Sequence[Member], graphs: SurveyedGraphs) -> None:
    """Raise ValueError for what cannot be trained out of core."""
    for member in members:
        encoder = member.encoder
        if member.recipe.name != "linear":
            raise ValueError("out of core only linear readouts are trained; leave `readout` out")
        if isinstance(encoder, ColorCounts):
            if encoder.n_buckets is None:
                raise ValueError("out of core colors are hashed; give `n_buckets` a number")
            if graphs.features is not None or not graphs.survey.whole_weights:
                raise ValueError(
                    "out of core colors cannot cut real features of vertices, or weights of arcs, "
                    "into bins; choose --model paper, or leave them out"
                )
        elif not isinstance(encoder, GraphReservoir):
            raise ValueError(
                f"{member.name} cannot be trained out of core; choose --model colors, auto or paper"
            )


def novelty_of(trained: Sequence[TrainedMember]) -> Novelty | None:
    """How unlike the training graphs others are, by the first member that counts colors."""
    for number, member in enumerate(trained):
        if member.novelty is not None:
            return Novelty.of_own(number, *member.novelty)
    return None

"""A network: a fitted encoder, the random expansion of its features, and a trained readout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, Ints
from fdgnn.caching import cached_property
from fdgnn.committee import HeldOut, Member, Penalty, Readout, at_best_penalty
from fdgnn.encoders import Encoder, Encoding
from fdgnn.encoders.descriptors import DescriptorBlock, beside
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.graphs import GraphBatch
from fdgnn.readout.calibration import (
    N_FOLDS,
    shuffled_folds,
    signature_folds,
    stratified_folds,
)
from fdgnn.readout.dual import MOST_SAMPLES
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.readout.linear import LinearReadout
from fdgnn.readout.metrics import Metric, ranks
from fdgnn.readout.several import SeveralTargets, balanced_folds

FEW_GRAPHS = 8  # whose outputs take one call, since calls take longer than sums


@dataclass(frozen=True)
class Network:
    """One guess: a fitted encoder, the expansion of its features, and the trained readout."""

    encoder: Encoder
    expansion: RandomExpansion | None
    readout: Readout
    alpha: Penalty | None = None  # the penalty of the readout, where it is known
    name: str = ""  # of the member of a committee
    descriptors: DescriptorBlock | None = None  # beside the features of graphs

    def features(self, graphs: GraphBatch, n_jobs: int | None = None) -> Features:
        """What the readout sees of checked graphs, (n_graphs, P)."""
        return self.seen(self.encoder.encode(graphs, n_jobs=n_jobs).features[0], graphs)

    def seen(self, features: Features, graphs: GraphBatch) -> Features:
        """What the readout sees (n_graphs, P) of graphs with these features of the encoder."""
        return beside(expanded(features, self.expansion), self.descriptors, graphs)

    def outputs(self, encoding: Encoding, graphs: GraphBatch) -> Floats:
        """Eq. 3: the outputs (n_graphs, q) for graphs that were encoded already."""
        X = encoding.features[0]
        if self._read_at_once is None or X.shape[0] > FEW_GRAPHS or sp.issparse(X):
            return self.readout.outputs(self.seen(X, graphs))
        from fdgnn.kernels import read_out

        return np.asarray(read_out(np.ascontiguousarray(X, np.float64), *self._read_at_once))

    @cached_property
    def _read_at_once(self) -> tuple[Floats, Floats, Floats] | None:
        """W_phi^T, W_Y and b, where a linear readout sees nothing but random features."""
        if self.expansion is None or self.descriptors is not None:
            return None
        if not isinstance(self.readout, LinearReadout):
            return None
        return np.ascontiguousarray(self.expansion.projection_.T), *self.readout

    def lowered(self, by: float | Floats) -> Network:
        """Give the same network with all of its outputs lower by a number, or each by its own."""
        return replace(self, readout=self.readout.lowered(by))

    def only(self, target: int, outputs: slice) -> Network:
        """Give the network of one of several targets, which has these outputs."""
        alpha = self.alpha[target] if isinstance(self.alpha, tuple) else self.alpha
        return replace(self, readout=self.readout.only(outputs), alpha=alpha)


@dataclass(frozen=True)
class TrainingGoal:
    """What networks are trained for."""

    targets: Floats  # (n, q)
    codes: Array | None  # (n,) class numbers; None for real targets
    weights: Floats | None  # (n,) of mean 1
    seed: np.random.SeedSequence
    metric: Metric  # what penalties are chosen by
    signatures: Array | None = None  # (n,) of many graphs: equal ones are held out together

    def folds(self, n_folds: int) -> Ints:
        """Fold of each graph, (n,)."""
        if self.signatures is not None:
            return signature_folds(self.signatures, salt_of(self.seed), n_folds)
        if self.codes is None:
            return shuffled_folds(len(self.targets), self.seed, n_folds)
        return stratified_folds(self.codes, self.seed, n_folds)

    def score(self, outputs: Floats) -> Floats:
        """Score outputs (a, n, q) by the metric: (a,)."""
        truth = self.targets if self.codes is None else self.codes
        return self.metric(truth, outputs, self.weights)

    @property
    def ranking(self) -> bool:
        """Whether graphs are to be put in order, so that members are judged by that."""
        return self.codes is not None and ranks(self.metric)

    def best(self, outputs: Floats, alphas: Sequence[float]) -> HeldOut:
        """Take the penalty with the best score of outputs (a, n, q)."""
        return at_best_penalty(outputs, self.score(outputs), alphas)

    def penalty_of_outputs(self, penalty: Penalty) -> float | Floats:
        """Give the penalty as readouts take it."""
        assert not isinstance(penalty, tuple)
        return penalty


@dataclass(frozen=True)
class SeveralGoals:
    """Several targets that networks are trained for together, each with a penalty of its own."""

    several: SeveralTargets
    goals: tuple[TrainingGoal, ...]  # of each target, on the graphs for which it is known
    weights: Floats | None  # (n,), or (n, q)
    seed: np.random.SeedSequence
    signatures: Array | None = None  # (n,) of many graphs: equal ones are held out together

    @cached_property
    def targets(self) -> Floats:
        """Targets (n, q), NaN where they are unknown."""
        return self.several.coded

    @property
    def codes(self) -> Array | None:
        """Class numbers (n, n_targets), -1 where they are unknown; None for real targets."""
        return None if self.several.classes is None else self.several.values

    def folds(self, n_folds: int) -> Ints:
        """Fold of each graph, (n,)."""
        if self.signatures is not None:
            return signature_folds(self.signatures, salt_of(self.seed), n_folds)
        if self.several.classes is None and self.several.known.all():
            return shuffled_folds(len(self.several), self.seed, n_folds)
        return balanced_folds(self.several, n_folds, self.seed)

    @property
    def ranking(self) -> bool:
        """Whether graphs are to be put in order by all targets."""
        return all(goal.ranking for goal in self.goals)

    def best(self, outputs: Floats, alphas: Sequence[float]) -> HeldOut:
        """Take the penalty with the best score of each target."""
        parts = zip(self.goals, self.several.parts(outputs), strict=True)
        return joined_choices(self.several, [goal.best(own, alphas) for goal, own in parts])

    def penalty_of_outputs(self, penalty: Penalty) -> float | Floats:
        """Give the penalty of each output (q,)."""
        if not isinstance(penalty, tuple):
            return penalty
        widths = [t.outputs.stop - t.outputs.start for t in self.several.targets]
        return np.repeat(penalty, widths)


def signatures_of_many(graphs: GraphBatch) -> Array | None:
    """What folds of more graphs depend on than a closed form can take; None of fewer.

    Folds are then the same wherever a graph stands, so that parts of the graphs have them, too.
    """
    return graphs.coloring.signatures if len(graphs) > MOST_SAMPLES else None


def many_or_none(signatures: Array) -> Array | None:
    """Give signatures of graphs, if there are so many."""
    return signatures if len(signatures) > MOST_SAMPLES else None


def salt_of(seed: np.random.SeedSequence) -> int:
    """Give the number on which folds by signatures depend."""
    return int(seed.generate_state(1)[0])


Goal: TypeAlias = TrainingGoal | SeveralGoals


def joined_choices(several: SeveralTargets, found: Sequence[HeldOut]) -> HeldOut:
    """Put together what was chosen for each target, on the graphs for which it is known."""
    outputs = several.joined([each.outputs for each in found])
    return HeldOut(tuple(float(each.penalty) for each in found), outputs)


@dataclass(frozen=True)
class DrawnNetwork:
    """A member with its encoder fitted, before its readout is trained."""

    member: Member
    encoder: Encoder
    expansion: RandomExpansion | None
    encoding: Encoding
    features: Features  # that the readout sees
    descriptors: DescriptorBlock | None = None

    def held_out(self, goal: Goal, alphas: Sequence[float], n_folds: int) -> Floats:
        """Outputs (a, n, q) for each graph by readouts that have not seen its fold.

        NaN where the target is unknown.
        """
        fold = goal.folds(n_folds)[None]
        penalties = np.array(alphas, dtype=np.float64)
        recipe = self.member.recipe
        with _solvable(penalties):
            found = recipe.held_out(self.features, goal.targets, penalties, fold, goal.weights)[0]
            _finite(np.where(np.isnan(goal.targets), 0.0, found))
        return np.asarray(found)

    def trained(self, goal: Goal, alpha: Penalty) -> Network:
        """Train the readout."""
        each, recipe = goal.penalty_of_outputs(alpha), self.member.recipe
        with _solvable(each):
            readout = recipe.fit(self.features, goal.targets, each, goal.weights)
            _finite(readout.dual if isinstance(readout, GaussianReadout) else readout.coef)
        name, descriptors = self.member.name, self.descriptors
        return Network(self.encoder, self.expansion, readout, alpha, name, descriptors)

    def chosen(self, goal: Goal, alphas: Sequence[float], n_folds: int) -> HeldOut:
        """Take the penalty with the best held-out score."""
        return goal.best(self.held_out(goal, alphas, n_folds), alphas)


@contextmanager
def _solvable(alpha: float | Floats) -> Iterator[None]:
    """Refuse a readout without a finite solution, which a penalty next to nothing may give."""
    try:
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            yield
    except np.linalg.LinAlgError:
        raise ValueError(
            f"alpha={np.min(alpha):g}: the readout has no finite solution with this penalty; give "
            "a larger one"
        ) from None


def _finite(numbers: Any) -> Floats:
    if not np.isfinite(numbers).all():
        raise np.linalg.LinAlgError
    return np.asarray(numbers)


def held_out_outputs(pairs: Sequence[tuple[DrawnNetwork, HeldOut]], goal: Goal) -> Floats:
    """Outputs (n, q) for each graph by readouts that have not seen it, averaged over networks.

    They are made now where choosing a penalty did not need them.
    """
    outputs = [
        drawn.held_out(goal, (found.penalty,), N_FOLDS)[0]
        if found.outputs is None
        else found.outputs
        for drawn, found in pairs
    ]
    return np.asarray(np.mean(outputs, axis=0))


def draw_network(
    member: Member,
    graphs: GraphBatch,
    seed: np.random.SeedSequence,
    n_projections: int | None = None,
    n_jobs: int | None = None,
) -> DrawnNetwork:
    """Fit the encoder of a new member to checked graphs, encode them, and draw the expansion."""
    encoder = member.encoder.draw(graphs, seed)
    encoding = encoder.encode(graphs, n_jobs=n_jobs)
    X = encoding.features[0]
    expansion = draw_expansion(encoder, X.shape[1], n_projections, seed)
    X = expanded(X, expansion)
    block = descriptor_block(graphs, X)
    X = beside(X, block, graphs)
    return DrawnNetwork(member, encoder, expansion, encoding, X, block)


def descriptor_block(graphs: GraphBatch, features: Features) -> DescriptorBlock | None:
    """Learn the descriptors of graphs, scaled to the features beside them, if there are any."""
    described = graphs.descriptors
    return None if described is None else DescriptorBlock.of(described, features)


def draw_expansion(
    encoder: Encoder, n_features: int, n_projections: int | None, seed: np.random.SeedSequence
) -> RandomExpansion | None:
    """Draw as many random features as are asked for, or as the encoder says."""
    P = encoder.expanded_size(n_features, n_projections)
    return RandomExpansion(P).draw(n_features, seed) if P else None

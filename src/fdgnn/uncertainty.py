r"""Uncertainty: probabilities, decision thresholds, and conformal sets and intervals.

*Probabilities* are learned from out-of-fold outputs s (n, q), with one number a > 0::

    p = softmax(a g(s)),    g(s) = s between the targets -1 and +1, and almost flat beyond

For two classes, with one output s, that is ``sigmoid(a g(s))``. Both g and the softmax keep order:
the class of the largest probability is the class that `predict` gives. Beyond its targets an
output extrapolates, to numbers in the hundreds where alpha is small, which say no more than
"beyond". docs/decisions/0023-probabilities.md has the measurements.

*Conformal prediction sets and intervals* cover the truth with a chosen probability. Every training
graph is predicted by a readout that has not seen it. A score is how far from the truth that
prediction was::

    classes:  1 - p(true class)          regression:  |y - f(x)| / d(x)

The limit q for a coverage c is the k-th smallest of n scores, k = ceil((n + 1) c). A new graph's
set has every answer whose score would be at most q: the classes with p >= 1 - q, or the numbers
from f(x) - q d(x) to f(x) + q d(x), where d(x) is the error to be expected (`fdgnn.neighbors`). If
the new graph's score is as likely as any to have each rank among the others, the truth is in its
set with a chance of c at least, and of c + 1 / (n + 1) at most.
docs/decisions/0040-conformal-prediction.md says what that rests on, and what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, inf
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats
from fdgnn.targets import Target, Targets, transformed_back, winning_class

SLOPES = (1e-6, 1e6)  # where a is looked for
_LEAK = 1e-6  # what is left of the outputs beyond their targets, so that order is kept


def probabilities(outputs: Floats, slope: float) -> Floats:
    """``softmax(a g(s))``: outputs (n, q) -> (n, n_classes)."""
    return _softmax(slope * _evidence(outputs))


def fit_slope(outputs: Floats, codes: Array) -> float:
    """Find a for held-out outputs (n, q) of graphs of the classes `codes` (n,).

    The cross entropy to the classes is convex in a, so its derivative has one zero. The targets
    are not 0 and 1 but Platt's, as if one graph more had been seen of each class: else outputs
    that separate the classes would make a infinite.
    """
    G = _evidence(outputs)
    counts = np.bincount(codes, minlength=G.shape[1])[codes, None]
    targets = (counts * np.eye(G.shape[1])[codes] + 1) / (counts + G.shape[1])

    def derivative(a: float) -> float:
        return float(((_softmax(a * G) - targets) * G).sum())

    low, high = SLOPES
    if derivative(low) >= 0:  # outputs that tell nothing, or worse
        return low
    from scipy.optimize import brentq  # slow to import, and only for training

    return high if derivative(high) <= 0 else float(brentq(derivative, low, high))


def _evidence(outputs: Floats) -> Floats:
    """g, one column per class; the one output of two classes is the difference of their columns."""
    G = np.clip(outputs, -1.0, 1.0) + _LEAK * outputs
    return G * np.array([-0.5, 0.5]) if G.shape[1] == 1 else G


def _softmax(Z: Floats) -> Floats:
    """Return SciPy's softmax, bit for bit; importing that takes longer than most predictions."""
    shifted = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """Conformal scores: distances of out-of-fold predictions from the truth, sorted.

    Attributes
    ----------
    groups : tuple of ascending arrays
        The scores of the training graphs of each class; or, for numbers, of each output.
    """

    groups: tuple[Floats, ...]

    @classmethod
    def of(cls, groups: Sequence[Floats]) -> ConformalScores:
        """Keep scores, sorted; those that are not known (NaN) are left out."""
        return cls(tuple(np.sort(scores[~np.isnan(scores)]) for scores in groups))

    def limit(self, coverage: float) -> float:
        """Return q for all groups together."""
        return _limit(np.sort(np.concatenate(self.groups)), coverage)

    def limits_by_class(self, coverage: float) -> Floats:
        """Return q for each class by its own graphs; infinite for a class with too few of them."""
        return np.array([
            _limit(scores, coverage) if _rank(len(scores), coverage) <= len(scores) else inf
            for scores in self.groups
        ])  # fmt: skip


def check_coverage(coverage: Any) -> float:
    """Return a coverage as a number, or raise ValueError unless it is between 0 and 1."""
    number = isinstance(coverage, Real) and not isinstance(coverage, bool)
    if not number or not 0 < float(coverage) < 1:
        raise ValueError(
            f"`coverage`: expected a share between 0 and 1 such as 0.9, got {coverage}"
        )
    return float(coverage)


def _rank(n: int, coverage: float) -> int:
    return ceil((n + 1) * coverage * (1 - 1e-12))  # 0.55 * 100 is a little more than 55


def _limit(ascending: Floats, coverage: float) -> float:
    n, k = len(ascending), _rank(len(ascending), coverage)
    if k > n:
        raise ValueError(
            f"`coverage`: {n} held-out graphs are too few for a coverage of {coverage}; "
            f"choose at most {floor(1000 * n / (n + 1)) / 1000}, or train on more graphs"
        )
    return float(ascending[k - 1])


#: What a threshold may be chosen by.
THRESHOLDS = ("accuracy", "balanced_accuracy", "f1")
_MOST_CUTS, _MOST_CELLS = 1_000, 20_000_000


def best_threshold(
    outputs: Floats, codes: Array, metric: Callable[..., Floats], weights: Floats | None = None
) -> float:
    """Cut outputs (n, 1) where the metric is best; among equals, nearest to zero.

    F1 is that of the rarer class.

    Cuts lie in the middle between neighboring outputs. Of many outputs about a thousand are
    tried, at equal numbers of graphs.
    """
    values = np.unique(outputs[:, 0])
    cuts = np.append((values[1:] + values[:-1]) / 2, 0.0)
    most = max(2, min(_MOST_CUTS, _MOST_CELLS // len(outputs)))
    if len(cuts) > most:
        cuts = np.append(np.quantile(cuts, np.linspace(0, 1, most)), 0.0)
    lowered = outputs - cuts[:, None, None]
    second_is_rarer = 2 * np.count_nonzero(codes) <= len(codes)
    scores = (
        metric(codes, lowered, weights) if second_is_rarer else metric(1 - codes, -lowered, weights)
    )
    best = np.flatnonzero(scores == scores.max())
    return float(cuts[best[np.argmin(np.abs(cuts[best]))]])


@dataclass(frozen=True, eq=False)
class FittedTarget(Target):
    """One target of a fitted model, with calibration learned from out-of-fold predictions.

    All methods take the outputs (n_graphs, q) of this target alone, NaN where there are none.

    Attributes
    ----------
    slope : float or None
        How steeply probabilities follow the outputs (`fdgnn.uncertainty`).
    threshold : float or None
        The decision threshold, which was subtracted from the outputs, so that they are positive
        for the second class.
    scores : ConformalScores or None
        How far out-of-fold predictions were from the truth, in units of the difficulty.
    difficulty : (n_conditions,) or None
        Of a regression: weights of the difficulty (`fdgnn.neighbors`); None: 1 for all graphs.
    """

    slope: float | None = None
    threshold: float | None = None
    scores: ConformalScores | None = None
    difficulty: Floats | None = None

    def learned(
        self,
        outputs: Floats,
        values: Array,
        *,
        uncertainty: bool,
        threshold: Callable[..., Floats] | None = None,
        weights: Floats | None = None,
    ) -> Self:
        """Learn from out-of-fold outputs (n, q) of graphs with class codes or numbers (n,).

        With `uncertainty`, probabilities and conformal scores; with `threshold`, a metric,
        the decision threshold that is best by it.
        """
        found = self
        if self.classes is None:
            errors = np.abs(outputs[:, 0] - values)
            return replace(self, scores=ConformalScores.of([errors])) if uncertainty else self
        if uncertainty:
            slope = fit_slope(outputs, values)
            wrong = 1.0 - probabilities(outputs, slope)
            groups = [wrong[values == c, c] for c in range(wrong.shape[1])]
            found = replace(found, slope=slope, scores=ConformalScores.of(groups))
        if threshold is not None:
            cut = best_threshold(outputs, values, threshold, weights)
            found = replace(found, threshold=cut)
        return found

    def predict(self, outputs: Floats) -> Array:
        """Return the predicted classes or numbers (n_graphs,); None or NaN for outputs NaN."""
        if self.classes is None:
            return transformed_back(outputs[:, 0], self.transform)
        found = np.asarray(self.classes[winning_class(outputs)])
        missing = np.isnan(outputs)
        if np.count_nonzero(missing):
            found = found.astype(object)
            found[missing.any(axis=1)] = None
        return found

    def probabilities(self, outputs: Floats) -> Floats:
        """Return the probability of each class, (n_graphs, n_classes)."""
        assert self.slope is not None
        return probabilities(outputs + (self.threshold or 0.0), self.slope)

    def sets(
        self, outputs: Floats, coverage: float, *, by_class: bool | str = "auto"
    ) -> npt.NDArray[np.bool_]:
        """Return conformal prediction sets (n_graphs, n_classes); NaN rules out no class.

        With "auto", coverage is by class if a class has less than half of the graphs that it would
        have if all classes had equally many.
        """
        coverage, scores = check_coverage(coverage), self.known_scores("probability")
        if by_class not in (True, False, "auto"):
            raise ValueError(f"by_class={by_class!r}: expected True, False or 'auto'")
        if by_class == "auto":
            counts = np.array([len(group) for group in scores.groups])
            by_class = bool(counts.min() < 0.5 * counts.mean())
        limits = scores.limits_by_class(coverage) if by_class else scores.limit(coverage)
        return ~np.asarray(1.0 - self.probabilities(outputs) > limits)

    def intervals(self, outputs: Floats, coverage: float, difficulty: Floats) -> Floats:
        """Return conformal prediction intervals (n_graphs, 2) around the predicted numbers.

        `difficulty` (n_graphs,) is that of the graphs.
        """
        reach = difficulty * self.known_scores("intervals").limit(check_coverage(coverage))
        ends = np.stack([outputs[:, 0] - reach, outputs[:, 0] + reach], axis=-1)
        return np.sort(transformed_back(ends, self.transform), axis=-1)

    def known_scores(self, parameter: str) -> ConformalScores:
        """Return the conformal scores, or raise ValueError if `fit` learned none."""
        if self.scores is None:
            raise ValueError(
                f"the model has no conformal scores: fit it with `{parameter}=True`, which learns "
                "them from out-of-fold predictions"
            )
        return self.scores


def fitted_targets(
    targets: Targets,
    predictions: Floats | None,
    weights: Floats | None,
    *,
    uncertainty: bool,
    threshold: Callable[..., Floats] | None,
) -> list[FittedTarget]:
    """Return all targets with what they learn from out-of-fold predictions (n, q), if any.

    `weights` are (n,) or (n, q); the other parameters are those of `FittedTarget.learned`.
    """
    found = []
    for t, each in enumerate(targets.each):
        target = FittedTarget(each.name, each.classes, each.columns, transform=each.transform)
        if predictions is not None:
            known, own = targets.known[:, t], weights
            if own is not None:
                own = own[known] if own.ndim == 1 else own[known, each.columns.start]
            target = target.learned(
                predictions[known, each.columns],
                targets.values[known, t],
                uncertainty=uncertainty,
                threshold=threshold,
                weights=own,
            )
        found.append(target)
    return found


def side_by_side(columns: list[Array]) -> Array:
    """Return predictions (n_graphs,) of each target as one table (n_graphs, n_targets).

    Where they are of different types, as objects.
    """
    if len({column.dtype.kind for column in columns}) > 1:
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=1)

"""What a model's outputs mean for one target: classes, probabilities, sets, numbers, intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats
from fdgnn.readout.calibration import fit_slope, probabilities
from fdgnn.readout.conformal import ConformalScores, check_coverage
from fdgnn.readout.metrics import OF_CLASSES
from fdgnn.readout.thresholds import best_threshold
from fdgnn.targets import Target, winning_class


@dataclass(frozen=True, eq=False)
class FittedTarget(Target):
    """One target of a fitted model, and what was learned from out-of-fold predictions of it.

    All methods take the outputs (n_graphs, q) of this target alone, NaN where there are none.

    Attributes
    ----------
    slope : float or None
        How steeply probabilities follow the outputs (`fdgnn.readout.calibration`).
    threshold : float or None
        The decision threshold, which was subtracted from the outputs, so that they are positive
        for the second class.
    scores : ConformalScores or None
        How far out-of-fold predictions were from the truth.
    """

    slope: float | None = None
    threshold: float | None = None
    scores: ConformalScores | None = None

    @classmethod
    def of(cls, target: Target) -> Self:
        """Return the target before anything is learned."""
        return cls(target.name, target.classes, target.columns)

    def learned(
        self,
        outputs: Floats,
        values: Array,
        *,
        uncertainty: bool,
        threshold: str | None = None,
        weights: Floats | None = None,
    ) -> Self:
        """Learn from out-of-fold outputs (n, q) of graphs with class codes or numbers (n,).

        With `uncertainty`, probabilities and conformal scores; with `threshold`, the decision
        threshold that is best by this metric.
        """
        found = self
        if self.classes is None:
            scores = ConformalScores.of_numbers(outputs, values[:, None])
            return replace(self, scores=scores) if uncertainty else self
        if uncertainty:
            slope = fit_slope(outputs, values)
            scores = ConformalScores.of_classes(outputs, slope, values)
            found = replace(found, slope=slope, scores=scores)
        if threshold is not None:
            cut = best_threshold(outputs, values, OF_CLASSES[threshold].metric, weights)
            found = replace(found, threshold=cut)
        return found

    def predict(self, outputs: Floats) -> Array:
        """Return the predicted classes or numbers (n_graphs,); None or NaN for outputs NaN."""
        if self.classes is None:
            return outputs[:, 0]
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
        self, outputs: Floats, coverage: float, *, by_class: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Return conformal prediction sets (n_graphs, n_classes); NaN rules out no class."""
        coverage, scores = check_coverage(coverage), self.known_scores("probability")
        limits = scores.limits_by_class(coverage) if by_class else scores.limit(coverage)
        return ~np.asarray(1.0 - self.probabilities(outputs) > limits)

    def intervals(self, outputs: Floats, coverage: float) -> Floats:
        """Return conformal prediction intervals (n_graphs, 2) around the predicted numbers."""
        reach = self.known_scores("intervals").limits(check_coverage(coverage))
        return np.stack([outputs[:, 0] - reach, outputs[:, 0] + reach], axis=-1)

    def known_scores(self, parameter: str) -> ConformalScores:
        """Return the conformal scores, or raise ValueError if `fit` learned none."""
        if self.scores is None:
            raise ValueError(
                f"the model has no conformal scores: fit it with `{parameter}=True`, which learns "
                "them from out-of-fold predictions"
            )
        return self.scores


def side_by_side(columns: list[Array]) -> Array:
    """Return predictions (n_graphs,) of each target as one table (n_graphs, n_targets).

    Where they are of different types, as objects.
    """
    if len({column.dtype.kind for column in columns}) == 1:
        return np.stack(columns, axis=1)
    table: Array = np.empty((len(columns[0]), len(columns)), dtype=object)
    for t, column in enumerate(columns):
        table[:, t] = column.tolist()
    return table

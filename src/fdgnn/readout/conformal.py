r"""Sets of classes and intervals that hold the truth as often as is asked for (conformal).

Every training graph is predicted by a readout that has not seen it. A *score* says how far from
the truth that prediction was::

    classes:  1 - p(true class)          numbers:  |y - f(x)|

The limit q for a coverage c is the k-th smallest of n scores, k = ceil((n + 1) c). A new graph's
set has every answer whose score would be at most q: the classes with p >= 1 - q, or the numbers
from f(x) - q to f(x) + q. If the new graph's score is as likely as any to have each rank among the
others, the truth is in its set with a chance of c at least, and of c + 1 / (n + 1) at most.
docs/decisions/0040-trust.md says what that rests on, and what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from numbers import Real
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.readout.calibration import probabilities


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """How far held-out predictions were from the truth, by class or by output of a regression.

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

    @classmethod
    def of_classes(cls, outputs: Floats, slope: float, codes: Array) -> ConformalScores:
        """Score held-out outputs (n, q) of graphs of the classes `codes` (n,)."""
        wrong = 1.0 - probabilities(outputs, slope)
        return cls.of([wrong[codes == c, c] for c in range(wrong.shape[1])])

    @classmethod
    def of_numbers(cls, outputs: Floats, targets: Floats) -> ConformalScores:
        """Score held-out outputs (n, q) beside targets (n, q)."""
        return cls.of(list(np.abs(outputs - targets).T))

    def limit(self, coverage: float) -> float:
        """Give q for all classes together."""
        return _limit(np.sort(np.concatenate(self.groups)), coverage)

    def limits(self, coverage: float) -> Floats:
        """Give q for each output, (q,)."""
        return np.array([_limit(scores, coverage) for scores in self.groups])

    def limits_by_class(self, coverage: float) -> Floats:
        """Give q for each class by its own graphs; infinite for a class with too few of them."""
        return np.array([
            _limit(scores, coverage) if _rank(len(scores), coverage) <= len(scores) else inf
            for scores in self.groups
        ])  # fmt: skip


def check_coverage(coverage: Any) -> float:
    """Give a coverage as a number, or raise ValueError unless it is between 0 and 1."""
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
            f"`coverage`: {n} held-out graphs are too few to promise {coverage}; "
            f"ask for at most {floor(1000 * n / (n + 1)) / 1000}, or train on more graphs"
        )
    return float(ascending[k - 1])

"""The trained readout: linear neurons, by ridge regression in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from fdgnn.arrays import Features, Floats
from fdgnn.readout.ridge import Folds, fit_ridge, held_out_predictions


class LinearReadout(NamedTuple):
    """``y = W_Y x + b`` on any features, dense or sparse."""

    coef: Floats  # W_Y (q, P)
    intercept: Floats  # b (q,)

    @classmethod
    def fit(cls, X: Features, Y: Floats, alpha: float) -> Self:
        """Solve for the weights, with the Tikhonov penalty alpha on all but the intercept."""
        coef, intercept = fit_ridge(X, Y, alpha)
        return cls(np.ascontiguousarray(coef), intercept)  # one layout: sums round the same

    def outputs(self, X: Features) -> Floats:
        """Give the outputs (n, q) for features (n, P)."""
        return np.asarray(X @ self.coef.T) + self.intercept


def held_out_outputs(features: Sequence[Features], Y: Floats, alpha: float, fold: Folds) -> Floats:
    """Outputs (n, q) for each sample by readouts that have not seen its fold.

    Parameters
    ----------
    features : sequence of (n, P)
        Of each network; their outputs are averaged.
    Y : (n, q)
    alpha : float
    fold : (n,) int
    """
    alphas = np.array([alpha], dtype=np.float64)
    return np.asarray(
        np.mean([held_out_predictions(X, Y, alphas, fold)[0] for X in features], axis=0)
    )

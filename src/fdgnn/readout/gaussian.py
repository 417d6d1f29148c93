r"""The readout of distances: ridge regression on a Gaussian of the distance between features.

::

    f(x) = sum_j a_j exp(-c |x - x_j|^2) + b,        c = gamma / mean squared distance in training

For thermometer counts |x - x_j|^2 is the number of vertices, over all rounds, in which two graphs
differ. The readout keeps the features of all training graphs, so it is for up to ten thousand.

How much a feature moved the score is the gradient of f, averaged on the straight way t x from the
empty graph, 0 <= t <= 1. With A = |x|^2, B_j = x . x_j, C_j = |x_j|^2 the two integrals that it
needs have closed forms::

    I_j = int exp(-c (A t^2 - 2 B_j t + C_j)) dt,     J_j = the same with t under the integral
    mean gradient = 2 c sum_j a_j (I_j x_j - J_j x)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import ROUNDING, Features, Floats, Ints
from fdgnn.caching import cached_property
from fdgnn.readout.dual import MOST_SAMPLES, fit_dual, held_out_by_inverse
from fdgnn.readout.groups import target_groups
from fdgnn.readout.products import Columns, products_with, row_products
from fdgnn.threads import blas_threads_for

_NUMBERS = 5_000_000  # that one array of an explanation has, at most, about


@dataclass(frozen=True, eq=False)
class GaussianReadout:
    """``f(x) = sum_j a_j exp(-c |x - x_j|^2) + b``.

    What each prediction needs of the examples is computed by the first one, and kept.
    """

    examples: sp.csr_array  # x_j (n, P), features of the training graphs
    dual: Floats  # a (n, q)
    intercept: Floats  # b (q,)
    sharpness: float  # c

    @cached_property
    def _examples_squared(self) -> Floats:
        """|x_j|^2 (n,)."""
        return _squares(self.examples)

    @cached_property
    def _columns(self) -> Columns:
        """The examples by columns."""
        return Columns.of(self.examples)

    def outputs(self, X: Features) -> Floats:
        """Give the outputs (m, q) for features (m, P)."""
        A, B, C = self._moments(X)
        closeness = np.exp(-self.sharpness * np.maximum(A - 2 * B + C, 0.0))
        return np.asarray(closeness @ self.dual + self.intercept)

    def lowered(self, by: float | Floats) -> GaussianReadout:
        """Give the same readout with all outputs lower by a number, or each by its own."""
        return replace(self, intercept=self.intercept - by)

    def only(self, outputs: slice) -> GaussianReadout:
        """Give the readout of some outputs."""
        return replace(self, dual=self.dual[:, outputs], intercept=self.intercept[outputs])

    def base_outputs(self) -> Floats:
        """Give the outputs (q,) for the empty graph, whose features are zero."""
        squares = self._examples_squared
        return np.asarray(np.exp(-self.sharpness * squares) @ self.dual + self.intercept)

    def directions(self, X: Features, signs: Floats) -> Features:
        """Mean gradients (m, P) of one combination of outputs for each x: ``signs`` is (m, q).

        Of a sparse x only the entries are given at which x is not zero. No other is needed, and
        there may be hundreds of thousands.
        """
        if not sp.issparse(X):
            toward, away = self._pulls(X, signs)
            return np.asarray(2 * self.sharpness * ((self.examples.T @ toward.T).T - away * X))
        at_once = _rows_at_once(X, self.examples.shape[0])
        parts = [
            self._sparse_directions(X[i : i + at_once], signs[i : i + at_once])
            for i in range(0, X.shape[0], at_once)
        ]
        return sp.csr_array((np.concatenate(parts), X.indices, X.indptr), shape=X.shape)

    def _sparse_directions(self, X: sp.csr_array, signs: Floats) -> Floats:
        """Mean gradients at the entries of X, in their order."""
        toward, away = self._pulls(X, signs)
        columns, place = np.unique(X.indices, return_inverse=True)
        pull = np.asarray(self.examples[:, columns].T @ toward.T)  # (n_columns, m)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.asarray(2 * self.sharpness * (pull[place, row] - away[row, 0] * X.data))

    def _pulls(self, X: Features, signs: Floats) -> tuple[Floats, Floats]:
        """How strongly x is drawn to each example (m, n), and away from the empty graph (m, 1)."""
        whole, first = _integrals(*self._moments(X), self.sharpness)
        share = signs @ self.dual.T  # (m, n)
        return share * whole, (share * first).sum(axis=1, keepdims=True)

    def _moments(self, X: Features) -> tuple[Floats, Floats, Floats]:
        """A (m, 1), B (m, n) and C (n,) of the docstring above."""
        return _squares(X)[:, None], products_with(X, self._columns), self._examples_squared


def _rows_at_once(X: sp.csr_array, n_examples: int) -> int:
    """How many rows take about 40 MB: by pairs with examples, and by the columns of all rows."""
    longest = int(np.diff(X.indptr).max(initial=1))
    return max(1, min(_NUMBERS // max(n_examples, 1), int(np.sqrt(_NUMBERS / max(longest, 1)))))


def _squares(X: Features) -> Floats:
    if not sp.issparse(X):
        return np.asarray((X**2).sum(axis=1), dtype=np.float64)
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    squares = np.bincount(row, weights=X.data**2, minlength=X.shape[0])
    return np.asarray(squares, dtype=np.float64)


def _integrals(A: Floats, B: Floats, C: Floats, c: float) -> tuple[Floats, Floats]:
    """I and J of the docstring above, (m, n)."""
    from scipy.special import erf  # slow to import, and only for explanations

    safe = np.maximum(A, np.finfo(float).tiny)
    middle, root = B / safe, np.sqrt(c * safe)
    peak = np.exp(-c * np.maximum(C - B * middle, 0.0))
    whole = peak * np.sqrt(np.pi) / (2 * root) * (erf(root * (1 - middle)) + erf(root * middle))
    ends = np.exp(-c * C) - np.exp(-c * np.maximum(A - 2 * B + C, 0.0))
    return whole, ends / (2 * c * safe) + middle * whole


@dataclass(frozen=True)
class GaussianRidge:
    """How a readout of distances is trained; gamma is 1 at the mean squared distance."""

    gamma: float = 1.0
    name: ClassVar[str] = "gaussian"

    def fit(
        self, X: Features, Y: Floats, alpha: float | Floats, weights: Floats | None = None
    ) -> GaussianReadout:
        """Solve for the weights of the training graphs; targets that are NaN have none.

        `alpha` is one penalty, or one for each output, and weights are (n,) or (n, q).
        """
        dual, intercept = np.zeros(Y.shape), np.empty(Y.shape[1])
        with blas_threads_for(len(Y)):
            kernel, sharpness = self._kernel(X)
            for group in target_groups(Y, weights, alpha):
                part, targets, own = group.pairs(kernel, Y)
                solved, intercept[group.columns] = fit_dual(part, targets, group.alpha, own)
                dual[np.ix_(group.known, group.columns)] = solved
        return GaussianReadout(sp.csr_array(X), dual, intercept, sharpness)

    def held_out(
        self, X: Features, Y: Floats, alphas: Floats, folds: Ints, weights: Floats | None = None
    ) -> Floats:
        """Predict each sample without its fold, for all rows of folds: (n_rows, a, n, q).

        As in `fdgnn.readout.dual.held_out_by_inverse`; the unit of distance is that of all samples.
        """
        with blas_threads_for(len(Y)):
            return held_out_by_inverse(self._kernel(X)[0], Y, np.asarray(alphas), folds, weights)

    def _kernel(self, X: Features) -> tuple[Floats, float]:
        """Closeness of all pairs (n, n), and c."""
        if X.shape[0] > MOST_SAMPLES:
            raise ValueError(
                f"readout='gaussian': it compares all pairs of training graphs, up to "
                f"{MOST_SAMPLES:,} of them, and there are {X.shape[0]:,}; choose readout='linear'"
            )
        distance = row_products(X)
        squares = np.diag(distance).copy()
        distance *= -2.0
        distance += squares
        distance += squares[:, None]
        np.maximum(distance, 0.0, out=distance)
        mean = float(distance.mean())
        # Rows that are all alike differ by rounding, in which there is nothing to see.
        differ = mean > ROUNDING * float(squares.mean())
        sharpness = self.gamma / mean if differ else self.gamma
        distance *= -sharpness
        return np.exp(distance, out=distance), sharpness

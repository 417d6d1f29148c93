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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from fdgnn import limits
from fdgnn.arrays import Features, Floats, Ints, spread
from fdgnn.linear.path import (
    RidgePath,
    fits_in_memory,
    grid_of,
    kernel_bytes,
    solve_by_products,
)
from fdgnn.linear.products import (
    Columns,
    SymmetricMatrix,
    product_panels,
    products_with,
    symmetric,
)
from fdgnn.parameters import Number, NumberOr, check_parameters
from fdgnn.records import cached_property

_NUMBERS = 5_000_000  # that one array of an explanation has, at most, about


@dataclass(frozen=True, eq=False)
class KernelReadout:
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

    def lowered(self, by: float | Floats) -> KernelReadout:
        """Give the same readout with all outputs lower by a number, or each by its own."""
        return replace(self, intercept=self.intercept - by)

    def only(self, outputs: slice) -> KernelReadout:
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


class KernelRidge(BaseEstimator):  # type: ignore[misc]
    """RBF kernel ridge regression with an unpenalized intercept.

    The kernel is ``exp(-gamma |x - x'|^2 / m)``, where m is the mean squared distance of two
    training graphs.

    Parameters
    ----------
    alpha : "cv" or float, default="cv"
        Regularization strength; "cv" chooses it by cross-validation.
    gamma : float, default=1.0
    """

    def __init__(self, alpha: str | float = "cv", gamma: float = 1.0) -> None:
        self.alpha = alpha
        self.gamma = gamma

    def check_parameters(self) -> None:
        """Raise ValueError for the first parameter that breaks its rule."""
        check_parameters(self, {"alpha": NumberOr(0, "cv"), "gamma": Number(0)})

    def grid(self, n_graphs: int, classify: bool) -> tuple[float, ...]:
        """Return the regularization strengths to choose from."""
        return grid_of(self.alpha, n_graphs, classify)

    def solve(
        self,
        X: Features,
        Y: Floats,
        alphas: Sequence[float] | Floats,
        folds: Ints,
        weights: Floats | None = None,
    ) -> RidgePath:
        """Fit all folds and regularization strengths.

        Parameters
        ----------
        X : (n, P) array or CSR array
        Y : (n, q)
            NaN where a target is missing.
        alphas : (n_alphas,)
        folds : (n_rows, n) int
            Each row is a cross-validation; -1 marks samples outside its training set, which are
            predicted by the regression on all its folds. There may be no rows.
        weights : (n,) or (n, q), optional
            Above zero.

        Returns
        -------
        RidgePath
            Its readouts are `KernelReadout`.
        """
        if not fits_in_memory(X.shape[0]):
            raise ValueError(
                f"KernelRidge compares all pairs of training graphs; for {X.shape[0]:,} graphs "
                f"that takes {kernel_bytes(X.shape[0]):,} bytes, and "
                f"{limits.MAX_KERNEL_BYTES.in_words}; choose Ridge, or raise the limit"
            )
        return solve_by_products(_Kernel(X, self.gamma), Y, alphas, folds, weights)


class _Kernel:
    """The RBF kernel of the rows of X."""

    def __init__(self, X: Features, gamma: float) -> None:
        self._X, self._gamma = X, gamma
        mean = 2 * spread(X)  # squared distance of two rows
        self.sharpness = gamma / mean if mean else gamma  # rows that are all alike: any will do
        self._squares = _squares(X)

    def products(self, double: bool) -> SymmetricMatrix:
        """Return the kernel matrix less a constant, so that its entries are small."""
        level = np.exp(-self._gamma)
        panels = ((rows, panel - level) for rows, panel in self._panels())
        return SymmetricMatrix(len(self._squares), panels, np.float64 if double else np.float32)

    def matrix(self) -> Floats:
        """Return the kernel matrix (n, n)."""
        return symmetric(len(self._squares), self._panels())

    def readout(self, dual: Floats, intercept: Floats) -> KernelReadout:
        """Return the readout with coefficients a (n, q) and intercepts (q,)."""
        return KernelReadout(sp.csr_array(self._X), dual, intercept, self.sharpness)

    def _panels(self) -> Iterator[tuple[slice, Floats]]:
        for rows, panel in product_panels(self._X):
            panel *= -2.0
            panel += self._squares[: rows.stop]
            panel += self._squares[rows, None]
            np.maximum(panel, 0.0, out=panel)
            panel *= -self.sharpness
            yield rows, np.exp(panel, out=panel)

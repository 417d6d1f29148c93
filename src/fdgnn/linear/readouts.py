r"""Readouts: outputs of features, by weights, or by a kernel with the training graphs.

The kernel is, for up to ten thousand graphs, ::

    f(x) = sum_j a_j k(x, x_j) + b,    k(x, z) = exp(-c |x - z|^2),    c = gamma / mean |x - z|^2

For unary-encoded counts |x - x_j|^2 is the number of vertices, over all iterations, in which two
graphs differ. Features may be in several groups of columns, each with a kernel of its own; k is
then the mean of their kernels. The readout keeps the features of all training graphs.

How much a feature moved the score is the gradient of f, averaged on the straight way t x from the
empty graph, 0 <= t <= 1. With A = |x|^2, B_j = x . x_j, C_j = |x_j|^2 the two integrals that it
needs have closed forms, for each kernel::

    I_j = int exp(-c (A t^2 - 2 B_j t + C_j)) dt,     J_j = the same with t under the integral
    mean gradient = 2 c sum_j a_j (I_j x_j - J_j x)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Features, Floats
from fdgnn.linear.products import Columns, product_panels, products_with
from fdgnn.records import cached_property

_NUMBERS = 5_000_000  # that one array of an explanation has, at most, about


class LinearReadout(NamedTuple):
    """``y = W_Y x + b`` on any features, dense or sparse."""

    coef: Floats  # W_Y (q, P)
    intercept: Floats  # b (q,)

    def outputs(self, X: Features) -> Floats:
        """Compute the outputs (n, q) of features (n, P)."""
        return np.asarray(X @ self.coef.T) + self.intercept

    def base_outputs(self) -> Floats:
        """Return the outputs (q,) of the empty graph, whose features are zero."""
        return self.intercept

    def directions(self, X: Features, signs: Floats) -> Floats:
        """Return weights (m, P) of the m combinations ``signs`` (m, q) of outputs; X is unused."""
        return np.asarray(signs @ self.coef)

    def lowered(self, by: float | Floats) -> LinearReadout:
        """Return the same readout with all outputs lower by a number, or each by its own."""
        return self._replace(intercept=self.intercept - by)

    def only(self, outputs: slice) -> LinearReadout:
        """Return the readout of some outputs."""
        return LinearReadout(self.coef[outputs], self.intercept[outputs])

    def sparse(self) -> SparseReadout:
        """Return the same readout without the columns whose weights are all zero."""
        columns = np.flatnonzero(self.coef.any(axis=0)).astype(np.int32)
        values = np.ascontiguousarray(self.coef[:, columns])
        return SparseReadout(columns, values, self.intercept, self.coef.shape[1])


_SEARCHES = 20  # a table of all columns is made while one in so many of them is searched for


class SparseReadout(NamedTuple):
    """A linear readout with only the columns whose weights are not all zero.

    Hashed WL features have 2^18 columns or more, of which few occur. A model that was loaded from a
    file has such readouts; their outputs are those of the `LinearReadout`, bit by bit.
    """

    columns: npt.NDArray[np.int32]  # (m,) ascending
    values: Floats  # (q, m), the weights of these columns
    intercept: Floats  # b (q,)
    n_features: int  # P

    @property
    def coef(self) -> Floats:
        """W_Y (q, P), computed at each access."""
        coef = np.zeros((len(self.values), self.n_features))
        coef[:, self.columns] = self.values
        return coef

    def outputs(self, X: Features) -> Floats:
        """Compute the outputs (n, q) of features (n, P)."""
        if X.shape[1] != self.n_features:
            raise ValueError(f"there are {X.shape[1]} features, not {self.n_features}")
        if not sp.issparse(X):
            return np.asarray(X @ self.coef.T) + self.intercept
        if len(self.columns) == 0:
            return np.zeros((X.shape[0], len(self.intercept))) + self.intercept
        if X.nnz > self.n_features / _SEARCHES:
            return np.asarray(X @ self.coef.T) + self.intercept
        place = np.minimum(np.searchsorted(self.columns, X.indices), len(self.columns) - 1)
        known = self.columns[place] == X.indices
        parts = X.data * known, place.astype(X.indices.dtype), X.indptr
        own = sp.csr_array(parts, shape=(X.shape[0], len(self.columns)))
        return np.asarray(own @ self.values.T) + self.intercept

    def lowered(self, by: float | Floats) -> SparseReadout:
        """Return the same readout with all outputs lower by a number, or each by its own."""
        return self._replace(intercept=self.intercept - by)

    def only(self, outputs: slice) -> SparseReadout:
        """Return the readout of some outputs."""
        return self._replace(values=self.values[outputs], intercept=self.intercept[outputs])

    def base_outputs(self) -> Floats:
        """Return the outputs (q,) of the empty graph, whose features are zero."""
        return self.intercept

    def directions(self, X: Features, signs: Floats) -> Floats:
        """Return weights (m, P) of the m combinations ``signs`` (m, q) of outputs; X is unused."""
        return np.asarray(signs @ self.coef)


@dataclass(frozen=True, eq=False)
class KernelReadout:
    """``f(x) = sum_j a_j k(x, x_j) + b``, with k the mean of the kernels of some groups of columns.

    What each prediction needs of the examples is computed by the first one, and kept.
    """

    examples: sp.csr_array  # x_j (n, P), features of the training graphs
    dual: Floats  # a (n, q)
    intercept: Floats  # b (q,)
    sharpness: Floats  # c of each kernel (G,)
    starts: tuple[int, ...] = (0,)  # the first column of each kernel, ascending from 0
    shares: tuple[float, ...] = (1.0,)  # of each kernel in k, which add up to 1

    @cached_property
    def _kernels(self) -> list[_RBFKernel]:
        parts = column_groups(self.examples, self.starts)
        return [_RBFKernel(*each) for each in zip(parts, self.sharpness.tolist(), strict=True)]

    def outputs(self, X: Features) -> Floats:
        """Return the outputs (m, q) for features (m, P)."""
        return np.asarray(self.similarities(X) @ self.dual + self.intercept)

    def similarities(self, X: Features) -> Floats:
        """Return the kernel k(x, x_j) of features (m, P) with the examples, (m, n)."""
        pairs = zip(self._kernels, column_groups(X, self.starts), strict=True)
        return _mean([kernel.closeness(own) for kernel, own in pairs], self.shares)

    def training_panels(self) -> Iterator[tuple[slice, Floats]]:
        """Return panels of the kernel: rows of the examples, and their kernels with all."""
        return kernel_panels(self.examples, self.sharpness, self.starts, self.shares, whole=True)

    def lowered(self, by: float | Floats) -> KernelReadout:
        """Return the same readout with all outputs lower by a number, or each by its own."""
        return replace(self, intercept=self.intercept - by)

    def only(self, outputs: slice) -> KernelReadout:
        """Return the readout of some outputs."""
        return replace(self, dual=self.dual[:, outputs], intercept=self.intercept[outputs])

    def base_outputs(self) -> Floats:
        """Return the outputs (q,) for the empty graph, whose features are zero."""
        each = [np.exp(-kernel.sharpness * kernel.squares) for kernel in self._kernels]
        return np.asarray(_mean(each, self.shares) @ self.dual + self.intercept)

    def directions(self, X: Features, signs: Floats) -> Features:
        """Return mean gradients (m, P) of one combination of outputs per x: ``signs`` is (m, q).

        For a sparse x, only entries at which x is not zero are computed. No other is needed, and
        there may be hundreds of thousands.
        """
        weights = signs @ self.dual.T  # (m, n)
        each: list[Any] = [
            kernel.directions(own, share * weights)
            for kernel, share, own in zip(
                self._kernels, self.shares, column_groups(X, self.starts), strict=True
            )
        ]
        if len(each) == 1:
            return each[0]  # type: ignore[no-any-return]
        return sp.csr_array(sp.hstack(each, format="csr")) if sp.issparse(X) else np.hstack(each)


@dataclass(frozen=True, eq=False)
class _RBFKernel:
    """The kernel of a group of columns with the examples."""

    examples: sp.csr_array  # (n, width)
    sharpness: float

    @cached_property
    def squares(self) -> Floats:
        """|x_j|^2 (n,)."""
        return _squares(self.examples)

    @cached_property
    def _by_column(self) -> Columns:
        return Columns.of(self.examples)

    def closeness(self, X: Features) -> Floats:
        """Return the kernel (m, n) of features (m, width) with the examples."""
        A, B, C = self._moments(X)
        return np.asarray(np.exp(-self.sharpness * np.maximum(A - 2 * B + C, 0.0)))

    def directions(self, X: Features, weights: Floats) -> Features:
        """Return the mean gradients (m, width) of ``sum_j weights[x, j] k(x, x_j)`` for each x."""
        if not sp.issparse(X):
            toward, away = self._pulls(X, weights)
            return np.asarray(2 * self.sharpness * ((self.examples.T @ toward.T).T - away * X))
        at_once = _rows_at_once(X, self.examples.shape[0])
        parts = [
            self._sparse_directions(X[i : i + at_once], weights[i : i + at_once])
            for i in range(0, X.shape[0], at_once)
        ]
        return sp.csr_array((np.concatenate(parts), X.indices, X.indptr), shape=X.shape)

    def _sparse_directions(self, X: sp.csr_array, weights: Floats) -> Floats:
        """Return the mean gradients at the entries of X, in their order."""
        toward, away = self._pulls(X, weights)
        columns, place = np.unique(X.indices, return_inverse=True)
        pull = np.asarray(self.examples[:, columns].T @ toward.T)  # (n_columns, m)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        return np.asarray(2 * self.sharpness * (pull[place, row] - away[row, 0] * X.data))

    def _pulls(self, X: Features, weights: Floats) -> tuple[Floats, Floats]:
        """Compute the weights of each example (m, n) and of the empty graph (m, 1)."""
        whole, first = _integrals(*self._moments(X), self.sharpness)
        return weights * whole, (weights * first).sum(axis=1, keepdims=True)

    def _moments(self, X: Features) -> tuple[Floats, Floats, Floats]:
        """Return A (m, 1), B (m, n) and C (n,) of the docstring above."""
        return _squares(X)[:, None], products_with(X, self._by_column), self.squares


def column_groups(X: Any, starts: Sequence[int]) -> list[Any]:
    """Cut the columns into groups, of which the first ones are given."""
    if len(starts) == 1:  # without a copy
        return [X]
    return [X[:, a:b] for a, b in pairwise([*starts, X.shape[1]])]


def _mean(each: list[Floats], shares: Sequence[float]) -> Floats:
    """Return the weighted mean; the arrays are overwritten."""
    if len(each) == 1:
        return each[0]
    for one, share in zip(each, shares, strict=True):
        one *= share
    return np.asarray(sum(each[1:], each[0]))


def _rows_at_once(X: sp.csr_array, n_examples: int) -> int:
    """Return how many rows take about 40 MB."""
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


def kernel_panels(
    X: Features,
    sharpness: Floats,
    starts: Sequence[int],
    shares: Sequence[float],
    whole: bool = False,
) -> Iterator[tuple[slice, Floats]]:
    """Return panels of the kernel matrix of X: rows, and their kernels up to the last of these.

    With `whole`, they are the kernels with all rows.
    """
    groups = column_groups(X, starts)
    squares = [_squares(own) for own in groups]
    for panels in zip(*(product_panels(own, whole) for own in groups), strict=True):
        each = []
        for (rows, panel), lengths, c in zip(panels, squares, sharpness.tolist(), strict=True):
            panel *= -2.0
            panel += lengths[: panel.shape[1]]
            panel += lengths[rows, None]
            np.maximum(panel, 0.0, out=panel)
            panel *= -c
            each.append(np.exp(panel, out=panel))
        yield panels[0][0], _mean(each, shares)

"""The linear readout, by ridge regression in closed form, on dense or sparse features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Features, Floats, Ints, spread
from fdgnn.readout.conjugate import SparseRidge, Systems, fit_some
from fdgnn.readout.dual import MOST_SAMPLES, fit_dual, held_out_by_inverse
from fdgnn.readout.groups import target_groups
from fdgnn.readout.passes import NOBODY, InMemory
from fdgnn.readout.products import row_products
from fdgnn.readout.ridge import fit_ridge, held_out_predictions
from fdgnn.threads import blas_threads_for

_SOME = 1_000  # samples from which a factor in single precision is worth its correction


class LinearReadout(NamedTuple):
    """``y = W_Y x + b`` on any features, dense or sparse."""

    coef: Floats  # W_Y (q, P)
    intercept: Floats  # b (q,)

    def outputs(self, X: Features) -> Floats:
        """Give the outputs (n, q) for features (n, P)."""
        return np.asarray(X @ self.coef.T) + self.intercept

    def base_outputs(self) -> Floats:
        """Give the outputs (q,) for the empty graph, whose features are zero."""
        return self.intercept

    def directions(self, X: Features, signs: Floats) -> Floats:
        """Weights (m, P) of the m combinations ``signs`` (m, q) of outputs; the same for all x."""
        return np.asarray(signs @ self.coef)

    def lowered(self, by: float | Floats) -> LinearReadout:
        """Give the same readout with all outputs lower by a number, or each by its own."""
        return self._replace(intercept=self.intercept - by)

    def only(self, outputs: slice) -> LinearReadout:
        """Give the readout of some outputs."""
        return LinearReadout(self.coef[outputs], self.intercept[outputs])

    def sparse(self) -> SparseReadout:
        """Give the same readout without the columns whose weights are all zero."""
        columns = np.flatnonzero(self.coef.any(axis=0)).astype(np.int32)
        values = np.ascontiguousarray(self.coef[:, columns])
        return SparseReadout(columns, values, self.intercept, self.coef.shape[1])


_SEARCHES = 20  # a table of all columns is made while one in so many of them is searched for


class SparseReadout(NamedTuple):
    """A linear readout that knows only the columns whose weights are not all zero.

    Hashed colors have 2^18 columns or more, of which few occur. A model that was loaded from a
    file has such readouts; their outputs are those of the `LinearReadout`, bit by bit.
    """

    columns: npt.NDArray[np.int32]  # (m,) ascending
    values: Floats  # (q, m), the weights of these columns
    intercept: Floats  # b (q,)
    n_features: int  # P

    @property
    def coef(self) -> Floats:
        """W_Y (q, P), made anew each time."""
        coef = np.zeros((len(self.values), self.n_features))
        coef[:, self.columns] = self.values
        return coef

    def outputs(self, X: Features) -> Floats:
        """Give the outputs (n, q) for features (n, P)."""
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
        """Give the same readout with all outputs lower by a number, or each by its own."""
        return self._replace(intercept=self.intercept - by)

    def only(self, outputs: slice) -> SparseReadout:
        """Give the readout of some outputs."""
        return self._replace(values=self.values[outputs], intercept=self.intercept[outputs])

    def base_outputs(self) -> Floats:
        """Give the outputs (q,) for the empty graph, whose features are zero."""
        return self.intercept

    def directions(self, X: Features, signs: Floats) -> Floats:
        """Weights (m, P) of the m combinations ``signs`` (m, q) of outputs; the same for all x."""
        return np.asarray(signs @ self.coef)


@dataclass(frozen=True)
class LinearRidge:
    """How a linear readout is trained.

    Attributes
    ----------
    relative : bool
        Whether the penalty alpha counts in units of the features' mean squared length (of their
        distance to their mean), so that it means the same for small graphs and large ones.
    """

    relative: bool = False
    name: ClassVar[str] = "linear"

    def fit(
        self, X: Features, Y: Floats, alpha: float | Floats, weights: Floats | None = None
    ) -> LinearReadout:
        """Solve for the weights, with the Tikhonov penalty alpha on all but the intercept.

        Targets that are NaN have no say. `alpha` is one penalty, or one for each output, and
        weights are (n,) or (n, q).
        """
        groups = target_groups(Y, weights, alpha)
        with blas_threads_for(len(Y)):
            unit = self._unit(X)
            found = [_fitted(*group.part(X, Y), group.alpha * unit) for group in groups]
        if len(groups) == 1:
            coef, intercept = found[0]
        else:
            coef, intercept = np.empty((Y.shape[1], X.shape[1])), np.empty(Y.shape[1])
            for group, (own, level) in zip(groups, found, strict=True):
                coef[group.columns], intercept[group.columns] = own, level
        return LinearReadout(np.ascontiguousarray(coef), intercept)  # one layout: sums round alike

    def held_out(
        self, X: Features, Y: Floats, alphas: Floats, folds: Ints, weights: Floats | None = None
    ) -> Floats:
        """Predict each sample without its fold, for all rows of folds: (n_rows, a, n, q).

        As in `fdgnn.readout.dual.held_out_by_inverse`.
        """
        with blas_threads_for(len(Y)):
            return self._held_out(X, Y, np.asarray(alphas) * self._unit(X), folds, weights)

    def _held_out(
        self, X: Features, Y: Floats, alphas: Floats, folds: Ints, weights: Floats | None
    ) -> Floats:
        if sp.issparse(X) and len(Y) <= MOST_SAMPLES:
            return held_out_by_inverse(row_products(X), Y, alphas, folds, weights)
        one_row: Any = _held_out_sparse if sp.issparse(X) else held_out_predictions
        found = np.full((len(folds), len(alphas), *Y.shape), np.nan)
        for group in target_groups(Y, weights):
            part, targets, own = group.part(X, Y)
            rows = np.flatnonzero(group.known)
            for row, fold in enumerate(folds):
                predictions = one_row(part, targets, alphas, fold[rows], own)
                found[row][:, rows[:, None], group.columns] = predictions
        return found

    def _unit(self, X: Features) -> float:
        if not self.relative:
            return 1.0
        return spread(X) or 1.0  # where all rows are alike, any penalty gives the mean target


def _fitted(X: Features, Y: Floats, weights: Floats | None, alpha: float) -> tuple[Floats, Floats]:
    """Weights (q, P) and intercepts (q,) of targets that are all known."""
    if not sp.issparse(X) and weights is None:
        return fit_ridge(X, Y, alpha)
    if len(Y) <= min(MOST_SAMPLES, X.shape[1]):
        if sp.issparse(X) and len(Y) >= _SOME:
            dual, intercept = fit_some(X, Y, alpha, weights)
        else:
            dual, intercept = fit_dual(row_products(X), Y, alpha, weights)
        return (X.T @ dual).T, intercept
    if sp.issparse(X):
        ridge = SparseRidge(InMemory(X, Y, np.zeros(len(Y), dtype=np.int64), weights))
        systems = Systems.all_of(np.array([NOBODY]), Y.shape[1], np.array([alpha]))
        coef, intercept = ridge.fit(systems)
        return ridge.spread_out(coef), intercept
    return fit_ridge(X, Y, alpha, weights)


def _held_out_sparse(
    X: sp.csr_array, Y: Floats, alphas: Floats, fold: Ints, weights: Floats | None
) -> Floats:
    """One regression for each fold that is left out, all of them solved together."""
    folds = np.unique(fold)  # what is in no fold is predicted by the regression on all of them
    ridge = SparseRidge(InMemory(X, Y, fold, weights))
    systems = Systems.all_of(folds, Y.shape[1], alphas)
    # A column for each penalty and output, as the systems of one fold are ordered.
    each = np.tile(np.arange(len(alphas) * Y.shape[1]), len(folds))
    predictions = np.empty((len(Y), len(alphas) * Y.shape[1]))
    for lot, coef, intercept in ridge.lots(systems):
        left_out, columns = systems.left_out[lot], each[lot]
        for f in np.unique(left_out):
            rows, some = np.flatnonzero(fold == f), left_out == f
            own = X[rows][:, ridge.used] @ coef[:, some] + intercept[some]
            predictions[np.ix_(rows, columns[some])] = own
    return np.moveaxis(predictions.reshape(len(Y), len(alphas), -1), 1, 0)

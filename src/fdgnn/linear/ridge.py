"""The linear readout, by ridge regression in closed form, on dense or sparse features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from fdgnn.arrays import Features, Floats, Ints, spread
from fdgnn.linear.exact import TargetGroup, fit_dual, target_groups
from fdgnn.linear.gram import fit_ridge, held_out_predictions
from fdgnn.linear.krylov import Products, Score
from fdgnn.linear.passes import Chunks, PassSolver
from fdgnn.linear.path import RidgePath, grid_of, solve_by_products
from fdgnn.linear.products import SparseProducts, row_products
from fdgnn.parameters import NumberOr, OneOf, check_parameters
from fdgnn.threads import one_blas_thread


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

    Hashed colors have 2^18 columns or more, of which few occur. A model that was loaded from a
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


#: The grid of the paper, for features whose size the reservoir fixes.
PAPER_ALPHAS = tuple(10.0**k for k in range(-8, 4))


class Ridge(BaseEstimator):  # type: ignore[misc]
    """Ridge regression with an intercept that is not regularized.

    Parameters
    ----------
    alpha : "cv" or float, default="cv"
        Regularization strength; "cv" chooses it by cross-validation.
    normalize : bool, default=True
        Whether to scale alpha by the mean squared distance of the features from their mean, so
        that it does not depend on the size of graphs.
    """

    def __init__(self, alpha: str | float = "cv", normalize: bool = True) -> None:
        self.alpha = alpha
        self.normalize = normalize

    def check_parameters(self) -> None:
        """Raise ValueError for the first invalid parameter."""
        check_parameters(self, {"alpha": NumberOr(0, "cv"), "normalize": OneOf((False, True))})

    def grid(self, n_graphs: int, classify: bool) -> tuple[float, ...]:
        """Return the regularization strengths to choose from."""
        if self.alpha == "cv" and not self.normalize:
            return PAPER_ALPHAS
        return grid_of(self.alpha, n_graphs, classify)

    def variants(self, starts: Sequence[int]) -> list[Ridge]:
        """Return a list of this readout alone; it does not use groups of features."""
        return [self]

    def solve(
        self,
        X: Features | Chunks,
        Y: Floats,
        alphas: Sequence[float] | Floats,
        folds: Ints,
        weights: Floats | None = None,
        starts: Sequence[int] = (0,),
        score: Score | None = None,
    ) -> RidgePath:
        """Fit all folds and regularization strengths.

        Dense features are solved by their Gram matrix, sparse features by products of all pairs of
        samples, implicitly if there are many. Features in chunks are solved by passes over them.

        Parameters
        ----------
        X : (n, P) array or CSR array, or Chunks
        Y : (n, q)
            NaN where a target is missing.
        alphas : (n_alphas,)
        folds : (n_rows, n) int
            Each row is a cross-validation; -1 marks samples outside of its training set, which are
            predicted by the regression on all its folds. There may be no rows.
        weights : (n,) or (n, q), optional
            Above zero.
        starts : sequence of int
            The first column of each group of features; ignored here.
        score : callable, optional
            As in `KernelRidge.solve`; for sparse features in memory.

        Returns
        -------
        RidgePath
            Its readouts are `LinearReadout`.
        """
        each = np.asarray(alphas, dtype=np.float64)
        if isinstance(X, Chunks):
            unit = (X.spread or 1.0) if self.normalize else 1.0
            solver = PassSolver.of(X, Y, folds, weights)
            return RidgePath(
                solver.predict(each * unit),
                each,
                lambda a: LinearReadout(*solver.fit(a * unit)),
                Y.shape[1],
            )
        unit = (spread(X) or 1.0) if self.normalize else 1.0  # if all rows are alike, any will do
        if sp.issparse(X):
            path = solve_by_products(_SparseRows(X), Y, each * unit, folds, weights, score)
            return RidgePath(path.predictions, each, lambda a: path.readout(a * unit), Y.shape[1])
        rows: Any = X
        with one_blas_thread():
            predictions = _dense_predictions(rows, Y, each * unit, folds, weights)
        return RidgePath(
            predictions, each, lambda a: _dense_readout(rows, Y, a * unit, weights), Y.shape[1]
        )


class _SparseRows:
    """Rows of sparse features, whose products with each other are inner products."""

    def __init__(self, X: sp.csr_array) -> None:
        self._X = X

    def products(self, double: bool) -> Products:
        """Return the inner products of all pairs as an operator, in double precision."""
        return SparseProducts(self._X)

    def matrix(self) -> Floats:
        """Return the inner products of all pairs (n, n)."""
        return row_products(self._X)

    def readout(self, dual: Floats, intercept: Floats) -> LinearReadout:
        """Return the readout with coefficients (n, q) of the samples, and intercepts (q,)."""
        return LinearReadout(np.ascontiguousarray((self._X.T @ dual).T), intercept)


# ---------------------------------------------------------------------- dense features


def _dense_predictions(
    X: Floats, Y: Floats, alphas: Floats, folds: Ints, weights: Floats | None
) -> Floats:
    """Return out-of-fold predictions (n_rows, a, n, q) by Gram matrices."""
    found = np.full((len(folds), len(alphas), *Y.shape), np.nan)
    for group in target_groups(Y, weights):
        part, targets, own = _dense_part(group, X, Y)
        rows = np.flatnonzero(group.known)
        for row, fold in enumerate(folds):
            predictions = held_out_predictions(part, targets, alphas, fold[rows], own)
            found[row][:, rows[:, None], group.columns] = predictions
    return found


def _dense_readout(X: Floats, Y: Floats, alphas: Floats, weights: Floats | None) -> LinearReadout:
    """Return the readout with an alpha (q,) for each output."""
    coef, intercept = np.empty((Y.shape[1], X.shape[1])), np.empty(Y.shape[1])
    for group in target_groups(Y, weights, alphas):
        part, targets, own = _dense_part(group, X, Y)
        if own is not None and len(part) <= part.shape[1]:
            dual, level = fit_dual(part @ part.T, targets, group.alpha, own)
            coef[group.columns], intercept[group.columns] = dual.T @ part, level
        else:
            solved = fit_ridge(part, targets, group.alpha, own)
            coef[group.columns], intercept[group.columns] = solved
    return LinearReadout(coef, intercept)


def _dense_part(group: TargetGroup, X: Floats, Y: Floats) -> tuple[Floats, Floats, Floats | None]:
    part, targets, own = group.part(X, Y)
    return np.asarray(part), targets, own

"""`Ridge` and `KernelRidge`: all folds and regularization strengths of one training set at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from fdgnn import limits
from fdgnn.arrays import Features, Floats, Ints, spread
from fdgnn.linear.closed_form import (
    fit_exactly,
    fit_ridge,
    held_out_exactly,
    held_out_predictions,
    target_groups,
)
from fdgnn.linear.krylov import KrylovSolver, Products, Score, warn_unsolved
from fdgnn.linear.passes import Chunks, pass_solver
from fdgnn.linear.products import SparseProducts, SymmetricMatrix, row_products, symmetric
from fdgnn.linear.readouts import (
    KernelReadout,
    LinearReadout,
    column_groups,
    kernel_panels,
)
from fdgnn.parameters import Number, OneOf, Rule, check_parameters
from fdgnn.threads import one_blas_thread

#: The grid of the paper, for features whose size the reservoir fixes.
PAPER_ALPHAS = tuple(10.0**k for k in range(-8, 4))
#: Regularization strengths that are tried where they count in units of the features' own size:
#: for classes, and for real targets, which carry less noise; and on many graphs.
CLASS_ALPHAS: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
NUMBER_ALPHAS: tuple[float, ...] = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0)
LARGE_ALPHAS: tuple[float, ...] = (3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0, 30.0)
MANY = 50_000  # samples: larger alphas are tried and, out of core, only one fold is held out
_SOME_SAMPLES = 5_000  # from which alphas for targets without noise take too many steps
_LEAST_ALPHA = 1e-3  # of so many
FEW_SAMPLES = 1_000  # up to which all alphas are tried, and a few regressions are solved exactly
_FACTORS = 12  # of so many samples, which take no more time than Krylov spaces
#: Weights of the kernel of features of whole graphs to choose from.
DESCRIPTOR_WEIGHTS = (0.25, 0.5, 0.75)


@dataclass(frozen=True, eq=False)
class RidgePath:
    """Fitted ridge regressions of all folds and regularization strengths.

    Attributes
    ----------
    predictions : (n_rows, n_alphas, n, q) float64
        Out-of-fold predictions, NaN where the target is missing.
    alphas : (n_alphas,) float64
        In units of `unit`.
    """

    predictions: Floats
    alphas: Floats
    _unit: float
    _fit: Callable[[Floats], Any]

    def readout(self, alpha: float | Floats) -> Any:
        """Return the readout fitted to all samples with a known target.

        Parameters
        ----------
        alpha : float or (q,) array
            Regularization strength, or one for each output; it need not be on the path.
        """
        each = np.full(self.predictions.shape[-1], alpha, dtype=np.float64) * self._unit
        with one_blas_thread():
            return self._fit(each)


_ProductFunctions: TypeAlias = tuple[
    Callable[[bool], Products], Callable[[], Floats], Callable[[Floats, Floats], Any]
]


class _RidgeRegression(BaseEstimator):  # type: ignore[misc]
    """Base class of both kinds of ridge regression: alpha, or the grid to choose it from."""

    alpha: str | float

    def variants(self, starts: Sequence[int]) -> Sequence[_RidgeRegression]:
        """Return the readouts to choose from, for groups of features; by default, this one."""
        return [self]

    def grid(self, n_graphs: int, classify: bool) -> tuple[float, ...]:
        """Return the regularization strengths to choose from."""
        if self.alpha != "cv":
            return (float(self.alpha),)
        if n_graphs > MANY:  # small ones take too many steps
            return tuple((n_graphs / MANY) ** 0.5 * alpha for alpha in LARGE_ALPHAS[1:])
        if not fits_in_memory(n_graphs):
            return LARGE_ALPHAS
        if classify:  # labels of many graphs have so much noise that the two smallest never win
            return CLASS_ALPHAS[2 if n_graphs > FEW_SAMPLES else 0 :]
        few = n_graphs <= _SOME_SAMPLES
        return tuple(alpha for alpha in NUMBER_ALPHAS if few or alpha >= _LEAST_ALPHA)

    def solve(
        self,
        X: Any,
        Y: Floats,
        alphas: Sequence[float] | Floats,
        folds: Ints,
        weights: Floats | None = None,
        starts: Sequence[int] = (0,),
        score: Score | None = None,
    ) -> RidgePath:
        """Fit all folds and regularization strengths.

        By default, by the products of all pairs of samples. Few samples are solved exactly, and so
        is what Krylov spaces do not solve, if there is memory for two matrices; else
        there is a `ConvergenceWarning`. `Ridge` solves dense features by their Gram matrix, and
        features in chunks by passes over them.

        Parameters
        ----------
        X : (n, P) array or CSR array; for `Ridge` also Chunks
        Y : (n, q)
            NaN where a target is missing.
        alphas : (n_alphas,)
        folds : (n_rows, n) int
            Each row is a cross-validation; -1 marks samples outside of its training set, which are
            predicted by the regression on all its folds. There may be no rows.
        weights : (n,) or (n, q), optional
            Above zero.
        starts : sequence of int
            The first column of each group of features with a separate kernel; `Ridge` has none.
        score : callable, optional
            A function that returns the scores (m, n_targets) of predictions (m, n, q) in some rows
            of folds (m,). With it, alphas below a tenth of the best one are not tried on more than
            a thousand samples; their predictions are NaN. `Ridge` uses it for sparse features.

        Returns
        -------
        RidgePath
            Its readouts are `LinearReadout` or `KernelReadout`.
        """
        each, folds, n = np.asarray(alphas, dtype=np.float64), np.asarray(folds), len(Y)
        unit = self._unit(X)
        operator, matrix, readout = self._products(X, starts)
        n_regressions = sum(len(np.unique(fold)) for fold in folds) + 1
        if n <= FEW_SAMPLES and n_regressions * n**3 <= _FACTORS * FEW_SAMPLES**3:
            K = matrix()
            with one_blas_thread():
                found = held_out_exactly(K, Y, each * unit, folds, weights)
            return RidgePath(found, each, unit, lambda a: readout(*fit_exactly(K, Y, a, weights)))
        solver = KrylovSolver(operator, Y, weights)

        def exactly(unsolved: Floats) -> bool:
            """Return whether there is memory for two matrices in double precision; else warn."""
            enough = fits_in_memory(2 * n)
            if not enough:
                warn_unsolved(unsolved)
            return enough

        def fit(a: Floats) -> Any:
            dual, intercept, solved = solver.fit(a)
            if not solved.all() and exactly(a[~solved]):
                dual, intercept = fit_exactly(matrix(), Y, a, weights)
            return readout(dual, intercept)

        with one_blas_thread():
            found, left = solver.predict(each * unit, folds, score)
            if len(left) and exactly((each * unit)[left]):
                exact = held_out_exactly(matrix(), Y, (each * unit)[left], folds, weights)
                found[:, left] = np.where(np.isnan(found[:, left]), np.nan, exact)
        return RidgePath(found, each, unit, fit)

    def _unit(self, X: Any) -> float:
        """Return the unit of alpha."""
        return 1.0

    def _products(self, X: Any, starts: Sequence[int]) -> _ProductFunctions:
        """Return functions for the products of all pairs of samples.

        The first returns the products as an operator, in single or double precision; the second
        the products (n, n); the third the readout with coefficients (n, q) of the samples, and
        intercepts (q,).
        """
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class Ridge(_RidgeRegression):
    """Ridge regression with an intercept that is not regularized.

    Parameters
    ----------
    alpha : "cv" or float, default="cv"
        Regularization strength; "cv" chooses it by cross-validation.
    normalize : bool, default=True
        Whether to scale alpha by the mean squared distance of the features from their mean, so
        that it does not depend on the size of graphs.
    """

    alpha: str | float = "cv"
    normalize: bool = True

    def check_parameters(self) -> None:
        """Raise ValueError for the first invalid parameter."""
        check_parameters(self, {"alpha": Number(0, word="cv"), "normalize": OneOf((False, True))})

    def grid(self, n_graphs: int, classify: bool) -> tuple[float, ...]:
        """Return the regularization strengths to choose from."""
        if self.alpha == "cv" and not self.normalize:
            return PAPER_ALPHAS
        return super().grid(n_graphs, classify)

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
        """Fit all folds and regularization strengths, as described in the base class."""
        if sp.issparse(X):
            return super().solve(X, Y, alphas, folds, weights, starts, score)
        each, unit = np.asarray(alphas, dtype=np.float64), self._unit(X)
        if isinstance(X, Chunks):
            solver = pass_solver(X, Y, folds, weights)
            predictions = solver.predict(each * unit)
            return RidgePath(predictions, each, unit, lambda a: LinearReadout(*solver.fit(a)))
        dense = np.asarray(X)

        def fit(a: Floats) -> LinearReadout:
            coef, intercept = np.empty((Y.shape[1], X.shape[1])), np.empty(Y.shape[1])
            for group in target_groups(Y, weights, a):
                rows, targets, own = group.part(Y)
                solved = fit_ridge(dense[rows], targets, group.alpha, own)
                coef[group.columns], intercept[group.columns] = solved
            return LinearReadout(coef, intercept)

        found = np.full((len(folds), len(each), *Y.shape), np.nan)
        with one_blas_thread():
            for group in target_groups(Y, weights) if len(folds) else ():
                some, targets, own = group.part(Y)
                known = np.flatnonzero(group.known)
                for row, fold in enumerate(folds):
                    part = held_out_predictions(dense[some], targets, each * unit, fold[some], own)
                    found[row][:, known[:, None], group.columns] = part
        return RidgePath(found, each, unit, fit)

    def _unit(self, X: Features | Chunks) -> float:
        if not self.normalize:
            return 1.0
        # Where all rows are alike, any unit will do.
        return (X.spread if isinstance(X, Chunks) else spread(X)) or 1.0

    def _products(self, X: Any, starts: Sequence[int]) -> _ProductFunctions:
        def readout(dual: Floats, intercept: Floats) -> LinearReadout:
            return LinearReadout(np.ascontiguousarray((X.T @ dual).T), intercept)

        return partial(SparseProducts, X), partial(row_products, X), readout


@dataclass(eq=False, repr=False)
class KernelRidge(_RidgeRegression):
    """RBF kernel ridge regression with an intercept that is not regularized.

    The kernel is ``exp(-gamma |x - x'|^2 / m)``, where m is the mean squared distance of two
    training graphs. In a union, features of whole graphs (`MoleculeDescriptors`) have a separate
    kernel, and the kernel is the weighted mean of both.

    Parameters
    ----------
    alpha : "cv" or float, default="cv"
        Regularization strength; "cv" chooses it by cross-validation.
    gamma : float, default=1.0
    descriptor_weight : {0.25, 0.5, 0.75, "cv"}, default=0.5
        Weight of the kernel of features of whole graphs; the kernel of the other features has the
        remaining weight. "cv" chooses it by cross-validation, together with alpha.
    """

    alpha: str | float = "cv"
    gamma: float = 1.0
    descriptor_weight: str | float = 0.5

    def check_parameters(self) -> None:
        """Raise ValueError for the first invalid parameter."""
        rules: dict[str, Rule] = {"alpha": Number(0, word="cv"), "gamma": Number(0)}
        rules["descriptor_weight"] = OneOf((*DESCRIPTOR_WEIGHTS, "cv"))
        check_parameters(self, rules)

    def variants(self, starts: Sequence[int]) -> Sequence[KernelRidge]:
        """Return the readouts to choose from, for a number of kernels."""
        if self.descriptor_weight != "cv":
            return [self]
        weights = DESCRIPTOR_WEIGHTS if len(starts) > 1 else (0.5,)
        return [KernelRidge(self.alpha, self.gamma, weight) for weight in weights]

    def _products(self, X: Any, starts: Sequence[int]) -> _ProductFunctions:
        n = X.shape[0]
        if not fits_in_memory(n):
            raise ValueError(
                f"KernelRidge compares all pairs of training graphs; for {n:,} graphs "
                f"that takes {4 * n**2:,} bytes, and "
                f"{limits.MAX_KERNEL_BYTES.in_words}; choose Ridge, or raise the limit"
            )
        weight = 0.5 if isinstance(self.descriptor_weight, str) else self.descriptor_weight
        shares: tuple[float, ...] = (1.0,) if len(starts) == 1 else (1.0 - weight, weight)
        # Squared distances of two rows; where rows are all alike, any sharpness will do.
        means = [2 * spread(own) for own in column_groups(X, starts)]
        sharpness = np.array([self.gamma / mean if mean else self.gamma for mean in means])
        groups = sharpness, tuple(starts), shares

        def products(double: bool) -> SymmetricMatrix:
            level = np.exp(-self.gamma)  # taken away, so that entries are small
            panels = ((rows, panel - level) for rows, panel in kernel_panels(X, *groups))
            return SymmetricMatrix(n, panels, np.float64 if double else np.float32)

        def readout(dual: Floats, intercept: Floats) -> KernelReadout:
            return KernelReadout(sp.csr_array(X), dual, intercept, *groups)

        def matrix() -> Floats:
            return symmetric(n, kernel_panels(X, *groups))

        return products, matrix, readout


def fits_in_memory(n_graphs: int) -> bool:
    """Return whether kernel ridge regression takes so many training graphs.

    A triangle of the kernel matrix is kept, in double precision.
    """
    return not limits.MAX_KERNEL_BYTES.is_below(4 * n_graphs**2)

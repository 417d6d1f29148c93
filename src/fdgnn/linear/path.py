"""`RidgePath`: ridge regression for all folds and regularization strengths of one training set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from fdgnn import limits
from fdgnn.arrays import Floats, Ints
from fdgnn.linear.exact import fit_exactly, held_out_exactly
from fdgnn.linear.krylov import (
    KrylovSolver,
    Products,
    Score,
    path_searches,
    warn_unsolved,
)
from fdgnn.threads import one_blas_thread

#: Regularization strengths that are tried where they count in units of the features' own size:
#: for classes, and for real targets, which carry less noise; and on many graphs.
CLASS_ALPHAS: tuple[float, ...] = (1e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0)
NUMBER_ALPHAS: tuple[float, ...] = (1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 1e-1, 1.0)
LARGE_ALPHAS: tuple[float, ...] = (3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0, 30.0)
MANY = 50_000  # samples, of which one fold alone is held out, and larger alphas are tried
_SOME_SAMPLES = 5_000  # from which alphas for targets without noise take too many steps
_LEAST_ALPHA = 1e-3  # of so many
FEW_SAMPLES = 1_000  # up to which all alphas are tried, and a few regressions are solved exactly
_FACTORS = 12  # of so many samples, which take no more time than Krylov spaces


class RidgePath:
    """Fitted ridge regressions of all folds and regularization strengths.

    Attributes
    ----------
    predictions : (n_rows, n_alphas, n, q) float64
        Out-of-fold predictions, NaN where the target is missing.
    alphas : (n_alphas,) float64
    """

    def __init__(
        self, predictions: Floats, alphas: Floats, fit: Callable[[Floats], Any], n_outputs: int
    ) -> None:
        self.predictions = predictions
        self.alphas = alphas
        self._fit, self._n_outputs = fit, n_outputs

    def readout(self, alpha: float | Floats) -> Any:
        """Return the readout fitted to all samples with a known target.

        Parameters
        ----------
        alpha : float or (q,) array
            Regularization strength, or one for each output; it need not be on the path.
        """
        each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), (self._n_outputs,))
        with one_blas_thread():
            return self._fit(each)


class ProductSamples(Protocol):
    """Training samples whose readout is a combination of products with them."""

    def products(self, double: bool) -> Products:
        """Return the products of all pairs as an operator, in single or double precision."""

    def matrix(self) -> Floats:
        """Return the products of all pairs (n, n)."""

    def readout(self, dual: Floats, intercept: Floats) -> Any:
        """Return the readout with coefficients (n, q) of the samples, and intercepts (q,)."""


def solve_by_products(
    samples: ProductSamples,
    Y: Floats,
    alphas: Sequence[float] | Floats,
    folds: Ints,
    weights: Floats | None,
    score: Score | None = None,
) -> RidgePath:
    """Fit all folds and regularization strengths by the products of all pairs of samples.

    Few samples are solved exactly, and so is what Krylov spaces do not solve, if there is memory
    for two matrices; else a `ConvergenceWarning` says so.
    """
    each = np.asarray(alphas, dtype=np.float64)
    n_regressions = sum(len(np.unique(fold)) for fold in np.asarray(folds)) + 1
    few = len(Y) <= FEW_SAMPLES and n_regressions * len(Y) ** 3 <= _FACTORS * FEW_SAMPLES**3
    if few:
        solver: Any = _ExactSolver(samples, Y, weights)
    else:
        solver = _IterativeSolver(samples, Y, weights)
    with one_blas_thread():
        predictions = solver.predict(each, np.asarray(folds), score)
    return RidgePath(predictions, each, solver.fit, Y.shape[1])


class _ExactSolver:
    """One factor for each alpha."""

    def __init__(self, samples: ProductSamples, Y: Floats, weights: Floats | None) -> None:
        self._samples, self._Y, self._weights = samples, Y, weights
        self._matrix = samples.matrix()

    def predict(self, alphas: Floats, folds: Ints, score: Score | None) -> Floats:
        """Return out-of-fold predictions (n_rows, a, n, q) with all alphas."""
        return held_out_exactly(self._matrix, self._Y, alphas, folds, self._weights)

    def fit(self, alphas: Floats) -> Any:
        """Return the readout with an alpha (q,) for each output."""
        return self._samples.readout(*fit_exactly(self._matrix, self._Y, alphas, self._weights))


class _IterativeSolver:
    """Krylov spaces in single precision, in double precision where that does not suffice."""

    def __init__(self, samples: ProductSamples, Y: Floats, weights: Floats | None) -> None:
        self._samples, self._Y, self._weights = samples, Y, weights
        self._solver: KrylovSolver | None = None

    def predict(self, alphas: Floats, folds: Ints, score: Score | None) -> Floats:
        """Return out-of-fold predictions (n_rows, a, n, q)."""
        found = np.full((len(folds), len(alphas), *self._Y.shape), np.nan)
        if found.size == 0:
            return found
        order = np.argsort(-alphas, kind="stable")
        searches = path_searches(self._Y, alphas[order], folds, score)
        for solver in self._solvers():
            for search in searches:
                solver.predict(search)
            if all(search.finished for search in searches):
                break
        for search in searches:
            found[search.rows[:, None], order] = search.predictions
        left = order[np.unique(np.concatenate([each.unsolved for each in searches]).astype(int))]
        if len(left) and (exact := self._exact(alphas[left])) is not None:
            tried = ~np.isnan(found[:, left])
            found[:, left] = np.where(tried, exact.predict(alphas[left], folds, None), np.nan)
        return found

    def fit(self, alphas: Floats) -> Any:
        """Return the readout with an alpha (q,) for each output."""
        for solver in self._solvers():
            dual, intercept, solved = solver.fit(alphas)
            if solved.all():
                return self._samples.readout(dual, intercept)
        exact = self._exact(alphas[~solved])
        return self._samples.readout(dual, intercept) if exact is None else exact.fit(alphas)

    def _solvers(self) -> Iterator[KrylovSolver]:
        """Yield the solver, and the one in float64 if float32 does not suffice."""
        if self._solver is None:
            self._solver = self._krylov(double=False)
        yield self._solver
        if self._solver.products.rounding > 0:
            self._solver = None  # one matrix at a time
            self._solver = self._krylov(double=True)
            yield self._solver

    def _krylov(self, double: bool) -> KrylovSolver:
        return KrylovSolver(self._samples.products(double), self._Y, self._weights)

    def _exact(self, alphas: Floats) -> _ExactSolver | None:
        """Yield the exact solver, or warn that its memory limit is exceeded."""
        if not fits_in_memory(2 * len(self._Y)):  # two whole matrices in double precision
            warn_unsolved(alphas)
            return None
        return _ExactSolver(self._samples, self._Y, self._weights)


def grid_of(alpha: str | float, n_graphs: int, classify: bool) -> tuple[float, ...]:
    """Return the regularization strengths to choose from, where they count in units of features."""
    if alpha != "cv":
        return (float(alpha),)
    if n_graphs > MANY:  # small ones take too many steps
        return tuple((n_graphs / MANY) ** 0.5 * alpha for alpha in LARGE_ALPHAS[1:])
    if not fits_in_memory(n_graphs):
        return LARGE_ALPHAS
    if classify:  # of many, labels are not so free of noise that the two smallest would be chosen
        return CLASS_ALPHAS[2 if n_graphs > FEW_SAMPLES else 0 :]
    few = n_graphs <= _SOME_SAMPLES
    return tuple(alpha for alpha in NUMBER_ALPHAS if few or alpha >= _LEAST_ALPHA)


def kernel_bytes(n_graphs: int) -> int:
    """Return the memory of a kernel matrix in double precision, of which a triangle is kept."""
    return 4 * n_graphs**2


def fits_in_memory(n_graphs: int) -> bool:
    """Return whether kernel ridge regression takes so many training graphs."""
    return not limits.MAX_KERNEL_BYTES.is_below(kernel_bytes(n_graphs))

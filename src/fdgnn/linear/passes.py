r"""Ridge regression on features in chunks, which need not be in memory: by passes over them.

**Sparse features.** With weights w of the samples, V = diag(w)^1/2, and weighted means x and y
taken away, ``M = V (X - 1 x^T)`` and ``T = V (Y - 1 y^T)``, the coefficients of a regression are ::

    (M^T M + alpha I) c = M^T T,      M^T M d = X^T (w o (X d)) - (sum of w) x (x . d)

which is the system of `fdgnn.linear.krylov` with columns instead of samples: the Krylov space of
``M^T M`` and ``M^T T`` serves all alphas, and one pass over the chunks serves all folds and
outputs, because leaving samples out changes w alone. No basis is kept: each step moves the solution
of each alpha along a direction of its own (conjugate gradients of all shifts at once), so that the
memory does not depend on the number of steps. An alpha is done when its residual r proves that
fitted values ``M c`` are off by at most ``TOLERANCE |T|``: r moves them by at most
``|r| / (2 alpha^1/2)``, as ``r^T S^-1 (S - alpha I) S^-1 r <= |r|^2 / (4 alpha)`` for the matrix S
of the system.

**Dense features.** The moments of each fold add over chunks (`fdgnn.linear.closed_form.Moments`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import ROUNDING, Array, Floats, Ints
from fdgnn.folds import TRAIN, trained_on
from fdgnn.linear.closed_form import Moments, target_groups
from fdgnn.linear.krylov import (
    Lanczos,
    Regression,
    centered_targets,
    problems_of,
    regressions_of,
    warn_unsolved,
)
from fdgnn.records import cached_property
from fdgnn.threads import one_blas_thread

TOLERANCE = 1e-3  # of fitted values, relative to the size of the targets
MOST_STEPS = 2_000
_BYTES = 500_000_000  # of the vectors of systems that are solved together, unless memory is less
_VECTORS = 12  # of one system, in addition to two for each alpha: the process, temporary ones, sums
_ALPHAS = 8  # at most, of a grid

Result = TypeVar("Result")
Sums = tuple[Array, ...]


def least_bytes(n_columns: int) -> int:
    """Return the memory that the vectors of one system take, with sums over some columns."""
    return 8 * n_columns * (_VECTORS + 2 * _ALPHAS)


class SparseRows(NamedTuple):
    """The sparse features of the samples of a chunk."""

    indptr: Ints
    indices: npt.NDArray[np.int32]
    values: Floats  # of length 0 where all are 1; an index may occur more than once

    def matrix(self, n_columns: int, places: npt.NDArray[np.int32] | None = None) -> sp.csr_array:
        """Return the features as a matrix; with `places`, its columns are renumbered."""
        values = self.values if len(self.values) else np.ones(len(self.indices))
        columns = self.indices if places is None else places[self.indices]
        return sp.csr_array((values, columns, self.indptr), shape=(len(self.indptr) - 1, n_columns))


class Chunks(ABC):
    """Features (n, P) in chunks of samples, `SparseRows` or dense arrays.

    Functions that go over chunks get the features of a chunk, and what given arrays with a row for
    each sample have for the samples of the chunk.

    Attributes
    ----------
    shape : tuple of int
    sparse : bool
    n_bytes : int or None
        Memory for the vectors of a solver.
    """

    shape: tuple[int, int]
    sparse: bool
    n_bytes: int | None = None

    @abstractmethod
    def total(
        self, add: Callable[..., None], shapes: Sequence[tuple[int, ...]], *rows: Array
    ) -> Sums:
        """Return sums over chunks: ``add(sums, features, *rows)`` adds one to arrays of zeros."""

    @abstractmethod
    def gather(self, function: Callable[..., Result], *rows: Array) -> list[Result]:
        """Return ``function(features, *rows)`` of each chunk, in their order."""

    def progress(self, n_steps: int, n_left: int) -> None:  # noqa: B027 - most show nothing
        """Show how many steps a solver has done, and how many alphas are left."""

    @cached_property
    def column_sums(self) -> tuple[Floats, Floats]:
        """The sum (P,) of each column, and the sum of its squares."""
        sums, squares = self.total(_add_columns, [(self.shape[1],)] * 2)
        return sums, squares

    @property
    def spread(self) -> float:
        """Mean squared distance of the rows to their mean; 0 where it is nothing but rounding."""
        sums, squares = self.column_sums
        mean, length = sums / self.shape[0], float(squares.sum()) / self.shape[0]
        found = length - float(mean @ mean)
        return found if found > ROUNDING * length else 0.0


def _add_columns(sums: Sums, X: Any) -> None:
    values: Any = X.matrix(len(sums[0])).copy() if isinstance(X, SparseRows) else X
    if isinstance(X, SparseRows):
        values.sum_duplicates()
    sums[0][:] += values.sum(axis=0)
    sums[1][:] += (values**2).sum(axis=0)


@dataclass(frozen=True, eq=False)
class _PassSolver:
    """Out-of-fold predictions and readouts of samples in chunks.

    `predict` returns out-of-fold predictions (n_rows, a, n, q), NaN for samples without a fold.
    `fit` returns the coefficients (q, P) and intercepts (q,), for the alphas (q,) of outputs.
    """

    X: Chunks
    Y: Floats  # (n, q), NaN where a target is unknown
    folds: Ints  # (n_rows, n), at most one row
    weights: Floats | None  # (n,) or (n, q)


def pass_solver(
    X: Chunks, Y: Floats, folds: Ints, weights: Floats | None
) -> SparseSolver | DenseSolver:
    """Return the solver for sparse or for dense features."""
    assert len(folds) <= 1
    return (SparseSolver if X.sparse else DenseSolver)(X, Y, folds, weights)


# ---------------------------------------------------------------------- sparse features


class SparseSolver(_PassSolver):
    """Sparse features: Krylov spaces of the columns.

    Functions that go over chunks are closures without `self`, because workers get copies of them.
    """

    @cached_property
    def _used(self) -> Ints:
        """The columns that occur, the most common ones first: these lie together in the cache."""
        squares = self.X.column_sums[1]
        used = np.flatnonzero(squares)
        return used[np.argsort(-squares[used], kind="stable")]

    @cached_property
    def _places(self) -> npt.NDArray[np.int32]:
        """The number (P,) of each column among those that occur; -1 of others."""
        places = np.full(self.X.shape[1], -1, dtype=np.int32)
        places[self._used] = np.arange(len(self._used), dtype=np.int32)
        return places

    def predict(self, alphas: Floats) -> Floats:
        """Return out-of-fold predictions (n_rows, a, n, q), NaN for samples without a fold."""
        found = np.full((len(self.folds), len(alphas), *self.Y.shape), np.nan)
        left_out = [each for each in regressions_of(self.Y, self.folds) if each.row >= 0]
        for some, coef, intercept in self._solved(left_out, np.tile(alphas, (len(left_out), 1))):
            outputs_of = _left_out_outputs(self._places, coef, intercept)
            parts = self.X.gather(outputs_of, np.stack([each.test for each in some], axis=1))
            for each, outputs in zip(some, zip(*parts, strict=True), strict=True):
                found[each.row, :, each.test, each.output] = np.concatenate(outputs)
        return found

    def fit(self, alphas: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients (q, P) and intercepts (q,), for the alphas (q,) of outputs."""
        coef, level = np.zeros((self.Y.shape[1], self.X.shape[1])), np.empty(self.Y.shape[1])
        whole = regressions_of(self.Y, self.folds[:0])
        for some, own, intercept in self._solved(whole, alphas[:, None]):
            outputs = [each.output for each in some]
            coef[np.ix_(outputs, self._used)] = own[:, 0]
            level[outputs] = intercept[:, 0]
        return coef, level

    def _solved(self, regressions: Sequence[Regression], alphas: Floats) -> Any:
        """Yield some regressions, their coefficients (c, a, n_used) and intercepts (c, a)."""
        vector = 8 * max(len(self._used), 1)
        most = (self.X.n_bytes or _BYTES) // (vector * (_VECTORS + 2 * alphas.shape[1]))
        size = max(int(most), 1)
        for start in range(0, len(regressions), size):
            some = regressions[start : start + size]
            with one_blas_thread():
                yield some, *self._solve(some, alphas[start : start + size])

    def _solve(self, regressions: Sequence[Regression], alphas: Floats) -> tuple[Floats, Floats]:
        roots, targets = problems_of(regressions, self.Y, self.weights)
        total, level, centered = centered_targets(roots, targets)
        w, places, n_used = (roots**2).T, self._places, len(self._used)
        safe = np.where(total > 0, total, 1.0)

        def add_transposed(sums: Sums, X: SparseRows, U: Floats) -> None:
            sums[0][:] += X.matrix(n_used, places).T @ U

        both = np.hstack([w, (roots * centered).T])
        (sums,) = self.X.total(add_transposed, [(n_used, both.shape[1])], both)
        mean, start = sums[:, : len(w.T)] / safe, np.ascontiguousarray(sums[:, len(w.T) :].T)

        def apply(Q: Floats) -> Floats:
            D = np.ascontiguousarray(Q.T)
            (found,) = self.X.total(_add_normal(places, D), [D.shape], w)
            found -= mean * (safe * np.einsum("nc,nc->c", mean, D))
            return np.ascontiguousarray(found.T)

        goal = 2 * TOLERANCE * np.sqrt(alphas) * np.linalg.norm(centered, axis=1)[:, None]
        coef = self._shifted(apply, Lanczos(start, basis=False), alphas, goal)
        return coef, level[:, None] - np.einsum("nc,can->ca", mean, coef)

    def _shifted(
        self, apply: Callable[[Floats], Floats], lanczos: Lanczos, alphas: Floats, goal: Floats
    ) -> Floats:
        """Return the solutions (c, a, n_used) of all alphas (c, a), each along its directions."""
        shifts = lanczos.shifts(alphas)
        shape = alphas.shape[1], *lanczos.vector.shape
        found, directions = np.zeros(shape), np.zeros(shape)
        active = (lanczos.size[:, None] > goal).any(axis=0)
        for n_steps in count():
            if not active.any() or n_steps == MOST_STEPS:
                break
            self.X.progress(n_steps, int(active.sum()))
            q = lanczos.vector
            lanczos.step(apply)
            ratio, gain = shifts.add(lanczos.diagonal[-1], lanczos.off[-2])
            for a in np.flatnonzero(active):
                directions[a] *= -ratio[:, a, None]
                directions[a] += q
                found[a] += gain[:, a, None] * directions[a]
            active &= (lanczos.off[-1][:, None] * shifts.last() > goal).any(axis=0)
        if active.any():
            warn_unsolved(alphas[:, active], TOLERANCE, MOST_STEPS)
        return found.transpose(1, 0, 2)


def _add_normal(places: npt.NDArray[np.int32], D: Floats) -> Callable[..., None]:
    """Return a function that adds ``X^T (w o (X d))`` for columns d of D and w of weights."""

    def add(sums: Sums, X: SparseRows, weights: Floats) -> None:
        from fdgnn.kernels import add_normal_products

        each, w = np.arange(weights.shape[1], dtype=np.int32), np.ascontiguousarray(weights)
        add_normal_products(*X, places, w, each, D, sums[0])

    return add


def _left_out_outputs(
    places: npt.NDArray[np.int32], coef: Floats, intercept: Floats
) -> Callable[..., list[Floats]]:
    """Return a function that returns outputs (m, a) of the samples that each regression leaves out.

    Coefficients are (c, a, n_used), intercepts (c, a).
    """

    def outputs(X: SparseRows, test: Array) -> list[Floats]:
        rows = X.matrix(coef.shape[2], places)
        each = zip(test.T, coef, intercept, strict=True)
        return [rows[np.flatnonzero(own)] @ c.T + b for own, c, b in each]

    return outputs


# ---------------------------------------------------------------------- dense features


class DenseSolver(_PassSolver):
    """Dense features: their moments."""

    @cached_property
    def _moments(self) -> list[tuple[Ints, dict[int, Moments]]]:
        """The moments of each fold, for groups of outputs that weigh samples alike."""
        groups = target_groups(self.Y, self.weights)
        fold = self.folds[0] if len(self.folds) else np.full(len(self.Y), TRAIN)
        names, P = np.unique(fold[trained_on(fold)]), self.X.shape[1]
        columns = [group.columns for group in groups]
        widths = [len(own) for own in columns for _ in names]
        shapes = [shape for q in widths for shape in ((1,), (P,), (q,), (P, P), (P, q))]

        def add(sums: Sums, X: Floats, fold: Ints, Y: Floats, weights: Floats) -> None:
            each = iter(sums)
            for own, w in zip(columns, weights.T, strict=True):
                for f in names:
                    rows = np.flatnonzero((fold == f) & (w > 0))
                    for part in Moments.of(X[rows], Y[np.ix_(rows, own)], w[rows]):
                        next(each)[...] += part

        own = [g.known * (1.0 if g.weights is None else g.weights) for g in groups]
        sums = self.X.total(add, shapes, fold, np.nan_to_num(self.Y), np.stack(own, axis=1))
        parts = iter([Moments(float(s[0][0]), *s[1:]) for s in zip(*[iter(sums)] * 5, strict=True)])
        return [(group, {f: next(parts) for f in names.tolist()}) for group in columns]

    def predict(self, alphas: Floats) -> Floats:
        """Return out-of-fold predictions (n_rows, a, n, q), NaN for samples without a fold."""
        if len(self.folds) == 0:
            return np.empty((0, len(alphas), *self.Y.shape))
        readouts = {}
        for f in np.unique(self.folds[self.folds >= 0]).tolist():
            solved = [self._solve(np.full(self.Y.shape[1], alpha), f) for alpha in alphas]
            coef, intercept = (np.stack(each) for each in zip(*solved, strict=True))
            readouts[f] = coef.transpose(0, 2, 1), intercept[:, None]
        shape = len(alphas), self.Y.shape[1]

        def outputs(X: Floats, fold: Ints) -> Floats:
            found = np.full((shape[0], len(X), shape[1]), np.nan)
            for f, (coef, intercept) in readouts.items():
                rows = np.flatnonzero(fold == f)
                found[:, rows] = X[rows] @ coef + intercept
            return found

        found = np.concatenate(self.X.gather(outputs, self.folds[0]), axis=1)
        found[:, np.isnan(self.Y)] = np.nan
        return found[None]

    def fit(self, alphas: Floats) -> tuple[Floats, Floats]:
        """Return the coefficients (q, P) and intercepts (q,), for the alphas (q,) of outputs."""
        return self._solve(alphas, None)

    def _solve(self, alphas: Floats, left_out: int | None) -> tuple[Floats, Floats]:
        coef, intercept = np.zeros((len(alphas), self.X.shape[1])), np.zeros(len(alphas))
        for columns, of_folds in self._moments:
            own = [moments for f, moments in of_folds.items() if f != left_out]
            if not sum(moments.n for moments in own):
                continue  # without samples to train on, all is 0
            total = Moments(*(sum(column) for column in zip(*own, strict=True)))
            for alpha in np.unique(alphas[columns]).tolist():
                some = alphas[columns] == alpha
                solved = total.solve(alpha)
                coef[columns[some]], intercept[columns[some]] = (each[some] for each in solved)
        return coef, intercept

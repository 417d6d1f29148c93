r"""Ridge regression on sparse samples, by conjugate gradients.

`SparseRidge` makes no n x n or P x P matrix, and goes over the samples in parts only
(`fdgnn.linear.blocks`), so that they need not be in memory. With weights w of the samples, the
root V of diag(w), and weighted means x and y taken away, ``M = V (X - 1 x^T)`` and
``T = V (Y - 1 y^T)``, it solves::

    (M^T M + alpha I) c = M^T T,      M^T M d = X^T (w o (X d)) - (sum of w) x (x . d)

Unknowns are all triples of a fold that is left out, a penalty and an output, side by side, so that
one pass over the samples serves all of them: leaving samples out only changes w. An unknown is done
when its residual r is small enough to prove that its fitted values M c are off by at most
``tol |T|``: r moves them by at most |r| / (2 sqrt(alpha)), as
``r^T S^-1 (S - alpha I) S^-1 r <= |r|^2 / (4 alpha)`` for the matrix S of the system.

Steps are few because of the preconditioner (`fdgnn.linear.preconditioner`), which is made once of
some samples and serves all systems.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, Ints, blocks
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.linear.blocks import Passes, SamplePart, Totals
from fdgnn.linear.preconditioner import RowPreconditioner, bytes_of, draw_rows, rows_within
from fdgnn.records import cached_property
from fdgnn.threads import one_blas_thread

TOLERANCE = 1e-3  # of fitted values, beside the size of the targets, for many samples
MOST_STEPS = 2_000
# Numbers of one matrix of unknowns: 64 MB. More unknowns are solved one lot after another.
MOST_NUMBERS = 2**23
_FEWEST_ROWS = 2_000  # of the preconditioner, however little memory there is
_MATRICES = 16  # such matrices that are there at a time, with temporary ones and sums of strips

Places = npt.NDArray[np.int32]


class Systems(NamedTuple):
    """Which regressions are solved: the fold that each leaves out, its output and its penalty."""

    left_out: Ints  # (k,)
    output: Ints  # (k,)
    alpha: Floats  # (k,)

    @classmethod
    def all_of(cls, left_out: Ints, n_outputs: int, alphas: Floats) -> Systems:
        """Take all triples; as an array of unknowns (folds, alphas, outputs), flat."""
        shape = len(left_out), len(alphas), n_outputs
        f, a, q = (axis.ravel() for axis in np.indices(shape))
        return cls(left_out[f], q, alphas[a])

    def some(self, which: slice) -> Systems:
        """Take some of the systems."""
        return Systems(self.left_out[which], self.output[which], self.alpha[which])

    @property
    def problems(self) -> tuple[Ints, Ints, Ints]:
        """Left-out fold and output of each different pair of them, and the pair of each system."""
        pairs, number = np.unique(
            np.stack([self.left_out, self.output]), axis=1, return_inverse=True
        )
        return pairs[0], pairs[1], number.ravel()


# ---------------------------------------------------------------------- what a pass adds up


@dataclass(frozen=True)
class _ColumnSums:
    """Samples that train, and of each column of theirs the sum and the sum of squares."""

    n_columns: int

    def begin(self) -> Totals:
        return np.zeros(1), np.zeros(self.n_columns), np.zeros(self.n_columns)

    def add(self, totals: Totals, part: SamplePart) -> None:
        known = (part.fold >= 0).astype(np.float64)
        X = part.rows(self.n_columns)
        totals[0][:] += known.sum()
        totals[1][:] += X.T @ known
        X = X.copy()
        X.sum_duplicates()  # a count may be written as so many ones
        X.data **= 2
        totals[2][:] += X.T @ known


@dataclass(frozen=True)
class _TargetSums:
    """Sums of each problem (a fold left out, an output): of w, w y, w y^2, w x and w y x."""

    left_out: Ints
    output: Ints
    places: Places
    n_used: int

    def begin(self) -> Totals:
        p = len(self.output)
        return np.zeros((3, p)), np.zeros((self.n_used, p)), np.zeros((self.n_used, p))

    def add(self, totals: Totals, part: SamplePart) -> None:
        w = part.trains(self.left_out, self.output)
        Y = np.nan_to_num(part.Y)[:, self.output]
        columns = part.rows(self.n_used, self.places).T
        totals[0][:] += w.sum(axis=0), (w * Y).sum(axis=0), (w * Y**2).sum(axis=0)
        totals[1][:] += columns @ w
        totals[2][:] += columns @ (w * Y)


@dataclass(frozen=True)
class _NormalProducts:
    """``X^T (w o (X D))``: a pair of a left-out fold and an output for each column of D."""

    D: Floats  # (n_used, k)
    left_out: Ints
    output: Ints
    places: Places

    def begin(self) -> Totals:
        return (np.zeros(self.D.shape),)

    def add(self, totals: Totals, part: SamplePart) -> None:
        from fdgnn.kernels import add_normal_products

        pairs = np.stack([self.left_out, self.output])
        each, group = np.unique(pairs, axis=1, return_inverse=True)
        w = np.ascontiguousarray(part.trains(each[0], each[1]))
        rows = part.indptr, part.indices, part.values, self.places
        add_normal_products(*rows, w, group.ravel().astype(np.int32), self.D, totals[0])


# ---------------------------------------------------------------------- many samples


def least_bytes(n_columns: int) -> int:
    """Memory that `SparseRidge` needs at least, beside that of the passes."""
    return 2 * max(n_columns * 8 * _MATRICES, bytes_of(_FEWEST_ROWS))


class SparseRidge:
    """Ridge regression on samples in parts, for all systems at once.

    Parameters
    ----------
    passes : Passes
    tell : callable, optional
        Called before each step with the number of steps done and of systems that are not solved.
    n_bytes : int, optional
        Memory to keep to, beside that of the passes; `least_bytes` or more.
    """

    def __init__(
        self,
        passes: Passes,
        tell: Callable[[int, int], None] = lambda steps, left: None,
        n_bytes: int | None = None,
    ) -> None:
        self.passes, self._tell = passes, tell
        half = None if n_bytes is None else n_bytes // 2  # for unknowns, and the preconditioner
        most = MOST_NUMBERS if half is None else half // (8 * _MATRICES)
        self._most_numbers = min(most, MOST_NUMBERS)
        self._most_rows = rows_within(half)
        (n,), sums, squares = passes.total(_ColumnSums(passes.n_columns))
        self.n, self.squares = float(n), float(squares.sum())
        self.used = np.flatnonzero(squares)  # others weigh nothing
        order = np.argsort(-squares[self.used], kind="stable")  # common ones lie together in cache
        self.used = self.used[order]
        self.mean = sums[self.used] / max(self.n, 1.0)
        self.places = np.full(passes.n_columns, -1, dtype=np.int32)
        self.places[self.used] = np.arange(len(self.used), dtype=np.int32)

    @property
    def spread(self) -> float:
        """Mean squared distance of the samples to their mean; 0 where it is only rounding."""
        length = self.squares / self.n
        found = length - float(self.mean @ self.mean)
        return found if found > 1e-12 * length else 0.0

    def fit(self, systems: Systems, start: Floats | None = None) -> tuple[Floats, Floats]:
        """Give the weights (n_used, k) of the columns `used`, and intercepts (k,).

        `start` (n_used, k) are weights that may be near.
        """
        coef, intercept = (
            np.empty((len(self.used), len(systems.alpha))),
            np.empty(systems.alpha.shape),
        )
        for own, *found in self.lots(systems, start):
            coef[:, own], intercept[own] = found
        return coef, intercept

    def lots(
        self, systems: Systems, start: Floats | None = None
    ) -> Iterator[tuple[slice, Floats, Floats]]:
        """Give what `fit` gives for some systems after another, and which ones these are."""
        lot = max(self._most_numbers // max(len(self.used), 1), 1)
        for own in blocks(len(systems.alpha), lot):
            near = None if start is None else np.ascontiguousarray(start[:, own])
            with one_blas_thread():
                found = self._solved(systems.some(own), near)
            yield own, *found

    def _solved(self, systems: Systems, start: Floats | None) -> tuple[Floats, Floats]:
        left_out, output, problem = systems.problems
        (w, y, yy), x, xy = self.passes.total(
            _TargetSums(left_out, output, self.places, len(self.used))
        )
        trained = np.where(w > 0, w, 1.0)  # where all samples are left out, all is 0
        level, mean = y / trained, x / trained
        right = np.take(xy - level * x, problem, axis=1)  # M^T T
        del x, xy
        size = np.sqrt(np.maximum(yy - w * level**2, 0.0))[problem]  # |T|
        goal = 2 * TOLERANCE * np.sqrt(systems.alpha) * size
        weight = trained[problem]

        def product(D: Floats, which: Ints) -> Floats:
            own, alpha = problem[which], systems.alpha[which]
            (found,) = self.passes.total(
                _NormalProducts(D, systems.left_out[which], systems.output[which], self.places)
            )
            along = weight[which] * _column_products(mean, own, D)
            for rows in blocks(len(D)):
                found[rows] -= mean[rows][:, own] * along
                found[rows] += alpha * D[rows]
            return np.asarray(found)

        precondition = self._preconditioner.solver(weight / self.n)
        C, ready = _solve(product, precondition, right, goal, MOST_STEPS, self._tell, start)
        if not ready:
            warnings.warn(
                f"the readout was not solved to {TOLERANCE:g} in {MOST_STEPS} steps; "
                "a larger alpha helps",
                ConvergenceWarning,
                stacklevel=4,
            )
        return C, level[problem] - _column_products(mean, problem, C)

    @cached_property
    def _preconditioner(self) -> RowPreconditioner:
        rows = draw_rows(self.passes, self.n, self._most_rows)
        return RowPreconditioner(rows, self.used, self.mean, self.n)

    def spread_out(self, coef: Floats) -> Floats:
        """Give weights (n_used, k) of the used columns as weights (k, P) of all."""
        found = np.zeros((coef.shape[1], self.passes.n_columns))
        found[:, self.used] = coef.T
        return found


def _solve(
    product: Callable[[Floats, Ints], Floats],
    precondition: Callable[[Floats, Ints], Floats],
    right: Floats,
    goal: Floats,
    most_steps: int,
    tell: Callable[[int, int], None] = lambda steps, left: None,
    start: Floats | None = None,
) -> tuple[Floats, bool]:
    """Conjugate gradients on all columns at once; a column that is at its goal is put aside.

    Both functions get some columns and which ones they are. `right` is written over: these
    matrices are large, so what can be done in place is. Gives the solution, and whether all
    columns came to their goals.
    """
    solution = np.zeros(right.shape)
    which = np.arange(right.shape[1])
    C, R = np.zeros(right.shape), right
    if start is not None:
        C, R = start.copy(), right - product(start, which)
    D = precondition(R, which)
    size = np.einsum("ij,ij->j", R, D)
    for n_steps in range(most_steps):
        ready = np.sqrt(np.einsum("ij,ij->j", R, R)) <= goal[which]
        if ready.any():
            solution[:, which[ready]] = C[:, ready]
            C = np.compress(~ready, C, axis=1)
            R = np.compress(~ready, R, axis=1)
            D = np.compress(~ready, D, axis=1)
            which, size = which[~ready], size[~ready]
            if len(which) == 0:
                return solution, True
        tell(n_steps, len(which))
        product_D = product(D, which)
        step = size / np.einsum("ij,ij->j", D, product_D)
        product_D *= step
        R -= product_D
        C += np.multiply(step, D, out=product_D)
        del product_D
        S = precondition(R, which)
        before, size = size, np.einsum("ij,ij->j", R, S)
        D *= size / before
        D += S
        del S
    solution[:, which] = C
    return solution, False


def _column_products(A: Floats, which: Ints, B: Floats) -> Floats:
    """Products of the columns of B, each with a column of A that is named."""
    return sum(
        (np.einsum("ij,ij->j", A[rows][:, which], B[rows]) for rows in blocks(len(B))),
        np.zeros(len(which)),
    )

r"""Ridge regression for all folds and all regularization strengths, by the Lanczos process.

For a symmetric positive semidefinite matrix K of products of the samples' features, sample weights
W = diag(w) with w = 0 for samples that a fold leaves out, V = W^1/2 and an unpenalized intercept::

    minimize  sum_i w_i |y_i - f(x_i)|^2 + alpha ||f||^2,      f(x) = sum_j K(x, x_j) a_j + b

is solved by a = V z, where v are the diagonal entries of V, P = I - v v^T / (v^T v), and ::

    (A + alpha I) z = P V y,       A = P V K V P,       b = sum_i w_i (y_i - (K V z)_i) / sum_i w_i

**One space for all alphas.** The Krylov space of A and P V y does not depend on alpha. With its
orthonormal basis Q and the tridiagonal matrix T = Q^T A Q, the Galerkin solution is
``z = Q (T + alpha I)^-1 e_1 |P V y|`` for each alpha.

**All folds side by side.** A fold, a row of folds and an output change v and y alone, so that one
product of K with a matrix serves all of them. The rows of K V Q that a fold leaves out are what its
out-of-fold predictions need; the regression on all samples is one more system, whose basis is kept.

**Stopping.** The residual r = P V y - (A + alpha I) z is known from T. It bounds what predictions
are off by, because ``|A (A + alpha I)^-1| <= 1`` and
``|K^1/2 V P (A + alpha I)^-1| <= 1 / (2 alpha^1/2)``:

* at the training samples, the weighted root mean square of the errors (about their mean) is at most
  ``|r| / (sum of w)^1/2``;
* at any sample x, the error is at most ``|r| d(x) / (2 alpha^1/2)``, where d(x) is the distance of
  the features of x to the weighted mean of the training samples' features.

A system is done when |r| is at most a tolerance times |P V y|, so that the root mean square error
of a fitted value is that share of the targets' deviation. The second bound holds in the worst case;
on NCI1 it is a hundred times the largest error of an out-of-fold prediction and more, while the
first one is the root mean square of their errors within a third.

**Rounding.** Each new vector is made orthogonal to the whole basis, so that few steps are needed
(without that, twice as many) and T is right to the square of the basis's precision. The basis is
kept in single precision. K may be in single precision if its rounding E is small enough, since
|E z| enters the residual; `Products.rounding` is an estimate of |E z| / |z|. Where it is too large,
the systems are solved again with products in double precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, Ints
from fdgnn.exceptions import ConvergenceWarning

#: |r| beside |P V y|, for out-of-fold predictions, by which alpha is chosen, and for readouts.
PREDICTION_TOLERANCE = 1e-3
READOUT_TOLERANCE = 1e-4
MOST_STEPS = 1_000
_BLOCK = 32  # basis vectors that lie in one array
_NUMBERS = 150_000  # of the vectors of one step, about: beyond, systems are solved in turns

Mask = npt.NDArray[np.bool_]


class Products(Protocol):
    """A symmetric positive semidefinite matrix K (n, n), up to constants added to its rows.

    Systems only see vectors U with the sum 0, and do not see constants in K U.
    """

    n: int
    rounding: float  # estimate of |E z| / |z|, for the rounding E of K; 0 in double precision

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""


class Problems(NamedTuple):
    """Regressions that are solved side by side.

    Attributes
    ----------
    roots : (c, n) float64
        Square roots of the weights, 0 for samples that train nothing.
    targets : (c, n) float64
        Any number where the root is 0.
    """

    roots: Floats
    targets: Floats


class _Shifts:
    """Factors of T + alpha I, T (k, k) growing with the steps, for c systems and a alphas."""

    def __init__(self, alphas: Floats, size: Floats) -> None:
        self.alphas = alphas  # (c, a)
        self._pivots: list[Floats] = []
        self._right: list[Floats] = []
        self._off: list[Floats] = []
        self._size = size

    def add(self, diagonal: Floats, off: Floats) -> None:
        """Add a row of T: its diagonal entry (c,), and the entry before it (c,)."""
        if not self._pivots:
            self._pivots.append(diagonal[:, None] + self.alphas)
            self._right.append(np.repeat(self._size[:, None], self.alphas.shape[1], axis=1))
        else:
            ratio = off[:, None] / self._pivots[-1]
            self._pivots.append(diagonal[:, None] + self.alphas - off[:, None] * ratio)
            self._right.append(-ratio * self._right[-1])
        self._off.append(off)

    def last(self) -> Floats:
        """Return the last entry (c, a) of (T + alpha I)^-1 e_1 |P V y|, as an absolute value."""
        found = np.abs(self._right[-1] / self._pivots[-1])
        return np.asarray(np.where(self._pivots[-1] > 0, found, np.inf))

    def solution(self) -> Floats:
        """Return (T + alpha I)^-1 e_1 |P V y| as an array (k, c, a)."""
        found = np.empty((len(self._pivots), *self.alphas.shape))
        found[-1] = self._right[-1] / self._pivots[-1]
        for j in range(len(found) - 2, -1, -1):
            found[j] = (self._right[j] - self._off[j + 1][:, None] * found[j + 1]) / self._pivots[j]
        return found


class Lanczos:
    """The Krylov spaces of some systems, one step after the other.

    Parameters
    ----------
    products : Products
    problems : Problems
    wanted : (m,) int, optional
        Flat places in (c, n) at which K V Q is kept.
    n_kept : int
        The first systems, whose solutions are wanted: their bases are kept in double precision.
    """

    def __init__(
        self, products: Products, problems: Problems, n_kept: int, wanted: Ints | None = None
    ) -> None:
        self.products, self.wanted = products, wanted
        self._n_kept, self._kept = n_kept, list[Floats]()  # (n_kept, n) each
        self.roots = problems.roots
        weights = self.roots**2
        self.total = weights.sum(axis=1)
        safe = np.where(self.total > 0, self.total, 1.0)
        self.level = np.einsum("cn,cn->c", weights, problems.targets) / safe
        start = self.roots * (problems.targets - self.level[:, None])
        self.size = np.sqrt(np.einsum("cn,cn->c", start, start))
        length = np.sqrt(np.einsum("cn,cn->c", weights, problems.targets**2))
        self.size[self.size <= 1e-13 * length] = 0.0  # constant targets: nothing but rounding
        self._safe = safe
        self._vector = start / np.where(self.size > 0, self.size, np.inf)[:, None]
        self._before = np.zeros_like(start)
        self._basis: list[npt.NDArray[np.float32]] = []  # of (c, _BLOCK, n)
        self.diagonal: list[Floats] = []  # (c,) each
        self.off: list[Floats] = [np.zeros(len(self.total))]
        self.levels: list[Floats] = []  # weighted means of K V q
        self.outputs: list[Floats] = []  # K V q at the wanted places

    @property
    def n_steps(self) -> int:
        """The dimension of the spaces."""
        return len(self.diagonal)

    def step(self) -> None:
        """Add one vector to each basis."""
        q, k = self._vector, self.n_steps
        if k % _BLOCK == 0:
            self._basis.append(np.zeros((len(q), _BLOCK, q.shape[1]), dtype=np.float32))
        self._basis[-1][:, k % _BLOCK] = q
        self._kept.append(q[: self._n_kept])
        product = self.products.times(self.roots * q)
        if self.wanted is not None:
            self.outputs.append(product.reshape(-1)[self.wanted])
        product *= self.roots
        level = np.einsum("cn,cn->c", self.roots, product) / self._safe
        product -= self.roots * level[:, None]
        diagonal = np.einsum("cn,cn->c", product, q)
        product -= diagonal[:, None] * q
        product -= self.off[-1][:, None] * self._before
        single = product.astype(np.float32)[:, :, None]
        for block in self._basis:
            own = block[:, : k % _BLOCK + 1] if block is self._basis[-1] else block
            product -= (own.transpose(0, 2, 1) @ (own @ single))[:, :, 0]
        off = np.sqrt(np.einsum("cn,cn->c", product, product))
        off[off <= 1e-12 * np.abs(diagonal)] = 0.0  # the space is invariant: the solution is exact
        self.levels.append(level)
        self.diagonal.append(diagonal)
        self.off.append(off)
        self._before = q
        self._vector = product / np.where(off > 0, off, np.inf)[:, None]

    def shifts(self, alphas: Floats) -> _Shifts:
        """Return the factors of T + alpha I for alphas (c, a)."""
        found = _Shifts(alphas, self.size)
        for diagonal, off in zip(self.diagonal, self.off, strict=False):
            found.add(diagonal, off)
        return found

    def run(self, alphas: Floats, tolerance: float, most_steps: int) -> tuple[Floats, Mask]:
        """Go on until all alphas (c, a) are solved, or for so many steps at most.

        Returns the coefficients (k, c, a) in the basis, and which systems are solved (c, a).
        """
        shifts = self.shifts(alphas)
        goal = tolerance * self.size[:, None]
        steps = min(most_steps, self.roots.shape[1])
        while self.n_steps == 0 or (
            self.n_steps < steps and not (self.off[-1][:, None] * shifts.last() <= goal).all()
        ):
            self.step()
            shifts.add(self.diagonal[-1], self.off[-2])
        found = shifts.solution()
        residual = self.off[-1][:, None] * shifts.last()
        length = np.sqrt((found**2).sum(axis=0))
        return found, (residual <= goal) & (self.products.rounding * length <= goal)

    def predictions(self, coefficients: Floats) -> Floats:
        """Return predictions (m, a) at the wanted places, for coefficients (k, c, a)."""
        assert self.wanted is not None
        column = self.wanted // self.roots.shape[1]
        found = np.empty((len(column), coefficients.shape[2]))
        outputs, levels = np.array(self.outputs), np.array(self.levels)
        for c in np.unique(column):
            own = column == c
            found[own] = (outputs[:, own] - levels[:, c, None]).T @ coefficients[:, c]
            found[own] += self.level[c]
        return found

    def solution(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return a = V z (c, n) and weighted means of f - b (c,), for coefficients (k, c)."""
        z = np.zeros(self.roots.shape)
        for own, q in zip(coefficients, self._kept, strict=True):
            z += own[:, None] * q
        return self.roots * z, np.einsum("kc,kc->c", np.array(self.levels), coefficients)

    def keep_first(self) -> None:
        """Forget all systems but the first, whose bases are kept, and all outputs."""
        own = slice(self._n_kept)
        self.wanted, self.outputs = None, []
        self.roots, self.total, self.level = (
            self.roots[own].copy(),
            self.total[own],
            self.level[own],
        )
        self.size, self._safe = self.size[own], self._safe[own]
        self._vector, self._before = self._vector[own].copy(), self._before[own].copy()
        self._basis = [block[own].copy() for block in self._basis]
        self.diagonal = [each[own] for each in self.diagonal]
        self.off = [each[own] for each in self.off]
        self.levels = [each[own] for each in self.levels]


# ---------------------------------------------------------------------- cross-validation


@dataclass(frozen=True)
class _Fold:
    """A regression of a cross-validation, and where its predictions are wanted."""

    row: int  # -1: the regression on all samples
    output: int
    train: Mask  # (n,)
    test: Mask  # (n,)


def _regressions(Y: Floats, folds: Ints) -> list[_Fold]:
    """List the regressions on all samples, one for each output, and those of all folds."""
    known = ~np.isnan(Y)
    outputs = range(Y.shape[1])
    nothing = np.zeros(len(Y), dtype=bool)
    found = [_Fold(-1, q, known[:, q], nothing) for q in outputs]
    for row, fold in enumerate(folds):
        inside = fold >= 0
        for f in np.unique(fold):
            test = fold == f
            train = inside if f < 0 else inside & ~test
            found += [_Fold(row, q, train & known[:, q], test & known[:, q]) for q in outputs]
    return found


def _problems(regressions: Sequence[_Fold], Y: Floats, weights: Floats | None) -> Problems:
    roots = np.array([each.train for each in regressions], dtype=np.float64)
    if weights is not None:
        root = np.sqrt(weights)
        for system, each in zip(roots, regressions, strict=True):
            system *= root if root.ndim == 1 else root[:, each.output]
    targets = np.nan_to_num(Y.T)[[each.output for each in regressions]]
    return Problems(roots, targets)


class KrylovSolver:
    """Out-of-fold predictions and readouts of one training set.

    Parameters
    ----------
    products : Products
    Y : (n, q)
        NaN where a target is unknown.
    weights : (n,) or (n, q), optional
    """

    def __init__(self, products: Products, Y: Floats, weights: Floats | None) -> None:
        self.products, self.Y, self.weights = products, Y, weights
        self._whole: Lanczos | None = None

    def predict(self, alphas: Floats, folds: Ints) -> tuple[Floats, Mask]:
        """Return out-of-fold predictions (n_rows, a, n, q), and which alphas (a,) are solved."""
        n, q = self.Y.shape
        found = np.full((len(folds), len(alphas), n, q), np.nan)
        solved = np.ones(len(alphas), dtype=bool)
        regressions = _regressions(self.Y, folds)
        size = max(_NUMBERS // n, 8)
        for start in range(0, len(regressions), size):
            some = regressions[start : start + size]
            wanted = np.flatnonzero(np.array([each.test for each in some]))
            n_kept = q if start == 0 and self._whole is None and size >= q else 0
            problems = _problems(some, self.Y, self.weights)
            lanczos = Lanczos(self.products, problems, n_kept, wanted)
            each_alpha = np.broadcast_to(alphas, (len(some), len(alphas)))
            coefficients, own = lanczos.run(each_alpha, PREDICTION_TOLERANCE, MOST_STEPS)
            solved &= own.all(axis=0)
            predictions = lanczos.predictions(coefficients)
            column, sample = np.divmod(wanted, n)
            rows = np.array([each.row for each in some])[column]
            outputs = np.array([each.output for each in some])[column]
            found[rows, :, sample, outputs] = predictions
            if n_kept:
                lanczos.keep_first()
                self._whole = lanczos
        return found, solved

    def fit(self, alphas: Floats) -> tuple[Floats, Floats, Mask]:
        """Return a (n, q), b (q,) and which outputs are solved, for the alphas (q,) of outputs."""
        if self._whole is None:
            everything = _regressions(self.Y, np.empty((0, len(self.Y)), dtype=np.int64))
            problems = _problems(everything, self.Y, self.weights)
            self._whole = Lanczos(self.products, problems, len(everything))
        coefficients, solved = self._whole.run(alphas[:, None], READOUT_TOLERANCE, MOST_STEPS)
        dual, mean = self._whole.solution(coefficients[:, :, 0])
        return dual.T, self._whole.level - mean, solved[:, 0]


def warn_unsolved(alphas: Floats) -> None:
    """Warn that regressions with these alphas are not solved to the tolerance."""
    warnings.warn(
        f"ridge regression with alpha={np.min(alphas):g} was not solved to a relative tolerance of "
        f"{PREDICTION_TOLERANCE:g} in {MOST_STEPS} steps; choose a larger alpha",
        ConvergenceWarning,
        stacklevel=4,
    )

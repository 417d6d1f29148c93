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

**Order.** Where alpha is chosen by a score, alphas are solved from the largest to the smallest, and
a row of folds ends a decade below its best one (`PathSearch`). What is compared is solved to a
larger tolerance than the predictions with the alpha that is chosen.

**Rounding.** Each new vector is made orthogonal to the whole basis, so that few steps are needed
and T is right to the square of the basis's precision. The basis is kept in single precision; where
a single row of folds has very many systems there is none, and twice as many steps. K may be in
single precision if its rounding E is small enough, since |E z| enters the residual;
`Products.rounding` is an estimate of |E z| / |z|. Where it is too large, the systems are solved
again with products in double precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, Ints
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.folds import TRAIN, trained_on

#: |r| relative to |P V y|, for out-of-fold predictions, for those of alphas that may not be chosen,
#: and for readouts.
PREDICTION_TOLERANCE = 1e-3
SEARCH_TOLERANCE = 1e-2
READOUT_TOLERANCE = 1e-4
MOST_STEPS = 1_000
_BLOCK = 32  # basis vectors that lie in one array
_NUMBERS = 150_000  # of the vectors of one step, about: beyond, systems are solved in turns
_DECADE = 10 * (1 - 1e-9)  # from the best alpha to the last one that is tried

Mask = npt.NDArray[np.bool_]
Score = Callable[[Ints, Floats], Floats]  # of predictions (m, n, q) in rows (m,): (m, n_targets)


class Products(Protocol):
    """A symmetric positive semidefinite matrix K (n, n), up to constants added to its rows.

    Systems only see vectors U with the sum 0, and do not see constants in K U.
    """

    n: int
    rounding: float  # estimate of |E z| / |z|, for the rounding E of K; 0 in double precision

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""


class Shifts:
    """Factors of T + alpha I, T (k, k) growing with the steps, for c systems and a alphas."""

    def __init__(self, alphas: Floats, size: Floats) -> None:
        self.alphas = alphas  # (c, a)
        self._pivots: list[Floats] = []
        self._right: list[Floats] = []
        self._off: list[Floats] = []
        self._size = size

    def add(self, diagonal: Floats, off: Floats) -> tuple[Floats, Floats]:
        """Add a row of T: its diagonal entry (c,), and the entry before it (c,).

        Return the ratio (c, a) of that entry to the pivot before, and the gain (c, a): the
        coefficient of the direction that the new vector adds to the solution.
        """
        ratio = np.zeros_like(self.alphas)
        if not self._pivots:
            self._pivots.append(diagonal[:, None] + self.alphas)
            self._right.append(np.repeat(self._size[:, None], self.alphas.shape[1], axis=1))
        else:
            ratio = off[:, None] / self._pivots[-1]
            self._pivots.append(diagonal[:, None] + self.alphas - off[:, None] * ratio)
            self._right.append(-ratio * self._right[-1])
        self._off.append(off)
        return ratio, self._right[-1] / self._pivots[-1]

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
    """The Krylov spaces of symmetric operators side by side, one step after the other.

    Parameters
    ----------
    start : (c, d)
        The vectors that span the first spaces.
    basis : bool
        Whether each new vector is made orthogonal to all before it, which are kept for that in
        single precision. Without it, there are more steps and nothing that grows with them.
    """

    def __init__(self, start: Floats, *, basis: bool = True) -> None:
        self.size = np.sqrt(np.einsum("cn,cn->c", start, start))
        self.vector = start / np.where(self.size > 0, self.size, np.inf)[:, None]
        self._before = np.zeros_like(start)
        self._basis: list[npt.NDArray[np.float32]] | None = [] if basis else None  # (c, _BLOCK, n)
        self.diagonal: list[Floats] = []  # (c,) each
        self.off: list[Floats] = [np.zeros(len(start))]

    @property
    def n_steps(self) -> int:
        """The dimension of the spaces."""
        return len(self.diagonal)

    def step(self, apply: Callable[[Floats], Floats]) -> None:
        """Add one vector to each space.

        `apply` returns the products (c, d) of the operators with vectors (c, d). It is not kept,
        because with a method of what has this process as its attribute, both would be garbage that
        waits for its collection, together with matrices.
        """
        q = self.vector
        product = apply(q)
        diagonal = np.einsum("cn,cn->c", product, q)
        product -= diagonal[:, None] * q
        product -= self.off[-1][:, None] * self._before
        if self._basis is not None:
            self._orthogonalize(product, q)
        off = np.sqrt(np.einsum("cn,cn->c", product, product))
        off[off <= 1e-12 * np.abs(diagonal)] = 0.0  # the space is invariant: the solution is exact
        self.diagonal.append(diagonal)
        self.off.append(off)
        self._before = q
        self.vector = product / np.where(off > 0, off, np.inf)[:, None]

    def _orthogonalize(self, product: Floats, q: Floats) -> None:
        """Add q to the basis, and take what lies in its span away from the products, in place."""
        assert self._basis is not None
        k = self.n_steps % _BLOCK
        if k == 0:
            self._basis.append(np.zeros((len(q), _BLOCK, q.shape[1]), dtype=np.float32))
        self._basis[-1][:, k] = q
        single = product.astype(np.float32)[:, :, None]
        for block in self._basis:
            own = block[:, : k + 1] if block is self._basis[-1] else block
            product -= (own.transpose(0, 2, 1) @ (own @ single))[:, :, 0]

    def shifts(self, alphas: Floats) -> Shifts:
        """Return the factors of T + alpha I for alphas (c, a)."""
        found = Shifts(alphas, self.size)
        for diagonal, off in zip(self.diagonal, self.off, strict=False):
            found.add(diagonal, off)
        return found

    def keep_first(self, n: int) -> None:
        """Forget all systems but the first n."""
        own = slice(n)
        self.size = self.size[own]
        self.vector, self._before = self.vector[own].copy(), self._before[own].copy()
        if self._basis is not None:
            self._basis = [block[own].copy() for block in self._basis]
        self.diagonal = [each[own] for each in self.diagonal]
        self.off = [each[own] for each in self.off]


class DualSystems:
    """Regressions side by side, by products of samples, and the Krylov spaces of their systems.

    Parameters
    ----------
    products : Products
    roots : (c, n) float64
        Square roots of the weights, 0 for samples that train nothing.
    targets : (c, n) float64
        Any number where the root is 0.
    wanted : (m,) int, optional
        Flat places in (c, n) at which K V Q is kept.
    n_kept : int
        The first systems, whose solutions are wanted: their bases are kept in double precision.
    """

    def __init__(
        self,
        products: Products,
        roots: Floats,
        targets: Floats,
        n_kept: int,
        wanted: Ints | None = None,
    ) -> None:
        self.products, self.wanted = products, wanted
        self._n_kept, self._kept = n_kept, list[Floats]()  # (n_kept, n) each
        self.roots = roots
        total, self.level, start = centered_targets(roots, targets)
        self._safe = np.where(total > 0, total, 1.0)
        self.levels: list[Floats] = []  # weighted means of K V q
        self.outputs: list[Floats] = []  # K V q at the wanted places
        few = len(start) <= 2 * _most_systems(products.n)
        self.lanczos = Lanczos(start, basis=few)

    def _apply(self, q: Floats) -> Floats:
        """Return A q (c, n), and keep what predictions and solutions need of it."""
        self._kept.append(q[: self._n_kept].copy())  # a view would keep all of q
        product = self.products.times(self.roots * q)
        if self.wanted is not None:
            self.outputs.append(product.reshape(-1)[self.wanted])
        product *= self.roots
        level = np.einsum("cn,cn->c", self.roots, product) / self._safe
        product -= self.roots * level[:, None]
        self.levels.append(level)
        return product

    def run(self, alphas: Floats, tolerance: float, most_steps: int) -> tuple[Floats, Mask]:
        """Iterate until all alphas (c, a) are solved, or for a maximum number of steps.

        Returns the coefficients (k, c, a) in the basis, and which systems are solved (c, a).
        """
        lanczos = self.lanczos
        shifts = lanczos.shifts(alphas)
        goal = tolerance * lanczos.size[:, None]
        steps = min(most_steps, self.roots.shape[1])
        while lanczos.n_steps == 0 or (
            lanczos.n_steps < steps and not (lanczos.off[-1][:, None] * shifts.last() <= goal).all()
        ):
            lanczos.step(self._apply)
            shifts.add(lanczos.diagonal[-1], lanczos.off[-2])
        found = shifts.solution()
        residual = lanczos.off[-1][:, None] * shifts.last()
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
        self.roots = self.roots[own].copy()
        self.level, self._safe = self.level[own], self._safe[own]
        self.levels = [each[own] for each in self.levels]
        self.lanczos.keep_first(self._n_kept)


def centered_targets(roots: Floats, targets: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sums of weights (c,), the weighted mean targets (c,), and P V y (c, n).

    P V y is zero where targets are constant except for rounding.
    """
    weights = roots**2
    total = weights.sum(axis=1)
    safe = np.where(total > 0, total, 1.0)
    level = np.einsum("cn,cn->c", weights, targets) / safe
    start = roots * (targets - level[:, None])
    size = np.sqrt(np.einsum("cn,cn->c", start, start))
    start[size <= 1e-13 * np.sqrt(np.einsum("cn,cn->c", weights, targets**2))] = 0.0
    return total, level, start


# ---------------------------------------------------------------------- cross-validation


@dataclass(frozen=True)
class Regression:
    """A regression of a cross-validation, and where its predictions are wanted."""

    row: int  # -1: the regression on all samples
    output: int
    train: Mask  # (n,)
    test: Mask  # (n,)


def regressions_of(Y: Floats, folds: Ints) -> list[Regression]:
    """List the regressions on all samples, one for each output, and those of all folds."""
    known = ~np.isnan(Y)
    outputs = range(Y.shape[1])
    nothing = np.zeros(len(Y), dtype=bool)
    found = [Regression(-1, q, known[:, q], nothing) for q in outputs]
    for row, fold in enumerate(folds):
        inside = trained_on(fold)
        for f in np.unique(fold[fold != TRAIN]):
            test = fold == f
            train = inside if f < 0 else inside & ~test
            found += [Regression(row, q, train & known[:, q], test & known[:, q]) for q in outputs]
    return found


def problems_of(
    regressions: Sequence[Regression], Y: Floats, weights: Floats | None
) -> tuple[Floats, Floats]:
    """Return square roots of the weights (c, n), and the targets (c, n) of regressions."""
    roots = np.array([each.train for each in regressions], dtype=np.float64)
    if weights is not None:
        root = np.sqrt(weights)
        for system, each in zip(roots, regressions, strict=True):
            system *= root if root.ndim == 1 else root[:, each.output]
    return roots, np.nan_to_num(Y.T)[[each.output for each in regressions]]


@dataclass(eq=False)
class PathSearch:
    """Rows of folds that are solved side by side, one alpha after the other from the largest.

    With a `score`, a row ends at the first alpha that is a tenth of its best one or less, for all
    targets: smaller ones regularize too little, and take most of the steps.

    Attributes
    ----------
    alphas : (a,)
        In descending order.
    rows : (n_rows,) int
    regressions : list of Regression
    predictions : (n_rows, a, n, q)
        NaN where nothing is predicted, and for alphas that are not tried.
    score : callable, optional
        Returns the scores (n_rows, n_targets) of predictions (n_rows, n, q).
    """

    alphas: Floats
    rows: Ints
    regressions: list[Regression]
    predictions: Floats
    score: Callable[[Floats], Floats] | None
    scores: list[Floats] = field(default_factory=list)
    n_tried: int = 0
    unsolved: list[int] = field(default_factory=list)  # positions of alphas

    @property
    def best(self) -> Ints:
        """The position of the best alpha so far, (n_rows, n_targets)."""
        known = np.nan_to_num(np.array(self.scores), nan=-np.inf)
        return np.asarray(np.argmax(known, axis=0))

    @property
    def ended(self) -> Mask:
        """Which rows end with the alphas that have been tried."""
        if not self.scores:
            return np.zeros(len(self.rows), dtype=bool)
        best = self.alphas[self.best]
        return np.asarray((best >= _DECADE * self.alphas[self.n_tried - 1]).all(axis=1))

    @property
    def finished(self) -> bool:
        """Whether no alpha is left to be tried."""
        return self.n_tried == len(self.alphas) or bool(self.ended.all())

    def add(self, predictions: Floats) -> None:
        """Add the predictions (n_rows, n, q) with the next alpha."""
        predictions[self.ended] = np.nan
        self.predictions[:, self.n_tried] = predictions
        self.n_tried += 1
        if self.score is not None:
            self.scores.append(self.score(predictions))


def path_searches(
    Y: Floats, alphas: Floats, folds: Ints, score: Score | None = None
) -> list[PathSearch]:
    """Return the rows of folds in groups that are solved one after the other.

    The first group also has the regressions on all samples.
    """
    n, q = Y.shape
    groups: list[list[int]] = [[]]
    n_systems = q
    for row, fold in enumerate(folds):
        own = q * len(np.unique(fold[fold != TRAIN]))
        if groups[-1] and n_systems + own > _most_systems(n):
            groups.append([])
            n_systems = 0
        groups[-1].append(row)
        n_systems += own
    found: list[PathSearch] = []
    for rows in map(np.array, groups):
        regressions = regressions_of(Y, folds[rows])[q if found else 0 :]
        predictions = np.full((len(rows), len(alphas), n, q), np.nan)
        own_score = None if score is None else partial(score, rows)
        found.append(PathSearch(alphas, rows, regressions, predictions, own_score))
    return found


def _most_systems(n: int) -> int:
    """Return how many systems of n samples are solved side by side, unless one row has more."""
    return max(_NUMBERS // n, 8)


class KrylovSolver:
    """Out-of-fold predictions and readouts of one training set.

    Systems are solved in single precision, and in double precision where that does not suffice.

    Parameters
    ----------
    products : function of a bool
        Returns the `Products` in single or double precision.
    Y : (n, q)
        NaN where a target is unknown.
    weights : (n,) or (n, q), optional
    """

    def __init__(
        self, products: Callable[[bool], Products], Y: Floats, weights: Floats | None
    ) -> None:
        self._products, self.Y, self.weights = products, Y, weights
        self.products: Products | None = None
        self._whole: DualSystems | None = None

    def predict(self, alphas: Floats, folds: Ints, score: Score | None) -> tuple[Floats, Ints]:
        """Return out-of-fold predictions (n_rows, a, n, q), and the alphas that are not solved."""
        found = np.full((len(folds), len(alphas), *self.Y.shape), np.nan)
        if found.size == 0:
            return found, np.empty(0, dtype=np.int64)
        order = np.argsort(-alphas, kind="stable")
        searches = path_searches(self.Y, alphas[order], folds, score)
        for products in self._precisions():
            for search in searches:
                self._continue(search, products)
            if all(search.finished for search in searches):
                break
        for search in searches:
            found[search.rows[:, None], order] = search.predictions
        unsolved = np.concatenate([each.unsolved for each in searches]).astype(np.int64)
        return found, order[np.unique(unsolved)]

    def fit(self, alphas: Floats) -> tuple[Floats, Floats, Mask]:
        """Return a (n, q), b (q,) and which outputs are solved, for the alphas (q,) of outputs."""
        for products in self._precisions():
            if self._whole is None:
                everything = regressions_of(self.Y, np.empty((0, len(self.Y)), dtype=np.int64))
                problems = problems_of(everything, self.Y, self.weights)
                self._whole = DualSystems(products, *problems, len(everything))
            coefficients, solved = self._whole.run(alphas[:, None], READOUT_TOLERANCE, MOST_STEPS)
            if solved.all():
                break
        assert self._whole is not None
        dual, mean = self._whole.solution(coefficients[:, :, 0])
        return dual.T, self._whole.level - mean, solved[:, 0]

    def _precisions(self) -> Iterator[Products]:
        """Yield the products, and then those in double precision if they are not."""
        if self.products is None:
            self.products = self._products(False)
        yield self.products
        if self.products.rounding > 0:
            self.products = self._whole = None  # one matrix at a time
            self.products = self._products(True)
            yield self.products

    def _continue(self, search: PathSearch, products: Products) -> None:
        """Continue a search; single precision ends at the first alpha that it does not solve."""
        some, double = search.regressions, products.rounding == 0
        n_kept = self.Y.shape[1] if some[0].row < 0 and self._whole is None else 0
        wanted = np.flatnonzero(np.array([each.test for each in some]))
        problems = problems_of(some, self.Y, self.weights)
        systems = DualSystems(products, *problems, n_kept, wanted)
        column, sample = np.divmod(wanted, len(self.Y))
        row = np.array([each.row for each in some])[column]
        output = np.array([each.output for each in some])[column]

        def predictions(alphas: Floats, tolerance: float) -> tuple[Floats, bool]:
            each = np.broadcast_to(alphas, (len(some), len(alphas)))
            coefficients, solved = systems.run(each, tolerance, MOST_STEPS)
            found = np.full((len(search.rows), len(alphas), *self.Y.shape), np.nan)
            found[row, :, sample, output] = systems.predictions(coefficients)
            return found, bool(solved.all())

        tolerance = PREDICTION_TOLERANCE if search.score is None else SEARCH_TOLERANCE
        while not search.finished:
            found, solved = predictions(search.alphas[search.n_tried :][:1], tolerance)
            if not (solved or double):
                break
            search.unsolved += [search.n_tried] * (not solved)
            search.add(found[:, 0])
        if search.scores and search.finished:
            n = int(search.best.max()) + 1
            found, solved = predictions(search.alphas[:n], PREDICTION_TOLERANCE)
            if solved or double:
                old = search.predictions[:, :n]
                old[...] = np.where(np.isnan(old), np.nan, found)
            else:  # all alphas again, in double precision
                search.predictions[...] = np.nan
                search.scores, search.n_tried = [], 0
        if n_kept:
            systems.keep_first()
            self._whole = systems


def warn_unsolved(
    alphas: Floats, tolerance: float = PREDICTION_TOLERANCE, n_steps: int | None = None
) -> None:
    """Warn that regressions with these alphas are not solved to the tolerance."""
    warnings.warn(
        f"ridge regression with alpha={np.min(alphas):g} was not solved to a relative tolerance of "
        f"{tolerance:g} in {n_steps or MOST_STEPS} steps; choose a larger alpha",
        ConvergenceWarning,
        stacklevel=4,
    )

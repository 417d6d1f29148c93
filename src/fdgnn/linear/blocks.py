"""Samples in parts, over which a solver goes part by part, and sums that it takes on the way.

A *step* says what is added up: `begin` gives totals of zeros, `add` adds one part to them. Who goes
over the parts (one process, threads, a cluster) is no business of a step, and a step knows nothing
of where parts lie: `Passes` brings them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import joblib
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.threads import interruptible_threads

NOBODY = -1  # the fold that is left out where none is
FEW = -2  # in place of a fold: all samples are left out but some, by which penalties are tried
PART = 10_000  # samples of a part, where they are in memory
STRIPS = 4  # parts are added up in so many sums, whatever the number of threads: the same bits

Totals = tuple[Array, ...]
Result = TypeVar("Result")
_ONES = np.empty(0)


class SamplePart(NamedTuple):
    """Some samples: their features by rows, targets, weights and folds."""

    indptr: Ints
    indices: npt.NDArray[np.int32]
    values: Floats  # of length 0 where all are 1
    Y: Floats  # (n, q), NaN where a target is unknown
    weights: Floats | None  # (n,) or (n, q)
    fold: Ints  # (n,); below 0 for samples that train nothing
    sampled: npt.NDArray[np.bool_] | None = None  # (n,) whose held-out outputs are wanted
    few: npt.NDArray[np.bool_] | None = None  # (n,) which ones train where `FEW` do

    def rows(self, n_columns: int, places: npt.NDArray[np.int32] | None = None) -> sp.csr_array:
        """Give the features as a matrix; with `places`, its columns are renumbered."""
        values = self.values.copy() if len(self.values) else np.ones(len(self.indices))
        columns = self.indices if places is None else places[self.indices]
        return sp.csr_array((values, columns, self.indptr), shape=(len(self.fold), n_columns))

    def some(self, chosen: npt.NDArray[np.bool_]) -> SamplePart:
        """Take some of the samples, all of which train."""
        lengths = np.diff(self.indptr)
        entries = np.repeat(chosen, lengths)
        weights = None if self.weights is None else self.weights[chosen]
        values = self.values[entries] if len(self.values) else self.values
        return SamplePart(
            offsets_of(lengths[chosen]), self.indices[entries], values, self.Y[chosen], weights,
            self.fold[chosen],
        )  # fmt: skip

    def trains(self, left_out: Ints, output: Ints) -> Floats:
        """Give by what each sample counts where a fold is left out and an output is learned."""
        some = (self.fold[:, None] >= 0) & (self.fold[:, None] != left_out)
        if self.few is not None:
            some &= self.few[:, None] | (left_out != FEW)
        some &= ~np.isnan(self.Y[:, output])
        if self.weights is None:
            return np.asarray(some, dtype=np.float64)
        each = self.weights[:, None] if self.weights.ndim == 1 else self.weights[:, output]
        return np.asarray(some * each)


class Step(Protocol):
    """What is added up in one pass over all parts."""

    def begin(self) -> Totals:
        """Give totals of no samples."""

    def add(self, totals: Totals, part: SamplePart) -> None:
        """Add the samples of a part."""


class Passes(Protocol):
    """Samples in parts."""

    @property
    def n_columns(self) -> int:
        """P."""

    def total(self, step: Step) -> Totals:
        """Go over all parts, and add up what the step says."""

    def gather(self, function: Callable[[SamplePart], Result]) -> list[Result]:
        """Collect what a function says of each part."""


def added(step: Step, parts: Iterator[SamplePart]) -> Totals:
    """Add up some parts, one after the other."""
    totals = step.begin()
    for part in parts:
        step.add(totals, part)
    return totals


def merge(totals: Totals, more: Totals) -> Totals:
    """Add totals to others, in place."""
    for mine, other in zip(totals, more, strict=True):
        mine += other
    return totals


def in_strips(step: Step, parts: Sequence[Any], load: Any, n_jobs: int | None) -> Totals:
    """Add up parts by threads; the sums do not depend on their number."""
    strips = [parts[i::STRIPS] for i in range(min(STRIPS, len(parts)))]

    def one(strip: Sequence[Any]) -> Totals:
        return added(step, map(load, strip))

    n_threads = min(joblib.effective_n_jobs(n_jobs), len(strips))
    if n_threads > 1:
        with interruptible_threads(n_threads) as pool:
            return reduce(merge, pool.map(one, strips))
    totals = one(strips[0])
    for strip in strips[1:]:
        merge(totals, one(strip))  # no more than two sums in memory
    return totals


@dataclass(frozen=True, eq=False)
class HeldParts:
    """Parts that are in memory."""

    parts: Sequence[SamplePart]
    n_columns: int
    n_jobs: int | None = 1

    def total(self, step: Step) -> Totals:
        """Go over all parts, and add up what the step says."""
        return in_strips(step, self.parts, lambda part: part, self.n_jobs)

    def gather(self, function: Callable[[SamplePart], Result]) -> list[Result]:
        """Collect what a function says of each part."""
        return list(map(function, self.parts))


@dataclass(frozen=True, eq=False)
class InMemory:
    """Samples of one sparse matrix (n, P), as parts of it."""

    X: sp.csr_array
    Y: Floats
    fold: Ints
    weights: Floats | None = None
    n_jobs: int | None = 1

    @property
    def n_columns(self) -> int:
        """P."""
        return int(self.X.shape[1])

    def total(self, step: Step) -> Totals:
        """Go over all parts, and add up what the step says."""
        return in_strips(step, range(0, len(self.Y), PART), self._part, self.n_jobs)

    def gather(self, function: Callable[[SamplePart], Result]) -> list[Result]:
        """Collect what a function says of each part."""
        return [function(self._part(start)) for start in range(0, len(self.Y), PART)]

    def _part(self, start: int) -> SamplePart:
        rows = slice(start, start + PART)
        indptr = self.X.indptr[start : start + PART + 1].astype(np.int64)
        own = slice(indptr[0], indptr[-1])
        values = self.X.data[own]
        return SamplePart(
            indptr - indptr[0],
            self.X.indices[own].astype(np.int32, copy=False),
            _ONES if (values == 1.0).all() else values,
            self.Y[rows],
            None if self.weights is None else self.weights[rows],
            self.fold[rows],
        )

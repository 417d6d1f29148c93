"""The use of memory, the workers, and the models that can be trained out of core."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import joblib

from fdgnn.clusters import connected
from fdgnn.context import Context
from fdgnn.encoders.counts import DEFAULT_FEATURES
from fdgnn.linear.passes import least_bytes
from fdgnn.options import TrainingOptions
from fdgnn.scale.workers import Workers

LEAST_ROWS, MOST_ROWS = 1_000, 10_000  # of a chunk
_READERS = 3  # processes for which the rows of a chunk are planned; more of them need more memory
_PROCESS = 150_000_000  # bytes of a process before it has read anything, with its libraries
_ROW = 20_000  # bytes of a row while it is read, about: a molecule as Python objects


@dataclass(frozen=True)
class MemoryPlan:
    """Sizes that follow from the memory that is allowed.

    Attributes
    ----------
    total : int
        Bytes in all processes together.
    n_rows : int
        Rows of a chunk, which a process reads at once. It does not depend on `n_jobs`, and so the
        order of sums does not either.
    n_processes : int
        Processes that may read and encode at the same time: `n_jobs`, or as many as fit.
    solver : int
        Bytes of the solver's vectors and sums.
    cache : int
        Bytes in which encoded chunks are kept; others are read again in each pass.
    """

    total: int
    n_rows: int
    n_processes: int
    solver: int
    cache: int


def plan_memory(
    asked: str | None, context: Context, n_columns: int = DEFAULT_FEATURES
) -> MemoryPlan:
    """Share the memory that is allowed; raise ValueError if it is too little.

    First all processes read and encode, then one of them solves. Half of what is left beside the
    libraries is for the solver, or as much as it needs, and the rest for chunks.
    """
    total = all_memory() // 2 if asked is None else memory_of(asked)
    left, needed = total - _PROCESS, least_bytes(n_columns)  # beside this process
    for_rows = left // _READERS - _PROCESS
    n_rows = min(MOST_ROWS, max(LEAST_ROWS, for_rows // (2 * _ROW)))
    n_fitting = left // (_PROCESS + n_rows * 2 * _ROW)
    if n_fitting < 1 or left < needed:
        least = _PROCESS + max(_PROCESS + LEAST_ROWS * 2 * _ROW, needed)
        raise ValueError(
            f"`memory`: reading and the solver need {least / 1e6:.0f} MB at least; allow more"
        )
    n_processes = min(int(joblib.effective_n_jobs(context.n_jobs)), n_fitting)
    solver = max(needed, left // 2)
    return MemoryPlan(total, n_rows, n_processes, solver, left - solver)


def memory_of(text: str) -> int:
    """Read an amount of memory such as 2GB, in bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
    cleaned = text.strip().upper().replace(" ", "")
    for unit, size in sorted(units.items(), key=lambda each: -len(each[0])):
        number = cleaned.removesuffix(unit)
        if number != cleaned:
            try:
                return _positive(int(float(number) * size))
            except (ValueError, OverflowError):
                break
    raise ValueError(f"`memory`: expected an amount such as 2GB or 500MB, got {text!r}")


def _positive(number: int) -> int:
    if number <= 0:
        raise ValueError(f"{number} is not positive")
    return number


def all_memory() -> int:
    """Bytes of memory that this machine has."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


@contextmanager
def workers_for(cluster: str | None, plan: MemoryPlan, context: Context) -> Iterator[Workers]:
    """Return who does the work: this machine, or the Dask cluster with this address."""
    n_threads = int(joblib.effective_n_jobs(context.n_jobs))
    if cluster is None:
        yield Workers(plan.n_processes, n_threads)
        return
    with connected(cluster, context, n_workers=1) as client:
        yield Workers(client=client)


def check_trainable(options: TrainingOptions) -> None:
    """Raise ValueError for models that are not trained out of core, before anything is read."""
    if options.model == "union":
        raise ValueError("model 'union' cannot be trained out of core; choose auto, wl or paper")

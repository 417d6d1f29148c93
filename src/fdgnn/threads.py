"""Threads: of our own over ranges of graphs, and how many BLAS may use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import pairwise
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from fdgnn.arrays import Array

_FEW = 1_500  # samples


def n_threads(n_jobs: int | None) -> int:
    """How many threads `n_jobs` means here, as joblib has it."""
    return int(joblib.effective_n_jobs(n_jobs))


def over_chunks(
    kernel: Any,
    n_items: int,
    n_jobs: int | None,
    arguments: Sequence[Any],
    work: Callable[[], Array],
    most_work: float | None = None,
) -> None:
    """Call ``kernel(first, last, *arguments)`` on ranges of items of about equal work.

    ``work()[i]`` is the work of all items before i; the last entry is the whole. A range has
    about `most_work` at most, if given, so that what a kernel needs for one range stays small.
    """
    n_used = 1 if n_items == 1 else min(n_threads(n_jobs), n_items)
    if n_items == 1 or (n_used <= 1 and most_work is None):
        kernel(0, n_items, *arguments)
        return
    before = work()
    n_chunks = 8 * n_used if n_used > 1 else 1  # small ones, so that threads end together
    if most_work is not None:
        n_chunks = max(n_chunks, int(before[-1] / most_work) + 1)
    n_chunks = min(n_chunks, n_items)
    cuts = np.searchsorted(before, np.linspace(0, before[-1], n_chunks + 1))
    cuts[-1] = n_items
    chunks = [(a, b) for a, b in pairwise(cuts.tolist()) if a < b]
    if n_used <= 1:
        for a, b in chunks:
            kernel(a, b, *arguments)
        return
    with obedient_threads(n_used) as pool:
        jobs = [pool.submit(kernel, a, b, *arguments) for a, b in chunks]
        for job in jobs:
            job.result()


@contextmanager
def obedient_threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give threads whose kernels end if the caller is interrupted, or meets another error."""
    from fdgnn.kernels import obey

    told_to_end = np.zeros(1, dtype=np.int32)
    with ThreadPoolExecutor(n_threads, initializer=obey, initargs=(told_to_end,)) as pool:
        try:
            yield pool
        except BaseException:  # an interrupt above all, which only the main thread hears
            told_to_end[0] = 1
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds: once per process


def blas_threads_for(n_samples: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread for few samples.

    There, threads wait for each other longer than they work, and results should not depend on
    their number.
    """
    return one_blas_thread() if n_samples < _FEW else nullcontext()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread: processes run side by side, and sums keep their order."""
    libraries = _threadpools().lib_controllers
    if all(each.get_num_threads() == 1 for each in libraries if each.user_api == "blas"):
        return nullcontext()  # asking takes a small part of the time of setting
    limiter: AbstractContextManager[Any] = _threadpools().limit(limits=1, user_api="blas")
    return limiter

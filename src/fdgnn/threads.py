"""Threads: our own over ranges of graphs, as many as `n_jobs`, and one thread of BLAS.

Public methods of estimators, and commands, run in `one_blas_thread`: threads of BLAS spin while
they wait for each other, and sums must not depend on their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ContextDecorator, contextmanager
from functools import cache
from itertools import pairwise
from threading import Lock, get_ident
from typing import Any

import joblib
import numpy as np
from threadpoolctl import ThreadpoolController

from fdgnn.arrays import Array


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for `n_jobs`, as joblib defines it.

    None means 1, unless ``joblib.parallel_config`` overrides this.
    """
    return int(joblib.effective_n_jobs(n_jobs))


def over_chunks(
    kernel: Any,
    n_items: int,
    n_jobs: int | None,
    arguments: Sequence[Any],
    work: Callable[[], Array],
    most_work: float | None = None,
) -> list[Any]:
    """Return ``kernel(first, last, *arguments)`` for ranges of items of about equal work.

    ``work()[i]`` is the work of all items before i; the last entry is the whole. A range has
    about `most_work` at most, if given, so that what a kernel needs for one range stays small.
    """
    n_used = 1 if n_items == 1 else min(n_threads(n_jobs), n_items)
    if n_items == 1 or (n_used <= 1 and most_work is None):
        return [kernel(0, n_items, *arguments)]
    before = work()
    n_chunks = 8 * n_used if n_used > 1 else 1  # small ones, so that threads end together
    if most_work is not None:
        n_chunks = max(n_chunks, int(before[-1] / most_work) + 1)
    n_chunks = min(n_chunks, n_items)
    cuts = np.searchsorted(before, np.linspace(0, before[-1], n_chunks + 1))
    cuts[-1] = n_items
    chunks = [(a, b) for a, b in pairwise(cuts.tolist()) if a < b]
    if n_used <= 1:
        return [kernel(a, b, *arguments) for a, b in chunks]
    with interruptible_threads(n_used) as pool:
        jobs = [pool.submit(kernel, a, b, *arguments) for a, b in chunks]
        return [job.result() for job in jobs]


@contextmanager
def interruptible_threads(n_threads: int) -> Iterator[ThreadPoolExecutor]:
    """Return threads whose kernels end if the caller is interrupted, or meets another error."""
    from fdgnn.kernels import InterruptFlag

    flag = InterruptFlag()
    with ThreadPoolExecutor(n_threads, initializer=flag.watch) as pool:
        try:
            yield pool
        except BaseException:  # an interrupt above all, which only the main thread receives
            flag.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# ---------------------------------------------------------------------- threads of BLAS

_lock = Lock()
_holders: list[int] = []  # threads that are in a context, once for each
_usual: list[int] = []  # threads of each library outside of all contexts


class one_blas_thread(ContextDecorator):  # noqa: N801 - used like a function
    """Hold BLAS to one thread, in a ``with`` block or, as a decorator, during each call.

    OpenBLAS has one number of threads for the whole process: the last context of any thread that
    closes restores what was there before the first.
    """

    def __enter__(self) -> None:
        with _lock:
            first = not _holders
            _holders.append(get_ident())
            if first:
                _usual[:] = [library.get_num_threads() for library in _blas_libraries()]
                _set_blas_threads()

    def __exit__(self, *error: object) -> None:
        with _lock:
            _holders.remove(get_ident())
            if not _holders:
                _set_blas_threads()


def _set_blas_threads() -> None:
    """Set the number of threads of each library: one, or what was there before."""
    for library, own in zip(_blas_libraries(), _usual, strict=True):
        if own != 1:
            wanted = 1 if _holders else own
            # From 3.8 on, threadpoolctl lets only the first thread set a number.
            free = getattr(library, "clear_controlling_thread", lambda force: None)
            free(force=True)
            library.set_num_threads(wanted)
            free(force=True)


@cache
def _blas_libraries() -> tuple[Any, ...]:
    """Find the BLAS libraries of NumPy and SciPy, which takes milliseconds: once per process."""
    import scipy.linalg  # noqa: F401 - loads SciPy's own

    found = ThreadpoolController().lib_controllers
    return tuple(library for library in found if library.user_api == "blas")


def _after_fork() -> None:
    """Forget contexts of threads that a forked process does not have, and their hold on a lock."""
    global _lock
    _lock = Lock()
    own = [holder for holder in _holders if holder == get_ident()]
    if own != _holders:
        _holders[:] = own
        _set_blas_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""Context of long work: processes, progress, the recorded command, and Dask clusters."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.texts import printable

T = TypeVar("T")
_SECONDS_BETWEEN_LINES = 10.0
LOCAL = "local"  # in place of an address: processes of this machine
SECONDS_TO_ANSWER = 10  # for a scheduler, and for its first worker


def _bar(
    items: Iterable[T], total: int | None, what: str, done: int, size: Callable[[T], int]
) -> Iterator[T]:
    from rich import progress as shown
    from rich.console import Console

    columns = (
        shown.TextColumn("{task.description}", markup=False),
        shown.BarColumn(),
        shown.MofNCompleteColumn(),
        shown.TextColumn("{task.fields[pace]}"),
        shown.TimeElapsedColumn(),
        shown.TimeRemainingColumn(),
    )
    with shown.Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total, completed=done, pace="")
        for item in items:
            speed = progress.tasks[0].speed
            progress.update(task, advance=size(item), pace=pace(speed) if speed else "")
            yield item


def _lines(
    items: Iterable[T], total: int | None, what: str, done: int, size: Callable[[T], int]
) -> Iterator[T]:
    said = time.monotonic()
    count = before = 0
    for item in items:
        yield item
        now = time.monotonic()
        if count == 0:
            first, before = now, size(item)  # the first one loads libraries: no rate is of it
        count += size(item)
        if now - said >= _SECONDS_BETWEEN_LINES or done + count == total:
            rate = (count - before) / (now - first) if now > first else 0.0
            facts = [f"{what}: {done + count}" + ("" if total is None else f" of {total}")]
            if rate:
                facts.append(pace(rate))
            if rate and total is not None and total != done + count:
                facts.append(f"{duration(max(total - done - count, 0) / rate)} left")
            print(", ".join(facts), file=sys.stderr, flush=True)
            said = now


def pace(rate: float) -> str:
    """Write items per second, or the time per item if items are slow.

    >>> pace(24683.0), pace(2.345), pace(1 / 167)
    ('24,683 per second', '2.3 per second', '2 min 47 s each')
    """
    if rate < 1:
        return f"{duration(1 / rate)} each"
    return f"{rate:,.0f} per second" if rate >= 10 else f"{rate:.1f} per second"


def duration(seconds: float) -> str:
    """Write seconds, from a minute on in the two largest units.

    >>> duration(1.25), duration(42.4), duration(167), duration(3600), duration(200_000)
    ('1.2 s', '42 s', '2 min 47 s', '1 h 0 min', '2 d 7 h')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole >= 86400:
        return f"{whole // 86400} d {whole % 86400 // 3600} h"
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


@dataclass(frozen=True)
class Context:
    """Settings of the work as a whole, which no result depends on.

    Attributes
    ----------
    n_jobs : int, optional
        Processes, or threads where the work is in kernels; -1 means all cores.
    quiet : bool
        Whether to hide progress.
    command : str, optional
        The command that a user would type for the same work; it is only recorded.
    """

    n_jobs: int | None = None
    quiet: bool = True
    command: str | None = None

    def __post_init__(self) -> None:
        if self.n_jobs == 0:
            raise ValueError("`n_jobs=0`: give 1 or more processes, or -1 for all cores")

    def track(
        self,
        items: Iterable[T],
        total: int | None,
        what: str,
        *,
        done: int = 0,
        size: Callable[[T], int] = lambda item: 1,
    ) -> Iterator[T]:
        """Pass the items on, showing how many of `total` are done, the pace, and the time left.

        `done` of them were finished before, in an earlier run. An item counts as many as `size`
        says. Without a total, the time left is unknown. A quiet context shows nothing.
        """
        if self.quiet:
            return iter(items)
        shown = _bar if sys.stderr.isatty() else _lines
        return shown(items, total, printable(what), done, size)


@contextmanager
def connected(address: str, context: Context, *, n_workers: int = 0) -> Iterator[Any]:
    """Return a client of a cluster with `n_workers`; raise StudyError if none answers.

    With 0, the cluster need not have workers yet: some start them when there is work.
    """
    import joblib

    distributed = require("distributed", "cluster", "clusters")
    with ExitStack() as closing:
        try:
            given: Any = address
            if address == LOCAL:
                n = joblib.effective_n_jobs(context.n_jobs or -1)
                given = distributed.LocalCluster(
                    n_workers=n,
                    threads_per_worker=1,
                    silence_logs=logging.CRITICAL,  # a worker that is stopped tells it at length
                    dashboard_address=":0",  # any free port: another cluster may have the usual one
                )
                closing.callback(given.close)
            client = distributed.Client(given, timeout=SECONDS_TO_ANSWER)
            closing.callback(client.close)
            if n_workers:
                client.wait_for_workers(n_workers, timeout=SECONDS_TO_ANSWER)
        except (OSError, ValueError, TimeoutError, TypeError) as error:  # the last: no TLS here
            what = "scheduler with workers" if n_workers else "scheduler"
            raise StudyError(f"no Dask {what} answers at {address} ({error})") from error
        yield client

"""How work is carried out: with how many processes, how loudly, and by which command."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from fdgnn.texts import printable

T = TypeVar("T")
_SECONDS_BETWEEN_LINES = 10.0


def track(
    items: Iterable[T],
    total: int | None,
    what: str,
    *,
    done: int = 0,
    quiet: bool = False,
    size: Callable[[T], int] = lambda item: 1,
) -> Iterator[T]:
    """Pass the items on, showing how many of `total` are done, the rate, and the time left.

    `done` of them were finished before, in an earlier run. An item counts as many as `size` says.
    Without a total, no time is left to be told.
    """
    if quiet:
        return iter(items)
    what = printable(what)
    return (
        _bar(items, total, what, done, size)
        if sys.stderr.isatty()
        else _lines(items, total, what, done, size)
    )


def _bar(
    items: Iterable[T], total: int | None, what: str, done: int, size: Callable[[T], int]
) -> Iterator[T]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=total, completed=done, rate="")
        for item in items:
            speed = progress.tasks[0].speed
            rate = "" if speed is None else f"{speed:.3g} a second"
            progress.update(task, advance=size(item), rate=rate)
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
            pace = f", {rate:.3g} a second" if rate else ""
            if rate and total is not None:
                pace += f", {max(total - done - count, 0) / rate:.0f} s left"
            of = "" if total is None else f" of {total}"
            print(f"{what}: {done + count}{of}{pace}", file=sys.stderr, flush=True)
            said = now


@dataclass(frozen=True)
class Context:
    """What a caller says about the work as a whole, and what no result depends on.

    Attributes
    ----------
    n_jobs : int, optional
        Processes, or threads where the work is in kernels; -1 means all cores.
    quiet : bool
        Whether to show no progress.
    command : str, optional
        What a user would type to do the same; it is only written down.
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
        """Pass the items on and show progress, unless the context is quiet."""
        return track(items, total, what, done=done, quiet=self.quiet, size=size)

"""Progress of long work: a bar on a terminal, plain lines elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from fdgnn.texts import printable

T = TypeVar("T")
_SECONDS_BETWEEN_LINES = 10.0


def track(
    items: Iterable[T], total: int, what: str, *, done: int = 0, quiet: bool = False
) -> Iterator[T]:
    """Pass the items on, showing how many of `total` are done, the rate, and the time left.

    `done` of them were finished before, in an earlier run.
    """
    if quiet:
        return iter(items)
    what = printable(what)
    return (
        _bar(items, total, what, done) if sys.stderr.isatty() else _lines(items, total, what, done)
    )


def _bar(items: Iterable[T], total: int, what: str, done: int) -> Iterator[T]:
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
            progress.update(task, advance=1, rate=rate)
            yield item


def _lines(items: Iterable[T], total: int, what: str, done: int) -> Iterator[T]:
    said = time.monotonic()
    for count, item in enumerate(items, 1):
        yield item
        now = time.monotonic()
        if count == 1:
            first = now  # rates are of what comes after the first, which loads libraries
        if now - said >= _SECONDS_BETWEEN_LINES or done + count == total:
            rate = (count - 1) / (now - first) if now > first else 0.0
            left = total - done - count
            pace = f", {rate:.3g} a second, {left / rate:.0f} s left" if rate else ""
            print(
                f"{what}: {done + count} of {total}{pace}",
                file=sys.stderr,
                flush=True,
            )
            said = now

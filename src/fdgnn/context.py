"""How work is carried out: with how many processes, how loudly, and by which command."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from fdgnn.progress import track

T = TypeVar("T")


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

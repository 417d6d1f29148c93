"""Lists of rejected rows and of changed molecules: shown on the terminal, and written to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fdgnn.cli.app import say
from fdgnn.places import is_url
from fdgnn.texts import agreeing

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Change, Reject

SHOWN = 5  # rejected rows that are shown on the terminal; the file lists all of them


@dataclass(frozen=True)
class RejectsFile:
    """The list of rejected rows: a file of the user's choice, or one beside the output."""

    path: Path | None = None

    @classmethod
    def beside(cls, output: str | Path, chosen: Path | None) -> RejectsFile:
        """Choose the file; an output that is printed, or named by a URL, has none beside it."""
        if chosen is not None or str(output) == "-" or is_url(str(output)):
            return cls(chosen)
        return cls(Path(output).with_name(f"{Path(output).name}.rejects.csv"))

    @contextmanager
    def listing(self) -> Iterator[RejectedRows]:
        """Yield a list to which rejected rows are appended; it is written as it grows.

        If there are none at the end, an older file is removed.
        """
        if self.path is None:
            yield RejectedRows(None, lambda rejects: None)
            return
        from fdgnn.files import check_writable, write_aside
        from fdgnn.prediction.output import REJECTS, record_writer

        check_writable(self.path)
        with record_writer(partial(write_aside, self.path), REJECTS) as write:
            found = RejectedRows(self.path, write)
            yield found
        if not found.n:
            self.path.unlink(missing_ok=True)

    def write(self, rejects: Sequence[Reject], n_rows: int, context: Context) -> dict[str, object]:
        """Show and list rejected rows, and return their entries of a summary."""
        with self.listing() as found:
            found.extend(rejects)
        return found.show(n_rows, context)


class RejectedRows:
    """Rejected rows of which the first are kept; all are counted and passed on to a file."""

    def __init__(self, path: Path | None, write: Callable[[Sequence[Reject]], None]) -> None:
        self.path, self.n, self._write = path, 0, write
        self.first: list[Reject] = []

    def extend(self, rejects: Sequence[Reject]) -> None:
        """Append some rejected rows."""
        self.n += len(rejects)
        self.first += rejects[: SHOWN - len(self.first)]
        self._write(rejects)

    def show(self, n_rows: int, context: Context) -> dict[str, object]:
        """Show the first rejected rows, and return the entries of a summary for all of them."""
        if not self.n:
            return {"rejected": 0, "rejects": None}
        for reject in self.first:
            say(str(reject), context.quiet)
        where = "" if self.path is None else f", listed in {self.path}"
        say(f"{self.n} of {n_rows} rows rejected{where}", context.quiet)
        return {"rejected": self.n, "rejects": self.path and str(self.path)}


def check_outputs(data: str, output: str, rejects: RejectsFile) -> None:
    """Raise an error now, rather than after the work, if something cannot be written."""
    from fdgnn.files import check_writable

    written = None if output == "-" or is_url(output) else Path(output)
    for path in (written, rejects.path):
        if path is not None:
            check_writable(path)
            if path.exists() and Path(data).exists() and path.samefile(data):
                raise ValueError(f"{path}: it is the input; give another name")


def write_changes(
    path: Path, changes: Sequence[Change], n_rows: int, context: Context
) -> dict[str, object]:
    """Count and list molecules that standardization changed; return the entries of a summary.

    If there are none, an older list is removed.
    """
    if not changes:
        path.unlink(missing_ok=True)
        return {"changed": 0, "changes": None}
    from fdgnn.files import write_aside
    from fdgnn.graphs.molecules import STEPS
    from fdgnn.prediction.output import CHANGES, record_writer

    with record_writer(partial(write_aside, path), CHANGES) as write:
        write(changes)
    counts = Counter(step for change in changes for step in change.steps)
    done = ", ".join(f"{counts[step]} {words}" for step, words in STEPS.items() if counts[step])
    verb = agreeing(len(changes), "was", "were")
    say(
        f"{len(changes)} of {n_rows} molecules {verb} changed: {done}; listed in {path}",
        context.quiet,
    )
    return {"changed": len(changes), "changes": str(path)}

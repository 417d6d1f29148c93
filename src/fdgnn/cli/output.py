"""Files that commands write, lists of rejected rows and of changed molecules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdgnn.cli.app import say
from fdgnn.places import is_url, place_exists
from fdgnn.texts import agreeing

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Change, GraphTable, Reject
    from fdgnn.graphs import GraphBatch
    from fdgnn.schema import ReadOptions

SHOWN = 5  # rejected rows that are shown on the terminal; the file lists all of them


def rejects_beside(output: str | Path, chosen: Path | None) -> Path | None:
    """Return the file for the list of rejected rows: the chosen one, or one beside the output.

    An output that is printed, or named by a URL, has none beside it.
    """
    if chosen is not None or str(output) == "-" or is_url(str(output)):
        return chosen
    return Path(output).with_name(f"{Path(output).name}.rejects.csv")


@contextmanager
def listing(path: Path | None) -> Iterator[RejectedRows]:
    """Yield a list to which rejected rows are appended; a file is written as it grows.

    If there are none at the end, an older file is removed.
    """
    if path is None:
        yield RejectedRows(None, lambda rejects: None)
        return
    from fdgnn.files import check_writable, write_aside
    from fdgnn.prediction.output import REJECTS, record_writer

    check_writable(path)
    with record_writer(partial(write_aside, path), REJECTS) as write:
        found = RejectedRows(path, write)
        yield found
    if not found.n:
        path.unlink(missing_ok=True)


def report_rejects(
    rejects: Sequence[Reject], n_rows: int, context: Context, path: Path | None = None
) -> dict[str, object]:
    """Show and list rejected rows, and return their entries of a summary."""
    with listing(path) as found:
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
        where = "" if self.path is None else f", listed in {self.path}"
        if context.quiet:  # nothing is left out without a word
            where += f"; the first: {self.first[0]}"
        for reject in self.first:
            say(str(reject), context.quiet)
        say(f"{self.n} of {n_rows} rows rejected{where}")
        return {"rejected": self.n, "rejects": self.path and str(self.path)}


def check_outputs(
    force: bool, *outputs: str | Path | None, inputs: Sequence[str | Path] = ()
) -> None:
    """Raise an error now, rather than after the work, if something cannot be written.

    Files that exist are only overwritten with `force`, inputs never; "-" is standard output. No two
    outputs may be one file.
    """
    from fdgnn.files import check_writable

    seen: set[Path] = set()
    for output in outputs:
        if output is None or str(output) == "-":
            continue
        path = Path(output)
        if (place := path.absolute()) in seen:
            raise ValueError(f"{output}: two outputs have this name; give another one")
        seen.add(place)
        if is_url(str(output)):
            exists = place_exists(str(output))
        else:
            check_writable(path)
            exists = path.exists()
            if exists and any(Path(one).exists() and path.samefile(one) for one in inputs):
                raise ValueError(f"{output}: this is the input; give another name")
        if exists and not force:
            raise ValueError(
                f"{output}: the file exists; give another name, or --force to overwrite it"
            )


def read_all(
    data: str, how: ReadOptions, like: Any = None, target: str | list[str] | None = None
) -> tuple[GraphTable, GraphBatch]:
    """Read a table of which at least one row is valid, and report how many are not."""
    from fdgnn.datasets import read_graphs
    from fdgnn.exceptions import GraphError

    table = read_graphs(data, how, target=target, like=like)
    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be read; {table.rejects[0]}")
    if table.rejects:
        say(f"{len(table.rejects)} of {table.n_rows} rows left out; {table.rejects[0]}")
    return table, table.graphs


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

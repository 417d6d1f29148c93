"""Bad rows: shown on the terminal, and listed in a file beside the output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fdgnn.cli.app import say
from fdgnn.places import is_url

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Reject

SHOWN = 5  # bad rows that are shown on the terminal; the file lists all of them


@dataclass(frozen=True)
class RejectsFile:
    """Where to list bad rows: a file of the user's choice, or one beside the output."""

    path: Path | None

    @classmethod
    def beside(cls, output: str | Path, chosen: Path | None) -> RejectsFile:
        """Choose the file; an output that is printed, or named by a URL, has none beside it."""
        if chosen is not None or str(output) == "-" or is_url(str(output)):
            return cls(chosen)
        return cls(Path(output).with_name(f"{Path(output).name}.rejects.csv"))

    def write(self, rejects: Sequence[Reject], n_rows: int, context: Context) -> dict[str, object]:
        """Show and list bad rows, and return what a summary says of them.

        If there are none, an older list is removed.
        """
        if not rejects:
            if self.path is not None:
                self.path.unlink(missing_ok=True)
            return {"rejected": 0, "rejects": None}
        for reject in rejects[:SHOWN]:
            say(str(reject), context.quiet)
        where = ""
        if self.path is not None:
            from fdgnn.workflow.output import write_rejects

            write_rejects(self.path, rejects)
            where = f", listed in {self.path}"
        say(f"{len(rejects)} of {n_rows} rows rejected{where}", context.quiet)
        return {"rejected": len(rejects), "rejects": self.path and str(self.path)}


def check_outputs(data: str, output: str, rejects: RejectsFile) -> None:
    """Raise an error now, rather than after the work, if something cannot be written."""
    from fdgnn.files import check_writable

    written = None if output == "-" or is_url(output) else Path(output)
    for path in (written, rejects.path):
        if path is not None:
            check_writable(path)
            if path.exists() and Path(data).exists() and path.samefile(data):
                raise ValueError(f"{path}: it is the input; give another name")

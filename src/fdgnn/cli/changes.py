"""Molecules that standardization changed: counted on the terminal, and listed in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fdgnn.cli.app import say
from fdgnn.texts import agreeing

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Change


@dataclass(frozen=True)
class ChangesFile:
    """Where to list changed molecules; None if molecules are taken as they are."""

    path: Path | None

    @classmethod
    def beside(cls, output: Path, chosen: Path | None, standardize: str | None) -> ChangesFile:
        """Choose the file: the one asked for, or one beside the output."""
        from fdgnn.files import check_writable

        if standardize is None:
            if chosen is not None:
                raise ValueError("--changes lists what --standardize changes; give both")
            return cls(None)
        path = chosen or output.with_name(f"{output.name}.changes.csv")
        check_writable(path)
        return cls(path)

    def write(self, changes: Sequence[Change], n_rows: int, context: Context) -> dict[str, object]:
        """Count and list changed molecules, and return what a summary says of them.

        If there are none, an older list is removed.
        """
        if self.path is None:
            return {}
        if not changes:
            self.path.unlink(missing_ok=True)
            return {"changed": 0, "changes": None}
        from fdgnn.prediction.output import write_changes

        write_changes(self.path, changes)
        say(f"{_in_words(changes, n_rows)}; listed in {self.path}", context.quiet)
        return {"changed": len(changes), "changes": str(self.path)}


def _in_words(changes: Sequence[Change], n_rows: int) -> str:
    from fdgnn.graphs.standardizing import STEPS

    counts = Counter(step for change in changes for step in change.steps)
    done = ", ".join(f"{counts[step]} {words}" for step, words in STEPS.items() if counts[step])
    verb = agreeing(len(changes), "was", "were")
    return f"{len(changes)} of {n_rows} molecules {verb} changed: {done}"

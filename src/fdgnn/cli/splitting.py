"""``--split``: how the rows of a table are held out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from fdgnn.cli.app import say
from fdgnn.texts import agreeing

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.folds import Split

OPTION = "--split"
SplitWords = Annotated[
    str,
    typer.Option(
        metavar="random|scaffold|group COLUMN|time COLUMN",
        help="How graphs are held out: at random; molecules of one scaffold together; rows "
        "with one value in a column together; or rows that are later than the others.",
    ),
]
ALONE, OF_A_COLUMN = ("random", "scaffold"), ("group", "time")


class SplittingCommand(TyperCommand):
    """A command whose ``--split`` takes a second word, where the first asks for a column."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Make one word of both, since options have a fixed number of words."""
        return super().parse_args(ctx, joined(args))


def joined(words: list[str]) -> list[str]:
    """Join "group" or "time" after ``--split`` with the column that follows."""
    found: list[str] = []
    for word in words:
        last = found[-1] if found else ""
        asks = last in OF_A_COLUMN and found[-2:-1] == [OPTION]
        asks |= last in tuple(f"{OPTION}={name}" for name in OF_A_COLUMN)
        if asks and not word.startswith("-"):
            found[-1] = f"{last} {word}"
        else:
            found.append(word)
    return found


@dataclass(frozen=True)
class AskedSplit:
    """What ``--split`` asks for."""

    name: str = "random"
    column: str | None = None

    @classmethod
    def of(cls, words: str) -> AskedSplit:
        """Read "random", "scaffold", "group COLUMN" or "time COLUMN", or raise ValueError."""
        name, _, column = words.partition(" ")
        if name not in (*ALONE, *OF_A_COLUMN):
            known = "random, scaffold, group COLUMN or time COLUMN"
            raise ValueError(f"{OPTION} {name!r}: expected {known}")
        if name in OF_A_COLUMN and not column:
            raise ValueError(f"{OPTION} {name} needs a column: {OPTION} {name} COLUMN")
        return cls(name, column or None)

    @property
    def columns(self) -> list[str]:
        """The columns that are to be read for it."""
        return [] if self.column is None else [self.column]

    def of_table(self, table: GraphTable | None, context: Context) -> Split:
        """Make the split of a table that was read with these columns."""
        from fdgnn.folds import SCAFFOLD, Split

        if self.name == "random":
            return Split()
        if table is None:
            raise ValueError(f"{OPTION} {self.name} is for tables, and this is a TU dataset")
        if self.name == "scaffold":
            if table.smiles is None:
                raise ValueError(f"{OPTION} scaffold is for molecules, and these graphs are none")
            from fdgnn.evaluation.molecules import murcko_scaffolds

            return Split("group", murcko_scaffolds(table.smiles, context.n_jobs), SCAFFOLD)
        import numpy as np

        from fdgnn.graphs.descriptors import is_missing

        assert self.column is not None
        values = np.array(table.columns[self.column], dtype=object)
        empty = [i for i, value in enumerate(values) if is_missing(value)]
        missing = len(empty)
        if self.name == "time":
            if missing:
                first = f"the first in row {table.start + int(table.rows[empty[0]])}"
                raise ValueError(
                    f"{OPTION} time: {missing} of {len(values)} graphs "
                    f"{agreeing(missing, 'has', 'have')} no value in {self.column!r}, {first}; "
                    f"fill {agreeing(missing, 'it', 'them')} in, or leave such rows out"
                )
            found = Split("time", values, self.column)
            try:
                found.order(len(values))
            except ValueError as error:
                raise ValueError(f"{OPTION} time {self.column}: {error}") from None
            return found
        if missing:
            say(
                f"{missing} of {len(values)} graphs {agreeing(missing, 'has', 'have')} no value in "
                f"{self.column!r}; {agreeing(missing, 'it is', 'they are')} one group, and held "
                "out together",
                context.quiet,
            )
        return Split("group", values, self.column)

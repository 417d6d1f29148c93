"""From rows of a file to graphs: what the readers of all kinds of files have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from fdgnn.exceptions import GraphError
from fdgnn.graphs.raw import Raw

Cells = Mapping[str, Any]


class RowReader(Protocol):
    """The way from the rows of a file to graphs."""

    def many(self, rows: Iterable[Cells]) -> Iterator[Raw | GraphError]:
        """Read a graph from each row; for one that has none, give the error that says why."""


@dataclass(frozen=True)
class RowByRow:
    """A reader by a function that reads one row, or raises GraphError."""

    read: Callable[[Cells], Raw]

    def many(self, rows: Iterable[Cells]) -> Iterator[Raw | GraphError]:
        """Read a graph from each row; for one that has none, give the error that says why."""
        for row in rows:
            try:
                found: Raw | GraphError = self.read(row)
            except GraphError as error:
                found = error
            yield found

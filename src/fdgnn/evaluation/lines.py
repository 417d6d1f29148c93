"""Files with one record per line, appended by processes that may be killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from fdgnn.records import Record, decode, encode

T = TypeVar("T", bound=Record)


class RecordLines(Generic[T]):
    """A file with one record per line.

    Parameters
    ----------
    path : Path
        It need not be there yet.
    kind : type
        A record, or a union of records.
    """

    def __init__(self, path: Path, kind: Any) -> None:
        self.path = path
        self._kind = kind

    def lines(self) -> Iterator[T | None]:
        """Give the records in their order, and None for each line that cannot be read."""
        if self.path.is_file():
            with self.path.open("rb") as lines:
                yield from map(self._record, lines)

    def __iter__(self) -> Iterator[T]:
        """Give the records; lines that cannot be read do not count."""
        return (record for record in self.lines() if record is not None)

    def append(self, record: T) -> None:
        """Add a line."""
        with self.path.open("ab") as file:
            file.write(encode(record) + b"\n")

    def drop_torn_line(self) -> None:
        """Remove what a killed process has left of its last line, before others append."""
        if self.path.is_file():
            data = self.path.read_bytes()
            complete = data.rfind(b"\n") + 1
            if complete < len(data):
                with self.path.open("r+b") as file:
                    file.truncate(complete)

    def _record(self, line: bytes) -> T | None:
        try:
            record: T = decode(line, self._kind)
        except ValueError:
            return None
        return record

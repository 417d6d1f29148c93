"""One large output file, resumable: finished pieces lie beside it and are joined at the end.

A result with fewer rows than a piece is written at once. A larger one has a folder
``.NAME.pieces``, where each piece is a file with a record. A command that was killed goes on after
the last of them, unless the model, the input or what was asked for has changed.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fdgnn.datasets import Reject
from fdgnn.extras import require
from fdgnn.files import check_writable, exclusive, write_aside
from fdgnn.prediction.output import kind_of, rows_writer
from fdgnn.prediction.predictor import PredictedRows
from fdgnn.records import Record, decode, encode

ROWS = 100_000  # of a piece, at least


class BadRowRecord(Record, frozen=True):
    """A row that could not be predicted."""

    row: int
    id: str | int | float | None
    reason: str


class PieceRecord(Record, frozen=True, kw_only=True):
    """What is known of the rows of a finished piece."""

    made_by: str  # a hash of model, input and what was asked for
    rows: int
    unseen: int
    unlike: int
    changed: int
    rejects: list[BadRowRecord]

    @property
    def counts(self) -> Counts:
        """The same, to be added up."""
        return Counts(self.rows, self.unseen, self.unlike, self.changed, len(self.rejects))


@dataclass
class Counts:
    """What is told of all rows at the end."""

    rows: int = 0
    unseen: int = 0
    unlike: int = 0
    changed: int = 0
    rejected: int = 0

    def add(self, some: PredictedRows | Counts) -> None:
        """Count some more rows."""
        if isinstance(some, PredictedRows):
            some = Counts(
                len(some), some.n_unseen, some.n_unlike, some.n_changed, len(some.rejects)
            )
        self.rows += some.rows
        self.unseen += some.unseen
        self.unlike += some.unlike
        self.changed += some.changed
        self.rejected += some.rejected


class PiecedFile:
    """An output file that is written piece by piece.

    Parameters
    ----------
    output : str
        A path; the ending says the kind.
    made_by : str
        What the pieces depend on; those of something else are deleted.
    guard : bool
        As in `fdgnn.prediction.output.prediction_writer`.
    n_rows : int, optional
        Rows of a piece, at least; by default `ROWS`.
    """

    def __init__(
        self, output: str, made_by: str, guard: bool = True, n_rows: int | None = None
    ) -> None:
        self.path, self.kind = Path(output), kind_of(output)
        self.made_by, self.guard, self.n_rows = made_by, guard, n_rows or ROWS
        check_writable(self.path)
        self.folder = self.path.with_name(f".{self.path.name}.pieces")
        self.done = Counts()  # by an earlier command
        self.n_pieces = 0

    def _resume(self) -> None:
        """Find the pieces of an earlier command; delete those of another model or input."""
        while (found := self._record(self.n_pieces)) is not None:
            self.done.add(found.counts)
            self.n_pieces += 1
        if self.n_pieces == 0:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _record(self, number: int) -> PieceRecord | None:
        try:
            found = decode(self._place(number, ".json").read_bytes(), PieceRecord)
        except (OSError, ValueError):
            return None
        return found if found.made_by == self.made_by else None

    def earlier_rejects(self) -> Iterator[list[Reject]]:
        """Yield the rejected rows of each piece that an earlier command has written."""
        for number in range(self.n_pieces):
            found = self._record(number)
            if found is not None:
                yield [Reject(each.row, each.id, each.reason) for each in found.rejects]

    def _place(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:06d}{suffix}"

    @contextmanager
    def writing(self) -> Iterator[Callable[[PredictedRows], None]]:
        """Give a function that appends rows; at the end, the file is there.

        Raises
        ------
        FileExistsError
            Another process is writing the file, whose pieces must not be mixed with these.
        """
        with exclusive(self.path):
            self._resume()
            with self._writing() as write:
                yield write

    @contextmanager
    def _writing(self) -> Iterator[Callable[[PredictedRows], None]]:
        piece = _Piece(self.kind, self.guard, header=self.n_pieces == 0)

        def write(rows: PredictedRows) -> None:
            nonlocal piece
            piece.add(rows)
            if piece.counts.rows >= self.n_rows:
                self._keep(piece)
                piece = _Piece(self.kind, self.guard, header=False)

        yield write
        if self.n_pieces and piece.counts.rows:
            self._keep(piece)
        with write_aside(self.path) as file:
            if self.n_pieces:
                self._join(file)
            else:
                file.write(piece.content())
        shutil.rmtree(self.folder, ignore_errors=True)

    def _keep(self, piece: _Piece) -> None:
        """Write a piece and then its record, without which it does not count."""
        counts, number = piece.counts, self.n_pieces
        bad = [BadRowRecord(each.row, each.id, each.reason) for each in piece.rejects]
        record = PieceRecord(
            made_by=self.made_by,
            rows=counts.rows,
            unseen=counts.unseen,
            unlike=counts.unlike,
            changed=counts.changed,
            rejects=bad,
        )
        for suffix, content in ((self.kind, piece.content()), (".json", encode(record))):
            with write_aside(self._place(number, suffix)) as file:
                file.write(content)
        self.n_pieces += 1

    def _join(self, file: IO[bytes]) -> None:
        paths = [self._place(number, self.kind) for number in range(self.n_pieces)]
        if self.kind == ".parquet":
            _join_parquet(paths, file)
            return
        for path in paths:
            with path.open("rb") as piece:
                shutil.copyfileobj(piece, file, 1 << 20)


class _Piece:
    """Rows of a piece, as they will be in its file."""

    def __init__(self, kind: str, guard: bool, header: bool) -> None:
        self.counts, self._file = Counts(), io.BytesIO()
        self.rejects: list[Reject] = []
        self._writer = rows_writer(self._file, kind, guard, header=header)
        self._write: Any = self._writer.__enter__()

    def add(self, rows: PredictedRows) -> None:
        self._write(rows.columns)
        self.counts.add(rows)
        self.rejects += rows.rejects

    def content(self) -> bytes:
        """Close the piece, and give its bytes."""
        self._writer.__exit__(None, None, None)
        return self._file.getvalue()


def _join_parquet(paths: list[Path], file: IO[bytes]) -> None:
    pq = require("pyarrow.parquet", "tables", "Parquet files")
    writer = None
    for path in paths:
        with pq.ParquetFile(path) as piece:
            writer = writer or pq.ParquetWriter(file, piece.schema_arrow)
            for batch in piece.iter_batches():
                writer.write_batch(batch)
    if writer is not None:
        writer.close()

"""Rows as CSV, JSON lines or Parquet: a file is complete, or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from fdgnn import files
from fdgnn.datasets.tables import xlsx_rows
from fdgnn.extras import require
from fdgnn.texts import guarded, printable

Table = Mapping[str, list[Any]]  # some rows of output, by column
KINDS = (".csv", ".jsonl", ".parquet", ".xlsx")
REJECTS = ("row", "id", "reason")  # columns of a list of rejected rows
CHANGES = ("row", "id", "before", "after", "steps")  # of a list of changed molecules


@contextmanager
def table_writer(
    output: str, guard: bool = True, *, as_json: bool = False
) -> Iterator[Callable[[Table], None]]:
    """Yield a function that appends rows to `output`; "-" prints them.

    They are printed as CSV or, `as_json`, as an object per line. With `guard`, text in a CSV file
    that a spreadsheet would run as a formula begins with a quote.

    Raises
    ------
    FileExistsError
        Another process is writing the file.
    """
    if output == "-":
        yield _printer(as_json, guard)
        return
    kind = Path(output).suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"{output}: its ending must be one of {', '.join(KINDS)}")
    is_url = files.is_url(output)
    opened = files.write_place(output) if is_url else files.write_aside(Path(output), alone=True)
    with opened as file, rows_writer(file, kind, guard) as write:
        yield write


@contextmanager
def record_writer(
    place: str | Path | None, columns: Sequence[str]
) -> Iterator[Callable[[Sequence[Any]], None]]:
    """Yield a function that appends records to a CSV file, opened at the first record.

    Records are written as they come, because all of them may not fit in memory. Without a place,
    nothing is written.
    """
    with ExitStack() as stack:
        write: Callable[[Table], None] | None = None

        def append(records: Sequence[Any]) -> None:
            nonlocal write
            if place is None or not records:
                return
            if write is None:
                file = stack.enter_context(files.write_place(str(place)))
                write = stack.enter_context(rows_writer(file, ".csv"))
            table = {name: [getattr(each, name) for each in records] for name in columns}
            write(
                {n: [" ".join(x) if isinstance(x, tuple) else x for x in table[n]] for n in table}
            )

        yield append


@contextmanager
def rows_writer(
    file: IO[bytes], kind: str, guard: bool = True
) -> Iterator[Callable[[Table], None]]:
    """Yield a function that appends rows to an open file."""
    if kind in (".parquet", ".xlsx"):
        with (_parquet_rows if kind == ".parquet" else xlsx_rows)(file) as write:
            yield write
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    yield _csv_rows(text, guarded if guard else str) if kind == ".csv" else _json_rows(text)
    text.flush()
    text.detach()


def _printer(as_json: bool, guard: bool) -> Callable[[Table], None]:
    """Return a function that prints rows."""
    if sys.stdout is None:
        raise ValueError("standard output is closed; give -o NAME to write a file")
    escape: Callable[[str], str] = guarded if guard else str
    if sys.stdout.isatty():
        escape = printable
    rows = _json_rows(sys.stdout) if as_json else _csv_rows(sys.stdout, escape)

    def write_now(table: Table) -> None:
        try:
            rows(table)
            sys.stdout.flush()  # for whoever waits at the other end of a pipe
        except OSError as error:
            error.filename = error.filename or "standard output"
            raise

    return write_now


def _csv_rows(file: IO[str], escape: Callable[[str], str]) -> Callable[[Table], None]:
    writer = csv.writer(file, lineterminator="\n")
    with_header = True

    def cell(value: Any) -> Any:
        return escape(value) if isinstance(value, str) else value

    def write(table: Table) -> None:
        nonlocal with_header
        if with_header:  # wait for the first rows: if there is an error, it should come alone
            writer.writerow(map(escape, table))
        with_header = False
        # Only text has to be looked at.
        columns = [list(map(cell, c)) if _has_text(c) else c for c in table.values()]
        writer.writerows(zip(*columns, strict=True))

    return write


def _has_text(column: list[Any]) -> bool:
    return str in set(map(type, column))


def _json_rows(file: IO[str]) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        rows = zip(*table.values(), strict=True)
        file.writelines(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows)

    return write


# Columns of text, of which the first rows may have nothing: Parquet wants to know the type at once.
_TEXT = ("out_of_domain", "warning", "error", "standardized", "smiles")


@contextmanager
def _parquet_rows(file: IO[bytes]) -> Iterator[Callable[[Table], None]]:
    pa = require("pyarrow", "tables", "Parquet files")
    pq = require("pyarrow.parquet", "tables", "Parquet files")
    opened: list[Any] = []

    def column(name: str, values: list[Any]) -> Any:
        if _has_text(values) or name in _TEXT:
            values, kind = [None if x is None else str(x) for x in values], pa.string()
        else:
            kind = None if any(x is not None for x in values) else pa.float64()
        known = opened[0].schema.field(name).type if opened else kind
        try:
            return pa.array(values, type=known)
        except pa.ArrowInvalid as error:
            raise ValueError(f"column {name!r} has values of different kinds ({error})") from error

    def write(table: Table) -> None:
        columns = {name: column(name, values) for name, values in table.items()}
        if not opened:
            made = pa.table(columns)
            opened.append(pq.ParquetWriter(file, made.schema))
        opened[0].write_table(pa.table(columns, schema=opened[0].schema))

    yield write
    for writer in opened:
        writer.close()

"""Tables as text: CSV, TSV and JSON lines, streamed, packed by gzip or not.

A line that cannot be read is one bad row; the lines after it are read as usual.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import sys
import zlib
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import IO

from fdgnn.datasets.rows import BadRow, Row
from fdgnn.exceptions import DatasetFormatError

STANDARD_INPUT = "-"
GZIP = b"\x1f\x8b"
LOOK_AHEAD = 100  # rows whose keys are the columns; also the lines that a quoted field may span
LONGEST_FIELD = 1 << 27  # the csv module's own limit is less than a graph of 10,000 edges

Columns = list[str]


def name_of(path: str | os.PathLike[str]) -> str:
    """Say how messages name a file."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def read_lines(path: str | Path) -> Iterator[str]:
    """Yield the lines that are not blank, without their ends.

    Bytes that are not UTF-8 become replacement characters, so that a name with an accent in an
    unused column does not stop the reading.
    """
    try:
        with _open(path) as stream:
            for line in stream:
                text = line.decode("utf-8-sig", errors="replace").rstrip("\r\n")
                if text and not text.isspace():
                    yield text
    except (OSError, EOFError, zlib.error) as error:
        why = getattr(error, "strerror", None) or error
        raise DatasetFormatError(f"{name_of(path)}: it cannot be read ({why})") from error


@contextmanager
def _open(path: str | Path) -> Iterator[IO[bytes]]:
    if str(path) == STANDARD_INPUT:
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as stream:
        packed = stream.read(2) == GZIP
        stream.seek(0)
        if packed:
            with gzip.open(stream) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield stream


# ---------------------------------------------------------------------- JSON lines


def read_jsonl(path: str | Path) -> tuple[Columns, Iterator[Row]]:
    """Find the columns, as the first rows have them, and the rows, one per line."""
    lines = read_lines(path)
    first_lines = list(islice(lines, LOOK_AHEAD))
    if not first_lines:
        raise DatasetFormatError(f"{name_of(path)}: the file is empty")
    first = [_json_row(line) for line in first_lines]
    columns = list(dict.fromkeys(chain.from_iterable(r for r in first if isinstance(r, dict))))
    if not columns or first_lines[0].strip() == "[":
        why = next((r.reason for r in first if isinstance(r, BadRow)), "it is empty")
        raise DatasetFormatError(
            f"{name_of(path)}: expected JSON lines, an object each; in the first line, {why}"
        )
    return columns, chain(first, map(_json_row, lines))


def _json_row(line: str) -> Row:
    try:
        record = json.loads(line)
    except RecursionError:
        return BadRow("it is not JSON, but nested too deeply")
    except ValueError as error:
        return BadRow(f"it is not JSON ({error})")
    if isinstance(record, dict):
        return record
    return BadRow(f"it is a JSON {type(record).__name__}, expected an object")


# ---------------------------------------------------------------------- CSV


def read_csv(path: str | Path, delimiter: str | None = None) -> tuple[Columns, Iterator[Row]]:
    """Find the columns, as the header names them, and the rows, one per line, as text.

    Without a delimiter, the one that the header has most of is taken.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    lines = read_lines(path)
    header = next(lines, None)
    if header is None:
        raise DatasetFormatError(f"{name_of(path)}: the file is empty")
    delimiter = delimiter or max(",;\t|", key=header.count)
    fields = _fields([header], delimiter, strict=False)
    if not fields or "\0" in header:
        raise DatasetFormatError(
            f"{name_of(path)}: its first line is not a CSV header; save it as UTF-8 text"
        )
    columns = [name.strip() for name in fields]
    return columns, _csv_rows(lines, columns, delimiter)


def _csv_rows(lines: Iterator[str], columns: Columns, delimiter: str) -> Iterator[Row]:
    waiting: deque[str] = deque()
    while waiting or (waiting := deque(islice(lines, 1))):
        fields = _fields([waiting[0]], delimiter, strict=True)
        n_lines = 1
        if waiting[0].count('"') % 2 and (fields is None or len(fields) != len(columns)):
            # A quoted field may span lines, but a stray quote must not swallow the rest.
            waiting.extend(islice(lines, LOOK_AHEAD - len(waiting)))
            fields, n_lines = _spanning(list(waiting), columns, delimiter)
        if fields is None:
            fields = _fields([waiting[0]], delimiter, strict=False) or []
        for _ in range(n_lines):
            waiting.popleft()
        if len(fields) == len(columns):
            yield dict(zip(columns, fields, strict=True))
        else:
            yield BadRow(f"it has {len(fields)} fields, but the header has {len(columns)}")


def _spanning(lines: list[str], columns: Columns, delimiter: str) -> tuple[list[str] | None, int]:
    """Read a row from as few lines as possible; None, from one line, if it is impossible."""
    for n in range(2, len(lines) + 1):
        if lines[n - 1].count('"') % 2:
            fields = _fields([line + "\n" for line in lines[:n]], delimiter, strict=True)
            if fields is not None and len(fields) == len(columns):
                return fields, n
    return None, 1


def _fields(lines: list[str], delimiter: str, *, strict: bool) -> list[str] | None:
    """Split a row into fields; None if the lines hold no row, or more than one."""
    try:
        records = list(csv.reader(lines, delimiter=delimiter, strict=strict))
    except csv.Error:
        return None
    return records[0] if len(records) == 1 else None

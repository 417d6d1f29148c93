"""Parquet and Arrow (Feather) files, read batch by batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np

from fdgnn import limits
from fdgnn.arrays import Ints
from fdgnn.datasets.files import Expansion
from fdgnn.datasets.rows import Row
from fdgnn.exceptions import DatasetError, DatasetFormatError
from fdgnn.extras import require

BATCH = 4096  # rows in memory at a time
ENTRIES = 1 << 24  # entries of a Parquet column in memory at a time, about
EMPTY_ROW = 64  # bytes that a row takes here, at least
LEAST_MEMORY = 2**30  # bytes that reading any file may take
BYTES_PER_SECOND = 50_000  # a second more for so many bytes, which may unpack to 10 MB

Reader = tuple[list[str], Callable[[Sequence[str]], Iterator[Row]]]


def read_arrow(path: Path, format: str) -> Reader:
    """Find the columns of a file; return them and a function from the wanted ones to rows.

    A process of its own reads the file (`arrow_child`, docs/decisions/0046-arrow-in-a-child.md).
    """
    pa = require("pyarrow", "tables", "Parquet and Arrow files")
    if format == "parquet":
        require("pyarrow.parquet", "tables", "Parquet files")
    with _readable(path, pa):
        child = _Child(path, format)

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        expansion = Expansion(str(path), path.stat().st_size)
        with _readable(path, pa):
            for batch in child.batches(list(wanted), replace(expansion)):
                batch.validate(full=True)
                expansion.add(batch.nbytes + EMPTY_ROW * len(batch))
                yield from _rows(batch, wanted)

    return child.columns, rows


@contextmanager
def _readable(path: Path, pa: Any) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, LookupError) as error:
        why = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise DatasetFormatError(
            f"{path}: it cannot be read ({why}); get the file again"
        ) from error


class _Child:
    """The process that reads one file, and what it says."""

    def __init__(self, path: Path, format: str) -> None:
        size = path.stat().st_size
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        self._process = start_reader(self._complaints)
        weakref.finalize(self, _end, self._process, self._complaints)
        self._tell({
            "path": str(path.absolute()), "format": format, "sys_path": sys.path,
            "rows": BATCH, "entries": ENTRIES,
            "bytes": int(max(LEAST_MEMORY, 2 * limits.MAX_EXPANSION.value * size)),
            "seconds": int(limits.MAX_READER_SECONDS.value + size / BYTES_PER_SECOND),
        })  # fmt: skip
        self.columns: list[str] = self._answer()

    def batches(self, wanted: list[str], expansion: Expansion) -> Iterator[Any]:
        """Read the wanted columns; there are no other ones after that."""
        import pyarrow as pa

        self._tell(wanted)
        expansion.add(self._answer())
        try:
            yield from pa.ipc.open_stream(self._process.stdout)
        except (pa.ArrowException, OSError) as error:  # mostly fewer bytes than expected
            raise ValueError(self._why() or str(error)) from error
        if why := self._why():
            raise ValueError(why)

    def _tell(self, what: Any) -> None:
        with suppress(BrokenPipeError):  # it is noticed when the answer does not come
            self._process.stdin.write(json.dumps(what).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise ValueError(self._why() or "it was not read to its end")
        return json.loads(line)

    def _why(self) -> str | None:
        """Return why the process ended; None if it finished its task."""
        code = self._process.wait()
        if code < 0:
            name = signal.Signals(-code).name
            too_long = f"reading it took too long; {limits.MAX_READER_SECONDS.in_words}"
            return too_long if name == "SIGXCPU" else f"reading it ended a process by {name}"
        self._complaints.seek(0)
        lines = self._complaints.read().splitlines()
        if code and lines and lines[-1].startswith(b'"'):
            return str(json.loads(lines[-1]))
        return f"reading it ended a process with {code}" if code else None


def start_reader(complaints: IO[bytes]) -> Any:
    """Start a process that runs `arrow_child.main`."""
    # Arenas and pools of several threads would count as memory that is taken.
    plain = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("arrow_child.py"))],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=complaints, env=os.environ | plain,
    )  # fmt: skip


def _end(process: Any, complaints: IO[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, complaints):
        with suppress(OSError):
            pipe.close()
    process.kill()
    process.wait()


def _rows(batch: Any, wanted: Sequence[str]) -> Iterator[Row]:
    columns = [cells(batch.column(name)) for name in wanted]
    return (dict(zip(wanted, entries, strict=True)) for entries in zip(*columns, strict=True))


# ---------------------------------------------------------------------- from Arrow to NumPy


def cells(column: Any) -> list[Any]:
    """Read one entry per row: an array for numbers or lists of numbers, else Python's own type.

    The arrays are views of the column's memory. A ragged list of lists stays a list.
    """
    import pyarrow.types as types

    while isinstance(column.type, _extension()):
        column = column.storage
    if types.is_fixed_size_list(column.type):
        column = _variable(column)
    if not _is_list(column.type):
        return list(column.to_pylist())
    inner = column.values
    if types.is_fixed_size_list(inner.type):
        inner = _variable(inner)
    if inner.null_count or (_is_list(inner.type) and inner.values.null_count):
        return list(column.to_pylist())  # only some rows have nulls, and the others are good
    offsets = column.offsets.to_numpy()
    null = column.is_null().to_numpy(zero_copy_only=False)
    if _is_numeric(inner.type):
        values = inner.to_numpy(zero_copy_only=False)
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), null, strict=True)
        return [None if missing else values[a:b] for a, b, missing in bounds]
    if _is_list(inner.type) and _is_numeric(inner.values.type):
        return _matrices(column, offsets, inner, null)
    return list(column.to_pylist())


def _matrices(column: Any, rows: Ints, inner: Any, null: Any) -> list[Any]:
    ends = inner.offsets.to_numpy()
    values = inner.values.to_numpy(zero_copy_only=False)
    widths = np.diff(ends)
    # Count the changes of width so far: a row is a matrix if none falls inside it.
    changes = np.concatenate([[0], np.cumsum(widths[1:] != widths[:-1])])
    found: list[Any] = []
    for i, (a, b) in enumerate(zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True)):
        if null[i]:
            found.append(None)
        elif a == b:
            found.append(values[:0])
        elif changes[a] == changes[b - 1]:
            found.append(values[ends[a] : ends[b]].reshape(b - a, widths[a]))
        else:
            found.append(column[i].as_py())
    return found


def _extension() -> Any:
    import pyarrow

    return pyarrow.BaseExtensionType


def _is_list(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_list(kind) or types.is_large_list(kind))


def _is_numeric(kind: Any) -> bool:
    import pyarrow.types as types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _variable(column: Any) -> Any:
    """Turn lists of one length into lists of any length."""
    import pyarrow

    return column.cast(pyarrow.list_(column.type.value_type))

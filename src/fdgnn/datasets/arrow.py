"""Parquet and Arrow (Feather) files, read batch by batch."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import numpy as np

from fdgnn import limits
from fdgnn.datasets.files import DAMAGE, Expansion, readable
from fdgnn.datasets.rows import Row
from fdgnn.datasets.tables import Table
from fdgnn.extras import require

BATCH = 4096  # rows in memory at a time
BATCH_BYTES = 1 << 26  # bytes of a Parquet file, unpacked, that are decoded at a time, about
EMPTY_ROW = 64  # bytes that a row takes here, at least
LEAST_MEMORY = 2**30  # bytes that reading any file may take
BYTES_PER_SECOND = 50_000  # a second more for so many bytes, which may unpack to 10 MB


def read_arrow(path: Path, format: str) -> Table:
    """Find the columns of a file; return them and a function from the wanted ones to rows.

    A process of its own reads the file (`arrow_child`, docs/decisions/0046-arrow-in-a-child.md).
    """
    pa = require("pyarrow", "tables", "Parquet and Arrow files")
    if format == "parquet":
        require("pyarrow.parquet", "tables", "Parquet files")
    remedy, damage = "; get the file again", (*DAMAGE, OverflowError, pa.ArrowException)
    with readable(path, remedy, damage):
        child = _Child(path, format)

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        with readable(path, remedy, damage):
            expansion = Expansion(str(path), path.stat().st_size)
            for batch in child.batches(wanted):
                batch.validate(full=True)
                n_nested = sum(map(n_entries, batch.columns))
                expansion.add(batch.nbytes + EMPTY_ROW * len(batch) + n_nested)
                columns = [cells(batch.column(name)) for name in wanted]
                for entries in zip(*columns, strict=True):
                    yield dict(zip(wanted, entries, strict=True))

    return child.columns, rows


class _Child:
    """The process that reads one file, and its messages."""

    columns: list[str]

    def __init__(self, path: Path, format: str) -> None:
        size = path.stat().st_size
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 -- closed with the process
        self._process = start_reader(self._complaints)
        weakref.finalize(self, _end, self._process, self._complaints)
        self._send({
            "path": str(path.absolute()), "format": format, "sys_path": sys.path,
            "rows": BATCH, "batch_bytes": BATCH_BYTES,
            "bytes": int(max(LEAST_MEMORY, 2 * limits.MAX_EXPANSION.value * size)),
            "seconds": int(limits.MAX_READER_SECONDS.value + size / BYTES_PER_SECOND),
        })  # fmt: skip
        answer = self._process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise ValueError(self._why() or "not read to its end")
        self.columns = json.loads(answer)

    def batches(self, wanted: Sequence[str]) -> Iterator[Any]:
        """Read the requested columns, and drop all others."""
        import pyarrow as pa

        self._send(wanted)
        try:
            yield from pa.ipc.open_stream(self._process.stdout)
        except (pa.ArrowException, OSError) as error:  # mostly fewer bytes than expected
            raise ValueError(self._why() or str(error)) from error
        if why := self._why():
            raise ValueError(why)

    def _send(self, message: Any) -> None:
        with suppress(BrokenPipeError):  # it is noticed when the answer does not come
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def _why(self) -> str | None:
        """Return why the process ended; None if it finished its task."""
        code = self._process.wait()
        if code == 0:
            return None
        if code < 0:
            name = signal.Signals(-code).name
            too_long = f"reading it took too long; {limits.MAX_READER_SECONDS.in_words}"
            return too_long if name == "SIGXCPU" else f"reading it ended a process by {name}"
        self._complaints.seek(0)
        last = self._complaints.read().splitlines()[-1:]
        if last and last[0].startswith(b'"'):
            return str(json.loads(last[0]))
        return f"reading it ended a process with {code}"


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


# ---------------------------------------------------------------------- from Arrow to NumPy


def n_entries(column: Any) -> int:
    """Count the entries of nested lists, some of which take no memory as Arrow stores them."""
    import pyarrow as pa

    while isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if isinstance(column, pa.StructArray | pa.UnionArray):
        return sum(n_entries(column.field(i)) for i in range(column.type.num_fields))
    values = getattr(column, "values", None)
    return 0 if values is None else len(values) + n_entries(values)


def cells(column: Any) -> list[Any]:
    """Read one entry per row: an array for numbers or lists of numbers, else Python's own type.

    The arrays are views of the column's memory. A ragged list of lists stays a list.
    """
    import pyarrow as pa

    def is_list(array: Any) -> bool:
        return bool(pa.types.is_list(array.type) or pa.types.is_large_list(array.type))

    def plain(array: Any) -> Any:
        """Return an array without its extension type; lists of one length as lists of any."""
        while isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        is_fixed = pa.types.is_fixed_size_list(array.type)
        return array.cast(pa.list_(array.type.value_type)) if is_fixed else array

    column = plain(column)
    inner = plain(column.values) if is_list(column) else column
    numbers = inner.values if is_list(inner) else inner
    kind = numbers.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if inner is column or not numeric or inner.null_count or numbers.null_count:
        return list(column.to_pylist())  # only some rows have nulls, and the others are good
    values = numbers.to_numpy(zero_copy_only=False)
    ends = inner.offsets.to_numpy() if is_list(inner) else np.empty(0, dtype=np.int64)
    widths = np.diff(ends)
    # Count the changes of width so far: a row is a matrix if none falls inside it.
    changes = np.concatenate([[0], np.cumsum(widths[1:] != widths[:-1])])
    null = column.is_null().to_numpy(zero_copy_only=False)
    offsets = column.offsets.to_numpy().tolist()
    found: list[Any] = []
    for i, (a, b) in enumerate(pairwise(offsets)):
        if null[i]:
            found.append(None)
        elif numbers is inner:
            found.append(values[a:b])
        elif a == b:
            found.append(values[:0])
        elif changes[a] == changes[b - 1]:
            found.append(values[ends[a] : ends[b]].reshape(b - a, widths[a]))
        else:
            found.append(column[i].as_py())
    return found

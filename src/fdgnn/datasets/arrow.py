"""Parquet and Arrow (Feather) files, read batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.datasets.files import Expansion
from fdgnn.datasets.rows import Row
from fdgnn.exceptions import DatasetError, DatasetFormatError
from fdgnn.extras import require

BATCH = 4096  # rows in memory at a time
ENTRIES = 1 << 24  # entries of a Parquet column in memory at a time, about
EMPTY_ROW = 64  # bytes that a row takes here, at least

Reader = tuple[list[str], Callable[[Sequence[str]], Iterator[Row]]]


def read_parquet(path: Path) -> Reader:
    """Find the columns; return them and a function from the wanted ones to rows."""
    pa = _pyarrow()
    with _readable(path, pa):
        file = require("pyarrow.parquet", "tables", "Parquet files").ParquetFile(path)
        columns = list(file.schema_arrow.names)

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        expansion = Expansion(str(path), path.stat().st_size)
        with _readable(path, pa), file:
            n_rows = _rows_in_a_batch(file.metadata, wanted, replace(expansion))
            for batch in file.iter_batches(n_rows, columns=list(wanted)):
                yield from _rows(_sound(batch, wanted, expansion), wanted)

    return columns, rows


def read_arrow(path: Path) -> Reader:
    """Find the columns of a file or stream; return them and a function from some to rows."""
    pa = _pyarrow()
    with _readable(path, pa):
        source = pa.memory_map(str(path))
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        reader = pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)
        columns = list(reader.schema.names)

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        expansion = Expansion(str(path), path.stat().st_size)
        with _readable(path, pa), source, reader:
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            for batch in (_sound(each, wanted, expansion) for each in batches):
                for start in range(0, len(batch), BATCH):
                    yield from _rows(batch.slice(start, BATCH), wanted)

    return columns, rows


def _pyarrow() -> Any:
    return require("pyarrow", "tables", "Parquet and Arrow files")


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


def _sound(batch: Any, wanted: Sequence[str], expansion: Expansion) -> Any:
    """Give the wanted columns, all their memory checked, and count what they take.

    Arrow itself trusts a file: one with offsets that point outside its buffers would end the
    process as soon as an entry is read, or its size is asked for. A row without content takes
    nothing there, and some bytes here.
    """
    found = batch.select(list(wanted))
    found.validate(full=True)
    expansion.add(found.nbytes + EMPTY_ROW * len(found))
    return found


def _rows_in_a_batch(metadata: Any, wanted: Sequence[str], expansion: Expansion) -> int:
    """So many rows of a Parquet file that their entries fit in memory.

    A few bytes can say "a million times the same entry".
    """
    most = 1.0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.path_in_schema.split(".")[0] in wanted:
                expansion.add(column.num_values)
                most = max(most, column.num_values / max(group.num_rows, 1))
    return max(1, min(BATCH, int(ENTRIES / most)))


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

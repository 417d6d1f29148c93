"""Excel workbooks (.xlsx): the first sheet is a table, whose first row names the columns."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import IO, Any

from fdgnn.datasets.files import check_archive
from fdgnn.datasets.rows import BadRow, Row
from fdgnn.datasets.tables import BLANK
from fdgnn.exceptions import DatasetError, DatasetFormatError, warn_unused
from fdgnn.extras import require
from fdgnn.limits import MAX_ROW_BYTES
from fdgnn.texts import unguarded

WHAT = "Excel files (.xlsx)"


def read_xlsx(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Find the columns, as the first row that is not blank names them, and the rows."""
    openpyxl = require("openpyxl", "tables", WHAT)
    with _readable(path):
        with zipfile.ZipFile(path) as archive:
            check_archive(archive.infolist(), path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet, *others = book.worksheets
        sheet.reset_dimensions()  # what a file claims its size to be is not needed
        rows = _rows(path, sheet)
        header = next((row for row in rows if isinstance(row, list)), None)
    if header is None:
        raise DatasetFormatError(f"{path}: its sheet {sheet.title!r} is empty")
    if filled := [other.title for other in others if any(map(any, _first_rows(other)))]:
        remedy = "save the sheet that you mean as a file of its own"
        warn_unused(str(path), {f"the sheets {', '.join(map(repr, filled))}": remedy})
    columns = [str("" if name is None else name).strip() for name in header]
    return columns, (_named(row, columns) for row in rows)


def _first_rows(sheet: Any) -> Iterator[tuple[Any, ...]]:
    return iter(sheet.iter_rows(max_row=1, values_only=True))


def _rows(path: Path, sheet: Any) -> Iterator[list[Any] | BadRow]:
    """Yield the cells of each row; blank rows at the beginning and the end are left out."""
    n_blank, begun, most = 0, False, MAX_ROW_BYTES.value
    with _readable(path):
        for cells in sheet.iter_rows(values_only=True):
            if all(cell is None for cell in cells):
                n_blank += begun
                continue
            yield from repeat(BLANK, n_blank)
            n_blank, begun = 0, True
            if sum(len(cell) for cell in cells if isinstance(cell, str)) > most:
                yield BadRow(f"its text is too long; {MAX_ROW_BYTES.in_words}")
            else:
                yield list(cells)


def _named(row: list[Any] | BadRow, columns: list[str]) -> Row:
    if isinstance(row, BadRow):
        return row
    if any(cell is not None for cell in row[len(columns) :]):
        return BadRow(f"it has {len(row)} cells, but the first row names {len(columns)} columns")
    cells = chain(map(_plain, row), repeat(None))
    return dict(zip(columns, cells, strict=False))


def _plain(cell: Any) -> Any:
    """Return text without a guard against formulas, and times as text."""
    if isinstance(cell, str):
        return unguarded(cell)
    return cell if isinstance(cell, int | float | None) else str(cell)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except DatasetError:
        raise
    except Exception as error:  # openpyxl passes on whatever its parsers raise
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DatasetFormatError(f"{path}: it cannot be read ({why}); save it again") from error


@contextmanager
def xlsx_rows(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends rows, given by column, to the sheet of a new workbook."""
    openpyxl = require("openpyxl", "tables", WHAT)
    cells = require("openpyxl.cell", "tables", WHAT)
    forbidden = require("openpyxl.cell.cell", "tables", WHAT).ILLEGAL_CHARACTERS_RE
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    begun = False

    def cell(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        found = cells.WriteOnlyCell(sheet, forbidden.sub("\ufffd", value))
        found.data_type = "s"  # never a formula
        return found

    def write(table: Any) -> None:
        nonlocal begun
        if not begun:
            sheet.append(list(map(cell, table)))
        begun = True
        for row in zip(*table.values(), strict=True):
            sheet.append(list(map(cell, row)))

    yield write
    book.save(file)

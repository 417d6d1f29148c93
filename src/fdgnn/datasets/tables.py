"""Tables in memory, and graph tables: one graph per row, in the columns of public datasets.

========== ======================================================================================
edge_index sources and targets, 2 x m; or m pairs
num_nodes  an integer; needed only if the last vertices have neither arcs nor node_feat
node_feat  n x f, or n entries; also called ``x``. One integer or text per vertex is its label,
           everything else is its features
edge_attr  m x f, or m entries; also called ``edge_weight``
y          or any other column: the target, one number or text, or a list of one
========== ======================================================================================
"""

from __future__ import annotations

import csv
import os
import zipfile
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from itertools import chain, groupby, islice, repeat
from numbers import Number
from pathlib import Path
from typing import IO, Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.datasets.files import BLOCK, Stream, check_archive, open_unpacked, readable
from fdgnn.datasets.rows import BadRow, Row
from fdgnn.exceptions import DatasetFormatError, GraphError, warn_unused
from fdgnn.extras import require
from fdgnn.graphs import checks
from fdgnn.graphs.descriptors import number_in
from fdgnn.graphs.molecules import is_molecule
from fdgnn.graphs.raw import RawGraph
from fdgnn.limits import MAX_ROW_BYTES
from fdgnn.schema import InputSchema, ReadOptions
from fdgnn.texts import cut, parse_json, unguarded

SMILES = "smiles"  # the column that a list of molecules stands for

Table = tuple[list[str], Callable[[Sequence[str]], Iterator[Row]]]

EDGES = "edge_index"
SIZE = "num_nodes"
VERTICES, ARCS = ("node_feat", "x"), ("edge_attr", "edge_weight")


# ---------------------------------------------------------------------- a row for each edge

# The columns of such a table, of which one name of each is enough: the graph, and the edge's ends.
GRAPHS, ENDS = ("graph", "graph_id"), ("source", "target")
NAMES = "\0names"  # of vertices, in rows that are made
END_LABELS, EDGE_VALUES = ("source_label", "target_label"), ("edge_label", "weight")


def as_graph_table(table: Table, options: ReadOptions, like: InputSchema | None = None) -> Table:
    """Return a table with a row per graph, if this one has a row per edge.

    The edges of a graph are in consecutive rows. Vertices are numbered as they are first named; a
    row with a source alone is a vertex without edges.
    """
    columns, open_rows = table
    key = next((name for name in GRAPHS if name in columns), None)
    if key is None or EDGES in columns or not {*ENDS} <= {*columns}:
        return table
    chosen = options if like is None or like.source != "table" else like
    named = chosen.edge_attribute if chosen.edge_attribute in columns else None
    values_in = [name for name in (EDGE_VALUES if named is None else (named,)) if name in columns]
    arcs = named or ARCS[0]
    used = (key, *ENDS, *END_LABELS, *EDGE_VALUES, *values_in)
    others = [name for name in columns if name not in used]
    made = [EDGES, SIZE]
    made += [VERTICES[0]] if {*END_LABELS} <= {*columns} else []
    made += [arcs] if values_in else []
    reports = like is None and named is None and options.edge_labels == "auto"
    if reports and {*EDGE_VALUES} <= {*columns}:
        remedy = "`edge_label` is read; `edge_attribute='weight'` reads them instead"
        warn_unused("the table of edges", {"weights": remedy})

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        beside = [name for name in wanted if name in others]
        done: set[Any] = set()
        named = groupby(open_rows(columns), lambda r: None if isinstance(r, BadRow) else r.get(key))
        for graph, edges in named:
            some = list(edges)
            if graph in (None, "") or isinstance(graph, list | dict):
                nameless = BadRow(f"{key!r} is missing, or not one name")
                yield from (row if isinstance(row, BadRow) else nameless for row in some)
                continue
            if graph in done:
                raise DatasetFormatError(
                    f"the edges of graph {graph!r} are in several places; sort the rows by {key!r}"
                )
            left = [name for name in others if name not in beside] if reports and not done else []
            done.add(graph)
            whole = [row for row in some if not isinstance(row, BadRow)]
            unused = {
                f"the values of {name!r}": f"`edge_attribute={name!r}` reads these"
                for name in left
                if len({str(row.get(name)) for row in whole}) > 1
            }
            warn_unused("the table of edges", unused)
            try:
                yield {key: graph, **_graph_of_edges(some, beside, values_in, arcs)}
            except GraphError as error:
                yield BadRow(error.reason, graph)

    return [key, *made, *others], rows


def _graph_of_edges(
    edges: Sequence[Row], beside: Sequence[str], values_in: Sequence[str], arcs: str
) -> dict[str, Any]:
    """Return the columns of a graph table for the rows of one graph."""
    labels: dict[Any, Any] = {}  # by the name of the vertex
    pairs: list[list[Any]] = []
    carried: list[Any] = []
    others: dict[str, Any] = {}
    for row in edges:
        if isinstance(row, BadRow):
            raise GraphError(f"one of its edges cannot be read: {row.reason}")
        ends = [row.get(end) for end in ENDS]
        if ends[0] in (None, ""):
            raise GraphError(f"one of its edges has no {ENDS[0]!r}")
        for name, of_label in zip(ends, END_LABELS, strict=True):
            if name in (None, ""):
                break
            if isinstance(name, list | dict):
                raise GraphError(f"one of its edges ends at a {type(name).__name__}")
            label = row.get(of_label)
            if labels.setdefault(name, label) != label:
                raise GraphError(f"vertex {name!r} has the labels {labels[name]!r} and {label!r}")
        else:
            pairs.append(ends)
            carried.append(next((row[name] for name in values_in if name in row), None))
        for name in beside:
            if others.setdefault(name, row.get(name)) != row.get(name):
                raise GraphError(f"edges have different values of {name!r}")
    position = {name: i for i, name in enumerate(labels)}
    if EDGE_VALUES[0] not in values_in:
        values: list[Any] = list(map(number_in, carried))
        carried = carried if None in values else values
    is_numbered = list(map(str, labels)) == list(map(str, range(len(labels))))
    return {
        EDGES: [[position[pair[0]] for pair in pairs], [position[pair[1]] for pair in pairs]],
        SIZE: len(labels),
        NAMES: None if is_numbered else list(labels),
        VERTICES[0]: None
        if all(label is None for label in labels.values())
        else [*labels.values()],
        arcs: None if all(value is None for value in carried) else carried,
        **others,
    }


def graph_reader(
    name: str, columns: Sequence[str], options: ReadOptions, like: InputSchema | None = None
) -> tuple[list[str], Callable[[Mapping[str, Any]], RawGraph]]:
    """Return the columns of graphs, and a function from a row to its graph.

    The function raises `GraphError` on an invalid row. Where a table has both of two columns that
    mean the same, the one of the options is read.
    """
    chosen = options if like is None or like.source != "table" else like
    edge_column, place = checks.name_and_place(chosen.edge_attribute)
    if len(chosen.vertex_attributes) > 1:
        raise DatasetFormatError(f"{name}: `vertex_attributes` names several columns; name one")
    of_vertices, of_arcs = (*chosen.vertex_attributes, *VERTICES), (edge_column, *ARCS)
    vertices = next((n for n in of_vertices if n in columns), VERTICES[0])
    arcs = next((n for n in of_arcs if n is not None and n in columns), ARCS[0])
    if like is None:
        others = {
            "vertex_attributes": {*VERTICES} & {*columns} - {vertices, *options.vertex_attributes},
            "edge_attribute": {*ARCS} & {*columns} - {arcs, edge_column},
        }
        remedies = {
            f"the values of {left.pop()!r}": f"`{option}` names the one column to read"
            for option, left in others.items()
            if left and not getattr(options, option)
        }
        warn_unused(name, remedies)

    read_here = (EDGES, NAMES, SIZE, *VERTICES, *ARCS, vertices, arcs)
    used = {*read_here, *options.targets, *options.columns}
    is_first = like is None

    def read(row: Mapping[str, Any]) -> RawGraph:
        nonlocal is_first
        if is_first:  # further columns with a list may be of vertices or edges
            lists = [n for n, v in row.items() if isinstance(v, list) and len(v) > 1]
            for column in [n for n in lists if n not in used][:1]:
                column = cut(column, 40)
                remedy = f"`vertex_attributes={column!r}` or `edge_attribute={column!r}` reads it"
                warn_unused(name, {f"the values of {column!r}": remedy})
            is_first = False
        edges = _array(row, EDGES)
        if edges is None:
            raise GraphError("edge_index is missing; a graph without edges has [[], []]")
        carried = _array(row, arcs)
        return RawGraph(
            edges=edges,
            n_vertices=_size(row),
            x=_array(row, vertices),
            carried=None if carried is None else checks.column_at(carried, place, arcs),
            vertex_attributes=(vertices,),
            vertex_names=row.get(NAMES),
            edge_attribute=arcs if place is None else chosen.edge_attribute,
        )

    return [c for c in columns if c in read_here], read


def _array(row: Mapping[str, Any], column: str) -> Array | None:
    value = _list_in(row, column)
    if value is None:
        return None
    if not isinstance(value, list | np.ndarray):
        raise GraphError(f"{column} is a {type(value).__name__}, expected a list")
    return checks.entries(value, column)


def _size(row: Mapping[str, Any]) -> int | None:
    """Read num_nodes, which may be in a list of one, or a whole number written as a real."""
    value = _list_in(row, SIZE)
    if isinstance(value, list | np.ndarray) and len(value) == 1:
        value = value[0]
    if value is None:
        return None
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, bool) and int(value) == value:
            return int(value)
    raise GraphError(f"{SIZE} is {value!r}, expected an integer")


def _list_in(row: Mapping[str, Any], column: str) -> Any:
    """Return a cell; text, as in CSV files, is JSON."""
    value = row.get(column)
    if not isinstance(value, str):
        return value
    try:
        return parse_json(value) if value.strip() else None
    except ValueError as error:
        raise GraphError(f"{column} is not a list ({error})") from None


# ---------------------------------------------------------------------- data frames and lists


def is_frame(given: Any) -> bool:
    """Return whether something is a pandas or polars data frame."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def frame_table(frame: Any) -> Table:
    """Return the columns of a data frame, and a function from the wanted ones to rows."""
    if not hasattr(frame, "shape"):
        raise DatasetFormatError(f"a {type(frame).__name__} has no rows yet; collect() it first")
    keys = {str(key): key for key in frame.columns}

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        columns = []
        for name in wanted:
            column = frame[keys[name]]
            values = column.to_list()
            if hasattr(column, "isna"):  # of pandas, whose missing values are of several kinds
                pairs = zip(values, column.isna(), strict=True)
                values = [None if is_missing else value for value, is_missing in pairs]
            columns.append(values)
        if not columns:
            return iter([{}] * len(frame))
        return (dict(zip(wanted, cells, strict=True)) for cells in zip(*columns, strict=True))

    return [str(key) for key in frame.columns], rows


def is_molecule_list(given: Any) -> bool:
    """Return whether something is a list of SMILES or of RDKit Mols.

    Some may be missing: None, or a number, as data frames have NaN there.
    """
    if isinstance(given, bytes | Mapping | os.PathLike) or is_molecule(given):
        return False
    if not isinstance(given, Sized) or not isinstance(given, Iterable):
        return False
    rest = [item for item in given if item is not None and not is_molecule(item)]
    return all(isinstance(item, Number) for item in rest) and 2 * len(rest) <= len(given)


def molecule_table(molecules: Any) -> Table:
    """Return a list of molecules as a table with one column of SMILES."""

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        for each in molecules:
            smiles = each if isinstance(each, str) else None
            if smiles is None and is_molecule(each):  # written, so that a table can name it
                smiles = require("rdkit.Chem", "chem", "molecules").MolToSmiles(each)
            yield {SMILES: smiles}

    return [SMILES], rows


# ---------------------------------------------------------------------- text


LOOK_AHEAD = 100  # rows whose keys are the columns; also the lines that a quoted field may span

Columns = list[str]
Source = str | Path | Stream
Line = str | BadRow  # a line as text, or one that is too long
LINE = 256  # bytes that a short line of a packed file counts as: a row takes that in memory
BLANK = BadRow("line is blank")


def read_lines(path: Source) -> Iterator[Line]:
    """Yield the lines without their ends; one that is too long is an invalid row.

    A blank line is an empty text, so that the lines after it keep their numbers. Those before the
    first line that is not blank, and after the last one, are left out; no other line is an error.
    """
    n_blank, begun = 0, False
    for line in raw_lines(path):
        if line == b"\n":  # in less time than by decoding
            n_blank += begun
            continue
        text: Line = line if isinstance(line, BadRow) else decoded(line).rstrip("\r\n")
        if isinstance(text, str) and (not text or text.isspace()):
            n_blank += begun
            continue
        yield from repeat("", n_blank)
        yield text
        n_blank, begun = 0, True
    if not begun:
        raise DatasetFormatError(f"{path}: the file is empty")


def decoded(line: bytes) -> str:
    """Decode a line as UTF-8, without a mark at its beginning, or else as Latin-1.

    So different bytes are different texts, and a name with an accent in an unused column does not
    stop the reading.
    """
    line = line.removeprefix(BOM_UTF8)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def raw_lines(path: Source) -> Iterator[bytes | BadRow]:
    """Yield all lines with line ends; a line that is too long is an invalid row."""
    most = int(MAX_ROW_BYTES.value)
    with readable(path), open_unpacked(path) as (stream, expansion):
        uncounted = 0  # bytes that were read since the expansion was looked at

        def read(n_bytes: int) -> bytes:
            nonlocal uncounted
            line = stream.readline(n_bytes)
            uncounted += max(len(line), LINE)
            if expansion is not None and uncounted >= BLOCK:
                expansion.add(uncounted)
                uncounted = 0
            return line

        while line := read(most + 1):
            if len(line) <= most:
                yield line
                continue
            while line and not line.endswith(b"\n"):  # the rest of the line is not kept
                line = read(BLOCK)
            yield BadRow(f"line is too long; {MAX_ROW_BYTES.in_words}")


# ---------------------------------------------------------------------- JSON lines


def read_jsonl(path: Source, look_ahead: int = LOOK_AHEAD) -> tuple[Columns, Iterator[Row]]:
    """Read the columns, as inferred from the first rows, and the rows, one per line."""
    lines = read_lines(path)
    first_lines = list(islice(lines, look_ahead))
    first = [_json_row(line) for line in first_lines]
    columns = list(dict.fromkeys(chain.from_iterable(r for r in first if isinstance(r, dict))))
    if not columns or str(first_lines[0]).strip() == "[":
        why = next((r.reason for r in first if isinstance(r, BadRow)), "empty")
        raise DatasetFormatError(
            f"{path}: expected JSON lines, an object each; the first line is invalid: {why}"
        )
    return columns, chain(first, map(_json_row, lines))


def _json_row(line: Line) -> Row:
    if isinstance(line, BadRow) or not line:
        return line or BLANK
    try:
        record = parse_json(line)
    except ValueError as error:
        return BadRow(f"not JSON ({error})")
    if isinstance(record, dict):
        return record
    return BadRow(f"a JSON {type(record).__name__}, expected an object")


# ---------------------------------------------------------------------- CSV


def read_csv(path: Source, delimiter: str | None = None) -> tuple[Columns, Iterator[Row]]:
    """Find the columns, as the header names them, and the rows, one per line, as text.

    A quote that guards against formulas, as our own files have it, is not part of a field.

    Without a delimiter, the one that the header has most of is taken.
    """
    # The limit of the csv module is less than a graph of 10,000 edges.
    csv.field_size_limit(max(csv.field_size_limit(), int(MAX_ROW_BYTES.value)))
    lines = read_lines(path)
    header = next(lines)
    if isinstance(header, BadRow):
        raise DatasetFormatError(f"{path}: no header: {header.reason}")
    delimiter = delimiter or max(",;\t|", key=header.count)
    fields = _fields(header, delimiter)
    if not fields or "\0" in header:
        raise DatasetFormatError(
            f"{path}: its first line is not a CSV header; save it as UTF-8 text"
        )
    columns = [unguarded(name.strip()) for name in fields]
    return columns, _csv_rows(lines, columns, delimiter)


def _csv_rows(lines: Iterator[Line], columns: Columns, delimiter: str) -> Iterator[Row]:
    waiting: deque[Line] = deque()
    while (line := waiting.popleft() if waiting else next(lines, None)) is not None:
        if isinstance(line, BadRow) or not line:
            yield line or BLANK
            continue
        if '"' not in line and "\r" not in line:
            fields = line.split(delimiter)  # as the csv module would, in less time
        else:
            fields = _quoted_fields(line, waiting, lines, len(columns), delimiter)
        if len(fields) == len(columns):
            yield dict(zip(columns, map(unguarded, fields), strict=True))
        else:
            yield BadRow(f"{len(fields)} fields, but the header has {len(columns)}")


def _quoted_fields(
    line: str, waiting: deque[Line], lines: Iterator[Line], n_columns: int, delimiter: str
) -> list[str]:
    """Split a line that has quotes; lines that continue a field are taken from `lines`.

    A quoted field may span lines, but a stray quote must not swallow the rest. The row has no more
    lines than `LOOK_AHEAD`, and no more bytes than a line may have.
    """

    def ahead() -> Iterator[str]:
        yield line + "\n"
        left = MAX_ROW_BYTES.value - len(line)
        for i in range(LOOK_AHEAD - 1 if line.count('"') % 2 else 0):
            if i == len(waiting):
                waiting.extend(islice(lines, 1))
            if i == len(waiting) or isinstance(more := waiting[i], BadRow) or len(more) > left:
                return
            left -= len(more)
            yield more + "\n"

    reader = csv.reader(ahead(), delimiter=delimiter, strict=True)
    with suppress(csv.Error, StopIteration):  # a row from as few lines as possible
        fields = next(reader)
        if len(fields) == n_columns:
            for _ in range(reader.line_num - 1):
                waiting.popleft()
            return fields
    return _fields(line, delimiter)


def _fields(line: str, delimiter: str) -> list[str]:
    """Split a line into fields; there are none if it is not one row."""
    try:
        records = list(csv.reader([line], delimiter=delimiter))
    except csv.Error:
        return []
    return records[0] if len(records) == 1 else []


# ---------------------------------------------------------------------- Excel


EXCEL = "Excel files (.xlsx)"
_OF_BOOKS = ("; save it again", (Exception,))  # openpyxl passes on whatever its parsers raise


def read_xlsx(path: Path) -> tuple[list[str], Iterator[Row]]:
    """Find the columns, as the first row that is not blank names them, and the rows."""
    openpyxl = require("openpyxl", "tables", EXCEL)
    with readable(path, *_OF_BOOKS):
        with zipfile.ZipFile(path) as archive:
            check_archive(archive.infolist(), path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        sheet, *others = book.worksheets
        sheet.reset_dimensions()  # what a file claims its size to be is not needed
        rows = _book_rows(path, sheet)
        header = next((row for row in rows if isinstance(row, list)), None)
    if header is None:
        raise DatasetFormatError(f"{path}: its sheet {sheet.title!r} is empty")
    filled = [s.title for s in others if any(map(any, s.iter_rows(max_row=1, values_only=True)))]
    if filled:
        remedy = "save the sheet that you mean as a file of its own"
        warn_unused(str(path), {f"the sheets {', '.join(map(repr, filled))}": remedy})
    columns = [str("" if name is None else name).strip() for name in header]

    def named(row: list[Any] | BadRow) -> Row:
        if isinstance(row, BadRow):
            return row
        if any(cell is not None for cell in row[len(columns) :]):
            return BadRow(f"{len(row)} cells, but the first row names {len(columns)} columns")
        return dict(zip(columns, chain(row, repeat(None)), strict=False))

    return columns, map(named, rows)


def _book_rows(path: Path, sheet: Any) -> Iterator[list[Any] | BadRow]:
    """Yield the cells of each row; blank rows at the beginning and the end are left out.

    Text has no guard against formulas, and times are text.
    """
    n_blank, begun, most = 0, False, MAX_ROW_BYTES.value
    with readable(path, *_OF_BOOKS):
        for cells in sheet.iter_rows(values_only=True):
            if all(cell is None for cell in cells):
                n_blank += begun
                continue
            yield from repeat(BLANK, n_blank)
            n_blank, begun = 0, True
            if sum(len(cell) for cell in cells if isinstance(cell, str)) > most:
                yield BadRow(f"text is too long; {MAX_ROW_BYTES.in_words}")
                continue
            texts = (unguarded(cell) if isinstance(cell, str) else cell for cell in cells)
            yield [
                cell if isinstance(cell, str | int | float | None) else str(cell) for cell in texts
            ]


@contextmanager
def xlsx_rows(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """Yield a function that appends rows, given by column, to the sheet of a new workbook."""
    openpyxl = require("openpyxl", "tables", EXCEL)
    cells = require("openpyxl.cell", "tables", EXCEL)
    forbidden = require("openpyxl.cell.cell", "tables", EXCEL).ILLEGAL_CHARACTERS_RE
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

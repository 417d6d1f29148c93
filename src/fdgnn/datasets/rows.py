"""From rows of a file to a table of graphs; invalid rows are listed, and shift no others."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from numbers import Number
from typing import Any, Literal, cast

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import DatasetFormatError, FDGNNWarning, GraphError, frames_of_libraries
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import is_missing, number_in
from fdgnn.graphs.libraries import AttributeReader
from fdgnn.graphs.molecules import Molecule
from fdgnn.graphs.raw import Joined, Raw, join, lists_pairs, read_raw
from fdgnn.limits import MAX_LABEL, MAX_REJECTS
from fdgnn.schema import InputSchema, ReadOptions
from fdgnn.texts import agreeing

LARGEST = sys.float_info.max

_BOUND = re.compile(r"\s*(?:[<>]=?|[≤≥])\s*(.+)")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+(?:[eE][-+]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\s*")


class TargetColumn:
    """One column of targets, in which numbers may be censored or have decimal commas.

    Attributes
    ----------
    values : dict
        Numbers or text by row; None where the target is missing.
    errors : dict of str
        Reasons why other rows are rejected.
    censored : dict
        The cells of rows with a bound instead of a number, such as ``>1995``.
    """

    def __init__(self, cells: Mapping[int, Any], options: ReadOptions) -> None:
        known = {i: plain(cell) for i, cell in cells.items()}
        texts = [cell for cell in known.values() if isinstance(cell, str)]
        commas = [text for text in texts if _DECIMAL_COMMA.fullmatch(text)]
        self._decimal_comma = not all(map(_THOUSANDS.fullmatch, commas))
        parsed = {i: self._parsed(cell) for i, cell in known.items() if not is_missing(cell)}
        kinds = {kind for kind, _ in parsed.values()}
        numeric = options.numeric
        if "text" not in kinds and (commas or kinds - {"number"}):
            numbers = [str(known[i]) for i, (kind, _) in parsed.items() if kind == "number"]
            others = [str(known[i]) for i, (kind, _) in parsed.items() if kind != "number"]
            # Two different numbers are enough, as most rows may have a bound such as ``>10000``;
            # but ``<10``, ``10`` and ``>10`` are classes.
            classes = "bound" in kinds and options.censored == "drop"
            numeric |= not classes or len(others) <= len(numbers) or len(set(numbers)) > 1
        bounds = [i for i, (kind, _) in parsed.items() if kind == "bound"]
        self.censored = {i: known[i] for i in bounds} if numeric else {}
        self.values: dict[int, Any] = dict.fromkeys(known.keys() - parsed.keys())
        self.errors: dict[int, str] = {}
        for i, (kind, number) in parsed.items():
            try:
                if i in self.censored and options.censored != "bound":
                    raise GraphError(f"its target is censored ({known[i]})")
                self.values[i] = _checked(known[i], kind, number) if numeric else _finite(known[i])
            except GraphError as error:
                self.errors[i] = error.reason

    def _parsed(self, cell: Any) -> tuple[str, int | float | None]:
        """Return the kind of a cell, and the number that it stands for, if any."""
        if (number := self._number(cell)) is not None:
            return "number", number
        is_text = isinstance(cell, str)
        bound = _BOUND.sub(r"\1", cell) if is_text and _BOUND.fullmatch(cell) else None
        if bound is not None and (number := self._number(bound)) is not None:
            return "bound", number
        try:
            if abs(float(cell)) > LARGEST:
                return "infinite", None
        except OverflowError:
            return "infinite", None
        except (TypeError, ValueError):
            pass
        thousands = not self._decimal_comma and is_text and _THOUSANDS.fullmatch(bound or cell)
        return "ambiguous" if thousands else "text", None

    def _number(self, cell: Any) -> int | float | None:
        if self._decimal_comma and isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
        return number_in(cell)


def _checked(cell: Any, kind: str, number: int | float | None) -> Any:
    """Return the number of a numeric target, or raise GraphError."""
    _finite(cell)
    if kind == "ambiguous":
        raise GraphError(
            f"its target {cell!r} may have a decimal comma or thousands; write numbers with a "
            "decimal point, and thousands without separators"
        )
    if kind == "text":
        raise GraphError("its target is not a number")
    return _finite(float("inf") if kind == "infinite" else number)


def _finite(cell: Any) -> Any:
    """Return one target, a short text or a finite number, or raise GraphError."""
    if isinstance(cell, list | tuple | dict):
        raise GraphError(f"its target has {len(cell)} entries, expected one")
    if isinstance(cell, str) and MAX_LABEL.is_below(len(cell)):
        raise GraphError(f"its target has {len(cell)} characters; {MAX_LABEL.in_words}")
    if isinstance(cell, int | float | Decimal) and not -LARGEST <= cell <= LARGEST:
        raise GraphError("its target is infinite")
    return cell


def read_targets(
    columns: Mapping[str, Mapping[int, Any]], options: ReadOptions, name: str
) -> tuple[dict[int, Any], dict[int, str]]:
    """Read the columns of targets, given as cells by row.

    Returns
    -------
    targets : dict
        By row, a value, or a list of values of which at least one is known.
    errors : dict of str
        Reasons why other rows are rejected.
    """
    read = {column: TargetColumn(cells, options) for column, cells in columns.items()}
    errors: dict[int, str] = {}
    for column, found in read.items():
        _report_censored(found, options, name)
        for i, reason in found.errors.items():
            if options.has_several and i in found.censored:
                found.values[i] = None  # the row's other targets are known
            else:
                errors.setdefault(i, f"{reason} ({column})" if options.has_several else reason)
    targets: dict[int, Any] = {}
    for i in next(iter(columns.values())):
        row = [found.values.get(i) for found in read.values()]
        if i not in errors and all(value is None for value in row):
            several = options.has_several
            errors[i] = "all targets are missing" if several else "the target is missing"
        if i not in errors:
            targets[i] = row if options.has_several else row[0]
    return targets, errors


def _report_censored(column: TargetColumn, options: ReadOptions, name: str) -> None:
    if not column.censored:
        return
    n, total = len(column.censored), len(column.values) + len(column.errors)
    example = next(iter(column.censored.values()))
    found = f"{name}: {n} of {total} targets {agreeing(n, 'is', 'are')} censored, such as {example}"
    if options.censored == "error":
        raise DatasetFormatError(
            f"{found}; `censored='drop'` leaves them out, `censored='bound'` takes the bounds"
        )
    done = "left out; `censored='bound'` takes the bounds as values"
    if options.censored == "bound":
        done = f"{agreeing(n, 'its bound is', 'their bounds are')} taken as the values"
    warnings.warn(f"{found}; {done}", FDGNNWarning, stacklevel=frames_of_libraries())


def target_table(rows: list[list[Any]], n_targets: int, text_only: bool) -> Array:
    """Make a table (n_rows, n_targets) of objects, each column as `target_array` makes it."""
    table: Array = np.full((len(rows), n_targets), None, dtype=object)
    for t in range(n_targets):
        known = [i for i, row in enumerate(rows) if row[t] is not None]
        table[known, t] = target_array([rows[i][t] for i in known], text_only).tolist()
    return table


def target_array(values: list[Any], text_only: bool) -> Array:
    """Make an array of integers, of reals, or else of text."""
    if text_only and values and isinstance(values[0], str):
        numbers = [number_in(value) for value in values]
        values = values if None in numbers else numbers
    if all(isinstance(value, int) and abs(value) < 2**63 for value in values):
        return np.array(values, dtype=np.int64)
    if all(isinstance(value, Number) for value in values):
        return np.array(values, dtype=np.float64)
    return np.array([str(value) for value in values])


def plain(value: Any) -> Any:
    """Return a single entry without its lists and arrays."""
    while isinstance(value, list | tuple | np.ndarray) and len(value) == 1:
        value = value[0]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value


@dataclass(frozen=True)
class Reject:
    """A row that could not be read: its number in the file, from 0, its id, and why."""

    row: int
    id: Any
    reason: str

    def __str__(self) -> str:
        name = "" if self.id == self.row else f" ({self.id})"
        return f"row {self.row}{name}: {self.reason}"


@dataclass(frozen=True)
class Change:
    """A molecule that was changed by standardization.

    Attributes
    ----------
    row, id
        As in `Reject`.
    before, after : str
        SMILES in the file, and after the change.
    steps : tuple of str
        What was done: "fragment", "charge", "tautomer", "stereo";
        `fdgnn.graphs.molecules.STEPS` has the words.
    """

    row: int
    id: Any
    before: str
    after: str
    steps: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class GraphTable:
    """The graphs of a file, or of a part of it, one per row.

    Attributes
    ----------
    graphs : GraphBatch or None
        The graphs of the valid rows; None if no row is valid.
    y : array or None
        The targets of the valid rows, if any were named: integers, reals or text. Several
        targets are a table of objects (n_graphs, n_targets), None where a value is missing.
    ids : tuple
        For each row, valid or not: its entry in the id column, or its number, from 0.
    rows : (n_graphs,) int64
        Positions of the valid rows among all `n_rows` rows: ``out[table.rows] = predictions``
        puts each prediction in its place.
    rejects : tuple of Reject
        The invalid rows.
    start : int
        The number of the table's first row in the file.
    smiles : tuple of str, or None
        The valid rows' SMILES, if they are molecules: as in the file or, where standardization
        changed a molecule, that of the changed one. Its atoms, from left to right, are vertices.
    schema : InputSchema or None
        How the graphs were read; None as long as no row could be read.
    columns : dict of tuples
        The valid rows' values in the further columns of `columns`, as they stand in the
        file; None where a row has none.
    changes : tuple of Change
        The valid rows' molecules that standardization changed.
    targets : tuple of str
        The names of several targets.
    id_column : str or None
        The column that names the rows, if the user or the model names one.
    cells : dict of tuples
        For each row, valid or not: its entries in `columns`, and in the column of the SMILES.
    """

    graphs: GraphBatch | None
    y: Array | None
    ids: tuple[Any, ...]
    rows: Ints
    rejects: tuple[Reject, ...] = ()
    start: int = 0
    smiles: tuple[str, ...] | None = None
    schema: InputSchema | None = None
    columns: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    changes: tuple[Change, ...] = ()
    targets: tuple[str, ...] = ()
    id_column: str | None = None
    cells: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows, valid and invalid."""
        return len(self.ids)

    def of_target(self, name: str) -> GraphTable:
        """Return the table of one of several targets, with the rows for which it is known."""
        if self.y is None or self.graphs is None:
            return replace(self, y=None, targets=())
        column = self.y[:, self.targets.index(name)].tolist()
        known = [i for i, value in enumerate(column) if value is not None]
        return replace(
            self,
            graphs=self.graphs[known],
            y=np.array([column[i] for i in known]),
            rows=self.rows[known],
            smiles=None if self.smiles is None else tuple(self.smiles[i] for i in known),
            columns={name: tuple(cells[i] for i in known) for name, cells in self.columns.items()},
            targets=(),
        )

    def __repr__(self) -> str:
        return f"GraphTable({len(self.rows)} of {self.n_rows} rows, {self.graphs})"


@dataclass(frozen=True)
class BadRow:
    """A row that could not be split into columns."""

    reason: str
    id: Any = None


Cells = Mapping[str, Any]
Row = Cells | BadRow
RowReader = Callable[[Cells], Raw]  # from a row to a graph; raises GraphError if it has none


@dataclass(frozen=True)
class FileRows:
    """The rows of a file, and how to read a graph from one."""

    name: str
    source: Literal["table", "molecules", "networks"]
    columns: Sequence[str]
    rows: Iterator[Row]
    reader: RowReader = field(repr=False)
    text_only: bool = False  # numbers are written as text, as in CSV files
    id_column: str | None = None  # unless the user names another
    smiles_column: str | None = None
    attributes: AttributeReader | None = None  # of graphs that are files


RowChunk = tuple[int, Sequence[Row]]  # rows that are not read yet, after the first one's number


@dataclass(frozen=True)
class ChunkReader:
    """The way from some rows of a file to a table; it can go to other processes."""

    file: FileRows
    options: ReadOptions
    like: InputSchema | None = None

    def read(self, chunk: RowChunk, schema: InputSchema | None = None) -> GraphTable:
        """Make a table of rows; how to read them is decided on these, unless it is given."""
        (start, rows), file, options = chunk, self.file, self.options
        # 1. Each row by itself: its id, and its graph as the file has it.
        ids: list[Any] = []
        raws: dict[int, Raw] = {}
        rejects: dict[int, str] = {}
        id_column = options.id_column or file.id_column
        for i, row in enumerate(rows):
            own = row.id if isinstance(row, BadRow) else id_column and plain(row.get(id_column))
            ids.append(start + i if own is None else own)
            try:
                raws[i] = self._raw(row)
            except GraphError as error:
                rejects[i] = error.reason
        # 2. The targets, column by column.
        targets: dict[int, Any] = {}
        if options.targets:
            given = {t: {i: cast(Cells, rows[i]).get(t) for i in raws} for t in options.targets}
            targets, errors = read_targets(given, options, file.name)
            rejects |= errors
            raws = {i: raw for i, raw in raws.items() if i not in errors}
        # 3. All graphs by one schema.
        joined = Joined(None, None, {})
        if schema is not None or raws:
            joined = join(raws, schema) if schema is not None else self._inferred(raws)
        rejects |= joined.errors
        found_rejects = [Reject(start + i, ids[i], why) for i, why in sorted(rejects.items())]
        if rejects and options.strict:
            raise DatasetFormatError(f"{file.name}, {found_rejects[0]}")
        if MAX_REJECTS.is_below(len(rejects)):
            raise _too_many_rejects(file.name, str(found_rejects[0]))
        # 4. The valid rows.
        valid = [i for i in range(len(rows)) if i not in rejects]
        found: list[Any] = [targets.get(i) for i in valid]
        text = file.text_only
        several, n_targets = options.has_several, len(options.targets)
        y = target_table(found, n_targets, text) if several else target_array(found, text)
        kept = [*options.columns, *([file.smiles_column] if file.smiles_column else [])]
        cells = {
            name: tuple(None if isinstance(row, BadRow) else plain(row.get(name)) for row in rows)
            for name in kept
        }
        known = None if self.like is None else self.like.id_column
        is_molecules = file.source == "molecules"
        molecules = cast(dict[int, Molecule], raws if is_molecules else {})
        return GraphTable(
            graphs=joined.graphs,
            y=y if options.targets else None,
            ids=tuple(ids),
            rows=np.array(valid, dtype=np.int64),
            rejects=tuple(found_rejects),
            start=start,
            smiles=tuple(molecules[i].smiles.text for i in valid) if is_molecules else None,
            schema=joined.schema,
            columns={name: tuple(cells[name][i] for i in valid) for name in options.columns},
            changes=tuple(
                Change(start + i, ids[i], own.given or "", own.smiles.text, own.changes)
                for i in valid
                if (own := molecules.get(i)) is not None and own.changes
            ),
            targets=options.targets if several else (),
            id_column=options.id_column or (known if known == file.id_column else None),
            cells=cells,
        )

    def _raw(self, row: Row) -> Raw:
        """Find the graph of a row, with its descriptors, or raise GraphError."""
        if isinstance(row, BadRow):
            raise GraphError(row.reason)
        raw = self.file.reader(row)
        cells = {name: plain(row.get(name)) for name in self.options.all_descriptors}
        return replace(cast(Any, raw), cells=cells) if cells else raw

    def _inferred(self, raws: Mapping[int, Any]) -> Joined:
        """Infer the schema, unless there is one of a model, and join the graphs."""
        file, options, known = self.file, self.options, self.like
        names: dict[str, Any] = {
            "source": file.source,
            "smiles_column": file.smiles_column,
            "id_column": options.id_column,
        }
        if known is None:
            unused = {} if file.attributes is None else file.attributes.unused
            try:
                joined = read_raw(raws, options, file.source, file.name, unused=unused)
            except GraphError as error:
                raise DatasetFormatError(f"{file.name}: {error}") from None
            if joined.schema is None or joined.graphs is None:
                return joined
            schema = replace_fields(joined.schema, **names)
            return joined._replace(schema=schema, graphs=replace(joined.graphs, schema=schema))
        first = next(iter(raws.values()))  # what a model's schema lacks are names in the file
        if file.source != "molecules":
            if known.source != "table":
                names["pairs"] = lists_pairs(list(raws.values()))
            if known.vertex != "none":
                names["vertex_attributes"] = first.vertex_attributes
            if known.edge_labels != "ignore":
                names["edge_attribute"] = first.edge_attribute
        return join(raws, replace_fields(known, **names))


def _too_many_rejects(name: str, example: str) -> DatasetFormatError:
    return DatasetFormatError(
        f"{name}: too many rows are rejected, for instance: {example}; {MAX_REJECTS.in_words}; "
        "correct the file, or read it in chunks by `iter_graphs`"
    )


class GraphTables(Iterator[GraphTable]):
    """The rows of a file as tables of some rows each, all read in one way."""

    def __init__(
        self,
        file: FileRows,
        options: ReadOptions,
        like: InputSchema | None = None,
        chunk_size: int | None = None,
    ) -> None:
        self.chunk_size = chunk_size
        # Molecules that are read as a model's were: nothing is decided on the first chunk.
        self.independent = file.source == "molecules" and like is not None
        self.reader = ChunkReader(replace(file, rows=iter(())), options, like)
        self._rows, self._start = file.rows, 0
        self._schema: InputSchema | None = None

    def chunks(self) -> Iterator[RowChunk]:
        """Yield the rows that are left, not read yet."""
        while some := list(self._some_rows()):
            start, self._start = self._start, self._start + len(some)
            yield start, some
        if self._start == 0:
            raise DatasetFormatError(f"{self.reader.file.name}: it has no rows")

    def _some_rows(self) -> Iterator[Row]:
        """Yield the rows of the next chunk, unless too many of them cannot be split."""
        n_bad, most = 0, MAX_REJECTS.value
        for row in islice(self._rows, self.chunk_size):
            if isinstance(row, BadRow):
                n_bad += 1
                if n_bad > most:
                    raise _too_many_rejects(self.reader.file.name, row.reason)
            yield row

    def __next__(self) -> GraphTable:
        table = self.reader.read(next(self.chunks()), self._schema)
        self._schema = self._schema or table.schema
        return table

"""From rows of a file to a table of graphs; invalid rows are listed, and shift no others."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Number
from typing import Any, Literal, cast

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array, Ints
from fdgnn.exceptions import DatasetFormatError, FDGNNWarning, GraphError, frames_of_libraries
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import (
    Descriptors,
    Value,
    is_missing,
    kind_of_cells,
    number_in,
    value_in,
)
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
    several, errors = options.has_several, dict[int, str]()
    values: list[dict[int, Any]] = []
    for column, cells in columns.items():
        found, wrong, censored = _read_column(cells, options)
        values.append(found)
        if censored:
            n, example = len(censored), next(iter(censored.values()))
            verb = agreeing(n, "is", "are")
            said = f"{name}: {n} of {len(cells)} targets {verb} censored, such as {example}"
            if options.censored == "error":
                raise DatasetFormatError(
                    f"{said}; `censored='drop'` leaves them out, `censored='bound'` takes the "
                    "bounds"
                )
            done = "left out; `censored='bound'` takes the bounds as values"
            if options.censored == "bound":
                done = f"{agreeing(n, 'its bound is', 'their bounds are')} taken as the values"
            warnings.warn(f"{said}; {done}", FDGNNWarning, stacklevel=frames_of_libraries())
        for i, reason in wrong.items():
            if not several:
                errors[i] = reason
            elif i not in censored:  # otherwise the row's other targets may be known
                errors.setdefault(i, f"{reason} ({column})")
    targets: dict[int, Any] = {}
    for i in next(iter(columns.values())):
        row = [found.get(i) for found in values]
        if i not in errors and all(value is None for value in row):
            errors[i] = "all targets are missing" if several else "the target is missing"
        if i not in errors:
            targets[i] = row if several else row[0]
    return targets, errors


def _read_column(
    cells: Mapping[int, Any], options: ReadOptions
) -> tuple[dict[int, Any], dict[int, str], dict[int, Any]]:
    """Read one column of targets, in which numbers may be censored or have decimal commas.

    Returns
    -------
    values : dict
        Numbers or text by row; a missing target has none.
    errors : dict of str
        Reasons why other rows are rejected.
    censored : dict
        The cells of rows with a bound instead of a number, such as ``>1995``.
    """
    # 1. What is each cell, and is a comma a decimal point?
    known = {i: plain(cell) for i, cell in cells.items()}
    known = {i: cell for i, cell in known.items() if not is_missing(cell)}
    texts = [cell for cell in known.values() if isinstance(cell, str)]
    commas = [text for text in texts if _DECIMAL_COMMA.fullmatch(text)]
    decimal_comma = not all(map(_THOUSANDS.fullmatch, commas))
    parsed = {i: _parsed(cell, decimal_comma) for i, cell in known.items()}
    # 2. Is the target a number? Two different numbers are enough, as most rows may have a bound
    # such as ``>10000``; but ``<10``, ``10`` and ``>10`` are classes.
    kinds, numeric = {kind for kind, _ in parsed.values()}, options.numeric
    if "text" not in kinds and (commas or kinds - {"number"}):
        numbers = [str(known[i]) for i, (kind, _) in parsed.items() if kind == "number"]
        classes = "bound" in kinds and options.censored == "drop"
        numeric |= not classes or len(known) <= 2 * len(numbers) or len(set(numbers)) > 1
    bounds = [i for i, (kind, _) in parsed.items() if kind == "bound"]
    censored = {i: known[i] for i in bounds} if numeric else {}
    # 3. The value of each cell, or what is wrong with it.
    values: dict[int, Any] = {}
    errors: dict[int, str] = {}
    for i, (kind, number) in parsed.items():
        cell = known[i]
        is_text = isinstance(cell, str)
        if i in censored and options.censored != "bound":
            errors[i] = f"target is censored ({cell})"
        elif isinstance(cell, list | tuple | dict):
            errors[i] = f"target has {len(cell)} entries, expected one"
        elif is_text and MAX_LABEL.is_below(len(cell)):
            errors[i] = f"target has {len(cell)} characters; {MAX_LABEL.in_words}"
        elif kind == "infinite" and (numeric or not is_text):
            errors[i] = "target is infinite"
        elif numeric and kind == "ambiguous":
            errors[i] = (
                f"target {cell!r} may have a decimal comma or thousands; write numbers with a "
                "decimal point, and thousands without separators"
            )
        elif numeric and kind == "text":
            errors[i] = "target is not a number"
        else:
            values[i] = number if numeric else cell
    return values, errors, censored


def _parsed(cell: Any, decimal_comma: bool) -> tuple[str, int | float | None]:
    """Return the kind of a cell, and the number that it stands for, if any."""
    is_text = isinstance(cell, str)
    bound = _BOUND.sub(r"\1", cell) if is_text and _BOUND.fullmatch(cell) else None
    for kind, part in (("number", cell), ("bound", bound)):
        if decimal_comma and isinstance(part, str) and _DECIMAL_COMMA.fullmatch(part):
            part = part.replace(",", ".")
        if (number := number_in(part)) is not None:
            return kind, number
    try:
        if abs(float(cell)) > LARGEST:
            return "infinite", None
    except OverflowError:
        return "infinite", None
    except (TypeError, ValueError):
        pass
    thousands = not decimal_comma and is_text and _THOUSANDS.fullmatch(bound or cell)
    return "ambiguous" if thousands else "text", None


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

    @property
    def smiles(self) -> tuple[str, ...] | None:
        """The valid rows' SMILES, if they are molecules.

        They are as in the file or, where standardization changed a molecule, those of the changed
        one. Its atoms, from left to right, are vertices.
        """
        column = None if self.graphs is None else self.graphs.smiles
        return None if column is None else tuple(column.texts.tolist())

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
RowChunk = tuple[int, Sequence[Row]]  # rows that are not read yet, after the first one's number


@dataclass(frozen=True)
class ChunkReader:
    """Converter of some rows of a file to a table, for any process."""

    name: str  # of the file
    source: Literal["table", "molecules", "networks"]
    columns: Sequence[str]
    graph_of: RowReader = field(repr=False)
    options: ReadOptions
    like: InputSchema | None = None
    text_only: bool = False  # numbers are written as text, as in CSV files
    id_column: str | None = None  # unless the user names another
    smiles_column: str | None = None
    attributes: AttributeReader | None = None  # of graphs that are files

    def read(self, chunk: RowChunk, schema: InputSchema | None = None) -> GraphTable:
        """Make a table of rows; how to read them is decided on these, unless it is given."""
        (start, rows), options, several = chunk, self.options, self.options.has_several
        # 1. Each row by itself: its id, and its graph as the file has it.
        ids: list[Any] = []
        raws: dict[int, Any] = {}
        rejects: dict[int, str] = {}
        id_column = options.id_column or self.id_column
        for i, row in enumerate(rows):
            own = row.id if isinstance(row, BadRow) else id_column and plain(row.get(id_column))
            ids.append(start + i if own is None else own)
            if isinstance(row, BadRow):
                rejects[i] = row.reason
                continue
            try:
                raws[i] = self.graph_of(row)
            except GraphError as error:
                rejects[i] = error.reason
        # 2. The targets and the descriptors, column by column.
        targets: dict[int, Any] = {}
        if options.targets:
            given = {t: {i: cast(Cells, rows[i]).get(t) for i in raws} for t in options.targets}
            targets, errors = read_targets(given, options, self.name)
            rejects |= errors
            raws = {i: raw for i, raw in raws.items() if i not in errors}
        described, categories = self._described(
            {i: cast(Cells, rows[i]) for i in raws}, schema or self.like, rejects
        )
        raws = {i: raw for i, raw in raws.items() if i in described}
        # 3. All graphs by one schema.
        joined = Joined(None, None, {})
        if schema is not None or raws:
            joined = join(raws, schema) if schema is not None else self._inferred(raws, categories)
        rejects |= joined.errors
        found_rejects = [Reject(start + i, ids[i], why) for i, why in sorted(rejects.items())]
        if rejects and options.strict:
            raise DatasetFormatError(f"{self.name}, {found_rejects[0]}")
        if MAX_REJECTS.is_below(len(rejects)):
            raise _too_many_rejects(self.name, str(found_rejects[0]))
        # 4. The valid rows.
        valid, graphs = [i for i in range(len(rows)) if i not in rejects], joined.graphs
        if options.descriptors and graphs is not None:
            columns = Descriptors.of_rows([described[i] for i in valid])
            graphs = replace(graphs, descriptors=columns)
        y: Array | None = None
        if several:
            y = np.full((len(valid), len(options.targets)), None, dtype=object)
            for t in range(len(options.targets)):
                there = [g for g, i in enumerate(valid) if targets[i][t] is not None]
                column = [targets[valid[g]][t] for g in there]
                y[there, t] = target_array(column, self.text_only).tolist()
        elif options.targets:
            y = target_array([targets[i] for i in valid], self.text_only)
        kept = [*options.columns, *([self.smiles_column] if self.smiles_column else [])]
        cells = {
            name: tuple(None if isinstance(row, BadRow) else plain(row.get(name)) for row in rows)
            for name in kept
        }
        known = None if self.like is None else self.like.id_column
        molecules = cast(dict[int, Molecule], raws if self.source == "molecules" else {})
        return GraphTable(
            graphs=graphs,
            y=y,
            ids=tuple(ids),
            rows=np.array(valid, dtype=np.int64),
            rejects=tuple(found_rejects),
            start=start,
            schema=joined.schema,
            columns={name: tuple(cells[name][i] for i in valid) for name in options.columns},
            changes=tuple(
                Change(start + i, ids[i], own.given or "", own.smiles.text, own.changes)
                for i in valid
                if (own := molecules.get(i)) is not None and own.changes
            ),
            targets=options.targets if several else (),
            id_column=options.id_column or (known if known == self.id_column else None),
            cells=cells,
        )

    def _described(
        self, rows: Mapping[int, Cells], schema: InputSchema | None, rejects: dict[int, str]
    ) -> tuple[dict[int, dict[str, Value]], tuple[str, ...]]:
        """Read the descriptors of rows, and find which are categories, unless a schema says so.

        These are the columns that the user names, and those with text. Rows with invalid values
        are added to the rejects.
        """
        names, categories = self.options.descriptors, self.options.categories
        if schema is not None:
            categories = schema.categories
        else:
            try:
                columns = {name: [plain(row.get(name)) for row in rows.values()] for name in names}
                found = [
                    name
                    for name in names
                    if name in categories or kind_of_cells(name, columns[name]) == "category"
                ]
            except GraphError as error:
                raise DatasetFormatError(f"{self.name}: {error}") from None
            categories = tuple(found)
        values: dict[int, dict[str, Value]] = {}
        for i, row in rows.items():
            try:
                values[i] = {
                    name: value_in(name, plain(row.get(name)), name in categories) for name in names
                }
            except GraphError as error:
                rejects[i] = error.reason
        return values, categories

    def _inferred(self, raws: Mapping[int, Any], categories: tuple[str, ...]) -> Joined:
        """Infer the schema, unless there is one of a model, and join the graphs."""
        options, known = self.options, self.like
        names: dict[str, Any] = {
            "source": self.source,
            "smiles_column": self.smiles_column,
            "id_column": options.id_column,
            "descriptors": options.descriptors,
            "categories": categories,
        }
        if known is None:
            unused = {} if self.attributes is None else self.attributes.unused
            try:
                joined = read_raw(raws, options, self.source, self.name, unused=unused)
            except GraphError as error:
                raise DatasetFormatError(f"{self.name}: {error}") from None
            if joined.schema is None or joined.graphs is None:
                return joined
            schema = replace_fields(joined.schema, **names)
            return joined._replace(schema=schema, graphs=replace(joined.graphs, schema=schema))
        first = next(iter(raws.values()))  # what a model's schema lacks are names in the file
        if self.source != "molecules":
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

    def __init__(self, rows: Iterator[Row], reader: ChunkReader, chunk_size: int | None) -> None:
        self.reader, self.chunk_size = reader, chunk_size
        # Molecules that are read as a model's were: nothing is decided on the first chunk.
        self.independent = reader.source == "molecules" and reader.like is not None
        self._rows, self._start = rows, 0
        self._schema: InputSchema | None = None

    def chunks(self) -> Iterator[RowChunk]:
        """Yield the rows that are left, not read yet."""
        name, most = self.reader.name, MAX_REJECTS.value
        while True:
            some: list[Row] = []
            n_bad = 0
            for row in islice(self._rows, self.chunk_size):
                some.append(row)
                if isinstance(row, BadRow):  # too many that cannot be split are not all kept
                    n_bad += 1
                    if n_bad > most:
                        raise _too_many_rejects(name, row.reason)
            if not some:
                break
            start, self._start = self._start, self._start + len(some)
            yield start, some
        if self._start == 0:
            raise DatasetFormatError(f"{name}: no rows")

    def __next__(self) -> GraphTable:
        table = self.reader.read(next(self.chunks()), self._schema)
        self._schema = self._schema or table.schema
        return table

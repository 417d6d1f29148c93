"""Predictions, explanations and bad rows as files: each is complete, or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fdgnn.extras import require
from fdgnn.files import check_writable, write_aside
from fdgnn.texts import guarded, printable

if TYPE_CHECKING:
    from fdgnn.datasets import Change, Reject
    from fdgnn.prediction.explanation import Explained
    from fdgnn.prediction.predictor import PredictedRows

Cells = dict[str, Any]  # one row of output, by column
Table = Mapping[str, list[Any]]  # some rows of output, by column
KINDS = (".csv", ".jsonl", ".parquet")


@contextmanager
def prediction_writer(
    output: str, guard: bool = True, *, as_json: bool = False
) -> Iterator[Callable[[PredictedRows], None]]:
    """Give a function that appends predictions to `output`; "-" prints them.

    They are printed as CSV or, `as_json`, as an object per line. With `guard`, text in a CSV file
    that a spreadsheet would run as a formula begins with a quote.
    """
    printed = ".jsonl" if as_json and output == "-" else None
    with _writer(output, printed, guard) as write:
        yield lambda predicted: write(predicted.columns)


@contextmanager
def explanation_writer(
    output: str, descriptors: bool = False, guard: bool = True, *, as_json: bool = False
) -> Iterator[Callable[[Iterable[Explained]], None]]:
    """Give a function that appends explanations: a row per vertex, or a JSON object per graph.

    Where graphs have descriptors or groups, each of these has a row, too. `guard` and `as_json` are
    as in `prediction_writer`.
    """
    printed = ".jsonl" if as_json and output == "-" else None
    columns = [*_SUMMARY, *_PARTS, *(["descriptor"] * descriptors), "contribution", "effect"]
    rows = _object_of if (printed or Path(output).suffix) == ".jsonl" else _rows_of
    with _writer(output, printed, guard) as write:

        def write_all(explained: Iterable[Explained]) -> None:
            found = [cells for one in explained for cells in rows(one)]
            if rows is _rows_of:
                write(_by_column(found, columns))
                return
            for cells in found:  # an object has only what there is
                write(_by_column([cells], list(cells)))

        yield write_all


_PARTS = ("vertex", "label", "group", "vertices")  # which part of a graph a row is about


def _object_of(one: Explained) -> list[Cells]:
    """Describe an explanation in one object."""
    explanation = one.explanation
    cells = _summary(one) | {"labels": one.labels, "vertices": explanation.vertices.tolist()}
    if explanation.vertex_effects is not None:
        cells["vertex_effects"] = explanation.vertex_effects.tolist()
        cells["groups"] = [
            {
                "name": group.name,
                "vertices": group.vertices.tolist(),
                "contribution": group.contribution,
                "effect": group.effect,
                "score_without": explanation.score - group.effect,
            }
            for group in explanation.groups
        ]
    if explanation.descriptors:
        cells["descriptors"] = dict(explanation.descriptors)
    if explanation.edges is not None and explanation.edge_effects is not None:
        cells["edges"] = explanation.edges.T.tolist()
        cells["edge_effects"] = explanation.edge_effects.tolist()
    return [cells]


def _rows_of(one: Explained) -> list[Cells]:
    """Describe an explanation in one row per vertex, one per group, and one per descriptor."""
    found, summary = one.explanation, _summary(one)
    n = len(found.vertices)
    labels = one.labels or [None] * n
    effects = [None] * n if found.vertex_effects is None else found.vertex_effects.tolist()
    vertices = zip(labels, found.vertices.tolist(), effects, strict=True)
    parts: list[Cells] = [
        {"vertex": v, "label": label, "contribution": value, "effect": effect}
        for v, (label, value, effect) in enumerate(vertices)
    ]
    parts += [
        {
            "group": group.name,
            "vertices": " ".join(map(str, group.vertices.tolist())),
            "contribution": group.contribution,
            "effect": group.effect,
        }
        for group in found.groups
    ]
    parts += [{"descriptor": n, "contribution": v} for n, v in found.descriptors.items()]
    return [summary | part for part in parts]


_SUMMARY = ("row", "id", "class", "score", "base_score", "warning")


def _summary(one: Explained) -> Cells:
    explanation, target = one.explanation, one.explanation.target
    named = target.item() if hasattr(target, "item") else target
    what = named if one.of_class else None
    cells = (one.row, one.id, what, explanation.score, explanation.base_score, one.warning)
    return dict(zip(_SUMMARY, cells, strict=True))


@contextmanager
def reject_writer(
    open_file: Callable[[], AbstractContextManager[IO[bytes]]],
) -> Iterator[Callable[[Sequence[Reject]], None]]:
    """Yield a function that appends rejected rows to a CSV file, opened at the first of them.

    Rejected rows are written as they come: a file may have more of them than fit in memory.
    """
    with ExitStack() as stack:
        write: Callable[[Table], None] | None = None

        def append(rejects: Sequence[Reject]) -> None:
            nonlocal write
            if rejects:
                write = write or stack.enter_context(
                    rows_writer(stack.enter_context(open_file()), ".csv")
                )
                columns = ("row", "id", "reason")
                write({name: [getattr(each, name) for each in rejects] for name in columns})

        yield append


def write_changes(path: Path, changes: Iterable[Change]) -> None:
    """List molecules that were changed before they were read in a CSV file."""
    columns = ["row", "id", "before", "after", "steps"]
    rows = [asdict(each) | {"steps": " ".join(each.steps)} for each in changes]
    with _writer(str(path), kind=".csv") as write:
        write(_by_column(rows, columns))


# ---------------------------------------------------------------------- kinds of files


def _by_column(rows: Sequence[Cells], names: Sequence[str]) -> Table:
    return {name: [row.get(name) for row in rows] for name in names}


@contextmanager
def _writer(
    output: str, kind: str | None = None, guard: bool = True
) -> Iterator[Callable[[Table], None]]:
    if output == "-":
        yield _printer(kind, guard)
        return
    path = Path(output)
    kind = kind or kind_of(output)
    check_writable(path)
    with write_aside(path) as file, rows_writer(file, kind, guard) as write:
        yield write


def _printer(kind: str | None, guard: bool) -> Callable[[Table], None]:
    """Give a function that prints rows."""
    if sys.stdout is None:
        raise ValueError("standard output is closed; give -o NAME to write a file")
    cell = _on_terminal if sys.stdout.isatty() else _cell(guard)
    rows = _json_rows(sys.stdout) if kind == ".jsonl" else _csv_rows(sys.stdout, cell)

    def write_now(table: Table) -> None:
        try:
            rows(table)
            sys.stdout.flush()  # for whoever waits at the other end of a pipe
        except OSError as error:
            error.filename = error.filename or "standard output"
            raise

    return write_now


def kind_of(output: str) -> str:
    """Find the kind of a file of results by the ending of its name."""
    kind = Path(output).suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"{output}: its ending must be one of {', '.join(KINDS)}")
    return kind


@contextmanager
def rows_writer(
    file: IO[bytes], kind: str, guard: bool = True, *, header: bool = True
) -> Iterator[Callable[[Table], None]]:
    """Give a function that appends rows to an open file; a CSV file may have no header."""
    if kind == ".parquet":
        with _parquet_rows(file) as write:
            yield write
        return
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    yield _csv_rows(text, _cell(guard), header) if kind == ".csv" else _json_rows(text)
    text.flush()
    text.detach()


def _csv_rows(
    file: IO[str], cell: Callable[[Any], Any], header: bool = True
) -> Callable[[Table], None]:
    writer = csv.writer(file, lineterminator="\n")
    wanted = [header]

    def write(table: Table) -> None:
        if wanted.pop():  # wait for the first rows: if there is an error, it should come alone
            writer.writerow(map(cell, table))
        wanted.append(False)
        writer.writerows(zip(*(_cells(column, cell) for column in table.values()), strict=True))

    return write


def _cells(column: list[Any], cell: Callable[[Any], Any]) -> list[Any]:
    """Give the cells of a column; only text has to be looked at."""
    return [cell(each) for each in column] if _has_text(column) else column


def _has_text(column: list[Any]) -> bool:
    return str in set(map(type, column))


def _cell(guard: bool) -> Callable[[Any], Any]:
    return lambda value: guarded(value) if guard and isinstance(value, str) else value


def _on_terminal(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _json_rows(file: IO[str]) -> Callable[[Table], None]:
    def write(table: Table) -> None:
        rows = zip(*table.values(), strict=True)
        file.writelines(json.dumps(dict(zip(table, row, strict=True))) + "\n" for row in rows)

    return write


# Columns of text, of which the first rows may have nothing: Parquet wants to know the type at once.
_TEXT = ("unlike", "warning", "error", "standardized")


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

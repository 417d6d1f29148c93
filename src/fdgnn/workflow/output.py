"""Predictions, explanations and bad rows as files: each is complete, or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fdgnn.extras import require
from fdgnn.files import check_writable, write_aside
from fdgnn.texts import guarded, printable

if TYPE_CHECKING:
    from fdgnn.datasets import Change, Reject
    from fdgnn.workflow.explaining import Explained
    from fdgnn.workflow.predicting import Prediction
    from fdgnn.workflow.trusting import RowTrust

Cells = dict[str, Any]  # one row of output, by column
KINDS = (".csv", ".jsonl", ".parquet")
NO_CLASS = "none"  # in place of a set without classes
_OF_ROWS = ("novelty", "unlike", "warning", "error")  # columns of rows, whatever the targets are


@contextmanager
def prediction_writer(
    output: str,
    model: Any,
    id_name: str | None,
    covered: Sequence[str] = (),
    guard: bool = True,
    *,
    as_json: bool = False,
) -> Iterator[Callable[[Iterable[Prediction]], None]]:
    """Give a function that appends predictions of a model to `output`; "-" prints them.

    They are printed as CSV or, `as_json`, as an object per line.

    `covered` are the columns of a set or an interval, where one was asked for. Of several targets
    each has its own columns, which end with its name. With `guard`, text in a CSV file that a
    spreadsheet would run as a formula begins with a quote.
    """
    name = id_name or "row"
    targets = [each.name for each in model.targets_] if model.each_ else [None]
    parts = [
        _TargetColumns(target, getattr(one, "classes_", ()), covered)
        for target, one in zip(targets, model.each_ or (model,), strict=True)
    ]
    columns = [each for part in parts for each in part.names]
    beside = ["standardized"] if _standardizes(model) else []
    columns += [*beside, *_OF_ROWS]
    if name in columns:
        raise ValueError(f"`id_column` is {name!r}, as a column of the output; rename it")
    if len(set(columns)) < len(columns):
        raise ValueError("two targets would have the same columns in the output; rename one")

    def row(p: Prediction) -> Cells:
        cells: Cells = {name: p.id}
        for part, own in zip(parts, p.of_targets or [p] * len(parts), strict=True):
            cells |= part.cells(own)
        cells |= dict.fromkeys(beside, p.standardized)
        known = (p.trust.novelty, p.trust.unlike, p.warning, p.error)
        return cells | dict(zip(_OF_ROWS, known, strict=True))

    printed = ".jsonl" if as_json and output == "-" else None
    with _writer(output, [name, *columns], printed, guard) as write:
        yield lambda predictions: write([row(p) for p in predictions])


def _standardizes(model: Any) -> bool:
    """Tell whether a model changes molecules before it reads them."""
    return model.reading_ is not None and model.reading_.standardize is not None


class _TargetColumns:
    """The columns of one target; without a name it is the only one."""

    def __init__(self, target: str | None, classes: Sequence[Any], covered: Sequence[str]) -> None:
        end, of = ("", "") if target is None else (f"_{target}", f"{target}_")
        self.n_classes, self.covered = len(classes), covered
        chances = [f"probability_{of}{c}" for c in classes]
        given = [f"{each}{end}" for each in covered]
        self.names = [f"prediction{end}", f"score{end}", *chances, *given]

    def cells(self, p: Prediction) -> Cells:
        """Give the cells of one row."""
        shown = p.probabilities or (None,) * self.n_classes
        known = _covered(p.trust, self.covered)
        return dict(zip(self.names, (p.prediction, p.score, *shown, *known), strict=True))


def _covered(trust: RowTrust, columns: Sequence[str]) -> tuple[Any, ...]:
    """The set as text, or both ends of the interval."""
    values: tuple[Any, ...] = (None,) * len(columns)
    if trust.likely is not None:
        values = ("|".join(map(str, trust.likely)) or NO_CLASS,)
    if trust.interval is not None:
        values = trust.interval
    return values


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
    with _writer(output, columns, printed, guard) as write:
        yield lambda explained: write([
            {name: cells.get(name) for name in columns} if rows is _rows_of else cells
            for one in explained
            for cells in rows(one)
        ])  # fmt: skip


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


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    """List bad rows in a CSV file."""
    with _writer(str(path), ["row", "id", "reason"], kind=".csv") as write:
        write([{"row": r.row, "id": r.id, "reason": r.reason} for r in rejects])


def write_changes(path: Path, changes: Iterable[Change]) -> None:
    """List molecules that were changed before they were read in a CSV file."""
    columns = ["row", "id", "before", "after", "steps"]
    with _writer(str(path), columns, kind=".csv") as write:
        write([asdict(each) | {"steps": " ".join(each.steps)} for each in changes])


# ---------------------------------------------------------------------- kinds of files


@contextmanager
def _writer(
    output: str, columns: list[str], kind: str | None = None, guard: bool = True
) -> Iterator[Callable[[list[Cells]], None]]:
    if output == "-":
        cell = _on_terminal if sys.stdout.isatty() else _cell(guard)
        rows = _json_rows(sys.stdout) if kind == ".jsonl" else _csv_rows(sys.stdout, columns, cell)

        def write_now(cells: list[Cells]) -> None:
            rows(cells)
            sys.stdout.flush()  # for whoever waits at the other end of a pipe

        yield write_now
        return
    path = Path(output)
    kind = kind or path.suffix.lower()
    if kind not in KINDS:
        raise ValueError(f"{path}: its ending must be one of {', '.join(KINDS)}")
    check_writable(path)
    with write_aside(path) as file:
        if kind == ".parquet":
            with _parquet_rows(file) as write:
                yield write
            return
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield _csv_rows(text, columns, _cell(guard)) if kind == ".csv" else _json_rows(text)
        text.flush()
        text.detach()


def _csv_rows(
    file: IO[str], columns: list[str], cell: Callable[[Any], Any]
) -> Callable[[list[Cells]], None]:
    writer = csv.writer(file, lineterminator="\n")
    started: list[bool] = []

    def write(rows: list[Cells]) -> None:
        if not started:  # wait for the first rows: if there is an error, it should come alone
            writer.writerow(map(cell, columns))
            started.append(True)
        writer.writerows([cell(row.get(column)) for column in columns] for row in rows)

    return write


def _cell(guard: bool) -> Callable[[Any], Any]:
    return lambda value: guarded(value) if guard and isinstance(value, str) else value


def _on_terminal(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _json_rows(file: IO[str]) -> Callable[[list[Cells]], None]:
    def write(rows: list[Cells]) -> None:
        file.writelines(json.dumps(row) + "\n" for row in rows)

    return write


@contextmanager
def _parquet_rows(file: IO[bytes]) -> Iterator[Callable[[list[Cells]], None]]:
    pa = require("pyarrow", "tables", "Parquet files")
    pq = require("pyarrow.parquet", "tables", "Parquet files")
    opened: list[Any] = []

    def write(rows: list[Cells]) -> None:
        table = pa.Table.from_pylist(rows, schema=opened[0].schema if opened else None)
        if not opened:
            opened.append(pq.ParquetWriter(file, table.schema))
        opened[0].write_table(table)

    yield write
    for writer in opened:
        writer.close()

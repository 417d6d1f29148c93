"""Predictions, explanations and rejects as files: complete, or not there."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from fdgnn.exceptions import MissingDependencyError
from fdgnn.files import check_writable, write_aside

if TYPE_CHECKING:
    from fdgnn.datasets import Reject
    from fdgnn.workflow.explaining import Explained
    from fdgnn.workflow.predicting import Prediction

Row = dict[str, Any]
KINDS = (".csv", ".jsonl", ".parquet")


@contextmanager
def prediction_writer(
    output: str, classes: Sequence[Any], id_name: str | None
) -> Iterator[Callable[[Iterable[Prediction]], None]]:
    """Give a function that appends predictions to `output`; "-" prints them as CSV."""
    name = id_name or "row"
    chances = [f"probability_{c}" for c in classes]
    if name in ("prediction", "score", "error", *chances):
        raise ValueError(f"--id {name}: the output has a column of that name; rename it")

    def row(p: Prediction) -> Row:
        shown = p.probabilities or (None,) * len(chances)
        return {
            name: p.id,
            "prediction": p.prediction,
            "score": p.score,
            **dict(zip(chances, shown, strict=True)),
            "error": p.error,
        }

    with _writer(output, [name, "prediction", "score", *chances, "error"]) as write:
        yield lambda predictions: write([row(p) for p in predictions])


@contextmanager
def explanation_writer(output: str) -> Iterator[Callable[[Iterable[Explained]], None]]:
    """Give a function that appends explanations: a row a vertex, or a JSON object a graph."""
    columns = ["row", "id", "class", "score", "base_score", "vertex", "label", "contribution"]

    def rows(one: Explained) -> list[Row]:
        common = {
            "row": one.row,
            "id": one.id,
            "class": _plain(one.explanation.target),
            "score": one.explanation.score,
            "base_score": one.explanation.base_score,
        }
        contributions = one.explanation.vertices.tolist()
        labels = [None] * len(contributions) if one.graph.labels is None else one.graph.labels
        if Path(output).suffix != ".jsonl":
            return [
                common | {"vertex": v, "label": _plain(labels[v]), "contribution": value}
                for v, value in enumerate(contributions)
            ]
        whole = common | {"vertices": contributions}
        if one.explanation.edges is not None and one.explanation.edge_effects is not None:
            whole |= {
                "edges": one.explanation.edges.T.tolist(),
                "edge_effects": one.explanation.edge_effects.tolist(),
            }
        return [whole]

    with _writer(output, columns) as write:
        yield lambda explained: write([r for one in explained for r in rows(one)])


def write_rejects(path: Path, rejects: Iterable[Reject]) -> None:
    """List rejected rows in a CSV file."""
    with _writer(str(path), ["row", "id", "reason"], kind=".csv") as write:
        write([{"row": r.row, "id": r.id, "reason": r.reason} for r in rejects])


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


# ---------------------------------------------------------------------- one way for each kind


@contextmanager
def _writer(
    output: str, columns: list[str], kind: str | None = None
) -> Iterator[Callable[[list[Row]], None]]:
    if output == "-":
        yield _csv_rows(sys.stdout, columns)
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
        yield _csv_rows(text, columns) if kind == ".csv" else _json_rows(text)
        text.flush()
        text.detach()


def _csv_rows(file: IO[str], columns: list[str]) -> Callable[[list[Row]], None]:
    writer = csv.DictWriter(file, columns, lineterminator="\n")
    started: list[bool] = []

    def write(rows: list[Row]) -> None:
        if not started:  # not before there is something, so that errors come alone
            writer.writeheader()
            started.append(True)
        writer.writerows(rows)

    return write


def _json_rows(file: IO[str]) -> Callable[[list[Row]], None]:
    def write(rows: list[Row]) -> None:
        file.writelines(json.dumps(row) + "\n" for row in rows)

    return write


@contextmanager
def _parquet_rows(file: IO[bytes]) -> Iterator[Callable[[list[Row]], None]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError(
            "Parquet needs pyarrow; install it with: pip install 'fdgnn[tables]'"
        ) from error
    opened: list[Any] = []

    def write(rows: list[Row]) -> None:
        table = pa.Table.from_pylist(rows, schema=opened[0].schema if opened else None)
        if not opened:
            opened.append(pq.ParquetWriter(file, table.schema))
        opened[0].write_table(table)

    yield write
    for writer in opened:
        writer.close()

"""Targets of a table, and whether they are classes or numbers."""

from __future__ import annotations

import numpy as np

from fdgnn.datasets import GraphTable
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Array, GraphBatch
from fdgnn.graphs.descriptors import number_in
from fdgnn.schema import TaskName
from fdgnn.targets import Targets, class_targets, number_classes, number_targets

MOST_CLASSES = 20  # whole numbers with more different values are inferred to be regression targets


def infer_task(y: Array) -> TaskName:
    """Infer the task: text, bools and few different whole numbers are classes, others numbers."""
    if y.dtype.kind not in "iuf":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and len(np.unique(y)) <= MOST_CLASSES else "regression"


def text_among_numbers(y: Array) -> str | None:
    """Return the first text that is not a number, if most of the others are numbers."""
    if y.dtype.kind in "iufb":
        return None
    texts = [str(value) for value in y.tolist()]
    odd = [text for text in texts if number_in(text) is None]
    return odd[0] if 0 < len(odd) < len(texts) / 2 else None


def table_targets(table: GraphTable, task: TaskName | None = None) -> tuple[GraphBatch, Targets]:
    """Return the graphs and targets of a table, or an error that says what is missing."""
    if table.graphs is None:
        first = f", the first because of: {table.rejects[0]}" if table.rejects else ""
        raise GraphError(f"none of the {table.n_rows} rows can be used{first}")
    if table.y is None:
        raise DatasetFormatError("no target column is given; name it by `target`")
    if not table.targets:
        return table.graphs, one_target(table.y, task or infer_task(table.y))
    # Several columns: all are classes, or all are numbers.
    columns = dict(zip(table.targets, table.y.T, strict=True))
    if task is None:
        kinds: dict[TaskName, str] = {}
        for name, column in columns.items():
            known = np.array([value for value in column.tolist() if value is not None])
            kinds.setdefault(infer_task(known), name)
        if len(kinds) > 1:
            raise DatasetFormatError(
                f"{kinds['classification']!r} is a classification target and "
                f"{kinds['regression']!r} a regression target; fit them separately, or set `task` "
                "to one kind for all"
            )
        task = next(iter(kinds))
    targets = class_targets if task == "classification" else number_targets
    return table.graphs, targets(columns, table.graphs)


def one_target(y: Array, task: TaskName) -> Targets:
    """Return a single target of values that are there for all graphs.

    It may have one class only: who trains on it says what is wrong with that.
    """
    if task == "classification":
        classes, codes = number_classes(y)
        return Targets(("",), codes[:, None], (classes,), flat=True)
    try:
        numbers = y.astype(np.float64)
    except ValueError:
        raise DatasetFormatError(
            "the target is text, but regression needs numbers; choose classification, or a column "
            "with numbers"
        ) from None
    return Targets(("",), numbers[:, None], flat=True)

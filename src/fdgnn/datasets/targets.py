"""Targets as files have them: numbers, text or lists of one entry; some are missing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError
from fdgnn.graphs.cells import is_missing, number_in
from fdgnn.limits import MAX_LABEL

LARGEST = sys.float_info.max


def read_target(value: Any, numeric: bool) -> Any:
    """Check one target; return it as a number or text."""
    value = plain(value)
    if is_missing(value):
        raise GraphError("its target is missing")
    if isinstance(value, list | tuple | dict):
        raise GraphError(f"its target has {len(value)} entries, expected one")
    if numeric:
        value = number_in(value)
        if value is None:
            raise GraphError("its target is not a number")
    if isinstance(value, int | float | Decimal) and not -LARGEST <= value <= LARGEST:
        raise GraphError("its target is infinite")
    if isinstance(value, str) and MAX_LABEL.is_below(len(value)):
        raise GraphError(f"its target has {len(value)} characters; {MAX_LABEL.in_words}")
    return value


def read_targets(cells: Mapping[str, Any], numeric: bool) -> list[Any]:
    """Check several targets of a row, of which one at least must be there; the others are None."""
    found: list[Any] = []
    for name, cell in cells.items():
        try:
            found.append(None if is_missing(plain(cell)) else read_target(cell, numeric))
        except GraphError as error:
            raise GraphError(f"{error.reason} ({name})") from None
    if all(value is None for value in found):
        raise GraphError("all of its targets are missing")
    return found


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
    """Take a single entry out of its lists and arrays."""
    while isinstance(value, list | tuple | np.ndarray) and len(value) == 1:
        value = value[0]
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value

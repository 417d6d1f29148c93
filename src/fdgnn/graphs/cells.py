"""Cells of tables: which are missing, and which are numbers, however they are written."""

from __future__ import annotations

from typing import Any

MISSING = frozenset({"", "na", "n/a", "nan", "null"})  # as text, in any case


def is_missing(cell: Any) -> bool:
    """Tell whether a cell is empty, or says that there is no value."""
    if isinstance(cell, str):
        return cell.strip().lower() in MISSING
    return cell is None or bool(cell != cell)


def number_in(cell: Any) -> int | float | None:
    """Read a cell as a number, also one that is written as text; None if it is none."""
    for kind in (int, float):
        try:
            number = kind(cell)
            if (isinstance(cell, str) or number == cell) and abs(number) < 2**63:
                return number
        except (TypeError, ValueError, OverflowError):
            continue
    return None

"""Comparisons in tests: contestants without a process, and its imports, for each."""

from __future__ import annotations

from fdgnn.evaluation.comparison.contest import Turn, take
from fdgnn.evaluation.records import Limits


def take_here(turn: Turn, limits: Limits) -> tuple[str, None]:
    """Take a contestant's turn in this process, in place of the runner's `_run`."""
    take(turn, lambda event: None)
    return "finished", None

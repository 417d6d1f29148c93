"""Comparisons in tests: methods without a process, and its imports, for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fdgnn.context import Context
from fdgnn.evaluation.comparison import work
from fdgnn.evaluation.record import Limits
from fdgnn.evaluation.timing import TimedEvaluation


def run_here(
    compared: TimedEvaluation, path: Path, limits: Limits, context: Context, spent: float
) -> tuple[Any, None]:
    """Run a method in this process, instead of `run_in_process`."""
    work(compared, path / "parts", context)
    return "finished", None

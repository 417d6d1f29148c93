"""Comparisons in tests: methods without a process, and its imports, for each."""

from __future__ import annotations

from pathlib import Path

from fdgnn.evaluation.comparison import MethodRun
from fdgnn.evaluation.record import Limits


def run_here(run: MethodRun, log: Path, limits: Limits) -> tuple[str, None]:
    """Run a method in this process, instead of `run_in_process`."""
    run.work(lambda event: None)
    return "finished", None

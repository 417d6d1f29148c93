"""Results as tables for a terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.table import Table


def result_table(result: dict[str, Any]) -> Table:
    """Ours beside the paper's row."""
    published = result["published"] or {}
    guesses = f"{result['n_configurations']} configurations x {result['n_guesses']} networks"
    table = Table(title=f"{result['dataset']}, {guesses}, nested cross validation")
    table.add_column("")
    table.add_column("ours", justify="right")
    table.add_column("paper", justify="right")
    for what, ours, theirs in _rows(result, published):
        table.add_row(what, ours, theirs)
    return table


def _rows(result: dict[str, Any], published: dict[str, Any]) -> list[tuple[str, str, str]]:
    single, times = result["single_layer"], result["times"]
    return [
        ("accuracy, %", _percent(result), _percent(published)),
        (
            "accuracy with one layer, %",
            _percent(single),
            _number(published.get("single_layer_accuracy_mean"), 100, 2),
        ),
        (
            "layers selected",
            f"{result['depth_mean']:.1f}",
            _number(published.get("depth_mean"), 1, 1),
        ),
        (
            "training, s",
            f"{np.mean(times['fold_train_seconds']):.3f}",
            _number(published.get("train_seconds"), 1, 2),
        ),
        (
            "test, s",
            f"{np.mean(times['fold_test_seconds']):.4f}",
            _number(published.get("test_seconds"), 1, 2),
        ),
    ]


def _percent(row: dict[str, Any]) -> str:
    if not row:
        return "-"
    return f"{100 * row['accuracy_mean']:.2f} ± {100 * row['accuracy_std']:.2f}"


def _number(value: float | None, factor: float, digits: int) -> str:
    return "-" if value is None else f"{factor * value:.{digits}f}"

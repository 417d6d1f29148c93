"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
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
        ("accuracy, outputs of networks averaged, %", _percent(result.get("ensemble", {})), ""),
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


def comparison_table(rows: Sequence[dict[str, Any]]) -> Table:
    """FDGNN beside its rivals, narrow enough for 80 columns; of the unfinished, why."""
    table = Table(
        title=f"{rows[0]['dataset']}: nested cross validation, times on one core",
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
    )
    table.add_column("")
    columns = ("accuracy %", "published", "train s", "slower", "test s", "weights", "MB")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(row["model"], *_comparison_cells(row, rows[0]["train_seconds"]))
    return table


def unfinished_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What became of those that did not finish."""
    unfinished = [row for row in rows if row["status"] != "finished"]
    return [f"{row['model']}: {row['status']} ({row['reason']})" for row in unfinished]


def _comparison_cells(row: dict[str, Any], ours: float | None) -> tuple[str, ...]:
    score = row["published"] or {}
    published = _short_percent(score.get("accuracy_mean"), score.get("accuracy_std"))
    if row["status"] != "finished":
        return (row["status"], published)
    faster = row["train_seconds"] / ours if ours else None
    return (
        _short_percent(row["accuracy_mean"], row["accuracy_std"]),
        published,
        f"{row['train_seconds']:.3g}",
        "" if row["model"] == "fdgnn" or faster is None else times(faster),
        f"{row['test_seconds']:.2g}",
        f"{row['parameters']:,}",
        f"{row['peak_mb']:.0f}",
    )


def times(ratio: float) -> str:
    """A ratio as one says it: 6.1x, 39x, 1,750x."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2g}x"


def _short_percent(mean: float | None, std: float | None) -> str:
    if mean is None:
        return "-"
    return f"{100 * mean:.1f}" + ("" if std is None else f" ± {100 * std:.1f}")

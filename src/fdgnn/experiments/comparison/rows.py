"""From what a contestant has recorded to its row of the table."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdgnn.exceptions import StudyError
from fdgnn.experiments import paper
from fdgnn.experiments.comparison.contest import Turn
from fdgnn.experiments.rivals import RIVALS

Row = dict[str, Any]

_MEASURED = (
    "accuracy_mean", "accuracy_std", "fold_accuracies", "train_seconds", "train_seconds_std",
    "test_seconds", "selection_seconds", "peak_mb", "parameters",
)  # fmt: skip


def finished_row(turn: Turn) -> Row:
    """The row of a contestant whose last record is its summary."""
    summaries = [r for r in turn.records if r.get("kind") == "summary"]
    if not summaries:
        raise StudyError(
            f"{turn.records.path}: it has no summary, though {turn.name} has finished; remove the "
            "folder it is in, and run the same command again"
        )
    found = summaries[-1]
    accuracies = np.array(found["fold_accuracies"])
    return _head(turn, "finished", None) | {
        "accuracy_mean": float(accuracies.mean()),
        "accuracy_std": float(accuracies.std(ddof=1)),
        "fold_accuracies": accuracies.tolist(),
        "train_seconds": float(np.mean(found["fold_train_seconds"])),
        "train_seconds_std": float(np.std(found["fold_train_seconds"], ddof=1)),
        "test_seconds": float(np.mean(found["fold_test_seconds"])),
        "selection_seconds": found["selection_seconds"],
        "peak_mb": found["peak_mb"],
        "parameters": round(float(np.mean(found["fold_parameters"]))),
        "published": published(turn.name, turn.study.dataset),
        "n_configurations": found["n_configurations"],
        "n_guesses": found.get("n_guesses", 1),
        "inner_folds": found["inner_folds"] if found.get("fold_validation", True) else 0,
        "fold_configurations": found["fold_configurations"],
    }


def unfinished_row(turn: Turn, status: str, reason: str | None) -> Row:
    """The row of a contestant that ran out of something, or failed."""
    return (
        _head(turn, status, reason)
        | dict.fromkeys(_MEASURED)
        | {
            "published": published(turn.name, turn.study.dataset),
            "n_configurations": turn.search.n_configurations,
            "n_guesses": None,
            "inner_folds": turn.search.inner_folds,
            "fold_configurations": None,
        }
    )


def _head(turn: Turn, status: str, reason: str | None) -> Row:
    title = "FDGNN" if turn.name == "fdgnn" else RIVALS[turn.name].title
    return {
        "dataset": turn.study.dataset,
        "model": turn.name,
        "title": title,
        "status": status,
        "reason": reason,
    }


def published(name: str, dataset: str) -> Row | None:
    """The accuracy printed for a model on a dataset, as a share; None where there is none."""
    row = "FDGNN" if name == "fdgnn" else RIVALS[name].published
    score = paper.published_accuracy(row, dataset)
    if score is None:
        return None
    return {
        "accuracy_mean": round(score.mean / 100, 6),
        "accuracy_std": None if score.std is None else round(score.std / 100, 6),
        "reference": score.reference,
    }

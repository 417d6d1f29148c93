"""From what a contestant has finished to its row of the table."""

from __future__ import annotations

import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.baselines import RIVALS
from fdgnn.evaluation.comparison.contest import Turn
from fdgnn.evaluation.records import ComparisonRow, PublishedAccuracy, Status, SummaryLine
from fdgnn.exceptions import StudyError


def finished_row(turn: Turn) -> ComparisonRow:
    """Make the row of a contestant with a summary as its last line."""
    summaries = [line for line in turn.lines if isinstance(line, SummaryLine)]
    if not summaries:
        raise StudyError(
            f"{turn.lines.path}: it has no summary, though {turn.name} has finished; remove the "
            "folder it is in, and run the same command again"
        )
    found = summaries[-1]
    accuracies, seconds = np.array(found.fold_accuracies), np.array(found.fold_train_seconds)
    return ComparisonRow(
        dataset=turn.study.dataset,
        model=turn.name,
        title=_title(turn.name),
        status="finished",
        accuracy_mean=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)),
        fold_accuracies=found.fold_accuracies,
        balanced_accuracy_mean=found.balanced_accuracy_mean,
        roc_auc_mean=found.roc_auc_mean,
        train_seconds=float(seconds.mean()),
        train_seconds_std=float(seconds.std(ddof=1)),
        test_seconds=float(np.mean(found.fold_test_seconds)),
        selection_seconds=found.selection_seconds,
        peak_mb=found.peak_mb,
        parameters=round(float(np.mean(found.fold_parameters))),
        published=published(turn.name, turn.study.dataset),
        n_configurations=found.n_configurations,
        n_guesses=found.n_guesses,
        inner_folds=found.inner_folds,
        fold_configurations=found.fold_configurations,
    )


def unfinished_row(turn: Turn, status: Status, reason: str | None) -> ComparisonRow:
    """Make the row of a contestant that ran out of time or memory, or failed."""
    return ComparisonRow(
        dataset=turn.study.dataset,
        model=turn.name,
        title=_title(turn.name),
        status=status,
        reason=reason,
        published=published(turn.name, turn.study.dataset),
        n_configurations=turn.search.n_configurations,
        inner_folds=turn.search.inner_folds,
    )


def _title(name: str) -> str:
    return "FDGNN" if name == "fdgnn" else RIVALS[name].title


def published(name: str, dataset: str) -> PublishedAccuracy | None:
    """Give the accuracy printed for a model on a dataset, as a share; None if there is none."""
    row = "FDGNN" if name == "fdgnn" else RIVALS[name].published
    score = None if row is None else paper.published_accuracy(row, dataset)
    if score is None:
        return None
    return PublishedAccuracy(
        accuracy_mean=round(score.mean / 100, 6),
        accuracy_std=None if score.std is None else round(score.std / 100, 6),
        reference=score.reference,
    )

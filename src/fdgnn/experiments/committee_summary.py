"""The summary of an evaluated committee: how its average does, and each of its members alone."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.experiments.committee_records import CommitteeResult, CommitteeSettings, QuantityResult
from fdgnn.experiments.study import versions
from fdgnn.readout.metrics import OF_CLASSES, OF_NUMBERS, named_scoring
from fdgnn.selection.committees import CommitteeScores, MemberOutputs, score_committee
from fdgnn.selection.folds import TEST
from fdgnn.selection.nested import NestedAnswers, chosen_cuts
from fdgnn.selection.scores import SelectionTask


def summary_of_classes(
    settings: CommitteeSettings,
    task: SelectionTask,
    found: Sequence[MemberOutputs],
    command: str | None,
) -> CommitteeResult:
    """Summarize a committee that tells classes apart."""
    scores = score_committee(task, found, classify=True)
    answers, *alone = (
        nested_answers(settings, task, outputs)
        for outputs in (scores.outputs, *(one.outputs for one in found))
    )
    chosen = OF_CLASSES[settings.scoring]
    accuracies = answers.by_fold(OF_CLASSES["accuracy"])
    area = answers.score(OF_CLASSES["roc_auc"])  # NaN where no fold has all classes
    return CommitteeResult(
        scoring=settings.scoring,
        accuracy_mean=float(accuracies.mean()),
        accuracy_std=float(accuracies.std(ddof=1)),
        fold_accuracies=accuracies.tolist(),
        balanced_accuracy_mean=answers.score(OF_CLASSES["balanced_accuracy"]),
        roc_auc_mean=_known(area),
        score_mean=_known(chosen.shown(answers.score(chosen))),
        member_accuracies=[each.score(OF_CLASSES["accuracy"]) for each in alone],
        **_facts(settings, task, found, scores),
        command=command,
    )


def nested_answers(
    settings: CommitteeSettings, task: SelectionTask, outputs: Floats
) -> NestedAnswers:
    """Give what outputs (n_outer, n, q) say, with the thresholds of the outer folds, if any."""
    metric = None if settings.threshold is None else OF_CLASSES[settings.threshold].metric
    cuts = None if metric is None else chosen_cuts(task, outputs, metric)
    return NestedAnswers(task.y, task.folds == TEST, outputs, cuts=cuts)


def summary_of_numbers(
    settings: CommitteeSettings,
    task: SelectionTask,
    found: Sequence[MemberOutputs],
    command: str | None,
) -> QuantityResult:
    """Summarize a committee that predicts a number.

    Raises
    ------
    ValueError
        No outer fold can be scored.
    """
    scores, chosen = score_committee(task, found, False), named_scoring(settings.scoring, False)
    tested = task.folds == TEST
    answers = NestedAnswers(task.y, tested, scores.outputs)
    folds = [_known(chosen.shown(score)) for score in answers.by_fold(chosen).tolist()]
    known = [score for score in folds if score is not None]
    if not known:
        raise ValueError(
            "no outer fold can be scored, because each has graphs of one value only; choose "
            "another split or another scoring"
        )
    alone = [NestedAnswers(task.y, tested, one.outputs).score(chosen) for one in found]
    means = {name: one.shown(answers.score(one)) for name, one in OF_NUMBERS.items()}
    return QuantityResult(
        scoring=chosen.name,  # type: ignore[arg-type]  # one of OF_NUMBERS
        score_mean=float(np.mean(known)),
        score_std=float(np.std(known, ddof=1)) if len(known) > 1 else None,
        fold_scores=folds,
        r2_mean=_known(means["r2"]),
        rmse_mean=means["rmse"],
        mae_mean=means["mae"],
        spearman_mean=_known(means["spearman"]),
        member_scores=[_known(chosen.shown(score)) for score in alone],
        **_facts(settings, task, found, scores),
        command=command,
    )


def _known(score: float) -> float | None:
    return None if np.isnan(score) else score


def _facts(
    settings: CommitteeSettings,
    task: SelectionTask,
    found: Sequence[MemberOutputs],
    scores: CommitteeScores,
) -> dict[str, Any]:
    """What both summaries have: what was evaluated, by what, and which members were averaged."""
    return {
        "dataset": settings.dataset,
        "model": settings.model,
        "n_graphs": len(task.graphs),
        "seed": settings.seed,
        "split": settings.split,
        "members": settings.members,
        "fold_kept": [np.flatnonzero(row).tolist() for row in scores.kept],
        "fold_alphas": np.array([one.penalties for one in found]).T.tolist(),
        "member_seconds": [one.seconds for one in found],
        "versions": versions(),
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
    }

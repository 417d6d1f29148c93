"""The summary of an evaluated ensemble: its scores, and those of each base model alone."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.ensemble import Ensemble, combine
from fdgnn.evaluation.committee_records import CommitteeResult, CommitteeSettings, QuantityResult
from fdgnn.evaluation.scores import versions
from fdgnn.fitting import FitTask, ModelFit
from fdgnn.folds import TEST
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, named_scoring
from fdgnn.selection.scoring import NestedPredictions, chosen_thresholds


def summary_of_classes(
    settings: CommitteeSettings,
    task: FitTask,
    fits: Sequence[ModelFit],
    command: str | None,
) -> CommitteeResult:
    """Summarize an ensemble of classifiers."""
    ensemble = combine(fits, task)
    answers, *alone = (
        nested_answers(settings, task, predictions)
        for predictions in (ensemble.predictions, *_predictions(fits))
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
        **_facts(settings, task, fits, ensemble),
        command=command,
    )


def nested_answers(
    settings: CommitteeSettings, task: FitTask, predictions: Floats
) -> NestedPredictions:
    """Return predictions (n_outer, n, q) with the thresholds of the outer folds, if any."""
    metric = None if settings.threshold is None else OF_CLASSES[settings.threshold].metric
    cuts = None if metric is None else chosen_thresholds(task, predictions, metric)
    return NestedPredictions(task.targets, task.folds == TEST, predictions, cuts)


def _predictions(fits: Sequence[ModelFit]) -> list[Floats]:
    """Return the predictions (n_outer, n, q) of each base model."""
    return [fit.choice.predictions for fit in fits if fit.choice is not None]


def summary_of_numbers(
    settings: CommitteeSettings,
    task: FitTask,
    fits: Sequence[ModelFit],
    command: str | None,
) -> QuantityResult:
    """Summarize an ensemble of regressors.

    Raises
    ------
    ValueError
        No outer fold can be scored.
    """
    ensemble, chosen = combine(fits, task), named_scoring(settings.scoring, False)
    answers = nested_answers(settings, task, ensemble.predictions)
    folds = [_known(chosen.shown(score)) for score in answers.by_fold(chosen).tolist()]
    known = [score for score in folds if score is not None]
    if not known:
        raise ValueError(
            "no outer fold can be scored, because each has graphs of one value only; choose "
            "another split or another scoring"
        )
    alone = [nested_answers(settings, task, each).score(chosen) for each in _predictions(fits)]
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
        **_facts(settings, task, fits, ensemble),
        command=command,
    )


def _known(score: float) -> float | None:
    return None if np.isnan(score) else score


def _facts(
    settings: CommitteeSettings,
    task: FitTask,
    fits: Sequence[ModelFit],
    ensemble: Ensemble,
) -> dict[str, Any]:
    """Return what both summaries have: what was evaluated, and which base models were averaged."""
    return {
        "dataset": settings.dataset,
        "model": settings.model,
        "n_graphs": len(task.targets),
        "seed": settings.seed,
        "split": settings.split,
        "members": settings.members,
        "fold_kept": [np.flatnonzero(row).tolist() for row in ensemble.kept],
        "fold_alphas": np.hstack([fit.chosen_alphas for fit in fits]).tolist(),
        "member_seconds": [fit.seconds for fit in fits],
        "versions": versions(),
        "machine": {"python": platform.python_version(), "cpu": platform.machine()},
    }

"""How a model does on each target, beside constants and what chemists hold against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.graphs import Array, GraphBatch
from fdgnn.readout.metrics import OF_CLASSES, Scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.readout.targets import code_classes
from fdgnn.selection.folds import TEST, Folds
from fdgnn.selection.nested import NestedAnswers
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.workflow.chemistry import baseline_answers


@dataclass(frozen=True)
class TargetFacts:
    """How a model does on one target, with what `Training` says of all of them.

    `n_known` are the graphs for which the target is known.
    """

    name: str
    n_known: int
    scores: dict[str, float]
    baseline: float | None
    rival: dict[str, float]
    ceiling: float | None


def facts_of_targets(
    graphs: GraphBatch, y: Any, found: FDGNNSearchCV, scoring: Scoring,
    shown: Sequence[Scoring], X: Any,
) -> Iterator[TargetFacts]:  # fmt: skip
    """How the model, constants and Morgan counts do on each target, where it is known."""
    classify = scoring.name in OF_CLASSES
    if not isinstance(y, SeveralTargets):
        scores = {one.words: one.shown(found.nested_score_by(one.name)) for one in shown}
        yield _facts("", graphs, y, scores, scoring, shown, X, found.nested_folds_)
        return
    by_target = {one.words: found.nested_scores_by_target(one.name) for one in shown}
    for t, (name, known) in enumerate(zip(y.names, y.known.T, strict=True)):
        scores = {one.words: one.shown(by_target[one.words][name]) for one in shown}
        values, own = y.of_graphs(t), None if X is None else X[known]
        some, folds = graphs[known] if classify else graphs, found.nested_folds_[:, known]
        yield _facts(name, some, values, scores, scoring, shown, own, folds)


def _facts(
    name: str, graphs: GraphBatch, y: Array, scores: dict[str, float], scoring: Scoring,
    shown: Sequence[Scoring], X: Any, folds: Folds,
) -> TargetFacts:  # fmt: skip
    classify = scoring.name in OF_CLASSES
    return TargetFacts(
        name=name,
        n_known=len(y),
        scores=scores,
        baseline=_constant(y, folds, scoring),
        rival={} if X is None else _rival(X, y, folds, shown),
        ceiling=graphs.wl_ceiling(y) if classify else None,
    )


def _rival(X: Any, y: Array, folds: Folds, scorings: Sequence[Scoring]) -> dict[str, float]:
    """Scores of logistic or ridge regression on Morgan counts, in the same outer folds."""
    classify = scorings[0].name in OF_CLASSES
    truth = np.unique(y, return_inverse=True)[1] if classify else y
    answers = baseline_answers(X, truth, folds, classify)
    return {each.words: each.shown(answers.score(each)) for each in scorings}


def mean_or_none(values: Sequence[float | None]) -> float | None:
    """Mean of numbers, or None if one is missing."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if len(known) == len(values) else None


def mean_of_each(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Mean of each measure over several targets."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _constant(y: Array, folds: Folds, scoring: Scoring) -> float | None:
    """The score of an answer that is the same for all graphs: the mean of the training targets.

    Of coded classes it is largest for the majority class.
    """
    classify = scoring.name in OF_CLASSES
    classes, values = np.unique(y, return_inverse=True) if classify else (y, y)
    if scoring.name in ("balanced_accuracy", "roc_auc"):  # the same whatever the constant
        return 0.5 if scoring.name == "roc_auc" else 1 / len(classes)
    if scoring.name not in ("accuracy", "r2", "rmse", "mae"):
        return None
    targets = code_classes(y)[1] if classify else y[:, None]
    rows = folds[(folds == TEST).any(axis=1)]
    means = np.array([targets[row >= 0].mean(axis=0) for row in rows])
    outputs = np.repeat(means[:, None], len(y), axis=1)
    answers = NestedAnswers(values, rows == TEST, outputs)
    return scoring.shown(answers.score(scoring))

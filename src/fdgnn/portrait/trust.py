"""How far predictions can be trusted: what sets and intervals cover, what is unlike training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.graphs import Floats, GraphBatch
from fdgnn.portrait.answers import Answers
from fdgnn.portrait.records import UNLIKE, CoverageFacts, TrustFacts, UnlikeGraph
from fdgnn.portrait.text import clipped, short

COVERAGES = (0.8, 0.9, 0.95)


def trust_facts(answers: Answers, graphs: GraphBatch, ids: Sequence[object]) -> TrustFacts | None:
    """Ask each model about its own graphs, which it has not seen; None if models cannot tell."""
    if any(model.novelty_ is None for model in answers.models):
        return None
    novelty, words = np.empty(len(graphs)), dict[int, str]()
    for m, model in enumerate(answers.models):
        mine = np.flatnonzero(answers.model_of == m)
        if len(mine):
            novelty[mine] = model.novelty(graphs if len(answers.models) == 1 else graphs[mine])
            told = model.told_unlike(graphs[mine], novelty[mine])
            words |= {int(mine[g]): w for g, w in told.items()}
    unlike = np.isin(np.arange(len(graphs)), list(words))
    most = sorted(words, key=lambda g: (-novelty[g], g))[:UNLIKE]
    return TrustFacts(
        coverages=[facts for share in COVERAGES for facts in _covered(answers, share)],
        n_unlike=len(words),
        error_unlike=_error(answers, unlike),
        error_others=_error(answers, ~unlike),
        unlike=[
            UnlikeGraph(graph=g, id=clipped(ids[g]), novelty=short(novelty[g]), words=words[g])
            for g in most
        ],
    )


def _error(answers: Answers, chosen: Any) -> float | None:
    """The share of wrong classes, or the mean absolute error, of some graphs."""
    if answers.actual is None or not chosen.any():
        return None
    if answers.regression:
        return short(np.abs(answers.actual - answers.predicted)[chosen].mean())
    return short((answers.actual != answers.predicted)[chosen].mean())


def _covered(answers: Answers, share: float) -> list[CoverageFacts]:
    """One record, or none where models have no held-out scores, or too few for this share."""
    try:
        limits = np.array([_limit(model, share) for model in answers.models])[answers.model_of]
    except (AttributeError, ValueError):
        return []
    if answers.regression:
        covered = None
        if answers.actual is not None:
            covered = short((np.abs(answers.actual - answers.predicted) <= limits).mean())
        return [CoverageFacts(coverage=share, covered=covered, size=short(2 * limits.mean()))]
    if answers.chances is None:
        return []
    sets = 1.0 - answers.chances <= limits[:, None]
    return [
        CoverageFacts(
            coverage=share,
            covered=None if answers.actual is None else short(_holds(sets, answers.actual).mean()),
            size=short(sets.sum(axis=1).mean()),
            empty=short((~sets.any(axis=1)).mean()),
        )
    ]


def _limit(model: Any, share: float) -> float:
    scores = model.conformal_
    return float(scores.limit(share) if hasattr(model, "classes_") else scores.limits(share)[0])


def _holds(sets: Any, actual: Any) -> Floats:
    return np.asarray(sets[np.arange(len(actual)), actual])

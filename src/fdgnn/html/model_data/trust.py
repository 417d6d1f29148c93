"""How far predictions can be trusted: coverage of sets and intervals, the applicability domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.answers import Answers
from fdgnn.html.model_data.records import UNLIKE, CoverageFacts, TrustFacts, UnlikeGraph
from fdgnn.html.model_data.text import clipped, short

COVERAGES = (0.8, 0.9, 0.95)


def trust_facts(answers: Answers, graphs: GraphBatch, ids: Sequence[object]) -> TrustFacts | None:
    """Return the facts about graphs that their models have not seen; None if models cannot tell."""
    if any(model._novelty is None for model in answers.models):
        return None
    novelty, words = np.empty(len(graphs)), dict[int, str]()
    for m, model in enumerate(answers.models):
        mine = np.flatnonzero(answers.model_of == m)
        if len(mine):
            novelty[mine] = model.novelty(graphs if len(answers.models) == 1 else graphs[mine])
            told = model._told_unlike(graphs[mine], novelty[mine])
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
    """One record, or none where models have no conformal scores, or too few for this share."""
    scores = [model.targets_[0].scores for model in answers.models]
    try:
        limits = np.array([one.limit(share) for one in scores if one is not None])
    except ValueError:
        return []
    if len(limits) < len(scores):
        return []
    limits = limits[answers.model_of]
    if answers.regression:
        covered = None
        if answers.actual is not None:
            covered = short((np.abs(answers.actual - answers.predicted) <= limits).mean())
        return [CoverageFacts(coverage=share, covered=covered, size=short(2 * limits.mean()))]
    if answers.probabilities is None:
        return []
    sets = 1.0 - answers.probabilities <= limits[:, None]
    return [
        CoverageFacts(
            coverage=share,
            covered=None if answers.actual is None else short(_holds(sets, answers.actual).mean()),
            size=short(sets.sum(axis=1).mean()),
            empty=short((~sets.any(axis=1)).mean()),
        )
    ]


def _holds(sets: Any, actual: Any) -> Floats:
    return np.asarray(sets[np.arange(len(actual)), actual])

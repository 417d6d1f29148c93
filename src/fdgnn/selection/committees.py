"""Nested scores of a committee: each member once for all folds, then the rule in every fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import joblib
import numpy as np

from fdgnn.committee import HeldOut, Mask, Member, at_best_penalty, kept_members
from fdgnn.encoders import GraphKind
from fdgnn.graphs import Floats
from fdgnn.networks import draw_network, joined_choices
from fdgnn.readout.metrics import ranks
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.selection.scores import (
    SelectionTask,
    outputs_of_readouts,
    score_outputs,
    scores_of_targets,
)
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel


@dataclass(frozen=True)
class MemberOutputs:
    """What one member says of held-out graphs, at the penalty that each row of folds chose.

    Attributes
    ----------
    number : int
        Its place in the committee.
    penalties, scores : (n_rows,)
        What each row of folds chose, and the validation score there; of several targets, a
        penalty for each, (n_rows, n_targets).
    outputs : (n_rows, n, q)
        Of graphs in inner folds, by a readout that has not seen their fold; of test graphs, by
        one that was trained on all inner folds.
    seconds : float
    """

    number: int
    penalties: Floats
    scores: Floats
    outputs: Floats
    seconds: float


class CommitteeScores(NamedTuple):
    """How the committee does in each row of folds."""

    kept: Mask  # (n_rows, n_members)
    validation: Floats  # (n_rows,) mean over the inner folds
    deviation: Floats  # (n_rows,) standard deviation over the inner folds
    test: Floats  # (n_rows,) NaN where a row has no test graphs
    outputs: Floats  # (n_rows, n, q) averaged over the members that are kept


def member_outputs(task: SelectionTask, estimator: Any, number: int) -> MemberOutputs:
    """Train one member on all folds and penalties."""
    start = time.thread_time()  # of the processor, whatever else the machine does
    member = members(task, estimator)[number]
    seed = child_seed(seed_sequence(estimator.random_state), number)
    with one_blas_thread():
        drawn = draw_network(member, task.graphs, seed, estimator.n_projections)
        outputs = outputs_of_readouts(task, drawn.features, member.recipe)
        chosen, best = _chosen(task, outputs)
    return MemberOutputs(
        number,
        np.array([c.penalty for c in chosen]),
        best,
        np.array([c.outputs for c in chosen]),
        time.thread_time() - start,
    )


def _chosen(task: SelectionTask, outputs: Floats) -> tuple[list[HeldOut], Floats]:
    """Take the best penalty in each row of folds, and give the scores (n_rows,) there.

    Each of several targets has a penalty of its own.
    """
    alphas = task.alphas.tolist()
    if task.several is None:
        scores = score_outputs(task, outputs).validation  # (n_rows, a)
        pairs = zip(outputs, scores, strict=True)
        return [at_best_penalty(o, s, alphas) for o, s in pairs], scores.max(axis=1)
    each = [found.validation for found in scores_of_targets(task, outputs)]  # (n_rows, a)
    parts = task.several.parts(outputs)
    chosen = [
        joined_choices(
            task.several,
            [at_best_penalty(o[row], s[row], alphas) for o, s in zip(parts, each, strict=True)],
        )
        for row in range(len(task.folds))
    ]
    return chosen, np.mean([scores.max(axis=1) for scores in each], axis=0)


def members(task: SelectionTask, estimator: Any) -> tuple[Member, ...]:
    """Give the members that an estimator has for the graphs of a task."""
    found: tuple[Member, ...] = estimator.members(GraphKind.of(task.graphs), len(task.graphs))
    return found


def all_outputs(
    task: SelectionTask, estimator: Any, numbers: Sequence[int], n_jobs: int | None = None
) -> Iterator[MemberOutputs]:
    """Train members on joblib's current backend, in whatever order they finish."""
    call: Callable[..., Any] = joblib.delayed(member_outputs)
    found: Iterator[MemberOutputs] = parallel(n_jobs, return_as="generator_unordered")(
        call(task, estimator, i) for i in numbers
    )
    return found


def score_committee(
    task: SelectionTask, found: Sequence[MemberOutputs], classify: bool
) -> CommitteeScores:
    """Apply the rule in each row of folds, by its validation graphs alone, and score the rest."""
    outputs = np.array([one.outputs for one in found])  # (m, n_rows, n, q)
    ranking = classify and ranks(task.metric)
    kept = np.array([
        kept_members(outputs[:, row, fold >= 0], task.targets[fold >= 0], classify, ranking)
        for row, fold in enumerate(task.folds)
    ])  # fmt: skip
    averaged = np.array([outputs[keep, row].mean(axis=0) for row, keep in enumerate(kept)])
    scores = score_outputs(task, averaged[:, None])  # one penalty: already chosen
    validation, deviation, test = (part[:, 0] for part in scores)
    return CommitteeScores(kept, validation, deviation, test, averaged)

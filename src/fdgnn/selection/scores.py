"""Scores of candidates: embed once, select many.

Reservoirs are untrained, so one embedding of a network serves every fold and every penalty; the
readouts of all folds and penalties come from one closed form (`fdgnn.readout.ridge`).

A *candidate* is a configuration (parameters of an estimator) with one or more guesses (numbers of
random draws). The outputs of its guesses are averaged, then scored. An estimator is known here by
two methods: ``network_features(graphs, guess, depths)`` is what the readout of a guess sees, for
each depth a dense or sparse matrix (n_graphs, P), and ``recipe(n_graphs)`` how the readout is
trained.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from fdgnn.committee import ReadoutRecipe
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.readout.metrics import Metric, accuracy
from fdgnn.readout.several import SeveralTargets
from fdgnn.readout.targets import code_classes
from fdgnn.selection.folds import TEST, Folds
from fdgnn.selection.rule import SelectionRule
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel


@dataclass(frozen=True)
class SelectionTask:
    """What every candidate of a search is scored on."""

    graphs: GraphBatch
    targets: Floats  # (n, q), -1/+1 coded or real
    y: Array  # (n,) class numbers, or the real targets
    folds: Folds  # (n_outer, n), as `nested_folds` or `outer_rows` give them
    alphas: Floats  # (a,), ascending
    metric: Metric
    weights: Floats | None = None  # (n,) of the graphs' errors; or (n, q)
    several: SeveralTargets | None = None  # if there are several, whose values `y` has

    def at(self, row: int, alpha: float) -> SelectionTask:
        """Give the task of one row of folds and one penalty."""
        return replace(self, folds=self.folds[row : row + 1], alphas=np.array([alpha]))

    def parts(self) -> list[SelectionTask]:
        """Give the task of each of several targets, on the graphs for which it is known."""
        assert self.several is not None
        return [
            replace(self, y=self.several.values[known, t], folds=self.folds[:, known], several=None)
            for t, known in enumerate(self.several.known.T)
        ]


def several_task(
    graphs: GraphBatch, several: SeveralTargets, folds: Folds, alphas: Floats, metric: Metric
) -> SelectionTask:
    """Make the task of several targets, of classes or of numbers."""
    return SelectionTask(
        graphs, several.coded, several.values, folds, alphas, metric, several=several
    )


def classification_task(
    graphs: GraphBatch, y: Array, folds: Folds, alphas: npt.ArrayLike, metric: Metric = accuracy
) -> SelectionTask:
    """Make the task of telling classes apart."""
    classes, targets = code_classes(y)
    codes = np.searchsorted(classes, y)
    return SelectionTask(graphs, targets, codes, folds, np.array(alphas, np.float64), metric)


def regression_task(
    graphs: GraphBatch, y: Array, folds: Folds, alphas: npt.ArrayLike, metric: Metric
) -> SelectionTask:
    """Make the task of predicting one number."""
    targets = y.astype(np.float64).reshape(len(y), -1)
    return SelectionTask(graphs, targets, y, folds, np.array(alphas, np.float64), metric)


# ---------------------------------------------------------------------- one candidate


@dataclass(frozen=True)
class Candidate:
    """One thing to be scored: an estimator with its configuration set, and its guesses."""

    configuration: int
    guesses: tuple[int, ...]
    estimator: Any
    depths: tuple[int, ...]


class OutputScores(NamedTuple):
    """Scores of held-out outputs; each (..., n_outer, n_alphas)."""

    validation: Floats  # mean over the inner folds
    deviation: Floats  # standard deviation over the inner folds
    test: Floats  # on the test graphs of an outer fold; NaN where it has none


@dataclass(frozen=True)
class CandidateScores:
    """What came out for one candidate, and the seconds it took."""

    configuration: int
    guesses: tuple[int, ...]
    scores: OutputScores  # (n_depths, n_outer, n_alphas)
    seconds: float


def candidates_of(
    estimators: Sequence[Any],
    depths: Sequence[tuple[int, ...]],
    n_guesses: int,
    rule: SelectionRule,
) -> list[Candidate]:
    """Make the candidates of all configurations, given as estimators with the depths to score.

    They are ordered by guess, so that a part of them covers all configurations.
    """
    return [
        Candidate(c, group, estimator, depths[c])
        for group in rule.groups(n_guesses)
        for c, estimator in enumerate(estimators)
    ]


def score_candidate(task: SelectionTask, candidate: Candidate) -> CandidateScores:
    """Score one candidate at its depths, on all folds and penalties.

    A depth that is asked for twice is computed once: of a network of one layer, the paper's tables
    want depth one and its own depth.
    """
    start = time.thread_time()  # of the processor, whatever else the machine does
    depths = tuple(dict.fromkeys(candidate.depths))
    with one_blas_thread():
        total: Any = 0.0
        for guess in candidate.guesses:
            features = candidate.estimator.network_features(task.graphs, guess, depths)
            recipe = candidate.estimator.recipe(len(task.graphs))
            total = np.array([outputs_of_readouts(task, X, recipe) for X in features]) + total
        scores = score_outputs(task, total / len(candidate.guesses))
    asked = [depths.index(depth) for depth in candidate.depths]
    scores = OutputScores(*(part[asked] for part in scores))
    seconds = time.thread_time() - start
    return CandidateScores(candidate.configuration, candidate.guesses, scores, seconds)


def outputs_of_readouts(task: SelectionTask, X: Any, recipe: ReadoutRecipe) -> Floats:
    """Give the outputs (n_outer, n_alphas, n, q) of readouts on features X (n, P).

    A graph's output comes from the readout that has not seen its inner fold; for a test graph,
    from the readout trained on all inner folds.
    """
    folds = np.maximum(task.folds, TEST)  # to a readout, what is not used is a test graph
    return recipe.held_out(X, task.targets, task.alphas, folds, task.weights)


def score_outputs(task: SelectionTask, outputs: Floats) -> OutputScores:
    """Score outputs (..., n_outer, n_alphas, n, q); of several targets the mean of their scores."""
    if task.several is not None:
        each = scores_of_targets(task, outputs)
        return OutputScores(*(mean_of_known(part) for part in zip(*each, strict=True)))
    folds = [_score_fold(task, outputs[..., o, :, :, :], f) for o, f in enumerate(task.folds)]
    return OutputScores(*(np.stack(part, axis=-2) for part in zip(*folds, strict=True)))


def scores_of_targets(task: SelectionTask, outputs: Floats) -> list[OutputScores]:
    """Score outputs (..., n_outer, n_alphas, n, q) for each of several targets."""
    assert task.several is not None
    pairs = zip(task.parts(), task.several.parts(outputs), strict=True)
    return [score_outputs(part, own) for part, own in pairs]


def mean_of_known(scores: Sequence[Floats]) -> Floats:
    """Mean over the scores that are there; NaN where none is."""
    values = np.array(scores)
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.where(known.any(axis=0), total / np.maximum(known.sum(axis=0), 1), np.nan)


def _score_fold(task: SelectionTask, outputs: Floats, fold: Folds) -> OutputScores:
    by_fold = [
        task.metric(task.y[fold == f], outputs[..., fold == f, :])
        for f in range(fold.max() + 1)
        if (fold == f).any()
    ]
    validation, deviation = _over_folds(by_fold)
    test = fold == TEST
    if not test.any():
        return OutputScores(validation, deviation, np.full_like(validation, np.nan))
    return OutputScores(validation, deviation, task.metric(task.y[test], outputs[..., test, :]))


def _over_folds(scores: list[Floats]) -> tuple[Floats, Floats]:
    """Mean and standard deviation over the folds in which there is something to score.

    Where folds are not stratified, one may lack a class, and ROC AUC needs both.
    """
    known = [each for each in scores if not np.isnan(each).all()]
    if not known:
        raise ValueError(
            "no fold can be scored, because each has graphs of one class or value only; choose "
            "fewer folds, another split or another scoring"
        )
    return np.mean(known, axis=0), np.std(known, axis=0)


# ---------------------------------------------------------------------- many candidates


def score_candidates(
    task: SelectionTask, candidates: Iterable[Candidate], n_jobs: int | None = None
) -> Iterator[CandidateScores]:
    """Score candidates on joblib's current backend, in whatever order they finish."""
    candidates = list(candidates)
    if candidates and joblib.effective_n_jobs(n_jobs) > 1:
        # Once here, so that processes find facts that are computed once per batch in the batch
        # that is sent to them.
        first = candidates[0]
        first.estimator.network_features(task.graphs, first.guesses[0], first.depths[:1])
    scores: Iterator[CandidateScores] = parallel(
        n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
    )(joblib.delayed(score_candidate)(task, candidate) for candidate in candidates)
    return scores


@dataclass(frozen=True)
class Ensemble:
    """The guesses of a configuration, each with its own penalty, for the folds that chose them."""

    estimator: Any  # with its configuration set
    depth: int
    penalties: dict[int, list[float]]  # outer fold: alpha of each guess


def score_ensembles(
    task: SelectionTask, ensembles: Sequence[Ensemble], n_jobs: int | None = None
) -> Iterator[dict[int, float]]:
    """Give test scores by outer fold, of averaged outputs, in whatever order they finish."""
    scores: Iterator[dict[int, float]] = parallel(n_jobs, return_as="generator_unordered")(
        joblib.delayed(_score_ensemble)(task, ensemble) for ensemble in ensembles
    )
    return scores


def _score_ensemble(task: SelectionTask, ensemble: Ensemble) -> dict[int, float]:
    outputs: dict[int, list[Floats]] = {o: [] for o in ensemble.penalties}
    recipe = ensemble.estimator.recipe(len(task.graphs))
    with one_blas_thread():
        for guess in range(len(next(iter(ensemble.penalties.values())))):
            (X,) = ensemble.estimator.network_features(task.graphs, guess, (ensemble.depth,))
            for o, alphas in ensemble.penalties.items():
                train, test = task.folds[o] >= 0, task.folds[o] < 0
                readout = recipe.fit(X[train], task.targets[train], alphas[guess])
                outputs[o].append(readout.outputs(X[test]))
    return {
        o: float(task.metric(task.y[task.folds[o] < 0], np.mean(each, axis=0)))
        for o, each in outputs.items()
    }

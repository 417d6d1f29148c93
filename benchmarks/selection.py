"""Time of model selection relative to scikit-learn in a loop, and overhead of a run.

    python -m benchmarks.selection

Ratios in one run; the results are compared in the same run. Uses MUTAG (data home or GraKeL).
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import linalg
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_limits

from fdgnn import load_tu
from fdgnn.context import Context
from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
from fdgnn.evaluation.run import EvaluationTask, evaluate
from fdgnn.fitting import draw_features
from fdgnn.folds import nested_folds
from fdgnn.linear import Ridge
from fdgnn.targets import read_targets

SOLVER = Ridge(alpha="cv", normalize=False)
ALPHAS = SOLVER.grid(1, classify=True)


def one_by_one(X, y, codes, folds, alphas):
    """Validation and test scores, (outer, alphas), from a scikit-learn fit for each."""

    def fit_and_score(train, test, alpha):
        return RidgeClassifier(alpha=alpha).fit(X[train], codes[train]).score(X[test], codes[test])

    validation, test = np.empty((2, len(folds), len(alphas)))
    for o, fold in enumerate(folds):
        for a, alpha in enumerate(alphas):
            inner = [
                fit_and_score((fold >= 0) & (fold != f), fold == f, alpha)
                for f in range(fold.max() + 1)
            ]
            validation[o, a] = np.mean(inner)
            test[o, a] = fit_and_score(fold >= 0, fold < 0, alpha)
    return validation, test


def scores_of(task, X):
    """Validation and test scores, (outer, alphas), in closed form."""
    scores = task.scored(SOLVER.solve(X, task.targets.coded, ALPHAS, task.folds).predictions)
    return scores.validation[..., 0], scores.test[..., 0]


def paper_evaluation(graphs, y, protocol):
    """The paper's protocol on MUTAG."""
    folds = nested_folds(y, 10, 10, 0)
    task = EvaluationTask("MUTAG", graphs, read_targets(y, graphs, classify=True), folds)
    return PaperEvaluation(task, protocol)


def nested_evaluation() -> dict[str, float]:
    """One reservoir's nested 10 x 10 x 12 evaluation on MUTAG, beside scikit-learn in a loop."""
    graphs, y = load_tu("MUTAG", download_if_missing=False)
    study = paper_evaluation(graphs, y, PROTOCOLS["paper"])
    task = study.fit_task
    X = draw_features(study.base_model(study.configurations[0]), graphs, depth=3)[0]
    with threadpool_limits(1):
        ours = [timed(scores_of, task, X) for _ in range(5)]
        seconds, theirs = timed(one_by_one, X, y, task.targets.values[:, 0], task.folds, ALPHAS)
    best = min(s for s, _ in ours)
    same = [np.abs(a - b).max() for a, b in zip(ours[0][1], theirs, strict=True)]
    return {
        "ours_s": best,
        "sklearn_s": seconds,
        "ratio": seconds / best,
        "largest_difference": max(same),
    }


def from_shared_grams(X, Y, alphas, folds):
    """Outputs (outer, a, n, q): Gram matrices add over folds, a Cholesky factor for each fit."""
    outputs = np.empty((len(folds), len(alphas), *Y.shape))
    for o, fold in enumerate(folds):
        parts = {}
        for f in range(fold.max() + 1):
            A, B = X[fold == f], Y[fold == f]
            parts[f] = np.array([len(A)]), A.sum(0), B.sum(0), A.T @ A, A.T @ B
        total = [sum(part) for part in zip(*parts.values(), strict=True)]
        for f in range(-1, fold.max() + 1):
            left = total if f < 0 else [t - p for t, p in zip(total, parts[f], strict=True)]
            n, x, y, xx, xy = left
            gram, moments = xx - np.outer(x, x) / n, xy - np.outer(x, y) / n
            for a, alpha in enumerate(alphas):
                shifted = gram.copy()
                shifted.flat[:: len(gram) + 1] += alpha
                W = linalg.cho_solve(
                    linalg.cho_factor(shifted, overwrite_a=True, check_finite=False), moments
                )
                outputs[o, a, fold == f] = (X[fold == f] - x / n) @ W + y / n
    return outputs


def large_evaluation(n=4110, P=1000) -> dict[str, float]:
    """The same with NCI1's n and P, beside a Cholesky factor a fit from shared Gram matrices."""
    rng = np.random.default_rng(0)
    X = np.tanh(rng.normal(size=(n, 60)) @ rng.normal(size=(60, P)) / 8)
    y = (X @ rng.normal(size=P) + rng.normal(size=n) > 0).astype(int)
    Y, folds = np.where(y == 1, 1.0, -1.0)[:, None], nested_folds(y, 10, 10, 0)
    with threadpool_limits(1):
        ours_s, ours = timed(lambda: SOLVER.solve(X, Y, ALPHAS, folds).predictions)
        theirs_s, theirs = timed(from_shared_grams, X, Y, ALPHAS, folds)
    m, trained = n * 0.9 / 10, 0.9 * n
    splits = 10 * 11 * len(ALPHAS)
    systems = 10 * 10 * len(ALPHAS)
    return {
        "ours_s": ours_s,
        "cholesky_s": theirs_s,
        "ratio": theirs_s / ours_s,
        "other_classes": float((np.sign(ours) != np.sign(theirs)).mean()),
        # Gram matrix, eigenvectors and rotation of an outer fold; products and systems of an inner.
        "ours_gflop": (
            10 * (trained * P**2 + 9 * P**3 + 2 * n * P**2) + systems * (m**2 * P + m**3 / 3)
        )
        / 1e9,
        "cholesky_gflop": (10 * trained * P**2 + splits * P**3 / 3) / 1e9,
    }


def timed(function, *args):
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def run_directory(n_configurations=40, n_initializations=2) -> dict[str, float]:
    """The same study on one and on two cores: overhead beside the scores, and the speed-up."""
    graphs, y = load_tu("MUTAG", download_if_missing=False)
    protocol = replace(
        PROTOCOLS["paper"], n_configurations=n_configurations, n_initializations=n_initializations
    )
    study = paper_evaluation(graphs, y, protocol)
    during, after, results = {}, {}, {}
    for n_jobs in (1, 2, 2, 1):  # the first pair warms up processes and caches
        with tempfile.TemporaryDirectory() as directory:
            result = evaluate(study, Path(directory), Context(n_jobs)).evaluation
            again = evaluate(study, Path(directory), Context(n_jobs)).evaluation
        # Ensembles and timed fits take as long after a small search.
        after[n_jobs] = again.times.total
        during[n_jobs] = result.times.total - again.times.total
        results[n_jobs] = result
    assert results[1].targets == results[2].targets
    n_scored = n_configurations * n_initializations
    return {
        "one_core_s": during[1],
        "two_cores_s": during[2],
        "speed_up": during[1] / during[2],
        "overhead_share": 1 - results[1].times.selection / during[1],
        "after_the_search_s": after[2],
        "whole_protocol_minutes": (2000 / n_scored * during[2] + after[2]) / 60,
    }


def main() -> None:
    for part in (nested_evaluation, large_evaluation, run_directory):
        print(part.__doc__)
        for name, value in part().items():
            print(f"    {name:24} {value:.4g}")


if __name__ == "__main__":
    main()

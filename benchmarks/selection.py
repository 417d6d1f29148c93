"""Model selection beside the obvious way, and what a run costs beside its networks.

    python -m benchmarks.selection

Ratios of one run, sameness checked in the same run; uses MUTAG (data home or GraKeL).
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import RidgeClassifier
from threadpoolctl import threadpool_limits

from fdgnn import load_tu
from fdgnn.model_selection import Task, score_features
from fdgnn.study import PROTOCOLS, plan, run_study


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


def nested_evaluation() -> dict[str, float]:
    """One network's nested 10 x 10 x 12 evaluation on MUTAG, beside scikit-learn in a loop."""
    graphs, y = load_tu("MUTAG", download_if_missing=False)
    study = plan("MUTAG", graphs, y, PROTOCOLS["paper"])
    task: Task = study.task()
    X = study.estimator(study.configurations()[0]).network_features(graphs, 0, (3,))[0]
    with threadpool_limits(1):
        ours = [timed(score_features, task, X) for _ in range(5)]
        seconds, theirs = timed(one_by_one, X, y, task.y, task.folds, task.alphas)
    best = min(s for s, _ in ours)
    same = [np.abs(a - b).max() for a, b in zip(ours[0][1], theirs, strict=True)]
    return {
        "ours_s": best,
        "sklearn_s": seconds,
        "ratio": seconds / best,
        "largest_difference": max(same),
    }


def timed(function, *args):
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def run_directory(n_configurations=40, n_guesses=2) -> dict[str, float]:
    """The same study on one and on two cores: overhead beside the networks, and the speed-up."""
    graphs, y = load_tu("MUTAG", download_if_missing=False)
    study = plan(
        "MUTAG", graphs, y, PROTOCOLS["paper"],
        n_configurations=n_configurations, n_guesses=n_guesses,
    )  # fmt: skip
    elapsed, results = {}, {}
    for n_jobs in (1, 2, 2, 1):  # the first pair warms up processes and caches
        with tempfile.TemporaryDirectory() as directory:
            result = run_study(study, Path(directory), n_jobs=n_jobs, quiet=True)
        elapsed[n_jobs] = result["times"]["this_run_seconds"]
        results[n_jobs] = result
    assert results[1]["fold_accuracies"] == results[2]["fold_accuracies"]
    networks = results[1]["times"]["networks_seconds"]
    return {
        "one_core_s": elapsed[1],
        "two_cores_s": elapsed[2],
        "speed_up": elapsed[1] / elapsed[2],
        "overhead_share": 1 - networks / elapsed[1],
        "whole_protocol_minutes": 2000 / (n_configurations * n_guesses) * elapsed[2] / 60,
    }


def main() -> None:
    for part in (nested_evaluation, run_directory):
        print(part.__doc__)
        for name, value in part().items():
            print(f"    {name:24} {value:.4g}")


if __name__ == "__main__":
    main()

"""Rules for averaging base models, compared on the same predictions.

    python -m benchmarks.rules runs/beyond/*-auto-* [--json results/beyond/rules.json]

Each folder is a run directory of ``fdgnn evaluate --model``, which has the out-of-fold
predictions of every base model. A rule uses the validation graphs of an outer fold and is scored on
its test graphs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from fdgnn import load_tu
from fdgnn.context import Context
from fdgnn.ensemble import STANDARD_ERRORS, rejected_by_rule
from fdgnn.evaluation.record import Evaluation
from fdgnn.evaluation.run import EvaluationTask, read_evaluations
from fdgnn.folds import Split
from fdgnn.targets import read_targets, winning_class
from fdgnn.training import NestedEvaluation, TrainingOptions, _search

Weights = Any  # of each base model, (m,)


def best(outputs: Any, targets: Any, right: Any) -> Weights:
    """The base model with the best validation accuracy."""
    return np.eye(len(outputs))[right.mean(axis=1).argmax()]


def all_of_them(outputs: Any, targets: Any, right: Any) -> Weights:
    """The average of all."""
    return np.full(len(outputs), 1 / len(outputs))


def fitted(outputs: Any, targets: Any, right: Any) -> Weights:
    """Weights that are not negative, by least squares."""
    flat = np.clip(outputs, -1.5, 1.5).reshape(len(outputs), -1).T
    weights = nnls(flat, targets.ravel())[0]
    return weights if weights.any() else all_of_them(outputs, targets, right)


def near_the_best_accuracy(outputs: Any, targets: Any, right: Any) -> Weights:
    """The average of those within one standard error of the best accuracy."""
    share = right.mean(axis=1)
    error = np.sqrt(share.max() * (1 - share.max()) / right.shape[1])
    return _average(share >= share.max() - error)


def without_rejected(limit: float) -> Callable[[Any, Any, Any], Weights]:
    """Average all base models that are not worse by more than some standard errors (ours)."""

    def rule(outputs: Any, targets: Any, right: Any) -> Weights:
        return _average(~rejected_by_rule(outputs, targets, classify=True, limit=limit))

    return rule


def _average(kept: Any) -> Weights:
    return kept / kept.sum()


RULES: dict[str, Callable[[Any, Any, Any], Weights]] = {
    "the best by validation accuracy": best,
    "the average of all": all_of_them,
    "weights fitted by least squares": fitted,
    "those within a standard error of the best accuracy": near_the_best_accuracy,
    **{
        f"without models worse by more than {limit:g} standard errors": without_rejected(limit)
        for limit in (1.0, 2.0, STANDARD_ERRORS, 4.0)
    },
}


def evaluation_of(known: Evaluation) -> NestedEvaluation:
    """Return what was evaluated in a run directory."""
    graphs, y = load_tu(known.dataset)
    targets, seed = read_targets(y, graphs, classify=True), known.protocol.seed
    folds = Split().nested(targets, seed=seed)
    task = EvaluationTask(known.dataset, graphs, targets, folds, seed=seed)
    options = TrainingOptions(model=known.model.name, scoring="accuracy", seed=seed)
    return NestedEvaluation(task, options.with_defaults(targets))


def accuracies(directory: Path, known: Evaluation) -> dict[str, float]:
    """Accuracy of each rule on one run, %, mean over its outer folds."""
    evaluation = evaluation_of(known)
    task, options = evaluation.task, replace(evaluation.options, work_dir=directory / "parts")
    search = _search(options, task.targets.classify, Context())
    search.evaluate_folds(task.graphs, task.targets, task.folds)  # from its checkpoints
    fits = search._selected[0].fits
    targets, codes = task.targets.coded, task.targets.values[:, 0]
    found: dict[str, list[float]] = {name: [] for name in RULES}
    for row, fold in enumerate(task.folds):
        outputs = np.array([fit.choice.predictions[row] for fit in fits])  # (m, n, q)
        seen, test = fold >= 0, fold < 0
        right = winning_class(outputs[:, seen]) == codes[seen]
        for name, rule in RULES.items():
            weights = rule(outputs[:, seen], targets[seen], right)
            answer = winning_class(np.tensordot(weights, outputs[:, test], 1))
            found[name].append(100 * float((answer == codes[test]).mean()))
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    """Print the mean of each rule over all runs of a dataset."""
    parser = argparse.ArgumentParser(description="Rules by which an ensemble could be averaged.")
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = {}
    for directory in sorted(options.runs):
        (known,) = read_evaluations(directory)
        for name, value in accuracies(directory, known).items():
            found.setdefault(known.dataset, {}).setdefault(name, []).append(value)
    for dataset, rules in found.items():
        for name, values in rules.items():
            print(f"{dataset:15} {name:52} {np.mean(values):6.2f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What was selected inside each outer fold says of the graphs that the fold holds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats
from fdgnn.readout.metrics import Metric
from fdgnn.readout.several import SeveralTargets
from fdgnn.selection.folds import TEST
from fdgnn.selection.rule import Choice
from fdgnn.selection.scores import SelectionTask, mean_of_known
from fdgnn.threads import one_blas_thread


@dataclass(frozen=True)
class NestedAnswers:
    """Outputs for the test graphs of each outer fold.

    Attributes
    ----------
    y : (n,)
        Class numbers, or real targets.
    tested : (n_outer, n) bool
        Which graphs an outer fold tests.
    outputs : (n_outer, n, q)
        Of these graphs, by what was selected and fitted without the fold.
    several : SeveralTargets, optional
        If there are several targets; `y` are their values.
    """

    y: Array
    tested: npt.NDArray[np.bool_]
    outputs: Floats
    several: SeveralTargets | None = None

    def score(self, metric: Metric) -> float:
        """Mean over the outer folds in which there is something to score, and over targets."""
        if self.several is not None:
            return float(mean_of_known(list(self.by_target(metric))))
        each = [
            float(metric(self.y[test], outputs[test])) if test.any() else np.nan
            for test, outputs in zip(self.tested, self.outputs, strict=True)
        ]
        return float(np.nanmean(each)) if not np.isnan(each).all() else np.nan

    def by_target(self, metric: Metric) -> Floats:
        """The same for each of several targets, (n_targets,)."""
        assert self.several is not None
        parts = zip(self.several.known.T, self.several.parts(self.outputs), strict=True)
        return np.array([
            NestedAnswers(self.y[known, t], self.tested[:, known], own).score(metric)
            for t, (known, own) in enumerate(parts)
        ])  # fmt: skip

    def last(self) -> Floats:
        """Give the outputs (n, q) of each graph, by the last fold that tests it, or NaN."""
        found = np.full(self.outputs.shape[1:], np.nan)
        for test, outputs in zip(self.tested, self.outputs, strict=True):
            found[test] = outputs[test]
        return found


def chosen_outputs(
    task: SelectionTask,
    estimators: Sequence[Any],
    depths: Sequence[int],
    choice: Choice,
    n_guesses: int,
) -> Floats:
    """Train again what each outer fold chose, and give its outputs (n_outer, n, q).

    Each estimator has a configuration set. The last row of folds, which tests nothing, is left
    out.
    """
    rows = len(task.folds) - 1
    outputs = np.full((rows, *task.targets.shape), np.nan)
    for c, d in sorted({(choice.configurations[o], choice.depths[o]) for o in range(rows)}):
        mine = [o for o in range(rows) if (choice.configurations[o], choice.depths[o]) == (c, d)]
        outputs[mine] = 0.0
        recipe = estimators[c].recipe(len(task.graphs))
        with one_blas_thread():
            for guess in range(n_guesses):
                (X,) = estimators[c].network_features(task.graphs, guess, (depths[d],))
                for o in mine:
                    fold, alpha = task.folds[o], task.alphas[choice.penalties[o, 0]]
                    train, test = fold >= 0, fold == TEST
                    weights = None if task.weights is None else task.weights[train]
                    readout = recipe.fit(X[train], task.targets[train], alpha, weights)
                    outputs[o, test] += readout.outputs(X[test]) / n_guesses
    return outputs

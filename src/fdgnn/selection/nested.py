"""What was selected inside each outer fold says of the graphs that the fold holds out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats
from fdgnn.readout.metrics import Metric, Scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.readout.thresholds import best_threshold
from fdgnn.selection.folds import TEST
from fdgnn.selection.rule import Choice
from fdgnn.selection.scores import SelectionTask, mean_of_known, outputs_of_readouts
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
    cuts : (n_outer, q), optional
        Thresholds that each outer fold chose by its training graphs: outputs are lowered by them,
        as those of a model are.
    """

    y: Array
    tested: npt.NDArray[np.bool_]
    outputs: Floats
    several: SeveralTargets | None = None
    cuts: Floats | None = None

    @property
    def lowered(self) -> Floats:
        """Outputs (n_outer, n, q), lowered by the thresholds."""
        return self.outputs if self.cuts is None else self.outputs - self.cuts[:, None]

    def score(self, scoring: Scoring) -> float:
        """Mean over the outer folds in which there is something to score, and over targets."""
        if self.several is not None:
            return float(mean_of_known(list(self.by_target(scoring))))
        return float(mean_of_known(list(self.by_fold(scoring))))

    def by_fold(self, scoring: Scoring) -> Floats:
        """Score of each outer fold, (n_outer,); NaN where there is nothing to score."""
        if self.several is not None:
            return mean_of_known([part.by_fold(scoring) for part in self.parts()])
        # Probabilities are not moved by a threshold.
        seen = self.outputs if scoring.of_probabilities else self.lowered
        return np.array([
            float(scoring.metric(self.y[test], outputs[test])) if test.any() else np.nan
            for test, outputs in zip(self.tested, seen, strict=True)
        ])  # fmt: skip

    def by_target(self, scoring: Scoring) -> Floats:
        """Mean over the outer folds for each of several targets, (n_targets,)."""
        return np.array([part.score(scoring) for part in self.parts()])

    def parts(self) -> list[NestedAnswers]:
        """Give the answers for each of several targets, on the graphs for which it is known."""
        assert self.several is not None
        return [
            NestedAnswers(
                self.y[known, t],
                self.tested[:, known],
                own,
                cuts=None if self.cuts is None else self.cuts[:, target.outputs],
            )
            for t, (target, known, own) in enumerate(
                zip(
                    self.several.targets,
                    self.several.known.T,
                    self.several.parts(self.outputs),
                    strict=True,
                )
            )
        ]

    def last(self) -> Floats:
        """Give the outputs (n, q) of each graph, by the last fold that tests it, or NaN."""
        found = np.full(self.outputs.shape[1:], np.nan)
        for test, outputs in zip(self.tested, self.lowered, strict=True):
            found[test] = outputs[test]
        return found


def chosen_cuts(task: SelectionTask, outputs: Floats, metric: Metric) -> Floats:
    """Choose the threshold of each outer fold by its training graphs, (n_outer, q).

    `outputs` (n_outer, n, q) are, for graphs in inner folds, of readouts that have not seen their
    fold: what a model chooses its threshold by.
    """
    return np.array([
        [_cut(task, own, fold >= 0, column, metric) for column in range(own.shape[1])]
        for own, fold in zip(outputs, task.folds, strict=False)  # the last row tests nothing
    ])  # fmt: skip


def _cut(
    task: SelectionTask, outputs: Floats, train: npt.NDArray[np.bool_], column: int, metric: Metric
) -> float:
    """Cut the output of one target with two classes, so of one column."""
    known = train if task.several is None else train & task.several.known[:, column]
    codes = task.y[known] if task.several is None else task.y[known, column]
    weights = task.weights
    if weights is not None:
        weights = weights[known] if weights.ndim == 1 else weights[known, column]
    return best_threshold(outputs[known, column : column + 1], codes, metric, weights)


def chosen_outputs(
    task: SelectionTask,
    estimators: Sequence[Any],
    depths: Sequence[int],
    choice: Choice,
    n_guesses: int,
    held_out: bool = False,
) -> Floats:
    """Train again what each outer fold chose, and give its outputs (n_outer, n, q).

    Each estimator has a configuration set. The last row of folds, which tests nothing, is left
    out. Training graphs have outputs, too, if `held_out` is set: by readouts that have not seen
    their inner fold.
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
                    if held_out:
                        own = outputs_of_readouts(task.at(o, alpha), X, recipe)[0, 0]
                        outputs[o, train] += own[train] / n_guesses
    return outputs

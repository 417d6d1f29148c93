"""What was selected inside each outer fold says of the graphs that the fold holds out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats
from fdgnn.fitting import FitTask, mean_of_known
from fdgnn.readout.metrics import Metric, Scoring
from fdgnn.readout.thresholds import best_threshold
from fdgnn.targets import Targets


@dataclass(frozen=True)
class NestedAnswers:
    """Outputs for the test graphs of each outer fold.

    Attributes
    ----------
    targets : Targets
    tested : (n_outer, n) bool
        Which graphs an outer fold tests.
    outputs : (n_outer, n, q)
        Of these graphs, by what was selected and fitted without the fold.
    cuts : (n_outer, q), optional
        Thresholds that each outer fold chose by its training graphs: outputs are lowered by them,
        as those of a model are.
    """

    targets: Targets
    tested: npt.NDArray[np.bool_]
    outputs: Floats
    cuts: Floats | None = None

    @property
    def lowered(self) -> Floats:
        """Outputs (n_outer, n, q), lowered by the thresholds."""
        return self.outputs if self.cuts is None else self.outputs - self.cuts[:, None]

    def score(self, scoring: Scoring) -> float:
        """Return the mean over targets, and over the outer folds in which there is something."""
        return float(mean_of_known(self.by_target(scoring)))

    def by_fold(self, scoring: Scoring) -> Floats:
        """Return the score of each outer fold, (n_outer,); NaN where there is nothing to score."""
        return mean_of_known(self._scores(scoring))

    def by_target(self, scoring: Scoring) -> Floats:
        """Return the mean over the outer folds for each target, (n_targets,)."""
        return mean_of_known(self._scores(scoring).T)

    def _scores(self, scoring: Scoring) -> Floats:
        """Scores (n_targets, n_outer)."""
        # Probabilities are not moved by a threshold.
        seen = self.outputs if scoring.of_probabilities else self.lowered
        found = np.full((len(self.targets.names), len(seen)), np.nan)
        for t, target in enumerate(self.targets.each):
            for row, (test, own) in enumerate(zip(self.tested, seen, strict=True)):
                some = test & self.targets.known[:, t]
                if some.any():
                    values = self.targets.values[some, t]
                    found[t, row] = scoring.metric(values, own[some, target.columns])
        return found

    def last(self) -> Floats:
        """Give the outputs (n, q) of each graph, by the last fold that tests it, or NaN."""
        found = np.full(self.outputs.shape[1:], np.nan)
        for test, outputs in zip(self.tested, self.lowered, strict=True):
            found[test] = outputs[test]
        return found


def chosen_cuts(task: FitTask, predictions: Floats, metric: Metric) -> Floats:
    """Choose the threshold of each outer fold by its training graphs, (n_outer, q).

    `predictions` (n_outer, n, q) of graphs in inner folds are of readouts that have not seen their
    fold: what a model chooses its threshold by.
    """
    targets, weights = task.targets, task.weights
    cuts = np.empty((len(predictions), targets.n_outputs))
    for row, own in enumerate(predictions):
        for t, target in enumerate(targets.each):  # with two classes, so of one column
            known = (task.folds[row] >= 0) & targets.known[:, t]
            w = weights
            if w is not None:
                w = w[known] if w.ndim == 1 else w[known, target.columns.start]
            codes = targets.values[known, t]
            cuts[row, target.columns] = best_threshold(own[known, target.columns], codes, metric, w)
    return cuts

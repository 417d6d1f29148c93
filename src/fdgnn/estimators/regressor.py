"""The regressor: outputs of the model as numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.estimators.base import Chosen
from fdgnn.estimators.several import SeveralTargetsModel
from fdgnn.graphs.converters import as_batch
from fdgnn.networks import TrainingGoal, held_out_outputs, signatures_of_many
from fdgnn.readout.conformal import ConformalScores, check_coverage
from fdgnn.readout.metrics import r2
from fdgnn.readout.several import SeveralTargets, Target, n_columns, number_targets
from fdgnn.readout.targets import r2_of, real_targets, sample_weights
from fdgnn.scikit import RegressorMixin


class FDGNNRegressor(RegressorMixin, SeveralTargetsModel):  # type: ignore[misc]
    """Predict real numbers for graphs, with the same model as `FDGNNClassifier`.

    Parameters and attributes are those of `FDGNNClassifier`, without `probability`,
    `class_weight`, `calibration_` and `classes_`, and with

    Parameters
    ----------
    intervals : bool, default=False
        Whether `fit` also keeps how far held-out predictions are from the targets, so that
        `predict_interval` can give intervals.

    Examples
    --------
    >>> from fdgnn import FDGNNRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> y = [len(g.labels) if g.labels is not None else g.n_vertices for g in graphs]
    >>> float(FDGNNRegressor(random_state=0).fit(graphs, y).score(graphs, y)) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, chosen: Chosen = None) -> Self:
        """Draw the networks and solve for their readouts.

        y is (n_graphs,), or (n_graphs, n_targets): columns of an array, a dictionary or a data
        frame, None and NaN where a value is unknown. The other arguments are those of
        `FDGNNClassifier.fit`.
        """
        graphs = as_batch(X)
        if n_columns(y) is not None:
            self.single_output_ = False
            several = number_targets(y, graphs)
            goals, made = self._fit_targets(graphs, several, sample_weight, chosen)
            if self.intervals:
                outputs = held_out_outputs(made, goals)
                self.conformal_ = ConformalScores.of_numbers(outputs, goals.targets)
                self.share_out_scores()
            return self
        targets = real_targets(y, graphs)
        weights = sample_weights(sample_weight, len(targets))
        if weights is not None and (weights == 0).any():
            some = weights > 0
            graphs, targets, weights = graphs[some], targets[some], weights[some]
        self._start_fit(graphs)
        self.single_output_ = True
        targets = targets[:, None]
        metric, many = self.metric_for(None), signatures_of_many(graphs)
        goal = TrainingGoal(targets, None, weights, self.seed_, metric, many)
        pairs = self._fit_networks(graphs, goal, chosen)
        if self.intervals:
            self.conformal_ = ConformalScores.of_numbers(held_out_outputs(pairs, goal), targets)
        return self

    def partial_fit(self, X: Any, y: Any, *, like: Any = None) -> Self:
        """Train on some more graphs, beside those of earlier calls, as `FDGNNClassifier` does."""
        graphs = as_batch(X)
        if "pieces_" not in vars(self):
            pieces = self._start_pieces(graphs if like is None else as_batch(like))
            if self.intervals and not pieces.sparse:
                raise ValueError(
                    "partial_fit keeps no graphs of a reservoir to learn intervals from; leave "
                    "`intervals` out"
                )
            self.pieces_, self.single_output_ = pieces, True
        self.graph_kind_.check(graphs)
        y = real_targets(y, graphs)
        self.pieces_.add(graphs, y, y[:, None], self.n_jobs)
        if not self.pieces_.sparse:
            self._train_on_pieces(None)
            return self
        targets = np.concatenate(self.pieces_.targets)[:, None]
        many = self.pieces_.many_signatures()
        goal = TrainingGoal(targets, None, None, self.seed_, self.metric_for(None), many)
        pairs = self._train_on_pieces(goal)
        if self.intervals:
            self.conformal_ = ConformalScores.of_numbers(held_out_outputs(pairs, goal), targets)
        return self

    def learn_numbers(self, several: SeveralTargets, outputs: Floats) -> None:
        """Take what outputs of networks mean that were trained elsewhere, and learn from some.

        `outputs` (n, q) are those of graphs held out, whose targets are `several`.
        """
        self.single_output_ = len(several.names) == 1
        if not self.single_output_:
            self.split(several.targets)
        if self.intervals:
            self.conformal_ = ConformalScores.of_numbers(outputs, several.coded)
            if not self.single_output_:
                self.share_out_scores()

    def predict(self, X: Any, errors: str = "raise") -> Floats:
        """Predicted values, of the shape of the y in `fit`.

        `errors` is "raise", or "missing": then graphs of the list that cannot be used, such as
        SMILES that do not parse, have NaN, the others are answered, and a warning counts them.
        """
        outputs = self.outputs(X, errors)
        return outputs[:, 0] if self.single_output_ else outputs

    def predict_interval(self, X: Any, coverage: float = 0.9, *, errors: str = "raise") -> Floats:
        """Give an interval around each prediction that holds the true value that often.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        coverage : float, default=0.9
            Which share of graphs like those of training has its true value in its interval. With
            several outputs, it holds for each of them.
        errors : {"raise", "missing"}, default="raise"
            As in `predict`.

        Returns
        -------
        (n_graphs, 2), or (n_graphs, q, 2) for several outputs
            Both ends. All intervals of an output are of the same width.
        """
        ends = self.intervals_of(self.outputs(X, errors), coverage)
        return ends[:, 0] if self.single_output_ else ends

    def intervals_of(self, outputs: Floats, coverage: float) -> Floats:
        """Intervals (n_graphs, q, 2) around outputs (n_graphs, q) of this model."""
        reach = self._conformal_scores("intervals").limits(check_coverage(coverage))
        return np.stack([outputs - reach, outputs + reach], axis=-1)

    def answer_for(self, target: Target) -> None:
        """Take one target for what the outputs mean."""
        self.single_output_ = True

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R2; for several targets its mean over targets, each where it is known."""
        if self.each_:
            return self.mean_score(X, y, r2, sample_weight)
        return r2_of(y, self.predict(X), sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

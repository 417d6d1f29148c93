"""The regressor: outputs of the model as numbers."""

from __future__ import annotations

from typing import Any, Self

from fdgnn.arrays import Floats
from fdgnn.estimators.base import Chosen, GraphModel
from fdgnn.graphs.converters import as_batch
from fdgnn.networks import TrainingGoal
from fdgnn.readout.targets import real_targets, sample_weights
from fdgnn.scikit import RegressorMixin


class FDGNNRegressor(RegressorMixin, GraphModel):  # type: ignore[misc]
    """Predict real numbers for graphs, with the same model as `FDGNNClassifier`.

    Parameters and attributes are those of `FDGNNClassifier`, without `classes_`.

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
        """Draw the networks and solve for their readouts; y is (n_graphs,) or (n_graphs, q).

        The other arguments are those of `FDGNNClassifier.fit`.
        """
        graphs = as_batch(X)
        targets = real_targets(y, graphs)
        weights = sample_weights(sample_weight, len(targets))
        if weights is not None and (weights == 0).any():
            some = weights > 0
            graphs, targets, weights = graphs[some], targets[some], weights[some]
        self._start_fit(graphs)
        self.single_output_ = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        goal = TrainingGoal(targets, None, weights, self.seed_, self._metric(None))
        self._fit_networks(graphs, goal, chosen)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values, of the shape of the y in `fit`."""
        outputs = self.outputs(X)
        return outputs[:, 0] if self.single_output_ else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

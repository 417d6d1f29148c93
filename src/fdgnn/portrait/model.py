"""What a portrait asks of a fitted model. No other file here knows how a model is put together."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Features
from fdgnn.encoders import Encoder
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor
from fdgnn.graphs import GraphBatch
from fdgnn.reservoir import DeepReservoir
from fdgnn.selection.search import FDGNNSearchCV


def fitted(model: Any) -> Any:
    """Give the model itself, or the best one of a search.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        It is no model of this library.
    """
    if not isinstance(model, FDGNNClassifier | FDGNNRegressor | Encoder | FDGNNSearchCV):
        raise TypeError(
            "expected an FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV or an encoder such as "
            f"GraphReservoir, got a {type(model).__name__}"
        )
    check_is_fitted(model)
    return getattr(model, "best_estimator_", model)


def encoder_of(model: Any) -> Encoder:
    """The encoder of the first network, or the model itself if it is an encoder."""
    encoder: Encoder = model if isinstance(model, Encoder) else model.networks_[0].encoder
    return encoder


def reservoir_of(model: Any) -> DeepReservoir | None:
    """The reservoir of the first network, or None if its encoder is no reservoir."""
    return getattr(encoder_of(model), "reservoir_", None)


def features_of(model: Any, graphs: GraphBatch) -> Features:
    """What the readout of the first network sees, (n_graphs, P), dense or sparse.

    An encoder has no readout; these are its own features.
    """
    graphs = model.check_graphs(graphs)
    if isinstance(model, Encoder):
        return model.encode(graphs, n_jobs=model.n_jobs).features[0]
    features: Features = model.networks_[0].features(graphs, model.n_jobs)
    return features

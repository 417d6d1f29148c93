"""What a portrait reads of a fitted model. No other file here knows how a model is put together."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Features
from fdgnn.encoders import Encoder, EncoderUnion
from fdgnn.estimators import GraphModel
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.records import BASE_MODELS, BaseModelFacts
from fdgnn.html.model_data.text import clipped
from fdgnn.linear import KernelReadout
from fdgnn.reservoir import DeepReservoir
from fdgnn.selection.search import FDGNNSearchCV


def fitted(model: Any) -> Any:
    """Return the model itself, or the best one of a search.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        It is not a model of this library.
    """
    if not isinstance(model, GraphModel | Encoder | FDGNNSearchCV):
        raise TypeError(
            "expected a model such as FDGNNClassifier, an FDGNNSearchCV or an encoder such as "
            f"GraphReservoir, got a {type(model).__name__}"
        )
    check_is_fitted(model)
    return getattr(model, "best_estimator_", model)


def encoder_of(model: Any) -> Encoder:
    """The encoder of the first fitted model, or the model itself if it is an encoder."""
    encoder: Encoder = model if isinstance(model, Encoder) else model.estimators_[0].encoder
    return encoder


def reservoir_encoder(model: Any) -> tuple[Encoder, str] | None:
    """The first encoder with a reservoir, and the name of its base model; None if there is none."""
    if isinstance(model, Encoder):
        return next(((encoder, "") for encoder in _parts(model) if _has_reservoir(encoder)), None)
    named = ((e, each.name) for each in model.estimators_ for e in _parts(each.encoder))
    return next(((encoder, name) for encoder, name in named if _has_reservoir(encoder)), None)


def _parts(encoder: Encoder) -> list[Encoder]:
    """The encoder itself, or those that a union joins."""
    if isinstance(encoder, EncoderUnion):
        return [part for block in encoder.blocks_ for part in _parts(block.encoder)]
    return [encoder]


def _has_reservoir(encoder: Encoder) -> bool:
    return isinstance(getattr(encoder, "reservoir_", None), DeepReservoir)


def encoder_in_words(encoder: Encoder) -> str:
    """The class of an encoder, or those that a union joins."""
    return " and ".join(type(part).__name__ for part in _parts(encoder))


def features_of(model: Any, graphs: GraphBatch) -> Features:
    """What the readout of the first fitted model sees, (n_graphs, P), dense or sparse.

    An encoder has no readout; these are its own features.
    """
    graphs = model._check_graphs(graphs)
    if isinstance(model, Encoder):
        return model.encode(graphs, n_jobs=model.n_jobs).features[0]
    found: Features = model.estimators_[0].features(graphs, model.n_jobs)
    return found


def base_models_of(model: Any) -> list[BaseModelFacts]:
    """List the base models of a model of one target, each with its random initializations."""
    counts: Counter[tuple[str, str, str, float | None]] = Counter()
    for each in model.estimators_:
        readout = "RBF" if isinstance(each.readout, KernelReadout) else "linear"
        counts[clipped(each.name), encoder_in_words(each.encoder), readout, each.alpha] += 1
    return [
        BaseModelFacts(name=name, encoder=encoder, readout=readout, alpha=alpha, n_estimators=n)
        for (name, encoder, readout, alpha), n in counts.items()
    ][:BASE_MODELS]

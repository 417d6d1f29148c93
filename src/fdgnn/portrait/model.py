"""What a portrait asks of a fitted model. No other file here knows how a model is put together."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fdgnn.arrays import Features
from fdgnn.encoders import Encoder, JoinedEncoder
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor
from fdgnn.graphs import GraphBatch
from fdgnn.networks import Network
from fdgnn.portrait.records import MEMBERS, MemberFacts
from fdgnn.portrait.text import clipped
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.reservoir import DeepReservoir
from fdgnn.scikit import check_is_fitted
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


def reservoir_encoder(model: Any) -> tuple[Encoder, str] | None:
    """The first encoder with a reservoir, and the name of its network; None if there is none."""
    if isinstance(model, Encoder):
        return next(((encoder, "") for encoder in _parts(model) if _has_reservoir(encoder)), None)
    named = ((e, network.name) for network in model.networks_ for e in _parts(network.encoder))
    return next(((encoder, name) for encoder, name in named if _has_reservoir(encoder)), None)


def _parts(encoder: Encoder) -> list[Encoder]:
    """The encoder itself, or those that it joins."""
    if isinstance(encoder, JoinedEncoder):
        return [part for block in encoder.blocks_ for part in _parts(block.encoder)]
    return [encoder]


def _has_reservoir(encoder: Encoder) -> bool:
    return isinstance(getattr(encoder, "reservoir_", None), DeepReservoir)


def encoder_in_words(encoder: Encoder) -> str:
    """The class of an encoder, or those that it joins."""
    return " and ".join(type(part).__name__ for part in _parts(encoder))


def features_of(model: Any, graphs: GraphBatch) -> Features:
    """What the readout of the first network sees, (n_graphs, P), dense or sparse.

    An encoder has no readout; these are its own features.
    """
    graphs = model.check_graphs(graphs)
    if isinstance(model, Encoder):
        return model.encode(graphs, n_jobs=model.n_jobs).features[0]
    first: Network = model.networks_[0]
    return first.features(graphs, model.n_jobs)


def members_of_model(model: Any) -> list[MemberFacts]:
    """List the networks of a model; those that are alike are one row."""
    counts: Counter[tuple[str, str, str, float | None]] = Counter()
    for network in model.networks_:
        readout = "Gaussian" if isinstance(network.readout, GaussianReadout) else "linear"
        name = clipped(network.name or network.encoder.kind)
        counts[name, encoder_in_words(network.encoder), readout, network.alpha] += 1
    return [
        MemberFacts(name=name, encoder=encoder, readout=readout, penalty=penalty, n_networks=n)
        for (name, encoder, readout, penalty), n in counts.items()
    ][:MEMBERS]

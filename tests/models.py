"""Models by name, for tests of a behavior that all of them have."""

from __future__ import annotations

from typing import Any

from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
)

NAMES = ("reservoir", "wl", "union", "auto")


def classifier(name: str, **options: Any) -> Any:
    """The paper's model, the ensemble, or a model with the encoder of this name."""
    return _model(name, (FDGNNClassifier, GraphClassifier, AutoGraphClassifier), options)


def regressor(name: str, **options: Any) -> Any:
    """The same for numbers."""
    return _model(name, (FDGNNRegressor, GraphRegressor, AutoGraphRegressor), options)


def _model(name: str, kinds: tuple[Any, Any, Any], options: dict[str, Any]) -> Any:
    paper, composed, auto = kinds
    if name in ("reservoir", "auto"):
        return (paper if name == "reservoir" else auto)(**options)
    unknown = {"handle_unknown": options.pop("handle_unknown", "ignore")}
    wl = WLCounts(**unknown)
    union = EncoderUnion([("reservoir", GraphReservoir(**unknown)), ("wl", wl)])
    return composed(wl if name == "wl" else union, **options)

"""The models: any encoder with any readout, the paper's model, and the ensemble."""

from __future__ import annotations

from fdgnn.estimators.auto import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.estimators.base import GraphModel
from fdgnn.estimators.models import FDGNNClassifier, FDGNNRegressor, GraphClassifier, GraphRegressor

__all__ = [
    "AutoGraphClassifier",
    "AutoGraphRegressor",
    "FDGNNClassifier",
    "FDGNNRegressor",
    "GraphClassifier",
    "GraphModel",
    "GraphRegressor",
]

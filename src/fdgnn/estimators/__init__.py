"""The models: what turns the outputs of encoder, expansion and readout into answers."""

from __future__ import annotations

from fdgnn.estimators.base import FOLDS, GraphModel
from fdgnn.estimators.classifier import FDGNNClassifier
from fdgnn.estimators.parameters import AUTO, BOTH
from fdgnn.estimators.regressor import FDGNNRegressor

__all__ = ["AUTO", "BOTH", "FOLDS", "FDGNNClassifier", "FDGNNRegressor", "GraphModel"]

"""Fast and Deep Graph Neural Networks (FDGNN): classify graphs in seconds on a CPU.

Names are imported when they are first used, so that ``import fdgnn`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fdgnn._version import __version__

if TYPE_CHECKING:
    from fdgnn import datasets, exceptions, paper, plot, report, stability
    from fdgnn.comparison import compare
    from fdgnn.converters import as_batch
    from fdgnn.datasets import iter_graphs, load_tu, read_graphs
    from fdgnn.drawing import draw_explanation, draw_molecule
    from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor, GraphReservoir
    from fdgnn.explanations import explain
    from fdgnn.graphs import Graph, GraphBatch
    from fdgnn.persistence import load_model, model_info, save_model
    from fdgnn.search import FDGNNSearchCV

_HOME = {
    "FDGNNClassifier": "fdgnn.estimators",
    "FDGNNRegressor": "fdgnn.estimators",
    "FDGNNSearchCV": "fdgnn.search",
    "Graph": "fdgnn.graphs",
    "GraphBatch": "fdgnn.graphs",
    "GraphReservoir": "fdgnn.estimators",
    "as_batch": "fdgnn.converters",
    "compare": "fdgnn.comparison",
    "draw_explanation": "fdgnn.drawing",
    "draw_molecule": "fdgnn.drawing",
    "explain": "fdgnn.explanations",
    "iter_graphs": "fdgnn.datasets",
    "load_model": "fdgnn.persistence",
    "load_tu": "fdgnn.datasets",
    "model_info": "fdgnn.persistence",
    "read_graphs": "fdgnn.datasets",
    "save_model": "fdgnn.persistence",
}
_MODULES = ("datasets", "exceptions", "paper", "plot", "report", "stability")

__all__ = [
    "FDGNNClassifier",
    "FDGNNRegressor",
    "FDGNNSearchCV",
    "Graph",
    "GraphBatch",
    "GraphReservoir",
    "__version__",
    "as_batch",
    "compare",
    "datasets",
    "draw_explanation",
    "draw_molecule",
    "exceptions",
    "explain",
    "iter_graphs",
    "load_model",
    "load_tu",
    "model_info",
    "paper",
    "plot",
    "read_graphs",
    "report",
    "save_model",
    "stability",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"fdgnn.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fdgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

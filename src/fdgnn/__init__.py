"""Fast and Deep Graph Neural Networks (FDGNN): classify graphs in seconds on a CPU.

Names are imported when they are first used, so that ``import fdgnn`` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fdgnn._version import __version__

if TYPE_CHECKING:
    from fdgnn import datasets, exceptions, limits, plot, stability
    from fdgnn.datasets import iter_graphs, load_tu, read_graphs
    from fdgnn.encoders import (
        Encoder,
        EncoderUnion,
        GraphReservoir,
        PairCounts,
        WLCounts,
        register_encoder,
    )
    from fdgnn.estimators import (
        AutoGraphClassifier,
        AutoGraphRegressor,
        FDGNNClassifier,
        FDGNNRegressor,
        GraphClassifier,
        GraphRegressor,
    )
    from fdgnn.evaluation import paper
    from fdgnn.evaluation.comparison import compare
    from fdgnn.expansion import RandomExpansion
    from fdgnn.explanations import connected_parts, explain, molecule_groups
    from fdgnn.explanations.drawing import draw_explanation, draw_molecule
    from fdgnn.explanations.substructures import substructures
    from fdgnn.graphs import Graph, GraphBatch
    from fdgnn.graphs.converters import as_batch
    from fdgnn.html import playground, report
    from fdgnn.installation import compile_kernels
    from fdgnn.linear import KernelRidge, Ridge
    from fdgnn.model_files import load_model, model_info, save_model
    from fdgnn.scale.batches import fit_batches
    from fdgnn.selection.search import FDGNNSearchCV

_HOME = {
    "AutoGraphClassifier": "fdgnn.estimators",
    "AutoGraphRegressor": "fdgnn.estimators",
    "Encoder": "fdgnn.encoders",
    "EncoderUnion": "fdgnn.encoders",
    "FDGNNClassifier": "fdgnn.estimators",
    "FDGNNRegressor": "fdgnn.estimators",
    "FDGNNSearchCV": "fdgnn.selection.search",
    "Graph": "fdgnn.graphs",
    "GraphBatch": "fdgnn.graphs",
    "GraphClassifier": "fdgnn.estimators",
    "GraphRegressor": "fdgnn.estimators",
    "GraphReservoir": "fdgnn.encoders",
    "KernelRidge": "fdgnn.linear",
    "PairCounts": "fdgnn.encoders",
    "RandomExpansion": "fdgnn.expansion",
    "Ridge": "fdgnn.linear",
    "WLCounts": "fdgnn.encoders",
    "as_batch": "fdgnn.graphs.converters",
    "compare": "fdgnn.evaluation.comparison",
    "compile_kernels": "fdgnn.installation",
    "connected_parts": "fdgnn.explanations",
    "draw_explanation": "fdgnn.explanations.drawing",
    "draw_molecule": "fdgnn.explanations.drawing",
    "explain": "fdgnn.explanations",
    "fit_batches": "fdgnn.scale.batches",
    "iter_graphs": "fdgnn.datasets",
    "load_model": "fdgnn.model_files",
    "load_tu": "fdgnn.datasets",
    "model_info": "fdgnn.model_files",
    "molecule_groups": "fdgnn.explanations",
    "read_graphs": "fdgnn.datasets",
    "register_encoder": "fdgnn.encoders",
    "save_model": "fdgnn.model_files",
    "substructures": "fdgnn.explanations",
}
_MODULES = {
    "datasets": "fdgnn.datasets",
    "exceptions": "fdgnn.exceptions",
    "limits": "fdgnn.limits",
    "paper": "fdgnn.evaluation.paper",
    "playground": "fdgnn.html.playground",
    "plot": "fdgnn.plot",
    "report": "fdgnn.html.report",
    "stability": "fdgnn.stability",
}

__all__ = [
    "AutoGraphClassifier",
    "AutoGraphRegressor",
    "Encoder",
    "EncoderUnion",
    "FDGNNClassifier",
    "FDGNNRegressor",
    "FDGNNSearchCV",
    "Graph",
    "GraphBatch",
    "GraphClassifier",
    "GraphRegressor",
    "GraphReservoir",
    "KernelRidge",
    "PairCounts",
    "RandomExpansion",
    "Ridge",
    "WLCounts",
    "__version__",
    "as_batch",
    "compare",
    "compile_kernels",
    "connected_parts",
    "datasets",
    "draw_explanation",
    "draw_molecule",
    "exceptions",
    "explain",
    "fit_batches",
    "iter_graphs",
    "limits",
    "load_model",
    "load_tu",
    "model_info",
    "molecule_groups",
    "paper",
    "playground",
    "plot",
    "read_graphs",
    "register_encoder",
    "report",
    "save_model",
    "stability",
    "substructures",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fdgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

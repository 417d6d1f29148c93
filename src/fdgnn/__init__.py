"""Graph classification and regression on a CPU: untrained encoders, trained readouts.

Names are imported when they are first used, so that ``import fdgnn`` costs nothing.

The logger ``fdgnn`` has a record of each model that is fitted, loaded or saved (INFO), and of each
table that is read (DEBUG). Nothing is shown unless a program configures `logging`.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fdgnn._version import __version__ as __version__

if TYPE_CHECKING:
    from fdgnn import datasets as datasets
    from fdgnn import exceptions as exceptions
    from fdgnn import limits as limits
    from fdgnn import plot as plot
    from fdgnn import stability as stability
    from fdgnn.datasets import iter_graphs as iter_graphs
    from fdgnn.datasets import load_tu as load_tu
    from fdgnn.datasets import read_graphs as read_graphs
    from fdgnn.encoders import Encoder as Encoder
    from fdgnn.encoders import EncoderUnion as EncoderUnion
    from fdgnn.encoders import GraphKernel as GraphKernel
    from fdgnn.encoders import GraphReservoir as GraphReservoir
    from fdgnn.encoders import MoleculeDescriptors as MoleculeDescriptors
    from fdgnn.encoders import PairCounts as PairCounts
    from fdgnn.encoders import WLCounts as WLCounts
    from fdgnn.encoders import register_encoder as register_encoder
    from fdgnn.estimators import AutoGraphClassifier as AutoGraphClassifier
    from fdgnn.estimators import AutoGraphRegressor as AutoGraphRegressor
    from fdgnn.estimators import FDGNNClassifier as FDGNNClassifier
    from fdgnn.estimators import FDGNNRegressor as FDGNNRegressor
    from fdgnn.estimators import GraphClassifier as GraphClassifier
    from fdgnn.estimators import GraphRegressor as GraphRegressor
    from fdgnn.evaluation import paper as paper
    from fdgnn.evaluation.comparison import compare as compare
    from fdgnn.expansion import RandomExpansion as RandomExpansion
    from fdgnn.explanations import connected_parts as connected_parts
    from fdgnn.explanations import explain as explain
    from fdgnn.explanations import molecule_groups as molecule_groups
    from fdgnn.explanations.counterfactuals import counterfactuals as counterfactuals
    from fdgnn.explanations.drawing import draw_explanation as draw_explanation
    from fdgnn.explanations.drawing import draw_molecule as draw_molecule
    from fdgnn.explanations.substructures import substructures as substructures
    from fdgnn.graphs import Graph as Graph
    from fdgnn.graphs import GraphBatch as GraphBatch
    from fdgnn.graphs.converters import as_batch as as_batch
    from fdgnn.html import playground as playground
    from fdgnn.html import report as report
    from fdgnn.installation import compile_kernels as compile_kernels
    from fdgnn.linear import KernelRidge as KernelRidge
    from fdgnn.linear import Ridge as Ridge
    from fdgnn.model_files import load_model as load_model
    from fdgnn.model_files import model_info as model_info
    from fdgnn.model_files import save_model as save_model
    from fdgnn.scale.training import fit_batches as fit_batches
    from fdgnn.selection.search import FDGNNSearchCV as FDGNNSearchCV

# The public names of each module, and the modules that are public themselves.
_NAMES = {
    "fdgnn.datasets": ("iter_graphs", "load_tu", "read_graphs"),
    "fdgnn.encoders": (
        "Encoder",
        "EncoderUnion",
        "GraphKernel",
        "GraphReservoir",
        "MoleculeDescriptors",
        "PairCounts",
        "WLCounts",
        "register_encoder",
    ),
    "fdgnn.estimators": (
        "AutoGraphClassifier",
        "AutoGraphRegressor",
        "FDGNNClassifier",
        "FDGNNRegressor",
        "GraphClassifier",
        "GraphRegressor",
    ),
    "fdgnn.evaluation.comparison": ("compare",),
    "fdgnn.expansion": ("RandomExpansion",),
    "fdgnn.explanations": (
        "connected_parts",
        "counterfactuals",
        "explain",
        "molecule_groups",
        "substructures",
    ),
    "fdgnn.explanations.drawing": ("draw_explanation", "draw_molecule"),
    "fdgnn.graphs": ("Graph", "GraphBatch"),
    "fdgnn.graphs.converters": ("as_batch",),
    "fdgnn.installation": ("compile_kernels",),
    "fdgnn.linear": ("KernelRidge", "Ridge"),
    "fdgnn.model_files": ("load_model", "model_info", "save_model"),
    "fdgnn.scale.training": ("fit_batches",),
    "fdgnn.selection.search": ("FDGNNSearchCV",),
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
logging.getLogger(__name__).addHandler(logging.NullHandler())
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted([*_HOME, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'fdgnn' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__

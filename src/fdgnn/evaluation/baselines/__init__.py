"""The methods that the paper's FDGNN is compared with.

Ensembles of our own come first, then baselines, each in the library that people use for it.

================  =====================================================  ==============  =======
``fdgnn-auto``    an ensemble of WL features and reservoirs              fdgnn           numbers
``fdgnn-wl``      an ensemble of WL features                             fdgnn           numbers
``fdgnn-union``   an ensemble of unions of WL features and a reservoir   fdgnn           numbers
``labels-rf``     counts of vertex labels, random forest                 scikit-learn    numbers
``ecfp-lr``       Morgan counts, logistic or ridge regression            RDKit           numbers
``ecfp-rf``       Morgan counts, random forest                           RDKit           numbers
``ecfp-gb``       Morgan counts, gradient boosting                       RDKit           numbers
``desc-rf``       RDKit descriptors, random forest                       RDKit           numbers
``desc-gb``       RDKit descriptors, gradient boosting                   RDKit           numbers
``wl``            Weisfeiler-Lehman subtree kernel                       GraKeL, SVC
``wl-oa``         Weisfeiler-Lehman optimal assignment kernel            GraKeL, SVC
``pk``            propagation kernel                                     GraKeL, SVC
``gk``            graphlet kernel, sampled                               GraKeL, SVC
``rw``            geometric random-walk kernel                           GraKeL, SVC
``gin``           Graph Isomorphism Network (Xu et al. 2019)             PyG
``dgcnn``         Deep Graph CNN, sort pooling (Zhang et al. 2018)       PyG
``gnn``           the trained fixed point (Scarselli et al. 2009)        PyTorch
================  =====================================================  ==============  =======

Those marked "numbers" are for regression as well. GraKeL and PyTorch are imported when a method
needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module, util

from fdgnn.evaluation.baselines.base import Method, Search, Trial
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.extras import require

__all__ = ["METHODS", "Method", "MethodEntry", "Search", "Trial", "check_method", "new_method"]


@dataclass(frozen=True)
class MethodEntry:
    """A method as the list of all methods has it.

    Attributes
    ----------
    title : str
    home : str
        ``module:name`` of the class or function that returns its `Method`.
    published : str, optional
        Its row among the published accuracies (`fdgnn.evaluation.paper.published_accuracy`).
    libraries : tuple of str
        Libraries that must be installed.
    extra : str
        The extra of this library that installs them.
    molecules : bool
        Whether it is for molecules only.
    regression : bool
        Whether it predicts numbers as well.
    """

    title: str
    home: str
    published: str | None = None
    libraries: tuple[str, ...] = ()
    extra: str = "compare"
    molecules: bool = False
    regression: bool = False


def _kernel(title: str, name: str, published: str) -> MethodEntry:
    return MethodEntry(f"{title} kernel, SVC", f"graph_kernels:{name}", published, ("grakel",))


def _ours(title: str, name: str) -> MethodEntry:
    return MethodEntry(f"FDGNN auto: {title}", f"vectors:{name}", regression=True)


def _of_molecules(title: str, name: str) -> MethodEntry:
    return MethodEntry(
        title, f"vectors:{name}", None, ("rdkit",), "chem", molecules=True, regression=True
    )


METHODS = {
    "fdgnn-auto": _ours("WL and reservoirs", "auto_all"),
    "fdgnn-wl": _ours("only WL", "auto_wl"),
    "fdgnn-union": _ours("union of both", "auto_union"),
    "labels-rf": MethodEntry(
        "label histogram, random forest", "vectors:labels_forest", regression=True
    ),
    "ecfp-lr": _of_molecules("Morgan counts, logistic or ridge regression", "morgan_linear"),
    "ecfp-rf": _of_molecules("Morgan counts, random forest", "morgan_forest"),
    "ecfp-gb": _of_molecules("Morgan counts, gradient boosting", "morgan_boosting"),
    "desc-rf": _of_molecules("RDKit descriptors, random forest", "descriptors_forest"),
    "desc-gb": _of_molecules("RDKit descriptors, gradient boosting", "descriptors_boosting"),
    "wl": _kernel("Weisfeiler-Lehman", "weisfeiler_lehman", "WL"),
    "wl-oa": _kernel("WL optimal assignment", "optimal_assignment", "WL-OA"),
    "pk": _kernel("propagation", "propagation", "PK"),
    "gk": _kernel("graphlet", "graphlets", "GK"),
    "rw": _kernel("random-walk", "random_walk", "RW"),
    "gin": MethodEntry("GIN", "networks:gin", "GIN", ("torch", "torch_geometric")),
    "dgcnn": MethodEntry("DGCNN", "networks:dgcnn", "DGCNN", ("torch", "torch_geometric")),
    "gnn": MethodEntry("GNN (trained fixed point)", "networks:gnn", "GNN", ("torch",)),
}


def new_method(name: str, task: EvaluationTask, search: Search) -> Method:
    """Return the method of that name."""
    module, factory = METHODS[name].home.split(":")
    home = import_module(f"fdgnn.evaluation.baselines.{module}")
    found: Method = getattr(home, factory)(task, search)
    return found


def check_method(name: str, *, molecules: bool = True, classify: bool = True) -> None:
    """Raise an error if a method is unknown, not for such graphs, or lacks a library."""
    if name not in METHODS:
        raise ValueError(f"no method {name!r}; there are {', '.join(METHODS)}")
    entry = METHODS[name]
    if entry.molecules and not molecules:
        raise ValueError(
            f"{name} is for molecules, and these graphs were not read from SMILES; leave it out"
        )
    if not (entry.regression or classify):
        known = ", ".join(n for n, each in METHODS.items() if each.regression)
        raise ValueError(
            f"{name} is for classes, but the target is a number; choose some of {known}"
        )
    networks = " (install PyTorch's CPU build first)" if "torch" in entry.libraries else ""
    for library in entry.libraries:
        if util.find_spec(library) is None:
            require(library, entry.extra, f"comparisons with {name}{networks}")

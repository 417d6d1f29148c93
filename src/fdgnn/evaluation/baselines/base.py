"""What a contestant must offer to take part, and the list of those beside the paper's FDGNN."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module, util
from typing import Any, Protocol, Self

import numpy as np

from fdgnn.evaluation.records import Configuration, Search, Trial
from fdgnn.extras import require
from fdgnn.folds import Folds
from fdgnn.graphs import Array, GraphBatch, Ints


class Model(Protocol):
    """A classifier of graphs."""

    n_parameters_: int

    def fit(self, graphs: Any, y: Array) -> Self:
        """Train on graphs, a `GraphBatch` or what `Contestant.prepare` gives."""

    def predict(self, graphs: Any) -> Array:
        """Give the classes of graphs."""


@dataclass(frozen=True)
class Task:
    """What all contestants are given: the same graphs, the same folds, a bound on the search.

    Attributes
    ----------
    folds : (n_outer, n) int64
        As `fdgnn.folds.nested_folds` makes them; -1 marks an outer fold's test graphs.
    seed : int
    search : Search
        How much of the published grids is searched.
    smiles : sequence of str, optional
        What the graphs were read from, if they are molecules.
    """

    graphs: GraphBatch
    y: Array
    folds: Folds
    seed: int = 0
    search: Search = Search()  # noqa: RUF009  (it is immutable)
    smiles: Sequence[str] | None = None


def inner_parts(fold: Folds, n_inner: int) -> Iterator[tuple[Ints, Ints]]:
    """Give training and validation graphs of the first inner folds of an outer one."""
    for inner in range(n_inner):
        yield np.flatnonzero((fold >= 0) & (fold != inner)), np.flatnonzero(fold == inner)


class Contestant(Protocol):
    """A family of models with its grid, on a task."""

    n_configurations: int
    inner_folds: int
    chooses_in_training: bool  # `fit` of its models is the whole selection; there are no parts

    def units(self) -> list[str]:
        """Name the parts of the selection; a finished part is not done again on resuming.

        There are no parts where there is nothing to choose: then `only` is taken.
        """

    def score(self, unit: str) -> list[Trial]:
        """Validate the configurations of one part."""

    def only(self) -> Configuration:
        """Give the configuration where there is nothing to choose: the first of the grid."""

    def model(self, configuration: Configuration) -> Model:
        """Make an untrained model."""

    def prepare(self, mask: Array) -> Any:
        """Give the task's graphs where a mask is true, in the library's own form, off the clock."""

    def warm_up(self) -> None:
        """Import, compile and allocate what the first use needs."""


@dataclass(frozen=True)
class Rival:
    """A rival, or a variant of our own, as the list `RIVALS` has it.

    Attributes
    ----------
    published : str, optional
        Its row among the published accuracies (`fdgnn.evaluation.paper.published_accuracy`).
    home : str
        ``module:name`` of the function that makes its `Contestant` from a task.
    libraries : tuple of str
        Libraries that must be installed.
    extra : str
        The extra of this library that brings them.
    of_molecules : bool
        Whether it takes molecules only, as SMILES.
    """

    title: str
    published: str | None
    home: str
    libraries: tuple[str, ...]
    extra: str = "compare"
    of_molecules: bool = False

    def check_installed(self, name: str) -> None:
        """Raise an error that says what to install if a library is missing."""
        networks = " (install PyTorch's CPU build first)" if "torch" in self.libraries else ""
        for library in self.libraries:
            check_library(f"comparisons with {name}{networks}", library, self.extra)


def check_library(what: str, library: str, extra: str = "compare") -> None:
    """Raise an error that says what to install if a library is missing, but do not import it."""
    if util.find_spec(library) is None:
        require(library, extra, what)


_KERNELS = "fdgnn.evaluation.baselines.graph_kernels"
_NETWORKS = "fdgnn.evaluation.baselines.networks"
_VARIANTS = "fdgnn.evaluation.baselines.variants"
_FINGERPRINTS = "fdgnn.evaluation.baselines.fingerprints"
_GRAKEL, _TORCH, _PYG = ("grakel",), ("torch",), ("torch", "torch_geometric")

RIVALS = {
    "fdgnn-auto": Rival("FDGNN auto: WL and reservoirs", None, f"{_VARIANTS}:mixed", ()),
    "fdgnn-wl": Rival("FDGNN auto: only WL", None, f"{_VARIANTS}:wl", ()),
    "fdgnn-union": Rival("FDGNN auto: union of both", None, f"{_VARIANTS}:union", ()),
    "ecfp-lr": Rival(
        "Morgan counts, logistic regression", None, f"{_FINGERPRINTS}:logistic", ("rdkit",),
        extra="chem", of_molecules=True,
    ),
    "ecfp-rf": Rival(
        "Morgan counts, random forest", None, f"{_FINGERPRINTS}:forest", ("rdkit",),
        extra="chem", of_molecules=True,
    ),
    "wl": Rival("Weisfeiler-Lehman kernel, SVC", "WL", f"{_KERNELS}:weisfeiler_lehman", _GRAKEL),
    "wl-oa": Rival(
        "WL optimal assignment kernel, SVC", "WL-OA", f"{_KERNELS}:optimal_assignment", _GRAKEL
    ),
    "pk": Rival("propagation kernel, SVC", "PK", f"{_KERNELS}:propagation", _GRAKEL),
    "gk": Rival("graphlet kernel, SVC", "GK", f"{_KERNELS}:graphlets", _GRAKEL),
    "rw": Rival("random-walk kernel, SVC", "RW", f"{_KERNELS}:random_walk", _GRAKEL),
    "gin": Rival("GIN", "GIN", f"{_NETWORKS}:gin", _PYG),
    "dgcnn": Rival("DGCNN", "DGCNN", f"{_NETWORKS}:dgcnn", _PYG),
    "gnn": Rival("GNN (trained fixed point)", "GNN", f"{_NETWORKS}:gnn", _TORCH),
}  # fmt: skip


def contestant(name: str, task: Task) -> Contestant:
    """Make the contestant of that name; its libraries are imported now."""
    RIVALS[name].check_installed(name)
    module, factory = RIVALS[name].home.split(":")
    made: Contestant = getattr(import_module(module), factory)(task)
    return made


def one_line(error: BaseException) -> str:
    """Write an error in one line, for a table."""
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip(" :")

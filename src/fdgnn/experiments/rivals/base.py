"""What a rival must offer to take part, and who there is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module, util
from typing import Any, Protocol, Self

from fdgnn.exceptions import MissingDependencyError
from fdgnn.graphs import Array, GraphBatch
from fdgnn.selection.scores import Folds


class Model(Protocol):
    """A classifier of graphs, whatever is behind it."""

    n_parameters_: int

    def fit(self, graphs: Any, y: Array) -> Self:
        """Train on graphs, a `GraphBatch` or what `Contestant.prepare` made of one."""

    def predict(self, graphs: Any) -> Array:
        """Give the classes of graphs."""


@dataclass(frozen=True)
class Task:
    """What all contestants are given: the same graphs, the same folds, a bound on the search.

    Attributes
    ----------
    folds : (n_outer, n) int64
        As `fdgnn.selection.scores.nested_folds` makes them; -1 marks an outer fold's test graphs.
    n_configurations : int, optional
        How many points of the published grid are tried, in its order; None: all.
    inner_folds : int, optional
        On how many of the inner folds a configuration is validated; None: all for kernels, the
        first for networks, which are trained anew for each.
    choose_epochs : bool
        Whether networks choose their number of epochs, or are trained for all that were published.
    """

    graphs: GraphBatch
    y: Array
    folds: Folds
    seed: int = 0
    n_configurations: int | None = None
    inner_folds: int | None = None
    choose_epochs: bool = True


@dataclass(frozen=True)
class Trial:
    """How one configuration did on the inner folds of one outer fold."""

    outer: int
    configuration: dict[str, Any]
    score: float


class Contestant(Protocol):
    """A family of models with its grid, on a task."""

    n_configurations: int
    inner_folds: int

    def units(self) -> list[str]:
        """Name the parts of the selection; a finished part is not done again on resuming.

        None where there is nothing to choose: then it is `only`.
        """

    def score(self, unit: str) -> list[Trial]:
        """Validate the configurations of one part."""

    def only(self) -> dict[str, Any]:
        """The configuration where there is nothing to choose: the first of the grid."""

    def model(self, configuration: dict[str, Any]) -> Model:
        """Make an untrained model."""

    def prepare(self, graphs: GraphBatch) -> Any:
        """Bring graphs into the library's own form, which no clock counts."""

    def warm_up(self) -> None:
        """Import, compile and allocate what a first use would."""


@dataclass(frozen=True)
class Rival:
    """An entry of the list.

    Attributes
    ----------
    published : str
        The row of `fdgnn.experiments.paper.ACCURACY` that is its.
    home : str
        ``module:name`` of what makes its `Contestant` from a task.
    libraries : tuple of str
        What must be installed.
    """

    title: str
    published: str
    home: str
    libraries: tuple[str, ...]

    def check_installed(self, name: str) -> None:
        """Raise an error that names the remedy if a library is missing."""
        for library in self.libraries:
            check_library(name, library)


def check_library(whose: str, library: str) -> None:
    """Raise an error that names the remedy if a library of the comparison is missing."""
    if util.find_spec(library) is None:
        first = "PyTorch's CPU build, then " if library == "torch" else ""
        raise MissingDependencyError(
            f"{whose} needs {library}; install it with: {first}pip install 'fdgnn[compare]'"
        )


_KERNELS, _NETWORKS = "fdgnn.experiments.rivals.graph_kernels", "fdgnn.experiments.rivals.networks"
_GRAKEL, _TORCH, _PYG = ("grakel",), ("torch",), ("torch", "torch_geometric")

RIVALS = {
    "wl": Rival("Weisfeiler-Lehman kernel, SVC", "WL", f"{_KERNELS}:weisfeiler_lehman", _GRAKEL),
    "pk": Rival("propagation kernel, SVC", "PK", f"{_KERNELS}:propagation", _GRAKEL),
    "gk": Rival("graphlet kernel, SVC", "GK", f"{_KERNELS}:graphlets", _GRAKEL),
    "rw": Rival("random-walk kernel, SVC", "RW", f"{_KERNELS}:random_walk", _GRAKEL),
    "gin": Rival("GIN", "GIN", f"{_NETWORKS}:gin", _PYG),
    "dgcnn": Rival("DGCNN", "DGCNN", f"{_NETWORKS}:dgcnn", _PYG),
    "gnn": Rival("GNN (trained fixed point)", "GNN", f"{_NETWORKS}:gnn", _TORCH),
}


def contestant(name: str, task: Task) -> Contestant:
    """Make the contestant of that name; its libraries are imported now."""
    RIVALS[name].check_installed(name)
    module, factory = RIVALS[name].home.split(":")
    made: Contestant = getattr(import_module(module), factory)(task)
    return made


def one_line(error: BaseException) -> str:
    """An error in one line, for a table."""
    return re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip(" :")

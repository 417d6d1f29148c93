"""Graph kernels of GraKeL, each with a support vector machine.

Kernels and their parameters are those of Zhang et al. 2018, the source of most published rows:
heights up to 5 for Weisfeiler-Lehman (from 0) and propagation kernels (from 1; bin width 0.001),
graphlets of three vertices, and for the random walk a decay of the largest power of ten below
1 / d^2, with d the largest degree. We add a tenth of that decay as a second choice, the number of
graphlets drawn, and C from 1e-3 to 1e3. The optimal assignment kernel of Kriege et al. 2016 has the
heights of Weisfeiler-Lehman; GraKeL has it from height 1. Kernel matrices are normalized. Unlabeled
vertices carry their degree.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any, Self

import numpy as np
from sklearn.svm import SVC

from fdgnn.evaluation.baselines.base import Task, inner_parts
from fdgnn.evaluation.records import Configuration, Trial
from fdgnn.folds import Folds
from fdgnn.graphs import Array, Floats, GraphBatch

PENALTIES = (1.0, 10.0, 100.0, 0.1, 1000.0, 0.01, 0.001)  # C, the most promising first
HEIGHTS = (5, 3, 2, 4, 1, 0)  # first the default of GraKeL, and of the authors on MUTAG
GRAPHLETS_DRAWN = 500  # of three vertices each, from every graph
MOST_STEPS = 1_000_000  # of an SVC, which would not end where classes cannot be separated

MakeKernel = Callable[[Configuration], Any]


# ---------------------------------------------------------------------- who there is


def weisfeiler_lehman(task: Task) -> KernelContestant:
    """Subtree features of a height: what neighborhoods look like, refined step by step."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import VertexHistogram, WeisfeilerLehman

        if parameters["height"] == 0:
            return VertexHistogram(normalize=True)
        return WeisfeilerLehman(
            n_iter=parameters["height"], base_graph_kernel=VertexHistogram, normalize=True
        )

    return KernelContestant(task, make, [{"height": h} for h in HEIGHTS])


def optimal_assignment(task: Task) -> KernelContestant:
    """Vertices that two graphs have in common, in each step of the refinement."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import WeisfeilerLehmanOptimalAssignment

        return WeisfeilerLehmanOptimalAssignment(n_iter=parameters["height"], normalize=True)

    return KernelContestant(task, make, [{"height": h} for h in HEIGHTS if h])


def propagation(task: Task) -> KernelContestant:
    """Distributions of labels as they spread along random walks, hashed into bins."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import Propagation

        return Propagation(
            t_max=parameters["height"], w=0.001, normalize=True, random_state=task.seed
        )

    return KernelContestant(task, make, [{"height": h} for h in HEIGHTS if h])


def graphlets(task: Task) -> KernelContestant:
    """Frequencies of small subgraphs, from a sample of them; labels are not seen."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import GraphletSampling

        return GraphletSampling(
            k=parameters["size"],
            sampling={"n_samples": GRAPHLETS_DRAWN},
            normalize=True,
            random_state=task.seed,
        )

    return KernelContestant(task, make, [{"size": 3}])


def random_walk(task: Task) -> KernelContestant:
    """Common walks of all lengths, longer ones counting less; labels are not seen."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import RandomWalk

        return RandomWalk(lamda=parameters["decay"], normalize=True)

    largest = max(float(task.graphs.max_degrees.max(initial=0.0)), 1.0)
    below = float(np.floor(np.log10(1 / largest**2)))
    return KernelContestant(task, make, [{"decay": 10.0**e} for e in (below, below - 1)])


# ---------------------------------------------------------------------- a kernel and a machine


def as_grakel(graphs: GraphBatch) -> list[Any]:
    """Give the graphs as GraKeL takes them: arcs and labels of each vertex in dictionaries.

    From lists of neighbors GraKeL would drop vertices without any, and its optimal assignment
    kernel would not count them.
    """
    from grakel import Graph

    arcs = graphs.adjacency()
    degrees = np.diff(arcs.indptr)
    labels = degrees if graphs.label_codes is None else graphs.label_codes

    def neighbors(v: int, start: int) -> dict[int, float]:
        found = arcs.indices[arcs.indptr[v] : arcs.indptr[v + 1]] - start
        return dict.fromkeys(found.tolist(), 1.0)

    return [
        Graph(
            {v - s: neighbors(v, s) for v in range(s, e)},
            node_labels=dict(enumerate(labels[s:e].tolist())),
        )
        for s, e in zip(graphs.vertex_offsets[:-1], graphs.vertex_offsets[1:], strict=True)
    ]


class KernelSVC:
    """A graph kernel and a support vector machine on its matrix."""

    def __init__(self, kernel: Any, C: float) -> None:
        self.kernel = kernel
        self.C = C

    def fit(self, graphs: Any, y: Array) -> Self:
        """Train on a `GraphBatch` or a list of GraKeL's graphs."""
        with _quietly():
            matrix = _matrix(self.kernel.fit_transform(_native(graphs)))
            self._svc = SVC(C=self.C, kernel="precomputed", max_iter=MOST_STEPS).fit(matrix, y)
        self.n_parameters_ = self._svc.dual_coef_.size + self._svc.intercept_.size
        return self

    def predict(self, graphs: Any) -> Array:
        """Give the classes of graphs."""
        with _quietly():
            classes: Array = self._svc.predict(_matrix(self.kernel.transform(_native(graphs))))
        return classes

    def decision_function(self, graphs: Any) -> Array:
        """Give scores: (n,) for two classes, (n, n_classes) for more."""
        with _quietly():
            matrix = _matrix(self.kernel.transform(_native(graphs)))
            return np.asarray(self._svc.decision_function(matrix))


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence warnings: GraKeL's of formats and zero norms, an SVC's that it ends at MOST_STEPS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _native(graphs: Any) -> list[Any]:
    return as_grakel(graphs) if isinstance(graphs, GraphBatch) else graphs


def _matrix(K: Any) -> Floats:
    """Replace NaN by zero: graphs on which a kernel is zero have no norm, and resemble no other."""
    return np.nan_to_num(np.asarray(K, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)


class KernelContestant:
    """A kernel with its parameters and the machine's C.

    Kernels do not learn, so one matrix over all graphs serves all folds and values of C; the
    chosen model is then trained and timed on its fold's training graphs alone.
    """

    chooses_in_training = False

    def __init__(self, task: Task, make: MakeKernel, parameters: Sequence[Configuration]) -> None:
        self.task = task
        self.make = make
        grid = list(product(parameters, PENALTIES))[: task.search.n_configurations]
        self.n_configurations = len(grid)
        n_inner = int(task.folds.max()) + 1
        self.inner_folds = min(task.search.inner_folds or n_inner, n_inner)
        self._first = grid[0]
        by_kernel: dict[str, list[float]] = {}
        for p, C in grid:
            by_kernel.setdefault(json.dumps(p), []).append(C)
        # A part's name says all that is tried in it, so that a search of another size does not
        # take it for its own.
        self._units = [json.dumps([json.loads(p), Cs]) for p, Cs in by_kernel.items()]

    def units(self) -> list[str]:
        """Name one part for each setting of the kernel."""
        return self._units if self.n_configurations > 1 else []

    def only(self) -> Configuration:
        """Give the first setting of the kernel, with the first C."""
        parameters, C = self._first
        return {**parameters, "C": C}

    def score(self, unit: str) -> list[Trial]:
        """Validate the machines of one kernel on all folds."""
        parameters, penalties = json.loads(unit)
        with _quietly():
            K = _matrix(self.make(parameters).fit_transform(as_grakel(self.task.graphs)))
            return [
                Trial(
                    outer=o, configuration=parameters | {"C": C}, score=self._validate(K, fold, C)
                )
                for o, fold in enumerate(self.task.folds)
                for C in penalties
            ]

    def _validate(self, K: Floats, fold: Folds, C: float) -> float:
        """Mean accuracy over the inner folds."""
        scores = []
        for train, valid in inner_parts(fold, self.inner_folds):
            svc = SVC(C=C, kernel="precomputed", max_iter=MOST_STEPS)
            svc.fit(K[np.ix_(train, train)], self.task.y[train])
            scores.append(svc.score(K[np.ix_(valid, train)], self.task.y[valid]))
        return float(np.mean(scores))

    def model(self, configuration: Configuration) -> KernelSVC:
        """Make an untrained model."""
        parameters = {name: value for name, value in configuration.items() if name != "C"}
        return KernelSVC(self.make(parameters), float(configuration["C"] or 0.0))

    def prepare(self, mask: Array) -> list[Any]:
        """Give the graphs as GraKeL's own."""
        return as_grakel(self.task.graphs[mask])

    def warm_up(self) -> None:
        """Fit and predict on the first graphs of each class."""
        first = np.concatenate(
            [np.flatnonzero(self.task.y == c)[:2] for c in np.unique(self.task.y)]
        )
        few, y = self.task.graphs[first], self.task.y[first]
        self.model(self.only()).fit(few, y).predict(few)

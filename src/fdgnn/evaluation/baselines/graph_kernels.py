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

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.svm import SVC

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.evaluation.baselines.base import Method, Search
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.graphs import GraphBatch

C_VALUES = (1.0, 10.0, 100.0, 0.1, 1000.0, 0.01, 0.001)  # C, the most promising first
HEIGHTS = (5, 3, 2, 4, 1, 0)  # first the default of GraKeL, and of the authors on MUTAG
GRAPHLETS_DRAWN = 500  # of three vertices each, from every graph
MOST_STEPS = 1_000_000  # of an SVC, which would not end where classes cannot be separated

MakeKernel = Callable[[Configuration], Any]


# ---------------------------------------------------------------------- the kernels


def weisfeiler_lehman(task: EvaluationTask, search: Search) -> KernelMethod:
    """Subtree features of a height: what neighborhoods look like, refined step by step."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import VertexHistogram, WeisfeilerLehman

        if parameters["height"] == 0:
            return VertexHistogram(normalize=True)
        return WeisfeilerLehman(
            n_iter=parameters["height"], base_graph_kernel=VertexHistogram, normalize=True
        )

    return KernelMethod(task, search, make, [{"height": h} for h in HEIGHTS])


def optimal_assignment(task: EvaluationTask, search: Search) -> KernelMethod:
    """Vertices that two graphs have in common, in each step of the refinement."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import WeisfeilerLehmanOptimalAssignment

        return WeisfeilerLehmanOptimalAssignment(n_iter=parameters["height"], normalize=True)

    return KernelMethod(task, search, make, [{"height": h} for h in HEIGHTS if h])


def propagation(task: EvaluationTask, search: Search) -> KernelMethod:
    """Distributions of labels as they spread along random walks, hashed into bins."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import Propagation

        return Propagation(
            t_max=parameters["height"], w=0.001, normalize=True, random_state=task.seed
        )

    return KernelMethod(task, search, make, [{"height": h} for h in HEIGHTS if h])


def graphlets(task: EvaluationTask, search: Search) -> KernelMethod:
    """Frequencies of small subgraphs, from a sample of them; labels are not seen."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import GraphletSampling

        return GraphletSampling(
            k=parameters["size"],
            sampling={"n_samples": GRAPHLETS_DRAWN},
            normalize=True,
            random_state=task.seed,
        )

    return KernelMethod(task, search, make, [{"size": 3}])


def random_walk(task: EvaluationTask, search: Search) -> KernelMethod:
    """Common walks of all lengths, longer ones counting less; labels are not seen."""

    def make(parameters: Configuration) -> Any:
        from grakel.kernels import RandomWalk

        return RandomWalk(lamda=parameters["decay"], normalize=True)

    largest = max(float(task.graphs.max_degrees.max(initial=0.0)), 1.0)
    below = float(np.floor(np.log10(1 / largest**2)))
    return KernelMethod(task, search, make, [{"decay": 10.0**e} for e in (below, below - 1)])


# ---------------------------------------------------------------------- a kernel and a machine


def as_grakel(graphs: GraphBatch) -> list[Any]:
    """Return the graphs as GraKeL takes them: arcs and labels of each vertex in dictionaries.

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
    """A graph kernel and a support vector machine on its matrix, for lists of GraKeL's graphs."""

    def __init__(self, kernel: Any, svc: SVC) -> None:
        self.kernel, self.svc = kernel, svc

    def fit(self, graphs: list[Any], y: Array) -> Self:
        """Train on graphs."""
        with _quietly():
            self.svc.fit(_matrix(self.kernel.fit_transform(graphs)), y)
        self.classes_ = self.svc.classes_
        self.n_parameters_ = self.svc.dual_coef_.size + self.svc.intercept_.size
        return self

    def predict(self, graphs: list[Any]) -> Array:
        """Predict the classes of graphs."""
        with _quietly():
            classes: Array = self.svc.predict(_matrix(self.kernel.transform(graphs)))
        return classes

    def decision_function(self, graphs: list[Any]) -> Array:
        """Return scores: (n,) for two classes, (n, n_classes) for more."""
        with _quietly():
            return np.asarray(self.svc.decision_function(_matrix(self.kernel.transform(graphs))))


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence warnings: GraKeL's of formats and zero norms, an SVC's that it ends at MOST_STEPS."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _matrix(K: Any) -> Floats:
    """Replace NaN by zero: graphs on which a kernel is zero have no norm, and resemble no other."""
    return np.nan_to_num(np.asarray(K, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)


class KernelMethod(Method):
    """A kernel with its parameters and the C of the support vector machine.

    Kernels do not learn, so one matrix over all graphs serves all folds and values of C; the
    chosen model is then trained and timed on its fold's training graphs alone.
    """

    kind = SVC.__name__

    def __init__(
        self,
        task: EvaluationTask,
        search: Search,
        make: MakeKernel,
        parameters: Sequence[Configuration],
    ) -> None:
        super().__init__(task, search, [p | {"C": C} for p in parameters for C in C_VALUES])
        self.make = make
        self._known: tuple[Configuration, Floats] | None = None

    def validate(self, configuration: Configuration, train: Ints, valid: Ints) -> Floats:
        """Train a machine on some graphs, and return its outputs (n, q) for others."""
        parameters = _of_kernel(configuration)
        if self._known is None or self._known[0] != parameters:
            with _quietly():
                K = _matrix(self.make(parameters).fit_transform(as_grakel(self.task.graphs)))
            self._known = parameters, K
        K = self._known[1]
        svc = self._svc(configuration)
        with _quietly():
            svc.fit(K[np.ix_(train, train)], self.y[train])
            return self.outputs(svc, K[np.ix_(valid, train)])

    def _svc(self, configuration: Configuration) -> SVC:
        return SVC(
            C=float(configuration["C"] or 0.0), kernel="precomputed", max_iter=MOST_STEPS,
            class_weight=self.search.class_weight, break_ties=True,
        )  # fmt: skip

    def model(self, configuration: Configuration) -> KernelSVC:
        """Return a model that is not trained."""
        return KernelSVC(self.make(_of_kernel(configuration)), self._svc(configuration))

    def prepare(self, graphs: Array) -> list[Any]:
        """Return the graphs as GraKeL's own."""
        return as_grakel(self.task.graphs[graphs])


def _of_kernel(configuration: Configuration) -> Configuration:
    return {name: value for name, value in configuration.items() if name != "C"}

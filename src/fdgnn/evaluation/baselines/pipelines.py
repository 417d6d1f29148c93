"""Pipelines of scikit-learn: vectors or graph kernels, then a model; and our own ensembles.

Morgan fingerprints have radius 2 and 2048 columns; descriptors are those that RDKit computes in
C++. Linear models choose their regularization strength. A forest has 500 trees and nothing to
choose; gradient boosting has the defaults of scikit-learn's histogram-based variant. Molecules are
parsed while the clock runs.

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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.encoders import GraphKind
from fdgnn.estimators import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.evaluation.baselines import Method, Search, Trial
from fdgnn.evaluation.molecules import boosting, linear_model, morgan_counts
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask, model_outputs
from fdgnn.exceptions import GraphError
from fdgnn.fitting import mean_of_known
from fdgnn.folds import N_FOLDS
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.smiles import SmilesColumn
from fdgnn.seeds import seed_sequence

TREES = 500
C_OF_LINEAR = (1.0, 0.1, 10.0, 0.01)  # the default of scikit-learn first
RIDGE_ALPHAS = (10.0, 1.0, 100.0, 1000.0)
C_VALUES = (1.0, 10.0, 100.0, 0.1, 1000.0, 0.01, 0.001)  # C, the most promising first
HEIGHTS = (5, 3, 2, 4, 1, 0)  # first the default of GraKeL, and of the authors on MUTAG
GRAPHLETS_DRAWN = 500  # of three vertices each, from every graph
MOST_STEPS = 1_000_000  # of an SVC, which would not end where classes cannot be separated
_OF_ENCODERS = ("height", "size", "decay")  # parameters; the others are those of estimators

Make = Callable[..., Any]


class PipelineMethod(Method):
    """An encoder of graphs, a vectorizer or a kernel, and a model of scikit-learn.

    Encoders do not learn from targets, so one matrix of all graphs serves all folds and all
    parameters of the model. What is selected is trained and timed on its fold's training graphs
    alone.

    Parameters
    ----------
    encoder : callable
        Returns the encoder with some parameters: a transformer of what `prepare` returns.
    estimator : callable
        Returns the model with some parameters.
    prepare : callable
        Converts a `GraphBatch` to what the encoder takes.
    """

    def __init__(
        self,
        name: str,
        task: EvaluationTask,
        search: Search,
        grid: Sequence[Configuration],
        *,
        encoder: Make,
        estimator: Make,
        prepare: Callable[[GraphBatch], Any],
    ) -> None:
        weighted = search.class_weight is not None and task.targets.classify
        more: Configuration = {"class_weight": search.class_weight} if weighted else {}
        super().__init__(name, task, search, [{**each, **more} for each in grid])
        self._encoder, self._estimator, self._prepare = encoder, estimator, prepare
        self._encoded: tuple[Configuration, Any] | None = None
        self.kind = type(self.model(self.only)[-1]).__name__

    def model(self, configuration: Configuration) -> Any:
        """Return a pipeline that is not trained."""
        encoder, estimator = _parted(configuration)
        return make_pipeline(self._encoder(**encoder), self._estimator(**estimator))

    def prepare(self, graphs: Array) -> Any:
        """Return some of the graphs in the form that the encoder takes."""
        return self._prepare(self.task.graphs[graphs])

    def score(self, unit: str) -> list[Trial]:
        """Validate a configuration in all inner folds of all outer folds."""
        configuration, n_outer = json.loads(unit), len(self.task.folds)
        encoder, estimator = _parted(configuration)
        if self._encoded is None or self._encoded[0] != encoder:
            every = self.prepare(np.arange(len(self.y)))
            self._encoded = encoder, self._encoder(**encoder).fit_transform(every)
        splits = [part for fold in self.task.folds for part in self.inner_parts(fold)]
        found = cross_validate(
            self._estimator(**estimator), self._encoded[1], self.y, cv=splits,
            scoring=self._validation_score, error_score="raise",
        )["test_score"]  # fmt: skip
        means = mean_of_known(found.reshape(n_outer, -1).T)
        return [
            Trial(outer=o, configuration=configuration, score=None if np.isnan(mean) else mean)
            for o, mean in enumerate(means.tolist())
        ]

    def _validation_score(self, model: Any, X: Any, y: Array) -> float:
        outputs = model_outputs(model, X, self.task.targets.each[0])
        return float(self.scoring.metric(y, outputs))

    def n_parameters(self, model: Any) -> int:
        """Return the number of weights that are not zero and intercepts; of trees, their nodes."""
        last = model[-1]
        if isinstance(last, SVC):
            return int(last.dual_coef_.size + last.intercept_.size)
        if hasattr(last, "coef_"):
            return int(np.count_nonzero(last.coef_) + np.size(last.intercept_))
        if hasattr(last, "estimators_"):
            return int(sum(tree.tree_.node_count for tree in last.estimators_))
        return int(sum(len(tree.nodes) for trees in last._predictors for tree in trees))


def _parted(configuration: Configuration) -> tuple[Configuration, Configuration]:
    """Return the parameters of the encoder, and those of the model."""
    encoder = {name: configuration[name] for name in _OF_ENCODERS if name in configuration}
    return encoder, {name: v for name, v in configuration.items() if name not in encoder}


# ---------------------------------------------------------------------- vectors

#: Labels of vertices that are told apart. COLLAB has 367 degrees, more than any other dataset on
#: which degrees were published as labels.
MAX_LABELS = 400


class VertexInputs:
    """Input rows of vertices, learned on the training graphs.

    One-hot labels; real features, standardized; for graphs with neither the one-hot degree, as
    GIN's authors did. Labels that training did not have give a row of zeros; all beyond the
    `MAX_LABELS` commonest are one.
    """

    def __init__(self, graphs: GraphBatch) -> None:
        self.kind, values, rows = _shown(graphs)
        self._encoder: Any = StandardScaler()
        if self.kind != "features":
            self._encoder = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=MAX_LABELS
            )
        self._encoder.fit(values[rows])
        self.width = len(self._encoder.get_feature_names_out())

    def rows(self, graphs: GraphBatch) -> tuple[Floats, Ints]:
        """Return a table of rows, and the position in it of each vertex's row."""
        kind, values, rows = _shown(graphs)
        if kind != self.kind:
            raise GraphError(
                f"the graphs come with {kind}, but the model was fitted on graphs with "
                f"{self.kind}; use the same kind of vertices for both"
            )
        table = self._encoder.transform(values)
        return np.asarray(table if kind == "features" else table.toarray()), rows


def _shown(graphs: GraphBatch) -> tuple[str, Array, Ints]:
    """Return what vertices show: its name, values (n_values, width), and the row of each vertex."""
    if graphs.features is not None:
        return "features", graphs.features, np.arange(graphs.n_vertices)
    if graphs.label_values is not None and graphs.label_codes is not None:
        return "labels", graphs.label_values[:, None], graphs.label_codes.astype(np.int64)
    values, rows = np.unique(np.diff(graphs.indptr), return_inverse=True)
    return "degrees", values[:, None], rows


class LabelHistogram:
    """Counts of vertex labels; of degrees where there are none, and sums of real features.

    Labels that `graphs` do not have are not counted.
    """

    def __init__(self, graphs: GraphBatch) -> None:
        self._inputs = VertexInputs(graphs)

    def __call__(self, graphs: GraphBatch) -> Floats:
        """Return the histogram of each graph, (n, n_labels)."""
        table, rows = self._inputs.rows(graphs)
        shape = (len(graphs), len(table))
        counts = sp.csr_array((np.ones(len(rows)), (graphs.graph_of_vertex, rows)), shape=shape)
        return np.asarray(counts @ table)


def vectors(name: str, task: EvaluationTask, search: Search) -> PipelineMethod:
    """Return a model on vectors of graphs: ``labels-rf``, ``ecfp-lr`` and so on."""
    vector, _, model = name.partition("-")
    classify, seed = task.targets.classify, task.seed
    encode: Callable[[Any], Any]
    if vector == "labels":
        encode = LabelHistogram(task.graphs)
    elif vector == "ecfp":

        def encode(smiles: Array) -> Any:
            counts = morgan_counts(smiles)
            return counts.toarray().astype(np.float32) if model == "gb" else counts
    else:

        def encode(smiles: Array) -> Floats:  # NaN where a descriptor cannot be computed
            found = SmilesColumn(smiles, np.empty(0, dtype=np.int64)).descriptors("fast")
            return found if model == "gb" else np.nan_to_num(found)

    grid: list[Configuration] = [{}]
    estimator: Make
    if model == "rf":
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest = RandomForestClassifier if classify else RandomForestRegressor
        estimator, grid = partial(forest, random_state=seed), [{"n_estimators": TREES}]
    elif model == "gb":
        estimator = partial(boosting, classify, random_state=seed)
    else:
        estimator = partial(linear_model, classify)
        grid = [{"C": C} for C in C_OF_LINEAR] if classify else [{"alpha": a} for a in RIDGE_ALPHAS]
    return PipelineMethod(
        name, task, search, grid, encoder=lambda: FunctionTransformer(encode), estimator=estimator,
        prepare=(lambda graphs: graphs) if vector == "labels" else _smiles,
    )  # fmt: skip


def _smiles(graphs: GraphBatch) -> Array:
    assert graphs.smiles is not None
    return graphs.smiles.texts


# ---------------------------------------------------------------------- kernels of GraKeL


def kernel(name: str, task: EvaluationTask, search: Search) -> PipelineMethod:
    """Return a graph kernel with a support vector machine."""
    heights: list[Configuration] = [{"height": h} for h in HEIGHTS if h or name == "wl"]
    largest = max(float(task.graphs.max_degrees.max(initial=0.0)), 1.0)
    below = float(np.floor(np.log10(1 / largest**2)))
    grids: dict[str, list[Configuration]] = {
        "gk": [{"size": 3}],
        "rw": [{"decay": 10.0**e} for e in (below, below - 1)],
    }
    grid = [{**each, "C": C} for each in grids.get(name, heights) for C in C_VALUES]

    def encoder(**parameters: Any) -> Any:
        # Graphs on which a kernel is zero have no norm, and resemble no other.
        finite = FunctionTransformer(partial(np.nan_to_num, nan=0.0, posinf=0.0, neginf=0.0))
        return make_pipeline(_grakel_kernel(name, task.seed, **parameters), finite)

    estimator = partial(SVC, kernel="precomputed", max_iter=MOST_STEPS, break_ties=True)
    return PipelineMethod(
        name, task, search, grid, encoder=encoder, estimator=estimator, prepare=as_grakel
    )


def _grakel_kernel(name: str, seed: int, height: int = 0, size: int = 0, decay: float = 0.0) -> Any:
    from grakel import kernels

    if name == "wl" and height:
        # What neighborhoods look like, refined step by step.
        base = kernels.VertexHistogram
        return kernels.WeisfeilerLehman(n_iter=height, base_graph_kernel=base, normalize=True)
    if name == "wl":
        return kernels.VertexHistogram(normalize=True)
    if name == "wl-oa":  # vertices that two graphs have in common, in each step of the refinement
        return kernels.WeisfeilerLehmanOptimalAssignment(n_iter=height, normalize=True)
    if name == "pk":  # distributions of labels as they spread along random walks, hashed into bins
        return kernels.Propagation(t_max=height, w=0.001, normalize=True, random_state=seed)
    if name == "gk":  # frequencies of small subgraphs, from a sample of them; labels are not seen
        drawn = {"n_samples": GRAPHLETS_DRAWN}
        return kernels.GraphletSampling(k=size, sampling=drawn, normalize=True, random_state=seed)
    # Common walks of all lengths, longer ones counting less; labels are not seen.
    return kernels.RandomWalk(lamda=decay, normalize=True)


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


# ---------------------------------------------------------------------- ensembles of our own


class EnsembleMethod(Method):
    """``AutoGraphClassifier(candidates)`` or its regressor.

    An ensemble chooses its base models and their alphas itself, by out-of-fold predictions for the
    graphs that it is trained on (`fdgnn.ensemble`). So the selection is a part of training, and of
    the time that training takes.
    """

    def __init__(self, name: str, task: EvaluationTask, search: Search, candidates: str) -> None:
        given = {"scoring": search.scoring, "class_weight": search.class_weight}
        known = {name: value for name, value in given.items() if value is not None}
        own: Configuration = {"candidates": candidates, "random_state": task.seed, **known}
        super().__init__(name, task, search, [own])
        model, n_graphs = self.model(own), len(task.graphs)
        self.kind = type(model).__name__
        bases = model._base_models(GraphKind.of(task.graphs), n_graphs, seed_sequence(task.seed))
        grids = [base.readout.grid(n_graphs, self.classify) for base in bases]
        self.n_configurations = sum(len(grid) for grid in grids)
        self.inner_folds = N_FOLDS

    def model(self, configuration: Configuration) -> Any:
        """Return a model that is not trained."""
        made = AutoGraphClassifier() if self.classify else AutoGraphRegressor()
        return made.set_params(**configuration)


def ensemble(name: str, task: EvaluationTask, search: Search) -> EnsembleMethod:
    """Return one of our ensembles."""
    candidates = name.removeprefix("fdgnn-")
    return EnsembleMethod(name, task, search, "all" if candidates == "auto" else candidates)

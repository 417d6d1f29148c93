"""Vectors of graphs with a model of scikit-learn, and our own ensembles.

Morgan fingerprints have radius 2 and 2048 columns, as those of the baseline that ``fdgnn fit``
prints (`fdgnn.evaluation.molecules`); descriptors are those that RDKit computes in C++. Linear
models choose their regularization strength. A forest has 500 trees and nothing to choose; gradient
boosting has the defaults of scikit-learn's histogram-based variant. Molecules are parsed while the
clock runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.encoders import GraphKind
from fdgnn.estimators import AutoGraphClassifier, AutoGraphRegressor
from fdgnn.evaluation.baselines.base import Method, Search
from fdgnn.evaluation.baselines.training import VertexInputs
from fdgnn.evaluation.molecules import logistic_regression, morgan_counts
from fdgnn.evaluation.record import Configuration
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.folds import N_FOLDS
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.smiles import SmilesColumn
from fdgnn.records import cached_property
from fdgnn.seeds import seed_sequence

TREES = 500
C_VALUES = (1.0, 0.1, 10.0, 0.01)  # of logistic regression, the default of scikit-learn first
RIDGE_ALPHAS = (10.0, 1.0, 100.0, 1000.0)

Encode = Callable[[Any], Any]


# ---------------------------------------------------------------------- vectors


def molecule_descriptors(smiles: Sequence[str]) -> Floats:
    """Return the descriptors of molecules, NaN where one cannot be computed."""
    texts: Array = np.array(smiles, dtype=object)
    return SmilesColumn(texts, np.empty(0, dtype=np.int64)).descriptors("fast")


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


class VectorModel:
    """A model of scikit-learn on vectors of graphs."""

    def __init__(self, encode: Encode, estimator: Any) -> None:
        self.encode, self.estimator = encode, estimator

    def fit(self, graphs: Any, y: Array) -> Self:
        """Train on graphs."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a regression ends after a thousand steps
            self.estimator.fit(self.encode(graphs), y)
        return self

    def predict(self, graphs: Any) -> Array:
        """Predict classes or numbers."""
        found: Array = self.estimator.predict(self.encode(graphs))
        return found

    @property
    def n_parameters_(self) -> int:
        """Weights that are not zero and intercepts; of trees, their nodes."""
        if hasattr(self.estimator, "coef_"):
            n_intercepts = np.size(self.estimator.intercept_)
            return int(np.count_nonzero(self.estimator.coef_) + n_intercepts)
        if hasattr(self.estimator, "estimators_"):
            return int(sum(tree.tree_.node_count for tree in self.estimator.estimators_))
        trees = [tree for each in self.estimator._predictors for tree in each]
        return int(sum(len(tree.nodes) for tree in trees))


class VectorMethod(Method):
    """A model of scikit-learn on vectors, which are encoded once for the whole selection."""

    def __init__(
        self,
        task: EvaluationTask,
        search: Search,
        encode: Encode,
        make: Callable[[Configuration], Any],
        grid: Sequence[Configuration],
        *,
        of_smiles: bool = True,
    ) -> None:
        weighted = {} if search.class_weight is None else {"class_weight": search.class_weight}
        super().__init__(task, search, [{**each, **weighted} for each in grid])
        self._encode, self._make, self._of_smiles = encode, make, of_smiles
        self.kind = type(make(self.only)).__name__

    def model(self, configuration: Configuration) -> VectorModel:
        """Return a model that is not trained."""
        return VectorModel(self._encode, self._make(configuration))

    def prepare(self, graphs: Array) -> Any:
        """Return the molecules as SMILES, or other graphs as they are."""
        some = self.task.graphs[graphs]
        return some if some.smiles is None or not self._of_smiles else some.smiles.texts

    def outputs(self, model: Any, graphs: Any) -> Floats:
        """Return the outputs (n, q) of a trained model."""
        return super().outputs(model.estimator, model.encode(graphs))

    def validate(self, configuration: Configuration, train: Ints, valid: Ints) -> Floats:
        """Train a model on some graphs, and return its outputs (n, q) for others."""
        X = self._vectors
        model = VectorModel(lambda rows: X[rows], self._make(configuration))
        return self.outputs(model.fit(train, self.y[train]), valid)

    @cached_property
    def _vectors(self) -> Any:
        return self._encode(self.prepare(np.arange(len(self.y))))


# ---------------------------------------------------------------------- the methods


def _forest(task: EvaluationTask, configuration: Configuration) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if task.targets.classify else RandomForestRegressor
    weights = {n: v for n, v in configuration.items() if n == "class_weight"}
    return kind(int(configuration["trees"] or 0), random_state=task.seed, **weights)


def _boosting(task: EvaluationTask, configuration: Configuration) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor
    if task.targets.classify:
        kind = HistGradientBoostingClassifier
    return kind(random_state=task.seed, **configuration)


def _linear(task: EvaluationTask, configuration: Configuration) -> Any:
    from sklearn.linear_model import Ridge

    if not task.targets.classify:
        return Ridge(**configuration)
    return logistic_regression().set_params(**configuration)


def _dense_morgan_counts(smiles: Sequence[str]) -> Array:
    return np.asarray(morgan_counts(smiles).toarray(), dtype=np.float32)


def _filled_descriptors(smiles: Sequence[str]) -> Floats:
    return np.nan_to_num(molecule_descriptors(smiles))


_TREES: list[Configuration] = [{"trees": TREES}]


def morgan_linear(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return logistic or ridge regression on Morgan counts."""
    grid: list[Configuration] = [{"alpha": alpha} for alpha in RIDGE_ALPHAS]
    if task.targets.classify:
        grid = [{"C": C} for C in C_VALUES]
    return VectorMethod(task, search, morgan_counts, partial(_linear, task), grid)


def morgan_forest(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return a random forest on Morgan counts."""
    return VectorMethod(task, search, morgan_counts, partial(_forest, task), _TREES)


def morgan_boosting(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return gradient boosting on Morgan counts."""
    return VectorMethod(task, search, _dense_morgan_counts, partial(_boosting, task), [{}])


def descriptors_forest(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return a random forest on descriptors; those that cannot be computed are zero."""
    return VectorMethod(task, search, _filled_descriptors, partial(_forest, task), _TREES)


def descriptors_boosting(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return gradient boosting on descriptors."""
    return VectorMethod(task, search, molecule_descriptors, partial(_boosting, task), [{}])


def labels_forest(task: EvaluationTask, search: Search) -> VectorMethod:
    """Return a random forest on label histograms."""
    encode = LabelHistogram(task.graphs)
    return VectorMethod(task, search, encode, partial(_forest, task), _TREES, of_smiles=False)


# ---------------------------------------------------------------------- ensembles of our own


class EnsembleMethod(Method):
    """``AutoGraphClassifier(candidates)`` or its regressor.

    An ensemble chooses its base models and their alphas itself, by out-of-fold predictions for the
    graphs that it is trained on (`fdgnn.ensemble`). So the selection is a part of training, and of
    the time that training takes.
    """

    usual_folds = N_FOLDS

    def __init__(self, candidates: str, task: EvaluationTask, search: Search) -> None:
        given = {"scoring": search.scoring, "class_weight": search.class_weight}
        known = {name: value for name, value in given.items() if value is not None}
        own: Configuration = {"candidates": candidates, "random_state": task.seed, **known}
        super().__init__(task, search, [own])
        model, n_graphs = self.model(own), len(task.graphs)
        self.kind = type(model).__name__
        bases = model._base_models(GraphKind.of(task.graphs), n_graphs, seed_sequence(task.seed))
        grids = [base.readout.grid(n_graphs, self.classify) for base in bases]
        self.n_configurations = sum(len(grid) for grid in grids)
        self.inner_folds = N_FOLDS

    @property
    def units(self) -> list[str]:
        """No parts: nothing is chosen before training."""
        return []

    @property
    def selects(self) -> bool:
        """Whether anything is chosen: in training."""
        return True

    def model(self, configuration: Configuration) -> Any:
        """Return a model that is not trained."""
        made = AutoGraphClassifier() if self.classify else AutoGraphRegressor()
        return made.set_params(**configuration)


auto_all = partial(EnsembleMethod, "all")
auto_wl = partial(EnsembleMethod, "wl")
auto_union = partial(EnsembleMethod, "union")

"""What all estimators share: parameters checked, graphs drawn for and embedded, warnings given."""

from __future__ import annotations

import math
import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from fdgnn.exceptions import ConvergenceWarning, GraphError
from fdgnn.graphs import Array, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.reservoir import (
    DeepReservoir,
    Embedding,
    ReservoirConfig,
    average_degree,
    draw_reservoir,
    embed,
    n_inputs,
)

_RANGES: dict[str, tuple[Any, float]] = {  # smallest value allowed; there is no largest
    "n_layers": (Integral, 1),
    "n_units": (Integral, 1),
    "n_connections": (Integral, 1),
    "effective_spectral_radius": (Real, 0),
    "input_scaling": (Real, 0),
    "inter_layer_scaling": (Real, 0),
    "bias_scaling": (Real, 0),
    "tol": (Real, 0),
    "max_iter": (Integral, 1),
    "n_projections": (Integral, 1),
    "alpha": (Real, 0),
    "n_networks": (Integral, 1),
}
_OPTIONAL = ("bias_scaling", "n_projections")
_CHOICES: dict[str, tuple[Any, ...]] = {
    "solver": ("auto", "paper"),
    "pooled_layers": ("last", "all"),
    "probability": (False, True),
}


class ReservoirEstimator(BaseEstimator):  # type: ignore[misc]
    """What the transformer and the predictors share: from graphs to embeddings."""

    def _check_parameters(self) -> None:
        for name, (kind, least) in _RANGES.items():
            value = getattr(self, name, None)  # not every estimator has every parameter
            if value is None and (name in _OPTIONAL or not hasattr(self, name)):
                continue
            if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
                what = "an integer" if kind is Integral else "a number"
                raise ValueError(f"{name}={value!r}: expected {what}, at least {least}")
            if not math.isfinite(value):
                raise ValueError(f"{name}={value!r}: expected a finite number")
        for name, allowed in _CHOICES.items():
            if hasattr(self, name) and getattr(self, name) not in allowed:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected one of {allowed}")

    def _start_fit(self, X: Any) -> GraphBatch:
        self._check_parameters()
        graphs = as_batch(X)
        self.degree_ = self._resolve_degree(graphs)
        self.n_features_in_ = n_inputs(graphs)
        self.directed_ = graphs.directed
        self.vertex_input_ = _vertex_input(graphs)
        return graphs

    def _resolve_degree(self, graphs: GraphBatch) -> float:
        if self.degree == "average":
            return average_degree(graphs)
        if self.degree == "max":
            return float(graphs.max_degrees.max())
        number = isinstance(self.degree, Real) and not isinstance(self.degree, bool)
        if number and 0 < self.degree < math.inf:
            return float(self.degree)
        raise ValueError(
            f"degree={self.degree!r}: expected 'average', 'max' or a number above zero"
        )

    def _draw(
        self, graphs: GraphBatch, degree: float, seed: np.random.SeedSequence
    ) -> DeepReservoir:
        config = ReservoirConfig(
            n_layers=self.n_layers,
            n_units=self.n_units,
            n_connections=self.n_connections,
            effective_spectral_radius=self.effective_spectral_radius,
            input_scaling=self.input_scaling,
            inter_layer_scaling=self.inter_layer_scaling,
            bias_scaling=self.bias_scaling,
        )
        return draw_reservoir(config, graphs, degree, seed)

    def _embed(self, graphs: GraphBatch, reservoir: DeepReservoir, **options: Any) -> Embedding:
        return embed(
            graphs,
            reservoir,
            tol=self.tol,
            max_iter=self.max_iter,
            solver=self.solver,
            n_jobs=self.n_jobs,
            **options,
        )

    def _new_graphs(self, X: Any) -> GraphBatch:
        """Check that graphs are of the kind the model was fitted on."""
        check_is_fitted(self)
        graphs = as_batch(X)
        if graphs.directed != self.directed_:
            raise GraphError(
                f"the graphs are {'directed' if graphs.directed else 'undirected'}, but the model "
                f"was fitted on {'directed' if self.directed_ else 'undirected'} ones"
            )
        if _vertex_input(graphs) != self.vertex_input_:
            raise GraphError(
                f"the graphs have {_vertex_input(graphs)}, but the model was fitted on graphs with "
                f"{self.vertex_input_}"
            )
        if self.vertex_input_ == "vertex features" and n_inputs(graphs) != self.n_features_in_:
            raise GraphError(
                f"the graphs have {n_inputs(graphs)} features a vertex, but the model was fitted "
                f"on {self.n_features_in_}"
            )
        return graphs

    def _record_convergence(self, embeddings: list[Embedding]) -> None:
        """Keep how the iteration ended on each graph; tell once if it did not."""
        n_iter = np.concatenate([e.n_iter for e in embeddings])
        residual = np.concatenate([e.residual for e in embeddings])
        self.n_iter_ = n_iter.max(axis=0)
        self.converged_ = (residual < self.tol).all(axis=0)
        self._tell_unconverged(embeddings)

    def _tell_unconverged(self, embeddings: list[Embedding]) -> None:
        """Warn the caller of the public method that called the method that calls this one."""
        residual = np.concatenate([e.residual for e in embeddings]).max(axis=0)
        unconverged = int((residual >= self.tol).sum())
        if unconverged:
            warnings.warn(
                f"{unconverged} of {len(residual)} graphs did not converge to tol={self.tol:g} "
                f"within max_iter={self.max_iter} iterations; the largest last change is "
                f"{residual.max():.3g}, in graph {int(residual.argmax())}. Their last states are "
                "used, as in the paper; lower effective_spectral_radius or raise max_iter to let "
                "them settle",
                ConvergenceWarning,
                stacklevel=4,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


def _vertex_input(graphs: GraphBatch) -> str:
    if graphs.features is not None:
        return "vertex features"
    return "no vertex labels" if graphs.label_values is None else "vertex labels"


def class_labels(y: Any, graphs: GraphBatch) -> Array:
    """Give y as class labels (n_graphs,), or raise ValueError unless it has two at least."""
    # Integers, truth values and strings are class labels without a closer look.
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iubU"
    y = y if plain else column_or_1d(y, warn=True)
    check_one_each(graphs, y)
    if not plain:
        check_classification_targets(y)
    check_two_classes(y)
    return np.asarray(y)


def check_two_classes(y: Array) -> None:
    """Raise ValueError unless there is something to tell apart."""
    if (y == y[0]).all():
        raise ValueError(f"y has one class only ({y[0]!s}); a classifier needs at least two")


def check_one_each(graphs: GraphBatch, y: Array) -> None:
    """Raise ValueError unless y has one entry for each graph."""
    if y.ndim == 0 or len(y) != len(graphs):
        found = "a single value" if y.ndim == 0 else f"{len(y)} entries"
        raise ValueError(f"y has {found}, but there are {len(graphs)} graphs; give one for each")

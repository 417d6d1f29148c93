"""`GraphReservoir`: graphs encoded as the pooled fixed points of an untrained deep reservoir."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Floats
from fdgnn.encoders.base import (
    HANDLE_UNKNOWN,
    Convergence,
    Encoder,
    Encoding,
    GraphKind,
    VertexParts,
    unknown_labels_in_words,
    warn_unconverged,
)
from fdgnn.encoders.registry import register_encoder
from fdgnn.exceptions import FDGNNWarning, ModelFileError, SaturationWarning, UnusedDataWarning
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_ITERATIONS, MAX_LAYERS, MAX_NUMBER, MAX_UNITS
from fdgnn.parameters import Number, OneOf, Rule
from fdgnn.records import Record
from fdgnn.reservoir import (
    FEW_VERTICES,
    DeepReservoir,
    Embedding,
    Layer,
    ReservoirConfig,
    draw_reservoir,
    embed,
    solve_few,
)
from fdgnn.seeds import Uniform

_READ = 2 / 3  # of the labels or features, at least, or there is a warning
_SATURATES = 5.0  # tanh(5) = 0.9999
_VERTICES_LOOKED_AT = 2_000


class ReservoirFacts(Record, frozen=True, kw_only=True):
    """Facts of a reservoir in a model file, in addition to its parameters and arrays."""

    degree: float
    vocabulary: tuple[int | str, ...] | None


class Degree:
    """The rule of the parameter `degree`."""

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is valid."""
        if isinstance(value, str) and value in ("average", "max"):
            return None
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and value > 0):
            return "expected 'average', 'max' or a number above zero"
        return MAX_NUMBER.in_words if MAX_NUMBER.is_below(value) else None


@register_encoder
@dataclass(eq=False, repr=False)
class GraphReservoir(ReservoirConfig, Encoder):
    """Embed graphs as the pooled fixed points of an untrained deep reservoir.

    Each layer iterates ``X = tanh(U W_I^T + bias + A X W_H^T)`` to its fixed point; the states of
    a graph's vertices are summed. `fit` only draws the weights.

    Parameters
    ----------
    n_layers : int, default=3
        L, the depth.
    n_units : int, default=50
        H, the number of units in each layer.
    n_connections : int, default=1
        C, the number of connections of a unit from its input, and from its own layer.
    effective_spectral_radius : float, default=0.9
        ``rho(W_H) k``; at 1 or above, graphs of degree k need not have a unique fixed point. (In
        other reservoir libraries, this name means the leaky spectral radius.)
    input_scaling : float, default=1.0
        omega(1): the first layer's input weights are uniform in [-omega, omega].
    inter_layer_scaling : float, default=1.0
        omega: the same for the other layers.
    bias_scaling : float, optional
        Biases are uniform in [-bias_scaling, bias_scaling]; by default the layer's own scaling. 0
        means no biases.
    degree : {"average", "max"} or float, default="average"
        k: the mean or the maximum over graphs of the largest neighborhood, or a number.
    pooled_layers : {"last", "all"}, default="last"
        The layers whose pooled states are the features.
    tol : float, default=1e-3
        epsilon: the iteration of a graph stops when its states change by less (Frobenius norm).
    max_iter : int, default=50
        nu, the maximum number of iterations of a layer.
    solver : {"auto", "paper"}, default="auto"
        "paper" iterates all units by eq. 2; "auto" computes the same fixed points faster.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether a vertex label that no training graph has is ignored (the vertex has no input, only
        the bias and its neighbors, and a warning counts such graphs), or raises an error.
    random_state : int, RandomState, Generator or None, default=None
    n_jobs : int, optional
        Threads; None means 1, and -1 means all cores. Results do not depend on their number.

    Attributes
    ----------
    layers_ : tuple of Layer
        ``layers_[i].input_weights``, ``.recurrent_weights`` (SciPy CSR) and ``.bias``.
    reservoir_ : DeepReservoir
        All layers together, as the solver uses them.
    degree_ : float
        k.
    seed_ : numpy.random.SeedSequence
        The root of all random streams, also if `random_state` is None.
    n_iter_, converged_ : (n_graphs,)
        Number of iterations and convergence for each graph of the last `fit_transform` or
        `transform`.

    Examples
    --------
    >>> from fdgnn import GraphReservoir
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles([3, 4, 5])
    >>> GraphReservoir(n_units=10, random_state=0).fit_transform(graphs).shape
    (3, 10)
    """

    pooled_layers: str = "last"
    random_state: Any = None
    n_jobs: int | None = None

    kind = "reservoir"
    depth_parameter = "n_layers"
    expansion_factor = 2  # P = 2 H
    rules: ClassVar[Mapping[str, Rule]] = {
        "n_layers": Number(1, whole=True, most=MAX_LAYERS),
        "n_units": Number(1, whole=True, most=MAX_UNITS),
        "n_connections": Number(1, whole=True, most=MAX_UNITS),
        "effective_spectral_radius": Number(0),
        "input_scaling": Number(0),
        "inter_layer_scaling": Number(0),
        "bias_scaling": Number(0, optional=True),
        "degree": Degree(),
        "pooled_layers": OneOf(("last", "all")),
        "tol": Number(0),
        "max_iter": Number(1, whole=True, most=MAX_ITERATIONS),
        "solver": OneOf(("auto", "paper")),
        "handle_unknown": OneOf(HANDLE_UNKNOWN),
    }
    Facts = ReservoirFacts

    # ------------------------------------------------------------------ the protocol

    def __sklearn_clone__(self) -> Self:
        """Return a reservoir with the same parameters, not drawn.

        scikit-learn's own way takes a tenth of a small fit.
        """
        if type(self) is not GraphReservoir:
            found: Self = super().__sklearn_clone__()
            return found
        return replace(self, random_state=deepcopy(self.random_state))

    @classmethod
    def search_space(cls) -> Mapping[str, Any]:
        """Return the paper's ranges."""
        return {
            "effective_spectral_radius": Uniform(),
            "input_scaling": Uniform(),
            "inter_layer_scaling": Uniform(),
        }

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        if isinstance(self.degree, str):
            average = self.degree == "average"
            self.degree_ = graphs.average_degree if average else graphs.largest_degree
        else:
            self.degree_ = float(self.degree)
        self.reservoir_ = draw_reservoir(self, graphs, self.degree_, seed)

    def data_warnings(self, graphs: GraphBatch) -> list[FDGNNWarning]:
        """Return warnings about inputs that no unit reads, and about saturated states."""
        found: list[FDGNNWarning] = []
        reservoir, U, weights = self.reservoir_, graphs.features, self.reservoir_.weights
        n_inputs = reservoir.n_inputs
        n_read = len(set(weights.first_sources.ravel().tolist()))
        if n_read < _READ * n_inputs:
            what = "vertex labels" if U is None else "vertex features"
            found.append(UnusedDataWarning(
                f"the reservoir's {self.n_units} units read {n_read} of {n_inputs} {what}; the "
                "others make no difference: raise `n_units` or `n_connections`, or use WL features"
            ))  # fmt: skip
        if U is None or len(U) == 0:
            return found
        # The drive U W_I^T + bias saturates tanh only if features are large.
        largest, reach = float(max(U.max(), -U.min())), abs(weights.first_values).sum(axis=1).max()
        if largest <= (_SATURATES - abs(weights.bias[0]).max()) / max(reach, 1e-300):
            return found
        first, some = reservoir.layers[0], U[:: -(-len(U) // _VERTICES_LOOKED_AT)]
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinite is saturated
            drive = np.asarray(some @ first.input_weights.T) + first.bias
        share = float((np.mean(~(abs(drive) <= _SATURATES), axis=1) > 0.5).mean())
        if share > 0.5:
            found.append(SaturationWarning(
                f"most units are saturated, tanh(x) with |x| > {_SATURATES:g}, on {share:.0%} of "
                f"the vertices, because vertex features are as large as {largest:.3g}; their "
                "states hardly distinguish vertices: standardize the features, or lower "
                "`input_scaling`"
            ))  # fmt: skip
        return found

    def encode(
        self, graphs: GraphBatch, depths: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Encoding:
        """Compute the fixed points of checked graphs; one pass serves all depths."""
        # NumPy 1 takes uint64 - 1 for a real number, so that depths must be Python's integers.
        depths = [int(depth) for depth in ([self.n_layers] if depths is None else depths)]
        if self.pooled_layers == "last":
            embedding = self._embed(graphs, [depth - 1 for depth in depths], n_jobs)
            features = list(embedding.pooled)
        else:
            embedding = self._embed(graphs, range(max(depths)), n_jobs)
            features = [_side_by_side(embedding.pooled[:depth]) for depth in depths]
        return Encoding(features, _convergence(self, embedding))

    @classmethod
    def encode_each(
        cls, encoders: Sequence[Self], graphs: GraphBatch, n_jobs: int | None = None
    ) -> list[Encoding]:
        """Encode checked graphs by several reservoirs; if there are few, by one call for all."""
        first = encoders[0]
        few = first.solver == "auto" and graphs.n_vertices <= FEW_VERTICES

        def setting(own: Self) -> tuple[Any, ...]:
            return own.solver, own.tol, own.handle_unknown, own.reservoir_.vocabulary

        if not few or any(setting(own) != setting(first) for own in encoders[1:]):
            return super().encode_each(encoders, graphs, n_jobs)
        layers = [each.feature_layers for each in encoders]
        outputs = solve_few(graphs, [each.reservoir_ for each in encoders], layers, first.tol)
        return [
            each.encode(graphs, n_jobs=n_jobs)
            if own is None
            else Encoding([_side_by_side(own.pooled)], _convergence(each, own))
            for each, own in zip(encoders, outputs, strict=True)
        ]

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> VertexParts:
        """Compute the fixed points of checked graphs and keep the states of their vertices."""
        embedding = self._embed(graphs, self.feature_layers, n_jobs, keep_states=True)
        pooled = np.concatenate(list(embedding.pooled), axis=1)
        return VertexParts(graphs, pooled, embedding.states.reshape(graphs.n_vertices, -1))

    def _embed(
        self,
        graphs: GraphBatch,
        layers: Sequence[int],
        n_jobs: int | None,
        keep_states: bool = False,
    ) -> Embedding:
        return embed(
            graphs,
            self.reservoir_,
            tol=self.tol,
            max_iter=self.max_iter,
            solver=self.solver,
            layers=layers,
            n_jobs=n_jobs,
            keep_states=keep_states,
        )

    @property
    def feature_layers(self) -> tuple[int, ...]:
        """The layers whose pooled states are the features."""
        L = int(self.n_layers)
        return tuple(range(L)) if self.pooled_layers == "all" else (L - 1,)

    def _new_labels(self, graphs: GraphBatch) -> dict[int, str]:
        return unknown_labels_in_words(graphs, self.reservoir_.vocabulary)

    @property
    def n_features_out(self) -> int:  # type: ignore[override]
        """The number of features: H, or H for each layer."""
        return int(self.n_units) * len(self.feature_layers)

    def facts(self) -> ReservoirFacts:
        """Return the degree and the vertex labels of the reservoir."""
        return ReservoirFacts(degree=self.degree_, vocabulary=self.reservoir_.vocabulary)

    def arrays(self) -> dict[str, Array]:
        """Return the weights of all layers."""
        return self.reservoir_.arrays()

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore the weights of all layers, and check shapes, ranges and values."""
        graph_kind.check_vocabulary(facts.vocabulary)
        if not (math.isfinite(facts.degree) and facts.degree >= 0):
            raise ModelFileError(f"degree is {facts.degree}")
        self.degree_ = facts.degree
        sizes = graph_kind.n_inputs, facts.vocabulary
        self.reservoir_ = DeepReservoir.from_arrays(self, arrays, *sizes)

    # ------------------------------------------------------------------ for users

    def _after_encoding(self, encoding: Encoding) -> None:
        assert encoding.convergence is not None
        self.n_iter_ = encoding.convergence.n_iter.max(axis=0)
        self.converged_ = (encoding.convergence.residual < self.tol).all(axis=0)
        warn_unconverged([encoding.convergence])

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """Weights of the layers."""
        check_is_fitted(self)
        return self.reservoir_.layers

    def vertex_states(self, X: Any) -> Floats:
        """Compute the states of all vertices, graph after graph: (n_vertices, n_features)."""
        graphs = self._check_graphs(X)
        if len(graphs) == 0:
            return np.empty((0, self.n_features_out))
        embedding = self._embed(graphs, self.feature_layers, self.n_jobs, keep_states=True)
        self._after_encoding(Encoding([], _convergence(self, embedding)))
        return embedding.states.reshape(graphs.n_vertices, -1)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as ``layer3_unit17``."""
        check_is_fitted(self)
        names = [f"layer{i + 1}_unit{h}" for i in self.feature_layers for h in range(self.n_units)]
        return np.array(names, dtype=object)


def _convergence(encoder: GraphReservoir, found: Embedding) -> Convergence:
    return Convergence(found.n_iter, found.residual, encoder.tol, encoder.max_iter)


def _side_by_side(pooled: Floats) -> Floats:
    """Return pooled states (n_layers, n_graphs, H) as features (n_graphs, n_layers H)."""
    return pooled[0] if len(pooled) == 1 else np.concatenate(pooled, axis=1)

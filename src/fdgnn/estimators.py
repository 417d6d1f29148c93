"""The models: an encoder, a random expansion and a trained readout, composed.

``graphs -> encoder -> random expansion -> readout``. Each part is an object of its own; the
classes here put them together under scikit-learn's contract.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats
from fdgnn.encoders import Encoder, Encoding, GraphKind, GraphReservoir, encoder_class
from fdgnn.encoders.settling import tell_unsettled
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.parameters import Number, OneOf, Rule, check_parameters
from fdgnn.readout.calibration import fit_slope, probabilities, stratified_folds
from fdgnn.readout.expansion import RandomExpansion
from fdgnn.readout.linear import LinearReadout, held_out_outputs
from fdgnn.readout.targets import class_labels, code_classes, real_targets, winning_class
from fdgnn.reservoir import Layer
from fdgnn.seeds import child_seed, seed_sequence


@dataclass(frozen=True)
class Network:
    """One guess: a fitted encoder, the expansion of its features, and the trained readout."""

    encoder: Encoder
    expansion: RandomExpansion | None
    readout: LinearReadout

    def features(self, graphs: GraphBatch, n_jobs: int | None = None) -> Features:
        """What the readout sees of checked graphs, (n_graphs, P)."""
        return expanded(self.encoder.encode(graphs, n_jobs=n_jobs).features[0], self.expansion)

    def outputs(self, encoding: Encoding) -> Floats:
        """Eq. 3: the outputs (n_graphs, q) for graphs that were encoded already."""
        return self.readout.outputs(expanded(encoding.features[0], self.expansion))


def expanded(features: Features, expansion: RandomExpansion | None) -> Features:
    """Features as the readout sees them."""
    return features if expansion is None else expansion.expand(features)


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Parameters of an encoder that a model passes on, if it has them."""
    own = ("random_state", "n_jobs")  # a model gives seeds and threads itself
    return tuple(name for name in inspect.signature(kind).parameters if name not in own)


class _FDGNN(BaseEstimator):  # type: ignore[misc]
    """The model up to its real-valued output; a subclass says what the output means."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_projections": Number(0, whole=True, optional=True),
        "alpha": Number(0),
        "n_networks": Number(1, whole=True),
    }

    def __init__(
        self,
        n_layers: int = 3,
        n_units: int = 50,
        n_connections: int = 1,
        effective_spectral_radius: float = 0.9,
        input_scaling: float = 1.0,
        inter_layer_scaling: float = 1.0,
        bias_scaling: float | None = None,
        degree: str | float = "average",
        n_projections: int | None = None,
        alpha: float = 1e-3,
        n_networks: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        encoder: str | Encoder = GraphReservoir.kind,
    ) -> None:
        self.n_layers = n_layers
        self.n_units = n_units
        self.n_connections = n_connections
        self.effective_spectral_radius = effective_spectral_radius
        self.input_scaling = input_scaling
        self.inter_layer_scaling = inter_layer_scaling
        self.bias_scaling = bias_scaling
        self.degree = degree
        self.n_projections = n_projections
        self.alpha = alpha
        self.n_networks = n_networks
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.encoder = encoder

    # ------------------------------------------------------------------ the encoder

    def _new_encoder(self) -> Encoder:
        """Make an encoder that is not fitted yet, and check its parameters."""
        if isinstance(self.encoder, Encoder):
            encoder: Encoder = clone(self.encoder)
        else:
            kind: Any = encoder_class(self.encoder)
            names = [name for name in _parameter_names(kind) if hasattr(self, name)]
            encoder = kind(**{name: getattr(self, name) for name in names})
        check_parameters(encoder, encoder.rules)
        return encoder

    @property
    def _encoder_kind(self) -> type[Encoder]:
        given = self.encoder
        return type(given) if isinstance(given, Encoder) else encoder_class(given)

    @property
    def depth_parameter(self) -> str | None:
        """The parameter of this model that says how deep it is; None if there is none."""
        name = self._encoder_kind.depth_parameter
        return None if name is None else self._own_name(name)

    @property
    def search_space(self) -> Mapping[str, Any]:
        """What a search tries by default: lists or distributions by parameter of this model."""
        space = self._encoder_kind.search_space().items()
        own = ((self._own_name(name), values) for name, values in space)
        return {name: values for name, values in own if name is not None}

    def _own_name(self, name: str) -> str | None:
        """What a parameter of the encoder is called as a parameter of this model.

        An encoder that is given by its name has the parameters that the model has, too; its
        others keep their defaults, so that they have no name here.
        """
        if isinstance(self.encoder, Encoder):
            return f"encoder__{name}"
        return name if hasattr(self, name) else None

    # ------------------------------------------------------------------ fitting

    def _start_fit(self, X: Any) -> GraphBatch:
        check_parameters(self, self.rules)
        graphs = as_batch(X)
        self.graph_kind_ = GraphKind.of(graphs)
        self.reading_ = getattr(graphs, "reading", None)
        self.seed_ = seed_sequence(self.random_state)
        return graphs

    @property
    def n_features_in_(self) -> int:
        """Inputs per vertex: different labels, features, or 1."""
        check_is_fitted(self)
        return int(self.graph_kind_.n_inputs)

    def _drawn_expansion(
        self, encoder: Encoder, n_features: int, seed: np.random.SeedSequence
    ) -> RandomExpansion | None:
        P = encoder.expanded_size(n_features, self.n_projections)
        return RandomExpansion(P).draw(n_features, seed) if P else None

    def network_features(
        self, graphs: GraphBatch, guess: int, depths: Sequence[int]
    ) -> list[Features]:
        """What the readout of one guess sees, (n_graphs, P), for a model of each of these depths.

        One pass through the deepest encoder serves all depths.
        """
        seed = child_seed(seed_sequence(self.random_state), guess)
        encoder = self._new_encoder()
        if encoder.depth_parameter is not None:
            encoder.set_params(**{encoder.depth_parameter: max(depths)})
            check_parameters(encoder, encoder.rules)
        features = encoder.draw(graphs, seed).encode(graphs, depths, self.n_jobs).features
        # Networks of one guess have the same projection, if their features are as many.
        expansions = {
            n: self._drawn_expansion(encoder, n, seed) for n in {X.shape[1] for X in features}
        }
        return [expanded(X, expansions[X.shape[1]]) for X in features]

    def _fit_networks(self, graphs: GraphBatch, targets: Floats) -> list[Features]:
        """Draw and train all networks; give what their readouts saw."""
        networks, encodings, seen = [], [], []
        for guess in range(self.n_networks):
            seed = child_seed(self.seed_, guess)
            encoder = self._new_encoder().draw(graphs, seed)
            encodings.append(encoder.encode(graphs, n_jobs=self.n_jobs))
            X = encodings[-1].features[0]
            expansion = self._drawn_expansion(encoder, X.shape[1], seed)
            seen.append(expanded(X, expansion))
            readout = LinearReadout.fit(seen[-1], targets, self.alpha)
            networks.append(Network(encoder, expansion, readout))
        self.networks_ = tuple(networks)
        self._record_settling(encodings)
        return seen

    def _record_settling(self, encodings: list[Encoding]) -> None:
        """Keep how the iteration ended on each training graph; tell once if it did not end."""
        settlings = [e.settling for e in encodings if e.settling is not None]
        if not settlings:
            return
        self.n_iter_ = np.concatenate([s.n_iter for s in settlings]).max(axis=0)
        still = [(s.residual < s.tol).all(axis=0) for s in settlings]
        self.converged_ = np.logical_and.reduce(still)
        tell_unsettled(settlings)

    # ------------------------------------------------------------------ using it

    def check_graphs(self, X: Any) -> GraphBatch:
        """Convert graphs, and check that they are of the kind that the model was fitted on."""
        check_is_fitted(self)
        graphs = as_batch(X)
        self.graph_kind_.check(graphs)
        return graphs

    def refusals(self, X: Any) -> dict[int, str]:
        """Positions of the graphs that the model cannot take, and why.

        Raises
        ------
        GraphError
            The graphs are all of another kind than those that the model was fitted on.
        """
        return self.networks_[0].encoder.refusals(self.check_graphs(X))

    def outputs(self, X: Any) -> Floats:
        """Real-valued outputs of eq. 3, averaged over the networks: (n_graphs, q)."""
        graphs = self.check_graphs(X)
        encodings = [n.encoder.encode(graphs, n_jobs=self.n_jobs) for n in self.networks_]
        settlings = [e.settling for e in encodings if e.settling is not None]
        if settlings:
            tell_unsettled(settlings)
        pairs = zip(self.networks_, encodings, strict=True)
        outputs = [network.outputs(encoding) for network, encoding in pairs]
        return outputs[0] if len(outputs) == 1 else np.asarray(np.mean(outputs, axis=0))

    @property
    def n_outputs_(self) -> int:
        """q, the number of real-valued outputs."""
        check_is_fitted(self)
        return len(self.networks_[0].readout.intercept)

    def __sklearn_is_fitted__(self) -> bool:
        return "networks_" in vars(self)

    # ------------------------------------------------------------------ the only network

    def _only_network(self) -> Network:
        check_is_fitted(self)
        if len(self.networks_) > 1:
            raise AttributeError(
                f"there are {len(self.networks_)} networks; read networks_[j] instead"
            )
        return self.networks_[0]

    @property
    def degree_(self) -> float:
        """K as used, where the encoder is a reservoir."""
        check_is_fitted(self)
        return float(self.networks_[0].encoder.degree_)

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The reservoir's weights, of the only network."""
        layers: tuple[Layer, ...] = self._only_network().encoder.layers_
        return layers

    @property
    def projection_(self) -> Floats:
        """W_phi (P, H), of the only network."""
        expansion = self._only_network().expansion
        if expansion is None:
            raise AttributeError("the model has no random expansion")
        return expansion.projection_

    @property
    def coef_(self) -> Floats:
        """W_Y (q, P), of the only network."""
        return self._only_network().readout.coef

    @property
    def intercept_(self) -> Floats:
        """The readout's bias (q,), of the only network."""
        return self._only_network().readout.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.non_deterministic = self.random_state is None
        return tags


class FDGNNClassifier(ClassifierMixin, _FDGNN):  # type: ignore[misc]
    """Classify graphs: an untrained encoder and a linear readout (eq. 1-3).

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, tol, max_iter, solver, random_state, n_jobs
        As in `GraphReservoir`.
    n_projections : int, optional
        P, the size of the random expansion; by default as many times the encoder's features as
        the encoder says, which is twice for a reservoir. 0: none, the readout sees the encoder's
        own features.
    alpha : float, default=1e-3
        lambda, the Tikhonov penalty of the readout; its bias is not penalized.
    n_networks : int, default=1
        Guesses: networks drawn and trained independently, whose outputs are averaged.
    probability : bool, default=False
        Whether `fit` also learns probabilities, on outputs held out by five-fold cross validation
        in closed form, so that `predict_proba` can give them.
    encoder : {"reservoir"} or Encoder, default="reservoir"
        What turns graphs into features: the paper's reservoir, with the parameters above, or any
        `fdgnn.encoders.Encoder` with parameters of its own (``encoder__name`` in a search).

    Attributes
    ----------
    networks_ : tuple of Network
        Each has a fitted `encoder`, its `expansion` and a `readout`.
    layers_, projection_, coef_, intercept_
        Weights of the only network; with several, see ``networks_[j]``.
    degree_ : float
        k as used.
    seed_ : numpy.random.SeedSequence
        The root of all random streams, also where `random_state` is None.
    n_iter_, converged_ : (n_graphs,)
        How the iteration ended on each training graph: the most steps of a layer, and whether
        all layers of all networks came to rest.
    classes_ : (n_classes,)
    calibration_ : float
        How steeply probabilities follow the outputs (`fdgnn.readout.calibration`), if asked for.
    reading_ : Reading or None
        How the training graphs were read, if they came from a file.

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """

    rules: ClassVar[Mapping[str, Rule]] = {
        **_FDGNN.rules,
        "probability": OneOf((False, True)),
    }

    def __init__(
        self,
        n_layers: int = 3,
        n_units: int = 50,
        n_connections: int = 1,
        effective_spectral_radius: float = 0.9,
        input_scaling: float = 1.0,
        inter_layer_scaling: float = 1.0,
        bias_scaling: float | None = None,
        degree: str | float = "average",
        n_projections: int | None = None,
        alpha: float = 1e-3,
        n_networks: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        probability: bool = False,
        encoder: str | Encoder = GraphReservoir.kind,
    ) -> None:
        super().__init__(
            n_layers=n_layers,
            n_units=n_units,
            n_connections=n_connections,
            effective_spectral_radius=effective_spectral_radius,
            input_scaling=input_scaling,
            inter_layer_scaling=inter_layer_scaling,
            bias_scaling=bias_scaling,
            degree=degree,
            n_projections=n_projections,
            alpha=alpha,
            n_networks=n_networks,
            tol=tol,
            max_iter=max_iter,
            solver=solver,
            random_state=random_state,
            n_jobs=n_jobs,
            encoder=encoder,
        )
        self.probability = probability

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the networks and solve for their readouts.

        Parameters
        ----------
        X : GraphBatch or list of graphs
            Whatever `as_batch` takes.
        y : (n_graphs,)
            Class labels of any type, at least two different ones.
        """
        graphs = self._start_fit(X)
        y = class_labels(y, graphs)
        self.classes_, targets = code_classes(y)
        features = self._fit_networks(graphs, targets)
        if self.probability:
            codes = np.searchsorted(self.classes_, y)
            fold = stratified_folds(codes, self.seed_)
            held_out = held_out_outputs(features, targets, self.alpha, fold)
            self.calibration_ = fit_slope(held_out, codes)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Real-valued outputs: (n_graphs,) for two classes, (n_graphs, n_classes) for more."""
        outputs = self.outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> Array:
        """Class of each graph: the sign, or the largest, of its outputs."""
        outputs = self.outputs(X)
        return self.classes_[winning_class(outputs)]

    @available_if(lambda self: self.probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, (n_graphs, n_classes), in the order of `classes_`.

        The class of the largest probability is that of `predict`.
        """
        check_is_fitted(self, "calibration_")
        return probabilities(self.outputs(X), self.calibration_)


class FDGNNRegressor(RegressorMixin, _FDGNN):  # type: ignore[misc]
    """Predict real numbers for graphs, with the same model as `FDGNNClassifier`.

    Parameters and attributes are those of `FDGNNClassifier`, without `classes_`.

    Examples
    --------
    >>> from fdgnn import FDGNNRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> y = [len(g.labels) if g.labels is not None else g.n_vertices for g in graphs]
    >>> float(FDGNNRegressor(random_state=0).fit(graphs, y).score(graphs, y)) > 0.9
    True
    """

    def fit(self, X: Any, y: Any) -> Self:
        """Draw the networks and solve for their readouts; y is (n_graphs,) or (n_graphs, q)."""
        graphs = self._start_fit(X)
        targets = real_targets(y, graphs)
        self.single_output_ = targets.ndim == 1
        self._fit_networks(graphs, targets.reshape(len(targets), -1))
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values, of the shape of the y in `fit`."""
        outputs = self.outputs(X)
        return outputs[:, 0] if self.single_output_ else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

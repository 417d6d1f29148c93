"""The models: an encoder, a random expansion and a trained readout, composed.

``graphs -> encoder -> random expansion -> readout``. Each part is an object of its own; the
classes here put them together under scikit-learn's contract.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from fdgnn.arrays import Array, Features, Floats, Ints
from fdgnn.committee import (
    CANDIDATES,
    LARGE_PENALTIES,
    PENALTIES,
    SMALL_PENALTIES,
    HeldOut,
    Mask,
    Member,
    ReadoutRecipe,
    kept_members,
    members_of,
    recipe_of,
)
from fdgnn.encoders import (
    ColorCounts,
    Encoder,
    Encoding,
    GraphKind,
    GraphReservoir,
    JoinedEncoder,
    encoder_class,
)
from fdgnn.encoders.base import Settling
from fdgnn.encoders.settling import tell_unsettled
from fdgnn.exceptions import UnseenLabelWarning
from fdgnn.expansion import expanded
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.networks import DrawnNetwork, Network, TrainingGoal, draw_expansion, draw_network
from fdgnn.parameters import Number, OneOf, Rule, check_parameters
from fdgnn.readout.calibration import N_FOLDS as CALIBRATION_FOLDS
from fdgnn.readout.calibration import fit_slope, probabilities
from fdgnn.readout.dual import MOST_SAMPLES
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.readout.targets import (
    check_two_classes,
    class_labels,
    code_classes,
    real_targets,
    sample_weights,
    winning_class,
)
from fdgnn.reservoir import Layer
from fdgnn.scikit import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    available_if,
    check_is_fitted,
    clone,
)
from fdgnn.seeds import child_seed, seed_sequence

#: What ``encoder=`` may be beside the name of one encoder: a committee, or two encoders joined.
AUTO, BOTH = "auto", JoinedEncoder.kind
_JOINED: tuple[type[Encoder], ...] = (GraphReservoir, ColorCounts)
# Its reservoirs have fixed parameters. States that still move are features like others: validation
# has judged them, and a member that they make clearly worse is not averaged.
_REMEDY_OF_AUTO = (
    "held-out predictions have judged the reservoirs as they are, so nothing has to be done; "
    'candidates="colors" (--model colors) trains none'
)
FOLDS, FEWER_FOLDS = 10, 5  # for choosing penalties and members; on few graphs, and on many


@cache
def _parameter_names(kind: Any) -> tuple[str, ...]:
    """Parameters of an encoder that a model passes on, if it has them."""
    own = ("random_state", "n_jobs")  # a model gives seeds and threads itself
    return tuple(name for name in inspect.signature(kind).parameters if name not in own)


class _FDGNN(BaseEstimator):  # type: ignore[misc]
    """The model up to its real-valued output; a subclass says what the output means."""

    rules: ClassVar[Mapping[str, Rule]] = {
        "n_projections": Number(0, whole=True, optional=True),
        "alpha": Number(0, optional=True),
        "n_networks": Number(1, whole=True),
        "readout": OneOf(("auto", "linear", "gaussian")),
        "candidates": OneOf(CANDIDATES),
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
        alpha: float | None = None,
        n_networks: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        encoder: str | Encoder = GraphReservoir.kind,
        n_rounds: int = 3,
        readout: str = "auto",
        candidates: str = "all",
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
        self.n_rounds = n_rounds
        self.readout = readout
        self.candidates = candidates

    # ------------------------------------------------------------------ the encoder

    def _new_encoder(self) -> Encoder:
        """Make an encoder that is not fitted yet, and check its parameters."""
        if isinstance(self.encoder, Encoder):
            encoder: Encoder = clone(self.encoder)
        elif self.encoder == BOTH:
            encoder = JoinedEncoder([self._named_encoder(kind) for kind in _JOINED])
        else:
            encoder = self._named_encoder(self._encoder_kind)
        encoder.check_parameters()
        return encoder

    def _named_encoder(self, kind: type[Encoder]) -> Encoder:
        """Make an encoder with the parameters that this model has for it."""
        known: Any = kind
        names = [name for name in _parameter_names(known) if hasattr(self, name)]
        return kind(**{name: getattr(self, name) for name in names})

    @property
    def _encoder_kind(self) -> type[Encoder]:
        given = self.encoder
        if isinstance(given, Encoder):
            return type(given)
        try:
            return encoder_class(given)
        except ValueError as error:
            raise ValueError(f"{error}, or {AUTO!r}") from None

    def members(self, kind: GraphKind, n_graphs: int) -> tuple[Member, ...]:
        """What is trained on so many graphs of this kind: one member, or those of a committee."""
        if self.encoder == AUTO:
            return members_of(kind, n_graphs, self.candidates)
        encoder = self._new_encoder()
        return (Member(encoder.kind, encoder, self.recipe(n_graphs)),)

    def recipe(self, n_graphs: int) -> ReadoutRecipe:
        """How the readout of an encoder is trained on so many graphs."""
        return recipe_of(self._encoder_kind, self.readout, n_graphs)

    @property
    def relative_penalty(self) -> bool:
        """Whether penalties count in units of the features' size."""
        return self.encoder == AUTO or self._encoder_kind.relative_penalty

    @property
    def depth_parameter(self) -> str | None:
        """The parameter of this model that says how deep it is; None if there is none."""
        if self.encoder == AUTO:
            return None
        name = self._encoder_kind.depth_parameter
        return None if name is None else self._own_name(name)

    @property
    def search_space(self) -> Mapping[str, Any]:
        """What a search tries by default: lists or distributions by parameter of this model."""
        if self.encoder == AUTO:
            return {}
        if self.encoder == BOTH:
            return {**GraphReservoir.search_space(), "n_rounds": [1, 2, 3, 4]}
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

    def _start_fit(self, graphs: GraphBatch) -> None:
        check_parameters(self, self.rules)
        self.graph_kind_ = GraphKind.of(graphs)
        self.reading_ = getattr(graphs, "reading", None)
        self.seed_ = seed_sequence(self.random_state)

    @property
    def n_features_in_(self) -> int:
        """Inputs per vertex: different labels, features, or 1."""
        check_is_fitted(self)
        return int(self.graph_kind_.n_inputs)

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
            encoder.check_parameters()
        features = encoder.draw(graphs, seed).encode(graphs, depths, self.n_jobs).features
        # Networks of one guess have the same projection, if their features are as many.
        expansions = {
            n: draw_expansion(encoder, n, self.n_projections, seed)
            for n in {X.shape[1] for X in features}
        }
        return [expanded(X, expansions[X.shape[1]]) for X in features]

    def _fit_networks(
        self, graphs: GraphBatch, goal: TrainingGoal
    ) -> list[tuple[DrawnNetwork, HeldOut]]:
        """Draw all networks, choose penalties and members, and train the readouts."""
        members = self.members(self.graph_kind_, len(graphs))
        if self.encoder != AUTO:
            members = members * self.n_networks
        seeds = [child_seed(self.seed_, i) for i in range(len(members))]
        drawn = [
            draw_network(member, graphs, seed, self.n_projections, self.n_jobs)
            for member, seed in zip(members, seeds, strict=True)
        ]
        pairs = [(each, self._chosen(each, goal)) for each in drawn]
        if self.encoder == AUTO:
            outputs = [found.outputs for _, found in pairs]
            kept = kept_members(outputs, goal.targets, goal.codes is not None)
            pairs = [pair for pair, keep in zip(pairs, kept, strict=True) if keep]
        self.networks_ = tuple(each.trained(goal, found.penalty) for each, found in pairs)
        self._record_settling([each.encoding for each, _ in pairs])
        if self.reading_ is not None and not any(e.encoder.uses_arc_labels for e, _ in pairs):
            self.reading_ = self.reading_.without_arc_labels()
        return pairs

    def _chosen(self, drawn: DrawnNetwork, goal: TrainingGoal) -> HeldOut:
        """Choose the penalty of a network by held-out outputs, unless it is known."""
        known = drawn.encoder.default_alpha if self.alpha is None else self.alpha
        if self.encoder != AUTO and known is not None:
            return HeldOut(known, None)
        n = len(goal.targets)
        alphas = self.penalties(n) if self.alpha is None else (self.alpha,)
        return drawn.chosen(goal, alphas, FOLDS if n <= MOST_SAMPLES else FEWER_FOLDS)

    def penalties(self, n_graphs: int) -> tuple[float, ...]:
        """Penalties that are tried where they count in units of the features' size.

        On more graphs than a closed form can take, small ones need too many steps.
        """
        usual = PENALTIES if isinstance(self, ClassifierMixin) else SMALL_PENALTIES
        return usual if n_graphs <= MOST_SAMPLES else LARGE_PENALTIES

    def _record_settling(self, encodings: list[Encoding]) -> None:
        """Keep how the iteration ended on each training graph; tell once if it did not end."""
        settlings = [e.settling for e in encodings if e.settling is not None]
        if not settlings:
            return
        self.n_iter_ = np.concatenate([s.n_iter for s in settlings]).max(axis=0)
        still = [(s.residual < s.tol).all(axis=0) for s in settlings]
        self.converged_ = np.logical_and.reduce(still)
        self._tell_unsettled(settlings)

    def _tell_unsettled(self, settlings: list[Settling]) -> None:
        if self.encoder == AUTO:
            tell_unsettled(settlings, _REMEDY_OF_AUTO)
        else:
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
        graphs = self.check_graphs(X)
        found = [network.encoder.refusals(graphs) for network in self.networks_]
        return {g: why for g, why in found[0].items() if all(g in other for other in found)}

    def outputs(self, X: Any) -> Floats:
        """Real-valued outputs of eq. 3, averaged over the networks: (n_graphs, q)."""
        graphs = self.check_graphs(X)
        self._tell_unseen(graphs)
        able = self.able_networks(graphs)
        settlings, outputs = [], []
        for i, network in enumerate(self.networks_):
            part = graphs if able is None else graphs[able[i]] if able[i].any() else None
            if part is not None:
                encoding = network.encoder.encode(part, n_jobs=self.n_jobs)
                settlings += [] if encoding.settling is None else [encoding.settling]
                outputs.append(network.outputs(encoding))
        if settlings:
            self._tell_unsettled(settlings)
        if able is None:
            return outputs[0] if len(outputs) == 1 else np.asarray(np.mean(outputs, axis=0))
        total = np.zeros((len(graphs), self.n_outputs_))
        for rows, found in zip(able[able.any(axis=1)], outputs, strict=True):
            total[rows] += found
        return np.asarray(total / able.sum(axis=0)[:, None])

    def able_networks(self, graphs: GraphBatch) -> Mask | None:
        """Tell which network can take which graph, (n_networks, n_graphs); None if all can.

        A reservoir cannot take labels that it has not seen, colors can. So in a committee of both
        the others answer for it. None, too, if all networks are alike: then nobody can help.
        """
        if len({type(network.encoder) for network in self.networks_}) == 1:
            return None
        able = np.ones((len(self.networks_), len(graphs)), dtype=bool)
        for row, network in zip(able, self.networks_, strict=True):
            row[list(network.encoder.refusals(graphs))] = False
        return None if able.all() or not able.any(axis=0).all() else able

    def unseen(self, X: Any) -> Ints:
        """Positions of graphs that the model takes, though no training graph has their labels."""
        graphs = self.check_graphs(X)
        each = [network.encoder.unseen(graphs) for network in self.networks_]
        return np.unique(np.concatenate(each))

    def _tell_unseen(self, graphs: GraphBatch) -> None:
        """Say once how many graphs have labels that no training graph has."""
        n_unseen = len(self.unseen(graphs))
        if n_unseen:
            warnings.warn(
                f"{n_unseen} of {len(graphs)} graphs have vertex labels that were not seen during "
                "fit; they are taken as new colors, about which the model knows nothing",
                UnseenLabelWarning,
                stacklevel=4,
            )

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
        readout = self._only_network().readout
        if isinstance(readout, GaussianReadout):
            raise AttributeError("a Gaussian readout has no weights of features")
        return readout.coef

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
    n_rounds
        As in `ColorCounts`.
    n_projections : int, optional
        P, the size of the random expansion; by default as many times the encoder's features as
        the encoder says, which is twice for a reservoir. 0: none, the readout sees the encoder's
        own features.
    alpha : float, optional
        lambda, the Tikhonov penalty of the readout; its bias is not penalized. By default 1e-3
        for a reservoir; for colors, where it counts in units of the features' mean squared length,
        that with the best held-out predictions of ten folds.
    n_networks : int, default=1
        Guesses: networks drawn and trained independently, whose outputs are averaged.
    probability : bool, default=False
        Whether `fit` also learns probabilities, on outputs held out by five-fold cross validation
        in closed form, so that `predict_proba` can give them.
    encoder : {"reservoir", "colors", "both", "auto"} or Encoder, default="reservoir"
        What turns graphs into features: the paper's reservoir, or colors, or the features of both
        side by side, each with the parameters above. "auto" trains a few models of both kinds and
        averages those that held-out predictions cannot tell from the best (`fdgnn.committee`). Or
        any `fdgnn.encoders.Encoder` with parameters of its own (``encoder__name`` in a search).
    readout : {"auto", "linear", "gaussian"}, default="auto"
        A linear readout, or one of the distances to the training graphs, which is more accurate on
        colors, and needs all training graphs, so that it is for up to 10,000. "auto": linear for a
        reservoir, gaussian for colors of up to so many graphs. The models of ``encoder="auto"``
        have readouts of their own.
    candidates : {"all", "colors", "both"}, default="all"
        Which models ``encoder="auto"`` trains: a few of each kind; only colors, of several rounds;
        or only such as read both.
    class_weight : "balanced", dict or None, default=None
        How much an error on each class counts; "balanced" gives all classes the same weight in
        total, which is of use where one is rare.

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
        alpha: float | None = None,
        n_networks: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        probability: bool = False,
        encoder: str | Encoder = GraphReservoir.kind,
        n_rounds: int = 3,
        readout: str = "auto",
        candidates: str = "all",
        class_weight: str | Mapping[Any, float] | None = None,
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
            n_rounds=n_rounds,
            readout=readout,
            candidates=candidates,
        )
        self.probability = probability
        self.class_weight = class_weight

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the networks and solve for their readouts.

        Parameters
        ----------
        X : GraphBatch or list of graphs
            Whatever `as_batch` takes.
        y : (n_graphs,)
            Class labels of any type, at least two different ones.
        sample_weight : (n_graphs,), optional
            How much each graph's error counts; graphs of weight 0 are left out.
        """
        graphs = as_batch(X)
        y = class_labels(y, graphs)
        weights = sample_weights(sample_weight, len(y), y, self.class_weight)
        if weights is not None and (weights == 0).any():
            graphs, y, weights = graphs[weights > 0], y[weights > 0], weights[weights > 0]
            check_two_classes(y)
        self._start_fit(graphs)
        self.classes_, targets = code_classes(y)
        codes = np.searchsorted(self.classes_, y)
        goal = TrainingGoal(targets, codes, weights, self.seed_)
        pairs = self._fit_networks(graphs, goal)
        if self.probability:
            outputs = [_held_out_outputs(each, found, goal) for each, found in pairs]
            self.calibration_ = fit_slope(np.asarray(np.mean(outputs, axis=0)), codes)
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Draw the networks and solve for their readouts; y is (n_graphs,) or (n_graphs, q)."""
        graphs = as_batch(X)
        targets = real_targets(y, graphs)
        weights = sample_weights(sample_weight, len(targets))
        if weights is not None and (weights == 0).any():
            some = weights > 0
            graphs, targets, weights = graphs[some], targets[some], weights[some]
        self._start_fit(graphs)
        self.single_output_ = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        self._fit_networks(graphs, TrainingGoal(targets, None, weights, self.seed_))
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values, of the shape of the y in `fit`."""
        outputs = self.outputs(X)
        return outputs[:, 0] if self.single_output_ else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _held_out_outputs(drawn: DrawnNetwork, found: HeldOut, goal: TrainingGoal) -> Floats:
    """Outputs of graphs held out of the readout, (n, q); made now if choosing did not need them."""
    if found.outputs is None:
        return np.asarray(drawn.held_out(goal, (found.penalty,), CALIBRATION_FOLDS)[0])
    return np.asarray(found.outputs)

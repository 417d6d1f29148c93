"""scikit-learn estimators: composition only; the work is done in the rooms below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fdgnn._base import ReservoirEstimator, check_one_each, class_labels
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.readout.calibration import fit_slope, probabilities, stratified_folds
from fdgnn.readout.coding import code_classes, draw_projection, expand, winning_class
from fdgnn.readout.ridge import fit_ridge, held_out_predictions
from fdgnn.reservoir import DeepReservoir, Embedding, Layer
from fdgnn.seeds import child_seed, seed_sequence


class GraphReservoir(TransformerMixin, ReservoirEstimator):  # type: ignore[misc]
    """Embed graphs as the pooled fixed points of an untrained deep reservoir.

    Each layer iterates ``X = tanh(U W_I^T + bias + A X W_H^T)`` to its fixed point; the states of
    a graph's vertices are summed. `fit` only draws the weights.

    Parameters
    ----------
    n_layers : int, default=3
        L, the depth.
    n_units : int, default=50
        H, the neurons of each layer.
    n_connections : int, default=1
        C, the incoming connections of a neuron, from its input and from its own layer each.
    effective_spectral_radius : float, default=0.9
        ``rho(W_H) k``; from 1 on, graphs of degree k need not have a unique fixed point.
        (In other reservoir libraries the name stands for the leaky spectral radius.)
    input_scaling : float, default=1.0
        omega(1): the first layer's input weights are uniform in [-omega, omega].
    inter_layer_scaling : float, default=1.0
        omega: the same for the other layers.
    bias_scaling : float, optional
        Biases are uniform in plus or minus this; by default the layer's own scaling. 0: none.
    degree : {"average", "max"} or float, default="average"
        k: the mean or the maximum over graphs of the largest neighborhood, or a number.
    pooled_layers : {"last", "all"}, default="last"
        Whose pooled states `transform` returns.
    tol : float, default=1e-3
        epsilon: a graph's iteration stops when its states move less than this (Frobenius norm).
    max_iter : int, default=50
        nu, the most iterations of a layer.
    solver : {"auto", "paper"}, default="auto"
        "paper" iterates all neurons as eq. 2 says; "auto" finds the same fixed points faster.
    random_state : int, RandomState, Generator or None, default=None
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    layers_ : tuple of Layer
        ``layers_[i].input_weights``, ``.recurrent_weights`` (SciPy CSR) and ``.bias``.
    degree_ : float
        k as used.
    seed_ : numpy.random.SeedSequence
        The root of all random streams, also where `random_state` is None.
    n_iter_, converged_ : (n_graphs,)
        How the iteration ended on each graph of the last `fit_transform` or `transform`.

    Examples
    --------
    >>> from fdgnn import GraphReservoir
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles([3, 4, 5])
    >>> GraphReservoir(n_units=10, random_state=0).fit_transform(graphs).shape
    (3, 10)
    """

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
        pooled_layers: str = "last",
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_layers = n_layers
        self.n_units = n_units
        self.n_connections = n_connections
        self.effective_spectral_radius = effective_spectral_radius
        self.input_scaling = input_scaling
        self.inter_layer_scaling = inter_layer_scaling
        self.bias_scaling = bias_scaling
        self.degree = degree
        self.pooled_layers = pooled_layers
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the weights for the kind of vertices that the graphs have; `y` is not used."""
        graphs = self._start_fit(X)
        self.seed_ = seed_sequence(self.random_state)
        self.reservoir_ = self._draw(graphs, self.degree_, self.seed_)
        return self

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The layers' weights."""
        check_is_fitted(self)
        return self.reservoir_.layers

    def transform(self, X: Any) -> Floats:
        """Pooled states, (n_graphs, n_units) or, with all layers, (n_graphs, L * n_units)."""
        graphs = self._new_graphs(X)
        embedding = self._embed(graphs, self.reservoir_, layers=self.pooled_layers)
        self._record_convergence([embedding])
        return np.concatenate(list(embedding.pooled), axis=1)

    def vertex_states(self, X: Any) -> Floats:
        """Fixed-point states of the vertices, graph after graph: (n_vertices, as `transform`)."""
        graphs = self._new_graphs(X)
        embedding = self._embed(
            graphs, self.reservoir_, layers=self.pooled_layers, keep_states=True
        )
        self._record_convergence([embedding])
        assert embedding.states is not None
        return embedding.states.reshape(graphs.n_vertices, -1)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Names such as ``layer3_unit17``."""
        check_is_fitted(self)
        layers = range(1, self.n_layers + 1) if self.pooled_layers == "all" else [self.n_layers]
        names = [f"layer{i}_unit{h}" for i in layers for h in range(self.n_units)]
        return np.array(names, dtype=object)


class Network(NamedTuple):
    """One guess: a reservoir, its projection, and the readout trained on it."""

    reservoir: DeepReservoir
    projection: Floats  # W_phi (P, H)
    coef: Floats  # W_Y (q, P)
    intercept: Floats  # (q,)

    def outputs(self, pooled: Floats) -> Floats:
        """Eq. 3: (n_graphs, H) -> (n_graphs, q)."""
        return expand(pooled, self.projection) @ self.coef.T + self.intercept


class _FDGNN(ReservoirEstimator):
    """The model up to its real-valued output; a subclass says what the output means."""

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

    def _draw_guess(
        self, graphs: GraphBatch, degree: float, root: np.random.SeedSequence, guess: int
    ) -> tuple[DeepReservoir, Floats]:
        """Reservoir and W_phi of one guess; they depend on the seed and its number only."""
        seed = child_seed(root, guess)
        projection = draw_projection(seed, self.n_units, self.n_projections or 2 * self.n_units)
        return self._draw(graphs, degree, seed), projection

    def network_features(
        self, graphs: GraphBatch, guess: int, depths: Sequence[int]
    ) -> list[Floats]:
        """What the readout of one guess sees, (n_graphs, P), had the model these depths.

        Layers are drawn one by one, so one pass through the deepest network serves all depths.
        """
        deepest = clone(self).set_params(n_layers=max(depths))
        deepest._check_parameters()
        degree = deepest._resolve_degree(graphs)
        root = seed_sequence(deepest.random_state)
        reservoir, projection = deepest._draw_guess(graphs, degree, root, guess)
        layers = [depth - 1 for depth in depths]
        pooled = deepest._embed(graphs, reservoir, layers=layers).pooled
        return [expand(each, projection) for each in pooled]

    def _fit_networks(self, graphs: GraphBatch, targets: Floats) -> list[Embedding]:
        networks, embeddings = [], []
        self.seed_ = seed_sequence(self.random_state)
        for guess in range(self.n_networks):
            reservoir, projection = self._draw_guess(graphs, self.degree_, self.seed_, guess)
            embedding = self._embed(graphs, reservoir, layers="last")
            features = expand(embedding.pooled[-1], projection)
            coef, intercept = fit_ridge(features, targets, self.alpha)
            coef = np.ascontiguousarray(coef)  # one layout: sums round the same once loaded
            networks.append(Network(reservoir, projection, coef, intercept))
            embeddings.append(embedding)
        self.networks_ = tuple(networks)
        return embeddings

    def _outputs(self, X: Any) -> Floats:
        """Eq. 3, averaged over the networks: (n_graphs, q)."""
        graphs = self._new_graphs(X)
        embeddings = [self._embed(graphs, n.reservoir, layers="last") for n in self.networks_]
        self._tell_unconverged(embeddings)
        pairs = zip(self.networks_, embeddings, strict=True)
        outputs = [network.outputs(embedding.pooled[-1]) for network, embedding in pairs]
        return np.asarray(np.mean(outputs, axis=0))

    def _only_network(self) -> Network:
        check_is_fitted(self)
        if len(self.networks_) > 1:
            raise AttributeError(
                f"there are {len(self.networks_)} networks; read networks_[j] instead"
            )
        return self.networks_[0]

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The reservoir's weights, of the only network."""
        return self._only_network().reservoir.layers

    @property
    def projection_(self) -> Floats:
        """W_phi (P, H), of the only network."""
        return self._only_network().projection

    @property
    def coef_(self) -> Floats:
        """W_Y (q, P), of the only network."""
        return self._only_network().coef

    @property
    def intercept_(self) -> Floats:
        """The readout's bias (q,), of the only network."""
        return self._only_network().intercept


class FDGNNClassifier(ClassifierMixin, _FDGNN):  # type: ignore[misc]
    """Classify graphs: an untrained deep reservoir and a linear readout (eq. 1-3).

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, tol, max_iter, solver, random_state, n_jobs
        As in `GraphReservoir`.
    n_projections : int, optional
        P, the size of the random expansion; by default twice `n_units`.
    alpha : float, default=1e-3
        lambda, the Tikhonov penalty of the readout; its bias is not penalized.
    n_networks : int, default=1
        Guesses: networks drawn and trained independently, whose outputs are averaged.
    probability : bool, default=False
        Whether `fit` also learns probabilities, on outputs held out by five-fold cross validation
        in closed form, so that `predict_proba` can give them.

    Attributes
    ----------
    networks_ : tuple of Network
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

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """

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
        embeddings = self._fit_networks(graphs, targets)
        if self.probability:
            codes = np.searchsorted(self.classes_, y)
            fold = stratified_folds(codes, self.seed_)
            held_out = self._held_out_outputs(embeddings, targets, fold)
            self.calibration_ = fit_slope(held_out, codes)
        self._record_convergence(embeddings)
        return self

    def _held_out_outputs(
        self, embeddings: list[Embedding], targets: Floats, fold: Array
    ) -> Floats:
        """Outputs for each training graph had its fold been left out, averaged over networks."""
        alphas = np.array([self.alpha], dtype=np.float64)
        outputs = [
            held_out_predictions(
                expand(embedding.pooled[-1], network.projection), targets, alphas, fold
            )[0]
            for embedding, network in zip(embeddings, self.networks_, strict=True)
        ]
        return np.asarray(np.mean(outputs, axis=0))

    def decision_function(self, X: Any) -> Floats:
        """Real-valued outputs: (n_graphs,) for two classes, (n_graphs, n_classes) for more."""
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict(self, X: Any) -> Array:
        """Class of each graph: the sign, or the largest, of its outputs."""
        outputs = self._outputs(X)
        return self.classes_[winning_class(outputs)]

    @available_if(lambda self: self.probability)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of each class, (n_graphs, n_classes), in the order of `classes_`.

        The class of the largest probability is that of `predict`.
        """
        check_is_fitted(self, "calibration_")
        return probabilities(self._outputs(X), self.calibration_)


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
        targets = np.asarray(y, dtype=np.float64)
        check_one_each(graphs, targets)
        if targets.ndim > 2:
            raise ValueError(f"y has shape {targets.shape}; expected (n_graphs,) or (n_graphs, q)")
        if not np.isfinite(targets).all():
            raise ValueError(
                f"y[{int(np.argmin(np.isfinite(targets).reshape(len(targets), -1).all(axis=1)))}] "
                "is NaN or infinite; leave such graphs out"
            )
        self._one_output = targets.ndim == 1
        embeddings = self._fit_networks(graphs, targets.reshape(len(targets), -1))
        self._record_convergence(embeddings)
        return self

    def predict(self, X: Any) -> Floats:
        """Predicted values, of the shape of the y in `fit`."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._one_output else outputs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

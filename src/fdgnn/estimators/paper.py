"""`FDGNNClassifier` and `FDGNNRegressor`: the paper's model, with the paper's parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Floats
from fdgnn.encoders import Encoder, GraphReservoir
from fdgnn.encoders.unseen import HANDLE_UNKNOWN
from fdgnn.estimators.composed import Classifies, Composed, Regresses
from fdgnn.expansion import RandomExpansion
from fdgnn.fitting import BaseModel, FittedModel, draw_expansion
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.linear import KernelRidge, LinearReadout, Moments, Ridge
from fdgnn.parameters import NumberOr, OneOf, Rule
from fdgnn.reservoir import Layer
from fdgnn.targets import (
    Targets,
    check_label_types,
    check_one_each,
    check_two_classes,
    real_targets,
)
from fdgnn.threads import with_one_blas_thread

_OF_RESERVOIR = (
    "n_layers", "n_units", "n_connections", "effective_spectral_radius", "input_scaling",
    "inter_layer_scaling", "bias_scaling", "degree", "tol", "max_iter", "solver", "handle_unknown",
)  # fmt: skip


class FDGNN(Composed):
    """The paper's model: a `GraphReservoir`, a random expansion, and ridge regression."""

    _rules: ClassVar[Mapping[str, Rule]] = {
        **Composed._rules,
        "alpha": NumberOr(0, "cv"),
        "handle_unknown": OneOf(HANDLE_UNKNOWN),
    }
    alpha: float | str

    def _encoder(self) -> Encoder:
        encoder = GraphReservoir(**{name: getattr(self, name) for name in _OF_RESERVOIR})
        encoder.check_parameters()
        return encoder

    @property
    def _given_readout(self) -> Ridge:
        """Ridge regression with the paper's alpha, which counts in absolute units."""
        return Ridge(alpha=self.alpha, normalize=False)

    def _encoder_names(self) -> tuple[()]:
        return ()

    _alpha_name = "alpha"

    def _take_readout(self, readout: Ridge | KernelRidge) -> None:
        self.alpha = readout.alpha

    @property
    def _depth_parameter(self) -> str | None:
        return GraphReservoir.depth_parameter

    @property
    def _search_space(self) -> Mapping[str, Any]:
        return GraphReservoir.search_space()

    @with_one_blas_thread
    def _fit_piece(self, graphs: GraphBatch, targets: Targets, like: Any) -> Self:
        """Add the moments of a piece, and solve for the readouts of all pieces so far."""
        if "_moments" not in vars(self):
            self._check_parameters()
            if not isinstance(self.alpha, int | float):
                raise ValueError("partial_fit keeps no graphs to choose alpha by; give a number")
            if getattr(self, self._uncertainty) or self.threshold is not None:
                raise ValueError(
                    "partial_fit keeps no graphs to learn uncertainty or a threshold from; leave "
                    f"`{self._uncertainty}` and `threshold` out"
                )
            if self.class_weight is not None:
                raise ValueError("partial_fit has no `class_weight`; leave it out")
            first = graphs if like is None else as_batch(like)
            self._begin(first)
            (base,) = self._base_models(self._graph_kind, len(first), self.seed_)
            self._drawn = [_drawn(base, first, seed) for seed in base.seeds]
            self._moments: list[Moments] = []
        self._graph_kind.check(graphs)
        features = [m.features(graphs, self.n_jobs) for m in self._drawn]
        own = [Moments.of(np.asarray(X), targets.coded) for X in features]
        known = self._moments
        if known:
            own = [old.with_part(new) for old, new in zip(known, own, strict=True)]
        self._moments = own
        models = []
        for drawn, moments in zip(self._drawn, self._moments, strict=True):
            coef, intercept = moments.solve(float(self.alpha))
            readout = LinearReadout(np.ascontiguousarray(coef), intercept)
            models.append(
                FittedModel(drawn.encoder, drawn.expansion, readout, float(self.alpha), drawn.name)
            )
        self._novelty = None
        self._take(models, targets, None)
        return self

    # ------------------------------------------------------------------ weights

    def _only(self) -> FittedModel:
        check_is_fitted(self)
        if len(self.estimators_) > 1:
            raise AttributeError(
                f"there are {len(self.estimators_)} random initializations; read estimators_[i]"
            )
        return self.estimators_[0]

    @property
    def layers_(self) -> tuple[Layer, ...]:
        """The reservoir's weights, of the only random initialization."""
        layers: tuple[Layer, ...] = self._only().encoder.layers_
        return layers

    @property
    def projection_(self) -> Floats:
        """W_phi (P, H), of the only random initialization."""
        expansion = self._only().expansion
        if expansion is None:
            raise AttributeError("the model has no random expansion")
        return expansion.projection_

    @property
    def coef_(self) -> Floats:
        """W_Y (q, P), of the only random initialization."""
        return self._only().readout.coef  # type: ignore[union-attr]

    @property
    def intercept_(self) -> Floats:
        """The readout's bias (q,), of the only random initialization."""
        return self._only().readout.intercept


def _drawn(base: BaseModel, graphs: GraphBatch, seed: np.random.SeedSequence) -> FittedModel:
    """Draw encoder and expansion for graphs like these; the readout gives nothing yet."""
    encoder = clone(base.encoder).draw(graphs, seed)
    width = encoder.n_features_out or encoder.encode(graphs[:1]).features[0].shape[1]
    expansion: RandomExpansion | None = draw_expansion(encoder, width, base.n_projections, seed)
    nothing = LinearReadout(np.empty((0, 0)), np.empty(0))
    return FittedModel(encoder, expansion, nothing, None, base.name)


class FDGNNClassifier(Classifies, FDGNN):
    """Classify graphs by the paper's model: a deep graph reservoir and a linear readout (eq. 1-3).

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, tol, max_iter, solver, handle_unknown
        As in `GraphReservoir`.
    n_projections : int, optional
        P, the size of the random expansion; by default twice the units. 0: none, the readout sees
        the pooled states.
    alpha : float or "cv", default=1e-3
        Regularization strength of the readout (lambda); its bias is not regularized. "cv" chooses
        among the paper's, 1e-8 to 1e3, by out-of-fold predictions of five folds.
    n_estimators : int, default=1
        Random initializations whose outputs are averaged.
    probability, class_weight, threshold, random_state, n_jobs
        As in `GraphClassifier`.

    Attributes
    ----------
    layers_, projection_, coef_, intercept_
        Weights of the only random initialization; with several, see ``estimators_[i]``.
    classes_, estimators_, targets_, seed_, n_iter_, converged_
        As in `GraphClassifier`.

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """

    _rules: ClassVar[Mapping[str, Rule]] = {**FDGNN._rules, **Classifies._rules}
    __metadata_request__partial_fit: ClassVar[Any] = {"classes": UNUSED, "like": UNUSED}

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
        alpha: float | str = 1e-3,
        n_estimators: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        handle_unknown: str = "ignore",
        probability: bool = False,
        class_weight: str | Mapping[Any, float] | None = None,
        threshold: str | None = None,
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
        self.n_estimators = n_estimators
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.handle_unknown = handle_unknown
        self.probability = probability
        self.class_weight = class_weight
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, like: Any = None) -> Self:
        """Train on more graphs, together with those of earlier calls.

        The model is that of one `fit` on all pieces, up to rounding, whatever their order and
        sizes, if the reservoir is drawn for the same graphs: its vertex labels and its k are those
        of `like`, or of the first piece, or k is given as `degree`. Only moments of the features
        are kept.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        y : (n_graphs,)
        classes : (n_classes,)
            All classes; needed in the first call.
        like : GraphBatch or list of graphs, optional
            For the first call: graphs with all labels, for which the reservoir is drawn.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> from fdgnn.datasets import make_motif_graphs
        >>> graphs, y = make_motif_graphs(60, random_state=0)
        >>> model = FDGNNClassifier(degree=5, random_state=0)
        >>> for some in (slice(0, 20), slice(20, 60)):
        ...     model = model.partial_fit(graphs[some], y[some], classes=[0, 1])
        >>> model.predict(graphs[:3]).shape
        (3,)
        """
        first = "_moments" not in vars(self)
        known: Array = np.empty(0)
        if classes is not None:
            check_label_types(classes, "classes")
            known = np.unique(np.asarray(classes))
        if first:
            if classes is None:
                raise ValueError("the first call of partial_fit needs all `classes`")
            check_two_classes(known)
        elif classes is not None and not np.array_equal(known, self.classes_):
            raise ValueError("`classes` are not those of the first call of partial_fit")
        graphs, all_classes = as_batch(X), known if first else self.classes_
        check_label_types(y)
        labels = np.asarray(y)
        check_one_each(graphs, labels)
        if unknown := sorted(set(labels.tolist()) - set(all_classes.tolist())):
            raise ValueError(f"y has the class {unknown[0]}, which is none of `classes`")
        codes = np.searchsorted(all_classes, labels)
        return self._fit_piece(graphs, Targets(("",), codes[:, None], (all_classes,), True), like)


class FDGNNRegressor(Regresses, FDGNN):
    """Predict numbers of graphs by the model of `FDGNNClassifier`.

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, n_projections, alpha, n_estimators, tol, max_iter, \
solver, handle_unknown, random_state, n_jobs
        As in `FDGNNClassifier`.
    intervals : bool, default=False
        Whether `fit` learns conformal scores from out-of-fold predictions, for `predict_interval`.

    Examples
    --------
    >>> from fdgnn import FDGNNRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> y = list(range(3, 30))
    >>> float(FDGNNRegressor(random_state=0).fit(graphs, y).score(graphs, y)) > 0.9
    True
    """

    _rules: ClassVar[Mapping[str, Rule]] = FDGNN._rules
    __metadata_request__partial_fit: ClassVar[Any] = {"like": UNUSED}

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
        alpha: float | str = 1e-3,
        n_estimators: int = 1,
        tol: float = 1e-3,
        max_iter: int = 50,
        solver: str = "auto",
        handle_unknown: str = "ignore",
        intervals: bool = False,
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
        self.n_estimators = n_estimators
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.handle_unknown = handle_unknown
        self.intervals = intervals
        self.random_state = random_state
        self.n_jobs = n_jobs

    def partial_fit(self, X: Any, y: Any, *, like: Any = None) -> Self:
        """Train on more graphs, together with those of earlier calls, as `FDGNNClassifier` does."""
        graphs = as_batch(X)
        values = real_targets(y, graphs)[:, None]
        return self._fit_piece(graphs, Targets(("",), values, flat=True), like)

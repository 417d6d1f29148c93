"""`GraphClassifier`, `FDGNNClassifier` and their regressors: one encoder, one readout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Floats
from fdgnn.encoders import Encoder, GraphKind, GraphReservoir, as_encoder
from fdgnn.estimators.base import Answers, GraphModel
from fdgnn.fitting import BaseModel, FittedModel, draw_expansion
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.limits import MAX_ESTIMATORS, MAX_UNITS
from fdgnn.linear import KernelRidge, LinearReadout, Moments, Ridge, fits_in_memory
from fdgnn.metrics import accuracy, r2
from fdgnn.parameters import Number, OneOf, Rule, available_with
from fdgnn.reservoir import Layer, ReservoirConfig
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.targets import (
    TRANSFORMS,
    Targets,
    check_label_types,
    check_one_each,
    check_two_classes,
    number_targets,
    transformed,
)
from fdgnn.threads import one_blas_thread
from fdgnn.uncertainty import THRESHOLDS, side_by_side

_OF_RESERVOIRS = tuple(field.name for field in fields(ReservoirConfig))
_NOT_ROUTED = {"errors": UNUSED}
_NO_PROBABILITIES = (
    "set probability=True before `fit`, which learns probabilities from out-of-fold predictions; "
    "decision_function gives scores without that"
)


class SingleEncoder(GraphModel):
    """A model with one encoder and one readout."""

    n_projections: int | None
    n_estimators: int

    _rules: ClassVar[Mapping[str, Rule]] = {
        "n_projections": Number(0, whole=True, optional=True, most=MAX_UNITS),
        "n_estimators": Number(1, whole=True, most=MAX_ESTIMATORS),
    }

    def _encoder(self) -> Encoder:
        """Return the encoder, not fitted."""
        raise NotImplementedError

    @property
    def _given_readout(self) -> Any:
        """The readout, or its name: by default a parameter."""
        return self.readout

    def _base_models(
        self, kind: GraphKind, n_graphs: int, seed: np.random.SeedSequence
    ) -> list[BaseModel]:
        encoder = self._encoder()
        seeds = [child_seed(seed, i) for i in range(self.n_estimators)]
        if encoder.random_state is not None:  # it wins: features are those of the encoder alone
            own = seed_sequence(encoder.random_state)
            seeds = [own, *(child_seed(own, i) for i in range(1, self.n_estimators))]
        readout = as_readout(self._given_readout, encoder, n_graphs)
        return [BaseModel(encoder.shown_name, encoder, readout, tuple(seeds), self.n_projections)]


def check_readout(readout: Any) -> None:
    """Raise ValueError unless it is a readout, or the name of one."""
    if isinstance(readout, Ridge | KernelRidge):
        readout.check_parameters()
    elif readout not in ("auto", "linear", "rbf"):
        raise ValueError(
            f"readout={readout!r}: expected 'auto', 'linear', 'rbf', a Ridge or a KernelRidge"
        )


def as_readout(readout: Any, encoder: Encoder, n_graphs: int) -> Ridge | KernelRidge:
    """Return the readout that is given; by its name, or "auto", the one that suits the encoder."""
    if isinstance(readout, Ridge | KernelRidge):
        return readout
    rbf = readout == "auto" and encoder.prefers_rbf and fits_in_memory(n_graphs)
    return KernelRidge() if rbf or readout == "rbf" else Ridge()


@dataclass(eq=False, repr=False, kw_only=True)
class GraphClassifierMixin(ClassifierMixin, GraphModel):  # type: ignore[misc]
    """Predictions of all classifiers of graphs."""

    probability: bool = False
    class_weight: str | Mapping[Any, float] | None = None
    threshold: str | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "probability": OneOf((False, True)),
        "threshold": OneOf((None, *THRESHOLDS)),
    }
    _classify = True
    _uncertainty = "probability"
    # `errors` is a choice of the caller, not metadata of graphs that scikit-learn could route.
    __metadata_request__predict = _NOT_ROUTED
    __metadata_request__predict_proba = _NOT_ROUTED
    __metadata_request__decision_function = _NOT_ROUTED

    @property
    def classes_(self) -> Any:
        """Classes (n_classes,); a list of arrays for several targets."""
        check_is_fitted(self)
        each = [target.classes for target in self.targets_]
        return each[0] if self._flat else each

    def predict(self, X: Any, errors: str = "raise") -> Array:
        """Predict the class of each graph: (n_graphs,), or (n_graphs, n_targets).

        With ``errors="raise"`` an invalid graph, such as a SMILES that cannot be parsed, is an
        error; with "missing" its prediction is None, and a warning counts such graphs.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> molecules = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN"] * 5
        >>> model = FDGNNClassifier(random_state=0).fit(molecules, [0, 0, 0, 1, 1, 1] * 5)
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     model.predict(["CCCCO", "C(("], errors="missing")
        array([0, None], dtype=object)
        """
        outputs = self.outputs(X, errors)
        found = [target.predict(outputs[:, target.columns]) for target in self.targets_]
        return found[0] if self._flat else side_by_side(found)

    def decision_function(self, X: Any, errors: str = "raise") -> Floats:
        """Return outputs: (n_graphs,) for two classes, (n_graphs, n_classes) for more.

        For several targets, (n_graphs, q) with ``targets_[t].columns`` for target t. `errors` is as
        in `predict`; outputs of invalid graphs are NaN.
        """
        outputs = self.outputs(X, errors)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @available_with(lambda self: self.probability, _NO_PROBABILITIES)
    def predict_proba(self, X: Any, errors: str = "raise") -> Floats | list[Floats]:
        """Predict the probability of each class, (n_graphs, n_classes), in order of `classes_`.

        For several targets, a list of arrays, as in scikit-learn. The most probable class is that
        of `predict`, unless there is a `threshold`, which changes predictions but not
        probabilities. `errors` is as in `predict`; probabilities of invalid graphs are NaN.
        """
        outputs = self.outputs(X, errors)
        found = [target.probabilities(outputs[:, target.columns]) for target in self.targets_]
        return found[0] if self._flat else found

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool | str = "auto", errors: str = "raise"
    ) -> npt.NDArray[np.bool_] | list[npt.NDArray[np.bool_]]:
        """Predict a conformal set of classes for each graph.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        coverage : float, default=0.9
            The probability that the set contains the true class, for graphs that are exchangeable
            with the training graphs.
        by_class : bool or "auto", default="auto"
            Whether coverage also holds within each class, which makes sets larger. A class with too
            few training graphs is in every set. "auto" does so with class imbalance: if a class has
            less than half of an equal share of the graphs.
        errors : {"raise", "missing"}, default="raise"
            As in `predict`. Sets of invalid graphs contain all classes.

        Returns
        -------
        (n_graphs, n_classes) bool
            Whether the set contains a class, in order of `classes_`; for several targets a list of
            arrays. A set may be empty, if no class is likely enough.
        """
        outputs = self.outputs(X, errors)
        found = [
            target.sets(outputs[:, target.columns], coverage, by_class=by_class)
            for target in self.targets_
        ]
        return found[0] if self._flat else found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; for several targets, the mean over the known ones."""
        if not self._flat:
            return self._mean_score(X, y, accuracy)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@dataclass(eq=False, repr=False, kw_only=True)
class GraphRegressorMixin(RegressorMixin, GraphModel):  # type: ignore[misc]
    """Predictions of all regressors of graphs."""

    intervals: bool = False
    target_transform: str | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        "intervals": OneOf((False, True)),
        "target_transform": OneOf((None, *TRANSFORMS)),
    }
    _classify = False
    _uncertainty = "intervals"
    __metadata_request__predict = _NOT_ROUTED

    def predict(self, X: Any, errors: str = "raise") -> Floats:
        """Predict numbers, of the shape of the y in `fit`.

        With ``errors="raise"`` an invalid graph, such as a SMILES that cannot be parsed, is an
        error; with "missing" its prediction is NaN, and a warning counts such graphs.
        """
        outputs = self.outputs(X, errors)
        found = [target.predict(outputs[:, target.columns]) for target in self.targets_]
        return found[0] if self._flat else np.stack(found, axis=1)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, errors: str = "raise") -> Floats:
        """Predict a conformal interval around each predicted number.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        coverage : float, default=0.9
            The probability that the interval contains the true value, for graphs that are
            exchangeable with the training graphs; for several targets, it holds for each target.
        errors : {"raise", "missing"}, default="raise"
            As in `predict`.

        Returns
        -------
        (n_graphs, 2), or (n_graphs, n_targets, 2) for several targets
            Lower and upper ends. Intervals are wider where the expected error is larger.
        """
        if errors != "raise":
            return self._for_valid_graphs(
                X, errors, partial(self.predict_interval, coverage=coverage)
            )
        answers = Answers(self, self._check_graphs(X), warn=True)
        each = [
            target.intervals(answers.outputs[:, target.columns], coverage, difficulty)
            for target, difficulty in zip(self.targets_, answers.difficulty.T, strict=True)
        ]
        ends = np.stack(each, axis=1)
        return ends[:, 0] if self._flat else ends

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R2, with a `target_transform` on the transformed scale.

        For several targets, this is the mean over targets, each on its known values.
        """
        if not self._flat:
            return self._mean_score(X, y, r2)
        if self.target_transform is not None:
            truth = transformed(np.asarray(y, dtype=np.float64), self.target_transform)
            weights = None if sample_weight is None else np.asarray(sample_weight)
            return float(r2(truth, self.outputs(X), weights))
        return float(super().score(X, y, sample_weight))


@dataclass(eq=False, repr=False)
class ComposedModel(SingleEncoder):
    """A model whose encoder and readout are parameters."""

    encoder: Any = "wl"
    readout: Any = "auto"
    _: KW_ONLY
    n_projections: int | None = None
    n_estimators: int = 1
    scoring: str | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _alpha_name = "readout__alpha"

    def set_params(self, **params: Any) -> Self:
        """Set parameters; the name of an encoder is replaced by an encoder with parameters."""
        encoder = params.get("encoder", self.encoder)
        if isinstance(encoder, str) and any(name.startswith("encoder__") for name in params):
            params["encoder"] = as_encoder(encoder)
        found: Self = super().set_params(**params)
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        encoder = self._encoder()
        encoder.check_parameters()
        check_readout(self.readout)
        if self.n_estimators > 1 and not (encoder.draws or self.n_projections):
            raise ValueError(
                f"n_estimators={self.n_estimators} has no effect: the encoder {encoder.shown_name} "
                "draws nothing at random, so all would be alike; leave it out"
            )

    def _encoder(self) -> Encoder:
        return as_encoder(self.encoder)

    def _encoder_names(self) -> tuple[Any, ...]:
        return (self.encoder,)

    def _set_readout(self, readout: Ridge | KernelRidge) -> None:
        self.readout = readout

    @property
    def _depth_parameter(self) -> str | None:
        name = self._encoder().depth_parameter
        return None if name is None else f"encoder__{name}"

    @property
    def _search_space(self) -> Mapping[str, Any]:
        space = self._encoder().search_space()
        return {f"encoder__{name}": values for name, values in space.items()}


@dataclass(eq=False, repr=False)
class GraphClassifier(GraphClassifierMixin, ComposedModel):
    """Classify graphs by any encoder and any readout.

    Parameters
    ----------
    encoder : {"wl", "reservoir", "union"}, Encoder or transformer, default="wl"
        The transformer from graphs to features. A name stands for the encoder with its defaults:
        ``WLCounts()``, ``GraphReservoir()``, or an `EncoderUnion` of both. Parameters belong to the
        encoder: ``GraphClassifier(WLCounts(n_iterations=2))``, or ``encoder__n_iterations`` in a
        search. Any transformer with `fit` and `transform` is accepted.
    readout : {"auto", "linear", "rbf"}, Ridge or KernelRidge, default="auto"
        Ridge regression, RBF kernel ridge regression, or the default of the encoder: for WL
        features RBF kernel ridge regression, if a kernel matrix of the graphs fits in memory. The
        regularization strength is chosen by out-of-fold predictions of five folds, or given:
        ``Ridge(alpha=1e-3)``.
    n_projections : int, optional
        Number of random features between encoder and readout; by default twice the number of units
        for a reservoir, and 0 (none) for other encoders.
    n_estimators : int, default=1
        Random initializations of the encoder whose outputs are averaged.
    probability : bool, default=False
        Whether `fit` learns probabilities and conformal scores from out-of-fold predictions, for
        `predict_proba` and `predict_set`.
    class_weight : "balanced", dict or None, default=None
        Weight of errors on each class; "balanced" gives all classes the same total weight, for
        class imbalance.
    scoring : str, optional
        Metric that chooses alpha: "accuracy", "balanced_accuracy", "roc_auc", "average_precision",
        "f1" or "log_loss". By default accuracy; or ROC AUC, with a warning, if a class has less
        than a tenth of the graphs.
    threshold : str, optional
        For two classes: choose the decision threshold with the best "balanced_accuracy", "accuracy"
        or "f1" (of the rarer class) of out-of-fold predictions. By default it is 0.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the encoder, unless it has its own, and of the folds.
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    classes_ : (n_classes,), or list of such arrays for several targets
    estimators_ : tuple of FittedModel
        Each has a fitted `encoder`, its random `expansion`, the trained `readout`, and `alpha`.
    targets_ : tuple of FittedTarget
    seed_ : numpy.random.SeedSequence
        The root of all random streams, also if `random_state` is None.
    n_iter_, converged_ : (n_graphs,)
        For reservoirs: the largest number of iterations of a layer on each training graph, and
        whether the states of all layers converged.

    Examples
    --------
    >>> from fdgnn import GraphClassifier, WLCounts
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> model = GraphClassifier(WLCounts(n_iterations=2), random_state=0).fit(graphs, y)
    >>> model.predict(graphs[:3]).shape
    (3,)
    """


@dataclass(eq=False, repr=False)
class GraphRegressor(GraphRegressorMixin, ComposedModel):
    """Graph regression by any encoder and any readout.

    Parameters
    ----------
    encoder, readout, n_projections, n_estimators, random_state, n_jobs
        As in `GraphClassifier`.
    intervals : bool, default=False
        Whether `fit` learns conformal scores from out-of-fold predictions, for `predict_interval`.
    target_transform : {"log10", "pIC50"}, optional
        For positive targets over several orders of magnitude: learn the logarithm, or, for
        concentrations in nM, ``9 - log10(y)``. Predictions and intervals are in the units of y;
        `outputs`, scores of searches and attributions are on the transformed scale.
    scoring : str, optional
        Metric that chooses alpha: "r2", "rmse", "mae" or "spearman"; by default the squared error.

    Examples
    --------
    >>> from fdgnn import GraphRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> GraphRegressor(random_state=0).fit(graphs, range(3, 30)).predict(graphs[:2]).shape
    (2,)
    """


@dataclass(eq=False, repr=False)
class FDGNN(ReservoirConfig, SingleEncoder):
    """The paper's model: a `GraphReservoir`, a random expansion, and ridge regression."""

    _: KW_ONLY
    n_projections: int | None = None
    alpha: float | str = 1e-3
    n_estimators: int = 1
    random_state: Any = None
    n_jobs: int | None = None

    _rules: ClassVar[Mapping[str, Rule]] = {
        **{name: GraphReservoir.rules[name] for name in _OF_RESERVOIRS},
        "alpha": Number(0, word="cv"),
    }
    _alpha_name = "alpha"
    _depth_parameter = GraphReservoir.depth_parameter
    _search_space = GraphReservoir.search_space()

    def _encoder(self) -> Encoder:
        return GraphReservoir(**{name: getattr(self, name) for name in _OF_RESERVOIRS})

    @property
    def _given_readout(self) -> Any:
        """Ridge regression with the paper's alpha, which counts in absolute units."""
        return Ridge(alpha=self.alpha, normalize=False)

    def _set_readout(self, readout: Ridge | KernelRidge) -> None:
        self.alpha = readout.alpha

    @one_blas_thread()
    def _fit_piece(self, graphs: GraphBatch, targets: Targets, like: Any) -> Self:
        """Add the moments of a chunk, and solve for the readouts of all chunks so far."""
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
            nothing = LinearReadout(np.empty((0, 0)), np.empty(0))  # of a readout so far
            self._drawn = []
            for seed in base.seeds:
                encoder: Any = clone(base.encoder).draw(first, seed)
                expansion = draw_expansion(
                    encoder, encoder.n_features_out, base.n_projections, seed
                )
                self._drawn.append(FittedModel(encoder, expansion, nothing, None, base.name))
            self._moments: list[Moments] = []
        self._graph_kind.check(graphs)
        features = [m.features(graphs, self.n_jobs) for m in self._drawn]
        own = [Moments.of(np.asarray(X), targets.coded) for X in features]
        if self._moments:
            own = [old.with_part(new) for old, new in zip(self._moments, own, strict=True)]
        self._moments = own
        models = []
        for drawn, moments in zip(self._drawn, own, strict=True):
            coef, intercept = moments.solve(float(self.alpha))
            readout = LinearReadout(np.ascontiguousarray(coef), intercept)
            models.append(replace(drawn, readout=readout, alpha=float(self.alpha)))
        self._domain = None
        self._set_models(models, targets, None)
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
        """Weights of the reservoir, of a single random initialization."""
        layers: tuple[Layer, ...] = self._only().encoder.layers_
        return layers

    @property
    def coef_(self) -> Floats:
        """W_Y (q, P) of a single random initialization."""
        return self._only().readout.coef  # type: ignore[union-attr]

    @property
    def intercept_(self) -> Floats:
        """Bias (q,) of the readout."""
        return self._only().readout.intercept


@dataclass(eq=False, repr=False)
class FDGNNClassifier(GraphClassifierMixin, FDGNN):
    """Classify graphs by the paper's model: a deep graph reservoir and a linear readout (eq. 1-3).

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, tol, max_iter, solver, handle_unknown
        As in `GraphReservoir`.
    n_projections : int, optional
        P, the size of the random expansion; by default twice the number of units. 0 means none: the
        readout uses the pooled states.
    alpha : float or "cv", default=1e-3
        Regularization strength of the readout (lambda in the paper); the bias is not regularized.
        "cv" chooses among the paper's values, 1e-8 to 1e3, by out-of-fold predictions of five
        folds.
    n_estimators : int, default=1
        Random initializations whose outputs are averaged.
    probability, class_weight, threshold, random_state, n_jobs
        As in `GraphClassifier`.

    Attributes
    ----------
    layers_, coef_, intercept_
        Weights of a single random initialization; with several, see ``estimators_[i]``.
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

    __metadata_request__partial_fit: ClassVar[Any] = {"classes": UNUSED, "like": UNUSED}

    def partial_fit(self, X: Any, y: Any, classes: Any = None, *, like: Any = None) -> Self:
        """Train on more graphs, together with those of earlier calls.

        The model is the same as by one `fit` on all chunks, up to rounding, whatever their order
        and sizes, if the reservoir is drawn for the same graphs: vertex labels and k are taken from
        `like` or the first chunk, and k also from `degree`. Only moments of the features are kept.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        y : (n_graphs,)
        classes : (n_classes,)
            All classes; required in the first call.
        like : GraphBatch or list of graphs, optional
            For the first call: graphs with all vertex labels, for which the reservoir is drawn.

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
        if first and classes is None:
            raise ValueError("the first call of partial_fit needs all `classes`")
        if classes is None:
            classes = self.classes_
        check_label_types(classes, "classes")
        all_classes: Array = np.unique(np.asarray(classes))
        if first:
            check_two_classes(all_classes)
        elif not np.array_equal(all_classes, self.classes_):
            raise ValueError("`classes` are not those of the first call of partial_fit")
        graphs = as_batch(X)
        check_label_types(y)
        labels = np.asarray(y)
        check_one_each(graphs, labels)
        if unknown := sorted(set(labels.tolist()) - set(all_classes.tolist())):
            raise ValueError(f"y has the class {unknown[0]}, which is none of `classes`")
        codes = np.searchsorted(all_classes, labels)
        return self._fit_piece(graphs, Targets(("",), codes[:, None], (all_classes,), True), like)


@dataclass(eq=False, repr=False)
class FDGNNRegressor(GraphRegressorMixin, FDGNN):
    """Graph regression by the model of `FDGNNClassifier`.

    Parameters
    ----------
    n_layers, n_units, n_connections, effective_spectral_radius, input_scaling, \
inter_layer_scaling, bias_scaling, degree, n_projections, alpha, n_estimators, tol, max_iter, \
solver, handle_unknown, random_state, n_jobs
        As in `FDGNNClassifier`.
    intervals : bool, default=False
        Whether `fit` learns conformal scores from out-of-fold predictions, for `predict_interval`.
    target_transform : {"log10", "pIC50"}, optional
        As in `GraphRegressor`.

    Examples
    --------
    >>> from fdgnn import FDGNNRegressor
    >>> from fdgnn.datasets import make_cycles
    >>> graphs = make_cycles(range(3, 30))
    >>> y = list(range(3, 30))
    >>> float(FDGNNRegressor(random_state=0).fit(graphs, y).score(graphs, y)) > 0.9
    True
    """

    __metadata_request__partial_fit: ClassVar[Any] = {"like": UNUSED}

    def partial_fit(self, X: Any, y: Any, *, like: Any = None) -> Self:
        """Train on more graphs, together with those of earlier calls, as `FDGNNClassifier` does."""
        graphs = as_batch(X)
        targets = number_targets(y, graphs)
        if not targets.flat:
            raise ValueError("partial_fit learns one target; give y the shape (n_graphs,)")
        return self._fit_piece(graphs, targets.transformed(self.target_transform), like)

"""`GraphModel`: what all models have in common, from `fit` to outputs and the applicability domain.

A model is a tuple of `FittedModel`, each an encoder, a random expansion and a readout, whose
outputs are averaged. A subclass says which base models are fitted (`_base_models`); which of them
are kept is the rule of `fdgnn.ensemble`, which keeps the only one where there is one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from fdgnn.applicability import ApplicabilityDomain, all_new
from fdgnn.arrays import Floats, Ints, blocks
from fdgnn.encoders import GraphKind
from fdgnn.encoders.base import (
    OF_RESERVOIRS,
    encode_each,
    warn_once,
    warn_unconverged,
    warn_unknown_labels,
)
from fdgnn.encoders.descriptors import DescriptorBlock
from fdgnn.encoders.registry import register_encoder, registered_class
from fdgnn.ensemble import combine
from fdgnn.exceptions import InvalidGraphWarning, OutOfDomainWarning, frames_of_libraries
from fdgnn.fitting import FEW_GRAPHS, BaseModel, FitTask, FittedModel, ModelFit, fit_depths
from fdgnn.folds import TRAIN, choice_folds
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import check_finite
from fdgnn.graphs.converters import ValidGraphs, as_batch, items_of, valid_graphs
from fdgnn.graphs.graph import Kind
from fdgnn.metrics import (
    OF_CLASSES,
    Metric,
    accuracy,
    default_scoring,
    named_scoring,
    squared_error,
    warn_class_imbalance,
)
from fdgnn.neighbors import (
    AT_ONCE,
    Neighbors,
    TrainingGraphs,
    conditions,
    difficulty,
    fit_difficulty,
    kernel_models,
    similarities,
    training_conditions,
)
from fdgnn.parameters import Jobs, Rule, check_parameters
from fdgnn.records import cached_property
from fdgnn.schema import InputSchema, check_choice, schema_of
from fdgnn.seeds import seed_sequence
from fdgnn.targets import Mask, Targets, read_targets, targets_like
from fdgnn.texts import agreeing, cut, html_table
from fdgnn.threads import one_blas_thread
from fdgnn.uncertainty import ConformalScores, FittedTarget, fitted_targets

_NO_LIMIT = nullcontext()
_OF_ONE_FIT = ("_moments", "_training_graphs", "n_iter_", "converged_")  # what not every fit sets


class GraphModel(BaseEstimator):  # type: ignore[misc]
    """A model of graphs; subclasses define its base models and outputs."""

    _rules: ClassVar[Mapping[str, Rule]] = {"n_jobs": Jobs()}
    #: Whether targets are classes; the parameter for uncertainty from out-of-fold predictions.
    _classify: ClassVar[bool]
    _uncertainty: ClassVar[str]
    #: Whether squared errors replace accuracy, which is too coarse to choose alpha.
    _accuracy_by_squares: ClassVar[bool] = False

    random_state: Any
    n_jobs: int | None
    # Of models that have no such parameter:
    threshold: str | None = None
    class_weight: Any = None

    _graph_kind: GraphKind
    input_schema_: InputSchema | None
    seed_: np.random.SeedSequence
    estimators_: tuple[FittedModel, ...]
    targets_: tuple[FittedTarget, ...]
    _training_graphs: TrainingGraphs | None = None  # of models with kernels
    _domain: ApplicabilityDomain | None

    # ------------------------------------------------------------------ defined by subclasses

    def _base_models(
        self, kind: GraphKind, n_graphs: int, seed: np.random.SeedSequence
    ) -> list[BaseModel]:
        """Return the base models for so many graphs of a kind."""
        raise NotImplementedError

    #: What users can do about states that do not converge.
    _remedy: ClassVar[str] = OF_RESERVOIRS
    #: The parameter that is alpha, which a search varies at no cost.
    _alpha_name: ClassVar[str | None] = None

    @property
    def _depth_parameter(self) -> str | None:
        """The depth parameter of the encoder, whose values share one encoding in a search."""
        return None

    @property
    def _search_space(self) -> Mapping[str, Any]:
        """Lists or distributions by parameter, from which a search draws by default."""
        return {}

    @property
    def _scoring(self) -> str | None:
        """The metric that chooses alpha, if the model has this parameter."""
        return vars(self).get("scoring")

    @property
    def _target_transform(self) -> str | None:
        """The scale on which targets are learned, if the model has this parameter."""
        return vars(self).get("target_transform")

    def _encoder_names(self) -> Sequence[Any]:
        """Return the encoders that are given as parameters, by name or not."""
        return ()

    def _set_readout(self, readout: Any) -> None:
        """Set the readout that a search has chosen, if the model has it as a parameter."""

    # ------------------------------------------------------------------ fitting

    @one_blas_thread()
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the encoders, and train the readouts.

        Parameters
        ----------
        X : GraphBatch or list of graphs
            Graphs in any form that `as_batch` accepts.
        y : (n_graphs,), or (n_graphs, n_targets)
            Class labels of any type, or numbers. Several targets are columns of an array, a
            dictionary or a data frame; None and NaN are missing labels. Each target is learned
            from the graphs for which it is known.
        sample_weight : (n_graphs,), optional
            Weights of squared errors; graphs of weight 0 are left out. If `alpha` and `degree` are
            numbers, an integer weight is equivalent to repeating a graph, as in scikit-learn. If
            alpha is chosen, features are normalized or the average degree is computed, it is not,
            because these ignore weights, and repeated graphs would be in several folds.
        """
        self._check_parameters()
        graphs = as_batch(X)
        targets = read_targets(y, graphs, self._classify, self._target_transform)
        task, graphs, bases = self._task(graphs, targets, sample_weight)
        fits = [fit_depths(base, graphs, task, n_jobs=self.n_jobs)[0] for base in bases]
        if self._scoring is None and any(len(fit.alphas) > 1 for fit in fits):
            handled = self.threshold is not None or self.class_weight is not None
            warn_class_imbalance(task.targets, handled)
        self._assemble(fits, graphs, task)
        return self

    def _task(
        self, graphs: GraphBatch, targets: Targets, sample_weight: Any
    ) -> tuple[FitTask, GraphBatch, list[BaseModel]]:
        """Start a fit: return its task, the graphs that take part, and the base models."""
        graphs, targets, weights, some = self._taking_part(graphs, targets, sample_weight)
        if not some.all():
            targets.check_learnable(1)
        self._begin(graphs)
        bases = self._base_models(self._graph_kind, len(graphs), self.seed_)
        grids = [base.readout.grid(len(targets), targets.classify) for base in bases]
        chooses = sum(map(len, grids)) > 1  # among base models and alphas
        if self._scoring is not None and not chooses:
            raise ValueError(
                f"scoring={self._scoring!r} has no effect, because the readout's alpha is given; "
                'leave `scoring` out, or let alpha be chosen by alpha="cv"'
            )
        if chooses or getattr(self, self._uncertainty) or self.threshold is not None:
            folds = choice_folds(targets, graphs, self.seed_)[None]
            return self._scored_task(targets, folds, weights), graphs, bases
        nothing: Ints = np.empty((0, len(graphs)), dtype=np.int64)
        return FitTask(targets, nothing, squared_error, weights), graphs, bases

    def _scored_task(
        self,
        targets: Targets,
        folds: Ints,
        weights: Floats | None,
        metric: Metric | None = None,
    ) -> FitTask:
        """Return the task of choosing alpha and base models by a metric, or by the model's own."""
        for target in targets.each if self.threshold is not None else ():
            n_classes = 0 if target.classes is None else len(target.classes)
            if n_classes > 2:
                what = f"target {target.name!r}" if target.name else "y"
                raise ValueError(f"`threshold` is for two classes, but {what} has {n_classes}")
        if metric is None:
            metric = default_scoring(targets.rarest()).metric if self._classify else squared_error
            if self._scoring is not None:
                metric = named_scoring(self._scoring, self._classify).metric
        by_squares = self._accuracy_by_squares and metric is accuracy
        return FitTask(targets, folds, metric, weights, by_squares)

    def _taking_part(
        self, graphs: GraphBatch, targets: Targets, sample_weight: Any
    ) -> tuple[GraphBatch, Targets, Floats | None, Mask]:
        """Return the graphs that are trained on, their targets and weights, and which they are."""
        weights = targets.weights(sample_weight, self.class_weight)
        some: Mask = np.asarray(targets.known.any(axis=1))
        if weights is not None:
            some &= (weights > 0) if weights.ndim == 1 else (weights > 0).any(axis=1)
        if not some.all():
            graphs, targets = graphs[some], targets[some]
            weights = None if weights is None else weights[some]
        return graphs, targets, weights, some

    def _begin(self, graphs: Any) -> None:
        """Keep what is known of the training graphs before anything is fitted."""
        self._graph_kind = GraphKind.of(graphs)
        self.input_schema_ = getattr(graphs, "schema", None)
        self.seed_ = seed_sequence(self.random_state)
        self.evaluation_: Any = None
        if "estimators_" in vars(self):  # an earlier fit, or its model file, has left more
            for name in list(vars(self)):
                if name in _OF_ONE_FIT:
                    delattr(self, name)

    def _assemble(
        self, fits: Sequence[ModelFit], graphs: GraphBatch, task: FitTask
    ) -> Floats | None:
        """Keep base models by the rule, and learn from their out-of-fold predictions.

        Returns the predictions (n, q), if there are any.
        """
        kept = list(fits)
        targets, weights, predictions = task.targets, task.weights, None
        if len(task.folds):
            ensemble = combine(fits, task)
            kept = [fit for fit, keep in zip(fits, ensemble.kept[-1], strict=True) if keep]
            predictions = ensemble.predictions[-1]
        models = [model for fit in kept for model in fit.fitted]
        held_out = predictions
        if held_out is not None and not (some := task.folds[-1] != TRAIN).all():
            targets, held_out = targets[some], held_out[some]
            weights = None if weights is None else weights[some]
        self._set_models(models, targets, held_out, weights)
        firsts = [fit.fitted[0].encoder for fit in kept]
        # The applicability domain is that of the first model with counts, or of the first one.
        place = next((i for i, own in enumerate(firsts) if own.n_counted is not None), 0)
        encoder, features = firsts[place], kept[place].features
        if features is None:  # they were not kept: the model comes from another process
            features = encoder.encode(graphs).features[0]
        number = sum(len(fit.fitted) for fit in kept[:place])
        self._domain = ApplicabilityDomain.fit(number, encoder, features, graphs)
        if kernel_models(models):
            texts = None if graphs.smiles is None else graphs.smiles.texts
            self._training_graphs = TrainingGraphs(task.targets, smiles=texts)
        if predictions is not None and not self._classify and self.targets_[0].scores:
            self._learn_difficulty(task, predictions)
        warn_once(concern for encoder in firsts for concern in encoder.data_warnings(graphs))
        convergences = [convergence for fit in kept for convergence in fit.convergences]
        if convergences:
            self.n_iter_ = np.concatenate([s.n_iter for s in convergences]).max(axis=0)
            self.converged_ = np.concatenate([s.residual < s.tol for s in convergences]).all(axis=0)
            warn_unconverged(convergences, self._remedy)
        return predictions

    def _set_models(
        self,
        models: Sequence[FittedModel],
        targets: Targets,
        predictions: Floats | None,
        weights: Floats | None = None,
    ) -> None:
        """Set the fitted models, and fit calibration and thresholds to out-of-fold predictions.

        `targets`, `predictions` (n, q) and `weights` are those of the graphs held out.
        """
        each = fitted_targets(
            targets,
            predictions,
            weights,
            uncertainty=getattr(self, self._uncertainty),
            threshold=None if self.threshold is None else OF_CLASSES[self.threshold].metric,
        )
        self.targets_ = tuple(each)
        self._flat = targets.flat
        cuts = [target.threshold for target in each]
        if None not in cuts:  # each target has two classes, so one output
            models = [model.lowered(np.array(cuts)) for model in models]
        self.estimators_ = tuple(models)
        if self.input_schema_ is not None and not any(m.encoder.uses_edge_labels for m in models):
            self.input_schema_ = self.input_schema_.without_edge_labels()

    def _learn_difficulty(self, task: FitTask, predictions: Floats) -> None:
        """Learn how large an error is to be expected, from out-of-fold predictions (n, q)."""
        fold = task.folds[-1]
        errors = np.abs(task.targets.values - predictions)
        errors[fold == TRAIN] = np.nan
        models = [self.estimators_[i] for i in kernel_models(self.estimators_)]
        distances = None if self._domain is None else self._domain.of_training
        with one_blas_thread():
            found = training_conditions(models, distances, errors, fold)
        targets = []
        for own, target, each in zip(found, self.targets_, errors.T, strict=True):
            known = ~np.isnan(each)
            weights = fit_difficulty(own[known], each[known])
            scores = ConformalScores.of([each[known] / difficulty(own[known], weights)])
            targets.append(replace(target, difficulty=weights, scores=scores))
        self.targets_ = tuple(targets)
        if self._training_graphs is not None:
            self._training_graphs = replace(self._training_graphs, errors=errors)

    def _check_parameters(self) -> None:
        """Raise ValueError for the first invalid parameter."""
        for each in reversed(type(self).__mro__):
            check_parameters(self, vars(each).get("_rules", {}))
        if self._scoring is not None:
            named_scoring(self._scoring, self._classify)

    # ------------------------------------------------------------------ outputs

    def outputs(self, X: Any, errors: str = "raise") -> Floats:
        """Compute real-valued outputs, averaged over the fitted models: (n_graphs, q).

        With ``errors="raise"`` the first invalid graph raises a GraphError; with "missing" outputs
        of invalid graphs are NaN, and a warning counts them.
        """
        if errors != "raise":
            return self._for_valid_graphs(X, errors, self.outputs)
        return Answers(self, self._check_graphs(X), warn=True).outputs

    def neighbors(self, X: Any, k: int = 3) -> Neighbors:
        """Return the k most similar training graphs of each graph, by the kernel of the model.

        Returns
        -------
        Neighbors
            All training graphs, if there are fewer than k. A graph that has nothing in common with
            them has no neighbors: its positions are -1, its similarities NaN.

        Raises
        ------
        ValueError
            The model has no kernel, or it was loaded from a file without training graphs.

        Examples
        --------
        >>> from fdgnn import GraphRegressor
        >>> model = GraphRegressor().fit(["CCO", "CCCO", "CCN", "CCCN", "CO", "CN"], range(6))
        >>> found = model.neighbors(["CCCCO"], k=2)
        >>> found.smiles.tolist(), found.targets.tolist()
        ([['CCCO', 'CCO']], [[1.0, 0.0]])
        """
        if k < 1:
            raise ValueError(f"k={k!r}: expected a number of neighbors, at least 1")
        return Answers(self, self._check_graphs(X), warn=True).neighbors(int(k))

    def _known_training_graphs(self) -> TrainingGraphs:
        if self._training_graphs is None:
            raise ValueError(
                "the model has no nearest training graphs: it has no kernel, or its file was "
                'saved without training graphs; fit one with readout="rbf"'
            )
        return self._training_graphs

    def _mean_score(self, X: Any, y: Any, metric: Metric) -> float:
        """Return the mean of a metric over targets, each on graphs with a known value."""
        graphs = self._check_graphs(X)
        truth = targets_like(self.targets_, y, graphs)
        outputs = self.outputs(graphs)
        scores = []
        for t, target in enumerate(self.targets_):
            known = truth.known[:, t]
            if known.any():
                scores.append(metric(truth.values[known, t], outputs[known, target.columns]))
        return float(np.nanmean(scores)) if scores else float("nan")

    def for_target(self, target: str | int) -> Self:
        """Return the model of one of several targets, by its name or number.

        It has the same encoders, and can be explained and saved like any other model.
        """
        check_is_fitted(self)
        names = [each.name for each in self.targets_]
        if len(names) == 1:
            raise ValueError("the model was fitted on one target, so that there is none to choose")
        number = names.index(target) if target in names else target
        if not isinstance(number, int | np.integer) or not 0 <= number < len(names):
            known = ", ".join(map(repr, names[:10]))
            raise ValueError(f"target={target!r}: not a target of the model, which has {known}")
        alone: Self = clone(self)
        for name, value in vars(self).items():
            if name.endswith("_") or name in ("_domain", "_graph_kind"):
                setattr(alone, name, value)
        own = self.targets_[number]
        alone.estimators_ = tuple(m.only(int(number), own.columns) for m in self.estimators_)
        width = own.columns.stop - own.columns.start
        alone.targets_ = (replace(own, columns=slice(0, width)),)
        if self._training_graphs is not None:
            alone._training_graphs = self._training_graphs.only(int(number))
        alone._flat = True
        if self.evaluation_ is not None:
            alone.evaluation_ = self.evaluation_.of_target(names[number])
        return alone

    # ------------------------------------------------------------------ which graphs it takes

    def _check_graphs(self, X: Any) -> GraphBatch:
        """Convert graphs, and check that they are of the kind that the model was fitted on."""
        if not self.__sklearn_is_fitted__():  # sooner than `check_is_fitted`
            check_is_fitted(self)
        graphs = as_batch(X, like=self)
        self._graph_kind.check(graphs, self._molecules_only)
        if self._descriptors is not None and len(graphs):
            self._descriptors.check(graphs)
        return graphs

    def valid_graphs(self, X: Any) -> ValidGraphs:
        """Return the valid graphs, and the errors of the others.

        Raises
        ------
        GraphError
            A `GraphBatch` is of another kind than the training graphs.

        Examples
        --------
        >>> from fdgnn import FDGNNClassifier
        >>> from fdgnn.datasets import make_motif_graphs
        >>> graphs, y = make_motif_graphs(60, random_state=0)
        >>> model = FDGNNClassifier(random_state=0).fit(graphs, y)
        >>> found = model.valid_graphs([graphs[0], "no graph", graphs[1]])
        >>> found.rows, model.predict(found.graphs).shape
        (array([0, 2]), (2,))
        >>> found.errors[1][:16]
        'expected a graph'
        """
        check_is_fitted(self)
        if isinstance(X, GraphBatch):
            found = ValidGraphs(self._check_graphs(X), np.arange(len(X)), {})
        else:
            found = valid_graphs(items_of(X), like=self, fits=self._kind_error)
        if len(found.graphs) == 0:
            return found
        errors = _of_all([model.encoder.graph_errors(found.graphs) for model in self.estimators_])
        return found.without(errors) if errors else found

    def _valid_graphs_with_warning(self, X: Any) -> ValidGraphs:
        """Return the same as `valid_graphs`, with a warning of how many graphs are invalid."""
        found = self.valid_graphs(X)
        if found.errors:
            first, reason = next(iter(found.errors.items()))
            warnings.warn(
                f"{len(found.errors)} of {len(found.rows) + len(found.errors)} graphs cannot be "
                f"used, and have no answer; the first is graph {first}: {reason}",
                InvalidGraphWarning,
                stacklevel=frames_of_libraries(),
            )
        return found

    def _for_valid_graphs(
        self, X: Any, errors: str, answer: Callable[[GraphBatch], Floats]
    ) -> Floats:
        """Return results (n_graphs, ...) that are NaN for invalid graphs."""
        check_choice("errors", errors, ("raise", "missing"))
        found = self._valid_graphs_with_warning(X)
        answers = answer(found.graphs)
        spread = np.full((len(found.rows) + len(found.errors), *answers.shape[1:]), np.nan)
        spread[found.rows] = answers
        return spread

    def _molecules_only(self) -> str:
        """Return the advice to pass SMILES, if the model was fitted on molecules."""
        schema = schema_of(self)
        is_of_molecules = schema is not None and schema.source == "molecules"
        return "; it was fitted on molecules, so give it SMILES" if is_of_molecules else ""

    def _kind_error(self, kind: Kind) -> str | None:
        """Return why the model cannot take graphs of a kind; None if it can."""
        lacks = (model.encoder.kind_error(kind) for model in self.estimators_)
        found = self._graph_kind.mismatch(kind, self._molecules_only)
        return found or next(filter(None, lacks), None)

    # ------------------------------------------------------------------ applicability domain

    def unknown_labels(self, X: Any) -> dict[int, str]:
        """Return the positions of graphs with unknown labels, and these labels.

        These labels are ignored: outputs depend only on the rest of the graph.
        """
        return self._unknown_labels(self._check_graphs(X))

    def _unknown_labels(self, graphs: GraphBatch) -> dict[int, str]:
        if len(graphs) == 0:
            return {}
        found = _of_all([model.encoder.unknown_labels(graphs) for model in self.estimators_])
        block = self.estimators_[0].descriptors
        return found if block is None else block.unknown_labels(graphs) | found

    def domain_distance(self, X: Any, errors: str = "raise") -> Floats:
        """Return the distance of each graph from the applicability domain, from 0 to 1.

        It is the share of the graph's WL features that no training graph has, or, for a model
        without WL features, the leverage (`fdgnn.applicability`). `errors` is as in `outputs`.
        """
        if errors != "raise":
            return self._for_valid_graphs(X, errors, self.domain_distance)
        graphs = self._check_graphs(X)
        if self._domain is None:
            raise ValueError(
                "the model has no applicability domain, because its encoder has too many features "
                "for a leverage, or none that count; fit it with WL features"
            )
        if len(graphs) == 0:
            return np.empty(0)
        encoder = self.estimators_[self._domain.estimator].encoder
        encoding = encoder.encode(graphs, n_jobs=self.n_jobs)
        with one_blas_thread() if len(graphs) > FEW_GRAPHS else _NO_LIMIT:
            return self._domain.of(encoder, graphs, encoding)

    def out_of_domain(self, X: Any) -> dict[int, str]:
        """Return the positions of graphs outside the applicability domain, with reasons.

        Their `domain_distance` is larger than that of 99 % of the training graphs, each compared
        with the others, or one of their graph-level features is outside the range of the training
        graphs.
        """
        graphs = self._check_graphs(X)
        return self._out_of_domain(
            graphs, None if self._domain is None else self.domain_distance(graphs)
        )

    def _out_of_domain(self, graphs: GraphBatch, distances: Floats | None) -> dict[int, str]:
        """Return reasons for checked graphs, given their distances (n_graphs,) from the domain."""
        found: dict[int, str] = {}
        if self._domain is not None and distances is not None:
            found = self._domain.reasons(distances)
        if self._descriptors is not None and len(graphs):
            for g, words in self._descriptors.outside(graphs).items():
                found[g] = f"{found[g]}; {words}" if g in found else words
        return dict(sorted(found.items()))

    # ------------------------------------------------------------------ facts

    @property
    def _descriptors(self) -> DescriptorBlock | None:
        """The graph-level features that the model was fitted on; None if there were none."""
        return self.estimators_[0].descriptors

    @property
    def _n_outputs(self) -> int:
        """q, the number of real-valued outputs."""
        check_is_fitted(self)
        return len(self.estimators_[0].readout.intercept)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the classes of named encoders, for workers."""
        state: dict[str, Any] = super().__getstate__()
        names = [name for name in self._encoder_names() if isinstance(name, str)]
        known = [kind for kind in map(registered_class, names) if kind is not None]
        return state | {"_registered": known} if known else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for kind in state.pop("_registered", ()):
            register_encoder(kind)
        super().__setstate__(state)

    def _html_repr(self) -> str:
        """Return what notebooks show: scikit-learn's diagram, and what was fitted."""
        diagram = str(super()._html_repr())
        if not self.__sklearn_is_fitted__():
            return diagram
        rows: dict[str, Any] = {}
        for target in self.targets_:
            classes = ["a number"] if target.classes is None else target.classes.tolist()
            rows[f"Target {target.name}".strip()] = cut(", ".join(map(str, classes)), 60)
        rows["Base models"] = "; ".join(dict.fromkeys(m.name for m in self.estimators_))
        rows["alpha"] = "; ".join(str(m.alpha) for m in self.estimators_)
        if self._training_graphs is not None:
            rows["Training graphs"] = len(self._training_graphs)
        if self.evaluation_ is not None and self.evaluation_.score is not None:
            rows["Score"] = f"{self.evaluation_.score:.4g}"
        return diagram + html_table(rows)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimators_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.non_deterministic = self.random_state is None
        tags.target_tags.multi_output = True
        return tags


class Answers:
    """Outputs of graphs, and what goes with them, by one encoding of the graphs.

    Attributes
    ----------
    outputs : (n_graphs, q)
    """

    def __init__(self, model: GraphModel, graphs: GraphBatch, *, warn: bool = False) -> None:
        self._model, self._graphs = model, graphs
        if len(graphs) == 0:
            self.outputs: Floats = np.empty((0, model._n_outputs))
            return
        models = model.estimators_
        self._encodings = encode_each([m.encoder for m in models], graphs, model.n_jobs)
        convergences = [
            each.convergence for each in self._encodings if each.convergence is not None
        ]
        if convergences:
            warn_unconverged(convergences, model._remedy)
        # A few graphs take less time than to set the limit of threads.
        with one_blas_thread() if len(graphs) > FEW_GRAPHS else _NO_LIMIT:
            outputs = [m.outputs(e, graphs) for m, e in zip(models, self._encodings, strict=True)]
        self.outputs = outputs[0] if len(outputs) == 1 else np.asarray(sum(outputs) / len(outputs))
        check_finite(self.outputs, "output")
        if warn and (self.nothing_known or self.unknown_labels):
            self._warn()

    @cached_property
    def domain_distance(self) -> Floats | None:
        """The distance from the applicability domain (n_graphs,); None if the model has none."""
        known = self._model._domain
        if known is None or len(self._graphs) == 0:
            return None
        encoder = self._model.estimators_[known.estimator].encoder
        return known.of(encoder, self._graphs, self._encodings[known.estimator])

    @cached_property
    def unknown_labels(self) -> dict[int, str]:
        """The positions of graphs with labels that no training graph has, and which."""
        return self._model._unknown_labels(self._graphs)

    @cached_property
    def nothing_known(self) -> list[int]:
        """The positions of graphs that have nothing in common with the training graphs.

        Their outputs are those of an empty graph. Where vertices have labels, all labels of such a
        graph are unknown, so that there is nothing to compute for other graphs.
        """
        model = self._model
        if not (self.unknown_labels or model._graph_kind.vertices == "features"):
            return []
        counts = any(m.encoder.n_counted is not None for m in model.estimators_)
        return all_new(self.domain_distance) if counts else []

    def _warn(self) -> None:
        """Warn the user's own code of graphs about which little or nothing is known."""
        n, nothing = len(self._graphs), self.nothing_known
        if nothing:
            warnings.warn(
                f"{len(nothing)} of {n} graphs {agreeing(len(nothing), 'has', 'have')} nothing in "
                "common with the training graphs: values for such a graph are those of an empty "
                "graph; out_of_domain(graphs) has the positions, and domain_distance(graphs) is 1 "
                "there",
                OutOfDomainWarning,
                stacklevel=frames_of_libraries(),
            )
        if self.unknown_labels:
            warn_unknown_labels(len(self.unknown_labels.keys() - set(nothing)), n)

    @cached_property
    def difficulty(self) -> Floats:
        """The error to be expected of each prediction, (n_graphs, n_targets), up to a factor."""
        model, n = self._model, len(self._graphs)
        found = np.ones((n, len(model.targets_)))
        kept = model._training_graphs
        errors = None if kept is None else kept.errors
        if n == 0:
            return found
        for rows, compared in self._similarities() if errors is not None else [(slice(n), None)]:
            distances = None if self.domain_distance is None else self.domain_distance[rows]
            for t, target in enumerate(model.targets_):
                if target.difficulty is not None:
                    own = conditions(distances, compared, None if errors is None else errors[:, t])
                    found[rows, t] = difficulty(own, target.difficulty)
        return found

    def neighbors(self, k: int) -> Neighbors:
        """Return the k most similar training graphs of each graph."""
        kept = self._model._known_training_graphs()
        if len(self._graphs) == 0:
            return kept.neighbors([np.empty((0, 1))], 1)
        found = kept.neighbors((S for _, S in self._similarities()), k)
        return found.without(self.nothing_known)

    def _similarities(self) -> Iterator[tuple[slice, Floats]]:
        """Yield rows of graphs, and their similarities with all training graphs."""
        each = kernel_models(self._model.estimators_)
        models = [self._model.estimators_[i] for i in each]
        seen = [m.seen(self._encodings[i].features[0], self._graphs)
                for i, m in zip(each, models, strict=True)]  # fmt: skip
        for rows in blocks(len(self._graphs), AT_ONCE):
            yield rows, similarities(models, [X[rows] for X in seen])


def _of_all(reasons: list[dict[int, str]]) -> dict[int, str]:
    """Merge the reasons of all encoders; the first to give one for a graph counts."""
    if not any(reasons):  # most often
        return {}
    found: dict[int, str] = {}
    for each in reasons:
        found = each | found
    return dict(sorted(found.items()))

"""`FDGNNSearchCV`: hyperparameters by cross-validation, with any scikit-learn scorer.

Candidates are configurations of an estimator, each at all depths of its encoder. Their base
models are fitted by `fdgnn.fitting`, on all folds, outer folds and alphas at once, and combined by
the rule of `fdgnn.ensemble`; each row of folds chooses the best candidate, without a look at its
test graphs.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import joblib
import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Floats, Ints, grouped, prefixed
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.encoders import GraphKind
from fdgnn.ensemble import combine
from fdgnn.estimators import FDGNNClassifier, GraphModel
from fdgnn.estimators.models import GraphClassifierMixin, GraphRegressorMixin
from fdgnn.fitting import FitTask, ModelFit, fit_depths
from fdgnn.folds import N_FOLDS, check_groups, fold_rows
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.limits import MAX_CONFIGURATIONS
from fdgnn.metrics import (
    Metric,
    Scoring,
    known_scoring,
    named_scoring,
    warn_class_imbalance,
)
from fdgnn.parameters import Jobs, Number, Rule, available_with, check_parameters
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.scoring import nested_predictions, scoring_of
from fdgnn.targets import Targets, read_targets
from fdgnn.texts import agreeing, counted, cut
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel

#: Parameters of an estimator by name; a value is whatever the estimator takes.
Parameters: TypeAlias = dict[str, Any]

_RULES: dict[str, Rule] = {
    "n_jobs": Jobs(),
    "n_configurations": Number(1, whole=True, optional=True, most=MAX_CONFIGURATIONS),
}
N_CONFIGURATIONS = 20
DEPTHS = (1, 2, 3, 4, 5)


def _of_best(method: Callable[..., Any]) -> Any:
    """Return a method of the best model, for searches whose estimator has it."""
    name = method.__name__

    def is_available(search: Any) -> Any:
        return getattr(search._base, name)  # or an AttributeError that says what to do

    @wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)(*args, **options)

    return available_with(is_available, "")(call)


@dataclass(eq=False, repr=False)
class FDGNNSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose hyperparameters by cross-validation, then fit the model on all graphs.

    Scores are those of models like the final one: the outputs of all random initializations are
    averaged and then scored, with one alpha. All depths share one pass through the deepest
    reservoir, and all folds and alphas share one embedding.

    Parameters
    ----------
    estimator : estimator of this library, optional
        The model, with the parameters that are not searched; by default an `FDGNNClassifier` with
        three random initializations.
    n_configurations : int, optional
        Number of configurations to draw from `param_distributions`; 20 by default.
    param_distributions : dict, optional
        Lists or SciPy distributions by parameter, such as ``encoder__n_iterations``. The default is
        the encoder's: for a reservoir `effective_spectral_radius`, `input_scaling` and
        `inter_layer_scaling` uniform in (0, 1), as in the paper. If it is empty, there is one
        configuration.
    configurations : list of dict, optional
        Given configurations, instead of random ones.
    depths : sequence of int, optional
        Depths to try with each configuration: layers of a reservoir, or iterations of WL features;
        by default 1 to 5, if the encoder has a depth.
    alphas : sequence of float, optional
        Regularization strengths to try; by default the grid of the readout, of which values below a
        tenth of the best one are not tried on more than 1,000 graphs; their scores are NaN.
    cv : int or splitter, default=5
        Folds; each graph must be held out exactly once.
    outer_cv : int or splitter, optional
        Outer folds of nested cross-validation, for `nested_score_`: the selection is repeated in
        each training part. Embeddings are shared, so this costs little.
    scoring : str, callable, or list of these, optional
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1" or "log_loss"; for a
        regressor "r2", "rmse", "mae" or "spearman": all folds and alphas are scored at once. Or any
        other scikit-learn scorer of predictions or decision values. Errors are negative. If there
        are several, the first selects, and `cv_results_` has all. By default the estimator's own
        scoring, or else accuracy, or R2 for a regressor; if a class has less than a tenth of the
        graphs, ROC AUC, with a warning.
    random_state : int, optional
    n_jobs : int, optional
        Processes.
    verbose : int, default=0
        1 shows progress.
    work_dir : path, optional
        Folder for a checkpoint of each fitted base model: the same search on the same graphs
        resumes from these. It requires a `random_state`.

    Attributes
    ----------
    best_estimator_ : the fitted model
    best_params_ : dict
    best_score_ : float
        Cross-validated score of the best configuration, which is optimistically biased.
    nested_score_ : float
        With `outer_cv`: mean score over the outer folds of the models selected without them.
    nested_scores_ : (outer_cv,)
    nested_outputs_ : (n_graphs, q)
        With `outer_cv`: outputs for each graph by the model that was selected and fitted without
        its outer fold; NaN if no outer fold tests the graph. `nested_score_by` scores them.
    nested_folds_ : (outer_cv, n_graphs)
        With `outer_cv`: the inner fold of each graph; -1 if the outer fold tests it, and -2 if it
        is not used.
    cv_results_ : dict of arrays
        One row for each configuration, depth, base model and alpha, as in scikit-learn's searches:
        ``params``, ``split0_test_score`` and so on, their mean, standard deviation and rank, and
        ``mean_fit_time``, the CPU seconds of the base model divided by the number of folds, because
        all folds and alphas are solved together. `kept` marks the base models that are averaged,
        with their alpha.
    n_resumed_ : int
        Number of base models that were read from `work_dir`.
    classes_ : array, for a classifier

    Examples
    --------
    >>> from fdgnn import FDGNNSearchCV
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> search = FDGNNSearchCV(n_configurations=2, cv=3, random_state=0)
    >>> search.fit(graphs, y).predict(graphs[:2]).shape
    (2,)
    """

    estimator: Any = None
    _: KW_ONLY
    n_configurations: int | None = None
    param_distributions: Mapping[str, Any] | None = None
    configurations: Sequence[Mapping[str, Any]] | None = None
    depths: Sequence[int] | None = None
    alphas: Sequence[float] | None = None
    cv: Any = N_FOLDS
    outer_cv: Any = None
    scoring: Any = None
    random_state: int | None = None
    n_jobs: int | None = None
    verbose: int = 0
    work_dir: str | os.PathLike[str] | None = None

    # `errors` is a choice of the caller, not metadata of graphs that scikit-learn could route.
    __metadata_request__predict: ClassVar[Any] = {"errors": UNUSED}
    __metadata_request__predict_proba: ClassVar[Any] = {"errors": UNUSED}
    __metadata_request__decision_function: ClassVar[Any] = {"errors": UNUSED}

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Score all configurations, choose the best, and fit it on all graphs.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        y : (n_graphs,), or (n_graphs, n_targets)
            As in the estimator's `fit`. For several targets, the mean of their scores selects.
        sample_weight : (n_graphs,), optional
            Weights of squared errors; graphs of weight 0 are left out. Scores ignore weights, as in
            scikit-learn's searches.
        groups : (n_graphs,), optional
            Graphs of one group are held out together, by `cv` and by `outer_cv`. Graphs whose group
            is None or NaN form one group, and a warning counts them.
        """
        self._check_parameters()
        base = self._base
        graphs = as_batch(X)
        targets = read_targets(y, graphs, base._classify, base._target_transform)
        if groups is not None:
            _warn_missing(groups)
            groups = check_groups(groups, len(targets))
        graphs, targets, weights, some = base._taking_part(graphs, targets, sample_weight)
        groups = None if groups is None else groups[some]
        if self.scoring is None and base._scoring is None:
            handled = base.threshold is not None or base.class_weight is not None
            warn_class_imbalance(targets, handled)
        folds = fold_rows(self.cv, self.outer_cv, targets, groups, self.random_state)
        ranking = self._rank(graphs, targets, folds, weights)
        task, best = ranking.task, ranking.best[-1]
        self.best_index_, self.cv_results_ = ranking.results()
        self.best_score_ = best.score
        model, self.best_params_ = best.model()
        if self.outer_cv is not None:
            self._keep_nested(replace(task, folds=task.folds[:-1]), ranking)
        fits = []
        for one, fit in zip(best.configuration.bases, best.fits, strict=True):
            if not fit.fitted:  # from a checkpoint, which has no readouts
                with one_blas_thread():
                    (fit,) = fit_depths(one, graphs, task, (best.depth,), alphas=fit.alphas)
            fits.append(fit)
        model._begin(graphs)
        model._assemble(fits, graphs, task)
        self.best_estimator_ = model
        return self

    def evaluate_folds(self, graphs: GraphBatch, targets: Targets, folds: Ints) -> Self:
        """Score the models selected in given outer folds, without a fit on all graphs.

        Parameters
        ----------
        graphs : GraphBatch
        targets : Targets
        folds : (n_outer, n_graphs)
            As `nested_folds_`, instead of `cv` and `outer_cv`.
        """
        self._check_parameters()
        weights = targets.weights(None, self._base.class_weight)
        ranking = self._rank(graphs, targets, folds, weights, train=False)
        self._keep_nested(ranking.task, ranking)
        return self

    @one_blas_thread()
    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the selected model on other graphs, for instance on all after a search on a sample.

        Base models and alphas of the search are used again. With several targets, whose alphas
        differ, alphas are chosen again.
        """
        check_is_fitted(self)
        chosen = {model.name: model.alpha for model in self.best_estimator_.estimators_}
        model = clone(self.best_estimator_)
        graphs = as_batch(X)
        targets = read_targets(y, graphs, model._classify, model._target_transform)
        task, graphs, bases = model._task(graphs, targets, sample_weight)
        fits: list[ModelFit] = []
        for one in bases:
            alpha = chosen.get(one.name)
            if alpha is not None:
                alphas = None if isinstance(alpha, tuple) else (alpha,)
                fits += fit_depths(one, graphs, task, alphas=alphas, n_jobs=model.n_jobs)
        model._assemble(fits, graphs, task)
        self.best_estimator_ = model
        return self

    # ------------------------------------------------------------------ what is fitted

    def _scorings(self, targets: Targets) -> dict[str, Scoring]:
        """Return the scorings by name; the first one chooses."""
        given = self._base._scoring if self.scoring is None else self.scoring
        several = isinstance(given, list | tuple)
        names = list(given) if several else [given]
        if not names:
            raise ValueError("scoring is empty: give a metric, or None")
        found = [scoring_of(name, targets) for name in names]
        return {each.name if several else "score": each for each in found}

    def _candidates(self, graphs: GraphBatch) -> list[_Configuration]:
        """Return all configurations, each with its base models."""
        seeds = seed_sequence(self.random_state)
        if self.configurations is not None:
            drawn = [(integer_seed(seeds, c), dict(p)) for c, p in enumerate(self.configurations)]
        else:
            n_configurations = self.n_configurations or N_CONFIGURATIONS
            drawn = draw_configurations(self._space, n_configurations, integer_seed(seeds))
        # Whether configurations differ in their random initializations.
        own_seeds = bool(self._base._search_space) or self.configurations is not None
        found = []
        for number, (seed, params) in enumerate(drawn):
            estimator = clone(self._base)
            if "random_state" not in params and (estimator.random_state is None or own_seeds):
                estimator.set_params(random_state=seed)
            estimator.set_params(**params)
            estimator._check_parameters()
            root = seed_sequence(estimator.random_state)
            bases = estimator._base_models(GraphKind.of(graphs), len(graphs), root)
            searched = [
                replace(one, readout=clone(one.readout).set_params(alpha="cv")) for one in bases
            ]
            depths: tuple[int | None, ...] = (None,)
            if estimator._depth_parameter is not None:
                depths = tuple(sorted(set(DEPTHS if self.depths is None else self.depths)))
            found.append(_Configuration(number, params, estimator, searched, depths))
        return found

    @property
    def _space(self) -> Mapping[str, Any]:
        """The distributions from which configurations are drawn."""
        given = self.param_distributions
        space: Mapping[str, Any] = self._base._search_space if given is None else given
        return space

    def _rank(
        self,
        graphs: GraphBatch,
        targets: Targets,
        folds: Ints,
        weights: Floats | None,
        train: bool = True,
    ) -> _Ranking:
        """Fit all base models of all configurations, and choose the best in each row of folds.

        Without `train` there are predictions for the folds only, no readouts of all graphs.
        """
        scorings = self._scorings(targets)
        metric, *others = (each.metric for each in scorings.values())
        task = self._base._scored_task(targets, folds, weights, metric)
        configurations = self._candidates(graphs)
        self._n_candidates = len(configurations)
        jobs = [(c, b) for c in configurations for b in range(len(c.bases))]
        # Checkpoints of equal searches.
        parameters = {k: v for k, v in self._base.get_params().items() if k != "n_jobs"}
        about = repr((type(self._base).__name__, sorted(parameters.items(), key=str), self.scoring))
        directory = None if self.work_dir is None else Path(self.work_dir)
        checkpoints = Checkpoints(directory, about, graphs, task)
        names = [f"{c.name} {b} {self.alphas}" for c, b in jobs]
        saved = {i: checkpoints.load(name) for i, name in enumerate(names)}
        known = {i: arrays for i, arrays in saved.items() if arrays is not None}
        left = [i for i in range(len(jobs)) if i not in known]
        context = Context(self.n_jobs, quiet=not self.verbose)
        grid = None if self.alphas is None else tuple(sorted({float(a) for a in self.alphas}))
        more = dict(zip(list(scorings)[1:], others, strict=True))
        call: Callable[..., Any] = joblib.delayed(_fit_base_model)
        done: Iterator[tuple[int, list[ModelFit]]] = parallel(
            self.n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
        )(call(i, *jobs[i], graphs, task, grid, more, train) for i in left)
        ranking = _Ranking(task, scorings)
        for i, arrays in known.items():
            configuration, b = jobs[i]
            name, of_depths = configuration.bases[b].name, grouped(arrays).values()
            ranking.add(configuration, b, [ModelFit.from_arrays(name, each) for each in of_depths])
        self.n_resumed_ = len(known)
        what = "configurations" if len(configurations) > 1 else "models"
        for i, fits in context.track(done, len(jobs), what, done=len(known)):
            kept: dict[str, Array] = {}
            for depth, fit in enumerate(fits):
                kept |= prefixed(str(depth), fit.arrays())
            checkpoints.save(names[i], kept)
            ranking.add(*jobs[i], fits)
        return ranking

    def _keep_nested(self, task: FitTask, ranking: _Ranking) -> None:
        """Keep what was selected without each outer fold, and its scores there."""
        self.nested_folds_ = task.folds
        self._selected = [
            # What was trained on all graphs takes memory.
            one._replace(fits=[replace(fit, fitted=(), convergences=[]) for fit in one.fits])
            for one in ranking.best[: len(task.folds)]
        ]
        predictions = np.array([one.predictions for one in self._selected])
        self._nested = nested_predictions(task, predictions, self._base.threshold)
        scores = self._nested.by_fold(next(iter(ranking.scorings.values())))
        known = scores[~np.isnan(scores)]
        if len(known) == 0:
            raise ValueError(
                "no outer fold can be scored, because each has graphs of one class or value only"
            )
        self.nested_scores_, self.nested_score_ = scores, float(known.mean())
        self.nested_outputs_ = self._nested.last()

    def nested_score_by(self, scoring: str) -> float:
        """Return another score of the models selected in the outer folds.

        With a threshold, each outer fold has its own, chosen without its graphs.
        """
        check_is_fitted(self, "nested_outputs_")
        return self._nested.score(named_scoring(scoring, is_classifier(self._base)))

    def nested_scores_by_target(self, scoring: str) -> dict[str, float]:
        """Return the nested score of each target, by name."""
        check_is_fitted(self, "nested_outputs_")
        each = self._nested.by_target(named_scoring(scoring, is_classifier(self._base)))
        names = [target.name for target in self.best_estimator_.targets_]
        return dict(zip(names, each.tolist(), strict=True))

    # ------------------------------------------------------------------ parameters

    @property
    def _base(self) -> Any:
        return FDGNNClassifier(n_estimators=3) if self.estimator is None else self.estimator

    def _check_parameters(self) -> None:
        check_parameters(self, _RULES)
        base = self._base
        if not isinstance(base, GraphModel):
            shown = cut(" ".join(repr(self.estimator).split()), 60)
            raise ValueError(
                f"estimator={shown}: expected an estimator of this library, such as "
                "FDGNNClassifier() or GraphClassifier(), or None; for a pipeline take "
                "scikit-learn's GridSearchCV or RandomizedSearchCV"
            )
        base._check_parameters()
        outer: Any = self.outer_cv
        splitter = hasattr(outer, "split") and not isinstance(outer, str)
        if not splitter and Number(2, whole=True, optional=True).expected(outer):
            raise ValueError(
                f"outer_cv={outer!r}: expected an integer, at least 2, a splitter or None"
            )
        for name in ("depths", "alphas", "configurations"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Sequence | np.ndarray):
                raise ValueError(f"{name}={given!r}: expected a list, or None")
            if given is not None and len(given) == 0:
                raise ValueError(f"{name} is empty: there is nothing to choose from")
        searched = [*(self.configurations or []), self.param_distributions or {}]
        for one in searched:
            if not isinstance(one, Mapping):
                raise ValueError(f"{one!r}: expected parameters with their values, as a dict")
        own_arguments = {base._depth_parameter: "depths", base._alpha_name: "alphas"}
        for parameter, argument in own_arguments.items():
            if any(parameter in one for one in searched):
                raise ValueError(f"{parameter} is searched by its own argument; give {argument}=")
        if self.outer_cv is not None and hasattr(self.cv, "__iter__"):
            raise ValueError("outer_cv needs a number or a splitter as cv, not a list of splits")
        for depth in () if self.depths is None else self.depths:
            if base._depth_parameter is None:
                raise ValueError(
                    f"depths={self.depths!r} has no effect: the estimator has no depth"
                )
            clone(base).set_params(**{base._depth_parameter: depth})._check_parameters()
        if self.configurations is not None:
            for name in ("n_configurations", "param_distributions"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} has no effect beside `configurations`; give one")
        elif self.n_configurations is not None and not self._space:
            raise ValueError(
                f"n_configurations={self.n_configurations} has no effect: there is nothing to "
                "draw; give `param_distributions`, or leave it out"
            )
        if self.work_dir is not None and self.random_state is None:
            raise ValueError("work_dir needs a `random_state`, so that checkpoints are found again")
        if self.alphas is not None:
            alphas = np.asarray(self.alphas, dtype=np.float64)
            if not (np.isfinite(alphas) & (alphas >= 0)).all():
                raise ValueError(f"alphas={self.alphas!r}: expected finite numbers, at least 0")

    # ------------------------------------------------------------------ the best model

    @property
    def classes_(self) -> Array:
        """Classes of the best model, if it is a classifier."""
        check_is_fitted(self)
        classes: Array = self.best_estimator_.classes_
        return classes

    predict = _of_best(GraphClassifierMixin.predict)
    decision_function = _of_best(GraphClassifierMixin.decision_function)
    predict_proba = _of_best(GraphClassifierMixin.predict_proba)
    predict_set = _of_best(GraphClassifierMixin.predict_set)
    predict_interval = _of_best(GraphRegressorMixin.predict_interval)

    def score(self, X: Any, y: Any) -> float:
        """Return the score of the best model by the (first) `scoring`."""
        check_is_fitted(self)
        scoring = self.scoring[0] if isinstance(self.scoring, list | tuple) else self.scoring
        best, classify = self.best_estimator_, is_classifier(self._base)
        if scoring is None:
            return float(best.score(X, y))
        known = known_scoring(scoring, classify) if isinstance(scoring, str) else None
        if known is None:
            from sklearn.metrics import check_scoring  # slow to import

            return float(check_scoring(best, scoring)(best, X, y))
        threshold = best.targets_[0].threshold if len(best.targets_) == 1 else None
        if not known.of_probabilities or threshold is None:
            return float(best._mean_score(X, y, known.metric))
        # Probabilities are not moved by a threshold.
        return float(best._mean_score(X, y, lambda truth, o: known.metric(truth, o + threshold)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _warn_missing(groups: Any) -> None:
    """Warn of graphs without a group."""
    n_missing = sum(each is None or each != each for each in np.ravel(groups).tolist())
    if n_missing:
        graphs, verb = counted(n_missing, "graph"), agreeing(n_missing, "has", "have")
        warnings.warn(
            f"{graphs} {verb} no group; all such graphs are held out together", stacklevel=3
        )


# ---------------------------------------------------------------------- configurations


@dataclass(frozen=True, eq=False)
class _Configuration:
    """An estimator with its parameters set, its base models, and the depths to try."""

    number: int
    params: Parameters
    estimator: Any
    bases: list[Any]
    depths: tuple[int | None, ...]

    @property
    def name(self) -> str:
        """Everything on which its scores depend, except the task."""
        state = self.estimator.random_state
        return repr((self.params, self.depths, state if isinstance(state, int) else None))

    def at_depth(self, depth: int | None) -> Parameters:
        """Return the parameters with this depth."""
        name = self.estimator._depth_parameter
        return self.params if depth is None else self.params | {name: depth}


def draw_configurations(
    distributions: Mapping[str, Any], n_configurations: int, seed: int
) -> list[tuple[int, Parameters]]:
    """Draw configurations at random, each with the seed of its own random initializations.

    Configuration c depends on `seed` and c only, so a longer search contains a shorter one. Where
    there is nothing to draw, there is one configuration.
    """
    from sklearn.model_selection import ParameterSampler  # slow to import

    root = seed_sequence(seed)
    found = []
    for c in range(n_configurations if distributions else 1):
        rng = np.random.RandomState(integer_seed(root, c, 0))
        (drawn,) = ParameterSampler(dict(distributions), 1, random_state=rng)
        plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in drawn.items()}
        found.append((integer_seed(root, c, 1), plain))
    return found


# ---------------------------------------------------------------------- the work


def _fit_base_model(
    number: int,
    configuration: _Configuration,
    b: int,
    graphs: GraphBatch,
    task: FitTask,
    alphas: Sequence[float] | None,
    more: Mapping[str, Metric],
    train: bool,
) -> tuple[int, list[ModelFit]]:
    """Fit one base model of a configuration at all depths."""
    with one_blas_thread():
        fits = fit_depths(
            configuration.bases[b], graphs, task, configuration.depths, alphas=alphas, more=more,
            n_jobs=1, train=train,
        )  # fmt: skip
    return number, [replace(fit, features=None) for fit in fits]


class _Best(NamedTuple):
    """The best candidate of a row of folds: a configuration at a depth."""

    row: int
    key: tuple[Any, ...]
    configuration: _Configuration
    depth: int | None
    fits: list[ModelFit]
    kept: Array
    score: float
    predictions: Floats  # (n, q)

    def model(self) -> tuple[Any, Parameters]:
        """Return the estimator, not fitted, and its parameters, with alpha where it is one."""
        params = self.configuration.at_depth(self.depth)
        model = clone(self.configuration.estimator).set_params(**params)
        alphas = set(self.fits[0].chosen_alphas[self.row].tolist())
        if model._alpha_name is not None and len(alphas) == 1:
            readout = clone(self.configuration.bases[0].readout).set_params(alpha=min(alphas))
            model._set_readout(readout)
            if model._scoring is not None:
                model.set_params(scoring=None)  # nothing is left to be chosen
            params = params | {model._alpha_name: readout.alpha}
        return model, params


class _Ranking:
    """The best candidate so far in each row of folds, and the rows of `cv_results_`."""

    def __init__(self, task: FitTask, scorings: dict[str, Scoring]) -> None:
        self.task, self.scorings = task, scorings
        self._best: dict[int, _Best] = {}
        self._waiting: dict[int, dict[int, list[ModelFit]]] = {}  # of incomplete configurations
        # By numbers of configuration, depth, base model and alpha: parameters, scores, seconds.
        self._rows: dict[tuple[int, ...], tuple[Parameters, list[Floats], float]] = {}

    @property
    def best(self) -> list[_Best]:
        """The best candidate of each row of folds."""
        return [self._best[row] for row in range(len(self.task.folds))]

    def add(self, configuration: _Configuration, b: int, fits: list[ModelFit]) -> None:
        """Add the fits of a base model at all depths; rank its configuration once complete."""
        own = self._waiting.setdefault(configuration.number, {})
        own[b] = fits
        if len(own) == len(configuration.bases):
            del self._waiting[configuration.number]
            for d, depth in enumerate(configuration.depths):
                self._rank(configuration, depth, [own[i][d] for i in range(len(own))])

    def _rank(self, configuration: _Configuration, depth: int | None, fits: list[ModelFit]) -> None:
        """Rank a candidate: the shallowest wins among equals, then the most regularized."""
        ensemble = combine(fits, self.task)
        validation = ensemble.scores.validation[:, 0].mean(axis=-1)  # (n_rows,)
        for row, score in enumerate(validation.tolist()):
            alpha = max(float(fit.chosen_alphas[row].max()) for fit in fits)
            known = -np.inf if np.isnan(score) else score
            key = (known, -(depth or 0), alpha, -configuration.number)
            if row not in self._best or key > self._best[row].key:
                kept, predictions = ensemble.kept[row], ensemble.predictions[row]
                self._best[row] = _Best(
                    row, key, configuration, depth, fits, kept, score, predictions
                )
        params, name = configuration.at_depth(depth), configuration.estimator._alpha_name or "alpha"
        for b, fit in enumerate(fits):
            assert fit.choice is not None
            named = {"model": fit.name} if len(fits) > 1 else {}
            splits = [fit.choice.scores.splits[-1].mean(axis=-1), *fit.more]  # (n_folds, n_alphas)
            for a, alpha in enumerate(fit.alphas):
                at, own = (configuration.number, depth or 0, b, a), params | named | {name: alpha}
                seconds = fit.seconds / len(splits[0])
                self._rows[at] = own, [each[:, a] for each in splits], seconds

    def results(self) -> tuple[int, dict[str, Any]]:
        """Return the row of the best candidate's best base model, and all rows as columns."""
        best, places = self.best[-1], sorted(self._rows)
        choices = [fit.choice for fit in best.fits if fit.choice is not None]
        scores = [np.nanmax(choice.scores.validation[-1].mean(axis=-1)) for choice in choices]
        chosen = [
            [(best.configuration.number, best.depth or 0, b, a) for a in choice.positions[-1]]
            for b, choice in enumerate(choices)
        ]
        rows = [self._rows[at] for at in places]
        names = dict.fromkeys(name for params, _, _ in rows for name in params)
        found: dict[str, Any] = {
            "mean_fit_time": np.array([seconds for _, _, seconds in rows]),
            "params": [params for params, _, _ in rows],
            **{f"param_{n}": _column([params.get(n) for params, _, _ in rows]) for n in names},
        }
        for m, name in enumerate(self.scorings):
            splits = np.array([each[m] for _, each, _ in rows])  # (n_rows, n_folds)
            for f, column in enumerate(splits.T):
                found[f"split{f}_test_{name}"] = column
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                mean, deviation = np.nanmean(splits, axis=1), np.nanstd(splits, axis=1)
            found |= {f"mean_test_{name}": mean, f"std_test_{name}": deviation}
            found[f"rank_test_{name}"] = np.searchsorted(np.sort(-mean), -mean) + 1
        kept = {at for b, own in enumerate(chosen) for at in own if best.kept[b]}
        found["kept"] = np.array([at in kept for at in places])
        return places.index(chosen[int(np.argmax(scores))][0]), found


def _column(values: list[Any]) -> Array:
    """Return values as an array, of objects where NumPy would take them for several axes."""
    plain = all(isinstance(v, int | float | str | bool) for v in values)
    if plain:
        return np.array(values)
    found: Array = np.empty(len(values), dtype=object)
    found[:] = values
    return found

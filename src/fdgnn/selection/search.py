"""`FDGNNSearchCV`: hyper-parameters for users' own graphs, with any scikit-learn scorer."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from fdgnn.context import Context
from fdgnn.estimators import AUTO, FDGNNClassifier, GraphModel
from fdgnn.graphs import Array, Floats
from fdgnn.graphs.converters import as_batch
from fdgnn.limits import MAX_CONFIGURATIONS, MAX_NETWORKS
from fdgnn.parameters import Jobs, Number, Rule, check_parameters
from fdgnn.readout.metrics import OF_CLASSES, Scoring, known_scoring, named_scoring
from fdgnn.readout.several import SeveralTargets
from fdgnn.readout.targets import sample_weights
from fdgnn.scikit import (
    BaseEstimator,
    MetaEstimatorMixin,
    OfferedIf,
    available_if,
    check_is_fitted,
    clone,
    get_tags,
    is_classifier,
)
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.committee_search import CommitteeSearch
from fdgnn.selection.configurations import ConfigurationSearch
from fdgnn.selection.findings import Findings, Workplace
from fdgnn.selection.finished import FinishedParts
from fdgnn.selection.folds import TEST
from fdgnn.selection.nested import NestedAnswers, chosen_cuts
from fdgnn.selection.question import Question
from fdgnn.selection.scores import (
    SelectionTask,
)
from fdgnn.selection.space import (
    Parameters,
    draw_configurations,
)
from fdgnn.selection.splits import Splitters, check_groups
from fdgnn.texts import agreeing, counted

_WITH_PROBABILITY = "search with FDGNNClassifier(probability=True)"
_RULES: dict[str, Rule] = {
    "n_jobs": Jobs(),
    "n_configurations": Number(1, whole=True, most=MAX_CONFIGURATIONS),
    "n_guesses": Number(1, whole=True, most=MAX_NETWORKS),
}
_OF_A_SEARCH = (
    "n_configurations", "param_distributions", "configurations", "depths", "alphas", "n_guesses",
)  # fmt: skip


class FDGNNSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose hyper-parameters by cross validation, then fit the model on all graphs.

    A configuration is drawn as `n_guesses` networks. They are one model: their outputs are
    averaged, then scored, with one penalty for all. So what is scored is what is fitted at the
    end. All depths come from one pass through the deepest network, all folds and penalties from
    one embedding.

    Parameters
    ----------
    estimator : FDGNNClassifier or FDGNNRegressor, optional
        It has the parameters that are not searched; a classifier by default. With
        ``encoder="auto"`` there is nothing to draw: the members are fixed, each with the penalty
        that validates best, so that configurations, depths, penalties and guesses are refused.
    n_configurations : int, default=20
        How many to draw from `param_distributions`.
    param_distributions : dict, optional
        Lists or SciPy distributions; by default the estimator's own, or else the paper's:
        `effective_spectral_radius`, `input_scaling` and `inter_layer_scaling` uniform in (0, 1).
    configurations : list of dict, optional
        Given configurations, instead of random ones.
    depths : sequence of int, default=(1, 2, 3, 4, 5)
        Depths to try with each configuration: numbers of layers of a reservoir, or numbers of
        rounds of colors (``encoder="colors"``; with "both", rounds are drawn as other parameters).
    alphas : sequence of float, optional
        Penalties to try; by default the paper's, 1e-8 to 1e3 in decades, or for colors those of
        `fdgnn.committee`, which count in units of the features' size.
    n_guesses : int, default=3
        Networks of each configuration.
    cv : int or splitter, default=10
        Folds, in which each graph is held out exactly once.
    outer_cv : int or splitter, optional
        Repeat the selection inside each of so many outer folds, for an honest `nested_score_`;
        the embeddings are shared, so it costs little.
    scoring : str or callable, optional
        "accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1" or "log_loss"; for a
        regressor "r2", "rmse", "mae" or "spearman": all folds and penalties are scored at once.
        Or any other scikit-learn scorer that needs predictions or decision values. Errors count
        negative. By default the estimator's own scoring, or else accuracy, or R2 for a regressor;
        where a class has less than a tenth of the graphs, it is ROC AUC, with a warning.
    random_state : int, optional
    n_jobs : int, optional
        Processes.
    verbose : int, default=0
        1 shows progress.
    work_dir : path, optional
        Each configuration, or member, that is finished is kept there: the same search on the same
        graphs, stopped and started again, goes on where it was. `random_state` has to be given.

    Attributes
    ----------
    best_estimator_ : the fitted model
    best_params_ : dict
    best_score_ : float
        Its cross-validated score. It was chosen as the best, so it is optimistic.
    nested_score_ : float
        With `outer_cv`: mean score on the outer folds of what was selected without them.
    nested_scores_ : (outer_cv,)
    nested_outputs_ : (n_graphs, q)
        With `outer_cv`: each graph's outputs by the model that was selected and fitted without its
        outer fold; NaN where no outer fold tests a graph. `nested_score_by` scores them.
    nested_folds_ : (outer_cv, n_graphs)
        With `outer_cv`: the inner fold of each graph, -1 where the outer fold tests it, and -2
        where it is not used.
    cv_results_ : dict of arrays
        One row for each configuration, depth and penalty; with ``encoder="auto"`` one for each
        member, at its penalty, and `kept` says which are averaged. As in scikit-learn, scores are
        means and standard deviations over the folds of `cv`.
    n_resumed_ : int
        Configurations, or members, that were found in `work_dir`.
    classes_ : array, for a classifier

    Examples
    --------
    >>> from fdgnn import FDGNNSearchCV
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> search = FDGNNSearchCV(n_configurations=2, n_guesses=1, cv=3, random_state=0)
    >>> search.fit(graphs, y).predict(graphs[:2]).shape
    (2,)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_configurations: int = 20,
        param_distributions: Mapping[str, Any] | None = None,
        configurations: Sequence[Mapping[str, Any]] | None = None,
        depths: Sequence[int] = (1, 2, 3, 4, 5),
        alphas: Sequence[float] | None = None,
        n_guesses: int = 3,
        cv: Any = 10,
        outer_cv: Any = None,
        scoring: Any = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        work_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_configurations = n_configurations
        self.param_distributions = param_distributions
        self.configurations = configurations
        self.depths = depths
        self.alphas = alphas
        self.n_guesses = n_guesses
        self.cv = cv
        self.outer_cv = outer_cv
        self.scoring = scoring
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.work_dir = work_dir

    @staticmethod
    def _tell_missing(groups: Any) -> None:
        """Warn of graphs without a group."""
        n_missing = sum(each is None or each != each for each in np.ravel(groups).tolist())
        if n_missing:
            graphs, verb = counted(n_missing, "graph"), agreeing(n_missing, "has", "have")
            warnings.warn(
                f"{graphs} {verb} no group; all such graphs are held out together", stacklevel=3
            )

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Score all configurations, choose the best, and fit it on all graphs.

        Parameters
        ----------
        X : GraphBatch or list of graphs
        y : (n_graphs,), or (n_graphs, n_targets)
            As in the estimator's `fit`. Of several targets the mean of their scores is chosen by.
        sample_weight : (n_graphs,), optional
            How much each graph's error counts in training; graphs of weight 0 are left out.
            Scores count all other graphs alike, as scikit-learn's searches do.
        groups : (n_graphs,), optional
            Graphs of one group are held out together, by `cv` as well as by `outer_cv`. Those
            whose group is None or NaN are one group, and a warning counts them.
        """
        self._check_parameters()
        question, graphs = self._question(), as_batch(X)
        y = question.targets(y, graphs)
        if groups is not None:
            self._tell_missing(groups)
            groups = check_groups(groups, len(y))
        weights = sample_weights(sample_weight, len(y))
        some = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        some &= y.known.any(axis=1) if isinstance(y, SeveralTargets) else True
        if not some.all():
            graphs, y, weights = graphs[some], y[some], None if weights is None else weights[some]
            groups = None if groups is None else groups[some]
        question.tell_rare_class(y)
        task = question.task(graphs, y, weights, groups)
        search = self._search()
        found = search.run(task, self._workplace(task, search.base))
        self.cv_results_, self.best_index_ = found.results, found.best_index
        self.best_params_, self.best_score_ = found.best_params, found.best_score
        self.n_resumed_, self._found = found.n_resumed, found
        if self.outer_cv is not None:
            self._keep_nested(task, found, question.scoring_of(y))
        self.best_estimator_ = found.fitted(graphs, y, weights)
        return self

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit what was chosen on other graphs: for instance on all, after a search on some.

        Members of ``encoder="auto"`` choose anew if they are other ones on so many graphs, or if
        each of several targets has a penalty of its own.
        """
        check_is_fitted(self)
        self.best_estimator_ = self._found.refitted(as_batch(X), y, sample_weight)
        return self

    def _question(self) -> Question:
        splitters = Splitters(self.cv, self.outer_cv, is_classifier(self._base), self.random_state)
        return Question(self._base, self._asked_scoring, self.alphas, splitters)

    @property
    def _asked_scoring(self) -> Any:
        """What is asked for, of the search or else of its estimator."""
        return self._base.scoring if self.scoring is None else self.scoring

    def _search(self) -> ConfigurationSearch | CommitteeSearch:
        """Say what is tried. Reservoirs of a committee take the estimator's seed, or ours."""
        if self._base.encoder != AUTO:
            configurations, depths = self._configurations(), self._depths()
            return ConfigurationSearch(self._base, configurations, depths, self.n_guesses)
        base = clone(self._base)
        if base.random_state is None:
            base.set_params(random_state=integer_seed(seed_sequence(self.random_state), 0))
        return CommitteeSearch(base)

    def _workplace(self, task: SelectionTask, base: Any) -> Workplace:
        """Give the parts of earlier searches that were asked for the same."""
        parameters = {k: v for k, v in base.get_params().items() if k != "n_jobs"}
        about = repr((type(base).__name__, sorted(parameters.items()), self._asked_scoring))
        directory = None if self.work_dir is None else Path(self.work_dir)
        context = Context(self.n_jobs, quiet=not self.verbose)
        return Workplace(context, FinishedParts(directory, task, about))

    def _keep_nested(self, task: SelectionTask, found: Findings, scoring: Scoring) -> None:
        """Keep what was selected without each outer fold, and its scores there."""
        self.nested_folds_ = tested = task.folds[:-1]
        threshold = getattr(self._base, "threshold", None)
        metric = None if threshold is None else OF_CLASSES[threshold].metric
        cuts = None if metric is None else chosen_cuts(task, found.outputs, metric)
        self._nested = NestedAnswers(task.y, tested == TEST, found.outputs, task.several, cuts)
        scores = found.test_scores if cuts is None else self._nested.by_fold(scoring)
        known = scores[~np.isnan(scores)]
        if len(known) == 0:
            raise ValueError(
                "no outer fold can be scored, because each has graphs of one class or value only"
            )
        self.nested_scores_, self.nested_score_ = scores, float(known.mean())
        self.nested_outputs_ = self._nested.last()

    def nested_score_by(self, scoring: str) -> float:
        """Mean over the outer folds of another score of what was selected without them.

        If a threshold was asked for, each outer fold has one of its own, chosen without its graphs.
        """
        check_is_fitted(self, "nested_outputs_")
        return self._nested.score(named_scoring(scoring, is_classifier(self._base)))

    def nested_scores_by_target(self, scoring: str) -> dict[str, float]:
        """The same for each of several targets, by name."""
        check_is_fitted(self, "nested_outputs_")
        each = self._nested.by_target(named_scoring(scoring, is_classifier(self._base)))
        names = [target.name for target in self.best_estimator_.targets_]
        return dict(zip(names, each.tolist(), strict=True))

    @property
    def _base(self) -> Any:
        return FDGNNClassifier() if self.estimator is None else self.estimator

    def _check_parameters(self) -> None:
        check_parameters(self, _RULES)
        if not isinstance(self._base, GraphModel):
            raise ValueError(
                f"estimator={self.estimator!r}: expected an FDGNNClassifier, an FDGNNRegressor or "
                "None"
            )
        self._base.check_parameters()
        outer: Any = self.outer_cv
        splitter = hasattr(outer, "split") and not isinstance(outer, str)
        if not splitter and Number(2, whole=True, optional=True).expected(outer):
            raise ValueError(
                f"outer_cv={outer!r}: expected an integer, at least 2, a splitter or None"
            )
        searched = [*(self.configurations or []), self.param_distributions or {}]
        own_arguments = {self._base.depth_parameter: "depths", "alpha": "alphas"}
        for parameter, argument in own_arguments.items():
            if any(parameter in one for one in searched):
                raise ValueError(f"{parameter} is searched by its own argument; give {argument}=")
        if self.outer_cv is not None and hasattr(self.cv, "__iter__"):
            raise ValueError("outer_cv needs a number or a splitter as cv, not a list of splits")
        for name in ("depths", "alphas", "configurations"):
            if getattr(self, name) is not None and len(getattr(self, name)) == 0:
                raise ValueError(f"{name} is empty: there is nothing to choose from")
        if self._base.encoder == AUTO:
            usual = inspect.signature(type(self)).parameters
            for name in _OF_A_SEARCH:
                if getattr(self, name) != usual[name].default:
                    raise ValueError(
                        f'{name} has no effect with encoder="auto", in which nothing is left to '
                        "search; leave it out, or choose another encoder"
                    )

    def _configurations(self) -> list[Parameters]:
        seeds = seed_sequence(self.random_state)
        if self.configurations is None:
            given = self.param_distributions
            ranges = self._base.search_space if given is None else given
            return draw_configurations(ranges, self.n_configurations, integer_seed(seeds))
        return [
            {"random_state": integer_seed(seeds, c)} | dict(configuration)
            for c, configuration in enumerate(self.configurations)
        ]

    def _depths(self) -> tuple[int, ...]:
        return (1,) if self._base.depth_parameter is None else tuple(sorted(set(self.depths)))

    @property
    def classes_(self) -> Array:
        """The classes, where the model is a classifier."""
        check_is_fitted(self)
        classes: Array = self.best_estimator_.classes_
        return classes

    def predict(self, X: Any, errors: str = "raise") -> Array:
        """Predict with the best model; `errors` is that of its `predict`, here and below."""
        check_is_fitted(self)
        predictions: Array = self.best_estimator_.predict(X, errors)
        return predictions

    @available_if(lambda self: self.estimator is None or is_classifier(self.estimator))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any, errors: str = "raise") -> Floats:
        """Decision values of the best model."""
        check_is_fitted(self)
        values: Floats = self.best_estimator_.decision_function(X, errors)
        return values

    @OfferedIf(lambda self: getattr(self.estimator, "probability", False), _WITH_PROBABILITY)
    def predict_proba(self, X: Any, errors: str = "raise") -> Floats:
        """Probabilities of the best model, where the given estimator has ``probability=True``."""
        check_is_fitted(self)
        probabilities: Floats = self.best_estimator_.predict_proba(X, errors)
        return probabilities

    @OfferedIf(lambda self: getattr(self.estimator, "probability", False), _WITH_PROBABILITY)
    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool = False, errors: str = "raise"
    ) -> Array:
        """Sets of classes of the best model, where the estimator has ``probability=True``."""
        check_is_fitted(self)
        best = self.best_estimator_
        sets: Array = best.predict_set(X, coverage, by_class=by_class, errors=errors)
        return sets

    @OfferedIf(
        lambda self: getattr(self.estimator, "intervals", False),
        "search with FDGNNRegressor(intervals=True)",
    )
    def predict_interval(self, X: Any, coverage: float = 0.9, *, errors: str = "raise") -> Floats:
        """Intervals of the best model, where the estimator has ``intervals=True``."""
        check_is_fitted(self)
        intervals: Floats = self.best_estimator_.predict_interval(X, coverage, errors=errors)
        return intervals

    def score(self, X: Any, y: Any) -> float:
        """Score of the best model by `scoring`."""
        check_is_fitted(self)
        if self.scoring is None:
            return float(self.best_estimator_.score(X, y))
        classify = is_classifier(self._base)
        known = known_scoring(self.scoring, classify) if isinstance(self.scoring, str) else None
        if self.best_estimator_.each_:
            metric = named_scoring(self.scoring, classify).metric
            return float(self.best_estimator_.mean_score(X, y, metric))
        if known is not None:
            truth = np.searchsorted(self.classes_, y) if classify else np.asarray(y, float)
            outputs = self.best_estimator_.outputs(X)
            if known.of_probabilities:
                outputs = outputs + getattr(self.best_estimator_, "threshold_", 0.0)
            return float(known.metric(truth, outputs))
        from sklearn.metrics import check_scoring  # slow to import

        return float(check_scoring(self.best_estimator_, self.scoring)(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags

"""`FDGNNSearchCV`: hyper-parameters for users' own graphs, with any scikit-learn scorer."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import check_scoring
from sklearn.utils import get_tags

from fdgnn.committee import HeldOut
from fdgnn.context import Context
from fdgnn.encoders import GraphKind
from fdgnn.estimators import AUTO, FDGNNClassifier
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.parameters import Jobs, check_parameters
from fdgnn.readout.metrics import Scoring, known_scoring, named_scoring, usual_scoring
from fdgnn.readout.rare import tell_rare_class
from fdgnn.readout.several import SeveralTargets, class_targets, n_columns, number_targets
from fdgnn.readout.targets import check_one_each, class_labels, sample_weights
from fdgnn.scikit import (
    BaseEstimator,
    MetaEstimatorMixin,
    OfferedIf,
    available_if,
    check_is_fitted,
    clone,
    is_classifier,
)
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.committees import MemberOutputs, all_outputs, members, score_committee
from fdgnn.selection.finished import FinishedParts
from fdgnn.selection.folds import TEST
from fdgnn.selection.nested import NestedAnswers, chosen_outputs
from fdgnn.selection.rule import ONE_MODEL, Choice, choose
from fdgnn.selection.scorers import scoring_of
from fdgnn.selection.scores import (
    OutputScores,
    SelectionTask,
    candidates_of,
    classification_task,
    score_candidates,
    score_outputs,
    several_task,
)
from fdgnn.selection.space import (
    ALPHAS,
    Parameters,
    at_depth,
    draw_configurations,
)
from fdgnn.selection.splits import Splitters, check_groups

_WITH_PROBABILITY = "search with FDGNNClassifier(probability=True)"
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
            Graphs of one group are held out together, by `cv` as well as by `outer_cv`.
        """
        self._check_parameters()
        graphs = as_batch(X)
        y = self._targets(y, graphs)
        groups = None if groups is None else check_groups(groups, len(y))
        weights = sample_weights(sample_weight, len(y))
        some = np.ones(len(y), dtype=bool) if weights is None else weights > 0
        some &= y.known.any(axis=1) if isinstance(y, SeveralTargets) else True
        if not some.all():
            graphs, y, weights = graphs[some], y[some], None if weights is None else weights[some]
            groups = None if groups is None else groups[some]
        self._tell_rare_class(y)
        task = self._task(graphs, y, weights, groups)
        if self._base.encoder == AUTO:
            return self._fit_committee(task, y, weights)
        configurations = self._configurations()
        depths = self._depths()
        scores = self._score(task, configurations, depths)
        choice = choose(scores.validation[:, None], scores.test[:, None], ONE_MODEL)
        self._keep_results(scores, choice, configurations, depths, task.alphas)
        if self.outer_cv is not None:
            estimators = [clone(self._base).set_params(**c) for c in configurations]
            outputs = chosen_outputs(task, estimators, depths, choice, self.n_guesses)
            self._keep_nested(task, choice.scores[:-1], outputs)
        self.best_estimator_ = self._chosen_model().fit(graphs, y, weights)
        return self

    def refit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit what was chosen on other graphs: for instance on all, after a search on some.

        Members of ``encoder="auto"`` choose anew if they are other ones on so many graphs, or if
        each of several targets has a penalty of its own.
        """
        check_is_fitted(self)
        graphs = as_batch(X)
        if self._base.encoder == AUTO:
            model = clone(self._committee)
            own = [(m.name, m.recipe) for m in model.members(GraphKind.of(graphs), len(graphs))]
            chosen = None
            if own == self._members and not any(isinstance(p, tuple) for p in self._penalties):
                chosen = [None if p is None else HeldOut(p, None) for p in self._penalties]
            self.best_estimator_ = model.fit(graphs, y, sample_weight, chosen)
        else:
            self.best_estimator_ = self._chosen_model().fit(graphs, y, sample_weight)
        return self

    def _chosen_model(self) -> Any:
        return clone(self._base).set_params(**self.best_params_, n_networks=self.n_guesses)

    def _fit_committee(self, task: SelectionTask, y: Any, weights: Floats | None) -> Self:
        """Score the committee of ``encoder="auto"``, and fit it on all graphs.

        There is nothing to draw: its members are fixed, and each chooses its penalty. Reservoirs
        take the estimator's seed, or else that of the search.
        """
        base = clone(self._base)
        if base.random_state is None:
            base.set_params(random_state=integer_seed(seed_sequence(self.random_state), 0))
        names = [member.name for member in members(task, base)]
        ordered = self._all_outputs(task, base, names)
        scores = score_committee(task, ordered, is_classifier(self._base))
        whole = [float(one.scores[-1]) for one in ordered]
        last = replace(task, folds=task.folds[-1:])  # all graphs: no outer fold is left out
        alone = [score_outputs(last, one.outputs[-1:, None]).deviation for one in ordered]
        penalties = [_plain_penalty(one.penalties[-1]) for one in ordered]
        params = [
            {"member": name, "alpha": alpha} for name, alpha in zip(names, penalties, strict=True)
        ]
        self.cv_results_ = {
            "params": params,
            "param_member": np.array(names),
            "param_alpha": np.array(penalties),
            "kept": scores.kept[-1],
            "mean_test_score": np.array(whole),
            "std_test_score": np.array([float(each[0, 0]) for each in alone]),
            "rank_test_score": rankdata(-np.array(whole), method="min").astype(int),
        }
        self.best_index_ = int(np.argmax(whole))
        self.best_params_ = {"encoder": AUTO, "candidates": self._base.candidates}
        self.best_score_ = float(scores.validation[-1])
        if self.outer_cv is not None:
            self._keep_nested(task, scores.test[:-1], scores.outputs[:-1])
        chosen = [
            HeldOut(alpha, one.outputs[-1]) if keep else None
            for alpha, one, keep in zip(penalties, ordered, scores.kept[-1], strict=True)
        ]
        self._committee = clone(base)
        self._members = [(member.name, member.recipe) for member in members(task, base)]
        self._penalties = [None if one is None else one.penalty for one in chosen]
        self.best_estimator_ = base.fit(task.graphs, y, weights, chosen)
        return self

    def _all_outputs(
        self, task: SelectionTask, base: Any, names: Sequence[str]
    ) -> list[MemberOutputs]:
        """Let all members predict held-out graphs, but those that are finished already."""
        finished = self._finished(task, base)
        known = finished.find(names)
        found = [MemberOutputs(i, p, s, o, float(t)) for i, (p, s, o, t) in known.items()]
        context = Context(self.n_jobs, quiet=not self.verbose)
        left = [i for i in range(len(names)) if i not in known]
        outputs = all_outputs(task, base, left, context.n_jobs)
        for one in context.track(outputs, len(names), "models", done=len(known)):
            finished.keep(names[one.number], [one.penalties, one.scores, one.outputs, one.seconds])
            found.append(one)
        self.n_resumed_ = len(known)
        return sorted(found, key=lambda one: one.number)

    def _finished(self, task: SelectionTask, base: Any) -> FinishedParts:
        """Give the parts of earlier searches that were asked for the same."""
        scoring = self._base.scoring if self.scoring is None else self.scoring
        parameters = {k: v for k, v in base.get_params().items() if k != "n_jobs"}
        about = repr((type(base).__name__, sorted(parameters.items()), scoring))
        return FinishedParts(None if self.work_dir is None else Path(self.work_dir), task, about)

    def _keep_nested(self, task: SelectionTask, scores: Floats, outputs: Floats) -> None:
        """Keep test scores (n_outer,), and outputs (n_outer, n, q) of graphs that are tested."""
        known = scores[~np.isnan(scores)]
        if len(known) == 0:
            raise ValueError(
                "no outer fold can be scored, because each has graphs of one class or value only"
            )
        self.nested_scores_, self.nested_score_ = scores, float(known.mean())
        self.nested_folds_ = task.folds[:-1]
        self._nested = NestedAnswers(task.y, self.nested_folds_ == TEST, outputs, task.several)
        self.nested_outputs_ = self._nested.last()

    def nested_score_by(self, scoring: str) -> float:
        """Mean over the outer folds of another score of what was selected without them."""
        check_is_fitted(self, "nested_outputs_")
        metric = named_scoring(scoring, is_classifier(self._base)).metric
        return self._nested.score(metric)

    def nested_scores_by_target(self, scoring: str) -> dict[str, float]:
        """The same for each of several targets, by name."""
        check_is_fitted(self, "nested_outputs_")
        metric = named_scoring(scoring, is_classifier(self._base)).metric
        names = [target.name for target in self.best_estimator_.targets_]
        return dict(zip(names, self._nested.by_target(metric).tolist(), strict=True))

    @property
    def _base(self) -> Any:
        return FDGNNClassifier() if self.estimator is None else self.estimator

    def _check_parameters(self) -> None:
        check_parameters(self, {"n_jobs": Jobs()})
        for name in ("n_configurations", "n_guesses"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected an integer, at least 1")
        outer: Any = self.outer_cv
        if not (outer is None or hasattr(outer, "split")) and (outer < 2 or outer != int(outer)):
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

    def _targets(self, y: Any, graphs: GraphBatch) -> Any:
        """Give one target as an array, and several as such, all of them checked."""
        classify, width = is_classifier(self._base), n_columns(y)
        if width is not None and (width > 1 or not classify):
            several = class_targets(y, graphs) if classify else number_targets(y, graphs)
            several.check_learnable()
            return several
        y = np.asarray(y)
        check_one_each(graphs, y)
        return y

    def _tell_rare_class(self, y: Any) -> None:
        if self.scoring is None and self._base.scoring is None and is_classifier(self._base):
            if isinstance(y, SeveralTargets):
                y.tell_rare_class(stacklevel=5)
            else:
                tell_rare_class(y, stacklevel=4)

    def _task(
        self, graphs: GraphBatch, y: Any, weights: Floats | None, groups: Array | None
    ) -> SelectionTask:
        classify, several = is_classifier(self._base), isinstance(y, SeveralTargets)
        if classify and not several:
            y = class_labels(y, graphs)
            class_weight = getattr(self._base, "class_weight", None)
            weights = sample_weights(weights, len(y), y, class_weight)
        relative = self._base.relative_penalty
        usual = self._base.penalties(len(graphs)) if relative else ALPHAS
        alphas = np.array(usual if self.alphas is None else self.alphas, dtype=np.float64)
        if not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ValueError(f"alphas={self.alphas!r}: expected finite numbers, at least 0")
        splitters = Splitters(self.cv, self.outer_cv, classify, self.random_state)
        folds = splitters.rows(y, groups)
        metric = self._scoring(y).metric
        if several:
            class_weight = getattr(self._base, "class_weight", None)
            task = several_task(graphs, y, folds, alphas, metric)
            return replace(task, weights=y.weights(weights, class_weight))
        if classify:
            task = classification_task(graphs, y, folds, alphas, metric)
            return replace(task, weights=weights)
        targets = y.astype(np.float64).reshape(len(y), -1)
        return SelectionTask(graphs, targets, y, folds, alphas, metric, weights)

    def _scoring(self, y: Any) -> Scoring:
        """What is asked for, of the search or else of its estimator; or the usual."""
        given = self._base.scoring if self.scoring is None else self.scoring
        if isinstance(y, SeveralTargets):
            codes = y.rarest()
            return (
                usual_scoring(codes) if given is None else named_scoring(given, codes is not None)
            )
        if not is_classifier(self._base):
            return scoring_of(given, None, None)
        classes, codes = np.unique(y, return_inverse=True)
        return scoring_of(given, codes, classes)

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

    def _score(
        self, task: SelectionTask, configurations: list[Parameters], depths: tuple[int, ...]
    ) -> OutputScores:
        """Score all configurations; each part is (configurations, depths, n_outer, alphas)."""
        context = Context(self.n_jobs, quiet=not self.verbose)
        estimators = [clone(self._base).set_params(**c) for c in configurations]
        candidates = candidates_of(
            estimators, [depths] * len(estimators), self.n_guesses, ONE_MODEL
        )
        finished = self._finished(task, self._base)
        names = [repr((configurations[c.configuration], c.depths, c.guesses)) for c in candidates]
        known = finished.find(names)
        scores = {i: OutputScores(*arrays) for i, arrays in known.items()}
        left = [c for i, c in enumerate(candidates) if i not in known]
        found = score_candidates(task, left, context.n_jobs)
        for one in context.track(found, len(candidates), "configurations", done=len(known)):
            finished.keep(names[one.configuration], one.scores)
            scores[one.configuration] = one.scores
        self.n_resumed_ = len(known)
        parts = zip(*(scores[c] for c in range(len(candidates))), strict=True)
        return OutputScores(*(np.array(part) for part in parts))

    def _keep_results(
        self, scores: OutputScores, choice: Choice, configurations: list[Parameters],
        depths: Sequence[int], alphas: Floats,
    ) -> None:  # fmt: skip
        """Keep what cross validation on all graphs found: the last row of folds."""
        mean, deviation = scores.validation[:, :, -1], scores.deviation[:, :, -1]
        rows = list(np.ndindex(mean.shape))
        params = [
            configurations[c] | at_depth(self._base, depths[d]) | {"alpha": float(alphas[a])}
            for c, d, a in rows
        ]
        names = dict.fromkeys(name for p in params for name in p)
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([p.get(name) for p in params]) for name in names},
            "mean_test_score": mean.ravel(),
            "std_test_score": deviation.ravel(),
            "rank_test_score": rankdata(-mean.ravel(), method="min").astype(int),
        }
        best = (choice.configurations[-1], choice.depths[-1], choice.penalties[-1, 0])
        self.best_index_ = rows.index(best)
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(mean[best])

    @property
    def classes_(self) -> Array:
        """The classes, where the model is a classifier."""
        check_is_fitted(self)
        classes: Array = self.best_estimator_.classes_
        return classes

    def predict(self, X: Any) -> Array:
        """Predict with the best model."""
        check_is_fitted(self)
        predictions: Array = self.best_estimator_.predict(X)
        return predictions

    @available_if(lambda self: self.estimator is None or is_classifier(self.estimator))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Decision values of the best model."""
        check_is_fitted(self)
        values: Floats = self.best_estimator_.decision_function(X)
        return values

    @OfferedIf(lambda self: getattr(self.estimator, "probability", False), _WITH_PROBABILITY)
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the best model, where the given estimator has ``probability=True``."""
        check_is_fitted(self)
        probabilities: Floats = self.best_estimator_.predict_proba(X)
        return probabilities

    @OfferedIf(lambda self: getattr(self.estimator, "probability", False), _WITH_PROBABILITY)
    def predict_set(self, X: Any, coverage: float = 0.9, *, by_class: bool = False) -> Array:
        """Sets of classes of the best model, where the estimator has ``probability=True``."""
        check_is_fitted(self)
        sets: Array = self.best_estimator_.predict_set(X, coverage, by_class=by_class)
        return sets

    @OfferedIf(
        lambda self: getattr(self.estimator, "intervals", False),
        "search with FDGNNRegressor(intervals=True)",
    )
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Intervals of the best model, where the estimator has ``intervals=True``."""
        check_is_fitted(self)
        intervals: Floats = self.best_estimator_.predict_interval(X, coverage)
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
            return float(known.metric(truth, self.best_estimator_.outputs(X)))
        return float(check_scoring(self.best_estimator_, self.scoring)(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _plain_penalty(penalty: Any) -> Any:
    """A penalty as a number, or as a tuple with one for each of several targets."""
    return tuple(penalty.tolist()) if np.ndim(penalty) else float(penalty)

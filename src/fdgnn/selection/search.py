"""`FDGNNSearchCV`: hyper-parameters for users' own graphs, with any scikit-learn scorer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fdgnn._base import check_one_each, class_labels
from fdgnn.estimators import FDGNNClassifier
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.progress import track
from fdgnn.readout.coding import code_classes, winning_class
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.selection.scores import (
    ALPHAS,
    PAPER_RANGES,
    Folds,
    Metric,
    Task,
    Unit,
    accuracy,
    best_of,
    draw_configurations,
    score_networks,
)


class FDGNNSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose an FDGNN's hyper-parameters by cross validation; then fit it on all graphs.

    Every configuration is drawn as `n_guesses` networks whose scores are averaged. All depths
    come from one pass through the deepest network, all folds and penalties from one embedding.

    Parameters
    ----------
    estimator : FDGNNClassifier or FDGNNRegressor, optional
        Parameters that are not searched are taken from it; a classifier by default.
    n_configurations : int, default=20
        How many to draw from `param_distributions`.
    param_distributions : dict, optional
        Of lists or SciPy distributions; by default the paper's: `effective_spectral_radius`,
        `input_scaling` and `inter_layer_scaling` uniform in (0, 1).
    configurations : list of dict, optional
        Given configurations, instead of random ones.
    depths : sequence of int, default=(1, 2, 3, 4, 5)
        Numbers of layers to try with each configuration.
    alphas : sequence of float, optional
        Penalties to try; by default the paper's, 1e-8 to 1e3 in decades.
    n_guesses : int, default=3
        Networks drawn for each configuration; the fitted model averages as many.
    cv : int or splitter, default=10
        Folds, in which each graph is held out exactly once.
    outer_cv : int, optional
        Repeat the selection inside each of so many outer folds, for an honest `nested_score_`;
        the embeddings are shared, so it costs little.
    scoring : str or callable, optional
        Any scikit-learn scorer that needs predictions or decision values; by default accuracy,
        or R2 for a regressor.
    random_state : int, optional
    n_jobs : int, optional
        Processes.
    verbose : int, default=0
        1 shows progress.

    Attributes
    ----------
    best_estimator_ : the fitted model
    best_params_ : dict
    best_score_ : float
        Its cross-validated score. It was chosen as the best, so it flatters.
    nested_score_ : float
        With `outer_cv`: mean score on the outer folds of what was selected without them.
    nested_scores_ : (outer_cv,)
    cv_results_ : dict of arrays
        One row for each configuration, depth and penalty; scores are means and standard
        deviations over guesses.
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
        outer_cv: int | None = None,
        scoring: Any = None,
        random_state: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
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

    def fit(self, X: Any, y: Any) -> Self:
        """Score all networks, choose the best configuration, and fit it on all graphs."""
        self._check_parameters()
        base = FDGNNClassifier() if self.estimator is None else self.estimator
        graphs = as_batch(X)
        task = self._task(base, graphs, np.asarray(y))
        configurations = self._configurations()
        depths = tuple(sorted(set(self.depths)))
        units = [
            Unit(c, g, clone(base).set_params(**configuration), depths)
            for c, configuration in enumerate(configurations)
            for g in range(self.n_guesses)
        ]
        shape = (
            len(configurations),
            self.n_guesses,
            len(depths),
            len(task.folds),
            len(task.alphas),
        )
        validation, test = np.empty(shape), np.empty(shape)
        finished = score_networks(task, units, self.n_jobs)
        for record in track(finished, len(units), "networks", quiet=not self.verbose):
            validation[record.configuration, record.guess] = record.validation
            test[record.configuration, record.guess] = record.test
        self._keep_results(validation[..., -1, :], configurations, depths, task.alphas)
        if self.outer_cv is not None:
            self._keep_nested_scores(validation.mean(axis=1), test.mean(axis=1))
        self.best_estimator_ = clone(base).set_params(
            **self.best_params_, n_networks=self.n_guesses
        )
        self.best_estimator_.fit(graphs, y)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_configurations", "n_guesses"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected an integer, at least 1")
        if self.outer_cv is not None and (self.outer_cv < 2 or self.outer_cv != int(self.outer_cv)):
            raise ValueError(
                f"outer_cv={self.outer_cv!r}: expected an integer, at least 2, or None"
            )
        searched = [*(self.configurations or []), self.param_distributions or {}]
        for name, instead in (("n_layers", "depths"), ("alpha", "alphas")):
            if any(name in one for one in searched):
                raise ValueError(f"{name} is searched by its own argument; give {instead}=")
        if self.outer_cv is not None and hasattr(self.cv, "__iter__"):
            raise ValueError("outer_cv needs a number or a splitter as cv, not a list of splits")
        for name in ("depths", "alphas", "configurations"):
            if getattr(self, name) is not None and len(getattr(self, name)) == 0:
                raise ValueError(f"{name} is empty: there is nothing to choose from")

    def _task(self, base: Any, graphs: GraphBatch, y: Array) -> Task:
        if is_classifier(base):
            y = class_labels(y, graphs)
        check_one_each(graphs, y)
        alphas = np.array(ALPHAS if self.alphas is None else self.alphas, dtype=np.float64)
        if not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ValueError(f"alphas={self.alphas!r}: expected finite numbers, at least 0")
        cv = check_cv(self.cv, y, classifier=is_classifier(base))
        if is_classifier(base):
            classes, targets = code_classes(y)
            numbers = np.searchsorted(classes, y)
        else:
            classes, targets, numbers = None, y.astype(np.float64).reshape(len(y), -1), y
        if self.scoring is None and is_classifier(base):
            metric: Metric = accuracy
        else:
            metric = scorer_metric(self.scoring or "r2", classes)
        folds = [*self._nested_folds(is_classifier(base), y), _held_out_once(cv, y)]
        return Task(graphs, targets, numbers, np.array(folds), alphas, metric)

    def _nested_folds(self, stratified: bool, y: Array) -> list[Folds]:
        """Rows of folds as in `Task`, one for each outer fold."""
        if self.outer_cv is None:
            return []
        seed = integer_seed(seed_sequence(self.random_state), 0)
        splitter = StratifiedKFold if stratified else KFold
        rows = []
        for train, _ in splitter(self.outer_cv, shuffle=True, random_state=seed).split(y, y):
            row = np.full(len(y), -1)
            inner = check_cv(self.cv, y[train], classifier=stratified)
            row[train] = _held_out_once(inner, y[train])
            rows.append(row)
        return rows

    def _keep_nested_scores(self, validation: Floats, test: Floats) -> None:
        """Select in each outer fold without its test graphs; (configurations, depths, o, a)."""
        outer = range(validation.shape[2] - 1)
        chosen = [best_of(validation[:, :, o]) for o in outer]
        scores = [test[c, d, o, a] for o, (c, d, a) in zip(outer, chosen, strict=True)]
        self.nested_scores_ = np.array(scores)
        self.nested_score_ = float(np.mean(scores))

    def _configurations(self) -> list[dict[str, Any]]:
        if self.configurations is None:
            seed = integer_seed(seed_sequence(self.random_state))
            given = self.param_distributions
            ranges = PAPER_RANGES if given is None else given
            return draw_configurations(ranges, self.n_configurations, seed)
        seeds = seed_sequence(self.random_state)
        return [
            {"random_state": integer_seed(seeds, c)} | dict(configuration)
            for c, configuration in enumerate(self.configurations)
        ]

    def _keep_results(
        self, scores: Floats, configurations: list[dict[str, Any]], depths: Sequence[int],
        alphas: Floats,
    ) -> None:  # fmt: skip
        mean = scores.mean(axis=1)  # (configurations, depths, alphas)
        rows = list(np.ndindex(mean.shape))
        params = [
            configurations[c] | {"n_layers": depths[d], "alpha": float(alphas[a])}
            for c, d, a in rows
        ]
        names = dict.fromkeys(name for p in params for name in p)
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([p.get(name) for p in params]) for name in names},
            "mean_test_score": mean.ravel(),
            "std_test_score": scores.std(axis=1).ravel(),
            "rank_test_score": rankdata(-mean.ravel(), method="min").astype(int),
        }
        self.best_index_ = rows.index(best_of(mean))
        self.best_params_ = params[self.best_index_]
        self.best_score_ = float(mean.ravel()[self.best_index_])

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

    @available_if(lambda self: getattr(self.estimator, "probability", False))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the best model, where the given estimator has ``probability=True``."""
        check_is_fitted(self)
        probabilities: Floats = self.best_estimator_.predict_proba(X)
        return probabilities

    def score(self, X: Any, y: Any) -> float:
        """Score of the best model by `scoring`."""
        check_is_fitted(self)
        if self.scoring is None:
            return float(self.best_estimator_.score(X, y))
        return float(check_scoring(self.best_estimator_, self.scoring)(self.best_estimator_, X, y))

    def __sklearn_tags__(self) -> Any:
        base = FDGNNClassifier() if self.estimator is None else self.estimator
        tags = super().__sklearn_tags__()
        inner = get_tags(base)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        return tags


def _held_out_once(cv: Any, y: Array) -> Folds:
    """Fold of each sample, for a splitter that holds each sample out exactly once."""
    fold = np.full(len(y), -1)
    for f, (train, held_out) in enumerate(cv.split(np.zeros(len(y)), y)):
        if len(np.union1d(train, held_out)) < len(y) or len(np.intersect1d(train, held_out)):
            raise ValueError("cv must train on all graphs that it does not hold out")
        if (fold[held_out] >= 0).any():
            raise ValueError("cv holds some graphs out more than once; use a k-fold splitter")
        fold[held_out] = f
    if (fold < 0).any():
        raise ValueError("cv never holds out some graphs; use a k-fold splitter")
    return fold


# ---------------------------------------------------------------------- scikit-learn's scorers


def scorer_metric(scoring: Any, classes: Array | None) -> Metric:
    """Make a metric on outputs from a scikit-learn scorer, by replaying the outputs to it."""
    scorer = get_scorer(scoring)
    replay = _ReplayedRegressor() if classes is None else _ReplayedClassifier(classes)

    def metric(y: Array, outputs: Floats) -> Floats:
        truth = y if classes is None else classes[y]
        flat = outputs.reshape(-1, *outputs.shape[-2:])
        try:
            scores = [scorer(replay, o, truth) for o in flat]
        except AttributeError:
            raise ValueError(
                f"scoring={scoring!r} needs probabilities; choose one that works from predictions "
                "or decision values, such as accuracy, balanced_accuracy, f1_macro or roc_auc"
            ) from None
        return np.array(scores).reshape(outputs.shape[:-2])

    return metric


class _ReplayedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor whose predictions are its input."""

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Floats) -> Floats:
        return X[:, 0] if X.shape[1] == 1 else X


class _ReplayedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier whose decision values are its input."""

    def __init__(self, classes: Array) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        return self

    @property
    def classes_(self) -> Array:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: Floats) -> Array:
        return self.classes[winning_class(X)]

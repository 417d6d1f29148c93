"""Choosing hyper-parameters: embed once, select many.

Reservoirs are untrained, so one embedding of a network serves every fold and every penalty; the
readouts of all folds and penalties come from one closed form (`fdgnn.ridge`). A *network* here is
a configuration (any parameters of the estimator) and a guess (the number of its random draw).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import joblib
import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, uniform
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    clone,
    is_classifier,
)
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import ParameterSampler, StratifiedKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import ThreadpoolController

from fdgnn._base import check_classes, check_one_each
from fdgnn.converters import as_batch
from fdgnn.estimators import FDGNNClassifier
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.progress import track
from fdgnn.readout import code_classes, winning_class
from fdgnn.reservoir import child_seed, seed_sequence
from fdgnn.ridge import held_out_predictions

Folds = npt.NDArray[np.int64]
Metric = Callable[[Array, Floats], Floats]  # (y (m,), outputs (..., m, q)) -> (...,)

ALPHAS: tuple[float, ...] = tuple(10.0**e for e in range(-8, 4))  # the paper's grid of lambda
PAPER_RANGES: dict[str, Any] = {
    "effective_spectral_radius": uniform(0, 1),
    "input_scaling": uniform(0, 1),
    "inter_layer_scaling": uniform(0, 1),
}


# ---------------------------------------------------------------------- folds


def nested_folds(y: Array, n_outer: int, n_inner: int, seed: int) -> Folds:
    """Stratified, shuffled folds of folds.

    Returns
    -------
    (n_outer, n) int64
        Row o: the inner fold of each training sample of outer fold o, -1 for its test samples.
    """
    _check_members(y, n_outer, n_inner)
    folds = np.full((n_outer, len(y)), -1)
    outer = StratifiedKFold(n_outer, shuffle=True, random_state=seed)
    for o, (train, _) in enumerate(outer.split(y, y)):
        inner = StratifiedKFold(n_inner, shuffle=True, random_state=seed + 1 + o)
        for f, (_, members) in enumerate(inner.split(train, y[train])):
            folds[o, train[members]] = f
    return folds


def _check_members(y: Array, n_outer: int, n_inner: int) -> None:
    """Every class must reach every outer fold, and every inner fold of what is left."""
    classes, counts = np.unique(y, return_counts=True)
    fewest = int(counts.min())
    left = fewest - -(-fewest // n_outer)
    if fewest < n_outer or left < n_inner:
        raise ValueError(
            f"class {classes[counts.argmin()]!s} has {fewest} graphs, too few for {n_outer} outer "
            f"and {n_inner} inner stratified folds; use fewer folds or more graphs"
        )


# ---------------------------------------------------------------------- one network


@dataclass(frozen=True)
class Task:
    """What every network of a search is scored on."""

    graphs: GraphBatch
    targets: Floats  # (n, q), -1/+1 coded or real
    y: Array  # (n,) class numbers, or the real targets
    folds: Folds  # (n_outer, n)
    alphas: Floats  # (a,)
    metric: Metric


def score_network(
    task: Task, estimator: Any, guess: int, depths: Sequence[int]
) -> tuple[Floats, Floats]:
    """Score one network at several depths, on all folds and penalties.

    Returns
    -------
    validation, test : (n_depths, n_outer, n_alphas)
        Mean score of the inner folds, and score on the outer fold's test samples (NaN where an
        outer fold has none).
    """
    # Held to one thread: processes run side by side, and sums keep their order.
    with _threadpools().limit(limits=1, user_api="blas"):
        features = estimator.network_features(task.graphs, guess, depths)
        scores = [score_features(task, X) for X in features]
    validation, test = (np.array(part) for part in zip(*scores, strict=True))
    return validation, test


def score_features(task: Task, X: Floats) -> tuple[Floats, Floats]:
    """Validation and test scores, (n_outer, n_alphas), of readouts on features X (n, P)."""
    scores = [_score_fold(task, X, fold) for fold in task.folds]
    validation, test = (np.array(part) for part in zip(*scores, strict=True))
    return validation, test


@functools.cache
def _threadpools() -> ThreadpoolController:
    return ThreadpoolController()  # finding the libraries takes milliseconds, so once a process


def _score_fold(task: Task, X: Floats, fold: Folds) -> tuple[Floats, Floats]:
    outputs = held_out_predictions(X, task.targets, task.alphas, fold)  # (a, n, q)
    by_fold = [task.metric(task.y[fold == f], outputs[:, fold == f]) for f in range(fold.max() + 1)]
    test = fold < 0
    if not test.any():
        return np.mean(by_fold, axis=0), np.full(len(task.alphas), np.nan)
    return np.mean(by_fold, axis=0), task.metric(task.y[test], outputs[:, test])


def accuracy(y: Array, outputs: Floats) -> Floats:
    """Share of graphs whose winning class is theirs."""
    return np.asarray((winning_class(outputs) == y).mean(axis=-1))


# ---------------------------------------------------------------------- many networks


@dataclass(frozen=True)
class NetworkScores:
    """What became of one network: where it belongs, its scores, and the seconds it took."""

    configuration: int
    guess: int
    validation: Floats  # (n_depths, n_outer, n_alphas)
    test: Floats
    seconds: float


@dataclass(frozen=True)
class Unit:
    """One network to be scored: an estimator with its configuration set, and a guess."""

    configuration: int
    guess: int
    estimator: Any
    depths: tuple[int, ...]


def score_networks(
    task: Task, units: Iterable[Unit], n_jobs: int | None = None
) -> Iterator[NetworkScores]:
    """Score many networks on joblib's current backend, in whatever order they finish."""
    _ = task.graphs.spectral_radii  # and with them the quotients: computed once, sent along
    parallel = joblib.Parallel(
        n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
    )
    scores: Iterator[NetworkScores] = parallel(joblib.delayed(_run_unit)(task, u) for u in units)
    return scores


def _run_unit(task: Task, unit: Unit) -> NetworkScores:
    start = time.perf_counter()
    validation, test = score_network(task, unit.estimator, unit.guess, unit.depths)
    seconds = time.perf_counter() - start
    return NetworkScores(unit.configuration, unit.guess, validation, test, seconds)


def draw_configurations(
    distributions: Mapping[str, Any], n_configurations: int, seed: int
) -> list[dict[str, Any]]:
    """Draw configurations at random, each with the seed of its own networks.

    Configuration c depends on `seed` and c only, so a longer search contains a shorter one.
    """
    root = seed_sequence(seed)
    return [
        next(iter(ParameterSampler(distributions, 1, random_state=_integer_seed(root, c, 0))))
        | {"random_state": _integer_seed(root, c, 1)}
        for c in range(n_configurations)
    ]


def _integer_seed(root: np.random.SeedSequence, *key: int) -> int:
    return int(child_seed(root, *key).generate_state(1)[0])


def best_of(validation: Floats) -> tuple[int, ...]:
    """Position of the best score in (configurations, depths, alphas).

    Among equals the shallowest network wins, then the strongest penalty, then the first drawn.
    """
    by_simplicity = validation.transpose(1, 2, 0)[:, ::-1]  # depths, alphas from large, drawn
    d, a, c = np.unravel_index(np.argmax(by_simplicity), by_simplicity.shape)
    return int(c), int(d), validation.shape[2] - 1 - int(a)


# ---------------------------------------------------------------------- the search for users


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
        Its cross-validated score. It was chosen as the best, so it flatters; `fdgnn evaluate`
        gives the honest, nested estimate.
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
        scores = np.empty((len(configurations), self.n_guesses, len(depths), len(task.alphas)))
        finished = score_networks(task, units, self.n_jobs)
        for record in track(finished, len(units), "networks", quiet=not self.verbose):
            scores[record.configuration, record.guess] = record.validation[:, 0]
        self._keep_results(scores, configurations, depths, task.alphas)
        self.best_estimator_ = clone(base).set_params(
            **self.best_params_, n_networks=self.n_guesses
        )
        self.best_estimator_.fit(graphs, y)
        return self

    def _check_parameters(self) -> None:
        for name in ("n_configurations", "n_guesses"):
            if not isinstance(getattr(self, name), Integral) or getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected an integer, at least 1")
        for name in ("depths", "alphas", "configurations"):
            if getattr(self, name) is not None and len(getattr(self, name)) == 0:
                raise ValueError(f"{name} is empty: there is nothing to choose from")

    def _task(self, base: Any, graphs: GraphBatch, y: Array) -> Task:
        check_one_each(graphs, y)
        alphas = np.array(ALPHAS if self.alphas is None else self.alphas, dtype=np.float64)
        cv = check_cv(self.cv, y, classifier=is_classifier(base))
        if is_classifier(base):
            classes, targets = code_classes(check_classes(y))
            numbers = np.searchsorted(classes, y)
        else:
            classes, targets, numbers = None, y.astype(np.float64).reshape(len(y), -1), y
        if self.scoring is None and is_classifier(base):
            metric: Metric = accuracy
        else:
            metric = scorer_metric(self.scoring or "r2", classes)
        return Task(graphs, targets, numbers, _held_out_once(cv, y)[None], alphas, metric)

    def _configurations(self) -> list[dict[str, Any]]:
        if self.configurations is None:
            seed = _integer_seed(seed_sequence(self.random_state))
            ranges = self.param_distributions or PAPER_RANGES
            return draw_configurations(ranges, self.n_configurations, seed)
        seeds = seed_sequence(self.random_state)
        return [
            {"random_state": _integer_seed(seeds, c)} | dict(configuration)
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
        self.cv_results_ = {
            "params": params,
            **{f"param_{name}": np.array([p[name] for p in params]) for name in params[0]},
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
    for f, (_, held_out) in enumerate(cv.split(np.zeros(len(y)), y)):
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
        return np.array([scorer(replay, o, truth) for o in flat]).reshape(outputs.shape[:-2])

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

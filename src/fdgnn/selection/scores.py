"""Choosing hyper-parameters: embed once, select many.

Reservoirs are untrained, so one embedding of a network serves every fold and every penalty; the
readouts of all folds and penalties come from one closed form (`fdgnn.readout.ridge`). A *network*
here is a configuration (any parameters of the estimator) and a guess (the number of its random
draw).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt
from scipy.stats import uniform
from sklearn.model_selection import ParameterSampler, StratifiedKFold
from threadpoolctl import ThreadpoolController

from fdgnn._base import check_two_classes
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.readout.coding import winning_class
from fdgnn.readout.ridge import fit_ridge, held_out_predictions
from fdgnn.seeds import integer_seed, seed_sequence

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
    if min(n_outer, n_inner) < 2:
        raise ValueError(
            f"{n_outer} outer and {n_inner} inner folds: at least 2 of each are needed"
        )
    check_two_classes(y)
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


# ---------------------------------------------------------------------- one fold, timed


MOST_REPETITIONS = 5
ENOUGH_SECONDS = 0.5


@dataclass(frozen=True)
class Trained:
    """How a model did that was trained on an outer fold's training graphs."""

    model: Any
    accuracy: float
    train_seconds: float
    test_seconds: float


def fit_and_test(
    make: Callable[[], Any],
    graphs: GraphBatch,
    y: Array,
    fold: Folds,
    prepare: Callable[[GraphBatch], Any] = lambda graphs: graphs,
) -> Trained:
    """Train on the graphs whose `fold` is not negative, test on the others (the paper's Table 3).

    `prepare` brings graphs into the model's own form, which the clock does not count. BLAS has one
    thread. Work of milliseconds is repeated, and the median counts: a single look may be at the
    wrong moment.
    """
    times: list[tuple[float, float]] = []
    while len(times) < MOST_REPETITIONS and np.sum(times) < ENOUGH_SECONDS:
        train, test = prepare(graphs[fold >= 0]), prepare(graphs[fold < 0])  # nothing cached yet
        with _threadpools().limit(limits=1, user_api="blas"):
            start = time.perf_counter()
            model = make().fit(train, y[fold >= 0])
            middle = time.perf_counter()
            predicted = model.predict(test)
            times.append((middle - start, time.perf_counter() - middle))
    train_seconds, test_seconds = np.median(times, axis=0).tolist()
    correct = float(np.mean(predicted == y[fold < 0]))
    return Trained(model, correct, train_seconds, test_seconds)


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
    units = list(units)
    if units and joblib.effective_n_jobs(n_jobs) > 1:
        # Compiled here, kernels are in numba's cache when the processes look for them.
        units[0].estimator.network_features(task.graphs[:1], 0, (1,))
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


@dataclass(frozen=True)
class Ensemble:
    """All guesses of one configuration, for the outer folds that chose it."""

    estimator: Any  # with its configuration and depth set
    penalties: dict[int, list[float]]  # outer fold: alpha of each guess


def score_ensembles(
    task: Task, ensembles: Sequence[Ensemble], n_jobs: int | None = None
) -> Iterator[dict[int, float]]:
    """Test scores by outer fold, of outputs averaged over guesses; in whatever order they come."""
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    scores: Iterator[dict[int, float]] = parallel(
        joblib.delayed(_score_ensemble)(task, ensemble) for ensemble in ensembles
    )
    return scores


def _score_ensemble(task: Task, ensemble: Ensemble) -> dict[int, float]:
    depth = ensemble.estimator.n_layers
    outputs: dict[int, list[Floats]] = {o: [] for o in ensemble.penalties}
    with _threadpools().limit(limits=1, user_api="blas"):
        for guess in range(len(next(iter(ensemble.penalties.values())))):
            (X,) = ensemble.estimator.network_features(task.graphs, guess, (depth,))
            for o, alphas in ensemble.penalties.items():
                train, test = task.folds[o] >= 0, task.folds[o] < 0
                coef, intercept = fit_ridge(X[train], task.targets[train], alphas[guess])
                outputs[o].append(X[test] @ coef.T + intercept)
    return {
        o: float(task.metric(task.y[task.folds[o] < 0], np.mean(each, axis=0)))
        for o, each in outputs.items()
    }


def draw_configurations(
    distributions: Mapping[str, Any], n_configurations: int, seed: int
) -> list[dict[str, Any]]:
    """Draw configurations at random, each with the seed of its own networks.

    Configuration c depends on `seed` and c only, so a longer search contains a shorter one.
    """
    root = seed_sequence(seed)
    drawn = (
        next(iter(ParameterSampler(distributions, 1, random_state=integer_seed(root, c, 0))))
        for c in range(n_configurations)
    )
    return [
        {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in d.items()
        }
        | {"random_state": integer_seed(root, c, 1)}
        for c, d in enumerate(drawn)
    ]


def best_of(validation: Floats) -> tuple[int, ...]:
    """Position of the best score in (configurations, depths, alphas).

    Among equals the shallowest network wins, then the strongest penalty, then the first drawn.
    """
    by_simplicity = validation.transpose(1, 2, 0)[:, ::-1]  # depths, alphas from large, drawn
    d, a, c = np.unravel_index(np.argmax(by_simplicity), by_simplicity.shape)
    return int(c), int(d), validation.shape[2] - 1 - int(a)

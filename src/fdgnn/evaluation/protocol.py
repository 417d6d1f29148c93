"""The paper's protocol: random configurations of the reservoir in nested cross-validation.

1. Each random initialization of each configuration is scored in all inner and outer folds, by one
   fit. What is finished is a checkpoint: a run can be stopped, resumed, and extended by further
   configurations or random initializations.
2. Each outer fold selects the configuration with the best validation score, averaged over its
   random initializations, each of which has the alpha that validates best for it (decision 6). Test
   scores play no part. The same reservoirs, cut after their first layer, give a second choice; one
   alpha for all random initializations of a configuration gives a third.
3. Of what was selected, the outputs of all random initializations are averaged and scored, and the
   first random initialization is trained and tested against the clock (Table 3).
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context, connected
from fdgnn.encoders import GraphKind, GraphReservoir
from fdgnn.estimators import FDGNNClassifier
from fdgnn.evaluation import paper
from fdgnn.evaluation.record import (
    Configuration,
    Durations,
    Evaluation,
    ModelDescription,
    TriedConfiguration,
)
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask
from fdgnn.evaluation.scores import (
    TITLES,
    baselines_of,
    metric_scores,
    n_trained_weights,
    provenance,
    published_score,
    target_scores,
)
from fdgnn.exceptions import ConvergenceWarning, StudyError
from fdgnn.fitting import BaseModel, FitTask, draw_features, fit_depths
from fdgnn.folds import TEST, Folds, trained_on
from fdgnn.graphs import GraphBatch
from fdgnn.linear import Ridge
from fdgnn.metrics import OF_CLASSES, accuracy
from fdgnn.records import cached_property
from fdgnn.seeds import seed_sequence
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.selection.search import draw_configurations
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel

#: Raised by one when kernels, seeds or the readout change scores: checkpoints of another number are
#: not used.
ENGINE = 5

MOST_REPETITIONS = 5  # of what is timed
ENOUGH_SECONDS = 0.5
WARM_GRAPHS = 100  # on which models are tried before they are timed


@dataclass(frozen=True)
class Protocol:
    """The size of a search, by name.

    Attributes
    ----------
    name : str
    n_configurations, n_initializations : int
        Random configurations, and random initializations of each.
    max_layers : int
        Depths are drawn from 1 to this.
    """

    name: str
    n_configurations: int
    n_initializations: int
    max_layers: int = 5


PROTOCOLS = {
    "paper": Protocol("paper", n_configurations=100, n_initializations=20),
    "quick": Protocol("quick", n_configurations=20, n_initializations=3),
}


def drawn_configurations(max_layers: int, seed: int, n_configurations: int) -> list[Configuration]:
    """Draw random configurations; a longer list begins with a shorter one."""
    space = {**GraphReservoir.search_space(), "n_layers": list(range(1, max_layers + 1))}
    drawn = draw_configurations(space, n_configurations, seed)
    return [params | {"random_state": own_seed} for own_seed, params in drawn]


@dataclass(frozen=True, eq=False)
class PaperEvaluation:
    """The paper's model, evaluated by the paper's protocol.

    Attributes
    ----------
    task : EvaluationTask
        Of one classification.
    protocol : Protocol
    n_units : int, optional
        Neurons of each layer; by default the paper's for its datasets, and 50 for others.
    cluster : str, optional
        Address of a Dask scheduler, or "local" to start one.
    """

    task: EvaluationTask
    protocol: Protocol = PROTOCOLS["quick"]
    n_units: int | None = None
    cluster: str | None = None

    # ------------------------------------------------------------------ what is evaluated

    @property
    def units(self) -> int:
        """Neurons of each layer."""
        facts = paper.DATASETS.get(self.task.dataset)
        return self.n_units or (facts.n_units if facts else 50)

    @property
    def alphas(self) -> tuple[float, ...]:
        """The paper's grid of regularization strengths."""
        return Ridge(normalize=False).grid(len(self.task.graphs), classify=True)

    @cached_property
    def configurations(self) -> list[Configuration]:
        """The random configurations: rho, omega(1), omega and the depth."""
        protocol = self.protocol
        return drawn_configurations(protocol.max_layers, self.task.seed, protocol.n_configurations)

    @property
    def described(self) -> Evaluation:
        """The evaluation without results."""
        protocol = self.protocol
        return self.task.described(
            ModelDescription(
                name="paper",
                title=TITLES["paper"],
                kind=FDGNNClassifier.__name__,
                parameters={"n_units": self.units, "max_layers": protocol.max_layers},
            ),
            name=protocol.name,
            n_configurations=protocol.n_configurations,
            n_initializations=protocol.n_initializations,
            scoring="accuracy",
            published=published_score("FDGNN", self.task.dataset),
        )

    @property
    def n_steps(self) -> int:
        """The number of random initializations, each a checkpoint."""
        return self.protocol.n_configurations * self.protocol.n_initializations

    def estimator(self, configuration: Configuration) -> FDGNNClassifier:
        """Return the model of a configuration, with the k of the whole dataset as in the paper."""
        degree = self.task.graphs.average_degree or 1.0
        model = FDGNNClassifier(n_units=self.units, degree=degree)
        model.set_params(**configuration)
        return model

    def base_model(self, configuration: Configuration) -> BaseModel:
        """Return the base model of a configuration, with the seeds of all initializations."""
        model = self.estimator(configuration)
        model.set_params(n_estimators=self.protocol.n_initializations)
        graphs, seed = self.task.graphs, seed_sequence(model.random_state)
        bases = model._base_models(GraphKind.of(graphs), len(graphs), seed)
        base: BaseModel = bases[0]
        return base

    @property
    def fit_task(self) -> FitTask:
        """The targets and all folds."""
        return FitTask(self.task.targets, self.task.folds, accuracy)

    # ------------------------------------------------------------------ the run

    def run(self, parts: Path | None, context: Context) -> EvaluationRun:
        """Evaluate the model, with checkpoints in a directory."""
        start = time.perf_counter()
        with _workers(self.cluster, context) as workers, _dead_workers_reported():
            validation, test, seconds, n_resumed = self._score_all(parts, workers)
            one_layer, own_depth = np.s_[:, :, 0], np.s_[:, :, 1]
            deep = choose(validation[own_depth], test[own_depth])
            single = choose(validation[one_layer], test[one_layer])
            common = choose(validation[own_depth], test[own_depth], common_alpha=True)
            ensemble = self._score_ensembles(deep, workers)
        alphas = np.array(self.alphas)[deep.alphas]  # (n_outer, n_initializations)
        chosen: list[Configuration] = [
            self.configurations[c] | {"alpha": float(a)}
            for c, a in zip(deep.configurations, alphas[:, 0], strict=True)
        ]
        timed, predictions = self._test(chosen)
        mean_test = test[own_depth].mean(axis=1)  # (n_configurations, n_outer, n_alphas)
        c, a = np.unravel_index(np.argmax(mean_test.mean(axis=1)), mean_test.shape[::2])
        variants = {
            "single_layer": single.scores,
            "common_alpha": common.scores,
            "ensemble": ensemble,
            # As in GIN's protocol: chosen on the folds that are reported.
            "best_for_all_test_folds": mean_test[c, :, a],
            "best_on_test_folds": mean_test.max(axis=(0, 2)),
        }
        scoring, task = OF_CLASSES["accuracy"], self.task
        baselines = baselines_of(task.targets, task.folds, task.smiles, context.n_jobs)
        (target,) = target_scores(task.graphs, predictions, scoring, baselines)
        own_scores = [metric_scores(scoring, deep.scores), *target.scores[1:]]
        described = self.described
        n_weights = np.mean([n_trained_weights(each.model) for each in timed])
        found = replace_fields(
            described,
            status="finished",
            model=replace_fields(described.model, n_parameters=round(float(n_weights))),
            targets=[replace_fields(target, scores=own_scores)],
            folds=[
                task.fold_result(
                    row,
                    configuration=chosen[row],
                    alphas=alphas[row].tolist(),
                    train_seconds=one.train_seconds,
                    test_seconds=one.test_seconds,
                    n_unconverged=int((~one.model.converged_).sum()),
                )
                for row, one in enumerate(timed)
            ],
            variants={name: metric_scores(scoring, each) for name, each in variants.items()},
            tried=self._tried(validation[own_depth]),
            times=Durations(
                total=time.perf_counter() - start,
                selection=float(seconds.sum()),
                n_resumed=n_resumed,
            ),
            **provenance(),
            command=context.command,
            notes=[_NOTE] if self.protocol.n_initializations > 1 else [],
        )
        often = Counter(deep.configurations.tolist()).most_common(1)[0][0]
        model = self.estimator(chosen[deep.configurations.tolist().index(often)])
        model.set_params(probability=True)
        return EvaluationRun(task, found, predictions, model)

    def _score_all(
        self, parts: Path | None, context: Context
    ) -> tuple[Floats, Floats, Floats, int]:
        """Return validation and test scores, seconds, and how many initializations were known.

        Scores are (n_configurations, n_initializations, 2, n_outer, n_alphas): at depth one and at
        the configuration's own depth.
        """
        task, protocol = self.task, self.protocol
        about = (ENGINE, task.data_hash, task.folds, self.units, self.alphas)
        store = Checkpoints(parts, "paper's protocol", *about)
        counts = protocol.n_configurations, protocol.n_initializations
        # In an order in which every part of them covers all configurations.
        keys = {
            (c, i): f"{sorted(self.configurations[c].items())} {i}"
            for i, c in np.ndindex(counts[::-1])
        }
        saved = {place: store.load(key) for place, key in keys.items()}
        known = {place: scores for place, scores in saved.items() if scores is not None}
        missing = [place for place in keys if place not in known]
        bases = [self.base_model(configuration) for configuration in self.configurations]
        if missing and joblib.effective_n_jobs(context.n_jobs) > 1:
            # Once here, so that processes find facts that are computed once per batch in the batch
            # that is sent to them.
            draw_features(_initialization(bases[0], 0), task.graphs, depth=1)
        call: Callable[..., Any] = joblib.delayed(score_initialization)
        scored: Iterator[tuple[int, int, dict[str, Array]]] = parallel(
            context.n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
        )(call(bases[c], task.graphs, self.fit_task, self.alphas, c, i) for c, i in missing)
        what = f"{task.dataset} random initializations"
        n_known = len(known)
        for c, i, scores in context.track(scored, len(keys), what, done=n_known):
            store.save(keys[c, i], scores)
            known[c, i] = scores
        validation, test, seconds = (
            np.array([[known[c, i][name] for i in range(counts[1])] for c in range(counts[0])])
            for name in ("validation", "test", "seconds")
        )
        return validation, test, seconds, n_known

    def _score_ensembles(self, chosen: FoldChoices, context: Context) -> Floats:
        """Return the test accuracy in each outer fold, of all initializations together."""
        if self.protocol.n_initializations == 1:
            return chosen.scores
        scores, alphas = np.empty(len(self.task.folds)), np.array(self.alphas)[chosen.alphas]
        selected = np.unique(chosen.configurations).tolist()
        call: Callable[..., Any] = joblib.delayed(_score_ensemble)
        found: Iterator[dict[int, float]] = parallel(
            context.n_jobs, return_as="generator_unordered"
        )(
            call(
                self.base_model(self.configurations[c]),
                self.task.graphs,
                self.fit_task,
                {int(o): alphas[o] for o in np.flatnonzero(chosen.configurations == c)},
            )
            for c in selected
        )
        for part in context.track(found, len(selected), f"{self.task.dataset} ensembles"):
            scores[list(part)] = list(part.values())
        return scores

    def _test(self, chosen: Sequence[Configuration]) -> tuple[list[TimedModel], NestedPredictions]:
        """Train and test the first initialization of each outer fold against the clock.

        Test graphs are predicted by the model that was timed, training graphs out of fold.
        """
        task, timed, outputs = self.task, [], []
        graphs, y = task.graphs, task.targets.values[:, 0]
        with warnings.catch_warnings(), joblib.parallel_config("sequential"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
            few = few_graphs(y)
            for configuration in {self.estimator(c).n_layers > 1: c for c in chosen}.values():
                self.estimator(configuration).fit(graphs[few], y[few]).predict(graphs[few])
            for fold, configuration in zip(task.folds, chosen, strict=True):
                make = partial(self.estimator, configuration)
                one = fit_and_test(make, graphs.__getitem__, FDGNNClassifier.outputs, y, fold)
                timed.append(one)
                drawn = {name: value for name, value in configuration.items() if name != "alpha"}
                base = _initialization(self.base_model(drawn), 0)
                own = replace(self.fit_task, folds=fold[None])
                alphas = (float(configuration["alpha"] or 0.0),)
                with one_blas_thread():
                    (fit,) = fit_depths(base, graphs, own, (None,), alphas=alphas, train=False)
                assert fit.choice is not None
                outputs.append(fit.choice.predictions[0].copy())
                outputs[-1][fold == TEST] = one.outputs
        return timed, NestedPredictions(task.targets, task.folds == TEST, np.array(outputs))

    def _tried(self, validation: Floats) -> list[TriedConfiguration]:
        """Return all configurations by their validation scores."""
        own = best_alphas(validation)  # (n_configurations, n_initializations, n_outer)
        best = np.take_along_axis(validation, own[..., None], axis=-1)[..., 0].mean(axis=-1)
        return [
            TriedConfiguration(
                configuration=configuration,
                alpha=self.alphas[Counter(own[c].ravel().tolist()).most_common(1)[0][0]],
                scores=best[c].tolist(),
                by_alpha=validation[c].mean(axis=(0, 1)).tolist(),
            )
            for c, configuration in enumerate(self.configurations)
        ]


_NOTE = (
    "Accuracy is the mean over random initializations; balanced accuracy and ROC AUC are those of "
    "the first random initialization."
)


# ---------------------------------------------------------------------- random initializations


def score_initialization(
    base: BaseModel,
    graphs: GraphBatch,
    task: FitTask,
    alphas: Sequence[float],
    configuration: int,
    number: int,
) -> tuple[int, int, dict[str, Array]]:
    """Score one random initialization of a configuration, at depth one and at its own depth."""
    own = _initialization(base, number)
    depths = tuple(dict.fromkeys((1, base.encoder.n_layers)))  # one or two
    with one_blas_thread():
        fits = fit_depths(own, graphs, task, depths, alphas=alphas, train=False)
    scores = [fit.choice.scores for fit in (fits[0], fits[-1]) if fit.choice is not None]
    found: dict[str, Array] = {
        "validation": np.array([each.validation[..., 0] for each in scores]),
        "test": np.array([each.test[..., 0] for each in scores]),
        "seconds": np.array(fits[-1].seconds),
    }
    return configuration, number, found


def _initialization(base: BaseModel, number: int) -> BaseModel:
    """Return a base model with one of its random initializations."""
    return replace(base, seeds=base.seeds[number : number + 1])


def _score_ensemble(
    base: BaseModel, graphs: GraphBatch, task: FitTask, alphas: dict[int, Floats]
) -> dict[int, float]:
    """Return the test scores of averaged outputs, in outer folds with these alphas."""
    Y, codes = task.targets.coded, task.targets.values[:, 0]
    outputs: dict[int, list[Floats]] = {o: [] for o in alphas}
    with one_blas_thread():
        for number in range(len(base.seeds)):
            (X,) = draw_features(_initialization(base, number), graphs)
            for o, own in alphas.items():
                train, test = trained_on(task.folds[o]), task.folds[o] == TEST
                alpha, no_folds = float(own[number]), np.empty((0, train.sum()), dtype=np.int64)
                path = base.readout.solve(X[train], Y[train], (alpha,), no_folds)
                outputs[o].append(path.readout(alpha).outputs(X[test]))
    return {
        o: float(task.metric(codes[task.folds[o] == TEST], np.mean(each, axis=0)))
        for o, each in outputs.items()
    }


# ---------------------------------------------------------------------- what an outer fold selects


class FoldChoices(NamedTuple):
    """The configuration and alphas that each outer fold selected, and their test scores."""

    configurations: Ints  # (n_outer,)
    alphas: Ints  # (n_outer, n_initializations), positions in the grid of alphas
    scores: Floats  # (n_outer,) test scores, averaged over random initializations


def choose(validation: Floats, test: Floats, *, common_alpha: bool = False) -> FoldChoices:
    """Choose a configuration for each outer fold by validation scores; test scores play no part.

    Among equal scores the largest alpha wins, then the configuration that was drawn first.

    Parameters
    ----------
    validation, test : (n_configurations, n_initializations, n_outer, n_alphas)
        Scores of all random initializations; alphas ascend.
    common_alpha : bool, default=False
        Whether all random initializations of a configuration have one alpha, or each its own.
    """
    n_initializations, n_outer = validation.shape[1:3]
    if not common_alpha:  # from here on, each random initialization has one alpha: its best
        own = best_alphas(validation)
        validation, test = (
            np.take_along_axis(scores, own[..., None], axis=-1) for scores in (validation, test)
        )
    mean, mean_test = validation.mean(axis=1), test.mean(axis=1)  # (c, o, a)
    c, a = np.array([best_of(mean[:, o]) for o in range(n_outer)]).T
    folds = np.arange(n_outer)
    alphas = np.tile(a[:, None], n_initializations) if common_alpha else own[c, :, folds]
    return FoldChoices(c, alphas, mean_test[c, folds, a])


def best_alphas(validation: Floats) -> Ints:
    """Return the position of the best alpha on the last axis; among equals the largest alpha."""
    return np.asarray(validation.shape[-1] - 1 - np.argmax(validation[..., ::-1], axis=-1))


def best_of(validation: Floats) -> tuple[int, int]:
    """Return the position of the best score in (configurations, alphas)."""
    by_simplicity = validation.T[::-1]  # alphas from large, configurations as drawn
    a, c = np.unravel_index(np.argmax(by_simplicity), by_simplicity.shape)
    return int(c), validation.shape[1] - 1 - int(a)


# ---------------------------------------------------------------------- one fold against the clock


def few_graphs(y: Array) -> Ints:
    """Return some graphs, of each class, on which models are tried before they are timed."""
    first = [np.flatnonzero(y == c)[:5] for c in np.unique(y)[:20]]
    some = np.random.default_rng(0).permutation(len(y))[:WARM_GRAPHS]
    return np.unique(np.concatenate([*first, some]))


class TimedModel(NamedTuple):
    """A model that was trained on the training graphs of an outer fold, and its test outputs."""

    model: Any
    outputs: Floats  # (n_test, q)
    train_seconds: float
    test_seconds: float


def fit_and_test(
    make: Callable[[], Any],
    prepare: Callable[[Array], Any],
    outputs: Callable[[Any, Any], Floats],
    y: Array,
    fold: Folds,
) -> TimedModel:
    """Train on the training graphs of an outer fold, test on its test graphs (Table 3).

    `prepare` returns the graphs where a mask is true, in the model's own form, and `outputs` those
    of a trained model for them; neither is timed. BLAS has one thread, and times are CPU seconds of
    this process. Work of milliseconds is repeated, and the median counts, because a single
    measurement may be disturbed.
    """
    times: list[tuple[float, float]] = []
    train, test = trained_on(fold), fold == TEST
    while len(times) < MOST_REPETITIONS and np.sum(times) < ENOUGH_SECONDS:
        trained, tested = prepare(train), prepare(test)  # nothing cached yet
        with one_blas_thread():
            start = time.process_time()
            model = make().fit(trained, y[train])
            middle = time.process_time()
            model.predict(tested)
            times.append((middle - start, time.process_time() - middle))
    train_seconds, test_seconds = np.median(times, axis=0).tolist()
    return TimedModel(model, outputs(model, tested), train_seconds, test_seconds)


# ---------------------------------------------------------------------- who does the work


@contextmanager
def _workers(cluster: str | None, context: Context) -> Iterator[Context]:
    """Use local processes, or a Dask cluster."""
    if cluster is None:
        yield context
        return
    with connected(cluster, context) as client, joblib.parallel_config("dask", client=client):
        yield replace(context, n_jobs=-1)


@contextmanager
def _dead_workers_reported() -> Iterator[None]:
    """Report what to do when the system has killed one of the local processes."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield
    except TerminatedWorkerError as error:
        raise StudyError(
            "a worker process was killed, perhaps because memory ran out; what is finished is "
            "kept, so run the same command again, if need be with fewer processes"
        ) from error

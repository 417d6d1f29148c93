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
from fdgnn.evaluation.scores import TITLES, baselines_of, metric_scores, published_score
from fdgnn.evaluation.timing import ENGINE, TimedEvaluation
from fdgnn.fitting import BaseModel, FitTask, draw_features, fit_depths
from fdgnn.folds import TEST, Folds
from fdgnn.graphs import GraphBatch
from fdgnn.linear import Ridge
from fdgnn.metrics import OF_CLASSES, Scoring, accuracy
from fdgnn.records import cached_property
from fdgnn.seeds import seed_sequence
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.selection.search import draw_configurations
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel


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
class PaperEvaluation(TimedEvaluation):
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
    def scoring(self) -> Scoring:
        """The metric that the paper chooses by."""
        return OF_CLASSES["accuracy"]

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
            scoring=self.scoring.name,
            published=published_score("FDGNN", self.task.dataset),
        )

    @property
    def n_steps(self) -> int:
        """The number of random initializations, each a checkpoint."""
        return self.protocol.n_configurations * self.protocol.n_initializations

    def model(self, configuration: Configuration) -> FDGNNClassifier:
        """Return the model of a configuration, with the k of the whole dataset as in the paper."""
        degree = self.task.graphs.average_degree or 1.0
        model = FDGNNClassifier(n_units=self.units, degree=degree)
        model.set_params(**configuration)
        return model

    def base_model(self, configuration: Configuration) -> BaseModel:
        """Return the base model of a configuration, with the seeds of all initializations."""
        model = self.model(configuration)
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
        start, store, task = time.perf_counter(), self._store(parts), self.task
        with _workers(self.cluster, context) as workers:
            validation, test, seconds, n_resumed = self._score_all(store, workers)
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
        run = self.result(
            chosen,
            self.test(store, chosen),
            partial(baselines_of, task.targets, smiles=task.smiles, n_jobs=context.n_jobs),
            variants={name: metric_scores(self.scoring, each) for name, each in variants.items()},
            tried=self._tried(validation[own_depth]),
            command=context.command,
            notes=[_NOTE] if self.protocol.n_initializations > 1 else [],
        )
        (target,) = run.evaluation.targets
        own_scores = [metric_scores(self.scoring, deep.scores), *target.scores[1:]]
        total = time.perf_counter() - start
        found = replace_fields(
            run.evaluation,
            targets=[replace_fields(target, scores=own_scores)],
            folds=[
                replace_fields(fold, alphas=own.tolist())
                for fold, own in zip(run.evaluation.folds, alphas, strict=True)
            ],
            times=Durations(total=total, selection=float(seconds.sum()), n_resumed=n_resumed),
        )
        store.save_record(f"evaluation {self.protocol}", found)
        often = Counter(deep.configurations.tolist()).most_common(1)[0][0]
        model = self.model(chosen[deep.configurations.tolist().index(often)])
        model.set_params(probability=True)
        return replace(run, evaluation=found, model=model)

    def finished(self, parts: Path) -> Evaluation:
        """Return the evaluation if it is finished, or else without results."""
        found = self._store(parts).load_record(f"evaluation {self.protocol}", Evaluation)
        return found or self.described

    def _store(self, parts: Path | None) -> Checkpoints:
        task = self.task
        about = (ENGINE, task.data_hash, task.folds, task.seed, self.units, self.alphas)
        return Checkpoints(parts, "paper's protocol", *about)

    def _score_all(
        self, store: Checkpoints, context: Context
    ) -> tuple[Floats, Floats, Floats, int]:
        """Return validation and test scores, seconds, and how many initializations were known.

        Scores are (n_configurations, n_initializations, 2, n_outer, n_alphas): at depth one and at
        the configuration's own depth.
        """
        task, protocol = self.task, self.protocol
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
        task, alphas = self.task, np.array(self.alphas)[chosen.alphas]
        bases = [self.base_model(self.configurations[c]) for c in chosen.configurations]
        call: Callable[..., Any] = joblib.delayed(_fold_outputs)
        found: Iterator[Floats] = parallel(context.n_jobs, return_as="generator")(
            call(_initialization(bases[o], i), task.graphs, self._of_fold(fold), alphas[o, i])
            for o, fold in enumerate(task.folds)
            for i in range(self.protocol.n_initializations)
        )
        each = np.array(list(context.track(found, alphas.size, f"{task.dataset} ensembles")))
        outputs = each.reshape(*alphas.shape, *each.shape[1:]).mean(axis=1)
        predictions = NestedPredictions(task.targets, task.folds == TEST, outputs)
        return predictions.by_fold(self.scoring)

    def _of_fold(self, fold: Folds) -> FitTask:
        return replace(self.fit_task, folds=fold[None])

    def out_of_fold_outputs(self, fold: Folds, configuration: Configuration) -> Floats:
        """Return the outputs of the first initialization for graphs in inner folds."""
        drawn = {name: value for name, value in configuration.items() if name != "alpha"}
        base = _initialization(self.base_model(drawn), 0)
        alpha = float(configuration["alpha"] or 0.0)
        return _fold_outputs(base, self.task.graphs, self._of_fold(fold), alpha)

    def _tried(self, validation: Floats) -> list[TriedConfiguration]:
        """Return all configurations by their validation scores."""
        own = best_alphas(validation)  # (n_configurations, n_initializations, n_outer)
        best = np.take_along_axis(validation, own[..., None], axis=-1)[..., 0].mean(axis=-1)
        return [
            TriedConfiguration(
                configuration=configuration,
                alpha=self.alphas[Counter(own[c].ravel().tolist()).most_common(1)[0][0]],
                scores=best[c].tolist(),
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


def _fold_outputs(base: BaseModel, graphs: GraphBatch, task: FitTask, alpha: float) -> Floats:
    """Return outputs (n_graphs, q) for the graphs of one outer fold, by models without them."""
    with one_blas_thread():
        (fit,) = fit_depths(base, graphs, task, (None,), alphas=(alpha,), train=False)
    assert fit.choice is not None
    return np.array(fit.choice.predictions[0])


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


# ---------------------------------------------------------------------- who does the work


@contextmanager
def _workers(cluster: str | None, context: Context) -> Iterator[Context]:
    """Use local processes, or a Dask cluster."""
    if cluster is None:
        yield context
        return
    with connected(cluster, context) as client, joblib.parallel_config("dask", client=client):
        yield replace(context, n_jobs=-1)

"""Models that are selected for each outer fold, then trained and tested against the clock."""

from __future__ import annotations

import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from msgspec.structs import replace

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.evaluation.record import Configuration, Count, Durations, Evaluation
from fdgnn.evaluation.run import EvaluationRun, EvaluationTask, model_outputs
from fdgnn.evaluation.scores import Baseline, n_trained_weights, provenance, target_scores
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.folds import TEST, Folds, trained_on
from fdgnn.metrics import Scoring
from fdgnn.records import Record
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.threads import one_blas_thread

#: Raised by one when kernels, seeds or the readout change scores: checkpoints of another number are
#: not used.
ENGINE = 5

MOST_REPETITIONS = 5  # of what is timed
ENOUGH_SECONDS = 0.5
WARM_GRAPHS = 100  # on which models are tried before they are timed


class Step(Record, frozen=True, kw_only=True):
    """A finished part of the work."""

    seconds: float
    peak_mb: float


class FoldTest(Step, frozen=True, kw_only=True):
    """The test of an outer fold."""

    outputs: list[list[float | None]]  # of all graphs; None where a graph has none
    train_seconds: float
    test_seconds: float
    n_parameters: Count
    n_unconverged: Count | None


class TimedEvaluation(ABC):
    """A model with its selection, evaluated on a task.

    Attributes
    ----------
    task : EvaluationTask
        Of one target. Models learn class codes, or numbers.
    """

    task: EvaluationTask

    @property
    @abstractmethod
    def scoring(self) -> Scoring:
        """The metric that the selection chooses by."""

    @property
    @abstractmethod
    def described(self) -> Evaluation:
        """The evaluation without results."""

    @property
    @abstractmethod
    def n_steps(self) -> int:
        """The number of steps, each a checkpoint."""

    @abstractmethod
    def run(self, parts: Path | None, context: Context) -> EvaluationRun:
        """Select for each outer fold, train and test what was selected.

        `parts` is the directory of checkpoints. Those of a smaller search serve a larger one.
        """

    @abstractmethod
    def finished(self, parts: Path) -> Evaluation:
        """Return the evaluation of what is finished."""

    @abstractmethod
    def model(self, configuration: Configuration) -> Any:
        """Return a model that is not trained, with ``fit`` and ``predict``."""

    @property
    def y(self) -> Array:
        """What models learn, (n_graphs,)."""
        return self.task.targets.values[:, 0]

    def prepare(self, graphs: Array) -> Any:
        """Return some of the graphs in the library's own form; this is not timed."""
        return self.task.graphs[graphs]

    def outputs(self, model: Any, graphs: Any) -> Floats:
        """Return the outputs (n, q) of a trained model."""
        return model_outputs(model, graphs, self.task.targets.each[0])

    def out_of_fold_outputs(self, fold: Folds, configuration: Configuration) -> Floats:
        """Return outputs (n_graphs, q), NaN where training graphs have none out of fold."""
        return np.full(self.task.targets.coded.shape, np.nan)

    def n_parameters(self, model: Any) -> int:
        """Return the number of weights that training sets."""
        return n_trained_weights(model)

    def warm_up(self, chosen: Sequence[Configuration]) -> None:
        """Import, compile and allocate what the first use needs; one layer needs less."""
        few = few_graphs(self.y)
        graphs = self.prepare(few)
        for configuration in {each.get("n_layers", 1) == 1: each for each in chosen}.values():
            self.model(configuration).fit(graphs, self.y[few]).predict(graphs)

    def test(
        self, store: Checkpoints, chosen: Sequence[Configuration], *, make: bool = True
    ) -> dict[int, FoldTest]:
        """Train and test in each outer fold what was chosen for it.

        Without `make`, only tests that are finished are returned.
        """
        keys = [f"fold {o} {sorted(choice.items())}" for o, choice in enumerate(chosen)]
        found = {o: store.load_record(key, FoldTest) for o, key in enumerate(keys)}
        missing = [o for o, one in found.items() if one is None] if make else []
        with warnings.catch_warnings(), joblib.parallel_config("sequential"):
            warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
            if missing:
                self.warm_up(chosen)
            for o in missing:
                found[o] = one = self._test(self.task.folds[o], chosen[o])
                store.save_record(keys[o], one)
        return {o: one for o, one in found.items() if one is not None}

    def _test(self, fold: Folds, configuration: Configuration) -> FoldTest:
        """Train on the training graphs of an outer fold, test on its test graphs (Table 3).

        BLAS has one thread, and times are CPU seconds of this process. Work of milliseconds is
        repeated, and the median counts, because a single measurement may be disturbed.
        """
        start, times = time.perf_counter(), list[tuple[float, float]]()
        train, test = trained_on(fold), fold == TEST
        while len(times) < MOST_REPETITIONS and np.sum(times) < ENOUGH_SECONDS:
            trained, tested = self.prepare(train), self.prepare(test)  # nothing cached yet
            with one_blas_thread():
                begin = time.process_time()
                model = self.model(configuration).fit(trained, self.y[train])
                middle = time.process_time()
                model.predict(tested)
                times.append((middle - begin, time.process_time() - middle))
        train_seconds, test_seconds = np.median(times, axis=0).tolist()
        outputs = self.out_of_fold_outputs(fold, configuration)
        outputs[test] = self.outputs(model, tested)
        converged = getattr(model, "converged_", None)
        return FoldTest(
            seconds=time.perf_counter() - start,
            peak_mb=peak_megabytes(),
            outputs=outputs.tolist(),
            train_seconds=train_seconds,
            test_seconds=test_seconds,
            n_parameters=self.n_parameters(model),
            n_unconverged=None if converged is None else int((~converged).sum()),
        )

    def result(
        self,
        chosen: Sequence[Configuration],
        tests: Mapping[int, FoldTest],
        baselines: Callable[[Folds], Sequence[Baseline]],
        selection: Sequence[Step] = (),
        **more: Any,
    ) -> EvaluationRun:
        """Return the evaluation of outer folds that are tested; `more` has more of its fields."""
        task, described = self.task, self.described
        steps, of_selection = [*selection, *tests.values()], sum(one.seconds for one in selection)
        folds, outputs = task.folds[list(tests)], [one.outputs for one in tests.values()]
        predictions = NestedPredictions(
            task.targets, folds == TEST, np.array(outputs, dtype=np.float64)
        )
        if tests:
            weights = np.mean([one.n_parameters for one in tests.values()])
            more |= {
                "status": "finished" if len(tests) == len(task.folds) else "unfinished",
                "model": replace(described.model, n_parameters=round(float(weights))),
                "targets": target_scores(task.graphs, predictions, self.scoring, baselines(folds)),
            }
        found = replace(
            described,
            folds=[
                task.fold_result(
                    o,
                    configuration=chosen[o],
                    train_seconds=one.train_seconds,
                    test_seconds=one.test_seconds,
                    n_unconverged=one.n_unconverged,
                )
                for o, one in tests.items()
            ],
            times=Durations(total=sum(one.seconds for one in steps), selection=of_selection),
            peak_mb=max((one.peak_mb for one in steps), default=None),
            **provenance(),
            **more,
        )
        return EvaluationRun(task, found, predictions, None)


def few_graphs(y: Array) -> Ints:
    """Return some graphs, of each class, on which models are tried before they are timed."""
    first = [np.flatnonzero(y == c)[:5] for c in np.unique(y)[:20]]
    some = np.random.default_rng(0).permutation(len(y))[:WARM_GRAPHS]
    return np.unique(np.concatenate([*first, some]))


def peak_megabytes() -> float:
    """Return the most memory that this process ever held (resident, in 10^6 bytes)."""
    status = Path("/proc/self/status")
    if status.exists():  # this program alone, while getrusage may count its parent's memory
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(float(x.split()[1]) for x in lines if x.startswith("VmHWM")) * 1024 / 1e6
    import psutil

    memory = psutil.Process().memory_info()
    if hasattr(memory, "peak_wset"):  # Windows
        return float(memory.peak_wset) / 1e6
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6

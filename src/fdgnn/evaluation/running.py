"""Run a study in a run directory: resumable, in processes or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import msgspec

from fdgnn.clusters import connected
from fdgnn.context import Context
from fdgnn.evaluation.choice import select
from fdgnn.evaluation.measures import measure
from fdgnn.evaluation.records import Asked, NetworkScores, RunResult
from fdgnn.evaluation.rundir import RunDirectory, read_file
from fdgnn.evaluation.study import Study
from fdgnn.evaluation.summary import summarize
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.fitting import BaseModel, FitTask, draw_features, fit_depths
from fdgnn.graphs import GraphBatch
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel


def run_study(
    study: Study,
    directory: Path,
    context: Context | None = None,
    *,
    cluster: str | None = None,
    after_each: Callable[[], None] | None = None,
) -> RunResult:
    """Run or resume a study; return the result, which is also in ``result.json``.

    Parameters
    ----------
    study : Study
    directory : Path
        Its run directory.
    context : Context, optional
        Processes, verbosity, and the command to write down.
    cluster : str, optional
        Address of a Dask scheduler, or "local" to start one.
    after_each : function, optional
        Called when a random initialization has been scored.
    """
    context, task = context or Context(), study.task()
    with closing(RunDirectory(directory, study.settings())) as run:
        asked = study.protocol
        run.write_asked(
            Asked(
                command=context.command,
                protocol=asked.name,
                n_configurations=asked.n_configurations,
                n_guesses=asked.n_guesses,
            )
        )
        start = time.perf_counter()
        with _workers(cluster, context) as workers, _dead_workers_reported(run.path):
            _score_missing(study, task, run, workers, after_each)
            selection = select(run.networks, asked.n_configurations, asked.n_guesses)
            selected = time.perf_counter()
            measures = measure(study, task, selection, workers)
        result = summarize(study, task, selection, measures, context.command)
        result = _with_clock(result, start, selected)
        run.write_result(result)
        return result


def _with_clock(result: RunResult, start: float, selected: float) -> RunResult:
    end = time.perf_counter()
    times = msgspec.structs.replace(
        result.times, this_run_seconds=end - start, after_networks_seconds=end - selected
    )
    return msgspec.structs.replace(result, times=times)


def _score_missing(
    study: Study,
    task: FitTask,
    run: RunDirectory,
    context: Context,
    after_each: Callable[[], None] | None,
) -> None:
    """Score the random initializations that are not in the run directory yet."""
    protocol, finished = study.protocol, finished_networks(study, run)
    bases = [study.base_model(configuration) for configuration in study.configurations()]
    # In an order in which every part of them covers all configurations.
    missing = [
        (c, guess)
        for guess in range(protocol.n_guesses)
        for c in range(protocol.n_configurations)
        if (c, guess) not in finished
    ]
    if missing and joblib.effective_n_jobs(context.n_jobs) > 1:
        # Once here, so that processes find facts that are computed once per batch in the batch
        # that is sent to them.
        draw_features(_initialization(bases[0], 0), study.graphs, depth=1)
    call: Callable[..., Any] = joblib.delayed(score_network)
    scores: Iterator[NetworkScores] = parallel(
        context.n_jobs, return_as="generator_unordered", pre_dispatch="4*n_jobs"
    )(call(bases[c], study.graphs, task, study.alphas, c, guess) for c, guess in missing)
    n_all = protocol.n_configurations * protocol.n_guesses
    for found in context.track(scores, n_all, f"{study.dataset} networks", done=len(finished)):
        run.append(found)
        if after_each is not None:
            after_each()


def score_network(
    base: BaseModel,
    graphs: GraphBatch,
    task: FitTask,
    alphas: Sequence[float],
    configuration: int,
    guess: int,
) -> NetworkScores:
    """Score one random initialization of a configuration, at depth one and at its own depth."""
    own = _initialization(base, guess)
    depths = tuple(dict.fromkeys((1, base.encoder.n_layers)))  # one or two
    with one_blas_thread():
        fits = fit_depths(own, graphs, task, depths, alphas=alphas, train=False)
    scores = [fit.choice.scores for fit in (fits[0], fits[-1]) if fit.choice is not None]
    return NetworkScores(
        configuration=configuration,
        guess=guess,
        seconds=fits[-1].seconds,
        validation=[each.validation[..., 0].tolist() for each in scores],
        test=[each.test[..., 0].tolist() for each in scores],
    )


def _initialization(base: BaseModel, guess: int) -> BaseModel:
    """Return a base model with one of its random initializations."""
    return replace(base, seeds=base.seeds[guess : guess + 1])


def finished_networks(study: Study, run: RunDirectory) -> set[tuple[int, int]]:
    """Return the networks that are finished; raise an error if some are not asked for."""
    finished = {(n.configuration, n.guess) for n in run.networks}
    asked = study.protocol
    if any(c >= asked.n_configurations or g >= asked.n_guesses for c, g in finished):
        raise RunMismatchError(
            f"{run.path}: it holds a run of more configurations or guesses than are asked for; "
            "ask for as many, or use another directory"
        )
    return finished


def finished_result(study: Study, directory: Path) -> RunResult | None:
    """Read the summary of a finished run, unless there is none or this study would extend it."""
    path = directory / "result.json"
    if not path.exists():
        return None
    RunDirectory(directory, study.settings()).close()  # is it this study's?
    try:
        result = read_file(path, RunResult)
    except StudyError:  # damaged, or of a version that wrote less: it is made again
        return None
    found = (result.n_configurations, result.n_guesses)
    wanted = (study.protocol.n_configurations, study.protocol.n_guesses)
    extends = found != wanted and all(f <= w for f, w in zip(found, wanted, strict=True))
    return None if extends else result


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
def _dead_workers_reported(path: Path) -> Iterator[None]:
    """Report what to do when the system has killed one of the local processes."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield
    except TerminatedWorkerError as error:
        raise StudyError(
            f"{path}: a worker process was killed, perhaps because memory ran out; what is "
            "finished is kept, so run the same command again, if need be with fewer processes"
        ) from error

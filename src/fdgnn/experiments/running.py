"""Carry out a study in a run directory: resumable, with processes or on a Dask cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import joblib
import msgspec

from fdgnn.clusters import connected
from fdgnn.context import Context
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.experiments.choice import Selection, select
from fdgnn.experiments.measures import measure
from fdgnn.experiments.records import Asked, NetworkScores, RunResult
from fdgnn.experiments.rundir import RunDirectory, read_file
from fdgnn.experiments.study import Study
from fdgnn.experiments.summary import summarize
from fdgnn.selection.scores import CandidateScores, SelectionTask, score_candidates


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
        Called when a network is finished.
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
        with _workers(cluster, context) as workers, _told_of_dead_workers(run.path):
            _score_missing(study, task, run, workers, after_each)
            selection = _select(study, run)
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
    task: SelectionTask,
    run: RunDirectory,
    context: Context,
    after_each: Callable[[], None] | None,
) -> None:
    """Score the networks that are not in the run directory yet."""
    candidates = study.candidates()
    finished = finished_networks(study, run)
    missing = [c for c in candidates if (c.configuration, c.guesses[0]) not in finished]
    scores = score_candidates(task, missing, context.n_jobs)
    what = f"{study.dataset} networks"
    for found in context.track(scores, len(candidates), what, done=len(finished)):
        run.append(_network(found))
        if after_each is not None:
            after_each()


def _network(found: CandidateScores) -> NetworkScores:
    (guess,) = found.guesses
    return NetworkScores(
        configuration=found.configuration,
        guess=guess,
        seconds=found.seconds,
        validation=found.scores.validation.tolist(),
        test=found.scores.test.tolist(),
    )


def _select(study: Study, run: RunDirectory) -> Selection:
    return select(run.networks, study.protocol.n_configurations, study.protocol.n_guesses)


def finished_networks(study: Study, run: RunDirectory) -> set[tuple[int, int]]:
    """Give the networks that are finished, or an error if some are not asked for."""
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
def _told_of_dead_workers(path: Path) -> Iterator[None]:
    """Say what to do when the system has killed one of the local processes."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    try:
        yield
    except TerminatedWorkerError as error:
        raise StudyError(
            f"{path}: a worker process was killed, perhaps because memory ran out; what is "
            "finished is kept, so run the same command again, if need be with fewer processes"
        ) from error

"""FDGNN beside other methods: the same folds, the same nested selection, the same clock.

Each method runs in a process of its own, with one thread, within limits of time and memory. If one
runs out of either, or crashes, the others go on. What a method has finished is a checkpoint in the
run directory: parts of its selection, then outer folds. From these its `Evaluation` is made, with
all outer folds that were finished, however its process ended.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.context import Context
from fdgnn.evaluation.baselines import (
    METHODS,
    Search,
    check_method,
    new_method,
)
from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation, Protocol
from fdgnn.evaluation.record import Evaluation, Limits, Status
from fdgnn.evaluation.run import EvaluationTask, RunDirectory
from fdgnn.evaluation.timing import TimedEvaluation
from fdgnn.folds import Split
from fdgnn.graphs.converters import as_batch
from fdgnn.schema import TaskName
from fdgnn.targets import read_targets
from fdgnn.tasks import infer_task

__all__ = ["METHODS", "Limits", "Search", "compare", "compare_methods", "default_methods"]

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
_SECONDS_BETWEEN_LOOKS = 0.1


def default_methods(*, molecules: bool, classify: bool) -> tuple[str, ...]:
    """Return the methods that are compared with the paper's model if none are named."""
    if molecules:
        return ("fdgnn-auto", "ecfp-lr", "ecfp-rf", "desc-gb")
    return ("fdgnn-auto", "labels-rf", "wl") if classify else ("fdgnn-auto", "labels-rf")


def compare(
    graphs: Any,
    y: Any,
    methods: str | Iterable[str] | None = None,
    *,
    task: TaskName | None = None,
    out: str | Path | None = None,
    name: str = "graphs",
    protocol: str = "quick",
    n_outer: int = 10,
    n_inner: int = 10,
    search: Search | None = None,
    limits: Limits | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> list[Evaluation]:
    """Compare FDGNN with other methods on your own graphs.

    Parameters
    ----------
    graphs : GraphBatch or list of graphs
        SMILES or RDKit ``Mol`` objects for methods with fingerprints and descriptors.
    y : (n_graphs,) array-like
        Their classes, or numbers.
    methods : str or iterable of str, optional
        Some of `fdgnn.evaluation.baselines.METHODS`: "fdgnn-auto", "fdgnn-wl", "fdgnn-union"
        (ours), "labels-rf", for molecules "ecfp-lr", "ecfp-rf", "ecfp-gb", "desc-rf", "desc-gb",
        for classes "wl", "wl-oa", "pk", "gk", "rw" (GraKeL), "gin", "dgcnn", "gnn" (PyTorch). By
        default "fdgnn-auto" with a few of these.
    task : {"classification", "regression"}, optional
        Inferred from `y` by default.
    out : path, optional
        Run directory, from which an interrupted comparison resumes; by default nothing is kept.
    name : str, default="graphs"
        Name of the dataset in the result.
    protocol : {"quick", "paper"}, default="quick"
        Number of configurations and random initializations in the search of the paper's model.
    n_outer, n_inner : int, default=10
        Numbers of folds, the same for all methods; fewer if there are too few graphs or members of
        a class.
    search : Search, optional
        The part of the published grids to search; by default all.
    limits : Limits, optional
        Seconds and megabytes that each method may use; by default ten minutes and 4 GB.
    seed : int, default=0
    n_jobs : int, optional
        Processes for the search of the paper's model. Training and tests are measured on one core.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    list of Evaluation
        One for each method; in classification, the paper's model is the first. If a method ran out
        of time or memory or failed, `status` and `reason` explain why, and its finished outer folds
        are kept.

    Examples
    --------
    >>> from fdgnn import compare
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> for found in compare(graphs, y, ["labels-rf"], n_outer=3, n_inner=3):  # doctest: +SKIP
    ...     print(found.model.name, found.score, found.std)
    """
    batch = as_batch(graphs)
    if protocol not in PROTOCOLS:
        raise ValueError(f"no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}")
    classify = (task or infer_task(np.asarray(y))) == "classification"
    targets = read_targets(y, batch, classify)
    folds = Split().nested(targets, n_outer, n_inner, seed)
    given = EvaluationTask(name, batch, targets, folds, seed=seed)
    context = Context(n_jobs, quiet=not verbose)
    with contextlib.ExitStack() as stack:
        where = Path(out or stack.enter_context(tempfile.TemporaryDirectory()))
        return compare_methods(
            given, where, methods, context, PROTOCOLS[protocol], search=search, limits=limits
        )


def compare_methods(
    task: EvaluationTask,
    path: Path,
    methods: str | Iterable[str] | None = None,
    context: Context | None = None,
    protocol: Protocol = PROTOCOLS["quick"],
    *,
    search: Search | None = None,
    limits: Limits | None = None,
) -> list[Evaluation]:
    """Compare methods on a task in a run directory, or resume; return their evaluations.

    Evaluations of other methods in the same directory are kept.
    """
    classify, molecules = task.targets.classify, task.graphs.smiles is not None
    if methods is None:
        methods = default_methods(molecules=molecules, classify=classify)
    names = [methods] if isinstance(methods, str) else list(dict.fromkeys(methods))
    names = [name for name in names if name != "paper"]
    for name in names:
        check_method(name, molecules=molecules, classify=classify)
    context, limits = context or Context(), limits or Limits()
    compared: list[TimedEvaluation] = [PaperEvaluation(task, protocol)] if classify else []
    compared += [new_method(name, task, search or Search()) for name in names]
    described = [replace_fields(each.described, limits=limits) for each in compared]
    found = []
    with contextlib.closing(RunDirectory(path, described[:1])) as directory:
        for each, one in zip(compared, described, strict=True):
            known = directory.find(one)
            if known is None or not _would_end_alike(known, one):
                known = _finished_within(each, path, limits, context)
                directory.keep(known)
            found.append(known)
    return found


def _would_end_alike(known: Evaluation, wanted: Evaluation) -> bool:
    """Return whether a method that did not finish would not finish again."""
    given, limits = known.limits, wanted.limits
    if known.status not in ("out of time", "out of memory") or given is None or limits is None:
        return False
    within = given.seconds >= limits.seconds and given.megabytes >= limits.megabytes
    same = known.protocol == wanted.protocol and known.model.parameters == wanted.model.parameters
    return within and same


# ---------------------------------------------------------------------- one method


def work(compared: TimedEvaluation, parts: Path, context: Context) -> None:
    """Evaluate a method, with checkpoints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the record has no place for them
        compared.run(parts, replace(context, quiet=True))


def _finished_within(
    compared: TimedEvaluation, path: Path, limits: Limits, context: Context
) -> Evaluation:
    """Finish a method in a process within limits; return its evaluation, however that ended."""
    parts = path / "parts"
    found = compared.finished(parts)
    if found.status != "finished":
        spent = found.times.total or 0.0
        status, reason = run_in_process(compared, path, limits, context, spent)
        found = compared.finished(parts)
        if found.status != "finished" and status != "finished":
            found = replace_fields(found, status=status, reason=reason)
    return replace_fields(found, limits=limits, command=context.command)


# ---------------------------------------------------------------------- the process of a method


def run_in_process(
    compared: TimedEvaluation, path: Path, limits: Limits, context: Context, spent: float
) -> tuple[Status, str | None]:
    """Run a method in a process; return its status and, if it did not finish, why.

    `spent` are the seconds of what it has finished earlier.
    """
    name, parts = compared.described.model.name, path / "parts"
    log = path / f"{name}.log"
    main = "import sys; from fdgnn.evaluation.comparison import main; sys.exit(main())"
    with log.open("wb") as output, tempfile.TemporaryFile() as given:
        pickle.dump((compared, parts, context, os.getpid()), given)
        given.seek(0)
        process = subprocess.Popen(
            # -P: a user's file with the name of a Python module is not taken for that module.
            [sys.executable, "-P", "-c", main],
            stdin=given,
            stdout=output,
            stderr=output,
            env=_environment(),
        )
        try:
            steps = _steps(process, log, parts, limits, spent)
            what = f"{compared.task.dataset} {name}"
            for _ in context.track(steps, compared.n_steps, what, size=int):
                pass
        except _OutOfLimitsError as stopped:
            return stopped.args
        finally:
            _end(process)
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        # The first line is that the process has started.
        return "failed", (lines[1:] or [f"process ended with {process.returncode}"])[-1]
    return "finished", None


def _environment() -> dict[str, str]:
    """Return the environment of a method: one thread, and the same fdgnn as this one."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class _OutOfLimitsError(Exception):
    """Its arguments are the status and the reason."""

    args: tuple[Status, str]


def _steps(
    process: subprocess.Popen[bytes], log: Path, parts: Path, limits: Limits, spent: float
) -> Iterator[int]:
    """Yield how many further steps a method has finished, watching its time and memory."""
    seen, end = _n_files(parts), None
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_SECONDS_BETWEEN_LOOKS)
            return
        if end is None and log.stat().st_size:  # its libraries are imported
            end = time.monotonic() + limits.seconds - spent
        if end is not None and time.monotonic() > end:
            raise _OutOfLimitsError("out of time", f"limit of {limits.seconds:g} s")
        if _megabytes(process.pid) > limits.megabytes:
            raise _OutOfLimitsError("out of memory", f"limit of {limits.megabytes:g} MB")
        if (n := _n_files(parts)) > seen:
            yield n - seen
            seen = n


def _n_files(parts: Path) -> int:
    return sum(1 for _ in parts.glob("*"))


def _megabytes(pid: int) -> float:
    """Return the memory held by a process and those it started."""
    import psutil

    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return float(sum(p.memory_info().rss for p in family)) / 1e6
    except psutil.Error:  # gone
        return 0.0


def _end(process: subprocess.Popen[bytes]) -> None:
    """Leave no process behind, its own children included."""
    import psutil

    if process.poll() is None:
        try:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
        except psutil.Error:
            pass
        process.kill()
    process.wait()


def main() -> int:
    """Run a method that comes through standard input; return the exit code."""
    # From our own parent, through a file without a name.
    compared, parts, context, parent = pickle.load(sys.stdin.buffer)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    print("started", flush=True)
    try:
        work(compared, parts, context)
    except Exception as error:
        traceback.print_exc()  # into the log, whose last line is the reason
        text = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip(" :")
        print(text, file=sys.stderr)
        return 1
    return 0


def _end_with(parent: int) -> None:
    """End this process once its parent has ended."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    os._exit(1)

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
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from msgspec.structs import replace as replace_fields

from fdgnn.arrays import Array
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.evaluation.baselines import METHODS, Method, Search, Trial, check_method, new_method
from fdgnn.evaluation.protocol import ENGINE, PROTOCOLS, PaperEvaluation, Protocol, fit_and_test
from fdgnn.evaluation.record import (
    Configuration,
    Durations,
    Evaluation,
    Limits,
    ModelDescription,
    Status,
)
from fdgnn.evaluation.run import EvaluationTask, RunDirectory
from fdgnn.evaluation.scores import (
    baselines_of,
    machine,
    n_trained_weights,
    published_score,
    target_scores,
    versions,
)
from fdgnn.exceptions import FDGNNWarning, StudyError
from fdgnn.folds import TEST, Split
from fdgnn.graphs.converters import as_batch
from fdgnn.records import Record, cached_property, decode, encode
from fdgnn.schema import TaskName
from fdgnn.selection.scoring import NestedPredictions
from fdgnn.targets import read_targets
from fdgnn.tasks import guess_task

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
        SMILES or RDKit's molecules for methods on fingerprints and descriptors.
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
        Run directory, by which a stopped comparison resumes; by default nothing is kept.
    name : str, default="graphs"
        Name of the dataset in the result.
    protocol : {"quick", "paper"}, default="quick"
        How many configurations and random initializations the search of the paper's model has.
    n_outer, n_inner : int, default=10
        Folds, the same for all; fewer where a class or the graphs are too few.
    search : Search, optional
        How much of the published grids is tried; by default all of it.
    limits : Limits, optional
        Seconds and megabytes that each method may use; by default ten minutes and 4 GB.
    seed : int, default=0
    n_jobs : int, optional
        Processes of the search of the paper's model. Training and tests are measured on one core.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    list of Evaluation
        One for each method; for classes that of the paper's model comes first. Of a method that ran
        out of time or memory or failed, `status` and `reason` say why, and the outer folds that it
        has finished are there.

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
    classify = (task or guess_task(np.asarray(y))) == "classification"
    targets = read_targets(y, batch, classify)
    folds = Split().nested(targets.values[:, 0], n_outer, n_inner, seed, classify)
    known = None if batch.smiles is None else batch.smiles.texts.tolist()
    given = EvaluationTask(name, batch, targets, folds, seed=seed, smiles=known)
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
    runs = [
        MethodRun(name, task, path / "parts", search or Search(), protocol, context)
        for name in (["paper"] if classify else []) + names
    ]
    described = [replace_fields(run.described, limits=limits) for run in runs]
    found = []
    with RunDirectory(path, described[:1]) as directory:
        for run, one in zip(runs, described, strict=True):
            known = directory.find(one)
            if known is None or not _would_end_alike(known, one):
                known = _finished_within(run, path / f"{run.name}.log", limits)
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


class _Part(Record, frozen=True, kw_only=True):
    """A finished part of the selection of a method."""

    seconds: float
    peak_mb: float
    trials: list[Trial]


class Progress(Record, frozen=True, kw_only=True):
    """Progress of the process of a method: how many of its steps are done.

    The first message has the seconds that earlier runs spent on what is done.
    """

    steps: int
    done: int
    spent: float = 0.0


@dataclass(frozen=True, eq=False)
class MethodRun:
    """One method on a task, with what its process needs.

    Attributes
    ----------
    name : str
        "paper", or one of `METHODS`.
    task : EvaluationTask
    parts : Path
        Directory of checkpoints.
    search : Search
    protocol : Protocol
        Of "paper".
    context : Context
    """

    name: str
    task: EvaluationTask
    parts: Path
    search: Search = Search()  # noqa: RUF009  (it is immutable)
    protocol: Protocol = PROTOCOLS["quick"]
    context: Context = Context()  # noqa: RUF009

    @cached_property
    def method(self) -> Method:
        """The method; not of "paper"."""
        return new_method(self.name, self.task, self.search)

    @cached_property
    def store(self) -> Checkpoints:
        """Checkpoints; those of a smaller search serve a larger one."""
        task, search = self.task, replace_fields(self.search, n_configurations=None)
        about = self.protocol if self.name == "paper" else search
        return Checkpoints(
            self.parts, self.name, ENGINE, task.data_hash, task.folds, task.seed, about
        )

    @property
    def paper(self) -> PaperEvaluation:
        """The evaluation of the paper's model."""
        return PaperEvaluation(self.task, self.protocol)

    @property
    def described(self) -> Evaluation:
        """The evaluation without results."""
        if self.name == "paper":
            return self.paper.described
        method, entry = self.method, METHODS[self.name]
        parameters: Configuration = {} if self.search.choose_epochs else {"choose_epochs": False}
        found = self.task.described(
            ModelDescription(
                name=self.name, title=entry.title, kind=method.kind, parameters=parameters
            ),
            n_inner=method.inner_folds if method.selects else 0,
            n_configurations=method.n_configurations,
            scoring=method.scoring.name,
            class_weight=self.search.class_weight,
        )
        return replace_fields(found, published=published_score(entry.published, self.task.dataset))

    # ------------------------------------------------------------------ the work

    def work(self, tell: Callable[[Progress], None]) -> None:
        """Select for each outer fold, then train and test what was selected; skip what is done."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FDGNNWarning)  # the record has no place for them
            if self.name == "paper":
                self._work_on_paper(tell)
            else:
                self._work(tell)

    def _work_on_paper(self, tell: Callable[[Progress], None]) -> None:
        n = self.protocol.n_configurations * self.protocol.n_initializations
        tell(Progress(steps=n, done=0))
        evaluator = replace(self.paper, after_each=lambda: tell(Progress(steps=n, done=1)))
        found = evaluator.run(self.parts, replace(self.context, quiet=True)).evaluation
        self.store.save_record("evaluation", replace_fields(found, peak_mb=peak_megabytes()))

    def _work(self, tell: Callable[[Progress], None]) -> None:
        method, n_outer = self.method, len(self.task.folds)
        parts = {unit: self._part(unit) for unit in method.units}
        known = [part for part in parts.values() if part is not None]
        choices = self._choices() if len(known) == len(parts) else None
        done = [] if choices is None else [self._fold(o, c) for o, c in enumerate(choices)]
        spent = sum(part.seconds for part in known)
        spent += sum(float(fold["seconds"]) for fold in done if fold is not None)
        n_done, n_steps = len(known) + sum(fold is not None for fold in done), len(parts) + n_outer
        tell(Progress(steps=n_steps, done=n_done, spent=spent))
        for unit, part in parts.items():
            if part is None:
                start = time.perf_counter()
                trials = method.score(unit)
                seconds = time.perf_counter() - start
                made = _Part(seconds=seconds, peak_mb=peak_megabytes(), trials=trials)
                self.store.save_record(unit, made)
                tell(Progress(steps=n_steps, done=1))
        choices = self._choices()
        left = [o for o, choice in enumerate(choices) if self._fold(o, choice) is None]
        if left:
            method.warm_up()
        for o in left:
            start, fold = time.perf_counter(), self.task.folds[o]
            make = partial(method.model, choices[o])
            timed = fit_and_test(make, method.prepare, method.outputs, method.y, fold)
            arrays = {
                "outputs": timed.outputs,
                "train_seconds": timed.train_seconds,
                "test_seconds": timed.test_seconds,
                "n_parameters": n_trained_weights(timed.model),
                "peak_mb": peak_megabytes(),
                "seconds": time.perf_counter() - start,
            }
            self.store.save(self._fold_key(o, choices[o]), arrays)
            tell(Progress(steps=n_steps, done=1))

    def _part(self, unit: str) -> _Part | None:
        return self.store.load_record(unit, _Part)

    def _fold_key(self, outer: int, choice: Configuration) -> str:
        return f"fold {outer} {sorted(choice.items())}"

    def _fold(self, outer: int, choice: Configuration) -> dict[str, Array] | None:
        return self.store.load(self._fold_key(outer, choice))

    def _choices(self) -> list[Configuration]:
        """Return what each outer fold selects, of a finished selection."""
        parts = [part for unit in self.method.units if (part := self._part(unit)) is not None]
        trials = [trial for part in parts for trial in part.trials]
        n_outer = len(self.task.folds)
        return [best_trial(trials, o) if trials else self.method.only for o in range(n_outer)]

    # ------------------------------------------------------------------ the result

    def evaluation(self) -> Evaluation:
        """Return the evaluation of what is finished; its status is "unfinished" if some is not."""
        found = self.described
        if self.name == "paper":
            return self.store.load_record("evaluation", Evaluation) or found
        task, parts = self.task, [self._part(unit) for unit in self.method.units]
        known = [part for part in parts if part is not None]
        peaks = [part.peak_mb for part in known]
        rows, results, weights, outputs = [], [], [], []
        for o, choice in enumerate(self._choices() if len(known) == len(parts) else []):
            fold = self._fold(o, choice)
            if fold is None:
                continue
            own = np.full(task.targets.coded.shape, np.nan)
            own[task.folds[o] == TEST] = fold["outputs"]
            rows.append(o)
            outputs.append(own)
            weights.append(int(fold["n_parameters"]))
            peaks.append(float(fold["peak_mb"]))
            results.append(
                task.fold_result(
                    o,
                    configuration=choice,
                    train_seconds=float(fold["train_seconds"]),
                    test_seconds=float(fold["test_seconds"]),
                )
            )
        found = replace_fields(
            found,
            status="finished" if len(rows) == len(task.folds) else "unfinished",
            times=Durations(selection=sum(part.seconds for part in known)),
            peak_mb=max(peaks, default=None),
            versions=versions(),
            machine=machine(),
        )
        if not rows:
            return found
        folds = task.folds[rows]
        predictions = NestedPredictions(task.targets, folds == TEST, np.array(outputs))
        baselines = baselines_of(task.targets, folds, None)
        return replace_fields(
            found,
            model=replace_fields(found.model, n_parameters=round(float(np.mean(weights)))),
            targets=target_scores(task.graphs, predictions, self.method.scoring, baselines),
            folds=results,
        )


def best_trial(trials: Sequence[Trial], outer: int) -> Configuration:
    """Return the configuration of an outer fold with the best score; the first among equals."""
    own = [trial for trial in trials if trial.outer == outer]
    best = max(own, key=lambda t: -np.inf if t.score is None else t.score)
    return best.configuration


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


# ---------------------------------------------------------------------- the process of a method


def _finished_within(run: MethodRun, log: Path, limits: Limits) -> Evaluation:
    """Finish a method in a process within limits; return its evaluation, however that ended."""
    found = run.evaluation()
    status: Status = "finished"
    reason = None
    if found.status != "finished":
        status, reason = run_in_process(run, log, limits)
        found = run.evaluation()
    if found.status == "finished":
        status, reason = "finished", None
    elif status == "finished":
        raise StudyError(
            f"{run.parts}: checkpoints of {run.name} are gone, though it has finished; run the "
            "same command again"
        )
    return replace_fields(
        found, status=status, reason=reason, limits=limits, command=run.context.command
    )


def run_in_process(run: MethodRun, log: Path, limits: Limits) -> tuple[Status, str | None]:
    """Run a method in a process; return its status and, if it did not finish, why."""
    main = "import sys; from fdgnn.evaluation.comparison import main; sys.exit(main())"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            # -P: a user's file with the name of a Python module is not taken for that module.
            [sys.executable, "-P", "-c", main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
        )
        try:
            _follow(process, run, limits)
        except _OutOfLimitsError as stopped:
            return stopped.status, stopped.reason
        finally:
            _end(process)
    if process.returncode:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return "failed", lines[-1] if lines else f"its process ended with {process.returncode}"
    return "finished", None


def _follow(process: subprocess.Popen[bytes], run: MethodRun, limits: Limits) -> None:
    """Show the progress of a method's process until it ends."""
    events = _events(process, run, limits)
    first = next(events, None)
    if first is not None:
        what = f"{run.task.dataset} {run.name}"
        for _ in run.context.track(events, first.steps, what, done=first.done):
            pass


def _environment() -> dict[str, str]:
    """Return the environment of a method: one thread, and the same fdgnn as this one."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class _OutOfLimitsError(Exception):
    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _events(process: subprocess.Popen[bytes], run: MethodRun, limits: Limits) -> Iterator[Progress]:
    """Hand the run over, then yield its progress, watching time and memory."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_converse, args=(process, run, lines), daemon=True).start()
    end = time.monotonic() + limits.seconds  # for imports; it is set again by the first event
    started = False
    while True:
        try:
            line = lines.get(timeout=_SECONDS_BETWEEN_LOOKS)
            if not line:
                process.wait()
                return
            event = decode(line, Progress)
            if not started:
                started, end = True, time.monotonic() + limits.seconds - event.spent
            yield event
        except queue.Empty:
            pass
        if time.monotonic() > end:
            raise _OutOfLimitsError("out of time", f"it was given {limits.seconds:g} s")
        if _megabytes(process.pid) > limits.megabytes:
            raise _OutOfLimitsError("out of memory", f"it was given {limits.megabytes:g} MB")


def _converse(process: subprocess.Popen[bytes], run: MethodRun, lines: queue.Queue[bytes]) -> None:
    """Send the run and queue the answers, an empty one at the end."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(replace(run), process.stdin)  # without what it has computed
        process.stdin.flush()  # and it stays open: the process ends when it is closed
        for line in process.stdout:
            lines.put(line)
    except (OSError, ValueError):  # it has died, or was stopped
        pass
    lines.put(b"")


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
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):  # it may hold what a dead process did not read
                pipe.close()


def main() -> int:
    """Run a method that comes through standard input; return the exit code.

    Progress goes to standard output. The process ends when standard input is closed, so with the
    process that started it.
    """
    progress = _take_over_output()
    run: MethodRun = pickle.load(sys.stdin.buffer)  # from our own parent, through a pipe
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if run.name != "paper" and "torch" in METHODS[run.name].libraries:
        import torch

        torch.set_num_threads(1)

    def tell(event: Progress) -> None:
        progress.write(encode(event).decode() + "\n")
        progress.flush()

    try:
        run.work(tell)
    except Exception as error:
        traceback.print_exc()  # into the log, whose last line is the reason
        text = re.sub(r"\s+", " ", f"{type(error).__name__}: {error}").strip(" :")
        print(text, file=sys.stderr)
        return 1
    return 0


def _end_with_parent() -> None:
    """End this process once the parent, which keeps the pipe open, has ended."""
    os.read(0, 1)  # unbuffered: a lock held at our own end would be fatal
    os._exit(1)


def _take_over_output() -> IO[str]:
    """Keep standard output for progress; whatever else is printed goes to the log."""
    progress = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return progress

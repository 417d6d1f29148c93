"""Contestants one after the other, each in its own process, within limits."""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from fdgnn.context import Context
from fdgnn.evaluation.baselines import RIVALS
from fdgnn.evaluation.comparison.contest import Began, Event, Turn
from fdgnn.evaluation.comparison.rows import finished_row, unfinished_row
from fdgnn.evaluation.record import Limits
from fdgnn.evaluation.records import ComparisonRow, Search, Status, TurnState
from fdgnn.evaluation.rundir import RunDirectory, locked, read_file
from fdgnn.evaluation.running import finished_networks, finished_result
from fdgnn.evaluation.study import PROTOCOLS, Study, plan
from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.molecules import is_molecule
from fdgnn.records import decode, write_record
from fdgnn.targets import class_labels

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
_SECONDS_BETWEEN_LOOKS = 0.1
#: Whom the paper's FDGNN is compared with by default, and if the graphs are molecules.
DEFAULT_MODELS = ("fdgnn-auto", "wl")
DEFAULT_OF_MOLECULES = ("fdgnn-auto", "ecfp-lr", "ecfp-rf")


def compare(
    graphs: Any,
    y: Any,
    models: str | Iterable[str] | None = None,
    *,
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
) -> list[ComparisonRow]:
    """Compare FDGNN with other systems on your own graphs.

    Parameters
    ----------
    graphs : GraphBatch or list of graphs
        SMILES or RDKit's molecules for "ecfp-lr" and "ecfp-rf".
    y : (n_graphs,) array-like
        Their classes.
    models : str or iterable of str, optional
        Some of "fdgnn-auto", "fdgnn-wl", "fdgnn-union" (ours), "ecfp-lr", "ecfp-rf" (RDKit, for
        molecules), "wl", "wl-oa", "pk", "gk", "rw" (GraKeL), "gin", "dgcnn", "gnn" (PyTorch); by
        default "fdgnn-auto" and "wl", for molecules "fdgnn-auto", "ecfp-lr" and "ecfp-rf".
    out : path, optional
        Run directory, to go on from after a crash; by default nothing is kept.
    name : str, default="graphs"
        What the rows call the dataset.
    protocol : {"quick", "paper"}, default="quick"
        How many configurations and networks FDGNN's own selection tries.
    n_outer, n_inner : int, default=10
        Folds, the same for all.
    search : Search, optional
        How much of the rivals' published grids is tried; by default all of it.
    limits : Limits, optional
        Seconds and megabytes each contestant may use; by default ten minutes and 4 GB.
    seed : int, default=0
    n_jobs : int, optional
        Processes of FDGNN's selection. Training and tests are measured on one core.
    verbose : bool, default=False
        Whether to show progress.

    Returns
    -------
    list of ComparisonRow
        A row for each contestant, FDGNN's first: `dataset`, `model`, `status`, `accuracy_mean`,
        `accuracy_std`, `train_seconds`, `test_seconds`, `peak_mb`, `parameters`, `published` and
        more. If a contestant did not finish, `status` and `reason` say why.

    Examples
    --------
    >>> from fdgnn import compare
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> for row in compare(graphs, y, ["wl"], n_outer=3, n_inner=3):  # doctest: +SKIP
    ...     print(row.model, row.accuracy_mean, row.train_seconds)
    """
    graphs = graphs if isinstance(graphs, GraphBatch) else list(graphs)
    batch, smiles = as_batch(graphs), _smiles_of(graphs)
    y = class_labels(y, batch)
    models = default_models(smiles is not None) if models is None else models
    chosen = replace(PROTOCOLS[_known_protocol(protocol)], n_outer=n_outer, n_inner=n_inner)
    study = plan(name, batch, y, chosen, seed=seed, smiles=smiles)
    context = Context(n_jobs, quiet=not verbose)
    with contextlib.ExitStack() as stack:
        where = out or stack.enter_context(tempfile.TemporaryDirectory())
        return compare_study(study, Path(where), models, context, search=search, limits=limits)


def default_models(molecules: bool) -> tuple[str, ...]:
    """Name those whom the paper's FDGNN is compared with if nobody is named."""
    return DEFAULT_OF_MOLECULES if molecules else DEFAULT_MODELS


def _smiles_of(graphs: Any) -> list[str] | None:
    """Give the SMILES of a list of molecules; None for other graphs."""
    if isinstance(graphs, GraphBatch) or not all(map(is_molecule, graphs)):
        return None
    Chem = require("rdkit.Chem", "chem", "molecules")
    return [one if isinstance(one, str) else Chem.MolToSmiles(one) for one in graphs]


def _known_protocol(name: str) -> str:
    if name not in PROTOCOLS:
        raise ValueError(f"no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return name


def compare_study(
    study: Study,
    directory: Path,
    models: str | Iterable[str],
    context: Context | None = None,
    *,
    search: Search | None = None,
    limits: Limits | None = None,
) -> list[ComparisonRow]:
    """Run or resume a comparison; return its rows, which are also in ``compare.json``.

    Rows of rivals that were compared earlier in the same directory are kept.
    """
    names = ["fdgnn", *check_models(models, molecules=study.smiles is not None)]
    context, search, limits = context or Context(), search or Search(), limits or Limits()
    study.task()  # an error such as too few graphs of a class comes before anything is written
    _check_directory(study, directory)
    try:
        (directory / "rivals").mkdir(exist_ok=True)
        with closing(locked(directory / "rivals" / "lock")):
            rows = _earlier_rows(directory / "compare.json")
            for name in names:
                rows[name] = _row(Turn(name, study, directory, search, context), limits)
                ordered = [rows[n] for n in ["fdgnn", *RIVALS] if n in rows]
                write_record(directory / "compare.json", ordered)
    except OSError as error:
        raise StudyError(f"{directory}: the comparison cannot go on ({error})") from error
    return [rows[name] for name in names]


def _check_directory(study: Study, directory: Path) -> None:
    """Raise StudyError if the directory holds another run, or more than the study asks for."""
    finished = finished_result(study, directory)
    with closing(RunDirectory(directory, study.settings())) as run:
        if finished is None:
            finished_networks(study, run)


def check_models(models: str | Iterable[str], *, molecules: bool) -> list[str]:
    """Give the names, each once, or an error that says which is unknown or cannot take part."""
    models = [models] if isinstance(models, str) else models
    names = [n for n in dict.fromkeys(models) if n != "fdgnn"]
    for name in names:
        if name not in RIVALS:
            raise ValueError(f"no rival {name!r}; there are {', '.join(RIVALS)}")
        if RIVALS[name].of_molecules and not molecules:
            raise ValueError(
                f"{name} is for molecules, and these graphs were not read from SMILES; leave it out"
            )
        RIVALS[name].check_installed(name)
    return names


def _earlier_rows(path: Path) -> dict[str, ComparisonRow]:
    try:
        return {row.model: row for row in read_file(path, list[ComparisonRow])}
    except StudyError:  # it is not there, or it is damaged and will be made again
        return {}


# ---------------------------------------------------------------------- one contestant


def _row(turn: Turn, limits: Limits) -> ComparisonRow:
    """Take the turn, unless it was taken already, and tell how it ended."""
    ended = turn.directory / "rivals" / f"{turn.name}.json"
    state = _earlier_state(ended, turn, limits)
    if state is None:
        status, reason = _run(turn, limits)
        state = TurnState(status=status, reason=reason, search=turn.search, limits=limits)
        write_record(ended, state)
    if state.status == "finished":
        return finished_row(turn)
    return unfinished_row(turn, state.status, state.reason)


def _earlier_state(path: Path, turn: Turn, limits: Limits) -> TurnState | None:
    """Tell how an earlier turn ended, if taking it again would end the same way."""
    if turn.name == "fdgnn":  # its networks may have been extended, and it is quick
        return None
    try:
        state = read_file(path, TurnState)
    except StudyError:
        return None
    same = state.search == turn.search
    given = state.limits
    within = given.seconds >= limits.seconds and given.megabytes >= limits.megabytes
    holds = {"finished": same, "failed": False}.get(state.status, same and within)
    return state if holds else None


def _run(turn: Turn, limits: Limits) -> tuple[Status, str | None]:
    """Let the contestant's process work; give its status and, if it did not finish, why."""
    log = turn.directory / "rivals" / f"{turn.name}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            # -P: a user's file with the name of a Python module is not taken for that module.
            [sys.executable, "-P", "-m", "fdgnn.evaluation.comparison.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
        )
        try:
            _follow(process, turn, limits)
        except _OutOfLimitsError as stopped:
            return stopped.status, stopped.reason
        finally:
            _end(process)
    if process.returncode:
        return "failed", _last_line(log) or f"its process ended with {process.returncode}"
    return "finished", None


def _follow(process: subprocess.Popen[bytes], turn: Turn, limits: Limits) -> None:
    """Show the progress of a contestant's process until it ends."""
    events = _events(process, turn, limits)
    first = next(events, None)
    if isinstance(first, Began):
        what = f"{turn.study.dataset} {turn.name}"
        for _ in turn.context.track(events, first.steps, what, done=first.done):
            pass


def _environment() -> dict[str, str]:
    """Give a contestant one thread, and the same fdgnn as this one."""
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class _OutOfLimitsError(Exception):
    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _events(process: subprocess.Popen[bytes], turn: Turn, limits: Limits) -> Iterator[Event]:
    """Hand the turn over, then give what the process tells, watching time and memory."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_converse, args=(process, turn, lines), daemon=True).start()
    end = time.monotonic() + limits.seconds  # for imports; it is set again by the first event
    while True:
        try:
            line = lines.get(timeout=_SECONDS_BETWEEN_LOOKS)
            if not line:
                process.wait()
                return
            event = _event(line)
            if isinstance(event, Began):
                end = time.monotonic() + limits.seconds - event.spent
            yield event
        except queue.Empty:
            pass
        if time.monotonic() > end:
            raise _OutOfLimitsError("out of time", f"it was given {limits.seconds:g} s")
        if _megabytes(process.pid) > limits.megabytes:
            raise _OutOfLimitsError("out of memory", f"it was given {limits.megabytes:g} MB")


def _event(line: bytes) -> Event:
    kinds: Any = Event
    event: Event = decode(line, kinds)
    return event


def _converse(process: subprocess.Popen[bytes], turn: Turn, lines: queue.Queue[bytes]) -> None:
    """Send the turn and queue the answers, an empty one at the end."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump(turn, process.stdin)
        process.stdin.flush()  # and it stays open: the process ends when it is closed
        for line in process.stdout:
            lines.put(line)
    except (OSError, ValueError):  # it has died, or was stopped
        pass
    lines.put(b"")


def _megabytes(pid: int) -> float:
    """Give the memory held by a process and those it started."""
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


def _last_line(log: Path) -> str:
    lines: Sequence[str] = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""

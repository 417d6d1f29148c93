"""Contestants one after the other, each in its own process, within limits."""

from __future__ import annotations

import contextlib
import json
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
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fdgnn._base import class_labels
from fdgnn.exceptions import StudyError
from fdgnn.experiments.comparison.contest import Search, Turn
from fdgnn.experiments.comparison.rows import Row, finished_row, unfinished_row
from fdgnn.experiments.rivals import RIVALS
from fdgnn.experiments.rivals.base import check_library
from fdgnn.experiments.rundir import RunDirectory, locked
from fdgnn.experiments.study import (
    PROTOCOLS,
    Study,
    check_jobs,
    check_not_more,
    finished_result,
    plan,
)
from fdgnn.files import write_json
from fdgnn.graphs.converters import as_batch
from fdgnn.progress import track

ONE_THREAD = {
    name: "1"
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
}
_SECONDS_BETWEEN_LOOKS = 0.1


@dataclass(frozen=True)
class Limits:
    """What a contestant may use, selection included.

    Attributes
    ----------
    seconds : float
        Of its turn, from when its libraries are imported; what it had finished in earlier runs
        and does not have to do again counts.
    megabytes : float
        Of memory, 10^6 bytes.
    """

    seconds: float = 600.0
    megabytes: float = 4000.0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise ValueError(f"{name} is {value}; a limit must be positive")


def compare(
    graphs: Any,
    y: Any,
    models: str | Iterable[str] = ("wl",),
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
) -> list[Row]:
    """Compare FDGNN with other systems on your own graphs.

    Parameters
    ----------
    graphs : GraphBatch or list of graphs
    y : (n_graphs,) array-like
        Their classes.
    models : str or iterable of str, default=("wl",)
        Of "wl", "pk", "gk", "rw" (GraKeL), "gin", "dgcnn", "gnn" (PyTorch).
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
    list of dict
        A row for each contestant, FDGNN's first: `dataset`, `model`, `status`, `accuracy_mean`,
        `accuracy_std`, `train_seconds`, `test_seconds`, `peak_mb`, `parameters`, `published` and
        more. Of one that did not finish, `status` and `reason` say why.

    Examples
    --------
    >>> from fdgnn import compare
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> for row in compare(graphs, y, ["wl"], n_outer=3, n_inner=3):  # doctest: +SKIP
    ...     print(row["model"], row["accuracy_mean"], row["train_seconds"])
    """
    batch = as_batch(graphs)
    y = class_labels(y, batch)
    chosen = replace(PROTOCOLS[_known_protocol(protocol)], n_outer=n_outer, n_inner=n_inner)
    study = plan(name, batch, y, chosen, seed=seed)
    options: dict[str, Any] = {
        "search": search or Search(), "limits": limits or Limits(), "n_jobs": n_jobs,
        "quiet": not verbose,
    }  # fmt: skip
    if out is not None:
        return compare_study(study, Path(out), models, **options)
    with tempfile.TemporaryDirectory() as directory:
        return compare_study(study, Path(directory), models, **options)


def _known_protocol(name: str) -> str:
    if name not in PROTOCOLS:
        raise ValueError(f"no protocol {name!r}; there are {', '.join(PROTOCOLS)}")
    return name


def compare_study(
    study: Study,
    directory: Path,
    models: str | Iterable[str],
    *,
    search: Search,
    limits: Limits,
    n_jobs: int | None = None,
    quiet: bool = False,
    command: str | None = None,
) -> list[Row]:
    """Run or resume a comparison; return its rows, which are also in ``compare.json``.

    Rows of rivals that were compared earlier in the same directory are kept.
    """
    models = check_models(models)
    check_jobs(n_jobs)
    study.task()  # too few graphs of a class, and the like, before anything is written
    finished = finished_result(study, directory)
    with closing(RunDirectory(directory, study.settings())) as run:
        if finished is None:
            check_not_more(study, run)
    try:
        (directory / "rivals").mkdir(exist_ok=True)
        with closing(locked(directory / "rivals" / "lock")):
            rows = _earlier_rows(directory / "compare.json")
            for name in ["fdgnn", *models]:
                turn = Turn(name, study, directory, search, n_jobs, command)
                rows[name] = _row(turn, limits, quiet)
                ordered = [rows[n] for n in ["fdgnn", *RIVALS] if n in rows]
                write_json(directory / "compare.json", ordered)
    except OSError as error:
        raise StudyError(f"{directory}: the comparison cannot go on ({error})") from error
    return [rows[name] for name in ["fdgnn", *models]]


def check_models(models: str | Iterable[str]) -> list[str]:
    """The names, each once, or an error that tells which is unknown or not installed."""
    models = [models] if isinstance(models, str) else models
    names = [n for n in dict.fromkeys(models) if n != "fdgnn"]
    for name in names:
        if name not in RIVALS:
            raise ValueError(f"no rival {name!r}; there are {', '.join(RIVALS)}")
        RIVALS[name].check_installed(name)
    check_library("a comparison", "psutil")
    return names


def _earlier_rows(path: Path) -> dict[str, Row]:
    try:
        return {row["model"]: row for row in json.loads(path.read_text(encoding="utf-8"))}
    except (OSError, ValueError, KeyError, TypeError):  # not there, or damaged: made anew
        return {}


# ---------------------------------------------------------------------- one contestant


def _row(turn: Turn, limits: Limits, quiet: bool) -> Row:
    """Take the turn, unless it was taken already, and tell how it ended."""
    ended = turn.directory / "rivals" / f"{turn.name}.json"
    state = _state(ended, turn, limits)
    if state is None:
        status, reason = _run(turn, limits, quiet)
        state = {"status": status, "reason": reason} | asdict(limits) | asdict(turn.search)
        write_json(ended, state)
    if state["status"] == "finished":
        return finished_row(turn)
    return unfinished_row(turn, state["status"], state["reason"])


def _state(path: Path, turn: Turn, limits: Limits) -> dict[str, Any] | None:
    """How an earlier turn ended, if taking it again would end the same way."""
    try:
        state: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        same = all(state[key] == value for key, value in asdict(turn.search).items())
        within = state["seconds"] >= limits.seconds and state["megabytes"] >= limits.megabytes
        holds = {"finished": same, "failed": False}.get(state["status"], same and within)
        if turn.name == "fdgnn":  # its networks may have been extended, and it is quick
            holds = False
        return state if holds else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _run(turn: Turn, limits: Limits, quiet: bool) -> tuple[str, str | None]:
    """Let the contestant's process work; give its status and, if it did not finish, why."""
    log = turn.directory / "rivals" / f"{turn.name}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            # -P: a file of the user's that is called like a module of Python's is not taken for it.
            [sys.executable, "-P", "-m", "fdgnn.experiments.comparison.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=_environment(),
        )
        try:
            events = _events(process, turn, limits)
            first = next(events, None)
            if first is not None:
                what = f"{turn.study.dataset} {turn.name}"
                steps = track(events, first["steps"], what, done=first["done"], quiet=quiet)
                for _ in steps:
                    pass
        except _OutOfLimitsError as stopped:
            return stopped.status, stopped.reason
        finally:
            _end(process)
    if process.returncode:
        return "failed", _last_line(log) or f"its process ended with {process.returncode}"
    return "finished", None


def _environment() -> dict[str, str]:
    """One thread, and the same fdgnn as this one."""
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


class _OutOfLimitsError(Exception):
    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def _events(
    process: subprocess.Popen[bytes], turn: Turn, limits: Limits
) -> Iterator[dict[str, Any]]:
    """Hand the turn over, then give what the process tells, watching time and memory."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_converse, args=(process, turn, lines), daemon=True).start()
    end = time.monotonic() + limits.seconds  # for imports; anew from the first event on
    while True:
        try:
            line = lines.get(timeout=_SECONDS_BETWEEN_LOOKS)
            if not line:
                process.wait()
                return
            event = json.loads(line)
            if "spent" in event:
                end = time.monotonic() + limits.seconds - event["spent"]
            yield event
        except queue.Empty:
            pass
        if time.monotonic() > end:
            raise _OutOfLimitsError("out of time", f"it was given {limits.seconds:g} s")
        if _megabytes(process.pid) > limits.megabytes:
            raise _OutOfLimitsError("out of memory", f"it was given {limits.megabytes:g} MB")


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
    """Memory held by a process and those it started."""
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

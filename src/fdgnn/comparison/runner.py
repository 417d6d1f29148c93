"""Contestants one after the other, each in its own process, within limits."""

from __future__ import annotations

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

from sklearn.utils.validation import column_or_1d

from fdgnn._base import check_classes, check_one_each
from fdgnn.comparison.contest import Search, Turn
from fdgnn.comparison.rows import Row, finished_row, unfinished_row
from fdgnn.converters import as_batch
from fdgnn.exceptions import MissingDependencyError, StudyError
from fdgnn.files import write_json
from fdgnn.progress import track
from fdgnn.rivals import RIVALS
from fdgnn.rundir import RunDirectory, locked
from fdgnn.study import PROTOCOLS, Study, plan

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
        Of its turn, counting what it had finished in earlier runs.
    megabytes : float
        Of memory, 10^6 bytes.
    """

    seconds: float = 600.0
    megabytes: float = 4000.0


def compare(
    graphs: Any,
    y: Any,
    models: Iterable[str] = ("wl",),
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
    models : iterable of str, default=("wl",)
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
    y = column_or_1d(y)
    check_one_each(batch, y)
    chosen = replace(PROTOCOLS[_known_protocol(protocol)], n_outer=n_outer, n_inner=n_inner)
    study = plan(name, batch, check_classes(y), chosen, seed=seed)
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
    models: Iterable[str],
    *,
    search: Search,
    limits: Limits,
    n_jobs: int | None = None,
    quiet: bool = False,
) -> list[Row]:
    """Run or resume a comparison; return its rows, which are also in ``compare.json``.

    Rows of rivals that were compared earlier in the same directory are kept.
    """
    models = check_models(models)
    study.task()  # too few graphs of a class, and the like, before anything is written
    RunDirectory(directory, study.settings()).close()
    try:
        (directory / "rivals").mkdir(exist_ok=True)
        with closing(locked(directory / "rivals" / "lock")):
            rows = _earlier_rows(directory / "compare.json")
            for name in ["fdgnn", *models]:
                turn = Turn(name, study, directory, search, n_jobs)
                rows[name] = _row(turn, limits, quiet)
                ordered = [rows[n] for n in ["fdgnn", *RIVALS] if n in rows]
                write_json(directory / "compare.json", ordered)
    except OSError as error:
        raise StudyError(f"{directory}: the comparison cannot go on ({error})") from error
    return [rows[name] for name in ["fdgnn", *models]]


def check_models(models: Iterable[str]) -> list[str]:
    """The names, each once, or an error that tells which is unknown or not installed."""
    names = [n for n in dict.fromkeys(models) if n != "fdgnn"]
    for name in names:
        if name not in RIVALS:
            raise ValueError(f"no rival {name!r}; there are {', '.join(RIVALS)}")
        RIVALS[name].check_installed(name)
    try:
        import psutil  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError(
            "a comparison needs psutil; install it with: pip install 'fdgnn[compare]'"
        ) from error
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
    spent = sum(r["seconds"] for r in turn.records if r.get("kind") == "trials")
    log = turn.directory / "rivals" / f"{turn.name}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "fdgnn.comparison.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=os.environ | ONE_THREAD,
        )
        try:
            events = _events(process, turn, replace(limits, seconds=limits.seconds - spent))
            first = next(events, None)
            if first is not None:
                what = f"{turn.study.dataset} {turn.name}"
                steps = track(events, first["steps"], what, done=first["done"], quiet=quiet)
                for _ in steps:
                    pass
        except _OutOfLimitsError as stopped:
            limit = limits.seconds if stopped.status == "out of time" else limits.megabytes
            unit = "s" if stopped.status == "out of time" else "MB"
            return stopped.status, f"it was given {limit:g} {unit}"
        finally:
            _end(process)
    if process.returncode:
        return "failed", _last_line(log) or f"its process ended with {process.returncode}"
    return "finished", None


class _OutOfLimitsError(Exception):
    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def _events(
    process: subprocess.Popen[bytes], turn: Turn, limits: Limits
) -> Iterator[dict[str, Any]]:
    """Hand the turn over, then give what the process tells, watching time and memory."""
    lines: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_converse, args=(process, turn, lines), daemon=True).start()
    start = time.monotonic()
    while True:
        try:
            line = lines.get(timeout=_SECONDS_BETWEEN_LOOKS)
            if not line:
                process.wait()
                return
            yield json.loads(line)
        except queue.Empty:
            pass
        if time.monotonic() - start > limits.seconds:
            raise _OutOfLimitsError("out of time")
        if _megabytes(process.pid) > limits.megabytes:
            raise _OutOfLimitsError("out of memory")


def _converse(process: subprocess.Popen[bytes], turn: Turn, lines: queue.Queue[bytes]) -> None:
    """Send the turn and queue the answers, an empty one at the end."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with process.stdin as file:
            pickle.dump(turn, file)
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
    if process.stdout is not None:
        process.stdout.close()


def _last_line(log: Path) -> str:
    lines: Sequence[str] = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""

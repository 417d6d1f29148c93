"""Run cases in child processes, with limits of time and memory, and count what happened.

A child runs some hundred cases of one target. Before each it writes the case to a file, so that
after its death, whatever the reason, the last case is known. A case that raises an error is made
smaller by Hypothesis first.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

CPU_SECONDS = 20  # of one case: the slowest valid ones take a tenth of a second
WALL_SECONDS = 300  # of a child that waits for something that does not come
MEMORY = 2**30  # bytes that a child may take beyond what it begins with
CASES = 200  # of one child


@dataclass(frozen=True)
class Target:
    """Something that takes input of strangers.

    Attributes
    ----------
    name : str
    cases : strategy of bytes
        What is tried.
    check : function of bytes
        Returns if the case was handled as it should be, and raises an error if not.
    """

    name: str
    cases: st.SearchStrategy[bytes]
    check: Callable[[bytes], None]


@dataclass
class Tally:
    """What happened to the cases of one target, in all runs."""

    cases: int = 0
    crashes: int = 0
    hangs: int = 0
    wrong: int = 0
    slowest: float = 0.0  # CPU seconds of one case
    largest: int = 0  # bytes that a child took beyond what it began with

    def add(self, other: Tally) -> None:
        """Add the counts of another run."""
        for name in ("cases", "crashes", "hangs", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest = max(self.slowest, other.slowest)
        self.largest = max(self.largest, other.largest)

    @property
    def n_found(self) -> int:
        """Cases that were not handled as they should be."""
        return self.crashes + self.hangs + self.wrong


@dataclass(frozen=True)
class Outcome:
    """What one child did."""

    tally: Tally
    case: bytes | None = None  # that which was not handled as it should be
    story: str = ""  # what happened to it


def run_child(target: Target, number: int, n_cases: int = CASES) -> Outcome:
    """Run cases of a target in a child; the same number gives the same cases."""
    with tempfile.TemporaryDirectory(prefix="fdgnn-fuzz-") as folder:
        place = Path(folder)
        child = os.fork()
        if child == 0:
            _be_the_child(target, number, n_cases, place)
        status = _wait(child)
        return _outcome(status, place)


def _wait(child: int) -> int:
    """Wait for a child; end it if it neither works nor ends."""
    end = time.monotonic() + WALL_SECONDS
    pause = 0.001
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return int(signal.SIGXCPU)
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _outcome(status: int, place: Path) -> Outcome:
    done = Tally()
    with suppress(FileNotFoundError, ValueError):
        done = Tally(**json.loads((place / "tally").read_text()))
    case = (place / "case").read_bytes() if (place / "case").exists() else None
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return Outcome(done)
    if os.WIFEXITED(status):
        done.wrong += 1
        story = (place / "story").read_text() if (place / "story").exists() else "?"
        return Outcome(done, case, story)
    by = signal.Signals(os.WTERMSIG(status))
    if by in (signal.SIGPROF, signal.SIGXCPU):
        done.hangs += 1
        return Outcome(done, case, f"no end after {CPU_SECONDS} s of CPU, or {WALL_SECONDS} s")
    done.crashes += 1
    return Outcome(done, case, f"the process was ended by {by.name}")


def _be_the_child(target: Target, number: int, n_cases: int, place: Path) -> NoReturn:
    code = 1
    try:
        os.chdir(place)
        _limit_memory()
        _try_cases(target, number, n_cases, place)
        code = 0
    except BaseException:  # whatever it is, it is told, and the child ends here
        (place / "story").write_text(traceback.format_exc()[-4000:], errors="replace")
    finally:
        sys.stdout.flush()
        os._exit(code)


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _try_cases(target: Target, number: int, n_cases: int, place: Path) -> None:
    tally, before = Tally(), _resident()

    @seed(number)
    @settings(
        max_examples=n_cases, database=None, deadline=None, phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(target.cases)
    def every(case: bytes) -> None:
        (place / "case").write_bytes(case)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.check(case)
        tally.slowest = max(tally.slowest, time.process_time() - start)
        signal.setitimer(signal.ITIMER_PROF, 0)
        tally.cases += 1
        tally.largest = max(tally.largest, _resident() - before)
        if tally.cases % 20 == 0 or tally.cases == n_cases:
            (place / "tally").write_text(json.dumps(asdict(tally)))

    every()
    (place / "tally").write_text(json.dumps(asdict(tally)))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass
class Ledger:
    """The tallies of all targets, kept in a file over several runs."""

    path: Path
    seconds: float = 0.0
    targets: dict[str, Tally] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read what was counted before; nothing if there is no such file."""
        if not path.exists():
            return cls(path)
        held: dict[str, Any] = json.loads(path.read_text())
        tallies = {name: Tally(**one) for name, one in held["targets"].items()}
        return cls(path, held["seconds"], tallies)

    def add(self, name: str, tally: Tally, seconds: float) -> None:
        """Count what a child did, and write it down."""
        self.targets.setdefault(name, Tally()).add(tally)
        self.seconds += seconds
        total = Tally()
        for one in self.targets.values():
            total.add(one)
        facts = {
            "seconds": round(self.seconds, 1),
            "total": asdict(total),
            "targets": {name: asdict(one) for name, one in sorted(self.targets.items())},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(facts, indent=1) + "\n")
        aside.replace(self.path)


def run_rounds(
    targets: list[Target], ledger: Ledger, seconds: float, rounds: int | None, n_cases: int = CASES
) -> Iterator[tuple[Target, Outcome]]:
    """Run a child of each target, round by round, until the time is over or all rounds are done.

    Cases begin where the ledger ends, so that each run tries others.
    """
    end = time.monotonic() + seconds
    for _ in itertools.count() if rounds is None else range(rounds):
        for target in targets:
            start = time.monotonic()
            if rounds is None and start >= end:
                return
            number = ledger.targets.get(target.name, Tally()).cases
            outcome = run_child(target, number, n_cases)
            ledger.add(target.name, outcome.tally, time.monotonic() - start)
            yield target, outcome


def run_again(target: Target, case: bytes) -> Outcome:
    """Run one case that was kept."""
    return run_child(Target(target.name, st.just(case), target.check), 0, 1)

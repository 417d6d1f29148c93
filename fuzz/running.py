"""Run cases in child processes, with limits of time and memory, and count the outcomes.

A case follows from the name of its target and its number. A child runs some thousand cases of one
target, and writes the number of each to memory that it shares with its parent. So the last case is
known, however the child ended. A case that raises an error is shrunk first.
Several children, of different targets, may run at the same time.
"""

from __future__ import annotations

import gc
import itertools
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, NoReturn

CPU_SECONDS = 20  # of one case: the slowest valid ones take a tenth of a second
WALL_SECONDS = 1800  # of a child that waits for something that does not come; others may be busy
MEMORY = 2**30  # bytes that a child may take beyond what it begins with
CASES = 4000  # of one child, at most
TURN_SECONDS = 4.0  # of CPU, after which a child gives way to one of another target
SHRINK_SECONDS = 10.0  # of CPU, to make a case smaller
RECORD = struct.Struct("<qqdq")  # of `_Record`


@dataclass(frozen=True)
class Target:
    """Code that takes untrusted input.

    Attributes
    ----------
    name : str
    make : function of a random.Random
        Gives the bytes that are tried.
    check : function of bytes
        Returns if the case was handled as it should be, and raises an error if not.
    """

    name: str
    make: Callable[[Random], bytes]
    check: Callable[[bytes], None]

    def case(self, number: int) -> bytes:
        """Generate the case of this number."""
        return self.make(Random(f"{self.name} {number}"))


@dataclass
class Tally:
    """Counts of the cases of one target, in all runs."""

    cases: int = 0
    clean: int = 0  # those since the last one that was not handled as it should be
    crashes: int = 0
    hangs: int = 0
    wrong: int = 0
    slowest: float = 0.0  # CPU seconds of one case
    largest: int = 0  # bytes that a child took beyond what it began with

    def add(self, other: Tally) -> None:
        """Add the counts of a later run."""
        self.clean = other.clean + (0 if other.n_found else self.clean)
        for name in ("cases", "crashes", "hangs", "wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.slowest = max(self.slowest, other.slowest)
        self.largest = max(self.largest, other.largest)

    @property
    def n_found(self) -> int:
        """The number of failed cases."""
        return self.crashes + self.hangs + self.wrong


@dataclass(frozen=True)
class Outcome:
    """The result of one child."""

    tally: Tally
    case: bytes | None = None  # that which was not handled as it should be
    story: str = ""  # what happened to it
    seconds: float = 0.0  # of CPU, with the processes that it started


class _Record:
    """Progress of a child, in memory shared with its parent."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, mmap.PAGESIZE)

    def write(self, number: int, tally: Tally) -> None:
        """Record the current case, and the counts before it."""
        RECORD.pack_into(self._memory, 0, number, tally.cases, tally.slowest, tally.largest)

    def read(self) -> tuple[int, Tally]:
        """Return the number of the last case, and the counts before it."""
        number, cases, slowest, largest = RECORD.unpack_from(self._memory)
        return number, Tally(cases=cases, clean=cases, slowest=slowest, largest=largest)


class Child:
    """A process that runs cases of a target, from number `first` on."""

    def __init__(self, target: Target, first: int, n_cases: int) -> None:
        home = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self.target = target
        self._folder = tempfile.TemporaryDirectory(prefix="fdgnn-fuzz-", dir=home)
        self._place, self._record = Path(self._folder.name), _Record()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            numbers = range(first, first + n_cases)
            _be_the_child(target, numbers, self._place, self._record)

    def outcome(self) -> Outcome:
        """Wait for the end, and return the result."""
        with self._folder:
            status, seconds = self._wait()
            return replace(
                _outcome(status, self.target, self._place, self._record), seconds=seconds
            )

    def _wait(self) -> tuple[int, float]:
        """Wait; end the process if it neither works nor ends.

        Naps are counted, and no clock is asked: both processes may be stopped for a while.
        """
        waited, nap = 0.0, 0.001
        while True:
            found, status, used = os.wait4(self._pid, os.WNOHANG)
            if found:
                return status, used.ru_utime + used.ru_stime
            if waited > WALL_SECONDS:
                os.kill(self._pid, signal.SIGKILL)
                used = os.wait4(self._pid, 0)[2]
                return int(signal.SIGXCPU), used.ru_utime + used.ru_stime
            time.sleep(nap)
            waited, nap = waited + nap, min(2 * nap, 0.05)


def run_child(target: Target, first: int, n_cases: int = CASES) -> Outcome:
    """Run cases of a target in a child, from number `first` on."""
    return Child(target, first, n_cases).outcome()


def _outcome(status: int, target: Target, place: Path, record: _Record) -> Outcome:
    number, done = record.read()
    if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
        return Outcome(done)
    done.cases, done.clean = done.cases + 1, 0
    if (place / "story").exists():
        done.wrong += 1
        return Outcome(done, (place / "case").read_bytes(), (place / "story").read_text())
    case = target.case(number)
    if os.WIFEXITED(status):
        done.wrong += 1
        return Outcome(done, case, f"the process ended itself with {os.WEXITSTATUS(status)}")
    by = signal.Signals(os.WTERMSIG(status))
    if by in (signal.SIGPROF, signal.SIGXCPU):
        done.hangs += 1
        return Outcome(done, case, f"no end after {CPU_SECONDS} s of CPU, or {WALL_SECONDS} s")
    done.crashes += 1
    return Outcome(done, case, f"the process was ended by {by.name}")


def _be_the_child(target: Target, numbers: range, place: Path, record: _Record) -> NoReturn:
    code = 1
    try:
        os.chdir(place)
        _limit_memory()
        _try_cases(target, numbers, place, record)
        code = 0
    except BaseException as error:  # whatever it is, it is told, and the child ends here
        if not (place / "story").exists():
            _tell(place, b"", error)
    finally:
        sys.stdout.flush()
        os._exit(code)


def _tell(place: Path, case: bytes, error: BaseException) -> None:
    """Write the result for the parent."""
    story = "".join(traceback.format_exception(error))
    (place / "case").write_bytes(case)
    (place / "story").write_text(story[-4000:], errors="replace")


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _try_cases(target: Target, numbers: range, place: Path, record: _Record) -> None:
    tally, before, start = Tally(), _resident(), time.process_time()
    warnings.simplefilter("ignore")
    gc.freeze()  # what the parent has made stays
    for number in numbers:
        case = target.case(number)
        record.write(number, tally)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        began = time.process_time()
        try:
            target.check(case)
        except BaseException as error:
            _tell(place, case, error)  # at once: a smaller case may do anything
            _tell(place, *_smaller(target, case, error))
            raise
        ended = time.process_time()
        tally.cases, tally.clean = tally.cases + 1, tally.clean + 1
        tally.slowest = max(tally.slowest, ended - began)
        tally.largest = max(tally.largest, _resident() - before)
        if ended - start > TURN_SECONDS:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    record.write(number, tally)


def _smaller(target: Target, case: bytes, error: BaseException) -> tuple[bytes, BaseException]:
    """Shrink a case as long as the error stays the same; return it with its error."""
    end, length = time.process_time() + SHRINK_SECONDS, max(len(case) // 2, 1)
    while length >= 1 and time.process_time() < end:
        at = 0
        while at < len(case) and time.process_time() < end:
            fewer = case[:at] + case[at + length :]
            signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
            try:
                target.check(fewer)
            except BaseException as found:
                if _kind(found) == _kind(error):
                    case, error = fewer, found
                    continue
            at += length
        length //= 2
    return case, error


def _kind(error: BaseException) -> tuple[Any, ...]:
    """Identify an error by its type and by where it was raised."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return type(error), last.filename, last.lineno


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@dataclass
class Ledger:
    """Tallies of all targets, in a file over several runs."""

    path: Path
    seconds: float = 0.0  # of CPU
    targets: dict[str, Tally] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  # written by hand

    @classmethod
    def read(cls, path: Path) -> Ledger:
        """Read earlier counts; empty if the file does not exist."""
        if not path.exists():
            return cls(path)
        held: dict[str, Any] = json.loads(path.read_text())
        tallies = {name: Tally(**one) for name, one in held["targets"].items()}
        return cls(path, held["seconds"], tallies, held["notes"])

    def add(self, name: str, outcome: Outcome) -> None:
        """Add and write the counts of a child."""
        self.targets.setdefault(name, Tally()).add(outcome.tally)
        self.seconds += outcome.seconds
        facts = {
            "notes": self.notes,
            "seconds": round(self.seconds, 1),
            "total": asdict(self.total),
            "targets": {name: asdict(one) for name, one in sorted(self.targets.items())},
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        aside = self.path.with_suffix(".new")
        aside.write_text(json.dumps(facts, indent=1) + "\n")
        aside.replace(self.path)

    @property
    def total(self) -> Tally:
        """All targets together."""
        total = Tally()
        for one in self.targets.values():
            clean = total.clean + one.clean
            total.add(one)
            total.clean = clean
        return total


def run_rounds(
    targets: list[Target],
    ledger: Ledger,
    seconds: float,
    rounds: int | None,
    n_cases: int = CASES,
    jobs: int = 1,
) -> Iterator[tuple[Target, Outcome]]:
    """Run a child of each target, round by round, until the time is over or all rounds are done.

    A round begins with the targets of which the fewest cases were tried, so that short runs are
    fair as well. Cases begin where the ledger ends, so that each run tries others; for that, no
    two children have the same target at a time.
    """
    end = time.monotonic() + seconds
    running: deque[Child] = deque()

    def n_tried(target: Target) -> int:
        return ledger.targets.get(target.name, Tally()).cases

    def finished() -> tuple[Target, Outcome]:
        child = running.popleft()
        outcome = child.outcome()
        ledger.add(child.target.name, outcome)
        return child.target, outcome

    for _ in itertools.count() if rounds is None else range(rounds):
        for target in sorted(targets, key=n_tried):
            while len(running) == jobs or any(child.target is target for child in running):
                yield finished()
            if rounds is None and time.monotonic() >= end:
                break
            running.append(Child(target, n_tried(target), n_cases))
        else:
            continue
        break
    while running:
        yield finished()


def run_again(target: Target, case: bytes) -> Outcome:
    """Run a kept case."""
    return run_child(Target(target.name, lambda rng: case, target.check), 0, 1)

"""``pytest --cpu-times``: the processor's time of tests, by file and by test, child processes too.

Times do not depend on what else the machine does as much as seconds of waiting do. What a fixture
takes counts for the first test that asks for it. With pytest-xdist the times of all workers count.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

_NAME = "cpu seconds"
_TICKS = os.sysconf("SC_CLK_TCK")


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=int, default=0, metavar="N", help="the N slowest tests")


def spent() -> float:
    """CPU seconds of this process and of its children, also of those that have not ended.

    joblib's processes serve one test after the other, and end minutes later.
    """
    return sum(os.times()[:4]) + sum(map(_spent_by, _children(os.getpid())))


def _spent_by(pid: int) -> float:
    """CPU seconds of a process that runs, and of its children."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / _TICKS  # the last two: ended children
    return own + sum(map(_spent_by, _children(pid)))


def _children(pid: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{pid}/task")  # noqa: PTH208  (a path takes longer)
    except OSError:
        return []
    lists = (_read(f"/proc/{pid}/task/{thread}/children") for thread in threads)
    return [int(child) for children in lists for child in children.split()]


def _read(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return file.read().decode(errors="replace")
    except OSError:  # the process has just ended, or there is no /proc
        return ""


_until_now: list[float] = []  # what was spent when the last test ended


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    if not _until_now and item.config.getoption("--cpu-times"):
        _until_now.append(spent())
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    # Once for each test: looking for all children takes a millisecond or more.
    try:
        return (yield)
    finally:
        if _until_now:
            before, _until_now[0] = _until_now[0], spent()
            # A process that nobody waits for, such as a browser's, takes its time along.
            item.user_properties[:] = [(_NAME, max(_until_now[0] - before, 0.0))]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    n_shown = config.getoption("--cpu-times")
    if not n_shown:
        return
    tests: Counter[str] = Counter()
    files: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, seconds in getattr(report, "user_properties", ()):
                if name == _NAME:
                    tests[report.nodeid] += seconds
                    files[report.nodeid.partition("::")[0]] += seconds
    terminalreporter.section("CPU seconds")
    for found in (files, tests):
        for name, seconds in found.most_common(n_shown):
            terminalreporter.write_line(f"{seconds:8.2f}  {name}")
    terminalreporter.write_line(f"{sum(tests.values()):8.2f}  all tests")
    # pytest-xdist's workers have ended by now: they are children like others
    terminalreporter.write_line(f"{spent():8.2f}  the whole run, user and system, as `time` gives")

"""``pytest --cpu-times``: the processor's time of tests, by file and by test, child processes too.

Times do not depend on what else the machine does as much as seconds of waiting do. What a fixture
takes counts for the first test that asks for it. With pytest-xdist the times of all workers count.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_NAME = "cpu seconds"


def add_option(parser: pytest.Parser) -> None:
    parser.addoption("--cpu-times", type=int, default=0, metavar="N", help="the N slowest tests")


def spent() -> float:
    """CPU seconds of this process and of its children, also of those that have not ended.

    joblib's processes serve one test after the other, and end minutes later.
    """
    return sum(os.times()[:4]) + sum(map(_spent_by, _children(os.getpid())))


def _spent_by(pid: int) -> float:
    """CPU seconds of a process that runs, and of its children."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has just ended, or there is no /proc
        return 0.0
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # the last two: ended children
    return own + sum(map(_spent_by, _children(pid)))


def _children(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except OSError:
        return []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    yield from _timed(item)


def _timed(item: pytest.Item) -> Iterator[Any]:
    start = spent()
    try:
        return (yield)
    finally:
        # A process that ends without being waited for, as a browser's do, takes its time along.
        phase = max(spent() - start, 0.0)
        item.user_properties[:] = [(_NAME, phase)]  # the report of this phase takes it


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

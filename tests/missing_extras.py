"""Skip tests that need an optional library, where none are installed (`make test-minimal`).

A test needs an extra if it fails with fdgnn's own advice to install one, or because the test itself
imports a library that is missing. A `ModuleNotFoundError` that comes out of fdgnn stays a failure:
users without extras must get the advice instead.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

IS_MINIMAL = bool(os.environ.get("FDGNN_TEST_MINIMAL"))
_ADVICE = re.compile(r"install the extra '(\w+)'")
_MISSING = re.compile(r"No module named '(\w+)")
# What brings each library; pandas and PyTorch are in no extra.
_EXTRAS = {
    "distributed": "cluster",
    "fsspec": "cluster",
    "grakel": "demo",
    "jinja2": "report",
    "matplotlib": "plot",
    "networkx": "interop",
    "pyarrow": "tables",
    "openpyxl": "tables",
    "rdkit": "chem",
    "torch_geometric": "compare",
    "tqdm": "demo",
    "vl_convert": "report",
}
_HERE = Path(__file__).parent


def _reason(report: Any) -> str | None:
    """Return which extra a failed or skipped test or file needs; None if that is not why."""
    text = "\n".join([report.longreprtext, *(content for _, content in report.sections)])
    advice = _ADVICE.search(text)
    if advice is not None:
        return f"needs the extra {advice[1]!r}"
    missing = _MISSING.search(text)
    crash = getattr(report.longrepr, "reprcrash", None)
    own = crash is None or _HERE in Path(crash.path).resolve().parents
    if missing is None or not own:
        return None
    extra = _EXTRAS.get(missing[1])
    return f"needs {missing[1]}" + (f", of the extra {extra!r}" if extra else ", of no extra")


def _skip_without_extra(report: Any) -> None:
    reason = _reason(report) if IS_MINIMAL and not report.passed else None
    if reason is not None:
        report.outcome = "skipped"
        report.longrepr = (report.nodeid.split("::")[0], 1, f"Skipped: {reason}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[Any]:
    report = yield
    _skip_without_extra(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[Any]:
    report = yield
    _skip_without_extra(report)
    return report

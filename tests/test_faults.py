"""Faults x commands: the old file or the new one, never half of it, and nothing lost.

=================  ======  ========  ========  =======  =======  ======  ===============
                   fit     evaluate  compare   predict  explain  report  fit out of core
=================  ======  ========  ========  =======  =======  ======  ===============
disk full          x       x         x         x        x        x       x
permission lost    x       x         x         x        x        x       x
killed             x       x         x         x        x        x       x
clock moved        x       x                   x        x        x
=================  ======  ========  ========  =======  =======  ======  ===============

Each fault happens at every write of the command (of `compare` and of `fit` out of core, each at
some of them), one after the other (`fault_driver`). A clock that is moved ends nothing. A worker
that is gone is in tests/test_study.py, for `evaluate`, which has workers.
"""

from __future__ import annotations

import hashlib
import json

import pytest

from commands import fdgnn
from fault_driver import CLOCK, KINDS
from fdgnn import load_tu
from fdgnn.datasets import make_motif_graphs
from fdgnn.report.bundle import bundle
from tu_files import write_batch

pytestmark = pytest.mark.xdist_group("faults")
COMMANDS = ("fit", "evaluate", "predict", "explain", "report")
SLOW = ("compare", "scale")  # the first starts processes, the second has many writes
DETERMINED = ("fit", "predict", "explain")  # their files have the same bits each time


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A dataset of its own, a table, and a model."""
    folder = tmp_path_factory.mktemp("faults")
    graphs, y = make_motif_graphs(40, random_state=0)
    write_batch(folder / "MOTIFS", graphs, y)
    rows = [
        {"edge_index": [[0, 1, 2], [1, 2, i % 2]], "node_feat": [i % 3, 1, 2], "y": i % 2}
        for i in range(24)
    ]
    (folder / "table.jsonl").write_text("\n".join(map(json.dumps, rows)))
    model = fdgnn("fit", folder / "table.jsonl", "--target", "y", "--model", "paper",
                  "-o", folder / "model.fdgnn", "--configurations", 1)  # fmt: skip
    assert model.returncode == 0, model.stderr
    load_tu(folder / "MOTIFS")  # now its cache is there: without one, a command goes on
    bundle()  # the same for what draws a page's charts
    return folder


def words_of(command, data):
    """What is typed, and the file that must be old or new."""
    table = data / "table.jsonl"
    few = ("--configurations", 1, "--guesses", 1, "--units", 5)
    return {
        "fit": (
            ("fit", table, "--target", "y", "--model", "paper", "-o", "out.fdgnn",
             "--configurations", 2, "--units", 5),
            "out.fdgnn",
        ),
        "evaluate": (
            ("evaluate", data / "MOTIFS", "--out", "run", "--no-report", "--jobs", 1, *few),
            "run/result.json",
        ),
        "compare": (
            ("compare", data / "MOTIFS", "--with", "fdgnn-colors", "--out", "run", "--no-report",
             *few[:2]),
            "run/compare.json",
        ),
        "scale": (
            ("fit", table, "--target", "y", "--model", "colors", "--memory", "1GB", "-o",
             "big.fdgnn"),
            "big.fdgnn",
        ),
        "explain": (("explain", data / "model.fdgnn", table, "-o", "out.jsonl"), "out.jsonl"),
        "report": (("report", data / "model.fdgnn", "-o", "page.html"), "page.html"),
        "predict": (("predict", data / "model.fdgnn", table, "-o", "out.csv"), "out.csv"),
    }[command]  # fmt: skip


@pytest.fixture
def drive(faults, data):
    """``drive(kind, command, folder)``: what is found at some or all of a command's writes."""

    def drive(kind, command, folder):
        words, watched = words_of(command, data)
        first, step = 0, 7 if kind == CLOCK else 1
        if command in SLOW and kind in KINDS:  # the three faults share the writes
            first, step = 5 * KINDS.index(kind), 15
        return faults(folder, kind, first, step, watched, list(map(str, words)))

    return drive


@pytest.mark.parametrize("command", [*COMMANDS, "compare", "scale"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_at_any_write_leaves_the_old_file_or_the_new_one(
    kind, command, data, drive, tmp_path
):
    watched = tmp_path / words_of(command, data)[1]
    if command in DETERMINED:
        watched.write_bytes(b"what was there before")
    found = drive(kind, command, tmp_path)
    codes, states = found["codes"], found["states"]
    assert codes[-1] == 0, found["told"][-1]  # in the end it works, with what was kept
    assert len(codes) > 1  # there were writes, and faults
    assert all(code == -9 for code in codes[:-1]) or kind != "killed"
    assert any(codes[:-1])  # but for what can be done without, as the cache of datasets
    assert not any("Traceback" in told for told in found["told"])
    new = hashlib.sha256(watched.read_bytes()).hexdigest()
    old = hashlib.sha256(b"what was there before").hexdigest()
    if command in DETERMINED:
        assert set(states) <= {old, new}
        assert states[0] == old
    else:  # results with more and more rows
        assert states[0] is None or codes[0] == 0
        assert "half" not in states
    if command == "scale":
        assert set(states) <= {None, new}
    if kind != "killed":
        assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("command", COMMANDS)
def test_a_clock_that_is_moved_changes_nothing(command, drive, tmp_path):
    found = drive(CLOCK, command, tmp_path)
    assert len(found["codes"]) > 1
    assert not any(found["codes"]), found["told"]
    assert "half" not in found["states"]
    if command in DETERMINED:
        assert len(set(found["states"])) == 1

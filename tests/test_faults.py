"""Faults x commands: the old file or the new one, never half of it, and nothing lost.

================  =====  ==========  =========  =========  =========  ========  ==========
                  fit    evaluate    compare    predict    explain    report    playground
================  =====  ==========  =========  =========  =========  ========  ==========
disk full         x      x           x          x          x          x         x
permission lost   x      x           x          x          x          x         x
killed            x      x           x          x          x          x         x
clock moved       x      x           x          x          x          x         x
worker gone       x      x                      x
================  =====  ==========  =========  =========  =========  ========  ==========

`fit` and `predict` stand for themselves and for `fit --memory`, which encodes shards, and for the
prediction of a directory. Each fault happens at every write of the command (of those that are
slow, each at some of them), one after the other (`fault_driver`). A clock that is moved ends
nothing. Workers of a Dask cluster that are gone are in test_study, test_scale_cluster and
test_predict_shards.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from joblib.externals.loky.process_executor import TerminatedWorkerError

from commands import assert_one_clear_line, fdgnn
from fault_driver import CLOCK, KINDS
from fdgnn import load_tu
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.run import read_evaluations
from fdgnn.html.page import vega_bundle
from tu_files import write_batch

pytestmark = pytest.mark.xdist_group("faults")
COMMANDS = (
    "fit", "evaluate", "predict", "explain", "report", "playground", "fit shards", "predict shards",
)  # fmt: skip
SLOW = ("compare", "fit shards")  # the first trains a lot, the second has many writes
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
    lines = [json.dumps(row) for row in rows]
    (folder / "table.jsonl").write_text("\n".join(lines))
    (folder / "shards").mkdir()
    for name, some in (("a", lines[:8]), ("b", lines[8:])):
        (folder / "shards" / f"{name}.jsonl").write_text("\n".join(some))
    model = fdgnn("fit", folder / "table.jsonl", "--target", "y", "--model", "paper",
                  "-o", folder / "model.fdgnn", "--configurations", 1)  # fmt: skip
    assert model.returncode == 0, model.stderr
    load_tu(folder / "MOTIFS")  # now its cache is there: without one, a command goes on
    vega_bundle()  # the same for what draws a page's charts
    return folder


def words_of(command, data):
    """What is typed, and the file that must be old or new."""
    table = data / "table.jsonl"
    few = ("--configurations", 1, "--initializations", 1, "--units", 5)
    return {
        "fit": (
            ("fit", table, "--target", "y", "--model", "paper", "-o", "out.fdgnn",
             "--configurations", 2, "--units", 5, "--force"),
            "out.fdgnn",
        ),
        "evaluate": (
            ("evaluate", data / "MOTIFS", "--out", "run", "--no-report", "--jobs", 1, *few),
            "run/evaluation.json",
        ),
        "compare": (
            ("compare", data / "MOTIFS", "--with", "fdgnn-wl", "--out", "run", "--no-report",
             *few[:2]),
            "run/evaluation.json",
        ),
        "fit shards": (
            ("fit", data / "shards", "--target", "y", "--model", "wl", "--memory", "1GB", "-o",
             "big.fdgnn", "--force"),
            "big.fdgnn",
        ),
        "predict shards": (
            ("predict", data / "model.fdgnn", data / "shards", "-o", "out"),
            "out/a.jsonl",
        ),
        "playground": (
            ("playground", data / "model.fdgnn", "-o", "play.html", "--force"), "play.html",
        ),
        "explain": (
            ("explain", data / "model.fdgnn", table, "-o", "out.jsonl", "--force"), "out.jsonl",
        ),
        "report": (("report", data / "model.fdgnn", "-o", "page.html", "--force"), "page.html"),
        "predict": (
            ("predict", data / "model.fdgnn", table, "-o", "out.csv", "--force"), "out.csv",
        ),
    }[command]  # fmt: skip


@pytest.fixture
def drive(faults, data):
    """``drive(kind, command, folder)``: what is found at some or all of a command's writes."""

    def drive(kind, command, folder):
        words, watched = words_of(command, data)
        first, step = 0, (21 if command in SLOW else 7) if kind == CLOCK else 1
        if command in SLOW and kind in KINDS:  # the three faults share the writes
            first, step = 5 * KINDS.index(kind), 15
        return faults(folder, kind, first, step, watched, list(map(str, words)))

    return drive


@pytest.mark.parametrize("command", [*COMMANDS, "compare"])
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
    else:  # results with more and more rows, the first of them unfinished
        assert "half" not in states
    if command.endswith("shards"):
        assert set(states) <= {None, new}
    assert not list(tmp_path.rglob("*.part"))  # what killed commands left was written over


@pytest.mark.parametrize("command", [*COMMANDS, "compare"])
def test_a_clock_that_is_moved_changes_nothing(command, drive, tmp_path):
    found = drive(CLOCK, command, tmp_path)
    assert len(found["codes"]) > 1
    assert not any(found["codes"]), found["told"]
    assert "half" not in found["states"]
    if command in DETERMINED:
        assert len(set(found["states"])) == 1


@pytest.mark.parametrize(
    ("command", "work"),
    [
        ("fit", "fdgnn.selection.search.parallel"),
        ("fit shards", "fdgnn.workers.WorkerPool"),
        ("evaluate", "fdgnn.evaluation.protocol.parallel"),
        ("predict", "fdgnn.prediction.predictor.Predictor.predict"),
    ],
)
@pytest.mark.parametrize("why", ["killed", "no memory"])
def test_a_worker_that_is_gone_is_told_in_one_line(command, work, why, data, tmp_path, monkeypatch):
    def gone(*_, **__):
        raise TerminatedWorkerError("killed") if why == "killed" else MemoryError("64 GiB")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(work, gone)
    words, watched = words_of(command, data)
    Path(watched).parent.mkdir(exist_ok=True)
    more = ("-j", 2) if command == "fit shards" else ()
    told = "process was killed" if why == "killed" else "memory ran out"
    assert_one_clear_line(fdgnn(*words, *more), told)
    if command == "evaluate":
        assert [one.status for one in read_evaluations(Path("run"))] == ["unfinished"]
    else:
        assert not Path(watched).exists()

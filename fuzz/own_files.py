"""Files that fdgnn writes for itself: parts of work directories, caches, searches, runs.

They belong to the machine that wrote them, so nobody makes them hostile; but disks fail, and
copies end early. Damage is an error, or the file counts as not there; it is never other content.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from fdgnn import read_graphs
from fdgnn.checkpoints import Checkpoints
from fdgnn.datasets.home import cached
from fdgnn.evaluation.committee_files import read_committee, read_member, write_member
from fdgnn.evaluation.committee_records import CommitteeSettings
from fdgnn.evaluation.records import Asked, NetworkScores, RunSettings
from fdgnn.evaluation.rundir import RunDirectory, read_run
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.fitting import Choice, FitTask, ModelFit, Scores
from fdgnn.metrics import squared_error
from fdgnn.records import encode
from fdgnn.scale import chunks
from fdgnn.targets import Targets
from fuzz import files
from fuzz.mutation import changed_json, mutated
from fuzz.running import Target

RESULTS = Path(__file__).parents[1] / "results"


def targets() -> list[Target]:
    """All targets."""
    arrays = [Target(name, mutated([_written(name)]), _ArrayFile(name)) for name in ARRAY_FILES]
    return [*arrays, Target("runs", _run_file, _read_run)]


# ---------------------------------------------------------------------- arrays


class Kept(NamedTuple):
    """A kind of file with arrays: how it is written, and read again (None: it is not there)."""

    write: Callable[[], Any]
    read: Callable[[], Any]


def _rows() -> Any:
    Path("rows.csv").write_bytes(files.tables()[".csv"][0])
    return read_graphs("rows.csv", target="y")


def _chunk() -> chunks.Chunk:
    store = Checkpoints(Path("work"), "fuzz")
    return chunks.Chunk("rows.csv", store, chunks.save_chunk(store, 0, _rows()))


def _read_chunk() -> Any:
    store = Checkpoints(Path("work"), "fuzz")
    report = store.load_record("report 0", chunks.ChunkReport)
    if report is None:  # a checkpoint that is damaged is made again
        return None
    chunk = chunks.Chunk("rows.csv", store, report)
    return chunk.graphs(), chunk.load("signatures".__eq__)


def _load_cached(parse: Callable[[], Any]) -> Any:
    os.environ["FDGNN_CACHE"] = str(Path.cwd() / "cache")
    return cached([], "fuzz", parse, name="case")


class _NotCachedError(Exception):
    """There is no such file in the cache."""


def _parse_again() -> Any:
    raise _NotCachedError


def _dataset() -> Any:
    table = read_graphs("rows.csv", target="y")
    return table.graphs, np.arange(3)


def _store() -> Checkpoints:
    return Checkpoints(Path("search"), "fuzz")


_TASK = FitTask(
    Targets(("",), np.zeros((3, 1)), flat=True), np.array([[0, 1, -1], [-1, 0, 1]]), squared_error
)
_CHOICE = Choice(
    np.ones((2, 1), dtype=np.int64),
    np.zeros((2, 3, 1)),
    Scores((), np.full((2, 4, 1), 0.5), np.zeros((2, 4, 1))),
)
_MEMBER = ModelFit("wl", (0.01, 0.1, 1.0, 10.0), _CHOICE, (), [], None, 1.5)

ARRAY_FILES: dict[str, Kept] = {
    "chunk": Kept(_chunk, _read_chunk),
    "cache": Kept(lambda: (_rows(), _load_cached(_dataset)), lambda: _load_cached(_parse_again)),
    "search": Kept(
        lambda: _store().save("a", {"x": np.arange(5.0), "y": np.eye(2)}),
        lambda: _store().load("a"),
    ),
    "member": Kept(
        lambda: write_member(Path(), 0, _MEMBER), lambda: read_member(Path(), 0, "wl", _TASK)
    ),
}


@cache
def _made(name: str) -> tuple[Path, bytes, list[Any]]:
    """Where such a file lies, its bytes, and what is in it."""
    before = Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            kind = ARRAY_FILES[name]
            kind.write()
            path = next(Path().rglob("*.npz"))
            return path, path.read_bytes(), _leaves(kind.read())
        finally:
            os.chdir(before)


def _written(name: str) -> bytes:
    return _made(name)[1]


class _ArrayFile:
    """Damage is noticed, or does not matter."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, case: bytes) -> None:
        path, _, content = _made(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(case)
        try:
            found = ARRAY_FILES[self.name].read()
        except (StudyError, _NotCachedError):
            return
        if found is not None:
            assert _leaves(found) == content


def _leaves(value: Any) -> list[Any]:
    """All that is in arrays and records, as plain values."""
    if isinstance(value, np.ndarray):
        return [value.dtype.str, value.shape, value.tobytes()]
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in _leaves(one)]
    if hasattr(value, "__dataclass_fields__"):
        return [
            leaf for name in value.__dataclass_fields__ for leaf in _leaves(getattr(value, name))
        ]
    return [repr(value)]


# ---------------------------------------------------------------------- run directories

_SETTINGS = RunSettings(
    dataset="TOY", data="0", n_outer=2, n_inner=2, max_layers=2, n_units=5, alphas=[0.1, 1.0],
    seed=0, fdgnn="1",
)  # fmt: skip
_SCORES = NetworkScores(
    configuration=0,
    guess=0,
    seconds=1.0,
    validation=[[[0.5, 0.5]] * 2] * 2,
    test=[[[1.0, 0.0]] * 2] * 2,
)  # fmt: skip
_COMMITTEE = CommitteeSettings(
    dataset="TOY", data="0", model="auto", members=["a"], n_outer=2, n_inner=2, alphas=[1.0],
    seed=0, engine=1, fdgnn="1",
)  # fmt: skip


@cache
def _run() -> dict[str, bytes]:
    """The files of a run, by name."""
    return {
        "settings.json": encode(_SETTINGS),
        "records.jsonl": b"\n".join([encode(_SCORES)] * 2),
        "asked.json": encode(Asked(command="fdgnn", n_guesses=1)),
        "result.json": (RESULTS / "MUTAG.json").read_bytes(),
        "compare.json": (RESULTS / "compare" / "MUTAG.json").read_bytes(),
        "committee.json": encode(_COMMITTEE),
    }


def _run_file(rng: Random) -> bytes:
    """Give the name of a file, and in the next lines what is in it."""
    name, content = rng.choice(list(_run().items()))
    if rng.random() < 0.5:
        content = mutated([content], files.WORDS)(rng)
    else:
        whole = content.splitlines() if name == "records.jsonl" else [content]
        trees = [changed_json(rng, json.loads(one)) for one in whole]
        content = "\n".join(map(json.dumps, trees)).encode()
    return name.encode() + b"\n" + content


def _read_run(case: bytes) -> None:
    name, _, content = case.partition(b"\n")
    for known, valid in _run().items():
        Path(known).write_bytes(content if name == known.encode() else valid)
    for read in (_open_run, lambda: read_committee(Path())):
        with suppress(FDGNNError):
            read()


def _open_run() -> None:
    found = read_run(Path())
    assert found.settings is not None
    n = sum(1 for _ in found.networks)
    RunDirectory(Path(), found.settings).close()
    again = RunDirectory(Path(), found.settings)
    assert sum(1 for _ in again.networks) <= n  # a torn last line is dropped
    again.close()

"""Files that fdgnn writes for itself: work directories, searches, runs.

They stay on one machine, so they are not malicious; but disks fail, and copies are truncated.
Damage is an error, or the file counts as absent; it never changes the content.
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
from fdgnn.evaluation.run import RunDirectory, read_evaluations
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.scale import chunks
from fuzz import files
from fuzz.mutation import changed_json, mutated
from fuzz.running import Target

RESULTS = Path(__file__).parents[1] / "results"


def targets() -> list[Target]:
    """Return all targets."""
    arrays = [Target(name, mutated([_written(name)]), _ArrayFile(name)) for name in ARRAY_FILES]
    return [*arrays, Target("runs", _run_file, _read_run)]


# ---------------------------------------------------------------------- arrays


class Kept(NamedTuple):
    """A kind of file with arrays: how it is written and read (None: it is absent)."""

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


def _store() -> Checkpoints:
    return Checkpoints(Path("search"), "fuzz")


ARRAY_FILES: dict[str, Kept] = {
    "chunk": Kept(_chunk, _read_chunk),
    "search": Kept(
        lambda: _store().save("a", {"x": np.arange(5.0), "y": np.eye(2)}),
        lambda: _store().load("a"),
    ),
}


@cache
def _made(name: str) -> tuple[Path, bytes, list[Any]]:
    """Path, bytes and content of a file."""
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
    """Damage is detected, or has no effect."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, case: bytes) -> None:
        path, _, content = _made(self.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(case)
        try:
            found = ARRAY_FILES[self.name].read()
        except StudyError:
            return
        if found is not None:
            assert _leaves(found) == content


def _leaves(value: Any) -> list[Any]:
    """Return the content of arrays and records as plain values."""
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

_FILES = ("MUTAG.json", "compare/MUTAG.json", "beyond/MUTAG-auto-0.json")


@cache
def _runs() -> list[bytes]:
    """Evaluations in run directories."""
    return [(RESULTS / name).read_bytes() for name in _FILES]


def _run_file(rng: Random) -> bytes:
    """Damage a file of evaluations."""
    content = rng.choice(_runs())
    if rng.random() < 0.5:
        return mutated([content], files.WORDS)(rng)
    return json.dumps(changed_json(rng, json.loads(content))).encode()


def _read_run(case: bytes) -> None:
    Path("evaluation.json").write_bytes(case)
    with suppress(FDGNNError):
        found = read_evaluations(Path())
        RunDirectory(Path(), found[:1]).close()

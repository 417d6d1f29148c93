"""Finished parts of a search on disk, so that a search that was stopped goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn._version import __version__
from fdgnn.arrays import Array, padded, read_arrays
from fdgnn.files import write_aside
from fdgnn.fitting import FitTask
from fdgnn.graphs import GraphBatch

_ENDING = ".part.npz"


class FinishedParts:
    """Arrays of each finished part of a search, in files that are named by all they depend on.

    So a part is found again only if graphs, targets, folds, penalties and parameters are the
    same. Without a directory nothing is kept.

    Parameters
    ----------
    directory : path, optional
        It is made when the first part is finished.
    graphs : GraphBatch
    task : FitTask
    about : str
        What the parts depend on, beside the task.
    """

    def __init__(
        self, directory: Path | None, graphs: GraphBatch, task: FitTask, about: str
    ) -> None:
        self.directory = directory
        known = "" if directory is None else _digest((graphs, task))
        self._about = f"{__version__} {about} {known}"

    def find(self, parts: Sequence[str]) -> dict[int, list[Array]]:
        """Give the arrays of parts that are there, by position; a damaged file is not there."""
        found = {i: self._read(part) for i, part in enumerate(parts)}
        return {i: arrays for i, arrays in found.items() if arrays is not None}

    def keep(self, part: str, arrays: Sequence[Any]) -> None:
        """Write the arrays of a finished part, completely or not at all."""
        if self.directory is not None:
            self.directory.mkdir(parents=True, exist_ok=True)
            with write_aside(self._path(part)) as file:
                np.savez(file, *map(np.asarray, arrays))

    def _path(self, part: str) -> Path:
        assert self.directory is not None
        name = hashlib.sha256(f"{self._about} {part}".encode()).hexdigest()[:32]
        return self.directory / f"{name}{_ENDING}"

    def _read(self, part: str) -> list[Array] | None:
        if self.directory is None or not (path := self._path(part)).is_file():
            return None
        try:
            arrays = read_arrays(path)
            return [arrays[f"arr_{i}"] for i in range(len(arrays))]
        except (ValueError, KeyError):
            return None


def forget(directory: Path) -> None:
    """Delete all parts in a directory, and the directory if nothing else is in it."""
    for path in directory.glob(f"*{_ENDING}*"):
        path.unlink(missing_ok=True)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _digest(value: Any) -> str:
    """Give a hash of arrays and plain values, and of all fields of a record that has them."""
    digest = hashlib.sha256()
    for name, each in _leaves("", value):
        digest.update(name.encode())
        digest.update(each if isinstance(each, bytes) else repr(each).encode())
    return digest.hexdigest()


def _leaves(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, np.ndarray):
        plain = padded(value)
        return [(f"{name} {plain.dtype} {plain.shape}", np.ascontiguousarray(plain).tobytes())]
    if is_dataclass(value) and not isinstance(value, type):
        parts = [(f.name, getattr(value, f.name)) for f in fields(value)]
        return [leaf for n, v in parts for leaf in _leaves(f"{name}.{n}", v)]
    if isinstance(value, list | tuple):
        return [leaf for i, v in enumerate(value) for leaf in _leaves(f"{name}.{i}", v)]
    if callable(value):  # a metric is named by the caller
        return []
    return [(name, value)]

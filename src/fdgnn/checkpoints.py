"""Checkpoints: finished parts of long work in files, so that a stopped command resumes.

Every entry is one file that is complete or absent, whenever the process was killed. Its name is a
hash of what the entry depends on: the version of this library, the contents that the store was made
for (data and settings), and the key. So an entry of other data or settings is never found, and
several kinds of work may share a directory. A damaged entry counts as absent, and is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from fdgnn import files
from fdgnn._version import __version__
from fdgnn.arrays import Array, padded, read_arrays
from fdgnn.records import decode, encode

T = TypeVar("T")

ARRAYS, RECORD = ".part.npz", ".part.json"


class Checkpoints:
    """A store of arrays and records by key.

    Parameters
    ----------
    directory : path or URL, optional
        It is made when the first entry is saved. Without one nothing is kept, and nothing found.
        A URL is for records only.
    *contents
        All that the entries depend on beside their keys: arrays, plain values, records, and
        dataclasses, lists and dictionaries of these.
    """

    def __init__(self, directory: Path | str | None, *contents: Any) -> None:
        self.directory = directory
        self.contents = "" if directory is None else content_hash((__version__, contents))

    def save(self, key: str, arrays: Mapping[str, Any]) -> None:
        """Save named arrays, completely or not at all."""
        if self.directory is not None:
            with files.write_place(self._place(key, ARRAYS)) as file:
                plain: dict[str, Any] = {n: padded(np.asarray(each)) for n, each in arrays.items()}
                np.savez(file, **plain)

    def load(
        self, key: str, wanted: Callable[[str], bool] | None = None
    ) -> dict[str, Array] | None:
        """Return the arrays, or those with wanted names; None if not there or damaged."""
        if self.directory is None or not (path := Path(self._place(key, ARRAYS))).is_file():
            return None
        try:
            return read_arrays(path, wanted)
        except ValueError:
            return None

    def save_record(self, key: str, record: object) -> None:
        """Save a record, or a list of records, as JSON, completely or not at all."""
        if self.directory is not None:
            with files.write_place(self._place(key, RECORD)) as file:
                file.write(encode(record))

    def load_record(self, key: str, kind: type[T]) -> T | None:
        """Return a record of this kind, or None if it is not there or damaged."""
        if self.directory is None:
            return None
        try:
            content = files.read_place(self._place(key, RECORD))
            return None if content is None else decode(content, kind)
        except (OSError, ValueError):
            return None

    def _place(self, key: str, ending: str) -> str:
        name = hashlib.sha256(f"{self.contents} {key}".encode()).hexdigest()[:32]
        return files.inside(str(self.directory), f"{name}{ending}")


def remove_checkpoints(directory: Path) -> None:
    """Delete all entries in a directory, and the directory if nothing else is in it."""
    for path in [*directory.glob(f"*{ARRAYS}*"), *directory.glob(f"*{RECORD}*")]:
        path.unlink(missing_ok=True)
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def content_hash(value: Any) -> str:
    """Return a hash of arrays and plain values, and of all fields of records that have them.

    Functions do not count: whoever passes one names it as well.
    """
    digest = hashlib.sha256()
    _add("", value, digest)
    return digest.hexdigest()


def _add(name: str, value: Any, digest: Any) -> None:
    """Add a value, or all parts of it, with their names to a hash."""
    if isinstance(value, np.ndarray):
        plain = padded(value)
        digest.update(f"{name} {plain.dtype} {plain.shape}".encode())
        digest.update(np.ascontiguousarray(plain).tobytes())
    elif isinstance(value, msgspec.Struct):
        digest.update(f"{name} {type(value).__name__}".encode() + encode(value))
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            _add(f"{name}.{each.name}", getattr(value, each.name), digest)
    elif isinstance(value, Mapping):
        for key in sorted(value, key=str):
            _add(f"{name}.{key}", value[key], digest)
    elif isinstance(value, list | tuple):
        digest.update(f"{name} {len(value)}".encode())
        for i, each in enumerate(value):
            _add(f"{name}.{i}", each, digest)
    elif not callable(value):
        digest.update(f"{name} {value!r}".encode())

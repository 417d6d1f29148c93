"""Parsed datasets, kept as NumPy archives in the user's cache directory.

A damaged cache, or one that cannot be written, is never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Ints, padded, read_arrays
from fdgnn.datasets.files import TextFile
from fdgnn.datasets.home import cache_home, tell_not_kept
from fdgnn.files import write_aside
from fdgnn.graphs import GraphBatch, InputSchema
from fdgnn.records import decode, encode

ABANDONED_AFTER = 3600.0  # seconds; no process takes that long to write one file
FORMAT = 5  # raise this number whenever parsing the same files gives another result

Dataset = tuple[GraphBatch, Ints]


def cached(
    files: Iterable[TextFile], variant: str, parse: Callable[[], Dataset], *, name: str
) -> Dataset:
    """Return what `parse` returns, from the cache if these very files were parsed before."""
    key = _key(files, variant)
    path = cache_home() / f"{name}-{key[:20]}.npz"
    found = _load(path, key)
    if found is not None:
        return found
    parsed = parse()
    _store(path, key, parsed)
    return parsed


def _key(files: Iterable[TextFile], variant: str) -> str:
    stamps = [f"format {FORMAT}", variant, *sorted(file.stamp for file in files)]
    return hashlib.sha256("\n".join(stamps).encode()).hexdigest()


def _load(path: Path, key: str) -> Dataset | None:
    try:
        arrays = read_arrays(path)
        if arrays.pop("header").tolist() != [key, *sorted(arrays)]:
            return None
        y, schema = arrays.pop("y"), decode(arrays.pop("schema").item(), InputSchema)
        fields = {name: _plain(array) for name, array in arrays.items()}
        return GraphBatch(**fields, schema=schema), y
    except (ValueError, KeyError, TypeError):  # damaged, or not one of ours
        return None


def _plain(array: Array) -> Any:
    return array.item() if array.ndim == 0 else array


def _store(path: Path, key: str, parsed: Dataset) -> None:
    graphs, y = parsed
    arrays = {field.name: getattr(graphs, field.name) for field in fields(graphs)}
    arrays |= {"y": y, "schema": np.array(encode(graphs.schema))}
    arrays |= {n: padded(a) for n, a in arrays.items() if isinstance(a, np.ndarray)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    try:
        with write_aside(path) as file:
            np.savez(file, header=np.array([key, *sorted(arrays)]), **arrays)
        _sweep(path.parent)
    except OSError as error:
        tell_not_kept("parsed datasets", "they will be parsed", path.parent, error)


def _sweep(directory: Path) -> None:
    """Remove unfinished files of processes that were killed."""
    for part in directory.glob(".*.part"):
        with contextlib.suppress(OSError):  # another process may remove it as well
            if time.time() - part.stat().st_mtime > ABANDONED_AFTER:
                part.unlink()

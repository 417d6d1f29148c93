"""Files that are either complete or not there."""

from __future__ import annotations

import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_aside(path: Path) -> Iterator[io.BufferedRandom]:
    """Write a file next to `path` and move it there when complete, or leave no trace.

    A process that is killed in between leaves a ``.part`` file, which nobody reads. Links are
    followed. An existing path that is not a regular file, such as a device, is never replaced.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: it exists and is not a regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        with part.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Tell whether a process that was killed has left this file while it wrote another."""
    return path.name.startswith(".") and path.suffix == ".part"


def check_writable(path: Path) -> None:
    """Raise OSError now, rather than after the work, if `path` cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: it is a directory; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: it exists and is not a regular file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: the directory {path.parent} cannot be written")

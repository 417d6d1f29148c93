"""Files that are either complete or not there."""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def write_aside(path: Path) -> Iterator[io.BufferedRandom]:
    """Write a file next to `path` and move it there when complete, or leave no trace.

    Whoever is killed in between leaves a ``.part`` file, which nobody reads. Links are followed;
    what is there and no regular file, as a device, is never replaced.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: it is there, and it is no regular file")
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


def check_writable(path: Path) -> None:
    """Raise OSError now, rather than after the work, if `path` cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: it is a directory; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: it is there, and it is no regular file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: the directory {path.parent} cannot be written")


class JsonLines:
    """A file to which one JSON object a line is appended, by processes that may be killed.

    A torn last line is dropped when the file is opened; lines that cannot be read do not count.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._drop_torn_line()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self.path.exists():
            with self.path.open(encoding="utf-8", errors="replace") as lines:
                yield from filter(None, map(_object, lines))

    def append(self, content: dict[str, Any]) -> None:
        """Add a line."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(content) + "\n")

    def _drop_torn_line(self) -> None:
        if self.path.exists():
            data = self.path.read_bytes()
            complete = data.rfind(b"\n") + 1
            if complete < len(data):
                with self.path.open("r+b") as file:
                    file.truncate(complete)


def _object(line: str) -> dict[str, Any] | None:
    try:
        content = json.loads(line)
    except ValueError:
        return None
    return content if isinstance(content, dict) else None


def write_json(path: Path, content: Any) -> None:
    """Write an object as indented JSON, completely or not at all."""
    with write_aside(path) as file:
        file.write((json.dumps(content, indent=1) + "\n").encode())

"""Files on this machine by their paths, and files elsewhere by URLs that fsspec opens.

Paths need no library. A file elsewhere is copied to a temporary one to be read, since every reader
takes a path, and is written to a temporary one first, so that it is there completely or not at all.
"""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fdgnn.extras import require
from fdgnn.files import write_aside


def is_url(place: str) -> bool:
    """Return whether a place is a URL, such as ``s3://bucket/file.csv``, and not a path."""
    return "://" in place


def name_of_place(place: str) -> str:
    """Return the last part of a path or URL."""
    return PurePosixPath(place.rstrip("/")).name if is_url(place) else Path(place).name


def inside(folder: str, *names: str) -> str:
    """Name something in a folder."""
    return "/".join([folder.rstrip("/"), *names]) if is_url(folder) else str(Path(folder, *names))


def absolute(place: str) -> str:
    """Name a file so that other processes find it."""
    return place if is_url(place) else str(Path(place).resolve())


def is_pattern(place: str) -> bool:
    """Return whether a name has wildcards, and is not the name of a file."""
    return glob.has_magic(place) and (is_url(place) or not Path(place).exists())


def matching(pattern: str) -> list[str]:
    """Return the places that match a name with wildcards, sorted; on this machine also folders."""
    if not is_url(pattern):
        return sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207, it may be absolute
    system, path = _system(pattern)
    return sorted(system.unstrip_protocol(each) for each in system.glob(path))


def inside_of(folder: str) -> list[str] | None:
    """Return what is in a folder, sorted, without hidden names; None if it is not a folder.

    Of this machine not only files are given.
    """
    if is_url(folder):
        system, path = _system(folder)
        if not system.isdir(path):
            return None
        found = [each["name"] for each in system.ls(path, detail=True) if each["type"] == "file"]
        found = [system.unstrip_protocol(each) for each in found]
    elif Path(folder).is_dir():
        found = [str(each) for each in Path(folder).iterdir()]
    else:
        return None
    return sorted(each for each in found if not name_of_place(each).startswith("."))


def stamp_of(place: str) -> str:
    """Return a text that changes when the file changes; raise FileNotFoundError if it is gone."""
    if not is_url(place):
        found = Path(place).stat()
        return f"{found.st_size} {found.st_mtime_ns}"
    system, path = _system(place)
    return f"{system.size(path)} {system.ukey(path)}"


def place_exists(place: str) -> bool:
    """Return whether there is something at a path or URL."""
    if not is_url(place):
        return Path(place).exists()
    system, path = _system(place)
    return bool(system.exists(path))


def read_place(place: str) -> bytes | None:
    """Read a small file; None if there is none."""
    try:
        if not is_url(place):
            return Path(place).read_bytes()
        system, path = _system(place)
        return bytes(system.cat_file(path))
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def fetched(place: str) -> Iterator[Path]:
    """Yield a file as one of this machine; a copy is removed at the end."""
    if not is_url(place):
        yield Path(place)
        return
    system, path = _system(place)
    with tempfile.TemporaryDirectory(prefix="fdgnn-") as folder:
        copy = Path(folder, name_of_place(place))
        system.get_file(path, str(copy))
        yield copy


@contextmanager
def write_place(place: str) -> Iterator[IO[bytes]]:
    """Write a file, which is there completely or not at all; its folder is made if need be."""
    if not is_url(place):
        with write_aside(Path(place)) as file:
            yield file
        return
    system, path = _system(place)
    with tempfile.NamedTemporaryFile(prefix="fdgnn-") as file:
        yield file
        file.flush()
        folder, _, name = path.rpartition("/")
        part = f"{folder}/.{name}.part"
        system.makedirs(folder, exist_ok=True)
        system.put_file(file.name, part)
        system.mv(part, path)


def _system(place: str) -> tuple[Any, str]:
    fsspec = require("fsspec", "cluster", "files that are named by URLs")
    try:
        system, path = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise ValueError(f"{place}: no file system opens it ({error})") from error
    return system, str(path)

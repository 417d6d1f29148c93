"""Files that are either complete or not there, by their paths, or by URLs that fsspec opens.

Paths need no library. A file elsewhere is copied to a temporary one to be read, since every reader
takes a path, and is written to a temporary one first, so that it is there completely or not at all.
"""

from __future__ import annotations

import errno
import glob
import io
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from fdgnn.extras import require

try:
    import fcntl
except ImportError:  # on Windows there are no such locks
    fcntl = None  # type: ignore[assignment]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # no file is named by these


def expanduser(path: str | os.PathLike[str]) -> Path:
    """Replace a ``~`` at the beginning by the user's home directory.

    Raises
    ------
    ValueError
        There is no such home.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"{path}: there is no home directory that ~ could mean") from None


@contextmanager
def write_aside(path: Path, *, alone: bool = False) -> Iterator[io.BufferedRandom]:
    """Write a file next to `path` and move it there when complete, or leave no trace.

    A process that is killed in between leaves a ``.part`` file, which is never read; the next write
    to `path` replaces it (except on Windows). Links are followed. An existing path that is not a
    regular file, such as a device, is never replaced. With `alone`, FileExistsError is raised while
    another process writes the file, where the file system has locks.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: exists and is not a regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    file, lock = _part_of(path, alone)
    part = Path(file.name)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            error.filename = error.filename or str(path)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def _part_of(path: Path, alone: bool) -> tuple[io.BufferedRandom, int | None]:
    """Open an empty file beside `path`, which no other process has: a leftover, or a new one.

    The second descriptor keeps the file locked until it is moved or deleted.
    """
    part = path.with_name(f".{path.name}.part")
    if fcntl is not None:
        try:
            file: Any = open(part, "r+b", opener=_create)  # noqa: SIM115
        except OSError:
            if not os.path.lexists(part):
                raise
        else:
            try:
                if _is_ours(file, part):
                    file.truncate()
                    return file, os.dup(file.fileno())
            except OSError as error:  # it is locked or moved, or nothing can be locked here
                if alone and isinstance(error, BlockingIOError):
                    file.close()
                    raise FileExistsError(
                        f"{path}: another process is writing it; wait for it, or give another name"
                    ) from None
            file.close()
    return part.with_name(f".{path.name}.{secrets.token_hex(8)}.part").open("x+b"), None


def _create(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def _is_ours(file: io.BufferedRandom, part: Path) -> bool:
    """Lock a file; return whether it still has its name, no second one, and no other owner.

    Before the lock was free, the process that had it may have moved the file to its place.
    """
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    found, named = os.fstat(file.fileno()), part.lstat()
    usual = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
    return usual and os.path.samestat(found, named)


def is_leftover(path: Path) -> bool:
    """Return whether a process that was killed has left this file while it wrote another."""
    return path.name.startswith(".") and path.suffix == ".part"


def check_writable(path: Path) -> None:
    """Raise OSError now, rather than after the work, if `path` cannot be written."""
    if path.is_dir():
        raise IsADirectoryError(f"{path}: is a directory; give the name of a file")
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: exists and is not a regular file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"{path}: the directory {path.parent} cannot be written")


# ---------------------------------------------------------------------- paths and URLs as one


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

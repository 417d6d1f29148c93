"""Files that are either complete or not there."""

from __future__ import annotations

import errno
import io
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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
def write_aside(path: Path) -> Iterator[io.BufferedRandom]:
    """Write a file next to `path` and move it there when complete, or leave no trace.

    A process that is killed in between leaves a ``.part`` file, which nobody reads; whoever writes
    `path` next writes over it (not on Windows, where it stays). Links are followed. An existing
    path that is not a regular file, such as a device, is never replaced.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(f"{path}: it exists and is not a regular file")
    path.parent.mkdir(parents=True, exist_ok=True)
    file, lock = _part_of(path)
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


def _part_of(path: Path) -> tuple[io.BufferedRandom, int | None]:
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
            if _is_ours(file, part):
                file.truncate()
                return file, os.dup(file.fileno())
            file.close()
    return part.with_name(f".{path.name}.{secrets.token_hex(8)}.part").open("x+b"), None


def _create(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def _is_ours(file: io.BufferedRandom, part: Path) -> bool:
    """Lock a file; return whether it still has its name, no second one, and no other owner.

    Before the lock was free, the process that had it may have moved the file to its place.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        found, named = os.fstat(file.fileno()), part.lstat()
    except OSError:  # another process writes it, or has moved it, or nothing can be locked here
        return False
    usual = stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_uid == os.geteuid()
    return usual and os.path.samestat(found, named)


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold `path` for one process; raise FileExistsError while another process holds it.

    The lock is of an open file beside `path`, so that it ends with the process, even if that is
    killed. Where the file system has no locks, nothing is held.
    """
    if fcntl is None:  # on Windows
        yield  # type: ignore[unreachable]
        return
    path = path.resolve()
    lock = path.with_name(f".{path.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    try:
        if _is_held(descriptor, lock):
            raise FileExistsError(
                f"{path}: another process is writing it; wait for it, or give another name"
            )
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _is_held(descriptor: int, lock: Path) -> bool:
    """Lock a file; return whether another process has locked it, or just removed it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # this file system has no locks
        return False
    try:
        return not os.path.samestat(os.fstat(descriptor), lock.lstat())
    except FileNotFoundError:
        return True


def is_leftover(path: Path) -> bool:
    """Return whether a process that was killed has left this file while it wrote another."""
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

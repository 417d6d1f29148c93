"""Files that are either complete or not there."""

from __future__ import annotations

import io
import os
import secrets
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from fdgnn.arrays import Array


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


def read_arrays(path: Path, wanted: Callable[[str], bool] | None = None) -> dict[str, Array]:
    """Read a NumPy archive, or the arrays with wanted names; all of their bytes are verified.

    `numpy.load` does not see damage that makes an array smaller, since it compares checksums at
    the end of a member only, nor damage by which an array is not listed.

    Raises
    ------
    ValueError
        It cannot be read, or is damaged.
    """
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            if not archive.filelist or _n_listed(file) != len(archive.filelist):
                raise ValueError("its list of arrays is not complete")
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            some = names if wanted is None else filter(wanted, names)
            return {name: _array(archive.read(f"{name}.npy")) for name in some}
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except Exception as error:  # damage shows as one of many
        raise ValueError(str(error) or type(error).__name__) from error


def _n_listed(file: IO[bytes]) -> int:
    """How many members a zip file without a comment says that it has; -1 if it says nothing."""
    file.seek(-22, os.SEEK_END)
    end = file.read()
    return int.from_bytes(end[10:12], "little") if end.startswith(b"PK\5\6") else -1


def _array(content: bytes) -> Array:
    found: Array = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    return found


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

"""Sources of datasets: the data home, GraKeL's copy, the official site, and the cache.

A damaged cache, or one that cannot be written, is never an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import time
import warnings
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np

from fdgnn.arrays import Ints, padded, read_arrays
from fdgnn.exceptions import DatasetNotFoundError, DownloadError, FDGNNWarning, frames_of_libraries
from fdgnn.extras import install_advice
from fdgnn.files import expanduser, write_aside
from fdgnn.graphs import GraphBatch, InputSchema
from fdgnn.limits import MAX_DOWNLOAD_BYTES
from fdgnn.records import decode, encode
from fdgnn.texts import suggestion

if TYPE_CHECKING:
    from fdgnn.datasets.files import TextFile

NOWHERE = Path(os.devnull) / "fdgnn"  # holds nothing, and nothing can be written there
_warned: set[tuple[str, Path]] = set()  # what cannot be kept, and where: one warning each
URL = "https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip"

KNOWN_NAMES = (
    # the paper's nine
    "MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1",
    "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "COLLAB",
    # others that are often asked for
    "AIDS", "BZR", "COIL-RAG", "DD", "DHFR", "ENZYMES", "FRANKENSTEIN", "Letter-med", "MSRC_21",
    "Mutagenicity", "NCI109", "PTC_FM", "PTC_FR", "PTC_MM", "REDDIT-MULTI-5K",
    "REDDIT-MULTI-12K", "SYNTHETICnew", "Synthie",
)  # fmt: skip


def data_home(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of datasets: as given, else ``FDGNN_DATA``, else the user's cache."""
    chosen = given or os.environ.get("FDGNN_DATA")
    return expanduser(chosen) if chosen else _user_cache()


def cache_home() -> Path:
    """Return the directory of parsed datasets: ``FDGNN_CACHE``, else in the user's cache."""
    chosen = os.environ.get("FDGNN_CACHE")
    return expanduser(chosen) if chosen else _user_cache() / "parsed"


def _user_cache() -> Path:
    import platformdirs

    try:
        path = Path(platformdirs.user_cache_dir("fdgnn", appauthor=False))
    except RuntimeError:  # a user without a home, as containers have them
        return NOWHERE
    # Older versions give "~/.cache/fdgnn" there, which would be a folder called ~ in this one.
    return path if path.is_absolute() else NOWHERE


def warn_not_cached(what: str, again: str, directory: Path, error: OSError) -> None:
    """Warn, once per process, that a directory of the cache is not writable.

    `again` says what follows from that: "they will be parsed".
    """
    if (what, directory) in _warned:
        return
    _warned.add((what, directory))
    nowhere = NOWHERE in (directory, *directory.parents)
    why = "there is no home directory" if nowhere else error.strerror or error
    where = "" if nowhere else f" in {directory}"
    warnings.warn(
        f"{what} cannot be kept{where} ({why}), so {again} again each time; set the environment "
        "variable FDGNN_CACHE to a directory that can be written",
        FDGNNWarning,
        stacklevel=frames_of_libraries(),
    )


def find(name: str | os.PathLike[str], home: Path, *, download_if_missing: bool = True) -> Path:
    """Return the folder or zip that holds a dataset; download it if it is not on this machine.

    Raises
    ------
    DatasetNotFoundError
        There is no such path, and neither a file nor a known dataset of that name.
    DownloadError
        The dataset is known, but it is not on this machine and cannot be downloaded.
    """
    if not isinstance(name, str) or "/" in name or os.sep in name or name.endswith(".zip"):
        return expanduser(name)
    # A known name is never a folder of the working directory.
    if name not in KNOWN_NAMES and Path(name).is_dir():
        return expanduser(name)
    here = find_local(name, home)
    if here is not None:
        return here
    if name not in KNOWN_NAMES:
        if Path(name).is_file():
            raise DatasetNotFoundError(
                f"{name}: it is not a TU folder or zip; `fdgnn fit` reads other files, and "
                "measures their accuracy by nested cross-validation"
            )
        known = {path.stem for folder in (home / "tu", home) for path in folder.glob("*.zip")}
        raise DatasetNotFoundError(
            f"no dataset {name!r} among the known TU names or in {home}; "
            f"{suggestion(name, [*KNOWN_NAMES, *known])}others need the path of a folder or zip"
        )
    return _download(name, home, allowed=download_if_missing)


def find_local(name: str, home: Path) -> Path | None:
    """Return the folder or zip that holds the dataset of a name, if it is on this machine."""
    places = [folder / file for folder in (home / "tu", home) for file in (f"{name}.zip", name)]
    places += _places_in_grakel(name)
    return next((place for place in places if place.is_file() or place.is_dir()), None)


def _places_in_grakel(name: str) -> list[Path]:
    # Finding a package does not import it.
    spec = importlib.util.find_spec("grakel")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "tests" / "data" / name]


def no_such_name(name: str) -> str:
    """Return the end of a message if a name is not a known dataset; empty for a path.

    >>> no_such_name("gone.csv")
    ''
    """
    if Path(name).name != name or Path(name).suffix:
        return ""
    known = "no known name of the TU collection, such as MUTAG"
    return f", and {known}; {suggestion(name, KNOWN_NAMES)}`fdgnn datasets` lists them"


# ---------------------------------------------------------------------- download


def _download(name: str, home: Path, *, allowed: bool) -> Path:
    url, path = URL.format(name=name), home / "tu" / f"{name}.zip"
    remedy = (
        f"get {url} on another machine and put it at {path}, or into a folder that the environment "
        "variable FDGNN_DATA names, or give the path of a copy"
    )
    if name == "MUTAG":
        remedy += f"; MUTAG also comes with GraKeL: {install_advice('demo')}"
    if home == NOWHERE:
        raise DownloadError(
            f"{name} is not on this machine, and there is no home directory to keep it in; set the "
            "environment variable FDGNN_DATA to a directory that can be written, or give the path "
            "of a copy"
        )
    if not allowed:
        raise DownloadError(f"{name} is not in {home}, and download_if_missing is off; {remedy}")
    if os.environ.get("FDGNN_OFFLINE", "0") not in ("", "0"):
        raise DownloadError(f"{name} is not in {home}, and FDGNN_OFFLINE is set; {remedy}")
    try:
        with write_aside(path) as file:
            _fetch(url, file)
            if not zipfile.is_zipfile(file):
                raise DownloadError("the answer is not a complete zip file")
    except OSError as error:
        # Libraries wrap a missing network four times, and show all of it.
        lost = type(error).__name__ == "ConnectionError"
        reason = f"{urlsplit(url).netloc} cannot be reached" if lost else str(error)
        raise DownloadError(f"{name} could not be downloaded ({reason}); {remedy}") from None
    return path


def _fetch(url: str, file: IO[bytes]) -> None:
    import pooch  # type: ignore[import-untyped]

    with contextlib.ExitStack() as stack:

        def close_at_the_end(response: Any, **_: Any) -> None:  # pooch does not after an error
            stack.callback(response.close)

        progressbar = importlib.util.find_spec("tqdm") is not None
        hooks = {"response": close_at_the_end}
        get = pooch.HTTPDownloader(progressbar, chunk_size=1 << 16, timeout=30, hooks=hooks)
        get(url, _Limited(file), None)


class _Limited:
    """A file that cannot grow past a limit."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.written = file, 0

    def write(self, data: bytes) -> None:
        self.written += len(data)
        if MAX_DOWNLOAD_BYTES.is_below(self.written):
            raise DownloadError(f"the file is too large; {MAX_DOWNLOAD_BYTES.in_words}")
        self.file.write(data)

    def flush(self) -> None:
        """Do nothing: closing the file flushes it."""


ABANDONED_AFTER = 3600.0  # seconds; no process takes that long to write one file
FORMAT = 6  # raise this number whenever parsing the same files gives another result

Dataset = tuple[GraphBatch, Ints]


def cached(
    files: Iterable[TextFile], variant: str, parse: Callable[[], Dataset], *, name: str
) -> Dataset:
    """Return what `parse` returns, from the cache if these very files were parsed before."""
    stamps = [f"format {FORMAT}", variant, *sorted(file.stamp for file in files)]
    key = hashlib.sha256("\n".join(stamps).encode()).hexdigest()
    path = cache_home() / f"{name}-{key[:20]}.npz"
    found = _load(path, key)
    if found is not None:
        return found
    parsed = parse()
    _store(path, key, parsed)
    return parsed


def _load(path: Path, key: str) -> Dataset | None:
    try:
        arrays = read_arrays(path)
        if arrays.pop("header").tolist() != [key, *sorted(arrays)]:
            return None
        y, schema = arrays.pop("y"), decode(arrays.pop("schema").item(), InputSchema)
        fields: dict[str, Any] = {
            name: array.item() if array.ndim == 0 else array for name, array in arrays.items()
        }
        return GraphBatch(**fields, schema=schema), y
    except (ValueError, KeyError, TypeError):  # damaged, or not one of ours
        return None


def _store(path: Path, key: str, parsed: Dataset) -> None:
    graphs, y = parsed
    arrays = {field.name: getattr(graphs, field.name) for field in fields(graphs)}
    arrays |= {"y": y, "schema": np.array(encode(graphs.schema))}
    arrays |= {n: padded(a) for n, a in arrays.items() if isinstance(a, np.ndarray)}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    try:
        with write_aside(path) as file:
            np.savez(file, header=np.array([key, *sorted(arrays)]), **arrays)
        # Unfinished files of processes that were killed; another process may remove them as well.
        for part in path.parent.glob(".*.part"):
            with contextlib.suppress(OSError):
                if time.time() - part.stat().st_mtime > ABANDONED_AFTER:
                    part.unlink()
    except OSError as error:
        warn_not_cached("parsed datasets", "they will be parsed", path.parent, error)

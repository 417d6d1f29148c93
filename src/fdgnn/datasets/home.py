"""Sources of datasets: the data home, GraKeL's copy, the official site; and the user's cache."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from fdgnn.exceptions import DatasetNotFoundError, DownloadError, FDGNNWarning, frames_of_libraries
from fdgnn.extras import install_advice
from fdgnn.files import expanduser, write_aside
from fdgnn.limits import MAX_DOWNLOAD_BYTES
from fdgnn.texts import suggestion

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

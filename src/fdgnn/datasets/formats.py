"""Find the format of a file or folder by its name and first bytes, and the files of a large set."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from fdgnn import places
from fdgnn.datasets.files import DAMAGE, Stream, open_unpacked
from fdgnn.datasets.home import KNOWN_NAMES, no_such_name
from fdgnn.datasets.text import STANDARD_INPUT, standard_input
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError, UnusedDataWarning
from fdgnn.files import expanduser

SUFFIXES = {
    ".zip": "tu",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow",
    ".graphml": "graphml",
    ".smi": "smi", ".smiles": "smi",
    ".sdf": "sdf", ".sd": "sdf", ".mol": "sdf",
}  # fmt: skip
MAGIC = {b"PK\x03\x04": "tu", b"PAR1": "parquet", b"ARROW1": "arrow", b"{": "jsonl"}
FORMATS = tuple(dict.fromkeys(SUFFIXES.values()))
TABLES = ("parquet", "arrow", "jsonl", "csv", "tsv", "smi", "sdf")
STREAMED = ("csv", "tsv", "jsonl", "smi", "sdf")  # what can come from a pipe or an open file
READABLE = (
    "a TU folder or zip, a CSV, TSV, JSON lines, Parquet or Arrow table, a file of SMILES (.smi) "
    "or SDF, or a folder of such tables or of GraphML files"
)


@dataclass(frozen=True)
class Found:
    """A format, and the files of that format, or the name of a dataset."""

    format: str
    files: Sequence[Path | str | Stream]


def recognize(path: str | os.PathLike[str] | Stream, format: str | None = None) -> Found:
    """Find the format: as given, else by the name, else by the first bytes."""
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r}: expected one of {', '.join(FORMATS)}")
    if isinstance(path, Stream):
        return Found(_of_stream(path, format), [path])
    if str(path) == STANDARD_INPUT:
        return Found(_of_standard_input(format), [STANDARD_INPUT])
    place = expanduser(path)
    if place.is_dir():
        return _in_folder(place, format)
    if place.is_file():
        return Found(format or _of_file(place), [place])
    if str(path) in KNOWN_NAMES and format in (None, "tu"):
        return Found("tu", [str(path)])
    if os.path.lexists(place):
        raise DatasetNotFoundError(
            f"{path}: it is {_what_it_is(place)}, not a file or folder; a pipe can be read as "
            "standard input, by the name -"
        )
    raise DatasetNotFoundError(f"{path}: no such file or folder{no_such_name(str(path))}")


def regular_files(where: str | Path, found: Iterable[Path]) -> list[Path]:
    """Give the files among what was found in a place, and tell of what cannot be read.

    These are pipes, devices and links to nothing, and folders with the name of a file, such as
    ``part.csv``. Other folders are usual.
    """
    files, others = [], []
    for path in found:
        if path.is_file():
            files.append(path)
        elif not path.is_dir() or _suffix(path) in SUFFIXES:
            others.append(path)
    if others:
        named = ", ".join(f"{path.name} ({_what_it_is(path)})" for path in others[:3])
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        warnings.warn(
            f"{where}: what is not a file is left out: {named}{more}",
            UnusedDataWarning,
            stacklevel=2,
        )
    return files


def _what_it_is(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    if path.is_fifo():
        return "a pipe"
    return "a device or a socket" if path.exists() else "a link to nothing"


def _of_standard_input(format: str | None) -> str:
    found = format or ("jsonl" if _peeked().startswith(b"{") else "csv")
    return _streamed("standard input", found)


def _of_stream(stream: Stream, format: str | None) -> str:
    """Find the format of an open file: as given, by its name, or else CSV or JSON lines."""
    named = SUFFIXES.get(_suffix(Path(stream.name)))
    found = format or named or ("jsonl" if stream.start.startswith(b"{") else "csv")
    return _streamed(stream.name, found)


def _streamed(name: str, format: str) -> str:
    if format not in STREAMED:
        known = ", ".join(STREAMED)
        raise DatasetFormatError(
            f"{name}: it cannot be {format}, only {known}; give the name of a file"
        )
    return format


def _peeked() -> bytes:
    """Look at the first bytes of standard input without consuming them."""
    peek = getattr(standard_input(), "peek", None)
    return bytes(peek(8)).lstrip() if peek else b""


def _of_file(path: Path) -> str:
    if _suffix(path) in SUFFIXES:
        return SUFFIXES[_suffix(path)]
    start = _first_bytes(path)
    for magic, format in MAGIC.items():
        if start.startswith(magic):
            return format
    what = "an empty file" if not start else "a file of unknown format"
    raise DatasetFormatError(f"{path}: {what}; what can be read is {READABLE}")


def _suffix(path: Path) -> str:
    """The ending of a name, before that of gzip."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return suffixes[-1] if suffixes else ""


def _first_bytes(path: Path) -> bytes:
    try:
        with open_unpacked(path) as (stream, _):
            start = stream.read(8)
    except DAMAGE as error:
        raise DatasetFormatError(f"{path}: it cannot be read ({error})") from error
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()


def _in_folder(folder: Path, format: str | None) -> Found:
    """Find a TU dataset, else networks, else tables."""
    entries = sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    files = regular_files(folder, entries)
    if format == "tu" or (format is None and any(p.name.endswith("_A.txt") for p in files)):
        return Found("tu", [folder])
    by_format: dict[str, list[Path]] = {}
    for path in files:
        if _suffix(path) in SUFFIXES:
            by_format.setdefault(SUFFIXES[_suffix(path)], []).append(path)
    candidates = [format] if format else ["graphml", *TABLES]
    for candidate in candidates:
        if candidate in by_format:
            return Found(candidate, by_format[candidate])
    raise DatasetFormatError(f"{folder}: {_listing(files, format)}; what can be read is {READABLE}")


def _listing(files: Sequence[Path], format: str | None) -> str:
    counts = Counter(path.suffix or "without a suffix" for path in files)
    found = ", ".join(f"{n} {suffix}" for suffix, n in counts.most_common(5))
    wanted = "" if format is None else f"no {format} files; "
    return f"{wanted}a folder with these files: {found}" if found else f"{wanted}an empty folder"


def shard_places(given: str) -> list[str]:
    """Find the files that a name, a pattern or a folder stands for, in the order of their names.

    Raises
    ------
    DatasetNotFoundError
        There is none.
    """
    if places.is_pattern(given):
        found = _files(given, places.matching(given))
        if not found:
            raise DatasetNotFoundError(f"{given}: no file has such a name")
        return found
    inside = places.inside_of(given)
    if inside is None:
        return [given]
    found = [each for each in _files(given, inside) if SUFFIXES.get(split_name(each)[1]) in TABLES]
    if not found:
        raise DatasetNotFoundError(
            f"{given}: it has no files of tables, such as .csv, .jsonl or .parquet"
        )
    return found


def _files(given: str, found: list[str]) -> list[str]:
    if places.is_url(given):
        return found
    return [str(each) for each in regular_files(given, map(Path, found))]


def split_name(place: str) -> tuple[str, str]:
    """Split a name into what comes before its ending, and its ending, without that of gzip."""
    name = PurePosixPath(places.name_of_place(place))
    name = PurePosixPath(name.stem) if name.suffix.lower() == ".gz" else name
    return name.stem, name.suffix.lower()


@contextmanager
def fetched_shard(place: str) -> Iterator[Path]:
    """Give a shard as a file of this machine; messages name it as the user did, not its copy."""
    with places.fetched(place) as path:
        try:
            yield path
        except DatasetFormatError as error:
            raise DatasetFormatError(str(error).replace(str(path), place)) from error

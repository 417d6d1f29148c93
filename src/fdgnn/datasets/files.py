"""Files: their formats, and their bytes, unpacked in a bounded way."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import struct
import sys
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import IO, Any, cast

from fdgnn import files
from fdgnn.datasets.home import KNOWN_NAMES, no_such_name
from fdgnn.exceptions import (
    DatasetError,
    DatasetFormatError,
    DatasetNotFoundError,
    UnsafeArchiveError,
)
from fdgnn.files import expanduser
from fdgnn.limits import MAX_EXPANSION, MAX_UNPACKED_BYTES

STANDARD_INPUT = "-"
BLOCK = 1 << 20  # small enough for the CPU's cache, large enough for a fast loop
RATIO_MATTERS_FROM = 64 << 20  # bytes; how far a smaller file expands does not matter
GZIP = b"\x1f\x8b"

# zipfile and gzip raise any of these on damaged archives.
DAMAGE = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError, RuntimeError,
    ValueError, LookupError,
)  # fmt: skip


@contextmanager
def readable(
    name: object, remedy: str = "", damage: tuple[type[Exception], ...] = DAMAGE
) -> Iterator[None]:
    """Turn what a damaged file raises into an error that names it."""
    try:
        yield
    except DatasetError:
        raise
    except damage as error:
        lines = str(getattr(error, "strerror", None) or error).splitlines()
        why = lines[0].rstrip(".") if lines else type(error).__name__
        raise DatasetFormatError(f"{name}: cannot be read ({why}){remedy}") from error


@dataclass
class Expansion:
    """Expansion of a packed file: unpacked bytes are counted, and too many raise an error."""

    name: str
    packed: int  # bytes
    unpacked: int = 0
    most: float = field(default_factory=lambda: MAX_EXPANSION.value)  # asked for once, not by line

    def add(self, n_bytes: int) -> None:
        """Count unpacked bytes; raise UnsafeArchiveError if there are too many."""
        self.unpacked += n_bytes
        ratio = self.unpacked / max(self.packed, 1)
        if self.unpacked > RATIO_MATTERS_FROM and ratio > self.most:
            raise UnsafeArchiveError(
                f"{self.name}: unpacks to {self.unpacked / 1e9:.1f} GB or more, {ratio:.0f} "
                f"times its own size; {MAX_EXPANSION.in_words}"
            )


@contextmanager
def open_unpacked(source: str | Path | Stream) -> Iterator[tuple[IO[bytes], Expansion | None]]:
    """Open a file, packed by gzip or not; the reader of a packed one counts its bytes."""
    if isinstance(source, Stream):  # which stays open
        yield source.content, source.expansion
        return
    path = Path(source)
    with path.open("rb") as stream:
        packed = stream.read(2) == GZIP
        stream.seek(0)
        if not packed:
            yield stream, None
            return
        with gzip.open(stream) as unpacked:
            yield cast(IO[bytes], unpacked), Expansion(str(path), path.stat().st_size)


_AGAIN = "; delete it and get it again"


@dataclass(frozen=True)
class TextFile:
    """One text file of a dataset: its name, a stamp of its version, and how to open it."""

    name: str
    size: int
    stamp: str
    open: Callable[[], IO[bytes]]

    def blocks(self) -> Iterator[bytes]:
        """Yield whole lines, about a megabyte at a time, each block without its last newline.

        Blank lines at the end of the file are left out; a file without other lines is an error.
        """
        rest, is_empty, n_read = b"", True, 0
        with readable(self.name, _AGAIN), self.open() as stream:
            while part := stream.read(BLOCK):
                n_read += len(part)
                rest += part
                cut = rest.rstrip().rfind(b"\n")
                if cut >= 0:
                    is_empty = False
                    yield rest[:cut]
                    rest = rest[cut + 1 :]
                elif len(rest) > 2 * BLOCK:
                    raise DatasetFormatError(f"{self.name}: a line of more than {BLOCK} bytes")
        if n_read != self.size:
            raise DatasetFormatError(
                f"{self.name}: {n_read} bytes were read, {self.size} announced; get the file again"
            )
        if rest.strip():
            yield rest.rstrip()
        elif is_empty:
            raise DatasetFormatError(f"{self.name}: the file is empty; download the dataset again")


@contextmanager
def open_dataset(path: Path) -> Iterator[dict[str, TextFile]]:
    """Yield the text files of the one TU dataset in a folder or zip, by kind (``"A"``, ...)."""
    found: list[TextFile] = []
    with ExitStack() as stack:
        if path.is_dir():
            for file in filter(Path.is_file, sorted(path.iterdir())):
                stat = file.stat()
                # With the path: files unpacked from two archives may agree in size and time.
                stamp = f"{file.resolve()} {stat.st_size} {stat.st_mtime_ns}"
                opened: Any = partial(file.open, "rb")
                found.append(TextFile(str(file), stat.st_size, stamp, opened))
        elif path.is_file():
            with readable(path, _AGAIN):
                archive = stack.enter_context(zipfile.ZipFile(path))
            check_archive(archive.infolist(), path)
            for info in archive.infolist():
                if info.filename and not info.is_dir():
                    name, stamp = info.filename, f"{info.filename} {info.file_size} {info.CRC}"
                    opened = partial(archive.open, info)
                    found.append(TextFile(f"{path}/{name}", info.file_size, stamp, opened))
        else:
            raise DatasetNotFoundError(f"{path}: no such folder or zip file")
        # Finder adds files like "__MACOSX/._MUTAG_A.txt" to the zips it makes.
        found = [file for file in found if not PurePath(file.name).name.startswith(".")]
        prefixes = [f.name.removesuffix("A.txt") for f in found if f.name.endswith("_A.txt")]
        if len(prefixes) != 1:
            raise DatasetFormatError(
                f"{path}: expected one file NAME_A.txt with the edges, found "
                f"{'several' if prefixes else 'none'}; give the folder or zip of a single TU "
                "dataset"
            )
        own = [file for file in found if file.name.startswith(prefixes[0])]
        yield {f.name.removeprefix(prefixes[0]).removesuffix(".txt"): f for f in own}


def check_archive(members: list[zipfile.ZipInfo], path: Path) -> None:
    """Raise UnsafeArchiveError for archives that leave their folder or expand too far."""
    for info in members:
        name = info.filename.replace("\\", "/")
        absolute = PurePosixPath(name).is_absolute() or bool(PureWindowsPath(name).drive)
        if absolute or ".." in PurePosixPath(name).parts:
            raise UnsafeArchiveError(
                f"{path}: member {info.filename!r} leads out of the archive's folder; "
                "do not use this file"
            )
    size = sum(info.file_size for info in members)
    Expansion(str(path), path.stat().st_size).add(size)
    if MAX_UNPACKED_BYTES.is_below(size):
        raise UnsafeArchiveError(
            f"{path}: unpacks to {size / 1e9:.1f} GB; {MAX_UNPACKED_BYTES.in_words}; if it "
            "should be that large, unpack it and load the folder"
        )


# ---------------------------------------------------------------------- open files


@dataclass(frozen=True)
class Stream:
    """An open file, as bytes and unpacked; it is read from where it stands, and not closed."""

    name: str
    content: IO[bytes]
    start: bytes  # its first bytes, which are still to be read
    expansion: Expansion | None = None  # of a packed one, where its size is known

    @classmethod
    def of(cls, file: Any) -> Stream:
        """Wrap a file that is open for reading, text or binary, or standard input."""
        name = getattr(file, "name", None)
        name = name if isinstance(name, str) else f"the open {type(file).__name__}"
        if file == STANDARD_INPUT:
            file, name = sys.stdin, "standard input"
            if file is None or file.closed:
                raise DatasetFormatError(f"{name}: is closed; give the name of a file")
        # A text file has one of bytes below, unless it is in memory, such as a StringIO.
        stream: Any = getattr(file, "buffer", None) if isinstance(file, io.TextIOBase) else file
        expansion = None
        with readable(name):
            can_seek = hasattr(stream, "seekable") and stream.seekable()
            if not can_seek and not hasattr(stream, "peek"):  # its beginning is read twice
                content = file.read()
                content = content.encode() if isinstance(content, str) else content
                stream, can_seek = io.BytesIO(content), True
            place = stream.tell() if can_seek else 0
            start = bytes(stream.read(8) if can_seek else stream.peek(8)[:8])
            if can_seek:
                stream.seek(place)
            if start.startswith(GZIP):
                if can_seek:
                    expansion = Expansion(name, stream.seek(0, io.SEEK_END) - place)
                    stream.seek(place)
                stream = io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=stream)))
                start = bytes(stream.peek(8)[:8])
        return cls(name, stream, start.removeprefix(b"\xef\xbb\xbf").lstrip(), expansion)

    def __str__(self) -> str:
        return self.name


def is_stream(given: Any) -> bool:
    """Return whether something is an open file, or the name of standard input."""
    return given == STANDARD_INPUT if isinstance(given, str) else hasattr(given, "read")


# ---------------------------------------------------------------------- formats


SUFFIXES = {
    ".zip": "tu",
    ".xlsx": "xlsx",
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
TABLES = ("parquet", "arrow", "jsonl", "csv", "tsv", "xlsx", "smi", "sdf")
STREAMED = ("csv", "tsv", "jsonl", "smi", "sdf")  # what can come from a pipe or an open file
READABLE = (
    "a TU folder or zip, a CSV, TSV, JSON lines, Parquet, Arrow or Excel table (.xlsx), a file of "
    "SMILES (.smi) or SDF, or a folder of such tables or of GraphML files"
)


def recognize(
    path: str | os.PathLike[str] | Stream, format: str | None = None
) -> tuple[str, Sequence[Any]]:
    """Find the format, as given, else by the name, else by the first bytes; and its files.

    These are paths, a stream, or the name of a dataset.
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r}: expected one of {', '.join(FORMATS)}")
    if str(path) == STANDARD_INPUT:
        path = Stream.of(STANDARD_INPUT)
    if isinstance(path, Stream):  # as given, by its name, or else CSV or JSON lines
        named = SUFFIXES.get(split_name(path.name)[1])
        found = format or named or ("jsonl" if path.start.startswith(b"{") else "csv")
        if found not in STREAMED:
            raise DatasetFormatError(
                f"{path.name}: cannot be {found}, only {', '.join(STREAMED)}; give the name of "
                "a file"
            )
        return found, [path]
    place = expanduser(path)
    if place.is_dir():
        return _in_folder(place, format)
    if place.is_file():
        return format or _of_file(place), [place]
    if str(path) in KNOWN_NAMES and format in (None, "tu"):
        return "tu", [str(path)]
    if os.path.lexists(place):
        raise DatasetNotFoundError(
            f"{path}: neither a file nor a folder; read a pipe as standard input, by the name -"
        )
    raise DatasetNotFoundError(f"{path}: no such file or folder{no_such_name(str(path))}")


def _of_file(path: Path) -> str:
    if (named := SUFFIXES.get(split_name(path)[1])) is not None:
        return named
    with readable(path), open_unpacked(path) as (stream, _):
        start = stream.read(8).removeprefix(b"\xef\xbb\xbf").lstrip()
    for magic, format in MAGIC.items():
        if start.startswith(magic):
            return format
    what = "an empty file" if not start else "a file of unknown format"
    raise DatasetFormatError(f"{path}: {what}; what can be read is {READABLE}")


def _in_folder(folder: Path, format: str | None) -> tuple[str, Sequence[Path]]:
    """Find a TU dataset, else networks, else tables."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    if format == "tu" or (format is None and any(p.name.endswith("_A.txt") for p in files)):
        return "tu", [folder]
    for candidate in [format] if format else ["graphml", *TABLES]:
        if found := [path for path in files if SUFFIXES.get(split_name(path)[1]) == candidate]:
            return candidate, found
    counts = Counter(path.suffix or "without a suffix" for path in files)
    listed = ", ".join(f"{n} {suffix}" for suffix, n in counts.most_common(5))
    what = "" if format is None else f"no {format} files; "
    what += f"a folder with these files: {listed}" if listed else "an empty folder"
    raise DatasetFormatError(f"{folder}: {what}; what can be read is {READABLE}")


def shard_places(given: str) -> list[str]:
    """Find the files that a name, a pattern or a folder stands for, in the order of their names.

    Raises
    ------
    DatasetNotFoundError
        There is none.
    """
    is_pattern = files.is_pattern(given)
    found = files.matching(given) if is_pattern else files.inside_of(given)
    if found is None:
        return [given]
    if not files.is_url(given):
        found = [each for each in found if Path(each).is_file()]
    if not is_pattern:
        found = [each for each in found if SUFFIXES.get(split_name(each)[1]) in TABLES]
    if not found:
        what = "no files of tables, such as .csv, .jsonl or .parquet"
        raise DatasetNotFoundError(f"{given}: {'no file has such a name' if is_pattern else what}")
    return found


def split_name(place: str | Path) -> tuple[str, str]:
    """Split a name into stem and suffix, without the suffix of gzip."""
    name = PurePosixPath(files.name_of_place(str(place)))
    name = PurePosixPath(name.stem) if name.suffix.lower() == ".gz" else name
    return name.stem, name.suffix.lower()


@contextmanager
def fetched_shard(place: str) -> Iterator[Path]:
    """Yield a shard as a local file; messages name it as the user did, not its copy."""
    with files.fetched(place) as path:
        try:
            yield path
        except DatasetFormatError as error:
            raise DatasetFormatError(str(error).replace(str(path), place)) from error

"""Shards: the files that hold a large set of graphs, and how rows of them are read."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fdgnn.datasets import iter_graphs
from fdgnn.datasets.files import DAMAGE
from fdgnn.datasets.formats import SUFFIXES, TABLES
from fdgnn.datasets.rows import GraphTables
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError, FDGNNError
from fdgnn.extras import require
from fdgnn.graphs.reading import Reading
from fdgnn.records import encode

_MAGIC = "*?["


@dataclass(frozen=True)
class Shard:
    """A file of graphs: a path, or a URL that fsspec opens.

    Attributes
    ----------
    path : str
    size : int
        In bytes.
    stamp : str
        When it was last changed, as far as that is known.
    """

    path: str
    size: int
    stamp: str

    def key(self, settings: bytes) -> str:
        """Name what is made of this very file with these settings."""
        about = f"{self.path}\n{self.size}\n{self.stamp}\n".encode() + settings
        return hashlib.sha256(about).hexdigest()[:20]


def is_many(data: str) -> bool:
    """Tell whether a user names many files at once, or a place elsewhere."""
    return _is_url(data) or (any(c in data for c in _MAGIC) and not Path(data).exists())


def find_shards(data: str) -> list[Shard]:
    """Find the files that a path, a pattern, a folder or a URL names, in the order of names.

    Raises
    ------
    DatasetNotFoundError
        There is none.
    """
    found = _at_url(data) if _is_url(data) else _here(data)
    if not found:
        raise DatasetNotFoundError(f"{data}: no such files")
    return found


def _is_url(data: str) -> bool:
    return "://" in data


def _here(data: str) -> list[Shard]:
    place = Path(data).expanduser()
    if place.is_dir():
        paths = [p for p in place.iterdir() if p.is_file() and _is_table(p.name)]
    elif place.is_file():
        paths = [place]
    else:
        start = Path(place.anchor) if place.is_absolute() else Path()
        pattern = str(place.relative_to(start))
        paths = [p for p in start.glob(pattern) if p.is_file()]
    return [_shard(path) for path in sorted(paths)]


def _shard(path: Path) -> Shard:
    facts = path.stat()
    return Shard(str(path.resolve()), facts.st_size, str(facts.st_mtime_ns))


def _at_url(url: str) -> list[Shard]:
    fsspec = require("fsspec", "cluster", "files at a URL")
    try:
        system, path = fsspec.core.url_to_fs(url)
        if any(c in path for c in _MAGIC):
            names = system.glob(path)
        elif system.isdir(path):
            names = [n for n in system.ls(path, detail=False) if _is_table(Path(n).name)]
        else:
            names = [path]
        facts = [system.info(name) for name in sorted(names)]
    except (OSError, ValueError, ImportError) as error:
        raise DatasetNotFoundError(f"{url}: it cannot be opened ({error})") from error
    return [
        Shard(
            system.unstrip_protocol(each["name"]),
            int(each.get("size") or 0),
            str(each.get("mtime") or each.get("LastModified") or each.get("etag") or ""),
        )
        for each in facts
        if each.get("type", "file") == "file"
    ]


def _is_table(name: str) -> bool:
    path = Path(name)
    suffixes = [s.lower() for s in path.suffixes if s.lower() != ".gz"]
    known = SUFFIXES.get(suffixes[-1]) if suffixes else None
    return known in TABLES and not name.startswith(".")


@dataclass(frozen=True)
class ShardRequest:
    """How rows of shards are read: the same for all of them.

    Attributes
    ----------
    options : mapping
        Arguments of `fdgnn.iter_graphs`.
    reading : Reading or None
        What was settled on the first shard.
    n_rows : int
        Rows of a part.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading | None = None
    n_rows: int = 10_000

    @property
    def settings(self) -> bytes:
        """All of it as bytes, the same for the same settings."""
        options = repr(sorted(self.options.items())).encode()
        return b"\n".join([options, encode(self.reading), str(self.n_rows).encode()])

    @contextmanager
    def open(self, shard: Shard) -> Iterator[GraphTables]:
        """Open a shard, whose rows are read as those of the others."""
        try:
            with _local(shard.path) as place:
                own = {} if self.reading is None else _left_open(self.options)
                options = own or dict(self.options)
                found = iter_graphs(place, like=self.reading, chunk_size=self.n_rows, **options)
                if not isinstance(found, GraphTables):
                    raise DatasetFormatError(
                        f"{shard.path}: shards are tables: CSV, JSON lines, Parquet or Arrow"
                    )
                yield found
        except FDGNNError:
            raise
        except FileNotFoundError as error:
            raise DatasetNotFoundError(f"{shard.path}: it is gone") from error
        except DAMAGE as error:
            raise DatasetFormatError(f"{shard.path}: it cannot be read ({error})") from error

    def settled(self, shard: Shard) -> ShardRequest:
        """Decide on the first rows of a shard how to read all."""
        few = replace(self, n_rows=min(self.n_rows, 1_000))
        with few.open(shard) as tables:
            for table in tables:
                if table.reading is not None:
                    return replace(self, reading=table.reading)
        raise DatasetFormatError(f"{shard.path}: none of its rows can be used")


def _left_open(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that a reading does not settle."""
    kept = ("format", "target", "numeric", "id_column", "smiles_column", "strict")
    return {name: options[name] for name in kept if name in options}


@contextmanager
def _local(path: str) -> Iterator[Any]:
    """Give what `iter_graphs` takes: a path, or a copy of what lies at a URL."""
    if not _is_url(path):
        yield path
        return
    fsspec = require("fsspec", "cluster", "files at a URL")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.rsplit("/", 1)[-1]
        system, name = fsspec.core.url_to_fs(path)
        system.get_file(name, str(copy))
        yield copy

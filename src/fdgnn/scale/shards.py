"""Shards: the files that hold a large set of graphs, and how rows of them are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from gzip import GzipFile
from pathlib import Path
from typing import Any, NamedTuple

from fdgnn import files
from fdgnn.datasets import iter_graphs
from fdgnn.datasets.files import DAMAGE, SUFFIXES, fetched_shard, shard_places, split_name
from fdgnn.datasets.rows import GraphTables
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError, FDGNNError
from fdgnn.files import expanduser
from fdgnn.schema import InputSchema

_BEGINNING = 2**20  # bytes of text by which rows are guessed
_LINES = ("csv", "tsv", "jsonl", "smi")  # formats that have a row per line
_LEFT_OPEN = ("format", "target", "numeric", "id_column", "smiles_column", "strict")  # by a schema


class Shard(NamedTuple):
    """A file of graphs: a path, or a URL that fsspec opens, and a text that changes with it."""

    path: str
    stamp: str


def is_many(data: str) -> bool:
    """Return whether a user names many files at once, or a place elsewhere."""
    return files.is_url(data) or files.is_pattern(data)


def find_shards(data: str) -> list[Shard]:
    """Find the files that a path, a pattern, a folder or a URL names, in the order of names.

    Raises
    ------
    DatasetNotFoundError
        There is none.
    """
    try:
        found = shard_places(data if files.is_url(data) else str(expanduser(data)))
        return [Shard(whole, files.stamp_of(whole)) for whole in map(files.absolute, found)]
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"{data}: there is no such file") from error
    except OSError as error:
        raise DatasetNotFoundError(f"{data}: cannot be opened ({error})") from error


def rows_about(places: Sequence[str]) -> int | None:
    """Estimate the number of rows in files by the first one; None if lines are not rows.

    It is for showing the time left, so that an error of some percent does no harm.
    """
    first, format = Path(places[0]), SUFFIXES.get(split_name(places[0])[1])
    if files.is_url(places[0]) or format not in _LINES:
        return None
    try:
        with first.open("rb") as file:
            packed = first.suffix.lower() == ".gz"
            text = (GzipFile(fileobj=file) if packed else file).read(_BEGINNING)
            n_bytes = file.tell() if packed else len(text)
        size = sum(Path(place).stat().st_size for place in places)
    except DAMAGE:  # reported where the rows are read
        return None
    n_headers = len(places) if format in ("csv", "tsv") else 0
    return max(round(text.count(b"\n") * size / max(n_bytes, 1)) - n_headers, 0) or None


@dataclass(frozen=True)
class ShardRequest:
    """Options by which the rows of all shards are read.

    Attributes
    ----------
    options : mapping
        Arguments of `fdgnn.iter_graphs`.
    schema : InputSchema or None
        What was inferred from the first shard.
    n_rows : int
        Rows of a chunk.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    schema: InputSchema | None = None
    n_rows: int = 10_000

    @contextmanager
    def open(self, shard: Shard) -> Iterator[GraphTables]:
        """Open a shard, whose rows are read like those of the others."""
        try:
            with fetched_shard(shard.path) as place:
                options = dict(self.options)
                if self.schema is not None:
                    own = {name: options[name] for name in _LEFT_OPEN if name in options}
                    options = own or options
                found = iter_graphs(place, like=self.schema, chunk_size=self.n_rows, **options)
                if not isinstance(found, GraphTables):
                    raise DatasetFormatError(
                        f"{shard.path}: shards are tables: CSV, JSON lines, Parquet or Arrow"
                    )
                yield found
        except FDGNNError:
            raise
        except FileNotFoundError as error:
            raise DatasetNotFoundError(f"{shard.path}: the file no longer exists") from error
        except DAMAGE as error:
            raise DatasetFormatError(f"{shard.path}: cannot be read ({error})") from error

    def resolved(self, shard: Shard) -> ShardRequest:
        """Decide on the first rows of a shard how to read all."""
        few = replace(self, n_rows=min(self.n_rows, 1_000))
        with few.open(shard) as tables:
            for table in tables:
                if table.schema is not None:
                    return replace(self, schema=table.schema)
        raise DatasetFormatError(f"{shard.path}: none of its rows can be used")

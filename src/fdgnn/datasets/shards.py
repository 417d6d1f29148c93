"""Shards: files that together hold a large set of graphs, as paths or URLs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from fdgnn import places
from fdgnn.datasets.formats import SUFFIXES, TABLES, regular_files
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError


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

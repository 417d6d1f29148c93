"""What `read_graphs` takes beside names of files: open files, data frames, lists of molecules."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import IO, Any, cast

from fdgnn.datasets.files import DAMAGE, GZIP, Expansion
from fdgnn.datasets.rows import Row
from fdgnn.exceptions import DatasetFormatError
from fdgnn.extras import require
from fdgnn.graphs.molecules import is_molecule

SMILES = "smiles"  # the column that a list of molecules stands for

Table = tuple[list[str], Callable[[Sequence[str]], Iterator[Row]]]


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
        """Take a file that is open for reading, text or binary."""
        name = getattr(file, "name", None)
        name = name if isinstance(name, str) else f"the open {type(file).__name__}"
        try:
            return cls._opened(name, _as_bytes(file))
        except DAMAGE as error:
            raise DatasetFormatError(f"{name}: it cannot be read ({error})") from error

    @classmethod
    def _opened(cls, name: str, stream: IO[bytes]) -> Stream:
        start, expansion = _first_bytes(stream), None
        if start.startswith(GZIP):
            expansion = Expansion(name, _bytes_left(stream)) if _can_seek(stream) else None
            stream = io.BufferedReader(cast(Any, gzip.GzipFile(fileobj=stream)))
            start = bytes(stream.peek(8)[:8])
        return cls(name, stream, start.removeprefix(b"\xef\xbb\xbf").lstrip(), expansion)

    def __str__(self) -> str:
        return self.name


def is_stream(given: Any) -> bool:
    """Tell whether something is an open file."""
    return hasattr(given, "read") and not hasattr(given, "columns")


def _as_bytes(file: Any) -> IO[bytes]:
    """Give a stream of bytes whose beginning can be looked at."""
    if isinstance(file, io.TextIOBase):
        below = getattr(file, "buffer", None)
        if below is None:  # a StringIO is in memory anyway
            return io.BytesIO(file.read().encode())
        file = below
    if _can_seek(file) or hasattr(file, "peek"):
        return cast(IO[bytes], file)
    content = file.read()
    return io.BytesIO(content.encode() if isinstance(content, str) else content)


def _can_seek(file: Any) -> bool:
    asked = getattr(file, "seekable", None)
    return bool(asked is not None and asked())


def _bytes_left(stream: IO[bytes]) -> int:
    place = stream.tell()
    end = stream.seek(0, io.SEEK_END)
    stream.seek(place)
    return end - place


def _first_bytes(stream: Any) -> bytes:
    if not _can_seek(stream):
        return bytes(stream.peek(8)[:8])
    place = stream.tell()
    start = stream.read(8)
    stream.seek(place)
    return bytes(start)


# ---------------------------------------------------------------------- data frames and lists


def is_frame(given: Any) -> bool:
    """Tell whether something is a pandas or polars data frame."""
    return hasattr(given, "columns") and hasattr(given, "__getitem__")


def frame_table(frame: Any) -> Table:
    """Give the columns of a data frame, and a function from the wanted ones to rows."""
    if not hasattr(frame, "shape"):
        raise DatasetFormatError(f"a {type(frame).__name__} has no rows yet; collect() it first")
    keys = {str(key): key for key in frame.columns}

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        columns = [_cells(frame[keys[name]]) for name in wanted]
        if not columns:
            return iter([{}] * len(frame))
        return (dict(zip(wanted, cells, strict=True)) for cells in zip(*columns, strict=True))

    return [str(key) for key in frame.columns], rows


def _cells(column: Any) -> list[Any]:
    """Give the values of a column; those that pandas calls missing are None."""
    values: list[Any] = column.to_list()
    if not hasattr(column, "isna"):
        return values
    return [None if gone else value for value, gone in zip(values, column.isna(), strict=True)]


def is_molecule_list(given: Any) -> bool:
    """Tell whether something is a list of SMILES or of RDKit Mols.

    Some may be missing: None, or a number, as data frames have NaN there.
    """
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__") or is_molecule(given):
        return False
    if not hasattr(given, "__len__") or not hasattr(given, "__iter__"):
        return False
    rest = [item for item in given if item is not None and not is_molecule(item)]
    return all(isinstance(item, Number) for item in rest) and 2 * len(rest) <= len(given)


def molecule_table(molecules: Any) -> Table:
    """Give a list of molecules as a table with one column of SMILES."""

    def rows(wanted: Sequence[str]) -> Iterator[Row]:
        return ({SMILES: as_smiles(each)} for each in molecules)

    return [SMILES], rows


def as_smiles(molecule: Any) -> Any:
    """Write a ``Mol`` as SMILES, so that a table can name its molecules; None if there is none."""
    if isinstance(molecule, str):
        return molecule
    if not is_molecule(molecule):
        return None
    return require("rdkit.Chem", "chem", "molecules").MolToSmiles(molecule)

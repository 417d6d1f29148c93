"""Records: what is written to a file and read again is one class with one decoder.

A record is a `msgspec.Struct`. Its fields and their types are the format; `decode` checks a
stranger's JSON against them, so that nobody has to check again. docs/decisions/0030-records.md
says why this library was chosen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fdgnn.files import write_aside

T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of all records, which are immutable and have no fields but their own.

    Type checkers want a subclass to say ``frozen=True`` again: ``class X(Record, frozen=True,
    kw_only=True)``.
    """


def encode(record: object) -> bytes:
    """Write a record, or a list of records, as compact JSON in one line."""
    return msgspec.json.encode(record)


def as_plain(record: Record) -> dict[str, Any]:
    """Give a record's fields by name, as JSON has them."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain


def decode(content: bytes | str, kind: type[T]) -> T:
    """Read a record of this kind from JSON.

    Raises
    ------
    ValueError
        The text is no JSON, or not of this kind; the message says where.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def write_record(path: Path, record: object) -> None:
    """Write a record as an indented JSON file, completely or not at all."""
    with write_aside(path) as file:
        file.write(msgspec.json.format(encode(record), indent=1) + b"\n")

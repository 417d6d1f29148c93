"""Typed records of files, and properties that are computed once."""

from __future__ import annotations

import functools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from fdgnn.exceptions import StudyError
from fdgnn.files import write_aside
from fdgnn.limits import MAX_RUN_FILE_BYTES

# On Python 3.11, `functools.cached_property` holds one lock for each property of a class. A process
# that is forked while another thread holds it waits forever. Python 3.12 removed the lock; for 3.11
# this does the same. Two threads may then compute a value at the same time, and one of the two
# equal values is kept.
if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801 - it replaces functools' own
        """A property that is computed once for each instance."""

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


T = TypeVar("T")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of all records, which are immutable and reject unknown fields.

    For type checkers, a subclass repeats ``frozen=True``:
    ``class X(Record, frozen=True, kw_only=True)``.
    """


def encode(record: object) -> bytes:
    """Write a record, or a list of records, as compact JSON in one line."""
    return msgspec.json.encode(record)


def as_plain(record: Record) -> dict[str, Any]:
    """Return a record's fields by name, as JSON has them."""
    plain: dict[str, Any] = msgspec.to_builtins(record)
    return plain


def decode(content: bytes | str, kind: type[T]) -> T:
    """Read a record of this kind from JSON.

    Raises
    ------
    ValueError
        The text is not JSON, or not of this kind; the message locates the error.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


def read_record(path: Path, kind: type[T]) -> T:
    """Read a JSON file that this library writes, or raise StudyError."""
    if not path.is_file():  # reading a pipe would block
        raise StudyError(f"{path}: cannot be read (there is no such file)")
    try:
        if MAX_RUN_FILE_BYTES.is_below(path.stat().st_size):
            raise StudyError(f"{path}: too large; {MAX_RUN_FILE_BYTES.in_words}")
        return decode(path.read_bytes(), kind)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise StudyError(
            f"{path}: damaged ({error}); make it again, or use another directory"
        ) from None


def write_record(path: Path, record: object) -> None:
    """Write a record as an indented JSON file, completely or not at all."""
    with write_aside(path) as file:
        file.write(msgspec.json.format(encode(record), indent=1) + b"\n")

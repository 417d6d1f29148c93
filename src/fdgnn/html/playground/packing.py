"""Records and arrays as one text that a page can hold: gzip in base64."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.records import Record, encode

_TYPES = {"f8", "i4", "i2", "i1", "u8", "u2", "u1"}  # that the page can read
_ALIGNED = 8  # bytes: typed arrays of JavaScript begin at multiples of their entries' size


class ArrayPlace(Record, frozen=True, kw_only=True):
    """Where an array lies among the bytes after the JSON."""

    type: str
    shape: list[int]
    start: int


class Header(Record, frozen=True, kw_only=True):
    """The JSON at the beginning: the content, and where each array lies."""

    content: msgspec.Raw
    arrays: dict[str, ArrayPlace]


def packed(content: Record, arrays: Mapping[str, Array]) -> str:
    """Give records and arrays as text; `unpack` in scripts/content.js reads it."""
    places, parts, start = {}, [], 0
    for name, array in arrays.items():
        raw = _little(array)
        kind = f"{array.dtype.kind}{array.dtype.itemsize}"
        if kind not in _TYPES:
            raise TypeError(f"array {name}: the page cannot read {array.dtype}")
        places[name] = ArrayPlace(type=kind, shape=list(array.shape), start=start)
        parts += [raw, bytes(-len(raw) % _ALIGNED)]
        start += len(raw) + len(parts[-1])
    header = encode(Header(content=msgspec.Raw(encode(content)), arrays=places))
    header += b" " * (-(len(header) + _ALIGNED) % _ALIGNED)
    size = np.array([len(header), 0], dtype="<u4").tobytes()
    whole = b"".join([size, header, *parts])
    return base64.b64encode(gzip.compress(whole, 9, mtime=0)).decode("ascii")


def _little(array: Array) -> bytes:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()


def smallest(values: Array) -> Array:
    """Give whole numbers in the smallest type that has room for them."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    for name in ("u1", "i1", "u2", "i2"):
        info = np.iinfo(name)
        if info.min <= low and high <= info.max:
            return values.astype(name)
    return values.astype("i4")

"""Files of named arrays in the safetensors format, read as if they came from an enemy.

::

    8 bytes     N, little endian
    N bytes     JSON: {"__metadata__": {text: text}, name: {"dtype", "shape", "data_offsets"}, ...}
    the rest    the arrays, one after the other without gaps

Written by hand rather than with the safetensors library: the format is this small, every bound
below is checked before memory is taken, and a model can be loaded without an extra. The metadata
have a checksum over every byte of the file (with its own 64 digits as zeros), which finds damage;
it is no signature, so the values are checked as well, here and beside.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from fdgnn.exceptions import ModelFileError, ModelVersionError
from fdgnn.files import write_aside
from fdgnn.graphs import Array

FORMAT, FORMAT_VERSION = "fdgnn", 1
MOST_HEADER = 2**20  # bytes: parsed, JSON of this size takes some tens of megabytes at worst
MOST_BYTES = 2**31  # of a file
_DTYPES: dict[str, np.dtype[Any]] = {"F64": np.dtype("<f8"), "I32": np.dtype("<i4")}
_NO_CHECKSUM = "0" * 64


class TensorFile(NamedTuple):
    """What is in a file: texts by name, and read-only arrays by name."""

    metadata: dict[str, str]
    tensors: dict[str, Array]


# ---------------------------------------------------------------------- writing


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file, or leave what was there before."""
    with write_aside(path) as file:
        file.write(content)


def to_bytes(metadata: Mapping[str, str], tensors: Mapping[str, Array]) -> bytes:
    """Compose a file's bytes; the same content always gives the same bytes."""
    table, parts, begin = {}, [], 0
    for name in sorted(tensors):
        code = next(code for code, dtype in _DTYPES.items() if dtype == tensors[name].dtype)
        parts.append(np.ascontiguousarray(tensors[name], dtype=_DTYPES[code]).tobytes())
        end = begin + len(parts[-1])
        shape = list(tensors[name].shape)
        table[name] = {"dtype": code, "shape": shape, "data_offsets": [begin, end]}
        begin = end
    texts = {"format": FORMAT, "format_version": str(FORMAT_VERSION), **metadata}
    header = _header({"__metadata__": texts | {"sha256": _NO_CHECKSUM}, **table})
    if len(header) > MOST_HEADER or begin > MOST_BYTES - MOST_HEADER - 8:
        raise ModelFileError(
            f"the model is too large for a file: {len(header)} bytes of names and settings (at "
            f"most {MOST_HEADER}), {begin} bytes of numbers (at most about {MOST_BYTES})"
        )
    data = b"".join(parts)
    checksum = hashlib.sha256(_length(header) + header + data).hexdigest()
    header = header.replace(_marker(_NO_CHECKSUM), _marker(checksum))
    return _length(header) + header + data


def _header(content: dict[str, Any]) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode("ascii")
    return text + b" " * (-len(text) % 8)  # so that the arrays are aligned


def _length(header: bytes) -> bytes:
    return len(header).to_bytes(8, "little")


def _marker(checksum: str) -> bytes:
    return b'"sha256":"%s"' % checksum.encode("ascii", "replace")


# ---------------------------------------------------------------------- reading


def read_tensors(path: Path) -> TensorFile:
    """Read and check a file.

    Raises
    ------
    ModelFileError
        The file is foreign, truncated, altered, or not what its own header says.
    OSError
        There is no such file, or it cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
        _refuse("not a file")
    with path.open("rb") as file:
        return _read(file, os.fstat(file.fileno()).st_size)


def _read(file: BinaryIO, size: int) -> TensorFile:
    length = int.from_bytes(file.read(8), "little")
    if size < 10 or not 2 <= length <= min(MOST_HEADER, size - 8):
        _refuse(f"not a model file, or truncated: its {size} bytes do not begin as a model's do")
    if size > MOST_BYTES:
        _refuse(f"it has {size} bytes; model files have at most {MOST_BYTES}")
    header = file.read(length)
    content = parse_json(header, "its header")
    metadata = _checked_metadata(content.pop("__metadata__", None))
    table = _checked_table(content, size - 8 - length)
    data = file.read(size - 8 - length)
    _check_checksum(header, data, metadata["sha256"])
    tensors = {
        name: np.frombuffer(data, dtype, math.prod(shape), begin).reshape(shape)
        for name, (dtype, shape, begin, _) in table.items()
    }
    return TensorFile(metadata, tensors)


def parse_json(text: bytes | str, what: str) -> dict[str, Any]:
    """Read a JSON object: no repeated keys, no NaN, no nesting without end."""
    try:
        content = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _refuse(f"{what} is no JSON that a model file has ({error or type(error).__name__})")
    if not isinstance(content, dict):
        _refuse(f"{what} is a JSON {type(content).__name__}, not an object")
    return content


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name is given twice")
    return content


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _checked_metadata(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        _refuse("a safetensors file, but not a model of fdgnn")
    if not all(isinstance(value, str) for value in metadata.values()):
        _refuse("its metadata are not all text")
    version = metadata.get("format_version", "")
    if version != str(FORMAT_VERSION):
        raise ModelVersionError(
            f"written in format {version[:20]!r} by fdgnn {metadata.get('fdgnn', '')[:20]!r}; this "
            f"version reads format {FORMAT_VERSION}: install a newer fdgnn"
        )
    if "sha256" not in metadata:
        _refuse("it has no checksum")
    return metadata


def _checked_table(
    content: dict[str, Any], n_bytes: int
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int, int]]:
    """Check that the arrays fill the data exactly, one after the other."""
    table = {name: _checked_entry(name, entry) for name, entry in content.items()}
    position = 0
    for name, (dtype, shape, begin, end) in sorted(table.items(), key=lambda item: item[1][2:]):
        if begin != position or end - begin != math.prod(shape) * dtype.itemsize:
            _refuse(f"the place of {name[:40]!r} in the file does not fit its shape {shape}")
        position = end
    if position != n_bytes:
        _refuse(f"truncated or altered: {n_bytes} bytes of data, its header says {position}")
    return table


def _checked_entry(name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        _refuse(f"the entry of {name[:40]!r} is not that of an array")
    code, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(code, str) or code not in _DTYPES:
        _refuse(f"{name[:40]!r} has dtype {str(code)[:20]}; models have {', '.join(_DTYPES)}")
    if not _are_sizes(shape) or len(shape) > 2 or not _are_sizes(offsets) or len(offsets) != 2:
        _refuse(f"{name[:40]!r} has a shape or a place that no array of a model has")
    return _DTYPES[code], tuple(shape), offsets[0], offsets[1]


def _are_sizes(values: Any) -> bool:
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value <= MOST_BYTES for value in values
    )


def _check_checksum(header: bytes, data: bytes, checksum: str) -> None:
    if len(checksum) != 64 or header.count(_marker(checksum)) != 1:
        _refuse("its checksum is not one")
    plain = header.replace(_marker(checksum), _marker(_NO_CHECKSUM))
    if hashlib.sha256(_length(header) + plain + data).hexdigest() != checksum:
        _refuse("damaged or altered: its checksum does not fit; copy or save it again")


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)

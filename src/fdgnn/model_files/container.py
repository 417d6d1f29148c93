"""A model file's bytes: arrays and one JSON text, in the safetensors format.

The safetensors library writes and reads the format. Added here are bounds that hold before memory
is taken, the few types of numbers that models have, and a checksum. The checksum finds damage. It
is not a signature, so the content is validated when it is used.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np
import safetensors
from safetensors.numpy import save

from fdgnn._version import __version__
from fdgnn.arrays import Array
from fdgnn.encoders.registry import reject
from fdgnn.exceptions import ModelVersionError
from fdgnn.limits import MAX_MODEL_BYTES, MAX_MODEL_HEADER_BYTES
from fdgnn.records import Record, decode, encode

FORMAT = 5  # the only one that is read
_KEY = "fdgnn"  # the only entry of the metadata: the library writes several in a random order
_NO_CHECKSUM = "0" * 64  # stands in the file while its checksum is computed
_DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U64": np.dtype("<u8"),
}


class Envelope(Record, frozen=True, kw_only=True):
    """The envelope of a description: the format, and a checksum."""

    format: int
    fdgnn: str  # the version that wrote it
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]  # of the whole file
    model: msgspec.Raw


class _Header(msgspec.Struct):
    """The metadata in the header of a safetensors file, beside the places of its arrays."""

    metadata: dict[str, str] = msgspec.field(name="__metadata__")


class _Format(msgspec.Struct):
    """The fields that the envelope of every format has."""

    format: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    fdgnn: str = "?"


class Content(NamedTuple):
    """The contents of a model file."""

    description: bytes  # JSON
    arrays: dict[str, Array]
    fdgnn: str  # the version that wrote it
    format: int


# ---------------------------------------------------------------------- writing


def to_bytes(description: bytes, arrays: Mapping[str, Array]) -> bytes:
    """Compose a file; the same content always gives the same bytes."""
    tensors = {name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}
    envelope = Envelope(
        format=FORMAT, fdgnn=__version__, sha256=_NO_CHECKSUM, model=msgspec.Raw(description)
    )
    data: bytes = save(tensors, {_KEY: encode(envelope).decode()})
    end = _end_of_header(data)
    if MAX_MODEL_HEADER_BYTES.is_below(end - 8) or MAX_MODEL_BYTES.is_below(len(data)):
        reject(
            f"the model is too large for a file: {end - 8} bytes of names and settings, "
            f"{MAX_MODEL_HEADER_BYTES.in_words}; {len(data)} bytes in all, "
            f"{MAX_MODEL_BYTES.in_words}"
        )
    checksum = sha256(data).hexdigest()
    return data[:end].replace(_NO_CHECKSUM.encode(), checksum.encode(), 1) + data[end:]


# ---------------------------------------------------------------------- reading


def read(path: Path) -> Content:
    """Read a file and check its bytes.

    Raises
    ------
    ModelFileError
        The file is not a model file, or it is truncated or altered.
    OSError
        The file does not exist or cannot be read.
    """
    if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for ever
        reject("not a file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if MAX_MODEL_BYTES.is_below(size):
            reject(f"{size} bytes; {MAX_MODEL_BYTES.in_words}")
        end = _end_of_header(file.read(8))
        if not 10 <= end <= size or MAX_MODEL_HEADER_BYTES.is_below(end - 8):
            reject(f"not a model file, or truncated: {size} bytes without the header of a model")
        file.seek(0)
        return from_bytes(file.read(size))


def from_bytes(data: bytes) -> Content:
    """Split the bytes of a file into description and arrays."""
    end = _end_of_header(data)
    envelope = _envelope(data[8:end])
    # The checksum is that of all bytes, with zeros in the place of the stored checksum.
    digest = sha256(data[:end].replace(envelope.sha256.encode(), _NO_CHECKSUM.encode(), 1))
    digest.update(memoryview(data)[end:])
    if digest.hexdigest() != envelope.sha256:
        reject("damaged or altered: its checksum does not fit; copy or save it again")
    return Content(bytes(envelope.model), _arrays(data), envelope.fdgnn, envelope.format)


def _end_of_header(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")


def _envelope(header: bytes) -> Envelope:
    try:
        metadata = decode(header, _Header).metadata
        if list(metadata) != [_KEY]:
            raise ValueError(f"metadata is not one text called {_KEY!r}")
        found = decode(metadata[_KEY], _Format)
        if found.format == FORMAT:
            return decode(metadata[_KEY], Envelope)
    except ValueError as error:
        reject(f"not a model of fdgnn, or altered: its header cannot be read ({error})")
    remedy = "install a newer fdgnn" if found.format > FORMAT else "fit the model and save it again"
    raise ModelVersionError(
        f"written in format {found.format} by fdgnn {found.fdgnn[:20]!r}; this version reads "
        f"format {FORMAT}: {remedy}"
    )


def _arrays(data: bytes) -> dict[str, Array]:
    try:
        found: Any = safetensors.deserialize(data)  # type: ignore[no-untyped-call]
    except safetensors.SafetensorError as error:
        reject(f"truncated or altered ({error})")
    arrays: dict[str, Array] = {}
    for name, entry in found:
        if entry["dtype"] not in _DTYPES:
            reject(f"{name[:40]!r} has dtype {entry['dtype']}; models have {', '.join(_DTYPES)}")
        array = np.frombuffer(entry["data"], _DTYPES[entry["dtype"]])
        try:
            arrays[name] = array.reshape(entry["shape"])
        except (ValueError, OverflowError):  # 100 axes, or 2**63 times 0 entries
            reject(f"{name[:40]!r} has a shape that no array can have")
    return arrays

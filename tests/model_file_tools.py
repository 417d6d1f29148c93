"""Model files for tests: taken apart, changed, signed again, and rejected."""

from __future__ import annotations

import hashlib
import json
import struct
import time
import tracemalloc
from contextlib import contextmanager

import pytest
from hypothesis import strategies as st

from fdgnn import load_model, save_model
from fdgnn.exceptions import FDGNNError, ModelFileError
from fdgnn.model_files import container

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def again(model, path, **options):
    save_model(model, path, **options)
    return load_model(path)


def rejected(data, path, error=ModelFileError):
    path.write_bytes(data)
    with pytest.raises(error) as told:
        load_model(path)
    message = str(told.value)
    assert message.startswith(f"{path}: ")
    assert len(message) < 600
    assert isinstance(told.value, FDGNNError)
    return message


def rejected_quickly(data, path, n_bytes):
    """The same in a second, and in so much memory at most."""
    start = time.process_time()
    message = rejected(data, path)
    assert time.process_time() - start < 30  # it takes well below a second: this is no hang
    with memory_below(n_bytes):
        rejected(data, path)
    return message


@contextmanager
def memory_below(n_bytes):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < n_bytes
    finally:
        tracemalloc.stop()


def with_header(text, data=b""):
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(text)) + text + data


def parts(content):
    """Header and data of a file."""
    n = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + n]), content[8 + n :]


def signed(header, data=b""):
    """A file with the right checksum, whatever is in it."""
    envelope = json.loads(header["__metadata__"]["fdgnn"])
    return sealed(header, json.dumps(envelope | {"sha256": "0" * 64}), data)


def sealed(header, envelope, data=b""):
    """The same for an envelope as text, and for headers with a name given twice."""
    header = header | {"__metadata__": header["__metadata__"] | {"fdgnn": envelope}}
    return sealed_text(json.dumps(header), data)


def sealed_text(text, data=b""):
    file = with_header(text, data)
    return file.replace(b"0" * 64, hashlib.sha256(file).hexdigest().encode(), 1)


def with_record(content, change):
    """The same file with another description."""
    header, data = parts(content)
    envelope = json.loads(header["__metadata__"]["fdgnn"])
    change(envelope["model"])
    header["__metadata__"]["fdgnn"] = json.dumps(envelope)
    return signed(header, data)


def with_arrays(content, **changes):
    """The same file with other arrays; None takes one away."""
    found = container.from_bytes(content)
    arrays = found.arrays | changes
    kept = {name: array for name, array in arrays.items() if array is not None}
    return container.to_bytes(found.description, kept)


def merged(record, changes):
    """Change some fields of a record, or entries of a list, also inside of them."""
    inside = ("encoder", "objects", "parameters", "graph_kind", "facts", "domain")
    for name, value in changes.items():
        numbered = isinstance(record, list)
        key = int(name) if numbered else name
        old = record[key] if numbered else record.get(key)
        into_record = isinstance(old, dict) and (numbered or name in inside)
        into_list = isinstance(old, list) and value != {}
        if isinstance(value, dict) and (into_list or into_record):
            merged(old, value)
        else:
            record[key] = value


def array_of(content, name):
    return container.from_bytes(content).arrays[name]


def records_in(record):
    """A description and all records in it."""
    yield record
    for value in record.values():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                yield from records_in(each)

"""Strategies for hostile bytes and hostile JSON, near to what is valid."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

#: Numbers at which programs break.
EDGES = (
    0, -1, 1, 2, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1,
    2**63, 2**64, 10**30, -(2**31), -(2**63), 0.5, -0.0, 5e-324, 1e-310, 1e-39, 1e39, 1e100, 1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
WORDS = (
    "", " ", "0", "1", "-1", "1e999", "nan", "inf", "null", "NaN", "=1+1", "\x1b[2J", "\0",
    "a" * 300, "C", "CCO", "c1ccccc1", "[Na+].[Cl-]", "C1CC", "\U0001f600", "\u202e", "0x10",
    "1_000", "true",
)  # fmt: skip
numbers = st.sampled_from(EDGES) | st.integers(-5, 20) | st.floats()
texts = st.sampled_from(WORDS) | st.text(max_size=6)
plain = st.none() | st.booleans() | numbers | texts
anything = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def mutated(draw: st.DrawFn, seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> bytes:
    """One of the seeds with some bytes changed, repeated, moved or cut off."""
    data = bytearray(draw(st.sampled_from(list(seeds))))
    for _ in range(draw(st.integers(0, 6))):
        _edit(draw, data, words)
    return bytes(data)


def _edit(draw: st.DrawFn, data: bytearray, words: Sequence[bytes]) -> None:
    kinds = ["byte", "bit", "cut", "repeat", "drop", "number", *(["word"] if words else [])]
    kind, at = draw(st.sampled_from(kinds)), draw(st.integers(0, max(len(data) - 1, 0)))
    length = draw(st.integers(1, 16))
    if kind == "byte" and data:
        data[at] = draw(st.integers(0, 255))
    elif kind == "bit" and data:
        data[at] ^= 1 << draw(st.integers(0, 7))
    elif kind == "cut":
        del data[at:]
    elif kind == "repeat":
        data[at:at] = data[at : at + length] * draw(st.sampled_from([1, 2, 50]))
    elif kind == "drop":
        del data[at : at + length]
    elif kind == "number":
        value = draw(st.sampled_from([0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1]))
        size = draw(st.sampled_from([4, 8]))
        data[at : at + size] = (value % 256**size).to_bytes(size, "little")
    elif kind == "word":
        data[at : at + draw(st.sampled_from([0, 1, 4]))] = draw(st.sampled_from(list(words)))


@st.composite
def changed_json(draw: st.DrawFn, value: Any) -> Any:
    """The same tree of JSON with a few leaves or branches replaced, left out or doubled."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 3))):
        spots = list(_spots(value))
        if not spots:
            return draw(anything)
        place, key = draw(st.sampled_from(spots))
        what = draw(st.sampled_from(["replace", "replace", "near", "drop", "double"]))
        if what == "drop":
            del place[key]
        elif what == "double" and isinstance(place, list):
            place.append(place[key])
        elif what == "near":
            place[key] = draw(_near(place[key]))
        else:
            place[key] = draw(plain if draw(st.booleans()) else anything)
    return value


def _spots(value: Any) -> Any:
    """All places of a tree, as a container and a key of it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _spots(inner)


def _near(value: Any) -> st.SearchStrategy[Any]:
    """Something of the same type."""
    if isinstance(value, bool):
        return st.booleans()
    if isinstance(value, int | float):
        return numbers
    if isinstance(value, str):
        return texts
    if isinstance(value, list):
        return st.just(value * 2) | st.just(value[::-1]) | st.just(value[1:])
    return st.just(None)


def as_json(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """The values of a strategy as JSON; `of_json` reads them again."""
    return strategy.map(lambda value: json.dumps(value).encode())


def of_json(case: bytes) -> Any:
    """Read a case that is JSON; numbers may be NaN or infinite."""
    return json.loads(case)


def built(
    make: Callable[[Any], bytes], strategy: st.SearchStrategy[Any]
) -> st.SearchStrategy[bytes]:
    """Files that are made from the values of a strategy."""
    return strategy.map(make)

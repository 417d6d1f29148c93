"""Malicious bytes and JSON, close to valid input, generated with a `random.Random`.

A generator of cases takes some ten microseconds, much less than the tested code. (The strategies of
Hypothesis took twice as long as the library.)
"""

from __future__ import annotations

import copy
import json
import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Maker = Callable[[Random], Any]

#: Numbers at which programs break.
EDGES = (
    0, -1, 1, 2, 127, 128, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**53 + 1, 2**63 - 1,
    2**63, 2**64, 10**30, -(2**31), -(2**63), 0.5, -0.0, 5e-324, 1e-310, 1e-39, 1e39, 1e100, 1e308,
    float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
WORDS = (
    "", " ", "0", "1", "-1", "1e999", "nan", "inf", "null", "NaN", "=1+1", "\x1b[2J", "\0",
    "a" * 300, "C", "CCO", "c1ccccc1", "[Na+].[Cl-]", "C1CC", "\U0001f600", "\u202e", "0x10",
    "1_000", "true", "\ud800", "../../etc/passwd", "<script>", "%s%n", "{0.__class__}",
)  # fmt: skip
LETTERS = "aZ09 ,;\"'\n\t\\/é\u00df\u4e2d\U0001f600\u200b\x7f\x00"
NUMBERS = (0, 1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)


def number(rng: Random) -> Any:
    """Return an integer or a float, often a critical one."""
    kind = rng.random()
    if kind < 0.5:
        return rng.choice(EDGES)
    if kind < 0.8:
        return rng.randint(-5, 20)
    return struct.unpack("<d", rng.randbytes(8))[0]


def text(rng: Random) -> str:
    """Return a short text."""
    if rng.random() < 0.6:
        return rng.choice(WORDS)
    return "".join(rng.choices(LETTERS, k=rng.randint(0, 6)))


def plain(rng: Random) -> Any:
    """Return a JSON value without parts."""
    kind = rng.random()
    if kind < 0.1:
        return None
    if kind < 0.2:
        return rng.random() < 0.5
    return number(rng) if kind < 0.7 else text(rng)


def anything(rng: Random, depth: int = 3) -> Any:
    """Return a small tree of JSON."""
    kind = rng.random()
    if depth == 0 or kind < 0.5:
        return plain(rng)
    parts = rng.randint(0, 4)
    if kind < 0.8:
        return [anything(rng, depth - 1) for _ in range(parts)]
    return {text(rng): anything(rng, depth - 1) for _ in range(parts)}


def mutated(seeds: Sequence[bytes], words: Sequence[bytes] = ()) -> Callable[[Random], bytes]:
    """Return a seed with some bytes changed, repeated, moved or truncated."""

    def make(rng: Random) -> bytes:
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(0, 6)):
            _edit(rng, data, words)
        return bytes(data)

    return make


def _edit(rng: Random, data: bytearray, words: Sequence[bytes]) -> None:
    kind = rng.choice(("byte", "bit", "cut", "repeat", "drop", "number", "move", "word", "word"))
    at, length = rng.randrange(max(len(data), 1)), rng.randint(1, 16)
    if kind == "byte" and data:
        data[at] = rng.randrange(256)
    elif kind == "bit" and data:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "cut" and rng.random() < 0.3:
        del data[at:]
    elif kind == "repeat":
        data[at:at] = data[at : at + length] * rng.choice((1, 2, 50))
    elif kind == "drop":
        del data[at : at + length]
    elif kind == "move":
        part = data[at : at + length]
        del data[at : at + length]
        to = rng.randrange(len(data) + 1)
        data[to:to] = part
    elif kind == "number":
        size = rng.choice((4, 8))
        data[at : at + size] = (rng.choice(NUMBERS) % 256**size).to_bytes(size, "little")
    elif kind == "word" and words:
        data[at : at + rng.choice((0, 1, 4))] = rng.choice(words)


def changed_json(rng: Random, value: Any) -> Any:
    """Return a tree of JSON with a few leaves or branches replaced, removed or doubled."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        spots = list(_spots(value))
        if not spots:
            return anything(rng)
        place, key = rng.choice(spots)
        what = rng.choice(("replace", "replace", "near", "drop", "double"))
        if what == "drop":
            del place[key]
        elif what == "double" and isinstance(place, list):
            place.append(place[key])
        elif what == "near":
            place[key] = _near(rng, place[key])
        else:
            place[key] = plain(rng) if rng.random() < 0.5 else anything(rng)
    return value


def _spots(value: Any) -> Any:
    """Return all places of a tree, as a container and a key."""
    if not isinstance(value, dict | list):
        return
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(pairs):
        yield value, key
        yield from _spots(inner)


def _near(rng: Random, value: Any) -> Any:
    """Return a value of the same type."""
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int | float):
        return number(rng)
    if isinstance(value, str):
        return text(rng)
    if isinstance(value, list):
        return rng.choice((value * 2, value[::-1], value[1:]))
    return None


def as_json(make: Maker) -> Callable[[Random], bytes]:
    """Return a generator of JSON text; `of_json` parses it."""
    return lambda rng: json.dumps(make(rng)).encode()


def of_json(case: bytes) -> Any:
    """Read a case that is JSON; numbers may be NaN or infinite."""
    return json.loads(case)


def some_of(make: Maker, least: int = 1, most: int = 4) -> Maker:
    """Return a list of generated values."""
    return lambda rng: [make(rng) for _ in range(rng.randint(least, most))]

"""Limits on graphs, files and models.

A few bytes in a file can take hours or all memory. What is beyond a
limit is rejected, and the message names the limit. An environment variable of that name changes
it, and so does `changed`, for a part of a program. docs/reference/limits.md lists all limits,
each with its reason.

Examples
--------
>>> from fdgnn import limits
>>> limits.MAX_NUMBER.in_words
'numbers up to 1e+75 are taken (FDGNN_MAX_NUMBER)'
>>> with limits.changed(FDGNN_MAX_NUMBER=1000):
...     limits.MAX_NUMBER.is_below(1001)
True
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

_changed: ContextVar[dict[str, float] | None] = ContextVar("fdgnn_limits", default=None)


@dataclass(frozen=True)
class Limit:
    """The most of something.

    Attributes
    ----------
    name : str
        Of the limit, and of the environment variable that changes it.
    default : int or float
    words : str
        The text of messages, with ``{}`` for the value.
    """

    name: str
    default: float
    words: str

    @property
    def value(self) -> float:
        """The limit as it is now."""
        changed = _changed.get()
        if changed is not None and self.name in changed:
            return changed[self.name]
        text = os.environ.get(self.name)
        return self.default if text is None else _number(self.name, text)

    @property
    def in_words(self) -> str:
        """The limit in a message."""
        value = self.value
        text = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return f"{self.words.format(text)} ({self.name})"

    def is_below(self, found: Any) -> bool:
        """Return whether something is beyond the limit; NaN is."""
        return not found <= self.value


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:
        raise ValueError(f"{name}={text!r}: expected a number, at least 0")
    return int(number) if number.is_integer() and number < 2**63 else number


@contextmanager
def changed(**values: float) -> Iterator[None]:
    """Change limits, given by name, for the calls inside the ``with`` block."""
    for name in values:
        if name not in ALL:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(ALL)}")
    token = _changed.set({**(_changed.get() or {}), **values})
    try:
        yield
    finally:
        _changed.reset(token)


ALL: dict[str, Limit] = {}


def _limit(name: str, default: float, words: str) -> Limit:
    ALL[name] = Limit(name, default, words)
    return ALL[name]


# ---------------------------------------------------------------------- graphs

MAX_NUMBER = _limit("FDGNN_MAX_NUMBER", 1e75, "numbers up to {} are taken")
MAX_VERTICES = _limit("FDGNN_MAX_VERTICES", 10**7, "graphs of up to {} vertices are taken")
MAX_BARE_VERTICES = _limit(
    "FDGNN_MAX_BARE_VERTICES",
    10**5,
    "rows of up to {} vertices without arcs, labels or features are taken",
)
MAX_BARE_TOTAL = _limit("FDGNN_MAX_BARE_TOTAL", 10**7, "tables of up to {} such vertices are taken")
MAX_LABEL = _limit("FDGNN_MAX_LABEL", 256, "labels of up to {} characters are taken")

# ---------------------------------------------------------------------- files

MAX_ROW_BYTES = _limit("FDGNN_MAX_ROW_BYTES", 2**25, "rows of up to {} bytes are taken")
MAX_REJECTS = _limit("FDGNN_MAX_REJECTS", 10**6, "tables with up to {} rejected rows are taken")
MAX_REQUEST_BYTES = _limit(
    "FDGNN_MAX_REQUEST_BYTES", 10_000_000, "requests of up to {} bytes are taken"
)
MAX_REQUEST_ROWS = _limit("FDGNN_MAX_REQUEST_ROWS", 10_000, "requests with up to {} rows are taken")
MAX_SMILES = _limit("FDGNN_MAX_SMILES", 5000, "SMILES of up to {} characters are taken")
MAX_EXPANSION = _limit(
    "FDGNN_MAX_EXPANSION", 200, "files that unpack to up to {} times their size are taken"
)
MAX_UNPACKED_BYTES = _limit(
    "FDGNN_MAX_UNPACKED_BYTES", 2**33, "files that unpack to up to {} bytes are taken"
)
MAX_READER_SECONDS = _limit(
    "FDGNN_MAX_READER_SECONDS", 60, "{} seconds, and one more for each 50 kB, are taken"
)
MAX_RUN_FILE_BYTES = _limit(
    "FDGNN_MAX_RUN_FILE_BYTES", 2**26, "such files of up to {} bytes are taken"
)
MAX_DOWNLOAD_BYTES = _limit(
    "FDGNN_MAX_DOWNLOAD_BYTES", 2**30, "downloads of up to {} bytes are taken"
)

# ---------------------------------------------------------------------- models

MAX_LAYERS = _limit("FDGNN_MAX_LAYERS", 1000, "models of up to {} layers are taken")
MAX_UNITS = _limit("FDGNN_MAX_UNITS", 10**6, "models of up to {} units are taken")
MAX_PROJECTION = _limit(
    "FDGNN_MAX_PROJECTION", 5 * 10**8, "random expansions of up to {} weights are drawn"
)
MAX_DENSE_UNITS = _limit(
    "FDGNN_MAX_DENSE_UNITS", 5000, "components of up to {} units can be scaled"
)
MAX_ITERATIONS = _limit("FDGNN_MAX_ITERATIONS", 10**4, "up to {} iterations are taken")
MAX_ROUNDS = _limit("FDGNN_MAX_ROUNDS", 100, "up to {} rounds are taken")
MAX_BUCKETS = _limit("FDGNN_MAX_BUCKETS", 2**24, "up to {} buckets are taken")
MAX_BINS = _limit("FDGNN_MAX_BINS", 10**5, "up to {} bins are taken")
MAX_KERNEL_BYTES = _limit(
    "FDGNN_MAX_KERNEL_BYTES", 2**29, "kernel matrices of up to {} bytes are taken"
)
MAX_ESTIMATORS = _limit("FDGNN_MAX_ESTIMATORS", 10**4, "models of up to {} networks are taken")
MAX_CONFIGURATIONS = _limit(
    "FDGNN_MAX_CONFIGURATIONS", 10**5, "searches of up to {} configurations are taken"
)
MAX_MODEL_BYTES = _limit("FDGNN_MAX_MODEL_BYTES", 2**31, "model files of up to {} bytes are taken")
MAX_MODEL_HEADER_BYTES = _limit(
    "FDGNN_MAX_MODEL_HEADER_BYTES", 2**20, "headers of up to {} bytes are taken"
)

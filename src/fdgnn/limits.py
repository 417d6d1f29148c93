"""Limits on graphs, files and models.

A few bytes in a file can take hours or all memory. What is beyond a
limit is rejected, and the message names the limit. An environment variable of that name changes
it, and so does `changed`, for a part of a program. docs/reference/limits.md lists all limits,
each with its reason.

Examples
--------
>>> from fdgnn import limits
>>> limits.MAX_NUMBER.in_words
'numbers up to 1e+75 are accepted (FDGNN_MAX_NUMBER)'
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
    """An upper limit of a size or a number.

    Attributes
    ----------
    name : str
        Name of the environment variable that changes the limit.
    default : int or float
    words : str
        What is limited, with ``{}`` for the value.
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
        if text is None:
            return self.default
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not number >= 0:
            raise ValueError(f"{self.name}={text!r}: expected a number, at least 0")
        return int(number) if number.is_integer() and number < 2**63 else number

    @property
    def in_words(self) -> str:
        """The limit in a message."""
        value = self.value
        text = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return f"{self.words.format(text)} are accepted ({self.name})"

    def is_below(self, found: Any) -> bool:
        """Return whether something is beyond the limit; NaN is."""
        return not found <= self.value


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
    variable = f"FDGNN_{name}"
    ALL[variable] = Limit(variable, default, words)
    return ALL[variable]


# ---------------------------------------------------------------------- graphs

MAX_NUMBER = _limit("MAX_NUMBER", 1e75, "numbers up to {}")
MAX_VERTICES = _limit("MAX_VERTICES", 10**7, "graphs of up to {} vertices")
MAX_BARE_VERTICES = _limit(
    "MAX_BARE_VERTICES", 10**5, "rows of up to {} vertices without edges, labels or features"
)
MAX_BARE_TOTAL = _limit("MAX_BARE_TOTAL", 10**7, "tables of up to {} such vertices")
MAX_LABEL = _limit("MAX_LABEL", 256, "labels of up to {} characters")

# ---------------------------------------------------------------------- files

MAX_ROW_BYTES = _limit("MAX_ROW_BYTES", 2**25, "rows of up to {} bytes")
MAX_REJECTS = _limit("MAX_REJECTS", 10**6, "tables with up to {} rejected rows")
MAX_REQUEST_BYTES = _limit("MAX_REQUEST_BYTES", 4_000_000, "requests of up to {} bytes")
MAX_REQUEST_ROWS = _limit("MAX_REQUEST_ROWS", 1000, "requests with up to {} rows")
MAX_REQUEST_SIZE = _limit(
    "MAX_REQUEST_SIZE",
    100_000,
    "requests with up to {} vertices, edges and characters of SMILES",
)
MAX_REQUEST_SMILES = _limit(
    "MAX_REQUEST_SMILES", 1000, "requests with SMILES of up to {} characters"
)
MAX_SMILES = _limit("MAX_SMILES", 5000, "SMILES of up to {} characters")
MAX_EXPANSION = _limit("MAX_EXPANSION", 200, "files that unpack to up to {} times their size")
MAX_UNPACKED_BYTES = _limit("MAX_UNPACKED_BYTES", 2**33, "files that unpack to up to {} bytes")
MAX_READER_SECONDS = _limit("MAX_READER_SECONDS", 60, "{} seconds, and one more for each 50 kB,")
MAX_RUN_FILE_BYTES = _limit("MAX_RUN_FILE_BYTES", 2**26, "such files of up to {} bytes")
MAX_DOWNLOAD_BYTES = _limit("MAX_DOWNLOAD_BYTES", 2**30, "downloads of up to {} bytes")

# ---------------------------------------------------------------------- models

MAX_LAYERS = _limit("MAX_LAYERS", 1000, "models of up to {} layers")
MAX_UNITS = _limit("MAX_UNITS", 10**6, "models of up to {} units")
MAX_PROJECTION = _limit("MAX_PROJECTION", 5 * 10**8, "random expansions of up to {} weights")
MAX_DENSE_UNITS = _limit("MAX_DENSE_UNITS", 5000, "components of up to {} units")
MAX_ITERATIONS = _limit("MAX_ITERATIONS", 10**4, "up to {} iterations")
MAX_WL_ITERATIONS = _limit("MAX_WL_ITERATIONS", 100, "up to {} iterations or distances")
MAX_FEATURES = _limit("MAX_FEATURES", 2**24, "up to {} features")
MAX_BINS = _limit("MAX_BINS", 10**5, "up to {} bins")
MAX_KERNEL_BYTES = _limit("MAX_KERNEL_BYTES", 2**29, "kernel matrices of up to {} bytes")
MAX_ESTIMATORS = _limit("MAX_ESTIMATORS", 10**4, "models of up to {} networks")
MAX_CONFIGURATIONS = _limit("MAX_CONFIGURATIONS", 10**5, "searches of up to {} configurations")
MAX_MODEL_BYTES = _limit("MAX_MODEL_BYTES", 2**31, "model files of up to {} bytes")
MAX_MODEL_HEADER_BYTES = _limit("MAX_MODEL_HEADER_BYTES", 2**20, "headers of up to {} bytes")

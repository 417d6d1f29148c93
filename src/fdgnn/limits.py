"""Limits: the most that a graph, a file or a model may ask for, each with its reason.

Files travel between people, and a few bytes can ask for hours or for all memory. What is beyond a
limit is refused, and the message names the limit. An environment variable of that name changes
it, and so does `changed`, for a part of a program. docs/limits.md lists all limits.

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
        What a message says, with the value in the place of ``{}``.
    reason : str
        Why there is a limit, and why it is not lower.
    """

    name: str
    default: float
    words: str
    reason: str

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
        """What a message says of the limit."""
        value = self.value
        text = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return f"{self.words.format(text)} ({self.name})"

    def is_below(self, found: Any) -> bool:
        """Tell whether something is beyond the limit; NaN is."""
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


def _limit(name: str, default: float, words: str, reason: str) -> Limit:
    ALL[name] = Limit(name, default, words, reason)
    return ALL[name]


# ---------------------------------------------------------------------- graphs

MAX_NUMBER = _limit(
    "FDGNN_MAX_NUMBER", 1e75, "numbers up to {} are taken",
    "of weights, features, parameters and the weights of models, as absolute values; products of "
    "three such numbers, summed over a graph, are finite in float64",
)  # fmt: skip
MAX_VERTICES = _limit(
    "FDGNN_MAX_VERTICES", 10**7, "graphs of up to {} vertices are taken",
    "of a graph whose size follows from its arcs alone, and of any graph in a file; a wrong index "
    "would cost gigabytes",
)  # fmt: skip
MAX_BARE_VERTICES = _limit(
    "FDGNN_MAX_BARE_VERTICES", 10**5,
    "rows of up to {} vertices without arcs, labels or features are taken",
    "of the graph in one row of a file; a number of ten digits costs nothing to write, and "
    "gigabytes to hold",
)  # fmt: skip
MAX_BARE_TOTAL = _limit(
    "FDGNN_MAX_BARE_TOTAL", 10**7, "tables of up to {} such vertices are taken",
    "of all rows together; beyond, the rows with most of them are rejected",
)  # fmt: skip
MAX_LABEL = _limit(
    "FDGNN_MAX_LABEL", 256, "labels of up to {} characters are taken",
    "of vertices, arcs and classes; an array gives each text the room of the longest, 4 bytes per "
    "character",
)  # fmt: skip

# ---------------------------------------------------------------------- files

MAX_ROW_BYTES = _limit(
    "FDGNN_MAX_ROW_BYTES", 2**25, "rows of up to {} bytes are taken",
    "of a line of text, a file with one graph, and the labels of one row as an array; parsed, a "
    "row takes some twenty times as much",
)  # fmt: skip
MAX_REJECTS = _limit(
    "FDGNN_MAX_REJECTS", 10**6, "tables with up to {} rejected rows are taken",
    "of a table that is read as a whole; the number and the reason of each rejected row are kept, "
    "some 400 bytes; `predict` and `fit --memory` read chunks and have no such limit",
)  # fmt: skip
MAX_SMILES = _limit(
    "FDGNN_MAX_SMILES", 5000, "SMILES of up to {} characters are taken",
    "of one molecule; RDKit makes dense matrices, whose size grows with the square of the atoms",
)  # fmt: skip
MAX_EXPANSION = _limit(
    "FDGNN_MAX_EXPANSION", 200, "files that unpack to up to {} times their size are taken",
    "of a zip, gzip, Arrow or Parquet file that unpacks to 64 MiB or more; a line of gzip counts "
    "as 256 bytes at least, as a row in memory does; COLLAB's zip has a ratio of 10",
)  # fmt: skip
MAX_UNPACKED_BYTES = _limit(
    "FDGNN_MAX_UNPACKED_BYTES", 2**33, "files that unpack to up to {} bytes are taken",
    "of a zip, which is read as a whole; other files can be read part by part",
)  # fmt: skip
MAX_READER_SECONDS = _limit(
    "FDGNN_MAX_READER_SECONDS", 60, "{} seconds, and one more for each 50 kB, are taken",
    "of processor time, for an Arrow or Parquet file, which a process of its own reads",
)  # fmt: skip
MAX_RUN_FILE_BYTES = _limit(
    "FDGNN_MAX_RUN_FILE_BYTES", 2**26, "such files of up to {} bytes are taken",
    "of a JSON file of a run directory or of a page's facts; ours have less than two million",
)  # fmt: skip
MAX_DOWNLOAD_BYTES = _limit(
    "FDGNN_MAX_DOWNLOAD_BYTES", 2**30, "downloads of up to {} bytes are taken",
    "of a TU dataset from the official site",
)  # fmt: skip

# ---------------------------------------------------------------------- models

MAX_LAYERS = _limit(
    "FDGNN_MAX_LAYERS", 1000, "models of up to {} layers are taken",
    "of a reservoir; the paper's have at most 5, and each has a schedule of its own",
)  # fmt: skip
MAX_UNITS = _limit(
    "FDGNN_MAX_UNITS", 10**6, "models of up to {} units are taken",
    "of a layer, of its connections, and of a random expansion; the paper's have at most 500",
)  # fmt: skip
MAX_PROJECTION = _limit(
    "FDGNN_MAX_PROJECTION", 5 * 10**8, "random expansions of up to {} weights are drawn",
    "of W_phi, which is dense: new features times features, 4 GB; the paper's have half a million",
)  # fmt: skip
MAX_DENSE_UNITS = _limit(
    "FDGNN_MAX_DENSE_UNITS", 5000, "components of up to {} units can be scaled",
    "of neurons that read each other by several connections, when a reservoir is drawn; the "
    "eigenvalues of a dense matrix of that size take 200 MB and minutes",
)  # fmt: skip
MAX_ITERATIONS = _limit(
    "FDGNN_MAX_ITERATIONS", 10**4, "up to {} iterations are taken",
    "of a layer on a graph; next to the limit of stability it takes some thousands",
)  # fmt: skip
MAX_ROUNDS = _limit(
    "FDGNN_MAX_ROUNDS", 100, "up to {} rounds are taken",
    "of colors, which are all kept: a vertex has twelve bytes for each round",
)  # fmt: skip
MAX_BUCKETS = _limit(
    "FDGNN_MAX_BUCKETS", 2**24, "up to {} buckets are taken",
    "of color counts; products of sparse matrices have an array of this length",
)  # fmt: skip
MAX_BINS = _limit(
    "FDGNN_MAX_BINS", 10**5, "up to {} bins are taken",
    "of a real feature; its edges are found on the training graphs",
)  # fmt: skip
MAX_KERNEL_BYTES = _limit(
    "FDGNN_MAX_KERNEL_BYTES", 2**29, "kernel matrices of up to {} bytes are taken",
    "of RBF kernel ridge regression, 4 bytes for each pair of training graphs: 11,585 graphs; with "
    "more, readouts are linear",
)  # fmt: skip
MAX_NETWORKS = _limit(
    "FDGNN_MAX_NETWORKS", 10**4, "models of up to {} networks are taken",
    "of a model; the paper averages over 20",
)  # fmt: skip
MAX_CONFIGURATIONS = _limit(
    "FDGNN_MAX_CONFIGURATIONS", 10**5, "searches of up to {} configurations are taken",
    "of a search, which draws all of them first; the paper tries 100",
)  # fmt: skip
MAX_MODEL_BYTES = _limit(
    "FDGNN_MAX_MODEL_BYTES", 2**31, "model files of up to {} bytes are taken",
    "of a model file, which is read as a whole",
)  # fmt: skip
MAX_MODEL_HEADER_BYTES = _limit(
    "FDGNN_MAX_MODEL_HEADER_BYTES", 2**20, "headers of up to {} bytes are taken",
    "of the names and settings in a model file, which take a hundred times as much when parsed",
)  # fmt: skip

"""Checks of what the user brings: the result is a plain array, or a `GraphError`.

The errors have no position of a graph; the caller adds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, is_unknown, looked_up
from fdgnn.exceptions import GraphError
from fdgnn.limits import MAX_LABEL, MAX_ROW_BYTES, MAX_VERTICES

MOST_VERTICES = 2**31 - 1  # in a batch: indices are int32, and a pair of them fits in an int64

_SHORT = 8  # characters to which texts may always be padded

INT64, FLOAT64 = np.dtype(np.int64), np.dtype(np.float64)

# ---------------------------------------------------------------------- from anything to arrays


def as_array(values: Any, what: str) -> Array:
    """Read anything array-like; the result may share the user's memory, so do not change it."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise GraphError(f"{what} have masked entries; fill them in first")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise GraphError(f"{what} are not a rectangular array ({error})") from None


def entries(values: Any, what: str) -> Array:
    """Read values, or rows of values, of vertices or edges; text and numbers do not mix."""
    if isinstance(values, list):
        check_texts(values, f"the entries of {what}")
    array = as_array(values, f"the rows of {what}")
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        # NumPy reads the list [1, "C"] as ["1", "C"].
        each = [e for row in values for e in (row if isinstance(row, list) else [row])]
        if not all(isinstance(entry, str) for entry in each):
            raise GraphError(f"{what} mixes text and numbers; convert all to one type")
    return without_padding(array)


def name_and_place(name: str | None) -> tuple[str | None, int | None]:
    """Split ``name[2]`` into the name of an attribute and the position of one of its numbers."""
    if name is None or not name.endswith("]"):
        return name, None
    before, _, place = name[:-1].rpartition("[")
    return (before, int(place)) if before and place.isdecimal() else (name, None)


def column_at(array: Array, place: int | None, what: str) -> Array:
    """Return one of several numbers of each vertex or edge; all of them if there is no place."""
    if place is None or array.size == 0:
        return array
    if array.ndim != 2 or array.shape[1] <= place:
        raise GraphError(f"{what} has shape {array.shape}, so it has no column {place}")
    return array[:, place]


def check_texts(values: list[Any], what: str) -> None:
    """Raise GraphError for texts that would be a large array, padded to the longest one."""
    longest = n_entries = 0
    level: list[Any] = values
    while level:
        kinds = set(map(type, level))  # fast for long lists, of which most have numbers only
        if str in kinds:
            longest = max(longest, *(len(entry) for entry in level if type(entry) is str))
        n_entries += len(level)
        inner = level if kinds == {list} else [entry for entry in level if type(entry) is list]
        level = list(chain.from_iterable(inner))
    if MAX_LABEL.is_below(longest):
        raise GraphError(f"{what} have up to {longest} characters; {MAX_LABEL.in_words}")
    if MAX_ROW_BYTES.is_below(4 * longest * n_entries):
        raise GraphError(
            f"{what} are {n_entries} texts of up to {longest} characters, too many for one array; "
            f"{MAX_ROW_BYTES.in_words}"
        )


def text_array(texts: list[str]) -> Array:
    """Make an array of text; of objects, if padding would take most of the memory.

    NumPy pads each text to the longest one, 4 bytes per character. One long text in each of many
    small rows of a file took gigabytes.
    """
    longest = max(map(len, texts), default=0)
    if longest <= _SHORT or longest * len(texts) <= 4 * (sum(map(len, texts)) + len(texts)):
        return np.array(texts, dtype=str)
    array: Array = np.empty(len(texts), dtype=object)
    same: dict[str, str] = {}
    array[:] = [same.setdefault(text, text) for text in texts]
    return array


def without_padding(array: Array) -> Array:
    """Return text as `text_array` does, and other arrays as they are."""
    if array.dtype.kind != "U" or array.dtype.itemsize <= 4 * _SHORT:
        return array
    return text_array(array.ravel().tolist()).reshape(array.shape)


def is_text(array: Array) -> bool:
    """Return whether an array has text only, padded or as objects."""
    kind = array.dtype.kind
    if kind != "O" or array.size == 0:
        return kind == "U"
    return all(isinstance(entry, str) for entry in array.ravel().tolist())


def numbers(values: Any, what: str) -> Floats:
    """Read an array of real numbers as float64."""
    array = as_array(values, what)
    if array.dtype is FLOAT64:
        return array
    if array.dtype.kind not in "biuf":
        raise GraphError(f"{what} have dtype {array.dtype}, expected real numbers")
    return array.astype(np.float64)


def label_array(
    labels: Any, what: str = "labels", whose: str = "vertex", remedy: str = "features"
) -> Array:
    """Return labels as an int64 or text array; numbers and text are not converted."""
    array = as_array(labels, what)
    if array.dtype is INT64 and array.ndim == 1:  # most often
        return array
    if array.dtype.kind in "OT":  # columns of a table, and NumPy's strings of variable width
        labels = array.tolist()
        array = text_array(labels) if is_text(array) else as_array(labels, what)
    kind = array.dtype.kind
    if array.shape == (0,) and kind != "U":
        return array.astype(np.int64)
    whole = kind in "bi" or (kind == "u" and array.max() < 2**63)
    if array.ndim == 1:  # of labels that are given as a list, as NumPy reads [1, "C"] as ["1", "C"]
        given = list(labels) if isinstance(labels, list | tuple) else np.asarray(labels).tolist()
        missing = next((i for i, label in enumerate(given) if is_unknown(label)), None)
        if missing is not None:
            raise GraphError(
                f"{what} are missing for {whose} {missing} ({given[missing]}); give a label to "
                f"each {whose}, for example the text 'none'"
            )
        first = {isinstance(label, str): label for label in reversed(given)}
        if len(first) > 1:
            raise GraphError(
                f"{what} mix text ({first[True]!r}) and numbers ({first[False]!r}); convert all to "
                "one type, for example by [str(label) for label in labels]"
            )
    if array.ndim != 1 or not (whole or is_text(array)):
        raise GraphError(
            f"{what} have shape {array.shape} and dtype {array.dtype}, expected one integer per "
            f"{whose} or one string per {whose}; pass real values as {remedy}"
        )
    if whole:
        return array.astype(np.int64, copy=False)
    longest = max(map(len, array.tolist())) if kind == "O" else array.dtype.itemsize // 4
    if MAX_LABEL.is_below(longest):
        raise GraphError(f"{what} have up to {longest} characters; {MAX_LABEL.in_words}")
    return without_padding(array)


def arc_array(edge_index: Any) -> Ints:
    """Read arcs as an array of signed integers, shape (2, n_edges)."""
    arcs = as_array(edge_index, "the rows of edge_index")
    if arcs.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if arcs.ndim == 0:
        what = type(edge_index).__name__
        raise GraphError(f"edge_index is a {what}, expected an array of shape (2, n_edges)")
    if arcs.ndim != 2 or arcs.shape[0] != 2:
        raise GraphError(
            f"edge_index has shape {arcs.shape}, expected (2, n_edges); "
            "transpose a list of (source, target) pairs"
        )
    if arcs.dtype.kind == "i":
        return arcs
    if arcs.dtype.kind != "u":
        raise GraphError(
            f"edge_index has dtype {arcs.dtype}, expected integers; number the vertices from 0"
        )
    if arcs.dtype == np.uint64 and arcs.max() > MOST_VERTICES:
        raise GraphError(
            f"edge_index names vertex {arcs.max()}, but no graph has more than "
            f"{MOST_VERTICES} vertices; number them from 0"
        )
    return arcs.astype(np.int64)


def check_shape(array: Array, shape: tuple[int, ...], what: str) -> None:
    """Raise GraphError for an array of another shape."""
    if array.shape != shape:
        raise GraphError(f"{what} have shape {array.shape}, expected {shape}")


def check_finite(values: Floats, what: str) -> None:
    """Raise GraphError for results (n_graphs, ...) that are NaN or infinite."""
    if np.count_nonzero(np.isfinite(values)) < values.size:
        bad = ~np.isfinite(values).reshape(len(values), -1).all(axis=1)
        raise GraphError(
            f"{what} is NaN or infinite, because its numbers or those of the model are too large; "
            "rescale weights, features or parameters",
            int(np.argmax(bad)),
        )


# ---------------------------------------------------------------------- sizes


def n_vertices(given: Any, n_rows: int | None, arcs: Ints) -> int:
    """Return a graph's size, and check that all its sources agree."""
    n = n_rows
    if given is not None:
        try:
            n = index(given)
        except TypeError:
            n = -1
        if isinstance(given, bool | np.bool_) or not 0 <= n <= MOST_VERTICES:
            raise GraphError(
                f"n_vertices is {given!r}, expected an integer from 1 to {MOST_VERTICES}"
            )
        if n_rows not in (None, n):
            raise GraphError(
                f"n_vertices is {n}, but it has labels or features for {n_rows}; "
                "drop n_vertices, or give every vertex its own"
            )
    elif n is None:
        n = int(arcs.max(initial=-1)) + 1
        if MAX_VERTICES.is_below(n):
            raise GraphError(
                f"edge_index names vertex {n - 1}; number the vertices from 0, "
                f"or give n_vertices if there really are so many; {MAX_VERTICES.in_words}"
            )
    if n < 1:
        raise GraphError("no vertices; leave the graph out, or add a vertex")
    return n


def check_total(n: int) -> None:
    """Raise GraphError if there are more vertices than an index can represent."""
    if n > MOST_VERTICES:
        raise GraphError(
            f"the batch has {n} vertices, and at most {MOST_VERTICES} are possible; split it"
        )


# ---------------------------------------------------------------------- labels


Codes = npt.NDArray[np.int32]
_WIDE = 2**24  # bytes up to which labels are padded to the longest one
_FEW_TEXTS = 500  # up to which a dictionary is faster than sorting
_FEW_NUMBERS = 100  # up to which a dictionary is faster than to wait for the GIL after sorting


def coded(labels: Array | None) -> tuple[Codes | None, Array | None]:
    """Return the distinct labels, sorted, and each label's position among them."""
    if labels is None:
        return None, None
    kind = labels.dtype.kind
    if kind == "O" or len(labels) <= (_FEW_TEXTS if kind == "U" else _FEW_NUMBERS):
        names = labels.tolist()
        place = {name: i for i, name in enumerate(sorted(set(names)))}
        codes = np.fromiter(map(place.__getitem__, names), dtype=np.int32, count=len(names))
        is_text = kind in "OU"
        return codes, text_array(list(place)) if is_text else np.array(list(place), labels.dtype)
    ordered = np.sort(labels)
    is_new = np.r_[True, ordered[1:] != ordered[:-1]]
    values = ordered[is_new]
    codes = np.searchsorted(values, labels).astype(np.int32)
    return codes, without_padding(values)


def decoded(
    codes: Codes | None, values: Array | None, start: int = 0, end: int | None = None
) -> Array | None:
    """Return the labels at some positions."""
    if codes is None or values is None:
        return None
    codes = codes[start:end]
    if values.dtype.kind == "U" and values.dtype.itemsize * len(codes) > _WIDE:
        values = values.astype(object)
    return looked_up(values, codes)


def recoded(codes: Codes, values: Array, vocabulary: Sequence[Any]) -> Codes:
    """Return each label's position in a vocabulary, or -1 if it is not there."""
    labels_here = values.tolist()
    if labels_here == list(vocabulary):
        return codes
    position = _positions(tuple(vocabulary))
    table = [position.get(label, -1) for label in labels_here]
    return looked_up(np.array(table, dtype=np.int32), codes)


@lru_cache(maxsize=16)
def _positions(labels: tuple[Any, ...]) -> dict[Any, int]:
    return {label: i for i, label in enumerate(labels)}


def first_new(
    vocabulary: Sequence[Any] | None, codes: Codes | None, values: Array | None, offsets: Ints
) -> dict[int, Any]:
    """Return positions of graphs with a label that the vocabulary lacks, and the first such label.

    The labels of graph g are at positions `offsets[g]` to `offsets[g + 1]` of `codes`.
    """
    if vocabulary is None or codes is None or values is None:
        return {}
    known, labels_here = set(vocabulary), values.tolist()
    if known.issuperset(labels_here):  # most often
        return {}
    new = np.array([label not in known for label in labels_here])
    places = np.flatnonzero(new[codes])
    graph_of = np.searchsorted(offsets, places, side="right") - 1
    graphs, first = np.unique(graph_of, return_index=True)
    return dict(zip(graphs.tolist(), values[codes[places[first]]].tolist(), strict=True))


def joined_labels(carried: Array) -> Array:
    """Return one label per edge: its own entry or, if it has several, these joined by commas.

    Parameters
    ----------
    carried : (n_arcs, n_entries) int or str
    """
    if carried.shape[1] == 1:
        return carried[:, 0]
    return text_array([",".join(map(str, row)) for row in carried.tolist()])

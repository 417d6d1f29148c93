"""Labels of vertices or arcs: distinct values, and the position of each among them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Ints, looked_up
from fdgnn.graphs.checks import text_array, without_padding
from fdgnn.graphs.graph import first_of_run

Codes = npt.NDArray[np.int32]
_WIDE = 2**24  # bytes up to which labels are padded to the longest one
_FEW_TEXTS = 500  # up to which a dictionary is faster than sorting
_FEW_NUMBERS = 100  # up to which a dictionary is faster than to wait for the GIL after sorting


def coded(labels: Array | None) -> tuple[Codes | None, Array | None]:
    """Give the distinct labels, sorted, and each label's position among them."""
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
    values = ordered[first_of_run(ordered)]
    codes = np.searchsorted(values, labels).astype(np.int32)
    return codes, without_padding(values)


def decoded(
    codes: Codes | None, values: Array | None, start: int = 0, end: int | None = None
) -> Array | None:
    """Give the labels at some positions, as they were given."""
    if codes is None or values is None:
        return None
    codes = codes[start:end]
    if values.dtype.kind == "U" and values.dtype.itemsize * len(codes) > _WIDE:
        values = values.astype(object)
    return looked_up(values, codes)


def recoded(codes: Codes, values: Array, vocabulary: Sequence[Any]) -> Codes:
    """Give each label its position in a vocabulary; -1 if that lacks it."""
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
    """Positions of graphs with a label that the vocabulary lacks, and the first such label.

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

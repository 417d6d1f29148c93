"""What a set of graphs is like: counts, and the few shapes that histograms show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from fdgnn.graphs import Array, GraphBatch, Ints

_BARS = 40  # of a histogram
_LABELS = 30
MOST_CLASSES = 50  # that are shown one by one
_LETTERS = 60


def counts_of(graphs: GraphBatch, classes: Array | None = None) -> dict[str, Any]:
    """Facts about a set of graphs and, where they have some, their classes.

    Parameters
    ----------
    graphs : GraphBatch
    classes : (n_graphs,), optional
        The class of each graph; without, `majority` and `wl_ceiling` are None.

    Returns
    -------
    dict
        ``n_graphs``, ``n_vertices``, ``n_arcs``, ``n_self_loops``, ``n_merged_arcs``,
        ``undirected``, ``n_distinct`` (graphs that 1-WL can tell apart), ``n_labels`` and
        ``n_features``, ``majority`` (share of the commonest class), ``wl_ceiling``, and
        ``class_counts``, a list of pairs.
    """
    facts: dict[str, Any] = {
        "n_graphs": len(graphs),
        "n_vertices": graphs.n_vertices,
        "n_arcs": graphs.n_arcs,
        "n_self_loops": graphs.n_self_loops,
        "n_merged_arcs": graphs.n_merged_arcs,
        "undirected": not graphs.directed,
        "n_distinct": graphs.n_distinct_graphs,
        "n_labels": 0 if graphs.label_codes is None else len(np.unique(graphs.label_codes)),
        "n_features": 0 if graphs.features is None else graphs.features.shape[1],
        "majority": None,
        "wl_ceiling": None,
        "class_counts": [],
    }
    if classes is not None:
        values, counts = np.unique(classes, return_counts=True)
        facts["class_counts"] = [
            list(p) for p in zip(values.tolist(), counts.tolist(), strict=True)
        ]
        facts["majority"] = float(counts.max() / len(graphs))
        facts["wl_ceiling"] = float(graphs.wl_ceiling(classes))
    return facts


def data_section(graphs: GraphBatch, y: Array | None, names: Sequence[str]) -> dict[str, Any]:
    """The portrait's "data": y is positions in the classes' names or, without names, targets."""
    codes, targets = (y, None) if names else (None, y)
    sizes, degrees = np.diff(graphs.vertex_offsets), np.diff(graphs.indptr)
    counts = [] if codes is None else np.bincount(codes, minlength=len(names)).tolist()
    return counts_of(graphs, codes) | {
        "class_counts": [list(pair) for pair in zip(names, counts, strict=False)],
        "vertices_range": [int(sizes.min()), int(sizes.max())],
        "max_degree": int(degrees.max()),
        "targets": None if targets is None else _target_histogram(targets),
        "sizes": _size_histograms(sizes, codes, names),
        "degrees": _degree_bars(degrees),
        "labels": _label_counts(graphs),
    }


def _target_histogram(y: Array) -> dict[str, Any]:
    counts, edges = np.histogram(y, bins=min(_BARS, 5 + len(y) // 10))
    return {"edges": [short(edge) for edge in edges], "counts": counts.tolist()}


def _size_histograms(sizes: Ints, codes: Array | None, names: Sequence[str]) -> dict[str, Any]:
    """Vertices a graph, by class; bin i has the sizes from edge i to below edge i + 1."""
    low, high = int(sizes.min()), int(sizes.max())
    width = -(-(high - low + 1) // _BARS)
    edges = np.arange(low, high + width + 1, width)
    groups = {"all": sizes}
    if codes is not None and len(names) <= MOST_CLASSES:
        groups = {name: sizes[codes == c] for c, name in enumerate(names)}
    counts = {name: np.histogram(group, edges)[0].tolist() for name, group in groups.items()}
    return {"edges": edges.tolist(), "counts": counts}


def _degree_bars(degrees: Ints) -> dict[str, Any]:
    """Vertices by number of neighbors: a bar a number, wider ones for the rare large numbers."""
    high = int(degrees.max())
    starts = np.arange(high + 2)
    if high >= _BARS:
        growing = np.geomspace(1, high + 1, _BARS).round().astype(np.int64)
        starts = np.concatenate([[0], np.unique(growing)])
    labels = [
        str(a) if b == a + 1 else f"{a}-{b - 1}"
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    counts = np.histogram(degrees, starts)[0].tolist()
    return {"values": starts[:-1].tolist(), "labels": labels, "counts": counts}


def _label_counts(graphs: GraphBatch) -> list[list[Any]]:
    """Vertex labels and how many vertices have them, the commonest first."""
    if graphs.label_codes is None or graphs.label_values is None:
        return []
    counts = np.bincount(graphs.label_codes, minlength=len(graphs.label_values))
    order = [i for i in np.argsort(-counts, kind="stable")[:_LABELS] if counts[i]]
    names = clipped_apart(graphs.label_values[i] for i in order)
    return [[name, int(counts[i])] for name, i in zip(names, order, strict=True)]


def short(value: Any) -> float:
    """Enough digits for a picture."""
    return float(f"{value:.5g}")


def clipped(value: Any, mark: str = "") -> str:
    """Text of a bounded length, the mark at its end: names of a file can be anything."""
    text, most = str(value), _LETTERS - len(mark)
    return (text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}") + mark


def clipped_apart(values: Iterable[Any]) -> list[str]:
    """Clip each value, and number those that then look like one before."""
    texts = [str(value) for value in values]
    whole = {text for text in texts if len(text) <= _LETTERS}  # nobody else may look like these
    names: dict[str, None] = {}
    for text in texts:
        name, n = clipped(text), 1
        while name in names or (name in whole and name != text):
            n += 1
            name = clipped(text, f" ({n})")
        names[name] = None
    return list(names)

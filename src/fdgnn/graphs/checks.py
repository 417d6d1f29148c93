"""The door's checks: whatever the user brought becomes plain arrays, or a `GraphError`.

Each message says where (which graph), what was found, and what to do about it.
"""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.exceptions import GraphError

MOST_VERTICES = 2**31 - 1  # of a batch: indices are int32, and a pair of them fits in an int64
MOST_INFERRED = 10**7  # of a graph that does not give its size: a stray id would cost gigabytes

# ---------------------------------------------------------------------- from anything to arrays


def as_array(values: Any, where: str, what: str) -> Array:
    """Read anything array-like; the result may share the user's memory, so it is never changed."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise GraphError(f"{where}: {what} have masked entries; fill them in first")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise GraphError(f"{where}: {what} are not a rectangular array ({error})") from None


def numbers(values: Any, where: str, what: str) -> Floats:
    """Read an array of real numbers as float64."""
    array = as_array(values, where, what)
    if array.dtype.kind not in "biuf":
        raise GraphError(f"{where}: {what} have dtype {array.dtype}, expected real numbers")
    return array.astype(np.float64, copy=False)


def feature_matrix(features: Any, where: str, what: str) -> Floats:
    """Read a matrix of real numbers, a row for each vertex."""
    matrix = numbers(features, where, what)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise GraphError(
            f"{where}: {what} have shape {matrix.shape}, expected (n_vertices, n_features); "
            "reshape a single feature a vertex to (n_vertices, 1)"
        )
    return matrix


def label_array(labels: Any, where: str, what: str) -> Array:
    """Labels as int64 or as text, never as one turned into the other."""
    array = as_array(labels, where, what)
    if array.dtype.kind in "OT":  # columns of a table, and NumPy's strings of variable width
        labels = array.tolist()
        array = as_array(labels, where, what)
    if array.shape == (0,):
        return array.astype(np.int64)
    whole = array.dtype.kind in "bi" or (array.dtype.kind == "u" and array.max() < 2**63)
    # NumPy reads the list [1, "C"] as ["1", "C"].
    text = array.dtype.kind == "U" and (
        isinstance(labels, np.ndarray) or all(isinstance(label, str) for label in labels)
    )
    if array.ndim != 1 or not (whole or text):
        raise GraphError(
            f"{where}: {what} have shape {array.shape} and dtype {array.dtype}, expected one "
            "integer a vertex or one string a vertex; pass real values as features"
        )
    return array.astype(np.int64, copy=False) if whole else array


def arc_array(edge_index: Any, where: str) -> Ints:
    """Read arcs as an integer array (2, n_arcs)."""
    arcs = as_array(edge_index, where, "the rows of edge_index")
    if arcs.size == 0:
        return np.empty((2, 0), dtype=np.int64)
    if arcs.ndim != 2 or arcs.shape[0] != 2:
        raise GraphError(
            f"{where}: edge_index has shape {arcs.shape}, expected (2, n_arcs); "
            "transpose a list of (source, target) pairs"
        )
    if arcs.dtype.kind not in "iu":
        raise GraphError(
            f"{where}: edge_index has dtype {arcs.dtype}, expected integers; "
            "number the vertices from 0"
        )
    if arcs.dtype == np.uint64 and arcs.max() > MOST_VERTICES:
        raise GraphError(
            f"{where}: edge_index names vertex {arcs.max()}, but no graph has more than "
            f"{MOST_VERTICES} vertices; number them from 0"
        )
    return arcs if arcs.dtype.kind == "i" else arcs.astype(np.int64)


# ---------------------------------------------------------------------- a list of graphs


def same_for_all(values: list[Any], what: str) -> Any:
    """Give the value that all graphs share, or name the first graph that differs."""
    for i, value in enumerate(values):
        if value != values[0]:
            raise GraphError(
                f"graph {i}: {what} is {value}, but graph 0 has {values[0]}; "
                "all graphs of a batch must be of one kind"
            )
    return values[0]


def n_vertices(given: Any, n_rows: int | None, arcs: Ints, where: str) -> int:
    """Take a graph's size from where it is given, and check that all places agree."""
    if given is None:
        return _inferred_n_vertices(arcs, where) if n_rows is None else n_rows
    try:
        n = index(given)
    except TypeError:
        n = -1
    if isinstance(given, bool | np.bool_) or not 0 <= n <= MOST_VERTICES:
        raise GraphError(
            f"{where}: n_vertices is {given!r}, expected an integer from 1 to {MOST_VERTICES}"
        )
    if n_rows not in (None, n):
        raise GraphError(
            f"{where}: n_vertices is {n}, but it has labels or features for {n_rows}; "
            "drop n_vertices, or give every vertex its own"
        )
    return n


def _inferred_n_vertices(arcs: Ints, where: str) -> int:
    n = int(arcs.max(initial=-1)) + 1
    if n > MOST_INFERRED:
        raise GraphError(
            f"{where}: edge_index names vertex {n - 1}; number the vertices from 0, "
            "or give n_vertices if there really are so many"
        )
    return n


# ---------------------------------------------------------------------- the whole union


def checked_offsets(vertex_offsets: Any) -> Ints:
    """Read where each graph's vertices begin and end."""
    offsets = as_array(vertex_offsets, "the batch", "vertex_offsets")
    if offsets.ndim != 1 or len(offsets) < 2 or offsets.dtype.kind not in "iu" or offsets[0] != 0:
        raise GraphError(
            "the batch: vertex_offsets must be integers, 0 first and then the end of each graph"
        )
    offsets = np.array(offsets, dtype=np.int64)
    check_sizes(np.diff(offsets))
    return offsets


def check_sizes(sizes: Ints) -> None:
    """Refuse graphs without vertices, and more vertices than an index can count."""
    if (sizes < 1).any():
        raise GraphError(
            f"graph {int(np.argmax(sizes < 1))}: it has no vertices; leave it out, or give it one"
        )
    if sizes.sum() > MOST_VERTICES:
        raise GraphError(
            f"the batch: it has {sizes.sum()} vertices, and at most {MOST_VERTICES} are possible; "
            "split it"
        )


def check_shape(array: Array, shape: tuple[int, ...], where: str, what: str) -> None:
    """Refuse an array of another shape."""
    if array.shape != shape:
        raise GraphError(f"{where}: {what} have shape {array.shape}, expected {shape}")


def check_inside(arcs: Ints, graph_of_arc: Ints, sizes: Ints) -> None:
    """Refuse arcs that name a vertex which their graph does not have."""
    bad = ((arcs < 0) | (arcs >= sizes[graph_of_arc])).any(axis=0)
    if bad.any():
        a = int(np.argmax(bad))
        g, (u, v) = graph_of_arc[a], arcs[:, a]
        past = f"points past its {sizes[g]} vertices"
        problem = "has a negative index" if min(u, v) < 0 else past
        raise GraphError(f"graph {g}: edge ({u}, {v}) {problem}; vertices are numbered from 0")


def check_within_graphs(arcs: Ints, offsets: Ints) -> None:
    """Refuse arcs that leave the batch or lead from one graph to another."""
    n = int(offsets[-1])
    if arcs.size and (arcs.min() < 0 or arcs.max() >= n):
        bad = arcs.min() if arcs.min() < 0 else arcs.max()
        raise GraphError(f"the batch: an arc names vertex {bad}, but they are 0 to {n - 1}")
    graph_of = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
    crossing = graph_of[arcs[0]] != graph_of[arcs[1]]
    if crossing.any():
        a = int(np.argmax(crossing))
        g, h = graph_of[arcs[:, a]]
        raise GraphError(
            f"graph {g}: arc {a} leads from it into graph {h}; arcs must stay in one graph"
        )


def check_finite(values: Floats, graph_of_row: Array, what: str) -> None:
    """Refuse NaN and infinite values."""
    if np.isfinite(values).all():
        return
    row = int(np.argmax(~np.isfinite(values.reshape(len(values), -1)).all(axis=1)))
    raise GraphError(
        f"graph {graph_of_row[row]}: {what} is NaN or infinite; "
        "fill in or drop such values before building the batch"
    )

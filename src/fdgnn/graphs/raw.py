"""From arrays as a file, a table or another library has them to graphs, by a settled reading.

A `RawGraph` is what a reader finds in one row. `join` makes a batch of many, as a `Reading` says;
what does not fit the reading is a bad row, and does not touch the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError
from fdgnn.graphs import checks
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.carried import code_arcs, labels_of, subdivide
from fdgnn.graphs.descriptors import Descriptors, Value, value_in
from fdgnn.graphs.graph import Graph
from fdgnn.graphs.molecules import Molecule, molecule_batch
from fdgnn.graphs.reading import Reading
from fdgnn.limits import MAX_BARE_TOTAL, MAX_BARE_VERTICES, MAX_VERTICES


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file has them; nothing about them is checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None  # what vertices carry
    carried: Array | None = None  # what arcs carry: a number, a row of numbers or a text each
    directed: bool | None = None  # if the file says so
    vertex_attributes: tuple[str, ...] = ()  # where x is from
    edge_attribute: str | None = None  # where `carried` is from
    cells: Mapping[str, Any] | None = None  # the columns with descriptors, by name

    @property
    def n_bare(self) -> int:
        """How many vertices have no arc, at least."""
        n = self.n_vertices
        if n is None:
            whole = self.edges.dtype.kind in "iu"
            n = int(self.edges.max(initial=-1)) + 1 if whole else 0
        return max(0, n - self.edges.size)


class Joined(NamedTuple):
    """The good graphs of some rows, read in one way, and what is wrong with the other rows."""

    reading: Reading
    graphs: GraphBatch | None
    faults: dict[int, str]


Raw = RawGraph | Molecule


def join(raws: Mapping[int, Any], reading: Reading) -> Joined:
    """Join the graphs that are good, and say what is wrong with the others; rows are numbered.

    They are all of type `Molecule` if the reading is one of molecules, else of type `RawGraph`.
    """
    if reading.source == "molecules":
        return _join_molecules(raws, reading)
    return _join_raw(raws, reading)


def _join_molecules(molecules: Mapping[int, Molecule], reading: Reading) -> Joined:
    faults: dict[int, str] = {}
    rows: list[dict[str, Value]] = []
    for i, molecule in molecules.items():
        try:
            described = _descriptors(molecule.cells, reading)
        except GraphError as error:
            faults[i] = error.reason
            continue
        rows += [] if described is None else [described]
    good = [molecule for i, molecule in molecules.items() if i not in faults]
    if not good:
        return Joined(reading, None, faults)
    batch = molecule_batch(good, reading)
    if rows:
        batch = replace(batch, descriptors=Descriptors.of_rows(rows))
    return Joined(reading, batch, faults)


def _join_raw(raws: Mapping[int, RawGraph], reading: Reading) -> Joined:
    faults: dict[int, str] = {}
    graphs: dict[int, Graph] = {}
    carried: list[Array] = []
    faults |= _too_bare(raws, reading)
    for i, raw in raws.items():
        if i in faults:
            continue
        try:
            graphs[i], entries = as_graph(raw, reading)
            carried += [] if entries is None else [entries]
        except GraphError as error:
            faults[i] = error.reason
    codes = None
    if carried:
        weights, codes = code_arcs(np.concatenate(carried))
        ends = np.cumsum([len(entries) for entries in carried])[:-1]
        pairs = zip(graphs.items(), np.split(weights, ends), strict=True)
        graphs = {i: replace(graph, weights=part) for (i, graph), part in pairs}
    batch, _, errors = GraphBatch.collect(list(graphs.values()))
    positions = list(graphs)
    faults |= {positions[e.graph]: e.reason for e in errors if e.graph is not None}
    if batch is None:
        return Joined(reading, None, faults)
    if reading.arc_labels == "vertices":
        batch = subdivide(batch, codes)
    return Joined(reading, replace(batch, reading=reading), faults)


def _too_bare(raws: Mapping[int, RawGraph], reading: Reading) -> dict[int, str]:
    """Find rows with too many vertices that have no arc and carry nothing.

    They cost nothing in a file, so that a row can have any number of them. If all rows together
    have too many, those with most of them are left out.
    """
    if reading.vertex != "none":
        return {}
    counts = {i: raw.n_bare for i, raw in raws.items()}
    faults = {
        i: f"it has {n} vertices without arcs, labels or features; {MAX_BARE_VERTICES.in_words}"
        for i, n in counts.items()
        if MAX_BARE_VERTICES.is_below(n)
    }
    total = sum(n for i, n in counts.items() if i not in faults)
    for i in sorted(counts, key=counts.__getitem__, reverse=True):
        if not MAX_BARE_TOTAL.is_below(total):
            break
        if i not in faults:
            faults[i] = (
                f"it has {counts[i]} vertices without arcs, labels or features, and the table has "
                f"too many; {MAX_BARE_TOTAL.in_words}"
            )
            total -= counts[i]
    return faults


# ---------------------------------------------------------------------- one row


def as_graph(raw: RawGraph, reading: Reading) -> tuple[Graph, Array | None]:
    """Make a graph of a row, as the reading says.

    Only what does not fit the reading is refused here; `GraphBatch.collect` checks the rest.

    Returns
    -------
    graph : Graph
    carried : (n_arcs, n_entries) array or None
        What the arcs carry, if that is more than one number each.

    Raises
    ------
    GraphError
        The row does not fit the reading.
    """
    if raw.directed not in (None, reading.directed):
        expected = "directed" if reading.directed else "undirected"
        found = "directed" if raw.directed else "undirected"
        raise GraphError(f"it is {found}, but {expected} graphs are expected")
    edges = raw.edges.T if reading.pairs and raw.edges.ndim == 2 else raw.edges
    labels = _labels(raw.x, reading) if reading.vertex == "labels" else None
    features = _features(raw.x, reading) if reading.vertex == "features" else None
    n = raw.n_vertices
    if n is not None and MAX_VERTICES.is_below(n):
        raise GraphError(f"it has {n} vertices; {MAX_VERTICES.in_words}")
    if reading.arc_labels == "labels":
        weights, carried = None, None
        arc_labels = _arc_labels(raw.carried, reading, edges)
    else:
        weights, carried = _arc_data(raw.carried, reading, edges)
        arc_labels = None
    described = _descriptors(raw.cells, reading)
    kind = reading.directed
    return Graph(edges, n, labels, features, weights, kind, arc_labels, described), carried


def _descriptors(cells: Mapping[str, Any] | None, reading: Reading) -> dict[str, Value] | None:
    """Read the descriptors of a row; a molecule that came without a row has none."""
    if cells is None or not reading.descriptors:
        return None
    return {name: value_in(name, cells.get(name), kind) for name, kind in reading.descriptors}


def _labels(x: Array | None, reading: Reading) -> Array:
    x = _present(x, reading.vertex_attributes, reading.vertices_in_words)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.dtype.kind == "f" and (x == np.round(x)).all():
        x = x.astype(np.int64)
    text = checks.is_text(x)
    kind = "text" if text else "integer"
    discrete = text or x.dtype.kind in "biu"
    if len(x) and x.ndim == 1 and discrete and kind != reading.label_kind:
        raise GraphError(f"it has {kind} labels, expected {reading.vertices_in_words}")
    return x


def _features(x: Array | None, reading: Reading) -> Array:
    x = _present(x, reading.vertex_attributes, reading.vertices_in_words)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim == 2 and len(x) and x.shape[1] != reading.n_features:
        raise GraphError(f"it has {x.shape[1]} features per vertex, expected {reading.n_features}")
    return x


def _arc_labels(carried: Array | None, reading: Reading, edges: Array) -> Array:
    """Find one label per arc; an arc with several entries has them as one text."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        rows = _no_entries(reading)
    else:
        rows = _of_known_kind(carried, reading)
        rows = rows[:, None] if rows.ndim == 1 else rows
        shape = (edges.shape[-1], reading.arc_width or 0)
        checks.check_shape(rows, shape, f"entries of {reading.edge_attribute}")
    whole = rows.dtype.kind == "f" and bool(
        ((np.abs(rows) < 2.0**63) & (rows == np.round(rows))).all()
    )
    if whole or rows.dtype.kind == "b":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" and not checks.is_text(rows):
        raise GraphError(
            f"its {reading.edge_attribute} has entries of dtype {rows.dtype}, "
            f"expected {reading.arcs_in_words}"
        )
    return labels_of(rows)


def _no_entries(reading: Reading) -> Array:
    dtype = str if reading.arc_kind == "text" else float
    return np.empty((0, reading.arc_width or 0), dtype=dtype)


def _of_known_kind(carried: Array | None, reading: Reading) -> Array:
    carried = _present(carried, (reading.edge_attribute or "",), reading.arcs_in_words)
    kind = "text" if checks.is_text(carried) else "number"
    if kind != reading.arc_kind:
        raise GraphError(
            f"its {reading.edge_attribute} has entries of kind {kind}, "
            f"expected {reading.arcs_in_words}"
        )
    return carried


def _arc_data(
    carried: Array | None, reading: Reading, edges: Array
) -> tuple[Array | None, Array | None]:
    """Split what arcs carry into weights, and rows that need a table (see `code_arcs`)."""
    if reading.arc_labels == "ignore":
        return None, None
    one_number = reading.arc_kind == "number" and reading.arc_width == 1
    if edges.size == 0 and (carried is None or carried.size == 0):
        empty = _no_entries(reading)
        return (empty[:, 0], None) if one_number else (None, empty)
    carried = _of_known_kind(carried, reading)
    if one_number:
        return (carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried), None
    return None, _arc_rows(carried, reading, edges.shape[-1])


def _arc_rows(carried: Array, reading: Reading, n_arcs: int) -> Array:
    """Check rows that do not enter the batch themselves, only their positions in a table."""
    name = reading.edge_attribute
    carried = carried[:, None] if carried.ndim == 1 else carried
    checks.check_shape(carried, (n_arcs, reading.arc_width or 0), f"entries of {name}")
    if reading.arc_kind == "text":
        return carried
    numbers = checks.numbers(carried, f"entries of {name}")
    if not np.isfinite(numbers).all():
        raise GraphError(f"its {name} is NaN or infinite; fill in or drop such values")
    return numbers


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"it has no {' or '.join(names)}, expected {expected}")
    return array

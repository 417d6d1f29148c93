"""From arrays as a file, a table or another library has them to graphs, by an input schema.

A `RawGraph` is what a reader finds in one row. `join` makes a batch of many by an `InputSchema`;
what does not fit the schema is an invalid row, and does not touch the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from fdgnn.arrays import Array
from fdgnn.exceptions import GraphError
from fdgnn.graphs import checks
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.descriptors import Descriptors, Value, value_in
from fdgnn.graphs.graph import Graph
from fdgnn.graphs.molecules import Molecule, molecule_batch
from fdgnn.limits import MAX_BARE_TOTAL, MAX_BARE_VERTICES, MAX_VERTICES
from fdgnn.schema import InputSchema


@dataclass(frozen=True)
class RawGraph:
    """Arrays as a file has them; nothing about them is checked yet."""

    edges: Array
    n_vertices: int | None = None
    x: Array | None = None  # what vertices carry
    carried: Array | None = None  # what arcs carry: a number, a row of numbers or a text each
    directed: bool | None = None  # if the file has it
    vertex_attributes: tuple[str, ...] = ()  # where x is from
    edge_attribute: str | None = None  # where `carried` is from
    cells: Mapping[str, Any] | None = None  # the columns with descriptors, by name

    @property
    def n_bare(self) -> int:
        """The least number of vertices without an arc."""
        n = self.n_vertices
        if n is None:
            whole = self.edges.dtype.kind in "iu"
            n = int(self.edges.max(initial=-1)) + 1 if whole else 0
        return max(0, n - self.edges.size)


class Joined(NamedTuple):
    """The valid graphs of some rows, read by one schema, and the errors of the other rows."""

    schema: InputSchema
    graphs: GraphBatch | None
    faults: dict[int, str]


Raw = RawGraph | Molecule


def join(raws: Mapping[int, Any], schema: InputSchema) -> Joined:
    """Join the valid graphs of numbered rows, and find out what is wrong with the others.

    They are all of type `Molecule` if the schema is one of molecules, else of type `RawGraph`.
    """
    if schema.source == "molecules":
        return _join_molecules(raws, schema)
    return _join_raw(raws, schema)


def _join_molecules(molecules: Mapping[int, Molecule], schema: InputSchema) -> Joined:
    faults: dict[int, str] = {}
    rows: list[dict[str, Value]] = []
    for i, molecule in molecules.items():
        try:
            described = _descriptors(molecule.cells, schema)
        except GraphError as error:
            faults[i] = error.reason
            continue
        rows += [] if described is None else [described]
    good = [molecule for i, molecule in molecules.items() if i not in faults]
    if not good:
        return Joined(schema, None, faults)
    batch = molecule_batch(good, schema)
    if rows:
        batch = replace(batch, descriptors=Descriptors.of_rows(rows))
    return Joined(schema, batch, faults)


def _join_raw(raws: Mapping[int, RawGraph], schema: InputSchema) -> Joined:
    faults: dict[int, str] = {}
    graphs: dict[int, Graph] = {}
    faults |= _too_bare(raws, schema)
    for i, raw in raws.items():
        if i in faults:
            continue
        try:
            graphs[i] = as_graph(raw, schema)
        except GraphError as error:
            faults[i] = error.reason
    batch, _, errors = GraphBatch.collect(list(graphs.values()))
    positions = list(graphs)
    faults |= {positions[e.graph]: e.reason for e in errors if e.graph is not None}
    if batch is None:
        return Joined(schema, None, faults)
    return Joined(schema, replace(batch, schema=schema), faults)


def _too_bare(raws: Mapping[int, RawGraph], schema: InputSchema) -> dict[int, str]:
    """Find rows with too many vertices that have no arc and carry nothing.

    They cost nothing in a file, so that a row can have any number of them. If all rows together
    have too many, those with most of them are left out.
    """
    if schema.vertex != "none":
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


def as_graph(raw: RawGraph, schema: InputSchema) -> Graph:
    """Make a graph of a row by the schema; raise GraphError if the row does not fit it.

    `GraphBatch.collect` checks the rest.
    """
    if raw.directed not in (None, schema.directed):
        expected = "directed" if schema.directed else "undirected"
        found = "directed" if raw.directed else "undirected"
        raise GraphError(f"it is {found}, but {expected} graphs are expected")
    edges = raw.edges.T if schema.pairs and raw.edges.ndim == 2 else raw.edges
    labels = _labels(raw.x, schema) if schema.vertex == "labels" else None
    features = _features(raw.x, schema) if schema.vertex == "features" else None
    n = raw.n_vertices
    if n is not None and MAX_VERTICES.is_below(n):
        raise GraphError(f"it has {n} vertices; {MAX_VERTICES.in_words}")
    weights = _weights(raw.carried, schema, edges) if schema.edge_labels == "weights" else None
    edge_labels = (
        _edge_labels(raw.carried, schema, edges) if schema.edge_labels == "labels" else None
    )
    described = _descriptors(raw.cells, schema)
    return Graph(edges, n, labels, features, weights, schema.directed, edge_labels, described)


def _descriptors(cells: Mapping[str, Any] | None, schema: InputSchema) -> dict[str, Value] | None:
    """Read the descriptors of a row; a molecule that came without a row has none."""
    if cells is None or not schema.descriptors:
        return None
    return {
        name: value_in(name, cells.get(name), "category" if name in schema.categories else "number")
        for name in schema.descriptors
    }


def _labels(x: Array | None, schema: InputSchema) -> Array:
    x = _present(x, schema.vertex_attributes, schema.vertices_in_words)
    x = x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x
    if x.dtype.kind == "f" and (x == np.round(x)).all():
        x = x.astype(np.int64)
    text = checks.is_text(x)
    kind = "text" if text else "integer"
    discrete = text or x.dtype.kind in "biu"
    if len(x) and x.ndim == 1 and discrete and kind != schema.label_kind:
        raise GraphError(f"it has {kind} labels, expected {schema.vertices_in_words}")
    return x


def _features(x: Array | None, schema: InputSchema) -> Array:
    x = _present(x, schema.vertex_attributes, schema.vertices_in_words)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim == 2 and len(x) and x.shape[1] != schema.n_features:
        raise GraphError(f"it has {x.shape[1]} features per vertex, expected {schema.n_features}")
    return x


def _edge_labels(carried: Array | None, schema: InputSchema, edges: Array) -> Array:
    """Find one label per arc; an arc with several entries has them as one text."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        rows = _no_entries(schema)
    else:
        rows = _of_known_kind(carried, schema)
        rows = rows[:, None] if rows.ndim == 1 else rows
        shape = (edges.shape[-1], schema.edge_width or 0)
        checks.check_shape(rows, shape, f"entries of {schema.edge_attribute}")
    whole = rows.dtype.kind == "f" and bool(
        ((np.abs(rows) < 2.0**63) & (rows == np.round(rows))).all()
    )
    if whole or rows.dtype.kind == "b":
        rows = rows.astype(np.int64)
    if rows.dtype.kind not in "iu" and not checks.is_text(rows):
        raise GraphError(
            f"its {schema.edge_attribute} has entries of dtype {rows.dtype}, "
            f"expected {schema.edges_in_words}"
        )
    return joined_labels(rows)


def _no_entries(schema: InputSchema) -> Array:
    dtype = str if schema.edge_kind == "text" else float
    return np.empty((0, schema.edge_width or 0), dtype=dtype)


def _of_known_kind(carried: Array | None, schema: InputSchema) -> Array:
    carried = _present(carried, (schema.edge_attribute or "",), schema.edges_in_words)
    kind = "text" if checks.is_text(carried) else "number"
    if kind != schema.edge_kind:
        raise GraphError(
            f"its {schema.edge_attribute} has entries of kind {kind}, "
            f"expected {schema.edges_in_words}"
        )
    return carried


def _weights(carried: Array | None, schema: InputSchema, edges: Array) -> Array:
    """Find one number per arc."""
    if edges.size == 0 and (carried is None or carried.size == 0):
        return _no_entries(schema)[:, 0]
    carried = _of_known_kind(carried, schema)
    return carried[:, 0] if carried.ndim == 2 and carried.shape[1] == 1 else carried


def _present(array: Array | None, names: Sequence[str], expected: str) -> Array:
    if array is None:
        raise GraphError(f"it has no {' or '.join(names)}, expected {expected}")
    return array


def joined_labels(carried: Array) -> Array:
    """Return one label per edge: its own entry or, if it has several, these joined by commas.

    Parameters
    ----------
    carried : (n_arcs, n_entries) int or str
    """
    if carried.shape[1] == 1:
        return carried[:, 0]
    return checks.text_array([",".join(map(str, row)) for row in carried.tolist()])


Label: TypeAlias = str | int


def has_both(graph: Graph) -> bool:
    """Return whether vertices have labels and features."""
    return graph.labels is not None and graph.features is not None


def beside_features(
    graphs: Mapping[int, Graph], known: tuple[Label, ...] | None = None
) -> tuple[dict[int, Graph], tuple[Label, ...], dict[int, str]]:
    """Append labels to features, a column for each label, where graphs have both.

    Parameters
    ----------
    graphs : mapping of Graph
    known : tuple, optional
        The labels that have a column, in order; another one has zeros only. By default all labels
        of these graphs have one.

    Returns
    -------
    graphs : dict of Graph
        The valid ones, in the same order.
    labels : tuple
        The labels that have a column.
    faults : dict of str
        What is wrong with the others.
    """
    labels = _labels_of(graphs.values()) if known is None else known
    found: dict[int, Graph] = {}
    faults: dict[int, str] = {}
    for i, graph in graphs.items():
        try:
            found[i] = _joined(graph, labels) if has_both(graph) else graph
        except GraphError as error:
            faults[i] = error.reason
    return found, labels, faults


def _labels_of(graphs: Iterable[Graph]) -> tuple[Label, ...]:
    """All labels of graphs with features, in order, of the kind that the first graph has."""
    found: list[Label] = []
    for graph in filter(has_both, graphs):
        try:
            found += dict.fromkeys(checks.label_array(graph.labels).tolist())
        except GraphError:  # reported where the graph is converted
            continue
    kind = type(found[0]) if found else str
    return tuple(sorted({label for label in found if isinstance(label, kind)}))


def _joined(graph: Graph, known: tuple[Label, ...]) -> Graph:
    labels = checks.label_array(graph.labels)
    features = checks.numbers(graph.features, "features")
    if features.ndim != 2 or len(features) != len(labels):
        raise GraphError(
            f"it has {len(labels)} labels and features of shape {features.shape}; give one label "
            "and one row of features per vertex"
        )
    text = checks.is_text(labels)
    if known and isinstance(known[0], str) != text:
        kinds = ("text", "integer") if text else ("integer", "text")
        raise GraphError(f"it has {kinds[0]} labels beside features, expected {kinds[1]} labels")
    return replace(graph, labels=None, features=with_label_columns(features, labels, known))


def with_label_columns(features: Array, labels: Array, known: Sequence[Label]) -> Array:
    """Append a column of zeros and ones to features for each known label."""
    return np.hstack([features, labels[:, np.newaxis] == np.array(known)])


def schema_with(graphs: GraphBatch, labels: tuple[Label, ...]) -> InputSchema:
    """Return the schema of graphs whose labels became columns, for other graphs."""
    assert graphs.features is not None
    return InputSchema(
        source="graphs",
        directed=graphs.directed,
        vertex="features",
        n_features=graphs.features.shape[1],
        edge_labels="ignore",
        label_columns=labels,
    )

"""`Graph`, one graph as the user gives it, and `Union`, many of them as arrays end to end.

First each graph is read on its own (`read_parts`). What can be checked for all graphs at once is
checked on the joined arrays (`join`, `Union.faults`), so that a long list costs a few NumPy calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from fdgnn.arrays import Array, Floats, Ints, largest_of, offsets_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import checks
from fdgnn.graphs.descriptors import check_values
from fdgnn.graphs.smiles import Smiles
from fdgnn.limits import MAX_NUMBER
from fdgnn.texts import counted

__all__ = ["Graph"]


@dataclass(frozen=True, eq=False)
class Graph:
    """A single graph, which is checked when it is added to a `GraphBatch`.

    Parameters
    ----------
    edge_index : array-like of int, shape (2, n_arcs)
        Directed edges (arcs) as (source, target) columns, vertices counted from 0. In an undirected
        graph an edge may be listed in one or both directions. Duplicates are merged.
    n_vertices : int, optional
        Required only if some vertices have no edges and there are neither labels nor features.
    labels : array-like, shape (n_vertices,), optional
        One discrete label per vertex, integers or strings.
    features : array-like of float, shape (n_vertices, n_features), optional
        Real-valued vertex attributes. If there are also labels, `as_batch` one-hot encodes them in
        columns after the features.
    weights : array-like of float, shape (n_arcs,), optional
    directed : bool, default=False
        In a directed graph the edge (u, v) carries the state of u to v.
    edge_labels : array-like, shape (n_arcs,), optional
        One discrete label per directed edge, integers or strings, such as bond types. An undirected
        edge has the same label in both directions. The reservoir ignores them.
    descriptors : mapping, optional
        Graph-level features by name: numbers, or text for categories, None
        where a value is missing. All graphs of a batch have the same names.
    smiles : Smiles, optional
        The molecule of the graph, and the atom of each vertex.
    vertex_names : sequence, optional
        Names of the vertices in their source, such as nodes of a networkx graph. Models ignore
        them.

    Notes
    -----
    Graphs are equal if they have the same vertices, edges and data, whatever the order of edges.
    Because their arrays can be changed, graphs are not hashable.
    """

    edge_index: Any
    n_vertices: int | None = None
    labels: Any = None
    features: Any = None
    weights: Any = None
    directed: bool = False
    edge_labels: Any = None
    descriptors: Mapping[str, Any] | None = None
    smiles: Smiles | None = None
    vertex_names: Sequence[Any] | None = None

    def __post_init__(self) -> None:
        edges = self.edge_index
        if type(edges) is not list or len(edges) != 2:
            return
        if not all(type(row) is tuple and len(row) == 2 for row in edges):
            return
        if np.any(edges[0][1] != edges[1][0]):  # an error here is an error where it is written
            raise GraphError(
                f"edge_index is the list {edges} of two pairs, which may be two edges or the "
                "sources and the targets; for edges pass numpy.array(edges).T, and for sources and "
                "targets lists or an array instead of tuples"
            )

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return self is other or _same(_in_order(self), _in_order(other))

    def __repr__(self) -> str:
        try:
            n_arcs: Any = np.shape(self.edge_index)[-1]
        except (IndexError, ValueError):  # not checked yet, so it can be anything
            n_arcs = "?"
        n_vertices: Any = "?" if self.n_vertices is None else self.n_vertices
        vertices = counted(n_vertices, "vertex", "vertices")
        return f"Graph({vertices}, {counted(n_arcs, 'directed edge')})"


def _in_order(graph: Graph) -> tuple[Any, ...]:
    """Return the fields of a graph, with each arc once and in order if the graph is valid."""
    from fdgnn.graphs.batch import GraphBatch

    try:
        both = graph.labels is not None and graph.features is not None  # a batch has one of them
        plain = replace(graph, labels=None) if both else graph
        checked = GraphBatch.from_graphs([plain])[0]
        graph = replace(checked, labels=graph.labels) if both else checked
    except (GraphError, ValueError):  # compared as it is
        pass
    return tuple(getattr(graph, field.name) for field in fields(graph))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if one is None or other is None:
        return one is other
    if isinstance(one, Mapping | str | bool):
        return bool(one == other)
    try:
        return bool(np.array_equal(one, other))
    except ValueError:  # ragged
        return False


Faults = Mapping[int, str]  # what is wrong, by the graph's position in the union

_WIDE = 2**24  # bytes of texts of one width, up to which it does not matter that most are short


ANY = "any"  # goes with others


class Kind(NamedTuple):
    """The kind of a graph, the same for all graphs of a batch."""

    directed: bool
    labels: str | None
    n_features: int | None
    weighted: bool
    edge_labels: str | None  # ANY of a graph without arcs
    descriptors: tuple[str, ...] | None = None  # their names
    smiles: bool = False  # whether it is known of which molecule it is

    def __str__(self) -> str:
        carried = "neither labels nor features"
        if self.labels is not None:
            carried = f"{self.labels} labels"
        elif self.n_features is not None:
            carried = f"{self.n_features} features per vertex"
        weights = "" if self.weighted else "out"
        arcs = "" if self.edge_labels in (None, ANY) else f", with {self.edge_labels} edge labels"
        direction = "" if self.directed else "un"
        columns = f", described by {', '.join(self.descriptors)}" if self.descriptors else ""
        columns += ", read from SMILES" * self.smiles
        return f"{direction}directed, with {carried}, with{weights} weights{arcs}{columns}"


class GraphPart(NamedTuple):
    """One graph as checked arrays, and its position in the user's list."""

    position: int
    kind: Kind
    arcs: Ints
    n_vertices: int
    labels: Array | None
    features: Floats | None
    weights: Floats | None
    edge_labels: Array | None


class Union(NamedTuple):
    """Many graphs as arrays end to end; arcs name vertices of the union."""

    offsets: Ints
    arcs: Ints
    labels: Array | None
    features: Floats | None
    weights: Floats | None
    edge_labels: Array | None
    directed: bool

    @property
    def graph_of(self) -> Array:
        """Each vertex's graph."""
        return np.repeat(np.arange(len(self.offsets) - 1, dtype=np.int32), np.diff(self.offsets))

    def faults(self) -> Faults:
        """Find graphs with values that are not finite, or too large to be computed with."""
        for what, values in (("a vertex feature", self.features), ("an edge weight", self.weights)):
            if values is not None and MAX_NUMBER.is_below(largest_of(values)):
                # The first of a row that is NaN, or else the largest.
                extreme = values if values.ndim == 1 else np.abs(values).max(axis=1)
                bad = ~(np.abs(extreme) <= MAX_NUMBER.value)
                vertices = self.arcs[1][bad] if values is self.weights else bad
                extreme, faults = extreme[bad], {}
                for g, i in _first_of_each(self.graph_of[vertices]):
                    found, why = "NaN or infinite", "fill in or drop such values"
                    if np.isfinite(extreme[i]):
                        found, why = f"{extreme[i]:g}", f"{MAX_NUMBER.in_words}; rescale them"
                    faults[g] = f"{what} is {found}; {why}"
                return faults
        return {}

    def contradictions(self, sources: Ints, targets: Ints, what: str, remedy: str) -> Faults:
        """Return the faults of graphs that list these arcs with different weights or labels.

        Sources are vertices of their graph, targets are vertices of the union.
        """
        faults = {}
        for g, a in _first_of_each(self.graph_of[targets]):
            u, v = int(sources[a]), int(targets[a] - self.offsets[g])
            u, v = (u, v) if self.directed else sorted((u, v))
            faults[g] = (
                f"edge ({u}, {v}) is listed with different {what}; {remedy} repeats, "
                "or set `directed=True` if its two directions differ"
            )
        return faults


# ---------------------------------------------------------------------- one graph


def read_parts(
    graphs: Mapping[int, Graph], fits: Callable[[Kind], str | None] | None = None
) -> tuple[list[GraphPart], dict[int, str]]:
    """Read each graph as arrays; all must be of the kind of the first valid graph.

    With `fits`, which returns the error of a kind, it is the most common valid kind.
    """
    parts: list[GraphPart] = []
    errors: dict[int, str] = {}
    for i, graph in graphs.items():
        try:
            part = read_part(graph, i)
            if fits is not None and (reason := fits(part.kind)) is not None:
                raise GraphError(reason)
            parts.append(part)
        except GraphError as error:
            errors[i] = error.reason
    if any(part.kind != parts[0].kind for part in parts):
        common = Counter(part.kind for part in parts).most_common(1)[0][0]
        kind = parts[0].kind if fits is None else common
        # If the model has no arcs, another graph decides about arcs.
        model = next(part for part in parts if part.kind == kind)
        for part in parts:
            if part.kind in (model.kind, model.kind._replace(edge_labels=ANY)):
                continue
            if model.kind == part.kind._replace(edge_labels=ANY):
                model = part
                continue
            errors[part.position] = (
                f"{part.kind}, but graph {model.position} is {model.kind}; "
                "all graphs of a batch must be of one kind"
            )
        parts = [part for part in parts if part.position not in errors]
    return parts, errors


def read_part(graph: Graph, position: int) -> GraphPart:
    """Return a graph as checked arrays, or raise GraphError."""
    if not isinstance(graph, Graph):
        raise GraphError(f"a {type(graph).__name__}, not a Graph; as_batch converts others")
    if graph.labels is not None and graph.features is not None:
        raise GraphError(
            "both labels and features; as_batch makes columns of the labels, unless a model "
            "was fitted without them; or drop one of the two"
        )
    if not isinstance(graph.directed, (bool, np.bool_)):
        raise GraphError(f"directed is {graph.directed!r}, expected True or False")
    if graph.descriptors is not None:
        check_values(graph.descriptors)
    arcs = checks.arc_array(graph.edge_index)
    labels = None if graph.labels is None else checks.label_array(graph.labels)
    features = None
    if graph.features is not None:
        features = checks.numbers(graph.features, "features")
        if features.ndim != 2 or features.shape[1] == 0:
            raise GraphError(
                f"features have shape {features.shape}, expected (n_vertices, n_features); "
                "reshape a single feature per vertex to (n_vertices, 1)"
            )
    weights = None
    if graph.weights is not None:
        weights = checks.numbers(graph.weights, "weights")
        checks.check_shape(weights, (arcs.shape[1],), "weights")
    edge_labels = None
    if graph.edge_labels is not None:
        edge_labels = checks.label_array(graph.edge_labels, "edge_labels", "edge", "weights")
        checks.check_shape(edge_labels, (arcs.shape[1],), "edge_labels")
    rows = features if labels is None else labels
    n = checks.n_vertices(graph.n_vertices, None if rows is None else len(rows), arcs)
    if graph.vertex_names is not None and len(graph.vertex_names) != n:
        raise GraphError(f"{len(graph.vertex_names)} vertex names for {n} vertices")
    if graph.smiles is not None:
        checks.check_shape(graph.smiles.atoms, (n,), "atoms of its SMILES")
    kind = Kind(
        bool(graph.directed),
        _label_kind(labels),
        None if features is None else features.shape[1],
        weights is not None,
        _label_kind(edge_labels) if arcs.shape[1] else ANY,
        None if graph.descriptors is None else tuple(graph.descriptors),
        graph.smiles is not None,
    )
    return GraphPart(position, kind, arcs, n, labels, features, weights, edge_labels)


def _label_kind(labels: Array | None) -> str | None:
    return None if labels is None else "integer" if labels.dtype.kind == "i" else "text"


# ---------------------------------------------------------------------- all graphs


def join(parts: Sequence[GraphPart]) -> tuple[Union, Faults]:
    """Lay graphs of one kind end to end; find those with arcs to vertices that they lack."""
    if len(parts) == 1 and _within(parts[0]):
        return _alone(parts[0]), {}
    sizes = np.array([part.n_vertices for part in parts])
    offsets = offsets_of(sizes)
    checks.check_total(int(offsets[-1]))
    arcs = np.concatenate([part.arcs for part in parts], axis=1, dtype=np.int64)
    graph_of_arc = np.repeat(np.arange(len(parts)), [part.arcs.shape[1] for part in parts])
    # Seen as unsigned, a negative index is a very large one.
    outside = arcs.view(np.uint64) >= sizes.view(np.uint64)[graph_of_arc]
    bad = np.flatnonzero(outside.any(axis=0))
    faults = {}
    for g, a in _first_of_each(graph_of_arc[bad]):
        u, v = arcs[:, bad[a]].tolist()
        past = f"is out of range for {sizes[g]} vertices"
        problem = "has a negative index" if min(u, v) < 0 else past
        faults[g] = f"edge ({u}, {v}) {problem}; vertices are numbered from 0"
    arcs += offsets[graph_of_arc]
    labels = _end_to_end(part.labels for part in parts)
    features = _end_to_end(part.features for part in parts)
    weights = _end_to_end(part.weights for part in parts)
    # Graphs without arcs have no labels of arcs, or empty ones of either kind.
    arc_labels = [part.edge_labels for part in parts if part.edge_labels is not None]
    given = [each for each in arc_labels if len(each)] if arcs.size else arc_labels[:1]
    edge_labels = _end_to_end(given)
    directed = parts[0].kind.directed
    return Union(offsets, arcs, labels, features, weights, edge_labels, directed), faults


def _within(part: GraphPart) -> bool:
    """Return whether all arcs of a graph are between its vertices."""
    # Seen as unsigned, a negative index is a very large one.
    arcs = part.arcs.astype(np.int64, copy=False).view(np.uint64)
    return arcs.size == 0 or int(arcs.max()) < part.n_vertices


def _alone(part: GraphPart) -> Union:
    """Return a union of one graph.

    What a batch keeps is copied, because it makes its arrays read-only.
    """
    offsets = np.array([0, part.n_vertices], dtype=np.int64)
    arcs = part.arcs.astype(np.int64, copy=False)
    labels, features, weights, edge_labels = (
        None if array is None else array.copy()
        for array in (part.labels, part.features, part.weights, part.edge_labels)
    )
    return Union(offsets, arcs, labels, features, weights, edge_labels, part.kind.directed)


def _end_to_end(arrays: Iterable[Array | None]) -> Array | None:
    there = [array for array in arrays if array is not None]  # all or none: they are of one kind
    if there and there[0].dtype.kind == "U":
        widest = max(array.dtype.itemsize for array in there)
        if widest * sum(map(len, there)) > max(_WIDE, 4 * sum(a.nbytes for a in there)):
            there = [array.astype(object) for array in there]  # else all get the longest one's room
    return np.concatenate(there) if there else None


def _first_of_each(graphs: Array) -> Iterator[tuple[int, int]]:
    """Yield each graph, and where it comes first."""
    found, first = np.unique(graphs, return_index=True)
    return zip(found.tolist(), first.tolist(), strict=True)

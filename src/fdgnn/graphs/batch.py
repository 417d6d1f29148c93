"""Graphs, and batches of graphs as one CSR matrix: the form in which everything below works.

A `Graph` is a plain container for what the user brings. A `GraphBatch` is checked, immutable,
and laid out for the kernels; `GraphBatch.from_graphs` and `GraphBatch.from_arcs` are the only
doors into it, so nothing behind them checks shapes, indices or finiteness again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, Ints, offsets_of, ranges
from fdgnn.exceptions import GraphError, UnseenLabelError
from fdgnn.graphs import checks, colors
from fdgnn.graphs.arcs import merge_arcs

__all__ = ["Graph", "GraphBatch"]


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph, as the user brings it. It is checked when it enters a `GraphBatch`.

    Parameters
    ----------
    edge_index : array-like of int, shape (2, n_arcs)
        Arcs as (source, target) columns, vertices counted from 0. In an undirected graph an edge
        may be listed once or both ways. Arcs listed more than once are merged.
    n_vertices : int, optional
        Needed only where vertices without arcs, labels or features would otherwise be missed.
    labels : array-like, shape (n_vertices,), optional
        One discrete label a vertex, integers or strings.
    features : array-like of float, shape (n_vertices, n_features), optional
        Real-valued vertex attributes; either labels or features, not both.
    weights : array-like of float, shape (n_arcs,), optional
    directed : bool, default=False
        In a directed graph the arc (u, v) carries the state of u to v.
    """

    edge_index: Any
    n_vertices: int | None = None
    labels: Any = None
    features: Any = None
    weights: Any = None
    directed: bool = False

    def __repr__(self) -> str:
        try:
            n_arcs = str(np.shape(self.edge_index)[-1])
        except (IndexError, ValueError):  # not checked yet, so it can be anything
            n_arcs = "?"
        n_vertices = "?" if self.n_vertices is None else self.n_vertices
        return f"Graph({n_vertices} vertices, {n_arcs} arcs)"


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Sequence[Graph]):
    """Many graphs as the CSR matrix of their disjoint union; read-only.

    Row v of the matrix lists the vertices whose states flow into v, as indices inside v's own
    graph, in ascending order. Build one with `as_batch`, `GraphBatch.from_graphs` or
    `GraphBatch.from_arcs`, not by hand.

    Indexing with an integer gives a `Graph`, with a slice, a mask or an array of indices another
    `GraphBatch`, so scikit-learn's splitters and searches keep a batch a batch.

    Attributes
    ----------
    vertex_offsets : (n_graphs + 1,) int64
        Graph g has the vertices ``vertex_offsets[g]`` up to ``vertex_offsets[g + 1]``.
    indptr : (n_vertices + 1,) int64
        Vertex v has the neighbors ``neighbors[indptr[v]:indptr[v + 1]]``.
    neighbors : (n_arcs,) int32
    weights : (n_arcs,) float64 or None
    label_codes : (n_vertices,) int32 or None
        Positions in `label_values`.
    label_values : (n_labels,) int or str, or None
    features : (n_vertices, n_features) float64 or None
    directed : bool
    n_merged_arcs : int
        How many repeated arcs were merged when the batch was built.
    """

    vertex_offsets: Ints
    indptr: Ints
    neighbors: npt.NDArray[np.int32]
    weights: Floats | None = None
    label_codes: npt.NDArray[np.int32] | None = None
    label_values: Array | None = None
    features: Floats | None = None
    directed: bool = False
    n_merged_arcs: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __reduce__(self) -> tuple[type[GraphBatch], tuple[Any, ...], dict[str, Any]]:
        # By the constructor, so that copies and unpickled batches are read-only, too. What was
        # computed travels along, so that worker processes need not compute it again.
        names = [field.name for field in fields(self)]
        computed = {name: value for name, value in vars(self).items() if name not in names}
        return GraphBatch, tuple(getattr(self, name) for name in names), computed

    # ------------------------------------------------------------------ building

    @classmethod
    def from_graphs(cls, graphs: Sequence[Graph]) -> GraphBatch:
        """Check and join a list of graphs; errors name the graph's position in the list."""
        if len(graphs) == 0:
            raise GraphError("no graphs: a batch needs at least one")
        for i, graph in enumerate(graphs):
            _check_kind(graph, i)
        directed = checks.same_for_all([bool(g.directed) for g in graphs], "being directed")
        arcs = [checks.arc_array(g.edge_index, f"graph {i}") for i, g in enumerate(graphs)]
        labels = _field(graphs, "labels", checks.label_array)
        features = _field(graphs, "features", checks.feature_matrix)
        sizes = _sizes(graphs, arcs, labels or features)
        checks.check_sizes(sizes)
        if labels is not None:
            checks.same_for_all([_label_kind(values) for values in labels], "kind of labels")
        if features is not None:
            checks.same_for_all([matrix.shape[1] for matrix in features], "number of features")
        n_arcs = [a.shape[1] for a in arcs]
        weights = _field(graphs, "weights", checks.numbers)
        for i, values in enumerate(weights or []):
            checks.check_shape(values, (n_arcs[i],), f"graph {i}", "weights")
        local = np.concatenate(arcs, axis=1)
        graph_of_arc = np.repeat(np.arange(len(graphs)), n_arcs)
        checks.check_inside(local, graph_of_arc, sizes)
        offsets = offsets_of(sizes)
        return cls._assemble(
            offsets,
            local + offsets[graph_of_arc],
            weights=None if weights is None else np.concatenate(weights),
            labels=None if labels is None else np.concatenate(labels),
            features=None if features is None else np.concatenate(features),
            directed=directed,
        )

    @classmethod
    def from_arcs(
        cls,
        vertex_offsets: npt.ArrayLike,
        arcs: npt.ArrayLike,
        *,
        weights: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        features: npt.ArrayLike | None = None,
        directed: bool = False,
    ) -> GraphBatch:
        """Check arrays over the disjoint union, and build a batch from them.

        Parameters
        ----------
        vertex_offsets : (n_graphs + 1,) int
        arcs : (2, n_arcs) int
            Sources and targets, as vertices of the union.
        weights, labels, features : arrays over arcs and vertices, optional
        directed : bool, default=False
            If not, the arc (v, u) is added for every (u, v) that has none.
        """
        where = "the batch"
        offsets = checks.checked_offsets(vertex_offsets)
        n = int(offsets[-1])
        arcs = checks.arc_array(arcs, where)
        checks.check_within_graphs(arcs, offsets)
        if labels is not None and features is not None:
            raise GraphError(f"{where}: it has both labels and features; drop one of the two")
        if weights is not None:
            weights = checks.numbers(weights, where, "weights")
            checks.check_shape(weights, (arcs.shape[1],), where, "weights")
        if labels is not None:
            labels = checks.label_array(labels, where, "labels")
            checks.check_shape(labels, (n,), where, "labels")
        if features is not None:
            features = np.array(checks.feature_matrix(features, where, "features"), order="C")
            checks.check_shape(features, (n, features.shape[1]), where, "features")
        return cls._assemble(
            offsets, arcs, weights=weights, labels=labels, features=features, directed=directed
        )

    @classmethod
    def _assemble(
        cls,
        offsets: Ints,
        arcs: Ints,
        *,
        weights: Floats | None,
        labels: Array | None,
        features: Floats | None,
        directed: bool,
    ) -> GraphBatch:
        """Build from checked arrays, which (but for the arcs) become the batch's own."""
        n = int(offsets[-1])
        graph_of = np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets))
        if weights is not None:
            checks.check_finite(weights, graph_of[arcs[1]], "an arc weight")
        if features is not None:
            features = np.ascontiguousarray(features)
            checks.check_finite(features, graph_of, "a vertex feature")
        keys, weights, n_merged = merge_arcs(arcs, weights, n, directed, graph_of)
        targets, sources = np.divmod(keys, n)
        del keys
        sources -= offsets[graph_of[targets]]
        codes = label_values = None
        if labels is not None:
            label_values, codes = np.unique(labels, return_inverse=True)
        return cls(
            vertex_offsets=offsets,
            indptr=offsets_of(np.bincount(targets, minlength=n)),
            neighbors=sources.astype(np.int32),
            weights=weights,
            label_codes=None if codes is None else codes.astype(np.int32),
            label_values=label_values,
            features=features,
            directed=bool(directed),
            n_merged_arcs=n_merged,
        )

    # ------------------------------------------------------------------ a list and an array

    @property
    def shape(self) -> tuple[int]:
        """``(n_graphs,)``, as of a one-dimensional array."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.vertex_offsets) - 1

    def __iter__(self) -> Iterator[Graph]:
        return (self._graph(g) for g in range(len(self)))

    @overload
    def __getitem__(self, key: int) -> Graph: ...
    @overload
    def __getitem__(self, key: Any) -> GraphBatch: ...
    def __getitem__(self, key: Any) -> Graph | GraphBatch:
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self._graph(range(len(self))[key])
        chosen = np.arange(len(self))[key]  # takes X[indices, ...] too, scikit-learn's way
        if chosen.ndim > 1:
            raise IndexError(f"a batch has one dimension, and cannot be indexed by {key!r}")
        return self._graph(int(chosen)) if chosen.ndim == 0 else self._take(chosen)

    def _graph(self, g: int) -> Graph:
        v, w = self.vertex_offsets[g : g + 2].tolist()
        a, b = self.indptr[v], self.indptr[w]
        targets = np.repeat(np.arange(w - v), np.diff(self.indptr[v : w + 1]))
        labels = None
        if self.label_codes is not None and self.label_values is not None:
            labels = self.label_values[self.label_codes[v:w]]
        return Graph(
            edge_index=np.stack([self.neighbors[a:b].astype(np.int64), targets]),
            n_vertices=w - v,
            labels=labels,
            features=None if self.features is None else self.features[v:w],
            weights=None if self.weights is None else self.weights[a:b],
            directed=self.directed,
        )

    def _take(self, chosen: Ints) -> GraphBatch:
        if len(chosen) == 0:
            raise GraphError("no graphs: the index selects none of the batch")
        sizes = np.diff(self.vertex_offsets)[chosen]
        vertices = ranges(self.vertex_offsets[chosen], sizes)
        n_neighbors = np.diff(self.indptr)[vertices]
        arcs = ranges(self.indptr[vertices], n_neighbors)
        return GraphBatch(
            vertex_offsets=offsets_of(sizes),
            indptr=offsets_of(n_neighbors),
            neighbors=self.neighbors[arcs],
            weights=None if self.weights is None else self.weights[arcs],
            label_codes=None if self.label_codes is None else self.label_codes[vertices],
            label_values=self.label_values,
            features=None if self.features is None else self.features[vertices],
            directed=self.directed,
        )

    def __repr__(self) -> str:
        parts = [f"{len(self)} graphs", f"{self.n_vertices} vertices", f"{self.n_arcs} arcs"]
        if self.label_values is not None:
            parts.append(f"{len(self.label_values)} vertex labels")
        if self.features is not None:
            parts.append(f"{self.features.shape[1]} features a vertex")
        parts += ["weighted"] * (self.weights is not None) + ["directed"] * self.directed
        return f"GraphBatch({', '.join(parts)})"

    # ------------------------------------------------------------------ what one asks of it

    @property
    def n_vertices(self) -> int:
        """Vertices of all graphs together."""
        return int(self.vertex_offsets[-1])

    @property
    def n_arcs(self) -> int:
        """Arcs after merging; an undirected edge counts as two, a self-loop as one."""
        return len(self.neighbors)

    @property
    def labels(self) -> Array | None:
        """The vertices' labels as the user gave them, or None."""
        if self.label_codes is None or self.label_values is None:
            return None
        return self.label_values[self.label_codes]

    @cached_property
    def graph_of_vertex(self) -> npt.NDArray[np.int32]:
        """Position in the batch of each vertex's graph."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.vertex_offsets))

    @cached_property
    def n_self_loops(self) -> int:
        """Arcs from a vertex to itself."""
        local = np.arange(self.n_vertices) - self.vertex_offsets[self.graph_of_vertex]
        return int((np.repeat(local, np.diff(self.indptr)) == self.neighbors).sum())

    @cached_property
    def max_degrees(self) -> Floats:
        """Each graph's k: its largest neighborhood, with weights their largest absolute sum."""
        if self.weights is None:
            degrees: Array = np.diff(self.indptr).astype(np.float64)
        else:
            degrees = np.asarray(abs(self.adjacency()).sum(axis=1)).ravel()
        return np.maximum.reduceat(degrees, self.vertex_offsets[:-1])

    @cached_property
    def spectral_radii(self) -> Floats:
        """Each graph's rho(|A|), as an upper bound, tight to about half a per cent."""
        from fdgnn.kernels.spectral import spectral_radii

        if self.weights is None:  # a quotient has the same radius
            q = self.quotients
            radii = np.empty(len(q.graphs))
            arcs = (q.indptr, q.sources, q.multiplicities)
            spectral_radii(0, len(radii), q.row_offsets, *arcs, radii)
            return radii[q.quotient_of]
        radii = np.empty(len(self))
        arcs = (self.indptr, self.neighbors, self.weights)
        spectral_radii(0, len(self), self.vertex_offsets, *arcs, radii)
        return radii

    @cached_property
    def coloring(self) -> colors.Coloring:
        """Each graph's stable color classes (1-WL)."""
        return colors.refine(self)

    @cached_property
    def quotients(self) -> colors.Quotients:
        """The distinct graphs of the batch, vertices of one color merged into a row."""
        return colors.quotients(self, self.coloring)

    @cached_property
    def colors(self) -> Ints:
        """Each vertex' stable color, the same number for the same color in all graphs."""
        return colors.common_colors(self)

    @property
    def n_distinct_graphs(self) -> int:
        """How many graphs color refinement, and so any message-passing model, can tell apart."""
        return len(np.unique(self.coloring.signatures))

    def wl_ceiling(self, y: Any) -> float:
        """Best accuracy that any message-passing model can reach on these graphs.

        Graphs that color refinement cannot tell apart get one answer; the best one is the
        commonest class among them.
        """
        return colors.wl_ceiling(self.coloring.signatures, y)

    def adjacency(self) -> sp.csr_array:
        """Adjacency matrix of the disjoint union; entry (v, u) is the arc from u to v."""
        shift = np.repeat(self.vertex_offsets[self.graph_of_vertex], np.diff(self.indptr))
        data = np.ones(self.n_arcs) if self.weights is None else self.weights
        n = self.n_vertices
        return sp.csr_array((data, self.neighbors + shift, self.indptr), shape=(n, n))

    def encode_labels(self, vocabulary: Sequence[Any]) -> npt.NDArray[np.int32]:
        """Give each vertex the position of its label in `vocabulary`.

        Raises
        ------
        UnseenLabelError
            Naming the first graph with a label that the vocabulary lacks.
        """
        if self.label_codes is None or self.label_values is None:
            raise GraphError("the graphs have no vertex labels, but the model was fitted on some")
        position = {label: i for i, label in enumerate(vocabulary)}
        table = np.array([position.get(v, -1) for v in self.label_values.tolist()], dtype=np.int32)
        codes = table[self.label_codes]
        if (codes < 0).any():
            v = int(np.argmax(codes < 0))
            label = self.label_values[self.label_codes[v]].item()
            known = ", ".join(map(repr, np.asarray(vocabulary)[:10].tolist()))
            known += ", ..." * (len(vocabulary) > 10)
            raise UnseenLabelError(
                f"graph {self.graph_of_vertex[v]}: vertex label {label!r} was not seen during fit; "
                f"known are {known}; "
                "leave such graphs out, or fit on data that has every label (folds of one batch, "
                "as_batch(graphs), share its labels; folds of a list do not)"
            )
        return codes


# ---------------------------------------------------------------------- a list of graphs


def _check_kind(graph: Graph, i: int) -> None:
    if not isinstance(graph, Graph):
        raise GraphError(
            f"graph {i}: it is a {type(graph).__name__}, not a Graph; as_batch converts other kinds"
        )
    if graph.labels is not None and graph.features is not None:
        raise GraphError(
            f"graph {i}: it has both labels and features; append the labels to the "
            "features as one-hot columns, or drop one of the two"
        )
    if not isinstance(graph.directed, bool | np.bool_):
        raise GraphError(f"graph {i}: directed is {graph.directed!r}, expected True or False")


def _field(
    graphs: Sequence[Graph], name: str, convert: Callable[[Any, str, str], Array]
) -> list[Array] | None:
    """One field of all graphs as arrays, or None where no graph has it."""
    values = [getattr(graph, name) for graph in graphs]
    if not checks.same_for_all([value is not None for value in values], f"having {name}"):
        return None
    return [convert(value, f"graph {i}", name) for i, value in enumerate(values)]


def _sizes(graphs: Sequence[Graph], arcs: list[Ints], rows: list[Array] | None) -> Ints:
    n_rows = [None] * len(graphs) if rows is None else [len(array) for array in rows]
    sizes = [
        checks.n_vertices(graph.n_vertices, n, a, f"graph {i}")
        for i, (graph, n, a) in enumerate(zip(graphs, n_rows, arcs, strict=True))
    ]
    return np.array(sizes, dtype=np.int64)


def _label_kind(labels: Array) -> str:
    return "text" if labels.dtype.kind == "U" else "integer"

"""`GraphBatch`: many graphs as one CSR matrix, the form in which everything else works.

A batch is checked, immutable, and laid out for the kernels. `GraphBatch.from_graphs`,
`GraphBatch.collect` and `GraphBatch.from_arcs` are its only constructors: nothing that gets a
batch checks shapes, indices or finiteness again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, Ints, frozen, looked_up, offsets_of, positions, ranges
from fdgnn.exceptions import GraphError, UnknownLabelError
from fdgnn.graphs import checks, colors
from fdgnn.graphs.checks import coded, decoded, recoded
from fdgnn.graphs.descriptors import Descriptors, mixed_kinds
from fdgnn.graphs.graph import Faults, Graph, Kind, Union, join, read_part, read_parts
from fdgnn.graphs.smiles import Smiles, SmilesColumn
from fdgnn.records import cached_property
from fdgnn.schema import InputSchema
from fdgnn.texts import counted, cut, html_table

__all__ = ["GraphBatch"]

_ARRAYS = (
    "vertex_offsets", "indptr", "neighbors", "weights", "label_codes", "label_values", "features",
    "edge_label_codes", "edge_label_values",
)  # fmt: skip


_NO_WEIGHTS = frozen(np.empty(0))[0]


@dataclass(frozen=True, eq=False, repr=False)
class GraphBatch(Sequence[Graph]):
    """A read-only batch of graphs: the CSR matrix of their disjoint union.

    Row v of the matrix lists the vertices whose states flow into v, as indices inside v's own
    graph, in ascending order. Build one with `as_batch`, `GraphBatch.from_graphs` or
    `GraphBatch.from_arcs`, not by hand.

    Indexing with an integer returns a `Graph`, and with a slice, a mask or an array of indices
    another `GraphBatch`, so batches stay batches in scikit-learn's splitters and searches.

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
        Number of duplicate arcs that were merged when the batch was built.
    schema : InputSchema or None
        The input schema, if the graphs were read from a file.
    edge_label_codes : (n_arcs,) int32 or None
        Positions in `edge_label_values`, in the order of `neighbors`. Color refinement,
        quotients and the reservoir do not use them.
    edge_label_values : (n_edge_labels,) int or str, or None
        The distinct labels of arcs, sorted.
    descriptors : Descriptors or None
        Columns with a value for each graph; see `with_descriptors`.
    smiles : SmilesColumn or None
        The molecules, if the graphs were read from SMILES or RDKit ``Mol`` objects.
    vertex_names : tuple or None
        Names of the vertices of each graph, or None.
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
    schema: InputSchema | None = None
    edge_label_codes: npt.NDArray[np.int32] | None = None
    edge_label_values: Array | None = None
    descriptors: Descriptors | None = None
    smiles: SmilesColumn | None = None
    vertex_names: tuple[Sequence[Any] | None, ...] | None = None

    def __post_init__(self) -> None:
        for name in _ARRAYS:
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    def __reduce__(self) -> tuple[type[GraphBatch], tuple[Any, ...], dict[str, Any]]:
        # Through the constructor, so that copies and unpickled batches are read-only. Computed
        # facts are kept, so that worker processes need not compute them again.
        names = [field.name for field in fields(self)]
        computed = {name: value for name, value in vars(self).items() if name not in names}
        return GraphBatch, tuple(getattr(self, name) for name in names), computed

    # ------------------------------------------------------------------ building

    @classmethod
    def from_graphs(cls, graphs: Sequence[Graph]) -> GraphBatch:
        """Check and join a list of graphs.

        Raises
        ------
        GraphError
            A graph is invalid; `GraphError.graph` is its position.
        """
        batch, errors = cls.collect(dict(enumerate(graphs)))
        if batch is None or errors:
            first = min(errors, default=None)
            why = "no graphs: a batch needs at least one" if first is None else errors[first]
            raise GraphError(why, first)
        return batch

    @classmethod
    def collect(
        cls, graphs: Mapping[int, Graph], fits: Callable[[Kind], str | None] | None = None
    ) -> tuple[GraphBatch | None, dict[int, str]]:
        """Join the valid graphs, given by number, and find out what is wrong with the others.

        All graphs must be of the kind of the first valid graph. With `fits`, which returns the
        error of a kind, they must be of the most common kind without an error.

        Returns
        -------
        batch : GraphBatch or None
            The valid graphs; None if there are none.
        errors : dict of str
            Why each of the others is invalid, by number.
        """
        parts, errors = read_parts(graphs, fits)
        batch = None
        while parts and batch is None:  # a second time only if there are faults, without these
            union, faults = join(parts)
            if not faults:
                batch, faults = cls.of_union(union)
            given = [graphs[part.position] for part in parts]
            more: dict[str, Any] = {}
            if parts[0].kind.descriptors is not None:
                rows = [graph.descriptors or {} for graph in given]
                faults = faults or mixed_kinds(rows)
                if not faults:
                    more["descriptors"] = Descriptors.of_rows(rows)
            errors |= {parts[g].position: reason for g, reason in faults.items()}
            if faults:
                batch, parts = None, [part for g, part in enumerate(parts) if g not in faults]
            elif batch is not None:
                if parts[0].kind.smiles:
                    more["smiles"] = SmilesColumn.of([g.smiles for g in given if g.smiles])
                if any(graph.vertex_names is not None for graph in given):
                    more["vertex_names"] = tuple(graph.vertex_names for graph in given)
                batch = replace(batch, **more) if more else batch
        return batch, errors

    @classmethod
    def concatenate(cls, batches: Iterable[GraphBatch]) -> GraphBatch:
        """Join batches of graphs of one kind, in their order.

        Examples
        --------
        >>> from fdgnn import GraphBatch
        >>> from fdgnn.datasets import make_cycles, make_stars
        >>> GraphBatch.concatenate([make_cycles([3, 4]), make_stars([5])])
        GraphBatch(3 graphs, 12 vertices, 22 directed edges)
        """
        batches = [batch for batch in batches if len(batch)]
        schemas = {batch.schema for batch in batches}
        columns = {() if schema is None else schema.label_columns for schema in schemas}
        if len(columns) > 1:
            raise GraphError(
                "the batches have columns for different labels; join the lists of graphs before "
                "`as_batch`, or read them with the same `like`"
            )
        joined = cls.from_graphs([graph for batch in batches for graph in batch])
        return replace(joined, schema=schemas.pop() if len(schemas) == 1 else None)

    @classmethod
    def empty(cls, schema: InputSchema | None = None) -> GraphBatch:
        """Return an empty batch; models cannot be fitted to it, and its predictions are empty."""
        nothing = np.zeros(1, dtype=np.int64)
        return cls(nothing, nothing.copy(), np.empty(0, dtype=np.int32), schema=schema)

    @classmethod
    def from_arcs(
        cls,
        vertex_offsets: npt.ArrayLike,
        arcs: npt.ArrayLike,
        *,
        weights: npt.ArrayLike | None = None,
        labels: npt.ArrayLike | None = None,
        features: npt.ArrayLike | None = None,
        edge_labels: npt.ArrayLike | None = None,
        directed: bool = False,
    ) -> GraphBatch:
        """Check arrays over the disjoint union, and build a batch from them.

        Parameters
        ----------
        vertex_offsets : (n_graphs + 1,) int
        arcs : (2, n_arcs) int
            Sources and targets, as vertices of the union.
        weights, labels, features, edge_labels : arrays over arcs and vertices, optional
        directed : bool, default=False
            If not, a missing arc (v, u) is added for every (u, v).
        """
        # 1. Where the vertices of each graph are.
        given = checks.as_array(vertex_offsets, "vertex_offsets")
        if given.ndim != 1 or len(given) < 2 or given.dtype.kind not in "iu" or given[0] != 0:
            raise GraphError(
                "vertex_offsets must be integers: first 0, and then where each graph's vertices end"
            )
        offsets = np.array(given, dtype=np.int64)
        sizes, n = np.diff(offsets), int(offsets[-1])
        if (sizes < 1).any():
            g = int(np.argmax(sizes < 1))
            raise GraphError("no vertices; leave the graph out, or add a vertex", g)
        checks.check_total(n)
        # 2. All graphs as one; then arcs must not lead from one to another.
        union_as_graph = Graph(arcs, n, labels, features, weights, bool(directed), edge_labels)
        part = read_part(union_as_graph, 0)
        arcs = part.arcs
        if arcs.size and (arcs.min() < 0 or arcs.max() >= n):
            bad = arcs.min() if arcs.min() < 0 else arcs.max()
            raise GraphError(f"an edge names vertex {bad}, but the vertices are 0 to {n - 1}")
        graph_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        crossing = graph_of[arcs[0]] != graph_of[arcs[1]]
        if crossing.any():
            a = int(np.argmax(crossing))
            g, h = graph_of[arcs[:, a]].tolist()
            raise GraphError(
                f"edge {a} leads from it into graph {h}; edges must stay in one graph", g
            )
        union = Union(
            offsets, arcs, part.labels,
            None if part.features is None else np.array(part.features, order="C"),
            part.weights, part.edge_labels, part.kind.directed,
        )  # fmt: skip
        batch, faults = cls.of_union(union)
        if batch is None:
            graph = min(faults)
            raise GraphError(faults[graph], graph)
        return batch

    @classmethod
    def of_union(cls, union: Union) -> tuple[GraphBatch | None, Faults]:
        """Build a batch from checked arrays, or find which graphs are invalid.

        The arrays, except the arcs, become the batch's own.
        """
        from fdgnn.kernels import merge_arcs

        # 1. Are all values finite, and can they be computed with?
        if faults := union.faults():
            return None, faults
        # 2. Arcs by target, then source, each of them once; mirrored in undirected graphs.
        codes, values = coded(union.labels)
        edge_codes, edge_values = coded(union.edge_labels)
        weights, carry = union.weights, union.weights is not None or edge_codes is not None
        listed = np.ascontiguousarray(union.arcs, dtype=np.int64)
        indptr, neighbors, n_merged, *order = merge_arcs(
            listed, union.offsets, union.directed, carry
        )
        # 3. What they carry, which must be the same wherever an arc is listed.
        if carry:
            new = order[1].view(np.bool_)
            weights = None if weights is None else weights[order[0]]
            edge_codes = None if edge_codes is None else edge_codes[order[0]]
            for what, remedy, carried in (
                ("weights", "sum or drop", weights), ("labels", "drop", edge_codes)
            ):  # fmt: skip
                if carried is None:
                    continue
                differing = ~new[1:] & (carried[1:] != carried[:-1])
                if differing.any():
                    arcs = np.cumsum(new)[1:][differing] - 1
                    targets = np.searchsorted(indptr, arcs, side="right") - 1
                    return None, union.contradictions(neighbors[arcs], targets, what, remedy)
            weights = None if weights is None else weights[new]
            edge_codes = None if edge_codes is None else edge_codes[new]
        batch = cls(
            vertex_offsets=union.offsets,
            indptr=indptr,
            neighbors=neighbors,
            weights=weights,
            label_codes=codes,
            label_values=values,
            features=None if union.features is None else np.ascontiguousarray(union.features),
            directed=union.directed,
            n_merged_arcs=n_merged,
            edge_label_codes=edge_codes,
            edge_label_values=edge_values,
        )
        return batch, {}

    def with_descriptors(self, table: Any) -> GraphBatch:
        """Return the same graphs with graph-level features.

        Parameters
        ----------
        table : (n_graphs, n_descriptors) array of numbers, mapping, or data frame
            Columns by name in a mapping or a pandas or polars data frame: numbers, or text for
            categories. None and NaN are missing values.

        Examples
        --------
        >>> from fdgnn.datasets import make_cycles
        >>> graphs = make_cycles([3, 4, 5]).with_descriptors(
        ...     {"weight": [12.0, None, 14.5], "site": ["a", "b", None]}
        ... )
        >>> graphs[:2][0].descriptors
        {'weight': 12.0, 'site': 'a'}
        """
        return replace(self, descriptors=Descriptors.of(table, len(self)))

    def to_networkx(self) -> list[Any]:
        """Convert each graph to a networkx ``Graph`` or ``DiGraph``.

        Nodes are vertex names, or else 0, 1, 2, ... Nodes have the attributes ``label`` or
        ``features``, and edges have ``weight`` and ``label``, if the graphs have these data.
        """
        from fdgnn.graphs.libraries import to_networkx

        return [to_networkx(graph) for graph in self]

    def to_pyg(self, y: Any = None) -> list[Any]:
        """Convert each graph to a PyTorch Geometric ``Data`` object.

        ``x`` has the features, or a one-hot row per vertex for the label, in the order of
        `label_values`; ``edge_attr`` has a one-hot row per arc for its label, in the order of
        `edge_label_values`; ``edge_weight`` has the weights. Undirected edges are listed in both
        directions.

        Parameters
        ----------
        y : (n_graphs,) or (n_graphs, n_targets) array of numbers, optional
            Targets.
        """
        from fdgnn.graphs.libraries import to_pyg

        return to_pyg(self, y)

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
            if not -len(self) <= key < len(self):
                raise IndexError(f"graph {key} is out of range for a batch of {len(self)} graphs")
            return self._graph(range(len(self))[key])
        chosen = np.arange(len(self))[key]  # takes X[indices, ...] too, scikit-learn's way
        if chosen.ndim > 1:
            raise IndexError(f"a batch has one dimension, and cannot be indexed by {key!r}")
        return self._graph(int(chosen)) if chosen.ndim == 0 else self._take(chosen)

    def _graph(self, g: int) -> Graph:
        v, w = self.vertex_offsets[g : g + 2].tolist()
        a, b = self.indptr[v], self.indptr[w]
        targets = np.repeat(positions(w - v), np.diff(self.indptr[v : w + 1]))
        smiles = self.smiles
        return Graph(
            edge_index=np.stack([self.neighbors[a:b].astype(np.int64), targets]),
            n_vertices=w - v,
            labels=decoded(self.label_codes, self.label_values, v, w),
            features=None if self.features is None else self.features[v:w],
            weights=None if self.weights is None else self.weights[a:b],
            directed=self.directed,
            edge_labels=decoded(self.edge_label_codes, self.edge_label_values, a, b),
            descriptors=None if self.descriptors is None else self.descriptors.row(g),
            smiles=None if smiles is None else Smiles(smiles.texts[g], smiles.atoms[v:w]),
            vertex_names=None if self.vertex_names is None else self.vertex_names[g],
        )

    def _take(self, chosen: Ints) -> GraphBatch:
        sizes = np.diff(self.vertex_offsets)[chosen]
        vertices = ranges(self.vertex_offsets[chosen], sizes)
        n_neighbors = np.diff(self.indptr)[vertices]
        arcs = ranges(self.indptr[vertices], n_neighbors)
        names = self.vertex_names
        return replace(
            self,
            vertex_offsets=offsets_of(sizes),
            indptr=offsets_of(n_neighbors),
            neighbors=self.neighbors[arcs],
            weights=None if self.weights is None else self.weights[arcs],
            label_codes=None if self.label_codes is None else self.label_codes[vertices],
            features=None if self.features is None else self.features[vertices],
            n_merged_arcs=0,
            edge_label_codes=None if self.edge_label_codes is None else self.edge_label_codes[arcs],
            descriptors=None if self.descriptors is None else self.descriptors.take(chosen),
            smiles=None if self.smiles is None else self.smiles.take(chosen, vertices),
            vertex_names=None if names is None else tuple(names[g] for g in chosen.tolist()),
        )

    def __repr__(self) -> str:
        parts = [
            counted(len(self), "graph"),
            counted(self.n_vertices, "vertex", "vertices"),
            counted(self.n_arcs, "directed edge"),
        ]
        if self.label_values is not None:
            parts.append(counted(len(self.label_values), "vertex label"))
        if self.features is not None:
            parts.append(f"{counted(self.features.shape[1], 'feature')} per vertex")
        if self.edge_label_values is not None:
            parts.append(counted(len(self.edge_label_values), "edge label"))
        if self.descriptors is not None:
            parts.append(counted(len(self.descriptors.names), "descriptor"))
        parts += ["weighted"] * (self.weights is not None) + ["directed"] * self.directed
        return f"GraphBatch({', '.join(parts)})"

    def _repr_html_(self) -> str:
        """Return what notebooks show: counts, and the first molecules, if they are molecules."""
        sizes = np.diff(self.vertex_offsets)
        rows: dict[str, Any] = {"graphs": len(self), "vertices": self.n_vertices}
        if len(self):
            rows["vertices per graph"] = f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.1f}"
        rows["edges"] = self.n_arcs if self.directed else self.n_arcs // 2
        if self.label_values is not None:
            rows["vertex labels"] = cut(", ".join(map(str, self.label_values.tolist())), 60)
        if self.features is not None:
            rows["features per vertex"] = self.features.shape[1]
        if self.edge_label_values is not None:
            rows["edge labels"] = cut(", ".join(map(str, self.edge_label_values.tolist())), 60)
        return f"<div>{self._repr_svg_() or ''}{html_table(rows)}</div>"

    def _repr_svg_(self) -> str | None:
        """Return a picture of the first molecules; None of graphs that are not molecules."""
        return None if self.smiles is None or not len(self) else self.smiles.picture()

    # ------------------------------------------------------------------ facts

    @property
    def n_vertices(self) -> int:
        """The number of vertices of all graphs together."""
        return int(self.vertex_offsets[-1])

    @property
    def n_arcs(self) -> int:
        """The number of arcs after merging; an undirected edge has two, a self-loop one."""
        return len(self.neighbors)

    @property
    def labels(self) -> Array | None:
        """Labels of vertices as given by the user, or None."""
        return decoded(self.label_codes, self.label_values)

    @property
    def edge_labels(self) -> Array | None:
        """Labels of arcs as given by the user, in the order of `neighbors`."""
        return decoded(self.edge_label_codes, self.edge_label_values)

    @cached_property
    def graph_of_vertex(self) -> npt.NDArray[np.int32]:
        """Position in the batch of each vertex's graph."""
        return np.repeat(positions(len(self)).astype(np.int32), np.diff(self.vertex_offsets))

    @cached_property
    def n_self_loops(self) -> int:
        """The number of arcs from a vertex to itself."""
        local = np.arange(self.n_vertices) - self.vertex_offsets[self.graph_of_vertex]
        return int((np.repeat(local, np.diff(self.indptr)) == self.neighbors).sum())

    @cached_property
    def max_degrees(self) -> Floats:
        """Each graph's k: its largest neighborhood, with weights their largest absolute sum."""
        if self.weights is None:
            degrees: Array = np.diff(self.indptr)
        else:
            degrees = np.asarray(abs(self.adjacency()).sum(axis=1)).ravel()
        return np.maximum.reduceat(degrees, self.vertex_offsets[:-1]).astype(np.float64)

    @cached_property
    def average_degree(self) -> float:
        """The paper's k: the mean over graphs of the largest neighborhood."""
        return float(self.max_degrees.mean())

    @property
    def largest_degree(self) -> float:
        """The size of the largest neighborhood of all graphs."""
        return float(self.max_degrees.max())

    @cached_property
    def spectral_radii(self) -> Floats:
        """Each graph's ``rho(|A|)``, as an upper bound, tight to about half a percent."""
        from fdgnn.kernels import radii_of_graphs, spectral_radii

        if self.weights is not None:
            return np.asarray(spectral_radii(*self.structure))
        return np.asarray(radii_of_graphs(self.quotients.bound))

    @cached_property
    def structure(self) -> colors.Structure:
        """The arcs alone, for the kernels."""
        weights = _NO_WEIGHTS if self.weights is None else self.weights
        return colors.Structure(self.vertex_offsets, self.indptr, self.neighbors, weights)

    @cached_property
    def first_colors(self) -> npt.NDArray[np.uint64]:
        """A hash of the data of each vertex: its label, its features, or nothing."""
        from fdgnn.kernels import mix_rows

        if self.label_codes is not None and self.label_values is not None:
            hashes = colors.hash_values(self.label_values.tolist())
            return frozen(looked_up(hashes, self.label_codes))[0]
        found = np.zeros(self.n_vertices, dtype=np.uint64)
        if self.features is not None:
            mix_rows(colors.bits(self.features), found)
        return frozen(found)[0]

    @cached_property
    def arc_colors(self) -> npt.NDArray[np.uint64] | None:
        """A hash of the label of each arc, in the order of `neighbors`, or None."""
        if self.edge_label_codes is None or self.edge_label_values is None:
            return None
        hashes = colors.hash_values(self.edge_label_values.tolist())
        return frozen(looked_up(hashes, self.edge_label_codes))[0]

    @cached_property
    def coloring(self) -> colors.Coloring:
        """The stable color classes of each graph (1-WL)."""
        return colors.refine(self.structure, self.first_colors)

    @cached_property
    def quotients(self) -> colors.Quotients:
        """The distinct graphs of the batch, with vertices of the same color merged into one row."""
        return colors.quotients(self.structure, self.coloring)

    @cached_property
    def colors(self) -> Ints:
        """The stable WL label of each vertex; equal labels have equal numbers in all graphs."""
        before, n_iterations = -1, int(self.coloring.n_iterations.max(initial=0))
        while True:  # two graphs may differ only after more iterations than either needs alone
            refined = colors.refine(self.structure, self.first_colors, n_iterations).colors
            values, found = np.unique(refined, return_inverse=True)
            if len(values) == before:
                return found.astype(np.int64)
            before, n_iterations = len(values), n_iterations + 1

    @property
    def n_distinct_graphs(self) -> int:
        """The number of graphs that color refinement, and so message passing, can distinguish."""
        return len(np.unique(self.coloring.signatures))

    def wl_ceiling(self, y: Any) -> float:
        """Return the best accuracy that any message-passing model can reach on these graphs.

        Graphs that color refinement cannot distinguish get the same prediction, at best their most
        common class.
        """
        _, group = np.unique(self.coloring.signatures, return_inverse=True)
        _, target = np.unique(np.asarray(y), return_inverse=True)
        counts = np.zeros((group.max() + 1, target.max() + 1), dtype=np.int64)
        np.add.at(counts, (group, target), 1)
        return float(counts.max(axis=1).sum() / len(group))

    def adjacency(self) -> sp.csr_array:
        """Return the adjacency matrix of the disjoint union; entry (v, u) is the edge u to v."""
        start = looked_up(self.vertex_offsets, self.graph_of_vertex)
        shift = np.repeat(start, np.diff(self.indptr))
        data = np.ones(self.n_arcs) if self.weights is None else self.weights
        n = self.n_vertices
        return sp.csr_array((data, self.neighbors + shift, self.indptr), shape=(n, n))

    def encode_labels(
        self, vocabulary: Sequence[Any], *, blank: bool = False
    ) -> npt.NDArray[np.int32]:
        """Return the position of each vertex's label in `vocabulary`.

        With `blank`, an unknown label has the position -1.

        Raises
        ------
        UnknownLabelError
            A graph has a label that is not in the vocabulary, unless `blank`.
        """
        if self.label_codes is None or self.label_values is None:
            raise GraphError("the graphs have no vertex labels, but the model was fitted on some")
        known = self._encoded.get((tuple(vocabulary), blank))
        if known is None:
            known = frozen(recoded(self.label_codes, self.label_values, vocabulary))[0]
            # Codes that are the batch's own are those of a vocabulary that lacks nothing.
            if not blank and known is not self.label_codes and (known < 0).any():
                v = int(np.argmax(known < 0))
                label = self.label_values[self.label_codes[v]].item()
                names = ", ".join(map(repr, np.asarray(vocabulary)[:10].tolist()))
                names += ", ..." * (len(vocabulary) > 10)
                raise UnknownLabelError(
                    f"vertex label {label!r} was not seen during fit; known are {names}; "
                    "leave such graphs out (model.valid_graphs does), or fit on data that has "
                    "every label (folds of one batch, as_batch(graphs), share its labels; folds "
                    'of a list do not), or fit with handle_unknown="ignore"',
                    int(self.graph_of_vertex[v]),
                )
            self._encoded[tuple(vocabulary), blank] = known
        return known

    @cached_property
    def _encoded(self) -> dict[tuple[tuple[Any, ...], bool], npt.NDArray[np.int32]]:
        """Codes by vocabulary: the networks of a model have one in common."""
        return {}

"""`WLCounts`: Weisfeiler-Lehman features, counts of the WL labels of all iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats, Ints, entries_of, looked_up, offsets_of
from fdgnn.encoders.base import Encoding, GraphKind
from fdgnn.encoders.label_counts import (
    DEFAULT_FEATURES,
    Buckets,
    LabelCounts,
    LabelFacts,
    WLLabels,
    degrees,
    hashed,
    log_bins,
    quantile_edges,
    sorted_rows,
)
from fdgnn.encoders.registry import register_encoder, take
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import first_new
from fdgnn.graphs.graph import Kind
from fdgnn.limits import MAX_WL_ITERATIONS
from fdgnn.parameters import Number, OneOf, Rule
from fdgnn.records import cached_property
from fdgnn.threads import over_chunks

_AT_ONCE = 2_000_000  # WL labels that one chunk of graphs has at once, about: 16 MB


class WLFacts(LabelFacts, frozen=True, kw_only=True):
    """Facts of WL features in a model file, in addition to parameters and arrays."""

    whole_weights: bool = True
    labeled_arcs: bool = False
    weighted_arcs: bool = False
    arc_vocabulary: tuple[int | str, ...] | None = None  # None where it is not known


class Channels(NamedTuple):
    """First WL labels (C, n_vertices), how often each is refined (C,), and their names."""

    first: WLLabels
    n_iterations: Ints
    names: tuple[str, ...]


class LabelRow(NamedTuple):
    """Which channel and iteration a row of WL labels is of."""

    channel: str
    iteration: int


@dataclass(frozen=True)
class WLParts:
    """Counts of WL labels, and which vertex has which WL label.

    Attributes
    ----------
    graphs : GraphBatch
    features : (n_graphs, n_features) CSR
    columns : (T, n_vertices) int64
        The column of each vertex's feature in each channel and iteration; -1 if it has none.
    labels : (T, n_vertices) uint64
    rows : tuple of LabelRow
        The channel and iteration of each of the T rows.
    """

    graphs: GraphBatch
    features: sp.csr_array
    columns: Ints
    labels: WLLabels
    rows: tuple[LabelRow, ...]

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph.

        The weights of a WL label's features are shared equally by its vertices.
        """
        graph_of_vertex = self.graphs.graph_of_vertex
        shares, X = self.shares(directions, of_graph).sum(axis=0), self.features
        graph = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        each = X.data * entries_of(directions, of_graph[graph], X.indices)
        wanted = np.bincount(graph, each, minlength=X.shape[0])
        lost = wanted - np.add.reduceat(shares, self.graphs.vertex_offsets[:-1])
        return np.asarray(shares + (lost / np.diff(self.graphs.vertex_offsets))[graph_of_vertex])

    def shares(self, directions: Features, of_graph: Ints) -> Floats:
        """Return what each vertex adds in each channel and iteration, (T, n_vertices)."""
        own = of_graph[self.graphs.graph_of_vertex]
        weights = np.where(self.columns >= 0, entries_of(directions, own, self.columns), 0.0)
        weights *= self._amounts
        pairs = zip(self.groups, weights, strict=True)
        return np.stack([(np.bincount(own, row) / np.bincount(own))[own] for own, row in pairs])

    @cached_property
    def groups(self) -> Ints:
        """Number of the (graph, WL label) that each vertex belongs to, by channel and iteration."""
        return np.stack([_numbered(self.graphs.graph_of_vertex, row) for row in self.labels])

    @cached_property
    def _amounts(self) -> Floats:
        """The contribution of each vertex to its column: 1, or less if only presence counts."""
        known = self.columns >= 0
        if self.features.sum() == known.sum():
            return np.ones((1, 1))
        graph = np.broadcast_to(self.graphs.graph_of_vertex, known.shape)
        ones = np.ones(int(known.sum())), (graph[known], self.columns[known])
        often = sp.csr_array(ones, shape=self.features.shape)
        often.sum_duplicates()
        amounts = np.zeros(known.shape)
        whole = entries_of(self.features, graph[known], self.columns[known])
        amounts[known] = whole / entries_of(often, graph[known], self.columns[known])
        return amounts


def _numbered(graph_of_vertex: Array, labels: WLLabels) -> Ints:
    """Number the pairs of graph and WL label in ascending order; vertices are graph after graph."""
    order = np.lexsort((labels, graph_of_vertex))
    graph, label = graph_of_vertex[order], labels[order]
    starts = np.concatenate([[0], (graph[1:] != graph[:-1]) | (label[1:] != label[:-1])])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(starts)
    return numbers


# ---------------------------------------------------------------------- structure


def structure_numbers(graphs: GraphBatch, n_jobs: int | None = None) -> dict[str, Ints]:
    """Describe each vertex by numbers of its neighborhood, each in bins (n_vertices,)."""
    from fdgnn.kernels import count_triangles

    degree = degrees(graphs)
    near, counted = graphs.adjacency(), np.maximum(degree, 1)
    near.data = np.ones(len(near.data), dtype=np.int64)  # whole sums: the order does not matter
    total, squares = near @ degree, near @ degree**2
    smallest, largest = _extremes(graphs, degree)
    work = graphs.indptr[graphs.vertex_offsets]
    triangles = np.zeros(graphs.n_vertices, dtype=np.int64)
    arguments = (graphs.vertex_offsets, graphs.indptr, graphs.neighbors, triangles)
    over_chunks(count_triangles, len(graphs), n_jobs, arguments, lambda: work)
    size = looked_up(np.diff(graphs.vertex_offsets), graphs.graph_of_vertex)
    scaled = {
        "degree": degree,
        "neighbors' mean degree": total / counted,
        "neighbors' largest degree": largest,
        "neighbors' smallest degree": smallest,
        "deviation of neighbors' degrees": np.sqrt(squares * counted - total**2) / counted,
        "triangles": triangles,
    }
    bins = log_bins(np.stack(list(scaled.values())))
    return {
        **dict(zip(scaled, bins, strict=True)),
        "degree over graph size": 20 * degree // size,
        "linked pairs of neighbors": 20 * triangles // np.maximum(degree * (degree - 1) // 2, 1),
    }


#: Numbers that are counted together, too: how they depend on each other tells graphs apart.
PAIRS = (
    ("degree", "neighbors' mean degree"),
    ("degree", "neighbors' largest degree"),
    ("degree", "triangles"),
    ("degree", "degree over graph size"),
    ("degree", "linked pairs of neighbors"),
    ("neighbors' mean degree", "deviation of neighbors' degrees"),
)


def histograms(graphs: GraphBatch, n_jobs: int | None = None) -> list[tuple[str, WLLabels]]:
    """Return WL labels of numbers of each vertex's neighborhood, one by one and in pairs."""
    numbers = structure_numbers(graphs, n_jobs)
    single = [(name, hashed(bins, f"histogram {name}")) for name, bins in numbers.items()]
    paired = [
        (f"{a}, {b}", hashed(np.stack([numbers[a], numbers[b]], axis=1), f"histogram {a}, {b}"))
        for a, b in PAIRS
    ]
    return single + paired


def _extremes(graphs: GraphBatch, degree: Ints) -> tuple[Ints, Ints]:
    """Return the smallest and largest degree of each vertex's neighbors; 0 where there are none."""
    start = looked_up(graphs.vertex_offsets, graphs.graph_of_vertex)
    near = degree[graphs.neighbors + np.repeat(start, np.diff(graphs.indptr))]
    some = np.flatnonzero(degree)
    smallest, largest = np.zeros_like(degree), np.zeros_like(degree)
    if len(some):
        smallest[some] = np.minimum.reduceat(near, graphs.indptr[some])
        largest[some] = np.maximum.reduceat(near, graphs.indptr[some])
    return smallest, largest


# ---------------------------------------------------------------------- labels of edges


WEIGHT_BINS = 8
_MISSING = "{0}, but the model was fitted on graphs with some"
_LARGEST = 2.0**62  # weights beyond are all the same


@dataclass(frozen=True, eq=False)
class EdgeData:
    """Labels and weights of edges in the training graphs.

    Attributes
    ----------
    labeled, weighted : bool
        Whether labels and weights are part of the WL labels.
    whole : bool
        Whether all weights are whole numbers, which are taken as they are; else they are cut into
        bins.
    edges : (WEIGHT_BINS - 1,) float64, or of length 0
        The edges of these bins.
    """

    labeled: bool = False
    weighted: bool = False
    whole: bool = True
    edges: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, graphs: GraphBatch) -> EdgeData:
        """Learn what edges of training graphs carry."""
        labeled, weights = graphs.edge_label_codes is not None, graphs.weights
        if weights is None or (weights == np.round(weights)).all():
            return cls(labeled, weights is not None)
        edges = quantile_edges(weights[:, None], WEIGHT_BINS)[0]
        return cls(labeled, weighted=True, whole=False, edges=edges)

    def bits(self, graphs: GraphBatch) -> WLLabels:
        """Return the hash of what each edge carries; of length 0 where that is nothing."""
        bits = np.empty(0, dtype=np.uint64)
        if graphs.n_arcs == 0:
            return bits
        if self.labeled:
            if graphs.arc_colors is None:
                raise GraphError(_MISSING.format("the graphs have no labels on edges"))
            bits = graphs.arc_colors
        if self.weighted:
            if graphs.weights is None:
                raise GraphError(_MISSING.format("the graphs have no weights"))
            levels = np.searchsorted(self.edges, graphs.weights)
            if self.whole:  # numbers of bins otherwise
                limited = np.clip(graphs.weights, -_LARGEST, _LARGEST)
                levels = np.round(limited).astype(np.int64)
            weights = hashed(levels, "weight")
            bits = bits ^ weights if len(bits) else weights
        return bits

    def kind_error(self, kind: Kind) -> str | None:
        """Return what a graph of this kind lacks; None if nothing."""
        if self.labeled and kind.edge_labels is None:
            return _MISSING.format("the graph has no labels on edges")
        if self.weighted and not kind.weighted:
            return _MISSING.format("the graph has no weights")
        return None


# ---------------------------------------------------------------------- the encoder


@register_encoder
@dataclass(eq=False, repr=False)
class WLCounts(LabelCounts):
    """Weisfeiler-Lehman features: counts of the WL labels of a graph's vertices.

    The first WL label of a vertex is its label. Each iteration hashes it with the WL labels of the
    neighbors, so that after r iterations it identifies the neighborhood up to distance r. A WL
    label is an integer of 64 bits, so no vocabulary is needed. Two different neighborhoods have the
    same WL label with a probability of 2^-64; among a hundred million neighborhoods, there is such
    a pair with a probability of 0.0003.

    Counts are unary-encoded: m vertices with the same WL label are m features, "at least 1" to
    "at least m". The inner product of two graphs is then the histogram intersection, the
    Weisfeiler-Lehman optimal assignment kernel.

    Parameters
    ----------
    n_iterations : int, default=3
        Iterations: the distance up to which a WL label describes the neighborhood.
    vertices : str, default="auto"
        The first WL label: "labels", the vertex label, also if there are real features; "features",
        the real features in bins; "degree"; "log degree", in two bins for each doubling; "nothing",
        the same for all. For molecules also "element", the first word of the label, and
        "pharmacophore": whether the atom is a donor, an acceptor, aromatic, a halogen, basic or
        acidic. By default labels or features, if there are any, or else the degree in bins.
    histograms : bool or "auto", default="auto"
        Whether numbers that describe the neighborhood of a vertex (degrees of its neighbors,
        triangles) are also counted, in bins; by default if vertices have neither labels nor
        features.
    counts : {"unary", "sum", "presence"}, default="unary"
        The number of occurrences of a WL label, unary-encoded or as one number, or only whether it
        occurs.
    n_features : int or None, default=2**18
        Columns, a power of two, into which features are hashed. None: one column for each feature
        of the training graphs; other features are ignored.
    n_bins : int, default=16
        Number of bins of each real feature, quantiles of the training graphs.
    edge_labels : bool, default=True
        Whether WL labels include labels and weights of edges, if there are any. Weights that are
        not integers are binned.
    handle_unknown : {"ignore", "error"}, default="ignore"
        Whether a vertex label that no training graph has is ignored, or raises an error.
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    vocabulary_ : tuple or None
        Vertex labels of the training graphs.
    columns_ : (n_features,) uint64 or None
        With ``n_features=None``: the feature of each column, as an integer of 64 bits.

    Examples
    --------
    >>> from fdgnn import WLCounts
    >>> from fdgnn.datasets import make_motif_graphs
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> X = WLCounts(n_iterations=2).fit_transform(graphs)
    >>> X.shape
    (60, 262144)
    >>> WLCounts(n_iterations=2, n_features=None).fit_transform(graphs).shape  # only used columns
    (60, 2080)
    """

    n_iterations: int = 3
    vertices: str = "auto"
    histograms: bool | str = "auto"
    counts: str = "unary"
    n_features: int | None = DEFAULT_FEATURES
    n_bins: int = 16
    edge_labels: bool = True
    n_jobs: int | None = None
    handle_unknown: str = "ignore"

    kind = "wl"
    depth_parameter = "n_iterations"
    rules: ClassVar[Mapping[str, Rule]] = {
        **LabelCounts.rules,
        "n_iterations": Number(0, whole=True, most=MAX_WL_ITERATIONS),
        "histograms": OneOf(("auto", False, True)),
        "counts": OneOf(("unary", "sum", "presence")),
        "n_features": Buckets(optional=True),
        "edge_labels": OneOf((False, True)),
    }
    Facts = WLFacts

    # ------------------------------------------------------------------ fitting

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        """Learn bins and labels from the training graphs."""
        super()._draw(graphs, seed)
        self.arcs_ = EdgeData.of(graphs) if self.edge_labels else EdgeData()
        arc_values = graphs.edge_label_values if self.arcs_.labeled else None
        self.arc_vocabulary_ = None if arc_values is None else tuple(arc_values.tolist())
        self.columns_ = None
        if self.n_features is None:
            self.columns_ = np.unique(self._all_labels(graphs, self.n_iterations, self.n_jobs)[2])

    # ------------------------------------------------------------------ WL labels

    def _channels(self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None) -> Channels:
        """Return the first WL labels of checked graphs, and how often each is refined.

        Of real features coarse bins are refined, and fine ones only counted.
        """
        found = [(name, first, n_iterations) for name, first in self._first_labels(graphs)]
        if self._first == "features":
            found += [
                (f"feature {j}", hashed(column, f"feature {j}"), 0)
                for j, column in enumerate(self._feature_bins(graphs).T)
            ]
        by_default = self.vertices == "auto" and self.graph_kind_.vertices == "nothing"
        if by_default if self.histograms == "auto" else self.histograms:
            found += [(name, first, 0) for name, first in histograms(graphs, n_jobs)]
        names, first, rounds = zip(*found, strict=True)
        together = first[0][None] if len(first) == 1 else np.stack(first)
        return Channels(together, np.array(rounds, dtype=np.int64), tuple(names))

    # ------------------------------------------------------------------ features

    def encode(
        self, graphs: GraphBatch, depths: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Encoding:
        """Count the WL labels of checked graphs, for each number of iterations."""
        found: list[Features] = []
        for depth in [self.n_iterations] if depths is None else depths:
            if self.n_features is None:
                X = self._own_columns(graphs, depth, n_jobs)
            else:
                X = self._hashed_counts(graphs, depth, self.n_features, n_jobs)
            found.append(X)
        return Encoding(found)

    def _hashed_counts(
        self, graphs: GraphBatch, n_iterations: int, n_features: int, n_jobs: int | None
    ) -> sp.csr_array:
        """Count the WL labels of all channels and iterations in buckets: (n_graphs, n_features)."""
        from fdgnn.kernels import pack_rows

        # 1. Each chunk of graphs fills its own part of the arrays.
        found, arc_bits = self._channels(graphs, n_iterations, n_jobs), self.arcs_.bits(graphs)
        T, offsets = int((found.n_iterations + 1).sum()), graphs.vertex_offsets
        indices = np.empty(T * graphs.n_vertices, dtype=np.int32)
        data = np.empty(len(indices))
        lengths = np.empty(len(graphs), dtype=np.int64)
        buckets = n_features - 1, self.counts == "presence"
        chunks: list[tuple[int, int]] = []

        def count(g0: int, g1: int) -> None:
            labels, ranks = self._wl_labels(graphs, found, arc_bits, g0, g1)
            pack_rows(g0, g1, offsets, labels, ranks, *buckets, indices, data, lengths)
            chunks.append((g0, g1))

        over_chunks(count, len(graphs), n_jobs, (), lambda: T * offsets, most_work=_AT_ONCE)
        # 2. A chunk has its rows together; close the gaps between chunks.
        indptr = offsets_of(lengths)
        for g0, g1 in sorted(chunks):
            to, start, length = indptr[g0], T * offsets[g0], indptr[g1] - indptr[g0]
            if to < start:
                indices[to : to + length] = indices[start : start + length]
                data[to : to + length] = data[start : start + length]
        return sorted_rows(data[: indptr[-1]], indices[: indptr[-1]], indptr, n_features)

    def _wl_labels(
        self, graphs: GraphBatch, found: Channels, arc_bits: WLLabels, g0: int, g1: int
    ) -> tuple[WLLabels, npt.NDArray[np.int32]]:
        """Return WL labels (T, n) in all channels and iterations of vertices of graphs g0 to g1.

        Also the rank of each vertex among those of its graph with its label, if counts are unary;
        else no rows.
        """
        from fdgnn.kernels import number_occurrences, wl_labels

        a, b = graphs.vertex_offsets[[g0, g1]]
        starts = offsets_of(found.n_iterations + 1)
        labels = np.empty((starts[-1], b - a), dtype=np.uint64)
        for row, first in zip(starts.tolist(), found.first[:, a:b], strict=False):
            labels[row] = first
        arcs = graphs.structure, arc_bits, graphs.directed
        wl_labels(g0, g1, *arcs, found.n_iterations, labels)
        ranks = np.empty(labels.shape if self.counts == "unary" else (0, 0), dtype=np.int32)
        if self.counts == "unary":
            number_occurrences(g0, g1, graphs.vertex_offsets, labels, ranks)
        return labels, ranks

    def _own_columns(
        self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None
    ) -> sp.csr_array:
        """Count WL labels that have a column each."""
        assert self.columns_ is not None
        columns = self._columns_of(self._all_labels(graphs, n_iterations, n_jobs)[2])
        known = columns >= 0
        rows = np.broadcast_to(graphs.graph_of_vertex, columns.shape)[known]
        entries: Any = np.ones(len(rows)), (rows, columns[known])
        X: sp.csr_array = sp.csr_array(entries, shape=(len(graphs), len(self.columns_)))
        X.sum_duplicates()
        if self.counts == "presence":
            X.data[:] = 1.0
        return X

    def _all_labels(
        self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None
    ) -> tuple[Channels, WLLabels, WLLabels]:
        """Return channels, and WL labels and keys (T, n_vertices) of all graphs at once.

        Keys are hashes of 64 bits; the columns of `fdgnn.kernels.pack_rows` are their last bits.
        """
        from fdgnn.kernels import mix_all

        found = self._channels(graphs, n_iterations, n_jobs)
        bits = self.arcs_.bits(graphs)
        labels, ranks = self._wl_labels(graphs, found, bits, 0, len(graphs))
        keys = labels + ranks.astype(np.uint64) if len(ranks) else labels.copy()
        mix_all(keys.reshape(-1))
        return found, labels, keys

    def _columns_of(self, keys: WLLabels) -> Ints:
        """Return the column of each feature; -1 if no training graph has it."""
        if self.n_features is not None:
            return (keys & np.uint64(self.n_features - 1)).astype(np.int64)
        assert self.columns_ is not None
        columns = np.minimum(np.searchsorted(self.columns_, keys), len(self.columns_) - 1)
        return np.where(self.columns_[columns] == keys, columns, -1)

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> WLParts:
        """Count WL labels and keep the WL labels of each vertex."""
        found, labels, keys = self._all_labels(graphs, self.n_iterations, n_jobs)
        X: Any = self.encode(graphs, n_jobs=n_jobs).features[0]
        columns = self._columns_of(keys)
        pairs = zip(found.names, found.n_iterations.tolist(), strict=True)
        rows = tuple(LabelRow(name, r) for name, n in pairs for r in range(n + 1))
        return WLParts(graphs, X, columns, labels, rows)

    @property
    def n_counted(self) -> int | None:  # type: ignore[override]
        """The number of features; without hashing one more, for features without a column."""
        n = self.n_features_out
        return n if self.n_features is not None or n is None else n + 1

    def counted(self, graphs: GraphBatch, X: Features) -> sp.csr_array:
        """Return the features; without hashing, also the number of features without a column."""
        if self.n_features is not None:
            return sp.csr_array(X)
        keys = self._all_labels(graphs, self.n_iterations, self.n_jobs)[2]
        new = self._columns_of(keys) < 0
        graph, key = np.broadcast_to(graphs.graph_of_vertex, keys.shape)[new], keys[new]
        if self.counts == "presence":
            pairs = np.stack([graph.astype(np.uint64), key])
            graph = graph[np.unique(pairs, axis=1, return_index=True)[1]]
        others = sp.csr_array(np.bincount(graph, minlength=len(graphs)).astype(np.float64)[:, None])
        return sp.csr_array(sp.hstack([sp.csr_array(X), others], format="csr"))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as ``bucket17``, or ``wl1f3a...`` if each feature has its own column.

        The latter has the 64 bits of the feature, which are the same in every fit;
        `fdgnn.substructures` describes features.
        """
        check_is_fitted(self)
        if self.columns_ is not None:
            return np.array([f"wl{key:016x}" for key in self.columns_.tolist()], dtype=object)
        return super().get_feature_names_out(input_features)

    # ------------------------------------------------------------------ model files

    def facts(self) -> WLFacts:
        """Return the labels of training, and facts about features and weights."""
        return WLFacts(
            vocabulary=self.vocabulary_,
            joint=self.joint_,
            whole_weights=self.arcs_.whole,
            labeled_arcs=self.arcs_.labeled,
            weighted_arcs=self.arcs_.weighted,
            arc_vocabulary=self.arc_vocabulary_,
        )

    def arrays(self) -> dict[str, Array]:
        """Return the boundaries of bins and the columns, if there are any."""
        arrays = super().arrays()
        if not self.arcs_.whole:
            arrays["weight_edges"] = self.arcs_.edges[np.isfinite(self.arcs_.edges)]
        return arrays if self.columns_ is None else arrays | {"columns": self.columns_}

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore and check facts, bin boundaries and columns from a model file."""
        rest = dict(arrays)
        self.arc_vocabulary_ = facts.arc_vocabulary
        edges: Any = np.empty(0)
        if not facts.whole_weights:  # bin boundaries, infinite after the last real one
            edges, most = take(rest, "weight_edges", 1), WEIGHT_BINS - 1
            if len(edges) > most:
                raise ModelFileError(f"WL features have at most {most} bin boundaries for weights")
            if not (edges[1:] >= edges[:-1]).all():
                raise ModelFileError("bin boundaries are not ascending")
            edges = np.concatenate([edges, np.full(most - len(edges), np.inf)])
        self.arcs_ = EdgeData(facts.labeled_arcs, facts.weighted_arcs, facts.whole_weights, edges)
        self.columns_ = None
        if self.n_features is None:  # the feature of each column, ascending
            self.columns_ = take(rest, "columns", 1, np.uint64)
            if len(self.columns_) == 0 or not (self.columns_[1:] > self.columns_[:-1]).all():
                raise ModelFileError("the columns of its WL features do not ascend")
        super().restore(facts, rest, graph_kind)

    # ------------------------------------------------------------------ for users

    @property
    def uses_edge_labels(self) -> bool:  # type: ignore[override]
        """Whether WL labels include labels of edges."""
        return self.arcs_.labeled if hasattr(self, "arcs_") else self.edge_labels

    def unknown_labels(self, graphs: GraphBatch) -> dict[int, str]:
        """Return graphs with an unknown label that is ignored."""
        offsets = np.asarray(graphs.indptr[graphs.vertex_offsets], dtype=np.int64)
        codes, values = graphs.edge_label_codes, graphs.edge_label_values
        new = first_new(self.arc_vocabulary_, codes, values, offsets)
        found = {g: f"edge label {label} was not seen during fit" for g, label in new.items()}
        return found | super().unknown_labels(graphs)

    def kind_error(self, kind: Kind) -> str | None:
        """Return an error if WL labels need labels or weights of edges and there are none."""
        return self.arcs_.kind_error(kind) or super().kind_error(kind)

    def vertex_wl_labels(self, X: Any) -> WLLabels:
        """Return WL labels of all vertices, (n_iterations + 1, n_vertices), in the first channel.

        Equal WL labels mean equal neighborhoods; labels of different iterations differ.
        """
        check_is_fitted(self)
        graphs = self._check_graphs(X)
        return self._all_labels(graphs, self.n_iterations, self.n_jobs)[1][: self.n_iterations + 1]

"""`WLCounts`: Weisfeiler-Lehman features, counts of the WL labels of all iterations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats, Ints, entries_of
from fdgnn.encoders import wl_labels as channels
from fdgnn.encoders.base import Encoding, GraphKind
from fdgnn.encoders.counts import DEFAULT_FEATURES, Buckets, LabelCounts, LabelFacts
from fdgnn.encoders.registry import register_encoder, take
from fdgnn.encoders.wl_labels import ArcReading, Channels, Colors
from fdgnn.exceptions import ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import first_new
from fdgnn.graphs.graph import Kind
from fdgnn.limits import MAX_WL_ITERATIONS
from fdgnn.parameters import Number, OneOf, Rule
from fdgnn.records import cached_property


class WLFacts(LabelFacts, frozen=True, kw_only=True):
    """Facts of WL features in a model file, in addition to parameters and arrays."""

    whole_weights: bool = True
    labeled_arcs: bool = False
    weighted_arcs: bool = False
    arc_vocabulary: list[int | str] | None = None  # None where it is not known


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
    colors : (T, n_vertices) uint64
    rows : tuple of LabelRow
        The channel and iteration of each of the T rows.
    """

    graphs: GraphBatch
    features: sp.csr_array
    columns: Ints
    colors: Colors
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
        return np.stack([_numbered(self.graphs.graph_of_vertex, row) for row in self.colors])

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


def _numbered(graph_of_vertex: Array, colors: Colors) -> Ints:
    """Number the pairs of graph and WL label in ascending order; vertices are graph after graph."""
    order = np.lexsort((colors, graph_of_vertex))
    graph, color = graph_of_vertex[order], colors[order]
    starts = np.concatenate([[0], (graph[1:] != graph[:-1]) | (color[1:] != color[:-1])])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.cumsum(starts)
    return numbers


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

    @classmethod
    def search_space(cls) -> Mapping[str, Any]:
        """Return an empty search space: iterations are searched as depths."""
        return {}

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        """Learn bins and labels from the training graphs."""
        super()._draw(graphs, seed)
        self.arcs_ = ArcReading.of(graphs) if self.edge_labels else ArcReading()
        arc_values = graphs.edge_label_values if self.arcs_.labeled else None
        self.arc_vocabulary_ = None if arc_values is None else tuple(arc_values.tolist())
        self.columns_ = None
        if self.n_features is None:
            self.columns_ = np.unique(self._labels(graphs, self.n_iterations, self.n_jobs)[2])

    # ------------------------------------------------------------------ WL labels

    def _channels(self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None) -> Channels:
        """Return the first WL labels of checked graphs, and how often each is refined.

        Of real features coarse bins are refined, and fine ones only counted.
        """
        found = [(name, first, n_iterations) for name, first in self._first_labels(graphs)]
        if self._first == "features":
            found += [
                (f"feature {j}", channels.hashed(column, f"feature {j}"), 0)
                for j, column in enumerate(self._feature_bins(graphs).T)
            ]
        by_default = self.vertices == "auto" and self.graph_kind_.vertices == "nothing"
        if by_default if self.histograms == "auto" else self.histograms:
            found += [(name, first, 0) for name, first in channels.histograms(graphs, n_jobs)]
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
                X = channels.hashed_counts(
                    graphs, self._channels(graphs, depth, n_jobs), self.arcs_.bits(graphs),
                    self.n_features, self.counts, n_jobs,
                )  # fmt: skip
            found.append(X)
        return Encoding(found)

    def _own_columns(
        self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None
    ) -> sp.csr_array:
        """Count WL labels that have a column each."""
        assert self.columns_ is not None
        columns = self._columns_of(self._labels(graphs, n_iterations, n_jobs)[2])
        known = columns >= 0
        rows = np.broadcast_to(graphs.graph_of_vertex, columns.shape)[known]
        entries: Any = np.ones(len(rows)), (rows, columns[known])
        X: sp.csr_array = sp.csr_array(entries, shape=(len(graphs), len(self.columns_)))
        X.sum_duplicates()
        if self.counts == "presence":
            X.data[:] = 1.0
        return X

    def _labels(
        self, graphs: GraphBatch, n_iterations: int, n_jobs: int | None
    ) -> tuple[Channels, Colors, Colors]:
        """Return channels, and WL labels and keys (T, n_vertices) of all graphs at once.

        Keys are hashes of 64 bits; the columns of `fdgnn.kernels.pack_rows` are their last bits.
        """
        from fdgnn.kernels import mix_all

        found = self._channels(graphs, n_iterations, n_jobs)
        colors = channels.colored(graphs, found, self.arcs_.bits(graphs), 0, len(graphs))
        numbers = channels.numbered(graphs, colors, self.counts, 0, len(graphs))
        keys = colors + numbers.astype(np.uint64) if len(numbers) else colors.copy()
        mix_all(keys.reshape(-1))
        return found, colors, keys

    def _columns_of(self, keys: Colors) -> Ints:
        """Return the column of each feature; -1 if no training graph has it."""
        if self.n_features is not None:
            return (keys & np.uint64(self.n_features - 1)).astype(np.int64)
        assert self.columns_ is not None
        columns = np.minimum(np.searchsorted(self.columns_, keys), len(self.columns_) - 1)
        return np.where(self.columns_[columns] == keys, columns, -1)

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> WLParts:
        """Count WL labels and keep the WL labels of each vertex."""
        found, colors, keys = self._labels(graphs, self.n_iterations, n_jobs)
        X: Any = self.encode(graphs, n_jobs=n_jobs).features[0]
        columns = self._columns_of(keys)
        pairs = zip(found.names, found.n_iterations.tolist(), strict=True)
        rows = tuple(LabelRow(name, r) for name, n in pairs for r in range(n + 1))
        return WLParts(graphs, X, columns, colors, rows)

    @property
    def n_features_out(self) -> int | None:
        """The number of columns."""
        if self.n_features is not None:
            return super().n_features_out
        columns: Colors | None = getattr(self, "columns_", None)
        return None if columns is None else len(columns)

    @property
    def n_counted(self) -> int | None:
        """The number of features; without hashing one more, for features without a column."""
        n = self.n_features_out
        return n if self.n_features is not None or n is None else n + 1

    def counted(self, graphs: GraphBatch, X: Features) -> sp.csr_array:
        """Return the features; without hashing, also the number of features without a column."""
        if self.n_features is not None:
            return sp.csr_array(X)
        keys = self._labels(graphs, self.n_iterations, self.n_jobs)[2]
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
            vocabulary=self._vocabulary_of_file(),
            joint=self.joint_,
            whole_weights=self.arcs_.whole,
            labeled_arcs=self.arcs_.labeled,
            weighted_arcs=self.arcs_.weighted,
            arc_vocabulary=None if self.arc_vocabulary_ is None else list(self.arc_vocabulary_),
        )

    def arrays(self) -> dict[str, Array]:
        """Return the boundaries of bins and the columns, if there are any."""
        arrays = super().arrays()
        if not self.arcs_.whole:
            arrays["weight_edges"] = self.arcs_.edges[np.isfinite(self.arcs_.edges)]
        return arrays if self.columns_ is None else arrays | {"columns": self.columns_}

    def _restore(self, facts: Any, arrays: dict[str, Array], graph_kind: GraphKind) -> None:
        super()._restore(facts, arrays, graph_kind)
        words = facts.arc_vocabulary
        self.arc_vocabulary_ = None if words is None else tuple(words)
        edges: Any = np.empty(0)
        if not facts.whole_weights:  # edges of bins, infinite after the last real one
            edges, most = take(arrays, "weight_edges", 1), channels.WEIGHT_BINS - 1
            if len(edges) > most:
                raise ModelFileError(f"its WL features need at most {most} edges of weights")
            if not (edges[1:] >= edges[:-1]).all():
                raise ModelFileError("the edges of its bins do not ascend")
            edges = np.concatenate([edges, np.full(most - len(edges), np.inf)])
        self.arcs_ = ArcReading(facts.labeled_arcs, facts.weighted_arcs, facts.whole_weights, edges)
        self.columns_ = None
        if self.n_features is None:  # the feature of each column, ascending
            columns = take(arrays, "columns", 1, np.uint64)
            if len(columns) == 0 or not (columns[1:] > columns[:-1]).all():
                raise ModelFileError("the columns of its WL features do not ascend")
            self.columns_ = columns

    # ------------------------------------------------------------------ for users

    @property
    def uses_edge_labels(self) -> bool:
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

    def vertex_wl_labels(self, X: Any) -> Colors:
        """Return WL labels of all vertices, (n_iterations + 1, n_vertices), in the first channel.

        Equal WL labels mean equal neighborhoods; labels of different iterations differ.
        """
        check_is_fitted(self)
        graphs = self._check_graphs(X)
        return self._labels(graphs, self.n_iterations, self.n_jobs)[1][: self.n_iterations + 1]

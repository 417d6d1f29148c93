"""Labels of vertices, WL labels, and `LabelCounts`: what encoders that count them have in common.

A *channel* is one first label for every vertex, and how often it is refined. Vertex labels are one
channel. Graphs without labels get the degree, in bins, and histograms: channels that are not
refined, each a number of the vertex in bins. Real features are cut into bins at the quantiles of
the training graphs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Floats, Ints, looked_up
from fdgnn.encoders.base import HANDLE_UNKNOWN, Encoder, GraphKind, unknown_labels_in_words
from fdgnn.encoders.registry import take
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.colors import hash_values
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.smiles import NOT_MOLECULES
from fdgnn.limits import MAX_BINS, MAX_FEATURES
from fdgnn.parameters import Number, OneOf, Rule
from fdgnn.records import Record

WLLabels = npt.NDArray[np.uint64]

DEFAULT_FEATURES = 2**18
VERTICES = (
    "auto", "labels", "features", "degree", "log degree", "nothing", "element", "pharmacophore",
)  # fmt: skip
COARSE = 4  # bins of a feature that are refined; its fine bins are only counted
SMALL_VOCABULARY = 0.05  # distinct rows of coarse bins per vertex, up to which rows are labels
# Powers of the root of two. Roots and products by powers of two round alike on every machine.
_EDGES = np.sort(np.concatenate([2.0 ** np.arange(1, 64), np.sqrt(2.0) * 2.0 ** np.arange(64)]))


def log_bins(values: Array) -> Ints:
    """Return bins of numbers that are at least 0: two for each time that 1 + value doubles."""
    return np.searchsorted(_EDGES, 1.0 + values, side="right")


def log_bin_ends(bin_: int) -> tuple[float, float]:
    """Return the bounds of a bin: its first number, and the first number above it."""
    return (float(_EDGES[bin_ - 1]) - 1.0 if bin_ else 0.0), float(_EDGES[bin_]) - 1.0


def degrees(graphs: GraphBatch) -> Ints:
    """Count the neighbors of each vertex, in directed graphs those with an edge to it."""
    return np.diff(graphs.indptr)


# ---------------------------------------------------------------------- real numbers


def quantile_edges(values: Floats, n_bins: int) -> Floats:
    """Return inner edges (n_columns, n_bins - 1) of about equally full bins; inf if fewer.

    A column with few distinct values has a bin for each value.
    """
    edges = np.full((values.shape[1], n_bins - 1), np.inf)
    for column, row in zip(values.T, edges, strict=True):
        distinct = np.unique(column)
        if len(distinct) <= n_bins:
            found = (distinct[1:] + distinct[:-1]) / 2
        else:
            found = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))
        row[: len(found)] = found
    return edges


def bins_of(values: Floats, edges: Floats) -> Ints:
    """Return the bin of each value, (n, n_columns)."""
    columns = zip(values.T, edges, strict=True)
    return np.stack([np.searchsorted(row, column) for column, row in columns], axis=1)


def coarse_bins(bins: Ints, edges: Floats) -> Ints:
    """Join bins, so that each column has at most `COARSE` of them."""
    n_bins = np.isfinite(edges).sum(axis=1) + 1
    return np.where(n_bins > COARSE, bins * COARSE // n_bins, bins)


# ---------------------------------------------------------------------- hashes


def hashed(numbers: Array, name: str) -> WLLabels:
    """Return distinct WL labels of integers (n,), or of rows of integers (n, m)."""
    from fdgnn.kernels import mix_rows

    rows = np.atleast_2d(numbers.T).T.astype(np.int64).view(np.uint64)
    salt = np.full((len(rows), 1), hash_values([name])[0], dtype=np.uint64)
    labels = np.empty(len(rows), dtype=np.uint64)
    mix_rows(np.ascontiguousarray(np.hstack([salt, rows])), labels)
    return labels


def sorted_rows(data: Floats, indices: Array, indptr: Ints, n_columns: int) -> sp.csr_array:
    """Return a matrix whose rows are known to have ascending columns, each once."""
    small = indptr[-1] <= np.iinfo(np.int32).max  # SciPy wants indices and indptr of one type
    parts: Any = data, indices, indptr.astype(np.int32) if small else indptr
    X = sp.csr_array(parts, shape=(len(indptr) - 1, n_columns))
    X.has_sorted_indices = X.has_canonical_format = True
    return X


# ---------------------------------------------------------------------- encoders


class LabelFacts(Record, frozen=True, kw_only=True):
    """Facts of label counts in a model file, in addition to parameters and arrays."""

    vocabulary: tuple[int | str, ...] | None
    joint: bool = False


class Buckets:
    """The rule of the parameter `n_features`."""

    def __init__(self, *, optional: bool) -> None:
        self._optional = optional

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is valid."""
        if value is None and self._optional:
            return None
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < 2 or value & (value - 1) != 0:
            return "expected a power of two, at least 2" + ", or None" * self._optional
        return MAX_FEATURES.in_words if MAX_FEATURES.is_below(value) else None


class LabelCounts(Encoder):
    """Counts of vertex labels: where labels come from, and which of them are known.

    A subclass has the parameters `vertices`, `n_features`, `n_bins` and `handle_unknown`, and
    determines what is counted.
    """

    prefers_rbf = True
    sparse = True
    draws = False
    rules: ClassVar[Mapping[str, Rule]] = {
        "vertices": OneOf(VERTICES),
        "n_features": Buckets(optional=False),
        "n_bins": Number(2, whole=True, most=MAX_BINS),
        "handle_unknown": OneOf(HANDLE_UNKNOWN),
    }
    Facts: ClassVar[type[Record]] = LabelFacts

    vertices: str
    n_features: Any  # a power of two, or None where a subclass allows it
    n_bins: int
    handle_unknown: str

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        """Keep which labels the training graphs have, and the edges of the bins of features."""
        values = graphs.label_values
        has = {
            "labels": values is not None or self.graph_kind_.n_label_columns > 0,
            "features": graphs.features is not None,
            "element": values is not None and values.dtype.kind in "UO",
        }
        if self.vertices == "pharmacophore" and graphs.smiles is None:
            raise GraphError(NOT_MOLECULES)
        if not has.get(self.vertices, True):
            raise ValueError(
                f"vertices={self.vertices!r}: the graphs have no vertex {self.vertices}"
            )
        self.vocabulary_ = None if values is None else tuple(values.tolist())
        self.feature_edges_, self.joint_ = np.empty((0, self.n_bins - 1)), False
        if self._first == "features":
            assert graphs.features is not None
            self.feature_edges_ = quantile_edges(graphs.features, self.n_bins)
            bins = bins_of(graphs.features, self.feature_edges_)
            rows = coarse_bins(bins, self.feature_edges_)
            most = max(COARSE, SMALL_VOCABULARY * len(rows))
            self.joint_ = len(np.unique(rows, axis=0)) <= most  # so few that each can be a label

    @property
    def _first(self) -> str:
        """Where first labels come from."""
        if self.vertices != "auto":
            return self.vertices
        found: str = self.graph_kind_.vertices
        return "log degree" if found == "nothing" else found

    # ------------------------------------------------------------------ first labels

    def _first_labels(self, graphs: GraphBatch) -> list[tuple[str, WLLabels]]:
        """Return first labels of checked graphs by name; real features may have several."""
        if not self._ignores_unknown and self.vocabulary_ is not None and self._new_labels(graphs):
            graphs.encode_labels(self.vocabulary_)  # raises the error
        if self._first == "labels":
            if graphs.label_codes is None:  # the last features, zeros and ones, are labels
                assert graphs.features is not None
                ones = graphs.features[:, -self.graph_kind_.n_label_columns :]
                return [("label", hashed(ones, "label"))]
            return [("label", graphs.first_colors)]
        if self._first == "features":
            coarse = coarse_bins(self._feature_bins(graphs), self.feature_edges_)
            if self.joint_:
                return [("features", hashed(coarse, "features"))]
            return [
                (f"feature {j}, coarse", hashed(column, f"coarse {j}"))
                for j, column in enumerate(coarse.T)
            ]
        if self._first == "element":
            assert graphs.label_values is not None
            assert graphs.label_codes is not None
            elements = hash_values(_elements(graphs.label_values.tolist()))
            return [("element", looked_up(elements, graphs.label_codes))]
        if self._first == "pharmacophore":
            if graphs.smiles is None:
                raise GraphError(NOT_MOLECULES)
            features = graphs.smiles.pharmacophores(graphs.graph_of_vertex)
            return [("pharmacophore", hashed(features, "pharmacophore"))]
        if self._first == "nothing":
            nothing = np.zeros(graphs.n_vertices, dtype=np.int64)
            return [("vertex", hashed(nothing, "vertex"))]
        degree = degrees(graphs)
        binned = log_bins(degree) if self._first == "log degree" else degree
        return [(self._first, hashed(binned, self._first))]

    def _feature_bins(self, graphs: GraphBatch) -> Array:
        """Return the bin of each vertex's features, (n_vertices, n_inputs)."""
        assert graphs.features is not None
        return bins_of(graphs.features, self.feature_edges_)

    # ------------------------------------------------------------------ features

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as ``bucket17``."""
        check_is_fitted(self)
        return np.array([f"bucket{i}" for i in range(self.n_features_out or 0)], dtype=object)

    @property
    def n_features_out(self) -> int | None:  # type: ignore[override]
        """The number of buckets, or of columns with ``n_features=None``."""
        columns: WLLabels | None = getattr(self, "columns_", None)
        n_features: int | None = self.n_features if columns is None else len(columns)
        return n_features

    # ------------------------------------------------------------------ model files

    def facts(self) -> Record:
        """Return the labels and the features of the training graphs."""
        return LabelFacts(vocabulary=self.vocabulary_, joint=self.joint_)

    def arrays(self) -> dict[str, Array]:
        """Return the boundaries of bins, if there are any, and how many each feature has.

        A feature with fewer edges than others has zeros after them: files have finite numbers.
        """
        if len(self.feature_edges_) == 0:
            return {}
        real = np.isfinite(self.feature_edges_)
        counts = real.sum(axis=1, dtype=np.int32)
        edges = np.where(real, self.feature_edges_, 0.0)
        return {"feature_edges": edges, "feature_counts": counts}

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore and check facts and edges from a model file."""
        rest = dict(arrays)
        graph_kind.check_vocabulary(facts.vocabulary)
        self.vocabulary_, self.joint_ = facts.vocabulary, facts.joint
        has = [graph_kind.vertices] + ["labels"] * (graph_kind.n_label_columns > 0)
        if self._first in ("labels", "features") and self._first not in has:
            raise ModelFileError(f"labels begin with {self._first}, which its graphs lack")
        self.feature_edges_ = np.empty((0, self.n_bins - 1))
        if self._first == "features":
            # Edges are infinite after the last real one of a feature.
            shape = (graph_kind.n_inputs, self.n_bins - 1)
            edges = take(rest, "feature_edges", 2)
            counts = take(rest, "feature_counts", 1, np.int32)
            if edges.shape != shape or counts.shape != shape[:1]:
                raise ModelFileError(f"bin boundaries must have the shape {shape}")
            if (counts < 0).any() or (counts > shape[1]).any():
                raise ModelFileError("counts of bin boundaries are out of range")
            found = np.where(np.arange(shape[1]) < counts[:, None], edges, np.inf)
            if not (found[:, 1:] >= found[:, :-1]).all():
                raise ModelFileError("bin boundaries are not ascending")
            self.feature_edges_ = found
        super().restore(facts, rest, graph_kind)

    # ------------------------------------------------------------------ unknown labels

    def kind_error(self, kind: Kind) -> str | None:
        """Return an error if labels are computed from molecules and there are none."""
        needed = self._first == "pharmacophore" and not kind.smiles
        return "it" + NOT_MOLECULES.removeprefix("the graphs") if needed else None

    def _new_labels(self, graphs: GraphBatch) -> dict[int, str]:
        known = self.vocabulary_
        if self._first == "pharmacophore":  # an atom of any molecule has some
            return {}
        if self._first == "element" and known is not None and graphs.label_values is not None:
            elements, labels = set(_elements(known)), graphs.label_values.tolist()
            same = zip(labels, _elements(labels), strict=True)
            known = (*known, *(label for label, element in same if element in elements))
        return unknown_labels_in_words(graphs, known)


def _elements(labels: Sequence[Any]) -> list[str]:
    """Return the elements of atoms: the first words of their labels."""
    return [str(label).split(" ", 1)[0] for label in labels]

"""`LabelCounts`: what encoders that count vertex labels have in common, beside what they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, looked_up
from fdgnn.encoders import wl_labels as channels
from fdgnn.encoders.base import HANDLE_UNKNOWN, Encoder, GraphKind, unknown_labels_in_words
from fdgnn.encoders.registry import take
from fdgnn.encoders.wl_labels import Colors
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.colors import hash_values
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.smiles import NOT_MOLECULES
from fdgnn.limits import MAX_BINS, MAX_FEATURES
from fdgnn.parameters import Number, OneOf, Rule
from fdgnn.records import Record

DEFAULT_FEATURES = 2**18
VERTICES = (
    "auto", "labels", "features", "degree", "log degree", "nothing", "element", "pharmacophore",
)  # fmt: skip


class LabelFacts(Record, frozen=True, kw_only=True):
    """Facts of label counts in a model file, in addition to parameters and arrays."""

    vocabulary: list[int | str] | None
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

    A subclass has the parameters `vertices`, `n_features`, `n_bins` and `handle_unknown`, and says
    what is counted.
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
            self.feature_edges_ = channels.quantile_edges(graphs.features, self.n_bins)
            bins = channels.bins_of(graphs.features, self.feature_edges_)
            rows = channels.coarse_bins(bins, self.feature_edges_)
            most = max(channels.COARSE, channels.SMALL_VOCABULARY * len(rows))
            self.joint_ = len(np.unique(rows, axis=0)) <= most  # so few that each can be a label

    @property
    def _first(self) -> str:
        """Where first labels come from."""
        if self.vertices != "auto":
            return self.vertices
        found: str = self.graph_kind_.vertices
        return "log degree" if found == "nothing" else found

    # ------------------------------------------------------------------ first labels

    def _first_labels(self, graphs: GraphBatch) -> list[tuple[str, Colors]]:
        """Return first labels of checked graphs by name; real features may have several."""
        if not self._ignores_unknown and self.vocabulary_ is not None and self._new_labels(graphs):
            graphs.encode_labels(self.vocabulary_)  # raises the error
        if self._first == "labels":
            if graphs.label_codes is None:  # the last features, zeros and ones, are labels
                assert graphs.features is not None
                ones = graphs.features[:, -self.graph_kind_.n_label_columns :]
                return [("label", channels.hashed(ones, "label"))]
            return [("label", graphs.first_colors)]
        if self._first == "features":
            coarse = channels.coarse_bins(self._feature_bins(graphs), self.feature_edges_)
            if self.joint_:
                return [("features", channels.hashed(coarse, "features"))]
            return [
                (f"feature {j}, coarse", channels.hashed(column, f"coarse {j}"))
                for j, column in enumerate(coarse.T)
            ]
        if self._first == "element":
            assert graphs.label_values is not None
            assert graphs.label_codes is not None
            colors = hash_values(_elements(graphs.label_values.tolist()))
            return [("element", looked_up(colors, graphs.label_codes))]
        if self._first == "pharmacophore":
            if graphs.smiles is None:
                raise GraphError(NOT_MOLECULES)
            features = graphs.smiles.pharmacophores(graphs.graph_of_vertex)
            return [("pharmacophore", channels.hashed(features, "pharmacophore"))]
        if self._first == "nothing":
            nothing = np.zeros(graphs.n_vertices, dtype=np.int64)
            return [("vertex", channels.hashed(nothing, "vertex"))]
        degree = channels.degrees(graphs)
        binned = channels.log_bins(degree) if self._first == "log degree" else degree
        return [(self._first, channels.hashed(binned, self._first))]

    def _feature_bins(self, graphs: GraphBatch) -> Array:
        """Return the bin of each vertex's features, (n_vertices, n_inputs)."""
        assert graphs.features is not None
        return channels.bins_of(graphs.features, self.feature_edges_)

    # ------------------------------------------------------------------ features

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return names such as ``bucket17``."""
        check_is_fitted(self)
        return np.array([f"bucket{i}" for i in range(self.n_features_out or 0)], dtype=object)

    @property
    def n_features_out(self) -> int | None:
        """The number of buckets."""
        n_features: int | None = self.n_features
        return n_features

    # ------------------------------------------------------------------ model files

    def facts(self) -> Record:
        """Return the labels and the features of the training graphs."""
        return LabelFacts(vocabulary=self._vocabulary_of_file(), joint=self.joint_)

    def _vocabulary_of_file(self) -> list[int | str] | None:
        return None if self.vocabulary_ is None else list(self.vocabulary_)

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
        self._restore(facts, rest, graph_kind)
        if rest:
            raise ModelFileError(f"it has an array {min(rest)[:40]!r}, which its counts have not")

    def _restore(self, facts: Any, arrays: dict[str, Array], graph_kind: GraphKind) -> None:
        """Restore the arrays that are present."""
        graph_kind.check_vocabulary(facts.vocabulary)
        self.vocabulary_ = None if facts.vocabulary is None else tuple(facts.vocabulary)
        self.joint_ = facts.joint
        has = [graph_kind.vertices] + ["labels"] * (graph_kind.n_label_columns > 0)
        if self._first in ("labels", "features") and self._first not in has:
            raise ModelFileError(f"its labels begin with {self._first}, which its graphs lack")
        self.feature_edges_ = np.empty((0, self.n_bins - 1))
        if self._first == "features":
            # Edges are infinite after the last real one of a feature.
            shape = (graph_kind.n_inputs, self.n_bins - 1)
            edges = take(arrays, "feature_edges", 2)
            counts = take(arrays, "feature_counts", 1, np.int32)
            if edges.shape != shape or counts.shape != shape[:1]:
                raise ModelFileError(f"its counts need edges of bins of the shape {shape}")
            if (counts < 0).any() or (counts > shape[1]).any():
                raise ModelFileError("its counts have more edges of bins than there are")
            found = np.where(np.arange(shape[1]) < counts[:, None], edges, np.inf)
            if not (found[:, 1:] >= found[:, :-1]).all():
                raise ModelFileError("the edges of its bins do not ascend")
            self.feature_edges_ = found

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

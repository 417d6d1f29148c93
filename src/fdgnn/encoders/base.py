"""Encoders: from graphs to features. The rest of the library uses encoders only by this interface.

Estimators, selection, model files, explanations and the page work with every `Encoder`. A new one
is a subclass in a file of its own. It defines

- how it is fitted to graphs (`_draw`), if it has anything to fit;
- how it encodes a batch, at several depths at once (`encode`);
- what each vertex contributed (`attribute`);
- what a model file must hold of it (`Facts`, `facts`, `arrays`, `restore`).

An encoder without depths whose features are sums over vertices only has to give
`vertex_features`; everything else has a default.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NoReturn, Protocol, Self, cast

import msgspec
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from fdgnn.arrays import Array, Features, Floats, Ints, dense, largest_of
from fdgnn.exceptions import (
    ConvergenceWarning,
    FDGNNWarning,
    FeatureError,
    GraphError,
    ModelFileError,
    UnknownLabelWarning,
    frames_of_libraries,
)
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.checks import first_new
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.graph import Kind
from fdgnn.parameters import LARGEST_WHOLE, Jobs, Rule, check_parameters
from fdgnn.records import Record
from fdgnn.schema import InputSchema
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.texts import agreeing

#: What may be done about vertex labels that no training graph has: an error, or nothing.
HANDLE_UNKNOWN = ("error", "ignore")


def unknown_labels_in_words(graphs: GraphBatch, vocabulary: Sequence[Any] | None) -> dict[int, str]:
    """Return messages about graphs with a vertex label outside the vocabulary, by position."""
    codes, values = graphs.label_codes, graphs.label_values
    new = first_new(vocabulary, codes, values, graphs.vertex_offsets)
    return {g: f"vertex label {label} was not seen during fit" for g, label in new.items()}


def warn_unknown_labels(n_unknown: int, n_graphs: int) -> None:
    """Warn the user's own code once if some of the graphs have new labels."""
    if n_unknown:
        verb = agreeing(n_unknown, "has", "have")
        message = f"{n_unknown} of {n_graphs} graphs {verb} {WHAT_IT_MEANS}"
        warnings.warn(message, UnknownLabelWarning, stacklevel=frames_of_libraries())


WHAT_IT_MEANS = (
    "labels or graph-level features that were not seen during fit; the model ignores these, "
    "and predicts from the rest of the graph"
)


class GraphKind(Record, frozen=True, kw_only=True):
    """The kind of graphs of a model: data of vertices and edges, numbers of features."""

    directed: bool
    vertices: Literal["labels", "features", "nothing"]
    # Different labels, features per vertex, or 1; kernels count in 32 bits.
    n_inputs: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)]
    molecules: bool = False  # whether it is known of which molecules they are
    n_label_columns: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_WHOLE)] = 0  # of the features

    @classmethod
    def of(cls, graphs: GraphBatch) -> Self:
        """Return the kind of the graphs of a batch."""
        vertices: Any = "nothing"
        n_inputs = 1
        if graphs.features is not None:
            vertices, n_inputs = "features", graphs.features.shape[1]
        elif graphs.label_values is not None:
            vertices, n_inputs = "labels", len(graphs.label_values)
        return cls(
            directed=graphs.directed,
            vertices=vertices,
            n_inputs=n_inputs,
            molecules=graphs.smiles is not None,
            n_label_columns=0 if graphs.schema is None else len(graphs.schema.label_columns),
        )

    def check(self, graphs: GraphBatch, remedy: Callable[[], str] = str) -> None:
        """Raise GraphError if graphs are of another kind; other vertex labels are no other kind.

        `remedy` returns what is added to a message about vertices that carry something else.
        """
        if len(graphs) == 0:
            return
        found = self._difference(GraphKind.of(graphs), "the graphs are", "the graphs have", remedy)
        if found is not None:
            raise GraphError(found)

    def mismatch(self, kind: Kind, remedy: Callable[[], str] = str) -> str | None:
        """Return why a single graph is of another kind; None if it is of this one."""
        n = kind.n_features
        vertices: Any = "labels" if kind.labels else "nothing" if n is None else "features"
        own = GraphKind(directed=kind.directed, vertices=vertices, n_inputs=1 if n is None else n)
        return self._difference(own, "the graph is", "the graph has", remedy)

    def _difference(
        self, other: GraphKind, are: str, have: str, remedy: Callable[[], str]
    ) -> str | None:
        but = "but the model was fitted on"
        if other.directed != self.directed:
            pair = ("undirected", "directed")
            return f"{are} {pair[other.directed]}, {but} {pair[self.directed]} graphs"
        if other.vertices != self.vertices:
            found, own = _VERTEX_INPUT[other.vertices], _VERTEX_INPUT[self.vertices]
            return f"{have} {found}, {but} graphs with {own}{remedy()}"
        if self.vertices == "features" and other.n_inputs != self.n_inputs:
            return f"{have} {other.n_inputs} features per vertex, {but} {self.n_inputs}"
        return None

    def check_vocabulary(self, words: Sequence[int | str] | None) -> None:
        """Raise ModelFileError unless labels are there where they should be, each once."""
        if words is None:
            fits = self.vertices != "labels"
            fits &= self.n_inputs == 1 or self.vertices == "features"
        else:
            fits = self.vertices == "labels" and len({type(word) for word in words}) == 1
            fits &= len(words) == len(set(words)) == self.n_inputs
        if not fits:
            raise ModelFileError("vertex labels do not fit the kind of the graphs")


_VERTEX_INPUT = {
    "labels": "vertex labels",
    "features": "vertex features",
    "nothing": "no vertex labels",
}


class Convergence(NamedTuple):
    """Convergence of an encoder's iterations on each graph, layer by layer."""

    n_iter: npt.NDArray[np.int32]  # (n_layers, n_graphs)
    residual: Floats  # (n_layers, n_graphs), the last change of the states
    tol: float
    max_iter: int


class Encoding(NamedTuple):
    """The encoding of a batch: features for each requested depth, and convergence."""

    features: list[Features]  # (n_graphs, n_features) each
    convergence: Convergence | None = None  # where something was iterated


class Attribution(Protocol):
    """Features of graphs, and how they are shared by their vertices."""

    @property
    def features(self) -> Features:
        """The features of the deepest encoding, (n_graphs, n_features)."""

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over vertices: (n_vertices,).

        Where features are sparse, directions may be sparse: what they leave out is not needed.
        """


def of_graphs(found: Attribution, directions: Features, of_graph: Ints) -> dict[str, Floats]:
    """Return attributions (n_graphs,) of features of whole graphs, by name; usually empty."""
    split = getattr(found, "of_graphs", None)
    return {} if split is None else dict(split(directions, of_graph))


@dataclass(frozen=True)
class VertexParts:
    """Features of graphs as sums over their vertices.

    Attributes
    ----------
    graphs : GraphBatch
    features : (n_graphs, n_features)
    parts : (n_vertices, n_features)
        Over the vertices of a graph they add up to its features, except for rounding.
    """

    graphs: GraphBatch
    features: Floats
    parts: Floats

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph.

        Returns
        -------
        (n_vertices,) float64
            What rounding took from a sum is shared by the vertices of its graph.
        """
        offsets, graph_of_vertex = self.graphs.vertex_offsets, self.graphs.graph_of_vertex
        own = dense(directions)[of_graph]  # (n_graphs, n_features)
        sums = np.add.reduceat(self.parts, offsets[:-1])
        lost = ((self.features - sums) * own).sum(axis=1) / np.diff(offsets)
        each = np.einsum("vf,vf->v", self.parts, own[graph_of_vertex])
        return np.asarray(each + lost[graph_of_vertex])


class Encoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of all encoders: scikit-learn transformers from graphs to features.

    Attributes
    ----------
    kind : str
        Name of the encoder, as in ``GraphClassifier("reservoir")`` and in model files.
    depth_parameter : str or None
        The parameter whose values share one encoding, because a deep encoding contains the
        shallower ones. None if there is none.
    has_own_kernel : bool
        Whether the features describe a whole graph, and have a separate RBF kernel in a union.
    expansion_factor : int
        Random features that the model draws for each feature of the encoder; 0 for none.
    expansion_norm : float
        Spectral norm of the matrix of these random features.
    prefers_rbf : bool
        Whether RBF kernel ridge regression reads the features better than a linear readout.
    sparse : bool
        Whether features are CSR arrays.
    draws : bool
        Whether the encoder is random, so that several initializations differ.
    uses_edge_labels : bool
        Whether the encoder uses edge labels; otherwise files need not have them.
    kernel_starts : tuple of int
        The first feature of each group with a separate kernel in an RBF readout.
    n_features_out : int or None
        The number of features, if it is known before encoding.
    n_counted : int or None
        The number of columns of `counted`; None if no feature is a count.
    rules : mapping
        Valid values of each parameter.
    Facts : type of Record
        Facts of the encoder in a model file, in addition to its parameters and arrays.
    encoder_parameters : tuple of str
        Parameters that are lists of encoders. A model file has them in the facts, as lists of
        `EncoderRecord` under the same names, instead of in the parameters.
    """

    kind: ClassVar[str]
    depth_parameter: ClassVar[str | None] = None
    has_own_kernel: ClassVar[bool] = False
    expansion_factor: ClassVar[int] = 0
    expansion_norm: ClassVar[float] = 1.0
    prefers_rbf: ClassVar[bool] = False
    sparse: ClassVar[bool] = False
    draws: bool = True
    uses_edge_labels: bool = False
    kernel_starts: tuple[int, ...] = (0,)
    n_features_out: int | None = None
    n_counted: int | None = None
    rules: ClassVar[Mapping[str, Rule]] = {}
    Facts: ClassVar[type[Record]] = Record
    encoder_parameters: ClassVar[tuple[str, ...]] = ()

    random_state: Any = None
    n_jobs: int | None = None
    input_schema_: InputSchema | None = None  # how the graphs of `fit` were read, if that is known

    # ------------------------------------------------------------------ to be overridden

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        """Fit the encoder to checked graphs; by default there is nothing to fit."""

    @classmethod
    def search_space(cls) -> Mapping[str, Any]:
        """Return the default search space: lists or SciPy distributions by parameter."""
        return {}

    @property
    def shown_name(self) -> str:
        """The name of the encoder in messages."""
        return self.kind

    @property
    def named_encoders(self) -> list[tuple[str, Encoder]]:
        """Component encoders by name; by default none."""
        return []

    def ignore_unknown(self, how: str) -> None:
        """Set `handle_unknown`, if the encoder has this parameter."""
        if "handle_unknown" in self.get_params(deep=False):
            self.set_params(handle_unknown=how)

    def data_warnings(self, graphs: GraphBatch) -> list[FDGNNWarning]:
        """Return warnings about data that the fitted encoder does not use."""
        return []

    def vertex_features(self, graphs: GraphBatch) -> Floats:
        """Return what each vertex adds to its graph's features, (n_vertices, n_features)."""
        raise NotImplementedError(f"{type(self).__name__} has no vertex_features")

    def features_of(self, graphs: GraphBatch, n_jobs: int | None = None) -> Features:
        """Return the features of checked graphs; by default, sums of `vertex_features`."""
        return self.attribute(graphs, n_jobs).features

    def encode(
        self, graphs: GraphBatch, depths: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Encoding:
        """Encode checked graphs, for each depth if there are a `depth_parameter` and depths."""
        if depths is not None:
            raise NotImplementedError(f"{type(self).__name__} has depths, but no encode of its own")
        return Encoding([self.features_of(graphs, n_jobs)])

    @classmethod
    def encode_each(
        cls, encoders: Sequence[Self], graphs: GraphBatch, n_jobs: int | None = None
    ) -> list[Encoding]:
        """Encode checked graphs by each of several encoders of this class."""
        return [encoder.encode(graphs, n_jobs=n_jobs) for encoder in encoders]

    @property
    def has_attributions(self) -> bool:
        """Whether `attribute` can attribute features to vertices, as `explain` requires."""
        own, base = type(self), Encoder
        return (
            own.attribute is not base.attribute or own.vertex_features is not base.vertex_features
        )

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> Attribution:
        """Encode checked graphs and keep the contribution of each vertex."""
        parts = np.asarray(self.vertex_features(graphs), dtype=np.float64)
        n_vertices = int(graphs.vertex_offsets[-1])
        if parts.ndim != 2 or len(parts) != n_vertices:
            raise FeatureError(
                f"vertex_features of the encoder {self.shown_name} gave an array of shape "
                f"{parts.shape}; expected a row for each of {n_vertices} vertices"
            )
        return VertexParts(graphs, np.add.reduceat(parts, graphs.vertex_offsets[:-1]), parts)

    @property
    def _ignores_unknown(self) -> bool:
        return getattr(self, "handle_unknown", "ignore") == "ignore"

    def _new_labels(self, graphs: GraphBatch) -> dict[int, str]:
        """Return the positions of graphs with unknown labels, with descriptions."""
        return {}

    def graph_errors(self, graphs: GraphBatch) -> dict[int, str]:
        """Return the positions and errors of graphs that the encoder cannot encode."""
        return {} if self._ignores_unknown else self._new_labels(graphs)

    def kind_error(self, kind: Kind) -> str | None:
        """Return the data that graphs of a kind lack for this encoder; None by default."""
        return None

    def unknown_labels(self, graphs: GraphBatch) -> dict[int, str]:
        """Return the positions of graphs with ignored unknown labels, with descriptions."""
        return self._new_labels(graphs) if self._ignores_unknown else {}

    def counted(self, graphs: GraphBatch, X: Features) -> sp.csr_array:
        """Return counts from features (n, P), with a column for each kind of substructure.

        They determine which substructures of a graph no training graph has (`fdgnn.applicability`).
        """
        raise NotImplementedError(f"{type(self).__name__} counts nothing")

    def facts(self) -> Record:
        """Return the facts of the fitted encoder for a model file."""
        return self.Facts()

    def arrays(self) -> dict[str, Array]:
        """Return arrays of the fitted encoder, for a model file."""
        return {}

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore facts and arrays from a model file, which is untrusted input.

        Raises
        ------
        ModelFileError
            Facts, arrays and parameters are inconsistent.
        """
        if arrays:
            raise ModelFileError(
                f"unexpected array {min(arrays)[:40]!r}, which its encoder does not have"
            )

    def set_seed(self, seed: np.random.SeedSequence) -> None:
        """Set the seed of the encoder."""
        self.seed_ = seed

    def check_parameters(self) -> None:
        """Raise ValueError for the first invalid parameter."""
        check_parameters(self, {**self.rules, "n_jobs": Jobs()})

    # ------------------------------------------------------------------ the same for all

    def draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> Self:
        """Fit the encoder to checked graphs, with this seed."""
        if len(graphs) == 0:
            raise GraphError("no graphs: there is nothing to fit to")
        self.seed_ = seed
        self.input_schema_ = graphs.schema
        self.graph_kind_ = GraphKind.of(graphs)
        self._draw(graphs, seed)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the encoder to graphs; `y` is not used."""
        self.check_parameters()
        graphs = as_batch(X)
        self.draw(graphs, seed_sequence(self.random_state))
        warn_once(self.data_warnings(graphs))
        return self

    def transform(self, X: Any) -> Features:
        """Encode graphs: (n_graphs, n_features)."""
        graphs = self._check_graphs(X)
        if len(graphs) == 0:
            shape = (0, self.n_features_out or 0)
            return sp.csr_array(shape, dtype=np.float64) if self.sparse else np.empty(shape)
        encoding = self.encode(graphs, n_jobs=self.n_jobs)
        check_features(encoding.features[0], len(graphs), self)
        warn_unknown_labels(len(self.unknown_labels(graphs)), len(graphs))
        self._after_encoding(encoding)
        return encoding.features[0]

    def _after_encoding(self, encoding: Encoding) -> None:
        """Record or warn about an encoding; by default do nothing."""

    def _check_graphs(self, X: Any) -> GraphBatch:
        """Convert graphs, and check that they are of the kind that the encoder was fitted on."""
        check_is_fitted(self)
        graphs = as_batch(X, like=self)
        self.graph_kind_.check(graphs)
        return graphs

    def expanded_size(self, n_features: int, n_projections: int | None) -> int:
        """Return the number of random features: as given, or by the encoder's factor."""
        return self.expansion_factor * n_features if n_projections is None else n_projections

    @property
    def n_features_in_(self) -> int:
        """Number of inputs per vertex: distinct labels, features, or 1."""
        check_is_fitted(self)
        return int(self.graph_kind_.n_inputs)

    def __sklearn_is_fitted__(self) -> bool:
        return "graph_kind_" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.non_deterministic = self.draws and self.random_state is None
        return tags


def check_rows(features: Features, n_graphs: int, encoder: Encoder) -> None:
    """Raise FeatureError unless there is a row of features for each graph."""
    if features.shape[0] != n_graphs:
        raise FeatureError(
            f"the encoder {encoder.shown_name} gave {features.shape[0]} rows of features for "
            f"{n_graphs} graphs; expected one for each graph"
        )


def check_features(features: Features, n_graphs: int, encoder: Encoder) -> None:
    """Raise FeatureError unless there is a row of finite numbers for each graph."""
    check_rows(features, n_graphs, encoder)
    values = features.data if sp.issparse(features) else features
    if not np.isfinite(largest_of(values)):
        if sp.issparse(features):
            row = int(np.searchsorted(features.indptr, np.argmin(np.isfinite(values)), "right")) - 1
        else:
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
        raise FeatureError(
            f"the encoder {encoder.shown_name} gave features of graph {row} that are not finite"
        )


def warn_once(data_warnings: Iterable[FDGNNWarning]) -> None:
    """Warn the user's own code, of each category once."""
    first: dict[type[FDGNNWarning], FDGNNWarning] = {}
    for each in data_warnings:
        first.setdefault(type(each), each)
    for warning in first.values():
        warnings.warn(warning, stacklevel=frames_of_libraries())


def encode_each(
    encoders: Sequence[Encoder], graphs: GraphBatch, n_jobs: int | None = None
) -> list[Encoding]:
    """Encode checked graphs by each of several encoders."""
    found: list[Encoding] = []
    for _, alike in groupby(encoders, key=type):
        some = list(alike)
        found += some[0].encode_each(some, graphs, n_jobs)
    for encoder, encoding in zip(encoders, found, strict=True):
        check_rows(encoding.features[0], len(graphs), encoder)
    return found


OF_RESERVOIRS = "lower `effective_spectral_radius` or raise `max_iter` so that they converge"


def warn_unconverged(convergences: Sequence[Convergence], remedy: str = OF_RESERVOIRS) -> None:
    """Warn the user's own code if the states of some graphs did not converge.

    `remedy` is advice if the user has not set the reservoir's parameters.
    """
    tol, max_iter = convergences[0].tol, convergences[0].max_iter
    n_open = [np.count_nonzero(each.residual >= tol) for each in convergences]
    if not any(n_open):  # most often
        return
    residual = np.concatenate([s.residual for s in convergences]).max(axis=0)
    warnings.warn(
        f"{(residual >= tol).sum()} of {len(residual)} graphs did not converge to tol={tol:g} "
        f"within max_iter={max_iter} iterations; the largest last change is "
        f"{residual.max():.3g}, in graph {residual.argmax()}. Their last states are used, as in "
        f"the paper; {remedy}",
        ConvergenceWarning,
        stacklevel=frames_of_libraries(),
    )


class TransformerEncoder(Encoder):
    """Encode graphs by any scikit-learn transformer.

    It gets a `GraphBatch`, a sequence of graphs. It has neither attributions nor model files, which
    contain no code.

    Parameters
    ----------
    transformer : object with `fit` and `transform`
    """

    kind = "transformer"

    has_attributions = False

    def __init__(self, transformer: Any) -> None:
        self.transformer = transformer

    @property
    def shown_name(self) -> str:
        """The transformer's class."""
        return type(self.transformer).__name__

    @property
    def draws(self) -> bool:  # type: ignore[override]
        """Whether it has a `random_state` that is None."""
        parameters: dict[str, Any] = getattr(self.transformer, "get_params", dict)()
        return "random_state" in parameters and parameters["random_state"] is None

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        self.transformer_ = clone(self.transformer, safe=False)
        parameters: dict[str, Any] = getattr(self.transformer_, "get_params", dict)()
        if parameters.get("random_state", 0) is None:
            self.transformer_.set_params(random_state=integer_seed(seed))
        self.transformer_.fit(graphs)

    def features_of(self, graphs: GraphBatch, n_jobs: int | None = None) -> Features:
        """Transform checked graphs."""
        X: Any = self.transformer_.transform(graphs)
        if sp.issparse(X):
            return sp.csr_array(cast(Any, X), dtype=np.float64)
        X = np.asarray(X, dtype=np.float64)
        return np.asarray(X.reshape(len(X), -1))

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> NoReturn:
        """Raise ValueError: a transformer has no attributions of vertices."""
        raise ValueError(
            f"a {self.shown_name} has no attributions; derive it from fdgnn.encoders.Encoder and "
            "give it `attribute`, or `vertex_features`"
        )

    def facts(self) -> Record:
        """Raise ModelFileError: a file cannot hold the transformer."""
        raise ModelFileError(
            f"a {self.shown_name} cannot be saved, because model files hold no code; derive it "
            "from fdgnn.encoders.Encoder with `facts`, `arrays` and `restore`, and register it"
        )

"""`EncoderUnion`: the features of several encoders side by side, in one readout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from fdgnn.arrays import Array, Features, Floats, Ints, dense, grouped, prefixed, spread
from fdgnn.encoders.base import (
    Attribution,
    Encoder,
    Encoding,
    GraphKind,
    check_features,
    check_rows,
    of_graphs,
)
from fdgnn.encoders.registry import (
    EncoderRecord,
    describe_encoder,
    difference,
    register_encoder,
    restore_encoder,
    take,
    take_expansion,
)
from fdgnn.encoders.reservoir import GraphReservoir
from fdgnn.encoders.wl import WLCounts
from fdgnn.exceptions import FDGNNWarning, ModelFileError, UnusedDataWarning
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.graph import Kind
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record
from fdgnn.seeds import seed_sequence


class UnionFacts(Record, frozen=True, kw_only=True):
    """Facts of joined encoders in a model file: a record of each."""

    encoders: list[tuple[str, EncoderRecord]]


@dataclass(frozen=True)
class UnionBlock:
    """One encoder of several: fitted, with the expansion of its features and their scale."""

    encoder: Encoder
    expansion: RandomExpansion | None
    scale: float  # makes the mean squared distance of the training graphs to their mean 1

    def features(self, X: Features) -> sp.csr_array:
        """Return the encoder's features X as the readout sees them."""
        return sp.csr_array(expanded(X, self.expansion) * self.scale)

    @property
    def n_features(self) -> int | None:
        """The number of features of the block, if it is known before encoding."""
        if self.expansion is None:
            return self.encoder.n_features_out
        return len(self.expansion.projection_)

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of a model file."""
        arrays = prefixed("encoder", self.encoder.arrays())
        if self.expansion is not None:
            arrays["projection"] = self.expansion.projection_
        return arrays | {"scale": np.array([self.scale])}

    @classmethod
    def restored(
        cls, record: EncoderRecord, arrays: Mapping[str, Array], graph_kind: GraphKind
    ) -> UnionBlock:
        """Restore a block from a model file."""
        own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
        inner = grouped({name: arrays[name] for name in arrays.keys() - own.keys()})
        encoder = restore_encoder(record, inner.get("encoder", {}), graph_kind)
        expansion = take_expansion(own, encoder, None)
        scale = take(own, "scale", 1)
        if scale.shape != (1,) or not scale[0] > 0:
            raise ModelFileError("a block of its features has no scale above zero")
        if own:
            raise ModelFileError(f"unexpected array {min(own)[:40]!r}, which no block has")
        return cls(encoder, expansion, float(scale[0]))


@register_encoder
@dataclass(eq=False, repr=False)
class EncoderUnion(Encoder):
    """Encoders side by side: their features in blocks of the same scale.

    Parameters
    ----------
    encoders : list of (name, Encoder), optional
        By default ``[("reservoir", GraphReservoir()), ("wl", WLCounts())]``. Parameters of an
        encoder are ``name__parameter``, as in scikit-learn's unions. An encoder's own
        `random_state` overrides that of the union. If an encoder requests a random expansion, its
        block is expanded.
    random_state : int, RandomState, Generator or None, default=None
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    blocks_ : tuple of UnionBlock
        Each has a fitted `encoder`, its `expansion` and its `scale`.

    Examples
    --------
    >>> from fdgnn import WLCounts, GraphReservoir
    >>> from fdgnn.encoders import EncoderUnion
    >>> from fdgnn.datasets import make_cycles
    >>> encoders = [("reservoir", GraphReservoir()), ("wl", WLCounts(n_features=1024))]
    >>> encoder = EncoderUnion(encoders, random_state=0)
    >>> encoder.fit_transform(make_cycles([3, 4, 5])).shape
    (3, 1124)
    """

    encoders: Sequence[tuple[str, Encoder]] | None = None
    random_state: Any = None
    n_jobs: int | None = None

    kind = "union"
    prefers_rbf = True
    sparse = True
    Facts = UnionFacts
    encoder_parameters = ("encoders",)

    @property
    def named_encoders(self) -> list[tuple[str, Encoder]]:
        """The encoders that are given, or the default ones."""
        if self.encoders is None:
            return [("reservoir", GraphReservoir()), ("wl", WLCounts())]
        return list(self.encoders)

    @property
    def _encoders(self) -> list[Encoder]:
        """The encoders, fitted if the union is."""
        blocks = getattr(self, "blocks_", ())
        return [block.encoder for block in blocks] or [own for _, own in self.named_encoders]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return parameters; with `deep`, also those of the encoders, as ``name__parameter``."""
        found: dict[str, Any] = super().get_params(deep=False)
        for name, encoder in self.named_encoders if deep and self.encoders is not None else ():
            found[name] = encoder
            found |= {f"{name}__{k}": v for k, v in encoder.get_params(deep=True).items()}
        return found

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the union or of its encoders."""
        own = {name: params.pop(name) for name in super().get_params(False) if name in params}
        super().set_params(**own)
        if params:
            named = dict(self.named_encoders)
            replaced = {name: params.pop(name) for name in named if name in params}
            self.encoders = list((named | replaced).items())
            super().set_params(**params)
        return self

    def check_parameters(self) -> None:
        """Raise ValueError for objects that are not encoders, and for invalid parameters."""
        named = self.named_encoders
        if len(named) == 0:
            raise ValueError("encoders is empty: give the encoders to join")
        for pair in named:
            is_pair = isinstance(pair, tuple) and len(pair) == 2  # type: ignore[redundant-expr]
            if not (is_pair and isinstance(pair[0], str)):
                raise ValueError(f"encoders has {pair!r}; expected (name, encoder)")
            name, encoder = pair
            if not isinstance(encoder, Encoder):
                raise ValueError(
                    f"encoders has a {type(encoder).__name__}, which is not an encoder"
                )
            if "__" in name or name in super().get_params(False):
                raise ValueError(f"encoders has the name {name!r}; choose one without '__'")
            encoder.check_parameters()
        own = [encoder.has_own_kernel for _, encoder in named]
        if own != sorted(own):
            raise ValueError("encoders has features of whole graphs before others; list them last")
        if len({name for name, _ in named}) < len(named):
            raise ValueError("encoders has a name twice; names must differ")

    @property
    def draws(self) -> bool:  # type: ignore[override]
        """Whether one of the encoders is random."""
        return any(encoder.draws for encoder in self._encoders)

    def data_warnings(self, graphs: GraphBatch) -> list[FDGNNWarning]:
        """Return the warnings about data that no encoder uses.

        In a union with a reservoir, WL features use all vertex labels.
        """
        found = [w for encoder in self._encoders for w in encoder.data_warnings(graphs)]
        if self.n_counted is not None:
            return [w for w in found if not isinstance(w, UnusedDataWarning)]
        return found

    def ignore_unknown(self, how: str) -> None:
        """Set `handle_unknown` of all encoders."""
        named = self.named_encoders
        for _, encoder in named:
            encoder.ignore_unknown(how)
        self.encoders = named

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        blocks = []
        for _, given in self.named_encoders:
            own = given.random_state
            root = seed if own is None else seed_sequence(own)
            encoder = clone(given).draw(graphs, root)
            X: Features = encoder.encode(graphs, n_jobs=self.n_jobs).features[0]
            check_features(X, len(graphs), encoder)
            P = encoder.expanded_size(X.shape[1], None)
            norm = encoder.expansion_norm
            expansion = RandomExpansion(P).draw(X.shape[1], root, norm) if P else None
            size = spread(expanded(X, expansion))
            scale = float(1 / np.sqrt(size)) if size > 0 else 1.0
            blocks.append(UnionBlock(encoder, expansion, scale))
        self.blocks_ = tuple(blocks)

    def encode(
        self, graphs: GraphBatch, depths: Sequence[int] | None = None, n_jobs: int | None = None
    ) -> Encoding:
        """Encode checked graphs by all encoders."""
        parts, convergence = [], None
        for block in self.blocks_:
            encoding = block.encoder.encode(graphs, n_jobs=n_jobs)
            check_rows(encoding.features[0], len(graphs), block.encoder)
            parts.append(block.features(encoding.features[0]))
            convergence = convergence or encoding.convergence
        X = sp.csr_array(sp.hstack(parts, format="csr"))
        return Encoding([X], convergence)

    @property
    def has_attributions(self) -> bool:
        """Whether all of the encoders have attributions."""
        return all(encoder.has_attributions for encoder in self._encoders)

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> UnionParts:
        """Encode checked graphs and keep the contribution of each vertex to each block."""
        found = [block.encoder.attribute(graphs, n_jobs) for block in self.blocks_]
        return UnionParts(self.blocks_, tuple(found))

    @property
    def uses_edge_labels(self) -> bool:  # type: ignore[override]
        """Whether one of the encoders uses labels of edges."""
        return any(encoder.uses_edge_labels for encoder in self._encoders)

    def kind_error(self, kind: Kind) -> str | None:
        """Return what graphs lack for one of the encoders."""
        return next(filter(None, (own.kind_error(kind) for own in self._encoders)), None)

    def graph_errors(self, graphs: GraphBatch) -> dict[int, str]:
        """Return graphs that one of the encoders cannot encode."""
        each = (encoder.graph_errors(graphs) for encoder in reversed(self._encoders))
        return {g: error for errors in each for g, error in errors.items()}

    def unknown_labels(self, graphs: GraphBatch) -> dict[int, str]:
        """Return graphs with unknown labels that all encoders ignore."""
        errors = self.graph_errors(graphs)
        each = (encoder.unknown_labels(graphs) for encoder in reversed(self._encoders))
        found = {g: words for unknown in each for g, words in unknown.items()}
        return {g: found[g] for g in sorted(found) if g not in errors}

    @property
    def kernel_starts(self) -> tuple[int, ...]:  # type: ignore[override]
        """The first column of each kernel: of blocks that share one, then of those that do not."""
        width = sum(
            block.n_features or 0 for block in self.blocks_ if not block.encoder.has_own_kernel
        )
        return (0,) if width in (0, self.n_features_out) else (0, width)

    @property
    def n_features_out(self) -> int | None:  # type: ignore[override]
        """The number of features of all blocks, if it is known before encoding."""
        widths = [block.n_features for block in getattr(self, "blocks_", ())]
        return None if not widths or None in widths else sum(width or 0 for width in widths)

    @property
    def n_counted(self) -> int | None:  # type: ignore[override]
        """The number of columns of all blocks with counts."""
        known = [block.encoder.n_counted for block in getattr(self, "blocks_", ())]
        return sum(n for n in known if n is not None) or None

    def counted(self, graphs: GraphBatch, X: Features) -> sp.csr_array:
        """Return the counts of the blocks, side by side."""
        parts, start = [], 0
        for block in self.blocks_:
            width = block.n_features or 0
            if block.encoder.n_counted is not None:
                own: Features = X[:, start : start + width] * (1.0 / block.scale)
                parts.append(block.encoder.counted(graphs, own))
            start += width
        return sp.csr_array(sp.hstack(parts, format="csr"))

    # ------------------------------------------------------------------ model files

    def facts(self) -> UnionFacts:
        """Describe the encoders of all blocks."""
        fitted, named = self._encoders, self.named_encoders
        if len(fitted) != len(named) or any(map(difference, fitted, dict(named).values())):
            raise ModelFileError("encoders are not those that were fitted; fit the model again")
        pairs = zip(dict(named), fitted, strict=True)
        return UnionFacts(encoders=[(name, describe_encoder(encoder)) for name, encoder in pairs])

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of all blocks; a name begins with the number of the block."""
        found: dict[str, Array] = {}
        for i, block in enumerate(self.blocks_):
            found |= prefixed(str(i), block.arrays())
        return found

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore and check all blocks from a model file."""
        groups = grouped(arrays)
        self.blocks_ = tuple(
            UnionBlock.restored(record, groups.pop(str(i), {}), graph_kind)
            for i, (_, record) in enumerate(facts.encoders)
        )
        if groups:
            raise ModelFileError(f"unexpected arrays {min(groups)[:40]!r}, but no such block")
        if (self.n_features_out or 0) > LARGEST_WHOLE:
            raise ModelFileError("blocks have more features together than can be counted")

    def set_seed(self, seed: np.random.SeedSequence) -> None:
        """Set the seed of all blocks whose encoders do not have their own."""
        super().set_seed(seed)
        for block in getattr(self, "blocks_", ()):
            own = block.encoder.random_state
            block.encoder.set_seed(seed if own is None else seed_sequence(own))


@dataclass(frozen=True)
class UnionParts:
    """The blocks of graphs' features, each with what its vertices contributed."""

    blocks: tuple[UnionBlock, ...]
    parts: tuple[Attribution, ...]

    @property
    def features(self) -> sp.csr_array:
        """All blocks side by side, (n_graphs, n_features)."""
        pairs = zip(self.blocks, self.parts, strict=True)
        found = [block.features(part.features) for block, part in pairs]
        return sp.csr_array(sp.hstack(found, format="csr"))

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph."""
        split = self.split(directions, of_graph)
        return np.asarray(sum(part.contributions(own, of) for part, own, of in split))

    def of_graphs(self, directions: Features, of_graph: Ints) -> dict[str, Floats]:
        """Return contributions (n_graphs,) of what belongs to no vertex, by name."""
        found: dict[str, Floats] = {}
        for part, own, of in self.split(directions, of_graph):
            found |= of_graphs(part, own, of)
        return found

    def split(self, directions: Features, of_graph: Ints) -> Iterator[tuple[Any, Features, Ints]]:
        """Yield each encoder with the directions of its own features."""
        start = 0
        for block, part in zip(self.blocks, self.parts, strict=True):
            X = part.features
            width = X.shape[1] if block.expansion is None else len(block.expansion.projection_)
            own: Features = directions[:, start : start + width] * block.scale
            start += width
            if block.expansion is None:
                yield part, own, of_graph
            else:
                own = block.expansion.mean_gradient(dense(X), dense(own)[of_graph])
                yield part, own, np.arange(len(own))

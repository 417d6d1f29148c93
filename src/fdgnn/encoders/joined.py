"""`JoinedEncoder`: the features of several encoders side by side, in one readout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, Ints, dense, grouped, prefixed, spread
from fdgnn.encoders.base import Attribution, Encoder, Encoding, GraphKind
from fdgnn.encoders.records import (
    EncoderRecord,
    describe_encoder,
    difference,
    restore_encoder,
    take,
    take_expansion,
)
from fdgnn.exceptions import ModelFileError
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.union import Kind
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record


class JoinedFacts(Record, frozen=True, kw_only=True):
    """What a model file says of joined encoders: a record of each."""

    encoders: list[EncoderRecord]


@dataclass(frozen=True)
class JoinedBlock:
    """One encoder of several: fitted, with the expansion of its features and their scale."""

    encoder: Encoder
    expansion: RandomExpansion | None
    scale: float  # makes the mean squared distance of the training graphs to their mean 1

    def features(self, encoding: Encoding) -> sp.csr_array:
        """Features as the readout sees them."""
        return sp.csr_array(expanded(encoding.features[0], self.expansion)) * self.scale

    @property
    def n_features(self) -> int | None:
        """How many features the block has, if its encoder knows it before it encodes."""
        if self.expansion is None:
            return self.encoder.n_features_out
        return len(self.expansion.projection_)

    def arrays(self) -> dict[str, Array]:
        """Give what a model file keeps."""
        arrays = prefixed("encoder", self.encoder.arrays())
        if self.expansion is not None:
            arrays["projection"] = self.expansion.projection_
        return arrays | {"scale": np.array([self.scale])}

    @classmethod
    def restored(
        cls, record: EncoderRecord, arrays: Mapping[str, Array], graph_kind: GraphKind
    ) -> JoinedBlock:
        """Take a block from a model file."""
        own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
        inner = grouped({name: arrays[name] for name in arrays.keys() - own.keys()})
        encoder = restore_encoder(record, inner.get("encoder", {}), graph_kind)
        expansion = take_expansion(own, encoder, None)
        scale = take(own, "scale", 1)
        if scale.shape != (1,) or not scale[0] > 0:
            raise ModelFileError("a block of its features has no scale above zero")
        if own:
            raise ModelFileError(f"it has an array {min(own)[:40]!r}, which no block has")
        return cls(encoder, expansion, float(scale[0]))


class JoinedEncoder(Encoder):
    """Put the features of several encoders side by side, each block scaled to the same size.

    Parameters
    ----------
    encoders : sequence of Encoder
        For instance ``(GraphReservoir(), ColorCounts())``, which ``encoder="both"`` stands for:
        the reservoir sees far, colors see near and exactly. Where an encoder asks for a random
        expansion, its block is expanded.
    random_state : int, RandomState, Generator or None, default=None
    n_jobs : int, optional
        Threads; results do not depend on their number.

    Attributes
    ----------
    blocks_ : tuple of JoinedBlock
        Each has a fitted `encoder`, its `expansion` and its `scale`.

    Examples
    --------
    >>> from fdgnn import ColorCounts, GraphReservoir
    >>> from fdgnn.encoders import JoinedEncoder
    >>> from fdgnn.datasets import make_cycles
    >>> encoder = JoinedEncoder((GraphReservoir(), ColorCounts(n_buckets=1024)), random_state=0)
    >>> encoder.fit_transform(make_cycles([3, 4, 5])).shape
    (3, 1124)
    """

    kind = "both"
    default_alpha = None
    relative_penalty = True
    gaussian_readout = True
    Facts = JoinedFacts
    encoder_parameters = ("encoders",)

    def __init__(
        self, encoders: Sequence[Encoder] = (), random_state: Any = None, n_jobs: int | None = None
    ) -> None:
        self.encoders = encoders
        self.random_state = random_state
        self.n_jobs = n_jobs

    def check_parameters(self) -> None:
        """Raise ValueError for encoders that are none, and for their wrong parameters."""
        if len(self.encoders) == 0:
            raise ValueError("encoders is empty: give the encoders to join")
        for encoder in self.encoders:
            if not isinstance(encoder, Encoder):
                raise ValueError(f"encoders has a {type(encoder).__name__}, which is no encoder")
            encoder.check_parameters()

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        from fdgnn.scikit import clone

        drawn = [clone(encoder).draw(graphs, seed) for encoder in self.encoders]
        self.blocks_ = tuple(_block(encoder, graphs, seed, self.n_jobs) for encoder in drawn)

    def encode(
        self,
        graphs: GraphBatch,
        depths: Sequence[int] | None = None,
        n_jobs: int | None = None,
    ) -> Encoding:
        """Encode checked graphs by all encoders."""
        found = [block.encoder.encode(graphs, n_jobs=n_jobs) for block in self.blocks_]
        parts = [b.features(encoding) for b, encoding in zip(self.blocks_, found, strict=True)]
        settlings = [encoding.settling for encoding in found if encoding.settling is not None]
        X = sp.csr_array(sp.hstack(parts, format="csr"))
        return Encoding(
            [X] * (1 if depths is None else len(depths)), settlings[0] if settlings else None
        )

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> JoinedParts:
        """Encode checked graphs and keep what each vertex contributed to each block."""
        found = [block.encoder.attribute(graphs, n_jobs) for block in self.blocks_]
        return JoinedParts(self.blocks_, tuple(found))

    @property
    def uses_arc_labels(self) -> bool:
        """Whether one of the encoders uses labels of arcs."""
        blocks = getattr(self, "blocks_", ())
        encoders = [block.encoder for block in blocks] or self.encoders
        return any(encoder.uses_arc_labels for encoder in encoders)

    def lacking(self, kind: Kind) -> str | None:
        """What one of the encoders needs."""
        found = (block.encoder.lacking(kind) for block in self.blocks_)
        return next(filter(None, found), None)

    def refusals(self, graphs: GraphBatch) -> dict[int, str]:
        """Graphs that one of the encoders cannot take."""
        found: dict[int, str] = {}
        for block in reversed(self.blocks_):
            found |= block.encoder.refusals(graphs)
        return found

    def unseen(self, graphs: GraphBatch) -> dict[int, str]:
        """Graphs with labels that one of the encoders has not seen, though all take them."""
        refused, found = self.refusals(graphs), dict[int, str]()
        for block in reversed(self.blocks_):
            found |= block.encoder.unseen(graphs)
        return {g: found[g] for g in sorted(found) if g not in refused}

    def no_features(self) -> sp.csr_array:
        """Features of no graphs, sparse as those of others."""
        return sp.csr_array((0, self.n_features_out or 0), dtype=np.float64)

    @property
    def n_features_out(self) -> int | None:
        """The features of all blocks, if their encoders know them before they encode."""
        widths = [block.n_features for block in getattr(self, "blocks_", ())]
        known = [width for width in widths if width is not None]
        return sum(known) if widths and len(known) == len(widths) else None

    @property
    def n_counted(self) -> int | None:
        """The columns of all blocks that count something."""
        known = [block.encoder.n_counted for block in getattr(self, "blocks_", ())]
        counting = [n for n in known if n is not None]
        return sum(counting) if counting else None

    def counted(self, graphs: GraphBatch, X: Features) -> sp.csr_array:
        """Give what the blocks count, side by side."""
        parts, start = [], 0
        for block in self.blocks_:
            width = block.n_features or 0
            if block.encoder.n_counted is not None:
                own: Features = X[:, start : start + width] * (1.0 / block.scale)
                parts.append(block.encoder.counted(graphs, own))
            start += width
        return sp.csr_array(sp.hstack(parts, format="csr"))

    # ------------------------------------------------------------------ model files

    def facts(self) -> JoinedFacts:
        """Describe the encoders of all blocks."""
        fitted = [block.encoder for block in self.blocks_]
        if len(fitted) != len(self.encoders) or any(map(difference, fitted, self.encoders)):
            raise ModelFileError("its encoders are not those that were fitted; fit it again")
        return JoinedFacts(encoders=[describe_encoder(encoder) for encoder in fitted])

    def arrays(self) -> dict[str, Array]:
        """Give the arrays of all blocks; a name begins with the number of the block."""
        found: dict[str, Array] = {}
        for i, block in enumerate(self.blocks_):
            found |= prefixed(str(i), block.arrays())
        return found

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Take all blocks from a model file, each checked."""
        groups = grouped(arrays)
        self.blocks_ = tuple(
            JoinedBlock.restored(record, groups.pop(str(i), {}), graph_kind)
            for i, record in enumerate(facts.encoders)
        )
        if groups:
            raise ModelFileError(f"it has arrays {min(groups)[:40]!r}, but no such block")
        if (self.n_features_out or 0) > LARGEST_WHOLE:
            raise ModelFileError("its blocks have more features together than can be counted")

    def take_seed(self, seed: np.random.SeedSequence) -> None:
        """Keep the seed, which is that of all blocks."""
        super().take_seed(seed)
        for block in getattr(self, "blocks_", ()):
            block.encoder.take_seed(seed)


def _block(
    encoder: Encoder, graphs: GraphBatch, seed: np.random.SeedSequence, n_jobs: int | None
) -> JoinedBlock:
    X: Features = encoder.encode(graphs, n_jobs=n_jobs).features[0]
    P = encoder.expanded_size(X.shape[1], None)
    expansion = RandomExpansion(P).draw(X.shape[1], seed) if P else None
    size = spread(expanded(X, expansion))
    return JoinedBlock(encoder, expansion, float(1 / np.sqrt(size)) if size > 0 else 1.0)


@dataclass(frozen=True)
class JoinedParts:
    """The blocks of graphs' features, each with what its vertices contributed."""

    blocks: tuple[JoinedBlock, ...]
    parts: tuple[Attribution, ...]

    @property
    def features(self) -> sp.csr_array:
        """All blocks side by side, (n_graphs, n_features)."""
        pairs = zip(self.blocks, self.parts, strict=True)
        found = [block.features(Encoding([part.features])) for block, part in pairs]
        return sp.csr_array(sp.hstack(found, format="csr"))

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Split ``features[g] @ directions[of_graph[g]]`` over the vertices of each graph."""
        split = self.split(directions, of_graph)
        return np.asarray(sum(part.contributions(own, of) for part, own, of in split))

    def split(
        self, directions: Features, of_graph: Ints
    ) -> Iterator[tuple[Attribution, Features, Ints]]:
        """Give each encoder's part, with the directions of its own features."""
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

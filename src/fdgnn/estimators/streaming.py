"""Training piece by piece (`partial_fit`): what is kept of the pieces, and the readouts of it.

*Dense features* (a reservoir): moments add, so that nothing of a piece is kept but its share in
them. *Sparse features* (colors): the encoded rows are kept, some hundred bytes a graph, as the
moments of hashed columns would be larger than these; the readout is solved from all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats
from fdgnn.committee import Member
from fdgnn.encoders import ColorCounts, Encoder, Encoding, GraphReservoir
from fdgnn.expansion import RandomExpansion, expanded
from fdgnn.graphs import GraphBatch
from fdgnn.networks import DrawnNetwork, Network, draw_expansion, many_or_none
from fdgnn.readout.linear import LinearReadout
from fdgnn.readout.ridge import Moments


class StreamedNetwork(NamedTuple):
    """A network whose readout is trained on pieces."""

    member: Member
    encoder: Encoder
    expansion: RandomExpansion | None

    @classmethod
    def draw(
        cls, member: Member, graphs: GraphBatch, seed: np.random.SeedSequence, n: int | None
    ) -> StreamedNetwork:
        """Draw a network for graphs like these, with so many random features."""
        encoder = member.encoder.draw(graphs, seed)
        width = encoder.n_features_out or encoder.encode(graphs[:1]).features[0].shape[1]
        return cls(member, encoder, draw_expansion(encoder, width, n, seed))

    def features(self, graphs: GraphBatch, n_jobs: int | None) -> Features:
        """What the readout sees of a piece."""
        return expanded(self.encoder.encode(graphs, n_jobs=n_jobs).features[0], self.expansion)

    def drawn(self, X: Features) -> DrawnNetwork:
        """Give the network with the features of all pieces."""
        return DrawnNetwork(self.member, self.encoder, self.expansion, Encoding([X]), X)

    def solved(self, moments: Moments, alpha: float) -> Network:
        """Train the readout from moments of all pieces."""
        coef, intercept = moments.solve(alpha)
        readout = LinearReadout(np.ascontiguousarray(coef), intercept)
        return Network(self.encoder, self.expansion, readout, alpha, self.member.name)


@dataclass
class Pieces:
    """All that is kept of the pieces so far."""

    networks: list[StreamedNetwork]
    moments: list[Moments] = field(default_factory=list)  # of each dense network
    rows: list[list[Any]] = field(default_factory=list)  # of each sparse network
    targets: list[Any] = field(default_factory=list)
    signatures: list[Any] = field(default_factory=list)
    n_graphs: int = 0

    @property
    def sparse(self) -> bool:
        """Whether encoded rows are kept."""
        return isinstance(self.networks[0].encoder, ColorCounts)

    def add(self, graphs: GraphBatch, y: Array, Y: Floats, n_jobs: int | None) -> None:
        """Take a piece with targets y, coded as Y (n, q)."""
        self.n_graphs += len(graphs)
        found = [network.features(graphs, n_jobs) for network in self.networks]
        if self.sparse:
            self.rows = self.rows or [[] for _ in found]
            for kept, X in zip(self.rows, found, strict=True):
                kept.append(X)
            self.targets.append(y)
            self.signatures.append(graphs.coloring.signatures)
            return
        own = [Moments.of(np.asarray(X), Y) for X in found]
        pairs = zip(self.moments or own, own, strict=True)
        self.moments = [a.with_part(b) for a, b in pairs] if self.moments else own

    def many_signatures(self) -> Array | None:
        """What folds of many graphs depend on; None of few."""
        return many_or_none(np.concatenate(self.signatures))

    def all_rows(self) -> list[sp.csr_array]:
        """The encoded rows of all pieces, of each network; they lie together from now on."""
        self.rows = [[sp.csr_array(sp.vstack(kept, format="csr"))] for kept in self.rows]
        return [kept[0] for kept in self.rows]


def check_streamed(encoder: Any) -> None:
    """Raise ValueError for an encoder that cannot be trained piece by piece."""
    if not isinstance(encoder, GraphReservoir | ColorCounts):
        raise ValueError(
            f"partial_fit is for a reservoir or colors, not for {type(encoder).__name__}; "
            "fit_batches takes pieces for other models"
        )
    if isinstance(encoder, ColorCounts) and encoder.n_buckets is None:
        raise ValueError("partial_fit needs hashed colors; give `n_buckets` a number")

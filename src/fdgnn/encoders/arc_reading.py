"""What colors read of arcs: their labels, and their weights as whole numbers or in bins."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fdgnn.arrays import Floats, Ints
from fdgnn.encoders import channels
from fdgnn.encoders.channels import Colors
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.union import Kind

WEIGHT_BINS = 8
_MISSING = "{0}, but the model was fitted on graphs with some"
_LARGEST = 2.0**62  # weights beyond are all the same


@dataclass(frozen=True, eq=False)
class ArcReading:
    """What the training graphs say of arcs.

    Attributes
    ----------
    labeled, weighted : bool
        Whether labels and weights are part of the colors.
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
    def of(cls, graphs: GraphBatch) -> ArcReading:
        """Take what arcs of training graphs have."""
        labeled, weights = graphs.arc_label_codes is not None, graphs.weights
        if weights is None or (weights == np.round(weights)).all():
            return cls(labeled, weights is not None)
        edges = channels.quantile_edges(weights[:, None], WEIGHT_BINS)[0]
        return cls(labeled, weighted=True, whole=False, edges=edges)

    def bits(self, graphs: GraphBatch) -> Colors:
        """What each arc carries, hashed; of length 0 where that is nothing."""
        bits = np.empty(0, dtype=np.uint64)
        if graphs.n_arcs == 0:
            return bits
        if self.labeled:
            if graphs.arc_colors is None:
                raise GraphError(_MISSING.format("the graphs have no labels on arcs"))
            bits = graphs.arc_colors
        if self.weighted:
            if graphs.weights is None:
                raise GraphError(_MISSING.format("the graphs have no weights"))
            weights = channels.hashed(self._levels(graphs.weights), "weight")
            bits = bits ^ weights if len(bits) else weights
        return bits

    def _levels(self, weights: Floats) -> Ints:
        """Weights as whole numbers, or as numbers of their bins."""
        if self.whole:
            return np.round(np.clip(weights, -_LARGEST, _LARGEST)).astype(np.int64)
        return np.searchsorted(self.edges, weights)

    def lacking(self, kind: Kind) -> str | None:
        """Say what a graph of this kind lacks; None if nothing."""
        if self.labeled and kind.arc_labels is None:
            return _MISSING.format("it has no labels on arcs")
        if self.weighted and not kind.weighted:
            return _MISSING.format("it has no weights")
        return None

"""Encoders: from graphs to features, all behind one small protocol."""

from fdgnn.encoders.base import Attribution, Convergence, Encoder, Encoding, GraphKind, VertexParts
from fdgnn.encoders.kernel import GraphKernel
from fdgnn.encoders.molecules import MoleculeDescriptors
from fdgnn.encoders.pairs import PairCounts
from fdgnn.encoders.registry import as_encoder, encoder_class, register_encoder
from fdgnn.encoders.reservoir import GraphReservoir
from fdgnn.encoders.union import EncoderUnion
from fdgnn.encoders.wl import WLCounts

__all__ = [
    "Attribution",
    "Convergence",
    "Encoder",
    "EncoderUnion",
    "Encoding",
    "GraphKernel",
    "GraphKind",
    "GraphReservoir",
    "MoleculeDescriptors",
    "PairCounts",
    "VertexParts",
    "WLCounts",
    "as_encoder",
    "encoder_class",
    "register_encoder",
]

"""Encoders: from graphs to features, all behind one small protocol."""

from fdgnn.encoders.base import Attribution, Encoder, Encoding, GraphKind, Settling, VertexParts
from fdgnn.encoders.molecules import MoleculeDescriptors
from fdgnn.encoders.pairs import PairCounts
from fdgnn.encoders.registry import as_encoder, encoder_class, register_encoder
from fdgnn.encoders.reservoir import GraphReservoir
from fdgnn.encoders.union import EncoderUnion
from fdgnn.encoders.wl import WLCounts

__all__ = [
    "Attribution",
    "Encoder",
    "EncoderUnion",
    "Encoding",
    "GraphKind",
    "GraphReservoir",
    "MoleculeDescriptors",
    "PairCounts",
    "Settling",
    "VertexParts",
    "WLCounts",
    "as_encoder",
    "encoder_class",
    "register_encoder",
]

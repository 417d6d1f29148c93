"""Encoders: from graphs to features, all behind one small protocol."""

from fdgnn.encoders.base import Attribution, Encoder, Encoding, GraphKind, Settling, VertexParts
from fdgnn.encoders.colors import ColorCounts
from fdgnn.encoders.joined import JoinedEncoder
from fdgnn.encoders.registry import encoder_class, register_encoder
from fdgnn.encoders.reservoir import GraphReservoir

__all__ = [
    "Attribution",
    "ColorCounts",
    "Encoder",
    "Encoding",
    "GraphKind",
    "GraphReservoir",
    "JoinedEncoder",
    "Settling",
    "VertexParts",
    "encoder_class",
    "register_encoder",
]

"""Encoders: from graphs to features, all behind one small protocol."""

from fdgnn.encoders.base import Encoder, Encoding, GraphKind, Settling, VertexParts
from fdgnn.encoders.registry import encoder_class, register_encoder
from fdgnn.encoders.reservoir import GraphReservoir

__all__ = [
    "Encoder",
    "Encoding",
    "GraphKind",
    "GraphReservoir",
    "Settling",
    "VertexParts",
    "encoder_class",
    "register_encoder",
]

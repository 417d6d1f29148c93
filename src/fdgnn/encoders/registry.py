"""Encoders by name: for parameters such as ``encoder="reservoir"``, and for model files."""

from __future__ import annotations

from fdgnn.encoders.base import Encoder
from fdgnn.encoders.colors import ColorCounts
from fdgnn.encoders.joined import JoinedEncoder
from fdgnn.encoders.reservoir import GraphReservoir

_ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder for encoder in (GraphReservoir, ColorCounts, JoinedEncoder)
}


def register_encoder(encoder: type[Encoder]) -> type[Encoder]:
    """Make an encoder known by its `kind`; usable as a decorator.

    A model file names its encoder and never brings code, so `load_model` builds only encoders
    that are known here.
    """
    known = _ENCODERS.setdefault(encoder.kind, encoder)
    if known is not encoder:
        raise ValueError(f"there is another encoder called {encoder.kind!r}, {known.__name__}")
    return encoder


def encoder_class(kind: str) -> type[Encoder]:
    """Give the encoder of that name, or raise ValueError if there is none."""
    if kind not in _ENCODERS:
        raise ValueError(f"encoder={kind!r}: expected one of {', '.join(map(repr, _ENCODERS))}")
    return _ENCODERS[kind]

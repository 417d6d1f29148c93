"""Encoders by name: for parameters such as ``encoder="reservoir"``, and for model files."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from fdgnn.encoders.base import Encoder
from fdgnn.encoders.reservoir import GraphReservoir
from fdgnn.encoders.transformer import TransformerEncoder
from fdgnn.encoders.union import EncoderUnion
from fdgnn.encoders.wl import WLCounts

_ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder for encoder in (GraphReservoir, WLCounts, EncoderUnion)
}


def register_encoder(encoder: type[Encoder]) -> type[Encoder]:
    """Make an encoder known by its `kind`; usable as a decorator.

    A model file names its encoder and never brings code, so `load_model` builds only encoders
    that are known here. The same definition, executed again as in a notebook, replaces itself.
    """
    if not (
        isinstance(encoder, type) and issubclass(encoder, Encoder) and hasattr(encoder, "kind")
    ):
        raise TypeError(f"{encoder!r}: expected a subclass of Encoder with a name as its `kind`")
    known = _ENCODERS.get(encoder.kind, encoder)
    same = (known.__module__, known.__qualname__) == (encoder.__module__, encoder.__qualname__)
    if not same:
        raise ValueError(f"there is another encoder called {encoder.kind!r}, {known.__name__}")
    _ENCODERS[encoder.kind] = encoder
    return encoder


def encoder_class(kind: str) -> type[Encoder]:
    """Return the encoder class of a name, or raise ValueError if there is none."""
    if kind not in _ENCODERS:
        raise ValueError(f"encoder={kind!r}: expected one of {', '.join(map(repr, _ENCODERS))}")
    return _ENCODERS[kind]


def registered_class(kind: str) -> type[Encoder] | None:
    """Return the class that was registered under a name by a user; None if there is none."""
    found = _ENCODERS.get(kind)
    return None if found is None or found.__module__.startswith("fdgnn.") else found


def as_encoder(given: Any) -> Encoder:
    """Return a new encoder: of a name, like an encoder, or of any transformer of graphs.

    Raises
    ------
    ValueError
        It is none of these.
    """
    if isinstance(given, str):
        return encoder_class(given)()
    if isinstance(given, Encoder):
        return clone(given)  # type: ignore[no-any-return]
    transforms = callable(getattr(given, "fit", None)) and callable(
        getattr(given, "transform", None)
    )
    if isinstance(given, type) or not transforms:
        names = ", ".join(map(repr, _ENCODERS))
        raise ValueError(
            f"encoder={given!r}: expected one of {names}, an Encoder, or a transformer with fit "
            "and transform"
        )
    return TransformerEncoder(clone(given, safe=False))

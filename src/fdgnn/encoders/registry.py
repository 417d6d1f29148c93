"""Encoders by name, and encoders in model files: one record describes an encoder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from numbers import Integral
from typing import Any, NoReturn, TypeVar

import msgspec
import numpy as np
from sklearn.base import clone

from fdgnn.arrays import Array, Floats
from fdgnn.encoders.base import Encoder, GraphKind, TransformerEncoder
from fdgnn.exceptions import ModelFileError
from fdgnn.expansion import RandomExpansion
from fdgnn.records import Record, as_plain

_ENCODERS: dict[str, type[Encoder]] = {}
_Kind = TypeVar("_Kind", bound=type[Encoder])


def register_encoder(encoder: _Kind) -> _Kind:
    """Register an encoder class by its `kind`; usable as a decorator.

    A model file names its encoder and contains no code, so `load_model` builds only registered
    encoders. Executing a definition again, as in a notebook, replaces the class.
    """
    is_class = isinstance(encoder, type)
    if not (is_class and issubclass(encoder, Encoder) and hasattr(encoder, "kind")):  # type: ignore[redundant-expr]
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
    methods = [getattr(given, name, None) for name in ("fit", "transform")]
    if isinstance(given, type) or not all(map(callable, methods)):
        names = ", ".join(map(repr, _ENCODERS))
        raise ValueError(
            f"encoder={given!r}: expected one of {names}, an Encoder, or a transformer with fit "
            "and transform"
        )
    return TransformerEncoder(clone(given, safe=False))


Value = bool | int | float | str | None
_MACHINE = ("n_jobs",)  # parameters that belong to a machine, not to a model


class EncoderRecord(Record, frozen=True, kw_only=True):
    """An encoder: its name, its parameters, and its facts.

    `facts` is the encoder's own record (`Encoder.Facts`) as plain values. A reservoir has its
    ``degree`` (k as used) and its ``vocabulary`` (the vertex labels it knows, or None).
    """

    kind: str
    parameters: dict[str, Value]
    facts: dict[str, object]


# ---------------------------------------------------------------------- from an encoder


def describe_encoder(encoder: Encoder, *, fitted: bool = True) -> EncoderRecord:
    """Describe an encoder, without its arrays; one that is a parameter is not fitted."""
    # The model has the seed of a fitted encoder, but not those of encoders that it joins.
    named = encoder.named_encoders
    for each in [own for _, own in named] if fitted else [encoder]:
        state = each.random_state
        if state is not None and not isinstance(state, Integral):
            reject(
                f"the random_state of its {type(each).__name__} is a {type(state).__name__}, which "
                "a file cannot hold; give an integer"
            )
    if fitted:
        facts = as_plain(encoder.facts())
    else:
        inner = [(name, as_plain(describe_encoder(own, fitted=False))) for name, own in named]
        facts = dict.fromkeys(encoder.encoder_parameters, inner)
    if _ENCODERS.get(getattr(encoder, "kind", "")) is not type(encoder):
        reject(
            f"the encoder {type(encoder).__name__} is not registered, so that a file cannot name "
            "it; give it a `kind` and decorate it with fdgnn.register_encoder"
        )
    return EncoderRecord(kind=encoder.kind, parameters=_own_parameters(encoder), facts=facts)


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Convert parameters to JSON values; a `random_state` that is not an integer is left out."""
    parameters = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _MACHINE
    }
    for name, value in parameters.items():
        if isinstance(value, np.generic):  # `item` of a longdouble is a longdouble again
            parameters[name] = float(value) if isinstance(value, np.floating) else value.item()
    if not isinstance(parameters.get("random_state"), Integral):
        parameters.pop("random_state", None)
    return parameters


def _own_parameters(encoder: Encoder) -> dict[str, Value]:
    """Return all parameters except encoders, which the facts describe."""
    found = plain_parameters(encoder)
    return {name: found[name] for name in found if name not in encoder.encoder_parameters}


def difference(encoder: Encoder, other: Encoder) -> str | None:
    """Name a parameter in which two encoders differ; None if they would be fitted alike."""
    if type(encoder) is not type(other):
        return "kind"
    one, two = _own_parameters(encoder), _own_parameters(other)
    for name in one.keys() | two.keys():
        if name != "random_state" and one.get(name) != two.get(name):
            return name
    inner, others = dict(encoder.named_encoders), dict(other.named_encoders)
    if list(inner) != list(others):
        return "list of encoders"
    found = (difference(each, others[name]) for name, each in inner.items())
    return next(filter(None, found), None)


# ---------------------------------------------------------------------- to an encoder


def build_encoder(record: EncoderRecord) -> Encoder:
    """Build the unfitted encoder that a record describes."""
    kind = _class_of(record)
    parameters: dict[str, Any] = dict(record.parameters)
    for name in kind.encoder_parameters:
        inner = getattr(_facts_of(record, kind), name)
        if any(_class_of(each).encoder_parameters for _, each in inner):
            reject("a union inside a union cannot be saved")
        if name in parameters:
            reject(f"a {kind.__name__} has no parameter {name!r} in a file")
        parameters[name] = [(key, build_encoder(each)) for key, each in inner]
    encoder: Encoder = with_parameters(kind, parameters, kind.check_parameters)
    return encoder


def restore_encoder(
    record: EncoderRecord, arrays: Mapping[str, Array], graph_kind: GraphKind
) -> Encoder:
    """Build a fitted encoder; its `restore` checks facts and arrays."""
    encoder = build_encoder(record)
    encoder.graph_kind_ = graph_kind
    encoder.restore(_facts_of(record, type(encoder)), arrays, graph_kind)
    return encoder


def with_parameters(kind: Any, parameters: Mapping[str, Any], check: Callable[[Any], None]) -> Any:
    """Make an instance, and check it; parameters that a file does not have get their default."""
    if unknown := parameters.keys() - _names(kind):
        reject(f"a {kind.__name__} has no parameter {min(unknown)[:40]!r} in a file")
    state = parameters.get("random_state")
    if not (state is None or (type(state) is int and state >= 0)):
        reject("random_state is not a nonnegative integer")
    try:
        made = kind(**parameters)
        check(made)
    except (TypeError, ValueError) as error:
        reject(f"a parameter is wrong: {error}")
    return made


@cache
def _names(kind: Any) -> frozenset[str]:
    """Return names of the parameters that a file may have."""
    return frozenset(inspect.signature(kind).parameters) - set(_MACHINE)


def _class_of(record: EncoderRecord) -> type[Encoder]:
    if record.kind not in _ENCODERS:
        reject(f"encoder {record.kind[:40]!r} is not known; register it first")
    return _ENCODERS[record.kind]


def _facts_of(record: EncoderRecord, kind: type[Encoder]) -> Any:
    """Return the facts of an encoder, in the encoder's own record."""
    try:
        return msgspec.convert(record.facts, kind.Facts)
    except ValueError as error:
        reject(f"the facts of its encoder cannot be read ({error})")


# ---------------------------------------------------------------------- arrays


def take(arrays: dict[str, Array], name: str, ndim: int, dtype: Any = np.float64) -> Array:
    """Remove an array of this type from those of a file, or raise ModelFileError."""
    array = arrays.pop(name, None)
    if array is None or array.dtype != dtype or array.ndim != ndim:
        found = "has none" if array is None else f"has {array.dtype} {array.shape}"
        kind = np.dtype(dtype).name
        reject(f"a {kind} array with {ndim} axes is needed as {name[:40]}, and it {found}")
    return array


def take_expansion(
    arrays: dict[str, Array], encoder: Encoder, n_projections: int | None
) -> RandomExpansion | None:
    """Restore the expansion of an encoder's features, if there is one, and check its size."""
    if "projection" not in arrays:
        n_features = encoder.n_features_out or 1
        if encoder.expanded_size(n_features, n_projections):
            reject("no projection, though its features are expanded")
        return None
    projection: Floats = take(arrays, "projection", 2)
    P, n_features = projection.shape
    fits = P > 0 and encoder.n_features_out in (None, n_features)
    if not fits or encoder.expanded_size(n_features, n_projections) != P:
        reject(f"projection has the shape {projection.shape}, which does not fit")
    expansion = RandomExpansion(P)
    expansion.projection_ = projection
    return expansion


def reject(message: str) -> NoReturn:
    """Raise ModelFileError."""
    raise ModelFileError(message)

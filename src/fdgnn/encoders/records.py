"""Encoders in model files: one record describes an encoder, and it is built again from it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any, NoReturn

import msgspec
import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.encoders.base import Encoder, GraphKind
from fdgnn.exceptions import ModelFileError
from fdgnn.expansion import RandomExpansion
from fdgnn.parameters import check_parameters
from fdgnn.records import Record, as_plain

Value = bool | int | float | str | None
_MACHINE = ("n_jobs",)  # parameters that belong to a machine, not to a model


class EncoderRecord(Record, frozen=True, kw_only=True):
    """An encoder: its name, its parameters, and what it says of itself.

    `facts` is the encoder's own record (`Encoder.Facts`) as plain values. A reservoir has its
    ``degree`` (k as used) and its ``vocabulary`` (the vertex labels it knows, or None).
    """

    kind: str
    parameters: dict[str, Value]
    facts: dict[str, object]


# ---------------------------------------------------------------------- from an encoder


def describe_encoder(encoder: Encoder) -> EncoderRecord:
    """Describe a fitted encoder; what is an array is not part of it."""
    return EncoderRecord(
        kind=encoder.kind,
        parameters=_own_parameters(encoder),
        facts=as_plain(encoder.facts()),
    )


def plain_parameters(estimator: Any) -> dict[str, Any]:
    """Give parameters as JSON has them; a `random_state` that is no integer is left out."""
    parameters = {
        name: _plain(value)
        for name, value in estimator.get_params(deep=False).items()
        if name not in _MACHINE
    }
    if not isinstance(parameters.get("random_state"), Integral):
        parameters.pop("random_state", None)
    return parameters


def _plain(value: Any) -> Any:
    """Give a number as Python's own; NumPy's item() leaves those of more bits alone."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _own_parameters(encoder: Encoder) -> dict[str, Value]:
    """All but those that are encoders themselves, which the facts describe."""
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
    for name in encoder.encoder_parameters:
        inner, others = getattr(encoder, name), getattr(other, name)
        if len(inner) != len(others):
            return name
        for pair in zip(inner, others, strict=True):
            if (found := difference(*pair)) is not None:
                return found
    return None


# ---------------------------------------------------------------------- to an encoder


def build_encoder(record: EncoderRecord) -> Encoder:
    """Build the encoder of a record, not fitted yet."""
    kind = _class_of(record)
    parameters: dict[str, Any] = dict(record.parameters)
    for name in kind.encoder_parameters:
        inner = getattr(_facts_of(record, kind), name)
        if any(_class_of(each).encoder_parameters for each in inner):
            _refuse("it joins encoders that are joined themselves, which a file cannot have")
        if name in parameters:
            _refuse(f"a {kind.__name__} has no parameter {name!r} in a file")
        parameters[name] = [build_encoder(each) for each in inner]
    encoder: Encoder = with_parameters(kind, parameters)
    try:
        encoder.check_parameters()
    except ValueError as error:
        _refuse(f"a parameter is wrong: {error}")
    return encoder


def restore_encoder(
    record: EncoderRecord, arrays: Mapping[str, Array], graph_kind: GraphKind
) -> Encoder:
    """Build a fitted encoder; its `restore` checks facts and arrays."""
    encoder = build_encoder(record)
    encoder.graph_kind_ = graph_kind
    encoder.restore(_facts_of(record, type(encoder)), arrays, graph_kind)
    return encoder


def with_parameters(kind: Any, parameters: Mapping[str, Any]) -> Any:
    """Set parameters; those that a file does not mention get their default."""
    if unknown := set(parameters) - _names(kind):
        _refuse(f"a {kind.__name__} has no parameter {min(unknown)[:40]!r} in a file")
    state = parameters.get("random_state")
    if not (state is None or (type(state) is int and state >= 0)):
        _refuse("its random_state is not a nonnegative integer")
    try:
        made = kind(**parameters)
        check_parameters(made, made.rules)
    except (TypeError, ValueError) as error:
        _refuse(f"a parameter is wrong: {error}")
    return made


@cache
def _names(kind: Any) -> frozenset[str]:
    """Names of the parameters that a file may give."""
    return frozenset(inspect.signature(kind).parameters) - set(_MACHINE)


def _class_of(record: EncoderRecord) -> type[Encoder]:
    from fdgnn.encoders.registry import encoder_class

    try:
        return encoder_class(record.kind)
    except ValueError:
        _refuse(f"its encoder {record.kind[:40]!r} is not known; register it first")


def _facts_of(record: EncoderRecord, kind: type[Encoder]) -> Any:
    """Give what a record says of the encoder, in the encoder's own record."""
    try:
        return msgspec.convert(record.facts, kind.Facts)
    except ValueError as error:
        _refuse(f"what it says of its encoder cannot be read ({error})")


# ---------------------------------------------------------------------- arrays


def take(arrays: dict[str, Array], name: str, ndim: int, dtype: Any = np.float64) -> Array:
    """Take an array out of those of a file, or raise ModelFileError unless it is of this type."""
    array = arrays.pop(name, None)
    if array is None or array.dtype != dtype or array.ndim != ndim:
        found = "has none" if array is None else f"has {array.dtype} {array.shape}"
        kind = np.dtype(dtype).name
        _refuse(f"a network needs {kind} numbers with {ndim} axes as {name[:40]}, {found}")
    return array


def take_expansion(
    arrays: dict[str, Array], encoder: Encoder, n_projections: int | None
) -> RandomExpansion | None:
    """Take the expansion of an encoder's features, if there is one, and check its size."""
    if "projection" not in arrays:
        n_features = encoder.n_features_out or 1
        if encoder.expanded_size(n_features, n_projections):
            _refuse("it has no projection, though its features are expanded")
        return None
    projection: Floats = take(arrays, "projection", 2)
    P, n_features = projection.shape
    fits = P > 0 and encoder.n_features_out in (None, n_features)
    if not fits or encoder.expanded_size(n_features, n_projections) != P:
        _refuse(f"its projection has the shape {projection.shape}, which does not fit")
    expansion = RandomExpansion(P)
    expansion.projection_ = projection
    return expansion


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)

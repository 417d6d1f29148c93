"""Everything of a model that is no array, as one typed record and back."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from functools import cache
from numbers import Integral
from typing import Annotated, Any, NoReturn

import msgspec
import numpy as np
from sklearn.base import BaseEstimator

from fdgnn.arrays import Array
from fdgnn.encoders import Encoder, GraphKind, encoder_class
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import ModelFileError
from fdgnn.graphs.reading import Reading
from fdgnn.model_files.container import MOST_HEADER
from fdgnn.parameters import check_parameters
from fdgnn.records import Record, decode, encode

Value = bool | int | float | str | None
Words = Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]], msgspec.Meta(max_length=64)]
MODELS: dict[str, Any] = {c.__name__: c for c in (FDGNNClassifier, FDGNNRegressor)}
_MACHINE = ("n_jobs",)  # parameters that belong to a machine, not to a model


class EncoderRecord(Record, frozen=True, kw_only=True):
    """An encoder: its name, its parameters, and what it says of itself.

    `facts` is the encoder's own record (`Encoder.Facts`) as plain values. A reservoir has its
    ``degree`` (k as used) and its ``vocabulary`` (the vertex labels it knows, or None).
    """

    kind: str
    parameters: dict[str, Value]
    facts: dict[str, object]


class ClassesRecord(Record, frozen=True, kw_only=True):
    """The classes, and the type of their array."""

    dtype: Annotated[str, msgspec.Meta(pattern=r"^(\|O|[<>|][biufU][0-9]{1,7})$")]
    values: list[bool | int | float | str]


class SeedRecord(Record, frozen=True, kw_only=True):
    """A `numpy.random.SeedSequence`: its numbers in words of 32 bits, the lowest word first."""

    entropy: Words
    spawn_key: Words

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> SeedRecord:
        """Describe a seed."""
        return cls(entropy=_words(seed.entropy), spawn_key=_words(seed.spawn_key))

    def sequence(self) -> np.random.SeedSequence:
        """Give a seed with the same random streams, and with the same children."""
        return np.random.SeedSequence(self.entropy, spawn_key=tuple(self.spawn_key))


def _words(value: Any) -> list[int]:
    """Split whole numbers into words of 32 bits, as SeedSequence does."""
    if isinstance(value, str):  # SeedSequence takes texts in lists
        value = int(value, 0)
    if not isinstance(value, Integral):
        return [word for each in value for word in _words(each)]
    n_words = max(1, -(-int(value).bit_length() // 32))
    return [int(value) >> 32 * i & 0xFFFFFFFF for i in range(n_words)]


class ModelRecord(Record, frozen=True, kw_only=True):
    """What a file says of a model, beside its arrays.

    A bare encoder has neither a `model` nor anything about outputs.
    """

    encoder: EncoderRecord
    graph_kind: GraphKind
    seed: SeedRecord | None = None
    model: str | None = None
    parameters: dict[str, Value] = msgspec.field(default_factory=dict)
    n_outputs: int = 0
    classes: ClassesRecord | None = None
    single_output: bool | None = None
    calibration: float | None = None
    score: float | None = None
    nested: bool = False  # whether the score is that of nested cross validation
    reading: Reading | None = None


# ---------------------------------------------------------------------- from a model


def describe(model: Any, score: float | None, nested: bool = False) -> ModelRecord:
    """Describe a fitted model or encoder."""
    seed = getattr(model, "seed_", None)
    seed = None if seed is None else SeedRecord.of(seed)
    if isinstance(model, Encoder):
        return ModelRecord(encoder=_encoder_record(model), graph_kind=model.graph_kind_, seed=seed)
    return ModelRecord(
        model=type(model).__name__,
        parameters=_parameters(model),
        encoder=_encoder_record(model.networks_[0].encoder),
        graph_kind=model.graph_kind_,
        seed=seed,
        n_outputs=model.n_outputs_,
        classes=_classes_record(getattr(model, "classes_", None)),
        single_output=getattr(model, "single_output_", None),
        calibration=getattr(model, "calibration_", None),
        score=None if score is None else float(score),
        nested=nested,
        reading=model.reading_,
    )


def as_json(record: ModelRecord) -> bytes:
    """Write a description, or raise ModelFileError if JSON has no word for something."""
    try:
        return encode(record)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"the model cannot be described in a file: {error}") from None


def _encoder_record(encoder: Encoder) -> EncoderRecord:
    return EncoderRecord(
        kind=encoder.kind,
        parameters=_parameters(encoder),
        facts=msgspec.to_builtins(encoder.facts()),
    )


def _parameters(estimator: BaseEstimator) -> dict[str, Value]:
    """Give parameters as JSON has them; a `random_state` that is no integer is left out."""
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in estimator.get_params(deep=False).items()
        if name not in _MACHINE
    }
    if not isinstance(parameters.get("random_state"), Integral):
        parameters.pop("random_state", None)
    if isinstance(parameters.get("encoder"), Encoder):
        parameters["encoder"] = None  # described by a record of its own
    return parameters


def _classes_record(classes: Array | None) -> ClassesRecord | None:
    if classes is None:
        return None
    values = classes.tolist()
    if not _can_be_classes(classes):
        raise ModelFileError(
            f"classes of dtype {classes.dtype} cannot be saved; fit with numbers or text as y"
        )
    return ClassesRecord(dtype=classes.dtype.str, values=values)


def _can_be_classes(classes: Array) -> bool:
    kind = classes.dtype.kind
    return kind in "biufU" or (kind == "O" and all(type(value) is str for value in classes))


# ---------------------------------------------------------------------- to a model


def parse(description: bytes) -> ModelRecord:
    """Read a description; every field has the type that it must have."""
    try:
        return decode(description, ModelRecord)
    except ValueError as error:
        _refuse(f"its description of the model cannot be read ({error})")


def build_encoder(record: ModelRecord) -> Encoder:
    """Build the encoder of a description, not fitted yet."""
    try:
        kind = encoder_class(record.encoder.kind)
    except ValueError:
        _refuse(f"its encoder {record.encoder.kind[:40]!r} is not known; register it first")
    encoder: Encoder = _with_parameters(kind, record.encoder.parameters)
    return encoder


def facts_of(record: ModelRecord, encoder: Encoder) -> Record:
    """Give what the description says of the encoder, in the encoder's own record."""
    try:
        return msgspec.convert(record.encoder.facts, encoder.Facts)
    except ValueError as error:
        _refuse(f"what it says of its encoder cannot be read ({error})")


def build_model(record: ModelRecord) -> Any:
    """Build the model of a description; its networks are still missing."""
    if record.model not in MODELS:
        _refuse(f"it has a model of unknown kind {str(record.model)[:40]!r}")
    parameters: dict[str, Any] = dict(record.parameters)
    if parameters.get("encoder", "") is None:
        parameters["encoder"] = build_encoder(record)
    model = _with_parameters(MODELS[record.model], parameters)
    _check_named_encoder(record, model)
    _check_outputs(record, model)
    model.graph_kind_ = record.graph_kind
    model.training_score_ = record.score
    model.training_score_nested_ = record.nested
    model.reading_ = record.reading
    if record.classes is not None:
        model.classes_ = _classes(record.classes)
        if record.calibration is not None:
            model.calibration_ = record.calibration
    else:
        model.single_output_ = record.single_output
    return model


def set_seed(record: ModelRecord, estimator: Any) -> None:
    """Give a model or encoder the seed that it was fitted with.

    It also becomes the `random_state`, unless that is an integer.
    """
    if record.seed is None:
        return
    estimator.seed_ = record.seed.sequence()
    parameters = estimator.get_params(deep=False)
    state = parameters.get("random_state")
    if state is None and "random_state" in parameters:
        estimator.random_state = estimator.seed_
    elif state is not None and record.seed != SeedRecord(entropy=_words(state), spawn_key=[]):
        _refuse("its seed is not that of its random_state")


@cache
def _defaults(kind: Any) -> Mapping[str, Any]:
    """Give the defaults of an estimator's parameters."""
    parameters = inspect.signature(kind).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


def _with_parameters(kind: Any, parameters: Mapping[str, Any]) -> Any:
    """Set parameters; those that a file does not mention get their default."""
    known = set(_defaults(kind)) - set(_MACHINE)
    if unknown := set(parameters) - known:
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


def _check_named_encoder(record: ModelRecord, model: Any) -> None:
    """Check that an encoder given by name has the parameters that the model has for it."""
    if isinstance(model.encoder, Encoder):
        return
    if model.encoder != record.encoder.kind:
        _refuse(f"its encoder is {record.encoder.kind[:40]!r}, but its model has another")
    encoder = build_encoder(record)
    kind: Any = type(encoder)
    for name, default in _defaults(kind).items():
        own = getattr(model, name, default)
        if name not in ("random_state", *_MACHINE) and getattr(encoder, name) != own:
            _refuse(f"its encoder has another {name} than its model")


def _check_outputs(record: ModelRecord, model: Any) -> None:
    """Check that classes, outputs and numbers are there as the kind of model has them."""
    n, classes = record.n_outputs, record.classes
    if isinstance(model, FDGNNClassifier):
        n_classes = len(classes.values) if classes else 0
        fits = record.single_output is None and n_classes >= 2
        fits &= n == (1 if n_classes == 2 else n_classes)
        fits &= record.calibration is not None or not model.probability
    else:
        fits = classes is None and record.single_output is not None and record.calibration is None
        fits &= n >= 1 and (n == 1 or not record.single_output)
    if not fits:
        _refuse(f"its classes, outputs and calibration are not those of a {record.model}")
    if record.calibration is not None and not 0 < record.calibration < math.inf:
        _refuse(f"its calibration is {record.calibration}")


def _classes(record: ClassesRecord) -> Array:
    """Build the array, and see that nothing was cut off or rounded on the way."""
    values = record.values
    try:
        dtype = np.dtype(record.dtype)
        if dtype.itemsize * len(values) > 4 * MOST_HEADER:
            raise ValueError
        array = np.array(values, dtype=dtype)
        again = array.tolist()
        fits = again == values and list(map(type, again)) == list(map(type, values))
        if not (fits and _can_be_classes(array) and np.array_equal(np.unique(array), array)):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        _refuse("its classes are not an ascending array of numbers or texts")
    return array


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)

"""Everything of a model that is not an array, as one typed record and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from fdgnn import estimators
from fdgnn.arrays import Array, grouped, prefixed
from fdgnn.encoders import Encoder, GraphKind
from fdgnn.encoders.descriptors import DescriptorBlock, DescriptorColumn
from fdgnn.encoders.registry import (
    EncoderRecord,
    Value,
    build_encoder,
    describe_encoder,
    difference,
    plain_parameters,
    reject,
    restore_encoder,
    take_expansion,
    with_parameters,
)
from fdgnn.estimators.models import check_readout
from fdgnn.evaluation.record import Evaluation
from fdgnn.exceptions import ModelFileError
from fdgnn.fitting import BaseModel, FittedModel
from fdgnn.linear import KernelReadout, KernelRidge, Ridge
from fdgnn.linear.ridge import MANY
from fdgnn.model_files.state import (
    DomainRecord,
    Label,
    ReadoutName,
    TargetRecord,
    describe_domain,
    describe_targets,
    n_columns,
    readout_arrays,
    restored_readout,
)
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record, decode, encode
from fdgnn.schema import InputSchema
from fdgnn.seeds import words_of

Words = Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]], msgspec.Meta(max_length=64)]
MODELS: dict[str, Any] = {
    f"{kind}{task}": getattr(estimators, f"{kind}{task}")
    for kind in ("Graph", "FDGNN", "AutoGraph")
    for task in ("Classifier", "Regressor")
}
_READOUTS: dict[str, Any] = {"linear": Ridge, "rbf": KernelRidge}


class SeedRecord(Record, frozen=True, kw_only=True):
    """A `numpy.random.SeedSequence`: its numbers in words of 32 bits, the lowest word first."""

    entropy: Words
    spawn_key: Words

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> SeedRecord:
        """Describe a seed."""
        return cls(entropy=words_of(seed.entropy), spawn_key=words_of(seed.spawn_key))

    def sequence(self) -> np.random.SeedSequence:
        """Return a seed with the same random streams and the same children."""
        return np.random.SeedSequence(self.entropy, spawn_key=tuple(self.spawn_key))


# Parameters that need not be plain values, and what describes them: encoders and readouts, a list
# of (name, encoder, readout), and pairs of a label and its weight.
_OBJECTS = ("encoder", "readout", "candidates", "class_weight")
Described = EncoderRecord | list[list[Label | EncoderRecord]]
_Alpha = Annotated[float, msgspec.Meta(ge=0)]


class EstimatorRecord(Record, frozen=True, kw_only=True):
    """A fitted model of an ensemble: its encoder, its readout, and the seed of its encoder."""

    name: str  # of its base model
    encoder: EncoderRecord
    seed: SeedRecord
    readout: ReadoutName
    n_features: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)]  # P
    alpha: _Alpha | list[_Alpha] | None = None  # of several targets, one for each
    descriptor_scale: Annotated[float, msgspec.Meta(gt=0, le=1e300)] | None = None


class ModelRecord(Record, frozen=True, kw_only=True):
    """The description of a model, or of an encoder alone.

    A bare encoder has only `encoder`, `graph_kind`, `seed` and `schema`. Parameters of a model that
    are not plain values are in `objects`.
    """

    graph_kind: GraphKind
    seed: SeedRecord | None = None
    schema: InputSchema | None = None
    encoder: EncoderRecord | None = None
    model: str | None = None
    parameters: dict[str, Value] = msgspec.field(default_factory=dict)
    objects: dict[str, Described] = msgspec.field(default_factory=dict)
    estimators: list[EstimatorRecord] = msgspec.field(default_factory=list)
    targets: list[TargetRecord] = msgspec.field(default_factory=list)
    flat: bool = True  # whether y was one-dimensional
    descriptors: list[DescriptorColumn] = msgspec.field(default_factory=list)
    domain: DomainRecord | None = None
    training_graphs: bool = False  # whether targets of the training graphs are among the arrays
    evaluation: Evaluation | None = None


# ---------------------------------------------------------------------- from a model


def describe(model: Any) -> ModelRecord:
    """Describe a fitted model or encoder."""
    seed = getattr(model, "seed_", None)
    seed = None if seed is None else SeedRecord.of(seed)
    if isinstance(model, Encoder):
        return ModelRecord(
            encoder=describe_encoder(model),
            graph_kind=model.graph_kind_,
            seed=seed,
            schema=model.input_schema_,
        )
    parameters = plain_parameters(model)
    objects = {name: parameters[name] for name in _OBJECTS if name in parameters}
    objects = {n: each for n, each in objects.items() if not isinstance(each, str | None)}
    return ModelRecord(
        model=type(model).__name__,
        parameters={n: each for n, each in parameters.items() if n not in objects},
        objects={name: _described(value) for name, value in objects.items()},
        estimators=[_describe_estimator(each) for each in model.estimators_],
        graph_kind=model._graph_kind,
        seed=seed,
        targets=describe_targets(model),
        flat=model._flat,
        evaluation=None if model.evaluation_ is None else model.evaluation_.reproducible(),
        schema=model.input_schema_,
        descriptors=[] if model._descriptors is None else list(model._descriptors.columns),
        domain=describe_domain(model._domain),
        training_graphs=model._training_graphs is not None,
    )


def as_json(record: ModelRecord) -> bytes:
    """Encode a description, or raise ModelFileError if JSON has no word for something."""
    try:
        return encode(record)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"the model cannot be described in a file: {error}") from None


def _describe_estimator(model: FittedModel) -> EstimatorRecord:
    alpha: Any = model.alpha
    if isinstance(alpha, tuple):
        alpha = [float(each) for each in alpha]
    return EstimatorRecord(
        name=model.name,
        encoder=describe_encoder(model.encoder),
        seed=SeedRecord.of(model.encoder.seed_),
        readout="rbf" if isinstance(model.readout, KernelReadout) else "linear",
        n_features=n_columns(model.readout),
        alpha=float(alpha) if isinstance(alpha, int | np.number) else alpha,
        descriptor_scale=None if model.descriptors is None else model.descriptors.scale,
    )


def _described(value: Any) -> Any:
    """Describe an encoder or a readout that is not fitted, and rows of these and plain values."""
    if isinstance(value, Encoder):
        return describe_encoder(value, fitted=False)
    for kind, readout in _READOUTS.items():
        if isinstance(value, readout):
            return EncoderRecord(kind=kind, parameters=plain_parameters(value), facts={})
    if isinstance(value, Mapping):
        for label in value:
            if not isinstance(label, Label | np.generic):
                reject(
                    f"class_weight has the key {label!r}, which a file cannot have; use y's labels"
                )
        value = list(value.items())
    if isinstance(value, list | tuple):
        return [[_described(each) for each in row] for row in value]
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------- to a model


def parse(description: bytes) -> ModelRecord:
    """Read a description; every field has the type that it must have."""
    try:
        return decode(description, ModelRecord)
    except ValueError as error:
        reject(f"description of the model cannot be read ({error})")


def build_model(record: ModelRecord) -> Any:
    """Build the unfitted model that a record describes."""
    if record.model not in MODELS:
        reject(f"model of unknown kind {str(record.model)[:40]!r}")
    kind, parameters = MODELS[record.model], dict[str, Any](record.parameters)
    if parameters.get("class_weight") not in (None, "balanced"):
        reject("class_weight is neither 'balanced' nor a list of weights")
    objects = {name: _built(value) for name, value in record.objects.items()}
    if wrong := objects.keys() - set(_OBJECTS) | objects.keys() & parameters.keys():
        reject(f"parameter {min(wrong)[:40]!r} is there twice, or is an object")
    if "class_weight" in objects:
        objects["class_weight"] = _weights(objects["class_weight"])
    return with_parameters(kind, parameters | objects, kind._check_parameters)


def _built(described: Any) -> Any:
    """Build an encoder, a readout, or rows of these and plain values."""
    if isinstance(described, list):
        return [tuple(map(_built, row)) for row in described]
    if not isinstance(described, EncoderRecord):
        return described
    if described.kind in _READOUTS and not described.facts:
        return with_parameters(_READOUTS[described.kind], described.parameters, check_readout)
    return build_encoder(described)


def _weights(rows: Any) -> Mapping[Label, float]:
    try:
        found = dict(rows)
        fits = all(isinstance(own, Label) and 0 < w < math.inf for own, w in found.items())
    except (TypeError, ValueError):
        reject("class_weight is not a list of labels and weights")
    if len(found) < len(rows) or not fits:
        reject("class_weight has a class twice, or a weight that is not above zero")
    return found


def set_seed(record: ModelRecord, estimator: Any) -> None:
    """Set the seed that a model or encoder was fitted with.

    It also becomes the `random_state`, unless that is an integer.
    """
    if record.seed is None:
        return
    seed = record.seed.sequence()
    if isinstance(estimator, Encoder):
        estimator.set_seed(seed)
    else:
        estimator.seed_ = seed
    parameters = estimator.get_params(deep=False)
    state = parameters.get("random_state")
    if state is None and "random_state" in parameters:
        estimator.random_state = seed
    elif state is not None and record.seed != SeedRecord(entropy=words_of(state), spawn_key=[]):
        reject("the seed is not that of random_state")


# The base models of few graphs, of more than kernels are computed for, and of very many.
_SIZES = 1, MANY, 2**62


def estimator_arrays(models: Sequence[FittedModel]) -> dict[str, Array]:
    """Return the arrays of all fitted models; a name begins with the number of the model."""
    arrays: dict[str, Array] = {}
    for i, model in enumerate(models):
        parts = prefixed("encoder", model.encoder.arrays())
        if model.expansion is not None:
            parts["projection"] = model.expansion.projection_
        arrays |= prefixed(str(i), parts | readout_arrays(model.readout))
    return arrays


def restored_estimators(
    record: ModelRecord, model: Any, groups: dict[str, dict[str, Array]]
) -> tuple[FittedModel, ...]:
    """Read the arrays of all fitted models, by number, and check that everything fits together."""
    if not 0 < len(record.estimators) <= len(groups):
        reject(f"no arrays for {len(record.estimators)} estimators")
    pairs = zip(record.estimators, _base_models(record, model), strict=True)
    return tuple(
        _restored(record, each, base, model, groups.pop(str(i), {}))
        for i, (each, base) in enumerate(pairs)
    )


def _base_models(record: ModelRecord, model: Any) -> list[BaseModel]:
    """Return the base model of each estimator, by the parameters of the model.

    All random initializations of a base model are there, or none, in the order of base models.
    """
    differences: list[str] = []
    for n_graphs in _SIZES:
        found: list[BaseModel] = []
        try:
            bases = model._base_models(record.graph_kind, n_graphs, np.random.SeedSequence(0))
        except ValueError as error:
            reject(f"a parameter is wrong: {error}")
        for base in bases:
            end = len(found) + len(base.seeds)
            own = record.estimators[len(found) : end]
            differs = next(filter(None, (_difference(each, base) for each in own)), None)
            if differs is None and len(own) == len(base.seeds):
                found += [base] * len(own)
            else:
                differences.append(differs or f"number, {len(record.estimators)},")
        if len(found) == len(record.estimators):
            return found
    what = differences[0] if differences else f"number, {len(record.estimators)},"
    reject(f"estimators have another {what} than the parameters require")


def _difference(described: EstimatorRecord, base: BaseModel) -> str | None:
    """Return what makes an estimator differ from its base model; None if nothing does."""
    if described.name != base.name:
        return "name"
    if described.readout != ("rbf" if isinstance(base.readout, KernelRidge) else "linear"):
        return "readout"
    return difference(build_encoder(described.encoder), base.encoder)


def _restored(
    record: ModelRecord,
    described: EstimatorRecord,
    base: BaseModel,
    model: Any,
    arrays: dict[str, Array],
) -> FittedModel:
    """Build a fitted model, from the encoder at its beginning to the readout at its end."""
    own = {name: array for name, array in arrays.items() if not name.startswith("encoder.")}
    inner = grouped({name: arrays[name] for name in arrays.keys() - own.keys()})
    encoder = restore_encoder(described.encoder, inner.get("encoder", {}), record.graph_kind)
    encoder.input_schema_ = record.schema
    encoder.set_seed(described.seed.sequence())
    expansion = take_expansion(own, encoder, base.n_projections)
    # The block of descriptors, if the model has some.
    scale, names = described.descriptor_scale, {column.name for column in record.descriptors}
    if (scale is None) != (not names) or len(names) < len(record.descriptors):
        reject("estimators and descriptors do not fit together")
    descriptors = None if scale is None else DescriptorBlock(tuple(record.descriptors), scale)
    seen = encoder.n_features_out if expansion is None else len(expansion.projection_)
    beside = 0 if descriptors is None else descriptors.n_features
    if seen is not None and described.n_features != seen + beside:
        reject(f"an estimator has {described.n_features} features, expected {seen + beside}")
    n_outputs = model.targets_[-1].columns.stop
    readout = restored_readout(described.readout, own, described.n_features, n_outputs)
    if own:
        reject(f"unexpected array {min(own)[:40]!r}, which no estimator has")
    alpha = tuple(described.alpha) if isinstance(described.alpha, list) else described.alpha
    if isinstance(alpha, tuple) and len(alpha) != len(model.targets_):
        reject(f"an estimator has {len(alpha)} alphas for {len(model.targets_)} targets")
    return FittedModel(encoder, expansion, readout, alpha, described.name, descriptors)

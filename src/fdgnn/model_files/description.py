"""Everything of a model that is no array, as one typed record and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NoReturn

import msgspec
import numpy as np

from fdgnn.encoders import Encoder, GraphKind
from fdgnn.encoders.descriptors import DescriptorColumn
from fdgnn.encoders.records import (
    EncoderRecord,
    Value,
    build_encoder,
    describe_encoder,
    difference,
    plain_parameters,
    with_parameters,
)
from fdgnn.estimators import AUTO, FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import ModelFileError
from fdgnn.graphs.reading import Reading
from fdgnn.model_files.readouts import n_columns, readout_name
from fdgnn.model_files.targets import (
    ClassesRecord,
    Label,
    TargetRecord,
    check_answers,
    classes_record,
    describe_targets,
    known_scores,
    restored_classes,
)
from fdgnn.model_files.trust import TrustRecord, describe_trust
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.records import Record, decode, encode
from fdgnn.seeds import words_of

Words = Annotated[list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]], msgspec.Meta(max_length=64)]
MODELS: dict[str, Any] = {c.__name__: c for c in (FDGNNClassifier, FDGNNRegressor)}


class SeedRecord(Record, frozen=True, kw_only=True):
    """A `numpy.random.SeedSequence`: its numbers in words of 32 bits, the lowest word first."""

    entropy: Words
    spawn_key: Words

    @classmethod
    def of(cls, seed: np.random.SeedSequence) -> SeedRecord:
        """Describe a seed."""
        return cls(entropy=words_of(seed.entropy), spawn_key=words_of(seed.spawn_key))

    def sequence(self) -> np.random.SeedSequence:
        """Give a seed with the same random streams, and with the same children."""
        return np.random.SeedSequence(self.entropy, spawn_key=tuple(self.spawn_key))


class ClassWeight(Record, frozen=True, kw_only=True):
    """One entry of a `class_weight` that is a dictionary."""

    label: Label
    weight: int | float


_Penalty = Annotated[float, msgspec.Meta(ge=0)]


class NetworkRecord(Record, frozen=True, kw_only=True):
    """One network of a model."""

    encoder: EncoderRecord | None = None  # None: as the model's
    readout: Literal["linear", "gaussian"] = "linear"
    n_features: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)] | None = None  # P
    alpha: _Penalty | list[_Penalty] | None = None  # of several targets, one for each
    name: str = ""  # of the member of a committee
    stream: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None  # None: its own number
    descriptor_scale: Annotated[float, msgspec.Meta(gt=0, le=1e300)] | None = None


class ModelRecord(Record, frozen=True, kw_only=True):
    """What a file says of a model, beside its arrays.

    A bare encoder has neither a `model` nor anything about outputs. The encoder of a committee is
    called "auto" and has neither parameters nor facts: each network describes its own. Files of
    format 2 do not describe `networks`; there are `n_networks` with linear readouts.
    """

    encoder: EncoderRecord
    graph_kind: GraphKind
    seed: SeedRecord | None = None
    model: str | None = None
    parameters: dict[str, Value] = msgspec.field(default_factory=dict)
    class_weight: list[ClassWeight] | None = None  # if it is a dictionary
    networks: list[NetworkRecord] = msgspec.field(default_factory=list)
    n_outputs: int = 0
    classes: ClassesRecord | None = None
    single_output: bool | None = None
    calibration: float | None = None
    threshold: float | None = None  # what was taken away from all outputs
    score: float | None = None
    nested: bool = False  # whether the score is that of nested cross validation
    # By several measures, as people name them: on graphs held out, the first that models were
    # chosen by. Errors are positive.
    scores: dict[str, float] = msgspec.field(default_factory=dict)
    split: str | None = None  # how these graphs were held out, in words, where it is known
    # The same for regression on Morgan counts, in the same folds.
    rival: dict[str, float] = msgspec.field(default_factory=dict)
    repeats: str | None = None  # what is to be said of graphs with a twin in another fold
    reading: Reading | None = None
    descriptors: list[DescriptorColumn] = msgspec.field(default_factory=list)
    trust: TrustRecord = TrustRecord()
    targets: list[TargetRecord] = msgspec.field(default_factory=list)  # if there are several


# ---------------------------------------------------------------------- from a model


def describe(model: Any, score: float | None, nested: bool = False) -> ModelRecord:
    """Describe a fitted model or encoder."""
    seed = getattr(model, "seed_", None)
    seed = None if seed is None else SeedRecord.of(seed)
    if isinstance(model, Encoder):
        encoder = describe_encoder(model)
        return ModelRecord(
            encoder=encoder, graph_kind=model.graph_kind_, seed=seed, reading=model.reading_
        )
    encoder, networks = _describe_networks(model)
    parameters = _parameters(model)
    return ModelRecord(
        model=type(model).__name__,
        parameters=parameters,
        class_weight=_class_weights(parameters),
        encoder=encoder,
        networks=networks,
        graph_kind=model.graph_kind_,
        seed=seed,
        n_outputs=model.n_outputs_,
        classes=None if model.each_ else classes_record(getattr(model, "classes_", None)),
        single_output=getattr(model, "single_output_", None),
        calibration=getattr(model, "calibration_", None),
        threshold=getattr(model, "threshold_", None),
        score=None if score is None else float(score),
        nested=nested,
        scores=known_scores(model, "training_scores_"),
        split=getattr(model, "training_split_", None),
        rival=known_scores(model, "training_rival_"),
        repeats=getattr(model, "training_repeats_", None),
        reading=model.reading_,
        descriptors=[] if model.descriptors_ is None else list(model.descriptors_.columns),
        trust=describe_trust(model),
        targets=describe_targets(model),
    )


def as_json(record: ModelRecord) -> bytes:
    """Write a description, or raise ModelFileError if JSON has no word for something."""
    try:
        return encode(record)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"the model cannot be described in a file: {error}") from None


def _describe_networks(model: Any) -> tuple[EncoderRecord, list[NetworkRecord]]:
    """Describe the encoder once, if all networks have the same, or else with each network."""
    encoders = [describe_encoder(network.encoder) for network in model.networks_]
    alike = model.encoder != AUTO and all(each == encoders[0] for each in encoders)
    networks = [
        NetworkRecord(
            encoder=None if alike else encoder,
            readout=readout_name(network.readout),
            n_features=n_columns(network.readout),
            alpha=_plain_penalty(network.alpha),
            name=network.name,
            stream=_stream(network.encoder, i),
            descriptor_scale=None if network.descriptors is None else network.descriptors.scale,
        )
        for i, (network, encoder) in enumerate(zip(model.networks_, encoders, strict=True))
    ]
    return _COMMITTEE if model.encoder == AUTO else encoders[0], networks


def _plain_penalty(alpha: Any) -> float | list[float] | None:
    if isinstance(alpha, tuple):
        return [float(each) for each in alpha]
    return None if alpha is None else float(alpha)


_COMMITTEE = EncoderRecord(kind=AUTO, parameters={}, facts={})


def _stream(encoder: Encoder, number: int) -> int | None:
    """Which child of the model's seed is the encoder's; None if it has the network's number.

    Of a committee not all members are kept, so that the numbers may differ.
    """
    seed = getattr(encoder, "seed_", None)
    if seed is None or not seed.spawn_key or seed.spawn_key[-1] == number:
        return None
    return int(seed.spawn_key[-1])


def _parameters(model: Any) -> dict[str, Any]:
    parameters = plain_parameters(model)
    if isinstance(parameters["encoder"], Encoder):
        parameters["encoder"] = None  # described by a record of its own
    return parameters


def _class_weights(parameters: dict[str, Any]) -> list[ClassWeight] | None:
    """Take a dictionary of class weights out of the parameters."""
    if not isinstance(parameters.get("class_weight"), Mapping):
        return None
    pairs = [(_plain(k), _plain(v)) for k, v in parameters.pop("class_weight").items()]
    for label, _ in pairs:
        if not isinstance(label, Label):
            _refuse(f"class_weight has the key {label!r}, which a file cannot have; use y's labels")
    return [ClassWeight(label=label, weight=weight) for label, weight in pairs]


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------- to a model


def parse(description: bytes) -> ModelRecord:
    """Read a description; every field has the type that it must have."""
    try:
        return decode(description, ModelRecord)
    except ValueError as error:
        _refuse(f"its description of the model cannot be read ({error})")


def build_model(record: ModelRecord) -> Any:
    """Build the model of a description; its networks are still missing."""
    if record.model not in MODELS:
        _refuse(f"it has a model of unknown kind {str(record.model)[:40]!r}")
    parameters: dict[str, Any] = dict(record.parameters)
    if parameters.get("encoder", "") is None:
        parameters["encoder"] = build_encoder(record.encoder)
    if parameters.get("class_weight") not in (None, "balanced"):
        _refuse("its class_weight is neither 'balanced' nor a list of weights")
    if record.class_weight is not None:
        parameters["class_weight"] = _weights_by_class(record.class_weight)
    model = with_parameters(MODELS[record.model], parameters)
    _check_encoders(record, model)
    check_answers(record, model)
    model.graph_kind_ = record.graph_kind
    model.training_score_ = record.score
    model.training_score_nested_ = record.nested
    model.training_scores_ = record.scores
    model.training_split_ = record.split
    model.training_rival_ = record.rival
    model.training_repeats_ = record.repeats
    model.reading_ = record.reading
    if record.classes is not None:
        model.classes_ = restored_classes(record.classes)
        if record.calibration is not None:
            model.calibration_ = record.calibration
        if record.threshold is not None:
            model.threshold_ = record.threshold
    elif isinstance(model, FDGNNClassifier):
        model.classes_ = [restored_classes(t.classes) for t in record.targets if t.classes]
    else:
        model.single_output_ = record.single_output
    return model


def set_seed(record: ModelRecord, estimator: Any) -> None:
    """Give a model or encoder the seed that it was fitted with.

    It also becomes the `random_state`, unless that is an integer.
    """
    if record.seed is None:
        return
    seed = record.seed.sequence()
    if isinstance(estimator, Encoder):
        estimator.take_seed(seed)
    else:
        estimator.seed_ = seed
    parameters = estimator.get_params(deep=False)
    state = parameters.get("random_state")
    if state is None and "random_state" in parameters:
        estimator.random_state = seed
    elif state is not None and record.seed != SeedRecord(entropy=words_of(state), spawn_key=[]):
        _refuse("its seed is not that of its random_state")


def _weights_by_class(pairs: list[ClassWeight]) -> dict[Label, float]:
    found = {pair.label: pair.weight for pair in pairs}
    if len(found) < len(pairs) or not all(0 < weight < math.inf for weight in found.values()):
        _refuse("its class_weight has a class twice, or a weight that is not above zero")
    return found


def _check_encoders(record: ModelRecord, model: Any) -> None:
    """Check that encoders are described where they should be, with the model's parameters."""
    own = [network.encoder for network in record.networks]
    if model.encoder == AUTO:
        if record.encoder != _COMMITTEE or not own or None in own:
            _refuse("the networks of a committee each need an encoder of their own")
        return
    if None in own and any(own):
        _refuse("some of its networks have an encoder of their own, and some have none")
    try:
        (expected,) = (member.encoder for member in model.members(record.graph_kind, 1))
    except ValueError as error:
        _refuse(f"its encoder is wrong: {error}")
    for each in (record.encoder, *filter(None, own)):
        found = difference(build_encoder(each), expected)
        if found is not None:
            _refuse(f"its encoder has another {found} than its model")


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)

"""What the outputs of a model mean, in model files: classes, numbers, and several targets."""

from __future__ import annotations

import math
from typing import Annotated, Any, NoReturn, Protocol

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.estimators import FDGNNClassifier
from fdgnn.exceptions import ModelFileError
from fdgnn.limits import MAX_MODEL_HEADER_BYTES
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.readout.several import Target
from fdgnn.records import Record

Label = bool | int | float | str


class ClassesRecord(Record, frozen=True, kw_only=True):
    """The classes, and the type of their array."""

    dtype: Annotated[str, msgspec.Meta(pattern=r"^(\|O|[<>|][biufU][0-9]{1,7})$")]
    values: list[Label]


class TargetRecord(Record, frozen=True, kw_only=True):
    """One of several targets, with what a model of one target has."""

    name: str
    n_outputs: Annotated[int, msgspec.Meta(ge=1, le=LARGEST_WHOLE)]
    classes: ClassesRecord | None = None
    calibration: float | None = None
    threshold: float | None = None
    scores: dict[str, float] = msgspec.field(default_factory=dict)  # as `ModelRecord` has them
    rival: dict[str, float] = msgspec.field(default_factory=dict)


class _Answers(Protocol):
    """What the record of a model of one target, and that of one of several, have in common."""

    @property
    def n_outputs(self) -> int: ...
    @property
    def classes(self) -> ClassesRecord | None: ...
    @property
    def calibration(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...


# ---------------------------------------------------------------------- from a model


def describe_targets(model: Any) -> list[TargetRecord]:
    """Describe several targets, and what the model of each has learned; none for a single one."""
    return [
        TargetRecord(
            name=target.name,
            n_outputs=one.n_outputs_,
            classes=classes_record(target.classes),
            calibration=getattr(one, "calibration_", None),
            threshold=getattr(one, "threshold_", None),
            scores=known_scores(one, "training_scores_"),
            rival=known_scores(one, "training_rival_"),
        )
        for one, target in zip(model.each_, model.targets_ if model.each_ else (), strict=True)
    ]


def known_scores(model: Any, attribute: str) -> dict[str, float]:
    """Give scores that a model was given after its training, by name; none that is NaN."""
    scores = getattr(model, attribute, {})
    return {name: float(score) for name, score in scores.items() if math.isfinite(score)}


def classes_record(classes: Array | None) -> ClassesRecord | None:
    """Describe the classes of a target; None for numbers."""
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


def check_answers(record: Any, model: Any) -> None:
    """Check that classes, outputs and numbers are there as the kind of model has them."""
    classify = isinstance(model, FDGNNClassifier)
    if record.targets:
        names = {target.name for target in record.targets}
        nothing = (record.classes, record.calibration, record.threshold)
        fits = len(names) == len(record.targets) and nothing == (None, None, None)
        fits &= record.n_outputs == sum(target.n_outputs for target in record.targets)
        fits &= record.single_output is (None if classify else False)
        fits &= all(_fit(target, model) for target in record.targets)
        calibrated = all(target.calibration is not None for target in record.targets)
        fits &= not classify or calibrated or record.trust.held_out is None
    elif classify:
        fits = record.single_output is None and _fit(record, model)
    else:
        fits = record.single_output is not None and (
            _fit(record, model) or (not record.single_output and record.n_outputs > 1)
        )
        fits &= (record.classes, record.calibration, record.threshold) == (None, None, None)
    fits &= all(_has_penalties(each.alpha, len(record.targets)) for each in record.networks)
    if not fits:
        _refuse(f"its classes, outputs and calibration are not those of a {record.model}")


def _has_penalties(alpha: Any, n_targets: int) -> bool:
    return not isinstance(alpha, list) or len(alpha) == n_targets


def _fit(target: _Answers, model: Any) -> bool:
    """Tell whether one target has what a model of its kind has."""
    n, slope, cut = target.n_outputs, target.calibration, target.threshold
    if not isinstance(model, FDGNNClassifier):
        return n == 1 and target.classes is None and slope is None and cut is None
    n_classes = len(target.classes.values) if target.classes else 0
    fits = n_classes >= 2 and n == (1 if n_classes == 2 else n_classes)
    fits &= slope is not None or not model.probability
    fits &= slope is None or 0 < slope < math.inf
    fits &= (cut is None) == (model.threshold is None)
    return fits and (cut is None or (n == 1 and math.isfinite(cut)))


def restore_targets(record: Any, model: Any) -> None:
    """Give a model, whose networks are there, its several targets."""
    if not record.targets and getattr(model, "single_output_", True) is not False:
        return
    # Files of regressors that were written before targets had names have outputs alone.
    described = record.targets or [
        TargetRecord(name=str(i), n_outputs=1) for i in range(record.n_outputs)
    ]
    model.split(_targets(described))
    for one, target in zip(model.each_, described, strict=True):
        one.training_scores_, one.training_split_ = target.scores, model.training_split_
        one.training_rival_ = target.rival
        if target.calibration is not None:
            one.calibration_ = target.calibration
        if target.threshold is not None:
            one.threshold_ = target.threshold
    if hasattr(model, "conformal_"):
        model.share_out_scores()


def _targets(described: list[TargetRecord]) -> tuple[Target, ...]:
    found, start = [], 0
    for target in described:
        classes = None if target.classes is None else restored_classes(target.classes)
        found.append(Target(target.name, classes, slice(start, start + target.n_outputs)))
        start += target.n_outputs
    return tuple(found)


def restored_classes(record: ClassesRecord) -> Array:
    """Build the array, and see that nothing was cut off or rounded on the way."""
    values = record.values
    try:
        dtype = np.dtype(record.dtype)
        if MAX_MODEL_HEADER_BYTES.is_below(dtype.itemsize * len(values) / 4):
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

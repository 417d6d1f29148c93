"""Targets in model files: names, classes, and what a model has learned about its outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import numpy as np

from fdgnn.arrays import Array
from fdgnn.encoders.records import refuse, take
from fdgnn.exceptions import ModelFileError
from fdgnn.limits import MAX_MODEL_HEADER_BYTES
from fdgnn.outputs import FittedTarget
from fdgnn.parameters import LARGEST_WHOLE
from fdgnn.readout.conformal import ConformalScores
from fdgnn.records import Record

Label = bool | int | float | str
Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_WHOLE)]


class ClassesRecord(Record, frozen=True, kw_only=True):
    """The classes of a target, and the type of their array."""

    dtype: Annotated[str, msgspec.Meta(pattern=r"^(\|O|[<>|][biufU][0-9]{1,7})$")]
    values: list[Label]


class TargetRecord(Record, frozen=True, kw_only=True):
    """One target.

    `scores` are nested cross-validation results by metric, in words, and `rival` those of
    regression on Morgan counts in the same folds; both may be empty.
    """

    name: str = ""
    classes: ClassesRecord | None = None  # None for a numeric target
    slope: float | None = None  # of probabilities
    threshold: float | None = None  # was subtracted from the outputs
    conformal: list[Count] | None = None  # numbers of conformal scores of each class
    scores: dict[str, float] = msgspec.field(default_factory=dict)
    rival: dict[str, float] = msgspec.field(default_factory=dict)


# ---------------------------------------------------------------------- from a model


def describe_targets(model: Any) -> list[TargetRecord]:
    """Describe the targets of a fitted model."""
    facts = getattr(model, "training_facts_", (None,) * len(model.targets_))
    return [
        TargetRecord(
            name=target.name,
            classes=_describe_classes(target.classes),
            slope=target.slope,
            threshold=target.threshold,
            conformal=None if target.scores is None else [*map(len, target.scores.groups)],
            scores={} if own is None else _known(own.scores),
            rival={} if own is None else _known(own.rival),
        )
        for target, own in zip(model.targets_, facts, strict=True)
    ]


def _known(scores: dict[str, float]) -> dict[str, float]:
    return {name: float(score) for name, score in scores.items() if math.isfinite(score)}


def target_arrays(model: Any) -> dict[str, Array]:
    """Return the conformal scores of each target that has some, by its number."""
    each = enumerate(model.targets_)
    return {str(t): np.concatenate(own.scores.groups) for t, own in each if own.scores is not None}


def _describe_classes(classes: Array | None) -> ClassesRecord | None:
    if classes is None:
        return None
    if not _can_be_classes(classes):
        raise ModelFileError(
            f"classes of dtype {classes.dtype} cannot be saved; fit with numbers or text as y"
        )
    return ClassesRecord(dtype=classes.dtype.str, values=classes.tolist())


def _can_be_classes(classes: Array) -> bool:
    kind = classes.dtype.kind
    return kind in "biufU" or (kind == "O" and all(type(value) is str for value in classes))


# ---------------------------------------------------------------------- to a model


def restore_targets(
    records: Sequence[TargetRecord], model: Any, flat: bool, arrays: dict[str, Array]
) -> tuple[FittedTarget, ...]:
    """Build the targets of a model of these parameters, each checked.

    Conformal scores are taken out of the arrays.
    """
    names = {record.name for record in records}
    if not records or len(names) < len(records) or (flat and len(records) > 1):
        refuse("it has no targets, two with the same name, or several in a flat y")
    found: list[FittedTarget] = []
    for t, record in enumerate(records):
        start = found[-1].columns.stop if found else 0
        found.append(_restored(record, model, start, arrays, str(t)))
    return tuple(found)


def _restored(
    record: TargetRecord, model: Any, start: int, arrays: dict[str, Array], number: str
) -> FittedTarget:
    classes, width, n_groups = None, 1, 1
    fits = (record.classes is None) == hasattr(model, "intervals")
    if record.classes is not None:
        classes = _restored_classes(record.classes)
        n_groups = len(classes)
        width = 1 if n_groups == 2 else n_groups
        fits &= n_groups >= 2 and (record.slope is None) == (record.conformal is None)
    fits &= record.slope is None or (classes is not None and 0 < record.slope < math.inf)
    learned = getattr(model, "probability", None) or getattr(model, "intervals", None)
    fits &= record.conformal is not None or not learned
    cut = record.threshold
    fits &= (cut is None) == (model.threshold is None)
    fits &= cut is None or (n_groups == 2 and math.isfinite(cut))
    if not fits:
        refuse(
            f"its classes, probabilities and threshold are not those of a {type(model).__name__}"
        )
    scores = None
    if record.conformal is not None:
        scores = _restored_scores(record.conformal, n_groups, classes, arrays, number)
    return FittedTarget(
        record.name, classes, slice(start, start + width), record.slope, cut, scores
    )


def _restored_scores(
    lengths: list[int], n_groups: int, classes: Array | None, arrays: dict[str, Array], number: str
) -> ConformalScores:
    values = take(arrays, number, 1)
    if len(lengths) != n_groups or sum(lengths) != len(values) or not all(lengths):
        refuse("its conformal scores are not as many as it says")
    groups = tuple(np.split(values, np.cumsum(lengths)[:-1]))
    ascend = all((group[1:] >= group[:-1]).all() for group in groups)
    if not ascend or (values < 0).any() or (classes is not None and (values > 1).any()):
        refuse("its conformal scores do not ascend, or are out of range")
    return ConformalScores(groups)


def _restored_classes(record: ClassesRecord) -> Array:
    """Build the array, and check that no value was cut off or rounded."""
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
        refuse("its classes are not an ascending array of numbers or texts")
    return array

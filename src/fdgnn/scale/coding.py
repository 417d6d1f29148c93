"""Targets and folds of parts, the same wherever a part is: functions of a row, not of its place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, mixed_bits
from fdgnn.exceptions import DatasetFormatError
from fdgnn.folds import N_FOLDS, signature_folds
from fdgnn.linear.blocks import SamplePart
from fdgnn.scale.parts import EncodedPart, PartTargets
from fdgnn.scale.survey import ColumnSurvey, Survey
from fdgnn.targets import Target, Targets
from fdgnn.tasks import MOST_CLASSES, TaskName

MANY = 50_000  # graphs that are enough to choose by: of more, one fold alone is held out
MOST_HELD_OUT = 2**20  # graphs whose held-out outputs choose penalties and make probabilities
_OF_SAMPLE = np.uint64(0x5851F42D4C957F2D)
_OF_TRIED = np.uint64(0x14057B7EF767814F)


@dataclass(frozen=True, eq=False)
class Coding:
    """How targets become numbers, and rows go into folds.

    Attributes
    ----------
    names : tuple of str
        Of the targets.
    classes : tuple of arrays, or None
        Of each target; None for numbers.
    class_weights : tuple of arrays, or None
        By what an error on each class of each target counts.
    salt : int
        What folds depend on, beside the graph.
    share : float
        Of graphs whose held-out outputs are kept.
    left_out : tuple of int
        The folds that are held out: all, or of many graphs the first alone.
    tried : float or None
        Share of the other graphs on which penalties are tried; None if that is all of them.
    """

    names: tuple[str, ...]
    classes: tuple[Array, ...] | None
    salt: int
    share: float = 1.0
    class_weights: tuple[Floats, ...] | None = None
    left_out: tuple[int, ...] = tuple(range(N_FOLDS))
    tried: float | None = None

    @classmethod
    def of(cls, names: tuple[str, ...], survey: Survey, task: TaskName, salt: int) -> Coding:
        """Take the classes that were found."""
        few = survey.n_graphs <= MANY
        left_out = tuple(range(N_FOLDS)) if few else (0,)
        held_out = survey.n_graphs * len(left_out) / N_FOLDS
        share = min(1.0, MOST_HELD_OUT / held_out)
        tried = None if few else min(1.0, MANY / (survey.n_graphs - held_out))
        if task == "regression":
            for name, column in zip(names, survey.columns, strict=True):
                _check_numbers(name, column)
            return cls(names, None, salt, share, None, left_out, tried)
        each = [_classes(n, column) for n, column in zip(names, survey.columns, strict=True)]
        return cls(names, tuple(each), salt, share, None, left_out, tried)

    def balanced(self, survey: Survey) -> Coding:
        """Give all classes of a target the same weight in total."""
        if self.classes is None:
            raise ValueError("`class_weight` is for classes, but the target is a number")
        weights = []
        for classes, column in zip(self.classes, survey.columns, strict=True):
            counts = np.array([(column.counts or {})[str(c)] for c in classes.tolist()])
            weights.append(counts.sum() / (len(counts) * counts))
        return replace(self, class_weights=tuple(weights))

    @property
    def targets(self) -> tuple[Target, ...]:
        """What each target is."""
        nothing = np.empty((0, len(self.names)))
        return Targets(self.names, nothing, self.classes).each

    @property
    def n_outputs(self) -> int:
        """Q."""
        return int(self.targets[-1].columns.stop)

    def values(self, answers: PartTargets) -> Targets:
        """Give the targets of a part."""
        pairs = zip(answers.columns, answers.known, strict=True)
        if self.classes is None:
            columns = [
                np.where(known, column.astype(np.float64), np.nan) for column, known in pairs
            ]
            return Targets(self.names, np.stack(columns, axis=1))
        codes = []
        for (column, known), classes in zip(pairs, self.classes, strict=True):
            found = np.searchsorted(classes, column.astype(classes.dtype, copy=False))
            codes.append(np.where(known, found, -1))
        return Targets(self.names, np.stack(codes, axis=1), self.classes)

    def weights(self, values: Targets) -> Floats | None:
        """Weights (n, q) of a part."""
        if self.class_weights is None:
            return None
        columns = []
        for t, (target, each) in enumerate(zip(self.targets, self.class_weights, strict=True)):
            own = each[np.maximum(values.values[:, t], 0)]
            columns += [own] * (target.columns.stop - target.columns.start)
        return np.stack(columns, axis=1)

    def folds(self, answers: PartTargets) -> Ints:
        """Fold of each graph; the same for graphs that are the same."""
        return signature_folds(answers.signatures, self.salt, N_FOLDS)

    def sampled(self, answers: PartTargets) -> npt.NDArray[np.bool_]:
        """Tell whose held-out outputs are kept."""
        some = _drawn(answers, _OF_SAMPLE, self.share)
        return np.asarray(some & np.isin(self.folds(answers), self.left_out))

    def few(self, answers: PartTargets) -> npt.NDArray[np.bool_] | None:
        """Tell on which graphs penalties are tried; None if that is all that are not held out."""
        if self.tried is None:
            return None
        held_out = np.isin(self.folds(answers), self.left_out)
        return np.asarray(_drawn(answers, _OF_TRIED, self.tried) & ~held_out)

    def samples(self, part: EncodedPart) -> SamplePart:
        """Give a part as the solver takes it."""
        values, answers = self.values(part.answers), part.answers
        return SamplePart(
            part.indptr, part.indices, part.values, values.coded, self.weights(values),
            self.folds(answers), self.sampled(answers), self.few(answers),
        )  # fmt: skip


def _drawn(answers: PartTargets, salt: np.uint64, share: float) -> npt.NDArray[np.bool_]:
    """Draw a share of graphs, wherever they stand; equal ones together."""
    bits = mixed_bits(answers.signatures ^ salt)
    return np.asarray(bits <= np.uint64(min(int(share * 2**64), 2**64 - 1)))


def task_of_survey(survey: Survey, names: tuple[str, ...]) -> TaskName:
    """Take text and few different whole numbers for classes, others for numbers."""
    kinds = {name: _task(column) for name, column in zip(names, survey.columns, strict=True)}
    if len(set(kinds.values())) > 1:
        one, other = (
            next(n for n, k in kinds.items() if k == w) for w in ("classification", "regression")
        )
        raise DatasetFormatError(
            f"the targets are of two kinds: {one!r} has classes, and {other!r} numbers; fit them "
            "apart, or say by `task` what all of them are"
        )
    return next(iter(kinds.values()))


def _task(column: ColumnSurvey) -> TaskName:
    if column.kind == "text":
        return "classification"
    few = column.counts is not None and len(column.counts) <= MOST_CLASSES
    return "classification" if column.whole and few else "regression"


def _check_numbers(name: str, column: ColumnSurvey) -> None:
    if column.kind == "text":
        raise DatasetFormatError(
            f"target {name!r} is text, but regression needs numbers; choose classification"
        )
    _check_two(name, column)


def _classes(name: str, column: ColumnSurvey) -> Any:
    if column.counts is None:
        raise DatasetFormatError(
            f"target {name!r} has too many different values to be classes; choose regression"
        )
    _check_two(name, column)
    fewest = min(column.counts.items(), key=lambda each: each[1])
    if fewest[1] < 2:
        raise DatasetFormatError(
            f"class {fewest[0]} of target {name!r} has one graph only, too few to be held out; "
            "add some, or leave it out"
        )
    return column.classes


def _check_two(name: str, column: ColumnSurvey) -> None:
    if column.n_known == 0:
        raise DatasetFormatError(f"target {name!r} is unknown for all graphs; leave it out")
    if column.counts is not None and len(column.counts) == 1:
        value = next(iter(column.counts))
        raise DatasetFormatError(
            f"target {name!r} has one value only, {value}, in all shards; there is nothing to learn"
        )

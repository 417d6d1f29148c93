"""How far to trust each row of predictions: sets of classes, or intervals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.scikit import is_classifier


@dataclass(frozen=True)
class RowTrust:
    """What says how far to trust the prediction of one row.

    Attributes
    ----------
    likely : tuple, optional
        The classes that it may have, if a coverage was asked for.
    interval : (low, high), optional
        Where the predicted number may be, if a coverage was asked for.
    """

    likely: tuple[Any, ...] | None = None
    interval: tuple[float, float] | None = None


NOTHING_KNOWN = RowTrust()


@dataclass(frozen=True)
class Coverage:
    """How often sets or intervals hold the truth, as asked for; None: there are none."""

    share: float | None = None
    by_class: bool = False

    def check(self, model: Any) -> None:
        """Raise ValueError unless the model can give what is asked for."""
        if self.by_class and (self.share is None or not is_classifier(model)):
            raise ValueError("`by_class` is for sets of classes; it needs `coverage`, and classes")
        if self.share is not None:
            for one in model.each_ or (model,):
                self._columns(one, np.zeros((1, one.n_outputs_)))

    def names(self, model: Any) -> list[str]:
        """Columns of the output."""
        if self.share is None:
            return []
        return ["set"] if is_classifier(model) else ["low", "high"]

    def of_rows(self, model: Any, outputs: Floats) -> Iterator[RowTrust]:
        """Give the set or the interval of each row with outputs (n, q), if one is asked for."""
        if self.share is None:
            return (NOTHING_KNOWN for _ in outputs)
        name = "likely" if is_classifier(model) else "interval"
        return (RowTrust(**{name: answer}) for answer in self._columns(model, outputs))

    def _columns(self, model: Any, outputs: Floats) -> Iterator[Any]:
        """Give each row's classes, or both ends of its interval."""
        assert self.share is not None
        if is_classifier(model):
            sets = model.sets_of(outputs, self.share, by_class=self.by_class)
            return (tuple(model.classes_[row].tolist()) for row in sets)
        return ((low, high) for low, high in model.intervals_of(outputs, self.share)[:, 0].tolist())


NO_COVERAGE = Coverage()

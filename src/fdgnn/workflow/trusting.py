"""How far to trust each row of predictions: sets or intervals, and what is unlike the training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Floats
from fdgnn.graphs import GraphBatch
from fdgnn.scikit import is_classifier


@dataclass(frozen=True)
class RowTrust:
    """What says how far to trust the prediction of one row.

    Attributes
    ----------
    novelty : float, optional
        How unlike the training graphs it is, from 0 to 1; None where the model cannot tell.
    unlike : str, optional
        Why it is unlike them, if it is.
    likely : tuple, optional
        The classes that it may have, if a coverage was asked for.
    interval : (low, high), optional
        Where the predicted number may be, if a coverage was asked for.
    """

    novelty: float | None = None
    unlike: str | None = None
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
            self.columns(model, np.zeros((1, model.n_outputs_)))

    def names(self, model: Any) -> list[str]:
        """Columns of the output."""
        if self.share is None:
            return []
        return ["set"] if is_classifier(model) else ["low", "high"]

    def columns(self, model: Any, outputs: Floats) -> Iterator[tuple[Any, ...]]:
        """Give each row's classes, or both ends of its interval."""
        assert self.share is not None
        if is_classifier(model):
            sets = model.sets_of(outputs, self.share, by_class=self.by_class)
            return (tuple(model.classes_[row].tolist()) for row in sets)
        return ((low, high) for low, high in model.intervals_of(outputs, self.share)[:, 0].tolist())


def trust_of(
    model: Any, graphs: GraphBatch, outputs: Floats, coverage: Coverage
) -> Iterator[RowTrust]:
    """Say for each graph, with its outputs (n, q), how far to trust them."""
    novelty: list[Any] = [None] * len(graphs)
    told: dict[int, str] = {}
    if model.novelty_ is not None:
        values = model.novelty(graphs)
        novelty, told = values.tolist(), model.novelty_.told(values)
    found: Any = [None] * len(graphs)
    if coverage.share is not None:
        found = coverage.columns(model, outputs)
    classify = is_classifier(model)
    for g, (new, answer) in enumerate(zip(novelty, found, strict=True)):
        pair = {"likely" if classify else "interval": answer}
        yield RowTrust(new, told.get(g), **pair)

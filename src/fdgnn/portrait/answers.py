"""What models say about graphs, beside what is true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.portrait.records import MISTAKES
from fdgnn.portrait.text import clipped_apart
from fdgnn.readout.targets import winning_class


@dataclass(frozen=True)
class Answers:
    """What models say about all graphs, and what is true.

    For a classification, `actual` and `predicted` are positions in `classes`, which are text. For
    a regression they are numbers, and there are no classes. `actual` is None where the truth is
    not known. `score` is the output for the predicted class, or the predicted number; `outputs`
    (n, q) are all of them, of classes that the models know.
    ``models[model_of[g]]`` answered for graph g, or, where the model that did is gone, is the one
    that explains the answer.
    """

    classes: list[str]
    actual: Array | None
    predicted: Array
    score: Floats
    chances: Floats | None  # (n, n_classes), calibrated
    models: Sequence[Any]
    model_of: Ints
    outputs: Floats

    @property
    def regression(self) -> bool:
        """Whether the answers are numbers."""
        return not self.classes

    @property
    def probability(self) -> Floats | None:
        """The probability of the predicted class."""
        if self.chances is None:
            return None
        return self.chances[np.arange(len(self.predicted)), self.predicted]

    def mistakes(self) -> Ints:
        """Give the most confident mistakes, or the largest errors, first."""
        if self.actual is None:
            return np.empty(0, dtype=np.int64)
        if self.regression:
            size = np.abs(self.actual - self.predicted)
            return np.argsort(-size, kind="stable")[:MISTAKES]
        wrong = np.flatnonzero(self.actual != self.predicted)
        confidence = self.score if self.probability is None else self.probability
        return wrong[np.argsort(-confidence[wrong], kind="stable")[:MISTAKES]]


def ask(models: Sequence[Any], model_of: Ints, graphs: GraphBatch, y: Array | None) -> Answers:
    """Let each graph be predicted by its own model; all models are of one kind."""
    outputs = np.empty((len(graphs), models[0].n_outputs_))
    for m, model in enumerate(models):
        mine = np.flatnonzero(model_of == m)
        outputs[mine] = model.outputs(graphs if len(models) == 1 else graphs[mine])
    if not hasattr(models[0], "classes_"):
        targets = None if y is None else np.asarray(y, dtype=np.float64)
        return Answers([], targets, outputs[:, 0], outputs[:, 0], None, models, model_of, outputs)
    return _of_classes(models, model_of, y, outputs, _chances(models, model_of, outputs))


def told(model: Any, y: Array, outputs: Floats, chances: Floats) -> Answers:
    """Take outputs and probabilities that others gave; the model is there to explain them."""
    return _of_classes([model], np.zeros(len(y), dtype=np.int64), y, outputs, chances)


def _of_classes(
    models: Sequence[Any],
    model_of: Ints,
    y: Array | None,
    outputs: Floats,
    chances: Floats | None,
) -> Answers:
    # The model's order; classes of y that the model does not know come last.
    names = as_text(models[0].classes_) + ([] if y is None else as_text(_in_order(y)))
    number = {name: c for c, name in enumerate(dict.fromkeys(names))}
    if chances is not None:
        chances = np.pad(chances, ((0, 0), (0, len(number) - chances.shape[1])))
    return Answers(
        classes=clipped_apart(number),
        actual=None if y is None else np.array([number[name] for name in as_text(y)]),
        predicted=winning_class(outputs),
        score=np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else outputs.max(axis=1),
        chances=chances,
        models=models,
        model_of=model_of,
        outputs=outputs,
    )


def _chances(models: Sequence[Any], model_of: Ints, outputs: Floats) -> Floats | None:
    if not all(hasattr(model, "calibration_") for model in models):
        return None
    chances = np.zeros((len(outputs), len(models[0].classes_)))
    for m, model in enumerate(models):
        mine = model_of == m
        chances[mine] = model.chances(outputs[mine])
    return chances


def _in_order(y: Array) -> Array:
    """The different values: numbers by size, and values that cannot be compared as text."""
    try:
        return np.unique(y)
    except TypeError:
        return np.unique(as_text(y))


def as_text(values: Array) -> list[str]:
    """Give classes as text, whatever their type."""
    return [str(value) for value in np.asarray(values).tolist()]

"""Predictions of models for graphs, and the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.records import MISTAKES
from fdgnn.html.model_data.text import clipped_apart
from fdgnn.targets import winning_class


@dataclass(frozen=True)
class Answers:
    """Predictions of models of one target for all graphs, and the truth.

    For a classification, `actual` and `predicted` are positions in `classes`, which are text. For
    a regression they are numbers, and there are no classes. `actual` is None where the truth is
    not known. `score` is the output for the predicted class, or the predicted number; `outputs`
    (n, q) are those for all classes that the models know.
    ``models[model_of[g]]`` predicted graph g, or, where that model is gone, is the one that
    explains the prediction.
    """

    classes: list[str]
    actual: Array | None
    predicted: Array
    score: Floats
    probabilities: Floats | None  # (n, n_classes), calibrated
    models: Sequence[Any]
    model_of: Ints
    outputs: Floats

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return not self.classes

    @property
    def probability(self) -> Floats | None:
        """The probability of the predicted class."""
        if self.probabilities is None:
            return None
        return self.probabilities[np.arange(len(self.predicted)), self.predicted]

    def mistakes(self) -> Ints:
        """Return the graphs with mistakes: the most confident, or the largest error, first."""
        if self.actual is None:
            return np.empty(0, dtype=np.int64)
        if self.regression:
            size = np.abs(self.actual - self.predicted)
            return np.argsort(-size, kind="stable")[:MISTAKES]
        wrong = np.flatnonzero(self.actual != self.predicted)
        confidence = self.score if self.probability is None else self.probability
        return wrong[np.argsort(-confidence[wrong], kind="stable")[:MISTAKES]]


def predict(models: Sequence[Any], model_of: Ints, graphs: GraphBatch, y: Array | None) -> Answers:
    """Predict each graph by its own model; all models are of one kind."""
    outputs = np.empty((len(graphs), models[0]._n_outputs))
    for m, model in enumerate(models):
        mine = np.flatnonzero(model_of == m)
        outputs[mine] = model.outputs(graphs if len(models) == 1 else graphs[mine])
    if models[0].targets_[0].classes is None:
        targets = None if y is None else np.asarray(y, dtype=np.float64)
        return Answers([], targets, outputs[:, 0], outputs[:, 0], None, models, model_of, outputs)
    return _of_classes(models, model_of, y, outputs, _probabilities(models, model_of, outputs))


def predicted_before(model: Any, y: Array, outputs: Floats, probabilities: Floats) -> Answers:
    """Take outputs and probabilities of earlier models; `model` explains them."""
    return _of_classes([model], np.zeros(len(y), dtype=np.int64), y, outputs, probabilities)


def _of_classes(
    models: Sequence[Any],
    model_of: Ints,
    y: Array | None,
    outputs: Floats,
    probabilities: Floats | None,
) -> Answers:
    # The model's order; classes of y that the model does not know come last.
    names = as_text(models[0].targets_[0].classes) + ([] if y is None else as_text(_in_order(y)))
    number = {name: c for c, name in enumerate(dict.fromkeys(names))}
    if probabilities is not None:
        more = len(number) - probabilities.shape[1]
        probabilities = np.pad(probabilities, ((0, 0), (0, more)))
    return Answers(
        classes=clipped_apart(number),
        actual=None if y is None else np.array([number[name] for name in as_text(y)]),
        predicted=winning_class(outputs),
        score=np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else outputs.max(axis=1),
        probabilities=probabilities,
        models=models,
        model_of=model_of,
        outputs=outputs,
    )


def _probabilities(models: Sequence[Any], model_of: Ints, outputs: Floats) -> Floats | None:
    targets = [model.targets_[0] for model in models]
    if any(target.slope is None for target in targets):
        return None
    found = np.zeros((len(outputs), len(targets[0].classes)))
    for m, target in enumerate(targets):
        mine = model_of == m
        found[mine] = target.probabilities(outputs[mine])
    return found


def _in_order(y: Array) -> Array:
    """Return the distinct values: numbers by size, and values that cannot be compared as text."""
    try:
        return np.unique(y)
    except TypeError:
        return np.unique(as_text(y))


def as_text(values: Array) -> list[str]:
    """Return classes as text, whatever their type."""
    return [str(value) for value in np.asarray(values).tolist()]

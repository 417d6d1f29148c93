"""The substructures that a page draws: those that count most for and against each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.explanations import Substructure, substructures
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.drawings import LARGEST_DRAWN
from fdgnn.html.model_data.records import SubstructureFacts
from fdgnn.html.model_data.text import clipped, short

_MOST = 6  # for each class, and as many against it
_CLASSES = 10  # whose substructures are shown, at most
_LONGEST = 240  # letters that describe one


def substructure_facts(
    model: Any, graphs: GraphBatch, mapped: Ints, classes: Sequence[str], names: Mapping[str, str]
) -> list[SubstructureFacts]:
    """Find the substructures of a model on the mapped graphs; `names` are those of labels."""
    part = graphs if len(mapped) == len(graphs) else graphs[mapped]
    known = [None] if len(classes) == 0 else list(model.targets_[0].classes)
    targets = [None] if len(known) <= _CLASSES else known[:_CLASSES]
    found = [
        one
        for target in targets
        for one in substructures(model, part, target=target, n_most=_MOST, names=names)
    ]
    number = {value: c for c, value in enumerate(known)}
    return [_facts(one, classes[number[one.target]] if classes else None, mapped) for one in found]


def _facts(one: Substructure, target: str | None, mapped: Ints) -> SubstructureFacts:
    drawn = len(one.steps) <= LARGEST_DRAWN
    return SubstructureFacts(
        target=target,
        words=clipped(one.words, longest=_LONGEST),
        round=one.round,
        weight=short(one.weight),
        contribution=short(one.contribution),
        n_graphs=one.n_graphs,
        graph=int(mapped[one.graph]),
        steps=one.steps.tolist() if drawn else [],
        radius=one.radius,
    )


def examples_of(found: Sequence[SubstructureFacts]) -> Ints:
    """Graphs that are examples, each once."""
    return np.unique(np.array([one.graph for one in found], dtype=np.int64))

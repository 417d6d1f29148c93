"""Labels that no training graph has: which graphs have some, and how it is told."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from fdgnn.exceptions import UnseenLabelWarning
from fdgnn.graphs import GraphBatch
from fdgnn.texts import agreeing

#: What may be done about vertex labels that no training graph has: an error, or nothing.
HANDLE_UNKNOWN = ("error", "ignore")


def unseen_in_words(graphs: GraphBatch, vocabulary: Sequence[Any] | None) -> dict[int, str]:
    """Positions of graphs with a vertex label that is not in the vocabulary, each with words."""
    new = graphs.new_labels(vocabulary)
    return {g: f"vertex label {label} was not seen during fit" for g, label in new.items()}


def unseen_arcs_in_words(graphs: GraphBatch, vocabulary: Sequence[Any] | None) -> dict[int, str]:
    """Positions of graphs with an edge label that is not in the vocabulary, each with words."""
    new = graphs.new_arc_labels(vocabulary)
    return {g: f"edge label {label} was not seen during fit" for g, label in new.items()}


def tell_unseen(n_unseen: int, n_graphs: int, stacklevel: int = 3) -> None:
    """Warn once if some of the graphs have new labels."""
    if n_unseen:
        verb = agreeing(n_unseen, "has", "have")
        message = f"{n_unseen} of {n_graphs} graphs {verb} {WHAT_IT_MEANS}"
        warnings.warn(message, UnseenLabelWarning, stacklevel=stacklevel + 1)


WHAT_IT_MEANS = (
    "labels or descriptors that were not seen during fit; the model knows nothing about "
    "these, so its answers rest on the rest of the graph"
)

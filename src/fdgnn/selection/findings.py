"""What a search found out: how all that was tried does, what is best, and a model made of that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fdgnn.arrays import Floats, Ints
from fdgnn.context import Context
from fdgnn.graphs import GraphBatch
from fdgnn.selection.finished import FinishedParts
from fdgnn.selection.space import Parameters


def ranks(scores: Floats) -> Ints:
    """Rank scores: 1 is the best, and equal scores share the better rank."""
    return np.searchsorted(np.sort(-scores), -scores) + 1


@dataclass(frozen=True)
class Workplace:
    """Where a search is carried out: by how many processes, and what earlier ones have finished."""

    context: Context
    finished: FinishedParts


@dataclass(frozen=True)
class Findings:
    """What a search found out; a subclass says how a model is made of it.

    Attributes
    ----------
    results : dict
        One row for each thing that was tried, as in `FDGNNSearchCV.cv_results_`.
    best_index, best_params, best_score : int, dict, float
    test_scores : (n_outer,)
        How what each outer fold chose does on its test graphs.
    outputs : (n_outer, n, q)
        What it says of the test graphs; if a threshold is to be chosen, also what readouts say of
        training graphs that have not seen their inner fold.
    n_resumed : int
        Parts of the search that an earlier one had finished.
    """

    results: dict[str, Any]
    best_index: int
    best_params: Parameters
    best_score: float
    test_scores: Floats
    outputs: Floats
    n_resumed: int

    def fitted(self, graphs: GraphBatch, y: Any, weights: Floats | None) -> Any:
        """Fit what was chosen on the graphs of the search."""
        raise NotImplementedError

    def refitted(self, graphs: GraphBatch, y: Any, weights: Any) -> Any:
        """Fit what was chosen on other graphs."""
        raise NotImplementedError

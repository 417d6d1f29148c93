"""What a search is asked: the targets, what they are scored by, and how graphs are held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.readout.metrics import Scoring, named_scoring, usual_scoring
from fdgnn.readout.rare import tell_rare_class
from fdgnn.readout.several import SeveralTargets, class_targets, n_columns, number_targets
from fdgnn.readout.targets import check_label_types, check_one_each, class_labels, sample_weights
from fdgnn.scikit import (
    is_classifier,
)
from fdgnn.selection.scorers import scoring_of
from fdgnn.selection.scores import (
    SelectionTask,
    classification_task,
    regression_task,
    several_task,
)
from fdgnn.selection.space import (
    ALPHAS,
)
from fdgnn.selection.splits import Splitters


@dataclass(frozen=True)
class Question:
    """What a search is asked.

    Attributes
    ----------
    base : the estimator, not fitted
    scoring : str, callable or None
        What is asked for; None is the usual.
    alphas : sequence of float, optional
        Penalties to try; by default the usual ones of the estimator.
    splitters : Splitters
    """

    base: Any
    scoring: Any
    alphas: Sequence[float] | None
    splitters: Splitters

    @property
    def classify(self) -> bool:
        """Whether the targets are classes."""
        return bool(is_classifier(self.base))

    def targets(self, y: Any, graphs: GraphBatch) -> Any:
        """Give one target as an array, and several as such, all of them checked."""
        classify, width = self.classify, n_columns(y)
        if width is not None and (width > 1 or not classify):
            several = class_targets(y, graphs) if classify else number_targets(y, graphs)
            several.check_learnable()
            return several
        if classify:
            check_label_types(y)
        y = np.asarray(y)
        check_one_each(graphs, y)
        return y

    def tell_rare_class(self, y: Any) -> None:
        """Warn of a rare class, unless something is said about the scoring."""
        if self.scoring is None and self.classify:
            heeded = self.base.heeds_rare_classes
            if isinstance(y, SeveralTargets):
                y.tell_rare_class(heeded, stacklevel=5)
            else:
                tell_rare_class(y, heeded, stacklevel=4)

    def task(
        self, graphs: GraphBatch, y: Any, weights: Floats | None, groups: Array | None
    ) -> SelectionTask:
        """Make the task that everything is scored on, of checked targets."""
        classify, several = self.classify, isinstance(y, SeveralTargets)
        if classify and not several:
            y = class_labels(y, graphs)
            self.base.check_threshold(len(np.unique(y)))
            class_weight = getattr(self.base, "class_weight", None)
            weights = sample_weights(weights, len(y), y, class_weight)
        relative = self.base.relative_penalty
        usual = self.base.penalties(len(graphs)) if relative else ALPHAS
        alphas = np.array(usual if self.alphas is None else self.alphas, dtype=np.float64)
        if not (np.isfinite(alphas) & (alphas >= 0)).all():
            raise ValueError(f"alphas={self.alphas!r}: expected finite numbers, at least 0")
        folds = self.splitters.rows(y, groups)
        metric = self.scoring_of(y).metric
        if several:
            class_weight = getattr(self.base, "class_weight", None)
            task = several_task(graphs, y, folds, alphas, metric)
            return replace(task, weights=y.weights(weights, class_weight))
        new_task = classification_task if classify else regression_task
        return replace(new_task(graphs, y, folds, alphas, metric), weights=weights)

    def scoring_of(self, y: Any) -> Scoring:
        """What is asked for, or the usual."""
        given = self.scoring
        if isinstance(y, SeveralTargets):
            codes = y.rarest()
            return (
                usual_scoring(codes) if given is None else named_scoring(given, codes is not None)
            )
        if not self.classify:
            return scoring_of(given, None, None)
        classes, codes = np.unique(y, return_inverse=True)
        return scoring_of(given, codes, classes)

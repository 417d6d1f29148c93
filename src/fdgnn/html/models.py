"""What a page shows about a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from fdgnn.evaluation.record import Evaluation
from fdgnn.model_files import ModelInfo, model_info
from fdgnn.model_files.state import TargetRecord


@dataclass(frozen=True)
class ModelFacts:
    """What a model file says about its model, or about one of its several targets.

    Attributes
    ----------
    kind : str
        The class of the model, or the kind of an encoder.
    targets : tuple of TargetRecord
        Name and classes of each target in the file; none for an encoder.
    target : str, optional
        The one of several targets that is shown.
    score : float, optional
        The score that it was saved with.
    nested : bool
        Whether the score is a nested cross-validation result.
    settings, versions : mapping
        Names and values to be shown as they are.
    evaluation : Evaluation, optional
        The nested cross-validation results of all targets.
    """

    kind: str
    targets: tuple[TargetRecord, ...]
    score: float | None
    nested: bool
    settings: Mapping[str, object]
    versions: Mapping[str, object]
    evaluation: Evaluation | None = None
    target: str | None = None

    @property
    def _shown(self) -> list[TargetRecord]:
        return [one for one in self.targets if self.target in (None, one.name)]

    @property
    def n_classes(self) -> int:
        """The number of classes of the only target; 0 for a regressor, and for several."""
        one = self._shown[0] if len(self._shown) == 1 else TargetRecord()
        return 0 if one.classes is None else len(one.classes.values)

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts numbers."""
        return any(target.classes is None for target in self.targets)

    @property
    def shown(self) -> Evaluation | None:
        """The nested cross-validation results, of the shown target if it is one of several."""
        if self.evaluation is None or self.target is None:
            return self.evaluation
        return self.evaluation.of_target(self.target)

    @property
    def scores(self) -> Mapping[str, float]:
        """Nested cross-validation results by metric, the mean over targets."""
        return scores_of(self.shown)

    @property
    def usual_score(self) -> float | None:
        """Accuracy or R2, if the file has it, or else the score that it was saved with."""
        return self.scores.get("R2" if self.is_regressor else "accuracy", self.score)


def model_facts(path: str | os.PathLike[str], target: str | None = None) -> ModelFacts:
    """Read what a page shows about a model file, or about one of its several targets.

    Errors are those of `model_info`.
    """
    info = model_info(path)
    facts = _facts(info)
    if target is None or len(info.targets) == 1:
        return facts
    found = replace(facts, target=target)
    return replace(found, score=next(iter(found.scores.values()), None))


def _facts(info: ModelInfo) -> ModelFacts:
    first = info.estimators[0].encoder if info.estimators else info.encoder
    assert first is not None  # a file has a model or an encoder
    kind = info.model or first.kind
    facts = {name: value for name, value in first.facts.items() if not isinstance(value, list)}
    graphs = {"directed": info.graph_kind.directed, "vertices_carry": info.graph_kind.vertices}
    encoder = {"encoder": first.kind} | first.parameters | facts
    return ModelFacts(
        kind=kind,
        targets=tuple(info.targets),
        score=info.score,
        nested=info.nested,
        settings={"class": kind} | encoder | info.parameters | graphs,
        versions={"fdgnn": info.fdgnn, "format": info.format},
        evaluation=info.evaluation,
    )


def scores_of(evaluation: Evaluation | None) -> dict[str, float]:
    """Return the means of an evaluation by metric, in words."""
    each = [] if evaluation is None else evaluation.metrics
    return {one.words: one.mean for one in each if one.mean is not None}

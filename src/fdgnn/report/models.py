"""What a page tells about a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fdgnn.model_files import ModelInfo, model_info


@dataclass(frozen=True)
class ModelFacts:
    """What a model file says about its model.

    Attributes
    ----------
    kind : str
        The class of the model.
    n_classes : int
        How many classes it knows; 0 for a regressor.
    score : float, optional
        The score that it was saved with.
    nested : bool
        Whether the score was measured by nested cross validation.
    settings, versions : mapping
        Names and values to be shown as they are.
    scores : mapping
        Scores on graphs held out, by measure; what models were chosen by is the first.
    targets : mapping
        The same for each of the file's several targets.
    split : str, optional
        How these graphs were held out, in words.
    rivals : mapping
        Scores of regression on Morgan counts in the same folds: of a target by its name, else
        of "".
    repeats : str, optional
        What is to be said of graphs with a twin in another fold.
    """

    kind: str
    n_classes: int
    score: float | None
    nested: bool
    settings: Mapping[str, object]
    versions: Mapping[str, object]
    scores: Mapping[str, float] = field(default_factory=dict)
    targets: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    split: str | None = None
    rivals: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    repeats: str | None = None

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts numbers."""
        return self.kind == "FDGNNRegressor"

    @property
    def usual_score(self) -> float | None:
        """Accuracy or R2, if the file has it; files without `scores` do not say what theirs is."""
        return self.scores.get("R2" if self.is_regressor else "accuracy", self.score)


def model_facts(path: str | os.PathLike[str], target: str | None = None) -> ModelFacts:
    """Read what a page tells about a model file, or about one of its several targets.

    Errors are those of `model_info`.
    """
    info = model_info(path)
    facts = _facts(info)
    if target is None:
        return facts
    one = next(each for each in info.targets if each.name == target)
    return replace(
        facts,
        n_classes=0 if one.classes is None else len(one.classes.values),
        score=next(iter(one.scores.values()), None),
        scores=one.scores,
    )


def _facts(info: ModelInfo) -> ModelFacts:
    kind = info.model or info.encoder.kind
    graphs = {"directed": info.graph_kind.directed, "vertices_carry": info.graph_kind.vertices}
    facts = {n: v for n, v in info.encoder.facts.items() if not isinstance(v, list)}
    encoder = {"encoder": info.encoder.kind} | info.encoder.parameters | facts
    return ModelFacts(
        kind=kind,
        n_classes=0 if info.classes is None else len(info.classes.values),
        score=info.score,
        nested=info.nested,
        # The parameters of an encoder that is an object are not those of the model.
        settings={"class": kind} | info.parameters | encoder | graphs,
        versions={"fdgnn": info.fdgnn, "format": info.format},
        scores=info.scores,
        targets={target.name: target.scores for target in info.targets},
        split=info.split,
        rivals={"": info.rival} | {target.name: target.rival for target in info.targets},
        repeats=info.repeats,
    )

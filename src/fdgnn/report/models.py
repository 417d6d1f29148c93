"""What a page tells about a model file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from fdgnn.model_files import model_info


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
    """

    kind: str
    n_classes: int
    score: float | None
    nested: bool
    settings: Mapping[str, object]
    versions: Mapping[str, object]

    @property
    def is_regressor(self) -> bool:
        """Whether it predicts numbers."""
        return self.kind == "FDGNNRegressor"


def model_facts(path: str | os.PathLike[str]) -> ModelFacts:
    """Read what a page tells about a model file; errors are those of `model_info`."""
    info = model_info(path)
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
    )

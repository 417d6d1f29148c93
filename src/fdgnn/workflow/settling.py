"""What models and thresholds are chosen by, where a user leaves it open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fdgnn.readout.metrics import OF_CLASSES, Scoring, named_scoring, usual_scoring
from fdgnn.readout.rare import rare_class
from fdgnn.readout.several import SeveralTargets
from fdgnn.readout.thresholds import THRESHOLDS

if TYPE_CHECKING:
    from fdgnn.workflow.searching import Wishes


def settled(wishes: Wishes, y: Any, classify: bool) -> tuple[Scoring, str | None]:
    """Give what models and the threshold are chosen by; where a class is rare, F1 cuts."""
    for name in ("threshold", "class_weight"):
        if getattr(wishes, name) is not None and not classify:
            raise ValueError(f"`{name}` is for classes, but the target is a number")
    if not classify:
        return named_scoring(wishes.scoring or "r2", classify), None
    if isinstance(y, SeveralTargets):
        codes = y.rarest()
        many = {t.name: len(t.classes) for t in y.targets if t.classes is not None}
        whose = next((f"target {name!r} has {n}" for name, n in many.items() if n > 2), "")
    else:
        classes, codes = np.unique(y, return_inverse=True)
        whose = f"the target has {len(classes)}" if len(classes) > 2 else ""
    assert codes is not None
    if wishes.threshold is not None and wishes.threshold not in THRESHOLDS:
        known = ", ".join(THRESHOLDS)
        raise ValueError(f"threshold={wishes.threshold!r}: expected one of {known}")
    if wishes.threshold is not None and whose:
        raise ValueError(f"`threshold` is for two classes, but {whose}")
    threshold = wishes.threshold or ("f1" if not whose and rare_class(codes) else None)
    return named_scoring(wishes.scoring or usual_scoring(codes).name, classify), threshold


def about_rare(y: Any, scoring: Scoring, threshold: str | None) -> str | None:
    """Say which class is rare, and what is done about it; None if none is."""
    columns = {"": y}
    if isinstance(y, SeveralTargets):
        columns = {f" of target {name!r}": y.of_graphs(t) for t, name in enumerate(y.names)}
    rare = {of: found for of, column in columns.items() if (found := rare_class(column))}
    if not rare:
        return None
    of, (name, share) = next(iter(rare.items()))
    whose = _positive(y) if scoring.name in ("f1", "average_precision") else ""
    text = f"class {name}{of} has {100 * share:.1f} % of the graphs: {scoring.words}{whose} chooses"
    text += " models"
    if threshold is not None:
        whose = " of that class" if threshold == "f1" else ""
        text += f", and classes are told apart where {OF_CLASSES[threshold].words}{whose} is best"
    return text


def _positive(y: Any) -> str:
    """Name the class of which precision and recall are: of two, the second in their order."""
    classes: Any = () if isinstance(y, SeveralTargets) else np.unique(y)
    return f" of class {classes[1]}" if len(classes) == 2 else ""

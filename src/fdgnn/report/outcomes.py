"""How good each source is: of a run its outer folds, else a portrait's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fdgnn import paper
from fdgnn.report.numbers import percent, plural
from fdgnn.report.sources import Source


@dataclass(frozen=True)
class Outcome:
    """How good a source is, in shares; `std` is over outer folds, where there are some."""

    mean: float
    std: float | None
    folds: Sequence[float]
    single: tuple[float, float] | None  # with one layer
    how: str


def outcome_of(source: Source) -> Outcome | None:
    """The accuracy of a run, or else of a portrait's predictions; None if neither has one."""
    result, portrait = source.result, source.portrait
    if result is not None:
        single = result["single_layer"]
        return Outcome(
            result["accuracy_mean"],
            result["accuracy_std"],
            result["fold_accuracies"],
            (single["accuracy_mean"], single["accuracy_std"]),
            f"mean of {plural(len(result['fold_accuracies']), 'outer fold')}",
        )
    confusion = (portrait or {}).get("confusion")
    if portrait is None or not confusion:
        return None
    total = sum(map(sum, confusion))
    right = sum(row[i] for i, row in enumerate(confusion))
    seen = "held out" if portrait["held_out"] else "perhaps seen in training"
    how = f"{plural(total, 'graph')}, {seen}"
    return Outcome(right / total, None, [], None, how) if total else None


def published_of(source: Source) -> paper.Score | None:
    """The paper's FDGNN row for this dataset."""
    return paper.ACCURACY["FDGNN"].get(source.dataset)


def verdict(outcome: Outcome, published: paper.Score) -> str:
    """How a mean compares with the paper's, in points and in its standard deviation."""
    theirs, difference = published.mean / 100, 100 * outcome.mean - published.mean
    std = published.std or 0.0
    if abs(difference) <= std:
        return f"within one standard deviation of the paper's {percent(theirs)}"
    where = "above" if difference > 0 else "below"
    return (
        f"{abs(difference):.1f} points {where} the paper's {percent(theirs)}, more than its "
        f"standard deviation of {std:.1f}"
    )

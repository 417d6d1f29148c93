"""How good each source is on graphs it has never seen, and whether the paper has a row for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fdgnn.experiments import paper
from fdgnn.report.numbers import count, percent, plural, significant
from fdgnn.report.sources import Source


@dataclass(frozen=True)
class Outcome:
    """How good a source is, in shares; `std` is over outer folds, where there are some."""

    mean: float
    std: float | None
    folds: Sequence[float]
    single: tuple[float, float] | None  # with one layer
    how: str
    here: bool = True  # whether it is of the portrait's graphs


def outcome_of(source: Source) -> Outcome | None:
    """The accuracy to expect on other graphs: of a run, of graphs held out, or as saved.

    None if none of these is known: predictions of graphs seen in training tell nothing of others.
    """
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
    told = told_rightly(source)
    if portrait is not None and portrait["held_out"] and told is not None:
        right, total = told
        return Outcome(right / total, None, [], None, f"{plural(total, 'graph')}, held out")
    saved = saved_score(source)
    if portrait is None or portrait["held_out"] or saved is None or is_regression(source):
        return None
    return Outcome(saved[0], None, [], None, saved[1], here=False)


def told_rightly(source: Source) -> tuple[int, int] | None:
    """How many of a portrait's graphs are predicted rightly, and of how many that is known."""
    confusion = (source.portrait or {}).get("confusion") or []
    total = sum(map(sum, confusion))
    return (sum(row[i] for i, row in enumerate(confusion)), total) if total else None


def is_regression(source: Source) -> bool:
    """Whether a model file predicts quantities."""
    return (source.model or {}).get("class") == "FDGNNRegressor"


def saved_score(source: Source) -> tuple[float, str] | None:
    """The score in a model file, and what it is."""
    facts = source.model or {}
    score = facts.get("score")
    if not isinstance(score, int | float):
        return None
    # Only 'fdgnn fit' notes how it read the data; others may have saved any score.
    nested = facts.get("reading") is not None
    how = "nested cross validation" if nested else "as measured by whoever made it"
    return float(score), f"{how}, saved with the model"


def shown_score(score: float, source: Source) -> str:
    """An accuracy or R2, as text."""
    return significant(score) if is_regression(source) else percent(score)


def is_of_the_paper(source: Source) -> bool:
    """Whether it is an evaluation of one of the paper's datasets, not only of one called alike."""
    facts = paper.DATASETS.get(source.dataset)
    return facts is not None and (source.result or {}).get("n_graphs") == facts.n_graphs


def published_of(source: Source) -> paper.Score | None:
    """The paper's FDGNN row for this evaluation, if it has one."""
    return paper.ACCURACY["FDGNN"].get(source.dataset) if is_of_the_paper(source) else None


def why_no_row(source: Source) -> str:
    """Why nothing of the paper is beside an evaluation."""
    facts = paper.DATASETS.get(source.dataset)
    if facts is None:
        return "The paper has no row for this dataset."
    n = (source.result or {}).get("n_graphs", 0)
    return (
        f"The paper's {source.dataset} has {count(facts.n_graphs)} graphs and this one {count(n)}, "
        "so that its row is not shown beside it."
    )


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

"""How good each subject is on graphs it has never seen, and whether the paper has a row for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from fdgnn.evaluation import paper
from fdgnn.evaluation.committee_records import CommitteeResult
from fdgnn.html.model_data.records import Portrait
from fdgnn.html.numbers import count, percent, plural, significant
from fdgnn.html.subjects import Subject


@dataclass(frozen=True)
class Outcome:
    """How good a subject is, in shares; `std` is over outer folds, where there are some."""

    mean: float
    std: float | None
    folds: Sequence[float]
    single: tuple[float, float] | None  # with one layer
    how: str
    here: bool = True  # whether it was measured on the portrait's graphs
    balanced: float | None = None  # mean over outer folds of the mean over classes
    roc_auc: float | None = None


def outcome_of(subject: Subject) -> Outcome | None:
    """The accuracy to expect on other graphs: of a run, of graphs held out, or as saved.

    It is None if none of these is known. Predictions for graphs seen in training tell nothing
    about others.
    """
    result, portrait = subject.result, subject.portrait
    if result is not None:
        single = result.single_layer
        return Outcome(
            result.accuracy_mean,
            result.accuracy_std,
            result.fold_accuracies,
            (single.accuracy_mean, single.accuracy_std),
            f"mean of {plural(len(result.fold_accuracies), 'outer fold')}",
            balanced=result.balanced_accuracy_mean,
            roc_auc=result.roc_auc_mean,
        )
    if subject.committee is not None and subject.committee.result is not None:
        return _of_committee(subject.committee.result)
    right = right_of(subject)
    if portrait is not None and portrait.held_out and right is not None:
        n, total = right
        how = f"{plural(total, 'graph')}, held out"
        balanced, area = balanced_of(portrait), portrait.roc_auc
        return Outcome(n / total, None, [], None, how, balanced=balanced, roc_auc=area)
    saved = saved_score(subject)
    if portrait is None or portrait.held_out or saved is None or is_regression(subject):
        return None
    scores = {} if subject.model is None else subject.model.scores
    return Outcome(
        saved[0],
        None,
        [],
        None,
        saved[1],
        here=False,
        balanced=scores.get("balanced accuracy"),
        roc_auc=scores.get("ROC AUC"),
    )


def _of_committee(result: CommitteeResult) -> Outcome:
    n_folds = plural(len(result.fold_accuracies), "outer fold")
    return Outcome(
        result.accuracy_mean,
        result.accuracy_std,
        result.fold_accuracies,
        None,
        f"mean of {n_folds} with the model {result.model}",
        balanced=result.balanced_accuracy_mean,
        roc_auc=result.roc_auc_mean,
    )


def right_of(subject: Subject) -> tuple[int, int] | None:
    """How many of a portrait's graphs are predicted rightly, and for how many that is known."""
    confusion = (subject.portrait and subject.portrait.confusion) or []
    total = sum(map(sum, confusion))
    return (sum(row[i] for i, row in enumerate(confusion)), total) if total else None


def balanced_of(portrait: Portrait) -> float:
    """The share of graphs of a class that are predicted rightly, averaged over classes."""
    rows = {i: row for i, row in enumerate(portrait.confusion or []) if sum(row)}
    return mean(row[i] / sum(row) for i, row in rows.items())


def is_regression(subject: Subject) -> bool:
    """Whether a model file predicts numbers."""
    return subject.model is not None and subject.model.is_regressor


def saved_score(subject: Subject) -> tuple[float, str] | None:
    """Accuracy or R2 in a model file, and how it was measured."""
    score = None if subject.model is None else subject.model.usual_score
    if subject.model is None or score is None:
        return None
    how = "nested cross-validation" if subject.model.nested else "as measured by whoever made it"
    found = subject.model.evaluation
    split = "" if found is None else f", {found.protocol.split}"
    return score, f"{how}{split}, saved with the model"


def shown_score(score: float, subject: Subject) -> str:
    """An accuracy or R2, as text."""
    return significant(score) if is_regression(subject) else percent(score)


def is_of_the_paper(subject: Subject) -> bool:
    """Whether it evaluates one of the paper's datasets, and not another one of the same name."""
    facts = paper.DATASETS.get(subject.dataset)
    return (
        facts is not None
        and subject.evaluation is not None
        and subject.evaluation.n_graphs == facts.n_graphs
    )


def published_of(subject: Subject) -> paper.Score | None:
    """The paper's FDGNN row for this evaluation, if it has one."""
    return paper.ACCURACY["FDGNN"].get(subject.dataset) if is_of_the_paper(subject) else None


def our_name(subject: Subject) -> str:
    """What a row of ours is called among published ones."""
    return "FDGNN" if subject.committee is None else f"FDGNN {subject.committee.settings.model}"


def why_no_row(subject: Subject) -> str:
    """Why no row of the paper is beside an evaluation."""
    facts = paper.DATASETS.get(subject.dataset)
    if facts is None:
        return "The paper has no row for this dataset."
    n = 0 if subject.evaluation is None else subject.evaluation.n_graphs
    return (
        f"The paper's {subject.dataset} has {count(facts.n_graphs)} graphs and this one "
        f"{count(n)}, so the paper's row is not shown."
    )


def verdict(outcome: Outcome, published: paper.Score) -> str:
    """Compare a mean with the paper's, in points and in standard deviations."""
    theirs, difference = published.mean / 100, 100 * outcome.mean - published.mean
    std = published.std or 0.0
    if abs(difference) <= std:
        return f"within one standard deviation of the paper's {percent(theirs)}"
    where = "above" if difference > 0 else "below"
    return (
        f"{abs(difference):.1f} points {where} the paper's {percent(theirs)}, more than its "
        f"standard deviation of {std:.1f}"
    )

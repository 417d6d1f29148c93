"""How a committee was selected: its models alone, and in how many outer folds each was averaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from fdgnn.evaluation.committee_files import CommitteeRun
from fdgnn.evaluation.committee_records import CommitteeResult
from fdgnn.html import charts
from fdgnn.html.figures import Cell, Figure, Key, Missing, Panel, Part, Row, Table
from fdgnn.html.numbers import SPACE, duration, percent, plain, plural, spread
from fdgnn.html.subjects import Subject
from fdgnn.metrics import OF_CLASSES, ranks


def lead(committee: CommitteeRun) -> str:
    """How models of a committee are chosen, in a few sentences."""
    name = committee.settings.scoring  # of a file that may be somebody else's
    scoring = OF_CLASSES.get(name)
    words = name if scoring is None else scoring.words
    ranking = scoring is not None and ranks(scoring.metric)
    error = "number of pairs in the wrong order" if ranking else "squared error"
    return (
        f"In each outer fold every model takes the penalty with the best {words} on the "
        "validation graphs. Then outputs are averaged over all models but those that are clearly "
        f"worse: whose {error} on the validation graphs exceeds that of the best by more than "
        "three standard errors. The test graphs play no part in either choice. The accuracies "
        "shown here are those on the test graphs."
    )


def part(run: int, subject: Subject, committee: CommitteeRun, lead: str) -> Part:
    """The models of a committee, or what is still missing."""
    if committee.result is None:
        why = (
            f"{committee.n_trained} of {plural(len(committee.settings.members), 'model')} trained "
            "so far. What is averaged is decided when all of them are."
        )
        return Part(run, subject.name, missing=Missing(why), lead=lead)
    return Part(run, subject.name, [_figure(run, committee.result)], lead=lead)


@dataclass(frozen=True)
class _Member:
    """One model of a committee, over the outer folds."""

    name: str
    accuracy: float
    n_kept: int
    alphas: Sequence[float]
    seconds: float


def _members(result: CommitteeResult) -> list[_Member]:
    return [
        _Member(
            name,
            result.member_accuracies[i],
            sum(i in kept for kept in result.fold_kept),
            [alphas[i] for alphas in result.fold_alphas],
            result.member_seconds[i],
        )
        for i, name in enumerate(result.members)
    ]


def _figure(run: int, result: CommitteeResult) -> Figure:
    found = _members(result)
    rows = [_average_row(result), *(_row(one, result) for one in found)]
    return Figure(
        id=f"members-{run}",
        title="Each model alone, and their average",
        caption=_caption(result, found),
        panels=[Panel(f"members-{run}", charts.members(rows, len(rows)))],
        table=_table(result, found),
        key=_key(found),
        open=True,
    )


def _key(found: Sequence[_Member]) -> list[Key]:
    key = [Key("circle", "c1", "the average, mean ± standard deviation")]
    if any(one.n_kept for one in found):
        key.append(Key("square", "c3", "a model alone; the number says how often it was averaged"))
    if not all(one.n_kept for one in found):
        key.append(Key("diamond-open", "quiet", "a model that was never averaged"))
    return key


def _average_row(result: CommitteeResult) -> Row:
    mean, std = 100 * result.accuracy_mean, 100 * result.accuracy_std
    return {
        "row": "average",
        "what": "average",
        "value": round(mean, 3),
        "low": round(mean - std, 3),
        "high": round(mean + std, 3),
        "shown": spread(result.accuracy_mean, result.accuracy_std),
        "words": f"average in {plural(len(result.fold_accuracies), 'outer fold')}",
        "often": "",
    }


def _row(one: _Member, result: CommitteeResult) -> Row:
    value = round(100 * one.accuracy, 3)
    often = _often(one, result)
    return {
        "row": one.name,
        "what": "kept" if one.n_kept else "left out",
        "value": value,
        "low": value,
        "high": value,
        "shown": spread(one.accuracy, None),
        "words": f"alone; averaged in {often} outer folds",
        "often": often,
    }


def _often(one: _Member, result: CommitteeResult) -> str:
    return f"{one.n_kept} of {len(result.fold_accuracies)}"


def _caption(result: CommitteeResult, found: Sequence[_Member]) -> str:
    n = len(result.fold_accuracies)
    best = max(found, key=lambda one: one.accuracy)
    difference = 100 * (result.accuracy_mean - best.accuracy)
    where = "above" if difference >= 0 else "below"
    text = (
        f"The average reaches {percent(result.accuracy_mean)}. That is {abs(difference):.1f} "
        f"points {where} the model that turns out to be the best alone ({best.name}), which nobody "
        "knows before the test."
    )
    always = [one.name for one in found if one.n_kept == n]
    never = [one.name for one in found if one.n_kept == 0]
    if len(always) == len(found):
        return f"{text} All models were averaged in all {n} outer folds."
    if always:
        text += f" Averaged in all {n} outer folds: {_names(always)}."
    if never:
        text += f" Never averaged: {_names(never)}."
    return text


def _names(names: Sequence[str]) -> str:
    """Names that may have commas."""
    return "; ".join(names)


def _table(result: CommitteeResult, found: Sequence[_Member]) -> Table:
    rows: list[list[Cell]] = [
        [
            one.name,
            _penalties(one.alphas),
            spread(one.accuracy, None),
            _often(one, result),
            duration(one.seconds),
        ]
        for one in found
    ]
    total = duration(sum(result.member_seconds))
    mean = spread(result.accuracy_mean, result.accuracy_std)
    average = ["average", "", mean, "", total]
    rows.append([(text, "ours") for text in average])
    return Table(
        ["model", "λ (outer folds)", "accuracy, %", "averaged in", "time"],
        rows,
        n_words=2,
        note="λ: the penalties that the outer folds took, in units of the features' size, and how "
        "many took each. Averaged in: outer folds. Time: to encode all graphs and to train on all "
        "folds and penalties, on one core.",
    )


def _penalties(alphas: Sequence[float]) -> str:
    counts = Counter(alphas)
    return ", ".join(f"{plain(alpha)}{SPACE}({counts[alpha]})" for alpha in sorted(counts))

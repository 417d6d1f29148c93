"""Rivals: other models on the same folds and the same machine."""

from __future__ import annotations

from collections.abc import Sequence

from fdgnn.evaluation import paper
from fdgnn.evaluation.records import ComparisonRow, PublishedAccuracy
from fdgnn.html import charts
from fdgnn.html.figures import Cell, Figure, Key, Panel, Part, Row, Section, Table
from fdgnn.html.numbers import NONE, count, duration, listed, significant, spread, times
from fdgnn.html.subjects import Subject

Rows = Sequence[ComparisonRow]
PAPERS = "fdgnn"  # the paper's model, with which all others are compared


def section(subjects: Sequence[Subject]) -> Section | None:
    """A part for each subject that was compared; None where nothing was."""
    parts = [_part(run, subject) for run, subject in enumerate(subjects) if subject.rivals]
    if not parts:
        return None
    return Section(
        id="rivals",
        title="Beside its rivals",
        lead="Other models, selected and tested on the same folds, on the same machine.",
        parts=parts,
    )


def _part(run: int, subject: Subject) -> Part:
    datasets = dict.fromkeys(row.dataset for row in subject.rivals)
    figures = [
        figure
        for i, dataset in enumerate(datasets)
        for figure in _figures(
            f"{run}-{i}", dataset, [r for r in subject.rivals if r.dataset == dataset]
        )
    ]
    return Part(run, subject.name, figures)


def _figures(id: str, dataset: str, rows: Rows) -> list[Figure]:
    done = [r for r in rows if r.accuracy_mean is not None]
    ours = next((r for r in done if r.model == PAPERS), None)
    if not done:
        return [_nothing(id, dataset, rows)]
    figures = [_accuracy(id, dataset, rows, done, ours)]
    timed = [(r, r.train_seconds) for r in done if r.train_seconds]
    if timed:
        figures.append(_seconds(id, dataset, timed, ours))
    return figures


def _is_ours(row: ComparisonRow) -> bool:
    """Whether it is the paper's model or a variant of it."""
    return row.model == PAPERS or _is_variant(row)


def _is_variant(row: ComparisonRow) -> bool:
    return row.model.startswith(f"{PAPERS}-")


def _family(rows: Rows) -> str:
    return "FDGNN and its variants" if any(map(_is_variant, rows)) else "FDGNN"


def _nothing(id: str, dataset: str, rows: Rows) -> Figure:
    return Figure(
        id=f"rivals-{id}",
        title=dataset,
        caption="No model has finished; the reasons are in the table.",
        table=_table(rows, None),
        open=True,
    )


# ---------------------------------------------------------------------- accuracy


def _accuracy(id: str, dataset: str, rows: Rows, done: Rows, ours: ComparisonRow | None) -> Figure:
    marks = [mark for row in done for mark in _marks(row)]
    return Figure(
        id=f"rivals-{id}",
        title=f"Accuracy: {dataset}",
        caption=_accuracy_caption(rows, done, ours),
        panels=[Panel(f"rivals-{id}", charts.rivals(marks, len(done)))],
        table=_table(rows, ours),
        key=[
            Key("circle", "c1", f"{_family(done)}, mean ± standard deviation"),
            Key("square", "c3", "a rival"),
            Key("diamond-open", "c2", "as published"),
        ],
        open=True,
    )


def _marks(row: ComparisonRow) -> list[Row]:
    mean, std = row.accuracy_mean or 0.0, row.accuracy_std or 0.0
    marks: list[Row] = [
        {
            "row": row.title,
            "what": "ours" if _is_ours(row) else "rival",
            "value": round(100 * mean, 3),
            "low": round(100 * (mean - std), 3),
            "high": round(100 * (mean + std), 3),
            "words": "measured here",
            "shown": spread(mean, row.accuracy_std),
        }
    ]
    if row.published is not None:
        marks.append(
            {
                "row": row.title,
                "what": "published",
                "value": round(100 * row.published.accuracy_mean, 3),
                "words": f"published, {_reference(row.published)}",
                "shown": _published(row),
            }
        )
    return marks


def _accuracy_caption(rows: Rows, done: Rows, ours: ComparisonRow | None) -> str:
    text = "" if ours is None else _beside(ours, [r for r in done if r is not ours])
    unfinished = [f"{r.title} ({r.status})" for r in rows if r.status != "finished"]
    if unfinished:
        text += f" Not finished: {listed(unfinished)}; the reasons are in the table."
    return text.strip()


def _beside(ours: ComparisonRow, others: Rows) -> str:
    if not others:
        return "No rival has finished."
    above = [r.title for r in others if (r.accuracy_mean or 0) > (ours.accuracy_mean or 0)]
    verb = "has" if len(above) == 1 else "have"
    text = f"{listed(above) if above else 'No rival'} {verb if above else 'has'} a higher mean "
    text += "than the paper's FDGNN." if any(map(_is_variant, others)) else "than FDGNN."
    if any(_paired(r, ours) for r in others):
        text += (
            " The bars are spreads over folds. All models were tested on the same folds: the table "
            "says on how many of them FDGNN was better. Where that is about half, these folds "
            "cannot tell which model is better."
        )
    return text


# ---------------------------------------------------------------------- time


def _seconds(
    id: str,
    dataset: str,
    timed: Sequence[tuple[ComparisonRow, float]],
    ours: ComparisonRow | None,
) -> Figure:
    rows: list[Row] = [
        {
            "row": row.title,
            "what": "ours" if _is_ours(row) else "rival",
            "seconds": seconds,
            "words": duration(seconds),
            "factor": _factor(row, ours),
        }
        for row, seconds in timed
    ]
    return Figure(
        id=f"rival-seconds-{id}",
        title=f"Training time: {dataset}",
        caption=_seconds_caption(rows, ours),
        panels=[Panel(f"rival-seconds-{id}", charts.rival_seconds(rows, len(rows)))],
        table=Table(
            ["model", "training", "times FDGNN's"],
            [[r["row"], r["words"], r["factor"] or NONE] for r in rows],
        ),
        key=[
            Key("circle", "c1", _family([row for row, _ in timed])),
            Key("square", "c3", "a rival"),
        ],
    )


def _seconds_caption(rows: Sequence[Row], ours: ComparisonRow | None) -> str:
    text = (
        "Time to train the selected model once, on a logarithmic scale. The number beside a model "
        "says how many times as long as FDGNN it takes."
    )
    if any(r["what"] == "ours" and r["factor"] for r in rows):
        text += " FDGNN auto selects while it trains, and its time includes that."
    slower = sorted((r for r in rows if r["what"] == "rival"), key=lambda r: r["seconds"])
    if ours is None or not ours.train_seconds or not slower:
        return text
    fastest, slowest = slower[0], slower[-1]
    text += f" FDGNN takes {duration(ours.train_seconds)}; {fastest['row']}, {fastest['words']}"
    if fastest is not slowest:
        text += f", and the slowest, {slowest['row']}, {slowest['words']}"
    return text + "."


# ---------------------------------------------------------------------- all numbers


def _table(rows: Rows, ours: ComparisonRow | None) -> Table:
    head = [
        "model", "state", "accuracy, %", "ROC AUC, %", "FDGNN better, equal, worse",
        "published, %", "training", "test", "selection", "times FDGNN's", "parameters", "memory",
    ]  # fmt: skip
    return Table(head, [_cells(row, ours) for row in rows], n_words=2)


def _cells(row: ComparisonRow, ours: ComparisonRow | None) -> list[Cell]:
    texts = [
        row.title,
        row.status + (f": {row.reason}" if row.reason else ""),
        spread(row.accuracy_mean, row.accuracy_std),
        NONE if row.roc_auc_mean is None else f"{100 * row.roc_auc_mean:.1f}",
        _paired(row, ours) or NONE,
        _published(row),
        duration(row.train_seconds),
        duration(row.test_seconds),
        duration(row.selection_seconds),
        _factor(row, ours) or NONE,
        count(row.parameters),
        NONE if row.peak_mb is None else f"{significant(row.peak_mb)} MB",
    ]
    kind = "ours" if _is_ours(row) else ""
    return [(text, kind) for text in texts]


def _factor(row: ComparisonRow, ours: ComparisonRow | None) -> str:
    """How many times as long as FDGNN another model trains."""
    if ours is None or row is ours or not ours.train_seconds or not row.train_seconds:
        return ""
    return times(row.train_seconds / ours.train_seconds)


def _paired(row: ComparisonRow, ours: ComparisonRow | None) -> str:
    """On how many folds FDGNN is better than, equal to, and worse than another model."""
    if ours is None or row is ours or not ours.fold_accuracies or not row.fold_accuracies:
        return ""
    if len(ours.fold_accuracies) != len(row.fold_accuracies):
        return ""
    gaps = [a - b for a, b in zip(ours.fold_accuracies, row.fold_accuracies, strict=True)]
    better, equal = sum(g > 1e-9 for g in gaps), sum(abs(g) <= 1e-9 for g in gaps)
    return f"{better}, {equal}, {len(gaps) - better - equal}"


def _published(row: ComparisonRow) -> str:
    if row.published is None:
        return NONE
    return spread(row.published.accuracy_mean, row.published.accuracy_std)


def _reference(published: PublishedAccuracy) -> str:
    name = published.reference or ""
    return paper.REFERENCES.get(name, name) or "no source given"

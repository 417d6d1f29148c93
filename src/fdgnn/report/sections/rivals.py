"""Rivals: other models on the same folds and the same machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdgnn.experiments import paper
from fdgnn.report import charts
from fdgnn.report.figures import Block, Cell, Figure, Key, Panel, Section, Table
from fdgnn.report.numbers import NONE, count, duration, listed, significant, spread, times
from fdgnn.report.sources import Source

Row = dict[str, Any]


def section(sources: Sequence[Source]) -> Section | None:
    """A block for each dataset that was compared; None where nothing was."""
    blocks = []
    for run, source in enumerate(sources):
        datasets = dict.fromkeys(row["dataset"] for row in source.rivals)
        figures = [
            figure
            for i, dataset in enumerate(datasets)
            for figure in _figures(
                f"{run}-{i}", dataset, [r for r in source.rivals if r["dataset"] == dataset]
            )
        ]
        if figures:
            blocks.append(Block(run, source.name, figures))
    if not blocks:
        return None
    return Section(
        id="rivals",
        title="Beside its rivals",
        lead="Other models, selected and tested on the same folds, on the same machine.",
        blocks=blocks,
    )


def _figures(id: str, dataset: str, rows: Sequence[Row]) -> list[Figure]:
    ours = next((r for r in rows if r["model"] == "fdgnn" and _has(r, "accuracy_mean")), None)
    done = [r for r in rows if _has(r, "accuracy_mean")]
    figures = []
    if done:
        figures.append(_accuracy(id, dataset, rows, done, ours))
    timed = [r for r in done if _has(r, "train_seconds") and r["train_seconds"] > 0]
    if timed:
        figures.append(_seconds(id, dataset, timed, ours))
    return figures or [_nothing(id, dataset, rows)]


def _has(row: Row, name: str) -> bool:
    return row.get(name) is not None


def _accuracy(
    id: str, dataset: str, rows: Sequence[Row], done: Sequence[Row], ours: Row | None
) -> Figure:
    marks = []
    for row in done:
        mean, std = row["accuracy_mean"], row["accuracy_std"] or 0.0
        marks.append(
            {
                "row": row["title"],
                "what": "ours" if row["model"] == "fdgnn" else "rival",
                "value": round(100 * mean, 3),
                "low": round(100 * (mean - std), 3),
                "high": round(100 * (mean + std), 3),
                "words": "measured here",
                "shown": spread(mean, row["accuracy_std"]),
            }
        )
        published = row.get("published")
        if published:
            marks.append(
                {
                    "row": row["title"],
                    "what": "published",
                    "value": round(100 * published["accuracy_mean"], 3),
                    "words": f"published, {_reference(published)}",
                    "shown": spread(published["accuracy_mean"], published.get("accuracy_std")),
                }
            )
    return Figure(
        id=f"rivals-{id}",
        title=f"Accuracy: {dataset}",
        caption=_accuracy_caption(rows, done, ours),
        panels=[Panel(f"rivals-{id}", charts.rivals(marks, len(done)))],
        table=_table(rows, ours),
        key=[
            Key("circle", "c1", "FDGNN, mean ± standard deviation"),
            Key("square", "c3", "a rival"),
            Key("diamond-open", "c2", "as published"),
        ],
        open=True,
    )


def _accuracy_caption(rows: Sequence[Row], done: Sequence[Row], ours: Row | None) -> str:
    text = ""
    if ours is not None:
        others = [r for r in done if r is not ours]
        above = [r["title"] for r in others if r["accuracy_mean"] > ours["accuracy_mean"]]
        if not others:
            text = "No rival has finished."
        elif above:
            text = (
                f"{listed(above)} {'has' if len(above) == 1 else 'have'} a higher mean than FDGNN."
            )
        else:
            text = "No rival has a higher mean than FDGNN."
        if any(_paired(r, ours) for r in others):
            text += (
                " The bars are spreads over folds. All models were tested on the same ones: the "
                "table says on how many of them FDGNN was better, and where that is about half, "
                "these folds cannot tell which model is."
            )
    unfinished = [r for r in rows if r["status"] != "finished"]
    if unfinished:
        names = [f"{r['title']} ({r['status']})" for r in unfinished]
        text += f" Not finished: {listed(names)}; the reasons are in the table."
    return text.strip()


def _seconds(id: str, dataset: str, timed: Sequence[Row], ours: Row | None) -> Figure:
    mine = ours["train_seconds"] if ours and _has(ours, "train_seconds") else None
    rows = []
    for row in timed:
        factor = ""
        if mine and row is not ours:
            factor = times(row["train_seconds"] / mine)
        rows.append(
            {
                "row": row["title"],
                "what": "ours" if row["model"] == "fdgnn" else "rival",
                "seconds": row["train_seconds"],
                "words": duration(row["train_seconds"]),
                "factor": factor,
            }
        )
    slower = [r for r in rows if r["what"] == "rival"]
    text = "Time to train the selected model once, on a logarithmic scale; the number beside a "
    text += "rival says how many times as long as FDGNN it takes."
    if mine and slower:
        fastest, slowest = (f(slower, key=lambda r: r["seconds"]) for f in (min, max))
        text += f" FDGNN takes {duration(mine)}; {fastest['row']}, {fastest['words']}"
        if fastest is not slowest:
            text += f", and the slowest, {slowest['row']}, {slowest['words']}"
        text += "."
    table = Table(
        ["model", "training", "times FDGNN's"],
        [[r["row"], r["words"], r["factor"] or NONE] for r in rows],
    )
    return Figure(
        id=f"rival-seconds-{id}",
        title=f"Training time: {dataset}",
        caption=text,
        panels=[Panel(f"rival-seconds-{id}", charts.rival_seconds(rows, len(rows)))],
        table=table,
        key=[Key("circle", "c1", "FDGNN"), Key("square", "c3", "a rival")],
    )


def _nothing(id: str, dataset: str, rows: Sequence[Row]) -> Figure:
    return Figure(
        id=f"rivals-{id}",
        title=dataset,
        caption="No model has finished; the reasons are in the table.",
        table=_table(rows, None),
        open=True,
    )


def _table(rows: Sequence[Row], ours: Row | None) -> Table:
    mine = ours["train_seconds"] if ours else None
    head = [
        "model", "state", "accuracy, %", "FDGNN better, equal, worse", "published, %", "training",
        "test", "selection",
        "times FDGNN's", "parameters", "memory",
    ]  # fmt: skip
    shown: list[list[Cell]] = []
    for row in rows:
        published = row.get("published")
        seconds = row["train_seconds"]
        factor = NONE
        if mine and seconds and row is not ours:
            factor = times(seconds / mine)
        state = row["status"] + (f": {row['reason']}" if row.get("reason") else "")
        cells = [
            row["title"],
            state,
            spread(row["accuracy_mean"], row["accuracy_std"]),
            _paired(row, ours) or NONE,
            spread(published["accuracy_mean"], published.get("accuracy_std"))
            if published
            else NONE,
            duration(seconds),
            duration(row["test_seconds"]),
            duration(row.get("selection_seconds")),
            factor,
            count(row.get("parameters")),
            f"{significant(row['peak_mb'])} MB" if _has(row, "peak_mb") else NONE,
        ]
        kind = "ours" if row["model"] == "fdgnn" else ""
        shown.append([(text, kind) for text in cells])
    return Table(head, shown, n_words=2)


def _paired(row: Row, ours: Row | None) -> str:
    """On how many folds FDGNN is better than, equal to, and worse than a rival."""
    mine, theirs = (ours or {}).get("fold_accuracies"), row.get("fold_accuracies")
    if row is ours or not mine or not theirs or len(mine) != len(theirs):
        return ""
    gaps = [a - b for a, b in zip(mine, theirs, strict=True)]
    counts = (sum(g > 1e-9 for g in gaps), sum(abs(g) <= 1e-9 for g in gaps))
    return f"{counts[0]}, {counts[1]}, {len(gaps) - sum(counts)}"


def _reference(published: Row) -> str:
    name = published.get("reference") or ""
    return paper.REFERENCES.get(name, name) or "no source given"

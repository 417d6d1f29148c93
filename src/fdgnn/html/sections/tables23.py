"""The depth of each fold and the times: the paper's Tables 2 and 3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.records import RunResult
from fdgnn.html import charts
from fdgnn.html.figures import Figure, Key, Panel, Row, Table
from fdgnn.html.numbers import MINUS, NONE, duration, listed, plural, times
from fdgnn.html.outcomes import is_of_the_paper
from fdgnn.html.subjects import Subject

Finished = Sequence[tuple[Subject, RunResult]]


def depths(finished: Finished) -> Figure:
    """How many folds chose which depth, beside the paper's mean: Table 2."""
    rows = [row for subject, result in finished for row in _depth_rows(subject, result)]
    deepest = max(s.settings.max_layers if s.settings else 1 for s, _ in finished)
    key = [
        Key("circle", "c1", "folds that chose a depth; the number says how many"),
        Key("tick", "c1", "our mean"),
    ]
    if any(is_of_the_paper(s) for s, _ in finished):
        key.append(Key("diamond", "c2", "the paper's mean"))
    return Figure(
        id="depths",
        half=True,
        title="Depth chosen by each outer fold (Table 2)",
        caption=_depths_caption(finished),
        panels=[Panel("depths", charts.depths(rows, len(finished), deepest))],
        table=_depths_table(finished),
        key=key,
    )


def _published_depth(subject: Subject) -> paper.Value | None:
    return paper.DEPTH.get(subject.dataset) if is_of_the_paper(subject) else None


def _depth_rows(subject: Subject, result: RunResult) -> list[Row]:
    rows: list[Row] = [
        {
            "run": subject.name,
            "what": "fold",
            "depth": depth,
            "folds": n,
            "words": f"{plural(depth, 'layer')}: chosen by {plural(n, 'fold')}",
        }
        for depth, n in sorted(Counter(result.fold_depths).items())
    ]
    means = {"ours": ("our mean", result.depth_mean)}
    theirs = _published_depth(subject)
    if theirs is not None:
        means["paper"] = ("the paper's mean", theirs.mean)
    for what, (words, mean) in means.items():
        text = f"{words}, {mean:.1f}"
        rows.append({"run": subject.name, "what": what, "depth": mean, "words": text})
    return rows


def _depths_table(finished: Finished) -> Table:
    rows = []
    for subject, result in finished:
        theirs = _published_depth(subject)
        rows.append(
            [
                subject.name,
                ", ".join(map(str, result.fold_depths)),
                f"{result.depth_mean:.1f} ± {result.depth_std:.1f}",
                NONE if theirs is None else f"{theirs.mean:.1f} ± {theirs.std or 0:.1f}",
            ]
        )
    return Table(["run", "fold by fold", "ours", "paper"], rows, n_words=2)


def _depths_caption(finished: Finished) -> str:
    parts = []
    for subject, result in finished:
        gain = 100 * (result.accuracy_mean - result.single_layer.accuracy_mean)
        parts.append(f"{subject.name} {'+' if gain >= 0 else MINUS}{abs(gain):.1f}")
    return (
        "What depth adds, in points of accuracy over the best network of one layer: "
        f"{listed(parts)}. Where folds choose different depths, several depths do about equally "
        "well."
    )


# ---------------------------------------------------------------------- times


@dataclass(frozen=True)
class _Clocked:
    """The time of one phase of one run, and the paper's."""

    name: str
    phase: str
    ours: float
    theirs: float | None

    @property
    def label(self) -> str:
        return f"{self.name}, {self.phase}"


def seconds(finished: Finished) -> Figure:
    """Times of the selected networks, beside the paper's: Table 3."""
    clocked = [c for subject, result in finished for c in _clocked(subject, result)]
    rows = [row for c in clocked for row in _seconds_rows(c)]
    spent = [f"{s.name} {duration(r.times.networks_seconds)}" for s, r in finished]
    key = [Key("circle", "c1", "ours")]
    if any(c.theirs is not None for c in clocked):
        key.append(Key("diamond", "c2", "the paper, another machine"))
    return Figure(
        id="seconds",
        half=True,
        title="Time to train and to test (Table 3)",
        caption=f"{_seconds_caption(clocked)} The whole search, on one core: {'; '.join(spent)}.",
        panels=[Panel("seconds", charts.seconds(rows, len(clocked)))] if rows else [],
        table=Table(
            ["what", "ours", "paper", "paper / ours"], [_seconds_cells(c) for c in clocked]
        ),
        key=key,
    )


def _clocked(subject: Subject, result: RunResult) -> list[_Clocked]:
    theirs = paper.TIMES.get(subject.dataset) if is_of_the_paper(subject) else None
    found = []
    for phase, values in (
        ("train", result.times.fold_train_seconds),
        ("test", result.times.fold_test_seconds),
    ):
        published = None
        if theirs is not None:
            published = (theirs.train if phase == "train" else theirs.test).mean
        ours = float(np.mean(values)) if values else 0.0
        if ours > 0:
            found.append(_Clocked(subject.name, phase, ours, published))
    return found


def _seconds_rows(c: _Clocked) -> list[Row]:
    return [
        {"row": c.label, "who": who, "seconds": value, "words": duration(value)}
        for who, value in (("ours", c.ours), ("paper", c.theirs))
        if value is not None
    ]


def _seconds_cells(c: _Clocked) -> list[str]:
    ratio = NONE if c.theirs is None else times(c.theirs / c.ours)
    return [c.label, duration(c.ours), duration(c.theirs), ratio]


def _seconds_caption(clocked: Sequence[_Clocked]) -> str:
    text = (
        "The selected network of an outer fold, trained on the graphs of the other folds and "
        "tested on its own, on one core."
    )
    gains = [
        f"{c.name} {times(c.theirs / c.ours)}"
        for c in clocked
        if c.theirs is not None and c.phase == "train"
    ]
    if gains:
        text += (
            f" The paper's training times are longer by: {listed(gains)}. Its machine and language "
            "(MATLAB) were different, so this is only an order of magnitude."
        )
    return text

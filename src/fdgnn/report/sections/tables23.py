"""The depth of each fold and the times: the paper's Tables 2 and 3."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.experiments import paper
from fdgnn.report import charts
from fdgnn.report.figures import Figure, Key, Panel, Table
from fdgnn.report.numbers import MINUS, NONE, duration, listed, plural, times
from fdgnn.report.outcomes import is_of_the_paper
from fdgnn.report.sources import Source


def depths(finished: Sequence[Source]) -> Figure:
    """How many folds chose which depth, beside the paper's mean: Table 2."""
    rows: list[dict[str, Any]] = []
    table = []
    for source in finished:
        result = source.result or {}
        depths = Counter(result["fold_depths"])
        theirs = paper.DEPTH.get(source.dataset) if is_of_the_paper(source) else None
        for depth, n in sorted(depths.items()):
            words = f"{plural(depth, 'layer')}: chosen by {plural(n, 'fold')}"
            rows.append(
                {"run": source.name, "what": "fold", "depth": depth, "folds": n, "words": words}
            )
        mean = result["depth_mean"]
        rows.append(
            {"run": source.name, "what": "ours", "depth": mean, "words": f"our mean, {mean:.1f}"}
        )
        if theirs is not None:
            words = f"the paper's mean, {theirs.mean:.1f}"
            rows.append({"run": source.name, "what": "paper", "depth": theirs.mean, "words": words})
        table.append(
            [
                source.name,
                ", ".join(map(str, result["fold_depths"])),
                f"{mean:.1f} ± {result['depth_std']:.1f}",
                NONE if theirs is None else f"{theirs.mean:.1f} ± {theirs.std or 0:.1f}",
            ]
        )
    deepest = max(max(s.settings["max_layers"] if s.settings else 1 for s in finished), 1)
    return Figure(
        id="depths",
        half=True,
        title="Depth chosen by each outer fold (Table 2)",
        caption=_depths_caption(finished),
        panels=[Panel("depths", charts.depths(rows, len(finished), deepest))],
        table=Table(["run", "fold by fold", "ours", "paper"], table, n_words=2),
        key=[
            Key("circle", "c1", "folds that chose a depth; the number says how many"),
            Key("tick", "c1", "our mean"),
            *([Key("diamond", "c2", "the paper's mean")] if any(
                is_of_the_paper(s) for s in finished) else []),
        ],
    )  # fmt: skip


def _depths_caption(finished: Sequence[Source]) -> str:
    parts = []
    for source in finished:
        result = source.result or {}
        gain = 100 * (result["accuracy_mean"] - result["single_layer"]["accuracy_mean"])
        parts.append(f"{source.name} {'+' if gain >= 0 else MINUS}{abs(gain):.1f}")
    return (
        "What depth brings, in points of accuracy over the best network of one layer: "
        f"{listed(parts)}. Folds that disagree about the depth say that several depths do about "
        "equally well."
    )


def seconds(finished: Sequence[Source]) -> Figure:
    """Times of the selected networks, beside the paper's: Table 3."""
    rows: list[dict[str, Any]] = []
    table = []
    gains = []
    for source in finished:
        result = source.result or {}
        theirs = paper.TIMES.get(source.dataset) if is_of_the_paper(source) else None
        for phase, name in (("train", "fold_train_seconds"), ("test", "fold_test_seconds")):
            values = np.array(result["times"][name] or [math.nan])
            ours = float(values.mean())
            label = f"{source.name}, {phase}"
            if not ours > 0:
                continue
            rows.append({"row": label, "who": "ours", "seconds": ours, "words": duration(ours)})
            published = None
            if theirs is not None:
                published = (theirs.train if phase == "train" else theirs.test).mean
                words = duration(published)
                rows.append({"row": label, "who": "paper", "seconds": published, "words": words})
                if phase == "train":
                    gains.append((source.name, published / ours))
            table.append(
                [
                    label,
                    duration(ours),
                    NONE if published is None else duration(published),
                    NONE if published is None else times(published / ours),
                ]
            )
    n_rows = len({r["row"] for r in rows})
    spent = "; ".join(
        f"{s.name} {duration((s.result or {})['times']['networks_seconds'])}" for s in finished
    )
    return Figure(
        id="seconds",
        half=True,
        title="Time to train and to test (Table 3)",
        caption=_seconds_caption(gains) + f" The whole search took, on one core: {spent}.",
        panels=[Panel("seconds", charts.seconds(rows, n_rows))] if rows else [],
        table=Table(["what", "ours", "paper", "paper / ours"], table),
        key=[
            Key("circle", "c1", "ours"),
            *([Key("diamond", "c2", "the paper, another machine")] if gains else []),
        ],
    )


def _seconds_caption(gains: Sequence[tuple[str, float]]) -> str:
    text = "The selected network of an outer fold, trained on the other folds' graphs and tested "
    text += "on its own, on one core."
    if gains:
        parts = [f"{name} {times(factor)}" for name, factor in gains]
        text += f" The paper's training times are longer by: {listed(parts)}; its machine and "
        text += "language (MATLAB) were others, so take this as an order of magnitude."
    return text

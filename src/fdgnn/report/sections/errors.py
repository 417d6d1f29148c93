"""The errors: which, how sure the model was, and what it looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdgnn.report import charts
from fdgnn.report.chance import binomial_test, wilson_interval
from fdgnn.report.figures import Block, Figure, Key, Missing, Panel, Section, Table
from fdgnn.report.numbers import NONE, count, listed, percent, plural, significant
from fdgnn.report.sections.graph_map import answer, is_number
from fdgnn.report.sections.missing import no_portrait
from fdgnn.report.sources import Source

MOST_CLASSES = 20  # of a confusion matrix that can be read


def section(sources: Sequence[Source]) -> Section:
    """Confusion, calibration or a regression's scatter, and the most confident mistakes."""
    return Section(
        id="errors",
        title="The errors",
        lead="Where the model is wrong"
        + (
            ", whether it knew,"
            if any((s.portrait or {}).get("calibration") for s in sources)
            else ""
        )
        + " and what it was looking at.",
        blocks=[_block(i, s) for i, s in enumerate(sources) if s.settings or s.model],
    )


def _block(run: int, source: Source) -> Block:
    portrait = source.portrait
    if portrait is None:
        return Block(run, source.name, missing=no_portrait(source))
    figures = []
    if portrait["confusion"] and portrait["classes"]:
        figures.append(_confusion(run, portrait))
    if portrait["calibration"] and portrait["calibration"]["bins"]:
        figures.append(_calibration(run, portrait["calibration"]))
    numbers = [
        g for g in portrait["graphs"] if is_number(g["actual"]) and is_number(g["predicted"])
    ]
    if portrait["task"] == "regression" and numbers:
        figures.append(_predictions(run, portrait, numbers))
    if portrait["mistakes"]:
        figures.append(_mistakes(run, portrait))
    if not figures:
        why = "The graphs have no known answers, so nothing is known to be wrong. Give --target."
        if portrait["confusion"]:
            why = "There are none: every graph was predicted rightly."
        return Block(run, source.name, missing=Missing(why), lead=portrait["how"])
    return Block(run, source.name, figures, lead=portrait["how"])


def _confusion(run: int, portrait: dict[str, Any]) -> Figure:
    classes, matrix = portrait["classes"][:MOST_CLASSES], portrait["confusion"]
    n = len(classes)
    rows = []
    pairs = []
    for i, name in enumerate(classes):
        total = sum(matrix[i])
        cells = []
        for j in range(n):
            share = matrix[i][j] / total if total else 0.0
            cells.append(
                {
                    "n": count(matrix[i][j]),
                    "share": percent(share, 0) if total else NONE,
                    "depth": round(share, 3),
                    "right": i == j,
                }
            )
            if i != j and matrix[i][j]:
                pairs.append((matrix[i][j], i, j))
        rows.append({"name": name, "cells": cells, "total": count(total)})
    total = sum(map(sum, matrix))
    wrong = total - sum(matrix[i][i] for i in range(len(matrix)))
    share = percent(wrong / max(total, 1))
    text = f"{count(wrong)} of {count(total)} graphs are predicted wrongly, {share}."
    if pairs:
        most = max(n for n, _, _ in pairs)
        first = [f"class {classes[i]} taken for {classes[j]}" for n, i, j in pairs if n == most]
        times = plural(most, "time") + (" each" if len(first) > 1 else "")
        what = "mistake" if len(first) == 1 else "mistakes"
        if len(first) <= 3:
            text += f" The commonest {what}, {times}: {listed(first)}."
    if len(portrait["classes"]) > n:
        text += f" The first {n} of {len(portrait['classes'])} classes are shown."
    text += " Each row is a class as it is: the stronger the color, the larger the share of "
    text += "it, and the outlined diagonal is right."
    return Figure(
        id=f"confusion-{run}",
        half=True,
        title="Confusion",
        caption=text,
        kind="confusion",
        extra={"classes": classes, "rows": rows},
    )


def _calibration(run: int, calibration: dict[str, Any]) -> Figure:
    rows = []
    for b in calibration["bins"]:
        if not b["n"] or b["probability"] is None or b["accuracy"] is None:
            continue
        right = round(b["accuracy"] * b["n"])
        low, high = wilson_interval(right, b["n"])
        rows.append(
            {
                "probability": round(100 * b["probability"], 2),
                "accuracy": round(100 * b["accuracy"], 2),
                "low": round(100 * low, 2),
                "high": round(100 * high, 2),
                "chance": binomial_test(right, b["n"], b["probability"]),
                "n": b["n"],
                "span": f"{percent(b['from'], 0)} to {percent(b['to'], 0)}",
                "probability_": percent(b["probability"]),
                "accuracy_": percent(b["accuracy"]),
            }
        )
    text = "When the model says 80 %, is it right in 80 % of the cases? On the diagonal it is; "
    text += "below, it is too sure of itself."
    if calibration["expected_error"] is not None:
        text += f" On average it is off by {100 * calibration['expected_error']:.1f} points."
    text += _beyond_chance(rows)
    return Figure(
        id=f"calibration-{run}",
        half=True,
        title="Calibration",
        caption=text,
        panels=[Panel(f"calibration-{run}", charts.calibration(rows))] if rows else [],
        table=Table(
            ["stated", "graphs", "mean stated", "right", "right, 95 % interval", "chance"],
            [
                [r["span"], count(r["n"]), r["probability_"], r["accuracy_"],
                 f"{r['low']:.1f} to {r['high']:.1f}", significant(r["chance"], 2)]
                for r in rows
            ],
            note=f"Brier score {significant(calibration['brier'])}. Chance: how likely a share at "
            "least as unlikely as this is if what is stated is right (exact binomial test).",
        ),
        key=[
            Key("circle", "c1", "graphs with a similar probability; the larger, the more"),
            Key("line", "c1", "95 % interval (Wilson)"),
            Key("dashes", "ink", "as stated"),
        ],
    )  # fmt: skip


def _beyond_chance(rows: Sequence[dict[str, Any]]) -> str:
    """Whether a group is off by more than chance, at 5 % for all groups together."""
    far = [r for r in rows if r["chance"] < 0.05 / len(rows)]
    if not rows:
        return ""
    if not far:
        return " No group is further from what is stated than chance alone may bring about."
    worst = max(far, key=lambda r: abs(r["probability"] - r["accuracy"]))
    off = [r for r in far if r is not worst]
    text = (
        f" Off by more than chance: the {plural(worst['n'], 'graph')} with {worst['span']}, stated "
        f"{worst['probability_']}, right {worst['accuracy_']}"
    )
    return text + (f"; and those with {listed(r['span'] for r in off)}." if off else ".")


def _predictions(run: int, portrait: dict[str, Any], graphs: Sequence[dict[str, Any]]) -> Figure:
    rows = [
        {
            "actual": g["actual"],
            "predicted": g["predicted"],
            "actual_": significant(g["actual"]),
            "predicted_": significant(g["predicted"]),
            "words": f"{g['graph']} ({g['id']})",
        }
        for g in graphs
    ]
    scores = portrait["regression"] or {}
    n, total = len(rows), portrait["data"]["n_graphs"]
    text = f"{count(n)} of the {count(total)} graphs. " if n < total else ""
    text += "On the dashed line a prediction is exact; the further from it, the larger the error."
    if scores.get("r2") is not None:
        text += f" R² is {significant(scores['r2'])}: the share of the target's variance explained."
    if scores.get("mean_absolute_error") is not None:
        text += f" The mean absolute error is {significant(scores['mean_absolute_error'])}."
    ranked = sorted(rows, key=lambda r: -abs(r["actual"] - r["predicted"]))[:50]
    return Figure(
        id=f"predictions-{run}",
        title="Predicted and actual",
        caption=text,
        panels=[Panel(f"predictions-{run}", charts.predictions(rows))],
        table=Table(
            ["graph", "actual", "predicted", "error"],
            [
                [r["words"], r["actual_"], r["predicted_"],
                 significant(r["predicted"] - r["actual"])]
                for r in ranked
            ],
            note="Largest errors first, at most 50.",
        ),
        key=[Key("circle", "c1", "a graph"), Key("dashes", "ink", "exact")],
    )  # fmt: skip


def _mistakes(run: int, portrait: dict[str, Any]) -> Figure:
    graphs = {g["graph"]: g for g in portrait["graphs"]}
    cards = []
    for number in portrait["mistakes"]:
        graph = graphs.get(number)
        if graph is not None:
            cards.append(
                {
                    "graph": number,
                    "id": str(graph["id"]),
                    "actual": answer(graph["actual"]),
                    "predicted": answer(graph["predicted"]),
                    "probability": percent(graph["probability"], 0)
                    if graph["probability"] is not None
                    else "",
                    "drawn": str(number) in portrait["drawings"],
                    "smiles": (portrait["drawings"].get(str(number)) or {}).get("smiles") or "",
                }
            )
    regression = portrait["task"] == "regression"
    title = "The largest errors" if regression else "The most confident mistakes"
    verbs = ("speaks for the prediction", "speaks against it")
    if regression:
        verbs = ("raises the value", "lowers it")
    first = cards[0] if cards else None
    text = "What the model was surest of, and wrong about." if not regression else ""
    if first and first["probability"]:
        text += f" It gave the first {first['probability']}."
    score, label = (
        ("the predicted value", "target")
        if regression
        else ("the score of the prediction", "label")
    )
    text += (
        f" The color of a vertex says how much more it adds to {score} than the average vertex "
        f"of its graph does: look at what misled the model, or whether the {label} in the data may "
        "be wrong."
    )
    rows = [[str(c["graph"]), c["id"], c["actual"], c["predicted"], c["probability"] or NONE]
            for c in cards]  # fmt: skip
    return Figure(
        id=f"mistakes-{run}",
        title=title,
        caption=text.strip(),
        table=Table(["graph", "id", "actual", "predicted", "probability"], rows, n_words=2),
        kind="cards",
        extra={"run": run, "cards": cards},
        key=[
            Key("dot", "for", f"{verbs[0]}; the larger, the more"),
            Key("ring", "against", f"dashed: {verbs[1]}"),
        ],
    )

"""Errors and uncertainty: confusion, mistakes, calibration, coverage, applicability domain."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fdgnn.html.figures import Figure, Key, Panel, Part, Row, Table, diagonal
from fdgnn.html.report_data import Calibration, DomainSummary, ReportData
from fdgnn.html.sections.data import error_of, graph_table, named, shown
from fdgnn.html.subjects import Subject
from fdgnn.html.words import NONE, count, percent, plural, significant

MOST_CLASSES = 20  # of a confusion matrix that can be read
MOST_ERRORS = 50  # of a regression, in the table


def part(run: int, subject: Subject) -> Part:
    """Return the confusion matrix or the scatter of a regression, and the largest mistakes."""
    data = subject.data
    if data is None:
        return Part()
    how = {
        "seen": "These graphs may be training graphs. Errors on others are larger; the result "
        "above shows how much.",
        "unseen": "The model predicted all graphs, none of which was in its training data.",
        "out of fold": "Predictions are out of fold: each graph was predicted by the model that "
        "was selected and trained without its outer fold. Attributions, the map and the "
        "substructures are of the model trained on all graphs.",
    }[data.predictions]
    figures = []
    if data.confusion:
        figures.append(_confusion(run, data, data.confusion))
    if data.task == "regression" and data.scores:
        figures.append(_scatter(run, data))
    if data.mistakes:
        figures.append(_mistakes(run, data))
    why = "The graphs have no known targets, so nothing is known to be wrong. Give --target."
    return Part(figures, lead=how, missing="" if figures else why)


def uncertainty(run: int, subject: Subject) -> Part:
    """Return calibration, coverage, and graphs that are out of domain."""
    data = subject.data
    if data is None:
        return Part()
    figures = []
    if data.calibration is not None and data.calibration.bins:
        figures.append(_calibration(run, data.calibration))
    if data.coverages:
        figures.append(_coverages(run, data))
    if data.domain is not None:
        figures.append(_domain(run, data, data.domain))
    return Part(figures)


# ---------------------------------------------------------------------- confusion


def _confusion(run: int, data: ReportData, matrix: Sequence[Sequence[int]]) -> Figure:
    classes = data.classes[:MOST_CLASSES]
    n, total = len(classes), sum(map(sum, matrix))
    wrong = total - sum(row[i] for i, row in enumerate(matrix))
    text = (
        f"{count(wrong)} of {count(total)} graphs have a wrong prediction, "
        f"{percent(wrong / max(total, 1))}."
    )
    pairs = [(matrix[i][j], i, j) for i in range(n) for j in range(n) if i != j and matrix[i][j]]
    if pairs:
        most, i, j = max(pairs, key=lambda pair: pair[0])
        text += (
            f" Most often, {plural(most, 'time')}, class {classes[i]} is predicted as {classes[j]}."
        )
    if len(data.classes) > n:
        text += f" The first {n} of {len(data.classes)} classes are shown."
    rows = []
    for i, (name, row) in enumerate(zip(classes, matrix[:n], strict=True)):
        shares = [own / (sum(row) or 1) for own in row[:n]]  # which the depth of a color shows
        cells = [
            {"n": count(own), "share": percent(share, 0) if any(row) else NONE,
             "depth": round(share, 3), "right": i == j}
            for j, (own, share) in enumerate(zip(row, shares, strict=False))
        ]  # fmt: skip
        rows.append((name, cells))
    return Figure(
        id=f"confusion-{run}",
        title="Confusion",
        caption=f"{text} Each row is an actual class: stronger colors are larger shares "
        "of it. The outlined diagonal is correct.",
        kind="confusion",
        body={"classes": classes, "rows": rows},
    )


# ---------------------------------------------------------------------- a regression


def _scatter(run: int, data: ReportData) -> Figure:
    known = [g for g in data.graphs if error_of(g) is not None]
    rows: list[Row] = [
        {
            "x": g.actual, "y": g.predicted, "low": g.predicted, "high": g.predicted, "n": 1,
            "actual_": shown(g.actual), "predicted_": shown(g.predicted), "words": named(g),
        }
        for g in known
    ]  # fmt: skip
    values = [v for row in rows for v in (row["x"], row["y"])] or [0.0]
    ends = min(values), max(values) if max(values) > min(values) else min(values) + 1
    largest = sorted(known, key=lambda g: -(error_of(g) or 0))[:MOST_ERRORS]
    n, total, mae = len(rows), data.data.n_graphs, data.scores.get("mae")
    text = f"{count(n)} of the {count(total)} graphs. " if n < total else ""
    tips = {"words": "graph", "actual_": "actual", "predicted_": "predicted"}
    return Figure(
        id=f"predictions-{run}",
        title="Predicted and actual",
        caption=f"{text}On the dashed line a prediction is exact; the further from it, the larger "
        f"the error. The mean absolute error is {significant(mae)}; always the mean target: "
        f"{significant(data.baseline.get('mae'))}.",
        panels=[Panel(f"predictions-{run}", diagonal(rows, ("actual", "predicted"), ends, tips))],
        table=graph_table(largest, "error", note=f"Largest errors first, at most {MOST_ERRORS}."),
        key=[Key("circle", "c1", "a graph"), Key("dashes", "ink", "exact")],
    )


# ---------------------------------------------------------------------- mistakes


def _mistakes(run: int, data: ReportData) -> Figure:
    graphs = {g.graph: g for g in data.graphs}
    found = [graphs[g] for g in data.mistakes if g in graphs]
    smiles = {d.graph: d.smiles or "" for d in data.drawings}
    cards = []
    for g in found:
        sure = "" if g.probability is None else f", {percent(g.probability, 0)}"
        words = f"actual {shown(g.actual)}, predicted {shown(g.predicted)}{sure}"
        card = {"graph": g.graph, "title": f"Graph {named(g)}", "words": words, "steps": None}
        cards.append(card | {"note": smiles.get(g.graph, "")})
    title, score, target = "The largest errors", "value", "target"
    first = ""
    if data.task == "classification":
        title, score, target = "The most confident mistakes", "score of the prediction", "label"
        first = "The wrong predictions with the highest probability. "
    return Figure(
        id=f"mistakes-{run}",
        title=title,
        caption=f"{first}The color of a vertex shows how much more it adds to the {score} than the "
        "average vertex of its graph does. Look at what misled the model, or whether the "
        f"{target} in the data may be wrong.",
        table=graph_table(found, "probability", "error"),
        kind="cards",
        body={"run": run, "cards": cards},
        key=[
            Key("dot", "for", f"raises the {score}; the larger, the more"),
            Key("ring", "against", "dashed: lowers it"),
        ],
    )


# ---------------------------------------------------------------------- uncertainty


def _calibration(run: int, calibration: Calibration) -> Figure:
    from scipy.stats import binomtest

    rows: list[Row] = []
    for b in calibration.bins:
        interval = binomtest(round(b.accuracy * b.n), b.n).proportion_ci(0.95, method="wilson")
        rows.append({
            "x": round(100 * b.probability, 2),
            "y": round(100 * b.accuracy, 2),
            "low": round(100 * float(interval.low), 2),
            "high": round(100 * float(interval.high), 2),
            "n": b.n,
            "span": f"{percent(b.start, 0)} to {percent(b.stop, 0)}",
            "probability_": percent(b.probability),
            "accuracy_": percent(b.accuracy),
        })  # fmt: skip
    first = 10.0 * math.floor(min(v for row in rows for v in (row["x"], row["low"])) / 10.001)
    cells = [
        {
            "predicted": r["span"], "graphs": count(r["n"]), "mean": r["probability_"],
            "right": r["accuracy_"],
            "right, 95 % interval": f"{r['low']:.1f} to {r['high']:.1f}",
        }
        for r in rows
    ]  # fmt: skip
    titles = "predicted probability, %", "share that was right, %"
    tips = {"span": "predicted", "probability_": "mean", "accuracy_": "right", "n": "graphs"}
    return Figure(
        id=f"calibration-{run}",
        half=True,
        title="Calibration",
        caption="Of predictions with a probability of 80 %, are 80 % right? On the diagonal they "
        "are; below, the model is too sure of itself. On average it is off by "
        f"{100 * calibration.expected_error:.1f} points. Where an interval does not reach the "
        "diagonal, that is hardly by chance.",
        panels=[Panel(f"calibration-{run}", diagonal(rows, titles, (first, 100.0), tips))],
        table=Table.of(cells, note=f"Brier score {significant(calibration.brier)}."),
        key=[
            Key("circle", "c1", "graphs with a similar probability; the larger, the more"),
            Key("line", "c1", "95 % interval (Wilson)"),
            Key("dashes", "ink", "as predicted"),
        ],
    )


def _coverages(run: int, data: ReportData) -> Figure:
    largest = data.coverages[-1]
    requested, size = percent(largest.coverage, 0), significant(largest.size)
    what, head, own = "sets of classes", ["classes", "empty sets"], f"a set has {size} classes"
    if data.task == "regression":
        what, head, own = "intervals", ["width"], f"an interval is {size} wide"
    rows = [
        [percent(c.coverage, 0), percent(c.covered), significant(c.size), percent(c.empty)]
        for c in data.coverages
    ]
    text = f"Measured and requested coverage of the conformal prediction {what}."
    if largest.covered is not None:
        n = data.data.n_graphs
        chance = (largest.coverage * (1 - largest.coverage) / n) ** 0.5
        text += (
            f" By chance alone, the share of {plural(n, 'graph')} that is covered at "
            f"{requested} varies by about {100 * chance:.1f} points."
        )
    if data.predictions == "out of fold":
        text += (
            " The sets and intervals of each outer fold come from the errors of the other folds."
        )
    return Figure(
        id=f"coverage-{run}",
        half=True,
        open=True,
        title=f"Prediction {what}",
        caption=f"{text} At {requested}, {own} on average.",
        table=Table(["requested", "covered", *head], [row[: 2 + len(head)] for row in rows], 0),
    )


def _domain(run: int, data: ReportData, domain: DomainSummary) -> Figure:
    graphs, n = {g.graph: g for g in data.graphs}, data.data.n_graphs
    rows = []
    for one in domain.graphs:
        row = {"graph": str(one.graph), "id": one.id, "actual": NONE, "predicted": NONE}
        if (g := graphs.get(one.graph)) is not None:
            row |= {"actual": shown(g.actual), "predicted": shown(g.predicted)}
        rows.append(row | {"domain distance": percent(one.score, 0)})
    text = (
        f"{count(domain.n_outside)} of {plural(n, 'graph')}, "
        f"{percent(domain.n_outside / max(n, 1))}, are out of the model's applicability domain: "
        "farther from the training graphs than 99 % of these are from each other. Of graphs of the "
        "same kind, 1 % are."
    )
    for first in domain.graphs[:1]:
        text += f" The farthest is graph {first.graph}: {first.reason}."
    theirs, others = domain.error_outside, domain.error_inside
    if theirs is not None and others is not None:
        text += (
            f" The mean absolute error of these graphs is {significant(theirs)}, of the others "
            f"{significant(others)}."
            if data.task == "regression"
            else f" Of these graphs {percent(theirs)} have a wrong prediction, of the others "
            f"{percent(others)}."
        )
    note = f"The {len(rows)} farthest." if len(rows) < domain.n_outside else ""
    return Figure(
        id=f"domain-{run}",
        half=True,
        title="Graphs out of domain",
        caption=text,
        table=Table.of(rows, n_words=2, note=note) if rows else None,
    )

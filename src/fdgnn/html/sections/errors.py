"""The errors: which, how sure the model was, and how far single predictions can be relied on."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fdgnn.html.figures import Figure, Key, Panel, Part, Row, Table, diagonal
from fdgnn.html.report_data import ApplicabilityDomain, Calibration, ProbabilityBin, ReportData
from fdgnn.html.sections.data import error_of, named, shown
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
        "seen": "The model may have seen these graphs in training. Its errors on other graphs are "
        "larger; the result above says by how much.",
        "unseen": "The model predicted all graphs, which it did not see in training.",
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
    data, figures = subject.data, []
    if data is not None and data.calibration is not None and data.calibration.bins:
        figures.append(_calibration(run, data.calibration))
    if data is not None and data.coverages:
        figures.append(_coverages(run, data))
    if data is not None and data.domain is not None:
        figures.append(_domain(run, data, data.domain))
    return Part(figures)


# ---------------------------------------------------------------------- confusion


def _confusion(run: int, data: ReportData, matrix: Sequence[Sequence[int]]) -> Figure:
    classes = data.classes[:MOST_CLASSES]
    n, total = len(classes), sum(map(sum, matrix))
    wrong = total - sum(row[i] for i, row in enumerate(matrix))
    text = (
        f"{count(wrong)} of {count(total)} graphs are predicted wrongly, "
        f"{percent(wrong / max(total, 1))}."
    )
    pairs = [(matrix[i][j], i, j) for i in range(n) for j in range(n) if i != j and matrix[i][j]]
    if pairs:
        most, i, j = max(pairs, key=lambda pair: pair[0])
        text += (
            f" Most often, {plural(most, 'time')}, class {classes[i]} is taken for {classes[j]}."
        )
    if len(data.classes) > n:
        text += f" The first {n} of {len(data.classes)} classes are shown."
    rows = [
        (name, [_cell(row[j], sum(row), right=i == j) for j in range(n)])
        for i, (name, row) in enumerate(zip(classes, matrix[:n], strict=True))
    ]
    return Figure(
        id=f"confusion-{run}",
        title="Confusion",
        caption=f"{text} Each row is an actual class: the stronger the color, the larger the "
        "share of it. The outlined diagonal is right.",
        kind="confusion",
        body={"classes": classes, "rows": rows},
    )


def _cell(n: int, total: int, *, right: bool) -> dict[str, object]:
    """Return how many graphs of one class were predicted as another; `depth` is of the color."""
    share = n / total if total else 0.0
    shown = percent(share, 0) if total else NONE
    return {"n": count(n), "share": shown, "depth": round(share, 3), "right": right}


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
    spec = diagonal(
        rows,
        ("actual", "predicted"),
        ends,
        {"words": "graph", "actual_": "actual", "predicted_": "predicted"},
    )
    return Figure(
        id=f"predictions-{run}",
        title="Predicted and actual",
        caption=f"{text}On the dashed line a prediction is exact; the further from it, the larger "
        f"the error. The mean absolute error is {significant(mae)}; always the mean target: "
        f"{significant(data.baseline.get('mae'))}.",
        panels=[Panel(f"predictions-{run}", spec)],
        table=Table(
            ["graph", "actual", "predicted", "error"],
            [[named(g), shown(g.actual), shown(g.predicted), shown(error_of(g))] for g in largest],
            note=f"Largest errors first, at most {MOST_ERRORS}.",
        ),
        key=[Key("circle", "c1", "a graph"), Key("dashes", "ink", "exact")],
    )


# ---------------------------------------------------------------------- mistakes


def _mistakes(run: int, data: ReportData) -> Figure:
    graphs = {g.graph: g for g in data.graphs}
    found = [graphs[g] for g in data.mistakes if g in graphs]
    smiles = {d.graph: d.smiles or "" for d in data.drawings}
    regression = data.task == "regression"
    cards, rows = [], []
    for g in found:
        sure = "" if g.probability is None else f", {percent(g.probability, 0)}"
        words = f"actual {shown(g.actual)}, predicted {shown(g.predicted)}{sure}"
        card = {"graph": g.graph, "title": f"Graph {named(g)}", "words": words, "steps": None}
        cards.append(card | {"note": smiles.get(g.graph, "")})
        chance = percent(g.probability, 0)
        rows.append([str(g.graph), g.id, shown(g.actual), shown(g.predicted), chance])
    verbs = ("raises the value", "lowers it")
    if not regression:
        verbs = ("raises the score of the prediction", "lowers it")
    score = "the predicted value" if regression else "the score of the prediction"
    first = "" if regression else "What the model was surest of, and wrong about. "
    return Figure(
        id=f"mistakes-{run}",
        title="The largest errors" if regression else "The most confident mistakes",
        caption=f"{first}The color of a vertex shows how much more it adds to {score} than the "
        "average vertex of its graph does. Look at what misled the model, or whether the "
        f"{'target' if regression else 'label'} in the data may be wrong.",
        table=Table(["graph", "id", "actual", "predicted", "probability"], rows, n_words=2),
        kind="cards",
        body={"run": run, "cards": cards},
        key=[
            Key("dot", "for", f"{verbs[0]}; the larger, the more"),
            Key("ring", "against", f"dashed: {verbs[1]}"),
        ],
    )


# ---------------------------------------------------------------------- uncertainty


def _calibration(run: int, calibration: Calibration) -> Figure:
    rows = [_bin(b) for b in calibration.bins]
    lowest = min(v for row in rows for v in (row["x"], row["low"]))
    first = 10.0 * math.floor(lowest / 10.001)
    cells = [
        [r["span"], count(r["n"]), r["probability_"], r["accuracy_"],
         f"{r['low']:.1f} to {r['high']:.1f}"]
        for r in rows
    ]  # fmt: skip
    spec = diagonal(
        rows,
        ("predicted probability, %", "share that was right, %"),
        (first, 100.0),
        {"span": "predicted", "probability_": "mean", "accuracy_": "right", "n": "graphs"},
    )
    return Figure(
        id=f"calibration-{run}",
        half=True,
        title="Calibration",
        caption="Of predictions with a probability of 80 %, are 80 % right? On the diagonal they "
        "are; below, the model is too sure of itself. On average it is off by "
        f"{100 * calibration.expected_error:.1f} points. Where an interval does not reach the "
        "diagonal, that is hardly by chance.",
        panels=[Panel(f"calibration-{run}", spec)],
        table=Table(
            ["predicted", "graphs", "mean", "right", "right, 95 % interval"],
            cells,
            note=f"Brier score {significant(calibration.brier)}.",
        ),
        key=[
            Key("circle", "c1", "graphs with a similar probability; the larger, the more"),
            Key("line", "c1", "95 % interval (Wilson)"),
            Key("dashes", "ink", "as predicted"),
        ],
    )


def _bin(b: ProbabilityBin) -> Row:
    from scipy.stats import binomtest

    interval = binomtest(round(b.accuracy * b.n), b.n).proportion_ci(0.95, method="wilson")
    return {
        "x": round(100 * b.probability, 2),
        "y": round(100 * b.accuracy, 2),
        "low": round(100 * float(interval.low), 2),
        "high": round(100 * float(interval.high), 2),
        "n": b.n,
        "span": f"{percent(b.start, 0)} to {percent(b.stop, 0)}",
        "probability_": percent(b.probability),
        "accuracy_": percent(b.accuracy),
    }


def _coverages(run: int, data: ReportData) -> Figure:
    regression, n, largest = data.task == "regression", data.data.n_graphs, data.coverages[-1]
    what = "intervals" if regression else "sets of classes"
    head = ["requested", "covered", *(["width"] if regression else ["classes", "empty sets"])]
    rows = [
        [percent(c.coverage, 0), percent(c.covered), significant(c.size)]
        + ([] if regression else [percent(c.empty)])
        for c in data.coverages
    ]
    text = f"How often the truth is in the conformal prediction {what}, beside the coverage that "
    text += "was requested."
    if largest.covered is not None:
        chance = (largest.coverage * (1 - largest.coverage) / n) ** 0.5
        text += (
            f" By chance alone, the share of {plural(n, 'graph')} that is covered at "
            f"{percent(largest.coverage, 0)} varies by about {100 * chance:.1f} points."
        )
    if data.predictions == "out of fold":
        text += " The predictions of each outer fold are judged by the errors of the others."
    size = significant(largest.size)
    own = f"an interval is {size} wide" if regression else f"a set has {size} classes on average"
    text += f" At {percent(largest.coverage, 0)}, {own}."
    return Figure(
        id=f"coverage-{run}",
        half=True,
        open=True,
        title=f"Prediction {what}",
        caption=text,
        table=Table(head, rows, n_words=0),
    )


def _domain(run: int, data: ReportData, domain: ApplicabilityDomain) -> Figure:
    graphs = {g.graph: g for g in data.graphs}
    rows: list[list[str]] = []
    for one in domain.graphs:
        g = graphs.get(one.graph)
        known = [NONE, NONE] if g is None else [shown(g.actual), shown(g.predicted)]
        rows.append([str(one.graph), one.id, *known, percent(one.score, 0)])
    head = ["graph", "id", "actual", "predicted", "applicability score"]
    n = len(domain.graphs)
    return Figure(
        id=f"domain-{run}",
        half=True,
        title="Graphs out of domain",
        caption=_domain_caption(data, domain),
        table=Table(
            head, rows, n_words=2, note=f"The {n} farthest." if n < domain.n_outside else ""
        )
        if rows
        else None,
    )


def _domain_caption(data: ReportData, domain: ApplicabilityDomain) -> str:
    n = data.data.n_graphs
    text = (
        f"{count(domain.n_outside)} of {plural(n, 'graph')}, "
        f"{percent(domain.n_outside / max(n, 1))}, are out of the model's applicability domain: "
        "farther from the training graphs than 99 % of these are from each other. Of graphs of the "
        "same kind, 1 % are."
    )
    for farthest in domain.graphs[:1]:
        text += f" The farthest is graph {farthest.graph}: {farthest.reason}."
    if domain.error_outside is None or domain.error_inside is None:
        return text
    if data.task == "regression":
        theirs, others = significant(domain.error_outside), significant(domain.error_inside)
        return (
            f"{text} The mean absolute error of these graphs is {theirs}, of the others {others}."
        )
    theirs, others = percent(domain.error_outside), percent(domain.error_inside)
    return f"{text} Of these graphs {theirs} are predicted wrongly, of the others {others}."

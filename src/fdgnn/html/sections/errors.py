"""The errors: which, how sure the model was, and what it looked at."""

from __future__ import annotations

from collections.abc import Sequence

from fdgnn.html import charts
from fdgnn.html.figures import (
    CardsBody,
    ConfusionBody,
    ConfusionCell,
    Figure,
    Key,
    Missing,
    MistakeCard,
    Panel,
    Part,
    Row,
    Section,
    Table,
)
from fdgnn.html.model_data.records import CalibrationFacts, GraphRow, Portrait, ProbabilityBin
from fdgnn.html.numbers import NONE, count, listed, percent, plural, significant
from fdgnn.html.sections.graph_map import answer
from fdgnn.html.sections.missing import no_portrait
from fdgnn.html.subjects import Subject

MOST_CLASSES = 20  # of a confusion matrix that can be read
MOST_ERRORS = 50  # of a regression, in the table


def section(subjects: Sequence[Subject]) -> Section:
    """Confusion, calibration or a regression's scatter, and the most confident mistakes."""
    knew = any(s.portrait and s.portrait.calibration for s in subjects)
    return Section(
        id="errors",
        title="The errors",
        lead=f"Where the model is wrong{', whether it knew,' if knew else ''} and what it was "
        "looking at.",
        parts=[_part(i, s) for i, s in enumerate(subjects) if s.has_model],
    )


def _part(run: int, subject: Subject) -> Part:
    portrait = subject.portrait
    if portrait is None:
        return Part(run, subject.name, missing=no_portrait(subject))
    figures = []
    if portrait.confusion:
        figures.append(_confusion(run, portrait, portrait.confusion))
    if portrait.calibration and portrait.calibration.bins:
        figures.append(_calibration(run, portrait.calibration))
    if portrait.regression:
        figures.append(_predictions(run, portrait))
    if portrait.mistakes:
        figures.append(_mistakes(run, portrait))
    if figures:
        return Part(run, subject.name, figures, lead=portrait.how)
    why = "The graphs have no known answers, so nothing is known to be wrong. Give --target."
    return Part(run, subject.name, missing=Missing(why), lead=portrait.how)


# ---------------------------------------------------------------------- confusion


def _confusion(run: int, portrait: Portrait, matrix: Sequence[Sequence[int]]) -> Figure:
    classes = portrait.classes[:MOST_CLASSES]
    n = len(classes)
    rows = [
        (name, [_cell(row[j], sum(row), right=i == j) for j in range(n)])
        for i, (name, row) in enumerate(zip(classes, matrix[:n], strict=True))
    ]
    text = _confusion_caption(classes, matrix)
    if len(portrait.classes) > n:
        text += f" The first {n} of {len(portrait.classes)} classes are shown."
    return Figure(
        id=f"confusion-{run}",
        half=True,
        title="Confusion",
        caption=f"{text} Each row is an actual class: the stronger the color, the larger the "
        "share of it. The outlined diagonal is right.",
        body=ConfusionBody(classes, rows),
    )


def _cell(n: int, total: int, *, right: bool) -> ConfusionCell:
    share = n / total if total else 0.0
    return ConfusionCell(count(n), percent(share, 0) if total else NONE, round(share, 3), right)


def _confusion_caption(classes: Sequence[str], matrix: Sequence[Sequence[int]]) -> str:
    total = sum(map(sum, matrix))
    wrong = total - sum(row[i] for i, row in enumerate(matrix))
    share = percent(wrong / max(total, 1))
    text = f"{count(wrong)} of {count(total)} graphs are predicted wrongly, {share}."
    pairs = [
        (matrix[i][j], f"class {actual} taken for {predicted}")
        for i, actual in enumerate(classes)
        for j, predicted in enumerate(classes)
        if i != j and matrix[i][j]
    ]
    most = max((n for n, _ in pairs), default=0)
    first = [words for n, words in pairs if n == most]
    if 0 < len(first) <= 3:
        times = plural(most, "time") + (" each" if len(first) > 1 else "")
        what = "mistake" if len(first) == 1 else "mistakes"
        text += f" The most common {what}, {times}: {listed(first)}."
    return text


# ---------------------------------------------------------------------- calibration


def _calibration(run: int, calibration: CalibrationFacts) -> Figure:
    rows = [_bin_row(b) for b in calibration.bins]
    cells = [
        [r["span"], count(r["n"]), r["probability_"], r["accuracy_"],
         f"{r['low']:.1f} to {r['high']:.1f}", significant(r["chance"], 2)]
        for r in rows
    ]  # fmt: skip
    return Figure(
        id=f"calibration-{run}",
        half=True,
        title="Calibration",
        caption="When the model says 80 %, is it right in 80 % of the cases? On the diagonal it "
        "is; below, it is too sure of itself. On average it is off by "
        f"{100 * calibration.expected_error:.1f} points.{_beyond_chance(rows)}",
        panels=[Panel(f"calibration-{run}", charts.calibration(rows))],
        table=Table(
            ["stated", "graphs", "mean stated", "right", "right, 95 % interval", "chance"],
            cells,
            note=f"Brier score {significant(calibration.brier)}. Chance: if what is stated is "
            "true, how likely a share is that is at least as unlikely as this one (exact binomial "
            "test).",
        ),
        key=[
            Key("circle", "c1", "graphs with a similar probability; the larger, the more"),
            Key("line", "c1", "95 % interval (Wilson)"),
            Key("dashes", "ink", "as stated"),
        ],
    )


def _bin_row(b: ProbabilityBin) -> Row:
    from scipy.stats import binomtest

    test = binomtest(round(b.accuracy * b.n), b.n, b.probability)
    interval = test.proportion_ci(0.95, method="wilson")
    return {
        "probability": round(100 * b.probability, 2),
        "accuracy": round(100 * b.accuracy, 2),
        "low": round(100 * float(interval.low), 2),
        "high": round(100 * float(interval.high), 2),
        "chance": float(test.pvalue),
        "n": b.n,
        "span": f"{percent(b.start, 0)} to {percent(b.stop, 0)}",
        "probability_": percent(b.probability),
        "accuracy_": percent(b.accuracy),
    }


def _beyond_chance(rows: Sequence[Row]) -> str:
    """Say whether a group is off by more than chance, at 5 % for all groups together."""
    far = [r for r in rows if r["chance"] < 0.05 / len(rows)]
    if not far:
        return " No group is further from what is stated than chance alone can explain."
    worst = max(far, key=lambda r: abs(r["probability"] - r["accuracy"]))
    off = [r for r in far if r is not worst]
    text = (
        f" Off by more than chance: the {plural(worst['n'], 'graph')} with {worst['span']}, stated "
        f"{worst['probability_']}, right {worst['accuracy_']}"
    )
    return text + (f"; and those with {listed(r['span'] for r in off)}." if off else ".")


# ---------------------------------------------------------------------- a regression


def _predictions(run: int, portrait: Portrait) -> Figure:
    rows: list[Row] = [
        {
            "actual": g.actual,
            "predicted": g.predicted,
            "actual_": answer(g.actual),
            "predicted_": answer(g.predicted),
            "words": f"{g.graph} ({g.id})",
        }
        for g in portrait.graphs
        if isinstance(g.actual, float) and isinstance(g.predicted, float)
    ]
    ranked = sorted(rows, key=lambda r: -abs(r["actual"] - r["predicted"]))[:MOST_ERRORS]
    return Figure(
        id=f"predictions-{run}",
        title="Predicted and actual",
        caption=_predictions_caption(portrait, len(rows)),
        panels=[Panel(f"predictions-{run}", charts.predictions(rows))] if rows else [],
        table=Table(
            ["graph", "actual", "predicted", "error"],
            [
                [r["words"], r["actual_"], r["predicted_"],
                 significant(r["predicted"] - r["actual"])]
                for r in ranked
            ],
            note=f"Largest errors first, at most {MOST_ERRORS}.",
        ),
        key=[Key("circle", "c1", "a graph"), Key("dashes", "ink", "exact")],
    )  # fmt: skip


def _predictions_caption(portrait: Portrait, n: int) -> str:
    total, scores = portrait.data.n_graphs, portrait.regression
    text = f"{count(n)} of the {count(total)} graphs. " if n < total else ""
    text += "On the dashed line a prediction is exact; the further from it, the larger the error."
    if scores is None:
        return text
    if scores.r2 is not None:
        text += f" R² is {significant(scores.r2)}: the share of the target's variance explained."
    return f"{text} The mean absolute error is {significant(scores.mean_absolute_error)}."


# ---------------------------------------------------------------------- mistakes


def _mistakes(run: int, portrait: Portrait) -> Figure:
    graphs = {g.graph: g for g in portrait.graphs}
    smiles = {d.graph: d.smiles or "" for d in portrait.drawings}
    cards = [_card(graphs[g], smiles.get(g, "")) for g in portrait.mistakes if g in graphs]
    regression = portrait.task == "regression"
    verbs = ("speaks for the prediction", "speaks against it")
    if regression:
        verbs = ("raises the value", "lowers it")
    rows = [[str(c.graph), c.id, c.actual, c.predicted, c.probability or NONE] for c in cards]
    return Figure(
        id=f"mistakes-{run}",
        title="The largest errors" if regression else "The most confident mistakes",
        caption=_mistakes_caption(cards, regression),
        table=Table(["graph", "id", "actual", "predicted", "probability"], rows, n_words=2),
        body=CardsBody(run, cards),
        key=[
            Key("dot", "for", f"{verbs[0]}; the larger, the more"),
            Key("ring", "against", f"dashed: {verbs[1]}"),
        ],
    )


def _card(g: GraphRow, smiles: str) -> MistakeCard:
    chance = "" if g.probability is None else percent(g.probability, 0)
    return MistakeCard(g.graph, g.id, answer(g.actual), answer(g.predicted), chance, smiles)


def _mistakes_caption(cards: Sequence[MistakeCard], regression: bool) -> str:
    score, label = "the predicted value", "target"
    text = ""
    if not regression:
        score, label = "the score of the prediction", "label"
        text = "What the model was surest of, and wrong about. "
    if cards and cards[0].probability:
        text += f"It gave the first {cards[0].probability}. "
    return (
        f"{text}The color of a vertex shows how much more it adds to {score} than the average "
        f"vertex of its graph does. Look at what misled the model, or whether the {label} in the "
        "data may be wrong."
    )

"""Ours among the published results: the paper's Table 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from fdgnn.evaluation import paper
from fdgnn.html import charts
from fdgnn.html.figures import Cell, Figure, Key, Panel, Row, Table
from fdgnn.html.numbers import NONE, listed, published_spread, spread
from fdgnn.html.outcomes import Outcome, our_name
from fdgnn.html.subjects import Subject

Known = Sequence[tuple[Subject, Outcome]]


def figure(known: Known) -> Figure:
    """Each published mean as a tick, ours and the paper's as marks, and the table itself."""
    rows = [row for subject, outcome in known for row in _rows(subject, outcome)]
    return Figure(
        id="published",
        title="Among the published results (Table 1)",
        caption=_caption(known),
        panels=[Panel("published", charts.published(rows, len(known)))],
        table=table_1(known),
        key=[
            Key("circle", "c1", f"{listed(_by_model(known))}, ours"),
            Key("diamond", "c2", "FDGNN, the paper"),
            Key("tick", "quiet", "another published row"),
        ],
        open=True,
    )


def _rows(subject: Subject, outcome: Outcome) -> list[Row]:
    published = [
        {
            "run": subject.name,
            "what": "paper" if model == "FDGNN" else "other",
            "value": score.mean,
            "model": model,
            "shown": published_spread(score),
            "reference": paper.REFERENCES[score.reference],
        }
        for model, score in _scores(subject.dataset).items()
    ]
    ours = {
        "run": subject.name,
        "what": "ours",
        "value": round(100 * outcome.mean, 3),
        "model": f"{our_name(subject)}, ours",
        "shown": spread(outcome.mean, outcome.std),
        "reference": subject.origin,
    }
    return [*published, ours]


def _caption(known: Known) -> str:
    ranks, higher = [], []
    for subject, outcome in known:
        scores = _scores(subject.dataset)
        others = [s.mean for m, s in scores.items() if not m.startswith("FDGNN")]
        better = sum(mean > 100 * outcome.mean for mean in others)
        ranks.append(f"{better} of {len(others)} on {subject.name}")
        if "FDGNN" in scores and scores["FDGNN"].mean > 100 * outcome.mean:
            higher.append(subject.name)
    return (
        f"Other published models with a higher mean than ours: {listed(ranks)}. "
        + (f"The paper's own FDGNN is higher on {listed(higher)}. " if higher else "")
        + "Each tick is a row of the paper's Table 1; hover or tap for its name. The rows come "
        "from works with different protocols, so small differences mean nothing."
    )


def _scores(dataset: str) -> dict[str, paper.Score]:
    return {m: cells[dataset] for m, cells in paper.ACCURACY.items() if dataset in cells}


def table_1(known: Known) -> Table:
    """The paper's Table 1 for these datasets, with our rows on top; the best mean is marked."""
    runs: dict[str, list[float]] = defaultdict(list)
    for subject, outcome in known:
        runs[subject.dataset].append(100 * outcome.mean)
    best = {d: max(*(s.mean for s in _scores(d).values()), *means) for d, means in runs.items()}
    rows = [
        row for model, ours in _by_model(known).items() for row in _model_rows(model, ours, best)
    ]
    for model, cells in paper.ACCURACY.items():
        if any(d in cells for d in best):
            rows.append(_published_row(model, cells, best))
    heads = [f"{d}, %" for d in best]
    note = "Mean ± standard deviation; the highest mean of a column is bold."
    return Table(["model", "from", *heads], rows, n_words=2, note=note)


def _by_model(known: Known) -> dict[str, list[tuple[Subject, Outcome]]]:
    found: dict[str, list[tuple[Subject, Outcome]]] = defaultdict(list)
    for subject, outcome in known:
        found[our_name(subject)].append((subject, outcome))
    return found


def _model_rows(model: str, ours: Known, best: Mapping[str, float]) -> list[list[Cell]]:
    """One row for all datasets, or one for each run where a dataset was run several times."""
    once = len({subject.dataset for subject, _ in ours}) == len(ours)
    return [
        row
        for some in ([ours] if once else [[one] for one in ours])
        for row in _our_rows(model, "" if once else f": {some[0][0].name}", some, best)
    ]


def _our_rows(model: str, name: str, some: Known, best: Mapping[str, float]) -> list[list[Cell]]:
    """Our row, and the one of our networks with one layer, if there are such."""
    mine = {subject.dataset: outcome for subject, outcome in some}
    deep: list[Cell] = [(f"{model}, ours{name}", "ours"), ("this page", "ours")]
    single: list[Cell] = [(f"{model} (L=1), ours{name}", "ours"), ("this page", "ours")]
    for d in best:
        outcome = mine.get(d)
        if outcome is None:
            deep.append((NONE, "ours"))
            single.append((NONE, "ours"))
            continue
        mean, one = outcome.mean, outcome.single
        deep.append(_marked(spread(mean, outcome.std), 100 * mean, best[d], "ours"))
        single.append((NONE if one is None else spread(*one), "ours"))
    return [deep, single] if any(outcome.single for _, outcome in some) else [deep]


def _published_row(
    model: str, cells: Mapping[str, paper.Score], best: Mapping[str, float]
) -> list[Cell]:
    shown = [
        _marked(published_spread(cells[d]), cells[d].mean, best[d]) if d in cells else NONE
        for d in best
    ]
    return [model.replace("(L=1)", " (L=1)"), _reference(cells, list(best)), *shown]


def _marked(text: str, mean: float, best: float, kind: str = "") -> Cell:
    return (text, f"{kind} best" if mean >= best else kind)


def _reference(cells: Mapping[str, paper.Score], datasets: Sequence[str]) -> str:
    used = dict.fromkeys(cells[d].reference for d in datasets if d in cells)
    return "; ".join(
        "the paper" if r == "this" else paper.REFERENCES[r].split(",")[0] + f" {r[-4:]}"
        for r in used
    )

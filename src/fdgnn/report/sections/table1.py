"""Ours among the published results: the paper's Table 1."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from fdgnn.experiments import paper
from fdgnn.report import charts
from fdgnn.report.figures import Cell, Figure, Key, Panel, Table
from fdgnn.report.numbers import NONE, listed, published_spread, spread
from fdgnn.report.outcomes import Outcome
from fdgnn.report.sources import Source


def figure(known: Sequence[tuple[Source, Outcome]]) -> Figure:
    """Each published mean as a tick, ours and the paper's as marks, and the table itself."""
    rows: list[dict[str, Any]] = []
    ranks, higher = [], []
    for source, outcome in known:
        others = _scores(source.dataset)
        for model, score in others.items():
            rows.append(
                {
                    "run": source.name,
                    "what": "paper" if model == "FDGNN" else "other",
                    "value": score.mean,
                    "model": model,
                    "shown": published_spread(score),
                    "reference": paper.REFERENCES[score.reference],
                }
            )
        rows.append(
            {
                "run": source.name,
                "what": "ours",
                "value": round(100 * outcome.mean, 3),
                "model": "FDGNN, ours",
                "shown": spread(outcome.mean, outcome.std),
                "reference": source.origin,
            }
        )
        rivals = [s.mean for m, s in others.items() if not m.startswith("FDGNN")]
        better = sum(mean > 100 * outcome.mean for mean in rivals)
        ranks.append(f"{better} of {len(rivals)} on {source.name}")
        if "FDGNN" in others and others["FDGNN"].mean > 100 * outcome.mean:
            higher.append(source.name)
    caption = (
        f"Other published models with a higher mean than ours: {listed(ranks)}. "
        + (f"The paper's own FDGNN is higher on {listed(higher)}. " if higher else "")
        + "Each tick is a row of the paper's Table 1; hover or tap for its name. Protocols differ "
        "between the works the rows are quoted from, so small differences say nothing."
    )
    return Figure(
        id="published",
        title="Among the published results (Table 1)",
        caption=caption,
        panels=[Panel("published", charts.published(rows, len(known)))],
        table=table_1(known),
        key=[
            Key("circle", "c1", "FDGNN, ours"),
            Key("diamond", "c2", "FDGNN, the paper"),
            Key("tick", "quiet", "another published row"),
        ],
        open=True,
    )


def _scores(dataset: str) -> dict[str, paper.Score]:
    return {m: cells[dataset] for m, cells in paper.ACCURACY.items() if dataset in cells}


def table_1(known: Sequence[tuple[Source, Outcome]]) -> Table:
    """The paper's Table 1 for these datasets, with our rows on top; the best mean is marked."""
    runs: dict[str, list[tuple[Source, Outcome]]] = defaultdict(list)
    for source, outcome in known:
        runs[source.dataset].append((source, outcome))
    datasets = list(runs)
    best = {d: max(_best(d), *(100 * o.mean for _, o in runs[d])) for d in datasets}

    def mark(text: str, mean: float, dataset: str, kind: str) -> Cell:
        return (text, f"{kind} best" if mean >= best[dataset] else kind)

    rows: list[list[Cell]] = []
    once = all(len(some) == 1 for some in runs.values())
    # One row for all of them, or one for each where a dataset was run several times.
    for some in [known] if once else [[one] for one in known]:
        mine = {source.dataset: outcome for source, outcome in some}
        name = "" if once else f": {some[0][0].name}"
        deep: list[Cell] = [(f"FDGNN, ours{name}", "ours"), ("this page", "ours")]
        single: list[Cell] = [(f"FDGNN (L=1), ours{name}", "ours"), ("this page", "ours")]
        for d in datasets:
            if d not in mine:
                deep.append((NONE, "ours"))
                single.append((NONE, "ours"))
                continue
            mean, std, one = mine[d].mean, mine[d].std, mine[d].single
            deep.append(mark(spread(mean, std), 100 * mean, d, "ours"))
            single.append((NONE if one is None else spread(*one), "ours"))
        rows += [deep, single]
    for model, cells in paper.ACCURACY.items():
        if any(d in cells for d in datasets):
            rows.append(
                [
                    model.replace("(L=1)", " (L=1)"),
                    _reference(cells, datasets),
                    *(
                        mark(published_spread(cells[d]), cells[d].mean, d, "")
                        if d in cells
                        else NONE
                        for d in datasets
                    ),
                ]
            )
    heads = [f"{d}, %" for d in datasets]
    note = "Mean ± standard deviation; the highest mean of a column is bold."
    return Table(["model", "from", *heads], rows, n_words=2, note=note)


def _best(dataset: str) -> float:
    return max(score.mean for score in _scores(dataset).values())


def _reference(cells: dict[str, paper.Score], datasets: Sequence[str]) -> str:
    used = dict.fromkeys(cells[d].reference for d in datasets if d in cells)
    return "; ".join(
        "the paper" if r == "this" else paper.REFERENCES[r].split(",")[0] + f" {r[-4:]}"
        for r in used
    )

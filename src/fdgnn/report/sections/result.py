"""The result first: accuracy by fold, beside the paper's row and what is possible at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdgnn import paper
from fdgnn.report import charts
from fdgnn.report.figures import Figure, Key, Panel, Section, Table
from fdgnn.report.numbers import (
    NONE,
    count,
    listed,
    percent,
    plural,
    published_spread,
    significant,
    spread,
)
from fdgnn.report.outcomes import Outcome, outcome_of, published_of, verdict
from fdgnn.report.sections import table1
from fdgnn.report.sources import Source


def section(sources: Sequence[Source]) -> Section:
    """Cards, accuracy by fold, ours among the published rows, and Table 1."""
    outcomes = [outcome_of(s) for s in sources]
    shown = [(s, o) for s, o in zip(sources, outcomes, strict=True) if o is not None]
    figures = [_folds(shown)] if shown else []
    known = [(s, o) for s, o in shown if s.dataset in paper.DATASETS]
    if known:
        figures.append(table1.figure(known))
    return Section(
        id="result",
        title="Result",
        lead="What to expect of the model on graphs it has never seen, and how that compares.",
        figures=figures,
        cards=[_card(s, o) for s, o in zip(sources, outcomes, strict=True)],
    )


# ---------------------------------------------------------------------- in a few words


def _card(source: Source, outcome: Outcome | None) -> dict[str, str]:
    card = dict.fromkeys(("value", "spread", "how", "note", "warning"), "") | {"name": source.name}
    regression = (source.portrait or {}).get("regression")
    if outcome is not None:
        std = "" if outcome.std is None else f"± {100 * outcome.std:.1f}"
        card |= {"value": percent(outcome.mean), "spread": std, "how": f"accuracy, {outcome.how}"}
        published = published_of(source)
        if published is not None:
            text = verdict(outcome, published)
            card["note"] = text[0].upper() + text[1:] + "."
        else:
            card["note"] = "The paper has no row for this dataset."
    elif regression and regression["r2"] is not None:
        error = significant(regression["mean_absolute_error"])
        seen = "held out" if source.portrait and source.portrait["held_out"] else "perhaps seen"
        card |= {
            "value": significant(regression["r2"]),
            "how": f"R², graphs {seen}",
            "note": f"A prediction is off by {error} on average.",
        }
    else:
        card |= {"value": NONE} | _unfinished(source)
    if source.portrait and not source.portrait["held_out"] and (outcome or regression):
        card["warning"] = "The model may have seen these graphs in training: expect less on others."
    return card


def _unfinished(source: Source) -> dict[str, str]:
    if source.search is not None:
        n = plural(source.search.n_networks, "network")
        return {
            "how": "unfinished",
            "note": f"{n} scored so far; the result is there when all are. Run the same command "
            "again to go on.",
        }
    if source.settings is not None:
        return {"how": "not started", "note": "No network is scored yet."}
    if source.portrait is not None:
        return {"how": "no targets", "note": "These graphs have no known answers to compare with."}
    if source.model is not None:
        score = source.model.get("score")
        if isinstance(score, int | float):
            what = "R²" if source.model.get("class") == "FDGNNRegressor" else "accuracy"
            value = significant(score) if what == "R²" else percent(score)
            return {
                "value": value,
                "how": f"{what}, as saved with the model",
                "note": "From its training; name some data to see it at work.",
            }
        return {"how": "a model file", "note": "Name some data to see it at work."}
    return {"how": "a comparison", "note": "Its accuracies are in the section on rivals."}


# ---------------------------------------------------------------------- accuracy by fold


def _folds(shown: Sequence[tuple[Source, Outcome]]) -> Figure:
    rows = [row for s, o in shown for row in _fold_rows(s, o)]
    published = any(published_of(s) for s, _ in shown)
    bounds = any(_bounds(s) for s, _ in shown)
    folds = any(o.folds for _, o in shown)
    key = [Key("circle", "c1", "mean ± standard deviation" if folds else "ours")]
    if folds:
        key.insert(0, Key("dot", "c1", "one outer fold"))
    if published:
        key.append(Key("diamond", "c2", "the paper, mean ± standard deviation"))
    if bounds:
        key.append(Key("band", "band", "from always the majority class to the WL ceiling"))
    return Figure(
        id="folds",
        title="Accuracy by outer fold" if folds else "Accuracy",
        caption=_folds_caption(shown, bounds),
        panels=[Panel("folds", charts.folds(rows, len(shown)))],
        table=_folds_table(shown),
        key=key,
    )


def _bounds(source: Source) -> tuple[float, float] | None:
    data = (source.portrait or {}).get("data") or {}
    low, high = data.get("majority"), data.get("wl_ceiling")
    return None if low is None or high is None else (low, high)


def _fold_rows(source: Source, outcome: Outcome) -> list[dict[str, Any]]:
    def row(what: str, value: float, std: float | None, words: str) -> dict[str, Any]:
        low, high = value - (std or 0), value + (std or 0)
        return {
            "run": source.name,
            "what": what,
            "lane": "paper" if what == "paper" else "ours",
            "value": round(100 * value, 3),
            "low": round(100 * low, 3),
            "high": round(100 * high, 3),
            "words": words,
            "shown": percent(value) if std is None else f"{spread(value, std)} %",
        }

    rows = []
    bounds = _bounds(source)
    if bounds is not None:
        low, high = bounds
        band = row("possible", low, None, "always the majority class, to the WL ceiling")
        rows.append(
            band | {"high": round(100 * high, 3), "shown": f"{percent(low)} to {percent(high)}"}
        )
    rows += [row("fold", value, None, f"fold {i + 1}") for i, value in enumerate(outcome.folds)]
    rows.append(row("ours", outcome.mean, outcome.std, outcome.how))
    published = published_of(source)
    if published is not None:
        std = None if published.std is None else published.std / 100
        rows.append(row("paper", published.mean / 100, std, "the paper"))
    return rows


def _folds_caption(shown: Sequence[tuple[Source, Outcome]], bounds: bool) -> str:
    compared = [(s, o, p) for s, o in shown if (p := published_of(s)) is not None]
    if len(shown) == 1:
        source, outcome = shown[0]
        text = f"{source.name}: {percent(outcome.mean)}, {outcome.how}"
        if compared:
            text += f", {verdict(outcome, compared[0][2])}"
        text += "."
        if outcome.folds:
            low, high = percent(min(outcome.folds)), percent(max(outcome.folds))
            text += f" Single folds range from {low} to {high}: with so few graphs in each, "
            text += "differences smaller than that spread mean little."
    else:
        near = [s.name for s, o, p in compared if abs(100 * o.mean - p.mean) <= (p.std or 0)]
        text = f"{len(shown)} results side by side."
        if compared:
            of = "All" if len(near) == len(compared) else f"{len(near)} of the {len(compared)}"
            text += f" {of} that the paper has a row for are within one standard deviation of it"
            far = [s.name for s, _, _ in compared if s.name not in near]
            text += f"; not so {listed(far)}." if far else "."
    if bounds:
        text += (
            " The band begins where a model would be that always says the majority class and ends "
            "at the WL ceiling, the best that any message passing can reach on these graphs."
        )
    return text


def _folds_table(shown: Sequence[tuple[Source, Outcome]]) -> Table:
    n_folds = max((len(o.folds) for _, o in shown), default=0)
    rows = []
    for source, outcome in shown:
        bounds, published = _bounds(source), published_of(source)
        folds = [f"{100 * v:.2f}" for v in outcome.folds]
        rows.append(
            [
                source.name,
                spread(outcome.mean, outcome.std),
                NONE if published is None else published_spread(published),
                NONE if bounds is None else f"{100 * bounds[0]:.2f}",
                NONE if bounds is None else f"{100 * bounds[1]:.2f}",
                *folds,
                *[NONE] * (n_folds - len(folds)),
            ]
        )
    head = ["run", "ours, %", "paper, %", "majority, %", "WL ceiling, %"]
    return Table([*head, *(f"fold {i + 1}" for i in range(n_folds))], rows)


def summary(sources: Sequence[Source]) -> str:
    """The page's first sentence."""
    n_graphs = [
        facts["n_graphs"] for s in sources if (facts := s.result or (s.portrait or {}).get("data"))
    ]
    what = f"From {sources[0].path}" if len(sources) == 1 else listed(s.name for s in sources)
    return f"{what}; {count(sum(n_graphs))} graphs." if n_graphs else f"{what}."

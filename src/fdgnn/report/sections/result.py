"""The result first: accuracy by fold, beside the paper's row and what is possible at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

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
from fdgnn.report.outcomes import (
    Outcome,
    is_of_the_paper,
    is_regression,
    outcome_of,
    published_of,
    saved_score,
    shown_score,
    told_rightly,
    verdict,
    why_no_row,
)
from fdgnn.report.sections import table1
from fdgnn.report.sections.missing import command_again
from fdgnn.report.sources import Source


def section(sources: Sequence[Source]) -> Section:
    """Cards, accuracy by fold, ours among the published rows, and Table 1."""
    outcomes = [outcome_of(s) for s in sources]
    shown = [(s, o) for s, o in zip(sources, outcomes, strict=True) if o is not None and o.here]
    figures = [_folds(shown)] if shown else []
    known = [(s, o) for s, o in shown if is_of_the_paper(s)]
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
    parts = ("value", "spread", "how", "note", "warning", "command")
    card = dict.fromkeys(parts, "") | {"name": source.name}
    if outcome is not None:
        std = "" if outcome.std is None else f"± {100 * outcome.std:.1f}"
        card |= {"value": percent(outcome.mean), "spread": std, "how": f"accuracy, {outcome.how}"}
        card["note"] = _beside(source, outcome)
    elif source.model is not None:
        card |= _model_card(source)
    else:
        card |= {"value": NONE} | _unfinished(source)
    if source.portrait and not source.portrait["held_out"]:
        card["warning"] = _seen(source)
    card["note"] = " ".join(filter(None, [card["note"], *source.notes]))
    return card


def _beside(source: Source, outcome: Outcome) -> str:
    """What the accuracy is to be compared with."""
    if source.result is None:
        return _saved_beside(source) if outcome.here else ""
    published = published_of(source)
    if published is None:
        return why_no_row(source)
    text = verdict(outcome, published)
    return text[0].upper() + text[1:] + "."


def _saved_beside(source: Source) -> str:
    saved = saved_score(source)
    if saved is None:
        return ""
    return f"In its training: {shown_score(saved[0], source)} ({saved[1]})."


def _model_card(source: Source) -> dict[str, str]:
    """Of a model file without an accuracy on graphs held out: R2, or what was saved with it."""
    portrait, saved = source.portrait, saved_score(source)
    scores = (portrait or {}).get("regression")
    if portrait and portrait["held_out"] and scores and scores["r2"] is not None:
        error = significant(scores["mean_absolute_error"])
        note = f"A prediction is off by {error} on average. {_saved_beside(source)}"
        return {
            "value": significant(scores["r2"]),
            "how": "R², graphs held out",
            "note": note.strip(),
        }
    what = "R²" if is_regression(source) else "accuracy"
    card = {"value": NONE, "how": f"{what} on unseen graphs is not known"}
    if saved is not None:
        card = {"value": shown_score(saved[0], source), "how": f"{what}, {saved[1]}"}
    if portrait is None:
        return card | {"note": "Name some data to see it at work."}
    if not any(g["actual"] is not None for g in portrait["graphs"]):
        return card | {"note": "These graphs have no known answers to compare with."}
    return card


def _seen(source: Source) -> str:
    """How the model does on graphs that it may have seen, and that this is no promise."""
    told = told_rightly(source)
    scores = (source.portrait or {}).get("regression") or {}
    if told is not None:
        what = f"Here it is right in {percent(told[0] / told[1])} of the cases"
    elif scores.get("r2") is not None:
        error = significant(scores["mean_absolute_error"])
        what = f"Here R² is {significant(scores['r2'])} and the mean absolute error {error}"
    else:
        return ""
    return f"{what}, but it may have seen these graphs in training: expect less on others."


def _unfinished(source: Source) -> dict[str, str]:
    if source.settings is None:
        return {"how": "a comparison", "note": "Its accuracies are in the section on rivals."}
    command = command_again(source) or ""
    on = "To go on:" if command else "The command that began it goes on with it."
    if source.search is None:
        note = f"No network is scored yet. {on}"
        return {"how": "not started", "note": note, "command": command}
    asked = source.asked or {}
    wanted = (asked.get("n_configurations") or 0) * (asked.get("n_guesses") or 0)
    n = plural(source.search.n_networks, "network")
    if wanted >= source.search.n_networks:
        n = f"{count(source.search.n_networks)} of {plural(wanted, 'network')}"
    return {"how": "unfinished", "note": f"{n} scored so far. {on}", "command": command}


# ---------------------------------------------------------------------- accuracy by fold


def _folds(shown: Sequence[tuple[Source, Outcome]]) -> Figure:
    rows = [row for s, o in shown for row in _fold_rows(s, o)]
    published = any(published_of(s) for s, _ in shown)
    bounds = any(_bounds(s) for s, _ in shown)
    folds = any(o.folds for _, o in shown)
    key = [Key("circle", "c1", "mean ± standard deviation" if folds else "ours")]
    if folds:
        equal = any(len(set(o.folds)) < len(o.folds) for _, o in shown)
        words = "one outer fold; larger: several that are equal" if equal else "one outer fold"
        key.insert(0, Key("dot", "c1", words))
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
            "folds": 1,
        }

    rows = []
    bounds = _bounds(source)
    if bounds is not None:
        low, high = bounds
        band = row("possible", low, None, "always the majority class, to the WL ceiling")
        rows.append(
            band | {"high": round(100 * high, 3), "shown": f"{percent(low)} to {percent(high)}"}
        )
    equal = defaultdict(list)  # folds of one accuracy would hide each other
    for i, value in enumerate(outcome.folds, start=1):
        equal[value].append(i)
    for value, folds in equal.items():
        words = f"fold{'s' if len(folds) > 1 else ''} {listed(folds)}"
        rows.append(row("fold", value, None, words) | {"folds": len(folds)})
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
            n = ((source.result or {}).get("n_graphs") or 0) / len(outcome.folds)
            few = f"with only about {n:.0f} graphs in each, " if n < 100 else ""
            text += f" Single folds range from {low} to {high}: {few}differences smaller than "
            text += "that spread mean little."
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
    what = f"From {sources[0].origin}" if len(sources) == 1 else listed(s.name for s in sources)
    return f"{what}; {count(sum(n_graphs))} graphs." if n_graphs else f"{what}."

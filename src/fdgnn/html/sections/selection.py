"""How the model was selected: all configurations and penalties, the depth of each fold, times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdgnn.evaluation.records import Configuration
from fdgnn.html import charts
from fdgnn.html.figures import Figure, Key, Missing, Panel, Part, Row, Section, Table
from fdgnn.html.numbers import count, listed, plural, power_of_ten, significant
from fdgnn.html.search import ConfigurationScore, SearchSummary
from fdgnn.html.sections import committee, tables23
from fdgnn.html.subjects import Subject

MOST_POINTS = 400  # configurations drawn and listed; beyond, the best and an even choice of others
PARAMETERS = {  # the field of a row: the hyper-parameter, its letter and its name
    "rho": ("effective_spectral_radius", "ρ", "ρ, effective spectral radius"),
    "omega1": ("input_scaling", "ω(1)", "ω(1), input scaling"),
    "omega": ("inter_layer_scaling", "ω", "ω, scaling between layers"),
    "depth": ("n_layers", "layers", "layers"),
}
_SCALES = ("rho", "omega1", "omega")

_LEAD = (
    "For each outer fold, the configuration with the best validation accuracy on the other folds "
    "was taken, each of its networks with the penalty that suits it best. Only validation accuracy "
    "is shown here: test accuracy plays no part in the choice."
)

_TRAINED = "A choice that was made in training."
_MIXED = (
    "Each outer fold makes its own choice, by validation on the graphs of the other folds alone."
)

_DRAWN = (
    "c", "rho", "omega1", "omega", "depth", "mean", "low", "high", "chosen", "place", "words",
    "rho_", "omega1_", "omega_", "lambda_", "mean_", "range_", "chosen_",
)  # fmt: skip


@dataclass(frozen=True)
class FoldChoice:
    """What one outer fold selected: a configuration, and the penalties of its networks."""

    number: int
    alphas: frozenset[float]


def section(subjects: Sequence[Subject]) -> Section:
    """Accuracy against each hyper-parameter, then depths (Table 2) and times (Table 3)."""
    finished = [(s, s.result) for s in subjects if s.result is not None]
    after = [tables23.depths(finished), tables23.seconds(finished)] if finished else []
    # Where subjects were selected in different ways, each part has its own words.
    ways = list(dict.fromkeys(_way(s) for s in subjects if s.has_model))
    mixed = len(set(ways) - {_TRAINED}) > 1
    return Section(
        id="selection",
        title="How it was selected",
        lead=_MIXED if mixed else next((w for w in ways if w != _TRAINED), _TRAINED),
        parts=[
            _part(i, s, _way(s) if mixed else "") for i, s in enumerate(subjects) if s.has_model
        ],
        after=after,
    )


def _way(subject: Subject) -> str:
    """How a subject was selected, in a few sentences."""
    if subject.committee is not None:
        return committee.lead(subject.committee)
    return _TRAINED if subject.settings is None else _LEAD


def _part(run: int, subject: Subject, lead: str) -> Part:
    if subject.committee is not None:
        return committee.part(run, subject, subject.committee, lead)
    if subject.search is None:
        why = (
            "A model file keeps the chosen settings, not the search that led to them."
            if subject.model
            else "The run has no records that can be read."
        )
        return Part(run, subject.name, missing=Missing(why))
    return Part(run, subject.name, [_landscape(run, subject, subject.search)], lead=lead)


def choices_of(subject: Subject) -> list[FoldChoice]:
    """What the outer folds took, as far as the search has it."""
    if subject.search is None or subject.result is None:
        return []
    number = {_identity(c): i for i, c in enumerate(subject.search.configurations)}
    result = subject.result
    return [
        FoldChoice(number[_identity(c)], frozenset(alphas))
        for c, alphas in zip(result.fold_configurations, result.fold_alphas, strict=True)
        if _identity(c) in number
    ]


def _identity(configuration: Configuration) -> str:
    return repr(sorted((name, v) for name, v in configuration.items() if name != "alpha"))


# ---------------------------------------------------------------------- rows


def rows_of(search: SearchSummary, choices: Sequence[FoldChoice]) -> list[Row]:
    """Give one row per configuration, with its numbers as a chart and as a table show them."""
    chosen = Counter(choice.number for choice in choices)
    scores = _thinned(search.scores(), set(chosen))
    return [
        _row(score, chosen[score.number], i / max(1, len(scores) - 1))
        for i, score in enumerate(scores)
    ]


def _row(score: ConfigurationScore, chosen: int, place: float) -> Row:
    given = {field: score.configuration.get(name) for field, (name, _, _) in PARAMETERS.items()}
    numbers = {field: v for field, v in given.items() if isinstance(v, int | float)}
    low, mean, high = (100 * v for v in (score.low, score.mean, score.high))
    return {
        "c": score.number,
        "words": f"number {score.number + 1}",
        # Depth is a whole number: points of one depth are set side by side, in their order.
        "place": round(0.1 + 0.8 * place, 3),
        "chosen": chosen,
        "chosen_": _by_folds(chosen),
        "mean": round(mean, 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "mean_": f"{mean:.2f}",
        "mean_1": f"{mean:.1f}",
        "guesses_": f"{low:.2f} to {high:.2f}",
        "range_": f"{low:.2f} to {high:.2f} ({score.n_guesses})",
        "lambda_": power_of_ten(score.alpha),
        "depth": numbers.get("depth"),
        **{name: round(numbers[name], 5) if name in numbers else None for name in _SCALES},
        **{f"{name}_": significant(numbers.get(name)) for name in _SCALES},
    }


def _thinned(scores: list[ConfigurationScore], keep: set[int]) -> list[ConfigurationScore]:
    if len(scores) <= MOST_POINTS:
        return scores
    best = sorted(scores, key=lambda s: -s.mean)[: MOST_POINTS // 4]
    even = scores[:: -(-len(scores) // (MOST_POINTS // 2))]
    numbers = keep | {s.number for s in [*best, *even]}
    return [s for s in scores if s.number in numbers]


def _by_folds(n: int) -> str:
    return f"by {plural(n, 'outer fold')}" if n else "no"


def penalty_rows(
    search: SearchSummary, shown: Sequence[int], choices: Sequence[FoldChoice]
) -> list[Row]:
    """Give one row per shown configuration and penalty; those that were chosen are last."""
    means = search.means()
    chosen = Counter((choice.number, alpha) for choice in choices for alpha in choice.alphas)
    points = [
        {
            "c": c,
            "power": _power(alpha),
            "mean": round(100 * float(means[c][a]), 3),
            "mean_": f"{100 * means[c][a]:.2f}",
            "lambda_": power_of_ten(alpha),
            "chosen": chosen[(c, alpha)],
            "chosen_": _by_folds(chosen[(c, alpha)]),
        }
        for c in shown
        for a, alpha in enumerate(search.alphas)
    ]
    return sorted(points, key=lambda p: p["chosen"])  # what is chosen lies on top


def _medians(search: SearchSummary) -> list[Row]:
    """For each penalty, the median over configurations."""
    medians = np.median(list(search.means().values()), axis=0)
    return [
        {
            "power": _power(alpha),
            "mean": round(100 * float(median), 3),
            "lambda_": power_of_ten(alpha),
        }
        for alpha, median in zip(search.alphas, medians, strict=True)
    ]


def _power(alpha: float) -> float | None:
    return round(math.log10(alpha), 4) if alpha > 0 else None


# ---------------------------------------------------------------------- the figure


def _landscape(run: int, subject: Subject, search: SearchSummary) -> Figure:
    choices = choices_of(subject)
    rows = rows_of(search, choices)
    points = penalty_rows(search, [r["c"] for r in rows], choices)
    medians = _medians(search)
    of, by = f"search-{run}", f"penalties-{run}"
    low, high = _domain([r["low"] for r in rows], [r["high"] for r in rows])
    panels = [
        Panel(f"{name}-{run}", charts.selection(of, name, title, low, high), title, [of])
        for name, (_, _, title) in PARAMETERS.items()
        if any(row[name] is not None for row in rows)
    ]
    means = [p["mean"] for p in points]
    penalties = charts.penalties(by, of, medians, *_domain(means, means))
    panels.append(Panel(f"lambda-{run}", penalties, "λ, Tikhonov's penalty", [by, of]))
    return Figure(
        id=f"search-{run}",
        title="Validation accuracy over the search",
        caption=_caption(search, rows, medians),
        panels=panels,
        table=_table(rows),
        key=_key(finished=subject.result is not None),
        linked=True,
        data={of: [{k: row[k] for k in _DRAWN} for row in rows], by: points},
    )


def _key(finished: bool) -> list[Key]:
    return [
        Key("circle", "c1", "a configuration, mean over its guesses, each with its best λ"),
        Key("line", "quiet", "its worst to its best guess"),
        *([Key("diamond", "c2", "chosen by at least one outer fold")] if finished else []),
        Key("line", "ink", "λ: median of all configurations"),
    ]


def _domain(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    low, high = min(lows), max(highs)
    margin = max(0.05 * (high - low), 0.2)
    return round(low - margin, 2), round(high + margin, 2)


def _caption(search: SearchSummary, rows: Sequence[Row], medians: Sequence[Row]) -> str:
    ranked = sorted(rows, key=lambda r: -r["mean"])
    guesses = max(map(len, search.validation))
    best = max(medians, key=lambda m: m["mean"])
    text = (
        f"{plural(len(search.configurations), 'configuration')} with up to "
        f"{plural(guesses, 'guess', 'guesses')} each, {count(search.n_estimators)} fits in all. "
        f"Means range from {ranked[-1]['mean_1']} to {ranked[0]['mean_1']} %. "
        f"{_spans(ranked[: max(3, len(ranked) // 10)])}"
        f"The median configuration does best with λ = {best['lambda_']}. ω has no effect on "
        "networks of one layer. Hover or tap to follow a configuration in all charts."
    )
    if search.n_unreadable:
        text += f" {plural(search.n_unreadable, 'line')} of the records could not be read."
    return text


def _spans(top: Sequence[Row]) -> str:
    """The ranges of hyper-parameters among the best configurations."""
    spans = [
        f"{PARAMETERS[field][1]} from {significant(min(values), 2)} to "
        f"{significant(max(values), 2)}"
        for field in _SCALES
        if (values := [r[field] for r in top if r[field] is not None])
    ]
    layers = sorted({r["depth"] for r in top if r["depth"] is not None})
    text = f"The {len(top)} best have {listed(spans)}. " if spans else ""
    return text + (f"They have {listed(layers)} layers. " if spans and layers else "")


def _table(rows: Sequence[Row]) -> Table:
    ranked = sorted(rows, key=lambda r: -r["mean"])
    return Table(
        ["number", "ρ", "ω(1)", "ω", "layers", "usual λ", "mean, %", "guesses, %", "chosen"],
        [
            [
                str(r["c"] + 1),
                r["rho_"],
                r["omega1_"],
                r["omega_"],
                count(r["depth"]),
                r["lambda_"],
                r["mean_"],
                r["guesses_"],
                f"{r['chosen']}" if r["chosen"] else "",
            ]
            for r in ranked
        ],
        note="Best first; chosen: by how many outer folds.",
    )

"""How it was selected: all configurations and penalties, the depth of each fold, the times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fdgnn.report import charts
from fdgnn.report.figures import Block, Figure, Key, Missing, Panel, Section, Table
from fdgnn.report.numbers import (
    count,
    listed,
    plural,
    power_of_ten,
    significant,
)
from fdgnn.report.search import Search
from fdgnn.report.sections import tables23
from fdgnn.report.sources import Source

MOST_POINTS = 400  # configurations drawn and listed; beyond, the best and an even choice of others
PARAMETERS = (
    ("rho", "ρ, effective spectral radius"),
    ("omega1", "ω(1), input scaling"),
    ("omega", "ω, scaling between layers"),
    ("depth", "layers"),
)

_LEAD = (
    "For each outer fold, the configuration with the best validation accuracy on the other folds "
    "was taken, each of its networks with the penalty that suits it best. Only validation accuracy "
    "is shown here: test accuracy has no say in the choice."
)

_DRAWN = (
    "c", "rho", "omega1", "omega", "depth", "mean", "low", "high", "chosen", "place", "words",
    "rho_", "omega1_", "omega_", "lambda_", "mean_", "range_", "chosen_",
)  # fmt: skip


def section(sources: Sequence[Source]) -> Section:
    """Accuracy against each hyper-parameter, then depths (Table 2) and times (Table 3)."""
    blocks = [_block(i, s) for i, s in enumerate(sources) if s.settings or s.model]
    finished = [s for s in sources if s.result is not None]
    after = [tables23.depths(finished), tables23.seconds(finished)] if finished else []
    return Section(
        id="selection",
        title="How it was selected",
        lead=_LEAD if any(s.settings for s in sources) else "A choice that was made in training.",
        blocks=blocks,
        after=after,
    )


def _block(run: int, source: Source) -> Block:
    if source.search is None:
        why = (
            "A model file keeps the chosen settings, not the search that led to them."
            if source.model
            else "The run has no records that can be read."
        )
        return Block(run, source.name, missing=Missing(why))
    rows = _rows(source.search, chosen_of(source))
    figures = [_landscape(run, source, rows)] if rows else []
    return Block(run, source.name, figures)


def chosen_of(source: Source) -> list[tuple[int, set[float]]]:
    """What outer folds took: the configuration's number, and the penalties of its networks."""
    if source.search is None or source.result is None:
        return []
    number = {_identity(c): i for i, c in enumerate(source.search.configurations)}
    chosen = source.result["fold_configurations"]
    alphas = source.result.get("fold_alphas") or [[c.get("alpha", math.nan)] for c in chosen]
    found = [
        (number.get(_identity(c), -1), {float(alpha) for alpha in each})
        for c, each in zip(chosen, alphas, strict=True)
    ]
    return [pair for pair in found if pair[0] >= 0]


def _identity(configuration: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        configuration.get(name)
        for name in ("random_state", "effective_spectral_radius", "input_scaling", "n_layers")
    )


def _rows(search: Search, chosen: list[tuple[int, set[float]]]) -> list[dict[str, Any]]:
    by_configuration = Counter(c for c, _ in chosen)
    rows = _thinned(search.summary(), set(by_configuration))
    return [
        row
        | {
            "chosen": by_configuration[row["c"]],
            "words": f"number {row['c'] + 1}",
            # Depth is a whole number: points of one depth are set side by side, in their order.
            "place": round(0.1 + 0.8 * (i / max(1, len(rows) - 1)), 3),
            "lambda_": power_of_ten(row["lambda"]),
            "mean_": f"{100 * row['mean']:.2f}",
            "mean_1": f"{100 * row['mean']:.1f}",
            "guesses_": f"{100 * row['low']:.2f} to {100 * row['high']:.2f}",
            "range_": f"{100 * row['low']:.2f} to {100 * row['high']:.2f} ({row['guesses']})",
            "chosen_": _by_folds(by_configuration[row["c"]]),
            **{f"{name}_": significant(row[name]) for name in ("rho", "omega1", "omega")},
            **{name: round(100 * row[name], 3) for name in ("mean", "low", "high")},
            **{name: _rounded(row[name]) for name in ("rho", "omega1", "omega")},
        }
        for i, row in enumerate(rows)
    ]


def _thinned(rows: list[dict[str, Any]], keep: set[int]) -> list[dict[str, Any]]:
    if len(rows) <= MOST_POINTS:
        return rows
    best = sorted(rows, key=lambda r: -r["mean"])[: MOST_POINTS // 4]
    even = rows[:: -(-len(rows) // (MOST_POINTS // 2))]
    numbers = keep | {r["c"] for r in [*best, *even]}
    return [r for r in rows if r["c"] in numbers]


def _by_folds(n: int) -> str:
    return f"by {plural(n, 'outer fold')}" if n else "no"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 5)


def _landscape(run: int, source: Source, rows: list[dict[str, Any]]) -> Figure:
    search = source.search
    assert search is not None
    low, high = _domain([r["low"] for r in rows], [r["high"] for r in rows])
    of, by = f"search-{run}", f"penalties-{run}"
    panels = [
        Panel(f"{name}-{run}", charts.selection(of, name, title, low, high), title, [of])
        for name, title in PARAMETERS
    ]
    points, middle = _penalty_rows(search, rows, chosen_of(source))
    floor = _domain([r["mean"] for r in points], [r["mean"] for r in points])
    panels.append(
        Panel(
            f"lambda-{run}",
            charts.penalties(by, of, middle, *floor),
            "λ, Tikhonov's penalty",
            [by, of],
        )
    )
    key = [Key("circle", "c1", "a configuration, mean over its guesses, each at its best λ")]
    key.append(Key("line", "quiet", "its worst to its best guess"))
    if source.result is not None:
        key.append(Key("diamond", "c2", "chosen by at least one outer fold"))
    key.append(Key("line", "ink", "λ: median of all configurations"))
    return Figure(
        id=f"search-{run}",
        title="Validation accuracy over the search",
        caption=_landscape_caption(source, rows, middle),
        panels=panels,
        table=_landscape_table(rows),
        key=key,
        linked=True,
        data={of: [{k: row[k] for k in _DRAWN} for row in rows], by: points},
    )


def _domain(lows: Sequence[float], highs: Sequence[float]) -> tuple[float, float]:
    low, high = min(lows), max(highs)
    margin = max(0.05 * (high - low), 0.2)
    return round(low - margin, 2), round(high + margin, 2)


def _penalty_rows(
    search: Search, rows: list[dict[str, Any]], choices: list[tuple[int, set[float]]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    means = search.means
    chosen = Counter((c, alpha) for c, alphas in choices for alpha in alphas)
    shown = [r["c"] for r in rows]
    points = [
        {
            "c": c,
            "power": round(math.log10(alpha), 4) if alpha > 0 else None,
            "mean": round(100 * float(means[c, a]), 3),
            "mean_": f"{100 * means[c, a]:.2f}",
            "lambda_": power_of_ten(alpha),
            "chosen": chosen[(c, alpha)],
            "chosen_": _by_folds(chosen[(c, alpha)]),
        }
        for c in shown
        for a, alpha in enumerate(search.alphas)
        if not np.isnan(means[c, a])
    ]
    points.sort(key=lambda p: p["chosen"])  # what is chosen lies on top
    middle = [
        {
            "power": round(math.log10(alpha), 4) if alpha > 0 else None,
            "mean": round(100 * float(np.nanmedian(means[:, a])), 3),
            "lambda_": power_of_ten(alpha),
        }
        for a, alpha in enumerate(search.alphas)
    ]
    return points, middle


def _landscape_caption(
    source: Source, rows: list[dict[str, Any]], middle: list[dict[str, Any]]
) -> str:
    search = source.search
    assert search is not None
    ranked = sorted(rows, key=lambda r: -r["mean"])
    top = ranked[: max(3, len(ranked) // 10)]
    guesses = search.validation.shape[1]
    text = (
        f"{plural(len(search.configurations), 'configuration')} with up to "
        f"{plural(guesses, 'guess', 'guesses')} each, {count(search.n_networks)} networks in all. "
        f"Means range from {ranked[-1]['mean_1']} to {ranked[0]['mean_1']} %. "
    )
    spans = [
        f"{name} from {significant(min(values), 2)} to {significant(max(values), 2)}"
        for field, name in (("rho", "ρ"), ("omega1", "ω(1)"), ("omega", "ω"))
        if (values := [r[field] for r in top if r[field] is not None])
    ]
    layers = sorted({r["depth"] for r in top if r["depth"] is not None})
    if spans:
        text += f"The {len(top)} best have {listed(spans)}, and {listed(layers)} layers. "
    best = max(middle, key=lambda m: m["mean"])
    text += f"The median configuration does best with λ = {best['lambda_']}. "
    text += "ω has no effect on networks of one layer. Hover or tap to follow a "
    text += "configuration everywhere."
    if search.n_unreadable:
        text += f" {plural(search.n_unreadable, 'line')} of the records could not be read."
    return text


def _landscape_table(rows: list[dict[str, Any]]) -> Table:
    ranked = sorted(rows, key=lambda r: -r["mean"])
    return Table(
        ["number", "ρ", "ω(1)", "ω", "layers", "usual λ", "mean, %", "guesses, %", "chosen"],
        [
            [
                str(r["c"] + 1),
                r["rho_"],
                r["omega1_"],
                r["omega_"],
                str(r["depth"]),
                r["lambda_"],
                r["mean_"],
                r["guesses_"],
                f"{r['chosen']}" if r["chosen"] else "",
            ]
            for r in ranked
        ],
        note="Best first; chosen: by how many outer folds.",
    )

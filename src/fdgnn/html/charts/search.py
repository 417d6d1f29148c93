"""Charts of the search: validation accuracy against each hyper-parameter, chosen depths."""

from __future__ import annotations

from fdgnn.html.charts.base import (
    INK,
    OURS,
    PAPER,
    QUIET,
    Rows,
    altair,
    either,
    finish_layers,
    inline,
    keyed,
    names_axis,
    tooltip,
)
from fdgnn.html.figures import Spec


def selection(table: str, field: str, title: str, low: float, high: float) -> Spec:
    """Validation accuracy of all configurations against one hyper-parameter.

    Rows of the table: c, the field, mean, low, high (over guesses), chosen (by how many folds),
    and the fields of the tooltip.
    """
    alt = altair()
    whole = field == "depth"
    x = (
        alt.X(f"{field}:O", title=title, axis=alt.Axis(labelAngle=0))
        if whole
        else alt.X(f"{field}:Q", title=title, scale=alt.Scale(nice=True, zero=True))
    )
    offset = {"xOffset": alt.XOffset("place:Q", scale=alt.Scale(domain=[0, 1]))} if whole else {}
    y_scale = alt.Scale(domain=[low, high], nice=False, zero=False)
    y = alt.Y("mean:Q", title="validation accuracy, %", scale=y_scale)
    base = alt.Chart(alt.NamedData(name=table)).encode(
        x=x, y=y, **offset,
        tooltip=tooltip(
            words="configuration", rho_="ρ", omega1_="ω(1)", omega_="ω", depth="layers",
            lambda_="usual λ", mean_="mean, %", range_="guesses, %", chosen_="chosen",
        ),
    )  # fmt: skip
    bars = base.mark_rule(strokeWidth=1.2).encode(
        y=alt.Y("low:Q", title="validation accuracy, %", scale=y_scale),
        y2=alt.Y2("high:Q"),
        color=alt.ColorValue(QUIET),
        opacity=either(alt.OpacityValue, "datum.c == hot", 1, 0.35),
    )
    points = base.mark_point(filled=True).encode(
        color=either(alt.ColorValue, "datum.chosen > 0", PAPER, OURS),
        shape=either(alt.ShapeValue, "datum.chosen > 0", "diamond", "circle"),
        size=either(alt.SizeValue, "datum.chosen > 0", 120, 38),
        opacity=either(alt.OpacityValue, "datum.chosen > 0 || datum.c == hot", 1, 0.6),
        stroke=either(alt.StrokeValue, "datum.c == hot", INK, "var(--paper)"),
        strokeWidth=either(alt.StrokeWidthValue, "datum.c == hot", 2.5, 0.8),
    )  # fmt: skip
    return finish_layers([bars, points], 210, hot=-1)


def penalties(table: str, of: str, middle: Rows, low: float, high: float) -> Spec:
    """Validation accuracy of all configurations against the penalty, and their median.

    Rows of the table: c, power, mean, chosen, ...; `of` is the table of the configurations.
    """
    alt = altair()
    x = alt.X(
        "power:Q",
        title="λ, powers of ten",
        axis=alt.Axis(grid=False, tickMinStep=1, format="d"),
        scale=alt.Scale(nice=False, padding=8),
    )
    y = alt.Y(
        "mean:Q", title="validation accuracy, %", scale=alt.Scale(domain=[low, high], clamp=True)
    )
    facts = alt.LookupData(
        data=alt.NamedData(name=of),
        key="c",
        fields=["words", "depth", "rho_", "omega1_", "omega_"],
    )
    points = (
        alt.Chart(alt.NamedData(name=table))
        .transform_lookup(lookup="c", from_=facts)
        .mark_point(filled=True)
        .encode(
            x=x,
            y=y,
            color=either(alt.ColorValue, "datum.chosen > 0", PAPER, OURS),
            shape=either(alt.ShapeValue, "datum.chosen > 0", "diamond", "circle"),
            size=either(alt.SizeValue, "datum.chosen > 0", 120, 16),
            opacity=either(alt.OpacityValue, "datum.chosen > 0 || datum.c == hot", 1, 0.35),
            stroke=either(alt.StrokeValue, "datum.c == hot", INK, None),
            tooltip=tooltip(
                words="configuration", lambda_="λ", mean_="mean, %", depth="layers",
                rho_="ρ", omega1_="ω(1)", omega_="ω", chosen_="chosen",
            ),
        )
    )  # fmt: skip
    line = (
        alt.Chart(inline(middle))
        .mark_line(color=INK, strokeWidth=2, opacity=0.8, interpolate="monotone")
        .encode(x=x, y=y)
    )
    return finish_layers([points, line], 210, hot=-1)


def depths(rows: Rows, n_runs: int, deepest: int) -> Spec:
    """How many folds chose which depth. Rows: run, what, depth, folds, words."""
    alt = altair()
    base = alt.Chart(inline(keyed(rows, "run"))).encode(
        x=alt.X(
            "depth:Q",
            title="layers",
            scale=alt.Scale(domain=[0.6, deepest + 0.4], nice=False),
            axis=alt.Axis(values=list(range(1, deepest + 1)), format="d"),
        ),
        y=alt.Y("key:N", title=None, sort=None, axis=names_axis(alt)),
        tooltip=tooltip(run="run", words="what"),
    )
    folds = base.transform_filter(alt.datum.what == "fold")
    circles = folds.mark_point(filled=True, color=OURS, opacity=0.25).encode(
        size=alt.Size("folds:Q", legend=None, scale=alt.Scale(domain=[0, 10], range=[0, 1100]))
    )
    numbers = folds.mark_text(fontWeight=600).encode(text=alt.Text("folds:Q"))
    ours = base.transform_filter(alt.datum.what == "ours").mark_tick(
        color=OURS, thickness=3.5, size=22, opacity=1, yOffset=23
    )
    paper = base.transform_filter(alt.datum.what == "paper").mark_point(
        filled=True, shape="diamond", size=110, color=PAPER, opacity=1,
        stroke="var(--paper)", strokeWidth=1.5, yOffset=23,
    )  # fmt: skip
    return finish_layers([circles, numbers, ours, paper], 68 * n_runs + 20)

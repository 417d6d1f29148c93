"""Charts of accuracy and time: ours, the published ones, the rivals."""

from __future__ import annotations

from typing import Any

from fdgnn.html.charts.base import (
    COLORS,
    OURS,
    PAPER,
    QUIET,
    Rows,
    altair,
    either,
    finish_layers,
    inline,
    keyed,
    keys_of,
    labels_above,
    log_seconds,
    names_axis,
    share_axis,
    tooltip,
)
from fdgnn.html.figures import Spec


def folds(rows: Rows, n_runs: int) -> Spec:
    """Accuracy by fold, mean and spread, the published row, and the possible range.

    Rows: run, what ("fold", "ours", "paper", "possible"), value, low, high, folds, words.
    """
    alt = altair()
    rows = keyed(rows, "run")
    bands = alt.Scale(domain=keys_of(rows), paddingInner=0.35, paddingOuter=0.1)
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("key:N", title=None, scale=bands, axis=names_axis(alt)),
        tooltip=tooltip(run="run", words="what", shown="accuracy"),
    )
    lane = alt.YOffset("lane:N", sort=["ours", "paper"], scale=alt.Scale(padding=0.25))

    def only(what: str) -> Any:
        return base.transform_filter(alt.datum.what == what)

    x = share_axis(alt, "value", "accuracy, %")
    ends = {"x": alt.X("low:Q", title="accuracy, %"), "x2": alt.X2("high:Q")}
    rim = {"stroke": "var(--paper)", "strokeWidth": 1.5, "filled": True, "opacity": 1}
    layers = {
        "possible": [only("possible").mark_bar(color="var(--band)", cornerRadius=4).encode(**ends)],
        "fold": [
            only("fold")
            .mark_point(filled=True, color=OURS, opacity=0.45, shape="circle")
            .encode(
                x=x,
                yOffset=lane,
                size=alt.Size(
                    "folds:Q", legend=None, scale=alt.Scale(domain=[0, 10], range=[0, 460])
                ),
            )
        ],
        "ours": [
            only("ours").mark_rule(color=OURS, strokeWidth=2.5).encode(**ends, yOffset=lane),
            only("ours")
            .mark_point(color=OURS, size=150, shape="circle", **rim)
            .encode(x=x, yOffset=lane),
        ],
        "paper": [
            only("paper")
            .mark_rule(color=PAPER, strokeWidth=2.5, strokeDash=[5, 3])
            .encode(**ends, yOffset=lane),
            only("paper")
            .mark_point(color=PAPER, size=130, shape="diamond", **rim)
            .encode(x=x, yOffset=lane),
        ],
    }
    there = {row["what"] for row in rows}  # an empty layer would have no scale
    drawn = [layer for what, some in layers.items() if what in there for layer in some]
    return finish_layers(drawn, 70 * n_runs + 20)


def published(rows: Rows, n_runs: int) -> Spec:
    """Ours among all published accuracies of a dataset.

    Rows: run, what ("ours", "paper", "other"), value, model, reference.
    """
    alt = altair()
    base = alt.Chart(inline(keyed(rows, "run"))).encode(
        x=share_axis(alt, "value", "accuracy, %"),
        y=alt.Y("key:N", title=None, sort=None, axis=names_axis(alt)),
        tooltip=tooltip(run="run", model="model", shown="accuracy, %", reference="from"),
    )
    others = base.transform_filter(alt.datum.what == "other").mark_tick(
        thickness=2.5, size=20, color=QUIET, opacity=0.75
    )
    marks = base.transform_filter(alt.datum.what != "other").mark_point(
        filled=True, size=150, opacity=1, stroke="var(--paper)", strokeWidth=1.5
    )
    who = {"domain": ["ours", "paper"]}
    marks = marks.encode(
        color=alt.Color("what:N", legend=None, scale=alt.Scale(**who, range=[OURS, PAPER])),
        shape=alt.Shape("what:N", legend=None, scale=alt.Scale(**who, range=["circle", "diamond"])),
    )
    return finish_layers([others, marks], 44 * n_runs + 20)


def seconds(rows: Rows, n_rows: int) -> Spec:
    """Training and test times, ours and the paper's. Rows: run, phase, who, seconds, words."""
    alt = altair()
    base = alt.Chart(inline(keyed(rows, "row"))).encode(
        x=log_seconds(alt, rows, "time, logarithmic"),
        y=alt.Y("key:N", title=None, sort=None, axis=labels_above(alt)),
        tooltip=tooltip(row="what", who="whose", words="time"),
    )
    link = base.mark_line(color=QUIET, strokeWidth=1.5).encode(
        detail=alt.Detail("key:N"), tooltip=alt.TooltipValue(None)
    )
    who = {"domain": ["ours", "paper"]}
    points = base.mark_point(
        filled=True, size=120, opacity=1, stroke="var(--paper)", strokeWidth=1.5
    ).encode(
        color=alt.Color("who:N", legend=None, scale=alt.Scale(**who, range=[OURS, PAPER])),
        shape=alt.Shape("who:N", legend=None, scale=alt.Scale(**who, range=["circle", "diamond"])),
    )
    return finish_layers([link, points], 40 * n_rows + 55)


def members(rows: Rows, n_rows: int) -> Spec:
    """Accuracy of a committee, and of each of its models alone.

    Rows: row, what ("average", "kept", "left out"), value, low, high, shown, words, often.
    """
    alt = altair()
    base = alt.Chart(inline(keyed(rows, "row"))).encode(
        y=alt.Y("key:N", title=None, sort=None, axis=labels_above(alt)),
        tooltip=tooltip(row="model", words="what", shown="accuracy, %"),
    )
    x = share_axis(alt, "value", "accuracy, %")
    looks = {"domain": ["average", "kept"]}
    colors = alt.Scale(**looks, range=[OURS, COLORS[2]])
    shapes = alt.Scale(**looks, range=["circle", "square"])
    used = base.transform_filter(alt.datum.what != "left out")
    left_out = base.transform_filter(alt.datum.what == "left out")
    layers = [
        base.mark_rule(strokeWidth=2.5, color=OURS).encode(
            x=alt.X("low:Q", title="accuracy, %"), x2=alt.X2("high:Q")
        ),
        used.mark_point(
            filled=True, size=150, opacity=1, stroke="var(--paper)", strokeWidth=1.5
        ).encode(
            x=x,
            color=alt.Color("what:N", legend=None, scale=colors),
            shape=alt.Shape("what:N", legend=None, scale=shapes),
        ),
        left_out.mark_point(size=90, shape="diamond", color=QUIET, strokeWidth=2).encode(x=x),
        base.mark_text(align="left", dx=11, fontSize=12).encode(x=x, text=alt.Text("often:N")),
    ]
    return finish_layers(layers, 48 * n_rows + 55)


def rivals(rows: Rows, n_rows: int) -> Spec:
    """Accuracy of several models on the same folds. Rows: row, what, value, low, high, who."""
    alt = altair()
    y = alt.Y("key:N", title=None, sort=None, axis=labels_above(alt))
    tip = tooltip(row="model", words="what", shown="accuracy, %")
    base = alt.Chart(inline(keyed(rows, "row"))).encode(y=y, tooltip=tip)
    mine = base.transform_filter(alt.datum.what != "published")
    color = either(alt.ColorValue, "datum.what === 'ours'", OURS, COLORS[2])
    layers = [
        mine.mark_rule(strokeWidth=2.5).encode(
            x=alt.X("low:Q", title="accuracy, %"), x2=alt.X2("high:Q"), color=color
        ),
        mine.mark_point(
            filled=True, size=130, opacity=1, stroke="var(--paper)", strokeWidth=1.5
        ).encode(
            x=share_axis(alt, "value", "accuracy, %"),
            color=color,
            shape=either(alt.ShapeValue, "datum.what === 'ours'", "circle", "square"),
        ),
        base.transform_filter(alt.datum.what == "published")
        .mark_point(
            filled=False, shape="diamond", size=90, color=PAPER, strokeWidth=2, yOffset=11
        )
        .encode(x=share_axis(alt, "value", "accuracy, %")),
    ]  # fmt: skip
    return finish_layers(layers, 54 * n_rows + 55)


def rival_seconds(rows: Rows, n_rows: int) -> Spec:
    """Seconds to train, beside FDGNN's. Rows: row, what, seconds, factor."""
    alt = altair()
    base = alt.Chart(inline(keyed(rows, "row"))).encode(
        x=log_seconds(alt, rows, "time to train, logarithmic"),
        y=alt.Y("key:N", title=None, sort=None, axis=labels_above(alt)),
        tooltip=tooltip(row="model", words="training", factor="times FDGNN's"),
    )
    color = either(alt.ColorValue, "datum.what === 'ours'", OURS, COLORS[2])
    shape = either(alt.ShapeValue, "datum.what === 'ours'", "circle", "square")
    points = base.mark_point(filled=True, size=130, opacity=1).encode(color=color, shape=shape)
    words = base.mark_text(align="left", dx=11, fontSize=12).encode(text=alt.Text("factor:N"))
    return finish_layers([points, words], 54 * n_rows + 55)

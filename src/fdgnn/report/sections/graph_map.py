"""The map of the graphs: where the model sees each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Figure, Key, Panel, Table
from fdgnn.report.numbers import NONE, count, percent, plural, significant
from fdgnn.report.sections.dynamics import whose_network

KEY_MARKS = ("circle", "square", "triangle", "diamond", "cross", "down", "right")


def figure(run: int, portrait: dict[str, Any]) -> Figure:
    """The map, its legend, and what the panel beside it begins with."""
    classes, graphs = portrait["classes"], portrait["graphs"]
    explained = portrait["map"]["explained"]
    known = any(g["actual"] is not None for g in graphs)
    classification = portrait["task"] == "classification"
    table = f"graphs-{run}"
    ends = [_ends([g[axis] for g in graphs]) for axis in ("x", "y")]
    spec = (
        charts.graph_map(table, len(classes), len(graphs), explained, ends)
        if classification
        else charts.value_map(table, explained, ends)
    )
    shown = len(graphs)
    total = portrait["data"]["n_graphs"]
    caption = (
        f"{count(shown)} of {count(total)} graphs"
        if shown < total
        else f"All {count(total)} graphs"
    )
    caption += ", by the two directions in which the model's features vary most"
    if len(explained) >= 2:
        caption += f" ({percent(sum(explained[:2]), 0)} of the variance)"
    caption += ": close together means alike to the model, which sees more directions than these."
    if known and classification:
        wrong = sum(g["correct"] is False for g in graphs)
        caption += f" {count(wrong)} of these are predicted wrongly."
    return Figure(
        id=f"map-{run}",
        title="A map of the graphs",
        caption=f"{caption} {whose_network(portrait)} Choose a point, or step through the list, to "
        "see its graph.",
        panels=[Panel(f"map-{run}", spec, uses=[table])],
        table=_map_table(graphs),
        kind="map",
        data={table: _map_rows(portrait)},
        extra={
            "run": run,
            "toggle": known,
            "keys": _keys(classes, known) if classification else [],
            "modes": ("class", "right or wrong") if classification else ("value", "error"),
            "first": (portrait["mistakes"] or [graphs[0]["graph"]])[0],
        },
    )


def _ends(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [low, high] if high > low else [low - 1, high + 1]


def _map_rows(portrait: dict[str, Any]) -> list[dict[str, Any]]:
    """What the map, its tooltips and the panel beside it need to know of each graph."""
    number = {name: i for i, name in enumerate(portrait["classes"])}
    rows = []
    for g in portrait["graphs"]:
        known = g["actual"] if g["actual"] is not None else g["predicted"]
        row = {
            "graph": g["graph"],
            "x": _short(g["x"]),
            "y": _short(g["y"]),
            "id": str(g["id"]),
            "words": f"{g['graph']} ({g['id']})" if str(g["id"]) != str(g["graph"]) else g["graph"],
            "actual": answer(g["actual"]),
            "predicted": answer(g["predicted"]),
            "answer": "wrong" if g["correct"] is False else "right",
            "judged": g["correct"] is not None,
            "score_": significant(g["score"]),
            "probability_": percent(g["probability"]),
            "size_": f"{plural(g['n_vertices'], 'vertex', 'vertices')}, "
            f"{plural(g['n_edges'], 'edge')}",
            "fold": g["fold"],
        }
        if portrait["task"] == "classification":
            row["key"] = f"c{number.get(str(known), 0)}"
        else:
            error = None
            if is_number(g["actual"]) and is_number(g["predicted"]):
                error = _short(abs(g["actual"] - g["predicted"]))
            row |= {"value": known if is_number(known) else None, "error": error}
        rows.append(row)
    rows.sort(key=lambda r: r["answer"] == "wrong")  # drawn last, so that they lie on top
    return rows


def is_number(value: Any) -> bool:
    """Whether a graph's target or prediction is a quantity that can be drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _map_table(graphs: Sequence[dict[str, Any]]) -> Table:
    most = 200
    rows = [
        [
            str(g["graph"]),
            str(g["id"]),
            answer(g["actual"]),
            answer(g["predicted"]),
            percent(g["probability"]),
            str(g["n_vertices"]),
            str(g["n_edges"]),
        ]
        for g in graphs[:most]
    ]
    note = f"The first {most} of {count(len(graphs))}." if len(graphs) > most else ""
    head = ["graph", "id", "actual", "predicted", "probability", "vertices", "edges"]
    return Table(head, rows, n_words=2, note=note)


def answer(value: Any) -> str:
    """A class or a quantity, as text."""
    if value is None:
        return NONE
    return significant(value) if isinstance(value, float) else str(value)


def _keys(classes: Sequence[str], known: bool) -> list[tuple[str, list[Key]]]:
    """What colors and shapes say when colored by class, and when by right or wrong."""
    number = {name: i for i, name in enumerate(classes)}
    by_class = class_key(classes, number)
    if not known:
        return [("class", by_class)]
    wrong = Key("ring", "ink", "larger, with an outline: predicted wrongly")
    shapes = [Key(key.mark, "quiet", f"{key.words}, by its shape") for key in by_class]
    answers = [
        Key("square", "c1", "predicted rightly"),
        Key("square", "c2", "predicted wrongly; larger, with an outline"),
    ]
    return [("class", [*by_class, wrong]), ("answer", [*answers, *shapes])]


def class_key(classes: Sequence[str], number: dict[str, int], mark: str | None = None) -> list[Key]:
    """A legend entry for each class, with the color and shape it has everywhere."""
    most = 12
    keys = []
    for name in classes[:most]:
        color, shape = charts.look_of(number[name])
        keys.append(Key(mark or KEY_MARKS[shape], f"c{color + 1}", f"class {name}"))
    if len(classes) > most:
        keys.append(Key("", "quiet", f"and {len(classes) - most} more"))
    return keys

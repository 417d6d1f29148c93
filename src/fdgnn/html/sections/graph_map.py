"""The map of the graphs: where the model sees each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fdgnn.html import charts
from fdgnn.html.figures import Figure, Key, MapBody, Panel, Row, Spec, Table
from fdgnn.html.model_data.records import GraphRow, Portrait
from fdgnn.html.numbers import NONE, count, percent, plural, significant
from fdgnn.html.sections.dynamics import which_model

KEY_MARKS = ("circle", "square", "triangle", "diamond", "cross", "down", "right")
LISTED = 200  # graphs in the table


def figure(run: int, portrait: Portrait) -> Figure:
    """The map, its legend, and the graph that is shown first."""
    graphs = portrait.graphs
    known = any(g.actual is not None for g in graphs)
    classification = portrait.task == "classification"
    table = f"graphs-{run}"
    return Figure(
        id=f"map-{run}",
        title="A map of the graphs",
        caption=_caption(portrait, known),
        panels=[Panel(f"map-{run}", _chart(table, portrait), uses=[table])],
        table=_table(graphs),
        data={table: _rows(portrait)},
        body=MapBody(
            run=run,
            toggle=known,
            modes=("class", "right or wrong") if classification else ("value", "error"),
            keys=_keys(portrait.classes, known) if classification else [],
            first=portrait.mistakes[0] if portrait.mistakes else graphs[0].graph,
        ),
    )


def _chart(table: str, portrait: Portrait) -> Spec:
    graphs = portrait.graphs
    ends = [_ends([g.x for g in graphs]), _ends([g.y for g in graphs])]
    if portrait.task == "regression":
        return charts.value_map(table, portrait.explained, ends)
    n_classes = len(portrait.classes)
    return charts.graph_map(table, n_classes, len(graphs), portrait.explained, ends)


def _ends(values: Sequence[float]) -> list[float]:
    low, high = min(values), max(values)
    return [low, high] if high > low else [low - 1, high + 1]


def _caption(portrait: Portrait, known: bool) -> str:
    shown, total = len(portrait.graphs), portrait.data.n_graphs
    which = f"{count(shown)} of {count(total)} graphs"
    text = (
        f"{which if shown < total else f'All {count(total)} graphs'}, by the two directions in "
        f"which the model's features vary most ({percent(sum(portrait.explained), 0)} of the "
        "variance): close together means alike to the model, which sees more directions than "
        "these."
    )
    if known and portrait.task == "classification":
        wrong = sum(g.correct is False for g in portrait.graphs)
        text += f" {count(wrong)} of these are predicted wrongly."
    whose = which_model(portrait.shown, portrait.n_estimators)
    return f"{text} {whose} Choose a point, or step through the list, to see its graph."


def _rows(portrait: Portrait) -> list[Row]:
    """What the map, its tooltips and the panel beside it show of each graph."""
    number = {name: i for i, name in enumerate(portrait.classes)}
    rows = [_row(g) | _look(g, number) for g in portrait.graphs]
    return sorted(rows, key=lambda r: r["answer"] == "wrong")  # drawn last, so that they lie on top


def _row(g: GraphRow) -> Row:
    return {
        "graph": g.graph,
        "x": _short(g.x),
        "y": _short(g.y),
        "id": g.id,
        "words": f"{g.graph} ({g.id})" if g.id != str(g.graph) else g.graph,
        "actual": answer(g.actual),
        "predicted": answer(g.predicted),
        "answer": "wrong" if g.correct is False else "right",
        "judged": g.correct is not None,
        "score_": significant(g.score),
        "probability_": percent(g.probability),
        "size_": f"{plural(g.n_vertices, 'vertex', 'vertices')}, {plural(g.n_edges, 'edge')}",
        "fold": g.fold,
    }


def _look(g: GraphRow, number: Mapping[str, int]) -> Row:
    """What colors show: the class, or the value and the error of a regression."""
    known = g.predicted if g.actual is None else g.actual
    if isinstance(known, str):
        return {"key": f"c{number.get(known, 0)}"}
    error = None
    if isinstance(g.actual, float) and isinstance(g.predicted, float):
        error = _short(abs(g.actual - g.predicted))
    return {"value": known, "error": error}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _table(graphs: Sequence[GraphRow]) -> Table:
    rows = [
        [
            str(g.graph),
            g.id,
            answer(g.actual),
            answer(g.predicted),
            percent(g.probability),
            str(g.n_vertices),
            str(g.n_edges),
        ]
        for g in graphs[:LISTED]
    ]
    note = f"The first {LISTED} of {count(len(graphs))}." if len(graphs) > LISTED else ""
    head = ["graph", "id", "actual", "predicted", "probability", "vertices", "edges"]
    return Table(head, rows, n_words=2, note=note)


def answer(value: str | float | None) -> str:
    """A class or a number, as text."""
    if value is None:
        return NONE
    return significant(value) if isinstance(value, float) else value


def _keys(classes: Sequence[str], known: bool) -> list[tuple[str, list[Key]]]:
    """Give a legend for colors by class, and one for colors by right or wrong."""
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

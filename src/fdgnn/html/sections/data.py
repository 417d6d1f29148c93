"""Data: statistics of the graphs, and a map of their features."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from fdgnn.html.figures import (
    Figure,
    Key,
    Panel,
    Part,
    Row,
    Table,
    bars,
    class_key,
    graph_map,
)
from fdgnn.html.report_data import BarCounts, DataStatistics, GraphRow, ReportData
from fdgnn.html.subjects import Subject
from fdgnn.html.words import NONE, count, percent, plural, significant
from fdgnn.texts import listed

LISTED = 200  # graphs in the table


def part(run: int, subject: Subject) -> Part:
    """Return facts, histograms of sizes, degrees, labels and targets, and the map of the graphs.

    Without report data, return why there are none, and the command that adds them, if it is known.
    """
    data, path, command = subject.data, subject.path, subject.command or ""
    if data is not None:
        molecules = any(drawing.molecule for drawing in data.drawings)
        nouns = ("vertices (atoms)", "edges (bonds)") if molecules else ("vertices", "edges")
        figures = [_sizes(run, data.data, data.classes, nouns[0]), _degrees(run, data.data)]
        if data.data.targets is not None:
            figures.append(_targets(run, data.data.targets, classes=bool(data.classes)))
        if data.data.labels is not None:
            figures.append(_labels(run, data.data, data.data.labels))
        if data.graphs:
            figures.append(_map(run, data))
        return Part(figures, facts=_facts(data.data, *nouns), lead=" ".join(data.notes))
    if subject.is_comparison:
        return Part()
    if subject.is_model_file:
        why = "A model file holds no graphs. Name the data to see what the model does on them:"
        options = "--data FILE --target COLUMN -o report.html"
        return Part(missing=why, command=f"fdgnn report {shlex.quote(path)} {options}")
    why = "This run has no report.json, which holds what is shown here. "
    if any(one.status == "unfinished" for one in subject.evaluations):
        why = "This run is not finished; what is shown here is computed at its end. "
    how = "The same command again resumes the run and adds it:"
    if not command:
        how = (
            "The command that started the run adds it, but the run does not record which command "
            f"that was. Its directory (--out) is {path}."
        )
    return Part(missing=f"{why}{how}", command=command)


def _facts(data: DataStatistics, vertices: str, edges: str) -> list[tuple[str, str]]:
    carried = "nothing"
    if data.n_labels:
        carried = f"one of {plural(data.n_labels, 'label')}"
    elif data.n_features:
        carried = plural(data.n_features, "feature")
    fewest, most = map(count, data.vertices_range)
    n_graphs, n_edges = count(data.n_graphs), (data.n_arcs + data.n_self_loops) // 2
    facts = [
        ("graphs", n_graphs),
        (f"{vertices} per graph, mean", f"{data.n_vertices / max(1, data.n_graphs):.1f}"),
        (f"{vertices}, fewest and most", f"{fewest}, {most}"),
        (edges, count(n_edges)) if data.undirected else ("directed edges", count(data.n_arcs)),
        ("self-loops", count(data.n_self_loops)),
        ("repeated edges", count(data.n_merged_arcs)),
        ("vertices carry", carried),
        ("duplicates", f"{count(data.n_graphs - data.n_distinct)} of {n_graphs}"),
        ("majority class", percent(data.majority)),
        ("WL ceiling", percent(data.wl_ceiling)),
    ]
    return [(name, value) for name, value in facts if value != NONE]


# ---------------------------------------------------------------------- histograms


def _bars(
    id_: str,
    title: str,
    axes: tuple[str, str],
    counts: BarCounts,
    caption: str,
    classes: Sequence[str] = (),
    total: int | None = None,
    *,
    intervals: bool = False,
) -> Figure:
    """Return a bar chart of counts, with one series or one for each class, and its table.

    With `classes`, but one series, each bar is a class.
    """
    totals = counts.totals
    total = max(1, sum(totals) if total is None else total)
    look = {name: i for i, name in enumerate(classes)}
    rows: list[Row] = [
        {
            "name": name, "count": n, "share": percent(n / total), "kind": kind,
            "look": f"c{look.get(kind or name, 0)}", "order": look.get(kind or name, 0),
        }
        for kind, own in counts.series
        for name, n in zip(counts.names, own, strict=True)
        if n or len(counts.series) == 1
    ]  # fmt: skip
    kinds = [kind for kind, _ in counts.series if kind]
    heads = [f"class {kind}" for kind in kinds] or [axes[1]]
    columns = [counts.names, *(map(count, own) for _, own in counts.series)]
    cells = zip(*columns, (percent(n / total) for n in totals), strict=True)
    return Figure(
        id=id_,
        half=True,
        title=title,
        caption=caption,
        panels=[Panel(id_, bars(rows, *axes, max(1, len(classes)), intervals=intervals))],
        table=Table([axes[0], *heads, "share"], list(cells)),
        key=class_key(kinds, "square") if kinds else [],
    )


def _sizes(run: int, data: DataStatistics, classes: Sequence[str], vertices: str) -> Figure:
    low, high = data.vertices_range
    caption = f"Graphs have {count(low)} to {count(high)} vertices."
    if low == high:
        caption = f"All graphs have {plural(low, 'vertex', 'vertices')}."
    if 1 < len(data.mean_sizes) <= 6 and low < high:
        means = [f"{mean:.0f} in class {name}" for name, mean in data.mean_sizes]
        caption += (
            f" On average {listed(means)}: the larger the difference, the better size alone "
            "predicts the class."
        )
    return _bars(
        f"sizes-{run}", "Sizes", (f"{vertices} per graph", "graphs"), data.sizes, caption, classes,
        intervals=True,
    )  # fmt: skip


def _degrees(run: int, data: DataStatistics) -> Figure:
    name, share = _peak(data.degrees)
    caption = (
        f"{share} of the vertices have {name} {'neighbor' if name == '1' else 'neighbors'}; the "
        f"largest degree is {count(data.max_degree)}. A few vertices of large degree make ρ(|A|) "
        "large, and the states of a reservoir converge more slowly."
    )
    axes = ("degree", "vertices")
    return _bars(f"degrees-{run}", "Degrees", axes, data.degrees, caption, intervals=True)


def _peak(counts: BarCounts) -> tuple[str, str]:
    """Return the most common category and its share."""
    totals = counts.totals
    most = max(range(len(totals)), key=totals.__getitem__)
    return counts.names[most], percent(totals[most] / max(1, sum(totals)))


def _targets(run: int, counts: BarCounts, *, classes: bool) -> Figure:
    name, share = _peak(counts)
    if classes:
        title, names = "Classes", counts.names
        caption = (
            f"The largest class, {name}, has {share} of the graphs: a model must be right more "
            "often than that to have learned anything."
        )
    else:
        title, names = "Target", []
        ends = counts.names[0].split(" to ")[0], counts.names[-1].split(" to ")[-1]
        caption = (
            f"The target reaches from {ends[0]} to {ends[1]}. Where there are few graphs, a model "
            "has little to learn from."
        )
    axes = ("class" if classes else "target", "graphs")
    return _bars(f"targets-{run}", title, axes, counts, caption, names, intervals=not classes)


def _labels(run: int, data: DataStatistics, counts: BarCounts) -> Figure:
    share = percent(counts.totals[0] / max(1, data.n_vertices))
    rare = sum(n <= 5 for n in counts.totals)
    caption = f"{plural(data.n_labels, 'label')}; the most common is on {share} of all vertices."
    if rare:
        verb = "occurs" if rare == 1 else "occur"
        caption += f" {rare} {verb} five times or less: little can be learned from that."
    if data.n_labels > len(counts.names):
        caption += f" The {len(counts.names)} most common are shown."
    axes = ("label", "vertices")
    return _bars(f"labels-{run}", "Vertex labels", axes, counts, caption, total=data.n_vertices)


# ---------------------------------------------------------------------- the map


def _map(run: int, data: ReportData) -> Figure:
    """Return the map, its legend, and the graph that is shown first."""
    graphs, table = data.graphs, f"graphs-{run}"
    known = any(g.actual is not None for g in graphs)
    classification = data.task == "classification"
    ends = []
    for values in ([g.x for g in graphs], [g.y for g in graphs]):
        wide = 0 if max(values) > min(values) else 1
        ends.append([min(values) - wide, max(values) + wide])
    note = f"The first {LISTED} of {count(len(graphs))}." if len(graphs) > LISTED else ""
    spec = graph_map(table, len(data.classes), len(graphs), data.explained, ends)
    n, total = len(graphs), data.data.n_graphs
    which = f"{count(n)} of {count(total)} graphs" if n < total else f"All {count(total)} graphs"
    text = (
        f"{which}, by the two directions in which the model's features vary most "
        f"({percent(sum(data.explained), 0)} of the variance): close together means alike to the "
        "model, which sees more directions than these."
    )
    if known and classification:
        wrong = sum(g.correct is False for g in graphs)
        text += f" {count(wrong)} of these have a wrong prediction."
    return Figure(
        id=f"map-{run}",
        title="A map of the graphs",
        caption=f"{text} {data.model} Choose a point, or step through the list, to see its graph.",
        panels=[Panel(f"map-{run}", spec)],
        table=graph_table(graphs[:LISTED], "probability", "vertices", "edges", note=note),
        data={table: _map_rows(data)},
        kind="map",
        body={
            "run": run,
            "toggle": known,
            "modes": ("class", "right or wrong") if classification else ("value", "error"),
            "legends": _keys(data.classes, known) if classification else [],
            "first": data.mistakes[0] if data.mistakes else graphs[0].graph,
        },
    )


def _map_rows(data: ReportData) -> list[Row]:
    """Return what the map, its tooltips and the panel beside it show of each graph."""
    number = {name: i for i, name in enumerate(data.classes)}
    rows = []
    for g in data.graphs:
        known = g.predicted if g.actual is None else g.actual
        look: Row = {"value": known, "error": error_of(g)}
        if isinstance(known, str):
            look = {"key": f"c{number.get(known, 0)}"}
        rows.append({
            "graph": g.graph,
            "x": float(f"{g.x:.4g}"),
            "y": float(f"{g.y:.4g}"),
            "id": g.id,
            "words": named(g),
            "actual": shown(g.actual),
            "predicted": shown(g.predicted),
            "answer": "wrong" if g.correct is False else "right",
            "judged": g.correct is not None,
            "score_": significant(g.score) if data.classes else NONE,
            "probability_": percent(g.probability),
            "size_": f"{plural(g.n_vertices, 'vertex', 'vertices')}, {plural(g.n_edges, 'edge')}",
            "fold": g.fold,
            **look,
        })  # fmt: skip
    return sorted(rows, key=lambda r: r["answer"] == "wrong")  # drawn last, so that they lie on top


def named(g: GraphRow) -> str:
    """Return a graph's number, and its name if it has another."""
    return f"{g.graph} ({g.id})" if g.id != str(g.graph) else str(g.graph)


def error_of(g: GraphRow) -> float | None:
    """Return the absolute error of a predicted number; None if it is not known."""
    if isinstance(g.actual, str) or isinstance(g.predicted, str) or g.actual is None:
        return None
    return float(f"{abs(g.actual - g.predicted):.4g}")


def shown(value: str | float | None) -> str:
    """Return a class or a number as text."""
    return value if isinstance(value, str) else significant(value)


def graph_table(graphs: Iterable[GraphRow], *columns: str, note: str = "") -> Table:
    """Return a table of graphs, with their predictions and further columns."""
    head = ("graph", "id", "actual", "predicted", *columns)
    rows = []
    for g in graphs:
        cells = {
            "graph": str(g.graph), "id": g.id, "actual": shown(g.actual),
            "predicted": shown(g.predicted), "probability": percent(g.probability),
            "error": shown(error_of(g)), "vertices": str(g.n_vertices), "edges": str(g.n_edges),
        }  # fmt: skip
        rows.append([cells[name] for name in head])
    return Table(head, rows, n_words=2, note=note).without_empty()


def _keys(classes: Sequence[str], known: bool) -> list[tuple[str, list[Key]]]:
    """Return a legend for colors by class, and one for colors by right or wrong."""
    by_class = class_key(classes)
    if not known:
        return [("class", by_class)]
    wrong = Key("ring", "ink", "larger, with an outline: wrong prediction")
    shapes = [Key(key.mark, "quiet", f"{key.words}, by its shape") for key in by_class]
    answers = [
        Key("square", "c1", "correct prediction"),
        Key("square", "c2", "wrong prediction; larger, with an outline"),
    ]
    return [("class", [*by_class, wrong]), ("answer", [*answers, *shapes])]

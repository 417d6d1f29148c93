"""The data: what the graphs are like, and where the model sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Block, Figure, Panel, Section, Table
from fdgnn.report.numbers import count, listed, percent, plural, significant
from fdgnn.report.sections import graph_map
from fdgnn.report.sections.missing import no_portrait
from fdgnn.report.sources import Source


def section(sources: Sequence[Source]) -> Section:
    """Facts, sizes, degrees, labels, classes, and the map of the graphs."""
    return Section(
        id="data",
        title="The data",
        lead="What the model was given, and how it sees it.",
        blocks=[_block(i, s) for i, s in enumerate(sources) if s.settings or s.model],
    )


def _block(run: int, source: Source) -> Block:
    portrait = source.portrait
    if portrait is None:
        return Block(run, source.name, missing=no_portrait(source))
    data = portrait["data"]
    figures = [_sizes(run, data, portrait["classes"]), _degrees(run, data)]
    if data["class_counts"]:
        figures.append(_classes(run, data, portrait["classes"]))
    if data["targets"]:
        figures.append(_targets(run, data["targets"]))
    if data["labels"]:
        figures.append(_labels(run, data))
    if portrait["graphs"]:
        figures.append(graph_map.figure(run, portrait))
    return Block(run, source.name, figures, facts=_facts(data), lead=" ".join(source.notes))


def _facts(data: dict[str, Any]) -> list[tuple[str, str]]:
    twins = data["n_graphs"] - data["n_distinct"]
    carried = "nothing"
    if data["n_labels"]:
        carried = f"one of {plural(data['n_labels'], 'label')}"
    elif data["n_features"]:
        carried = plural(data["n_features"], "feature")
    facts = [
        ("graphs", count(data["n_graphs"])),
        ("vertices a graph, mean", f"{data['n_vertices'] / max(1, data['n_graphs']):.1f}"),
        ("arcs, both ways" if data["undirected"] else "arcs", count(data["n_arcs"])),
        ("self-loops", count(data["n_self_loops"])),
        ("repeated arcs", count(data["n_merged_arcs"])),
        ("vertices carry", carried),
        ("duplicates", f"{count(twins)} of {count(data['n_graphs'])}"),
    ]  # fmt: skip
    if "vertices_range" in data:
        low, high = data["vertices_range"]
        facts.insert(2, ("vertices, fewest and most", f"{count(low)}, {count(high)}"))
    if data["majority"] is not None:
        facts.append(("majority class", percent(data["majority"])))
    if data["wl_ceiling"] is not None:
        facts.append(("WL ceiling", percent(data["wl_ceiling"])))
    return facts


def _sizes(run: int, data: dict[str, Any], classes: Sequence[str]) -> Figure:
    edges, counts = data["sizes"]["edges"], data["sizes"]["counts"]
    kinds = in_order(counts, classes)
    number = numbers_of(kinds, classes)
    rows, table = [], []
    for i, (low, high) in enumerate(pairwise(edges)):
        span = f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}"
        table.append([span, *(count(counts[kind][i]) for kind in kinds)])
        rows += [
            {
                "low": low, "high": high, "look": f"c{number[kind]}", "order": number[kind],
                "kind": kind, "graphs": counts[kind][i], "span": span,
            }
            for kind in kinds
            if counts[kind][i]
        ]  # fmt: skip
    several = len(kinds) > 1
    return Figure(
        id=f"sizes-{run}",
        half=True,
        title="Sizes",
        caption=_sizes_caption(data) + _size_by_class(edges, {k: counts[k] for k in kinds}),
        panels=[Panel(f"sizes-{run}", charts.sizes(rows, max(number.values(), default=0) + 1))],
        table=Table(
            ["vertices", *(f"class {k}" if several else "graphs" for k in kinds)], table
        ),
        key=graph_map.class_key(kinds, number, "square") if several else [],
    )  # fmt: skip


def in_order(names: Iterable[str], classes: Sequence[str]) -> list[str]:
    """Classes as the portrait orders them, then whatever else there is."""
    there = list(names)
    known = set(there)
    return list(dict.fromkeys([*(c for c in classes if c in known), *there]))


def numbers_of(names: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """A class's number, by which it looks alike in all figures."""
    return {name: i for i, name in enumerate(dict.fromkeys([*classes, *names]))}


def _sizes_caption(data: dict[str, Any]) -> str:
    edges, counts = data["sizes"]["edges"], data["sizes"]["counts"]
    totals = [sum(c[i] for c in counts.values()) for i in range(len(edges) - 1)]
    most = max(totals, default=0)
    peaks = [
        f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}"
        for (low, high), n in zip(pairwise(edges), totals, strict=True)
        if n == most
    ]
    text = ""
    if "vertices_range" in data:
        low, high = data["vertices_range"]
        text = f"Graphs have {count(low)} to {count(high)} vertices. "
        if low == high:
            return f"All graphs have {plural(low, 'vertex', 'vertices')}."
    if not 0 < len(peaks) <= 3:
        return text.rstrip()
    verb = "number is" if len(peaks) == 1 else "numbers are"
    return f"{text}The commonest {verb} {listed(peaks)}."


def _size_by_class(edges: Sequence[float], counts: dict[str, list[int]]) -> str:
    """Whether size alone tells the classes apart."""
    if not 1 < len(counts) <= 6:
        return ""
    means = []
    for name, values in counts.items():
        middles = [(a + b - 1) / 2 for a, b in pairwise(edges)]
        total = sum(values)
        if total:
            mean = sum(m * n for m, n in zip(middles, values, strict=True)) / total
            means.append(f"{mean:.0f} in class {name}")
    return (
        f" On average about {listed(means)}: the further apart these are, the more size alone "
        "tells the classes apart."
    )


def _degrees(run: int, data: dict[str, Any]) -> Figure:
    labels, counts = data["degrees"]["labels"], data["degrees"]["counts"]
    total = max(1, sum(counts))
    rows = [
        {"name": name, "count": n, "share": percent(n / total)}
        for name, n in zip(labels, counts, strict=True)
    ]
    caption = ""
    if rows:
        peak = max(rows, key=lambda r: r["count"])
        unit = "neighbor" if peak["name"] == "1" else "neighbors"
        caption = f"{peak['share']} of the vertices have {peak['name']} {unit}, "
        caption += "more than half" if 2 * peak["count"] > total else "the commonest number"
        caption += (
            f"; the largest neighborhood has {count(data['max_degree'])}. "
            if "max_degree" in data
            else ". "
        )
    caption += (
        "A few vertices with many neighbors make ρ(|A|) large, and with it the dynamics harder to "
        "keep stable."
    )
    return Figure(
        id=f"degrees-{run}",
        half=True,
        title="Neighbors",
        caption=caption,
        panels=[Panel(f"degrees-{run}", charts.bars(rows, "neighbors", "vertices"))],
        table=_count_table("neighbors", "vertices", rows),
    )


def _classes(run: int, data: dict[str, Any], classes: Sequence[str]) -> Figure:
    counts = {name: n for name, n in data["class_counts"]}
    names = in_order(counts, classes)
    number, total = numbers_of(names, classes), max(1, sum(counts.values()))
    rows = [
        {"name": name, "count": n, "share": percent(n / total), "look": f"c{number[name]}"}
        for name in names
        for n in [counts[name]]
    ]
    share = percent(max(counts.values()) / total)
    largest = [name for name in names if counts[name] == max(counts.values())]
    who = f"The largest class, {largest[0]}, has {share} of the graphs"
    if len(largest) > 1:
        who = f"The largest classes, {listed(largest)}, have {share} of the graphs each"
    if len(largest) > 5:
        who = f"{len(largest)} classes are the largest, with {share} of the graphs each"
    caption = f"{who}: a model must be right more often than that to have learned anything."
    return Figure(
        id=f"classes-{run}",
        half=True,
        title="Classes",
        caption=caption,
        panels=[
            Panel(
                f"classes-{run}",
                charts.bars(rows, "class", "graphs", n_classes=max(number.values()) + 1),
            )
        ],
        table=_count_table("class", "graphs", rows),
    )


def _targets(run: int, targets: dict[str, Any]) -> Figure:
    edges = targets["edges"]
    rows = [
        {
            "low": low,
            "high": high,
            "graphs": n,
            "span": f"{significant(low)} to {significant(high)}",
        }
        for low, high, n in zip(edges[:-1], edges[1:], targets["counts"], strict=True)
    ]
    caption = f"The target reaches from {significant(edges[0])} to {significant(edges[-1])}."
    return Figure(
        id=f"targets-{run}",
        half=True,
        title="Target",
        caption=caption + " Where there are few graphs, a model has little to learn from.",
        panels=[Panel(f"targets-{run}", charts.histogram(rows, "target"))],
        table=Table(["target", "graphs"], [[r["span"], count(r["graphs"])] for r in rows]),
    )


def _labels(run: int, data: dict[str, Any]) -> Figure:
    total = max(1, data["n_vertices"])
    rows = [{"name": name, "count": n, "share": percent(n / total)} for name, n in data["labels"]]
    rare = sum(n <= 5 for _, n in data["labels"])
    caption = f"{plural(data['n_labels'], 'label')}; the commonest is on {rows[0]['share']} of all "
    caption += "vertices."
    if rare:
        verb = "occurs" if rare == 1 else "occur"
        caption += f" {rare} {verb} five times or less: little can be learned from that."
    if data["n_labels"] > len(rows):
        caption += f" The {len(rows)} commonest are shown."
    return Figure(
        id=f"labels-{run}",
        half=True,
        title="Vertex labels",
        caption=caption,
        panels=[Panel(f"labels-{run}", charts.bars(rows, "label", "vertices"))],
        table=_count_table("label", "vertices", rows),
    )


def _count_table(what: str, unit: str, rows: Sequence[dict[str, Any]]) -> Table:
    return Table([what, unit, "share"], [[r["name"], count(r["count"]), r["share"]] for r in rows])

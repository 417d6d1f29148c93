"""The data: what the graphs are like, and where the model sees them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from fdgnn.report import charts
from fdgnn.report.figures import Block, Figure, Key, Panel, Section, Table
from fdgnn.report.numbers import NONE, count, listed, percent, plural, significant
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
    figures = [_sizes(run, data), _degrees(run, data)]
    if data["class_counts"]:
        figures.append(_classes(run, data))
    if data["targets"]:
        figures.append(_targets(run, data["targets"]))
    if data["labels"]:
        figures.append(_labels(run, data))
    if portrait["graphs"]:
        figures.append(graph_map.figure(run, portrait))
    return Block(run, source.name, figures, facts=_facts(data))


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
    if data["majority"] is not None:
        facts.append(("majority class", percent(data["majority"])))
    if data["wl_ceiling"] is not None:
        facts.append(("WL ceiling", percent(data["wl_ceiling"])))
    return facts


def _sizes(run: int, data: dict[str, Any]) -> Figure:
    edges, counts = data["sizes"]["edges"], data["sizes"]["counts"]
    kinds = list(counts)
    rows, table = [], []
    for i, (low, high) in enumerate(pairwise(edges)):
        span = f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}"
        table.append([span, *(count(counts[kind][i]) for kind in kinds)])
        rows += [
            {
                "low": low, "high": high, "key": f"c{k}", "order": k, "kind": kind,
                "graphs": counts[kind][i], "span": span,
            }
            for k, kind in enumerate(kinds)
            if counts[kind][i]
        ]  # fmt: skip
    totals = [sum(c[i] for c in counts.values()) for i in range(len(edges) - 1)]
    peak = max(range(len(totals)), key=totals.__getitem__) if totals else 0
    caption = (
        f"Graphs have {edges[0]:g} to {edges[-1] - 1:g} vertices, most often {table[peak][0]}."
    )
    caption += _size_by_class(edges, counts)
    several = len(kinds) > 1
    return Figure(
        id=f"sizes-{run}",
        half=True,
        title="Sizes",
        caption=caption,
        panels=[Panel(f"sizes-{run}", charts.sizes(rows, kinds))],
        table=Table(
            ["vertices", *(f"class {k}" if several else "graphs" for k in kinds)], table
        ),
        key=[
            Key("square", f"c{i % len(charts.COLOURS) + 1}", f"class {name}")
            for i, name in enumerate(kinds[:12])
        ] if several else [],
    )  # fmt: skip


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
        {"name": name, "count": n, "share": percent(n / total), "key": "all"}
        for name, n in zip(labels, counts, strict=True)
    ]
    peak = max(rows, key=lambda r: r["count"]) if rows else {"name": NONE, "share": NONE}
    caption = (
        f"Most vertices, {peak['share']}, have {peak['name']} neighbours; the largest "
        f"neighbourhood has {labels[-1] if labels else NONE}. A few vertices with many neighbours "
        "make ρ(A) large, and with it the dynamics harder to keep stable."
    )
    return Figure(
        id=f"degrees-{run}",
        half=True,
        title="Neighbours",
        caption=caption,
        panels=[Panel(f"degrees-{run}", charts.bars(rows, "neighbours", "vertices"))],
        table=_count_table("neighbours", "vertices", rows),
    )


def _classes(run: int, data: dict[str, Any]) -> Figure:
    total = max(1, sum(n for _, n in data["class_counts"]))
    rows = [
        {"name": name, "count": n, "share": percent(n / total), "key": f"c{i}"}
        for i, (name, n) in enumerate(data["class_counts"])
    ]
    largest = max(rows, key=lambda r: r["count"])
    caption = (
        f"The largest class, {largest['name']}, has {largest['share']} of the graphs: a model must "
        "be right more often than that to have learned anything."
    )
    return Figure(
        id=f"classes-{run}",
        half=True,
        title="Classes",
        caption=caption,
        panels=[Panel(f"classes-{run}", charts.bars(rows, "class", "graphs", coloured=True))],
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
    rows = [
        {"name": name, "count": n, "share": percent(n / total), "key": "all"}
        for name, n in data["labels"]
    ]
    rare = sum(n <= 5 for _, n in data["labels"])
    caption = f"{plural(data['n_labels'], 'label')}; the commonest is on {rows[0]['share']} of all "
    caption += "vertices."
    if rare:
        caption += f" {rare} occur five times or less: little can be learned about them."
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

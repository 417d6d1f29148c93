"""The data: what the graphs are like, and where the model sees them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from fdgnn.html import charts
from fdgnn.html.figures import Figure, Panel, Part, Row, Section, Table
from fdgnn.html.model_data.records import DataFacts, Histogram, Portrait, SizeHistogram
from fdgnn.html.numbers import count, listed, percent, plural, significant
from fdgnn.html.sections import graph_map
from fdgnn.html.sections.missing import no_portrait
from fdgnn.html.subjects import Subject


def section(subjects: Sequence[Subject]) -> Section:
    """Facts, sizes, degrees, labels, classes, and the map of the graphs."""
    return Section(
        id="data",
        title="The data",
        lead="What the model was given, and how it sees it.",
        parts=[_part(i, s) for i, s in enumerate(subjects) if s.has_model],
    )


def _part(run: int, subject: Subject) -> Part:
    portrait = subject.portrait
    if portrait is None:
        return Part(run, subject.name, missing=no_portrait(subject))
    data = portrait.data
    figures = [
        _sizes(run, data, portrait.classes),
        _degrees(run, data, iterates=portrait.dynamics is not None),
    ]
    if data.class_counts:
        figures.append(_classes(run, data, portrait.classes))
    if data.targets:
        figures.append(_targets(run, data.targets))
    if data.labels:
        figures.append(_labels(run, data))
    if portrait.descriptors:
        figures.append(_descriptors(run, portrait))
    if portrait.graphs:
        figures.append(graph_map.figure(run, portrait))
    return Part(run, subject.name, figures, facts=_facts(data), lead=" ".join(subject.notes))


def _facts(data: DataFacts) -> list[tuple[str, str]]:
    twins = data.n_graphs - data.n_distinct
    carried = "nothing"
    if data.n_labels:
        carried = f"one of {plural(data.n_labels, 'label')}"
    elif data.n_features:
        carried = plural(data.n_features, "feature")
    fewest, most = map(count, data.vertices_range)
    facts = [
        ("graphs", count(data.n_graphs)),
        ("vertices per graph, mean", f"{data.n_vertices / max(1, data.n_graphs):.1f}"),
        ("vertices, fewest and most", f"{fewest}, {most}"),
        ("arcs, both ways" if data.undirected else "arcs", count(data.n_arcs)),
        ("self-loops", count(data.n_self_loops)),
        ("repeated arcs", count(data.n_merged_arcs)),
        ("vertices carry", carried),
        ("duplicates", f"{count(twins)} of {count(data.n_graphs)}"),
    ]
    if data.majority is not None:
        facts.append(("majority class", percent(data.majority)))
    if data.wl_ceiling is not None:
        facts.append(("WL ceiling", percent(data.wl_ceiling)))
    return facts


# ---------------------------------------------------------------------- sizes


def _sizes(run: int, data: DataFacts, classes: Sequence[str]) -> Figure:
    counts = {one.name: one.counts for one in data.sizes.classes}
    kinds = in_order(counts, classes)
    number = numbers_of(kinds, classes)
    spans = _spans(data.sizes)
    rows: list[Row] = [
        {
            "low": low, "high": high, "look": f"c{number[kind]}", "order": number[kind],
            "kind": kind, "graphs": counts[kind][i], "span": spans[i],
        }
        for i, (low, high) in enumerate(pairwise(data.sizes.edges))
        for kind in kinds
        if counts[kind][i]
    ]  # fmt: skip
    heads = [f"class {k}" for k in kinds] if len(kinds) > 1 else ["graphs"] * len(kinds)
    cells = [[span, *(count(counts[k][i]) for k in kinds)] for i, span in enumerate(spans)]
    return Figure(
        id=f"sizes-{run}",
        half=True,
        title="Sizes",
        caption=_sizes_caption(data) + _size_by_class(data.sizes, kinds),
        panels=[Panel(f"sizes-{run}", charts.sizes(rows, max(number.values(), default=0) + 1))],
        table=Table(["vertices", *heads], cells),
        key=graph_map.class_key(kinds, number, "square") if len(kinds) > 1 else [],
    )


def _spans(sizes: SizeHistogram) -> list[str]:
    """The sizes of each bar, as text."""
    return [
        str(low) if high - low <= 1 else f"{low} to {high - 1}"
        for low, high in pairwise(sizes.edges)
    ]


def in_order(names: Iterable[str], classes: Sequence[str]) -> list[str]:
    """Give classes in the order of the portrait, then the others."""
    there = list(names)
    known = set(there)
    return list(dict.fromkeys([*(c for c in classes if c in known), *there]))


def numbers_of(names: Sequence[str], classes: Sequence[str]) -> dict[str, int]:
    """Number the classes, so that a class looks the same in all figures."""
    return {name: i for i, name in enumerate(dict.fromkeys([*classes, *names]))}


def _sizes_caption(data: DataFacts) -> str:
    low, high = data.vertices_range
    if low == high:
        return f"All graphs have {plural(low, 'vertex', 'vertices')}."
    spans = _spans(data.sizes)
    totals = [sum(one.counts[i] for one in data.sizes.classes) for i in range(len(spans))]
    most = max(totals, default=0)
    peaks = [span for span, n in zip(spans, totals, strict=True) if n == most]
    text = f"Graphs have {count(low)} to {count(high)} vertices."
    if not 0 < len(peaks) <= 3:
        return text
    verb = "number is" if len(peaks) == 1 else "numbers are"
    return f"{text} The most common {verb} {listed(peaks)}."


def _size_by_class(sizes: SizeHistogram, kinds: Sequence[str]) -> str:
    """Say whether size alone tells the classes apart."""
    if not 1 < len(kinds) <= 6:
        return ""
    counts = {one.name: one.counts for one in sizes.classes}
    middles = [(a + b - 1) / 2 for a, b in pairwise(sizes.edges)]
    means = [
        f"{sum(m * n for m, n in zip(middles, counts[kind], strict=True)) / total:.0f} in class "
        f"{kind}"
        for kind in kinds
        if (total := sum(counts[kind]))
    ]
    return (
        f" On average about {listed(means)}: the further apart these are, the more size alone "
        "tells the classes apart."
    )


# ---------------------------------------------------------------------- counts


def _counted(counts: Iterable[tuple[str, int]], total: int) -> list[Row]:
    """Rows of a bar chart, with each count's share."""
    return [{"name": name, "count": n, "share": percent(n / max(1, total))} for name, n in counts]


def _count_table(what: str, unit: str, rows: Sequence[Row]) -> Table:
    return Table([what, unit, "share"], [[r["name"], count(r["count"]), r["share"]] for r in rows])


def _degrees(run: int, data: DataFacts, *, iterates: bool) -> Figure:
    total = sum(data.degrees.counts)
    rows = _counted(zip(data.degrees.labels, data.degrees.counts, strict=True), total)
    caption = ""
    if rows:
        peak = max(rows, key=lambda r: r["count"])
        unit = "neighbor" if peak["name"] == "1" else "neighbors"
        how = "more than half" if 2 * peak["count"] > total else "the most common number"
        caption = (
            f"{peak['share']} of the vertices have {peak['name']} {unit}, {how}; the largest "
            f"neighborhood has {count(data.max_degree)}."
        )
    if iterates:
        caption += (
            " A few vertices with many neighbors make ρ(|A|) large, and then the dynamics are "
            "harder to keep stable."
        )
    return Figure(
        id=f"degrees-{run}",
        half=True,
        title="Neighbors",
        caption=caption.strip(),
        panels=[Panel(f"degrees-{run}", charts.bars(rows, "neighbors", "vertices"))],
        table=_count_table("neighbors", "vertices", rows),
    )


def _classes(run: int, data: DataFacts, classes: Sequence[str]) -> Figure:
    counts = dict(data.class_counts)
    names = in_order(counts, classes)
    number = numbers_of(names, classes)
    rows = [
        row | {"look": f"c{number[row['name']]}"}
        for row in _counted(((name, counts[name]) for name in names), sum(counts.values()))
    ]
    bars = charts.bars(rows, "class", "graphs", n_classes=max(number.values()) + 1)
    return Figure(
        id=f"classes-{run}",
        half=True,
        title="Classes",
        caption=_classes_caption(rows),
        panels=[Panel(f"classes-{run}", bars)],
        table=_count_table("class", "graphs", rows),
    )


def _descriptors(run: int, portrait: Portrait) -> Figure:
    """A table of the columns that the model reads beside the graphs."""
    found, score = portrait.descriptors, "value" if portrait.task == "regression" else "score"
    most = found[0]
    return Figure(
        id=f"descriptors-{run}",
        title="Descriptors",
        caption=f"The model reads {plural(len(found), 'column')} beside the graphs. "
        f"What moves the {score} most is {most.name}, by {significant(most.moves, 2)} on average.",
        table=Table(
            ["column", "in training", "missing here", f"moves the {score} by"],
            [[d.name, d.values, count(d.n_missing), significant(d.moves, 2)] for d in found],
            note=f"The size of what a column adds to the {score}, averaged over the graphs on the "
            "map; a column that adds nothing is as it is on average, or unknown.",
        ),
        open=True,
    )


def _classes_caption(rows: Sequence[Row]) -> str:
    peak = max(rows, key=lambda r: r["count"])
    largest = [row["name"] for row in rows if row["count"] == peak["count"]]
    share = peak["share"]
    who = f"The largest class, {largest[0]}, has {share} of the graphs"
    if len(largest) > 1:
        who = f"The largest classes, {listed(largest)}, have {share} of the graphs each"
    if len(largest) > 5:
        who = f"{len(largest)} classes are the largest, with {share} of the graphs each"
    return f"{who}: a model must be right more often than that to have learned anything."


def _targets(run: int, targets: Histogram) -> Figure:
    edges = targets.edges
    rows: list[Row] = [
        {
            "low": low,
            "high": high,
            "graphs": n,
            "span": f"{significant(low)} to {significant(high)}",
        }
        for (low, high), n in zip(pairwise(edges), targets.counts, strict=True)
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


def _labels(run: int, data: DataFacts) -> Figure:
    rows = _counted(data.labels, data.n_vertices)
    rare = sum(n <= 5 for _, n in data.labels)
    caption = (
        f"{plural(data.n_labels, 'label')}; the most common is on {rows[0]['share']} of all "
        "vertices."
    )
    if rare:
        verb = "occurs" if rare == 1 else "occur"
        caption += f" {rare} {verb} five times or less: little can be learned from that."
    if data.n_labels > len(rows):
        caption += f" The {len(rows)} most common are shown."
    return Figure(
        id=f"labels-{run}",
        half=True,
        title="Vertex labels",
        caption=caption,
        panels=[Panel(f"labels-{run}", charts.bars(rows, "label", "vertices"))],
        table=_count_table("label", "vertices", rows),
    )

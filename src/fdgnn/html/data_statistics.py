"""Statistics of a set of graphs: counts, and the histograms that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.evaluation import paper
from fdgnn.graphs import GraphBatch
from fdgnn.html.report_data import BARS, CLASSES, LABELS, BarCounts, DataStatistics
from fdgnn.html.words import clean, clipped_apart, short, significant


def graph_counts(graphs: GraphBatch, classes: Array | None = None) -> dict[str, Any]:
    """Count vertices, arcs, labels and distinct graphs, by name.

    Parameters
    ----------
    graphs : GraphBatch
    classes : (n_graphs,), optional
        The class of each graph. Without it, `majority` and `wl_ceiling` are None.
    """
    majority = ceiling = None
    if classes is not None:
        majority = float(np.unique(classes, return_counts=True)[1].max() / len(graphs))
        ceiling = float(graphs.wl_ceiling(classes))
    return dict(
        n_graphs=len(graphs),
        n_vertices=graphs.n_vertices,
        n_arcs=graphs.n_arcs,
        n_self_loops=graphs.n_self_loops,
        n_merged_arcs=graphs.n_merged_arcs,
        undirected=not graphs.directed,
        n_distinct=graphs.n_distinct_graphs,
        n_labels=0 if graphs.label_codes is None else len(np.unique(graphs.label_codes)),
        n_features=0 if graphs.features is None else graphs.features.shape[1],
        majority=majority,
        wl_ceiling=ceiling,
    )


def edge_counts(graphs: GraphBatch) -> Ints:
    """Count the edges of each graph: an undirected edge, a self-loop and an arc count once."""
    n_arcs = np.diff(graphs.indptr[graphs.vertex_offsets])
    if graphs.directed:
        return n_arcs
    degrees = np.diff(graphs.indptr)
    local = np.arange(graphs.n_vertices) - graphs.vertex_offsets[graphs.graph_of_vertex]
    loops = np.repeat(local, degrees) == graphs.neighbors
    graph_of_loop = np.repeat(graphs.graph_of_vertex, degrees)[loops]
    n_loops = np.bincount(graph_of_loop, minlength=len(graphs))
    return np.asarray((n_arcs + n_loops) // 2)


def data_statistics(
    graphs: GraphBatch, y: Array | None, names: Sequence[str], elements: Mapping[str, str]
) -> DataStatistics:
    """Describe graphs; y has positions in the classes' `names` or, without names, numbers.

    `elements` are names of vertex labels.
    """
    codes = y if names else None
    sizes, degrees = np.diff(graphs.vertex_offsets), np.diff(graphs.indptr)
    low, high, max_degree = int(sizes.min()), int(sizes.max()), int(degrees.max())
    few = codes is not None and len(names) <= CLASSES
    groups = {name: sizes[codes == c] for c, name in enumerate(names)} if few else {"": sizes}
    width = -(-(high - low + 1) // BARS)
    by_degree = np.arange(max_degree + 2)
    if max_degree >= BARS:  # large degrees, which are rare, share bars
        growing = np.geomspace(1, max_degree + 1, BARS).round().astype(np.int64)
        by_degree = np.concatenate([[0], np.unique(growing)])
    labels = targets = None
    if graphs.label_codes is not None and graphs.label_values is not None:
        counts = np.bincount(graphs.label_codes, minlength=len(graphs.label_values))
        order = [i for i in np.argsort(-counts, kind="stable")[:LABELS] if counts[i]]
        known = clipped_apart(graphs.label_values[i] for i in order)
        shown = [elements.get(name, name) for name in known]
        labels = BarCounts(names=shown, series=[("", counts[order].tolist())])
    if y is not None and names:
        counts = np.bincount(y, minlength=len(names))[:CLASSES]
        targets = BarCounts(names=list(names[:CLASSES]), series=[("", counts.tolist())])
    elif y is not None:
        counts, edges = np.histogram(y, bins=min(BARS, 5 + len(y) // 10))
        spans = [f"{significant(a)} to {significant(b)}" for a, b in pairwise(edges.tolist())]
        targets = BarCounts(names=spans, series=[("", counts.tolist())])
    return DataStatistics(
        **graph_counts(graphs, codes),
        vertices_range=(low, high),
        max_degree=max_degree,
        sizes=_histogram(groups, np.arange(low, high + 1 + width, width)),
        mean_sizes=[(name, short(own.mean())) for name, own in groups.items() if len(own)],
        degrees=_histogram({"": degrees}, by_degree),
        labels=labels,
        targets=targets,
    )


def _histogram(groups: Mapping[str, Ints], edges: Ints) -> BarCounts:
    """Count whole numbers from each edge to below the next, for each group."""
    names = [str(a) if b == a + 1 else f"{a} to {b - 1}" for a, b in pairwise(edges.tolist())]
    series = [(name, np.histogram(own, edges)[0].tolist()) for name, own in groups.items()]
    return BarCounts(names=names, series=series)


def elements_of_labels(
    dataset: str, graphs: GraphBatch, *, molecules: bool = False
) -> dict[str, str]:
    """Return chemical elements by vertex label, of molecules or a known dataset of molecules."""
    if molecules and graphs.label_values is not None:
        return {clean(label): clean(label) for label in graphs.label_values.tolist()}
    known, found = paper.DATASETS.get(dataset), (len(graphs), graphs.n_vertices)
    if dataset not in paper.ATOMS or known is None or found != (known.n_graphs, known.n_vertices):
        return {}
    return {str(code): symbol for code, symbol in enumerate(paper.ATOMS[dataset])}

"""What a set of graphs is like: counts, and the histograms that a page shows."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from fdgnn.arrays import Array, Ints
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.records import (
    BARS,
    CLASSES,
    LABELS,
    ClassSizes,
    DataFacts,
    DegreeBars,
    GraphCounts,
    Histogram,
    SizeHistogram,
)
from fdgnn.html.model_data.text import clipped_apart, short


def counts_of(graphs: GraphBatch, classes: Array | None = None) -> GraphCounts:
    """Count vertices, arcs, labels and distinct graphs.

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
    return GraphCounts(
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


def data_facts(graphs: GraphBatch, y: Array | None, names: Sequence[str]) -> DataFacts:
    """Describe the graphs; y is positions in the classes' names or, without names, targets."""
    codes, targets = (y, None) if names else (None, y)
    sizes, degrees = np.diff(graphs.vertex_offsets), np.diff(graphs.indptr)
    counts = [] if codes is None else np.bincount(codes, minlength=len(names)).tolist()
    return DataFacts(
        **msgspec.structs.asdict(counts_of(graphs, codes)),
        class_counts=list(zip(names, counts, strict=False)),
        vertices_range=(int(sizes.min()), int(sizes.max())),
        max_degree=int(degrees.max()),
        targets=None if targets is None else _target_histogram(targets),
        sizes=_size_histogram(sizes, codes, names),
        degrees=_degree_bars(degrees),
        labels=_label_counts(graphs),
    )


def _target_histogram(y: Array) -> Histogram:
    counts, edges = np.histogram(y, bins=min(BARS, 5 + len(y) // 10))
    return Histogram(edges=[short(edge) for edge in edges], counts=counts.tolist())


def _size_histogram(sizes: Ints, codes: Array | None, names: Sequence[str]) -> SizeHistogram:
    """Count graphs by their number of vertices, for each class."""
    low, high = int(sizes.min()), int(sizes.max())
    width = -(-(high - low + 1) // BARS)
    edges = np.arange(low, high + width + 1, width)
    groups = {"all": sizes}
    if codes is not None and len(names) <= CLASSES:
        groups = {name: sizes[codes == c] for c, name in enumerate(names)}
    return SizeHistogram(
        edges=edges.tolist(),
        classes=[
            ClassSizes(name=name, counts=np.histogram(group, edges)[0].tolist())
            for name, group in groups.items()
        ],
    )


def _degree_bars(degrees: Ints) -> DegreeBars:
    """Count vertices by their number of neighbors; large numbers, which are rare, share bars."""
    high = int(degrees.max())
    starts = np.arange(high + 2)
    if high >= BARS:
        growing = np.geomspace(1, high + 1, BARS).round().astype(np.int64)
        starts = np.concatenate([[0], np.unique(growing)])
    labels = [
        str(a) if b == a + 1 else f"{a}-{b - 1}"
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    ]
    return DegreeBars(labels=labels, counts=np.histogram(degrees, starts)[0].tolist())


def _label_counts(graphs: GraphBatch) -> list[tuple[str, int]]:
    """Count vertices by label, the most common label first."""
    if graphs.label_codes is None or graphs.label_values is None:
        return []
    counts = np.bincount(graphs.label_codes, minlength=len(graphs.label_values))
    order = [i for i in np.argsort(-counts, kind="stable")[:LABELS] if counts[i]]
    names = clipped_apart(graphs.label_values[i] for i in order)
    return [(name, int(counts[i])) for name, i in zip(names, order, strict=True)]

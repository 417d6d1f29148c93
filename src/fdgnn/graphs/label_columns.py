"""Labels beside features: where vertices have both, labels become columns of zeros and ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from fdgnn.exceptions import GraphError
from fdgnn.graphs import checks
from fdgnn.graphs.batch import GraphBatch
from fdgnn.graphs.graph import Graph
from fdgnn.schema import InputSchema

Label: TypeAlias = str | int


def has_both(graph: Graph) -> bool:
    """Tell whether vertices have labels and features."""
    return graph.labels is not None and graph.features is not None


def beside_features(
    graphs: Mapping[int, Graph], known: tuple[Label, ...] | None = None
) -> tuple[dict[int, Graph], tuple[Label, ...], dict[int, str]]:
    """Append labels to features, a column for each label, where graphs have both.

    Parameters
    ----------
    graphs : mapping of Graph
    known : tuple, optional
        The labels that have a column, in order; another one has zeros only. By default all labels
        of these graphs have one.

    Returns
    -------
    graphs : dict of Graph
        Those that are good, in the same order.
    labels : tuple
        The labels that have a column.
    faults : dict of str
        What is wrong with the others.
    """
    labels = _labels_of(graphs.values()) if known is None else known
    found: dict[int, Graph] = {}
    faults: dict[int, str] = {}
    for i, graph in graphs.items():
        try:
            found[i] = _joined(graph, labels) if has_both(graph) else graph
        except GraphError as error:
            faults[i] = error.reason
    return found, labels, faults


def _labels_of(graphs: Iterable[Graph]) -> tuple[Label, ...]:
    """All labels of graphs with features, in order, of the kind that the first graph has."""
    found: list[Label] = []
    for graph in filter(has_both, graphs):
        try:
            found += dict.fromkeys(checks.label_array(graph.labels).tolist())
        except GraphError:  # it is told where the graph is converted
            continue
    kind = type(found[0]) if found else str
    return tuple(sorted({label for label in found if isinstance(label, kind)}))


def _joined(graph: Graph, known: tuple[Label, ...]) -> Graph:
    labels = checks.label_array(graph.labels)
    features = checks.numbers(graph.features, "features")
    if features.ndim != 2 or len(features) != len(labels):
        raise GraphError(
            f"it has {len(labels)} labels and features of shape {features.shape}; give one label "
            "and one row of features per vertex"
        )
    text = checks.is_text(labels)
    if known and isinstance(known[0], str) != text:
        kinds = ("text", "integer") if text else ("integer", "text")
        raise GraphError(f"it has {kinds[0]} labels beside features, expected {kinds[1]} labels")
    columns = labels[:, np.newaxis] == np.array(known)
    return replace(graph, labels=None, features=np.hstack([features, columns]))


def schema_with(graphs: GraphBatch, labels: tuple[Label, ...]) -> InputSchema:
    """Give the schema of graphs whose labels became columns, so that others get the same ones."""
    assert graphs.features is not None
    return InputSchema(
        source="graphs",
        directed=graphs.directed,
        vertex="features",
        n_features=graphs.features.shape[1],
        edge_labels="ignore",
        label_columns=labels,
    )

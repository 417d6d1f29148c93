"""The descriptors that a model reads beside the graphs, and how much they move its scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from fdgnn.arrays import Ints
from fdgnn.encoders.descriptors import DescriptorColumn
from fdgnn.explanations import explain, has_attributions
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.descriptors import known_in
from fdgnn.html.model_data.records import DESCRIPTORS, DescriptorFacts
from fdgnn.html.model_data.text import clipped, short


def descriptor_facts(model: Any, graphs: GraphBatch, mapped: Ints) -> list[DescriptorFacts]:
    """Explain the mapped graphs, and list what moves their scores most first."""
    block = model._descriptors
    if block is None or graphs.descriptors is None or not has_attributions(model):
        return []
    part = graphs if len(mapped) == len(graphs) else graphs[mapped]
    explained = [list(one.descriptors.values()) for one in explain(model, part)]
    moves = np.abs(explained).mean(axis=0)
    order = np.argsort(-moves, kind="stable")[:DESCRIPTORS].tolist()
    given = dict(zip(graphs.descriptors.names, graphs.descriptors.columns, strict=True))
    return [
        DescriptorFacts(
            name=clipped(block.names[j]),
            values=_values(block.columns[j]),
            n_missing=int((~known_in(given[block.names[j]])).sum()),
            moves=short(moves[j]),
        )
        for j in order
    ]


def _values(column: DescriptorColumn) -> str:
    """What the column had in training."""
    if column.kind == "category":
        return clipped(", ".join(column.categories))
    return f"{column.low:.4g} to {column.high:.4g}"

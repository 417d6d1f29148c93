"""Graphs to learn from: your own files, the TU benchmark collection, generators."""

from fdgnn.datasets.generators import (
    make_cliques,
    make_cycles,
    make_motif_graphs,
    make_random_graphs,
    make_stars,
)
from fdgnn.datasets.read import iter_graphs, read_graphs
from fdgnn.datasets.rows import Change, GraphTable, Reject
from fdgnn.datasets.tu import load_tu
from fdgnn.schema import ReadOptions

__all__ = [
    "Change",
    "GraphTable",
    "ReadOptions",
    "Reject",
    "iter_graphs",
    "load_tu",
    "make_cliques",
    "make_cycles",
    "make_motif_graphs",
    "make_random_graphs",
    "make_stars",
    "read_graphs",
]

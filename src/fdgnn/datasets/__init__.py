"""Graphs to learn from: the TU benchmark collection, and generators that need no download."""

from fdgnn.datasets.generators import (
    make_cliques,
    make_cycles,
    make_motif_graphs,
    make_random_graphs,
    make_regular,
    make_stars,
)
from fdgnn.datasets.tu import load_tu

__all__ = [
    "load_tu",
    "make_cliques",
    "make_cycles",
    "make_motif_graphs",
    "make_random_graphs",
    "make_regular",
    "make_stars",
]

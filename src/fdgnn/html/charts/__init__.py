"""The page's charts as Vega-Lite specifications, made with Vega-Altair."""

from fdgnn.html.charts.base import COLORS, altair, look_of, unchecked
from fdgnn.html.charts.dynamics import certified, convergence, iterations, stability
from fdgnn.html.charts.graphs import (
    bars,
    calibration,
    graph_map,
    histogram,
    predictions,
    sizes,
    value_map,
)
from fdgnn.html.charts.outcomes import folds, members, published, rival_seconds, rivals, seconds
from fdgnn.html.charts.search import depths, penalties, selection

__all__ = [
    "COLORS",
    "altair",
    "bars",
    "calibration",
    "certified",
    "convergence",
    "depths",
    "folds",
    "graph_map",
    "histogram",
    "iterations",
    "look_of",
    "members",
    "penalties",
    "predictions",
    "published",
    "rival_seconds",
    "rivals",
    "seconds",
    "selection",
    "sizes",
    "stability",
    "unchecked",
    "value_map",
]

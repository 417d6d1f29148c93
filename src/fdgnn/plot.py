"""Plots for notebooks, with Matplotlib (extra `plot`).

Colors are those of Okabe and Ito, which color-blind people can distinguish. Each color also has a
marker of its own. `fdgnn.draw_explanation` draws attributions.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fdgnn.explanations.drawing import literal
from fdgnn.extras import require
from fdgnn.graphs.converters import as_batch
from fdgnn.html import model_views
from fdgnn.tasks import infer_task

__all__ = ["plot_embedding"]

COLORS = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00"),
    *("#cc79a7", "#56b4e9", "#000000", "#f0e442"),
)
_MARKERS = "osD^vP*X"
_MOST_NAMED = 24  # classes in a legend


def plot_embedding(model: Any, graphs: Any, y: Any = None, *, ax: Any = None) -> Any:
    """Plot two principal components of the features of the graphs.

    Features of a classifier or regressor are those that the readout of its first base model reads.

    Parameters
    ----------
    model : encoder, any model of this library, or FDGNNSearchCV
        Fitted.
    graphs : GraphBatch or list of graphs
    y : (n_graphs,), optional
        Colors: classes, or numbers.
    ax : matplotlib Axes, optional
        By default, those of a new pyplot figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> from fdgnn.plot import plot_embedding
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> ax = plot_embedding(FDGNNClassifier(random_state=0).fit(graphs, y), graphs, y)
    >>> len(ax.get_legend().get_texts())
    2
    """
    model = model_views.fitted(model)
    batch = as_batch(graphs, like=model)
    places, shares = model_views.principal_map(model_views.features_of(model, batch))
    values = None if y is None else np.asarray(y)
    if values is not None and values.shape != (len(batch),):
        raise ValueError(f"y has shape {values.shape}, but there are {len(batch)} graphs")
    if ax is None:
        ax = require("matplotlib.pyplot", "plot", "Plots").figure(layout="constrained").subplots()
    if values is None:
        ax.scatter(*places.T, s=22, color=COLORS[0], alpha=0.75, linewidths=0)
    elif is_regressor(model) or infer_task(values) == "regression":
        points = ax.scatter(*places.T, s=22, c=values, cmap="viridis", alpha=0.9, linewidths=0)
        ax.figure.colorbar(points, ax=ax, label="target")
    else:
        classes = np.unique(values)
        look = {"s": 26, "alpha": 0.75, "edgecolors": "white", "linewidths": 0.4}
        for value, color, marker in zip(classes, cycle(COLORS), cycle(_MARKERS), strict=False):
            own, name = places[values == value], literal(value)
            ax.scatter(*own.T, color=color, marker=marker, label=name, **look)
        if len(classes) <= _MOST_NAMED:
            ax.legend(title="class", frameon=False)
    first, second = (f"{share:.0%}" for share in shares)
    ax.set_xlabel(f"first principal component ({first} of the variance)")
    ax.set_ylabel(f"second ({second})")
    return ax

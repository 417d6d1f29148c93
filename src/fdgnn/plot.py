"""Plots for notebooks, with Matplotlib (extra `plot`).

Each function takes a fitted encoder, model or `FDGNNSearchCV`, and graphs of any kind that
`as_batch` takes. It draws into the given axes, or into a new pyplot figure, and returns the
Matplotlib axes. Colors are those of Okabe and Ito, which color-blind people can distinguish. Each
color also has a marker or a line style of its own. `fdgnn.draw_explanation` draws attributions.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fdgnn.encoders import GraphReservoir
from fdgnn.explanations.drawing import literal
from fdgnn.extras import require
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.html import model_views
from fdgnn.reservoir import contractions
from fdgnn.stability import spectral_radius
from fdgnn.tasks import guess_task

__all__ = ["plot_embedding", "plot_stability"]

COLORS = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00"),
    *("#cc79a7", "#56b4e9", "#000000", "#f0e442"),
)
_GRAY, _MARKERS = "#666666", "osD^vP*X"
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
    ax = _axes(ax)
    if values is None:
        ax.scatter(*places.T, s=22, color=COLORS[0], alpha=0.75, linewidths=0)
    elif is_regressor(model) or guess_task(values) == "regression":
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


def plot_stability(model: Any, graphs: Any, *, ax: Any = None) -> Any:
    r"""Plot which graphs are certified to have one fixed point: rho(\|W_H\|) rho(\|A\|) < 1.

    Each point is a graph, at its largest degree k and the product of both spectral radii in the
    layer where it is largest. The line is rho(W_H) k of Theorem 2; with one connection per unit and
    no edge weights, no point is above it.

    Parameters
    ----------
    model : encoder, any model of this library, or FDGNNSearchCV
        Fitted. Of several base models the first with a reservoir is shown.
    graphs : GraphBatch or list of graphs
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> from fdgnn import GraphReservoir
    >>> from fdgnn.datasets import make_stars
    >>> from fdgnn.plot import plot_stability
    >>> graphs = make_stars([5, 10, 20, 40])
    >>> model = GraphReservoir(effective_spectral_radius=0.9, degree="max", random_state=0)
    >>> ax = plot_stability(model.fit(graphs), graphs)
    >>> [text.get_text() for text in ax.get_legend().get_texts()][-1]
    'certified: 4 of 4'
    """
    encoder, batch = _reservoir(model, graphs)
    bounds = contractions(encoder.reservoir_, batch)
    worst, k = bounds.max(axis=0), batch.max_degrees
    layer = encoder.reservoir_.layers[int(bounds.max(axis=1).argmax())]
    ax = _axes(ax)
    ends = np.array([0.0, max(1.0, k.max()) * 1.05])  # k is 0 where no graph has an arc
    ax.axhspan(0, 1, color=COLORS[2], alpha=0.07, linewidth=0)
    ax.axhline(1, color=COLORS[2], linewidth=1.2, label="one fixed point below")
    radius = spectral_radius(layer.recurrent_weights)
    ax.plot(ends, radius * ends, color=_GRAY, linestyle="--", label=r"$\rho(W_H)\,k$")
    look = {"s": 24, "alpha": 0.6, "edgecolors": "white", "linewidths": 0.3}
    kinds = ("not certified", worst >= 1, COLORS[3], "^"), ("certified", worst < 1, COLORS[0], "o")
    for name, own, color, marker in kinds:
        if own.any():
            label = f"{name}: {own.sum()} of {len(batch)}"
            ax.scatter(k[own], worst[own], color=color, marker=marker, label=label, **look)
    ax.set(xlim=ends, ylim=(0, 1.08 * max(1.0, float(worst.max()))))
    ax.set(xlabel="largest degree of the graph, k", ylabel=r"$\rho(|W_H|)\;\rho(|A|)$")
    ax.legend(frameon=False)
    return ax


# ---------------------------------------------------------------------- shared


def _reservoir(model: Any, graphs: Any) -> tuple[GraphReservoir, GraphBatch]:
    """Return the reservoir of a model, and the graphs as its input."""
    found, model = model_views.reservoir_of(model), model_views.fitted(model)
    if found is None:
        name = model_views.encoder_in_words(model_views.encoder_of(model))
        raise TypeError(
            f"the encoder of this model is a {name}, which has no states to converge; give a "
            "model with a GraphReservoir"
        )
    return found[0], model._check_graphs(graphs)


def _axes(ax: Any) -> Any:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    plt = require("matplotlib.pyplot", "plot", "Plots")
    return plt.figure(layout="constrained").add_subplot()

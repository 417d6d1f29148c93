"""Pictures for notebooks, with Matplotlib (extra `plot`).

Each function takes a fitted encoder, model or `FDGNNSearchCV`, and graphs of any kind that
`as_batch` takes. It draws into the given axes or into a new pyplot figure, which notebooks show,
and returns the axes. Colors are those of Okabe and Ito, which color-blind people can tell apart.
Each color also has a marker or a line style of its own.
"""

from __future__ import annotations

from itertools import cycle
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from fdgnn.arrays import Array, Floats
from fdgnn.explanations import explain
from fdgnn.explanations.drawing import draw_explanation, literal
from fdgnn.extras import require
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.html.model_views import (
    Dynamics,
    dynamics_of,
    encoder_in_words,
    encoder_of,
    features_of,
    fitted,
    graphs_for_curves,
    principal_map,
    residual_curves,
)
from fdgnn.reservoir import contractions
from fdgnn.stability import spectral_radius
from fdgnn.tasks import guess_task

__all__ = ["plot_contributions", "plot_convergence", "plot_embedding", "plot_stability"]

COLORS = (
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000", "#f0e442",
)  # fmt: skip
_MARKERS = "osD^vP*X"
_MOST_NAMED = 24  # classes in a legend


def plot_convergence(model: Any, graphs: Any, *, ax: Any = None) -> Any:
    """Show how far the states move in each step of the paper's loop, layer by layer.

    There are lines for a dozen graphs, from small to large. A line is solid where a graph is
    certified to have one fixed point, and dashed where it is not. A loop ends when its line falls
    below `tol`, or after `max_iter` steps.

    Parameters
    ----------
    model : encoder, any model of this library, or FDGNNSearchCV
        Fitted. Of several networks the first with a reservoir is shown.
    graphs : GraphBatch or list of graphs
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from fdgnn import GraphReservoir
    >>> from fdgnn.datasets import make_cycles
    >>> from fdgnn.plot import plot_convergence
    >>> graphs = make_cycles([3, 6, 9])
    >>> ax = plot_convergence(GraphReservoir(random_state=0).fit(graphs), graphs)
    >>> ax.get_xlabel()
    'step'
    """
    dynamics, batch = _dynamics(model, graphs)
    ax = _axes(ax)
    _whole_ticks(ax.xaxis)
    certified = contractions(dynamics.reservoir, batch) < 1
    shown = graphs_for_curves(certified, np.diff(batch.vertex_offsets))
    colors = _shades(len(certified))
    for g, curves in zip(shown, residual_curves(dynamics, batch[shown]), strict=True):
        for i, curve in enumerate(curves):
            ax.plot(
                np.arange(1, len(curve) + 1), curve, color=colors[i], alpha=0.8, linewidth=1.3,
                linestyle="-" if certified[i, g] else "--",
            )  # fmt: skip
    ax.axhline(dynamics.tol, color="#666666", linewidth=1, linestyle=":")
    ax.set(yscale="log", xlabel="step", ylabel=r"change of the states, $\|X_t - X_{t-1}\|_F$")
    names = [(f"layer {i + 1}", color, "-") for i, color in enumerate(colors)]
    names += [("not certified", "#666666", "--")] * (not certified[:, shown].all())
    for name, color, style in [*names, (f"tolerance {dynamics.tol:g}", "#666666", ":")]:
        ax.plot([], [], color=color, linestyle=style, label=name)
    ax.legend(frameon=False)
    return ax


def plot_embedding(model: Any, graphs: Any, y: Any = None, *, ax: Any = None) -> Any:
    """Map the graphs as the model sees them: two principal components of their embeddings.

    Of a classifier or regressor, the embedding is what the readout of its first network sees, or
    of the first that can take all graphs; of an encoder, its features.

    Parameters
    ----------
    model : encoder, any model of this library, or FDGNNSearchCV
        Fitted.
    graphs : GraphBatch or list of graphs
    y : (n_graphs,), optional
        Colors: classes, or numbers.
    ax : matplotlib Axes, optional

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
    model = fitted(model)
    batch = as_batch(graphs, like=model)
    places, shares = principal_map(features_of(model, batch))
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
        _scatter_classes(ax, places, values)
    ax.set(
        xlabel=f"first principal component ({shares[0]:.0%} of the variance)",
        ylabel=f"second ({shares[1]:.0%})",
    )
    return ax


def _scatter_classes(ax: Any, places: Floats, values: Array) -> None:
    looks = zip(cycle(COLORS), cycle(_MARKERS), strict=False)
    classes = np.unique(values)
    for (color, marker), value in zip(looks, classes, strict=False):
        ax.scatter(
            *places[values == value].T, s=26, color=color, marker=marker, alpha=0.75,
            edgecolors="white", linewidths=0.4, label=literal(value),
        )  # fmt: skip
    if len(classes) <= _MOST_NAMED:
        ax.legend(title="class", frameon=False)


def plot_contributions(
    model: Any, graph: Any, *, target: Any = None, labels: Any = None, ax: Any = None
) -> Any:
    """Draw a graph, each vertex colored by what it adds to the score.

    Vertices are compared with each other: white is the graph's mean contribution, red is more,
    blue is less.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        Fitted.
    graph : Graph, or whatever `as_batch` takes a list of
    target : class label or int, optional
        The class, or the number of the regressor's output, to explain. The default is the
        predicted class, or the only output.
    labels : sequence, optional
        What to write on the vertices; by default their labels, if they have some.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from fdgnn import FDGNNClassifier
    >>> from fdgnn.datasets import make_motif_graphs
    >>> from fdgnn.plot import plot_contributions
    >>> graphs, y = make_motif_graphs(60, random_state=0)
    >>> ax = plot_contributions(FDGNNClassifier(random_state=0).fit(graphs, y), graphs[0])
    >>> ax.get_title().split()[0]
    'Score'
    """
    model = fitted(model)
    batch = as_batch([graph], like=model)
    found = explain(model, batch, target=target)[0]
    return draw_explanation(batch[0], found, ax=_axes(ax), labels=labels)


def plot_stability(model: Any, graphs: Any, *, ax: Any = None) -> Any:
    r"""Map the graphs by whether their states settle for certain: rho(\|W_H\|) rho(\|A\|) < 1.

    Each point is a graph. It is placed by its largest neighborhood k and by the product of both
    spectral radii, in the layer where the product is largest. The line is rho(W_H) k, the quantity
    of Theorem 2. If each neuron has one connection and no arc has a weight, no point is above it.

    Parameters
    ----------
    model : encoder, any model of this library, or FDGNNSearchCV
        Fitted. Of several networks the first with a reservoir is shown.
    graphs : GraphBatch or list of graphs
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

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
    dynamics, batch = _dynamics(model, graphs)
    bounds = contractions(dynamics.reservoir, batch)
    worst, k = bounds.max(axis=0), batch.max_degrees
    layer = dynamics.reservoir.layers[int(bounds.max(axis=1).argmax())]
    ax = _axes(ax)
    ends = np.array([0.0, max(1.0, k.max()) * 1.05])  # k is 0 where no graph has an arc
    ax.axhspan(0, 1, color="#009e73", alpha=0.07, linewidth=0)
    ax.axhline(1, color="#009e73", linewidth=1.2, label="one fixed point below")
    radius = spectral_radius(layer.recurrent_weights)
    ax.plot(ends, radius * ends, color="#666666", linestyle="--", label=r"$\rho(W_H)\,k$")
    for sure, color, marker, name in (
        (False, "#d55e00", "^", "not certified"),
        (True, "#0072b2", "o", "certified"),
    ):
        own = (worst < 1) == sure
        if own.any():
            ax.scatter(
                k[own], worst[own], s=24, color=color, marker=marker, alpha=0.6,
                edgecolors="white", linewidths=0.3, label=f"{name}: {own.sum()} of {len(batch)}",
            )  # fmt: skip
    ax.set(
        xlim=ends,
        ylim=(0, 1.08 * max(1.0, float(worst.max()))),
        xlabel="largest neighborhood of the graph, k",
        ylabel=r"$\rho(|W_H|)\;\rho(|A|)$",
    )
    ax.legend(frameon=False)
    return ax


# ---------------------------------------------------------------------- shared


def _dynamics(model: Any, graphs: Any) -> tuple[Dynamics, GraphBatch]:
    """The reservoir of a model, and the graphs as it takes them."""
    dynamics, model = dynamics_of(model), fitted(model)
    if dynamics is None:
        name = encoder_in_words(encoder_of(model))
        raise TypeError(
            f"the encoder of this model is a {name}, which has no states that come to rest; give a "
            "model with a GraphReservoir"
        )
    return dynamics, model._check_graphs(graphs)


def _axes(ax: Any) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    plt = require("matplotlib.pyplot", "plot", "Plots")
    return plt.figure(layout="constrained").add_subplot()


def _whole_ticks(axis: Any) -> None:
    """Put ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))


def _shades(n: int) -> list[str]:
    """Colors of n layers, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(c) for c in colormaps["viridis"](np.linspace(0, 0.85, n))]

"""How the states of a network come to rest: the paper's iteration, watched step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor, GraphReservoir
from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.portrait.data import short
from fdgnn.reservoir import DeepReservoir, contractions, embed, first_drive
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.stability import necessary_condition, spectral_radius, sufficient_condition

CURVES = 12  # graphs whose convergence is shown
_UNCERTIFIED_CURVES = 4
_ALL_CURVES, _STEPS = 60, 200  # of all layers together, and their steps, in a portrait
_GRAPHS = 2000  # that are iterated at most
_WORK = 2e7  # states that are iterated at most: vertices times neurons of all layers


@dataclass(frozen=True)
class Dynamics:
    """One network and the settings of its iteration."""

    reservoir: DeepReservoir
    degree: float
    tol: float
    max_iter: int


def dynamics_of(model: Any) -> Dynamics:
    """The first network of a fitted model of any kind.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model has no network yet.
    TypeError
        It is no model of this library.
    """
    model = fitted(model)
    reservoir = model.reservoir_ if isinstance(model, GraphReservoir) else model.networks_[0][0]
    return Dynamics(reservoir, model.degree_, model.tol, model.max_iter)


def fitted(model: Any) -> Any:
    """The model itself, or the best one of a search; an error if it is not fitted."""
    if not isinstance(model, FDGNNClassifier | FDGNNRegressor | GraphReservoir | FDGNNSearchCV):
        raise TypeError(
            f"expected a GraphReservoir, FDGNNClassifier, FDGNNRegressor or FDGNNSearchCV, "
            f"got a {type(model).__name__}"
        )
    check_is_fitted(model)
    return getattr(model, "best_estimator_", model)


# ---------------------------------------------------------------------- facts


def graphs_for_curves(certified: npt.NDArray[np.bool_], sizes: Ints, at_most: int = CURVES) -> Ints:
    """Choose a few graphs from small to large, uncertified ones among them if there are any."""
    sure = certified.all(axis=0)
    few = min(at_most, _UNCERTIFIED_CURVES) if sure.any() else at_most
    chosen = _spread(np.flatnonzero(~sure), sizes, few)
    return np.concatenate([chosen, _spread(np.flatnonzero(sure), sizes, at_most - len(chosen))])


def _spread(among: Ints, sizes: Ints, at_most: int) -> Ints:
    ordered = among[np.argsort(sizes[among], kind="stable")]
    places = np.linspace(0, len(ordered) - 1, min(at_most, len(ordered))).round().astype(np.int64)
    return ordered[places]


def residual_curves(dynamics: Dynamics, graphs: GraphBatch) -> list[list[Floats]]:
    """Distances ``||X_t - X_(t-1)||_F`` of the paper's loop, for each graph and layer.

    A layer's loop starts from zero and ends as in the paper, below `tol` or after `max_iter`
    steps; its last states are the next layer's input.
    """
    return [_residuals(dynamics, graphs[[g]]) for g in range(len(graphs))]


def _residuals(dynamics: Dynamics, graph: GraphBatch) -> list[Floats]:
    A = graph.adjacency()
    rows, row_of_vertex = first_drive(graph, dynamics.reservoir)
    X, curves = rows[row_of_vertex], []
    for i, layer in enumerate(dynamics.reservoir.layers):
        drive = X if i == 0 else X @ layer.input_weights.T + layer.bias
        X, residuals = np.zeros_like(drive), [np.inf]
        while len(residuals) <= dynamics.max_iter and residuals[-1] >= dynamics.tol:
            X_new = np.tanh(drive + (A @ X) @ layer.recurrent_weights.T)  # eq. 2
            residuals.append(float(np.linalg.norm(X_new - X)))
            X = X_new
        curves.append(np.array(residuals[1:]))
    return curves


# ---------------------------------------------------------------------- the portrait's section


def dynamics_section(dynamics: Dynamics, graphs: GraphBatch) -> dict[str, Any]:
    """The portrait's "dynamics": of all graphs or, where that takes too long, of some."""
    watched = _watched(dynamics, graphs)
    part = graphs if len(watched) == len(graphs) else graphs[watched]
    reservoir, sizes = dynamics.reservoir, np.diff(part.vertex_offsets)
    ends = embed(
        part, reservoir, tol=dynamics.tol, max_iter=dynamics.max_iter, solver="paper", layers="last"
    )
    certified = contractions(reservoir, part) < 1
    unconverged = (ends.residual >= dynamics.tol).sum(axis=1)
    at_most = max(1, min(CURVES, _ALL_CURVES // len(reservoir.layers)))
    shown = graphs_for_curves(certified, sizes, at_most)
    radii = zip(watched, part.spectral_radii, part.max_degrees, sizes, strict=True)
    return {
        "degree": short(dynamics.degree),
        "tol": dynamics.tol,
        "max_iter": dynamics.max_iter,
        "n_graphs": len(watched),
        "layers": [
            _layer_facts(dynamics, i, certified[i], ends.n_iter[i], int(unconverged[i]))
            for i in range(len(reservoir.layers))
        ],
        "curves": [
            {
                "layer": i + 1,
                "graph": int(watched[g]),
                "certified": bool(certified[i, g]),
                "residuals": [short(r) for r in curve[:_STEPS]],
            }
            for g, curves in zip(shown, residual_curves(dynamics, part[shown]), strict=True)
            for i, curve in enumerate(curves)
        ],
        "radii": [[int(g), short(rho), short(k), int(n)] for g, rho, k, n in radii],
    }


def _watched(dynamics: Dynamics, graphs: GraphBatch) -> Ints:
    """Which graphs are iterated: a random part of them, always the same."""
    layers = dynamics.reservoir.layers
    work = np.diff(graphs.vertex_offsets) * (len(layers) * dynamics.reservoir.n_units)
    order = np.random.default_rng(0).permutation(len(graphs))
    if len(graphs) <= _GRAPHS and work.sum() <= _WORK:
        return np.arange(len(graphs))
    enough = np.searchsorted(np.cumsum(work[order]), _WORK)
    return np.sort(order[: max(1, min(int(enough), _GRAPHS))])


def _layer_facts(
    dynamics: Dynamics, i: int, certified: Array, n_iter: Array, unconverged: int
) -> dict[str, Any]:
    W_H = dynamics.reservoir.layers[i].recurrent_weights
    steps, counts = np.unique(n_iter, return_counts=True)
    return {
        "layer": i + 1,
        "spectral_radius": short(spectral_radius(W_H)),
        "norm": short(sufficient_condition(W_H, 1.0)),
        "effective": short(necessary_condition(W_H, dynamics.degree)),
        "absolute_radius": short(spectral_radius(abs(W_H))),
        "certified": int(certified.sum()),
        "uncertified": int((~certified).sum()),
        "unconverged": unconverged,
        "iterations": [list(p) for p in zip(steps.tolist(), counts.tolist(), strict=True)],
    }

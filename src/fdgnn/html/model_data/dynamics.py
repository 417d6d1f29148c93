"""How the states of a reservoir converge: the paper's loop, followed step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.encoders import Encoder
from fdgnn.graphs import GraphBatch
from fdgnn.html.model_data.model import fitted, reservoir_encoder
from fdgnn.html.model_data.records import CURVES, ITERATED, STEPS, Curve, DynamicsFacts, LayerFacts
from fdgnn.html.model_data.text import short
from fdgnn.reservoir import DeepReservoir, Embedding, contractions, embed, first_drive
from fdgnn.stability import necessary_condition, spectral_radius, sufficient_condition

_CURVES_PER_LAYER = 12
_UNCERTIFIED_CURVES = 4
_WORK = 2e7  # states that are iterated, at most: vertices times neurons of all layers


@dataclass(frozen=True)
class Dynamics:
    """One reservoir and the settings of its iteration."""

    reservoir: DeepReservoir
    degree: float
    tol: float
    max_iter: int
    encoder: Encoder
    name: str = ""  # of the base model


def dynamics_of(model: Any) -> Dynamics | None:
    """Return the first reservoir among a model's base models, or None if there is none.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    TypeError
        It is not a model of this library.
    """
    found = reservoir_encoder(fitted(model))
    if found is None:
        return None
    encoder, name = cast(Any, found[0]), found[1]
    return Dynamics(
        encoder.reservoir_, encoder.degree_, encoder.tol, encoder.max_iter, encoder, name
    )


# ---------------------------------------------------------------------- curves


def graphs_for_curves(
    certified: npt.NDArray[np.bool_], sizes: Ints, at_most: int = _CURVES_PER_LAYER
) -> Ints:
    """Choose a few graphs from small to large, with some uncertified ones if there are any."""
    sure = certified.all(axis=0)
    few = min(at_most, _UNCERTIFIED_CURVES) if sure.any() else at_most
    chosen = _spread(np.flatnonzero(~sure), sizes, few)
    return np.concatenate([chosen, _spread(np.flatnonzero(sure), sizes, at_most - len(chosen))])


def _spread(among: Ints, sizes: Ints, at_most: int) -> Ints:
    ordered = among[np.argsort(sizes[among], kind="stable")]
    places = np.linspace(0, len(ordered) - 1, min(at_most, len(ordered))).round().astype(np.int64)
    return ordered[places]


def residual_curves(dynamics: Dynamics, graphs: GraphBatch) -> list[list[Floats]]:
    """Give the distances ``||X_t - X_(t-1)||_F`` of the paper's loop, for each graph and layer.

    The loop of a layer starts from zero and ends as in the paper, below `tol` or after `max_iter`
    steps. Its last states are the input of the next layer.
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


# ---------------------------------------------------------------------- the portrait's facts


def dynamics_facts(dynamics: Dynamics, graphs: GraphBatch) -> DynamicsFacts | None:
    """Follow all graphs that the reservoir can take or, where that takes too long, some of them.

    None if it can take none of them.
    """
    able = np.setdiff1d(np.arange(len(graphs)), list(dynamics.encoder.refusals(graphs)))
    if len(able) == 0:
        return None
    iterated = able[_iterated(dynamics, graphs if len(able) == len(graphs) else graphs[able])]
    part = graphs if len(iterated) == len(graphs) else graphs[iterated]
    reservoir = dynamics.reservoir
    ends = embed(
        part, reservoir, tol=dynamics.tol, max_iter=dynamics.max_iter, solver="paper", layers="last"
    )
    certified = contractions(reservoir, part) < 1
    return DynamicsFacts(
        degree=short(dynamics.degree),
        tol=dynamics.tol,
        max_iter=dynamics.max_iter,
        n_graphs=len(iterated),
        layers=[
            _layer_facts(dynamics, i, certified[i], ends) for i in range(len(reservoir.layers))
        ],
        curves=_curves(dynamics, part, certified, iterated),
        radii=[short(rho) for rho in part.spectral_radii],
    )


def _iterated(dynamics: Dynamics, graphs: GraphBatch) -> Ints:
    """Choose all graphs, or a random part that is always the same."""
    layers = dynamics.reservoir.layers
    work = np.diff(graphs.vertex_offsets) * (len(layers) * dynamics.reservoir.n_units)
    order = np.random.default_rng(0).permutation(len(graphs))
    if len(graphs) <= ITERATED and work.sum() <= _WORK:
        return np.arange(len(graphs))
    enough = np.searchsorted(np.cumsum(work[order]), _WORK)
    return np.sort(order[: max(1, min(int(enough), ITERATED))])


def _curves(
    dynamics: Dynamics, graphs: GraphBatch, certified: npt.NDArray[np.bool_], numbers: Ints
) -> list[Curve]:
    """Follow a few graphs; `numbers` are their positions in the whole dataset."""
    at_most = max(1, min(_CURVES_PER_LAYER, CURVES // len(certified)))
    shown = graphs_for_curves(certified, np.diff(graphs.vertex_offsets), at_most)
    return [
        Curve(
            layer=i + 1,
            graph=int(numbers[g]),
            certified=bool(certified[i, g]),
            residuals=[short(r) for r in curve[:STEPS]],
        )
        for g, curves in zip(shown, residual_curves(dynamics, graphs[shown]), strict=True)
        for i, curve in enumerate(curves)
    ][:CURVES]


def _layer_facts(dynamics: Dynamics, i: int, certified: Array, ends: Embedding) -> LayerFacts:
    W_H = dynamics.reservoir.layers[i].recurrent_weights
    steps, counts = np.unique(ends.n_iter[i], return_counts=True)
    return LayerFacts(
        layer=i + 1,
        spectral_radius=short(spectral_radius(W_H)),
        norm=short(sufficient_condition(W_H, 1.0)),
        effective=short(necessary_condition(W_H, dynamics.degree)),
        absolute_radius=short(spectral_radius(abs(W_H))),
        certified=int(certified.sum()),
        uncertified=int((~certified).sum()),
        unconverged=int((ends.residual[i] >= dynamics.tol).sum()),
        iterations=list(zip(steps.tolist(), counts.tolist(), strict=True)),
    )

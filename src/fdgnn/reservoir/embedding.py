"""Running graphs through a reservoir, each layer to its fixed point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats
from fdgnn.graphs import GraphBatch
from fdgnn.reservoir import engine
from fdgnn.reservoir.weights import DeepReservoir

Solver = Literal["auto", "paper"]


class Embedding(NamedTuple):
    """What running a batch through a reservoir gives.

    ``pooled[i, g]`` is the sum of layer i's states over the vertices of graph g.
    `n_iter` and `residual` say how each layer ended on each graph. For the paper's iteration they
    are its steps and the distance of the last two states. For a certified graph under
    ``solver="auto"`` they are the steps of its slowest cycle of neurons and a bound of the
    distance of that cycle to the fixed point.
    Which graphs are certified to have one fixed point, `contractions` tells.
    """

    pooled: Floats  # (n_layers, n_graphs, H), layers as asked for
    n_iter: npt.NDArray[np.int32]  # (n_layers, n_graphs), all layers
    residual: Floats  # (n_layers, n_graphs), all layers
    states: Floats | None  # (n_vertices, n_layers, H), layers as asked for


def embed(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    solver: Solver = "auto",
    layers: Sequence[int] | Literal["all", "last"] = "all",
    quotient: bool = True,
    n_jobs: int | None = None,
    keep_states: bool = False,
) -> Embedding:
    """Run every graph through all layers, each to its fixed point, and sum over vertices.

    Per layer and graph, from X = 0 (eq. 2, rows are vertices)::

        repeat  X' = tanh(U W_I^T + bias + A X W_H^T)
        until   ||X' - X||_F < tol, or max_iter steps

    The result of a graph depends on that graph alone, not on its batch or on `n_jobs`.

    Parameters
    ----------
    graphs : GraphBatch
    reservoir : DeepReservoir
    tol, max_iter : float, int
        The paper's epsilon and nu.
    solver : {"auto", "paper"}, default="auto"
        "paper" runs the loop above, literally, in float64. "auto" finds the fixed point of a
        graph that is certified to have just one by a shorter way (`fdgnn.reservoir.engine`), to
        within `tol`. It computes in float32 or, where that is too coarse, in float64. The other
        graphs get the result of the loop.
    layers : "all", "last" or sequence of int, default="all"
        The layers whose pooled states (and states) are returned. Fewer layers are faster.
    quotient : bool, default=True
        Whether "auto" computes vertices that look alike, and graphs that do, only once.
    n_jobs : int, optional
    keep_states : bool, default=False
    """
    L = reservoir.n_layers
    chosen = {"all": range(L), "last": [L - 1]}[layers] if isinstance(layers, str) else layers
    positions = [range(L)[i] for i in chosen]
    wanted = tuple(sorted(set(positions)))
    if solver == "paper":
        result = engine.iterate(graphs, reservoir, tol, max_iter, wanted, n_jobs, keep_states)
    else:
        result = engine.solve(
            graphs,
            reservoir,
            tol=tol,
            max_iter=max_iter,
            wanted=wanted,
            quotient=quotient,
            n_jobs=n_jobs,
            keep_states=keep_states,
        )
    pooled, states = result.pooled, result.states
    if positions != list(wanted):
        places = [wanted.index(i) for i in positions]
        pooled, states = pooled[places], states[:, places]
    kept = states if keep_states else None
    return Embedding(pooled, result.n_iter, result.residual, kept)

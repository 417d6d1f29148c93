"""The fast way to the fixed points: quotient graphs, a schedule, and certificates.

Graphs with ``rho(|W_H|) rho(|A|) < 1`` in every layer have one fixed point, which any order of
evaluation finds. `fdgnn.kernels.solve_graphs` computes it, in float32 where that is fine enough for
the tolerance, else in float64. For the other graphs the result is by definition the paper's: the
state after epsilon or nu steps from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, offsets_of
from fdgnn.graphs import GraphBatch, checks
from fdgnn.graphs.colors import discrete, quotients
from fdgnn.reservoir.weights import DeepReservoir
from fdgnn.threads import n_threads, over_chunks

_NO_CODES, _NO_FEATURES = np.empty(0, dtype=np.int32), np.empty((0, 1))
_NO_STATES = np.empty((0, 0, 0))
_NO_DEGREES = np.empty(0)
_ALL_BLOCKS = -1
FEW_VERTICES = 512  # of all graphs together: as many as have their states in cache
FEW_STATES = 2**20  # vertices times units, about a millisecond: threads save less than they take


class Embedding(NamedTuple):
    """Pooled states of a batch, with iterations and residuals; kernels fill these arrays.

    ``pooled[i, g]`` is the sum of layer i's states over the vertices of graph g. `n_iter` and
    `residual` are the number of iterations and the last change of each layer on each graph. For the
    paper's iteration they are its steps and the distance of the last two states. For a certified
    graph with ``solver="auto"`` they are the steps of its slowest cycle of units and a bound on the
    distance of the cycle from the fixed point. `contractions` determines which graphs are certified
    to have one fixed point.
    """

    pooled: Floats  # (n_layers, n_graphs, H), layers as asked for
    n_iter: npt.NDArray[np.int32]  # (n_layers, n_graphs), all layers
    residual: Floats  # (n_layers, n_graphs), all layers
    states: Floats  # (n_vertices, n_layers, H), layers as asked for; of length 0 if not kept


def _zeros(n_slots: int, reservoir: DeepReservoir, n_graphs: int, n_rows: int) -> Embedding:
    """Return arrays for the pooled states of `n_slots` layers, and `n_rows` states."""
    L, H = reservoir.weights.bias.shape
    return Embedding(
        np.zeros((n_slots, n_graphs, H)),
        np.zeros((L, n_graphs), dtype=np.int32),
        np.zeros((L, n_graphs)),
        np.zeros((n_rows, n_slots, H)),
    )


def contractions(reservoir: DeepReservoir, graphs: GraphBatch) -> Floats:
    """Return ``rho(|W_H|) rho(|A|)``, (n_layers, n_graphs); below 1 a graph is certified."""
    return reservoir.radii[:, None] * graphs.spectral_radii


# ---------------------------------------------------------------------- solver="auto"


def solve_counted(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: tuple[int, ...],
    quotient: bool = True,
    n_jobs: int | None = None,
    keep_states: bool = False,
) -> tuple[Embedding, tuple[int, int, int]]:
    """Embed a batch; also return how many quotients were solved in which way.

    `wanted` are the layers with pooled states that are wanted, ascending; for all else see `embed`.
    The ways are float32, float64, and the paper's steps.
    """
    from fdgnn.kernels import solve_graphs

    q = graphs.quotients if quotient else quotients(graphs.structure, discrete(graphs.structure))
    n_rows = len(q.arrays.sizes) if keep_states else 0
    out = _zeros(len(wanted), reservoir, len(graphs), n_rows)
    fits = _fits_single(graphs, reservoir)
    arguments = (
        q.bound,
        graphs.spectral_radii,
        _NO_DEGREES if fits else graphs.max_degrees,
        reservoir.largest_single_degree,
        graphs.directed,
        *_inputs(graphs, reservoir),
        reservoir.program(wanted),
        float(tol),
        int(max_iter),
        out,
    )
    few = graphs.n_vertices * reservoir.weights.bias.size <= FEW_STATES
    if few or n_threads(n_jobs) == 1:
        found = [solve_graphs(0, _ALL_BLOCKS, *arguments)]
    else:
        # The work is about the arcs of all quotients, and some for each row.
        a = q.arrays
        each = np.diff(a.indptr[a.row_offsets] + 8 * a.row_offsets)
        work = offsets_of(each[a.blocks])[a.block_offsets]
        found = over_chunks(solve_graphs, len(work) - 1, n_jobs, arguments, lambda: work)
    n_single, n_double, n_steps, n_infinite = map(sum, zip(*found, strict=True))
    if keep_states:
        out = out._replace(states=out.states[q.arrays.row_of_vertex])
    if n_steps or n_infinite:
        _check_finite(out)
    return out, (n_single, n_double, n_steps)


def _fits_single(graphs: GraphBatch, reservoir: DeepReservoir) -> bool:
    """Return whether no sum over neighbors is too large for float32, whatever the degrees are."""
    small = graphs.weights is None and graphs.n_vertices <= reservoir.largest_single_degree
    return small and reservoir.fits_single


def solve_few(
    graphs: GraphBatch,
    reservoirs: Sequence[DeepReservoir],
    wanted: Sequence[tuple[int, ...]],
    tol: float,
) -> list[Embedding | None]:
    """Embed a few graphs by several reservoirs, all in one call: most of their time is in calls.

    The reservoirs have the same labels. Results are those of `solve_counted`, or None for a
    reservoir by which not all graphs are certified.
    """
    from fdgnn.kernels import solve_few

    if not all(_fits_single(graphs, each) for each in reservoirs):
        return [None] * len(reservoirs)
    pairs = zip(reservoirs, wanted, strict=True)
    found: list[Any] = solve_few(
        graphs.structure,
        graphs.first_colors,
        *_inputs(graphs, reservoirs[0]),
        [each.program(layers) for each, layers in pairs],
        float(tol),
        graphs.directed,
    )
    return [own and Embedding(own[0], own[1], own[2], _NO_STATES) for own in found]


def _check_finite(found: Embedding) -> None:
    """Raise GraphError if a sum of states is not finite."""
    if not np.isfinite(found.pooled).all():
        checks.check_finite(found.pooled.sum(axis=(0, 2)), "the sum of its states")


def _inputs(graphs: GraphBatch, reservoir: DeepReservoir) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return the inputs of the first layer: (label codes, none) or (none, features).

    The code of a label is the column of W_I that its vertices read, or -1 if they have no input.
    """
    if reservoir.vocabulary is not None:
        codes = graphs.encode_labels(reservoir.vocabulary, blank=reservoir.blank_unknown)
        return codes, _NO_FEATURES
    if graphs.features is not None:
        return _NO_CODES, graphs.features
    return np.zeros(graphs.n_vertices, dtype=np.int32), _NO_FEATURES


# ---------------------------------------------------------------------- solver="paper"


def iterate(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: Sequence[int],
    n_jobs: int | None,
    keep_states: bool,
) -> Embedding:
    """Run the paper's loop, literally."""
    from fdgnn.kernels import iterate_layers

    n_rows = graphs.n_vertices if keep_states else 0
    out = _zeros(reservoir.n_layers, reservoir, len(graphs), n_rows)
    rows, row_of_vertex = first_drive(graphs, reservoir)
    drive = np.ascontiguousarray(rows)
    arguments = (
        graphs.structure, drive, row_of_vertex, reservoir.weights, float(tol), int(max_iter), out,
    )  # fmt: skip
    work = graphs.vertex_offsets + graphs.indptr[graphs.vertex_offsets]
    over_chunks(iterate_layers, len(graphs), n_jobs, arguments, lambda: work)
    found = out._replace(pooled=out.pooled[list(wanted)], states=out.states[:, list(wanted)])
    _check_finite(found)
    return found


def first_drive(
    graphs: GraphBatch, reservoir: DeepReservoir
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """``U W_I^T + bias`` of the first layer, as distinct rows, and the row of each vertex.

    One-hot labels never become a dense matrix: the row of a label is a column of W_I.
    """
    first, (codes, features) = reservoir.layers[0], _inputs(graphs, reservoir)
    if len(codes) < graphs.n_vertices:
        rows = np.asarray(features @ first.input_weights.T) + first.bias
        return rows, np.arange(graphs.n_vertices, dtype=np.int32)
    rows = np.concatenate([first.input_weights.T.toarray(), np.zeros((1, len(first.bias)))])
    return rows + first.bias, np.where(codes < 0, np.int32(reservoir.n_inputs), codes)


def embed(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    *,
    tol: float = 1e-3,
    max_iter: int = 50,
    solver: str = "auto",
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
        result = iterate(graphs, reservoir, tol, max_iter, wanted, n_jobs, keep_states)
    else:
        result, _ = solve_counted(
            graphs, reservoir, tol, max_iter, wanted, quotient, n_jobs, keep_states
        )
    if positions != list(wanted):
        places = [wanted.index(i) for i in positions]
        return result._replace(pooled=result.pooled[places], states=result.states[:, places])
    return result

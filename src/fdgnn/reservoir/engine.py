"""The fast way to the fixed points: quotient graphs, a schedule, and certificates.

Graphs with ``rho(|W_H|) rho(|A|) < 1`` in every layer have one fixed point, which any order of
evaluation finds. `fdgnn.kernels.solve_graphs` computes it, in float32 where that is fine enough for
the tolerance, else in float64. For the other graphs the result is by definition the paper's: the
state after epsilon or nu steps from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats, Ints, offsets_of
from fdgnn.graphs import GraphBatch, checks
from fdgnn.graphs.colors import QuotientArrays, discrete, quotients
from fdgnn.reservoir.weights import DeepReservoir
from fdgnn.threads import n_threads, over_chunks

_NO_CODES, _NO_FEATURES = np.empty(0, dtype=np.int32), np.empty((0, 1))
_NO_STATES = np.empty((0, 0, 0))
_NO_DEGREES = np.empty(0)
_ALL_BLOCKS = -1
FEW_VERTICES = 512  # of all graphs together: as many as have their states in cache
FEW_STATES = 2**20  # vertices times units, about a millisecond: threads save less than they take


class Outputs(NamedTuple):
    """Arrays that the kernels fill."""

    pooled: Floats  # (n_slots, n_graphs, H)
    n_iter: npt.NDArray[np.int32]  # (L, n_graphs)
    residual: Floats  # (L, n_graphs)
    states: Floats  # (n_rows, n_slots, H), or of length 0

    @classmethod
    def zeros(cls, n_slots: int, L: int, n: int, H: int, n_rows: int) -> Outputs:
        """Make room for the results."""
        n_iter = np.zeros((L, n), dtype=np.int32)
        states = np.zeros((n_rows, n_slots, H))
        return cls(np.zeros((n_slots, n, H)), n_iter, np.zeros((L, n)), states)


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
) -> tuple[Outputs, tuple[int, int, int]]:
    """Embed a batch; also return how many quotients were solved in which way.

    `wanted` are the layers with pooled states that are wanted, ascending; for all else see `embed`.
    The ways are float32, float64, and the paper's steps.
    """
    from fdgnn.kernels import solve_graphs

    q = graphs.quotients if quotient else quotients(graphs.structure, discrete(graphs.structure))
    L, H, n_rows = reservoir.n_layers, reservoir.n_units, 0
    if keep_states:
        n_rows = len(q.arrays.sizes)
    out = Outputs.zeros(len(wanted), L, len(graphs), H, n_rows)
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
        n_blocks = len(q.arrays.block_offsets) - 1
        found = over_chunks(solve_graphs, n_blocks, n_jobs, arguments, lambda: _costs(q.arrays))
    n_single, n_double, n_steps, n_infinite = map(sum, zip(*found, strict=True))
    if keep_states:
        out = out._replace(states=out.states[q.arrays.row_of_vertex])
    if n_steps or n_infinite:
        _finite(out)
    return out, (n_single, n_double, n_steps)


def _costs(q: QuotientArrays) -> Ints:
    """Estimate the work up to each block: the arcs of its quotients, and some for each row."""
    each = np.diff(q.indptr[q.row_offsets] + 8 * q.row_offsets)
    return offsets_of(each[q.blocks])[q.block_offsets]


def _fits_single(graphs: GraphBatch, reservoir: DeepReservoir) -> bool:
    """Return whether no sum over neighbors is too large for float32, whatever the degrees are."""
    small = graphs.weights is None and graphs.n_vertices <= reservoir.largest_single_degree
    return small and reservoir.fits_single


def solve_few(
    graphs: GraphBatch,
    reservoirs: Sequence[DeepReservoir],
    wanted: Sequence[tuple[int, ...]],
    tol: float,
) -> list[Outputs | None]:
    """Embed a few graphs by several reservoirs, all in one call: most of their time is in calls.

    The reservoirs have the same labels. Results are those of `solve_counted`, or None for a
    reservoir by which not all graphs are certified.
    """
    from fdgnn.kernels import solve_few

    if not all(_fits_single(graphs, each) for each in reservoirs):
        return [None] * len(reservoirs)
    pairs = zip(reservoirs, wanted, strict=True)
    found: list[tuple[Floats, npt.NDArray[np.int32], Floats] | None] = solve_few(
        graphs.structure,
        graphs.first_colors,
        *_inputs(graphs, reservoirs[0]),
        [each.program(layers) for each, layers in pairs],
        float(tol),
        graphs.directed,
    )
    return [None if each is None else Outputs(*each, _NO_STATES) for each in found]


def _finite(found: Outputs) -> Outputs:
    """Raise GraphError if a sum of states is not finite."""
    if not np.isfinite(found.pooled).all():
        checks.check_finite(found.pooled.sum(axis=(0, 2)), "the sum of its states")
    return found


def _inputs(graphs: GraphBatch, reservoir: DeepReservoir) -> tuple[npt.NDArray[np.int32], Floats]:
    """Return the inputs of the first layer: (label codes, none) or (none, features)."""
    if reservoir.vocabulary is not None:
        return _codes(graphs, reservoir), _NO_FEATURES
    if graphs.features is not None:
        return _NO_CODES, graphs.features
    return np.zeros(graphs.n_vertices, dtype=np.int32), _NO_FEATURES


def _codes(graphs: GraphBatch, reservoir: DeepReservoir) -> npt.NDArray[np.int32]:
    """Return the column of W_I that each vertex reads; -1 where it has no input."""
    assert reservoir.vocabulary is not None
    return graphs.encode_labels(reservoir.vocabulary, blank=reservoir.blank_unknown)


# ---------------------------------------------------------------------- solver="paper"


def iterate(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: Sequence[int],
    n_jobs: int | None,
    keep_states: bool,
) -> Outputs:
    """Run the paper's loop, literally."""
    from fdgnn.kernels import iterate_layers

    L, n = reservoir.n_layers, len(graphs)
    n_rows = graphs.n_vertices if keep_states else 0
    out = Outputs.zeros(L, L, n, reservoir.n_units, n_rows)
    rows, row_of_vertex = first_drive(graphs, reservoir)
    drive = np.ascontiguousarray(rows)
    arguments = (
        graphs.structure, drive, row_of_vertex, reservoir.weights, float(tol), int(max_iter), out,
    )  # fmt: skip
    work = graphs.vertex_offsets + graphs.indptr[graphs.vertex_offsets]
    over_chunks(iterate_layers, n, n_jobs, arguments, lambda: work)
    found = out._replace(pooled=out.pooled[list(wanted)], states=out.states[:, list(wanted)])
    return _finite(found)


def first_drive(
    graphs: GraphBatch, reservoir: DeepReservoir
) -> tuple[Floats, npt.NDArray[np.int32]]:
    """``U W_I^T + bias`` of the first layer, as distinct rows, and the row of each vertex.

    One-hot labels never become a dense matrix: the row of a label is a column of W_I.
    """
    W_I, bias = reservoir.layers[0].input_weights, reservoir.layers[0].bias
    if reservoir.vocabulary is not None:
        codes, no_input = _codes(graphs, reservoir), np.zeros((1, len(bias)))
        rows = np.concatenate([W_I.T.toarray(), no_input]) + bias
        return rows, np.where(codes < 0, np.int32(reservoir.n_inputs), codes)
    if graphs.features is not None:
        rows = np.asarray(graphs.features @ W_I.T) + bias
        return rows, np.arange(graphs.n_vertices, dtype=np.int32)
    return W_I.T.toarray() + bias, np.zeros(graphs.n_vertices, dtype=np.int32)


Solver = Literal["auto", "paper"]


class Embedding(NamedTuple):
    """Pooled states of a batch, with iterations and residuals.

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
        result = iterate(graphs, reservoir, tol, max_iter, wanted, n_jobs, keep_states)
    else:
        result, _ = solve_counted(
            graphs, reservoir, tol, max_iter, wanted, quotient, n_jobs, keep_states
        )
    pooled, states = result.pooled, result.states
    if positions != list(wanted):
        places = [wanted.index(i) for i in positions]
        pooled, states = pooled[places], states[:, places]
    kept = states if keep_states else None
    return Embedding(pooled, result.n_iter, result.residual, kept)

"""The fast way to the fixed points: quotient graphs, a schedule, and certificates.

Graphs with ``rho(|W_H|) rho(|A|) < 1`` in every layer have one fixed point, which any order of
evaluation finds. `fdgnn.kernels.solve_blocks` computes it, in float32 where that is fine enough for
the tolerance, else in float64. For the other graphs the result is by definition the paper's: the
state after epsilon or nu steps from zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.graphs import GraphBatch, checks
from fdgnn.graphs.colors import QuotientArrays, Quotients, discrete, quotients
from fdgnn.reservoir.schedule import slots_of
from fdgnn.reservoir.weights import DeepReservoir
from fdgnn.threads import n_threads, over_chunks

_NO_CODES, _NO_FEATURES = np.empty(0, dtype=np.int32), np.empty((0, 1))
_NO_STATES = np.empty((0, 0, 0))
_ALL = slice(None)
FEW_VERTICES = 512  # of all graphs together: as many as have their states in cache
FEW_STATES = 2**20  # vertices times neurons, about a millisecond: threads save less than they take
_FINER = 2.0**-29  # the rounding of float64 beside that of float32, as in ways.hpp


class Goal(NamedTuple):
    """When a component of neurons has converged on a certified graph.

    It has when the errors of all states are proven to be below half of `tol`, or when a sweep moves
    it by less than `resolution`.
    """

    contractions: Floats  # (L, n_quotients), all below 1
    tol: float
    resolution: Floats  # (n_quotients,)
    amplification: Floats  # (n_quotients,) error of the states for each unit that a sweep moves


class Outputs(NamedTuple):
    """What the kernels fill: for each quotient (or graph) and for each of its rows."""

    pooled: Floats  # (n_slots, n, H)
    n_iter: npt.NDArray[np.int32]  # (L, n)
    residual: Floats  # (L, n)
    states: Floats  # (n_rows, n_slots, H), or of length 0

    @classmethod
    def zeros(cls, n_slots: int, L: int, n: int, H: int, n_rows: int) -> Outputs:
        """Make room for the results."""
        n_iter = np.zeros((L, n), dtype=np.int32)
        states = np.zeros((n_rows, n_slots, H))
        return cls(np.zeros((n_slots, n, H)), n_iter, np.zeros((L, n)), states)

    def of_graphs(self, q: QuotientArrays) -> Outputs:
        """Give each graph what its quotient has, and each vertex what its row has."""
        found = self
        if len(self.states):
            found = found._replace(states=self.states[q.row_of_vertex])
        if len(q.graphs) == len(q.quotient_of):  # all graphs differ: quotient k is graph k
            return found
        return Outputs(
            self.pooled.take(q.quotient_of, axis=1),
            self.n_iter.take(q.quotient_of, axis=1),
            self.residual.take(q.quotient_of, axis=1),
            found.states,
        )


def contractions(reservoir: DeepReservoir, graphs: GraphBatch) -> Floats:
    """``rho(|W_H|) rho(|A|)``, (n_layers, n_graphs); below 1 a graph is certified."""
    return reservoir.radii[:, None] * graphs.spectral_radii


# ---------------------------------------------------------------------- solver="auto"


def solve(
    graphs: GraphBatch,
    reservoir: DeepReservoir,
    *,
    tol: float,
    max_iter: int,
    wanted: tuple[int, ...],
    quotient: bool,
    n_jobs: int | None,
    keep_states: bool,
) -> Outputs:
    """Embed a batch.

    Parameters
    ----------
    graphs : GraphBatch
    reservoir : DeepReservoir
    tol, max_iter, quotient, n_jobs, keep_states
        See `fdgnn.reservoir.embed`.
    wanted : tuple of int, ascending
        Layers with pooled states that are wanted.

    Returns
    -------
    Outputs
        For each graph of the batch; states (n_vertices, n_wanted, H).
    """
    q = graphs.quotients if quotient else quotients(graphs.structure, discrete(graphs.structure))
    if (
        not keep_states
        and _fits_single(graphs, reservoir)
        and (_has_few_states(graphs, reservoir) or n_threads(n_jobs) == 1)
    ):
        found = _solve_known(graphs, q, reservoir, wanted, tol)
        if found is not None:
            return found
    return _solve_each_way(graphs, q, reservoir, tol, max_iter, wanted, n_jobs, keep_states)


def _fits_single(graphs: GraphBatch, reservoir: DeepReservoir) -> bool:
    """Tell whether no sum over neighbors is too large for float32, whatever the degrees are."""
    small = graphs.weights is None and graphs.n_vertices <= reservoir.largest_single_degree
    return small and reservoir.fits_single


def _has_few_states(graphs: GraphBatch, reservoir: DeepReservoir) -> bool:
    return graphs.n_vertices * reservoir.weights.bias.size <= FEW_STATES


def _solve_known(
    graphs: GraphBatch, q: Quotients, reservoir: DeepReservoir, wanted: tuple[int, ...], tol: float
) -> Outputs | None:
    """Solve all graphs by one call; None unless all are certified and of the same precision."""
    from fdgnn.kernels import solve_known

    inputs = _inputs(graphs, reservoir)
    for single in (True, False):
        program = reservoir.program(wanted, single=single)
        found: tuple[Floats, npt.NDArray[np.int32], Floats] | None = solve_known(
            q.bound, graphs.spectral_radii, *inputs, program, float(tol), graphs.directed
        )
        if found is not None:
            return Outputs(*found, _NO_STATES)
    return None


def _solve_each_way(
    graphs: GraphBatch,
    quotients: Quotients,
    reservoir: DeepReservoir,
    tol: float,
    max_iter: int,
    wanted: tuple[int, ...],
    n_jobs: int | None,
    keep_states: bool,
) -> Outputs:
    """Solve each graph in the precision, or by the steps, that it needs, by several threads."""
    from fdgnn.kernels import DOUBLE, SINGLE, STEPS, choose_ways

    q = quotients.arrays
    fits = reservoir.fits_single
    ways, n_single, n_double, n_steps, own_bounds, resolution, amplification = choose_ways(
        graphs.spectral_radii,
        quotients.bound,
        reservoir.program(wanted, single=fits),
        float(tol),
        fits,
        graphs.directed,
    )
    if graphs.weights is not None or graphs.n_vertices > reservoir.largest_single_degree:
        large = graphs.max_degrees[q.graphs] > reservoir.largest_single_degree
        # Sums of arc weights that are too large for float32 are made in float64.
        ways = np.where(large & (ways == SINGLE), DOUBLE, ways)
        n_single, n_double, n_steps = np.bincount(ways, minlength=3).tolist()
    goal = Goal(own_bounds, float(tol), resolution, amplification)
    n_rows = len(q.sizes) if keep_states else 0
    out = Outputs.zeros(len(wanted), reservoir.n_layers, len(q.graphs), reservoir.n_units, n_rows)
    inputs = _inputs(graphs, reservoir, q.representatives)
    run = _Run(quotients, reservoir, inputs, wanted, n_jobs, out)
    if n_single:
        run.solve(_only(ways, SINGLE, n_single, q), goal, single=True)
    if n_double:
        finer = goal._replace(resolution=resolution * _FINER)
        run.solve(_only(ways, DOUBLE, n_double, q), finer, single=False)
    if n_steps:
        run.follow(np.flatnonzero(ways == STEPS), tol, max_iter)
    return _finite(out.of_graphs(q))


def solve_few(
    graphs: GraphBatch,
    reservoirs: Sequence[DeepReservoir],
    wanted: Sequence[tuple[int, ...]],
    tol: float,
) -> list[Outputs | None]:
    """Embed a few graphs by several reservoirs, all in one call: most of their time is in calls.

    The reservoirs know the same labels. Results are the same as those of `solve`, or None for a
    reservoir by which not all graphs are certified, and of the same precision.
    """
    from fdgnn.kernels import solve_few

    if not all(_fits_single(graphs, each) for each in reservoirs):
        return [None] * len(reservoirs)
    pairs = zip(reservoirs, wanted, strict=True)
    found: list[tuple[Floats, npt.NDArray[np.int32], Floats] | None] = solve_few(
        graphs.structure,
        graphs.first_colors,
        *_inputs(graphs, reservoirs[0]),
        [tuple(each.program(layers, single=s) for s in (True, False)) for each, layers in pairs],
        float(tol),
        graphs.directed,
    )
    return [None if each is None else Outputs(*each, _NO_STATES) for each in found]


class _Run(NamedTuple):
    """What both kernels need."""

    q: Quotients
    reservoir: DeepReservoir
    inputs: tuple[Array, Array]
    wanted: tuple[int, ...]
    n_jobs: int | None
    out: Outputs

    def solve(self, chosen: tuple[Ints, Ints], goal: Goal, *, single: bool) -> None:
        """Find the fixed points of certified quotients, given as blocks, in some precision."""
        from fdgnn.kernels import solve_blocks

        blocks, block_offsets = chosen
        program = self.reservoir.program(self.wanted, single=single)
        arguments = (
            block_offsets, blocks, self.q.bound, *self.inputs, program, goal, self.out,
        )  # fmt: skip
        over_chunks(
            solve_blocks,
            len(block_offsets) - 1,
            self.n_jobs,
            arguments,
            lambda: offsets_of(self._costs()[blocks])[block_offsets],
        )

    def follow(self, graphs: Ints, tol: float, max_iter: int) -> None:
        """Give the quotients `graphs` the state at which the paper's loop ends, in float64."""
        from fdgnn.kernels import follow_graphs

        reservoir = self.reservoir
        everything = tuple(range(reservoir.n_layers))
        arguments = (
            graphs, self.q.bound, *self.inputs, reservoir.program(everything, single=False),
            reservoir.trees, float(tol), int(max_iter),
            slots_of(self.wanted, reservoir.n_layers), self.out,
        )  # fmt: skip
        over_chunks(
            follow_graphs,
            len(graphs),
            self.n_jobs,
            arguments,
            lambda: offsets_of(self._costs()[graphs]),
        )

    def _costs(self) -> Ints:
        """Estimate the work of each quotient: its arcs, and some for each row."""
        q = self.q.arrays
        costs: Ints = np.diff(q.indptr[q.row_offsets] + 8 * q.row_offsets)
        return costs


def _finite(found: Outputs) -> Outputs:
    """Refuse graphs whose states have a sum that is not finite."""
    if not np.isfinite(found.pooled).all():
        checks.check_finite(found.pooled.sum(axis=(0, 2)), "the sum of its states")
    return found


def _only(ways: Ints, way: int, n: int, q: QuotientArrays) -> tuple[Ints, Ints]:
    """Give the blocks with only those n quotients that go this way."""
    if n == len(ways):
        return q.blocks, q.block_offsets
    keep = ways[q.blocks] == way
    return q.blocks[keep], np.unique(offsets_of(keep)[q.block_offsets])


def _inputs(
    graphs: GraphBatch, reservoir: DeepReservoir, vertices: Ints | slice = _ALL
) -> tuple[npt.NDArray[np.int32], Floats]:
    """What the first layer reads of each vertex: (codes, none) or (none, features)."""
    if reservoir.vocabulary is not None:
        return _codes(graphs, reservoir)[vertices], _NO_FEATURES
    if graphs.features is not None:
        return _NO_CODES, graphs.features[vertices]
    return np.zeros(graphs.n_vertices, dtype=np.int32)[vertices], _NO_FEATURES


def _codes(graphs: GraphBatch, reservoir: DeepReservoir) -> npt.NDArray[np.int32]:
    """Give the column of W_I that each vertex reads; -1 where it has no input."""
    assert reservoir.vocabulary is not None
    return graphs.encode_labels(reservoir.vocabulary, blank=reservoir.blank_unseen)


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

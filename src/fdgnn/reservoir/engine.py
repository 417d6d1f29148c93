"""The fast way to the fixed points: quotient graphs, a schedule, and certificates.

Graphs with ``rho(|W_H|) rho(|A|) < 1`` in every layer have one fixed point, which any order of
evaluation finds; they go through `fdgnn.kernels.scheduled`, in float32 where that resolves the
fixed point, else in float64. For the others the result is by definition the paper's: the state
after epsilon or nu steps from zero.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import numpy.typing as npt

from fdgnn.arrays import offsets_of
from fdgnn.graphs import Array, Floats, GraphBatch, Ints
from fdgnn.graphs.colors import Quotients, discrete, quotients
from fdgnn.reservoir.schedule import schedule_layers, trees

_LOGGER = logging.getLogger("fdgnn")

MARGIN = 1e-2  # cycles are solved this much finer than tol: trees and layers amplify their errors
LARGEST = 1e30  # of a weight for which states may be computed in float32
ULPS = 8  # by which rounding may seem to move a state, near 1, in a sweep that moves nothing


class Weights(NamedTuple):
    """All layers' weights, C entries in each row, in the precision of the states."""

    first_sources: npt.NDArray[np.int32]  # (H, C0)
    first_values: Array
    in_sources: npt.NDArray[np.int32]  # (L - 1, H, C)
    in_values: Array
    rec_sources: npt.NDArray[np.int32]  # (L, H, C)
    rec_values: Array
    bias: Array  # (L, H)

    def astype(self, dtype: npt.DTypeLike) -> Weights:
        """Give the same weights in another precision."""
        return Weights(*(a if a.dtype == np.int32 else a.astype(dtype) for a in self))

    def fit_float32(self) -> bool:
        """Not where arcs weigh next to nothing: W_H is scaled by 1 / k, and k is their sum."""
        floats = (a for a in self if a.dtype != np.int32)
        return all(float(np.abs(a).max(initial=0.0)) < LARGEST for a in floats)


class Outputs(NamedTuple):
    """What the kernels fill, for each distinct quotient graph."""

    pooled: Floats  # (n_slots, n, H), at the place of the quotient's first graph
    n_iter: npt.NDArray[np.int32]  # (L, n)
    residual: Floats  # (L, n)
    states: Floats  # (n_rows, n_slots, H), or of length 0

    @classmethod
    def zeros(cls, n_slots: int, L: int, n: int, H: int, n_rows: int) -> Outputs:
        """Make room for the results."""
        n_iter = np.zeros((L, n), dtype=np.int32)
        states = np.zeros((n_rows, n_slots, H))
        return cls(np.zeros((n_slots, n, H)), n_iter, np.zeros((L, n)), states)


def solve(
    graphs: GraphBatch,
    weights: Weights,
    codes: npt.NDArray[np.int32] | None,
    bounds: Floats,
    *,
    tol: float,
    max_iter: int,
    wanted: Sequence[int],
    quotient: bool,
    n_jobs: int | None,
    keep_states: bool,
) -> Outputs:
    """Embed a batch.

    Parameters
    ----------
    graphs : GraphBatch
    weights : Weights
        In float64.
    codes : (n_vertices,) int32 or None
        Each vertex' label, where the first layer reads labels.
    bounds : (L, n_graphs) float64
        ``rho(|W_H|) rho(|A|)``; below 1, the graph is certified.
    tol, max_iter, quotient, n_jobs, keep_states
        See `fdgnn.reservoir.embed`.
    wanted : sequence of int
        Layers whose pooled states are wanted.

    Returns
    -------
    Outputs
        For each graph of the batch; states (n_vertices, n_wanted, H).
    """
    q = graphs.quotients if quotient else quotients(graphs, discrete(graphs))
    L, H = weights.bias.shape
    contractions = bounds[:, q.graphs]
    out = Outputs.zeros(len(wanted), L, len(graphs), H, len(q.sizes) if keep_states else 0)
    certified = np.asarray((contractions < 1).all(axis=0))
    gap = np.where(certified, 1 - contractions.max(axis=0), 1.0)
    single = certified & (_resolution(graphs, q, np.float32) < 0.5 * tol * gap)
    single &= weights.fit_float32()
    # Where A is not symmetric the bound of `_freeze` need not hold in this norm.
    target = 0.0 if graphs.directed else tol * MARGIN
    run = _Run(q, weights, _inputs(graphs, codes, q), wanted, n_jobs, out)
    for chosen, dtype in ((single, np.float32), (certified & ~single, np.float64)):
        if chosen.any():
            run.solve(chosen, contractions, target, _resolution(graphs, q, dtype), dtype)
    if not certified.all():
        run.follow(~certified, tol, max_iter)
    repeated = np.flatnonzero(q.graphs[q.quotient_of] != np.arange(len(graphs)))
    out.pooled[:, repeated] = out.pooled[:, q.graphs[q.quotient_of[repeated]]]
    return Outputs(
        out.pooled,
        out.n_iter[:, q.quotient_of],
        out.residual[:, q.quotient_of],
        out.states[q.row_of_vertex] if keep_states else out.states,
    )


def _resolution(graphs: GraphBatch, q: Quotients, dtype: npt.DTypeLike) -> Floats:
    """How far the states of each quotient's graph may seem to move by rounding alone."""
    sizes = np.diff(graphs.vertex_offsets)[q.graphs]
    return ULPS * float(np.finfo(dtype).eps) * np.sqrt(sizes)


class _Run(NamedTuple):
    """What both kernels need."""

    q: Quotients
    weights: Weights
    inputs: tuple[Array, Array]
    wanted: Sequence[int]
    n_jobs: int | None
    out: Outputs

    @property
    def slots(self) -> Ints:
        """Each layer's place in the output, or -1."""
        slots = np.full(len(self.weights.bias), -1)
        slots[list(self.wanted)] = np.arange(len(self.wanted))
        return slots

    @property
    def costs(self) -> Ints:
        """Estimate the work of each quotient: its arcs, and some for each row."""
        costs: Ints = np.diff(self.q.indptr[self.q.row_offsets] + 8 * self.q.row_offsets)
        return costs

    def solve(
        self,
        chosen: npt.NDArray[np.bool_],
        contractions: Floats,
        target: float,
        resolution: Floats,
        dtype: npt.DTypeLike,
    ) -> None:
        """Find the fixed points of certified graphs, in some precision."""
        from fdgnn.kernels.scheduled import solve_blocks

        q, weights = self.q, self.weights.astype(dtype)
        blocks, block_offsets = _only(chosen, q.blocks, q.block_offsets)
        schedule = schedule_layers(weights.rec_sources, weights.in_sources, self.wanted)
        arguments = (
            block_offsets, blocks, q, *self.inputs, weights, schedule, contractions, target,
            resolution, self.slots, *self.out,
        )  # fmt: skip
        work = offsets_of(self.costs[blocks])[block_offsets]
        over_chunks(solve_blocks, work, self.n_jobs, arguments)

    def follow(self, chosen: npt.NDArray[np.bool_], tol: float, max_iter: int) -> None:
        """Give other graphs the state of the paper's loop, in float64."""
        from fdgnn.kernels.trajectory import follow_graphs

        q, weights = self.q, self.weights
        schedule = schedule_layers(weights.rec_sources, weights.in_sources, range(len(self.slots)))
        core, heights = trees(weights.rec_sources, schedule)
        graphs = np.flatnonzero(chosen)
        arguments = (
            graphs, q, *self.inputs, weights, schedule, core, heights, float(tol), int(max_iter),
            self.slots, *self.out,
        )  # fmt: skip
        over_chunks(follow_graphs, offsets_of(self.costs[graphs]), self.n_jobs, arguments)


def _only(chosen: npt.NDArray[np.bool_], blocks: Ints, block_offsets: Ints) -> tuple[Ints, Ints]:
    """Leave the quotients that are not chosen out of the blocks."""
    if chosen.all():
        return blocks, block_offsets
    keep = chosen[blocks]
    kept, cuts = blocks[keep], np.unique(np.concatenate([[0], np.cumsum(keep)])[block_offsets])
    for array in (kept, cuts):  # as the batch's own are: a kernel is compiled for one kind
        array.setflags(write=False)
    return kept, cuts


def _inputs(
    graphs: GraphBatch, codes: npt.NDArray[np.int32] | None, q: Quotients
) -> tuple[npt.NDArray[np.int32], Floats]:
    """What the first layer reads in each row: (codes, none) or (none, features)."""
    none = np.empty((0, 1))
    if codes is not None:
        return codes[q.representatives], none
    if graphs.features is not None:
        return np.empty(0, dtype=np.int32), graphs.features[q.representatives]
    return np.zeros(len(q.sizes), dtype=np.int32), none


def over_chunks(kernel: Any, work: Array, n_jobs: int | None, arguments: Sequence[Any]) -> None:
    """Call ``kernel(first, last, *arguments)`` on ranges of items of about equal work.

    ``work[i]`` is the work of all items before i; the last entry is the whole.
    """
    _tell_compilation(kernel)
    n_items = len(work) - 1
    n_threads = min(joblib.effective_n_jobs(n_jobs), n_items)
    if n_threads <= 1:
        kernel(0, n_items, *arguments)
        return
    n_chunks = min(8 * n_threads, n_items)  # small ones, so that threads end together
    cuts = np.searchsorted(work, np.linspace(0, work[-1], n_chunks + 1))
    cuts[-1] = n_items
    with ThreadPoolExecutor(n_threads) as pool:
        jobs = [pool.submit(kernel, a, b, *arguments) for a, b in pairwise(cuts) if a < b]
        for job in jobs:
            job.result()


@cache
def _tell_compilation(kernel: Any) -> None:
    """Say it, once, when the first use will take longer than all others."""
    kept = Path(kernel.stats.cache_path).glob(f"*.{kernel.__name__}-*.nbi")
    if not any(kept):
        _LOGGER.warning("fdgnn compiles %s for this machine: some seconds, once", kernel.__name__)

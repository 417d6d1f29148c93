"""From the wiring of a reservoir to the order in which its neurons are evaluated.

At a fixed point ``x_h = tanh(d_h + sum_s W_H[h, s] A x_s)``: neuron h needs the final states of
the neurons it reads, and nothing else. So the strongly connected components of W_H are taken in
topological order. A neuron that does not read itself, directly or around a cycle, is evaluated
**once**. Only the other components have dynamics, and each is iterated on its own, by
Gauss-Seidel sweeps. With one connection per neuron these components are plain cycles: one sweep
around a cycle of m neurons is m steps of its dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Ints, frozen

# Steps remembered for each neuron, on average: drawn wirings need about ten. Long chains, which a
# file can have, would need as many as they have neurons.
MOST_ROWS = 64


class Schedule(NamedTuple):
    """The order of evaluation of a stack of layers; the arrays of all layers lie end to end.

    Attributes
    ----------
    order : (n_evaluated,) int64
        Neurons in the order of evaluation, without those that nobody needs.
    components : (n_components + 1,) int64
        Component c has the neurons ``order[components[c]:components[c + 1]]``.
    layers : (n_layers + 1,) int64
        Layer i has the components ``layers[i]`` up to ``layers[i + 1]``.
    n_checked : (n_components,) int64
        How many neurons, from the first of the component on, show whether it has converged: 0
        for a neuron that is evaluated once, 1 for a cycle, all for a denser component.
    period : (n_components,) int64
        Steps of the dynamics in one sweep, as far as the contraction goes: m for a cycle.
    summed : (n_layers, H) bool
        Neurons with a sum over neighbors that another neuron reads.
    kept : (n_layers, H) bool
        Neurons that the next layer reads.
    slots : (n_layers,) int64
        The place of each layer among the layers asked for, or -1.
    """

    order: npt.NDArray[np.int64]
    components: npt.NDArray[np.int64]
    layers: npt.NDArray[np.int64]
    n_checked: npt.NDArray[np.int64]
    period: npt.NDArray[np.int64]
    summed: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]
    slots: npt.NDArray[np.int64]


class Trees(NamedTuple):
    """The neurons of each layer: the core, which has dynamics, and the trees that follow it.

    Attributes
    ----------
    core : (n_layers, H) bool
        Neurons of iterated components, and all that these read.
    heights : (n_layers, H) int64
        The largest number of neurons outside the core that the state of a neuron travels over.
    first_rows : (n_layers, H) int64
        Where the earlier steps of a neuron begin if those of all neurons lie end to end.
    window : int
        How many earlier steps a neuron of the core has there; another one has its height + 1.
    n_rows : int
        How many steps of all neurons there are, in the layer that has most.
    """

    core: npt.NDArray[np.bool_]
    heights: npt.NDArray[np.int64]
    first_rows: npt.NDArray[np.int64]
    window: int
    n_rows: int


def schedule_layers(
    recurrent_sources: Sequence[Array] | Array,
    input_sources: Sequence[Array] | Array,
    wanted: Sequence[int],
) -> Schedule:
    """Schedule a stack of layers.

    Parameters
    ----------
    recurrent_sources : sequence of (H, C) int, one per layer
        ``recurrent_sources[i][h]`` are the neurons of layer i that its neuron h reads.
    input_sources : sequence of (H, C) int, one for each layer but the first
        ``input_sources[i - 1][h]`` are the neurons of layer i - 1 that neuron h of layer i reads.
    wanted : sequence of int, ascending
        The layers whose states are wanted. In the others only what is read above is evaluated.
    """
    from fdgnn.kernels import order_layers

    sources = np.ascontiguousarray(recurrent_sources, dtype=np.int32)
    below = np.ascontiguousarray(input_sources, dtype=np.int32)
    L, H, _ = sources.shape
    summed, kept = np.zeros((2, L, H), dtype=np.bool_)
    slots = slots_of(wanted, L)
    order = order_layers(sources, below, slots >= 0, summed, kept)
    return Schedule(*frozen(*order, summed, kept, slots))


def slots_of(wanted: Sequence[int], n_layers: int) -> Ints:
    """Give the place of each layer among those that are wanted, or -1: (n_layers,)."""
    places = {layer: place for place, layer in enumerate(wanted)}
    return np.array([places.get(i, -1) for i in range(n_layers)], dtype=np.int64)


def _rows(core: npt.NDArray[np.bool_], heights: Ints) -> tuple[int, Ints]:
    """Steps of the core that are remembered, and where those of each neuron end."""
    window = int(heights.max()) + 3
    return window, np.cumsum(np.where(core, window, heights + 1), axis=1)


def trees(recurrent_sources: Sequence[Array] | Array, schedule: Schedule) -> Trees:
    """Split the neurons of each layer into the core and the trees that hang on it.

    `schedule` evaluates all layers.
    """
    from fdgnn.kernels import tree_heights

    core = np.empty(schedule.summed.shape, dtype=np.bool_)
    heights = np.empty(core.shape, dtype=np.int64)
    for i, sources in enumerate(recurrent_sources):
        a, b = schedule.layers[i : i + 2]
        tree_heights(
            np.array(sources, dtype=np.int32),
            schedule.order,
            schedule.components[a : b + 1],
            schedule.n_checked[a:b],
            core[i],
            heights[i],
        )
    window, ends = _rows(core, heights)
    while ends.max() > MOST_ROWS * len(ends[0]):
        tall = heights.max(axis=1) == heights.max()
        core[tall], heights[tall] = True, 0  # as if they had dynamics: the result is the same
        window, ends = _rows(core, heights)
    first_rows = np.concatenate([np.zeros((len(ends), 1), dtype=np.int64), ends[:, :-1]], axis=1)
    return Trees(core, heights, first_rows, window, int(ends.max()))

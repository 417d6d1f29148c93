"""From a reservoir's wiring to the order in which its neurons are evaluated.

At a fixed point ``x_h = tanh(d_h + sum_s W_H[h, s] A x_s)``, so neuron h needs the final states
of the neurons it reads, and nothing else. Over the strongly connected components of W_H, in
topological order, a neuron that does not read itself, directly or around a cycle, is evaluated
**once**; only the other components have dynamics, and each is iterated on its own, by
Gauss-Seidel sweeps. With one connection a neuron these components are plain cycles: one sweep
around a cycle of m neurons is m steps of its dynamics.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, offsets_of


class Schedule(NamedTuple):
    """The evaluation order of a stack of layers, all layers' arrays laid end to end.

    Attributes
    ----------
    order : (n_evaluated,) int32
        Neurons in order of evaluation; those that nobody needs are left out.
    components : (n_components + 1,) int64
        Component c has the neurons ``order[components[c]:components[c + 1]]``.
    layers : (n_layers + 1,) int64
        Layer i has the components ``layers[i]`` up to ``layers[i + 1]``.
    n_checked : (n_components,) int64
        How many neurons, from the component's first, tell whether it has converged: 0 for a
        neuron that is evaluated once, 1 for a cycle, all for a denser component.
    period : (n_components,) int64
        Steps of the dynamics in one sweep, as far as the contraction goes: m for a cycle.
    summed : (n_layers, H) bool
        Neurons whose sum over neighbors somebody reads.
    kept : (n_layers, H) bool
        Neurons that the next layer reads.
    """

    order: npt.NDArray[np.int32]
    components: npt.NDArray[np.int64]
    layers: npt.NDArray[np.int64]
    n_checked: npt.NDArray[np.int64]
    period: npt.NDArray[np.int64]
    summed: npt.NDArray[np.bool_]
    kept: npt.NDArray[np.bool_]


def schedule_layers(
    recurrent_sources: Sequence[Array] | Array,
    input_sources: Sequence[Array] | Array,
    pooled_layers: Collection[int],
) -> Schedule:
    """Schedule a stack of layers.

    Parameters
    ----------
    recurrent_sources : sequence of (H, C) int, one a layer
        ``recurrent_sources[i][h]`` are the neurons of layer i that its neuron h reads.
    input_sources : sequence of (H, C) int, one for each layer but the first
        ``input_sources[i - 1][h]`` are the neurons of layer i - 1 that neuron h of layer i reads.
    pooled_layers : collection of int
        Layers whose states are wanted; in the others only what is read above is evaluated.
    """
    from fdgnn.kernels.wiring import needed_components, strong_components

    L, (H, C) = len(recurrent_sources), recurrent_sources[0].shape
    summed, kept = np.zeros((2, L, H), dtype=np.bool_)
    parts = []
    above = np.zeros(H, dtype=np.bool_)
    for i in reversed(range(L)):
        sources = np.ascontiguousarray(recurrent_sources[i], dtype=np.int32)
        if i < L - 1:
            kept[i, input_sources[i][above].ravel()] = True
        needed = np.ones(H, dtype=np.bool_) if i in pooled_layers else kept[i].copy()
        order, offsets = strong_components(np.arange(0, H * C + 1, C), sources.ravel())
        parts.append(needed_components(sources, order, offsets, needed))
        summed[i, sources[needed].ravel()] = True
        above = needed
    orders, offsets, n_checked, periods = zip(*reversed(parts), strict=True)
    return Schedule(
        order=np.concatenate(orders),
        components=offsets_of(np.concatenate([np.diff(o) for o in offsets])),
        layers=offsets_of([len(p) for p in periods]),
        n_checked=np.concatenate(n_checked),
        period=np.concatenate(periods),
        summed=summed,
        kept=kept,
    )


def trees(
    recurrent_sources: Sequence[Array] | Array, schedule: Schedule
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Part each layer's neurons into the core, which has dynamics, and trees that follow it.

    Returns
    -------
    core : (n_layers, H) bool
        Neurons of iterated components, and all that these read.
    heights : (n_layers, H) int64
        Over how many neurons outside the core a neuron's state travels on at most.
    """
    from fdgnn.kernels.wiring import tree_heights

    parts = []
    for i, sources in enumerate(recurrent_sources):
        a, b = schedule.layers[i : i + 2]
        parts.append(
            tree_heights(
                np.ascontiguousarray(sources, dtype=np.int32),
                schedule.order,
                schedule.components[a : b + 1],
                schedule.n_checked[a:b],
            )
        )
    core, heights = zip(*parts, strict=True)
    return np.array(core), np.array(heights)

"""Schedules: every neuron after what it reads, and nothing evaluated that nobody needs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdgnn.reservoir.weights import schedule_layers, trees


def wiring(H, C, seed=0, n_layers=1):
    """Draw C sources for each of H neurons, (n_layers, H, C), without repeats in a row."""
    rng = np.random.default_rng(seed)
    rows = [rng.permutation(H)[:C] for _ in range(n_layers * H)]
    return np.array(rows, dtype=np.int32).reshape(n_layers, H, C)


def components_of(schedule, i=0):
    return [
        schedule.order[schedule.components[c] : schedule.components[c + 1]].tolist()
        for c in range(schedule.layers[i], schedule.layers[i + 1])
    ]


@given(st.integers(1, 30), st.integers(1, 3), st.integers(0, 1000))
def test_components_are_networkxs_in_topological_order(H, C, seed):
    sources = wiring(H, min(C, H), seed)
    schedule = schedule_layers(sources, sources[:0], [0])
    reads = nx.DiGraph((h, int(s)) for h in range(H) for s in sources[0, h])
    found = components_of(schedule)
    expected = nx.strongly_connected_components(reads)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected))
    place = {h: c for c, neurons in enumerate(found) for h in neurons}
    assert all(place[s] <= place[h] for h, s in reads.edges)


@given(st.integers(1, 40), st.integers(0, 1000))
def test_with_one_connection_each_cycle_is_swept_in_its_own_order(H, seed):
    sources = wiring(H, 1, seed)
    schedule = schedule_layers(sources, sources[:0], [0])
    for c, neurons in enumerate(components_of(schedule)):
        if schedule.n_checked[c]:
            assert schedule.period[c] == len(neurons)
            assert [sources[0, h, 0] for h in neurons] == [neurons[-1], *neurons[:-1]]
        else:
            assert len(neurons) == 1
            assert sources[0, neurons[0], 0] != neurons[0]


def test_a_dense_component_is_checked_as_a_whole():
    sources = np.array([[[1, 2], [0, 2], [0, 1], [0, 1]]], dtype=np.int32)
    schedule = schedule_layers(sources, sources[:0], [0])
    assert [sorted(c) for c in components_of(schedule)] == [[0, 1, 2], [3]]
    assert schedule.n_checked.tolist() == [3, 0]
    assert schedule.period.tolist() == [1, 1]


@given(st.integers(1, 20), st.integers(1, 2), st.integers(0, 1000), st.booleans())
def test_only_what_the_wanted_layers_depend_on_is_evaluated(H, C, seed, both):
    C = min(C, H)
    recurrent, inputs = wiring(H, C, seed, 2), wiring(H, C, seed + 1, 1)
    schedule = schedule_layers(recurrent, inputs, [0, 1] if both else [1])
    reads = nx.DiGraph(
        ((i, h), (i, int(s))) for i in (0, 1) for h in range(H) for s in recurrent[i, h]
    )
    reads.add_edges_from(((1, h), (0, int(s))) for h in range(H) for s in inputs[0, h])
    wanted = {(1, h) for h in range(H)} | ({(0, h) for h in range(H)} if both else set())
    needed = wanted.union(*(nx.descendants(reads, node) for node in wanted))
    for i in (0, 1):
        evaluated = {h for neurons in components_of(schedule, i) for h in neurons}
        assert evaluated == {h for j, h in needed if j == i}
    read_above = {int(s) for s in inputs.ravel()}
    assert set(np.flatnonzero(schedule.kept[0])) == read_above
    assert not schedule.kept[1].any()


@given(st.integers(1, 30), st.integers(1, 2), st.integers(0, 1000))
def test_trees_hang_on_a_core_that_reads_only_itself(H, C, seed):
    sources = wiring(H, min(C, H), seed)
    schedule = schedule_layers(sources, sources[:0], [0])
    found = trees(sources, schedule)
    core, heights = found.core[0], found.heights[0]
    assert found.n_rows == np.where(core, found.window, heights + 1).sum()
    for h in range(H):
        for s in sources[0, h]:
            if core[h]:
                assert core[s]
            else:
                assert heights[s] >= heights[h] + 1


@pytest.mark.parametrize(("H", "share"), [(50, 0.5), (500, 0.15)])
def test_few_neurons_have_dynamics(H, share):
    sources = wiring(H, 1, seed=3)
    schedule = schedule_layers(sources, sources[:0], [0])
    n_iterated = np.diff(schedule.components)[schedule.n_checked > 0].sum()
    assert 0 < n_iterated < share * H

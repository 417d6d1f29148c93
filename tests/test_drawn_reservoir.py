"""A drawn reservoir as one object: what it computes once, how it travels, what it refuses."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from fdgnn import Graph, GraphBatch, kernels
from fdgnn.datasets import make_cliques, make_random_graphs
from fdgnn.exceptions import ModelFileError
from fdgnn.expansion import unscaled_projection
from fdgnn.reservoir import (
    DeepReservoir,
    ReservoirConfig,
    Weights,
    _draw_cycles,
    _draw_wiring,
    contractions,
    draw_reservoir,
    embed,
)
from fdgnn.seeds import Matrix, seed_sequence, stream
from fdgnn.threads import over_chunks

GRAPHS = make_random_graphs(12, random_state=0)
LABELS = len(GRAPHS.label_values)


def drawn(graphs=GRAPHS, degree=4.0, **options):
    config = ReservoirConfig(**{"n_layers": 3, "n_units": 9, **options})
    return draw_reservoir(config, graphs, degree, seed_sequence(0))


def taken(arrays, n_layers=3, n_connections=1, **options):
    config = ReservoirConfig(n_layers=n_layers, n_units=9, n_connections=n_connections, **options)
    return DeepReservoir.from_arrays(config, arrays, LABELS, tuple(GRAPHS.label_values.tolist()))


# ---------------------------------------------------------------------- drawn


WAYS = _draw_cycles, _draw_wiring
SEEDS = [0, 1, 2**32, 2**70, [1, 2, 3], np.random.SeedSequence(5, spawn_key=(2**40, 3))]


@pytest.mark.parametrize("state", SEEDS, ids=range(len(SEEDS)))
@pytest.mark.parametrize(("n_units", "n_inputs"), [(50, 7), (1, 1), (2**16 + 1, 1000)])
def test_the_kernel_draws_what_numpy_draws(state, n_units, n_inputs):
    seed = seed_sequence(state)
    config = ReservoirConfig(n_layers=3, n_units=n_units)
    ours, numpys = (draw(config, n_inputs, seed, 3.7) for draw in WAYS)
    for name, one, other in zip(Weights._fields, ours, numpys, strict=True):
        assert one.dtype == other.dtype, name
        np.testing.assert_array_equal(one, other, err_msg=name)
    W_phi = unscaled_projection(seed, 5, n_units)
    rng = stream(seed, 0, Matrix.PROJECTION)
    np.testing.assert_array_equal(W_phi, rng.uniform(-1, 1, size=W_phi.shape))


def test_numbers_below_a_bound_are_drawn_again_as_numpy_does():
    """Of these draws a quarter is thrown away, so that each way through is gone."""
    config = ReservoirConfig(n_layers=1, n_units=2000)
    ours, numpys = (d(config, 2**30 + 7, seed_sequence(3), 3.7) for d in WAYS)
    np.testing.assert_array_equal(ours.first_sources, numpys.first_sources)


# ---------------------------------------------------------------------- computed once


def test_radii_and_schedules_are_computed_once(monkeypatch):
    calls = []

    def counted(function):
        def call(*args):
            calls.append(function.__name__)
            return function(*args)

        return call

    for name in ("weight_facts", "bind_program"):
        monkeypatch.setattr(kernels, name, counted(getattr(kernels, name)))
    graphs = make_cliques(range(3, 12))  # some certified, some not
    reservoir = drawn(graphs)
    for _ in range(3):
        embed(graphs, reservoir, layers="last")
    certified = (contractions(reservoir, graphs) < 1).all(axis=0)
    assert 0 < certified.sum() < len(graphs)
    assert sorted(calls) == ["bind_program", "weight_facts"]
    embed(graphs, reservoir, layers="all")
    embed(graphs, reservoir, layers=[2, 0])
    embed(graphs, reservoir, layers=[0, 2])
    assert calls.count("bind_program") == 3


def test_layers_have_the_stacked_weights():
    reservoir = drawn(n_connections=2)
    assert reservoir.n_layers == len(reservoir.layers) == 3
    for i, layer in enumerate(reservoir.layers):
        own = reservoir.weights.rec_values[i].ravel()
        np.testing.assert_array_equal(layer.recurrent_weights.data, own)
        assert layer.input_weights.shape == (9, 9 if i else LABELS)


def test_nothing_in_it_can_be_changed():
    reservoir = drawn()
    for target in (reservoir.layers[1].bias, reservoir.weights.bias, reservoir.radii):
        with pytest.raises(ValueError, match="read-only"):
            target[0] = 1.0
    with pytest.raises(AttributeError):
        reservoir.n_inputs = 3


# ---------------------------------------------------------------------- copies and files


@pytest.mark.parametrize(
    "again",
    [
        copy.copy,
        copy.deepcopy,
        lambda r: pickle.loads(pickle.dumps(r)),
        lambda r: taken({name: array.copy() for name, array in r.arrays().items()}),
    ],
)
def test_a_copy_gives_the_same_bits_and_is_read_only(again):
    reservoir = drawn()
    before = embed(GRAPHS, reservoir).pooled  # what is kept must not get in the way
    other = again(reservoir)
    assert other.vocabulary == reservoir.vocabulary
    np.testing.assert_array_equal(embed(GRAPHS, other).pooled, before)
    assert not any(array.flags.writeable for array in other.weights)


@pytest.mark.parametrize("n_connections", [1, 3])
@pytest.mark.parametrize("n_layers", [1, 3])
def test_arrays_go_out_and_come_in(n_layers, n_connections):
    reservoir = drawn(n_layers=n_layers, n_connections=n_connections)
    other = taken(reservoir.arrays(), n_layers, n_connections)
    for name, array in reservoir.arrays().items():
        np.testing.assert_array_equal(other.arrays()[name], array)


def changed(name, change):
    arrays = {key: array.copy() for key, array in drawn().arrays().items()}
    arrays[name] = change(arrays[name])
    return arrays


def with_entry(value):
    def change(array):
        array.flat[-1] = value
        return array

    return change


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (changed("bias", with_entry(np.nan)), "bias has entries that are not finite"),
        (changed("rec_values", with_entry(np.inf)), "rec_values has entries that are not finite"),
        (changed("rec_sources", with_entry(9)), "rec_sources has sources"),
        (changed("first_sources", with_entry(LABELS)), "first_sources has sources"),
        (changed("in_sources", with_entry(-1)), "in_sources has sources"),
        (changed("bias", lambda a: a[:, 1:]), r"bias must be float64 of shape \(3, 9\)"),
        (changed("bias", lambda a: a.astype(np.float32)), "found float32"),
        (changed("in_sources", lambda a: a.astype(np.int64)), "found int64"),
        ({k: v for k, v in drawn().arrays().items() if k != "bias"}, "bias must be .*found none"),
        ({**drawn().arrays(), "extra": np.zeros(1)}, "unexpected array 'extra'"),
    ],
)
def test_arrays_that_would_mislead_a_kernel_are_refused(arrays, message):
    with pytest.raises(ModelFileError, match=message):
        taken(arrays)


def test_sources_must_not_repeat_in_a_row():
    arrays = {k: v.copy() for k, v in drawn(n_connections=2).arrays().items()}
    arrays["rec_sources"][0, 0] = 4
    with pytest.raises(ModelFileError, match="rec_sources has sources that do not ascend"):
        taken(arrays, n_connections=2)


# ---------------------------------------------------------------------- one graph


@pytest.mark.parametrize("kind", ["labels", "features", "weights", "plain"])
def test_one_graph_alone_gives_the_bits_of_the_batch(kind):
    rng = np.random.default_rng(0)
    graphs = []
    for g in make_random_graphs(8, random_state=1):
        extra = {"labels": g.labels} if kind == "labels" else {}
        if kind == "features":
            extra = {"features": rng.normal(size=(g.n_vertices, 3))}
        if kind == "weights":
            extra = {"weights": np.full(g.edge_index.shape[1], 0.5)}
        graphs.append(Graph(g.edge_index, g.n_vertices, **extra))
    batch = GraphBatch.from_graphs([*graphs, graphs[0]])
    reservoir = drawn(batch)
    together = embed(batch, reservoir, keep_states=True)
    for g in range(len(batch)):
        alone = embed(batch[[g]], reservoir, keep_states=True, n_jobs=2)
        a, b = batch.vertex_offsets[g : g + 2]
        np.testing.assert_array_equal(alone.states, together.states[a:b])
        for one, many in zip(alone[:3], together[:3], strict=True):
            np.testing.assert_array_equal(one[:, 0], many[:, g])


def test_one_item_starts_no_thread(monkeypatch):
    from fdgnn import threads

    class Kernel:
        __name__ = "kernel"

        def __call__(self, first, last):
            seen.append((first, last))

    seen = []
    monkeypatch.setattr(threads, "ThreadPoolExecutor", None)
    over_chunks(Kernel(), 1, 8, (), lambda: np.array([0, 5]))
    over_chunks(Kernel(), 5, None, (), lambda: np.arange(6))
    assert seen == [(0, 1), (0, 5)]

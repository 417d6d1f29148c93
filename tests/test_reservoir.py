"""Drawing the weights, and the paper's loop against the oracle."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from fdgnn import Graph, GraphBatch
from fdgnn.datasets import make_cycles, make_random_graphs
from fdgnn.exceptions import UnknownLabelError
from fdgnn.reservoir import ReservoirConfig, draw_reservoir, embed
from fdgnn.seeds import child_seed, seed_sequence
from fdgnn.stability import spectral_radius
from strategies import batches

SMALL = ReservoirConfig(n_layers=2, n_units=8)


def reservoir_for(graphs, config=SMALL, seed=0):
    return draw_reservoir(config, graphs, graphs.average_degree or 1.0, seed_sequence(seed))


def assert_equals_oracle(graphs, reservoir, **options):
    result = embed(graphs, reservoir, solver="paper", keep_states=True, **options)
    eps, max_iter = options.get("tol", 1e-3), options.get("max_iter", 50)
    for g, graph in enumerate(graphs):
        states, steps, distances = reference.embed_graph(
            graph, reservoir.layers, reservoir.vocabulary, eps, max_iter
        )
        first, last = graphs.vertex_offsets[g : g + 2]
        ours = result.states[first:last].transpose(1, 0, 2)
        np.testing.assert_allclose(ours, states, atol=1e-5)
        np.testing.assert_allclose(result.pooled[:, g], states.sum(axis=1), atol=1e-5)
        np.testing.assert_array_equal(result.n_iter[:, g], steps)
        np.testing.assert_allclose(result.residual[:, g], distances, atol=1e-9)


@given(batches(), st.integers(1, 3), st.integers(0, 3))
def test_kernel_equals_oracle_on_any_graph(graphs, n_connections, seed):
    config = ReservoirConfig(n_layers=2, n_units=6, n_connections=n_connections)
    assert_equals_oracle(graphs, reservoir_for(graphs, config, seed))


def test_kernel_equals_oracle_on_hundreds_of_graphs():
    graphs = make_random_graphs(200, random_state=0)
    assert_equals_oracle(graphs, reservoir_for(graphs, ReservoirConfig(n_layers=2, n_units=5)))


@pytest.mark.parametrize("n_connections", [1, 3])
def test_vertices_with_unseen_labels_have_no_input(n_connections):
    known, new = (
        make_random_graphs(30, n_labels=3, random_state=0),
        make_random_graphs(30, n_labels=5, random_state=1),
    )
    options = {"n_connections": n_connections, "handle_unknown": "error"}
    drawn = reservoir_for(known, ReservoirConfig(n_layers=2, n_units=8, **options))
    with pytest.raises(UnknownLabelError):
        embed(new, drawn)
    blank = replace(drawn, blank_unknown=True)
    assert_equals_oracle(new, blank)  # its one-hot vector of such a label is zero
    exact = embed(new, blank, solver="paper", tol=1e-12, max_iter=1000).pooled
    np.testing.assert_allclose(embed(new, blank, tol=1e-9).pooled, exact, atol=1e-6)
    np.testing.assert_array_equal(embed(known, blank).pooled, embed(known, drawn).pooled)
    assert pickle.loads(pickle.dumps(blank)).blank_unknown


@pytest.mark.parametrize(("tol", "max_iter"), [(1e-1, 50), (1e-9, 200), (1e-3, 1), (1e-3, 7)])
def test_stopping_rule_is_the_oracles(tol, max_iter):
    graphs = make_random_graphs(20, random_state=1)
    assert_equals_oracle(graphs, reservoir_for(graphs), tol=tol, max_iter=max_iter)


def test_unstable_reservoir_stops_after_the_last_iteration():
    graphs = make_cycles([3, 4])
    config = ReservoirConfig(n_layers=1, n_units=10, effective_spectral_radius=3.0)
    reservoir = reservoir_for(graphs, config)
    assert embed(graphs, reservoir, solver="paper", tol=0.0).n_iter.tolist() == [[50, 50]]
    assert_equals_oracle(graphs, reservoir)


# ---------------------------------------------------------------------- identities


def test_relabeling_vertices_changes_nothing():
    rng = np.random.default_rng(0)
    graphs = list(make_random_graphs(20, random_state=2))
    moved = []
    for graph in graphs:
        order = rng.permutation(graph.n_vertices)
        labels = np.empty_like(graph.labels)
        labels[order] = graph.labels
        moved.append(Graph(order[graph.edge_index], graph.n_vertices, labels))
    one, other = GraphBatch.from_graphs(graphs), GraphBatch.from_graphs(moved)
    reservoir = reservoir_for(one)
    np.testing.assert_allclose(
        embed(one, reservoir).pooled, embed(other, reservoir).pooled, atol=1e-5
    )


def test_pooled_union_is_the_sum_of_its_parts():
    first, second = make_random_graphs(2, random_state=3)
    union = Graph(
        np.concatenate([first.edge_index, second.edge_index + first.n_vertices], axis=1),
        labels=np.concatenate([first.labels, second.labels]),
    )
    parts, whole = GraphBatch.from_graphs([first, second]), GraphBatch.from_graphs([union])
    reservoir = reservoir_for(parts)
    options = {"tol": 1e-12, "max_iter": 5000}
    np.testing.assert_allclose(
        embed(parts, reservoir, **options).pooled.sum(axis=1),
        embed(whole, reservoir, **options).pooled[:, 0],
        atol=1e-4,
    )


def test_a_hexagon_embeds_as_two_triangles():
    hexagon = make_cycles([6])
    triangle = make_cycles([3])
    reservoir = reservoir_for(hexagon)
    one, other = (embed(g, reservoir, tol=1e-9).pooled[:, 0] for g in (hexagon, triangle))
    np.testing.assert_allclose(one, 2 * other, atol=1e-4)


def test_a_graph_does_not_depend_on_its_batch_nor_on_threads(monkeypatch):
    graphs = make_random_graphs(50, random_state=4)
    reservoir = reservoir_for(graphs)
    whole = embed(graphs, reservoir).pooled
    monkeypatch.setattr("fdgnn.reservoir.FEW_STATES", 0)  # else there are no threads for so little
    np.testing.assert_array_equal(embed(graphs, reservoir, n_jobs=2).pooled, whole)
    np.testing.assert_array_equal(embed(graphs[10:11], reservoir).pooled[:, 0], whole[:, 10])


def test_direction_of_an_arc_is_the_direction_of_the_state():
    graph = GraphBatch.from_graphs([Graph([[0], [1]], directed=True)])
    reservoir = reservoir_for(graph, ReservoirConfig(n_layers=1, n_units=5))
    layer = reservoir.layers[0]
    drive = layer.input_weights.toarray()[:, 0] + layer.bias
    states = embed(graph, reservoir, keep_states=True).states[:, 0]
    np.testing.assert_allclose(states[0], np.tanh(drive), atol=1e-6)
    into_1 = np.tanh(drive + layer.recurrent_weights @ np.tanh(drive))
    np.testing.assert_allclose(states[1], into_1, atol=1e-6)


# ---------------------------------------------------------------------- the weights


@pytest.mark.parametrize("n_connections", [1, 2, 5])
def test_weights_are_drawn_as_the_paper_says(n_connections):
    graphs = make_random_graphs(30, random_state=0)
    config = ReservoirConfig(
        n_layers=3, n_units=40, n_connections=n_connections, effective_spectral_radius=0.7,
        input_scaling=0.3, inter_layer_scaling=0.6,
    )  # fmt: skip
    reservoir = reservoir_for(graphs, config)
    k = graphs.max_degrees.mean()
    for i, layer in enumerate(reservoir.layers):
        W_I, W_H, bias = layer.input_weights, layer.recurrent_weights, layer.bias
        scale = 0.3 if i == 0 else 0.6
        inputs = len(graphs.label_values) if i == 0 else 40
        assert W_I.shape == (40, inputs)
        assert set(np.diff(W_I.indptr)) == {min(n_connections, inputs)}
        assert set(np.diff(W_H.indptr)) == {n_connections}
        assert 0.5 * scale < np.abs(W_I.data).max() <= scale
        assert 0.5 * scale < np.abs(bias).max() <= scale
        radius = np.abs(np.linalg.eigvals(W_H.toarray())).max()
        np.testing.assert_allclose(radius * k, 0.7, rtol=1e-9)


def test_a_row_never_reads_one_source_twice():
    reservoir = reservoir_for(make_cycles([5]), ReservoirConfig(n_units=10, n_connections=10))
    for layer in reservoir.layers:
        assert layer.recurrent_weights.has_canonical_format
        np.testing.assert_array_equal(np.sort(layer.recurrent_weights.indices[:10]), np.arange(10))


def test_deeper_reservoirs_have_shallower_ones_as_prefix():
    graphs = make_cycles([3, 5])
    deep = reservoir_for(graphs, ReservoirConfig(n_layers=4))
    shallow = reservoir_for(graphs, ReservoirConfig(n_layers=2))
    for one, other in zip(deep.layers, shallow.layers, strict=False):
        np.testing.assert_array_equal(one.recurrent_weights.data, other.recurrent_weights.data)
        np.testing.assert_array_equal(one.input_weights.indices, other.input_weights.indices)
        np.testing.assert_array_equal(one.bias, other.bias)


def test_streams_are_independent_of_each_other():
    root = seed_sequence(7)
    first = np.random.default_rng(child_seed(root, 0)).random(4)
    assert not np.allclose(first, np.random.default_rng(child_seed(root, 1)).random(4))
    root.spawn(3)
    np.testing.assert_array_equal(first, np.random.default_rng(child_seed(root, 0)).random(4))


@pytest.mark.parametrize(
    "make", [lambda: 3, lambda: np.random.RandomState(3), lambda: np.random.default_rng(3)]
)
def test_every_kind_of_random_state_is_repeatable(make):
    assert seed_sequence(make()).entropy == seed_sequence(make()).entropy


def test_graphs_without_arcs_have_states_of_their_own():
    graphs = GraphBatch.from_graphs([Graph([], 3), Graph([], 1)])
    pooled = embed(graphs, reservoir_for(graphs)).pooled
    np.testing.assert_allclose(pooled[:, 0], 3 * pooled[:, 1], atol=1e-6)


def test_spectral_radius_is_the_largest_geometric_mean_over_cycles():
    reservoir = reservoir_for(make_cycles([4]), ReservoirConfig(n_layers=1, n_units=30), seed=5)
    W = reservoir.layers[0].recurrent_weights
    means = []
    for start in range(30):
        path, h = [], start
        for _ in range(30):
            path.append(abs(W.data[h]))
            h = W.indices[h]
            if h == start:
                means.append(np.exp(np.mean(np.log(path))))
                break
    np.testing.assert_allclose(spectral_radius(W), max(means), rtol=1e-12)

"""The theorems as numbers, and the certificate as a promise that is kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fdgnn import GraphBatch
from fdgnn.datasets import make_random_graphs
from fdgnn.reservoir import ReservoirConfig, draw_reservoir, first_drive
from fdgnn.seeds import seed_sequence
from fdgnn.stability import (
    certificates,
    necessary_condition,
    spectral_radius,
    sufficient_condition,
)
from reference import state_distances
from strategies import batches, circulant


def layer_with(rho, graphs, degree, n_connections=1, seed=0):
    config = ReservoirConfig(
        n_layers=1, n_units=12, n_connections=n_connections, effective_spectral_radius=rho
    )
    return draw_reservoir(config, graphs, degree, seed_sequence(seed))


def every_drive(graphs, reservoir):
    rows, row_of_vertex = first_drive(graphs, reservoir)
    return rows[row_of_vertex]


@given(st.integers(1, 12), st.floats(0, 1), st.integers(0, 10**6))
def test_spectral_radius_equals_dense_eigenvalues(n, density, seed):
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(n, n)) * (rng.random((n, n)) < density)
    expected = np.abs(np.linalg.eigvals(W)).max()
    # Defective eigenvalues of nilpotent parts are where the dense solver, not ours, is inexact.
    assert spectral_radius(sp.csr_array(W)) == pytest.approx(expected, rel=1e-7, abs=1e-3)


def test_nilpotent_wiring_has_radius_zero():
    assert spectral_radius(np.triu(np.ones((9, 9)), 1)) == 0.0


def test_with_one_connection_signs_do_not_matter():
    W = layer_with(0.9, GraphBatch.from_graphs([circulant(10, 2)]), 4.0).layers[0].recurrent_weights
    assert spectral_radius(W) == pytest.approx(spectral_radius(abs(W)), rel=1e-12)


def test_conditions_are_the_papers():
    W = np.random.default_rng(0).normal(size=(7, 7))
    assert sufficient_condition(W, 3.0) == pytest.approx(3 * np.linalg.norm(W, 2))
    radius = np.abs(np.linalg.eigvals(W)).max()
    assert necessary_condition(sp.csr_array(W), 3.0) == pytest.approx(3 * radius)


@given(batches(directed=None, weighted=None))
def test_spectral_radii_of_graphs_are_tight_upper_bounds(graphs):
    for g in range(len(graphs)):
        A = abs(graphs[[g]].adjacency().toarray())
        exact = np.abs(np.linalg.eigvals(A)).max()
        # Eigenvalues of defective matrices are themselves inexact to about eps ** (1 / n).
        assert graphs.spectral_radii[g] >= exact - 1e-2
        assert graphs.spectral_radii[g] <= graphs.max_degrees[g] + 1e-9
        if not graphs.directed:
            assert exact - 1e-9 <= graphs.spectral_radii[g] <= exact * 1.02 + 1e-9


@pytest.mark.parametrize("n_connections", [1, 3])
def test_where_the_certificate_holds_two_initial_states_meet(n_connections):
    graphs = make_random_graphs(40, random_state=0)
    reservoir = layer_with(1.5, graphs, graphs.max_degrees.mean(), n_connections)
    W = reservoir.layers[0].recurrent_weights
    certified = certificates(W, graphs) < 0.95
    assert 0 < certified.sum() < len(graphs)
    distances = state_distances(W, every_drive(graphs, reservoir), graphs, n_steps=400)
    assert distances[-1, certified].max() < 1e-6
    assert distances[0].min() > 0.1


def test_where_the_necessary_condition_fails_they_need_not():
    graphs = GraphBatch.from_graphs([circulant(10, 2)] * 3)
    reservoir = layer_with(1.5, graphs, 4.0)
    W = reservoir.layers[0].recurrent_weights
    assert necessary_condition(W, 4.0) == pytest.approx(1.5)
    assert (certificates(W, graphs) > 1).all()
    silence = np.zeros((graphs.n_vertices, 12))
    assert state_distances(W, silence, graphs, n_steps=400)[-1].max() > 1e-2


def test_theorem_1_is_never_sharper_than_the_certificate():
    graphs = make_random_graphs(20, random_state=1)
    for seed in range(5):
        W = layer_with(0.9, graphs, 3.0, seed=seed).layers[0].recurrent_weights
        theorem_1 = np.array([sufficient_condition(W, k) for k in graphs.max_degrees])
        assert (certificates(W, graphs) <= theorem_1 + 1e-9).all()

"""Numbers next to zero and next to infinity: the right result, or an error that says why."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import FDGNNClassifier, FDGNNRegressor, Graph, GraphReservoir, as_batch, limits
from fdgnn.datasets import make_motif_graphs
from fdgnn.exceptions import GraphError
from reference import embed_graph

RING = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
GRAPHS, Y = make_motif_graphs(20, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")


def rings(weight):
    return [Graph(RING, 4, weights=np.full(4, weight * (1 + i / 8))) for i in range(4)]


@pytest.mark.parametrize("solver", ["auto", "paper"])
@pytest.mark.parametrize("n_connections", [1, 3])
@pytest.mark.parametrize("weight", [1e-70, 1e-39, 1e-20, 1e20, 1e31, 1e38, 1e39, 1e70])
def test_only_the_ratio_of_weights_counts(weight, n_connections, solver):
    """The reservoir is scaled by the average degree, so the scale of all weights cancels."""

    def states(weight):
        reservoir = GraphReservoir(
            n_units=10, n_connections=n_connections, tol=1e-9, max_iter=400, solver=solver,
            effective_spectral_radius=0.7, random_state=0,
        )  # fmt: skip
        return reservoir.fit_transform(rings(weight)), reservoir.converged_

    expected, found = states(1.0), states(weight)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-7)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("solver", ["auto", "paper"])
def test_one_graph_with_large_weights_beside_usual_ones(solver):
    """Each graph gets its own precision; the plain loop is right for all of them."""
    graphs = [*rings(1e39)[:1], *rings(1.0)[:1], *rings(1e-39)[:1]]
    reservoir = GraphReservoir(
        n_units=8, tol=1e-8, max_iter=300, effective_spectral_radius=0.5, solver=solver,
        random_state=0,
    ).fit(graphs)  # fmt: skip
    found = reservoir.transform(graphs)
    for graph, row in zip(graphs, found, strict=True):
        states, _, _ = embed_graph(graph, reservoir.layers_, eps=1e-8, max_iter=300)
        np.testing.assert_allclose(row, states[-1].sum(axis=0), atol=1e-6)
        np.testing.assert_array_equal(reservoir.transform([graph])[0], row)


@pytest.mark.parametrize("solver", ["auto", "paper"])
@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-100])
def test_weights_next_to_nothing_are_refused(weight, solver):
    with pytest.raises(GraphError, match=r"k, the reservoir's degree, is .*FDGNN_MAX_NUMBER"):
        GraphReservoir(solver=solver, random_state=0).fit(rings(weight))


@pytest.mark.parametrize("weight", [1e76, 1e100, 1e307, -1e100])
def test_weights_next_to_infinity_are_refused(weight):
    expected = r"graph 1: an edge weight is -?1e\+\d+; numbers up to 1e\+75 are accepted"
    with pytest.raises(GraphError, match=expected):
        as_batch([*rings(1.0)[:1], *rings(weight)[:1]])


def test_features_next_to_infinity_are_refused():
    with pytest.raises(GraphError, match=r"graph 0: a vertex feature is 1e\+100; numbers up to"):
        as_batch([Graph(RING, features=[[1.0, 2.0], [3.0, -1e100], [0.0, 0.0], [0.0, 0.0]])])


@pytest.mark.parametrize("solver", ["auto", "paper"])
@pytest.mark.parametrize("degree", [5e-324, 1e-308, 1e-100])
def test_a_degree_next_to_nothing_is_refused(degree, solver):
    model = FDGNNClassifier(degree=degree, solver=solver, random_state=0)
    with pytest.raises(GraphError, match=r"k, the reservoir's degree, is .*FDGNN_MAX_NUMBER"):
        model.fit(GRAPHS, Y)


@pytest.mark.parametrize("name", ["degree", "input_scaling", "effective_spectral_radius", "alpha"])
@pytest.mark.parametrize("value", [1e76, 1.7e308, 10**400])
def test_parameters_next_to_infinity_are_refused(name, value):
    with pytest.raises(ValueError, match=rf"{name}=.*: numbers up to 1e\+75 are accepted"):
        FDGNNClassifier(**{name: value}).fit(GRAPHS, Y)


def test_targets_and_sample_weights_have_the_same_limits():
    with pytest.raises(ValueError, match=r"y has the number 1e\+80; numbers up to 1e\+75"):
        FDGNNRegressor().fit(GRAPHS, np.r_[-1e80, Y[1:]])
    for weight in (1e80, 1e-320):
        with pytest.raises(ValueError, match="sample_weight: its largest number is"):
            FDGNNClassifier().fit(GRAPHS, Y, sample_weight=np.full(len(Y), weight))
        with pytest.raises(ValueError, match="class_weight: its largest number is"):
            FDGNNClassifier(class_weight={0: weight, 1: weight}).fit(GRAPHS, Y)


@pytest.mark.parametrize("alpha", [0, 5e-324])
def test_a_readout_without_a_solution_is_refused(alpha):
    model = FDGNNClassifier(alpha=alpha, probability=True, random_state=0)
    expected = f"alpha={alpha:g}: the readout has no finite solution"
    with pytest.raises(ValueError, match=expected):
        model.fit([Graph([[0], [1]], 2)] * 10 + [Graph([[0, 1], [1, 2]], 3)] * 10, [0, 1] * 10)


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.SaturationWarning")
def test_nothing_that_is_not_finite_leaves_an_estimator():
    """Where all limits are lifted, the last guard is at the way out."""
    with limits.changed(FDGNN_MAX_NUMBER=1.7e308):
        model = GraphReservoir(n_connections=4, bias_scaling=0, input_scaling=1.6e308)
        with (
            np.errstate(over="ignore", invalid="ignore"),
            pytest.raises(GraphError, match="graph 0: the sum of its states is NaN or infinite"),
        ):
            model.set_params(solver="paper").fit_transform(
                [Graph(RING, features=np.full((4, 4), 1e10))]
            )
        small = {"n_connections": 4, "effective_spectral_radius": 0.1, "random_state": 0}
        in_float32 = GraphReservoir(input_scaling=100.0, **small)
        with pytest.raises(GraphError, match="graph 0: the sum of its states is NaN or infinite"):
            in_float32.fit_transform([Graph(RING, features=np.full((4, 4), 1.6e308))])
        model = FDGNNRegressor(random_state=0).fit(GRAPHS, Y.astype(float))
        model.estimators_[0].readout.coef[:] = 1.6e308
        with (
            np.errstate(over="ignore", invalid="ignore"),
            pytest.raises(GraphError, match="graph 0: output is NaN or infinite"),
        ):
            model.predict(GRAPHS)


def test_limits_can_be_changed(monkeypatch):
    with limits.changed(FDGNN_MAX_NUMBER=1e200):
        assert len(as_batch(rings(1e100))) == 4
    monkeypatch.setenv("FDGNN_MAX_NUMBER", "0.5")
    with pytest.raises(GraphError, match=r"numbers up to 0.5 are accepted \(FDGNN_MAX_NUMBER\)"):
        as_batch(rings(1.0))
    monkeypatch.setenv("FDGNN_MAX_NUMBER", "many")
    with pytest.raises(ValueError, match="FDGNN_MAX_NUMBER='many': expected a number, at least 0"):
        as_batch(rings(1.0))
    with (
        pytest.raises(ValueError, match="there is no limit 'FDGNN_MAX_NUMBERS'; there are FDGNN_"),
        limits.changed(FDGNN_MAX_NUMBERS=3),
    ):
        pass

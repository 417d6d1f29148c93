"""Parameters of estimators: anything may be given, and what is wrong is named in one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import (
    EncoderUnion,
    FDGNNClassifier,
    GraphClassifier,
    GraphReservoir,
    WLCounts,
    load_model,
    save_model,
)
from fdgnn.datasets import make_motif_graphs

GRAPHS, Y = make_motif_graphs(20, random_state=0)
WHOLE = ("n_layers", "n_units", "n_connections", "n_projections", "n_estimators", "max_iter")
REAL = ("effective_spectral_radius", "input_scaling", "bias_scaling", "degree", "alpha", "tol")
LARGE = (10**30, 2**63, 10**400, 2**31, np.uint64(2**63))
NEVER = (
    -1,
    float("nan"),
    float("inf"),
    -float("inf"),
    "x",
    [],
    {},
    True,
    1 + 2j,
    NotImplemented,
    b"1",
)


def union(reservoir):
    return EncoderUnion([("reservoir", reservoir), ("wl", WLCounts())])


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("value", [*LARGE, *NEVER, 1.5, np.float64(2.0)], ids=repr)
def test_whole_numbers_that_are_none_or_too_large(name, value):
    with pytest.raises(ValueError, match=f"^{name}="):
        FDGNNClassifier(**{name: value}).fit(GRAPHS, Y)


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("value", [10**400, 1e300, *NEVER, np.array([1.0, 2.0])], ids=repr)
def test_numbers_that_are_none_or_too_large(name, value):
    with pytest.raises(ValueError, match=f"^{name}="):
        FDGNNClassifier(**{name: value}).fit(GRAPHS, Y)


@pytest.mark.parametrize("value", [-1, 1.5, "x", float("nan"), np.array(3), ...], ids=repr)
def test_random_states_that_are_none(value):
    with pytest.raises(ValueError, match=r"^random_state=.*: expected None, an integer"):
        FDGNNClassifier(random_state=value).fit(GRAPHS, Y)


def test_large_whole_numbers_where_real_ones_are_expected():
    """They are right as long as they can be computed with."""
    for degree in (2**63, 10**30):
        model = GraphReservoir(degree=degree, random_state=0).fit(GRAPHS)
        assert model.degree_ == float(degree)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.int16, np.int64, np.uint64])
def test_numpy_integers_of_few_bits_do_not_overflow(tmp_path, kind):
    """100 units and 3 layers are 300 features, which an int8 cannot count."""
    parameters = {
        "n_layers": 3, "n_units": 100, "n_projections": 120, "n_estimators": 2, "max_iter": 100,
    }  # fmt: skip
    plain = FDGNNClassifier(**parameters, random_state=0).fit(GRAPHS, Y)
    numpy = {name: kind(value) for name, value in parameters.items()}
    model = FDGNNClassifier(**numpy, random_state=0).fit(GRAPHS, Y)
    np.testing.assert_array_equal(model.outputs(GRAPHS), plain.outputs(GRAPHS))
    save_model(model, tmp_path / "model.fdgnn")
    again = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(again.outputs(GRAPHS), plain.outputs(GRAPHS))
    encoder = {"n_layers": kind(3), "n_units": kind(100), "pooled_layers": "all"}
    reservoir = GraphReservoir(**encoder, random_state=0).fit(GRAPHS)
    assert reservoir.transform(GRAPHS).shape == (20, 300) == (20, reservoir.n_features_out)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("joined", [False, True])
def test_numpy_reals_can_be_saved(tmp_path, kind, joined):
    options = {"effective_spectral_radius": kind(0.5), "tol": kind(0.25)}
    model = FDGNNClassifier(**options, random_state=0)
    if joined:
        model = GraphClassifier(union(GraphReservoir(**options)), random_state=0)
    model.fit(GRAPHS, Y)
    save_model(model, tmp_path / "model.fdgnn")
    again = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(again.outputs(GRAPHS), model.outputs(GRAPHS))


def test_features_that_do_not_differ_are_not_made_large():
    """Without recurrence all reservoirs' features are alike, but for rounding."""
    encoder = union(GraphReservoir(effective_spectral_radius=0))
    model = GraphClassifier(encoder, random_state=0)
    assert model.fit(GRAPHS, Y).score(GRAPHS, Y) > 0.5
    assert model.estimators_[0].encoder.blocks_[0].scale == 1.0

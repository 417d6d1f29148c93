"""What an untrusted model file can do at most, as docs/reference/model-files.md says it.

tests/test_model_files.py has files that contradict themselves. Here are files that fit together,
and ask for as much as they may.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import time

import numpy as np
import pytest

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    GraphReservoir,
    RandomExpansion,
    WLCounts,
    limits,
    load_model,
    save_model,
)
from fdgnn.datasets import make_motif_graphs
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.reservoir import contractions, embed
from fdgnn.stability import LARGE_BLOCK, spectral_radius
from model_file_tools import memory_below, merged, rejected, with_arrays, with_record

GRAPHS, Y = make_motif_graphs(20, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


@pytest.fixture
def content(file):
    save_model(FDGNNClassifier(n_units=10, random_state=0).fit(GRAPHS, Y), file)
    return file.read_bytes()


# ---------------------------------------------------------------------- no code

WATCHED = """
import sys
import fdgnn.model_files, fdgnn.estimators, fdgnn.encoders.registry
from fdgnn import load_model
from fdgnn.exceptions import ModelFileError

def watch(event, arguments):
    if event in ("open", "exec", "compile", "os.system", "os.posix_spawn", "socket.connect") or \\
            event.startswith(("subprocess", "ctypes", "shutil", "os.remove", "os.rename")):
        told.append((event, str(arguments[:2])))

for path in sys.argv[1:]:
    load_model(sys.argv[1])  # what is imported at first use is imported now
told = []
sys.addaudithook(watch)
for path in sys.argv[1:]:
    told.clear()
    try:
        load_model(path)
    except ModelFileError:
        pass
    assert [(event, mode) for event, mode in told if path not in mode] == [], told
    assert [event for event, _ in told] == ["open"], told
    assert "'rb'" in told[0][1] or "'r'" in told[0][1], told
"""


def test_loading_opens_the_file_and_nothing_else(tmp_path, content):
    """Python itself tells of each file that is opened, and of all that is run."""
    names = ("os.system", "builtins.eval", "../../etc/passwd", "https://example.org/x", "reservoir")
    changes = [{"estimators": {"0": {"encoder": {"kind": name}}}} for name in names]
    changes += [{"model": name} for name in names] + [{"parameters": {"encoder": names[0]}}]
    paths = [tmp_path / f"{i}.fdgnn" for i in range(len(changes) + 1)]
    paths[0].write_bytes(content)
    for path, change in zip(paths[1:], changes, strict=True):
        path.write_bytes(with_record(content, lambda record, c=change: merged(record, c)))
    run = subprocess.run(
        [sys.executable, "-c", WATCHED, *paths], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


# ---------------------------------------------------------------------- what has a limit

TOO_MUCH = {
    "n_layers": 1001, "n_units": 10**6 + 1, "n_connections": 10**6 + 1, "max_iter": 10**4 + 1,
    "n_estimators": 10**4 + 1, "n_projections": 10**6 + 1,
    "input_scaling": 1e76, "effective_spectral_radius": 1e76, "tol": 1e76,
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MUCH)
def test_parameters_have_limits_in_files_and_in_python(content, file, name):
    """So 100,000 layers, or two billion iterations that never settle, are rejected at once."""
    value = TOO_MUCH[name]
    told = re.escape(f"{name}={value}: ") + r".*\(FDGNN_MAX_[A-Z]+\)"
    with pytest.raises(ValueError, match=told):
        FDGNNClassifier(**{name: value}).fit(GRAPHS, Y)

    def change(record):
        record["parameters"][name] = value
        encoder = record["estimators"][0]["encoder"]
        if name in encoder["parameters"]:
            encoder["parameters"][name] = value

    assert "FDGNN_MAX_" in rejected(with_record(content, change), file)


@pytest.mark.parametrize(
    ("name", "value"), [("n_features", 2**25), ("n_bins", 10**5 + 1), ("n_iterations", 101)]
)
def test_parameters_of_wl_features_have_limits(file, name, value):
    with pytest.raises(ValueError, match=rf"{name}={value}: up to .* \(FDGNN_MAX_[FWB]"):
        WLCounts(**{name: value}).fit(GRAPHS)
    save_model(WLCounts().fit(GRAPHS), file)
    change = {"encoder": {"parameters": {name: value}}}
    data = with_record(file.read_bytes(), lambda record: merged(record, change))
    assert f"{name}={value}: up to " in rejected(data, file)


def test_a_limit_can_be_raised_for_a_model_one_knows(file):
    with limits.changed(FDGNN_MAX_LAYERS=2000):
        model = GraphReservoir(n_layers=1500, n_units=2, random_state=0).fit(GRAPHS)
        save_model(model, file)
        assert load_model(file).n_layers == 1500
    with pytest.raises(ModelFileError, match=r"n_layers=1500: models of up to 1,000 layers are"):
        load_model(file)


def test_seeds_have_at_most_64_words(content, file):
    change = {"seed": {"entropy": [1] * 65, "spawn_key": []}}
    assert "length <= 64" in rejected(with_record(content, lambda r: merged(r, change)), file)


def test_expansions_have_limits():
    with pytest.raises(ValueError, match="n_projections=1000001: models of up to 1,000,000 units"):
        RandomExpansion(10**6 + 1).fit(np.ones((2, 2)))


@pytest.mark.parametrize("solver", ["paper", "auto"])
@pytest.mark.parametrize(("n_layers", "n_units"), [(3, 50), (1000, 2)])
def test_an_iteration_takes_time_in_proportion_to_the_file(file, solver, n_layers, n_units):
    graph, n_iter = GRAPHS[:1], 100
    reservoir = GraphReservoir(
        n_layers=n_layers, n_units=n_units, tol=0.0, max_iter=n_iter, solver=solver,
        effective_spectral_radius=3.0, random_state=0,
    )  # fmt: skip
    save_model(reservoir.fit(GRAPHS), file)
    loaded, start = load_model(file), time.process_time()
    loaded.transform(graph)
    work = n_iter * file.stat().st_size * (graph.n_vertices + graph.n_arcs)
    assert time.process_time() - start < 0.1 + 3e-9 * work


# ---------------------------------------------------------------------- what has none


def rewired(n_units, sources, weight):
    """A reservoir whose neurons read those that `sources` (n_units, C) says."""
    reservoir = GraphReservoir(n_layers=1, n_units=n_units, random_state=0).fit(GRAPHS)
    shape = (1, *sources.shape)
    weights = reservoir.reservoir_.weights._replace(
        rec_sources=sources.astype(np.int32).reshape(shape), rec_values=np.full(shape, weight)
    )
    reservoir.n_connections = sources.shape[1]
    reservoir.reservoir_ = dataclasses.replace(reservoir.reservoir_, weights=weights)
    return reservoir


def two_each(n):
    return np.sort(np.stack([np.arange(n) - 1, np.arange(n) + 7], axis=1) % n, axis=1)


@pytest.mark.parametrize("weight", [0.05, 0.5], ids=["certified", "not certified"])
def test_several_connections_cost_no_dense_matrix(file, weight):
    """100,000 units with two connections asked for 75 GB of eigenvalues; these are 10,000."""
    save_model(rewired(10_000, two_each(10_000), weight), file)
    with memory_below(60_000_000):
        assert load_model(file).transform(GRAPHS[:2]).shape == (2, 10_000)


def test_a_long_chain_of_neurons_costs_no_more_than_its_length(file):
    """Each neuron of a chain needs one more earlier step than the next: the square of them."""
    n = 5000
    chain = rewired(n, np.maximum(np.arange(n) - 1, 0)[:, None], 0.9)
    save_model(chain, file)
    with memory_below(200_000_000):  # the square, of doubles in vectors, is 800 MB at least
        assert load_model(file).transform(GRAPHS[:2]).shape == (2, n)


@pytest.mark.parametrize("n", [40, 100, 200])
def test_chains_are_computed_as_the_paper_says(n):
    chain = rewired(n, np.maximum(np.arange(n) - 1, 0)[:, None], 0.9).reservoir_
    fast = embed(GRAPHS, chain, tol=1e-6, max_iter=300)
    literal = embed(GRAPHS, chain, tol=1e-6, max_iter=300, solver="paper")
    assert (contractions(chain, GRAPHS) >= 1).all()
    np.testing.assert_allclose(fast.pooled, literal.pooled, atol=1e-9)
    np.testing.assert_array_equal(fast.n_iter, literal.n_iter)


def test_the_bound_in_place_of_eigenvalues_is_close_and_never_below():
    rng = np.random.default_rng(0)
    for n in (LARGE_BLOCK + 1, 100, 150):
        for density in (2 / n, 0.1, 1.0):
            W = rng.random((n, n)) * (rng.random((n, n)) < density)
            W[np.arange(n), np.arange(n) - 1] = rng.random(n)  # strongly connected
            exact = np.abs(np.linalg.eigvals(W)).max()
            assert exact * (1 - 1e-13) <= spectral_radius(W) <= exact * (1 + 1e-5)


def test_drawing_many_units_with_several_connections_is_rejected():
    """Drawing scales by eigenvalues with signs, for which there is no such bound."""
    with (
        limits.changed(FDGNN_MAX_DENSE_UNITS=30),
        pytest.raises(ValueError, match=r"\d+ units read each other by several connections"),
    ):
        GraphReservoir(n_units=200, n_connections=2, random_state=0).fit(GRAPHS)


# ---------------------------------------------------------------------- what predictions can be


def test_predictions_are_classes_of_the_file_or_finite(file):
    """Whatever finite weights a file has."""
    rng = np.random.default_rng(0)
    for kind in (FDGNNClassifier, FDGNNRegressor):
        save_model(kind(n_units=10, random_state=0).fit(GRAPHS, Y), file)
        original = file.read_bytes()
        for size in (1e75, 1e40, 1e-75, 0.0):
            changed = {
                name: rng.choice([-size, size], shape)
                for name, shape in {
                    "0.coef": (1, 20), "0.intercept": (1,), "0.projection": (20, 10),
                    "0.encoder.rec_values": (3, 10, 1), "0.encoder.in_values": (2, 10, 1),
                    "0.encoder.first_values": (10, 1), "0.encoder.bias": (3, 10),
                }.items()
            }  # fmt: skip
            file.write_bytes(with_arrays(original, **changed))
            model = load_model(file)
            found = model.predict(GRAPHS)
            if kind is FDGNNClassifier:
                assert set(found) <= set(Y)
            assert np.isfinite(model.outputs(GRAPHS)).all()
            assert np.isfinite(found).all()


def test_weights_that_are_too_large_are_rejected(content, file):
    for value in (1e76, np.inf, np.nan):
        data = with_arrays(content, **{"0.coef": np.full((1, 20), value)})
        assert "not finite or too large" in rejected(data, file)


def test_a_nan_is_an_error_and_no_prediction(content, file):
    file.write_bytes(content)
    model = load_model(file)
    model.estimators_[0].readout.intercept[0] = np.nan
    with pytest.raises(GraphError, match="graph 0: output is NaN or infinite"):
        model.predict(GRAPHS)


def test_loading_takes_at_most_three_times_the_memory_of_the_file(file):
    model = FDGNNClassifier(n_units=20, n_projections=20_000, random_state=0).fit(GRAPHS, Y)
    save_model(model, file)
    size = file.stat().st_size
    assert size > 3_000_000
    with memory_below(3 * size):
        load_model(file)


@pytest.mark.parametrize(
    "text", ['{"a":' * 200_000, "[" * 2**20, '{"a":[' + "0," * 500_000 + "0]}"]
)
def test_the_largest_header_takes_at_most_100_megabytes(file, text):
    header = text.encode()[: 2**20]
    file.write_bytes(len(header).to_bytes(8, "little") + header)
    with memory_below(100_000_000), pytest.raises(ModelFileError):
        load_model(file)

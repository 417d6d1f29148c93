"""Model files: the same bits after loading, and a typed error for whatever is not a model."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphReservoir,
    load_model,
    load_tu,
    model_info,
    save_model,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import FDGNNError, ModelFileError, ModelVersionError
from fdgnn.model_files import tensors as tensors_module
from fdgnn.model_files import weights as weights_module
from fdgnn.model_files.tensors import MOST_HEADER, read_tensors, to_bytes

SMALL = {"n_layers": 2, "n_units": 10, "effective_spectral_radius": 0.5, "random_state": 0}
GRAPHS = make_random_graphs(60, random_state=0)
Y = np.arange(60) % 3


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a model of two networks."""
    path = tmp_path_factory.mktemp("model") / "model.fdgnn"
    save_model(FDGNNClassifier(n_networks=2, probability=True, **SMALL).fit(GRAPHS, Y), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def stored_content(tmp_path_factory):
    """The same with its weights."""
    path = tmp_path_factory.mktemp("model") / "model.fdgnn"
    model = FDGNNClassifier(n_networks=2, n_connections=2, **SMALL).fit(GRAPHS, Y)
    save_model(model, path, store_weights=True)
    return path.read_bytes()


def again(model, path, **options):
    save_model(model, path, **options)
    return load_model(path)


# ---------------------------------------------------------------------- the same bits


MODELS = [
    ("classes", FDGNNClassifier(n_networks=3, **SMALL), Y),
    ("two classes", FDGNNClassifier(**SMALL), Y == 1),
    ("text", FDGNNClassifier(**SMALL), np.array(["a", "b", '\ud800 \u00e9"\\'])[Y]),
    ("objects", FDGNNClassifier(**SMALL), np.array(["a", "bb", "ccc"], dtype=object)[Y]),
    ("real classes", FDGNNClassifier(**SMALL), np.array([-1.0, 3e9, 7.0])[Y]),
    ("no seed", FDGNNClassifier(n_networks=2, n_units=8), Y),
    ("generator", FDGNNClassifier(n_units=8, random_state=np.random.default_rng(0)), Y),
    ("list of seeds", FDGNNClassifier(n_units=8, random_state=[1, 2, 3]), Y),
    ("NumPy numbers", FDGNNClassifier(n_units=np.int64(8), alpha=np.float32(0.1)), Y),
    ("more connections", FDGNNClassifier(n_connections=4, **SMALL), Y),
    ("few graphs, many features", FDGNNClassifier(n_projections=200, **SMALL), Y),
    ("no recurrence", FDGNNClassifier(**SMALL | {"effective_spectral_radius": 0.0}), Y),
    ("no bias", FDGNNClassifier(bias_scaling=0.0, degree=4, solver="paper", **SMALL), Y),
    ("regressor", FDGNNRegressor(n_networks=2, **SMALL), Y * 1.5),
    ("two outputs", FDGNNRegressor(**SMALL), np.stack([Y, -Y], axis=1)),
]


@pytest.mark.parametrize(("model", "y"), [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_predictions_are_the_same_bits(model, y, store, file):
    model.fit(GRAPHS, y)
    loaded = again(model, file, store_weights=store)
    assert model_info(file)["redrawn"] is not store
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(GRAPHS), model.predict(GRAPHS))
    assert loaded.predict(GRAPHS).dtype == model.predict(GRAPHS).dtype
    assert loaded._outputs(GRAPHS).tobytes() == model._outputs(GRAPHS).tobytes()
    for one, other in zip(loaded.networks_, model.networks_, strict=True):
        assert one.projection.tobytes() == other.projection.tobytes()
    # and a loaded model gives the same file again
    before = file.read_bytes()
    save_model(loaded, file, store_weights=store)
    assert file.read_bytes() == before


@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("graphs", [
    GRAPHS,
    make_cycles([3, 4, 5]),
    [Graph([[0], [1]], labels=["N", "O"]), Graph([[0], [1]], labels=["N", "C"], n_vertices=2)],
    make_random_graphs(5, n_features=3, directed=True, weighted=True, random_state=0),
], ids=["integers", "none", "text", "features"])  # fmt: skip
def test_every_kind_of_vertices_is_kept(graphs, store, file):
    model = GraphReservoir(pooled_layers="all", **SMALL).fit(graphs)
    loaded = again(model, file, store_weights=store)
    assert loaded.transform(graphs).tobytes() == model.transform(graphs).tobytes()
    for name in ("degree_", "n_features_in_", "directed_", "vertex_input_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.reservoir_.vocabulary == model.reservoir_.vocabulary


def test_parameters_seed_and_probabilities_are_kept(file):
    model = FDGNNClassifier(probability=True, n_jobs=2, **SMALL).fit(GRAPHS, Y)
    loaded = again(model, file)
    assert loaded.get_params() == model.get_params() | {"n_jobs": None}
    np.testing.assert_array_equal(loaded.predict_proba(GRAPHS), model.predict_proba(GRAPHS))
    refitted = loaded.fit(GRAPHS, Y)
    np.testing.assert_array_equal(refitted.coef_, model.coef_)


def test_a_generator_becomes_the_seed_that_it_gave(file):
    seed = {"random_state": np.random.RandomState(3)}
    model = FDGNNClassifier(**SMALL | seed).fit(GRAPHS, Y)
    loaded = again(model, file)
    np.testing.assert_array_equal(loaded.fit(GRAPHS, Y).projection_, model.projection_)


def test_a_search_gives_its_best_model_and_score(file):
    graphs, y = make_motif_graphs(40, random_state=0)
    search = FDGNNSearchCV(n_configurations=2, n_guesses=2, cv=3, random_state=0).fit(graphs, y)
    loaded = again(search, file)
    assert isinstance(loaded, FDGNNClassifier)
    assert loaded.training_score_ == model_info(file)["score"] == search.best_score_
    np.testing.assert_array_equal(
        loaded.decision_function(graphs), search.decision_function(graphs)
    )
    assert again(loaded, file).training_score_ == search.best_score_
    assert again(loaded, file, score=0.5).training_score_ == 0.5


@pytest.mark.real_data("MUTAG")
def test_a_mutag_model_is_a_few_kilobytes(file, tu_path):
    graphs, y = load_tu(tu_path("MUTAG"))
    model = FDGNNClassifier(n_networks=3, probability=True, random_state=0).fit(graphs, y)
    loaded = again(model, file)
    assert file.stat().st_size < 5000
    np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))


def test_unpickled_models_of_older_draws_are_stored_instead(file):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    model.networks_[0].reservoir.layers[1].bias[3] += 1e-9  # as of other random streams
    loaded = again(model, file)
    assert not model_info(file)["redrawn"]
    np.testing.assert_array_equal(loaded.decision_function(GRAPHS), model.decision_function(GRAPHS))


def test_factors_come_out_bit_by_bit():
    rng = np.random.default_rng(0)
    for _ in range(300):
        draws, factor = rng.uniform(-1, 1, rng.choice([1, 2, 3, 50])), rng.lognormal(0, 3)
        found = weights_module._factor(draws, draws * factor, weights_module.operator.mul)
        np.testing.assert_array_equal(draws * found, draws * factor)
        found = weights_module._factor(draws, draws / factor, weights_module.operator.truediv)
        np.testing.assert_array_equal(draws / found, draws / factor)
    draws = rng.uniform(-1, 1, 50)
    assert np.isnan(weights_module._factor(draws, rng.random(50), weights_module.operator.mul))


# ---------------------------------------------------------------------- what cannot be saved


def test_what_cannot_be_saved_is_told_before_anything_is_written(file):
    with pytest.raises(NotFittedError):
        save_model(FDGNNClassifier(), file)
    with pytest.raises(TypeError, match="a dict cannot be saved; expected FDGNNClassifier"):
        save_model({}, file)
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    with pytest.raises(ModelFileError, match=r"cannot be saved as it is: .*fit it again"):
        save_model(model.set_params(n_units=11), file)
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    model.classes_ = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]")
    with pytest.raises(ModelFileError, match="datetime64"):
        save_model(model, file)
    names = [f"{'x' * 1000}{i}" for i in range(2 * MOST_HEADER // 1000)]
    graphs = [Graph(np.zeros((2, 0)), labels=names) for _ in range(4)]
    with pytest.raises(ModelFileError, match="too large"):
        save_model(GraphReservoir(**SMALL).fit(graphs), file)
    assert not file.exists()


def test_an_interrupted_save_leaves_the_old_file(file, monkeypatch):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    save_model(model, file)
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_model(model, file, score=0.1)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


# ---------------------------------------------------------------------- the format


def test_the_safetensors_library_reads_and_agrees(content, stored_content, file):
    safetensors = pytest.importorskip("safetensors")
    from safetensors.numpy import load, save_file

    for data in (content, stored_content):
        file.write_bytes(data)
        ours = read_tensors(file)
        theirs = load(data)
        assert set(theirs) == set(ours.tensors)
        for name, array in ours.tensors.items():
            np.testing.assert_array_equal(theirs[name], array)
            assert theirs[name].dtype == array.dtype
        with safetensors.safe_open(file, framework="numpy") as opened:
            assert opened.metadata() == ours.metadata
    save_file({"weight": np.zeros((2, 3))}, file, metadata={"format": "np"})
    with pytest.raises(ModelFileError, match="a safetensors file, but not a model of fdgnn"):
        load_model(file)


def test_the_arrays_are_aligned_and_files_are_reproducible(content):
    assert int.from_bytes(content[:8], "little") % 8 == 0
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    assert set(header) == {
        "__metadata__", "0.coef", "0.intercept", "0.scales", "1.coef", "1.intercept", "1.scales",
    }  # fmt: skip


# ---------------------------------------------------------------------- damage


def refused(data, path, error=ModelFileError):
    path.write_bytes(data)
    with pytest.raises(error) as told:
        load_model(path)
    assert str(told.value).startswith(f"{path}: ")
    assert isinstance(told.value, FDGNNError)
    return str(told.value)


def test_every_truncation_is_found(content, file):
    for n in range(0, len(content), 7):
        refused(content[:n], file)
    refused(content + b"\0", file)


def test_every_flipped_bit_is_found(content, file):
    rng = np.random.default_rng(0)
    places = np.concatenate([np.arange(64), rng.integers(8 * len(content), size=3000)])
    for place in places.tolist():
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        refused(bytes(damaged), file)


@given(st.data())
def test_spliced_and_overwritten_files_are_found(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "spliced.fdgnn"
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    damaged = content[:a] + data.draw(st.binary(max_size=50)) + content[b:]
    if damaged != content:
        refused(damaged, path)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{}", pickle.dumps([1]), b"PK\x03\x04" + bytes(100), b"<!doctype html>" * 10,
        (2).to_bytes(8, "little") + b"{}", (2).to_bytes(8, "little") + b"[]",
        (6).to_bytes(8, "little") + b"\xff\xfe{}  ", bytes(1000),
        (2**63).to_bytes(8, "little") + b"{" * 100,
        (MOST_HEADER).to_bytes(8, "little") + b"[" * MOST_HEADER,
        (900_000).to_bytes(8, "little") + b'{"a":' * 180_000,
        (900_000).to_bytes(8, "little") + b'{"a":' + b"1" * 899_994 + b"}",
    ],
)  # fmt: skip
def test_foreign_files_are_refused_quickly_and_in_little_memory(data, file):
    tracemalloc.start()
    start = time.perf_counter()
    refused(data, file)
    assert time.perf_counter() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.fdgnn")
    with pytest.raises(ModelFileError, match="not a file"):
        load_model(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a file"):
            load_model(tmp_path / "pipe")


# ---------------------------------------------------------------------- enemies


def parts(content):
    """Header and data of a file."""
    n = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + n]), content[8 + n :]


def signed(header, data=b""):
    """A file with the right checksum, whatever is in it."""
    header["__metadata__"]["sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")).encode()
    start = len(text).to_bytes(8, "little") + text
    checksum = hashlib.sha256(start + data).hexdigest()
    return start.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + checksum.encode()) + data


def with_settings(content, **changes):
    header, data = parts(content)
    settings = json.loads(header["__metadata__"]["model"])
    settings["parameters"] |= changes.pop("parameters", {})
    header["__metadata__"]["model"] = json.dumps(settings | changes)
    return signed(header, data)


def test_signed_is_a_file_that_loads(content, file):
    file.write_bytes(signed(*parts(content)))
    assert load_model(file).n_units == 10
    file.write_bytes(with_settings(content))
    assert load_model(file).n_units == 10


def test_newer_formats_are_told_apart(content, file):
    header, data = parts(content)
    header["__metadata__"]["format_version"] = "2"
    message = refused(signed(header, data), file, ModelVersionError)
    assert "written in format '2' by fdgnn '0" in message
    assert "install a newer fdgnn" in message


def test_other_random_streams_are_told_apart(content, file, monkeypatch):
    file.write_bytes(content)
    monkeypatch.setattr(np, "__version__", "99.0")
    original = weights_module.draw_unscaled_projection
    monkeypatch.setattr(weights_module, "draw_unscaled_projection", lambda *args: -original(*args))
    with pytest.raises(ModelVersionError, match=r"under NumPy '\d.*store_weights=True"):
        load_model(file)


def entry(dtype="F64", shape=(2,), data_offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(data_offsets)}


@pytest.mark.parametrize(
    ("table", "n_bytes"),
    [
        ({"a": entry(shape=[2**40])}, 16),
        ({"a": entry(shape=[2**40, 2**40], data_offsets=[0, 2**83])}, 16),
        ({"a": entry(shape=[10**4000])}, 16),
        ({"a": entry(shape=[-2])}, 16),
        ({"a": entry(shape=[True, 2])}, 16),
        ({"a": entry(shape=[2.0])}, 16),
        ({"a": entry(shape=[1, 1, 2])}, 16),
        ({"a": {**entry(), "shape": 2}}, 16),
        ({"a": entry(dtype="F32")}, 16),
        ({"a": entry(dtype=["F64"])}, 16),
        ({"a": entry(dtype="object")}, 16),
        ({"a": entry(data_offsets=[16, 0])}, 16),
        ({"a": entry(data_offsets=[-16, 0])}, 16),
        ({"a": entry(data_offsets=[0, 16, 32])}, 16),
        ({"a": entry(), "b": entry()}, 16),  # overlapping
        ({"a": entry(), "b": entry(data_offsets=[8, 24])}, 24),
        ({"a": entry(), "b": entry(data_offsets=[24, 40])}, 40),  # a gap
        ({"a": entry()}, 24),  # bytes that nobody claims
        ({"a": entry()}, 8),
        ({"a": {}}, 0),
        ({"a": [1]}, 0),
        ({"a": {**entry(), "more": 1}}, 16),
    ],
)
def test_tables_that_do_not_fit_the_data(content, file, table, n_bytes):
    metadata = parts(content)[0]["__metadata__"]
    file.write_bytes(signed({"__metadata__": metadata, **table}, bytes(n_bytes)))
    with pytest.raises(ModelFileError, match=r"'a'|'b'|header says"):
        read_tensors(file)


@pytest.mark.parametrize(
    "metadata",
    [None, [], "fdgnn", {"format": "pt"}, {"format": "fdgnn"}, {"format": "fdgnn", "x": 1},
     {"format": "fdgnn", "format_version": "1"},
     {"format": "fdgnn", "format_version": "1", "sha256": "0" * 63},
     {"format": "fdgnn", "format_version": "1", "sha256": "\u00e9" * 64}],
)  # fmt: skip
def test_metadata_of_others(file, metadata):
    text = json.dumps({"__metadata__": metadata}).encode()
    refused(len(text).to_bytes(8, "little") + text, file)


def test_repeated_names_are_refused(content, file):
    header, _ = parts(content)
    text = json.dumps(header)[:-1] + ', "0.coef": ' + json.dumps(header["0.coef"]) + "}"
    message = refused(len(text).to_bytes(8, "little") + text.encode(), file)
    assert "given twice" in message


HOSTILE = [
    {"parameters": {"n_units": 10**9}},
    {"parameters": {"n_units": 10**400}},
    {"parameters": {"n_projections": 2**62}},
    {"parameters": {"n_layers": 2**60}},
    {"parameters": {"n_networks": 2**60}},
    {"parameters": {"n_connections": 2**60, "n_units": 2**20}},
    {"parameters": {"n_units": 10.0}},
    {"parameters": {"n_units": "10"}},
    {"parameters": {"n_units": [10]}},
    {"parameters": {"n_units": 11}},
    {"parameters": {"n_networks": 1}},
    {"parameters": {"n_networks": 3}},
    {"parameters": {"tol": 1e999}},
    {"parameters": {"tol": {}}},
    {"parameters": {"max_iter": 2**31}},
    {"parameters": {"degree": -1.0}},
    {"parameters": {"degree": "mean"}},
    {"parameters": {"degree": None}},
    {"parameters": {"random_state": "x"}},
    {"parameters": {"random_state": -1}},
    {"parameters": {"random_state": [1]}},
    {"parameters": {"solver": "fast"}},
    {"parameters": {"solver": ["auto"]}},
    {"parameters": {"probability": "yes"}},
    {"parameters": {"n_jobs": 10**6}},
    {"parameters": {"__class__": 1}},
    {"parameters": {"n_units": None}},
    {"class": "Pipeline"},
    {"class": ["FDGNNClassifier"]},
    {"class": "FDGNNRegressor"},
    {"class": "GraphReservoir"},
    {"seed": {"entropy": -1, "spawn_key": []}},
    {"seed": {"entropy": "0", "spawn_key": []}},
    {"seed": {"entropy": [], "spawn_key": []}},
    {"seed": {"entropy": None, "spawn_key": []}},
    {"seed": {"entropy": 0, "spawn_key": [-1]}},
    {"seed": {"entropy": 0, "spawn_key": 0}},
    {"seed": {"entropy": 1, "spawn_key": []}},
    {"seed": 0},
    {"degree": -1.0}, {"degree": "average"}, {"degree": 1e999},
    {"n_inputs": 0}, {"n_inputs": 4}, {"n_inputs": True}, {"n_inputs": 2**70},
    {"directed": 1}, {"vertex_input": "x"}, {"vertex_input": ["vertex labels"]},
    {"vertex_input": "vertex features"},
    {"vocabulary": None}, {"vocabulary": []}, {"vocabulary": [0, 1]}, {"vocabulary": [0, 1, "2"]},
    {"vocabulary": [0, 1, 1]}, {"vocabulary": [0.0, 1.0, 2.0]}, {"vocabulary": [[0], [1], [2]]},
    {"vocabulary": [True, False, 2]}, {"vocabulary": {"0": 1}},
    {"classes": None}, {"classes": {"dtype": "<i8", "values": [0, 1]}},
    {"classes": {"dtype": "<i8", "values": [0, 1, 1]}},
    {"classes": {"dtype": "<i8", "values": [0, 1, 2**70]}},
    {"classes": {"dtype": "<i8", "values": [0, 1, "2"]}},
    {"classes": {"dtype": "<i1", "values": [0, 1, 200]}},
    {"classes": {"dtype": "<U1", "values": ["a", "b", "cc"]}},
    {"classes": {"dtype": "<U1000000000", "values": ["a", "b", "c"]}},
    {"classes": {"dtype": "V1000000000", "values": ["a", "b", "c"]}},
    {"classes": {"dtype": "(1000000000,)i8", "values": [0, 1, 2]}},
    {"classes": {"dtype": "i8,i8", "values": [0, 1, 2]}},
    {"classes": {"dtype": "nonsense", "values": [0, 1, 2]}},
    {"classes": {"dtype": "O", "values": [[0], 1, 2]}},
    {"classes": {"dtype": "<i8", "values": 3}},
    {"n_outputs": 1}, {"n_outputs": 2**40}, {"n_outputs": -3}, {"one_output": True},
    {"calibration": -1.0}, {"calibration": 0.0}, {"calibration": "1"}, {"calibration": 1e999},
    {"score": 1e999}, {"score": "good"}, {"redrawn": False}, {"redrawn": 1},
    {"checksum": "x"}, {"checksum": None}, {"more": 1},
]  # fmt: skip


@pytest.mark.parametrize("changes", HOSTILE, ids=lambda c: json.dumps(c)[:60])
def test_settings_of_an_enemy(content, file, changes):
    tracemalloc.start()
    start = time.perf_counter()
    message = refused(with_settings(content, **json.loads(json.dumps(changes))), file)
    assert len(message) < 600
    assert time.perf_counter() - start < 1
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', "[" * 100_000, '{"a": 1, "a": 1}'])
def test_descriptions_that_are_none(content, file, text):
    header, data = parts(content)
    header["__metadata__"]["model"] = text
    refused(signed(header, data), file)
    with pytest.raises(ModelFileError):
        model_info(file)


@pytest.mark.parametrize("name", ["0.coef", "1.intercept", "0.scales"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(content, file, name, value):
    file.write_bytes(content)
    metadata, tensors = read_tensors(file)
    changed = np.array(tensors[name])
    changed.flat[-1] = value
    refused(to_bytes(metadata, tensors | {name: changed}), file)


def test_a_norm_of_zero_and_arrays_that_lack_or_are_too_many(content, file):
    file.write_bytes(content)
    metadata, tensors = read_tensors(file)
    scales = np.array(tensors["0.scales"])
    scales[-1] = 0
    assert "not finite" in refused(to_bytes(metadata, tensors | {"0.scales": scales}), file)
    assert "'2.coef'" in refused(to_bytes(metadata, tensors | {"2.coef": scales}), file)
    del tensors["1.scales"]
    assert "and has none" in refused(to_bytes(metadata, tensors), file)


@pytest.mark.parametrize("value", [-1, 10, 2**31 - 1])
@pytest.mark.parametrize("name", ["0.0.input_sources", "1.1.recurrent_sources"])
def test_weights_at_places_that_are_not_there(stored_content, file, name, value):
    """Kernels trust these places: they would read and write memory that is not theirs."""
    file.write_bytes(stored_content)
    metadata, tensors = read_tensors(file)
    changed = np.array(tensors[name])
    changed[3, 1] = value
    assert "has weights at places" in refused(to_bytes(metadata, tensors | {name: changed}), file)
    changed[3] = changed[3, 0]
    assert "has weights at places" in refused(to_bytes(metadata, tensors | {name: changed}), file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.data())
def test_any_setting_replaced_by_anything_is_refused_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "replaced.fdgnn"
    header, tensors = parts(content)
    settings = json.loads(header["__metadata__"]["model"])
    place = data.draw(st.sampled_from([settings, settings["parameters"], settings["seed"]]))
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(JSON)
    header["__metadata__"]["model"] = json.dumps(settings)
    path.write_bytes(signed(header, tensors))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model._outputs(GRAPHS[:2]).shape == (2, 3)


def test_limits_are_those_the_documentation_names():
    assert (tensors_module.MOST_HEADER, tensors_module.MOST_BYTES) == (2**20, 2**31)
    assert weights_module.MOST_DRAWS == 2**24


def test_large_models_are_stored_rather_than_drawn(file, monkeypatch):
    monkeypatch.setattr(weights_module, "MOST_DRAWS", 400)
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)  # 20 x 10 projections and 2 layers
    np.testing.assert_array_equal(again(model, file).predict(GRAPHS), model.predict(GRAPHS))
    assert model_info(file)["redrawn"]
    monkeypatch.setattr(weights_module, "MOST_DRAWS", 200)
    assert "random numbers" in refused(file.read_bytes(), file)
    np.testing.assert_array_equal(again(model, file).predict(GRAPHS), model.predict(GRAPHS))
    assert not model_info(file)["redrawn"]

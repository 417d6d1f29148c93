"""Model files: the same bits after loading, and a typed error for whatever is not a model."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import pickle
import re
import struct
import time
from pathlib import Path

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save_file
from sklearn.exceptions import NotFittedError

from fdgnn import (
    Encoder,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphReservoir,
    WLCounts,
    load_model,
    load_tu,
    model_info,
    register_encoder,
    save_model,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import ModelFileError, ModelVersionError
from fdgnn.limits import MAX_MODEL_BYTES, MAX_MODEL_HEADER_BYTES
from fdgnn.linear import Ridge
from fdgnn.model_files import container
from fdgnn.model_files.description import SeedRecord
from fdgnn.parameters import Number
from fdgnn.records import Record
from fdgnn.seeds import child_seed
from model_file_tools import (
    ANY_JSON,
    again,
    array_of,
    memory_below,
    merged,
    parts,
    records_in,
    rejected,
    rejected_quickly,
    sealed,
    signed,
    with_arrays,
    with_header,
    with_record,
)

MOST_HEADER, MOST_BYTES = MAX_MODEL_HEADER_BYTES.default, MAX_MODEL_BYTES.default
SMALL = {"n_layers": 2, "n_units": 10, "effective_spectral_radius": 0.5, "random_state": 0}
GRAPHS = make_random_graphs(60, random_state=0)
Y = np.arange(60) % 3


class ScaleFacts(Record, frozen=True, kw_only=True):
    scale: float


@register_encoder
class Sizes(Encoder):
    """Vertices of a graph, in several powers: an encoder with facts and arrays of its own."""

    kind = "test-sizes"
    rules = {"n_powers": Number(1, whole=True)}  # noqa: RUF012
    Facts = ScaleFacts

    def __init__(self, n_powers=2, random_state=None):
        self.n_powers = n_powers
        self.random_state = random_state

    def _draw(self, graphs, seed):
        self.scale_ = float(np.diff(graphs.vertex_offsets).max())
        self.shift_ = np.random.default_rng(seed).random(self.n_powers)

    def vertex_features(self, graphs):
        return np.full((graphs.n_vertices, self.n_powers), 1 / self.scale_) + self.shift_

    def facts(self):
        return ScaleFacts(scale=self.scale_)

    def arrays(self):
        return {"shift": self.shift_}

    def restore(self, facts, arrays, graph_kind):
        self.scale_, self.shift_ = facts.scale, arrays["shift"]


@register_encoder
class Counts(Encoder):
    """Vertices of a graph: an encoder that has nothing but its name."""

    kind = "test-counts"

    def vertex_features(self, graphs):
        return np.ones((graphs.n_vertices, 1))


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a model of two random initializations, with two connections per neuron."""
    path = tmp_path_factory.mktemp("model") / "model.fdgnn"
    model = FDGNNClassifier(n_estimators=2, n_connections=2, probability=True, **SMALL)
    save_model(model.fit(GRAPHS, Y), path)
    return path.read_bytes()


# ---------------------------------------------------------------------- the same bits


MODELS = [
    ("classes", FDGNNClassifier(n_estimators=3, **SMALL), Y),
    ("two classes", FDGNNClassifier(**SMALL), Y == 1),
    ("text", FDGNNClassifier(**SMALL), np.array(["a", "b", '\u00e9"\\\U0001f600'])[Y]),
    ("objects", FDGNNClassifier(**SMALL), np.array(["a", "bb", "ccc"], dtype=object)[Y]),
    ("real classes", FDGNNClassifier(**SMALL), np.array([-1.0, 3e9, 7.0])[Y]),
    ("other integers", FDGNNClassifier(**SMALL), np.array([1, 2, 255], dtype=">u2")[Y]),
    ("probabilities", FDGNNClassifier(probability=True, n_estimators=2, **SMALL), Y),
    ("no seed", FDGNNClassifier(n_estimators=2, n_units=8), Y),
    ("generator", FDGNNClassifier(n_units=8, random_state=np.random.default_rng(0)), Y),
    ("list of seeds", FDGNNClassifier(n_units=8, random_state=[1, 2, 3]), Y),
    ("large seed", FDGNNClassifier(n_units=8, random_state=2**100 + 7), Y),
    ("NumPy numbers", FDGNNClassifier(n_units=np.int64(8), alpha=np.float32(0.1)), Y),
    ("more connections", FDGNNClassifier(n_connections=4, **SMALL), Y),
    ("one layer", FDGNNClassifier(n_connections=3, **SMALL | {"n_layers": 1}), Y),
    ("few graphs, many features", FDGNNClassifier(n_projections=200, **SMALL), Y),
    ("no projection", FDGNNClassifier(n_projections=0, **SMALL), Y),
    ("no recurrence", FDGNNClassifier(**SMALL | {"effective_spectral_radius": 0.0}), Y),
    ("no bias", FDGNNClassifier(bias_scaling=0.0, degree=4, solver="paper", **SMALL), Y),
    ("all layers", GraphClassifier(GraphReservoir(8, pooled_layers="all")), Y),
    ("another encoder", GraphClassifier(Sizes(3), n_estimators=2), Y),
    ("another one by name", GraphClassifier("test-sizes", n_projections=7), Y),
    ("an encoder without arrays", GraphClassifier(Counts()), Y),
    ("regressor", FDGNNRegressor(n_estimators=2, **SMALL), Y * 1.5),
    ("intervals", FDGNNRegressor(intervals=True, **SMALL), Y * 1.5),
    ("two targets", FDGNNRegressor(**SMALL), np.stack([Y, -Y], axis=1)),
    ("one target, in a column", FDGNNRegressor(**SMALL), Y[:, None]),
    ("targets of classes", FDGNNClassifier(probability=True, alpha="cv", **SMALL),
     {"a": Y == 1, "b": np.array(["x", "y", "z"])[Y]}),
    ("thresholds", FDGNNClassifier(threshold="f1", **SMALL), {"a": Y == 1, "b": Y == 2}),
]  # fmt: skip


@pytest.mark.parametrize(("model", "y"), [m[1:] for m in MODELS], ids=[m[0] for m in MODELS])
@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
def test_predictions_are_the_same_bits(model, y, file):
    model.fit(GRAPHS, y)
    loaded = again(model, file)
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.predict(GRAPHS), model.predict(GRAPHS))
    assert loaded.predict(GRAPHS).dtype == model.predict(GRAPHS).dtype
    assert loaded.outputs(GRAPHS).tobytes() == model.outputs(GRAPHS).tobytes()
    for one, other in zip(loaded.targets_, model.targets_, strict=True):
        np.testing.assert_equal(vars(one), vars(other) | {"scores": one.scores})
        groups = [() if each.scores is None else each.scores.groups for each in (one, other)]
        np.testing.assert_equal(*groups)
    for one, other in zip(loaded.estimators_, model.estimators_, strict=True):
        assert (one.name, one.alpha) == (other.name, other.alpha)
        assert one.encoder.seed_.spawn_key == other.encoder.seed_.spawn_key
    # and a loaded model gives the same file again
    before = file.read_bytes()
    save_model(loaded, file)
    assert file.read_bytes() == before


@pytest.mark.parametrize("graphs", [
    GRAPHS,
    make_cycles([3, 4, 5]),
    [Graph([[0], [1]], labels=["N", "O"]), Graph([[0], [1]], labels=["N", "C"], n_vertices=2)],
    make_random_graphs(5, n_features=3, directed=True, weighted=True, random_state=0),
], ids=["integers", "none", "text", "features"])  # fmt: skip
def test_every_kind_of_vertices_is_kept(graphs, file):
    model = GraphReservoir(pooled_layers="all", **SMALL).fit(graphs)
    loaded = again(model, file)
    assert loaded.transform(graphs).tobytes() == model.transform(graphs).tobytes()
    for name in ("degree_", "n_features_in_", "graph_kind_"):
        assert getattr(loaded, name) == getattr(model, name)
    assert loaded.reservoir_.vocabulary == model.reservoir_.vocabulary
    before = file.read_bytes()
    save_model(loaded, file)
    assert file.read_bytes() == before


def test_parameters_and_probabilities_are_kept(file):
    model = FDGNNClassifier(probability=True, n_jobs=2, **SMALL).fit(GRAPHS, Y)
    loaded = again(model, file)
    assert loaded.get_params() == model.get_params() | {"n_jobs": None}
    np.testing.assert_array_equal(loaded.predict_proba(GRAPHS), model.predict_proba(GRAPHS))
    assert loaded.input_schema_ is None
    refitted = loaded.fit(GRAPHS, Y)
    np.testing.assert_array_equal(refitted.coef_, model.coef_)


def test_the_template_of_an_encoder_is_kept_and_not_fitted(file):
    loaded = again(GraphClassifier(Sizes(3), random_state=1).fit(GRAPHS, Y), file)
    assert loaded.encoder.n_powers == 3
    with pytest.raises(NotFittedError):
        loaded.encoder.transform(GRAPHS)


def test_the_file_of_a_search_has_its_best_model(file):
    graphs, y = make_motif_graphs(40, random_state=0)
    search = FDGNNSearchCV(
        FDGNNClassifier(n_estimators=2), n_configurations=2, cv=3, random_state=0
    ).fit(graphs, y)
    loaded = again(search, file)
    assert isinstance(loaded, FDGNNClassifier)
    np.testing.assert_array_equal(
        loaded.decision_function(graphs), search.decision_function(graphs)
    )


# ---------------------------------------------------------------------- seeds


SEEDS = [
    np.random.SeedSequence(0),
    np.random.SeedSequence(2**32 - 1),
    np.random.SeedSequence(2**64, spawn_key=(3, 2**40)),
    np.random.SeedSequence([0, 0, 1], spawn_key=(0,)),
    np.random.SeedSequence([2**70, 5, 0]),
    np.random.SeedSequence(np.array([7, 8], dtype=np.uint64)),
    np.random.SeedSequence(["0x1f", "12"]),
    np.random.SeedSequence(),
]


@pytest.mark.parametrize("seed", SEEDS, ids=range(len(SEEDS)))
def test_words_are_the_seed(seed):
    """NumPy's streams of a list of 32-bit words are those of the integer with these words."""
    record = SeedRecord.of(seed)
    sequence = record.sequence()
    assert SeedRecord.of(sequence) == record
    for key in ((), (0,), (5, 2)):
        one, other = child_seed(seed, *key), child_seed(sequence, *key)
        np.testing.assert_array_equal(one.generate_state(9), other.generate_state(9))


@pytest.mark.parametrize(
    "state", [None, [1, 2, 3], SEEDS[2], np.random.RandomState(3), np.random.default_rng(4)],
    ids=["None", "list", "SeedSequence", "RandomState", "Generator"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["model", "encoder"])
def test_a_random_state_that_is_no_integer_comes_back_as_the_seed_it_gave(file, state, kind):
    settings = SMALL | {"random_state": state}
    if kind == "model":
        model = FDGNNClassifier(**settings).fit(GRAPHS, Y)
    else:
        model = GraphReservoir(**settings).fit(GRAPHS)
    loaded = again(model, file)
    assert loaded.random_state is loaded.seed_
    np.testing.assert_array_equal(loaded.seed_.generate_state(4), model.seed_.generate_state(4))
    bias = loaded.fit(GRAPHS, Y).layers_[0].bias
    np.testing.assert_array_equal(bias, model.layers_[0].bias)


def test_an_integer_comes_back_as_it_was(file):
    for model in (FDGNNClassifier(**SMALL).fit(GRAPHS, Y), GraphReservoir(**SMALL).fit(GRAPHS)):
        loaded = again(model, file)
        assert (loaded.random_state, loaded.seed_.entropy) == (0, [0])
    seeds = again(FDGNNClassifier(n_estimators=2, **SMALL).fit(GRAPHS, Y), file).estimators_
    assert [network.encoder.seed_.spawn_key for network in seeds] == [(0,), (1,)]


def test_a_seed_of_too_many_words_is_told(file):
    model = GraphReservoir(**SMALL | {"random_state": list(range(65))}).fit(GRAPHS)
    with pytest.raises(ModelFileError, match=r"length <= 64 - at `\$.seed.entropy`"):
        save_model(model, file)


# ---------------------------------------------------------------------- sizes and what is told


@pytest.mark.real_data("MUTAG")
def test_sizes_of_mutag_models_are_those_of_the_decision(file, tu_path):
    graphs, y = load_tu(tu_path("MUTAG"))
    page = Path(__file__).parent.parent / "docs" / "decisions" / "0021-model-files.md"
    told = dict(re.findall(r"^\| (\d+)[^|]* \| (\d+) \|$", page.read_text(), re.MULTILINE))
    assert list(told) == ["1", "3"]
    for n_estimators, kilobytes in told.items():
        model = FDGNNClassifier(n_estimators=int(n_estimators), probability=True, random_state=0)
        loaded = again(model.fit(graphs, y), file)
        np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))
        assert abs(file.stat().st_size / 1000 - int(kilobytes)) < 1


def test_model_info_is_a_record_of_plain_values(file):
    model = FDGNNClassifier(n_estimators=2, **SMALL).fit(GRAPHS, Y)
    save_model(model, file)
    info = model_info(file)
    assert (info.model, info.format) == ("FDGNNClassifier", container.FORMAT)
    assert info.parameters["n_estimators"] == 2
    assert info.targets[0].classes.values == [0, 1, 2]
    assert info.seed.entropy == [0]
    degree = model.estimators_[0].encoder.degree_
    assert info.estimators[0].encoder.facts == {"degree": degree, "vocabulary": [0, 1, 2]}
    assert [each.seed.spawn_key for each in info.estimators] == [[0], [1]]
    with pytest.raises(FileNotFoundError):
        model_info(file.with_name("none"))


# ---------------------------------------------------------------------- what cannot be saved


def test_what_cannot_be_saved_is_told_before_anything_is_written(file):
    with pytest.raises(NotFittedError):
        save_model(FDGNNClassifier(), file)
    with pytest.raises(TypeError, match="a dict cannot be saved; expected GraphClassifier"):
        save_model({}, file)
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    (target,) = model.targets_
    days = np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="M8[D]")
    model.targets_ = (dataclasses.replace(target, classes=days),)
    with pytest.raises(ModelFileError, match="datetime64"):
        save_model(model, file)
    half = np.array(["a", "b", "\ud800"])  # half a character
    model.targets_ = (dataclasses.replace(target, classes=half),)
    with pytest.raises(ModelFileError, match="cannot be described"):
        save_model(model, file)
    names = [f"{'x' * 200}{i}" for i in range(2 * MOST_HEADER // 200)]
    graphs = [Graph(np.zeros((2, 0)), labels=names) for _ in range(4)]
    with pytest.raises(ModelFileError, match="too large"):
        save_model(WLCounts().fit(graphs), file)
    encoder = Sizes().fit(GRAPHS)
    encoder.shift_ = encoder.shift_.astype(np.float32)
    with pytest.raises(ModelFileError, match=r"'encoder\.shift' has dtype F32"):
        save_model(encoder, file)
    assert not file.exists()


@pytest.mark.parametrize(
    "change",
    [{"n_units": 11}, {"n_estimators": 2}, {"n_projections": 7}, {"tol": 0.5}, {"random_state": 1},
     {"probability": True}, {"threshold": "f1"}, {"degree": "max"}],
    ids=str,
)  # fmt: skip
def test_parameters_set_after_fitting_are_told(file, change):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y).set_params(**change)
    with pytest.raises(ModelFileError, match=r"cannot be saved as it is: .*fit .* again"):
        save_model(model, file)
    assert not file.exists()


def test_an_interrupted_save_leaves_the_old_file(file, monkeypatch):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    save_model(model, file)
    before = file.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        save_model(model, file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


# ---------------------------------------------------------------------- the format


def test_other_readers_of_safetensors_read_it(content, file):
    file.write_bytes(content)
    ours, theirs = container.read(file), load(content)
    assert set(theirs) == set(ours.arrays)
    assert set(theirs) == {
        f"{i}.{name}" for i in range(2) for name in (
            "coef", "intercept", "projection", "encoder.bias", "encoder.first_sources",
            "encoder.first_values", "encoder.in_sources", "encoder.in_values",
            "encoder.rec_sources", "encoder.rec_values",
        )
    } | {"conformal.0", "domain.factor", "domain.mean"}  # fmt: skip
    for name, array in ours.arrays.items():
        np.testing.assert_array_equal(theirs[name], array)
        assert theirs[name].dtype == array.dtype
    with safetensors.safe_open(file, framework="numpy") as opened:
        assert list(opened.metadata()) == ["fdgnn"]


def test_the_checksum_is_that_of_the_documentation(content):
    stored = json.loads(parts(content)[0]["__metadata__"]["fdgnn"])["sha256"].encode()
    assert hashlib.sha256(content.replace(stored, b"0" * 64)).hexdigest().encode() == stored


def test_limits_are_those_the_documentation_names():
    assert (MOST_HEADER, MOST_BYTES) == (2**20, 2**31)


# ---------------------------------------------------------------------- damage


def test_every_truncation_is_found(content, file):
    for n in range(0, len(content), 7):
        rejected(content[:n], file)
    rejected(content + b"\0", file)


def test_every_flipped_bit_is_found(content, file):
    """All bits of the header, and some of the arrays."""
    n_header = 8 * (8 + int.from_bytes(content[:8], "little"))
    rng = np.random.default_rng(0)
    some = rng.integers(n_header, 8 * len(content), size=500)
    for place in [*range(64), *range(64, n_header, 5), *some.tolist()]:
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(ModelFileError):
            container.from_bytes(bytes(damaged))
    for place in range(0, n_header, 997):
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        rejected(bytes(damaged), file)


@given(st.data())
def test_spliced_and_overwritten_files_are_found(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "spliced.fdgnn"
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(content))] * 2)))
    damaged = content[:a] + data.draw(st.binary(max_size=50)) + content[b:]
    if damaged != content:
        rejected(damaged, path)


FOREIGN = [
    b"", b"{}", pickle.dumps([1]), b"PK\x03\x04" + bytes(100), b"<!doctype html>" * 10,
    with_header("{}"), with_header("[]"), with_header(b"\xff\xfe{}  "), bytes(1000),
    with_header('"\\ud800"'), struct.pack("<Q", 2**63) + b"{" * 100,
    with_header(b"[" * MOST_HEADER), with_header(b'{"a":' * 180_000),
    with_header(b'{"a":' + b"1" * 899_994 + b"}"), with_header(b"[" + b"[]," * 300_000 + b"[]]"),
    with_header(b"[" + b'{"":0},' * 140_000 + b"0]"),
    struct.pack("<Q", MOST_HEADER + 1) + b"{" * (MOST_HEADER + 1),
]  # fmt: skip


@pytest.mark.parametrize("data", FOREIGN, ids=lambda data: repr(data[:20]))
def test_foreign_files_are_rejected_quickly_and_in_little_memory(data, file):
    rejected_quickly(data, file, 100_000_000)


@pytest.mark.parametrize("array", [np.zeros((2, 3)), np.zeros(3, dtype=np.float16)], ids=str)
def test_other_safetensors_files_are_rejected(file, array):
    for metadata in (None, {"format": "np"}, {"fdgnn": "{}"}):
        save_file({"weight": array}, file, metadata=metadata)
        assert "not a model of fdgnn" in rejected(file.read_bytes(), file)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none.fdgnn")
    with pytest.raises(ModelFileError, match="not a file"):
        load_model(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ModelFileError, match="not a file"):
            load_model(tmp_path / "pipe")


def test_a_header_that_is_too_large_is_not_parsed(content, file):
    n = int.from_bytes(content[:8], "little")
    padded = with_header(content[8 : 8 + n].ljust(MOST_HEADER + 8), content[8 + n :])
    assert "without the header of a model" in rejected_quickly(padded, file, 100_000)


def test_a_file_that_is_too_large_is_not_read(file):
    with file.open("wb") as sparse:
        sparse.truncate(MOST_BYTES + 1)
    with memory_below(1_000_000), pytest.raises(ModelFileError, match="up to 2,147,483,648 bytes"):
        load_model(file)


# ---------------------------------------------------------------------- enemies


def test_signed_files_load(content, file):
    """What the tests below reject is rejected for its content, not for its checksum."""
    for data in (
        signed(*parts(content)),
        with_record(content, lambda record: None),
        with_arrays(content),
    ):
        file.write_bytes(data)
        assert load_model(file).n_units == 10


def test_other_formats_are_told_apart(content, file):
    header, data = parts(content)
    envelope = json.loads(header["__metadata__"]["fdgnn"])
    newer = sealed(header, json.dumps({"format": 6, "fdgnn": "9.0", "more": []}), data)
    message = rejected(newer, file, ModelVersionError)
    assert "written in format 6 by fdgnn '9.0'; this version reads format 5" in message
    assert "install a newer fdgnn" in message
    older = sealed(header, json.dumps({"format": 3, "fdgnn": "0.9", "more": []}), data)
    message = rejected(older, file, ModelVersionError)
    assert "written in format 3" in message
    assert "fit the model and save it again" in message
    for wrong in (0, -1, 10**30, 10**400, 2.0, "2", None, True):
        text = json.dumps(envelope | {"format": wrong})
        assert "header cannot be read" in rejected(sealed(header, text, data), file)


def entry(dtype="F64", shape=(2,), data_offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(data_offsets)}


@pytest.mark.parametrize(
    ("table", "n_bytes"),
    [
        ({"a": entry(shape=[2**40])}, 16),
        ({"a": entry(shape=[2**40, 2**40], data_offsets=[0, 2**83])}, 16),
        ({"a": entry(shape=[2**32, 2**32, 2], data_offsets=[0, 0])}, 0),  # 0 modulo 2**64
        ({"a": entry(shape=[0, 2**64 - 1], data_offsets=[0, 0])}, 0),
        ({"a": entry(shape=[0, 2**62], data_offsets=[0, 0])}, 0),
        ({"a": entry(shape=[1] * 100, data_offsets=[0, 8])}, 8),
        ({"a": entry(shape=[10**4000])}, 16),
        ({"a": entry(shape=[-2])}, 16),
        ({"a": entry(shape=[True, 2])}, 16),
        ({"a": entry(shape=[2.0])}, 16),
        ({"a": {**entry(), "shape": 2}}, 16),
        ({"a": entry(dtype="F32", shape=[4])}, 16),
        ({"a": entry(dtype="BOOL", shape=[16])}, 16),
        ({"a": entry(dtype="BF16", shape=[8])}, 16),
        ({"a": entry(dtype="F4", shape=[32])}, 16),
        ({"a": entry(dtype="F4", shape=[3], data_offsets=[0, 2])}, 2),
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
        ({"\ud800": entry()}, 16),
    ],
)
def test_tables_that_do_not_fit_the_data(content, file, table, n_bytes):
    metadata = parts(content)[0]["__metadata__"]
    data = signed({"__metadata__": metadata, **table}, bytes(n_bytes))
    message = rejected_quickly(data, file, 3_000_000)
    reasons = ("has dtype", "shape that no", "truncated or al", "its header cannot be read")
    assert any(reason in message for reason in reasons)


@pytest.mark.parametrize("shape", [(0, 3), (0,), ()], ids=str)
@pytest.mark.parametrize("name", ["0.coef", "1.intercept", "0.projection", "0.encoder.in_values"])
def test_arrays_without_entries_or_axes(content, file, name, shape):
    rejected(with_arrays(content, **{name: np.zeros(shape)}), file)


@pytest.mark.parametrize("shape", [(0, 3), (0,), (), (1, 10, 1)], ids=str)
@pytest.mark.parametrize("name", ["in_values", "in_sources"])
def test_one_layer_has_no_second_one(file, name, shape):
    save_model(GraphReservoir(**SMALL | {"n_layers": 1}).fit(GRAPHS), file)
    array = np.zeros(shape, dtype=np.float64 if name == "in_values" else np.int32)
    rejected(with_arrays(file.read_bytes(), **{f"encoder.{name}": array}), file)


METADATA = [
    None, [], "fdgnn", {}, {"format": "pt"}, {"fdgnn": 1}, {"fdgnn": None}, {"fdgnn": "x"},
    {"fdgnn": "[]"}, {"fdgnn": "{}"}, {"fdgnn": '{"format": 5}'}, {"fdgnn": "[" * 100_000},
    {"fdgnn": '{"format": 5, "fdgnn": "1", "sha256": "0", "model": {}}'},
    {"fdgnn": '{"format": 5, "fdgnn": "1", "sha256": "", "model": {}}'},
    {"fdgnn": json.dumps({"format": 5, "fdgnn": "1", "sha256": "\u00e9" * 64, "model": {}})},
    {"fdgnn": json.dumps({"format": 5, "fdgnn": "1", "sha256": "0" * 64})},
    {"fdgnn": json.dumps({"format": 5, "x" * 900_000: 1})},
    {"fdgnn": "\ud800"},
]  # fmt: skip


@pytest.mark.parametrize("metadata", METADATA, ids=lambda m: str(m)[:40])
def test_metadata_of_others(file, metadata):
    rejected_quickly(with_header(json.dumps({"__metadata__": metadata})), file, 100_000_000)


def test_metadata_beside_ours_is_rejected(content, file):
    header, data = parts(content)
    header["__metadata__"]["more"] = "x"
    assert "not one text called 'fdgnn'" in rejected(signed(header, data), file)


BIG = 10**30


def estimators(**changes):
    """A change of all estimators of a file."""
    return {"estimators": {"0": changes, "1": changes}}


def encoders(**changes):
    return estimators(encoder=changes)


def target(**changes):
    return {"targets": {"0": changes}}


def classes(values, dtype="<i8"):
    return target(classes={"dtype": dtype, "values": values})


HOSTILE = [
    *({"parameters": p, **encoders(parameters=p)} for p in [
        {"n_units": 10**9}, {"n_units": BIG}, {"n_units": 10**400}, {"n_units": 10.0},
        {"n_units": "10"}, {"n_units": [10]}, {"n_units": 11}, {"n_units": None},
        {"n_units": -1}, {"n_units": True}, {"n_layers": 2**60}, {"n_layers": 100_000},
        {"n_layers": 1}, {"n_connections": 2**60}, {"n_connections": 2**31 - 1},
        {"n_connections": 1}, {"tol": 1e999}, {"tol": {}}, {"tol": BIG**20}, {"tol": -1},
        {"max_iter": 2**31}, {"max_iter": BIG}, {"degree": -1.0}, {"degree": "mean"},
        {"degree": None}, {"degree": 10**400}, {"solver": "fast"}, {"solver": ["auto"]},
    ]),
    {"parameters": {"n_units": 9}}, encoders(parameters={"n_units": 9}),
    {"parameters": {"tol": 0.5}}, encoders(parameters={"pooled_layers": "all"}),
    {"estimators": {"1": {"encoder": {"parameters": {"tol": 0.5}}}}},
    encoders(parameters={"pooled_layers": "first"}), encoders(parameters={"n_jobs": 10**6}),
    encoders(parameters={"x" * 100_000: 1}), encoders(parameters=[]),
    *(encoders(kind=k) for k in (
        "nonsense", 1, "test-sizes", "test-counts", "wl", "union", "x" * 100_000,
    )),
    encoders(more=1), estimators(encoder=None), estimators(encoder="reservoir"),
    {"encoder": {"kind": "reservoir", "parameters": {}, "facts": {}}}, {"encoder": 1},
    {"readout": {"kind": "linear", "parameters": {}}}, {"objects": []},
    {"objects": {"candidates": []}}, {"objects": {"tol": []}}, {"objects": {"encoder": []}},
    {"parameters": {"encoder": "reservoir"}}, {"parameters": {"encoder": {}}},
    {"parameters": {"readout": "linear"}}, {"parameters": {"candidates": "all"}},
    {"parameters": {"n_projections": 2**62}}, {"parameters": {"n_projections": 10**9}},
    {"parameters": {"n_projections": 19}}, {"parameters": {"n_projections": 0}},
    {"parameters": {"n_estimators": 2**60}}, {"parameters": {"n_estimators": 10**9}},
    {"parameters": {"n_estimators": 1}}, {"parameters": {"n_estimators": 3}},
    {"parameters": {"n_estimators": 0}}, {"parameters": {"alpha": -1}},
    {"parameters": {"random_state": "x"}}, {"parameters": {"random_state": -1}},
    {"parameters": {"random_state": [1]}}, {"parameters": {"random_state": True}},
    {"parameters": {"random_state": 1}}, {"parameters": {"random_state": 2**32}},
    {"parameters": {"probability": "yes"}}, {"parameters": {"n_jobs": 10**6}},
    {"parameters": {"threshold": "f1"}}, {"parameters": {"__class__": 1}},
    {"parameters": {"self": 1}}, {"parameters": None},
    *({"model": m} for m in (
        "Pipeline", ["FDGNNClassifier"], "FDGNNRegressor", None, "GraphReservoir",
        "GraphClassifier", "AutoGraphClassifier", "GraphModel",
    )),
    {"estimators": []}, {"estimators": None}, {"estimators": [{}]}, {"estimators": 2},
    *(estimators(readout=r) for r in ("rbf", "cubic", None, 1)),
    *(estimators(n_features=n) for n in (0, -1, 19, 21, 2**31, 2**40, "20", 1.5, None)),
    *(estimators(alpha=a) for a in (-1.0, "1", [1.0, 1.0], [], 10**400)),
    *(estimators(name=n) for n in (None, 1, "wl", "")), estimators(more=1),
    *(estimators(descriptor_scale=d) for d in (1.0, 0.0, "1")),
    *({"seed": seed} for seed in (
        {"entropy": -1, "spawn_key": []}, {"entropy": [-1], "spawn_key": []},
        {"entropy": "0", "spawn_key": []}, {"entropy": [1], "spawn_key": []},
        {"entropy": [0], "spawn_key": [0]}, {"entropy": [2**32], "spawn_key": []},
        {"entropy": [0] * 65, "spawn_key": []}, {"entropy": None, "spawn_key": []},
        {"entropy": [0] * 300_000, "spawn_key": []}, 0, None,
        {"entropy": [0], "spawn_key": [0] * 65}, {"entropy": [0]},
    )),
    estimators(seed=None), estimators(seed={"entropy": [0] * 65, "spawn_key": []}),
    estimators(seed={"entropy": [-1], "spawn_key": []}),
    *(encoders(facts={"degree": d}) for d in (-1.0, "average", 1e999, None, True, "1")),
    *(encoders(facts={"vocabulary": v}) for v in (
        None, [], [0, 1], [0, 1, "2"], [0, 1, 1], [0.0, 1.0, 2.0], [[0], [1], [2]],
        [True, False, 2], {"0": 1}, "012",
    )),
    encoders(facts={"more": 1}), encoders(facts={"degree": [[[[{}]]]]}),
    {"graph_kind": {"n_inputs": 0}}, {"graph_kind": {"n_inputs": 4}},
    {"graph_kind": {"n_inputs": True}}, {"graph_kind": {"n_inputs": 2**31}},
    {"graph_kind": {"n_inputs": BIG}}, {"graph_kind": {"directed": 1}},
    {"graph_kind": {"vertices": "x"}}, {"graph_kind": {"vertices": ["labels"]}},
    {"graph_kind": {"vertices": "features"}}, {"graph_kind": {"vertices": "nothing"}},
    {"targets": []}, {"targets": None}, {"targets": [{}]}, {"targets": [{}, {"name": "a"}]},
    target(classes=None), classes(3), target(more=1),
    *(classes(v) for v in (
        [0, 1], [0, 1, 1], [0, 2, 1], [0, 1, 2**70], [0, 1, "2"], [0, 1, 2.0], [], [0, 1, None],
        [False, True, 2],
    )),
    classes([0, 1, 200], "<i1"), classes([0.1, 0.2, 0.3], "<f4"), classes(["a", "b", "cc"], "<U1"),
    *(classes(["a", "b", "c"], d) for d in (
        "<U1000000000", "<U9999999", "V1000000000", "S1", "T", "|T16", "O", "U", "",
    )),
    *(classes([0, 1, 2], d) for d in (
        "(1,,2)i4", "(1000000000,)i8", "i8,i8", "nonsense", "(" * 100_000, "<i9", "<M8", "|O",
        "<i8\n", ["<i8"],
    )),
    classes([[0], 1, 2], "|O"), {"flat": 1}, {"flat": None},
    *(target(slope=value) for value in (-1.0, 0.0, "1", 1e999, None, 10**400)),
    *(target(threshold=value) for value in (0.5, 1e999, "0")),
    *(target(conformal=value) for value in (
        None, [], [60], [20, 20, 21], [0, 20, 40], [20, 20, -1], [-20, 40, 40], [20, 40],
        [20, 20, 20, 0], "20", [2**31, 20, 20], [20.5, 19.5, 20],
    )),
    *(target(scores=value) for value in ([], {"accuracy": "good"}, {"accuracy": None})),
    *({"domain": value} for value in (None, 1, [], "wl")),
    *({"domain": value} for value in (
        {"measure": "wl"}, {"measure": "x"}, {"estimator": 2}, {"estimator": -1}, {"limit": 1.5},
        {"limit": -0.1}, {"n_graphs": 0}, {"n_graphs": None}, {"more": 1},
    )),
    {"descriptors": [{"name": "a", "kind": "number"}]}, {"descriptors": [{}]},
    {"evaluation": 1e999}, {"evaluation": "good"}, {"schema": {"x": 1}}, {"schema": 1}, {"more": 1},
    {"x" * 100_000: 1},
]  # fmt: skip


@pytest.mark.parametrize("changes", HOSTILE, ids=lambda c: json.dumps(c)[:70])
def test_descriptions_that_contradict_themselves(content, file, changes):
    data = with_record(content, lambda record: merged(record, json.loads(json.dumps(changes))))
    rejected_quickly(data, file, 20 * len(data))


def test_a_bare_encoder_of_an_enemy(file):
    save_model(GraphReservoir(**SMALL).fit(GRAPHS), file)
    content = file.read_bytes()
    for change in (
        {"encoder": {"parameters": {"n_layers": 100_000}}},
        {"encoder": {"parameters": {"random_state": 5}}},
        {"encoder": {"kind": "test-counts", "parameters": {}, "facts": {}}},
        {"encoder": None},
        {"model": "FDGNNClassifier"},
    ):
        changed = with_record(content, lambda record, change=change: merged(record, change))
        rejected_quickly(changed, file, 20 * len(content))
    file.write_bytes(with_record(content, lambda record: merged(record, {"seed": None})))
    assert not hasattr(load_model(file), "seed_")
    rejected(with_arrays(content, **{"0.coef": np.zeros((1, 1))}), file)


@pytest.mark.parametrize("n_inputs", [-1, 0, 2**31, 10**30])
def test_features_that_no_graph_can_have(file, n_inputs):
    graphs = make_random_graphs(5, n_features=3, random_state=0)
    save_model(GraphReservoir(**SMALL).fit(graphs), file)
    change = {"graph_kind": {"n_inputs": n_inputs}}
    data = with_record(file.read_bytes(), lambda record: merged(record, change))
    assert "n_inputs" in rejected(data, file)


def test_an_encoder_without_arrays_takes_none(file):
    save_model(Counts().fit(GRAPHS), file)
    changed = with_arrays(file.read_bytes(), **{"encoder.more": np.zeros(1)})
    assert "'more', which its encoder does not have" in rejected(changed, file)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": NaN}', "[" * 100_000, '{"a": 1, "a": 1}'])
def test_descriptions_that_are_none(content, file, text):
    header, data = parts(content)
    envelope = {"format": 5, "fdgnn": "1", "sha256": "0" * 64, "model": "MODEL"}
    data = sealed(header, json.dumps(envelope).replace('"MODEL"', text), data)
    rejected(data, file)
    with pytest.raises(ModelFileError):
        model_info(file)


# ---------------------------------------------------------------------- arrays of an enemy


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name", ["0.coef", "1.intercept", "0.projection", "1.encoder.bias", "0.encoder.rec_values"]
)
def test_numbers_that_are_not_finite(content, file, name, value):
    changed = array_of(content, name)
    changed.flat[-1] = value
    assert "not finite" in rejected(with_arrays(content, **{name: changed}), file)


def test_numbers_of_any_encoder_are_finite(file):
    save_model(Sizes().fit(GRAPHS), file)
    changed = with_arrays(file.read_bytes(), **{"encoder.shift": np.array([0, np.nan])})
    assert "not finite" in rejected(changed, file)


ALL = [
    f"1.{name}" for name in (
        "coef", "intercept", "projection", "encoder.bias", "encoder.first_sources",
        "encoder.first_values", "encoder.in_sources", "encoder.in_values",
        "encoder.rec_sources", "encoder.rec_values",
    )
]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_arrays_that_lack_or_have_another_shape_or_type(content, file, name):
    array = array_of(content, name)
    other = np.int32 if array.dtype == np.float64 else np.float64
    wrong = [None, array[None], array.ravel()[:-1], array.astype(other), array[:-1], array[..., :1]]
    wrong += [np.concatenate([array, array]), np.repeat(array, 2, axis=-1), array.T.copy()]
    for changed in wrong:
        if changed is None or changed.shape != array.shape or changed.dtype != array.dtype:
            rejected(with_arrays(content, **{name: changed}), file)


@pytest.mark.parametrize(
    "name",
    ["2.coef", "0.more", "0.encoder.more", "0", "0.", "0.encoder", "0.encoder.", "00.coef", "",
     "coef", "encoder.bias", "-1.coef", "x" * 100_000],
)  # fmt: skip
def test_arrays_that_are_too_many(content, file, name):
    for array in (np.zeros((1, 1)), np.zeros((0, 3))):
        rejected(with_arrays(content, **{name: array}), file)


@pytest.mark.parametrize("value", [-1, 10, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize(
    "name", ["0.encoder.first_sources", "1.encoder.in_sources", "1.encoder.rec_sources"]
)
def test_sources_that_do_not_exist(content, file, name, value):
    """Kernels trust these places: they would read and write memory that is not theirs."""
    changed = array_of(content, name).copy()
    changed[..., 3, 1] = value
    assert "has sources that do not ascend" in rejected(
        with_arrays(content, **{name: changed}), file
    )
    for pair in ((0, 0), (1, 0)):
        changed[..., 3, :] = pair
        message = rejected(with_arrays(content, **{name: changed}), file)
        assert "has sources that do not ascend" in message


def test_many_estimators_take_time_in_proportion(file):
    """About as many as a header can describe."""
    n = 2000
    model = GraphClassifier(Counts(), Ridge(alpha=0.1)).fit(GRAPHS, Y == 1)
    save_model(model, file)
    found = container.from_bytes(file.read_bytes())
    record = json.loads(found.description)
    record["parameters"]["n_estimators"], record["domain"] = n, None
    record["estimators"] *= n
    parts = {"coef": found.arrays["0.coef"], "intercept": found.arrays["0.intercept"]}
    arrays = {f"{i}.{name}": array for i in range(n) for name, array in parts.items()}
    content = container.to_bytes(json.dumps(record).encode(), arrays)
    assert len(content) > MOST_HEADER / 2
    file.write_bytes(content)
    start = time.process_time()
    assert len(load_model(file).estimators_) == n
    assert time.process_time() - start < 60  # linear in the number: this is no hang
    record["parameters"]["n_estimators"] = n + 1
    rejected(container.to_bytes(json.dumps(record).encode(), arrays), file)


def test_memory_is_in_proportion_to_the_file(file):
    model = FDGNNClassifier(n_projections=20_000, **SMALL | {"n_units": 30}).fit(GRAPHS, Y == 1)
    save_model(model, file)
    size = file.stat().st_size
    assert size > 4_000_000
    load_model(file)
    with memory_below(3 * size):
        load_model(file)


# ---------------------------------------------------------------------- anything


@given(st.data())
def test_any_setting_replaced_by_anything_is_rejected_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "replaced.fdgnn"

    def change(record):
        place = data.draw(st.sampled_from([r for r in records_in(record) if r]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(ANY_JSON)

    path.write_bytes(with_record(content, change))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)


@given(st.data())
def test_any_header_is_rejected_or_a_model(content, tmp_path_factory, data):
    """Each part of the header replaced by anything, with the right checksum."""
    path = tmp_path_factory.getbasetemp() / "header.fdgnn"
    header, tail = parts(content)
    name = data.draw(st.sampled_from(sorted(set(header) - {"__metadata__"})))
    if data.draw(st.booleans()):
        header[name] = data.draw(ANY_JSON)
    else:
        header[name][data.draw(st.sampled_from(sorted(header[name])))] = data.draw(ANY_JSON)
    path.write_bytes(signed(header, tail))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)


@given(st.data())
def test_any_array_replaced_by_any_is_rejected_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "array.fdgnn"
    name = data.draw(st.sampled_from(ALL))
    array = array_of(content, name).copy()
    if array.dtype == np.int32:
        values = st.integers(-(2**31), 2**31 - 1) | st.integers(-1, 11)
    else:
        values = st.floats(allow_nan=True, allow_infinity=True)
    place = data.draw(st.integers(0, array.size - 1))
    array.flat[place] = data.draw(values)
    path.write_bytes(with_arrays(content, **{name: array}))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    stored = model.estimators_[1].encoder.reservoir_.layers
    for layer in stored:
        for matrix in (layer.input_weights, layer.recurrent_weights):
            assert (matrix.indices >= 0).all()
            assert (matrix.indices < matrix.shape[1]).all()

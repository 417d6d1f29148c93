"""Model files of committees: encoders, readouts and arrays of every kind, and their enemies."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import fdgnn
from fdgnn import (
    ColorCounts,
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphReservoir,
    as_batch,
    explain,
    load_model,
    load_tu,
    model_info,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import JoinedEncoder
from fdgnn.exceptions import ModelFileError
from fdgnn.model_files import container
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.readout.linear import LinearReadout, SparseReadout
from model_file_tools import (
    ANY_JSON,
    again,
    array_of,
    memory_below,
    merged,
    parts,
    records_in,
    refused,
    refused_quickly,
    signed,
    with_arrays,
    with_record,
)

HERE = Path(__file__).parent
GRAPHS = make_random_graphs(60, random_state=0)
FEATURES = make_random_graphs(40, n_features=3, weighted=True, random_state=1)
PLAIN, PLAIN_Y = make_motif_graphs(40, random_state=0)
Y = np.arange(60) % 3
NEW = make_random_graphs(9, random_state=5)
SMALL = {"n_layers": 2, "n_units": 6, "effective_spectral_radius": 0.5, "random_state": 0}

pytestmark = pytest.mark.filterwarnings(
    "ignore::fdgnn.exceptions.ConvergenceWarning", "ignore::fdgnn.exceptions.UnseenLabelWarning"
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


def joined(**options):
    return JoinedEncoder(
        [GraphReservoir(n_layers=1, n_units=4), ColorCounts(n_rounds=1, **options)], random_state=0
    )


def classifier(encoder, readout="auto", **options):
    return FDGNNClassifier(
        encoder=encoder, readout=readout, alpha=0.1, **SMALL | options, probability=True
    )


# ---------------------------------------------------------------------- the same bits


def assert_same(model, loaded, graphs):
    assert type(loaded) is type(model)
    assert loaded.outputs(graphs).tobytes() == model.outputs(graphs).tobytes()
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    if getattr(model, "probability", False):
        np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))
    for one, other in zip(loaded.networks_, model.networks_, strict=True):
        assert (one.alpha, one.name) == (other.alpha, other.name)
        assert one.encoder.seed_.spawn_key == other.encoder.seed_.spawn_key
        assert_explained_alike(one, other, graphs[:4])


def assert_explained_alike(one, other, graphs):
    """All that an explanation is made of."""
    np.testing.assert_array_equal(one.readout.base_outputs(), other.readout.base_outputs())
    found = []
    for network in (one, other):
        parts = network.encoder.attribute(graphs)
        signs = np.ones((len(graphs), len(network.readout.intercept)))
        if network.expansion is None:
            directions = network.readout.directions(parts.features, signs)
            found.append(parts.contributions(directions, np.arange(len(graphs))))
    if found:
        np.testing.assert_array_equal(*found)


MODELS = {
    "colors": classifier("colors"),
    "colors, linear": classifier("colors", "linear"),
    "colors, several": classifier("colors", "linear", n_networks=2),
    "colors, sums": classifier(ColorCounts(counts="sum")),
    "colors, exact": classifier(ColorCounts(n_buckets=None)),
    "colors, exact and linear": classifier(ColorCounts(n_buckets=None), "linear"),
    "colors, few buckets": classifier(ColorCounts(n_buckets=16), "linear"),
    "colors, expanded": classifier(ColorCounts(n_buckets=64), n_projections=20),
    "reservoir, gaussian": classifier("reservoir", "gaussian"),
    "reservoir, no expansion": classifier("reservoir", n_projections=0),
    "both": classifier("both"),
    "both, linear": classifier("both", "linear", n_networks=2),
    "both, exact": classifier(joined(n_buckets=None), n_networks=2),
    "auto": FDGNNClassifier(encoder="auto", probability=True, random_state=0),
    "auto, colors": FDGNNClassifier(encoder="auto", candidates="colors", random_state=7),
    "auto, both": FDGNNClassifier(encoder="auto", candidates="both", random_state=1),
    "regressor": FDGNNRegressor(encoder="colors", random_state=0),
    "regressor, auto": FDGNNRegressor(encoder="auto", random_state=0),
    "regressor, both": FDGNNRegressor(encoder="both", readout="linear", random_state=0),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_predictions_are_the_same_bits(model, file):
    model.fit(GRAPHS, Y)
    loaded = again(model, file)
    assert_same(model, loaded, GRAPHS)
    assert_same(model, loaded, NEW)
    before = file.read_bytes()
    save_model(loaded, file)
    assert file.read_bytes() == before


KINDS = {
    "features and weights": (FEATURES, np.arange(40) % 2),
    "nothing": (PLAIN, PLAIN_Y),
    "text": (
        [Graph([[0, 1], [1, 0]], labels=[a, b]) for a in "CNO" for b in "CNOS"],
        np.arange(12) % 2,
    ),
    "directed": (make_random_graphs(30, directed=True, random_state=2), np.arange(30) % 2),
    "one weight": (
        [Graph([[0, 1], [1, 0]], weights=[0.5, 0.5], n_vertices=2 + i % 3) for i in range(12)],
        np.arange(12) % 2,
    ),
    "features with few values": (
        [Graph([[0], [1]], features=[[i % 3, 1.0], [i % 2, 1.0]]) for i in range(12)],
        np.arange(12) % 2,
    ),
}


@pytest.mark.parametrize("encoder", ["colors", "both", "auto"])
@pytest.mark.parametrize(("graphs", "y"), KINDS.values(), ids=KINDS)
def test_every_kind_of_graphs_is_kept(graphs, y, encoder, file):
    graphs = as_batch(graphs)
    depth = {} if encoder == "auto" else {"n_rounds": 2}
    model = FDGNNClassifier(encoder=encoder, random_state=0, **depth).fit(graphs, y)
    assert_same(model, again(model, file), graphs)


@pytest.mark.parametrize(
    "encoder",
    [ColorCounts(), ColorCounts(n_buckets=None, n_bins=4), joined(), joined(n_buckets=None)],
    ids=["colors", "exact", "joined", "joined, exact"],
)
@pytest.mark.parametrize("graphs", [GRAPHS, FEATURES, PLAIN], ids=["labels", "features", "nothing"])
def test_bare_encoders(encoder, graphs, file):
    encoder.fit(graphs)
    loaded = again(encoder, file)
    one, other = encoder.transform(graphs), loaded.transform(graphs)
    assert_same_features(one, other)
    assert loaded.n_features_out == encoder.n_features_out == one.shape[1]
    before = file.read_bytes()
    save_model(loaded, file)
    assert file.read_bytes() == before
    assert_same_features(loaded.fit_transform(graphs), one)
    assert model_info(file).encoder.kind == encoder.kind


def assert_same_features(one, other):
    """Without the zeros: a quarter of a million columns for each graph are slow to write."""
    assert one.shape == other.shape
    assert (one != other).nnz == 0


def test_linear_readouts_are_explained_alike(file):
    model = classifier("both", "linear").fit(GRAPHS, Y)
    loaded = again(model, file)
    assert isinstance(loaded.networks_[0].readout, SparseReadout)
    for one, other in zip(explain(model, NEW), explain(loaded, NEW), strict=True):
        np.testing.assert_array_equal(one.vertices, other.vertices)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)


def test_members_that_were_left_out_leave_their_streams_behind(file):
    model = FDGNNClassifier(encoder="auto", candidates="both", random_state=1).fit(GRAPHS, Y)
    model.networks_ = model.networks_[1::2]
    loaded = again(model, file)
    assert_same(model, loaded, NEW)
    assert [n.stream for n in model_info(file).networks] == [1, 3]


def test_loading_needs_no_model_selection(file):
    save_model(classifier("both").fit(GRAPHS, Y), file)
    code = (
        "import sys; from fdgnn import load_model; model = load_model(sys.argv[1]); "
        "assert model.networks_; assert 'sklearn.model_selection' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)


def test_a_committee_predicts_files_row_by_row(file, tmp_path):
    """What was saved from Python is used by the commands."""

    def row(i, **more):
        labels = ["CNO"[(i + j) % 3] for j in range(3 + i % 2)]
        ends = [[*range(len(labels) - 1)], [*range(1, len(labels))]]
        return json.dumps({"edge_index": ends, "node_feat": labels} | more) + "\n"

    table, new, out = (tmp_path / name for name in ("train.jsonl", "new.jsonl", "out.csv"))
    table.write_text("".join(row(i, y="ab"[i % 2]) for i in range(24)))
    train = read_graphs(table, target="y")
    model = FDGNNClassifier(encoder="auto", random_state=0).fit(train.graphs, train.y)
    save_model(model, file)
    # the last one has a label that no training graph has
    new.write_text(row(0) + row(1) + row(2, node_feat=["S", "C", "C"]))
    told = fdgnn("predict", file, new, "--output", out)
    assert told.returncode == 0, told.stderr
    found = [line.split(",")[1] for line in out.read_text().splitlines()]
    assert found[1:3] == ["a", "b"]
    assert len(found) == 4
    shown = fdgnn("model", file, "--json")
    assert len(json.loads(shown.stdout)["networks"]) == len(model.networks_)


# ---------------------------------------------------------------------- sparse readouts


@pytest.mark.parametrize("q", [1, 3])
def test_a_sparse_readout_has_the_outputs_of_the_dense_one(q):
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(q, 50)) * (rng.random(50) < 0.3)
    dense = LinearReadout(coef, rng.normal(size=q))
    sparse = dense.sparse()
    assert len(sparse.columns) < 30
    np.testing.assert_array_equal(sparse.coef, coef)
    X = ColorCounts(n_buckets=64).fit_transform(GRAPHS)[:, :50]
    for features in (X, X.toarray(), X[:0]):
        assert sparse.outputs(features).tobytes() == dense.outputs(features).tobytes()
    nothing = LinearReadout(0 * coef, dense.intercept)
    np.testing.assert_array_equal(nothing.sparse().outputs(X), nothing.outputs(X))
    with pytest.raises(ValueError, match="49 features, not 50"):
        sparse.outputs(X[:, :49])


def test_weights_that_are_all_zero(file):
    model = FDGNNClassifier(encoder=ColorCounts(n_buckets=64), readout="linear", alpha=1.0)
    model.fit(GRAPHS, Y)
    (network,) = model.networks_
    empty = LinearReadout(0 * network.readout.coef, network.readout.intercept)
    model.networks_ = (type(network)(network.encoder, None, empty),)
    assert_same(model, again(model, file), GRAPHS)


# ---------------------------------------------------------------------- parameters


WEIGHTS = [
    ({0: 2, 1: 1.5, 2: 1.0}, Y),
    ({np.int64(1): np.float64(3)}, Y),
    ({"b": 0.25}, np.array(["a", "b", "c"])[Y]),
    ({True: 2.0}, Y == 1),
    ({3.0: 2.0}, np.array([-1.0, 3.0, 7.0])[Y]),
    ("balanced", Y),
    (None, Y),
]


@pytest.mark.parametrize(("weight", "y"), WEIGHTS, ids=lambda w: str(w)[:20])
def test_class_weights_come_back_as_they_were(weight, y, file):
    model = FDGNNClassifier(class_weight=weight, n_rounds=2, **SMALL).fit(GRAPHS, y)
    loaded = again(model, file)
    assert loaded.class_weight == weight
    if isinstance(weight, dict):
        assert [*map(type, loaded.class_weight)] != [np.int64]
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.fit(GRAPHS, y).coef_, model.coef_)


def test_class_weights_of_other_keys_are_told(file):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y).set_params(class_weight={(0, 1): 2.0})
    with pytest.raises(ModelFileError, match=r"class_weight has the key \(0, 1\)"):
        save_model(model, file)
    model.set_params(class_weight={0: -1.0})
    with pytest.raises(ModelFileError, match="not above zero"):
        save_model(model, file)


@pytest.mark.parametrize(
    "change",
    [{"n_rounds": 2}, {"readout": "linear"}, {"encoder": "reservoir"}, {"encoder": "both"},
     {"n_units": 7}],
    ids=str,
)  # fmt: skip
def test_parameters_set_after_fitting_are_told(file, change):
    model = classifier("colors").fit(GRAPHS, Y).set_params(**change)
    if change == {"n_units": 7}:  # which colors do not have
        assert again(model, file).n_units == 7
        return
    with pytest.raises(ModelFileError, match=r"cannot be saved as it is: .*fit it again"):
        save_model(model, file)


def test_encoders_changed_after_fitting_are_told(file):
    encoder = joined().fit(GRAPHS)
    encoder.encoders[1].n_rounds = 3
    with pytest.raises(ModelFileError, match="not those that were fitted"):
        save_model(encoder, file)
    encoder = JoinedEncoder([joined(), ColorCounts()]).fit(GRAPHS)
    with pytest.raises(ModelFileError, match="joined themselves"):
        save_model(encoder, file)


# ---------------------------------------------------------------------- what is told, and sizes


def test_model_info_describes_each_network(file):
    save_model(mixed_model(), file)
    info = model_info(file)
    assert (info.encoder.kind, info.encoder.parameters, info.format) == ("auto", {}, 3)
    assert [n.encoder.kind for n in info.networks] == ["colors", "colors", "both", "reservoir"]
    assert [n.readout for n in info.networks] == ["gaussian", "linear", "gaussian", "linear"]
    assert {n.alpha for n in info.networks} == {0.1}
    inner = info.networks[2].encoder.facts["encoders"]
    assert [each["kind"] for each in inner] == ["reservoir", "colors"]
    save_model(classifier("reservoir", n_networks=3).fit(GRAPHS, Y), file)
    info = model_info(file)
    assert info.encoder.kind == "reservoir"
    assert [(n.encoder, n.readout) for n in info.networks] == [(None, "linear")] * 3


@pytest.mark.real_data("MUTAG", "NCI1")
def test_sizes_are_those_of_the_page(file, tu_path):
    page = (HERE.parent / "docs" / "model-files.md").read_text()
    told = dict(re.findall(r"^\| (\w+, [^|]+) \| ([\d.]+) MB \|", page, re.MULTILINE))
    models = {
        'MUTAG, `encoder="auto"`': FDGNNClassifier(encoder="auto", random_state=0),
        'NCI1, `encoder="colors", n_rounds=4`': FDGNNClassifier(
            encoder="colors", n_rounds=4, alpha=0.1
        ),
        'NCI1, the same with `readout="linear"`': FDGNNClassifier(
            encoder="colors", n_rounds=4, readout="linear", alpha=0.1
        ),
    }
    assert set(told) == set(models)
    for name, model in models.items():
        graphs, y = load_tu(tu_path(name.split(",")[0]))
        loaded = again(model.fit(graphs, y), file)
        assert loaded.outputs(graphs[:50]).tobytes() == model.outputs(graphs[:50]).tobytes()
        assert abs(file.stat().st_size / 1e6 - float(told[name])) < 0.06, name


# ---------------------------------------------------------------------- format 2


def test_a_file_of_format_2_predicts_what_it_did(file):
    """Written by the last version that knew no other readouts; so are the expected outputs."""
    old = HERE / "data" / "format_2.fdgnn"
    model = load_model(old)
    expected = [
        [-0.41735579, 0.00138765, -0.58403186],
        [-0.57170817, -0.14249927, -0.28579255],
        [-0.31342876, -0.49377371, -0.19279752],
    ]
    np.testing.assert_allclose(model.outputs(GRAPHS[:3]), expected, atol=1e-8)
    assert (model.alpha, model.class_weight, model.training_score_) == (1e-3, None, 0.5)
    info = model_info(old)
    assert (info.format, info.networks, info.encoder.kind) == (2, [], "reservoir")
    assert [network.alpha for network in model.networks_] == [None, None]
    loaded = again(model, file)
    assert model_info(file).format == 3
    assert_same(model, loaded, GRAPHS)


def test_the_layout_of_format_2_is_read(file):
    """A new file without its networks, in the old envelope."""
    model = FDGNNClassifier(n_networks=2, probability=True, **SMALL).fit(GRAPHS, Y)
    save_model(model, file)
    header, data = parts(file.read_bytes())
    envelope = json.loads(header["__metadata__"]["fdgnn"]) | {"format": 2}
    record = envelope["model"]
    for name in ("networks", "class_weight"):
        del record[name]
    for name in ("n_rounds", "readout", "candidates", "class_weight"):
        del record["parameters"][name]
    header["__metadata__"]["fdgnn"] = json.dumps(envelope)
    file.write_bytes(signed(header, data))
    loaded = load_model(file)
    assert loaded.outputs(GRAPHS).tobytes() == model.outputs(GRAPHS).tobytes()
    assert loaded.get_params() == model.get_params()


# ---------------------------------------------------------------------- enemies


def mixed_model():
    """A committee in which every kind of encoder and readout occurs, and is small."""
    members = [
        classifier(ColorCounts(n_rounds=1, n_buckets=64)),
        classifier(ColorCounts(n_rounds=1), "linear"),
        classifier(joined(n_buckets=None)),
        classifier(GraphReservoir(n_layers=1, n_units=4), "linear"),
    ]
    model = FDGNNClassifier(encoder="auto", candidates="colors", probability=True, random_state=0)
    model.fit(GRAPHS, Y)
    model.networks_ = tuple(member.fit(GRAPHS, Y).networks_[0] for member in members)
    model.novelty_ = members[0].novelty_
    for i, network in enumerate(model.networks_):
        network.encoder.take_seed(np.random.SeedSequence(0, spawn_key=(i,)))
    return model


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("mixed") / "model.fdgnn"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save_model(mixed_model(), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def featured(tmp_path_factory):
    """Colors of real features and weights, each in bins."""
    path = tmp_path_factory.mktemp("features") / "model.fdgnn"
    save_model(ColorCounts(n_bins=5, n_buckets=None, n_rounds=1).fit(FEATURES), path)
    return path.read_bytes()


def test_the_model_of_these_tests_has_every_part(content, file):
    file.write_bytes(content)
    model = load_model(file)
    kinds = [type(network.readout) for network in model.networks_]
    assert kinds == [GaussianReadout, SparseReadout, GaussianReadout, LinearReadout]
    assert_same(mixed_model(), model, NEW)
    dtypes = {array.dtype.name for array in container.from_bytes(content).arrays.values()}
    assert dtypes == {"float64", "int32", "uint16", "uint64"}


def network(number, **changes):
    return {"networks": {str(number): changes}}


def colors(number, **parameters):
    return network(number, encoder={"parameters": parameters})


BIG = 2**31 - 1
HOSTILE = [
    {"networks": []}, {"networks": None}, {"networks": [{}]}, {"networks": [{}] * 4},
    {"networks": 4}, {"encoder": {"kind": "colors"}}, {"encoder": {"parameters": {"n_units": 1}}},
    {"encoder": {"facts": {"degree": 1.0}}}, {"parameters": {"encoder": "colors"}},
    {"parameters": {"encoder": None}}, {"parameters": {"encoder": "both"}},
    {"parameters": {"candidates": "none"}}, {"parameters": {"readout": "cubic"}},
    {"parameters": {"n_projections": 3}}, {"parameters": {"n_projections": BIG}},
    {"parameters": {"class_weight": 1}}, {"parameters": {"class_weight": "heavy"}},
    {"parameters": {"n_rounds": []}}, {"parameters": {"alpha": -1}},
    {"class_weight": [{"label": 0, "weight": 0}]},
    {"class_weight": [{"label": 0, "weight": -1.0}]}, {"class_weight": {"0": 1}},
    {"class_weight": [{"label": 0, "weight": 1}, {"label": False, "weight": 1}]},
    {"class_weight": [{"label": None, "weight": 1}]}, {"class_weight": [{"label": 0}]},
    {"class_weight": [{"label": [0], "weight": 1}]},
    *(network(i, readout=r) for i, r in ((0, "linear"), (1, "gaussian"), (2, "linear"),
                                        (3, "gaussian"), (0, "cubic"), (0, None), (0, 1))),
    *(network(i, n_features=n) for i in range(4) for n in (0, -1, 63, 65, BIG, 2**40, "64", 1.5)),
    *(network(0, alpha=a) for a in (-1.0, "1", [1], 10**400)),
    *(network(0, name=n) for n in (None, 1, ["x"])),
    *(network(0, stream=s) for s in (-1, 2**31, "0", 1.5)),
    *(network(i, encoder=e) for i in range(4) for e in (None, "colors", [], 1)),
    *(network(i, encoder={"kind": k}) for i in range(4) for k in ("x", "auto", "test", "")),
    network(0, encoder={"kind": "reservoir"}), network(0, encoder={"kind": "both"}),
    network(2, encoder={"kind": "colors"}), network(3, encoder={"kind": "colors"}),
    network(0, more=1),
    *(colors(i, n_buckets=n) for i in (0, 1) for n in (
        None, 2, 32, 128, 2**30, 2**31, 63, -64, 0, "64", 64.0, True, [64],
    )),
    *(colors(0, **p) for p in (
        {"n_rounds": -1}, {"n_rounds": 2**31}, {"n_rounds": "1"}, {"n_rounds": None},
        {"vertices": "features"}, {"vertices": "x"}, {"vertices": None}, {"counts": "x"},
        {"n_bins": 1}, {"n_bins": 2**31}, {"histograms": "x"}, {"arc_labels": 2},
        {"n_jobs": 10**6}, {"encoders": []}, {"more": 1}, {"random_state": "x"},
    )),
    *(network(0, encoder={"facts": f}) for f in (
        {"vocabulary": None}, {"vocabulary": []}, {"vocabulary": [0, 1]},
        {"vocabulary": [0, 1, 1]}, {"vocabulary": [0, 1, "2"]}, {"vocabulary": [0, 1, 2.5]},
        {"vocabulary": [[0], 1, 2]}, {"vocabulary": "012"}, {"joint": 1}, {"joint": None},
        {"whole_weights": False}, {"whole_weights": 0}, {"more": 1}, {"encoders": []},
    )),
    *(network(2, encoder={"facts": {"encoders": e}}) for e in (
        None, [], [{}], [1], 3, "x", {}, [None, None],
    )),
    network(2, encoder={"parameters": {"encoders": []}}),
    network(2, encoder={"parameters": {"encoders": None}}),
    {"graph_kind": {"vertices": "features"}}, {"graph_kind": {"vertices": "nothing"}},
    {"graph_kind": {"n_inputs": 2}}, {"graph_kind": {"n_inputs": BIG}},
    {"n_outputs": 1}, {"n_outputs": 4}, {"model": "FDGNNRegressor"}, {"model": None},
]  # fmt: skip


@pytest.mark.parametrize("changes", HOSTILE, ids=lambda c: json.dumps(c)[:70])
def test_descriptions_of_an_enemy(content, file, changes):
    data = with_record(content, lambda record: merged(record, json.loads(json.dumps(changes))))
    refused_quickly(data, file, 20 * len(data))


BLOCKS = [
    lambda e: e.reverse(), lambda e: e.pop(), lambda e: e.append(e[0]), lambda e: e.append(e[1]),
    lambda e: e[0].update(kind="colors"), lambda e: e[1].update(kind="both"),
    lambda e: e[0]["parameters"].update(n_units=5), lambda e: e[0]["parameters"].update(n_layers=2),
    lambda e: e[0]["parameters"].update(n_units=BIG), lambda e: e[1].update(facts={}),
    lambda e: e[1]["parameters"].update(n_buckets=64), lambda e: e[1].update(parameters=[]),
    lambda e: e[1]["parameters"].update(n_buckets=2**30), lambda e: e[1].update(more=1),
    lambda e: e[0]["facts"].update(degree=-1.0), lambda e: e[0]["facts"].update(vocabulary=None),
    lambda e: e.extend([e[1] | {"parameters": {"n_buckets": 2**30}}] * 3),
]  # fmt: skip


@pytest.mark.parametrize("change", BLOCKS, ids=range(len(BLOCKS)))
def test_blocks_of_an_enemy(content, file, change):
    data = with_record(content, lambda r: change(r["networks"][2]["encoder"]["facts"]["encoders"]))
    refused_quickly(data, file, 20 * len(data))


def test_encoders_joined_without_end(content, file):
    def nested(record):
        encoder = record["networks"][2]["encoder"]
        for _ in range(100):
            encoder = {"kind": "both", "parameters": {}, "facts": {"encoders": [encoder]}}
        record["networks"][2]["encoder"] = encoder

    assert "joined themselves" in refused_quickly(with_record(content, nested), file, 10_000_000)


def names(content):
    """All arrays but those without entries, which one layer has for the next."""
    arrays = container.from_bytes(content).arrays
    return sorted(name for name in arrays if arrays[name].size)


def test_arrays_that_lack_or_have_another_shape_or_type(content, featured, file):
    for data in (content, featured):
        for name in names(data):
            array = array_of(data, name)
            others = {"float64", "int32", "uint16", "uint64"} - {array.dtype.name}
            wrong = [None, array[None], array.ravel()[:-1], np.concatenate([array, array])]
            wrong += [array.astype(other) for other in others]
            wrong += [array[:0], array[..., :0], np.repeat(array, 2, axis=-1), array[..., None]]
            for changed in wrong:
                same = changed is not None and changed.shape == array.shape
                if same and changed.dtype == array.dtype:
                    continue
                free = name in ("encoder.columns", "encoder.weight_edges")
                if free and changed is not None and changed.ndim == 1 and len(changed) < len(array):
                    continue  # no readout says how many a bare encoder has
                refused(with_arrays(data, **{name: changed}), file)


def test_arrays_that_are_too_many(content, featured, file):
    for name in ("0.coef", "0.coef.values", "1.coef", "1.dual", "3.coef.columns", "2.more",
                 "2.encoder.more", "2.encoder.0.more", "2.encoder.2.scale", "2.encoder.0",
                 "2.encoder.1.projection", "0.encoder.columns", "0.encoder.weight_edges",
                 "1.projection", "3.examples.data", "4.coef", "2.encoder..scale"):  # fmt: skip
        for array in (np.zeros((1, 1)), np.zeros(0), np.zeros((0, 3))):
            refused(with_arrays(content, **{name: array}), file)
    for name in ("encoder.more", "encoder.0.scale", "0.coef"):
        refused(with_arrays(featured, **{name: np.zeros(1)}), file)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(content, featured, file, value):
    for data in (content, featured):
        for name in names(data):
            changed = array_of(data, name).copy()
            if changed.dtype == np.float64:
                changed.flat[-1] = value
                assert "not finite" in refused(with_arrays(data, **{name: changed}), file)


def replaced(content, name, *changes):
    changed = array_of(content, name).copy()
    for place, value in changes:
        changed[place] = value
    return with_arrays(content, **{name: changed})


@pytest.mark.parametrize("name", ["1.coef.columns", "0.examples.columns", "0.examples.others"])
def test_columns_that_do_not_exist(content, file, name):
    columns = array_of(content, name)
    P = 2**18 if name == "1.coef.columns" else 64
    if name == "0.examples.others":
        P = int(array_of(content, "0.examples.indptr")[-1])
    for changes in [
        [(0, -1)], [(-1, P)], [(-1, BIG)], [(0, -(2**31))], [(1, columns[0])], [(0, columns[1])],
        [(0, columns[-1]), (-1, columns[0])],
    ]:  # fmt: skip
        message = refused(replaced(content, name, *changes), file)
        assert "columns of its readout do not ascend, or do not exist" in message


@pytest.mark.parametrize("number", [0, 2])
def test_training_graphs_of_an_enemy(content, file, number):
    """SciPy trusts rows and columns: it would read and write memory that is not its own."""
    indptr = array_of(content, f"{number}.examples.indptr")
    nnz = int(indptr[-1])
    for changes in (
        [(0, 1)], [(0, -1)], [(-1, nnz + 1)], [(-1, nnz - 1)], [(-1, BIG)], [(1, -1)], [(1, BIG)],
        [(1, nnz), (2, 0)], [(1, -(2**31))], [(3, int(indptr[2]) - 1)],
    ):  # fmt: skip
        refused(replaced(content, f"{number}.examples.indptr", *changes), file)
    indices = f"{number}.examples.indices"
    for changes in ([(0, 2**16 - 1)], [(1, array_of(content, indices)[0])]):
        refused(replaced(content, indices, *changes), file)
    for name, value in ((f"{number}.sharpness", 0.0), (f"{number}.sharpness", -1.0)):
        refused(replaced(content, name, (0, value)), file)
    # as numbers of 32 bits, which need no list of columns
    long = array_of(content, f"{number}.examples.columns")[array_of(content, indices)]
    without = with_arrays(content, **{indices: long, f"{number}.examples.columns": None})
    file.write_bytes(without)
    assert load_model(file).outputs(NEW).shape == (9, 3)
    for value in (-1, 2**20, BIG, -(2**31)):
        refused(replaced(without, indices, (5, value)), file)
    refused(with_arrays(content, **{indices: long}), file)


def test_scales_and_columns_of_an_enemy(content, file):
    for value in (0.0, -1.0):
        refused(replaced(content, "2.encoder.0.scale", (0, value)), file)
    columns = array_of(content, "2.encoder.1.encoder.columns")
    for changes in ([(0, 2**64 - 1)], [(1, columns[0])], [(-1, 0)]):
        message = refused(replaced(content, "2.encoder.1.encoder.columns", *changes), file)
        assert "do not ascend" in message
    for i in (0, 3):
        refused(replaced(content, "2.encoder.0.encoder.rec_sources", ((0, i, 0), 4)), file)


def test_bins_of_an_enemy(featured, file):
    for value in (-1, 5, BIG, -(2**31)):
        refused(replaced(featured, "encoder.feature_counts", (0, value)), file)
    refused(replaced(featured, "encoder.feature_edges", ((0, 0), 1e9)), file)
    refused(replaced(featured, "encoder.weight_edges", (0, 1e9)), file)
    refused(with_arrays(featured, **{"encoder.weight_edges": np.arange(8.0)}), file)
    for change in (
        {"parameters": {"n_bins": 6}}, {"parameters": {"n_bins": BIG}},
        {"parameters": {"n_buckets": 64}}, {"parameters": {"vertices": "labels"}},
        {"parameters": {"vertices": "degree"}}, {"facts": {"whole_weights": True}},
        {"facts": {"vocabulary": [1, 2, 3]}},
    ):  # fmt: skip
        data = with_record(featured, lambda r, change=change: merged(r, {"encoder": change}))
        refused_quickly(data, file, 20 * len(data))
    for n_inputs in (1, 2, 4, BIG):
        change = {"graph_kind": {"n_inputs": n_inputs}}
        data = with_record(featured, lambda r, change=change: merged(r, change))
        refused_quickly(data, file, 20 * len(data))


@pytest.mark.parametrize("readout", ["linear", "gaussian"])
def test_many_buckets_take_no_memory(file, readout):
    """A readout of 2^24 columns would take 128 MB, if it were made dense."""
    model = FDGNNClassifier(
        encoder=ColorCounts(n_rounds=1, n_buckets=2**10), readout=readout, alpha=0.1
    )
    save_model(model.fit(GRAPHS, Y == 1), file)
    change = network(0, n_features=2**24) | {"encoder": {"parameters": {"n_buckets": 2**24}}}
    change |= {"trust": {}}
    data = with_record(file.read_bytes(), lambda record: merged(record, change))
    data = with_arrays(data, **{"novelty.seen": None})
    file.write_bytes(data)
    load_model(file)
    with memory_below(2_000_000):
        loaded = load_model(file)
    if readout == "linear":
        with memory_below(2_000_000):
            assert loaded.predict(NEW).shape == (9,)


@pytest.mark.parametrize("readout", ["linear", "gaussian"])
def test_memory_is_in_proportion_to_the_file(file, readout):
    graphs = make_random_graphs(1500, random_state=3)
    model = FDGNNClassifier(encoder="colors", readout=readout, alpha=0.1)
    save_model(model.fit(graphs, np.arange(1500) % 2), file)
    load_model(file)
    with memory_below(10 * file.stat().st_size):
        load_model(file)


# ---------------------------------------------------------------------- anything


@given(st.data())
def test_any_setting_replaced_by_anything_is_refused_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "replaced.fdgnn"

    def change(record):
        place = data.draw(st.sampled_from([r for r in records_in(record["networks"][2]) if r]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(ANY_JSON)

    path.write_bytes(with_record(content, change))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)


@given(st.data())
def test_any_array_replaced_by_any_is_refused_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "array.fdgnn"
    name = data.draw(st.sampled_from(names(content)))
    array = array_of(content, name).copy()
    if array.dtype == np.float64:
        values = st.floats(-1e9, 1e9) | st.just(np.nan)
    else:
        limits = np.iinfo(array.dtype)
        values = st.integers(limits.min, limits.max) | st.integers(max(-1, limits.min), 70)
    array.flat[data.draw(st.integers(0, array.size - 1))] = data.draw(values)
    path.write_bytes(with_arrays(content, **{name: array}))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    for each in model.networks_:
        if isinstance(each.readout, GaussianReadout):
            each.readout.examples.check_format(full_check=True)
        if isinstance(each.readout, SparseReadout):
            assert (each.readout.columns < each.readout.n_features).all()
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)

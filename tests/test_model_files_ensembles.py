"""Model files of ensembles: encoders, readouts and arrays of every kind, and untrusted files."""

from __future__ import annotations

import dataclasses
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import fdgnn
from fdgnn import (
    AutoGraphClassifier,
    AutoGraphRegressor,
    FDGNNClassifier,
    Graph,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    explain,
    load_model,
    load_tu,
    model_info,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import Encoder, EncoderUnion
from fdgnn.exceptions import ModelFileError
from fdgnn.linear import KernelReadout, KernelRidge, LinearReadout, Ridge, SparseReadout
from fdgnn.model_files import container
from model_file_tools import (
    ANY_JSON,
    again,
    array_of,
    memory_below,
    merged,
    records_in,
    rejected,
    rejected_quickly,
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
    "ignore::fdgnn.exceptions.ConvergenceWarning", "ignore::fdgnn.exceptions.UnknownLabelWarning"
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "model.fdgnn"


LINEAR, RBF = Ridge(alpha=0.1), KernelRidge(alpha=0.1)
RESERVOIR = GraphReservoir(n_layers=2, n_units=6, effective_spectral_radius=0.5)


def union(**options):
    return EncoderUnion([
        ("reservoir", GraphReservoir(n_layers=1, n_units=4)),
        ("wl", WLCounts(n_iterations=1, **options)),
    ])  # fmt: skip


def classifier(encoder, readout=RBF, **options):
    return GraphClassifier(encoder, readout, **{"probability": True, "random_state": 0} | options)


# ---------------------------------------------------------------------- the same bits


def assert_same(model, loaded, graphs):
    assert type(loaded) is type(model)
    assert loaded.outputs(graphs).tobytes() == model.outputs(graphs).tobytes()
    np.testing.assert_array_equal(loaded.predict(graphs), model.predict(graphs))
    if getattr(model, "probability", False):
        np.testing.assert_array_equal(loaded.predict_proba(graphs), model.predict_proba(graphs))
    for one, other in zip(loaded.estimators_, model.estimators_, strict=True):
        assert (one.alpha, one.name) == (other.alpha, other.name)
        assert one.encoder.seed_.spawn_key == other.encoder.seed_.spawn_key
        assert_explained_alike(one, other, graphs[:4])


def assert_explained_alike(one, other, graphs):
    """All that an explanation is made of."""
    np.testing.assert_array_equal(one.readout.base_outputs(), other.readout.base_outputs())
    found = []
    for fitted in (one, other):
        parts = fitted.encoder.attribute(graphs)
        signs = np.ones((len(graphs), len(fitted.readout.intercept)))
        if fitted.expansion is None:
            directions = fitted.readout.directions(parts.features, signs)
            found.append(parts.contributions(directions, np.arange(len(graphs))))
    if found:
        np.testing.assert_array_equal(*found)


MODELS = {
    "wl": classifier("wl"),
    "wl, linear": classifier("wl", LINEAR),
    "reservoir, several": classifier(RESERVOIR, LINEAR, n_estimators=2),
    "wl, sums": classifier(WLCounts(counts="sum")),
    "wl, exact": classifier(WLCounts(n_features=None)),
    "wl, exact and linear": classifier(WLCounts(n_features=None), LINEAR),
    "wl, few features": classifier(WLCounts(n_features=16), LINEAR),
    "wl, expanded": classifier(WLCounts(n_features=64), "auto", n_projections=20),
    "reservoir, RBF": classifier(RESERVOIR, "rbf"),
    "reservoir, no expansion": classifier("reservoir", "linear", n_projections=0),
    "reservoir with a seed": classifier(GraphReservoir(n_units=6, random_state=3), "auto"),
    "union": classifier("union"),
    "union, linear": classifier("union", LINEAR, n_estimators=2),
    "union, exact": classifier(union(n_features=None), n_estimators=2),
    "readout with a scale": classifier("wl", KernelRidge(alpha=0.1, gamma=0.5)),
    "auto": AutoGraphClassifier(probability=True, random_state=0),
    "auto, wl": AutoGraphClassifier("wl", random_state=7),
    "auto, union": AutoGraphClassifier("union", random_state=1, handle_unknown="error"),
    "auto, a list": AutoGraphClassifier(
        [("a", "wl", "linear"), ("b", RESERVOIR, LINEAR), ("c", union(), RBF)],
        class_weight={0: 2.0},
    ),
    "regressor": GraphRegressor(random_state=0),
    "regressor, auto": AutoGraphRegressor(random_state=0, intervals=True),
    "regressor, union": GraphRegressor("union", "linear", random_state=0),
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


@pytest.mark.parametrize(
    "model",
    [GraphClassifier("wl"), GraphClassifier("union", random_state=0), AutoGraphClassifier()],
    ids=["wl", "union", "auto"],
)
@pytest.mark.parametrize(("graphs", "y"), KINDS.values(), ids=KINDS)
def test_every_kind_of_graphs_is_kept(graphs, y, model, file):
    graphs = as_batch(graphs)
    assert_same(model.fit(graphs, y), again(model, file), graphs)


@pytest.mark.parametrize(
    "encoder",
    [
        WLCounts(),
        WLCounts(n_features=None, n_bins=4),
        union().set_params(random_state=0),
        union(n_features=None),
    ],
    ids=["wl", "exact", "union", "union, exact"],
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
    model = classifier("union", LINEAR).fit(GRAPHS, Y)
    loaded = again(model, file)
    assert isinstance(loaded.estimators_[0].readout, SparseReadout)
    for one, other in zip(explain(model, NEW), explain(loaded, NEW), strict=True):
        np.testing.assert_array_equal(one.vertices, other.vertices)
    coefs = [each.estimators_[0].readout.coef for each in (model, loaded)]
    np.testing.assert_array_equal(*coefs)


def test_base_models_that_are_left_out_do_not_change_the_seeds_of_others(file):
    model = AutoGraphClassifier("union", random_state=1).fit(GRAPHS, Y)
    model.estimators_ = model.estimators_[1::2]
    assert_same(model, again(model, file), NEW)
    assert [each.seed.spawn_key for each in model_info(file).estimators] == [[1], [3]]
    model.estimators_ = model.estimators_[::-1]
    with pytest.raises(ModelFileError, match="another name than the parameters require"):
        save_model(model, file)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_loaded_model_can_be_fitted_again(model, file):
    model.fit(GRAPHS, Y)
    loaded = again(model, file).fit(GRAPHS, Y)
    assert loaded.outputs(NEW).tobytes() == model.outputs(NEW).tobytes()


def test_an_ensemble_predicts_files_row_by_row(file, tmp_path):
    """What was saved from Python is used by the commands."""

    def row(i, **more):
        labels = ["CNO"[(i + j) % 3] for j in range(3 + i % 2)]
        ends = [[*range(len(labels) - 1)], [*range(1, len(labels))]]
        return json.dumps({"edge_index": ends, "node_feat": labels} | more) + "\n"

    table, new, out = (tmp_path / name for name in ("train.jsonl", "new.jsonl", "out.csv"))
    table.write_text("".join(row(i, y="ab"[i % 2]) for i in range(24)))
    train = read_graphs(table, target="y")
    model = AutoGraphClassifier(random_state=0).fit(train.graphs, train.y)
    save_model(model, file)
    # the last one has a label that no training graph has
    new.write_text(row(0) + row(1) + row(2, node_feat=["S", "C", "C"]))
    told = fdgnn("predict", file, new, "--output", out)
    assert told.returncode == 0, told.stderr
    found = [line.split(",")[1] for line in out.read_text().splitlines()]
    assert found[1:3] == ["a", "b"]
    assert len(found) == 4
    shown = fdgnn("model", file, "--json")
    assert len(json.loads(shown.stdout)["estimators"]) == len(model.estimators_)


# ---------------------------------------------------------------------- sparse readouts


@pytest.mark.parametrize("q", [1, 3])
def test_a_sparse_readout_has_the_outputs_of_the_dense_one(q):
    rng = np.random.default_rng(0)
    coef = rng.normal(size=(q, 50)) * (rng.random(50) < 0.3)
    dense = LinearReadout(coef, rng.normal(size=q))
    sparse = dense.sparse()
    assert len(sparse.columns) < 30
    np.testing.assert_array_equal(sparse.coef, coef)
    X = WLCounts(n_features=64).fit_transform(GRAPHS)[:, :50]
    for features in (X, X.toarray(), X[:0]):
        assert sparse.outputs(features).tobytes() == dense.outputs(features).tobytes()
    nothing = LinearReadout(0 * coef, dense.intercept)
    np.testing.assert_array_equal(nothing.sparse().outputs(X), nothing.outputs(X))
    with pytest.raises(ValueError, match="49 features, not 50"):
        sparse.outputs(X[:, :49])


def test_weights_that_are_all_zero(file):
    model = GraphClassifier(WLCounts(n_features=64), Ridge(alpha=1.0)).fit(GRAPHS, Y)
    (fitted,) = model.estimators_
    empty = LinearReadout(0 * fitted.readout.coef, fitted.readout.intercept)
    model.estimators_ = (dataclasses.replace(fitted, readout=empty),)
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
    model = FDGNNClassifier(class_weight=weight, **SMALL).fit(GRAPHS, y)
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
    [{"encoder__n_iterations": 2}, {"readout": "linear"}, {"encoder": "reservoir"},
     {"encoder": "union"}, {"n_projections": 7}],
    ids=str,
)  # fmt: skip
def test_parameters_set_after_fitting_are_reported(file, change):
    model = classifier(WLCounts()).fit(GRAPHS, Y).set_params(**change)
    with pytest.raises(ModelFileError, match=r"cannot be saved as it is: .*fit .* again"):
        save_model(model, file)


def test_encoders_changed_after_fitting_are_reported(file):
    encoder = union().fit(GRAPHS)
    encoder.set_params(wl__n_iterations=3)
    with pytest.raises(ModelFileError, match="not those that were fitted"):
        save_model(encoder, file)
    encoder = EncoderUnion([("both", union()), ("wl", WLCounts())]).fit(GRAPHS)
    with pytest.raises(ModelFileError, match="a union inside a union"):
        save_model(encoder, file)


class Sizes:
    """A transformer of graphs, and no encoder of this library."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.diff(as_batch(X).vertex_offsets)[:, None].astype(float)

    def get_params(self, deep=True):
        return {}


class Unregistered(Encoder):
    kind = "test-unregistered"

    def vertex_features(self, graphs):
        return np.ones((graphs.n_vertices, 1))


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        (Sizes(), "a Sizes cannot be saved, because model files hold no code"),
        (Unregistered(), "Unregistered is not registered"),
        (
            EncoderUnion([("a", Unregistered()), ("b", WLCounts())]),
            "Unregistered is not registered",
        ),
        (GraphReservoir(random_state=np.random.default_rng(0)), "is a Generator, which a file"),
    ],
    ids=["transformer", "unregistered", "unregistered in a union", "generator"],
)
def test_encoders_that_a_file_cannot_hold_are_reported(file, encoder, words):
    models = [GraphClassifier(encoder), AutoGraphClassifier([("a", encoder, "linear")])]
    for model in models:
        with pytest.raises(ModelFileError, match=words):
            save_model(model.fit(GRAPHS, Y), file)
    assert not file.exists()


# ---------------------------------------------------------------------- what is told, and sizes


def test_model_info_describes_each_estimator(file):
    save_model(mixed_model(), file)
    info = model_info(file)
    assert (info.encoder, info.format) == (None, 5)
    assert [(name, encoder.kind) for name, encoder, _ in info.objects["candidates"]] == [
        ("a", "wl"), ("b", "wl"), ("c", "union"), ("d", "reservoir"),
    ]  # fmt: skip
    assert [one.encoder.kind for one in info.estimators] == ["wl", "wl", "union", "reservoir"]
    assert [one.readout for one in info.estimators] == ["rbf", "linear", "rbf", "linear"]
    assert {one.alpha for one in info.estimators} == {0.1}
    inner = info.estimators[2].encoder.facts["encoders"]
    assert [each["kind"] for _, each in inner] == ["reservoir", "wl"]
    save_model(classifier("reservoir", LINEAR, n_estimators=3).fit(GRAPHS, Y), file)
    info = model_info(file)
    assert (info.parameters["encoder"], info.objects["readout"].parameters["alpha"]) == (
        "reservoir",
        0.1,
    )
    assert [each.readout for each in info.estimators] == ["linear"] * 3


@pytest.mark.real_data("MUTAG", "NCI1")
def test_sizes_are_those_of_the_page(file, tu_path):
    page = (HERE.parent / "docs" / "reference" / "model-files.md").read_text()
    told = dict(re.findall(r"^\| (\w+, [^|]+) \| ([\d.]+) MB \|", page, re.MULTILINE))
    models = {
        "MUTAG, `AutoGraphClassifier()`": AutoGraphClassifier(random_state=0),
        "NCI1, `GraphClassifier(WLCounts(n_iterations=4))`": GraphClassifier(
            WLCounts(n_iterations=4), RBF
        ),
        'NCI1, the same with `readout="linear"`': GraphClassifier(WLCounts(n_iterations=4), LINEAR),
    }
    assert set(told) == set(models)
    for name, model in models.items():
        graphs, y = load_tu(tu_path(name.split(",")[0]))
        loaded = again(model.fit(graphs, y), file)
        assert loaded.outputs(graphs[:50]).tobytes() == model.outputs(graphs[:50]).tobytes()
        assert abs(file.stat().st_size / 1e6 - float(told[name])) < 0.06, name


# ---------------------------------------------------------------------- untrusted files


def mixed_model():
    """An ensemble in which every kind of encoder and readout occurs, and is small."""
    candidates = [
        ("a", WLCounts(n_iterations=1, n_features=64), RBF),
        ("b", WLCounts(n_iterations=1), LINEAR),
        ("c", union(n_features=None), RBF),
        ("d", GraphReservoir(n_layers=1, n_units=4), LINEAR),
    ]
    model = AutoGraphClassifier(candidates, probability=True, random_state=0).fit(GRAPHS, Y)
    alone = [GraphClassifier(e, r, random_state=0).fit(GRAPHS, Y) for _, e, r in candidates]
    model.estimators_ = tuple(  # all of them, whatever the rule keeps
        dataclasses.replace(one.estimators_[0], name=name)
        for one, (name, _, _) in zip(alone, candidates, strict=True)
    )
    model._domain = alone[0]._domain
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
    """WL features of real features and weights, each in bins."""
    path = tmp_path_factory.mktemp("features") / "model.fdgnn"
    save_model(WLCounts(n_bins=5, n_features=None, n_iterations=1).fit(FEATURES), path)
    return path.read_bytes()


def test_the_model_of_these_tests_has_every_part(content, file):
    file.write_bytes(content)
    model = load_model(file)
    kinds = [type(one.readout) for one in model.estimators_]
    assert kinds == [KernelReadout, SparseReadout, KernelReadout, LinearReadout]
    assert_same(mixed_model(), model, NEW)
    dtypes = {array.dtype.name for array in container.from_bytes(content).arrays.values()}
    assert dtypes == {"float64", "int32", "uint8", "uint16", "uint64"}


def estimator(number, **changes):
    return {"estimators": {str(number): changes}}


def encoder(number, **parameters):
    """Another encoder, for the parameter as well, so that the arrays decide."""
    change = {"parameters": parameters}
    return estimator(number, encoder=change) | candidate(number, 1, change)


def candidate(number, place, change):
    """Another name (place 0), encoder (1) or readout (2) of one of the candidates."""
    return {"objects": {"candidates": {str(number): {str(place): change}}}}


BIG = 2**31 - 1
READOUT = {"kind": "linear", "parameters": {}, "facts": {}}
ENCODER = {"kind": "wl", "parameters": {"n_iterations": 2}, "facts": {}}
HOSTILE = [
    {"estimators": []}, {"estimators": None}, {"estimators": [{}]}, {"estimators": [{}] * 4},
    {"estimators": 4}, {"encoder": ENCODER}, {"readout": READOUT},
    {"parameters": {"encoder": "wl"}}, {"parameters": {"candidates": "none"}},
    {"parameters": {"candidates": "wl"}}, {"parameters": {"n_projections": 3}},
    {"parameters": {"class_weight": 1}}, {"parameters": {"class_weight": "heavy"}},
    {"parameters": {"handle_unknown": []}}, {"parameters": {"alpha": 1.0}},
    *({"objects": {"candidates": c}} for c in (
        [], None, [{}], "all", [[]], [["a", "wl"]], [["a", "wl", "linear"]], [ENCODER],
    )),
    *(candidate(0, place, c) for place, c in (
        (0, "b"), (0, 1), (1, "wl"), (1, "x"), (1, None), (1, ENCODER), (1, {"kind": "reservoir"}),
        (1, {"more": 1}), (2, "linear"), (2, "x"), (2, None), (2, READOUT), (2, {"kind": "x"}),
        (2, {"parameters": {"alpha": -1}}), (2, {"parameters": {"alpha": "x"}}),
        (2, {"parameters": {"more": 1}}), (2, {"parameters": {"gamma": -1.0}}), (2, {"more": 1}),
    )),
    *({"objects": {"class_weight": w}} for w in (
        [[0, 0]], [[0, -1.0]], {"0": 1}, [[0, 1], [False, 1]], [[None, 1]], [[0]], [[[0], 1]],
        [[0, "x"]], [[READOUT, 1]], READOUT,
    )),
    *(estimator(i, readout=r) for i, r in ((0, "linear"), (1, "rbf"), (2, "linear"), (3, "rbf"),
                                           (0, "cubic"), (0, None), (0, 1))),
    *(estimator(i, n_features=n) for i in range(4)
      for n in (0, -1, 63, 65, BIG, 2**40, "64", 1.5, None)),
    *(estimator(0, alpha=a) for a in (-1.0, "1", [1, 1], 10**400)),
    *(estimator(0, name=n) for n in (None, 1, ["x"], "b", "")),
    *(estimator(0, seed=s) for s in (-1, None, {}, {"entropy": [-1], "spawn_key": []})),
    *(estimator(i, encoder=e) for i in range(4) for e in (None, "wl", [], 1)),
    *(estimator(i, encoder={"kind": k}) for i in range(4) for k in ("x", "auto", "test", "")),
    estimator(0, encoder={"kind": "reservoir"}), estimator(0, encoder={"kind": "union"}),
    estimator(2, encoder={"kind": "wl"}), estimator(3, encoder={"kind": "wl"}),
    estimator(0, more=1),
    *(encoder(i, n_features=n) for i in (0, 1) for n in (
        None, 2, 32, 128, 2**30, 2**31, 63, -64, 0, "64", 64.0, True, [64],
    )),
    *(estimator(0, encoder={"parameters": {"n_features": n}}) for n in (32, 128)),
    *(encoder(0, **p) for p in (
        {"n_iterations": -1}, {"n_iterations": 2**31}, {"n_iterations": "1"},
        {"n_iterations": None}, {"vertices": "features"}, {"vertices": "x"},
        {"vertices": None}, {"counts": "x"},
        {"n_bins": 1}, {"n_bins": 2**31}, {"histograms": "x"}, {"edge_labels": 2},
        {"n_jobs": 10**6}, {"encoders": []}, {"more": 1}, {"random_state": "x"},
    )),
    *(estimator(0, encoder={"facts": f}) for f in (
        {"vocabulary": None}, {"vocabulary": []}, {"vocabulary": [0, 1]},
        {"vocabulary": [0, 1, 1]}, {"vocabulary": [0, 1, "2"]}, {"vocabulary": [0, 1, 2.5]},
        {"vocabulary": [[0], 1, 2]}, {"vocabulary": "012"}, {"joint": 1}, {"joint": None},
        {"whole_weights": False}, {"whole_weights": 0}, {"more": 1}, {"encoders": []},
    )),
    *(estimator(2, encoder={"facts": {"encoders": e}}) for e in (
        None, [], [{}], [1], 3, "x", {}, [None, None], [["a", {}]], [["a"]],
    )),
    estimator(2, encoder={"parameters": {"encoders": []}}),
    estimator(2, encoder={"parameters": {"encoders": None}}),
    {"graph_kind": {"vertices": "features"}}, {"graph_kind": {"vertices": "nothing"}},
    {"graph_kind": {"n_inputs": 2}}, {"graph_kind": {"n_inputs": BIG}},
    *({"model": m} for m in ("AutoGraphRegressor", "GraphClassifier", "FDGNNClassifier", None)),
    *({"domain": n} for n in ({"estimator": 1}, {"estimator": 4}, {"measure": "leverage"})),
]  # fmt: skip


@pytest.mark.parametrize("changes", HOSTILE, ids=lambda c: json.dumps(c)[:70])
def test_descriptions_that_contradict_themselves(content, file, changes):
    data = with_record(content, lambda record: merged(record, json.loads(json.dumps(changes))))
    rejected_quickly(data, file, 20 * len(data))


BLOCKS = [
    lambda e: e.reverse(), lambda e: e.pop(), lambda e: e.append(e[0]), lambda e: e.append(e[1]),
    lambda e: e[0][1].update(kind="wl"), lambda e: e[1][1].update(kind="union"),
    lambda e: e[0][1]["parameters"].update(n_units=5), lambda e: e[1].reverse(),
    lambda e: e[0][1]["parameters"].update(n_layers=2), lambda e: e[1][1].update(facts={}),
    lambda e: e[0][1]["parameters"].update(n_units=BIG), lambda e: e[1].__setitem__(0, "reservoir"),
    lambda e: e[1][1]["parameters"].update(n_features=64), lambda e: e[1].__setitem__(0, "a__b"),
    lambda e: e[1][1]["parameters"].update(n_features=2**30), lambda e: e[1][1].update(more=1),
    lambda e: e[1][1].update(parameters=[]), lambda e: e[0][1]["facts"].update(degree=-1.0),
    lambda e: e[0][1]["facts"].update(vocabulary=None),
    lambda e: e.extend([["x", e[1][1] | {"parameters": {"n_features": 2**30}}]] * 3),
]  # fmt: skip


@pytest.mark.parametrize("change", BLOCKS, ids=range(len(BLOCKS)))
@pytest.mark.parametrize("both", [False, True], ids=["estimator", "and parameter"])
def test_blocks_that_contradict_the_arrays(content, file, change, both):
    def changed(record):
        change(record["estimators"][2]["encoder"]["facts"]["encoders"])
        if both:
            change(record["objects"]["candidates"][2][1]["facts"]["encoders"])

    rejected_quickly(with_record(content, changed), file, 20 * len(content))


def test_unions_in_unions_without_end(content, file):
    def nested(record):
        encoder = record["estimators"][2]["encoder"]
        for _ in range(100):
            encoder = {"kind": "union", "parameters": {}, "facts": {"encoders": [["a", encoder]]}}
        record["estimators"][2]["encoder"] = encoder

    assert "inside a union" in rejected_quickly(with_record(content, nested), file, 10_000_000)


def names(content):
    """All arrays but those without entries, which one layer has for the next."""
    arrays = container.from_bytes(content).arrays
    return sorted(name for name in arrays if arrays[name].size)


def test_arrays_that_lack_or_have_another_shape_or_type(content, featured, file):
    for data in (content, featured):
        for name in names(data):
            array = array_of(data, name)
            others = {"float64", "int32", "uint8", "uint16", "uint64"} - {array.dtype.name}
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
                rejected(with_arrays(data, **{name: changed}), file)


def test_arrays_that_are_too_many(content, featured, file):
    for name in ("0.coef", "0.coef.values", "1.coef", "1.dual", "3.coef.columns", "2.more",
                 "2.encoder.more", "2.encoder.0.more", "2.encoder.2.scale", "2.encoder.0",
                 "2.encoder.1.projection", "0.encoder.columns", "0.encoder.weight_edges",
                 "1.projection", "3.examples.data", "4.coef", "2.encoder..scale"):  # fmt: skip
        for array in (np.zeros((1, 1)), np.zeros(0), np.zeros((0, 3))):
            rejected(with_arrays(content, **{name: array}), file)
    for name in ("encoder.more", "encoder.0.scale", "0.coef"):
        rejected(with_arrays(featured, **{name: np.zeros(1)}), file)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(content, featured, file, value):
    for data in (content, featured):
        for name in names(data):
            changed = array_of(data, name).copy()
            if changed.dtype == np.float64:
                changed.flat[-1] = value
                assert "not finite" in rejected(with_arrays(data, **{name: changed}), file)


def replaced(content, name, *changes):
    changed = array_of(content, name).copy()
    for place, value in changes:
        changed[place] = value
    return with_arrays(content, **{name: changed})


def test_columns_that_do_not_exist(content, file):
    name, P = "1.coef.columns", 2**18
    columns = array_of(content, name)
    for changes in [
        [(0, -1)], [(-1, P)], [(-1, BIG)], [(0, -(2**31))], [(1, columns[0])], [(0, columns[1])],
        [(0, columns[-1]), (-1, columns[0])],
    ]:  # fmt: skip
        message = rejected(replaced(content, name, *changes), file)
        assert "columns of its readout do not ascend, or do not exist" in message


@pytest.mark.parametrize("number", [0, 2])
def test_training_graphs_that_do_not_exist(content, file, number):
    """SciPy trusts rows and columns: it would read and write memory that is not its own."""
    indptr = array_of(content, f"{number}.examples.indptr")
    nnz = int(indptr[-1])
    for changes in (
        [(0, 1)], [(0, -1)], [(-1, nnz + 1)], [(-1, nnz - 1)], [(-1, BIG)], [(1, -1)], [(1, BIG)],
        [(1, nnz), (2, 0)], [(1, -(2**31))], [(3, int(indptr[2]) - 1)],
    ):  # fmt: skip
        rejected(replaced(content, f"{number}.examples.indptr", *changes), file)
    indices = f"{number}.examples.indices"
    values, codes = (array_of(content, f"{indices}.{name}") for name in ("values", "codes"))
    for changes in ([(0, np.iinfo(codes.dtype).max)], [(1, codes[0])]):
        rejected(replaced(content, f"{indices}.codes", *changes), file)
    for changes in ([(0, -1)], [(-1, 2**20)], [(-1, BIG)], [(0, -(2**31))], [(0, values[-1])]):
        rejected(replaced(content, f"{indices}.values", *changes), file)
    for name, value in ((f"{number}.sharpness", 0.0), (f"{number}.sharpness", -1.0)):
        rejected(replaced(content, name, (0, value)), file)
    # as numbers of 32 bits, which need no codes
    long = values[codes]
    none = {f"{indices}.values": None, f"{indices}.codes": None}
    without = with_arrays(content, **{indices: long}, **none)
    file.write_bytes(without)
    assert load_model(file).outputs(NEW).shape == (9, 3)
    for value in (-1, 2**20, BIG, -(2**31)):
        rejected(replaced(without, indices, (5, value)), file)
    rejected(with_arrays(content, **{indices: long}), file)


def test_scales_and_columns_out_of_range(content, file):
    for value in (0.0, -1.0):
        rejected(replaced(content, "2.encoder.0.scale", (0, value)), file)
    columns = array_of(content, "2.encoder.1.encoder.columns")
    for changes in ([(0, 2**64 - 1)], [(1, columns[0])], [(-1, 0)]):
        message = rejected(replaced(content, "2.encoder.1.encoder.columns", *changes), file)
        assert "do not ascend" in message
    for i in (0, 3):
        rejected(replaced(content, "2.encoder.0.encoder.rec_sources", ((0, i, 0), 4)), file)


def test_bins_out_of_range(featured, file):
    for value in (-1, 5, BIG, -(2**31)):
        rejected(replaced(featured, "encoder.feature_counts", (0, value)), file)
    rejected(replaced(featured, "encoder.feature_edges", ((0, 0), 1e9)), file)
    rejected(replaced(featured, "encoder.weight_edges", (0, 1e9)), file)
    rejected(with_arrays(featured, **{"encoder.weight_edges": np.arange(8.0)}), file)
    for change in (
        {"parameters": {"n_bins": 6}}, {"parameters": {"n_bins": BIG}},
        {"parameters": {"n_features": 64}}, {"parameters": {"vertices": "labels"}},
        {"parameters": {"vertices": "degree"}}, {"facts": {"whole_weights": True}},
        {"facts": {"vocabulary": [1, 2, 3]}},
    ):  # fmt: skip
        data = with_record(featured, lambda r, change=change: merged(r, {"encoder": change}))
        rejected_quickly(data, file, 20 * len(data))
    for n_inputs in (1, 2, 4, BIG):
        change = {"graph_kind": {"n_inputs": n_inputs}}
        data = with_record(featured, lambda r, change=change: merged(r, change))
        rejected_quickly(data, file, 20 * len(data))


@pytest.mark.parametrize("readout", [LINEAR, RBF], ids=["linear", "rbf"])
def test_many_columns_take_no_memory(file, readout):
    """A readout of 2^24 columns would take 128 MB, if it were made dense."""
    model = GraphClassifier(WLCounts(n_iterations=1, n_features=2**10), readout)
    save_model(model.fit(GRAPHS, Y == 1), file)
    more = {"parameters": {"n_features": 2**24}}
    change = {"objects": {"encoder": more}, "domain": None} | estimator(
        0, n_features=2**24, encoder=more
    )
    data = with_record(file.read_bytes(), lambda record: merged(record, change))
    data = with_arrays(data, **{"domain.seen": None})
    file.write_bytes(data)
    load_model(file)
    with memory_below(2_000_000):
        loaded = load_model(file)
    if readout is LINEAR:
        with memory_below(2_000_000):
            assert loaded.predict(NEW).shape == (9,)


@pytest.mark.parametrize("readout", [LINEAR, RBF], ids=["linear", "rbf"])
def test_memory_is_in_proportion_to_the_file(file, readout):
    graphs = make_random_graphs(1500, random_state=3)
    model = GraphClassifier("wl", readout)
    save_model(model.fit(graphs, np.arange(1500) % 2), file)
    load_model(file)
    with memory_below(10 * file.stat().st_size):
        load_model(file)


# ---------------------------------------------------------------------- anything


@given(st.data())
def test_any_setting_replaced_by_anything_is_rejected_or_a_model(content, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "replaced.fdgnn"

    def change(record):
        place = data.draw(st.sampled_from([r for r in records_in(record["estimators"][2]) if r]))
        place[data.draw(st.sampled_from(sorted(place)))] = data.draw(ANY_JSON)

    path.write_bytes(with_record(content, change))
    try:
        model = load_model(path)
    except ModelFileError:
        return
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)


@given(st.data())
def test_any_array_replaced_by_any_is_rejected_or_a_model(content, tmp_path_factory, data):
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
    for each in model.estimators_:
        if isinstance(each.readout, KernelReadout):
            each.readout.examples.check_format(full_check=True)
        if isinstance(each.readout, SparseReadout):
            assert (each.readout.columns < each.readout.n_features).all()
    assert model.outputs(GRAPHS[:2]).shape == (2, 3)

"""Columns of the user's own beside the graphs: in batches, features, models and explanations."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split

from fdgnn import (
    AutoGraphRegressor,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphBatch,
    GraphClassifier,
    GraphRegressor,
    GraphReservoir,
    WLCounts,
    as_batch,
    explain,
    load_model,
    model_info,
    save_model,
    substructures,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders.descriptors import SHARE, DescriptorBlock, DescriptorColumn, with_descriptors
from fdgnn.exceptions import GraphError, UnknownLabelWarning
from fdgnn.graphs.descriptors import Descriptors
from model_file_tools import rejected, with_record
from models import NAMES, classifier, regressor

pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

N = 60
GRAPHS = make_random_graphs(N, random_state=0)
RNG = np.random.default_rng(0)
SIZE = np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(5.0, 3.0, size=N))
SITE = np.array(["north", "south", None], dtype=object)[np.arange(N) % 3]
TABLE = {"size": SIZE, "site": SITE}
DESCRIBED = GRAPHS.with_descriptors(TABLE)
NUMBERS = np.nan_to_num(SIZE, nan=5.0) + 2.0 * (SITE == "north")
CLASSES = (np.median(NUMBERS) < NUMBERS).astype(int)


def models():
    small = {"n_units": 8, "n_layers": 2}
    encoder = GraphReservoir(**small)
    union = EncoderUnion([("reservoir", encoder), ("wl", WLCounts())])
    return {
        "reservoir": FDGNNRegressor(random_state=0, **small),
        "reservoir, no expansion": FDGNNRegressor(n_projections=0, random_state=0, **small),
        "reservoir, RBF": GraphRegressor(encoder, "rbf", random_state=0),
        "wl": GraphRegressor("wl", random_state=0),
        "wl, linear": GraphRegressor("wl", "linear", random_state=0),
        "union": GraphRegressor(union, random_state=0),
        "auto": AutoGraphRegressor(random_state=0),
    }


# ---------------------------------------------------------------------- with the graphs


def test_slices_and_single_graphs_keep_their_own():
    part = DESCRIBED[[5, 2, 7]]
    assert part.descriptors.names == ("size", "site")
    np.testing.assert_array_equal(part.descriptors.column("size"), SIZE[[5, 2, 7]])
    assert part[1].descriptors["site"] is None
    missing = int(np.argmax(np.isnan(SIZE)))
    assert DESCRIBED[missing].descriptors["size"] is None
    assert DESCRIBED[0].descriptors == {"size": SIZE[0], "site": "north"}
    assert "2 descriptors" in repr(part)
    again = pickle.loads(pickle.dumps(part))
    assert again.descriptors.column("site").tolist() == part.descriptors.column("site").tolist()


def test_a_list_of_graphs_is_the_same_batch():
    again = as_batch(list(DESCRIBED))
    np.testing.assert_array_equal(again.descriptors.column("size"), SIZE)
    assert again.descriptors.column("site").tolist() == SITE.tolist()


class Frame(dict):
    """What pandas and polars have in common: a list of columns, each of them array-like."""

    columns = property(list)


class Categories(list):
    dtype = "category"


def test_tables_are_read_in_whatever_form_they_come():
    codes = Categories(np.arange(N) % 3)
    frame = Frame(size=SIZE, site=SITE, even=np.arange(N) % 2 == 0, code=codes)
    found = as_batch(GRAPHS, descriptors=frame).descriptors
    assert found.names == ("size", "site", "even", "code")
    assert found.column("even").tolist() == (np.arange(N) % 2 == 0).astype(float).tolist()
    assert found.column("code").tolist() == [str(i % 3) for i in range(N)]
    matrix = as_batch(GRAPHS, descriptors=np.stack([SIZE, SIZE], axis=1)).descriptors
    assert matrix.names == ("descriptor 0", "descriptor 1")
    np.testing.assert_array_equal(matrix.columns[1], SIZE)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"a": [1.0] * 3}, r"descriptor 'a' has 3 values, but there are 60 graphs"),
        ({"a": [1.0] * 59 + ["x"]}, r"descriptor 'a' has the value 'x' beside numbers"),
        ({"a": [1.0] * 59 + [np.inf]}, r"graph 59: descriptor 'a' is infinite"),
        ({"a": [[1.0, 2.0]] * 60}, r"descriptor 'a' has lists as values"),
        (np.zeros(60), r"descriptors have shape \(60,\), expected \(n_graphs, n_descriptors\)"),
        ({}, "there are no descriptors; give at least one column"),
    ],
)
def test_bad_tables_are_one_line(table, message):
    with pytest.raises(GraphError, match=message) as caught:
        GRAPHS.with_descriptors(table)
    assert "\n" not in str(caught.value)


def test_graphs_of_a_list_that_do_not_fit_are_named():
    one, two = GRAPHS[0], GRAPHS[1]
    with pytest.raises(GraphError, match=r"graph 1: .*described by b, but graph 0 is"):
        as_batch([replace(one, descriptors={"a": 1}), replace(two, descriptors={"b": 1})])
    given = [
        replace(one, descriptors={"a": None}),
        replace(two, descriptors={"a": 2}),
        replace(two, descriptors={"a": "two"}),
        replace(two, descriptors={"a": [2]}),
        replace(two, descriptors={"a": np.inf}),
    ]
    batch, errors = GraphBatch.collect(dict(enumerate(given)))
    assert len(batch) == 2
    assert np.isnan(batch.descriptors.columns[0][0])
    assert sorted(errors) == [2, 3, 4]
    assert "is text, but that of graph 1 is a number" in errors[2]


# ---------------------------------------------------------------------- as features


def test_numbers_are_standardized_and_what_is_missing_is_the_mean():
    block = DescriptorBlock.of(DESCRIBED.descriptors, np.eye(N))
    X = block.features(DESCRIBED) / block.scale
    known = ~np.isnan(SIZE)
    assert X.shape == (N, 5) == (N, block.n_features)
    np.testing.assert_allclose(X[known, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(X[known, 0].std(), 1)
    assert (X[~known, 0] == 0).all()
    np.testing.assert_array_equal(X[:, 1], ~known)
    np.testing.assert_array_equal(X[:, 2:], np.arange(N)[:, None] % 3 == np.arange(3))
    assert block.column_of_feature.tolist() == [0, 0, 1, 1, 1]


def test_the_block_has_its_share_of_the_size_of_the_features_beside_it():
    from fdgnn.arrays import spread

    X = np.random.default_rng(0).normal(size=(N, 7)) * 13
    block = DescriptorBlock.of(DESCRIBED.descriptors, X)
    assert spread(block.features(DESCRIBED)) == pytest.approx(SHARE * spread(X))
    both = with_descriptors(X, block, DESCRIBED)
    np.testing.assert_array_equal(both[:, :7], X)
    np.testing.assert_array_equal(both[:, 7:], block.features(DESCRIBED))


def test_columns_that_teach_nothing_are_rejected_and_constant_ones_are_not():
    with pytest.raises(GraphError, match="descriptor 'a' is missing for all graphs; leave it out"):
        DescriptorColumn.of("a", np.full(4, np.nan))
    names = np.array([f"row {i}" for i in range(N)], dtype=object)
    with pytest.raises(GraphError, match="'a' has 60 different texts for 60 graphs"):
        DescriptorColumn.of("a", names)
    constant = DescriptorColumn.of("a", np.full(4, 3.0))
    assert (constant.features(np.full(2, 3.0)) == 0).all()


# ---------------------------------------------------------------------- in models


@pytest.mark.parametrize("name", NAMES)
def test_models_learn_from_them(name):
    model = regressor(name, random_state=0)
    without, with_them = (
        np.corrcoef(cross_val_predict(model, graphs, NUMBERS, cv=3), NUMBERS)[0, 1]
        for graphs in (GRAPHS, DESCRIBED)
    )
    assert with_them > max(0.7, without + 0.3)


def test_without_descriptors_nothing_changes():
    plain = FDGNNClassifier(random_state=0).fit(GRAPHS, CLASSES)
    assert plain._descriptors is None
    np.testing.assert_array_equal(plain.outputs(DESCRIBED), plain.outputs(GRAPHS))


def test_scikit_learns_tools_keep_graphs_and_descriptors_together():
    train, test, y, y_test = train_test_split(DESCRIBED, CLASSES, random_state=0)
    search = GridSearchCV(FDGNNClassifier(random_state=0), {"alpha": [1e-2, 1.0]}, cv=3)
    assert search.fit(train, y).score(test, y_test) > 0.7
    own = FDGNNSearchCV(FDGNNClassifier(), n_configurations=2, depths=(1, 2), cv=3, random_state=0)
    assert own.fit(train, y).score(test, y_test) > 0.7
    assert own.best_estimator_._descriptors.names == ["size", "site"]


def test_the_order_of_columns_does_not_matter_and_further_ones_are_ignored():
    model = FDGNNRegressor(random_state=0).fit(DESCRIBED, NUMBERS)
    turned = GRAPHS.with_descriptors({"more": np.arange(N), "site": SITE, "size": SIZE})
    np.testing.assert_array_equal(model.predict(turned), model.predict(DESCRIBED))


def test_a_model_says_which_descriptor_it_misses():
    model = FDGNNRegressor(random_state=0).fit(DESCRIBED, NUMBERS)
    for graphs in (GRAPHS, GRAPHS.with_descriptors({"size": SIZE})):
        with pytest.raises(GraphError, match=r"no descriptor 's.*', which the model was fitted"):
            model.predict(graphs)
    text = GRAPHS.with_descriptors({"size": ["large"] * N, "site": SITE})
    with pytest.raises(GraphError, match=r"'size' is the text 'large', but the .* on numbers"):
        model.predict(text)
    numbers = GRAPHS.with_descriptors({"size": SIZE, "site": np.arange(N)})
    with pytest.raises(GraphError, match=r"'site' is the number 0, but the .* text; give '0'"):
        model.predict(numbers)


def test_values_that_were_not_seen_are_told_and_count_nothing():
    model = FDGNNRegressor(random_state=0).fit(DESCRIBED, NUMBERS)
    few = GRAPHS[:3].with_descriptors({"size": SIZE[:3], "site": ["east", "north", None]})
    assert model.unknown_labels(few) == {
        0: "descriptor site is east, which was not seen during fit"
    }
    with pytest.warns(UnknownLabelWarning, match="1 of 3 graphs"):
        found = model.predict(few)
    assert np.isfinite(found).all()
    missing = GRAPHS[:3].with_descriptors({"size": [None] * 3, "site": [None] * 3})
    assert np.isfinite(model.predict(missing)).all()  # all missing: no kind can be told


# ---------------------------------------------------------------------- explained and saved


@pytest.mark.parametrize("name", models())
def test_vertices_and_descriptors_add_up_to_the_score(name):
    model = models()[name].fit(DESCRIBED, NUMBERS)
    scores = model.predict(DESCRIBED[:8])
    for found, score in zip(explain(model, DESCRIBED[:8]), scores, strict=True):
        assert list(found.descriptors) == ["size", "site"]
        total = found.vertices.sum() + sum(found.descriptors.values())
        assert found.score == pytest.approx(score)
        assert total == pytest.approx(found.score - found.base_score, abs=1e-9)


def test_a_descriptor_contributes_what_its_weights_say():
    model = FDGNNRegressor(random_state=0, alpha=1e-6).fit(DESCRIBED, NUMBERS)
    first = explain(model, DESCRIBED[:1])[0]
    fitted = model.estimators_[0]
    weights = fitted.readout.coef[0, -fitted.descriptors.n_features :]
    parts = fitted.descriptors.features(DESCRIBED[:1])[0] * weights
    assert first.descriptors["size"] == pytest.approx(parts[:2].sum())
    assert first.descriptors["site"] == pytest.approx(parts[2:].sum())


def test_edge_effects_and_substructures_leave_descriptors_as_they_are():
    graphs, y = make_motif_graphs(40, random_state=0)
    described = graphs.with_descriptors({"z": np.arange(40.0)})
    model = GraphClassifier("wl", "linear").fit(described, y)
    found = explain(model, described[:2], target=1, edges=True)[0]
    one = described[0]
    gone = replace(one, edge_index=one.edge_index[:, 1:], directed=False)
    assert gone.descriptors == {"z": 0.0}
    assert np.isfinite(found.edge_effects).all()
    few = described[:4]
    added = sum(each.weight for each in substructures(model, few, target=1, n_most=10**6))
    total = sum(each.vertices.sum() for each in explain(model, few, target=1))
    assert added == pytest.approx(total / 4)


@pytest.mark.parametrize("name", models())
def test_a_file_gives_the_same_predictions(name, tmp_path):
    model = models()[name].fit(DESCRIBED, NUMBERS)
    file = tmp_path / "model.fdgnn"
    save_model(model, file)
    loaded = load_model(file)
    assert loaded.predict(DESCRIBED).tobytes() == model.predict(DESCRIBED).tobytes()
    columns = model_info(file).descriptors
    assert [column.name for column in columns] == ["size", "site"]
    assert columns[1].categories == ("north", "south")
    with pytest.raises(GraphError, match="no descriptor 'size'"):
        loaded.predict(GRAPHS)


@pytest.mark.parametrize(
    "change",
    [
        {"descriptors": []},
        {"descriptors": [{"name": "size", "kind": "number"}]},
        {"descriptors": [{"name": "size", "kind": "number"}] * 2},
        {"descriptors": [{"name": "size", "kind": "number", "scale": 0.0}]},
        {"descriptors": [{"name": "size", "kind": "else"}]},
    ],
)
def test_files_that_contradict_themselves_are_rejected(change, tmp_path):
    file = tmp_path / "model.fdgnn"
    save_model(FDGNNRegressor(random_state=0).fit(DESCRIBED, NUMBERS), file)
    changed = with_record(file.read_bytes(), lambda record: record.update(change))
    rejected(changed, file)


def test_a_table_of_descriptors_is_taken_as_it_is():
    table = Descriptors.of(TABLE, N)
    assert GRAPHS.with_descriptors(table).descriptors is table
    assert len(table) == N
    assert isinstance(GRAPHS[0], Graph)


@pytest.mark.parametrize("name", ["reservoir", "wl"])
def test_numbers_beyond_those_of_training_are_unlike(name, tmp_path):
    graphs, y = make_motif_graphs(60, random_state=0)
    numbers = np.linspace(-1, 5, 60)
    numbers[3] = np.nan
    given = graphs.with_descriptors({"size": numbers, "heat": np.arange(60.0)})
    model = classifier(name, random_state=0).fit(given, y)
    plain = set(model.out_of_domain(given))
    strange = np.array([7.5, np.nan, *np.full(58, 2.0)])
    heat = np.array([-3.0, *np.full(59, 2.0)])
    asked = graphs.with_descriptors({"size": strange, "heat": heat})
    save_model(model, tmp_path / "m.fdgnn")
    for one in (model, load_model(tmp_path / "m.fdgnn")):
        told = one.out_of_domain(asked)
        assert set(told) == plain | {0}
        assert (
            "descriptor size is 7.5, and -1 to 5 in training; descriptor heat is -3, " in (told[0])
        )

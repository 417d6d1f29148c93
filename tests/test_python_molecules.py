"""Molecules in Python: lists of SMILES and RDKit Mols wherever graphs are taken."""

from __future__ import annotations

import dataclasses

import networkx as nx
import numpy as np
import pytest
from msgspec.structs import replace

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphReservoir,
    KernelRidge,
    Ridge,
    WLCounts,
    as_batch,
    explain,
    load_model,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_motif_graphs
from fdgnn.encoders import EncoderUnion
from fdgnn.exceptions import (
    GraphError,
    InvalidGraphWarning,
    UnknownLabelWarning,
    UnusedDataWarning,
)
from strategies import assert_same

Chem = pytest.importorskip("rdkit.Chem")

ALCOHOLS = ["CCO", "CCCO", "CC(C)O", "OCCO", "CCCCO", "OC1CCCC1", "CC(O)CO", "OCc1ccccc1"]
AMINES = ["CCN", "CCCN", "CC(C)N", "NCCN", "CCCCN", "NC1CCCC1", "CC(N)CN", "NCc1ccccc1"]
SMILES = ALCOHOLS + AMINES
Y = np.repeat(["alcohol", "amine"], 8)


def of_wl(**parameters):
    return GraphClassifier("wl", Ridge(alpha=0.1), **parameters)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("molecules") / "m.csv"
    lines = (f"{s},{y}" for s, y in zip(SMILES, Y, strict=True))
    path.write_text("smiles,y\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def model():
    return of_wl(probability=True).fit(SMILES, Y)


# ---------------------------------------------------------------------- into a batch


@pytest.mark.parametrize("atoms", [None, "element", "typed", "rich"])
def test_a_list_of_smiles_is_read_as_a_file_is(table, atoms):
    batch = as_batch(SMILES, atoms=atoms)
    expected = read_graphs(table, atoms=atoms or "typed")
    assert_same(batch, expected.graphs)
    assert batch.schema == replace(expected.schema, smiles_column=None)
    for same in (
        tuple(SMILES),
        np.array(SMILES),
        np.array(SMILES, dtype=object),
        [Chem.MolFromSmiles(s) for s in SMILES],
        [Chem.AddHs(Chem.MolFromSmiles(s)) for s in SMILES],
        [Chem.MolFromSmiles(s) if i % 2 else s for i, s in enumerate(SMILES)],
    ):
        assert_same(as_batch(same, atoms=atoms), batch)


def test_choices_of_molecules():
    salt = ["CC(=O)[O-].[Na+]", "C[C@H](N)C(=O)O"]
    batch = as_batch(salt, standardize="parent", stereo=True)
    assert_same(batch, as_batch(["CC(=O)O", salt[1]], stereo=True))
    assert "C 3 H1 S" in batch.label_values.tolist()
    again = as_batch(salt, like=batch.schema)
    assert_same(again, batch)
    assert again.schema == batch.schema
    with pytest.raises(ValueError, match=r"`stereo` is False, but .* was read with True; leave"):
        as_batch(salt, like=batch.schema, stereo=False)
    with pytest.raises(ValueError, match="atoms='fat': expected one of element, typed, rich"):
        as_batch(salt, atoms="fat")


def test_bad_molecules_are_named(capfd):
    with pytest.raises(GraphError, match=r"^graph 1: the SMILES 'C1CC' cannot be parsed$"):
        as_batch(["CCO", "C1CC"])
    for missing in (None, "", float("nan")):
        with pytest.raises(GraphError, match=r"^graph 1: the SMILES is missing$"):
            as_batch(["CCO", missing, "CCN"])
    with pytest.raises(GraphError, match=r"^graph 2: expected a SMILES or Mol, got Graph$"):
        as_batch(["CCO", "CCN", Graph([[0], [1]])])
    with pytest.raises(GraphError, match=r"^graph 0: a molecule without atoms$"):
        as_batch([Chem.Mol()])
    raw = Chem.MolFromSmiles("c1ccccc1", sanitize=False)
    with pytest.raises(GraphError, match=r"^graph 0: .* RDKit cannot use .*; sanitize it$"):
        as_batch([raw])
    with pytest.raises(GraphError, match=r"got str; wrap a single molecule in a list"):
        as_batch("CCO")
    assert capfd.readouterr() == ("", "")


def test_users_molecules_stay_as_they_are():
    mol = Chem.AddHs(Chem.MolFromSmiles("F/C=C/F"))
    before = mol.ToBinary()
    as_batch([mol], stereo=True, standardize="tautomer")
    assert mol.ToBinary() == before


# ---------------------------------------------------------------------- models


def test_everything_takes_molecules(model):
    batch = as_batch(SMILES)
    assert (model.predict(SMILES) == model.predict(batch)).all()
    assert (model.predict(SMILES) == Y).all()
    assert (model.predict_proba(SMILES) == model.predict_proba(batch)).all()
    assert (model.decision_function(SMILES[:3]) == model.decision_function(batch[:3])).all()
    mols = [Chem.MolFromSmiles(s) for s in SMILES]
    for one, other in zip(explain(model, mols), explain(model, batch), strict=True):
        assert (one.vertices == other.vertices).all()
    assert (model.score(SMILES, Y), model.input_schema_.atoms) == (1.0, "typed")
    encoder = WLCounts().fit(SMILES)
    assert (encoder.transform(SMILES) != encoder.transform(batch)).nnz == 0
    number = FDGNNRegressor(random_state=0).fit(SMILES, np.arange(16.0))
    assert (number.predict(SMILES) == number.predict(batch)).all()


def test_a_model_reads_molecules_as_its_training_file_was_read(table, tmp_path):
    for choices in (
        {"atoms": "typed"},
        {"atoms": "element", "edge_labels": "weights"},
        {"atoms": "rich", "stereo": True},
        {"atoms": "typed", "standardize": "parent"},
        {"edge_labels": "ignore"},
    ):
        read = read_graphs(table, target="y", **choices)
        fitted = of_wl().fit(read.graphs, read.y)
        save_model(fitted, tmp_path / "m.fdgnn")
        again = load_model(tmp_path / "m.fdgnn")
        expected = fitted.decision_function(read.graphs)
        for one in (fitted, again):
            assert (one.decision_function(SMILES) == expected).all()
    new = tmp_path / "new.csv"
    new.write_text("smiles\nCCCCCO\n")
    fitted = of_wl().fit(SMILES, Y)
    assert_same(read_graphs(new, like=fitted).graphs, fitted._check_graphs(["CCCCCO"]))


def test_encoders_and_searches_keep_the_reading(tmp_path):
    for encoder in (GraphReservoir(n_units=50, random_state=0), WLCounts(n_features=64)):
        read = as_batch(SMILES, atoms="element", standardize="parent")
        save_model(encoder.fit(read), tmp_path / "e.fdgnn")
        again = load_model(tmp_path / "e.fdgnn")
        assert again.input_schema_ == encoder.input_schema_ == read.schema
        assert abs(again.transform(SMILES[:2]) - encoder.transform(read[:2])).max() == 0
    search = FDGNNSearchCV(of_wl(), depths=(1,), alphas=(0.1,))
    search.set_params(cv=2, random_state=0).fit(SMILES, Y)
    assert search.predict(["CCCCO"]).tolist() == ["alcohol"]


def test_a_model_of_other_graphs_refuses_molecules(model):
    graphs, y = make_motif_graphs(20, random_state=0)
    other = FDGNNClassifier(random_state=0).fit(graphs, y)
    with pytest.raises(GraphError, match=r"graph 0: .* only models of molecules take molecules"):
        other.predict(["CCO"])
    unread = of_wl().fit(list(as_batch(SMILES)), Y)
    with pytest.raises(GraphError, match="only models of molecules take molecules"):
        unread.predict(["CCO"])
    assert (model.predict(list(as_batch(SMILES))) == Y).all()  # graphs are graphs


# ---------------------------------------------------------------------- nothing, and strange graphs


@pytest.mark.parametrize("nothing", [[], (), np.array([], dtype=object), as_batch(["CCO"])[:0]])
def test_nothing_in_nothing_out(model, nothing):
    found = model.predict(nothing)
    assert (found.shape, found.dtype) == ((0,), model.predict(["CCO"]).dtype)
    assert model.predict_proba(nothing).shape == (0, 2)
    assert model.decision_function(nothing).shape == (0,)
    assert explain(model, nothing) == []
    assert (model.valid_graphs(nothing).errors, model.unknown_labels(nothing)) == ({}, {})
    three = FDGNNClassifier(random_state=0).fit(SMILES, np.arange(16) % 3)
    assert three.predict(nothing).dtype == np.int64
    assert three.decision_function(nothing).shape == (0, 3)
    for y, shape in ((np.arange(16.0), (0,)), (np.eye(16)[:, :2], (0, 2))):
        number = FDGNNRegressor(random_state=0).fit(SMILES, y).predict(nothing)
        assert (number.shape, number.dtype) == (shape, np.float64)
    reservoir = GraphReservoir(n_units=7, n_connections=5, random_state=0).fit(SMILES)
    assert reservoir.transform(nothing).shape == reservoir.vertex_states(nothing).shape == (0, 7)
    for encoder in (WLCounts(n_features=64), WLCounts(n_features=None)):
        some = encoder.fit_transform(SMILES)
        empty = encoder.transform(nothing)
        assert (type(empty), empty.shape) == (type(some), (0, some.shape[1]))
    joined = EncoderUnion([("far", reservoir), ("near", WLCounts(n_features=64))]).fit(SMILES)
    assert joined.transform(nothing).shape == (0, 78)


@pytest.mark.parametrize("nothing", [[], as_batch(["CCO"])[:0]])
def test_nothing_can_be_fitted_to_nothing(nothing):
    for kind in (FDGNNClassifier, FDGNNRegressor, FDGNNSearchCV):
        with pytest.raises(GraphError, match=r"^no graphs"):
            kind().fit(nothing, [])
    with pytest.raises(GraphError, match=r"^no graphs"):
        WLCounts().fit(nothing)


def test_one_strange_molecule_leaves_the_others_their_predictions(model):
    mixed = [*SMILES[:5], "C1CC", None, *SMILES[5:], Graph([[0], [1]])]
    found = model.valid_graphs(mixed)
    assert found.rows.tolist() == [0, 1, 2, 3, 4, *range(7, 18)]
    assert (model.predict(found.graphs) == Y).all()
    assert found.errors == {
        5: "the SMILES 'C1CC' cannot be parsed",
        6: "the SMILES is missing",
        18: "expected a SMILES or Mol, got Graph",
    }  # fmt: skip
    none = model.valid_graphs(["C1CC"])
    assert (len(none.graphs), none.rows.tolist(), list(none.errors)) == (0, [], [0])
    assert model.predict(none.graphs).shape == (0,)


def test_one_strange_graph_leaves_the_others_their_predictions():
    """Also if it is the first, which says of which kind the graphs of a batch are."""
    graphs, y = make_motif_graphs(30, random_state=0)
    fitted = FDGNNClassifier(random_state=0).fit(graphs, y)
    strange = [
        Graph([[0], [1]], labels=[1, 2]),
        Graph([[0], [1]], features=np.ones((2, 3))),
        Graph([[0], [1]], directed=True),
        Graph([[0], [9]], n_vertices=2),
        "CCO",
        None,
    ]
    found = fitted.valid_graphs([*strange, *graphs])
    assert found.rows.tolist() == list(range(6, 36))
    assert (fitted.predict(found.graphs) == fitted.predict(graphs)).all()
    assert [found.errors[i].split("; ")[0] for i in range(6)] == [
        "the graph has vertex labels, but the model was fitted on graphs with no vertex labels",
        "the graph has vertex features, but the model was fitted on graphs with no vertex labels",
        "the graph is directed, but the model was fitted on undirected graphs",
        "edge (0, 9) is out of range for 2 vertices",
        "expected a graph, got str",
        "expected a graph, got NoneType",
    ]


def test_labels_that_a_model_refuses_are_faults_too():
    strict = FDGNNClassifier(handle_unknown="error", random_state=0)
    fitted = strict.fit(as_batch(SMILES, atoms="element"), Y)
    found = fitted.valid_graphs(["CCO", "CCS", "CCN"])
    assert found.rows.tolist() == [0, 2]
    assert found.errors == {1: "vertex label S was not seen during fit"}
    with pytest.warns(UnknownLabelWarning, match="1 of 3 graphs"):
        of_wl().fit(SMILES, Y).predict(["CCO", "CCS", "CCN"])


# ---------------------------------------------------------------------- networkx


def network(*labels, **edge):
    graph = nx.path_graph(len(labels))
    nx.set_node_attributes(graph, dict(enumerate(labels)), "atom")
    for name, value in edge.items():
        nx.set_edge_attributes(graph, value, name)
    return graph


def test_a_model_reads_the_attributes_of_networkx_graphs_that_it_was_fitted_on():
    graphs = [network("C", "O", weight=2), network("C", "N", weight=1)] * 4
    for names in ({}, {"vertex_attributes": "atom", "edge_attribute": "weight"}):
        batch = as_batch(graphs, edge_labels="weights", **names)
        fitted = of_wl().fit(batch, [0, 1] * 4)
        assert fitted.input_schema_.vertex_attributes == ("atom",)
        assert fitted.predict(graphs).tolist() == [0, 1] * 4
        found = fitted.valid_graphs([*graphs[:2], nx.path_graph(2)])
        assert found.errors == {2: "vertices have no attribute 'atom'; the attributes are none"}
    parallel = nx.MultiGraph([(0, 1, {"weight": 1}), (0, 1, {"weight": 2})])
    batch = as_batch([parallel], edge_attribute="weight", edge_labels="weights")
    assert batch.weights.tolist() == [3, 3]
    assert_same(as_batch([parallel], like=batch.schema), batch)
    real = as_batch([network(1.5, 2.5)])
    assert_same(as_batch([network(1.5, 2.5)], like=real.schema), real)
    assert real.schema.n_features == 1


def test_attributes_that_are_not_used_are_told_once():
    graphs = [network("C", "O", weight=2.0, color="red", length=1.5)] * 3
    for graph in graphs:
        nx.set_node_attributes(graph, 1.5, "size")
    with pytest.warns(UnusedDataWarning) as told:
        as_batch(graphs)
    assert len(told) == 1
    message = str(told[0].message)
    assert "attributes 'atom', 'size' of vertices are not used" in message
    assert "attributes 'color', 'length' of edges are not used" in message
    assert told[0].filename == __file__
    with pytest.warns(
        UnusedDataWarning, match="^networkx graphs: attributes 'color', 'length' of edges"
    ):
        as_batch(graphs, vertex_attributes="atom")
    as_batch(graphs, vertex="none", edge_attribute="weight")  # chosen: nothing to tell
    advised = as_batch(graphs, vertex_attributes=["atom", "size"], edge_attribute="color")
    assert advised.features[0].tolist() == [1.5, 1, 0]
    assert advised.edge_labels[0] == "red"
    nothing = as_batch(graphs, vertex="none", edge_labels="ignore")
    assert (nothing.labels, nothing.weights, nothing.edge_labels) == (None, None, None)
    others = [nx.cycle_graph(3), nx.cycle_graph(4)] * 3
    with pytest.warns(UnusedDataWarning, match=r"weights of edges are not used: not all rows fit"):
        fitted = of_wl().fit([*graphs, *others], [0] * 3 + [1] * 6)
    assert fitted.predict(graphs).tolist() == [0] * 3  # it was told by `fit`


@pytest.mark.parametrize("bad", ["C((", None, float("nan"), 7])
def test_one_bad_molecule_does_not_take_the_others_down(bad):
    good = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN"] * 4
    names = ["alcohol"] * 3 + ["amine"] * 3
    model = FDGNNClassifier(probability=True, random_state=0).fit(good, names * 4)
    with pytest.raises(GraphError, match=r'graph 1: .*errors="missing", predict'):
        model.predict(["CCCCO", bad, "CCCCN"])
    with pytest.warns(InvalidGraphWarning, match="1 of 3 graphs cannot be used, .* is graph 1: "):
        found = model.predict(["CCCCO", bad, "CCCCN"], errors="missing")
    assert found.tolist() == [*model.predict(["CCCCO"]), None, *model.predict(["CCCCN"])]
    with pytest.warns(InvalidGraphWarning):
        chances = model.predict_proba([bad, "CCCCO"], errors="missing")
    assert np.isnan(chances[0]).all()
    np.testing.assert_allclose(chances[1:], model.predict_proba(["CCCCO"]))
    whole = model.predict(good, errors="missing")  # nothing to tell
    assert whole.dtype == model.classes_.dtype
    numbers = FDGNNRegressor(intervals=True, random_state=0).fit(good, np.arange(24.0))
    with pytest.warns(InvalidGraphWarning):
        found = numbers.predict([bad, "CCCCO"], errors="missing")
    np.testing.assert_allclose(found, [np.nan, numbers.predict(["CCCCO"])[0]])
    with pytest.warns(InvalidGraphWarning):
        assert np.isnan(numbers.predict_interval([bad, "CO"], errors="missing")[0]).all()
    with pytest.warns(InvalidGraphWarning, match="2 of 2"):
        assert np.isnan(numbers.predict([bad, bad], errors="missing")).all()


def test_molecules_beside_a_bad_one_are_explained():
    good, y = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN"] * 4, [0, 0, 0, 1, 1, 1] * 4
    model = of_wl().fit(good, y)
    groups = [{"end": [0]}, {}, {"other end": [2]}]
    with pytest.warns(InvalidGraphWarning, match="1 of 3 graphs .* is graph 1: ") as told:
        found = explain(model, ["CCO", "C((", "CCN"], groups=groups, errors="missing")
    assert told[0].filename == __file__
    assert found[1] is None
    alone = explain(model, ["CCO", "CCN"], groups=groups[::2])
    for one, same in zip(found[::2], alone, strict=True):
        assert (one.target, one.score) == (same.target, same.score)
        assert one.groups[0].name == same.groups[0].name
        assert one.groups[0].effect == same.groups[0].effect
        np.testing.assert_array_equal(one.vertices, same.vertices)
    with pytest.raises(ValueError, match=r"groups has 2 entries; expected .* each of 3 graphs"):
        explain(model, ["CCO", "CCC", "CCN"], groups=groups[:2], errors="missing")
    with pytest.raises(ValueError, match="errors='skip': expected one of raise, missing"):
        explain(model, ["CCO"], errors="skip")
    with pytest.warns(InvalidGraphWarning):
        assert explain(model, ["C(("], errors="missing") == [None]


def test_a_search_sets_and_domain_distances_answer_the_others_too():
    good, y = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN"] * 4, [0, 0, 0, 1, 1, 1] * 4
    estimator = GraphClassifier("wl", KernelRidge(alpha=1.0), probability=True, random_state=0)
    search = FDGNNSearchCV(estimator, depths=(1,), cv=2)
    model = search.fit(good, y).best_estimator_
    for name in ("predict", "decision_function", "predict_proba", "predict_set"):
        with pytest.warns(InvalidGraphWarning, match="1 of 2 graphs"):
            found = getattr(search, name)(["C((", "CCO"], errors="missing")
        np.testing.assert_array_equal(found[1:], getattr(model, name)(["CCO"]))
    assert model.predict_set(["CCO"]).tolist() == [[True, False]]
    assert found[0].all()  # nothing is ruled out
    with pytest.warns(InvalidGraphWarning):
        distances = model.domain_distance([None, "CCO"], errors="missing")
    np.testing.assert_array_equal(distances, [np.nan, *model.domain_distance(["CCO"])])
    numbers = FDGNNRegressor(intervals=True, random_state=0)
    search = FDGNNSearchCV(numbers, depths=(1,), n_configurations=1, cv=2)
    with pytest.warns(InvalidGraphWarning):
        ends = search.fit(good, y).predict_interval(["C((", "CCO"], errors="missing")
    np.testing.assert_array_equal(ends[1:], search.predict_interval(["CCO"]))


def test_strange_members_of_a_list_never_take_the_others_down():
    fitted = of_wl().fit(SMILES, Y)
    strange = [{}, [1, 2], nx.path_graph(2), Graph([[0], [1]], labels=["C", "O"])]
    assert fitted.valid_graphs([*strange, "CCO"]).rows.tolist() == [4]
    assert fitted.valid_graphs([None, float("nan")]).errors[0] == "the SMILES is missing"
    plain, y = make_motif_graphs(10, random_state=0)
    found = of_wl().fit(plain, y).valid_graphs(["CCO", "CCN", plain[0]])
    assert found.rows.tolist() == [2]
    assert "only models of molecules take molecules" in found.errors[0]


def test_graphs_that_lack_what_arcs_carry_never_take_the_others_down():
    plain, alone = Graph([[0], [1]], labels=["a", "b"]), Graph([[], []], labels=["a"])
    labeled = dataclasses.replace(plain, edge_labels=["s"])
    weighted = dataclasses.replace(plain, weights=[2.0])
    for own, what in ((labeled, "labels on edges"), (weighted, "weights")):
        for encoder in ("wl", "union"):
            model = GraphClassifier(encoder, random_state=0).fit([own] * 4, [0, 1] * 2)
            found = model.valid_graphs([plain, plain, own])
            assert found.rows.tolist() == [2]
            assert found.errors[0].startswith(
                f"the graph has no {what}, but the model was fitted on"
            )
    assert of_wl().fit([labeled] * 4, [0, 1] * 2).valid_graphs([alone, labeled]).errors == {}
    found = of_wl().fit([plain] * 4, [0, 1] * 2).valid_graphs([weighted, plain, alone, plain])
    assert found.rows.tolist() == [1, 2, 3]


def test_a_model_of_molecules_says_so_of_graphs_without_labels():
    fitted, bare = of_wl().fit(SMILES, Y), nx.path_graph(3)
    told = "fitted on graphs with vertex labels; it was fitted on molecules, so give it SMILES"
    with pytest.raises(GraphError, match=f"the graphs have no vertex labels, .* {told}$"):
        fitted.predict([bare])
    assert fitted.valid_graphs([Graph([[0], [1]])]).errors[0].endswith(told)
    plain = of_wl().fit([Graph([[0], [1]], labels=["a", "b"])] * 4, [0, 1] * 2)
    with pytest.raises(GraphError, match=r"fitted on graphs with vertex labels$"):
        plain.predict([bare])


def test_errors_is_one_of_two():
    model = FDGNNRegressor(random_state=0).fit(["CCO", "CCN", "CC"] * 4, np.arange(12.0))
    with pytest.raises(ValueError, match="errors='coerce': expected one of raise, missing"):
        model.predict(["CCO"], errors="coerce")


def test_two_molecules_in_one_text_are_an_error_and_a_name_is_not():
    found = of_wl().fit(SMILES, Y).valid_graphs(["CCO CCN", "CCO ethanol", "CCN.CCO"])
    assert found.rows.tolist() == [1, 2]
    assert "a second molecule after a space" in found.errors[0]

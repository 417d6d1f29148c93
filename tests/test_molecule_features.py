"""What is computed from SMILES: labels of atoms, descriptors of molecules, and their kernel."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import pytest

pytest.importorskip("rdkit")

from rdkit import Chem
from rdkit.Chem import Descriptors, rdMolDescriptors

from commands import fdgnn
from fdgnn import (
    AutoGraphRegressor,
    EncoderUnion,
    Graph,
    GraphClassifier,
    GraphRegressor,
    KernelRidge,
    MoleculeDescriptors,
    PairCounts,
    Ridge,
    WLCounts,
    as_batch,
    explain,
    limits,
    load_model,
    molecule_groups,
    save_model,
    substructures,
)
from fdgnn.encoders import GraphKind
from fdgnn.exceptions import FDGNNWarning, GraphError, UnknownLabelWarning
from fdgnn.fitting import BaseModel, FitTask, fit_depths
from fdgnn.graphs.smiles import descriptor_names
from fdgnn.linear.ridge import DESCRIPTOR_WEIGHTS
from fdgnn.metrics import squared_error
from fdgnn.seeds import seed_sequence
from fdgnn.targets import read_targets

SMILES = [
    "CCO", "CC(=O)O", "c1ccccc1", "CCN", "C1CCNCC1", "CC(=O)Nc1ccc(O)cc1", "ClCCl", "CCCCCC",
    "O=C(O)c1ccccc1O", "NCCc1ccc(O)c(O)c1", "CC(C)Cc1ccc(C(C)C(=O)O)cc1", "Fc1ccncc1",
    "CS(=O)(=O)N", "OCC(O)CO", "Brc1ccccc1", "NC(=O)c1cccnc1", "CN1C=NC2=C1C(=O)N(C)C(=O)N2C",
    "C[N+](C)(C)CC(=O)[O-]",
]  # fmt: skip


@pytest.fixture(scope="module")
def table():
    mols = [Chem.MolFromSmiles(smiles) for smiles in SMILES]
    return SMILES, np.array([Descriptors.MolLogP(mol) for mol in mols])


def union():
    return EncoderUnion(
        [
            ("wl", WLCounts(2, n_features=2**12)),
            ("element", WLCounts(2, vertices="element", n_features=2**12)),
            ("pairs", PairCounts(4, vertices="pharmacophore", n_features=2**12)),
            ("descriptors", MoleculeDescriptors()),
        ]
    )


# ---------------------------------------------------------------------- labels of atoms


def test_pharmacophores_are_those_of_rdkit_in_the_order_of_the_atoms():
    batch = as_batch(SMILES)
    expected = [rdMolDescriptors.GetFeatureInvariants(Chem.MolFromSmiles(one)) for one in SMILES]
    found = batch.smiles.pharmacophores(batch.graph_of_vertex)
    np.testing.assert_array_equal(found, np.concatenate(expected))
    rng = np.random.default_rng(0)
    shuffled = []
    for one in SMILES:
        mol = Chem.MolFromSmiles(one)
        shuffled.append(Chem.RenumberAtoms(mol, rng.permutation(mol.GetNumAtoms()).tolist()))
    batch = as_batch(shuffled)
    expected = [rdMolDescriptors.GetFeatureInvariants(mol) for mol in shuffled]
    found = batch.smiles.pharmacophores(batch.graph_of_vertex)
    np.testing.assert_array_equal(found, np.concatenate(expected))


def test_parts_of_a_batch_have_their_own_molecules():
    batch = as_batch(SMILES)
    whole = batch.smiles.pharmacophores(batch.graph_of_vertex)
    part = batch[[3, 0, 9]]  # after something has been computed, and before
    fresh = as_batch(SMILES)[[3, 0, 9]]
    expected = np.concatenate([whole[batch.graph_of_vertex == g] for g in (3, 0, 9)])
    for found in (part, fresh, as_batch([batch[3], batch[0], batch[9]])):
        np.testing.assert_array_equal(found.smiles.pharmacophores(found.graph_of_vertex), expected)
        assert found.smiles.texts.tolist() == [SMILES[3], SMILES[0], SMILES[9]]


def test_elements_do_not_tell_what_else_typed_labels_do():
    encoder = WLCounts(0, vertices="element", edge_labels=False, n_features=2**12)
    X = encoder.fit_transform(["CCO", "C=C=O", "CCN"])
    assert (X[[0]] != X[[1]]).nnz == 0
    assert (X[[0]] != X[[2]]).nnz > 0
    with warnings.catch_warnings():  # a new type of a known element is not new
        warnings.simplefilter("error", FDGNNWarning)
        encoder.transform(["C#N"])
    with pytest.warns(UnknownLabelWarning):
        encoder.transform(["CBr"])


@pytest.mark.parametrize("encoder", [WLCounts(1, vertices="pharmacophore"), MoleculeDescriptors()])
def test_graphs_that_are_no_molecules_are_rejected(encoder):
    graphs = [Graph([[0], [1]], labels=["C", "N"])] * 3
    with pytest.raises(GraphError, match="do not come from SMILES"):
        encoder.fit(graphs)
    model = GraphRegressor(encoder, random_state=0).fit(SMILES, np.arange(len(SMILES)))
    with pytest.raises(GraphError):
        model.predict(graphs)


def test_substructures_name_elements_and_pharmacophores(table):
    X, y = table
    for vertices, words in (("element", "O"), ("pharmacophore", "donor acceptor")):
        encoder = WLCounts(0, vertices=vertices, n_features=None, edge_labels=False)
        model = GraphRegressor(encoder, "linear", random_state=0).fit(X, y)
        found = [each.words for each in substructures(model, X, n_most=20)]
        assert any(words in each for each in found), found


# ---------------------------------------------------------------------- descriptors


def test_descriptors_are_those_of_rdkit():
    batch = as_batch(SMILES)
    fast = dict(zip(descriptor_names("fast"), batch.smiles.descriptors("fast").T, strict=True))
    everything = dict(zip(descriptor_names("all"), batch.smiles.descriptors("all").T, strict=True))
    assert len(fast) == 210
    assert len(everything) > 200
    mols = [Chem.MolFromSmiles(smiles) for smiles in SMILES]
    np.testing.assert_allclose(fast["exactmw"], [Descriptors.ExactMolWt(mol) for mol in mols])
    np.testing.assert_allclose(fast["SlogP_VSA1"], [Descriptors.SlogP_VSA1(mol) for mol in mols])
    amides = [Descriptors.fr_amide(mol) for mol in mols]
    np.testing.assert_array_equal(fast["fr_amide"], amides)
    assert amides[SMILES.index("CC(=O)Nc1ccc(O)cc1")] == 1
    np.testing.assert_allclose(everything["MolLogP"], [Descriptors.MolLogP(mol) for mol in mols])


@pytest.mark.parametrize("descriptors", ["fast", "all"])
def test_descriptors_become_normal_and_stay_within_their_limits(descriptors):
    encoder = MoleculeDescriptors(descriptors)
    X = encoder.fit_transform(SMILES)
    assert X.shape == (len(SMILES), encoder.n_features_out)
    weight = X[:, encoder.get_feature_names_out().tolist().index(
        "exactmw" if descriptors == "fast" else "ExactMolWt"
    )]  # fmt: skip
    truth = [Descriptors.ExactMolWt(Chem.MolFromSmiles(one)) for one in SMILES]
    assert (np.diff(weight[np.argsort(truth)]) >= 0).all()
    assert abs(np.median(weight)) < 0.2
    far = encoder.transform(["C" * 300])
    assert np.isfinite(far).all()
    assert np.abs(far).max() == 3.0


def test_descriptors_that_rdkit_cannot_compute_are_taken_as_usual():
    encoder = MoleculeDescriptors("all").fit(SMILES)
    X = encoder.transform(["[Fe]", "[Na+].[Cl-]"])
    assert np.isfinite(X).all()


# ---------------------------------------------------------------------- models


@pytest.mark.parametrize("readout", ["linear", "rbf"])
@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.UnknownLabelWarning")
def test_a_union_is_saved_and_explained(table, readout, tmp_path):
    X, y = table
    model = GraphRegressor(union(), readout, random_state=0).fit(X[:12], y[:12])
    save_model(model, tmp_path / "model.fdgnn")
    loaded = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    groups = [molecule_groups(smiles) for smiles in X[12:]]
    for one in explain(model, X[12:], groups=groups):
        assert set(one.descriptors) == set(descriptor_names("fast"))
        total = one.vertices.sum() + sum(one.descriptors.values())
        np.testing.assert_allclose(total, one.score - one.base_score, atol=1e-8)


def test_descriptors_have_a_kernel_of_their_own(table):
    X, y = table
    model = GraphRegressor(union(), "rbf", random_state=0).fit(X, y)
    readout = model.estimators_[0].readout
    assert len(readout.sharpness) == 2
    features = model.estimators_[0].features(as_batch(X)).toarray()
    kernels = []
    for part in np.split(features, [readout.starts[1]], axis=1):
        distances = ((part[:, None] - part) ** 2).sum(axis=2)
        kernels.append(np.exp(-distances / distances.mean()))
    expected = np.mean(kernels, axis=0) @ readout.dual + readout.intercept
    np.testing.assert_allclose(model.outputs(X), expected, atol=1e-8)


def test_descriptors_come_last_in_a_union(table):
    encoders = [("descriptors", MoleculeDescriptors()), ("wl", WLCounts(1))]
    with pytest.raises(ValueError, match="list them last"):
        GraphRegressor(EncoderUnion(encoders)).fit(*table)


def weighted_kernel(model, X, weight):
    """The kernel of union features computed by its definition."""
    readout = model.estimators_[0].readout
    features = model.estimators_[0].features(as_batch(X)).toarray()
    kernels = []
    for part in np.split(features, [readout.starts[1]], axis=1):
        distances = ((part[:, None] - part) ** 2).sum(axis=2)
        kernels.append(np.exp(-distances / distances.mean()))
    return (1 - weight) * kernels[0] + weight * kernels[1]


@pytest.mark.parametrize("weight", [0.25, 0.75])
def test_the_weight_of_descriptors_is_that_of_their_kernel(table, weight, tmp_path):
    X, y = table
    model = GraphRegressor(union(), KernelRidge(1e-3, descriptor_weight=weight)).fit(X, y)
    K = weighted_kernel(model, X, weight)
    n = len(y)
    system = np.block(
        [[K + 1e-3 * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]
    )
    dual = np.linalg.solve(system, [*y, 0.0])
    np.testing.assert_allclose(model.predict(X), K @ dual[:n] + dual[n], atol=1e-6)
    save_model(model, tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(load_model(tmp_path / "model.fdgnn").predict(X), model.predict(X))
    one = explain(model, X[:1])[0]
    total = one.vertices.sum() + sum(one.descriptors.values())
    np.testing.assert_allclose(total, one.score - one.base_score, atol=1e-8)


@pytest.mark.parametrize("rows", [1, 3])
def test_the_weight_of_descriptors_is_chosen_by_out_of_fold_error(table, rows):
    X, y = table
    graphs = as_batch(X)
    targets = read_targets(y, graphs, classify=False)
    folds = np.stack([(np.arange(len(y)) * (row + 2)) % 5 for row in range(rows)])
    folds[:-1, ::4] = -1
    task = FitTask(targets, folds, squared_error)
    given, found = [], None
    for weight in (*DESCRIPTOR_WEIGHTS, "cv"):
        readout = KernelRidge(descriptor_weight=weight)
        (found,) = fit_depths(BaseModel("", union(), readout, (seed_sequence(0),)), graphs, task)
        given.append(found)
    assert found is not None
    for row in range(rows):
        errors = [-fit.choice.scores.validation[row].max() for fit in given]
        assert errors[-1] == min(errors[:-1])
        best = given[int(np.argmin(errors[:-1]))]
        np.testing.assert_array_equal(found.choice.predictions[row], best.choice.predictions[row])
    assert found.alpha == best.alpha
    assert found.fitted[0].readout.shares == best.fitted[0].readout.shares


def test_which_descriptors_the_ensemble_reads(table, tmp_path):
    X, y = table
    X, y = X * 3, np.tile(y, 3)
    for which, n in (("fast", 210), ("all", len(descriptor_names("all"))), (None, 0)):
        model = AutoGraphRegressor(descriptors=which, random_state=0)
        bases = model._base_models(GraphKind.of(as_batch(X)), len(X), seed_sequence(0))
        inner = [dict(b.encoder.named_encoders).get("descriptors") for b in bases]
        assert [one.descriptors for one in inner if one is not None] == ([which] if which else [])
        model = GraphRegressor(MoleculeDescriptors(which)).fit(X, y) if n else model.fit(X, y)
        save_model(model, tmp_path / "model.fdgnn")
        loaded = load_model(tmp_path / "model.fdgnn")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    for which in ("fast", "all"):
        with pytest.raises(ValueError, match="has no effect: the graphs do not come from SMILES"):
            AutoGraphRegressor(descriptors=which).fit([Graph([[0], [1]])] * 8, range(8))
        with pytest.raises(ValueError, match="candidates='wl' has no base model with descriptors"):
            AutoGraphRegressor("wl", descriptors=which).fit(X, y)
        kind = GraphKind.of(as_batch(X))
        with pytest.raises(ValueError, match="not computed for more than 50,000 molecules"):
            AutoGraphRegressor(descriptors=which)._base_models(kind, 50_001, seed_sequence(0))
    with pytest.raises(ValueError, match="descriptors=None has no effect on a list of candidates"):
        AutoGraphRegressor([("wl", "wl", "rbf")], descriptors=None).fit(X, y)


def test_descriptors_of_more_molecules_than_kernels_are_computed_for(table, tmp_path):
    X, y = table
    X, y = X * 3, np.tile(y, 3)
    with limits.changed(FDGNN_MAX_KERNEL_BYTES=1000):
        for which, n_bases in (("auto", 3), ("fast", 3), (None, 2)):
            model = AutoGraphRegressor(descriptors=which, random_state=0)
            bases = model._base_models(GraphKind.of(as_batch(X)), len(X), seed_sequence(0))
            assert len(bases) == n_bases
            assert all(isinstance(base.readout, Ridge) for base in bases)
        model = AutoGraphRegressor(descriptors="fast", random_state=0).fit(X, y)
        assert "WL and descriptors" in [own.name for own in model.estimators_]
        save_model(model, tmp_path / "model.fdgnn")
        (one,) = explain(model, X[:1])
    loaded = load_model(tmp_path / "model.fdgnn")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert set(one.descriptors) == set(descriptor_names("fast"))
    total = one.vertices.sum() + sum(one.descriptors.values())
    np.testing.assert_allclose(total, one.score - one.base_score, atol=1e-8)


def test_random_features_of_descriptors_fit_what_is_not_linear_in_them(table):
    X = table[0] * 3
    y = np.tile([Descriptors.MolWt(Chem.MolFromSmiles(smiles)) % 30 for smiles in table[0]], 3)
    errors = []
    for n in (0, 300):
        model = GraphRegressor(EncoderUnion([("own", MoleculeDescriptors(n_projections=n))]))
        model.set_params(readout=Ridge(alpha=1e-3), random_state=0).fit(X, y)
        assert model.estimators_[0].readout.coef.shape == (1, n or 210)
        errors.append(((model.predict(X) - y) ** 2).mean())
    assert errors[1] < errors[0]


def test_descriptors_of_the_ensemble_on_the_command_line(table, tmp_path):
    X, y = table
    path, model = tmp_path / "m.csv", tmp_path / "m.fdgnn"
    rows = [f"{smiles},{value}" for smiles, value in zip(X * 2, [*y, *(y + 0.01)], strict=True)]
    path.write_text("smiles,y\n" + "\n".join(rows) + "\n")
    words = ("fit", path, "--target", "y", "--task", "regression", "-o", model, "-q", "--force")
    for which in ("all", "none"):
        run = fdgnn(*words, "--molecule-descriptors", which)
        assert run.returncode == 0, run.stderr
        fitted = load_model(model)
        assert fitted.descriptors == (None if which == "none" else which)
        np.testing.assert_array_equal(fitted.predict(X[:3]), fitted.predict(as_batch(X[:3])))
    run = fdgnn(*words, "--model", "wl", "--molecule-descriptors", "all")
    assert run.returncode != 0
    assert "molecule-descriptors" in run.stderr


def test_descriptors_alone_classify(table):
    X, y = table
    model = GraphClassifier("descriptors", random_state=0).fit(X, y > np.median(y))
    assert model.score(X, y > np.median(y)) > 0.8


def test_explanations_in_csv_name_the_descriptors(tmp_path):
    alcohols = ["C" * n + "O" for n in range(1, 13)]
    (tmp_path / "a.csv").write_text("\n".join(["smiles", *alcohols]))
    model = AutoGraphRegressor(random_state=0).fit(alcohols, range(12))
    save_model(model, tmp_path / "m.fdgnn")
    run = fdgnn("explain", tmp_path / "m.fdgnn", tmp_path / "a.csv", "--row", "3", "-q")
    assert run.returncode == 0, run.stderr
    rows = list(csv.DictReader(run.stdout.splitlines()))
    named = [row["descriptor"] for row in rows if row["descriptor"]]
    assert "fr_Al_OH" in named
    assert len(named) + 5 <= len(rows)
    added = sum(float(r["attribution"]) for r in rows if r["vertex"] or r["descriptor"])
    assert added == pytest.approx(float(rows[0]["score"]) - float(rows[0]["base_score"]), abs=1e-3)

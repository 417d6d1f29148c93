"""`fit`, `predict`, `explain` and `evaluate` with each `--model`; labels that are new; atoms."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import as_batch, load_model, read_graphs
from fdgnn.datasets import iter_graphs, make_random_graphs
from fdgnn.encoders import EncoderUnion, GraphReservoir, WLCounts
from fdgnn.prediction.predictor import Predictor, predict_rows
from strategies import assert_same

# Reservoirs of an ensemble have fixed parameters; some small graphs converge slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

FAST = ["--configurations", "2", "--initializations", "2"]
ENCODERS = {
    "auto": {WLCounts, EncoderUnion},
    "paper": {GraphReservoir},
    "wl": {WLCounts},
    "union": {EncoderUnion},
}


def labeled_graphs(n=60, seed=0):
    """Graphs with labels; classes depend on them, with noise, so that base models differ."""
    graphs = make_random_graphs(n, random_state=seed)
    rng = np.random.default_rng(seed)
    y = np.bincount(graphs.graph_of_vertex, graphs.labels == 0) > 4
    return graphs, np.where(rng.random(n) < 0.2, rng.random(n) < 0.5, y).astype(int)


def write_table(path, graphs, y=None, strange=()):
    """CSV with edge_index, node_feat and the target; some rows get a label that is new."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "node_feat", "num_nodes", "y"])
        for i, graph in enumerate(graphs):
            labels = graph.labels.tolist()
            if i in strange:
                labels[0] = 77
            edges = json.dumps(np.asarray(graph.edge_index).tolist())
            known = "" if y is None else ["no", "yes"][y[i]]
            writer.writerow([edges, json.dumps(labels), len(labels), known])
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("data") / "data.csv", *labeled_graphs())


@pytest.fixture(scope="module")
def models(data):
    """For each --model its file, and what fit printed."""
    found = {}
    for name in ENCODERS:
        words = ["-o", data.with_name(f"{name}.fdgnn"), "--model", name, "--json", "-q"]
        run = fdgnn("fit", data, "--target", "y", *words, *(FAST if name == "paper" else ()))
        assert run.returncode == 0, run.stderr
        found[name] = data.with_name(f"{name}.fdgnn"), json.loads(run.stdout)
    return found


def predictions(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------------- fit, predict, explain


@pytest.mark.parametrize("name", ENCODERS)
def test_fit_trains_what_was_asked_for(models, name):
    path, facts = models[name]
    model = load_model(path)
    assert {type(n.encoder) for n in model.estimators_} <= ENCODERS[name]
    assert facts["base_models"] == [n.name for n in model.estimators_]
    assert 0.5 < facts["score"] <= 1
    assert (facts["task"], facts["graphs"]) == ("classification", 60)
    if name == "paper":
        assert len(model.estimators_) == 2
        assert "effective_spectral_radius" in facts["parameters"]
    else:
        assert facts["parameters"] == {}  # nothing is searched
        assert model.candidates == ("all" if name == "auto" else name)


def test_auto_is_the_default(data, models, tmp_path):
    run = fdgnn("fit", data, "--target", "y", "-o", tmp_path / "m.fdgnn")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "m.fdgnn").read_bytes() == models["auto"][0].read_bytes()
    names = models["auto"][1]["base_models"]
    assert f"ensemble of {len(names)} base models: {'; '.join(names)}\n" in run.stdout


@pytest.mark.parametrize("name", ENCODERS)
def test_predict_and_explain_with_each_model(data, models, name, tmp_path):
    path = models[name][0]
    run = fdgnn("predict", path, data, "-o", tmp_path / "p.csv", "--json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["unknown_labels"] == 0
    assert "not seen" not in run.stderr
    rows, graphs = predictions(tmp_path / "p.csv"), read_graphs(data).graphs
    model = load_model(path)
    assert [row["prediction"] for row in rows] == model.predict(graphs).tolist()
    chances = [float(row["probability_yes"]) for row in rows]
    np.testing.assert_allclose(chances, model.predict_proba(graphs)[:, 1], rtol=1e-4)
    why = fdgnn("explain", path, data, "-o", tmp_path / "why.jsonl", "--row", 0, "--of", "yes")
    assert why.returncode == 0, why.stderr
    found = json.loads((tmp_path / "why.jsonl").read_text())
    assert found["score"] == pytest.approx(model.decision_function(graphs[:1])[0], abs=1e-3)
    assert sum(found["vertices"]) == pytest.approx(found["score"] - found["base_score"], abs=1e-3)


# ---------------------------------------------------------------------- labels that are new


@pytest.fixture(scope="module")
def strange(data):
    """Six graphs, two of them with a label that no training graph has."""
    graphs = make_random_graphs(6, random_state=9)
    return write_table(data.with_name("strange.csv"), graphs, strange=(1, 4))


@pytest.mark.parametrize("name", ["auto", "wl", "paper"])
def test_unknown_labels_are_taken_and_the_number_of_rows_is_reported_once(
    models, strange, name, tmp_path
):
    path = models[name][0]
    out = ["-o", tmp_path / "p.csv", "--json"]
    run = fdgnn("predict", path, strange, *out)
    assert run.returncode == 0, run.stderr
    told = [line for line in run.stderr.splitlines() if "not seen during fit" in line]
    assert told == [
        "2 of these 6 rows have labels or graph-level features that were not seen during fit; the "
        "model ignores these, and predicts from the rest of the graph"
    ]
    summary = json.loads(run.stdout)
    assert (summary["predicted"], summary["unknown_labels"], summary["rejected"]) == (6, 2, 0)
    rows = predictions(tmp_path / "p.csv")
    assert [row["error"] for row in rows] == [""] * 6
    new = "vertex label 77 was not seen during fit"
    assert [row["warning"] for row in rows] == ["", new, "", "", new, ""]
    assert fdgnn("predict", path, strange, *out, "-q", "--force").stderr == ""
    why = fdgnn("explain", path, strange, "-o", tmp_path / "why.jsonl", "--row", 0, "--row", 4)
    assert why.returncode == 0, why.stderr
    assert why.stderr.count("not seen during fit") == 1
    assert "1 of these 2 rows has labels" in why.stderr
    why = (tmp_path / "why.jsonl").read_text(encoding="utf-8").splitlines()
    told = [json.loads(line)["warning"] for line in why]
    assert told == [None, new]


@pytest.mark.parametrize("name", ["auto", "paper"])
def test_rows_with_unknown_labels_are_rejected_if_asked_for(data, strange, name, tmp_path):
    words = ["--target", "y", "--model", name, *(FAST if name == "paper" else ())]
    path = tmp_path / "m.fdgnn"
    run = fdgnn("fit", data, *words, "--handle-unknown", "error", "-o", path, "-q")
    assert run.returncode == 0, run.stderr
    run = fdgnn("predict", path, strange, "-o", tmp_path / "p.csv", "--json")
    assert run.returncode == 0, run.stderr
    summary = json.loads(run.stdout)
    assert (summary["predicted"], summary["unknown_labels"], summary["rejected"]) == (4, 0, 2)
    rejected = [
        row["error"] == "vertex label 77 was not seen during fit; a model of `fdgnn fit "
        "--handle-unknown ignore` takes such graphs"
        for row in predictions(tmp_path / "p.csv")
    ]
    assert rejected == [False, True, False, False, True, False]


def test_no_chunk_has_a_warning_of_its_own(models, strange):
    """Warnings are errors here; rows say what the warnings would."""
    model = load_model(models["auto"][0])
    tables = iter_graphs(strange, like=model, chunk_size=2)
    chunks = [rows.columns["warning"] for rows in predict_rows(Predictor(model), tables)]
    assert [[told is not None for told in chunk] for chunk in chunks] == [
        [False, True],
        [False] * 2,
        [True, False],
    ]


@pytest.mark.parametrize(
    "words", [["--configurations", "2"], ["--initializations", "1"], ["--no-search"]]
)
def test_fit_rejects_options_of_the_papers_model(tmp_path, words):
    name = words[0]
    run = fdgnn("fit", "absent.csv", "-o", tmp_path / "model.fdgnn", *words)
    assert_one_clear_line(run, f"{name} is for --model paper", "--model auto")


# ---------------------------------------------------------------------- atoms


@pytest.fixture(scope="module")
def molecules(tmp_path_factory):
    pytest.importorskip("rdkit")
    chains = ["C" * n + "O" for n in range(2, 17)] + ["C1" + "C" * n + "C1" for n in range(1, 16)]
    path = tmp_path_factory.mktemp("molecules") / "molecules.csv"
    lines = [f"{s},{'ring' if '1' in s else 'chain'}" for s in chains]
    path.write_text("SMILES,shape\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("words", "atoms"),
    [
        ([], "typed"),
        (["--model", "wl"], "typed"),
        (["--model", "union"], "typed"),
        (["--model", "paper", "--no-search"], "element"),
        (["--model", "paper", "--no-search", "--atoms", "typed"], "typed"),
        (["--atoms", "element"], "element"),
        (["--atoms", "rich"], "rich"),
    ],
)
def test_fit_labels_atoms_by_type_but_for_the_papers_model(molecules, tmp_path, words, atoms):
    run = fdgnn("fit", molecules, "--target", "shape", "-o", tmp_path / "m", "-q", "--json", *words)
    assert run.returncode == 0, run.stderr
    model = load_model(tmp_path / "m")
    assert model.input_schema_.atoms == atoms
    names = {"element": ["C", "O"], "typed": ["C 1 H3", "C 2 H2", "C 2 H2 ring", "O 1 H1"]}
    seen = read_graphs(molecules, like=model).graphs
    found = None if seen.label_values is None else seen.label_values.tolist()
    assert found == names.get(atoms)
    assert json.loads(run.stdout)["score"] > 0.8
    assert model.score(seen, read_graphs(molecules, target="shape").y) > 0.8


def test_atoms_are_labeled_by_type_in_files_as_in_lists(molecules):
    table = read_graphs(molecules)
    assert table.schema.atoms == "typed"
    assert_same(table.graphs, as_batch(table.smiles))
    assert json.loads(fdgnn("datasets", "info", molecules, "--json").stdout)["n_labels"] == 4
    elements = fdgnn("datasets", "info", molecules, "--atoms", "element", "--json")
    assert json.loads(elements.stdout)["n_labels"] == 2

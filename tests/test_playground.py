"""Playground pages: what is in them, what they refuse; in the browser they are tested elsewhere."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    AutoGraphClassifier,
    EncoderUnion,
    FDGNNClassifier,
    FDGNNRegressor,
    GraphRegressor,
    GraphReservoir,
    PairCounts,
    WLCounts,
    as_batch,
    playground,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_motif_graphs
from fdgnn.encoders import Encoder, MoleculeDescriptors, register_encoder
from fdgnn.exceptions import FDGNNWarning, GraphError, PlaygroundError
from fdgnn.html.page import joined_script, modules_of
from fdgnn.html.playground import MOST_GRAPHS, MOST_VERTICES, chosen_graphs

pytest.importorskip("jinja2", reason="a page needs Jinja2: extra 'report'")


@pytest.fixture(scope="module")
def motifs():
    graphs, y = make_motif_graphs(60, random_state=0)
    return graphs, y, FDGNNClassifier(random_state=0).fit(graphs, y)


def content_of(path):
    """The records of a page, and the names of its arrays."""
    text = re.search(r'id="page-data">(.*?)</script>', path.read_text(), flags=re.DOTALL).group(1)
    whole = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(whole[:4], "little")
    header = json.loads(whole[8 : 8 + size])
    return header["content"], header["arrays"], whole[8 + size :]


def test_a_page_holds_the_model_and_the_graphs(motifs, tmp_path):
    graphs, y, model = motifs
    path = playground.write(tmp_path / "play.html", model, graphs, y, dataset="motifs")
    assert path.stat().st_size < playground.LARGEST
    content, arrays, rest = content_of(path)
    assert content["model"]["record"]["targets"][0]["classes"]["values"] == model.classes_.tolist()
    assert content["training"]["n_folds"] == 10
    place = arrays["0.encoder.rec_values"]
    values = np.frombuffer(rest, "<f8", int(np.prod(place["shape"])), place["start"])
    assert (values == model.estimators_[0].encoder.reservoir_.weights.rec_values.ravel()).all()
    assert "0.projection" not in arrays  # it is drawn again from the seed
    assert content["model"]["projections"]["0.projection"]["rows"] == 100
    assert sum(len(graph["edges"]) for graph in content["graphs"]["list"]) == graphs.n_arcs // 2


def test_a_projection_that_no_seed_gives_is_kept(motifs, tmp_path):
    graphs, y, _ = motifs
    model = FDGNNClassifier(random_state=0).fit(graphs, y)
    expansion = model.estimators_[0].expansion
    expansion.projection_ = expansion.projection_ * 0.5
    _, arrays, _ = content_of(playground.write(tmp_path / "play.html", model))
    assert arrays["0.projection"]["shape"] == [100, 50]


def test_of_many_graphs_a_random_part_is_taken(motifs):
    graphs = as_batch([graph for graph in motifs[0]] * 12)
    chosen = chosen_graphs(graphs)
    assert len(chosen) <= MOST_GRAPHS
    assert np.diff(graphs.vertex_offsets)[chosen].sum() <= MOST_VERTICES
    assert (np.diff(chosen) > 0).all()
    assert len(chosen) > 400


def test_models_that_a_page_cannot_run_are_rejected(motifs, tmp_path, monkeypatch):
    graphs, y, model = motifs
    path = tmp_path / "play.html"
    with pytest.raises(PlaygroundError, match="the playground needs a model"):
        playground.write(path)
    described = graphs.with_descriptors({"mass": np.arange(60.0)})
    with pytest.raises(PlaygroundError, match="'reservoir' reads graph-level features; fit one"):
        playground.write(path, FDGNNClassifier(random_state=0).fit(described, y))
    several = FDGNNClassifier(random_state=0).fit(graphs, {"a": y, "b": y})
    with pytest.raises(PlaygroundError, match="several targets; choose one by `target`: 'a', 'b'"):
        playground.write(path, several)
    assert playground.write(path, several, target="b").exists()
    monkeypatch.setattr(playground, "LARGEST", 1000)
    with pytest.raises(PlaygroundError, match="more than"):
        playground.write(path, model)


@register_encoder
class Sizes(Encoder):
    """An encoder that a page does not know."""

    kind = "trial-sizes"

    def vertex_features(self, graphs):
        return np.ones((graphs.n_vertices, 1))


def test_of_an_ensemble_the_base_models_are_shown_that_a_page_can_run(motifs, tmp_path):
    graphs, y, _ = motifs
    y = np.random.default_rng(0).permutation(y)  # noise, so that all are averaged
    candidates = [
        ("pairs", PairCounts(), "linear"),
        ("sizes", Sizes(), "linear"),
        ("reservoir", GraphReservoir(n_units=20), "linear"),
    ]
    model = AutoGraphClassifier(candidates, random_state=0).fit(graphs, y)
    kept = [each.name for each in model.estimators_ if each.name != "sizes"]
    assert 1 <= len(kept) < len(model.estimators_)
    with pytest.warns(FDGNNWarning, match="'sizes' reads features of Sizes") as told:
        path = playground.write(tmp_path / "play.html", model, graphs, y)
    assert told[0].filename == __file__
    content = content_of(path)[0]
    assert [each["name"] for each in content["model"]["record"]["estimators"]] == kept
    note = content["notes"][0]
    assert note == str(told[0].message)
    shown, _ = playground._one_model(model, None, None)
    whole, alone = model.outputs(graphs), shown.outputs(graphs)
    same = round(100 * np.mean((whole > 0) == (alone > 0)))
    assert f"for the 60 graphs here, scores differ by {np.abs(whole - alone).mean():.2g} on" in note
    assert note.endswith(f"the predicted class is the same for {same} %.")
    assert "RDKit" not in note
    model = AutoGraphClassifier(candidates[1:2], random_state=0).fit(graphs, y)
    with pytest.raises(PlaygroundError, match="reads features of Sizes; fit one with"):
        playground.write(path, model, graphs, y)


def test_a_page_says_that_descriptors_need_rdkit(tmp_path):
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "CCCO", "CCCN", "c1ccccc1O", "c1ccccc1N", "OCCO", "NCCN"] * 3
    candidates = [
        ("pairs", PairCounts(), "linear"),
        (
            "with descriptors",
            EncoderUnion([("wl", WLCounts()), ("descriptors", MoleculeDescriptors())]),
            "rbf",
        ),
        ("pharmacophores", WLCounts(vertices="pharmacophore"), "rbf"),
    ]
    model = GraphRegressor("wl").fit(smiles, range(24))
    model.estimators_ = [
        GraphRegressor(encoder, readout).fit(smiles, np.arange(24) % 7).estimators_[0]
        for _, encoder, readout in candidates
    ]
    for fitted, (name, *_) in zip(model.estimators_, candidates, strict=True):
        object.__setattr__(fitted, "name", name)
    with pytest.warns(FDGNNWarning, match="averages 1 of the model's 3 base models") as told:
        playground.write(tmp_path / "play.html", model, smiles)
    text = str(told[0].message)
    assert "'with descriptors' reads descriptors of molecules; " in text
    assert "'pharmacophores' reads pharmacophore types of atoms" in text
    assert "RDKit computes these, and does not run in a page" in text
    assert "they differ by" in text


def jsonl_of(graphs, y, folder):
    rows = [
        {"edge_index": np.asarray(g.edge_index).tolist(), "num_nodes": g.n_vertices, "y": int(c)}
        for g, c in zip(graphs, y, strict=True)
    ]
    path = folder / "motifs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_command(motifs, tmp_path):
    graphs, y, model = motifs
    data = jsonl_of(graphs, y, tmp_path)
    save_model(model, tmp_path / "model.fdgnn")
    output = tmp_path / "play.html"
    words = ("--data", data, "--target", "y", "-o", output, "--json")
    done = fdgnn("playground", tmp_path / "model.fdgnn", *words)
    assert json.loads(done.stdout)["bytes"] == output.stat().st_size
    content = content_of(output)[0]
    assert content["training"]["code"][1] == f"table = read_graphs({str(data)!r}, target='y')"
    done = fdgnn("playground", data, "--data", data, "-o", output, "--force")
    assert_one_clear_line(done, "--data is for model files")


def test_a_mistyped_name_is_answered_with_the_nearest(tmp_path):
    done = fdgnn("playground", "MUTAGG", "-o", tmp_path / "p.html")
    assert_one_clear_line(done, "of the TU collection, such as MUTAG; did you mean 'MUTAG'?")


def test_one_model_is_reported_in_the_singular(motifs, tmp_path, monkeypatch):
    graphs, y, model = motifs
    assert len(model.estimators_) == 1
    monkeypatch.setattr(playground, "fit_model", lambda *_, **__: model)
    done = fdgnn(
        "playground", jsonl_of(graphs, y, tmp_path), "--target", "y", "-o", tmp_path / "p.html"
    )
    assert done.returncode == 0, done.stderr
    assert "fitted 1 model to GraphBatch(" in done.stderr


@pytest.mark.parametrize(
    "options", [{"atoms": "typed"}, {"atoms": "rich", "edge_labels": "ignore", "stereo": True}]
)
def test_the_code_reads_molecules_as_the_model_does(tmp_path, options):
    pytest.importorskip("rdkit", reason="molecules need RDKit: extra 'chem'")
    data, output = tmp_path / "molecules.csv", tmp_path / "play.html"
    rows = "".join(f"{smiles},{i % 2}\n" for i, smiles in enumerate(["CCO", "CCN", "C=CC"] * 8))
    data.write_text(f"smiles,y\n{rows}")
    table = read_graphs(data, target="y", **options)
    model = FDGNNClassifier(random_state=0).fit(table.graphs, table.y)
    save_model(model, tmp_path / "model.fdgnn")
    words = ("--data", data, "--target", "y", "-o", output)
    fdgnn("playground", tmp_path / "model.fdgnn", *words)
    found = {}
    exec("\n".join(content_of(output)[0]["training"]["code"]), found)
    assert (model.outputs(found["graphs"]) == model.outputs(table.graphs)).all()


@pytest.mark.parametrize("name", ["playground.js", "worker.js"])
def test_modules_share_no_names(name):
    """They are joined to one scope, where a second one of a name would be an error."""
    homes = {}
    head = re.compile(r"^(?:export )?(?:async )?(?:function|class|const|let) (\w+)", re.MULTILINE)
    for module, text in modules_of(name).items():
        for found in head.findall(text):
            homes.setdefault(found, []).append(module)
    assert {found: files for found, files in homes.items() if len(files) > 1} == {}
    script = joined_script(name)
    assert not re.search(r"^(import|export) ", script, flags=re.MULTILINE)
    assert "</script" not in script


def test_the_figures_of_the_documentation_are_those_of_the_benchmark():
    root = Path(__file__).parent.parent
    results = json.loads((root / "results" / "playground.json").read_text("utf-8"))
    told = " ".join((root / "docs" / "how-to" / "playground.md").read_text("utf-8").split())
    n, same, refused = (
        sum(file[part] for file in results["smiles"]) for part in ("molecules", "same", "refused")
    )
    assert f"reads {same:,} of {n:,} molecules" in told
    assert f"rejects {refused} with explicit hydrogens" in told
    assert f"reads {n - same - refused} differently" in told
    moves = results["training"]["one slider"]
    within = "within 200 ms of processor time"
    assert f"{moves[within]} of {moves['moves']} moves of one slider" in told
    assert f"half of them less than {moves['processor_ms']['median']:.0f} ms" in told
    together = results["training"]["all sliders at once"]
    assert f"of {together['moves']} random moves of all sliders at once, {together[within]}" in told


def test_a_regressor_has_a_page(motifs, tmp_path):
    graphs = motifs[0]
    sizes = np.diff(graphs.vertex_offsets).astype(float)
    model = FDGNNRegressor(random_state=0).fit(graphs, sizes)
    content = content_of(playground.write(tmp_path / "play.html", model, graphs, sizes))[0]
    assert content["training"] is None
    assert content["notes"] == ["The page trains classifiers; this model is a regression."]


def test_a_page_that_cannot_train_says_why(motifs, tmp_path):
    graphs, y, model = motifs
    for answers, words in ((None, "are not known here"), (np.repeat(y[:1], 60), "two classes")):
        page = playground.write(tmp_path / "play.html", model, graphs, answers)
        (note,) = content_of(page)[0]["notes"]
        assert words in note
    page = playground.write(tmp_path / "play.html", model, graphs, y)
    assert content_of(page)[0]["notes"] == []


def test_answers_that_do_not_suit_the_model_are_refused(motifs, tmp_path):
    graphs, y, model = motifs
    page = tmp_path / "play.html"
    with pytest.raises(GraphError, match="5 answers, but 60 graphs"):
        playground.write(page, model, graphs, y[:5])
    with pytest.raises(ValueError, match="no target is a class of the model: targets are a and b"):
        playground.write(page, model, graphs, np.array(["a", "b"] * 30))
    numbers = FDGNNRegressor(random_state=0).fit(graphs, np.arange(60.0))
    with pytest.raises(ValueError, match="one is '>10'"):
        playground.write(page, numbers, graphs, np.array(["3.5", ">10"] * 30))
    assert not page.exists()


def test_the_code_of_a_page_reads_the_molecules_again(tmp_path):
    pytest.importorskip("rdkit")
    table = tmp_path / "mols.csv"
    rows = [f"{'C' * (2 + i % 5)}{'NO'[i % 2]},{'yes' if i % 2 else 'no'}" for i in range(40)]
    table.write_text("structure,crosses\n" + "\n".join(rows) + "\n")
    model, page = tmp_path / "m.fdgnn", tmp_path / "play.html"
    fit = ["fit", str(table), "--smiles", "structure", "--target", "crosses", "--no-search"]
    words = ["playground", str(model), "--data", str(table), "--target", "crosses", "-o", str(page)]
    for command in ([*fit, "--model", "paper", "-o", str(model)], words):
        assert fdgnn(*command).returncode == 0
    content = content_of(page)[0]
    names = {}
    exec("\n".join(content["training"]["code"]), names)
    assert len(names["graphs"]) == 40
    assert "<h1>Playground: a model and graphs of mols</h1>" in page.read_text()

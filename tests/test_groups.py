"""Explanations by groups: sums of attributions, scores without a group, planted rules found."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from commands import assert_one_clear_line, fdgnn
from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    GraphClassifier,
    GraphRegressor,
    WLCounts,
    as_batch,
    connected_parts,
    draw_explanation,
    draw_molecule,
    explain,
    molecule_groups,
    read_graphs,
    save_model,
)
from fdgnn.datasets import make_cycles, make_motif_graphs, make_random_graphs
from fdgnn.exceptions import GraphError, UnusedDataWarning
from fdgnn.explanations.drawing import group_values, views_of
from fdgnn.explanations.groups import functional_groups, without_vertices
from fdgnn.linear import KernelRidge
from fdgnn.prediction.explanation import GroupChoice

GRAPHS = make_random_graphs(60, random_state=0)
Y = np.arange(60) % 2
SMALL = {"n_layers": 2, "n_units": 20, "effective_spectral_radius": 0.5, "random_state": 0}


@pytest.fixture(scope="module")
def model():
    return GraphClassifier(WLCounts(n_iterations=2)).fit(GRAPHS, Y)


def names_of(smiles, *smarts):
    return [(group.name, group.vertices.tolist()) for group in molecule_groups(smiles, smarts)]


# ---------------------------------------------------------------------- what a group adds


@pytest.mark.parametrize(
    "kind", [GraphClassifier("wl"), FDGNNClassifier(**SMALL), FDGNNRegressor(**SMALL)]
)
def test_attributions_add_up_and_effects_are_scores_without(kind):
    model = kind.fit(GRAPHS, Y)
    groups = [{"first": [0, 1], "last": [2]}, {"all but one": [0, 1]}]
    target = 0 if isinstance(model, FDGNNRegressor) else 1
    for graph, one, own in zip(
        GRAPHS[:2], explain(model, GRAPHS[:2], target=target, groups=groups), groups, strict=True
    ):
        assert [group.name for group in one.groups] == list(own)
        for group in one.groups:
            assert group.attribution == pytest.approx(one.vertices[group.vertices].sum())
            left = model.outputs([without_vertices(graph, group.vertices)])[0, 0]
            assert group.effect == pytest.approx(one.score - left, abs=1e-9)
        for v in (0, graph.n_vertices - 1):
            left = model.outputs([without_vertices(graph, np.array([v]))])[0, 0]
            assert one.vertex_effects[v] == pytest.approx(one.score - left, abs=1e-9)


def test_without_all_vertices_there_is_an_empty_graph(model):
    (one,) = explain(model, GRAPHS[:1], groups=[{"all": np.arange(GRAPHS[0].n_vertices)}])
    assert one.groups[0].effect == pytest.approx(one.score - one.base_score)
    assert one.groups[0].attribution == pytest.approx(one.score - one.base_score)


def test_groups_of_one_of_several_targets():
    both = GraphClassifier(WLCounts(n_iterations=1)).fit(GRAPHS, np.stack([Y, 1 - Y], axis=1))
    own = [{"a": [0, 1]}]
    (one,) = explain(both, GRAPHS[:1], target=1, groups=own)
    (alone,) = explain(both.for_target(1), GRAPHS[:1], groups=own)
    assert one.groups[0].effect == alone.groups[0].effect
    np.testing.assert_array_equal(one.vertex_effects, alone.vertex_effects)


def test_groups_change_nothing_else(model):
    plain = explain(model, GRAPHS[:3])
    for with_groups, one in zip(explain(model, GRAPHS[:3], groups=[()] * 3), plain, strict=True):
        np.testing.assert_array_equal(with_groups.vertices, one.vertices)
        assert (with_groups.score, with_groups.groups) == (one.score, ())
        assert one.vertex_effects is None


def test_a_graph_without_vertices_of_it_is_the_rest():
    graph = Graph(
        [[0, 1, 2, 3], [1, 2, 3, 0]],
        labels=np.array(["a", "b", "c", "d"]),
        edge_labels=np.array([1, 2, 3, 4]),
        weights=np.array([0.1, 0.2, 0.3, 0.4]),
        n_vertices=4,
        directed=True,
    )
    left = without_vertices(graph, np.array([1]))
    assert left.labels.tolist() == ["a", "c", "d"]
    assert np.asarray(left.edge_index).tolist() == [[1, 2], [2, 0]]
    assert (left.edge_labels.tolist(), left.weights.tolist()) == ([3, 4], [0.3, 0.4])
    assert left.directed
    featured = Graph([[0], [1]], features=np.eye(3), n_vertices=3)
    assert without_vertices(featured, np.array([0])).features.tolist() == np.eye(3)[1:].tolist()


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([{"a": [0]}], "groups has 1 entries; expected an entry for each of 2 graphs"),
        ({"a": [0]}, "groups has dict; expected an entry for each of 2 graphs"),
        ("parts", "groups has str"),
        ([{"a": [0]}, {"b": [0, 99]}], "graph 1: group 'b' has vertex 99, but there are"),
        ([{"a": [-1]}, {}], "graph 0: group 'a' has vertex -1"),
        ([{"a": []}, {}], "graph 0: group 'a' is not a list of vertices"),
        ([{"a": [0.5]}, {}], "graph 0: group 'a' is not a list of vertices"),
        ([{"a": "x"}, {}], "graph 0: group 'a' is not a list of vertices"),
    ],
)
def test_groups_that_are_none_are_named(model, groups, words):
    with pytest.raises(ValueError, match=words):
        explain(model, GRAPHS[:2], groups=groups)


# ---------------------------------------------------------------------- connected parts


def test_parts_are_blocks_and_branches():
    """Two triangles with a bridge of two edges between them, a square of chords, a lone vertex."""
    edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 6), (6, 4), (6, 7), (7, 8), (7, 9)]
    graph = Graph(np.array(edges).T, n_vertices=11)
    found = {tuple(part.vertices.tolist()): part.name for part in connected_parts(graph)}
    assert found == {
        (0, 1, 2): "block of 3 vertices",
        (4, 5, 6): "block of 3 vertices",
        (3,): "vertex 3",
        (7, 8, 9): "branch of 3 vertices",
        (10,): "vertex 10",
    }


@pytest.mark.parametrize("directed", [False, True])
def test_parts_are_what_no_single_edge_takes_apart(directed):
    nx = pytest.importorskip("networkx")
    for graph in make_random_graphs(30, directed=directed, random_state=3):
        whole = nx.Graph()
        whole.add_nodes_from(range(graph.n_vertices))
        whole.add_edges_from(np.asarray(graph.edge_index).T.tolist())
        whole.remove_edges_from(list(nx.selfloop_edges(whole)))
        blocks = [sorted(c) for c in nx.k_edge_components(whole, 2) if len(c) > 1]
        parts = connected_parts(graph)
        assert sorted(p.vertices.tolist() for p in parts if p.name.startswith("block")) == sorted(
            blocks
        )
        assert sorted(v for part in parts for v in part.vertices) == list(range(graph.n_vertices))


def test_a_planted_motif_is_a_part_and_is_found():
    graphs, y = make_motif_graphs(200, motifs=("house", "cycle"), random_state=0)
    model = GraphClassifier("wl").fit(graphs[:150], y[:150])
    test = graphs[150:]
    found = explain(model, test, groups=[connected_parts(graph) for graph in test])
    for one in found:
        block = max(one.groups, key=lambda group: group.name.startswith("block"))
        assert block.vertices.tolist() == list(range(len(one.vertices) - 5, len(one.vertices)))
    best = [max(one.groups, key=lambda group: group.effect).name for one in found]
    assert np.mean([name.startswith("block") for name in best]) > 0.9


# ---------------------------------------------------------------------- molecules

rdkit = pytest.importorskip("rdkit", reason="molecules need RDKit: extra 'chem'")


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CCO", [("hydroxyl", [2]), ("chain of 2 C", [0, 1])]),
        ("O=C1CCCN1", [("ring of 5 with N", [1, 2, 3, 4, 5]), ("amide", [0, 1, 5])]),
        (
            "O=S(=O)(N)c1ccc(Cl)cc1",
            [
                ("aromatic ring of 6", [4, 5, 6, 7, 9, 10]),
                ("sulfonamide", [0, 1, 2, 3]),
                ("chlorine", [8]),
            ],
        ),
        ("CC(=O)OC", [("ester", [1, 2, 3]), ("single C", [0]), ("single C", [4])]),
        ("CC(=O)O", [("carboxylic acid", [1, 2, 3]), ("single C", [0])]),
        ("C[N+](=O)[O-]", [("nitro", [1, 2, 3]), ("single C", [0])]),
        ("CN(C)C", [("amine, tertiary", [1]), *[("single C", [v]) for v in (0, 2, 3)]]),
        ("[Na+].[Cl-]", [("chlorine", [1]), ("single Na", [0])]),
    ],
)
def test_groups_of_known_molecules(smiles, expected):
    assert names_of(smiles) == expected


def test_every_functional_group_is_found_and_every_atom_has_a_group():
    from rdkit import Chem

    examples = {
        "sulfonamide": "CS(=O)(=O)NC", "sulfonic acid or ester": "CS(=O)(=O)O",
        "sulfonyl": "CS(=O)(=O)C", "sulfoxide": "CS(=O)C", "phosphoryl": "CP(C)(C)=O",
        "phosphate or phosphonate": "COP(=O)(OC)OC", "nitro": "CN(=O)=O", "azide": "CN=[N+]=[N-]",
        "diazo or azo": "CN=NC", "nitroso": "CN=O", "guanidine": "CNC(=N)N", "urea": "CNC(=O)NC",
        "thiourea": "CNC(=S)NC", "carbamate": "CNC(=O)OC", "carbonate": "COC(=O)OC",
        "imide": "CC(=O)NC(C)=O", "anhydride": "CC(=O)OC(C)=O", "hydroxamic acid": "CC(=O)NO",
        "carboxylic acid": "CC(=O)[O-]", "ester": "CC(=O)OC", "amide": "CC(=O)NC",
        "acyl halide": "CC(=O)Cl", "thioamide": "CC(=S)N", "thioester": "CC(=O)SC",
        "isocyanate or isothiocyanate": "CN=C=S", "aldehyde": "CC=O", "ketone": "CC(C)=O",
        "amidine": "CC(=N)N", "oxime": "CC=NO", "hydrazone": "CC=NNC", "imine": "CC=NC",
        "nitrile": "CC#N", "hydrazine": "CNNC", "trifluoromethyl": "CC(F)(F)F",
        "boronic acid or ester": "CB(O)O", "peroxide": "COOC", "disulfide": "CSSC",
        "alkyne": "CC#CC", "alkene": "CC=CC", "fluorine": "CF", "chlorine": "CCl",
        "bromine": "CBr", "iodine": "CI", "methoxy": "CCOC", "hydroxyl": "CO", "thiol": "CS",
        "ether": "CCOCC", "thioether": "CSC", "ammonium": "C[N+](C)(C)C",
        "amine, primary": "CN", "amine, secondary": "CNC", "amine, tertiary": "CN(C)C",
    }  # fmt: skip
    assert set(examples) == set(functional_groups())
    for name, smiles in examples.items():
        groups = molecule_groups(smiles)
        assert name in [group.name for group in groups], name
        atoms = {int(v) for group in groups for v in group.vertices}
        assert atoms == set(range(Chem.MolFromSmiles(smiles).GetNumAtoms())), name


def test_smarts_of_the_user_come_first_with_their_names():
    found = names_of("CCc1ccccc1", "cC benzylic carbon", "[CH3]")
    assert found[0] == ("benzylic carbon", [1, 2])
    assert found[1] == ("[CH3]", [0])
    assert names_of(rdkit.Chem.MolFromSmiles("CCO")) == names_of("CCO")
    assert molecule_groups("CCO", "CO alcohol")[0].name == "alcohol"


@pytest.mark.parametrize("smarts", ["C(((", "", "  ", "[nonsense name", "1"])
def test_a_smarts_that_cannot_be_parsed_is_one_clear_line(smarts, capfd):
    with pytest.raises(ValueError, match=r"`smarts`: .* cannot be parsed as a SMARTS"):
        molecule_groups("CCO", [smarts])
    assert capfd.readouterr().err == ""


def test_groups_are_those_of_the_molecule_that_the_model_reads():
    salt = "[Na+].CCC(=O)[O-]"
    graphs = as_batch([salt, "CCN"], standardize="parent")
    model = GraphClassifier("wl", KernelRidge(alpha=1.0)).fit(graphs, [0, 1])
    own = molecule_groups(salt, like=model)
    assert [(group.name, group.vertices.tolist()) for group in own] == names_of("CCC(=O)O")
    (one,) = explain(model, [salt], groups=[own])
    assert len(one.vertices) == 5
    with_hydrogens = rdkit.Chem.AddHs(rdkit.Chem.MolFromSmiles("CCO"))
    assert names_of(with_hydrogens) == names_of("CCO")


def test_a_smiles_that_cannot_be_parsed():
    with pytest.raises(GraphError, match="'C1CC' cannot be parsed"):
        molecule_groups("C1CC")


# ---------------------------------------------------------------------- planted rules

HEADS = ("CC", "CCC", "CC(C)", "c1ccccc1", "C1CCCCC1", "c1ccncc1", "CCOC", "CC(=O)C")
TAILS = ("C", "CCC", "C1CCCC1", "c1ccc(C)cc1", "CCN(C)C", "CCO", "c1ccsc1", "C(C)(C)C")
MIDDLES = ("", "C", "CC", "O", "CO", "N", "c1ccc({})cc1")
PLANTED = {"sulfonyl": "S(=O)(=O)", "amide": "C(=O)N"}


def planted_molecules(middle):
    """Molecules of heads, middles and tails, half of them with the planted group between."""
    from rdkit import Chem

    found = {}
    for head in HEADS:
        for between in MIDDLES:
            for tail in TAILS:
                for group in ("", middle):
                    end = f"{group}{tail}"
                    parts = between.format(end) if "{}" in between else f"{between}{end}"
                    molecule = Chem.MolFromSmiles(f"{head}{parts}")
                    if molecule is not None:
                        found[Chem.MolToSmiles(molecule)] = None
    return list(found)


@pytest.mark.parametrize("name", PLANTED)
def test_planted_atoms_are_found(name):
    from rdkit import Chem

    smiles = planted_molecules(PLANTED[name])
    query = Chem.MolFromSmarts(PLANTED[name])
    matches = [Chem.MolFromSmiles(one).GetSubstructMatches(query) for one in smiles]
    y = np.array([bool(match) for match in matches]).astype(int)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[: len(y) // 2], order[len(y) // 2 :]
    model = GraphClassifier(WLCounts(n_iterations=2))
    model.fit([smiles[i] for i in train], y[train])
    some = [i for i in test if y[i]][:40]
    groups = [molecule_groups(smiles[i]) for i in some]
    areas = []
    for i, one in zip(
        some, explain(model, [smiles[i] for i in some], target=1, groups=groups), strict=True
    ):
        truth = np.isin(np.arange(len(one.vertices)), [v for match in matches[i] for v in match])
        if not truth.all():
            areas.append([roc_auc_score(truth, v) for v in (one.vertex_effects, group_values(one))])
    assert len(areas) > 20
    assert (np.mean(areas, axis=0) > 0.9).all()


# ---------------------------------------------------------------------- pictures


def test_views_say_in_words_what_they_show(model):
    (one,) = explain(model, GRAPHS[:1], groups=[{"a": [0, 1], "b": [1, 2]}])
    added, alone, together = views_of(one, "atom")
    assert added.what == "Attribution of each atom to the score"
    assert added.values.mean() == pytest.approx(0, abs=1e-12)
    assert alone.what == "Effect on the score of leaving out each atom"
    np.testing.assert_array_equal(alone.values, one.vertex_effects)
    assert together.what == "Effect on the score of leaving out each group"
    larger = max(one.groups, key=lambda group: abs(group.effect))
    assert together.colors.endswith(f"largest effect: {larger.name}")
    assert together.values[1] == larger.effect
    assert (together.values[3:] == 0).all()
    assert len(views_of(explain(model, GRAPHS[:1])[0])) == 1
    number = [view.what for view in views_of(replace(one, of_class=False))]
    assert number[:2] == ["Attribution of each vertex to the value",
                          "Effect on the value of leaving out each vertex"]  # fmt: skip


def test_graphs_are_drawn_once_for_each_view(model, tmp_path):
    pytest.importorskip("matplotlib")
    (one,) = explain(model, GRAPHS[:1], groups=[connected_parts(GRAPHS[0])], edges=True)
    first = draw_explanation(GRAPHS[0], one, tmp_path / "views.png")
    titles = [ax.get_title().split("\n")[0] for ax in first.figure.axes if ax.get_title()]
    assert titles == [view.what for view in views_of(one)]
    assert "Score for class" in first.figure.get_suptitle()
    assert (tmp_path / "views.png").stat().st_size > 10_000
    described = replace(explain(model, GRAPHS[:1])[0], descriptors={"pH": -0.2512})
    alone = draw_explanation(GRAPHS[0], described)
    assert "Score for class" in alone.get_title()
    assert alone.get_title().endswith("; pH adds -0.25")


def test_molecules_are_drawn_once_for_each_view(tmp_path):
    smiles = ["CCO", "CCN", "c1ccccc1O", "CC(=O)O"]
    model = GraphClassifier("wl", KernelRidge(alpha=1.0)).fit(smiles * 4, [0, 1, 0, 1] * 4)
    (one,) = explain(model, smiles[2:3], groups=[molecule_groups(smiles[2])])
    picture = draw_molecule(smiles[2], one, tmp_path / "molecule.svg").decode()
    (plain,) = explain(model, smiles[2:3])
    assert _width(picture) == 3 * _width(draw_molecule(smiles[2], plain).decode())
    draw_molecule(smiles[2], one, tmp_path / "molecule.png")
    image = pytest.importorskip("PIL.Image").open(tmp_path / "molecule.png").convert("RGB")
    corners = [(x, y) for x in (0, image.width - 1) for y in (0, image.height - 1)]
    assert [image.getpixel(corner) for corner in corners] == [(255, 255, 255)] * 4


def _width(svg):
    return int(svg.split("width='")[1].split("px")[0])


# ---------------------------------------------------------------------- the command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model of molecules by type, one of molecules with features, and one of other graphs."""
    where = tmp_path_factory.mktemp("groups")
    smiles = planted_molecules("S(=O)(=O)")[:80]
    (where / "new.csv").write_text("smiles\n" + "\n".join(smiles[:5]) + "\n")
    for atoms in ("typed", "rich"):
        table = read_graphs(where / "new.csv", atoms=atoms)
        fitted = GraphClassifier(WLCounts(n_iterations=1), KernelRidge(alpha=1.0))
        save_model(fitted.fit(table.graphs, [0, 1, 0, 1, 0]), where / f"{atoms}.fdgnn")
    with (where / "graphs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["edge_index", "num_nodes"])
        for graph in make_cycles([3, 4, 5, 6]):
            writer.writerow([json.dumps(np.asarray(graph.edge_index).tolist()), graph.n_vertices])
    table = read_graphs(where / "graphs.csv")
    save_model(GraphRegressor("wl").fit(table.graphs, [3, 4, 5, 6]), where / "c.fdgnn")
    return where


def explained(folder, model, data, *options):
    run = fdgnn("explain", folder / model, folder / data, *options)
    assert run.returncode == 0, run.stderr
    return list(csv.DictReader(run.stdout.splitlines()))


def test_groups_of_molecules_are_in_the_table_and_labels_also_of_rich_atoms(folder):
    from rdkit import Chem

    table = read_graphs(folder / "new.csv", atoms="rich")
    rows = explained(folder, "rich.fdgnn", "new.csv")
    for row, smiles in enumerate(table.smiles):
        own = [r for r in rows if r["row"] == str(row)]
        vertices = [r for r in own if r["vertex"]]
        symbols = [atom.GetSymbol() for atom in Chem.MolFromSmiles(smiles).GetAtoms()]
        assert [r["label"] for r in vertices] == symbols
        assert all(r["effect"] and r["attribution"] for r in own)
        told = [(r["group"], r["vertices"]) for r in own if r["group"]]
        expected = molecule_groups(smiles)
        assert told == [(g.name, " ".join(map(str, g.vertices))) for g in expected]


def test_json_lines_have_groups_and_user_smarts(folder, tmp_path):
    path = tmp_path / "why.jsonl"
    options = ("--smarts", "[#6] carbon", "-o", path, "--draw", tmp_path / "pictures")
    run = fdgnn("explain", folder / "typed.fdgnn", folder / "new.csv", "--row", 1, *options)
    assert run.returncode == 0, run.stderr
    (one,) = map(json.loads, path.read_text().splitlines())
    assert len(one["labels"]) == len(one["vertices"]) == len(one["vertex_effects"])
    first = one["groups"][0]
    assert first["name"] == "carbon"
    assert first["score_without"] == pytest.approx(one["score"] - first["effect"])
    assert (tmp_path / "pictures" / "1.png").stat().st_size > 10_000


def test_other_graphs_have_groups_only_if_asked_for(folder, tmp_path):
    assert not any(row["effect"] for row in explained(folder, "c.fdgnn", "graphs.csv"))
    rows = explained(folder, "c.fdgnn", "graphs.csv", "--groups", "--row", 2)
    assert [row["group"] for row in rows if row["group"]] == ["block of 5 vertices"]
    sets = tmp_path / "sets.jsonl"
    sets.write_text('{"row": 1, "name": "half", "vertices": [0, 1]}\n\n')
    rows = explained(folder, "c.fdgnn", "graphs.csv", "--vertex-sets", sets)
    assert [(row["row"], row["group"], row["vertices"]) for row in rows if row["group"]] == [
        ("1", "half", "0 1")
    ]
    assert not any(r["effect"] for r in explained(folder, "typed.fdgnn", "new.csv", "--no-groups"))


def test_a_smarts_that_no_molecule_has_is_told():
    graphs = as_batch(["CCO", "CCN"])
    with pytest.warns(UnusedDataWarning, match="`smarts`: none of these molecules has 'S thio'"):
        GroupChoice(smarts=("S thio", "O alcohol")).of(graphs, [0, 1])
    GroupChoice(smarts=("N", "O alcohol")).of(graphs, [0, 1])  # no warning


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        ("typed.fdgnn", ["--smarts", "C((("], "--smarts: 'C(((' cannot be parsed as a SMARTS"),
        ("c.fdgnn", ["--smarts", "CC"], "--smarts is for molecules, and there are none"),
        ("typed.fdgnn", ["--no-groups", "--smarts", "CC"], "but none are wanted"),
        ("typed.fdgnn", ["--vertex-sets", "BAD"], "line 1: not a set of vertices"),
        ("typed.fdgnn", ["--vertex-sets", "FAR"], "group 'x' has vertex 999"),
        ("typed.fdgnn", ["--vertex-sets", "nowhere"], "nowhere"),
    ],
)
def test_bad_groups_are_one_clear_line(folder, tmp_path, model, options, words):
    for name, line in (("BAD", '{"row": 0}'), ("FAR", '{"row":0,"name":"x","vertices":[999]}')):
        (tmp_path / name).write_text(line)
    options = [str(tmp_path / o) if o in ("BAD", "FAR") else o for o in options]
    data = "graphs.csv" if model == "c.fdgnn" else "new.csv"
    assert_one_clear_line(fdgnn("explain", folder / model, folder / data, *options), words)

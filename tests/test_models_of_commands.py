"""`fit`, `predict`, `explain` and `evaluate` with each `--model`; labels that are new; atoms."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn import as_batch, explain, load_model, read_graphs
from fdgnn.datasets import iter_graphs, load_tu, make_motif_graphs, make_random_graphs
from fdgnn.encoders import EncoderUnion, GraphReservoir, WLCounts
from fdgnn.evaluation.committee_files import read_committee
from fdgnn.evaluation.models import CommitteeStudy, evaluate_committee, held_out_answers
from fdgnn.exceptions import RunMismatchError, StudyError
from fdgnn.html.old_runs import data_of_ensemble
from fdgnn.html.report_data import read_report_data
from fdgnn.prediction.predictor import Predictor
from fdgnn.prediction.rows import predict_rows
from fdgnn.uncertainty import fit_slope, probabilities
from strategies import assert_same
from tu_files import write_batch

# Reservoirs of an ensemble have fixed parameters; some small graphs converge slowly.
pytestmark = pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")

FAST = ["--configurations", "2", "--initializations", "2"]
ENCODERS = {
    "auto": {WLCounts, GraphReservoir},
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
    assert f"the average of: {'; '.join(models['auto'][1]['base_models'])}\n" in run.stdout


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
    np.testing.assert_allclose(chances, model.predict_proba(graphs)[:, 1], atol=1e-12)
    why = fdgnn("explain", path, data, "-o", tmp_path / "why.jsonl", "--row", 0, "--of", "yes")
    assert why.returncode == 0, why.stderr
    found = json.loads((tmp_path / "why.jsonl").read_text())
    assert found["score"] == pytest.approx(model.decision_function(graphs[:1])[0])
    assert sum(found["vertices"]) == pytest.approx(found["score"] - found["base_score"], abs=1e-6)


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
        "2 of these 6 rows have labels or descriptors that were not seen during fit; the "
        "model knows nothing about these, so its answers rest on the rest of the graph"
    ]
    summary = json.loads(run.stdout)
    assert (summary["predicted"], summary["unknown_labels"], summary["rejected"]) == (6, 2, 0)
    rows = predictions(tmp_path / "p.csv")
    assert [row["error"] for row in rows] == [""] * 6
    new = "vertex label 77 was not seen during fit"
    assert [row["warning"] for row in rows] == ["", new, "", "", new, ""]
    assert fdgnn("predict", path, strange, *out, "-q").stderr == ""
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
    refused = [
        row["error"] == "vertex label 77 was not seen during fit; a model of `fdgnn fit "
        "--handle-unknown ignore` takes such graphs"
        for row in predictions(tmp_path / "p.csv")
    ]
    assert refused == [False, True, False, False, True, False]


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


# ---------------------------------------------------------------------- evaluate


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_batch(tmp_path_factory.mktemp("tu") / "NOISY", *labeled_graphs(70))


@pytest.fixture(scope="module")
def finished(folder):
    out = folder.with_name("run")
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", out)
    assert run.returncode == 0, run.stderr
    return out, run


def comparable(path):
    result = json.loads((path / "result.json").read_text())
    return {k: v for k, v in result.items() if k not in ("member_seconds", "command")}


def test_evaluate_an_ensemble(folder, finished):
    out, run = finished
    result = json.loads((out / "result.json").read_text())
    assert (result["dataset"], result["model"], result["n_graphs"]) == ("NOISY", "auto", 70)
    assert len(result["members"]) == len(result["member_accuracies"]) == 4
    assert len(result["fold_accuracies"]) == len(result["fold_kept"]) == 10
    assert result["accuracy_mean"] == pytest.approx(np.mean(result["fold_accuracies"]))
    assert result["accuracy_mean"] > 0.55
    assert 0.5 < result["balanced_accuracy_mean"] < 1
    assert 0.5 < result["roc_auc_mean"] < 1
    assert "average, ROC AUC" in run.stdout
    assert all(row and set(row) <= set(range(4)) for row in result["fold_kept"])
    assert "NOISY models: 4 of 4" in run.stderr
    assert f"{100 * result['accuracy_mean']:.1f}" in run.stdout
    assert str(folder) in result["command"]


def assert_answers_are_scored(study, directory, result):
    """What the page shows of graphs held out gives the accuracy of the result."""
    outputs = held_out_answers(study, directory).outputs[:, 0]
    right = (outputs > 0) == (study.y == study.y.max())
    fold = np.argmax(study.task.folds < 0, axis=0)
    each = [right[fold == f].mean() for f in range(len(result["fold_accuracies"]))]
    assert each == pytest.approx(result["fold_accuracies"])


def test_a_rare_class_is_evaluated_as_it_is_fitted(tmp_path):
    """By ROC AUC, with a threshold that each outer fold chose without its test graphs."""
    graphs, y = make_motif_graphs(160, random_state=2)
    rare = np.flatnonzero((y == 0) | (np.cumsum(y) <= 6))
    folder = write_batch(tmp_path / "RARE", graphs[rare], y[rare])
    words = ["evaluate", folder, "--model", "wl", "--no-report", "--out"]
    run = fdgnn(*words, tmp_path / "run")
    assert run.returncode == 0, run.stderr
    assert "ROC AUC chooses models, and the decision threshold is the one" in run.stderr
    found = comparable(tmp_path / "run")
    assert found["scoring"] == "roc_auc"
    study = CommitteeStudy("RARE", *load_tu(folder), "wl", scoring="roc_auc")
    plain = evaluate_committee(study, tmp_path / "plain")
    assert plain.fold_alphas == found["fold_alphas"]
    assert plain.roc_auc_mean == found["roc_auc_mean"]
    assert plain.balanced_accuracy_mean < found["balanced_accuracy_mean"]
    cut = replace(study, threshold="f1")
    assert_answers_are_scored(cut, tmp_path / "run", found)
    assert replace(cut, class_weight="balanced").estimator().class_weight == "balanced"
    weighted = fdgnn(
        *words, tmp_path / "weighted", "--class-weight", "balanced", "-q", "--scoring", "f1"
    )
    assert weighted.returncode == 0, weighted.stderr
    score = comparable(tmp_path / "weighted")["score_mean"]
    assert re.search(rf"average, F1\s+│\s+{100 * score:.2f}", weighted.stdout)
    assert comparable(tmp_path / "weighted")["fold_alphas"] != found["fold_alphas"]
    again = fdgnn(*words, tmp_path / "run", "--class-weight", "balanced")
    assert_one_clear_line(again, "class_weight")
    bad = fdgnn(*words, tmp_path / "bad", "--threshold", "nope")
    assert_one_clear_line(bad, "expected one of accuracy, balanced_accuracy, f1")
    paper = fdgnn("evaluate", folder, "--threshold", "f1", "--out", tmp_path / "bad")
    assert_one_clear_line(paper, "--threshold is not for --model paper")


def test_an_ensemble_is_chosen_by_the_scoring(folder, finished, tmp_path):
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", tmp_path / "run", "--scoring",
                "roc_auc", "--no-report", "-q")  # fmt: skip
    assert run.returncode == 0, run.stderr
    by_auc, by_accuracy = (comparable(path) for path in (tmp_path / "run", finished[0]))
    assert (by_auc["scoring"], by_accuracy["scoring"]) == ("roc_auc", "accuracy")
    assert by_auc["fold_alphas"] != by_accuracy["fold_alphas"]
    assert by_auc["accuracy_mean"] == pytest.approx(np.mean(by_auc["fold_accuracies"]))
    other = fdgnn("evaluate", folder, "--model", "auto", "--out", tmp_path / "run", "-q")
    assert other.returncode != 0  # begun with another scoring
    paper = fdgnn("evaluate", folder, "--scoring", "roc_auc", "--out", tmp_path / "p", "-q")
    assert "--scoring is not for --model paper" in paper.stderr


@pytest.fixture(scope="module")
def shown(finished):
    pytest.importorskip("vl_convert")
    (data,) = read_report_data(finished[0] / "report.json")
    return data


def test_evaluate_writes_the_report_of_an_ensemble(finished, shown, tmp_path):
    out, run = finished
    assert f"report page: {out / 'report.html'}" in run.stderr
    page = (out / "report.html").read_text()
    assert 'id="base-models-0"' in page
    assert 'id="map-0"' in page
    assert shown.command == json.loads((out / "asked.json").read_text())["command"]
    # Once more from the directory alone, as it is and without its report data.
    alone = shutil.copytree(out, tmp_path / "run")
    again = fdgnn("report", alone, "-o", tmp_path / "again.html")
    assert again.returncode == 0, again.stderr
    assert 'id="map-0"' in (tmp_path / "again.html").read_text()
    (alone / "report.json").unlink()
    bare = fdgnn("report", alone, "-o", tmp_path / "bare.html")
    assert bare.returncode == 0, bare.stderr
    assert 'id="map-0"' not in (tmp_path / "bare.html").read_text()
    assert 'id="base-models-0"' in (tmp_path / "bare.html").read_text()


def test_predictions_on_the_page_are_those_of_the_outer_folds(finished, shown):
    result = read_committee(finished[0]).result
    assert shown.predictions == "out of fold"
    for fold, accuracy in enumerate(result.fold_accuracies, start=1):
        right = [row.correct for row in shown.graphs if row.fold == fold]
        assert np.mean(right) == pytest.approx(accuracy)
    confusion = np.array(shown.confusion)
    assert confusion.sum() == 70
    assert np.trace(confusion) == sum(row.correct for row in shown.graphs) < 70
    wrong = {row.graph for row in shown.graphs if not row.correct}
    assert set(shown.mistakes) <= wrong
    assert len(shown.mistakes) == min(12, len(wrong))


def test_probabilities_on_the_page_are_learned_without_the_fold(folder, finished, shown):
    _, y = load_tu(folder)
    codes, kept = (y == y.max()).astype(int), read_committee(finished[0]).result.fold_kept
    for o in (0, 6):
        test = np.array([row.fold == o + 1 for row in shown.graphs])
        each = [np.load(finished[0] / f"member-{i}.npz")["predictions"][o] for i in kept[o]]
        outputs = np.mean(each, axis=0)
        slope = fit_slope(outputs[~test], codes[~test])
        expected = probabilities(outputs[test], slope).max(axis=1)
        found = [row.probability for row in shown.graphs if row.fold == o + 1]
        np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_vertices_on_the_page_speak_for_what_was_predicted(folder, shown):
    graphs, y = load_tu(folder)
    model = CommitteeStudy("NOISY", graphs, y, "auto").estimator().fit(graphs, y)
    assert [one.name for one in shown.base_models] == [n.name for n in model.estimators_]
    own = model.predict(graphs).astype(str)
    changed = [row.graph for row in shown.graphs if row.predicted != own[row.graph]]
    assert changed  # graphs of which the model, trained on them, predicts otherwise
    drawn = {d.graph: d for d in shown.drawings}
    for g in [*changed[:3], 0, 1]:
        target = y.dtype.type(shown.graphs[g].predicted)
        (why,) = explain(model, graphs[[g]], target=target)
        expected = why.vertices - why.vertices.mean()
        np.testing.assert_allclose(drawn[g].contributions, expected, rtol=6e-3, atol=1e-9)


def test_evaluate_without_a_page(folder, finished, tmp_path):
    whole = shutil.copytree(finished[0], tmp_path / "run")
    for name in ("report.json", "report.html"):
        (whole / name).unlink()
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", whole, "--no-report", "--json")
    assert run.returncode == 0, run.stderr
    assert not (whole / "report.json").exists()
    assert not (whole / "report.html").exists()


def test_report_data_are_of_the_run_and_its_base_models(folder, finished, tmp_path):
    graphs, y = load_tu(folder)
    with pytest.raises(RunMismatchError, match="model = auto, not wl"):
        data_of_ensemble(CommitteeStudy("NOISY", graphs, y, "wl"), finished[0])
    whole = shutil.copytree(finished[0], tmp_path / "run")
    (whole / "member-3.npz").unlink()
    with pytest.raises(StudyError, match=r"member-3\.npz"):
        data_of_ensemble(CommitteeStudy("NOISY", graphs, y, "auto"), whole)
    with pytest.raises(StudyError, match=r"nowhere.committee\.json"):
        data_of_ensemble(CommitteeStudy("NOISY", graphs, y, "auto"), tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_evaluate_resumes_where_it_stopped(folder, finished, tmp_path):
    whole = shutil.copytree(finished[0], tmp_path / "run")
    (whole / "member-1.npz").unlink()
    (whole / "result.json").unlink()
    before = {i: (whole / f"member-{i}.npz").stat().st_mtime_ns for i in (0, 2, 3)}
    run = fdgnn("evaluate", folder, "--model", "auto", "--out", whole, "--json", "--no-report")
    assert run.returncode == 0, run.stderr
    assert before == {i: (whole / f"member-{i}.npz").stat().st_mtime_ns for i in (0, 2, 3)}
    assert comparable(whole) == comparable(finished[0])
    assert json.loads(run.stdout)["accuracy_mean"] == comparable(whole)["accuracy_mean"]


def test_evaluate_refuses_a_run_with_other_settings(folder, finished, tmp_path):
    whole = shutil.copytree(finished[0], tmp_path / "run")
    words = ["evaluate", folder, "--out", whole]
    assert_one_clear_line(fdgnn(*words, "--model", "wl"), "model", "wl")
    assert_one_clear_line(fdgnn(*words, "--model", "auto", "--seed", 1), "seed")
    assert_one_clear_line(fdgnn(*words, "--protocol", "quick"), str(whole))
    assert comparable(whole) == comparable(finished[0])
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    used = fdgnn("evaluate", folder, "--model", "auto", "--out", other)
    assert_one_clear_line(used, "not those of such a run")
    assert [path.name for path in other.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("damage", ["cut", "empty", "text", "turned", "foreign"])
def test_a_damaged_base_model_is_reported(folder, finished, tmp_path, damage):
    study = CommitteeStudy("NOISY", *load_tu(folder), "auto")
    whole = shutil.copytree(finished[0], tmp_path / "run")
    path = whole / "member-2.npz"
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: len(content) // 2]
    elif damage == "empty":
        content = b""
    elif damage == "text":
        content = b"these are no arrays"
    elif damage == "turned":
        middle = len(content) // 2
        content[middle : middle + 20] = bytes(255 - b for b in content[middle : middle + 20])
    path.write_bytes(content)
    if damage == "foreign":
        ones = np.ones(3)
        np.savez(path, alphas=ones, positions=ones, predictions=ones, seconds=ones)
    with pytest.raises(
        StudyError, match=r"member-2\.npz: it is damaged .*; delete it and run again"
    ):
        evaluate_committee(study, whole)
    path.unlink()
    again = evaluate_committee(study, whole)
    assert again.fold_accuracies == comparable(finished[0])["fold_accuracies"]


@pytest.mark.parametrize(
    "words",
    [
        ["--configurations", "2"], ["--initializations", "1"], ["--units", "10"],
        ["--protocol", "quick"],
        ["--cluster", "local"],
    ],
)  # fmt: skip
def test_options_of_the_papers_model_are_refused(folder, tmp_path, words):
    run = fdgnn("evaluate", folder, "--model", "union", "--out", tmp_path / "run", *words)
    assert_one_clear_line(run, f"{words[0]} is for --model paper", "--model union")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "words", [["--configurations", "2"], ["--initializations", "1"], ["--no-search"]]
)
def test_fit_refuses_options_of_the_papers_model(tmp_path, words):
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


def test_evaluate_takes_a_table_as_compare_does(molecules, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["evaluate", molecules, "--target", "shape", "--model", "wl", "--no-report"]
    run = fdgnn(*words, "--json", "-q")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (tmp_path / "runs" / "molecules" / "result.json").exists()
    assert (told["dataset"], told["n_graphs"], told["split"]) == ("molecules", 30, "random split")
    table = read_graphs(molecules, target="shape")
    study = CommitteeStudy("molecules", table.graphs, table.y, "wl")
    same = evaluate_committee(study, tmp_path / "same")
    assert told["fold_accuracies"] == same.fold_accuracies


@pytest.mark.usefixtures("vertices_on_a_circle")
def test_evaluate_holds_groups_out_together(tmp_path):
    pytest.importorskip("rdkit")
    path, out = tmp_path / "some.csv", tmp_path / "run"
    ends = ["C" * n + "O" for n in range(1, 9)] + ["C" * n + "N" for n in range(1, 9)]
    rings = ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1", "c1ccccc1", "c1ccncc1"]
    rows = [f"{end}{ring},{end[-1]},{ring}" for ring in rings for end in ends]
    path.write_text("smiles,end,ring\n" + "\n".join(rows) + "\n")
    words = ["evaluate", path, "--target", "end", "--model", "wl", "--json", "-q"]
    run = fdgnn(*words, "--split", "scaffold", "--scoring", "roc_auc", "--out", out)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["split"], len(told["fold_accuracies"])) == ("scaffold split", 3)
    assert "mean of 3 outer folds, scaffold split" in (out / "report.html").read_text()
    rows = read_committee(out).settings
    assert (rows.n_outer, rows.n_inner, rows.groups is not None) == (3, 3, True)
    by_column = fdgnn(*words, "--split", "group", "ring", "--no-report", "--out", tmp_path / "c")
    assert json.loads(by_column.stdout)["split"] == "split by group (ring)"
    other = fdgnn(*words, "--split", "group", "end", "--no-report", "--out", out)
    assert_one_clear_line(other, "only 2 different values of end")
    again = fdgnn(*words, "--scoring", "roc_auc", "--out", out)
    assert_one_clear_line(again, "split = scaffold split")


@pytest.mark.parametrize(("words", "told"), [
    (["--split", "time", "n"], "--split time is for fit; evaluate holds every graph out once"),
    (["--split", "scaffold", "--model", "paper"], "--split is not for --model paper"),
    (["--target", "n"], "evaluate takes one target, but there are 2"),
])  # fmt: skip
def test_what_cannot_be_evaluated_is_one_clear_line(molecules, tmp_path, words, told):
    path, out = tmp_path / "numbered.csv", tmp_path / "run"
    lines = molecules.read_text().splitlines()
    rows = [f"{line},{i % 3}" for i, line in enumerate(lines[1:])]
    path.write_text(f"{lines[0]},n\n" + "\n".join(rows) + "\n")
    run = fdgnn("evaluate", path, "--target", "shape", "--out", out, *words)
    assert_one_clear_line(run, told)
    assert not out.exists()


def test_a_table_that_is_not_there_and_a_small_class(tmp_path):
    gone = fdgnn("evaluate", tmp_path / "gone.csv", "--target", "y", "--out", tmp_path / "run")
    assert_one_clear_line(gone, "gone.csv: no such file or folder")
    path = tmp_path / "small.csv"
    ends = ["C" * n + "O" for n in range(1, 30)] + ["C" * n + "N" for n in range(1, 6)]
    path.write_text("smiles,end\n" + "".join(f"{end},{end[-1]}\n" for end in ends))
    words = ["--target", "end", "--model", "wl", "--json", "-q", "--no-report"]
    run = fdgnn("evaluate", path, *words, "--out", tmp_path / "run")
    assert run.returncode == 0, run.stderr
    assert len(json.loads(run.stdout)["fold_accuracies"]) == 3  # of 5 graphs two may be tested


def test_a_tu_dataset_has_no_scaffolds(folder, tmp_path):
    words = ["--model", "auto", "--split", "scaffold", "--out", tmp_path / "run"]
    assert_one_clear_line(fdgnn("evaluate", folder, *words), "is for tables, and this is a TU")
    assert_one_clear_line(fdgnn("evaluate", folder, "--target", "y", *words), "--target is for")


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

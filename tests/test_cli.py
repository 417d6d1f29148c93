"""The command as a user meets it, with good and bad words; also in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from typer.main import get_command

from commands import assert_one_clear_line, fdgnn, fdgnn_process
from fdgnn import __version__
from fdgnn.cli.app import PANELS, app
from fdgnn.datasets import make_motif_graphs
from tu_files import write_batch

SMALL = ["--protocol", "quick", "--configurations", "2", "--initializations", "1", "--units", "10"]


@pytest.fixture(scope="module")
def tu_folder(tmp_path_factory):
    """Generated graphs as a TU folder."""
    graphs, y = make_motif_graphs(60, random_state=0)
    return write_batch(tmp_path_factory.mktemp("data") / "MOTIFS", graphs, y)


def test_help_and_version():
    assert "evaluate" in fdgnn_process("--help").stdout
    assert "Example: fdgnn evaluate" in fdgnn_process("evaluate", "--help").stdout
    first, second = fdgnn_process("--version").stdout.splitlines()
    assert first == f"fdgnn {__version__}"
    assert second.startswith("kernels: engine ")


def test_evaluate_writes_and_resumes(tu_folder, tmp_path):
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", "--no-report", *SMALL)
    assert run.returncode == 0, run.stderr
    assert "MOTIFS random initializations: 2 of 2" in run.stderr
    assert "accuracy" in run.stdout
    (result,) = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    protocol = result["protocol"]
    assert (result["dataset"], protocol["name"]) == ("MOTIFS", "quick")
    assert (protocol["n_configurations"], protocol["n_initializations"]) == (2, 1)
    again = fdgnn(
        "evaluate", tu_folder, "--out", tmp_path / "run", "--no-report", "--json", "--quiet", *SMALL
    )
    assert again.stderr == ""
    printed = json.loads(again.stdout)
    assert printed["targets"] == result["targets"]


def test_evaluate_ends_with_a_page(tu_folder, tmp_path):
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", *SMALL)
    page = tmp_path / "run" / "report.html"
    assert f"HTML report: {page}" in run.stderr
    assert "MOTIFS" in page.read_text(encoding="utf-8")
    (data,) = json.loads((tmp_path / "run" / "report.json").read_text())
    assert data["predictions"] == "out of fold"
    assert data["command"].startswith("fdgnn evaluate ")
    (result,) = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert result["command"] == data["command"]
    without = fdgnn("evaluate", tu_folder, "--out", tmp_path / "bare", "--no-report", *SMALL)
    assert without.returncode == 0
    assert sorted(p.name for p in (tmp_path / "bare").iterdir()) == [
        "evaluation.json", "lock", "parts", "predictions.csv",
    ]  # fmt: skip


def test_a_page_that_cannot_be_made_costs_no_result(tu_folder, tmp_path, monkeypatch):
    for missing in ("vl_convert", "networkx"):
        monkeypatch.setitem(sys.modules, missing, None)
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", *SMALL)
    assert run.returncode == 0, run.stderr
    assert "no HTML report: " in run.stderr
    assert "pip install" in run.stderr
    assert (tmp_path / "run" / "evaluation.json").exists()


def test_evaluate_refuses_a_directory_of_other_settings(tu_folder, tmp_path):
    fdgnn("evaluate", tu_folder, "--out", tmp_path, "--no-report", *SMALL)
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path, *SMALL, "--seed", "5")
    assert_one_clear_line(run, "seed = 0, not 5")


def test_bad_words(tu_folder, tmp_path):
    out = tmp_path / "out"
    assert_one_clear_line(fdgnn("evaluate", "MUTAGG", "--out", out), "MUTAGG", "MUTAG")
    assert_one_clear_line(fdgnn("evaluate", "no/such/folder", "--out", out), "no such")
    unknown = fdgnn("evaluate", tu_folder, "--out", out, "--protocol", "fast")
    assert unknown.returncode == 2
    assert "paper" in unknown.stderr
    occupied = tmp_path / "file"
    occupied.write_text("")
    assert_one_clear_line(fdgnn("evaluate", tu_folder, "--out", occupied, *SMALL), "file")
    cluster = fdgnn("evaluate", tu_folder, "--out", out, *SMALL, "--cluster", "tcp://127.0.0.1:9")
    assert_one_clear_line(cluster, "tcp://127.0.0.1:9")


def test_too_few_members_of_a_class(tmp_path):
    folder = tmp_path / "FEW"
    folder.mkdir()
    (folder / "FEW_A.txt").write_text("".join(f"{2 * g + 1}, {2 * g + 2}\n" for g in range(20)))
    (folder / "FEW_graph_indicator.txt").write_text("".join(f"{v // 2 + 1}\n" for v in range(40)))
    (folder / "FEW_graph_labels.txt").write_text("1\n" * 17 + "2\n" * 3)
    assert_one_clear_line(fdgnn("evaluate", folder, "--out", tmp_path / "out"), "3 graphs")


@pytest.mark.usefixtures("few_networks", "vertices_on_a_circle")
def test_demo_runs_on_generated_graphs_where_mutag_is_not_at_hand(tmp_path, monkeypatch):
    """Python does not find GraKeL: this stands for a machine without it."""
    real = importlib.util.find_spec
    hidden = lambda name, *more: None if name == "grakel" else real(name, *more)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", hidden)
    page = tmp_path / "demo.html"
    run = fdgnn("demo", "--json", "--report", page, FDGNN_DATA=str(tmp_path))
    assert page.exists(), run.stderr
    assert run.returncode == 0, run.stderr
    assert "using generated graphs" in run.stderr
    assert json.loads(run.stdout)["targets"][0]["scores"][0]["mean"] > 0.6


def test_demo_on_mutag_is_near_the_paper():
    pytest.importorskip("grakel")
    run = fdgnn("demo", "--json", FDGNN_DATA="")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["dataset"] == "MUTAG"
    published, (accuracy, *_) = result["published"], result["targets"][0]["scores"]
    assert abs(accuracy["mean"] - published["mean"]) < published["std"]


# Each command in a process that has imported what is there before any command, and scikit-learn.
FORKS = """
import json, os, sys
import fdgnn.cli, sklearn.base
for words in json.load(sys.stdin):
    child = os.fork()
    if child == 0:
        sys.argv = ["fdgnn", *words]
        sys.exit(fdgnn.cli.main())
    if os.waitpid(child, 0)[1]:
        sys.exit(f"failed: {words}")
"""


def test_each_command_imports_what_it_needs(tmp_path):
    """In processes of their own, where no other test has imported it for them."""
    graphs, y = make_motif_graphs(16, random_state=0)
    data, model = write_batch(tmp_path / "MOTIFS", graphs, y), tmp_path / "model.fdgnn"
    commands = (
        ["fit", data, "--model", "paper", "--no-search", "-o", model],
        ["predict", model, data, "-o", tmp_path / "predicted.csv"],
        ["explain", model, data, "--row", 0, "-o", tmp_path / "why.jsonl"],
        ["report", model, "--data", data, "-o", tmp_path / "page.html"],
        ["model", model],
        ["datasets", "info", data],
        ["--version"],
    )
    typed = json.dumps([list(map(str, words)) for words in commands])
    run = subprocess.run(
        [sys.executable, "-c", FORKS], input=typed, capture_output=True, text=True,
        env=os.environ | {"FDGNN_OFFLINE": "1"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "page.html").exists()


@pytest.mark.parametrize(("words", "message"), [
    (["fit", "a.csv", "--taget", "y"], "error: No such option: --taget "),
    (["fit", "a.csv", "-o", "m", "--model", "deep"], "error: Invalid value for '--model': "),
    (["fit", "a.csv", "-o", "m", "--layers", "abc"], "error: Invalid value for '--layers': "),
    (["predict", "m", "a.csv", "--chunk-size", "0"], "error: Invalid value for '--chunk-size': "),
    (["fit", "a.csv"], "error: Missing option '--output' / '-o'; fdgnn fit --help lists all"),
    (["fit", "-o", "m"], "error: Missing argument '"),
    (["explain", "m", "a.csv", "b.csv"], "error: Got unexpected extra argument"),
    (["nonsense"], "error: No such command 'nonsense'"),
])  # fmt: skip
def test_the_option_parser_says_one_line(words, message):
    run = fdgnn(*words)
    assert run.returncode == 2
    assert run.stderr.startswith(message)
    assert run.stderr.count("\n") == 1
    assert "Usage" not in run.stdout + run.stderr


# ---------------------------------------------------------------------- help


def test_help_lists_every_command_under_its_purpose():
    commands = get_command(app).commands
    assert sorted(commands) == sorted(name for names in PANELS.values() for name in names)
    shown = fdgnn("--help").stdout
    for panel, names in PANELS.items():
        assert f"{panel}:" in shown
        assert all(f"\n  {name} " in shown for name in names)


def test_help_describes_reading_as_the_library_does():
    shown = " ".join(fdgnn("fit", "--help").stdout.split())
    assert "How to read graphs: --format <str>" in shown
    assert "--id <str> Column with ids of rows." in shown
    assert "[default: auto]" in shown
    assert "With --model paper: units in each layer. [default: (50)]" in shown


# ---------------------------------------------------------------------- files that exist


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A table whose last row is invalid, and a model that was fitted on it."""
    folder = tmp_path_factory.mktemp("numbers")
    path = [[i, i + 1] for i in range(6)]
    rows = [{"edge_index": path[: 1 + i % 5], "y": 0.5 + i % 5} for i in range(30)]
    rows += [{"edge_index": [[0, 1, 2]], "y": 1.0}]
    table = folder / "table.jsonl"
    table.write_text("\n".join(map(json.dumps, rows)))
    run = fdgnn("fit", table, "--target", "y", "-o", folder / "model.fdgnn", "-q")
    assert run.returncode == 0, run.stderr
    return table, folder / "model.fdgnn", run


@pytest.mark.parametrize("words", [
    ["fit", "TABLE", "--target", "y", "-o", "OUT"],
    ["fit", "TABLE", "--target", "y", "-o", "new", "--report", "OUT"],
    ["fit", "TABLE", "--target", "y", "-o", "new", "--rejects", "OUT"],
    ["predict", "MODEL", "TABLE", "-o", "OUT.csv"],
    ["predict", "MODEL", "TABLE", "-o", "new.csv", "--rejects", "OUT"],
    ["explain", "MODEL", "TABLE", "-o", "OUT.jsonl"],
    ["explain", "MODEL", "TABLE", "-o", "new.jsonl", "--draw", "."],
    ["report", "MODEL", "-o", "OUT"],
    ["playground", "MODEL", "-o", "OUT"],
    ["demo", "--report", "OUT"],
])  # fmt: skip
def test_files_that_exist_are_kept(words, numbers, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, model, _ = numbers
    words = [{"TABLE": str(table), "MODEL": str(model)}.get(word, word) for word in words]
    out = tmp_path / next((word for word in words if word.startswith("OUT")), "OUT")
    out.write_text("precious")
    run = fdgnn(*words, "-q")
    assert_one_clear_line(run, "--force")
    assert run.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert out.read_text() == "precious"


def test_force_overwrites(numbers, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    run = fdgnn("predict", numbers[1], numbers[0], "-o", out, "-q", "--force")
    assert run.returncode == 0, run.stderr
    assert len(out.read_text().splitlines()) == 32
    assert_one_clear_line(fdgnn("predict", numbers[1], out, "-o", out, "--force"), "the input")


def test_quiet_commands_report_rejected_rows(numbers, tmp_path):
    table, model, fitted = numbers
    assert fitted.stderr.startswith("1 of 31 rows rejected, listed in ")
    assert "; the first: row 30" in fitted.stderr
    for output in ("-", tmp_path / "out.csv", f"{tmp_path}/all/"):
        run = fdgnn("predict", model, table, "-o", output, "-q")
        assert run.returncode == 0, run.stderr
        assert run.stderr.startswith("1 of 31 rows rejected")
        assert run.stderr.count("\n") == 1


def test_an_interrupt_says_whether_the_same_command_resumes(numbers, tmp_path, monkeypatch):
    def train(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("fdgnn.training.train", train)
    model = tmp_path / "m.fdgnn"
    words = ["fit", numbers[0], "--target", "y", "-o", model, "-q"]
    run = fdgnn(*words)
    assert run.returncode == 130
    assert run.stderr.endswith("error: interrupted\n")
    (tmp_path / "m.fdgnn.parts").mkdir()
    run = fdgnn(*words)
    assert run.returncode == 130
    assert run.stderr.endswith(
        f"error: interrupted; the same command resumes, from {model}.parts\n"
    )


# ---------------------------------------------------------------------- facts about data


def test_facts_about_a_numeric_target(numbers):
    facts = json.loads(fdgnn("datasets", "info", numbers[0], "--target", "y", "--json").stdout)
    assert facts["target"] == {
        "mean": pytest.approx(2.5), "sd": pytest.approx(2**0.5),
        "quantiles": [0.5, 1.5, 2.5, 3.5, 4.5], "skewness": pytest.approx(0, abs=1e-12),
    }  # fmt: skip
    assert (facts["n_edges"], facts["class_counts"]) == (90, [])
    shown = fdgnn("datasets", "info", numbers[0], "--target", "y").stdout
    assert "target" in shown
    assert "mean 2.5, standard deviation 1.414" in shown
    assert "edges per graph, mean" in shown


def test_facts_about_molecules_are_those_of_chemists(tmp_path):
    pytest.importorskip("rdkit")
    table = tmp_path / "table.csv"
    rows = ["OCC,1.5", "CCO,2.5", "CC(=O)[O-].[Na+],3.5", "C[C@H](N)O,4.5", "c1ccccc1C,5.5"]
    rows += ["c1ccccc1O,900.5", "CC(=O)[O-],7.25"]
    table.write_text("\n".join(["smiles,y", *rows]))
    facts = json.loads(fdgnn("datasets", "info", table, "--target", "y", "--json").stdout)
    assert facts["molecules"] == {
        "elements": {"C": 7, "O": 6, "Na": 1, "N": 1}, "n_several_fragments": 1, "n_charged": 1,
        "n_stereo": 1, "n_acyclic": 5, "n_scaffolds": 1, "largest_scaffold": 2, "n_repeated": 2,
        "n_contradicting": 2,
    }  # fmt: skip
    assert (facts["n_vertices"], facts["n_edges"]) == (33, 27)
    shown = fdgnn("datasets", "info", table, "--target", "y").stdout
    for words in ("atoms per molecule", "1; --standardize parent reduces", "1; --stereo reads it"):
        assert words in shown
    for words in ("bonds per molecule", "2, 2 of them with different targets", "logarithm"):
        assert words in shown


# ---------------------------------------------------------------------- values of options

#: Words of each command that do something, with files of the fixture `screen`.
COMPLETE = {
    "fit": "fit screen.csv --target y --model wl --iterations 1 -o OUT -q",
    "predict": "predict model.fdgnn screen.csv -o OUT.csv -q",
    "explain": "explain model.fdgnn screen.csv -o OUT.jsonl -q",
    "evaluate": "evaluate screen.csv --target y --model wl --out OUT -q",
    "compare": "compare screen.csv --target y --with ecfp-lr --out OUT -q",
    "report": "report model.fdgnn -o OUT.html -q",
    "playground": "playground model.fdgnn -o OUT.html -q",
    "serve": "serve model.fdgnn",
    "stability": "stability screen.csv",
}
#: Any text is a value, or the file that it names may be written.
FREE = {"title", "output", "out", "draw", "rejects", "report", "changes", "host"}
#: Of these commands, these options only count with others.
ALONE = {"playground": {"format", "id", "smiles", "vertex-attributes", "edge-attribute", "target"}}


def bad_values():
    """Pairs of a command and an option with a value that it cannot have."""
    commands = get_command(app).commands
    for name in COMPLETE:
        for option in commands[name].params:
            word = max(option.opts, key=len)
            if option.param_type_name == "argument" or option.is_flag or word.strip("-") in FREE:
                continue
            if word.strip("-") in ALONE.get(name, ()):
                continue
            number = option.bare_type() in ("int", "float")
            numbers = ("0",) if word == "--jobs" else ("-2", "nan")
            for value in numbers if number else ("no/such",):
                yield pytest.param(name, option.opts, value, id=f"{name} {word} {value}")


@pytest.fixture(scope="module")
def screen(tmp_path_factory):
    """A folder with a small table of molecules, and a model that was fitted on it."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("screen")
    rows = [f"{'C' * (1 + n // 2)}{'ON'[n % 2]},{n % 2}" for n in range(24)]
    (folder / "screen.csv").write_text("\n".join(["smiles,y", *rows]) + "\n")
    run = fdgnn(
        "fit", folder / "screen.csv", *COMPLETE["fit"].split()[2:-2], folder / "model.fdgnn"
    )
    assert run.returncode == 0, run.stderr
    return folder


@pytest.mark.parametrize(("name", "words", "value"), list(bad_values()))
def test_a_bad_value_is_named_with_its_option_before_anything_is_written(
    name, words, value, screen, monkeypatch
):
    monkeypatch.chdir(screen)
    before = sorted(path.name for path in screen.iterdir())
    run = fdgnn(*COMPLETE[name].split(), max(words, key=len), value)
    assert run.returncode in (1, 2), run.stderr
    *_, told = run.stderr.splitlines()
    assert run.stderr.count("error:") == 1
    assert told.startswith("error:")
    assert any(word in told for word in (*words, "no/such", "--target")), told
    assert sorted(path.name for path in screen.iterdir()) == before


def test_no_file_of_results_is_written_if_all_rows_are_invalid(screen, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("smiles,y\nC((,1\n(((,0\n")
    model = screen / "model.fdgnn"
    for words in (
        ["predict", model, bad, "-o", tmp_path / "out.csv"],
        ["explain", model, bad, "-o", tmp_path / "why.jsonl"],
        ["fit", bad, "--target", "y", "-o", tmp_path / "m.fdgnn"],
    ):
        run = fdgnn(*words, "-q")
        assert_one_clear_line(run, "none of the", "row 0: the SMILES 'C((' cannot be parsed")
        listed = (tmp_path / f"{words[-1].name}.rejects.csv").read_text().splitlines()
        assert [line.split(",")[0] for line in listed] == ["row", "0", "1"]
        assert not words[-1].exists()
    printed = fdgnn("predict", model, bad)
    assert printed.returncode == 1
    assert "C((" in printed.stdout  # with the reasons


def test_more_neighbors_than_training_graphs_are_all_of_them(screen, tmp_path):
    out, model = tmp_path / "out.csv", screen / "model.fdgnn"
    run = fdgnn("predict", model, screen / "screen.csv", "--neighbors", 100, "-o", out)
    assert run.returncode == 0, run.stderr
    assert "--neighbors 100: the model has 24 training graphs" in run.stderr
    header = out.read_text().splitlines()[0]
    assert "neighbor_24_similarity" in header
    assert "neighbor_25" not in header


def test_a_row_about_which_nothing_is_known_is_not_predicted(screen, tmp_path):
    new = tmp_path / "new.csv"
    new.write_text("smiles\n[Xe]\nCCO\n")
    out = tmp_path / "out.jsonl"
    run = fdgnn("predict", screen / "model.fdgnn", new, "--neighbors", 1, "-o", out, "--json")
    assert "1 of these 2 rows has nothing in common with the training graphs" in run.stderr
    assert "labels" not in run.stderr  # one remark for one row
    assert json.loads(run.stdout)["predicted"] == 1
    nothing, known = map(json.loads, out.read_text().splitlines())
    for name in ("prediction", "score", "neighbor_1", "neighbor_1_similarity", "neighbor_1_target"):
        assert nothing[name] is None
        assert known[name] is not None


@pytest.mark.parametrize("words", [
    "fit gone.csv -o m --model wl --alpha -1", "fit gone.csv -o m --scoring nope",
    "fit gone.csv -o m --model paper --units 0", "fit gone.csv -o m --search-on 0",
    "fit gone.csv -o m --split nope", "fit gone.csv -o m --jobs 0",
    "evaluate gone.csv --model wl --scoring nope", "evaluate gone.csv --model auto --jobs 0",
    "compare gone.csv --scoring nope", "compare gone.csv --with nope",
])  # fmt: skip
def test_values_of_options_are_checked_before_the_data_are_read(words):
    run = fdgnn(*words.split())
    assert_one_clear_line(run)
    *_, value = words.split()
    assert "gone.csv" not in run.stderr
    assert value in run.stderr

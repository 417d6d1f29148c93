"""The command as a user meets it, with good and bad words; also in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from commands import assert_one_clear_line, fdgnn, fdgnn_process
from fdgnn import __version__
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
    assert fdgnn_process("--version").stdout.strip() == f"fdgnn {__version__}"


def test_evaluate_writes_and_resumes(tu_folder, tmp_path):
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", "--no-report", *SMALL)
    assert run.returncode == 0, run.stderr
    assert "MOTIFS networks: 2 of 2" in run.stderr
    assert "accuracy" in run.stdout
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert (result["dataset"], result["protocol"]) == ("MOTIFS", "quick")
    assert (result["n_configurations"], result["n_guesses"]) == (2, 1)
    again = fdgnn(
        "evaluate", tu_folder, "--out", tmp_path / "run", "--no-report", "--json", "--quiet", *SMALL
    )
    assert again.stderr == ""
    printed = json.loads(again.stdout)
    assert printed["fold_accuracies"] == result["fold_accuracies"]


def test_evaluate_ends_with_a_page(tu_folder, tmp_path):
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", *SMALL)
    page = tmp_path / "run" / "report.html"
    assert f"report page: {page}" in run.stderr
    assert "MOTIFS" in page.read_text(encoding="utf-8")
    (data,) = json.loads((tmp_path / "run" / "report.json").read_text())
    assert data["predictions"] == "out of fold"
    assert data["command"].startswith("fdgnn evaluate ")
    asked = json.loads((tmp_path / "run" / "asked.json").read_text())
    assert asked == {
        "command": data["command"], "protocol": "quick", "n_configurations": 2, "n_guesses": 1,
    }  # fmt: skip
    without = fdgnn("evaluate", tu_folder, "--out", tmp_path / "bare", "--no-report", *SMALL)
    assert without.returncode == 0
    assert sorted(p.name for p in (tmp_path / "bare").iterdir()) == [
        "asked.json", "lock", "records.jsonl", "result.json", "settings.json",
    ]  # fmt: skip


def test_a_page_that_cannot_be_made_costs_no_result(tu_folder, tmp_path, monkeypatch):
    for missing in ("vl_convert", "networkx"):
        monkeypatch.setitem(sys.modules, missing, None)
    run = fdgnn("evaluate", tu_folder, "--out", tmp_path / "run", *SMALL)
    assert run.returncode == 0, run.stderr
    assert "no report page: " in run.stderr
    assert "pip install" in run.stderr
    assert (tmp_path / "run" / "result.json").exists()


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
    assert json.loads(run.stdout)["accuracy_mean"] > 0.6


def test_demo_on_mutag_is_near_the_paper():
    pytest.importorskip("grakel")
    run = fdgnn("demo", "--json", FDGNN_DATA="")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["dataset"] == "MUTAG"
    published = result["published"]
    assert abs(result["accuracy_mean"] - published["accuracy_mean"]) < published["accuracy_std"]


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
        ["compile"],
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

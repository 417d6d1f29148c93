"""Text of strangers: shown without being obeyed, written without being run, cut between letters."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import report_examples as examples
from commands import assert_one_clear_line, fdgnn
from fdgnn import FDGNNClassifier, read_graphs, save_model
from fdgnn.cli.app import say
from fdgnn.cli.output import evaluation_lines
from fdgnn.datasets import make_motif_graphs
from fdgnn.texts import cut, guarded, parse_json, printable, unguarded
from model_file_tools import with_record

ESCAPE = "\x1b[2J\x1b]0;title\x07"  # clears a terminal, and names its window
BACKWARD = "\u202egnp.exe"  # is shown from right to left
FORMULA = '=HYPERLINK("https://example.org";"click")'


# ---------------------------------------------------------------------- terminals


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text):
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_means_the_same_when_it_is_printed(value):
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model with hostile names of classes, and a file with hostile ids."""
    folder = tmp_path_factory.mktemp("hostile")
    graphs, y = make_motif_graphs(20, random_state=0)
    names = np.array([FORMULA, f"b{ESCAPE}\nscore 1.0"])
    model = FDGNNClassifier(n_units=10, random_state=0).fit(graphs, names[y])
    save_model(model, folder / "model.fdgnn")
    ids = [FORMULA, f"x{ESCAPE}", "a\nb", "-5", "@x", BACKWARD, "\ud800", "'=quoted", "plain"]
    rows = [
        {"id": name, "edge_index": np.asarray(graph.edge_index).tolist()}
        for name, graph in zip([*ids, ESCAPE], graphs, strict=False)
    ]
    rows[-1]["edge_index"] = "nonsense"  # a bad row, whose id is shown
    (folder / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder, ids


def on_a_terminal(*words):
    """What a command writes to a terminal, standard error included."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "fdgnn", *map(str, words)],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, close_fds=True,
    ) as run:  # fmt: skip
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    assert run.returncode == 0, shown
    return shown.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize("command", ["predict", "model"])
def test_commands_obey_nothing_on_a_terminal(hostile, command):
    folder, _ = hostile
    words = {"predict": [folder / "model.fdgnn", folder / "new.jsonl", "--id", "id"]}
    shown = on_a_terminal(command, *words.get(command, [folder / "model.fdgnn"]))
    assert all(line.isprintable() for line in shown.splitlines()), shown
    assert "\\u001b[2J" in shown
    assert not any(line.startswith("score 1.0") for line in shown.splitlines())


def test_messages_are_one_line_without_control_characters(tmp_path):
    run = fdgnn("info", tmp_path / f"none{ESCAPE}.csv")
    assert "\x1b" not in run.stderr
    run = fdgnn("predict", tmp_path / f"none{ESCAPE}.fdgnn", tmp_path / "x.csv")
    assert_one_clear_line(run, "none\\u001b[2J")


def test_names_in_results_obey_no_terminal():
    found = examples.ensemble_of(
        dataset=f"MUTAG{ESCAPE}", base_models=["WL\x1b", "reservoir", "another reservoir"]
    )
    found = replace(found, protocol=replace(found.protocol, split="site\x1b"))
    shown = "\n".join(map(printable, evaluation_lines(found)))
    assert "MUTAG\\u001b" in shown
    assert "WL\\u001b" in shown
    assert "site\\u001b" in shown
    assert "\x1b" not in shown


def test_warnings_are_shown_as_text(capsys):
    say(f"warning {ESCAPE}")
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["datasets", "report", "__builtins__", "compare", "nonsense"])
def test_a_model_is_described_whatever_it_calls_itself(hostile, tmp_path, name):
    """The name is the file's: it must not name something of ours."""
    data = (hostile[0] / "model.fdgnn").read_bytes()
    path = tmp_path / "model.fdgnn"
    path.write_bytes(with_record(data, lambda record: record.update(model=name)))
    run = fdgnn("model", path)
    assert "Traceback" not in run.stderr
    assert run.returncode == 0
    assert name in run.stdout


# ---------------------------------------------------------------------- spreadsheets


@given(st.text(alphabet="'=+-@\t\r＝a5. e", max_size=8))
def test_the_guard_is_taken_back_exactly(text):
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize(
    "text", ["=1", "+a", "-a", "@SUM(1)", "\t=1", "\r=1", "＝1", "-1+1", "--1"]
)
def test_formulas_are_guarded(text):
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "-5", "+3.5e-2", "-.5", "C=O", "[Na+]", "'tis", "5-3"])
def test_numbers_and_other_texts_stay_as_they_are(text):
    assert guarded(text) == unguarded(text) == text


def test_predictions_are_guarded_and_read_back_as_they_were(hostile, tmp_path):
    folder, ids = hostile
    out = tmp_path / "out.csv"
    run = fdgnn("predict", folder / "model.fdgnn", folder / "new.jsonl", "--id", "id", "-o", out)
    assert run.returncode == 0, run.stderr
    with out.open(newline="") as file:
        cells = [row["id"] for row in csv.DictReader(file)][: len(ids)]
    assert cells[0] == f"'{FORMULA}"
    assert (cells[3], cells[4], cells[7]) == ("-5", "'@x", "''=quoted")
    # Our own reader takes the guard back.
    with out.open(newline="") as file:
        predictions = [row["prediction"] for row in csv.DictReader(file)][: len(ids)]
    assert {unguarded(p) for p in predictions} <= {FORMULA, f"b{ESCAPE}\nscore 1.0"}
    assert [unguarded(cell) for cell in cells] == [*ids[:6], "?", *ids[7:]]


def test_columns_are_read_back_by_read_graphs(tmp_path):
    path = tmp_path / "g.csv"
    path.write_text("edge_index;'=id;y\n[[0],[1]];'=1+1;1\n[[0],[1]];'tis;2\n")
    table = read_graphs(path, target="y", id_column="=id")
    assert table.ids == ("=1+1", "'tis")


def test_the_guard_can_be_left_out(hostile, tmp_path):
    folder, _ = hostile
    out = tmp_path / "out.csv"
    words = [folder / "model.fdgnn", folder / "new.jsonl", "--id", "id", "-o", out]
    assert fdgnn("predict", *words, "--no-formula-guard").returncode == 0
    with out.open(newline="") as file:
        assert next(csv.DictReader(file))["id"] == FORMULA


def test_halves_of_characters_cost_no_file(tmp_path):
    """JSON can have them, and no file can: one such id ended the writing of all."""
    assert parse_json(r'{"a\ud800": ["b\udfff", 1, null]}') == {"a?": ["b?", 1, None]}
    assert parse_json('"\\ud83d\\ude00 \\ud800"') == "\N{GRINNING FACE} ?"
    path = tmp_path / "g.jsonl"
    path.write_text('{"edge_index": [[0], [1]], "node_feat": ["\\ud800", "C"], "y": "\\udfff"}\n')
    table = read_graphs(path, target="y")
    assert table.graphs.label_values.tolist() == ["?", "C"]
    assert table.y.tolist() == ["?"]


# ---------------------------------------------------------------------- little room


@given(st.text(), st.integers(1, 20))
def test_cut_texts_have_room_and_begin_as_the_text_does(text, most):
    shown = cut(text, most)
    assert len(shown) <= most
    assert shown == text or text.startswith(shown[:-1])

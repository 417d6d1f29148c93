"""The logger of the package: a few records, and nothing shown unless a program wants it."""

from __future__ import annotations

import subprocess
import sys
from unittest import TestCase

from fdgnn import FDGNNClassifier, load_model, read_graphs, save_model
from fdgnn.datasets import make_motif_graphs

SCRIPT = """
import logging
import fdgnn
logging.getLogger("fdgnn").warning("nobody has configured logging")
"""


def test_fits_and_files_are_logged(tmp_path):
    graphs, y = make_motif_graphs(20, random_state=0)
    path, table = tmp_path / "model.fdgnn", tmp_path / "table.jsonl"
    table.write_text('{"edge_index": [[0, 1], [1, 0]]}\n{"edge_index": 3}\n')
    with TestCase().assertLogs("fdgnn", "DEBUG") as found:
        save_model(FDGNNClassifier(random_state=0).fit(graphs, y), path)
        load_model(path)
        read_graphs(table)
    fitted, saved, loaded, read = found.output
    assert fitted.startswith("INFO:fdgnn:fitted ")
    assert "on 20 graphs in" in fitted
    assert saved == f"INFO:fdgnn:saved FDGNNClassifier to {path}"
    assert loaded == f"INFO:fdgnn:loaded FDGNNClassifier from {path}"
    assert read == f"DEBUG:fdgnn:read 2 rows of {table}, 1 rejected"


def test_nothing_is_shown_by_itself():
    run = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    assert run.stdout + run.stderr == ""

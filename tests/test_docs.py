"""What the documentation shows is run; what it names is there."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
from pathlib import Path

import pytest

import fdgnn
from pages import are_pinned, run_page

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BACE = Path(os.environ.get("FDGNN_DATA", ""), "chem", "BACE.csv")
(BACE_EXAMPLE,) = re.findall(r"^```console\n\$ fdgnn fit BACE.*?^```\n", README, re.M | re.S)


def test_the_readme_prints_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("grakel", reason="MUTAG comes with GraKeL: extra 'demo'")
    pytest.importorskip("rdkit", reason="SMILES need RDKit: extra 'chem'")
    monkeypatch.chdir(tmp_path)  # it writes a model file
    page = tmp_path / "README.md"
    page.write_text(README.replace(BACE_EXAMPLE, ""), encoding="utf-8")
    run_page(page)


@pytest.mark.skipif(not BACE.is_file(), reason="set FDGNN_DATA to a folder with chem/BACE.csv")
def test_the_readme_prints_the_scores_of_its_table(tmp_path, monkeypatch):
    pytest.importorskip("rdkit", reason="SMILES need RDKit: extra 'chem'")
    monkeypatch.chdir(tmp_path)
    shutil.copy(BACE, tmp_path)
    page = tmp_path / "README.md"
    page.write_text(BACE_EXAMPLE, encoding="utf-8")
    run_page(page, compare=are_pinned("rdkit", "scikit-learn"))


@pytest.mark.parametrize("name", ["GraphReservoir", "FDGNNClassifier", "FDGNNSearchCV"])
def test_documented_defaults_are_the_signatures(name):
    estimator = getattr(fdgnn, name)
    signature = inspect.signature(estimator).parameters
    lines = re.findall(r"^    (\w+) : .*default=(.+)$", estimator.__doc__, flags=re.MULTILINE)
    documented = dict(lines)
    assert documented
    for parameter, text in documented.items():
        assert ast.literal_eval(text) == signature[parameter].default, parameter

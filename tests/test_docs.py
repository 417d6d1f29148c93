"""What the documentation shows is run; what it names is there."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import fdgnn
from pages import run_page

ROOT = Path(__file__).parent.parent


def test_the_readme_prints_what_it_shows(tmp_path, monkeypatch):
    pytest.importorskip("grakel", reason="MUTAG comes with GraKeL: extra 'demo'")
    pytest.importorskip("rdkit", reason="SMILES need RDKit: extra 'chem'")
    monkeypatch.chdir(tmp_path)  # it writes a model file
    run_page(ROOT / "README.md")


@pytest.mark.parametrize("name", ["GraphReservoir", "FDGNNClassifier", "FDGNNSearchCV"])
def test_documented_defaults_are_the_signatures(name):
    estimator = getattr(fdgnn, name)
    signature = inspect.signature(estimator).parameters
    lines = re.findall(r"^    (\w+) : .*default=(.+)$", estimator.__doc__, flags=re.MULTILINE)
    documented = dict(lines)
    assert documented
    for parameter, text in documented.items():
        assert ast.literal_eval(text) == signature[parameter].default, parameter

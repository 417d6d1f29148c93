"""What the documentation shows is run; what it names is there."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from pathlib import Path

import pytest

import fdgnn
from fdgnn.exceptions import ConvergenceWarning

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("block", range(2))
def test_python_in_the_readme_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it writes a page
    pytest.importorskip("jinja2", reason="a page needs Jinja2: extra 'report'")
    pytest.importorskip("grakel", reason="MUTAG comes with GraKeL: extra 'demo'")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(code) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        exec(compile(code[block], "README.md", "exec"), {})


@pytest.mark.parametrize("name", ["GraphReservoir", "FDGNNClassifier", "FDGNNSearchCV"])
def test_documented_defaults_are_the_signatures(name):
    estimator = getattr(fdgnn, name)
    signature = inspect.signature(estimator).parameters
    lines = re.findall(r"^    (\w+) : .*default=(.+)$", estimator.__doc__, flags=re.MULTILINE)
    documented = dict(lines)
    assert documented
    for parameter, text in documented.items():
        assert ast.literal_eval(text) == signature[parameter].default, parameter

"""The pages of results are what their scripts make of the files beside them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from fdgnn.evaluation import paper
from fdgnn.evaluation.run import read_evaluations

RESULTS = Path(__file__).parent.parent / "results"


@pytest.mark.parametrize(
    ("script", "function", "written"),
    [
        ("make_tables.py", "page", "README.md"),
        ("make_tables.py", "readings", "readings.md"),
        ("make_comparison.py", "page", "compare/README.md"),
        ("beyond/make_tables.py", "page", "beyond/README.md"),
    ],
)
def test_pages_are_what_their_scripts_write(script, function, written):
    text = runpy.run_path(str(RESULTS / script))[function]()
    assert (RESULTS / written).read_text(encoding="utf-8") == text


def test_the_table_of_the_readme_is_what_its_script_writes():
    text = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    assert runpy.run_path(str(RESULTS / "beyond" / "make_tables.py"))["with_table"](text) == text


@pytest.mark.parametrize(
    "path", sorted((RESULTS / "beyond").glob("*-*-*.json")), ids=lambda p: p.stem
)
def test_results_beyond_are_of_what_their_names_say(path):
    name, model, seed = path.stem.rsplit("-", 2)
    (result,) = read_evaluations(path)
    assert (result.dataset, result.protocol.seed, len(result.folds)) == (name, int(seed), 10)
    assert result.model.name == model


@pytest.mark.parametrize("name", paper.DATASETS)
def test_results_are_of_the_dataset_and_of_one_reading(name):
    (result,) = read_evaluations(RESULTS / f"{name}.json")
    assert result.dataset == name
    assert result.n_graphs == paper.DATASETS[name].n_graphs
    n = result.protocol.n_initializations
    assert len(result.folds) == 10
    if n > 1:  # one initialization has one alpha, whatever the reading
        assert [len(fold.alphas) for fold in result.folds] == [n] * 10

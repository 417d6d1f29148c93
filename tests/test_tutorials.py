"""The tutorials are run, and print what they show."""

from __future__ import annotations

import csv
import json
import os
import shutil
from itertools import product
from pathlib import Path

import pytest

from pages import are_pinned, run_page

TUTORIALS = Path(__file__).parent.parent / "docs" / "tutorials"
HIV = Path(os.environ.get("FDGNN_DATA", ""), "chem", "HIV.csv")

HEADS = ("CC", "CCC", "CC(C)", "c1ccccc1", "C1CCCCC1", "c1ccncc1", "CCOC", "Clc1ccccc1", "CCCC")
MIDDLES = ("C", "CC", "O", "CO", "N", "CNC", "S", "CCC", "CSC", "COC")
TAILS = ("C", "CCC", "C1CCCC1", "c1ccc(C)cc1", "CCN(C)C", "CCO", "c1ccsc1", "C(C)(C)C", "CCl", "CF")


def test_no_tutorial_is_left_out():
    pages = {path.stem for path in TUTORIALS.glob("*.md")} - {"README"}
    assert pages == {"classify-molecules", "scikit-learn", "reproduce-the-paper", "deploy"}


@pytest.mark.parametrize("tutorial", ["scikit-learn", "reproduce-the-paper", "deploy"])
def test_tutorials_on_mutag_print_what_they_show(tutorial, tmp_path, monkeypatch):
    pytest.importorskip("grakel", reason="MUTAG comes with GraKeL: extra 'demo'")
    for library in ("networkx", "starlette", "uvicorn"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    run_page(TUTORIALS / f"{tutorial}.md")


@pytest.mark.skipif(not HIV.is_file(), reason="set FDGNN_DATA to a folder with chem/HIV.csv")
def test_the_molecule_tutorial_prints_what_it_shows(tmp_path, monkeypatch):
    _needs_chemistry()
    shutil.copy(HIV, tmp_path / "HIV.csv")
    monkeypatch.chdir(tmp_path)
    # Other versions choose other folds and descriptors: then the page has to run, no more.
    run_page(TUTORIALS / "classify-molecules.md", compare=are_pinned("rdkit", "scikit-learn"))


@pytest.mark.skipif(HIV.is_file(), reason="the page runs on the molecules that it names")
def test_the_molecule_tutorial_runs_on_made_up_molecules(tmp_path, monkeypatch):
    _needs_chemistry()
    with (tmp_path / "HIV.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["smiles", "target"])
        table.writerows([["C", "CI"]] * 1000 + _made_up(1000))
    monkeypatch.chdir(tmp_path)
    run_page(TUTORIALS / "classify-molecules.md", compare=False)


def test_the_service_takes_what_its_benchmark_measured():
    results = TUTORIALS.parent.parent / "results" / "service.json"
    found = json.loads(results.read_text(encoding="utf-8"))
    told = (TUTORIALS / "deploy.md").read_text(encoding="utf-8")
    del found["load"]
    for name, each in found.items():
        one, many = each["one molecule"], each["a hundred molecules"]
        columns = one["requests_per_second"], one["p50_ms"], one["p99_ms"], many["rows_per_second"]
        assert f"(`{name}`) | {' | '.join(f'{x:,.0f}' for x in columns)} |" in told
        if "memory_mb" in each:
            before, after = each["memory_mb"].values()
            assert after < 1.1 * before, name


def test_a_page_that_shows_something_else_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n3\n\n```\n")
    with pytest.raises(AssertionError, match=r"1 \+ 1"):
        run_page(page)
    page.write_text("```console\n$ echo two\nthree\n```\n")
    with pytest.raises(AssertionError, match="two"):
        run_page(page)


def _needs_chemistry():
    for library in ("rdkit", "matplotlib", "vl_convert"):
        pytest.importorskip(library)


def _made_up(n):
    """Molecules of three parts, in no order; about one in twenty is active."""
    found = ["".join(parts) for parts in product(HEADS, MIDDLES, TAILS)]
    found += [smiles + "C" for smiles in found]
    return [[found[i * 37 % len(found)], "CA" if i % 20 == 7 else "CI"] for i in range(n)]

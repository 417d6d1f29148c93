"""Messages about missing libraries: which packages to install, and no name that is not ours."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from commands import assert_one_clear_line, fdgnn
from fdgnn import extras
from fdgnn.datasets import make_motif_graphs
from fdgnn.exceptions import MissingDependencyError
from fdgnn.extras import install_advice, require
from fdgnn.html.playground import write
from tu_files import write_batch

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def tu_folder(tmp_path_factory):
    graphs, y = make_motif_graphs(60, random_state=0)
    return write_batch(tmp_path_factory.mktemp("data") / "MOTIFS", graphs, y)


def hide(monkeypatch, *libraries):
    for library in libraries:
        monkeypatch.setitem(sys.modules, library, None)


def test_packages_are_those_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        extra: tuple(Requirement(text).name for text in texts)
        for extra, texts in project["optional-dependencies"].items()
        if extra not in ("docs", "test", "dev")
    }
    assert declared == extras.PACKAGES


def test_advice_names_the_packages():
    assert (
        install_advice("tables") == "install the extra 'tables' with: pip install pyarrow openpyxl"
    )
    assert "pip install torch grakel" in install_advice("compare", "torch")
    with pytest.raises(MissingDependencyError, match=r"^Tables need no_such; install the extra"):
        require("no_such", "tables", "Tables")


def test_nothing_advises_a_name_that_is_not_registered():
    pages = [path for path in ROOT.glob("*.md") if path.name != "RELEASING.md"]  # after a release
    files = [*pages, *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/fdgnn/**/*.py")]
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            if "pip install" in line and "--no-index" not in line:
                after = line.split("pip install", 1)[1].lstrip(" '\"")
                assert not after.startswith("fdgnn"), f"{path.name}: {line}"


@pytest.mark.parametrize("hidden", [("jinja2", "markupsafe"), ("jinja2",)])
def test_a_playground_without_jinja_is_one_line(tu_folder, tmp_path, monkeypatch, hidden):
    hide(monkeypatch, *hidden)
    page = tmp_path / "play.html"
    run = fdgnn("playground", tu_folder, "-o", page)
    assert_one_clear_line(run, "jinja2", "extra 'report'")
    assert "fitting" not in run.stderr  # before the work
    with pytest.raises(MissingDependencyError, match="extra 'report'"):
        write(page, graphs=[], y=[])


@pytest.mark.parametrize("library", ["jinja2", "networkx", "vl_convert"])
def test_a_named_report_that_cannot_be_made_is_refused_before_the_work(
    tu_folder, tmp_path, monkeypatch, library
):
    hide(monkeypatch, library)
    page, model = tmp_path / "x.html", tmp_path / "m.fdgnn"
    run = fdgnn("demo", "--report", page, FDGNN_DATA=str(tmp_path))
    assert_one_clear_line(run, library, "extra 'report'")
    assert run.stdout == ""
    assert_one_clear_line(fdgnn("fit", tu_folder, "-o", model, "--report", page), library)
    assert not model.exists()


def test_a_named_report_that_fails_after_the_work_is_an_error(tmp_path, monkeypatch):
    """As on a disk that is full: the directory could be written before."""
    from fdgnn.cli import pages
    from fdgnn.context import Context
    from fdgnn.exceptions import StudyError

    full, page = OSError("no space left"), tmp_path / "x.html"
    with (
        pytest.raises(StudyError, match=r"^no HTML report: no space left"),
        pages.page_at(page, Context(), required=True),
    ):
        raise full
    with pages.page_at(page, Context()):
        raise full


def test_an_unwritable_report_is_refused(tmp_path):
    run = fdgnn("demo", "--report", tmp_path / "no" / "x.html", FDGNN_DATA=str(tmp_path))
    assert_one_clear_line(run, "there is no directory")


def test_many_graphs_get_a_hint_about_memory(tu_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.cli.fit.MANY_GRAPHS", 60)
    words = ["fit", tu_folder, "-o", tmp_path / "m.fdgnn", "--model", "wl", "--force"]
    run = fdgnn(*words)
    assert run.returncode == 0, run.stderr
    (hint,) = [line for line in run.stderr.splitlines() if line.startswith("hint:")]
    assert f"fdgnn fit {tu_folder} " in hint
    assert hint.endswith(f"-o {tmp_path / 'm.fdgnn'} --memory 1GB -j 2")
    assert "hint:" not in fdgnn(*words, "--quiet").stderr
    monkeypatch.setattr("fdgnn.cli.fit.MANY_GRAPHS", 61)
    assert "hint:" not in fdgnn(*words).stderr

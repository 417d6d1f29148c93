"""The examples run, without network and data, and make the README's pictures."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import fdgnn.datasets
from fdgnn.exceptions import DatasetNotFoundError

FOLDER = Path(__file__).parent.parent / "examples"
PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
EXAMPLES = ("embedding", "groups", "molecules")

pytest.importorskip("matplotlib")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("rdkit")


def run(name, folder, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(sys, "argv", [f"{name}.py", str(folder)])
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def check(path):
    with Image.open(path) as picture:
        assert picture.width > 800
        assert len(picture.convert("RGB").getcolors(1 << 20)) > 50  # something is drawn
    assert 5_000 < path.stat().st_size < 60_000


def test_no_example_is_left_out():
    scripts = {path.stem for path in FOLDER.glob("*.py")}
    assert scripts == {*EXAMPLES, "pictures"}
    screenshots = {"playground"}  # of a page, made in a browser
    assert {path.stem for path in PICTURES.iterdir()} == {*EXAMPLES, *screenshots}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_make_their_pictures(name, tmp_path, monkeypatch):
    run(name, tmp_path, monkeypatch)
    assert [path.name for path in tmp_path.iterdir()] == [f"{name}.png"]
    check(tmp_path / f"{name}.png")
    check(PICTURES / f"{name}.png")


@pytest.mark.parametrize("name", ["embedding", "molecules"])
def test_examples_do_without_mutag(name, tmp_path, monkeypatch):
    def load_tu(name, **options):
        assert options == {"download_if_missing": False}
        raise DatasetNotFoundError(name)

    monkeypatch.setattr(fdgnn.datasets, "load_tu", load_tu)
    run(name, tmp_path, monkeypatch)
    check(tmp_path / f"{name}.png")


def test_examples_run_as_scripts(tmp_path):
    script = str(FOLDER / "embedding.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [f"{tmp_path / 'embedding.png'} written"]

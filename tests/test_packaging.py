"""What is published agrees: versions, authors, licenses, and the list of make targets."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from fdgnn import __version__

HOME = Path(__file__).parent.parent


def text_of(name):
    return (HOME / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project():
    return tomllib.loads(text_of("pyproject.toml"))["project"]


def test_all_files_name_the_same_version_and_authors(project):
    ((author,),) = (each.values() for each in project["authors"])
    citation, codemeta = text_of("CITATION.cff"), json.loads(text_of("codemeta.json"))
    assert f"\nversion: {__version__}\n" in citation
    assert f"authors:\n  - name: {author}\n" in citation
    assert codemeta["version"] == __version__
    assert [each["name"] for each in codemeta["author"]] == [author]
    assert f"\n  version: {__version__}\n" in text_of("packaging/conda-forge/recipe.yaml")


def test_license_files_exist_and_are_documented(project):
    page = text_of("docs/reference/licenses.md")
    files = [path for pattern in project["license-files"] for path in HOME.glob(pattern)]
    assert {"LICENSE", "nanobind.txt", "robin-map.txt", "licenses.txt"} == {f.name for f in files}
    for path in files:
        assert f"`{path.relative_to(HOME).as_posix()}`" in page
        assert "copyright" in path.read_text(encoding="utf-8").lower()


def test_make_help_lists_all_targets():
    lines = text_of("Makefile")
    targets = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", lines, re.MULTILINE)[1].replace("\\\n", "")
    assert set(targets.split()) <= set(re.findall(r"^# make (\S+)", lines, re.MULTILINE))

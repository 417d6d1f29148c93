"""The site: whole, with every public name in it, and no link that leads nowhere."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import fdgnn

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REFERENCE = (DOCS / "reference" / "python.md").read_text(encoding="utf-8")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted(DOCS.rglob("*.md")),
    *sorted((ROOT / "results").rglob("README.md")),
]
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
MODULES = sorted(
    name for name in fdgnn.__all__ if inspect.ismodule(getattr(fdgnn, name)) and name != "paper"
)


def listed(module):
    """Names in the reference's lists below ``currentmodule:: module``."""
    found = set()
    for part in REFERENCE.split(".. currentmodule:: ")[1:]:
        name, text = part.split("\n", 1)
        if name == module:
            found |= set(re.findall(r"^   (\w+)$", text, flags=re.MULTILINE))
    return found


def test_every_public_name_is_in_the_reference():
    names = {name for name in fdgnn.__all__ if not inspect.ismodule(getattr(fdgnn, name))}
    assert listed("fdgnn") == names - {"__version__"}
    modules = [getattr(fdgnn, name).__name__ for name in MODULES]
    assert all(f"## {name}\n" in REFERENCE for name in [*modules, "fdgnn.evaluation.paper"])


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_a_module_is_in_the_reference(name):
    module = getattr(fdgnn, name)
    if f".. automodule:: {module.__name__}\n   :members:" in REFERENCE:
        return
    names = getattr(module, "__all__", None) or {
        found
        for found, thing in vars(module).items()
        if getattr(thing, "__module__", None) == module.__name__ and not found.startswith("_")
        if inspect.isfunction(thing) or inspect.isclass(thing)
    }
    assert listed(module.__name__) | set(fdgnn.__all__) >= set(names)


def anchors(page):
    """Anchors of the headings, as forges and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_anchors_lead_somewhere(page):
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}"


def test_every_page_can_be_reached():
    linked = {
        (page.parent / link.partition("#")[0]).resolve()
        for page in PAGES
        for link in LINK.findall(page.read_text(encoding="utf-8"))
    }
    hubs = [DOCS / folder / "README.md" for folder in ("tutorials", "how-to", "explanation")]
    front = {DOCS / "index.md", DOCS / "gallery.md", DOCS / "development.md", *hubs,
             DOCS / "reference" / "README.md"}  # fmt: skip
    assert {page for page in PAGES if DOCS in page.parents} - front <= linked


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    left_out = shutil.ignore_patterns("generated", "__pycache__", "*.so")
    for name in ("docs", "examples", "results", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    for page in ROOT.glob("*.md"):
        shutil.copy(page, tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy", "-c", "docs",
         ".", str(tmp_path / "out")],
        cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr

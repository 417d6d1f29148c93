"""The public surface, the rooms, and what importing costs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement

import fdgnn
from fdgnn import standins

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fdgnn"
SOURCES = sorted(SOURCE.rglob("*.py"))

# From the bottom up: a room imports only rooms before it.
ROOMS = [
    "_version", "caching", "exceptions", "limits", "standins", "texts", "arrays", "extras", "files",
    "places", "records",
    "progress", "context", "clusters", "scikit", "seeds", "parameters", "kernels", "threads",
    "workers",
    "graphs", "stability", "datasets", "reservoir",
    "expansion", "encoders", "readout", "committee", "networks", "novelty", "estimators",
    "explanations",
    "pictures", "selection", "model_files", "workflow", "scale", "experiments", "portrait", "plot",
    "pages", "report", "playground", "cli", "__main__", "__init__",
]  # fmt: skip


def pinned_versions():
    """Whether libraries whose own imports are tested have the versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    names = ("scikit-learn", "scipy", "typer", "joblib")
    return all(metadata.version(name) == pins[name] for name in names)


of_pinned_versions = pytest.mark.skipif(
    not pinned_versions(), reason="what libraries import is tested for those of constraints.txt"
)


def room_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What the tests look at in a file. A tree itself is large, and slow to walk."""

    rooms: list[str]  # that it imports at any depth, deferred imports included
    private: list[str]  # attributes of others that it asks for, with their lines
    classes: list[str]
    libraries: list[str]  # that it imports at its top


@cache
def facts_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Facts(
        rooms=[room for node in nodes for room in imported_rooms(node)],
        private=[f"line {n.lineno}: {ast.unparse(n)}" for n in nodes if is_anothers_private(n)],
        classes=[node.name for node in tree.body if isinstance(node, ast.ClassDef)],
        libraries=[name.split(".")[0] for node in tree.body for name in imported_names(node)],
    )


def imported_rooms(node):
    names = []
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fdgnn"):
        inside = node.module.removeprefix("fdgnn").strip(".").split(".")[0]
        names = [inside] if inside else [a.name for a in node.names]
    elif isinstance(node, ast.Import):
        names = [a.name.split(".")[1] for a in node.names if a.name.startswith("fdgnn.")]
    return [n for n in names if n != "__version__"]


# Underscored, and yet public: NamedTuple's methods, and Python's way to look at its own stack.
OPEN = {"_replace", "_asdict", "_fields", "_getframe", "_exit"}


def is_anothers_private(node):
    if not (isinstance(node, ast.Attribute) and node.attr.startswith("_")):
        return False
    own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
    parent = isinstance(node.value, ast.Call) and _called(node.value) == "super"
    return not (own or parent or node.attr.startswith("__") or node.attr in OPEN)


def _called(call):
    return call.func.id if isinstance(call.func, ast.Name) else None


def imported_names(node):
    if isinstance(node, ast.Import):
        return [a.name for a in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []


def test_imports_point_downward_only():
    for path in SOURCES:
        room = room_of(path)
        assert room in ROOMS, f"{room} has no place in the picture of rooms"
        others = set(facts_of(path).rooms) - {room} if room != "__init__" else set()
        upward = [other for other in others if ROOMS.index(other) > ROOMS.index(room)]
        assert upward == [], path


def test_the_page_of_the_architecture_names_every_room():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    hidden = {"_version", "__init__", "__main__"}
    named = {r for r in ROOMS if f"`{r}`" in text or f"`{r}/`" in text}
    assert set(ROOMS) - hidden == named
    assert {room_of(path) for path in SOURCES} == set(ROOMS)


def test_kernels_import_nothing_of_ours_but_errors():
    assert set(facts_of(SOURCE / "kernels.py").rooms) <= {"exceptions"}


def test_scikit_learn_is_imported_in_one_place():
    """Whoever imports it first at the top of a file imports its slow parts, too."""
    rivals = SOURCE / "experiments" / "rivals"  # which need all of it
    others = [path for path in SOURCES if rivals not in path.parents and path.name != "scikit.py"]
    assert [path for path in others if "sklearn" in facts_of(path).libraries] == []


def test_no_two_classes_have_one_name():
    homes = {}
    for path in SOURCES:
        for name in facts_of(path).classes:
            homes.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_nobody_calls_anothers_private_methods():
    """An object is known by its public names: a new encoder need not know who looks inside."""
    assert {str(path): facts_of(path).private for path in SOURCES if facts_of(path).private} == {}


def test_public_surface():
    assert fdgnn.__all__ == [
        "ColorCounts", "Encoder", "FDGNNClassifier", "FDGNNRegressor", "FDGNNSearchCV", "Graph",
        "GraphBatch", "GraphReservoir", "RandomExpansion", "__version__", "as_batch", "compare",
        "compile_kernels", "connected_parts", "datasets",
        "draw_explanation", "draw_molecule", "exceptions", "explain", "fit_batches", "iter_graphs",
        "limits",
        "load_model", "load_tu", "model_info", "molecule_groups", "paper", "playground", "plot",
        "read_graphs", "register_encoder", "report", "save_model", "stability", "substructures",
    ]  # fmt: skip
    for name in fdgnn.__all__:
        assert getattr(fdgnn, name) is not None
    assert dir(fdgnn) == fdgnn.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fdgnn.nonsense


def imported_by(*statements):
    """What is imported after each statement, in one process that runs them one after the other."""
    shown = "; print(*sys.modules)\n"
    script = f"import sys\n{shown.join(statements)}{shown}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in run.stdout.splitlines()]


# Each imports what those before it do not: what is there afterwards is what it needs, or less.
STEPS = {
    "the package": "import fdgnn",
    "the command": "import fdgnn.cli",
    "a model": "fdgnn.FDGNNClassifier; fdgnn.load_model; fdgnn.read_graphs",
    "commands": "import fdgnn.report, fdgnn.experiments.running, fdgnn.workflow.training",
    "everything": "from fdgnn import *; import fdgnn.experiments.study",
    "a score": "graphs, y = datasets.make_motif_graphs(20, random_state=0); "
    "FDGNNClassifier(n_units=5).fit(graphs, y).score(graphs, y); "
    "FDGNNRegressor(n_units=5).fit(graphs, y).score(graphs, y)",
}


@pytest.fixture(scope="module")
def imported():
    return dict(zip(STEPS, imported_by(*STEPS.values()), strict=True))


@of_pinned_versions
def test_importing_costs_nothing_that_is_not_used(imported):
    assert not imported["the package"] & {"numpy", "sklearn", "torch"}
    assert not imported["the command"] & {"numpy", "sklearn", "joblib"}
    assert not imported["commands"] & {
        "sklearn.model_selection", "sklearn.metrics", "scipy.stats", "scipy.optimize",
    }  # fmt: skip
    assert not imported["everything"] & {
        "torch", "networkx", "grakel", "distributed", "rdkit", "matplotlib", "altair", "jinja2",
        "fdgnn._kernels",
    }  # fmt: skip


SLOW = {
    "scipy.stats", "scipy.special", "numpy.f2py", "numpy.testing", "narwhals.stable.v2", "asyncio",
}  # fmt: skip


@of_pinned_versions
def test_models_take_scikit_learn_without_what_is_slow(imported):
    """These imports take longer than that of all the rest together, and no model needs them."""
    never = {"sklearn.model_selection", "sklearn.metrics", "scipy.optimize"}
    assert not imported["a score"] & (SLOW | never)


GIVEN = f"import fdgnn; {STEPS['a model']}"
FORKS = f"""
import os, sys
{GIVEN}
for statement in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        exec(statement)
        print(*sys.modules, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def imported_after_a_model(*statements):
    """What is imported after each statement, of which none knows what the others import."""
    words = [sys.executable, "-c", FORKS, *statements]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    return [set(line.split()) for line in run.stdout.splitlines()]


@of_pinned_versions
def test_stand_ins_are_gone_after_the_import():
    asked = (
        "import scipy, numpy; assert scipy.stats.norm.cdf(0) == 0.5; "
        "assert scipy.special.expit(0.0) == 0.5; assert numpy.f2py.run_main; "
        "assert numpy.testing.assert_equal; import asyncio; assert asyncio.run; "
        "import narwhals.stable.v2 as nw; assert nw.from_native"
    )
    of_its_own = (
        "import sklearn.utils.validation as v, sklearn.utils._array_api as a; "
        "assert v.nw.from_native; assert a.special.xlogy(1.0, 1.0) == 0; "
        "import joblib.memory as m; assert not m.asyncio.iscoroutine(1)"
    )
    from_outside, from_inside = imported_after_a_model(asked, of_its_own)
    assert from_outside >= SLOW
    assert from_inside >= {"scipy.special", "narwhals.stable.v2", "asyncio"}
    before = "import asyncio as a, scipy.special as p"
    same = "import asyncio, scipy; assert asyncio is a; assert scipy.special is p"
    (found,) = imported_by(f"{before}; {GIVEN}; {same}")
    assert found >= {"asyncio", "scipy.special"}


def test_folds_take_scikit_learns_splitters_without_its_searches():
    search = (
        "graphs, y = fdgnn.datasets.make_motif_graphs(30, random_state=0); "
        "small = fdgnn.FDGNNClassifier(n_units=5); "
        "fdgnn.FDGNNSearchCV(small, n_configurations=1, cv=2, outer_cv=2).fit(graphs, y)"
    )
    later = (
        "import pickle; from fdgnn.scikit import splitters; KFold = splitters().KFold; "
        "import sklearn.model_selection as theirs; assert theirs.KFold is KFold; "
        "assert theirs.check_cv(3, [0, 1]).n_splits == 3; "
        "assert pickle.loads(pickle.dumps(KFold(7))).n_splits == 7"
    )
    before = (
        "import sklearn.model_selection as theirs; from fdgnn.scikit import splitters; "
        "assert splitters().KFold is theirs.KFold"
    )
    searched, imported_later, _ = imported_after_a_model(search, later, before)
    assert "sklearn.model_selection._split" in searched
    assert not searched & {"sklearn.model_selection", "sklearn.metrics", "scipy.stats"}
    assert "sklearn.model_selection" in imported_later


def test_a_module_that_another_thread_is_importing_is_waited_for():
    race = (
        "import threading, time; from fdgnn.scikit import splitters; "
        "name = 'sklearn.model_selection._split'; "
        "other = threading.Thread(target=__import__, args=('sklearn.model_selection',)); "
        "other.start(); "
        "[time.sleep(2e-4) for _ in iter(lambda: name in sys.modules, True)]; "
        "assert splitters().check_cv; other.join()"
    )
    imported_after_a_model(race)


def test_a_package_without_the_module_that_was_asked_for_is_given_whole():
    assert standins.alone("json", "no_such_module") is json


def test_a_stand_in_that_is_gone_is_not_looked_for_again(monkeypatch):
    """Libraries that know it ask it often, and the list of all modules is long."""
    name = "xml.dom.pulldom"  # which nothing here uses
    monkeypatch.delitem(sys.modules, name, raising=False)
    with standins.without("xml", "xml.dom", name):
        known = sys.modules[name]
    removals = []
    monkeypatch.setattr(standins, "_remove_all", lambda: removals.append(name))
    assert known.START_ELEMENT == known.START_ELEMENT == "START_ELEMENT"
    assert removals == []


@of_pinned_versions
def test_help_imports_neither_rich_nor_pydantic():
    """They would take most of its time."""
    asked = "from fdgnn.cli import app; app(['--help'], standalone_mode=False)"
    *_, imported = imported_by(asked)
    assert not imported & {"rich", "pydantic", "numpy"}


def test_scikit_learn_comes_by_one_door():
    """A module that predictions import, and that imports scikit-learn itself, would undo that."""
    for path in SOURCES:
        if room_of(path) in {"scikit", "selection", "experiments", "workflow"}:
            continue
        assert "sklearn" not in facts_of(path).libraries, path.name


# ---------------------------------------------------------------------- the package


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_core_dependencies_are_the_agreed_ones(project):
    assert {Requirement(r).name for r in project["dependencies"]} == {
        "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "platformdirs",
        "pooch", "psutil", "typer", "rich", "msgspec", "safetensors",
    }  # fmt: skip


def test_bounds_are_lower_bounds(project):
    everything = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, everything):
        assert {s.operator for s in requirement.specifier} <= {">="}, str(requirement)


def test_constraints_pin_every_dependency_and_name_no_place(project):
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            requirement = Requirement(line)
            assert requirement.url is None
            assert [s.operator for s in requirement.specifier] == ["=="]
            pins[_normal(requirement.name)] = next(iter(requirement.specifier)).version
    everything = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    for requirement in map(Requirement, everything):
        if requirement.name != "fdgnn":
            assert requirement.specifier.contains(pins[_normal(requirement.name)])


@of_pinned_versions
def test_this_environment_is_the_constrained_one(project):
    """Everything that the core and the test tools need, by whatever way, is pinned."""
    from importlib.metadata import PackageNotFoundError, distribution

    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {_normal(line.split("==")[0]) for line in text.splitlines() if "==" in line}
    seen, waiting = set(), [("fdgnn", "dev")]
    while waiting:
        name, *extras = waiting.pop()
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:  # for another platform or Python
            continue
        for requirement in map(Requirement, requires):
            marker = requirement.marker
            wanted = marker is None or any(marker.evaluate({"extra": e}) for e in ["", *extras])
            step = (_normal(requirement.name), *sorted(requirement.extras))
            if wanted and step not in seen:
                seen.add(step)
                waiting.append(step)
    seen = {name for name, *_ in seen}
    assert seen - pinned - {"fdgnn"} == set()


def _normal(name):
    return name.lower().replace("_", "-").replace(".", "-")

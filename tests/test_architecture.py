"""The public surface, the packages and their imports, and what importing costs."""

from __future__ import annotations

import ast
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
from tu_files import write_batch

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "fdgnn"
SOURCES = sorted(SOURCE.rglob("*.py"))

# From the bottom up: a package imports only packages before it.
PACKAGES = [
    "_version", "exceptions", "limits", "texts", "arrays", "extras", "files",
    "records", "checkpoints", "context", "seeds", "parameters",
    "kernels", "threads",
    "workers", "schema",
    "graphs", "stability", "targets", "folds", "uncertainty", "metrics", "datasets",
    "tasks", "options",
    "reservoir", "expansion", "linear", "encoders", "fitting", "ensemble", "applicability",
    "neighbors",
    "estimators", "explanations", "selection", "evaluation", "model_files", "training",
    "scale", "html", "plot", "prediction", "service", "installation", "cli", "__main__", "__init__",
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


def package_of(path):
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


class Facts(NamedTuple):
    """What the tests look at in a file. A tree itself is large, and slow to walk."""

    packages: list[str]  # that it imports at any depth, deferred imports included
    private: list[str]  # attributes of others that it asks for, with their lines
    classes: list[str]
    libraries: list[str]  # that it imports at its top


@cache
def facts_of(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Facts(
        packages=[each for node in nodes for each in imported_packages(node)],
        private=[f"line {n.lineno}: {ast.unparse(n)}" for n in nodes if is_others_private(n)],
        classes=[node.name for node in tree.body if isinstance(node, ast.ClassDef)],
        libraries=[name.split(".")[0] for node in tree.body for name in imported_names(node)],
    )


def imported_packages(node):
    names = []
    if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fdgnn"):
        inside = node.module.removeprefix("fdgnn").strip(".").split(".")[0]
        names = [inside] if inside else [a.name for a in node.names]
    elif isinstance(node, ast.Import):
        names = [a.name.split(".")[1] for a in node.names if a.name.startswith("fdgnn.")]
    return [n for n in names if n != "__version__"]


# Underscored, and yet public: NamedTuple's methods, and Python's way to look at its own stack.
OPEN = {"_replace", "_asdict", "_fields", "_getframe", "_exit"}


def is_others_private(node):
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
        package = package_of(path)
        assert package in PACKAGES, f"{package} is missing in PACKAGES"
        others = set(facts_of(path).packages) - {package} if package != "__init__" else set()
        upward = [other for other in others if PACKAGES.index(other) > PACKAGES.index(package)]
        assert upward == [], path


def test_the_page_of_the_architecture_names_every_package():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    hidden = {"_version", "__init__", "__main__"}
    named = {each for each in PACKAGES if f"`{each}`" in text or f"`{each}/`" in text}
    assert set(PACKAGES) - hidden == named
    assert {package_of(path) for path in SOURCES} == set(PACKAGES)


def test_kernels_import_nothing_of_ours_but_errors():
    assert set(facts_of(SOURCE / "kernels.py").packages) <= {"exceptions"}


def test_no_two_classes_have_one_name():
    homes = {}
    for path in SOURCES:
        for name in facts_of(path).classes:
            homes.setdefault(name, []).append(str(path.relative_to(SOURCE)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


#: Packages that work inside of estimators, which have few public names: commands, searches, model
#: files and training out of core fit and build them piece by piece; explanations and HTML
#: pages look inside of fitted ones. Users never need these names.
INSIDE = {
    "estimators", "selection", "model_files", "scale", "evaluation", "prediction", "training",
    "explanations", "html", "plot", "cli",
    "workers",  # of the executor that it derives from, where Python 3.11 has a defect
}  # fmt: skip


def test_nobody_calls_others_private_methods():
    """An object is known by its public names: a new encoder need not know who looks inside."""
    outside = [path for path in SOURCES if package_of(path) not in INSIDE]
    assert {str(path): facts_of(path).private for path in outside if facts_of(path).private} == {}


def test_public_surface():
    assert fdgnn.__all__ == [
        "AutoGraphClassifier",
        "AutoGraphRegressor",
        "Encoder",
        "EncoderUnion",
        "FDGNNClassifier",
        "FDGNNRegressor",
        "FDGNNSearchCV",
        "Graph",
        "GraphBatch",
        "GraphClassifier",
        "GraphKernel",
        "GraphRegressor",
        "GraphReservoir",
        "KernelRidge",
        "MoleculeDescriptors",
        "PairCounts",
        "RandomExpansion",
        "Ridge",
        "WLCounts",
        "__version__",
        "as_batch",
        "compare",
        "compile_kernels",
        "connected_parts",
        "counterfactuals",
        "datasets",
        "draw_explanation",
        "draw_molecule",
        "exceptions",
        "explain",
        "fit_batches",
        "iter_graphs",
        "limits",
        "load_model",
        "load_tu",
        "model_info",
        "molecule_groups",
        "paper",
        "playground",
        "plot",
        "read_graphs",
        "register_encoder",
        "report",
        "save_model",
        "stability",
        "substructures",
    ]
    for name in fdgnn.__all__:
        assert getattr(fdgnn, name) is not None
    assert dir(fdgnn) == fdgnn.__all__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fdgnn.nonsense


# ---------------------------------------------------------------------- what is imported

COMMAND = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from fdgnn.cli import main
main()
"""


def imported_by(code, *words, cwd=None):
    """Return the modules imported at the end of a process."""
    run = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, cwd=cwd
    )
    assert run.returncode == 0, run.stderr
    return set(run.stderr.splitlines()[-1].split())


def imported_by_statement(statement):
    return imported_by(f"import sys; {statement}; print(*sys.modules, file=sys.stderr)")


OPTIONAL = {
    "torch", "networkx", "grakel", "distributed", "rdkit", "matplotlib", "vl_convert", "jinja2",
}  # fmt: skip
TRAINING_ONLY = {"sklearn.model_selection", "sklearn.metrics"}


@pytest.mark.parametrize(
    ("statement", "never"),
    [
        ("import fdgnn", {"numpy", "sklearn"}),
        ("import fdgnn.cli", {"numpy", "sklearn", "joblib"}),
        ("from fdgnn import *", {*OPTIONAL, *TRAINING_ONLY}),
    ],
)
def test_imports_are_lazy(statement, never):
    assert not imported_by_statement(statement) & never


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("imports")
    graphs, y = fdgnn.datasets.make_motif_graphs(16, random_state=0)
    write_batch(folder / "MOTIFS", graphs, y)
    model = fdgnn.FDGNNClassifier(n_units=5, random_state=0).fit(graphs, y)
    fdgnn.save_model(model, folder / "model.fdgnn")
    return folder


@pytest.mark.parametrize(
    ("words", "never"),
    [
        ("--help", {"numpy", "sklearn", "rich", "pydantic"}),
        ("predict --help", {"numpy", "sklearn", "rich"}),
        ("datasets info MOTIFS", {"sklearn", *OPTIONAL}),
        ("predict model.fdgnn MOTIFS -o predicted.csv", {*OPTIONAL, *TRAINING_ONLY}),
    ],
)
def test_commands_import_only_what_they_need(words, never, files):
    assert not imported_by(COMMAND, *words.split(), cwd=files) & never


def test_loading_a_model_imports_no_training(files):
    loaded = f"import fdgnn; fdgnn.load_model({str(files / 'model.fdgnn')!r})"
    assert not imported_by_statement(loaded) & TRAINING_ONLY


# ---------------------------------------------------------------------- the package


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_core_dependencies_are_the_agreed_ones(project):
    assert {Requirement(r).name for r in project["dependencies"]} == {
        "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "platformdirs",
        "pooch", "psutil", "typer", "rich", "msgspec", "safetensors",
    }  # fmt: skip


def everything_of(project):
    """Return requirements of the core, of extras, and of the dependency groups of `make test`."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    del groups["publish"]  # tools in an environment of their own, always the newest
    grouped = [each for group in groups.values() for each in group if isinstance(each, str)]
    extras = chain(*project["optional-dependencies"].values())
    return [*project["dependencies"], *extras, *grouped]


def test_bounds_are_lower_bounds(project):
    for requirement in map(Requirement, everything_of(project)):
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
    for requirement in map(Requirement, everything_of(project)):
        if requirement.name != "fdgnn":
            assert requirement.specifier.contains(pins[_normal(requirement.name)])


@of_pinned_versions
def test_this_environment_is_the_constrained_one(project):
    """Everything that the core and the test tools need, by whatever way, is pinned."""
    from importlib.metadata import PackageNotFoundError, distribution

    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    pinned = {_normal(line.split("==")[0]) for line in text.splitlines() if "==" in line}
    seen, waiting = set(), [(Requirement(each).name,) for each in everything_of(project)]
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


def test_all_pools_of_processes_are_made_in_one_place():
    makers = ("ProcessPoolExecutor(", "joblib.Parallel(", ".Pool(")
    found = {
        path.name
        for path in SOURCES
        if any(maker in path.read_text(encoding="utf-8") for maker in makers)
    }
    assert found == {"workers.py"}

"""Options and arguments that several commands share.

Options that belong together come as a group: a command takes one parameter whose type is a
dataclass, such as `DataOptions` or `FirstDataOptions`, and `expand` turns its fields into options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from fdgnn.datasets import GraphTable

Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 means all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of folds, configurations and weights.")]

Data = Annotated[
    str,
    typer.Argument(
        help="Graphs: a TU name, folder or zip; CSV, TSV, JSON lines, Parquet or Arrow, with "
        "SMILES or graph columns; .smi or .sdf; the same gzipped (.gz); a folder of "
        "GraphML; '-' for standard input."
    ),
]
ManyData = Annotated[
    list[str],
    typer.Argument(
        help="As DATA of other commands; with a directory as output, also several files, a "
        "pattern such as 'shards/*.parquet', a directory, or URLs that fsspec opens."
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file written by 'fdgnn fit'.")]
SomeTargets = Annotated[
    list[str] | None,
    typer.Option("--target", help="Column to predict; repeat it for several targets."),
]
TargetList = Annotated[
    str | None, typer.Option("--targets", help="Columns of several targets, with commas.")
]
Rejects = Annotated[
    Path | None, typer.Option(help="File for the list of bad rows; by default beside the output.")
]
FormulaGuard = Annotated[
    bool,
    typer.Option(help="Begin text in CSV that a spreadsheet would run as a formula with a quote."),
]
Format = Annotated[
    str | None, typer.Option("--format", help="Format of DATA, if it is not recognized: csv, ...")
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
Smiles = Annotated[
    str | None, typer.Option(help="Column with SMILES, if it is not found by its name.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad row.")]


Descriptors = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns with numbers or categories of whole graphs, for the model to use beside "
        "these; cells may be empty. Repeat it, or use commas."
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(help="The same for columns whose numbers are codes of categories."),
]


def names_in(given: list[str] | None) -> list[str]:
    """Give the names in an option that may be repeated, and may have commas."""
    return [name.strip() for one in given or () for name in one.split(",") if name.strip()]


def asked_targets(target: list[str] | None, targets: str | None) -> str | list[str] | None:
    """Give the name of the only target, or the names of several."""
    names = [*(target or ()), *names_in(None if targets is None else [targets])]
    return None if not names else names[0] if len(names) == 1 else names


class Vertex(StrEnum):
    """What vertices carry."""

    auto = "auto"
    labels = "labels"
    features = "features"
    none = "none"
    both = "both"


class Weighting(StrEnum):
    """How much errors on each class count."""

    none = "none"
    balanced = "balanced"


class HandleUnknown(StrEnum):
    """What is done about vertex labels that no training graph has."""

    ignore = "ignore"
    error = "error"


class EdgeLabels(StrEnum):
    """What becomes of labels on arcs; see docs/decisions/0020-edge-labels.md."""

    auto = "auto"
    ignore = "ignore"
    labels = "labels"
    weights = "weights"


class Atoms(StrEnum):
    """What the vertices of a molecule carry."""

    element = "element"
    typed = "typed"
    rich = "rich"


class ProtocolName(StrEnum):
    """The protocols of `fdgnn.evaluation.study`."""

    paper = "paper"
    quick = "quick"


class ModelName(StrEnum):
    """What is trained; see `fdgnn.ensemble`."""

    auto = "auto"
    paper = "paper"
    wl = "wl"
    union = "union"


def check_unused(model: ModelName, given: Mapping[str, object]) -> None:
    """Raise ValueError for options that only --model paper has, if another model is asked for."""
    for name, value in given.items():
        if model is not ModelName.paper and value is not None:
            raise ValueError(
                f"--{name} is for --model paper; --model {model.value} has no such choice"
            )


class TaskName(StrEnum):
    """What the target is."""

    classification = "classification"
    regression = "regression"


# ---------------------------------------------------------------------- how to read graphs


@dataclass(frozen=True)
class DataOptions:
    """Options of commands that read graphs for a model, which knows how to read them."""

    format: Format = None
    id_column: IdColumn = None
    smiles: Smiles = None
    strict: Strict = False

    def read(self, data: str, *, like: Any = None, **more: Any) -> GraphTable:
        """Read all graphs; see `fdgnn.read_graphs`."""
        from fdgnn.datasets import read_graphs

        return read_graphs(data, like=like, **self._arguments(), **more)

    def iterate(self, data: str, *, like: Any, **more: Any) -> Iterator[GraphTable]:
        """Read graphs chunk by chunk; see `fdgnn.iter_graphs`."""
        from fdgnn.datasets import iter_graphs

        return iter_graphs(data, like=like, **self._arguments(), **more)

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `fdgnn.read_graphs`."""
        return self._arguments()

    def _arguments(self) -> dict[str, Any]:
        return {
            "format": self.format,
            "id_column": self.id_column,
            "smiles_column": self.smiles,
            "strict": self.strict,
        }


@dataclass(frozen=True)
class FirstDataOptions(DataOptions):
    """Options of commands that read graphs and decide how to read them."""

    vertex: Annotated[
        Vertex, typer.Option(help="Read labels or features of vertices, both (TU), or neither.")
    ] = Vertex.auto
    vertex_attributes: Annotated[
        list[str] | None,
        typer.Option(help="Attributes of GraphML nodes; repeat it, or use commas."),
    ] = None
    edge_attribute: Annotated[str | None, typer.Option(help="Attribute of GraphML edges.")] = None
    edge_labels: Annotated[
        EdgeLabels,
        typer.Option(help="Read edge labels as such, as weights, or not."),
    ] = EdgeLabels.auto
    atoms: Annotated[
        Atoms | None,
        typer.Option(
            help="Label atoms by element, or by their type (element, neighbors, hydrogens, charge, "
            "aromatic, in a ring), or give them 21 features. By default the type; with --model "
            "paper of 'fit' the element."
        ),
    ] = None
    directed: Annotated[
        bool | None,
        typer.Option("--directed/--undirected", help="Read edges with or without direction."),
    ] = None
    standardize: Annotated[
        bool,
        typer.Option(
            "--standardize", help="Reduce molecules to their largest fragment, without charges."
        ),
    ] = False
    tautomers: Annotated[
        bool, typer.Option("--tautomers", help="The same, and take the canonical tautomer.")
    ] = False
    stereo: Annotated[
        bool, typer.Option("--stereo", help="Tell mirror images, and cis from trans.")
    ] = False

    @property
    def standardizing(self) -> str | None:
        """What is done to molecules before they are read, as `read_graphs` names it."""
        return "tautomer" if self.tautomers else "parent" if self.standardize else None

    def _arguments(self) -> dict[str, Any]:
        names = names_in(self.vertex_attributes)
        return super()._arguments() | {
            "vertex": self.vertex.value,
            "vertex_attributes": names or None,
            "edge_attribute": self.edge_attribute,
            "edge_labels": self.edge_labels.value,
            "atoms": None if self.atoms is None else self.atoms.value,
            "directed": self.directed,
            "standardize": self.standardizing,
            "stereo": self.stereo or None,
        }

    def for_model(self, model: ModelName) -> FirstDataOptions:
        """Label the atoms of molecules by element for the paper's model, unless told otherwise.

        It refuses new labels, of which a vocabulary of types has more. The other models take them.
        """
        if self.atoms is not None or model is not ModelName.paper:
            return self
        return replace(self, atoms=Atoms.element)


def expand(command: Callable[..., None]) -> Callable[..., None]:
    """Replace parameters that are groups of options by the options of the groups.

    The command runs with one thread of BLAS.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {n: h for n, h in hints.items() if is_dataclass(h)}
    parameters = [
        new
        for old in signature(command).parameters.values()
        for new in (
            _parameters(groups[old.name])
            if old.name in groups
            else [old.replace(annotation=hints[old.name], kind=Parameter.KEYWORD_ONLY)]
        )
    ]

    @wraps(command)
    def run(**given: Any) -> None:
        from fdgnn.threads import one_blas_thread  # imports NumPy and SciPy

        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        with one_blas_thread():
            command(**given)

    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(run)["__signature__"] = Signature(parameters)
    return run


def _parameters(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(f.name, Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(group)
    ]

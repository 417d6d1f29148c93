"""Options and arguments that several commands share.

Options that belong together come as a group: a command takes one parameter whose type is a
dataclass, such as `DataOptions` or `FirstDataOptions`, and `expand` turns its fields into options.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer
from typer.core import TyperCommand

from fdgnn.cli.app import say
from fdgnn.schema import Atoms, Censored, EdgeChoice, ModelName, VertexChoice
from fdgnn.texts import agreeing

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.folds import Split

Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes to use; -1 means all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only results and errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
Seed = Annotated[
    int, typer.Option("--seed", min=0, help="Seed of folds, configurations and weights.")
]

Data = Annotated[
    str,
    typer.Argument(
        help="Graphs: a TU name, folder or zip; CSV, TSV, JSON lines, Parquet, Arrow or .xlsx, "
        "with SMILES or graph columns; .smi or .sdf; the same gzipped (.gz); a folder of "
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
    str | None, typer.Option("--smiles", help="Column with SMILES, if not found by its name.")
]
Weighting = Literal["none", "balanced"]
ProtocolName = Literal["paper", "quick"]
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


def check_unused(model: ModelName, given: Mapping[str, object]) -> None:
    """Raise ValueError for options that only --model paper has, if another model is asked for."""
    for name, value in given.items():
        if model != "paper" and value is not None:
            raise ValueError(f"--{name} is for --model paper; --model {model} has no such choice")


# ---------------------------------------------------------------------- how to read graphs


@dataclass(frozen=True)
class DataOptions:
    """Options of commands that read graphs for a model, which knows how to read them."""

    format: Format = None
    id_column: IdColumn = None
    smiles_column: Smiles = None
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
            "smiles_column": self.smiles_column,
            "strict": self.strict,
        }


@dataclass(frozen=True)
class FirstDataOptions(DataOptions):
    """Options of commands that read graphs and decide how to read them."""

    vertex: Annotated[
        VertexChoice,
        typer.Option(help="Read labels or features of vertices, both (TU), or neither."),
    ] = "auto"
    vertex_attributes: Annotated[
        list[str] | None,
        typer.Option(help="Attributes of GraphML nodes; repeat it, or use commas."),
    ] = None
    edge_attribute: Annotated[str | None, typer.Option(help="Attribute of GraphML edges.")] = None
    edge_labels: Annotated[
        EdgeChoice,
        typer.Option(help="Read edge labels as such, as weights, or not."),
    ] = "auto"
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
    censored: Annotated[
        Censored,
        typer.Option(
            help="Numeric targets that are bounds, such as >1995: leave these rows out, take the "
            "bound as the value, or stop."
        ),
    ] = "drop"
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
            "vertex": self.vertex,
            "vertex_attributes": names or None,
            "edge_attribute": self.edge_attribute,
            "edge_labels": self.edge_labels,
            "atoms": self.atoms,
            "directed": self.directed,
            "censored": self.censored,
            "standardize": self.standardizing,
            "stereo": self.stereo or None,
        }

    def for_model(self, model: ModelName) -> FirstDataOptions:
        """Label the atoms of molecules by element for the paper's model, unless told otherwise.

        It refuses new labels, of which a vocabulary of types has more. The other models take them.
        """
        if self.atoms is not None or model != "paper":
            return self
        return replace(self, atoms="element")


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


# ---------------------------------------------------------------------- how rows are held out

OPTION = "--split"
SplitWords = Annotated[
    str,
    typer.Option(
        metavar="random|scaffold|group COLUMN|time COLUMN",
        help="How graphs are held out: at random; molecules of one scaffold together; rows "
        "with one value in a column together; or rows that are later than the others.",
    ),
]
ALONE, OF_A_COLUMN = ("random", "scaffold"), ("group", "time")


class SplittingCommand(TyperCommand):
    """A command whose ``--split`` takes a second word, where the first asks for a column."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Make one word of both, since options have a fixed number of words."""
        return super().parse_args(ctx, joined(args))


def joined(words: list[str]) -> list[str]:
    """Join "group" or "time" after ``--split`` with the column that follows."""
    found: list[str] = []
    for word in words:
        last = found[-1] if found else ""
        asks = last in OF_A_COLUMN and found[-2:-1] == [OPTION]
        asks |= last in tuple(f"{OPTION}={name}" for name in OF_A_COLUMN)
        if asks and not word.startswith("-"):
            found[-1] = f"{last} {word}"
        else:
            found.append(word)
    return found


@dataclass(frozen=True)
class AskedSplit:
    """What ``--split`` asks for."""

    name: str = "random"
    column: str | None = None

    @classmethod
    def of(cls, words: str) -> AskedSplit:
        """Read "random", "scaffold", "group COLUMN" or "time COLUMN", or raise ValueError."""
        name, _, column = words.partition(" ")
        if name not in (*ALONE, *OF_A_COLUMN):
            known = "random, scaffold, group COLUMN or time COLUMN"
            raise ValueError(f"{OPTION} {name!r}: expected {known}")
        if name in OF_A_COLUMN and not column:
            raise ValueError(f"{OPTION} {name} needs a column: {OPTION} {name} COLUMN")
        return cls(name, column or None)

    @property
    def columns(self) -> list[str]:
        """The columns that are to be read for it."""
        return [] if self.column is None else [self.column]

    def of_table(self, table: GraphTable | None, context: Context) -> Split:
        """Make the split of a table that was read with these columns."""
        from fdgnn.folds import SCAFFOLD, Split

        if self.name == "random":
            return Split()
        if table is None:
            raise ValueError(f"{OPTION} {self.name} is for tables, and this is a TU dataset")
        if self.name == "scaffold":
            if table.smiles is None:
                raise ValueError(f"{OPTION} scaffold is for molecules, and these graphs are none")
            from fdgnn.evaluation.molecules import murcko_scaffolds

            return Split("group", murcko_scaffolds(table.smiles, context.n_jobs), SCAFFOLD)
        import numpy as np

        from fdgnn.graphs.descriptors import is_missing

        assert self.column is not None
        values = np.array(table.columns[self.column], dtype=object)
        empty = [i for i, value in enumerate(values) if is_missing(value)]
        missing = len(empty)
        if self.name == "time":
            if missing:
                first = f"the first in row {table.start + int(table.rows[empty[0]])}"
                raise ValueError(
                    f"{OPTION} time: {missing} of {len(values)} graphs "
                    f"{agreeing(missing, 'has', 'have')} no value in {self.column!r}, {first}; "
                    f"fill {agreeing(missing, 'it', 'them')} in, or leave such rows out"
                )
            found = Split("time", values, self.column)
            try:
                found.order(len(values))
            except ValueError as error:
                raise ValueError(f"{OPTION} time {self.column}: {error}") from None
            return found
        if missing:
            say(
                f"{missing} of {len(values)} graphs {agreeing(missing, 'has', 'have')} no value in "
                f"{self.column!r}; {agreeing(missing, 'it is', 'they are')} one group, and held "
                "out together",
                context.quiet,
            )
        return Split("group", values, self.column)

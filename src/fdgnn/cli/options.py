"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from fdgnn.cli.app import OptionGroup, command_line, names_in, say
from fdgnn.options import TrainingOptions
from fdgnn.schema import ModelName, ReadOptions
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
        metavar="DATA",
        help="Graphs: a TU name, folder or zip; CSV, TSV, JSON lines, Parquet, Arrow or .xlsx, "
        "with SMILES or graph columns; .smi or .sdf; the same gzipped (.gz); a folder of "
        "GraphML; '-' for standard input.",
    ),
]
ManyData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="Graphs, as for fit; with a directory as output, also several files, a "
        "pattern such as 'shards/*.parquet', a directory, or URLs that fsspec opens.",
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file written by 'fdgnn fit'.")
]
SomeTargets = Annotated[
    list[str] | None,
    typer.Option("--target", help="Column to predict; repeat it for several targets."),
]
TargetList = Annotated[
    str | None, typer.Option("--targets", help="Columns of several targets, separated by commas.")
]
Rejects = Annotated[
    Path | None,
    typer.Option(help="File for the list of rejected rows.", show_default="next to the output"),
]
FormulaGuard = Annotated[
    bool,
    typer.Option(help="In CSV, put a quote before text that a spreadsheet would run as a formula."),
]
ProtocolName = Literal["paper", "quick"]
Cluster = Annotated[
    str | None, typer.Option(help="Address of a Dask scheduler, or 'local' to start one.")
]
Coverage = Annotated[
    float | None,
    typer.Option(
        help="Also predict conformal sets of classes, or intervals, with this coverage, for "
        "instance 0.9."
    ),
]
RunDirectory = Annotated[
    Path | None,
    typer.Option(help="Run directory; the same command resumes it.", show_default="runs/NAME"),
]
Like = Annotated[
    Path | None, typer.Option(help="A model file: read DATA as its training data was read.")
]
Precision = Annotated[int, typer.Option(min=1, max=17, help="Significant digits of numbers.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite output files that exist.")]


def check_unused(given: Mapping[str, object], model: ModelName, *others: ModelName) -> None:
    """Raise ValueError for options that are given, although only other models have them."""
    for name, value in given.items():
        if value is not None and model not in others:
            raise ValueError(
                f"`{name}` is for --model {' or '.join(others)}; --model {model} does not use it"
            )


# ---------------------------------------------------------------------- options of the library

_READING = "How to read graphs"
_FILE = ("format", "id_column", "smiles_column", "strict")
_GRAPHS = (
    "vertex", "vertex_attributes", "edge_attribute", "edge_labels", "atoms", "directed",
    "censored", "standardize", "stereo",
)  # fmt: skip


def library_options(kind: type, title: str, *names: str) -> OptionGroup:
    """Return options for fields of a class, by default for all."""
    return OptionGroup(kind, title, names or tuple(signature(kind).parameters))


#: Of commands that train on targets, and of those that only choose by a metric.
TrainingChoice = Annotated[
    TrainingOptions,
    library_options(
        TrainingOptions, "What to train", "task", "model", "scoring", "threshold", "class_weight",
        "transform", "handle_unknown", "molecule_descriptors", "search", "n_configurations",
        "search_on",
    ),
]  # fmt: skip
ScoringChoice = Annotated[
    TrainingOptions,
    library_options(
        TrainingOptions, "Targets and metrics", "task", "scoring", "threshold", "class_weight",
        "transform",
    ),
]  # fmt: skip
#: Of commands that read graphs for a model, which knows what they are made of.
DataOptions = Annotated[ReadOptions, library_options(ReadOptions, _READING, *_FILE)]
#: Of commands that decide how to read graphs.
FirstDataOptions = Annotated[ReadOptions, library_options(ReadOptions, _READING, *_FILE, *_GRAPHS)]
#: The same with columns that describe graphs.
FitDataOptions = Annotated[
    ReadOptions,
    library_options(ReadOptions, _READING, *_FILE, *_GRAPHS, "descriptors", "categories"),
]


def with_vertices_of(how: ReadOptions, model: ModelName) -> ReadOptions:
    """Return the reading options with the vertex data that a model needs, unless they are given.

    The paper's model labels atoms by element: it rejects new labels, of which a vocabulary of types
    has more. Of TU datasets with labels and attributes of vertices only the ensemble reads both.
    """
    if model == "paper" and how.atoms is None:
        how = msgspec.structs.replace(how, atoms="element")
    if model != "auto" and how.vertex == "auto":
        how = msgspec.structs.replace(how, vertex="either")
    return how


# ---------------------------------------------------------------------- how rows are held out

SplitWords = Annotated[
    str,
    typer.Option(
        metavar="random|scaffold|group COLUMN|time COLUMN",
        help="How graphs are held out: at random; by molecular scaffold; by group, all rows with "
        "the same value in a column; or by time, rows later than all training rows.",
    ),
]


@dataclass(frozen=True)
class SplitOption:
    """The words after ``--split``."""

    name: str = "random"
    column: str | None = None

    @classmethod
    def of(cls, words: str) -> SplitOption:
        """Read "random", "scaffold", "group COLUMN" or "time COLUMN", or raise ValueError."""
        name, _, column = words.partition(" ")
        if name not in ("random", "scaffold", "group", "time"):
            known = "random, scaffold, group COLUMN or time COLUMN"
            raise ValueError(f"--split {name!r}: expected {known}")
        if name in ("group", "time") and not column:
            raise ValueError(f"--split {name} needs a column: --split {name} COLUMN")
        return cls(name, column or None)

    @property
    def columns(self) -> list[str]:
        """The columns that are to be read for it."""
        return [] if self.column is None else [self.column]

    def of_table(self, table: GraphTable | None, context: Context) -> Split:
        """Return the split of a table that was read with these columns."""
        from fdgnn.folds import SCAFFOLD, Split

        if self.name == "random":
            return Split()
        if table is None:
            raise ValueError(f"--split {self.name} is for tables, and this is a TU dataset")
        if self.name == "scaffold":
            if table.smiles is None:
                raise ValueError("--split scaffold is for molecules, and these graphs are none")
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
                    f"--split time: {missing} of {len(values)} graphs "
                    f"{agreeing(missing, 'has', 'have')} no value in {self.column!r}, {first}; "
                    f"fill {agreeing(missing, 'it', 'them')} in, or leave such rows out"
                )
            found = Split("time", values, self.column)
            try:
                found.order(len(values))
            except ValueError as error:
                raise ValueError(f"--split time {self.column}: {error}") from None
            return found
        if missing:
            say(
                f"{missing} of {len(values)} graphs {agreeing(missing, 'has', 'have')} no value in "
                f"{self.column!r}; {agreeing(missing, 'it is', 'they are')} one group, and held "
                "out together",
                context.quiet,
            )
        return Split("group", values, self.column)


# ---------------------------------------------------------------------- training commands


@dataclass(frozen=True)
class TargetOptions:
    """Options of commands that train or evaluate models: the targets, and how rows are held out."""

    target: SomeTargets = None
    targets: TargetList = None
    split: SplitWords = "random"

    @property
    def names(self) -> str | list[str] | None:
        """The name of the only target, or the names of several."""
        listed = names_in(None if self.targets is None else [self.targets])
        names = [*(self.target or ()), *listed]
        return None if not names else names[0] if len(names) == 1 else names


@dataclass(frozen=True)
class RunOptions:
    """Options of commands that train or evaluate models: seed, processes, and what is printed."""

    random_state: Seed = 0
    n_jobs: Jobs = 1
    quiet: Quiet = False
    as_json: AsJson = False

    @property
    def context(self) -> Context:
        """The context of the library's functions."""
        from fdgnn.context import Context

        return Context(self.n_jobs, self.quiet, command_line())


TargetChoice = Annotated[TargetOptions, library_options(TargetOptions, "Options")]
RunChoice = Annotated[RunOptions, library_options(RunOptions, "Options")]

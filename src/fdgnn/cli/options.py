"""Options and arguments that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 takes all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but results and errors.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print results as JSON, for machines.")]
Seed = Annotated[int, typer.Option(min=0, help="Of folds, configurations and weights.")]

Data = Annotated[
    str,
    typer.Argument(
        help="Graphs: a TU name, folder or zip; CSV, TSV, JSON lines, Parquet or Arrow, with "
        "SMILES or graph columns; a folder of GraphML or GEXF; '-' for standard input."
    ),
]
Model = Annotated[Path, typer.Argument(help="A model file written by 'fdgnn fit'.")]
Format = Annotated[
    str | None, typer.Option("--format", help="Of DATA, if it is not recognized: csv, jsonl, ...")
]
Target = Annotated[str | None, typer.Option(help="Column to be predicted.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column that names the rows.")]
Smiles = Annotated[str | None, typer.Option(help="Column with SMILES, if not found by its name.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first row that is bad.")]
Rejects = Annotated[
    Path | None, typer.Option(help="Where to list bad rows; beside the output by default.")
]


class ArcLabels(StrEnum):
    """What becomes of labels on arcs; see docs/decisions/0020-arc-labels.md."""

    auto = "auto"
    ignore = "ignore"
    weights = "weights"
    vertices = "vertices"


class Atoms(StrEnum):
    """What the vertices of a molecule carry."""

    element = "element"
    rich = "rich"


class ProtocolName(StrEnum):
    """The protocols of `fdgnn.experiments.study`."""

    paper = "paper"
    quick = "quick"


class TaskName(StrEnum):
    """What the target is."""

    classification = "classification"
    regression = "regression"

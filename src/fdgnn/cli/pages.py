"""The page at the end of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import command_line, one_line, say

if TYPE_CHECKING:
    from fdgnn.datasets import GraphTable
    from fdgnn.experiments.study import Study

WantPage = Annotated[
    bool, typer.Option("--report/--no-report", help="Write a page about it into the directory.")
]
PageFile = Annotated[
    Path | None, typer.Option("--report", help="Write a page about it into this HTML file.")
]


def show_run(
    study: Study, result: dict[str, Any] | None, directory: Path, output: Path, quiet: bool
) -> None:
    """Portray what a run selected and write its page."""

    def write() -> None:
        from fdgnn.portrait import portrait_of_study, write_portrait
        from fdgnn.report import write_report

        if result is not None:
            portrait = portrait_of_study(study, result, command=command_line())
            write_portrait(directory / "portrait.json", portrait)
        write_report(directory, output)

    _tell_of_page(write, output, quiet)


def show_model(
    path: Path, model: Any, table: GraphTable, dataset: str, output: Path, quiet: bool
) -> None:
    """Write a page about a model file on the graphs it was trained on."""

    def write() -> None:
        from fdgnn.report import model_source, write_report

        portrait = portray(model, table, dataset, held_out=False, command=command_line())
        left_out = table.n_rows - portrait["data"]["n_graphs"]
        text = f"{left_out} of {table.n_rows} rows left out, as they cannot be used."
        write_report(model_source(path, portrait, [text] if left_out else []), output)

    _tell_of_page(write, output, quiet)


def _tell_of_page(write: Callable[[], None], output: Path, quiet: bool) -> None:
    """Write a page and tell where it is, or why there is none: the results are there already."""
    from fdgnn.exceptions import FDGNNError

    try:
        write()
    except (FDGNNError, OSError, ValueError) as error:
        say(f"no page of it: {one_line(error)}")
    else:
        say(f"a page of it: {output}", quiet)


def portray(
    model: Any, table: GraphTable, dataset: str, *, held_out: bool, command: str
) -> dict[str, Any]:
    """Portray a model on those graphs of a table that it can use."""
    from fdgnn.exceptions import GraphError
    from fdgnn.portrait import portrait_of_model
    from fdgnn.workflow.predicting import usable_graphs

    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be used; {table.rejects[0]}")
    usable, reasons = usable_graphs(model, table.graphs, table.smiles is not None)
    if len(usable) == 0:
        raise GraphError(f"the model can use none of the graphs; {next(iter(reasons.values()))}")
    return portrait_of_model(
        model,
        table.graphs[usable],
        None if table.y is None else table.y[usable],
        dataset=dataset,
        held_out=held_out,
        ids=[table.ids[row] for row in table.rows[usable]],
        smiles=None if table.smiles is None else [table.smiles[g] for g in usable],
        command=command,
    )


def dataset_of(data: str) -> str:
    """What to call graphs that were given by name or path."""
    if data == "-":
        return "standard input"
    return Path(data).stem if Path(data).exists() else data

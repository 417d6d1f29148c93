"""The page at the end of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import one_line, say

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.evaluation.models import CommitteeStudy
    from fdgnn.evaluation.records import RunResult
    from fdgnn.evaluation.study import Study
    from fdgnn.html.model_data.records import Portrait
    from fdgnn.html.report import Subject

PORTRAYED = 6  # of several targets; each has figures of its own

WantPage = Annotated[
    bool, typer.Option("--report/--no-report", help="Write a report page into the directory.")
]
PageFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report page into this HTML file.")
]


def check_page(output: Path) -> None:
    """Raise an error before the work if the report that `--report FILE` names cannot be written."""
    from fdgnn.html.report import check_report

    check_report(output)


def show_run(
    study: Study, result: RunResult | None, directory: Path, output: Path, context: Context,
    *, required: bool = False,
) -> None:  # fmt: skip
    """Portray what a run selected and write its page.

    A page that is `required`, because the user named its file, is an error if it cannot be made;
    otherwise a line says so.
    """

    def write() -> None:
        from fdgnn.html.model_data.making import portrait_of_study
        from fdgnn.html.model_data.records import write_portrait
        from fdgnn.html.report import write_report

        if result is not None:
            portrait = portrait_of_study(study, result, command=context.command)
            write_portrait(directory / "portrait.json", portrait)
        write_report(directory, output)

    _tell_of_page(write, output, context, required=required)


def show_committee(study: CommitteeStudy, directory: Path, context: Context) -> None:
    """Portray an evaluated committee and write the page into its directory.

    Of a committee that predicts a number there is none, and a line says so.
    """
    if not study.classify:
        from fdgnn.evaluation.committee_files import NO_PAGE

        say(f"no report page: {NO_PAGE}", context.quiet)
        return
    output = directory / "report.html"

    def write() -> None:
        from fdgnn.html.model_data.making import portrait_of_committee
        from fdgnn.html.model_data.records import write_portrait
        from fdgnn.html.report import write_report

        portrait = portrait_of_committee(study, directory, command=context.command)
        write_portrait(directory / "portrait.json", portrait)
        write_report(directory, output)

    _tell_of_page(write, output, context)


def show_model(
    path: Path, model: Any, table: GraphTable, dataset: str, output: Path, context: Context
) -> None:
    """Write a page about a model file on the graphs it was trained on."""

    def write() -> None:
        from fdgnn.html.report import write_report

        write_report(model_subjects(path, model, table, dataset, context), output)

    _tell_of_page(write, output, context, required=True)


def _tell_of_page(
    write: Callable[[], None], output: Path, context: Context, *, required: bool = False
) -> None:
    """Write a page and say where it is.

    A failure is only reported, since the results are there, unless the page is `required`.
    """
    from fdgnn.exceptions import FDGNNError, StudyError

    try:
        write()
    except (FDGNNError, OSError, ValueError) as error:
        if required:
            raise StudyError(f"no report page: {one_line(error)}") from error
        say(f"no report page: {one_line(error)}")
    else:
        say(f"report page: {output}", context.quiet)


def model_subjects(
    path: Path, model: Any, table: GraphTable, dataset: str, context: Context,
    *, held_out: bool = False,
) -> list[Subject]:  # fmt: skip
    """Portray a model file on the graphs of a table: each of its targets that the table has."""
    from fdgnn.html.report import model_subject

    several = len(model.targets_) > 1
    known = [each.name for each in model.targets_] if several else []
    names = list(table.targets) or known
    left_out = names[PORTRAYED:]
    if left_out:
        say(
            f"the page shows {PORTRAYED} of {len(names)} targets, and scores of all; to see "
            f"others: fdgnn report with --target {left_out[0]}",
            context.quiet,
        )
    subjects = []
    for name in names[:PORTRAYED] if several else [None]:
        one = model if name is None else model.for_target(name)
        own = table.of_target(name) if name is not None and table.targets else table
        portrait = portray(one, own, dataset, held_out=held_out, command=context.command)
        told = rows_left_out(own, portrait)
        subjects.append(model_subject(path, portrait, [told] if told else [], name))
    return subjects


def portray(
    model: Any, table: GraphTable, dataset: str, *, held_out: bool, command: str | None
) -> Portrait:
    """Portray a model on those graphs of a table that it can take."""
    import numpy as np

    from fdgnn.exceptions import GraphError
    from fdgnn.html.model_data.making import portrait_of_model

    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be used; {table.rejects[0]}")
    reasons = model.usable(table.graphs).faults
    usable = np.setdiff1d(np.arange(len(table.graphs)), list(reasons))
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


def rows_left_out(table: GraphTable, portrait: Portrait) -> str:
    """A sentence about rows that are not in the portrait, or nothing."""
    n = table.n_rows - portrait.data.n_graphs
    why = "because they cannot be used or have no known answer"
    return f"{n} of {table.n_rows} rows left out, {why}." if n else ""


def dataset_of(data: str) -> str:
    """The name of graphs that were given by name or path."""
    if data == "-":
        return "standard input"
    return Path(data).stem if Path(data).exists() else data

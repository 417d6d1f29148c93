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
    from fdgnn.html.report_data import ReportData

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
    """Compute the report data of a run and write its report.

    A report that is `required`, because the user named its file, is an error if it cannot be made;
    otherwise a line says so.
    """

    def write() -> None:
        from fdgnn.html.old_runs import data_of_study
        from fdgnn.html.report import write_report
        from fdgnn.html.report_data import write_report_data

        if result is not None:
            data = data_of_study(study, result, command=context.command)
            write_report_data(directory / "report.json", [data])
        write_report(directory, output)

    _report_page(write, output, context, required=required)


def show_committee(study: CommitteeStudy, directory: Path, context: Context) -> None:
    """Compute the report data of an evaluated ensemble and write its report.

    For regression there is none, and a line says so.
    """
    if not study.classify:
        from fdgnn.evaluation.committee_files import NO_PAGE

        say(f"no report page: {NO_PAGE}", context.quiet)
        return
    output = directory / "report.html"

    def write() -> None:
        from fdgnn.html.old_runs import data_of_ensemble
        from fdgnn.html.report import write_report
        from fdgnn.html.report_data import write_report_data

        data = data_of_ensemble(study, directory, command=context.command)
        write_report_data(directory / "report.json", [data])
        write_report(directory, output)

    _report_page(write, output, context)


def show_model(
    path: Path, model: Any, table: GraphTable, dataset: str, output: Path, context: Context
) -> None:
    """Write a report on a model file and the graphs it was trained on."""

    def write() -> None:
        from fdgnn.html.report import model_subjects, write_report

        write_report(model_subjects(path, model_data(model, table, dataset, context)), output)

    _report_page(write, output, context, required=True)


def _report_page(
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


def model_data(
    model: Any, table: GraphTable, dataset: str, context: Context, *, unseen: bool = False
) -> list[ReportData]:
    """Compute the report data of a model on the graphs of a table, of each target they have."""
    from fdgnn.html.report_data import TARGETS

    several = len(model.targets_) > 1
    known = [each.name for each in model.targets_] if several else []
    names = list(table.targets) or known
    if names[TARGETS:]:
        say(
            f"the page shows {TARGETS} of {len(names)} targets, and scores of all; to see "
            f"others: fdgnn report with --target {names[TARGETS]}",
            context.quiet,
        )
    if not several:
        return [_target_data(model, table, dataset, "", context, unseen=unseen)]
    return [
        _target_data(
            model.for_target(name),
            table.of_target(name) if table.targets else table,
            dataset,
            name,
            context,
            unseen=unseen,
        )
        for name in names[:TARGETS]
    ]


def _target_data(
    model: Any, table: GraphTable, dataset: str, target: str, context: Context, *, unseen: bool
) -> ReportData:
    """Compute the report data of a model on those graphs of a table that it can take."""
    import numpy as np

    from fdgnn.exceptions import GraphError
    from fdgnn.html.collect import report_data

    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be used; {table.rejects[0]}")
    reasons = model.valid_graphs(table.graphs).errors
    valid = np.setdiff1d(np.arange(len(table.graphs)), list(reasons))
    if len(valid) == 0:
        raise GraphError(f"the model can use none of the graphs; {next(iter(reasons.values()))}")
    left_out = table.n_rows - len(valid)
    note = (
        f"{left_out} of {table.n_rows} rows left out, because they cannot be used or have no "
        "known target."
    )
    return report_data(
        model,
        table.graphs[valid],
        None if table.y is None else table.y[valid],
        dataset=dataset,
        target=target,
        unseen=unseen,
        ids=[table.ids[row] for row in table.rows[valid]],
        smiles=None if table.smiles is None else [table.smiles[g] for g in valid],
        command=context.command,
        notes=[note] if left_out else [],
    )


def dataset_of(data: str) -> str:
    """The name of graphs that were given by name or path."""
    if data == "-":
        return "standard input"
    return Path(data).stem if Path(data).exists() else data

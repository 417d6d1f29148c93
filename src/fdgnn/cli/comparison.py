"""``fdgnn compare``: FDGNN beside its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fdgnn.cli.app import app, command_line, say, show
from fdgnn.cli.evaluation import dataset_name
from fdgnn.cli.options import AsJson, Jobs, ProtocolName, Quiet, Seed
from fdgnn.cli.pages import WantPage, show_run

if TYPE_CHECKING:
    from fdgnn.experiments.records import ComparisonRow


@app.command(epilog="Example: fdgnn compare MUTAG --with wl,gin --time-limit 300")
def compare(
    name_or_path: Annotated[str, typer.Argument(help="A dataset's name, or a TU folder or zip.")],
    rivals: Annotated[
        str,
        typer.Option(
            "--with",
            help="Some of fdgnn-auto,fdgnn-colors,fdgnn-both,wl,wl-oa,pk,gk,rw,gin,dgcnn,gnn.",
        ),
    ] = "fdgnn-auto,wl",
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory, shared with 'evaluate'; by default runs/NAME."),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="How thoroughly FDGNN's own parameters are searched.")
    ] = ProtocolName.quick,
    configurations: Annotated[
        int | None, typer.Option(min=1, help="Points of each rival's grid to try; by default all.")
    ] = None,
    inner_folds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Inner folds to validate on; by default all for kernels, 1 for networks."
        ),
    ] = None,
    choose_epochs: Annotated[
        bool,
        typer.Option(
            "--choose-epochs/--all-epochs",
            help="Choose the epochs of networks, or train for all published ones.",
        ),
    ] = True,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds per contestant.")] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=1, help="Megabytes per contestant.")] = 4000.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare accuracy, time, memory and size with other systems, on the same folds; resumable."""
    from fdgnn.context import Context
    from fdgnn.datasets import load_tu
    from fdgnn.experiments.comparison import Limits, Search, compare_study
    from fdgnn.experiments.comparison.runner import check_models
    from fdgnn.experiments.running import finished_result
    from fdgnn.experiments.study import PROTOCOLS, plan

    named = [name.strip().lower() for name in rivals.split(",") if name.strip()]
    if not named:
        raise ValueError("--with is empty: name at least one system, or leave it out")
    models = check_models(named)
    graphs, y = load_tu(name_or_path)
    name = dataset_name(name_or_path)
    directory = out or Path("runs") / name
    study = plan(name, graphs, y, PROTOCOLS[protocol.value], seed=seed)
    context = Context(jobs, quiet, command_line())
    rows = compare_study(
        study,
        directory,
        models,
        context,
        search=Search(
            n_configurations=configurations, inner_folds=inner_folds, choose_epochs=choose_epochs
        ),
        limits=Limits(seconds=time_limit, megabytes=memory_limit),
    )
    _print_rows(rows, as_json)
    say(f"written to {directory / 'compare.json'}", quiet)
    if page:
        result = finished_result(study, directory)
        show_run(study, result, directory, directory / "report.html", context)
    if any(row.status == "failed" for row in rows):
        raise typer.Exit(1)


def _print_rows(rows: Sequence[ComparisonRow], as_json: bool) -> None:
    if as_json:
        from fdgnn.records import encode

        show(encode(rows).decode())
        return
    from rich.console import Console

    from fdgnn.cli.tables import comparison_table, unfinished_lines

    table = comparison_table(rows)
    table.columns[0].no_wrap = True  # a name is what one gives to --with
    table.collapse_padding = True
    Console().print(table)
    typer.echo("'slower' is training time over FDGNN's; compare.json names who published what.")
    for line in unfinished_lines(rows):
        show(line)

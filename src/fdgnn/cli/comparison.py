"""``fdgnn compare``: FDGNN beside its rivals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fdgnn.cli.app import app, command_line, say
from fdgnn.cli.evaluation import dataset_name
from fdgnn.cli.options import AsJson, Jobs, ProtocolName, Quiet, Seed
from fdgnn.cli.pages import WantPage, show_run


@app.command(epilog="Example: fdgnn compare MUTAG --with wl,gin --time-limit 300")
def compare(
    name_or_path: Annotated[str, typer.Argument(help="A dataset's name, or a TU folder or zip.")],
    rivals: Annotated[
        str, typer.Option("--with", help="Of wl, pk, gk, rw, gin, dgcnn, gnn, with commas.")
    ] = "wl",
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory, also of 'evaluate'; by default runs/NAME."),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="How thoroughly FDGNN's own parameters are searched.")
    ] = ProtocolName.quick,
    configurations: Annotated[
        int | None, typer.Option(min=1, help="Points of each rival's published grid; all of it.")
    ] = None,
    inner_folds: Annotated[
        int | None,
        typer.Option(min=1, help="Of the ten, to validate on; all for kernels, 1 for networks."),
    ] = None,
    choose_epochs: Annotated[
        bool,
        typer.Option(
            "--choose-epochs/--all-epochs", help="Of networks, or train for all published ones."
        ),
    ] = True,
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds for each, in all.")] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=1, help="Megabytes for each.")] = 4000.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Accuracy, time, memory and size beside other systems, on the same folds; resumable."""
    from fdgnn.datasets import load_tu
    from fdgnn.experiments.comparison import Limits, Search, compare_study
    from fdgnn.experiments.comparison.runner import check_models
    from fdgnn.experiments.study import PROTOCOLS, finished_result, plan

    models = check_models(name.strip().lower() for name in rivals.split(",") if name.strip())
    graphs, y = load_tu(name_or_path)
    name = dataset_name(name_or_path)
    directory = out or Path("runs") / name
    study = plan(name, graphs, y, PROTOCOLS[protocol.value], seed=seed)
    rows = compare_study(
        study,
        directory,
        models,
        search=Search(configurations, inner_folds, choose_epochs),
        limits=Limits(time_limit, memory_limit),
        n_jobs=jobs,
        quiet=quiet,
        command=command_line(),
    )
    _print_rows(rows, as_json)
    say(f"written to {directory / 'compare.json'}", quiet)
    if page:
        show_run(
            study, finished_result(study, directory), directory, directory / "report.html", quiet
        )
    if any(row["status"] == "failed" for row in rows):
        raise typer.Exit(1)


def _print_rows(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(rows))
        return
    from rich.console import Console

    from fdgnn.cli.tables import comparison_table, unfinished_lines

    Console().print(comparison_table(rows))
    typer.echo("slower: beside FDGNN, to train. Published: by whom, see 'reference' in the rows.")
    for line in unfinished_lines(rows):
        typer.echo(line)

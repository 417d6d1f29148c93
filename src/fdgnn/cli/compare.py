"""``fdgnn compare``: FDGNN beside its rivals."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fdgnn.cli.app import command, command_line, resumes_from, say, show
from fdgnn.cli.evaluate import read_labeled
from fdgnn.cli.options import (
    AsJson,
    Data,
    FirstDataOptions,
    Jobs,
    ProtocolName,
    Quiet,
    Seed,
    SomeTargets,
    Weighting,
)
from fdgnn.cli.pages import WantPage, show_run

if TYPE_CHECKING:
    from fdgnn.evaluation.records import ComparisonRow


@command("fdgnn compare molecules.csv --target active --time-limit 300")
def compare(
    data: Data,
    how: FirstDataOptions,
    target: SomeTargets = None,
    rivals: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Some of fdgnn-auto,fdgnn-wl,fdgnn-union,ecfp-lr,ecfp-rf,wl,wl-oa,pk,gk,rw,gin,"
            "dgcnn,gnn. By default fdgnn-auto,wl; for molecules fdgnn-auto,ecfp-lr,ecfp-rf.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory, shared with 'evaluate'; by default runs/NAME."),
    ] = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="How thoroughly FDGNN's own parameters are searched.")
    ] = "quick",
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
    scoring: Annotated[
        str | None,
        typer.Option(
            help="What fdgnn-auto, fdgnn-wl, fdgnn-union, ecfp-lr and ecfp-rf choose by: "
            "accuracy, balanced_accuracy, roc_auc, average_precision, f1 or log_loss. The others "
            "choose by accuracy, as published. ROC AUC is shown beside accuracy either way."
        ),
    ] = None,
    class_weight: Annotated[
        Weighting,
        typer.Option(help="balanced: in training of these, errors on a rare class count more."),
    ] = "none",
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
    from fdgnn.evaluation.comparison import Limits, Search, compare_study
    from fdgnn.evaluation.comparison.runner import check_models, default_models
    from fdgnn.evaluation.running import finished_result
    from fdgnn.evaluation.study import PROTOCOLS, plan

    search = Search(
        n_configurations=configurations, inner_folds=inner_folds, choose_epochs=choose_epochs,
        scoring=scoring, class_weight=None if class_weight == "none" else "balanced",
    )  # fmt: skip
    named = None if rivals is None else _named(rivals)
    if named is not None:  # before the graphs are read, which may take long
        check_models(named, molecules=True)
    context = Context(jobs, quiet, command_line())
    found = read_labeled(data, target, how, context, command="compare")
    if found.task != "classification":
        raise ValueError(
            "compare is for classes, but the target is a number, which fit and evaluate take"
        )
    models = named or default_models(found.smiles is not None)
    directory = out or Path("runs") / found.name
    resumes_from(directory)
    study = plan(
        found.name, found.graphs, found.y, PROTOCOLS[protocol], seed=seed,
        smiles=found.smiles,
    )  # fmt: skip
    rows = compare_study(
        study,
        directory,
        models,
        context,
        search=search,
        limits=Limits(seconds=time_limit, megabytes=memory_limit),
    )
    _print_rows(rows, as_json)
    say(f"written to {directory / 'compare.json'}", quiet)
    if page:
        result = finished_result(study, directory)
        show_run(study, result, directory, directory / "report.html", context)
    if any(row.status == "failed" for row in rows):
        raise typer.Exit(1)


def _named(rivals: str) -> list[str]:
    names = [name.strip().lower() for name in rivals.split(",") if name.strip()]
    if not names:
        raise ValueError("--with is empty: name at least one system, or leave it out")
    return names


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

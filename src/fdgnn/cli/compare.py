"""``fdgnn compare``: FDGNN beside other methods."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fdgnn.cli.app import command, command_line, resumes_from, say, show
from fdgnn.cli.evaluate import FILE, read_labeled
from fdgnn.cli.options import (
    AsJson,
    AskedSplit,
    Data,
    FirstDataOptions,
    Jobs,
    ProtocolName,
    Quiet,
    RunDirectory,
    Seed,
    SomeTargets,
    SplitWords,
    asked_targets,
    library_options,
)
from fdgnn.cli.pages import WantPage, show_run
from fdgnn.options import TrainingOptions

if TYPE_CHECKING:
    from fdgnn.evaluation.record import Evaluation


@command("fdgnn compare molecules.csv --target active --time-limit 300")
def compare(
    data: Data,
    how: FirstDataOptions,
    choice: Annotated[
        TrainingOptions,
        library_options(
            TrainingOptions, "Targets and metrics", "task", "scoring", "class_weight", "transform"
        ),
    ],
    target: SomeTargets = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--with",
            help="Some of fdgnn-auto,fdgnn-wl,fdgnn-union,labels-rf,ecfp-lr,ecfp-rf,ecfp-gb,"
            "desc-rf,desc-gb,wl,wl-oa,pk,gk,rw,gin,dgcnn,gnn; for numbers those up to desc-gb. By "
            "default fdgnn-auto,labels-rf,wl; for molecules fdgnn-auto,ecfp-lr,ecfp-rf,desc-gb.",
        ),
    ] = None,
    out: RunDirectory = None,
    protocol: Annotated[
        ProtocolName, typer.Option(help="How thoroughly FDGNN's own parameters are searched.")
    ] = "quick",
    configurations: Annotated[
        int | None, typer.Option(min=1, help="Points of each method's grid to try; by default all.")
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
    split: SplitWords = "random",
    time_limit: Annotated[float, typer.Option(min=1, help="Seconds per method.")] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=1, help="Megabytes per method.")] = 4000.0,
    seed: Seed = 0,
    jobs: Jobs = 1,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare scores, time, memory and size with other methods, on the same folds; resumable."""
    from dataclasses import replace

    from fdgnn.context import Context
    from fdgnn.evaluation.baselines import check_method
    from fdgnn.evaluation.comparison import Limits, Search, compare_methods
    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.evaluation.run import EvaluationTask
    from fdgnn.training import evaluation_folds

    search = Search(
        n_configurations=configurations, inner_folds=inner_folds, choose_epochs=choose_epochs,
        scoring=choice.scoring, class_weight=choice.class_weight,
    )  # fmt: skip
    named = None if methods is None else _named(methods)
    for name in named or ():  # before the graphs are read, which may take long
        check_method(name)
    context, held_out = Context(jobs, quiet, command_line()), AskedSplit.of(split)
    if held_out.name == "time":
        raise ValueError("--split time is for fit; compare holds every graph out once")
    found = read_labeled(
        data,
        asked_targets(target, None),
        how,
        context,
        columns=held_out.columns,
        task=choice.task,
        transform=choice.transform,
    )
    targets = found.targets
    if len(targets.names) > 1:
        raise ValueError(f"compare takes one target, but there are {len(targets.names)}; give one")
    rows = held_out.of_table(found.table, context)
    folds = evaluation_folds(targets, rows, seed, n_inner=10)
    what = EvaluationTask(
        found.name, found.graphs, targets, folds, rows.words, seed, found.smiles, found.ids
    )
    directory = out or Path("runs") / found.name
    resumes_from(directory)
    compared = compare_methods(
        what,
        directory,
        named,
        context,
        PROTOCOLS[protocol],
        search=search,
        limits=Limits(seconds=time_limit, megabytes=memory_limit),
    )
    _print_methods(compared, as_json)
    say(f"written to {directory / FILE}", quiet)
    paper = compared[0].model.name == "paper" and compared[0].status == "finished"
    if page:
        run = None
        if paper:  # from its checkpoints
            ours = PaperEvaluation(what, PROTOCOLS[protocol])
            run = ours.run(directory / "parts", replace(context, quiet=True))
        show_run(run, directory, directory / "report.html", context)
    if any(each.status == "failed" for each in compared):
        raise typer.Exit(1)


def _named(methods: str) -> list[str]:
    names = [name.strip().lower() for name in methods.split(",") if name.strip()]
    if not names:
        raise ValueError("--with is empty: name at least one method, or leave it out")
    return names


def _print_methods(found: Sequence[Evaluation], as_json: bool) -> None:
    if as_json:
        from fdgnn.records import encode

        show(encode(found).decode())
        return
    from fdgnn.cli.tables import comparison_lines

    for line in comparison_lines(found):
        show(line)

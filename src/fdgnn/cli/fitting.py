"""``fdgnn fit``: from a file of graphs to a model file."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeGuard

import typer

from fdgnn.cli.app import app, command_line, say, show
from fdgnn.cli.choosing import ModelOptions
from fdgnn.cli.lists import RejectsFile, check_outputs, write_changes
from fdgnn.cli.options import (
    AsJson,
    Categories,
    Data,
    Descriptors,
    FirstDataOptions,
    Jobs,
    Quiet,
    Rejects,
    Seed,
    SomeTargets,
    TargetList,
    TaskName,
    asked_targets,
    expand,
    names_in,
)
from fdgnn.cli.pages import PageFile, check_page, dataset_of, show_model
from fdgnn.cli.scaling import ScaleJob, ScaleOptions, check_in_core, fit_out_of_core
from fdgnn.cli.settings import ModelSettings
from fdgnn.cli.splitting import AskedSplit, SplittingCommand
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.workflow.training import Training


MANY_GRAPHS = 50_000  # from here on, a hint names training out of core


@app.command(
    cls=SplittingCommand, epilog="Example: fdgnn fit molecules.csv --target active -o model.fdgnn"
)
@expand
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    how: FirstDataOptions,
    settings: ModelSettings,
    scale: ScaleOptions,
    asking: ModelOptions,
    target: SomeTargets = None,
    targets: TargetList = None,
    descriptors: Descriptors = None,
    categories: Categories = None,
    rejects: Rejects = None,
    changes: Annotated[
        Path | None,
        typer.Option(
            help="With --standardize: file for the list of molecules that were changed; by default "
            "beside the output."
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    page: PageFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on your graphs and save it; what works best is chosen for you.

    What the search has finished is kept beside the output, in OUTPUT.parts, until the model is
    written: if it is stopped, the same command goes on where it was.
    """
    from fdgnn.checkpoints import remove_checkpoints
    from fdgnn.context import Context
    from fdgnn.files import check_writable
    from fdgnn.model_files import save_model
    from fdgnn.tasks import table_targets
    from fdgnn.workflow.training import train

    parts = Path(f"{output}.parts")
    options = asking.options(settings.checked(asking.model), parts, seed)
    context = Context(n_jobs=jobs, quiet=quiet, command=command_line())
    bad_rows = RejectsFile.beside(output, rejects)
    if how.standardizing is None and changes is not None:
        raise ValueError("--changes lists what --standardize changes; give both")
    changed = changes or output.with_name(f"{output.name}.changes.csv")
    check_writable(changed)
    _check_files(data, output, bad_rows, page)
    asked = asked_targets(target, targets)
    reading = how.for_model(asking.model)
    of_target = {"target": asked, "numeric": asking.task is TaskName.regression}
    if scale.wanted(data):
        of_tables = {"descriptors": descriptors, "categories": categories, "changes": changes}
        check_in_core({**asking.unused_out_of_core, **of_tables, "report": page})
        job = ScaleJob(data, output, asked, reading.arguments | of_target, options)
        fit_out_of_core(job, scale, bad_rows, context, as_json)
        return
    held_out = AskedSplit.of(asking.split)
    table = reading.read(
        data, **of_target, columns=held_out.columns,
        descriptors=names_in(descriptors), categories=names_in(categories),
    )  # fmt: skip
    listed = bad_rows.write(table.rejects, table.n_rows, context)
    if how.standardizing is not None:
        listed |= write_changes(changed, table.changes, len(table.rows), context)
    graphs, y = table_targets(table, options.task)
    say(f"{graphs!r}", context.quiet)
    if len(graphs) >= MANY_GRAPHS and data != "-":
        say(_out_of_core_hint(data, output, asked), context.quiet)
    options = replace(options, split=held_out.of_table(table, context))
    training = train(graphs, y, options, smiles=table.smiles, context=context)
    save_model(training.model, output, score=training.score, nested=True)
    remove_checkpoints(parts)
    _print_training(training, output, listed, as_json)
    if page is None:
        say(f"to see a page about it: {_page_command(output, data, asked)}", context.quiet)
    else:
        show_model(output, training.model, table, dataset_of(data), page, context)


def _out_of_core_hint(data: str, output: Path, target: str | list[str] | None) -> str:
    """Name the command that trains on a large file in less time and memory."""
    names = [target] if isinstance(target, str) else target or ["COLUMN"]
    words = ["fdgnn", "fit", data, *(w for name in names for w in ("--target", name))]
    command = shlex.join([*words, "-o", str(output), "--memory", "1GB", "-j", "2"])
    return f"hint: many graphs; training out of core takes less time and memory: {command}"


def _check_files(data: str, output: Path, bad_rows: RejectsFile, page: Path | None) -> None:
    if str(output) == "-":
        raise ValueError("a model is written to a file; give its name by -o")
    check_outputs(data, str(output), bad_rows)
    if page is not None:
        check_page(page)


def _page_command(model: Path, data: str, target: str | list[str] | None) -> str:
    """Build the command that writes a page about the model and its training graphs."""
    words = ["fdgnn", "report", str(model), "--data", data]
    names = [target] if isinstance(target, str) else target or []
    given = [word for name in names for word in ("--target", name)]
    return shlex.join([*words, *given, "-o", "report.html"])


def _print_training(
    training: Training, output: Path, listed: dict[str, object], as_json: bool
) -> None:
    from fdgnn.training import MANY

    if as_json:
        facts = {
            "model": str(output),
            "task": training.task,
            "graphs": training.n_graphs,
            "metric": training.metric,
            "score": training.score,
            "scores": training.scores,
            "split": training.split,
            "baseline": training.baseline,
            "morgan": training.rival,
            "wl_ceiling": training.ceiling,
            "seconds": training.seconds,
            "parameters": training.parameters,
            "members": training.members,
            "searched_on": training.n_searched,
            "resumed": training.n_resumed,
            "targets": [asdict(each) for each in training.targets if each.name],
        }
        typer.echo(json.dumps(facts | listed))
        return
    lines = {what: value for what, value in _lines(training).items() if _is_known(value)}
    width = max(map(len, lines))
    for what, value in lines.items():
        show(f"{what:{width}}  {value:.3f}")
    if len(training.targets) > 1:
        _print_targets(training)
    for note in (training.rare, training.repeats):
        if note is not None:
            show(note)
    if training.n_resumed:
        parts = counted(training.n_resumed, "part")
        verb = agreeing(training.n_resumed, "was", "were")
        show(f"{parts} of the search {verb} finished before, and kept")
    if training.n_searched > MANY:
        show(f"scored on one outer fold, as there are more than {MANY:,} graphs")
    if training.n_searched < training.n_graphs:
        show(f"chosen and scored on {training.n_searched} graphs, trained on all")
    if len(set(training.members)) > 1:
        show(f"the average of: {'; '.join(training.members)}")
    show(f"{training.n_graphs} graphs, {training.seconds:.1f} s, written to {output}")


def _is_known(score: float | None) -> TypeGuard[float]:
    return score is not None and not math.isnan(score)


def _print_targets(training: Training) -> None:
    """Print a line for each of several targets: graphs for which it is known, and scores."""
    measures = list(training.scores)
    rows = [["target", "known", *measures, *(["Morgan"] if training.rival else [])]]
    for each in training.targets:
        shown = [f"{each.scores[measure]:.3f}" for measure in measures]
        rival = [f"{each.rival[training.metric]:.3f}"] if training.rival else []
        rows.append([each.name, str(each.n_known), *shown, *rival])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        show("  ".join([row[0].ljust(widths[0]), *cells]))


def _lines(training: Training) -> dict[str, float | None]:
    """What is shown of a model's scores, by what stands before each number."""
    classify = training.task == "classification"
    constant = "majority class" if classify else "mean"
    way = "logistic" if classify else "ridge"
    lines: dict[str, float | None] = {
        f"{what}, nested cross-validation, {training.split}": value
        for what, value in training.scores.items()
        # Of several targets, each with its own unit, the mean of errors means nothing.
        if what != "RMSE" or what == training.metric or len(training.targets) == 1
    }
    lines[f"{training.metric}, always the {constant}"] = training.baseline
    rival = training.rival.get(training.metric)
    lines[f"{training.metric}, Morgan counts and {way} regression"] = rival
    lines["accuracy, best of any message passing (WL)"] = training.ceiling
    return lines

"""``fdgnn fit``: from a file of graphs to a model file."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from fdgnn.evaluation.record import Evaluation


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
    from fdgnn.training import train

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
    model = train(
        graphs, y, options, smiles=table.smiles, dataset=dataset_of(data), context=context
    )
    save_model(model, output)
    remove_checkpoints(parts)
    _print_training(model, output, listed, as_json)
    if page is None:
        say(f"to see a page about it: {_page_command(output, data, asked)}", context.quiet)
    else:
        show_model(output, model, table, dataset_of(data), page, context)


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


def _print_training(model: Any, output: Path, listed: dict[str, object], as_json: bool) -> None:
    from fdgnn.cli.tables import by_metric, training_lines
    from fdgnn.training import MANY

    found: Evaluation = model.evaluation_
    searched_on = found.protocol.n_searched or found.n_graphs
    names = [fitted.name for fitted in model.estimators_]
    if as_json:
        constant, seconds = found.baseline("constant"), found.times.total
        facts = {
            "model": str(output),
            "task": found.task,
            "graphs": found.n_graphs,
            "metric": found.metric,
            "score": found.score,
            "std": found.std,
            "scores": by_metric(found.metrics),
            "split": found.protocol.split,
            "baseline": None if constant is None else constant.mean,
            "morgan": by_metric([found.baseline("morgan", m.metric) for m in found.metrics]),
            "wl_ceiling": found.targets[0].wl_ceiling if len(found.targets) == 1 else None,
            "seconds": seconds,
            "parameters": found.model.parameters,
            "base_models": names,
            "searched_on": searched_on,
            "resumed": found.times.n_resumed,
            "targets": [
                {
                    "name": each.name, "n_known": each.n_known, "scores": by_metric(each.scores),
                    "wl_ceiling": each.wl_ceiling,
                }
                for each in found.targets
                if each.name
            ],
        }  # fmt: skip
        typer.echo(json.dumps(facts | listed))
        return
    for line in [*training_lines(found), *found.notes]:
        show(line)
    if found.times.n_resumed:
        parts = counted(found.times.n_resumed, "part")
        verb = agreeing(found.times.n_resumed, "was", "were")
        show(f"{parts} of the search {verb} finished before, and kept")
    if searched_on > MANY:
        show(f"scored on one outer fold, as there are more than {MANY:,} graphs")
    if searched_on < found.n_graphs:
        show(f"chosen and scored on {searched_on} graphs, trained on all")
    if len(set(names)) > 1:
        show(f"the average of: {'; '.join(names)}")
    show(f"{found.n_graphs} graphs, {found.times.total or 0.0:.1f} s, written to {output}")

"""``fdgnn fit``: from a file of graphs to a model file."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from fdgnn.cli import options as opt
from fdgnn.cli.app import command, name_options, resumes_from, say, show
from fdgnn.cli.output import check_outputs, listing, rejects_beside, report_rejects, write_changes
from fdgnn.cli.pages import PageFile, dataset_of, model_data, page_at
from fdgnn.options import TrainingOptions
from fdgnn.schema import ModelName, ReadOptions
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.evaluation.record import Evaluation


MANY_GRAPHS = 50_000  # from here on, a hint names training out of core


@dataclass(frozen=True)
class ModelSettings:
    """Parameters of one model; those that are given are not searched.

    Parameters
    ----------
    n_estimators : int, default=3
        With --model paper: random initializations to average.
    n_units : int, default=50
        With --model paper: units in each layer.
    n_layers : int, default=1 to 5 are tried
        With --model paper: layers.
    n_connections : int, default=1
        With --model paper: connections of each unit.
    n_projections : int, default=2 for each unit
        With --model paper: random features; 0 means none.
    effective_spectral_radius : float, default=searched
        With --model paper: effective spectral radius, rho.
    input_scaling : float, default=searched
        With --model paper: input scaling, omega(1).
    inter_layer_scaling : float, default=searched
        With --model paper: scaling between layers, omega.
    n_iterations : int, optional
        With --model wl: train one model, of this many Weisfeiler-Lehman iterations.
    readout : {"auto", "linear", "rbf"}, optional
        With --model wl: train one model, with this readout: ridge regression or RBF kernel ridge
        regression.
    alpha : float, default=chosen
        With --model paper or wl: regularization strength of the readout.
    """

    n_estimators: int | None = None
    n_units: int | None = None
    n_layers: int | None = None
    n_connections: int | None = None
    n_projections: int | None = None
    effective_spectral_radius: float | None = None
    input_scaling: float | None = None
    inter_layer_scaling: float | None = None
    n_iterations: int | None = None
    readout: Literal["auto", "linear", "rbf"] | None = None
    alpha: float | None = None

    def of_model(self, model: ModelName) -> dict[str, Any]:
        """Return what is given, or raise ValueError if the model has no such parameter."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        for name, value in given.items():
            models: tuple[ModelName, ...] = ("paper", "wl") if name == "alpha" else ("paper",)
            if name in ("n_iterations", "readout"):
                models = ("wl",)
            opt.check_unused({name: value}, model, *models)
        return given


@dataclass(frozen=True)
class ScaleOptions:
    """Training on data that is not read into memory at once.

    Parameters
    ----------
    memory : str, optional
        Train out of core, with at most this memory in all processes together, such as 2GB.
        Patterns ('shards/*.parquet') and URLs are always trained out of core, by default in half of
        the machine's memory.
    work_dir : path, default=OUTPUT.work
        Out of core: folder of encoded graphs. An interrupted fit resumes from it, and another fit
        can reuse it. All workers of a cluster need access to it.
    cluster : str, optional
        Address of a Dask scheduler, or 'local' to start one.
    """

    memory: str | None = None
    work_dir: Path | None = None
    cluster: str | None = None


@command("fdgnn fit molecules.csv --target active -o model.fdgnn")
def fit(
    data: opt.Data,
    output: Annotated[Path, typer.Option("--output", "-o")],
    how: opt.FitDataOptions,
    choice: opt.TrainingChoice,
    settings: Annotated[ModelSettings, opt.library_options(ModelSettings, "Settings of one model")],
    scale: Annotated[ScaleOptions, opt.library_options(ScaleOptions, "Out of core")],
    asked: opt.TargetChoice,
    run: opt.RunChoice,
    rejects: opt.Rejects = None,
    changes: Path | None = None,
    training_graphs: bool = True,
    page: PageFile = None,
    force: opt.Force = False,
) -> None:
    """Train a model on your graphs, estimate its score by cross-validation, and save it.

    No tuning is needed. Checkpoints are kept in OUTPUT.parts until the model is written, so an
    interrupted command resumes when it is repeated.

    Parameters
    ----------
    output : path
        The model file to write.
    changes : path, default=next to the output
        With --standardize: file for the list of molecules that were changed.
    training_graphs : bool
        Keep targets, ids and SMILES of the training graphs in the model file, for 'predict
        --neighbors'.
    """
    from fdgnn.checkpoints import remove_checkpoints
    from fdgnn.datasets import read_graphs
    from fdgnn.model_files import save_model
    from fdgnn.scale.shards import is_many
    from fdgnn.tasks import table_targets
    from fdgnn.training import PAPER_ESTIMATORS, check_model, train

    if str(output) == "-":
        raise ValueError("a model is written to a file; give its name by -o")
    parts = Path(f"{output}.parts")
    given = settings.of_model(choice.model)
    if choice.model == "paper":
        given = {"n_estimators": PAPER_ESTIMATORS, **given}
    options = replace(choice, settings=given, work_dir=parts, seed=run.random_state)
    check_model(options)
    context, held_out = run.context, opt.SplitOption.of(asked.split)
    if how.standardize is None and changes is not None:
        raise ValueError("`changes` lists what `standardize` changes; give both")
    changed = changes or output.with_name(f"{output.name}.changes.csv")
    invalid = rejects_beside(output, rejects)
    check_outputs(force, output, page, beside=[invalid, changed], inputs=[data])
    check_outputs(force or parts.exists(), rejects, changes)  # or of this command
    if page is not None:
        from fdgnn.html.report import check_report

        check_report(page)
    reading = msgspec.structs.replace(
        opt.with_vertices_of(how, choice.model),
        target=asked.names,
        numeric=choice.task == "regression",
    )
    names = reading.targets
    if scale.work_dir is not None and not (scale.memory or scale.cluster or is_many(data)):
        raise ValueError("`work_dir` is for training out of core; give `memory` as well")
    if scale.memory is not None or scale.cluster is not None or is_many(data):
        only_in_core = {
            "split": asked.split if asked.split != "random" else None,
            "search_on": choice.search_on,
            "n_configurations": choice.n_configurations,
            "descriptors": how.descriptors or None,
            "categories": how.categories or None,
            "changes": changes,
            "page": page,
        }
        for name, value in only_in_core.items():
            if value is not None:
                raise ValueError(f"`{name}` has no effect out of core; leave it out")
        fit_out_of_core(data, output, reading, options, scale, invalid, context, run.as_json)
        return
    resumes_from(parts)
    table = read_graphs(data, reading, columns=held_out.columns)
    listed = report_rejects(table.rejects, table.n_rows, context, invalid)
    if how.standardize is not None:
        listed |= write_changes(changed, table.changes, len(table.rows), context)
    graphs, y = table_targets(table, options.task)
    say(f"{graphs!r}", context.quiet)
    if len(graphs) >= MANY_GRAPHS and data != "-":
        less = _typed(["fit", data], names or ["COLUMN"], output, "--memory", "1GB", "-j", "2")
        say(f"hint: training out of core takes less time and memory: {less}", context.quiet)
    options = replace(options, split=held_out.of_table(table, context))
    model = train(
        graphs, y, options, ids=[table.ids[row] for row in table.rows],
        dataset=dataset_of(data), context=context,
    )  # fmt: skip
    save_model(model, output, training_graphs=training_graphs)
    remove_checkpoints(parts)
    _print_training(model, model.evaluation_, output, listed, run.as_json)
    if page is None:
        typed = _typed(["report", str(output), "--data", data], names, "report.html")
        say(f"for an HTML report: {typed}", context.quiet)
    else:
        from fdgnn.html.report import model_subjects, write_report

        with page_at(page, context, required=True):
            found = model_data(model, table, dataset_of(data), context)
            write_report(model_subjects(output, found), page)


def _typed(words: Sequence[str], targets: Sequence[str], output: str | Path, *more: str) -> str:
    """Return a command as a user would type it."""
    given = [word for name in targets for word in ("--target", name)]
    return shlex.join(["fdgnn", *words, *given, "-o", str(output), *more])


def _print_training(
    model: Any, found: Evaluation, output: Path, listed: dict[str, object], as_json: bool
) -> None:
    """Print the scores of a model that was saved, and how it was trained."""
    from fdgnn.cli.output import score_lines
    from fdgnn.records import as_plain

    searched_on = found.protocol.n_searched or found.n_graphs
    names = [fitted.name for fitted in model.estimators_]
    if as_json:
        facts = {
            "model": str(output),
            "task": found.task,
            "graphs": found.n_graphs,
            "metric": found.metric,
            "score": found.score,
            "std": found.std,
            "scores": {each.words: each.mean for each in found.metrics},
            "seconds": found.times.total,
            "parameters": found.model.parameters,
            "base_models": names,
            "evaluation": as_plain(found),  # as `evaluate` prints it
        }
        typer.echo(json.dumps(facts | listed))
        return
    for line in [*score_lines(found), *map(name_options, found.notes)]:
        show(line)
    if found.times.n_resumed:
        parts = counted(found.times.n_resumed, "checkpoint")
        verb = agreeing(found.times.n_resumed, "was", "were")
        show(f"{parts} of the search {verb} reused")
    if len(found.folds) == 1:
        show(f"scored on one outer fold, {found.folds[0].n_test} of {searched_on} graphs")
    if searched_on < found.n_graphs:
        show(f"chosen and scored on {searched_on} graphs, trained on all")
    if len(set(names)) > 1:
        show(f"ensemble of {len(names)} base models: {'; '.join(names)}")
    show(f"{found.n_graphs} graphs, {found.times.total or 0.0:.1f} s, written to {output}")


def fit_out_of_core(
    data: str,
    output: Path,
    reading: ReadOptions,
    options: TrainingOptions,
    scale: ScaleOptions,
    invalid: Path | None,
    context: Context,
    as_json: bool,
) -> None:
    """Train on shards, and save the model."""
    from fdgnn.evaluation.record import Durations
    from fdgnn.model_files import save_model
    from fdgnn.scale.shards import ShardRequest, find_shards
    from fdgnn.scale.training import check_trainable, plan_memory, read_shards, train_on_shards
    from fdgnn.training import new_model
    from fdgnn.workers import Workers

    check_trainable(options)
    if not reading.targets:
        raise ValueError("no target column is given; name it by `target`")
    start, plan = time.perf_counter(), plan_memory(scale.memory, context)
    shards, folder = find_shards(data), scale.work_dir or Path(f"{output}.work")
    resumes_from(folder)
    with Workers.of(scale.cluster, plan.n_processes, context) as workers:
        request = ShardRequest(msgspec.to_builtins(reading), n_rows=plan.n_rows)
        read = read_shards(shards, request, folder, plan, workers, context)
        with listing(invalid) as rejected:
            for some in read.rejects():
                rejected.extend(some)
        listed = rejected.show(read.n_rows, context)
        targets = read.targets(reading.targets, options.task)
        say(f"{counted(len(targets), 'graph')} of {counted(len(shards), 'file')}", context.quiet)
        model = new_model(options, targets.classify)
        found = train_on_shards(model, read, targets)
    save_model(model, output)
    found = msgspec.structs.replace(found, times=Durations(total=time.perf_counter() - start))
    alphas = [each.alpha for each in model.estimators_]
    more = {"held_out": found.folds[0].n_test, "new_chunks": read.n_new, "alphas": alphas}
    _print_training(model, found, output, listed | more, as_json)
    say(f"chunks are kept in {folder}; remove it when no other fit needs them", context.quiet)

"""``fdgnn fit``: from a file of graphs to a model file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from fdgnn.cli.app import app, command_line, name_options, say, show
from fdgnn.cli.options import (
    AsJson,
    AskedSplit,
    Categories,
    Data,
    Descriptors,
    FirstDataOptions,
    Jobs,
    Quiet,
    Rejects,
    Seed,
    SomeTargets,
    SplittingCommand,
    SplitWords,
    TargetList,
    Weighting,
    asked_targets,
    check_unused,
    expand,
    names_in,
)
from fdgnn.cli.output import RejectsFile, check_outputs, write_changes
from fdgnn.cli.pages import PageFile, check_page, dataset_of, show_model
from fdgnn.schema import ModelName, TaskName
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.evaluation.record import Evaluation
    from fdgnn.scale.training import ReadShards
    from fdgnn.training import TrainingOptions


MANY_GRAPHS = 50_000  # from here on, a hint names training out of core


# Options, by the parameter that each sets.
OF_RESERVOIRS = {
    "n_units": "units", "n_layers": "layers", "n_connections": "connections",
    "n_projections": "projections", "effective_spectral_radius": "spectral-radius",
    "input_scaling": "input-scaling", "inter_layer_scaling": "inter-layer-scaling",
}  # fmt: skip
OF_WL = {"n_iterations": "iterations", "readout": "readout"}
OF_BOTH = {"alpha": "alpha"}


@dataclass(frozen=True)
class ModelSettings:
    """Options that set parameters of a model; what is not given is searched, or by default."""

    n_units: Annotated[
        int | None, typer.Option("--units", help="With --model paper: units in each layer, or 50.")
    ] = None
    n_layers: Annotated[
        int | None,
        typer.Option("--layers", help="With --model paper: layers, or 1 to 5 are tried."),
    ] = None
    n_connections: Annotated[
        int | None,
        typer.Option("--connections", help="With --model paper: connections of each unit, or 1."),
    ] = None
    n_projections: Annotated[
        int | None,
        typer.Option("--projections", help="With --model paper: random features; 0 means none."),
    ] = None
    effective_spectral_radius: Annotated[
        float | None,
        typer.Option("--spectral-radius", help="With --model paper: rho, or it is searched."),
    ] = None
    input_scaling: Annotated[
        float | None,
        typer.Option("--input-scaling", help="With --model paper: omega(1), or it is searched."),
    ] = None
    inter_layer_scaling: Annotated[
        float | None,
        typer.Option("--inter-layer-scaling", help="With --model paper: omega, or it is searched."),
    ] = None
    n_iterations: Annotated[
        int | None,
        typer.Option("--iterations", help="With --model wl: one model, of so many iterations."),
    ] = None
    readout: Annotated[
        Literal["auto", "linear", "rbf"] | None,
        typer.Option("--readout", help="With --model wl: one model with this readout."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            min=0,
            help="With --model paper or wl: regularization strength of the readout.",
        ),
    ] = None

    def checked(self, model: ModelName) -> dict[str, Any]:
        """Give the parameters that are set, or raise ValueError if the model has none of these."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        for names, models in (
            (OF_RESERVOIRS, ("paper",)),
            (OF_WL, ("wl",)),
            (OF_BOTH, ("paper", "wl")),
        ):
            for name in given:
                if name in names and model not in models:
                    raise ValueError(
                        f"--{names[name]} is for --model {' or '.join(models)}; --model "
                        f"{model} has no such choice"
                    )
        return given


@dataclass(frozen=True)
class ModelOptions:
    """The kind of model, how it is searched, and how graphs and errors count."""

    task: Annotated[
        TaskName | None, typer.Option(help="What the target is, if it is not recognized.")
    ] = None
    model: Annotated[
        ModelName,
        typer.Option(
            help="auto averages a few models of WL features and reservoirs; wl and union do so "
            "with models of one kind; paper searches the hyperparameters of the paper's model."
        ),
    ] = "auto"
    search: Annotated[
        bool | None,
        typer.Option(
            "--search/--no-search",
            help="With --model paper: choose hyperparameters, or use the defaults.",
        ),
    ] = None
    n_configurations: Annotated[
        int | None,
        typer.Option(
            "--configurations", min=1, help="With --model paper: configurations to try, or 20."
        ),
    ] = None
    n_estimators: Annotated[
        int | None,
        typer.Option(
            "--initializations",
            min=1,
            help="With --model paper: random initializations to average, or 3.",
        ),
    ] = None
    search_on: Annotated[
        int | None,
        typer.Option(
            min=1, help="Choose and score models on so many rows, drawn at random; train on all."
        ),
    ] = None
    class_weight: Annotated[
        Weighting,
        typer.Option(
            help="balanced: errors on a rare class count more, so that all classes count alike."
        ),
    ] = "none"
    scoring: Annotated[
        str | None,
        typer.Option(
            help="What models are chosen by: accuracy, balanced_accuracy, roc_auc, "
            "average_precision, f1 or log_loss; r2, rmse, mae or spearman. By default accuracy, "
            "where a class is rare roc_auc, and r2 for numbers."
        ),
    ] = None
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Tell two classes apart where accuracy, balanced_accuracy or f1 (of the rarer "
            "class) is best on held-out graphs; by default f1 where a class is rare."
        ),
    ] = None
    transform: Annotated[
        Literal["log10", "pIC50"] | None,
        typer.Option(
            help="Learn positive numbers on a logarithmic scale; pIC50 is that of concentrations "
            "in nM. Predictions are in the units of the file."
        ),
    ] = None
    split: SplitWords = "random"
    handle_unknown: Annotated[
        Literal["ignore", "error"],
        typer.Option(
            help="Whether the model ignores vertex labels that no training graph has, or rejects "
            "rows with some. If it ignores them, a warning counts the rows."
        ),
    ] = "ignore"

    @property
    def unused_out_of_core(self) -> dict[str, object]:
        """What was given though training out of core has no such choice, by option."""
        return {
            "split": self.split if self.split != "random" else None,
            "search-on": self.search_on,
            "configurations": self.n_configurations,
            "search": self.search or None,
        }

    def options(self, settings: Mapping[str, Any], work_dir: Path, seed: int) -> TrainingOptions:
        """Return the library's options, but for the split, for which a table is needed.

        Raises
        ------
        ValueError
            Something was given that only another model has.
        """
        from fdgnn.training import PAPER_ESTIMATORS, TrainingOptions

        searching = "no-search" if self.search is False else "search"
        of_paper = {
            "configurations": self.n_configurations, "initializations": self.n_estimators
        }  # fmt: skip
        check_unused(self.model, {searching: self.search, **of_paper})
        if self.model == "paper":
            settings = {"n_estimators": self.n_estimators or PAPER_ESTIMATORS, **settings}
        return TrainingOptions(
            task=self.task,
            model=self.model,
            scoring=self.scoring,
            threshold=self.threshold,
            transform=self.transform,
            class_weight=None if self.class_weight == "none" else self.class_weight,
            handle_unknown=self.handle_unknown,
            search=self.search is not False,
            n_configurations=self.n_configurations or 20,
            settings=settings,
            search_on=self.search_on,
            work_dir=work_dir,
            seed=seed,
        )


@dataclass(frozen=True)
class ScaleOptions:
    """Options of `fit` for data that is not read into memory at once."""

    memory: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Train out of core, and use no more memory than this in all processes together, "
            "such as 2GB. So is a pattern of files ('shards/*.parquet') or a URL trained, by "
            "default in half of the machine's memory.",
        ),
    ] = None
    work_dir: Annotated[
        Path | None,
        typer.Option(
            help="Out of core: where encoded graphs are kept, for a stopped or another fit to "
            "begin with; by default OUTPUT.work. All workers of a cluster must see it."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(help="Train on the Dask cluster with this scheduler address, or 'local'."),
    ] = None

    def wanted(self, data: str) -> bool:
        """Tell whether training is to be out of core."""
        from fdgnn.scale.shards import is_many

        return self.memory is not None or self.cluster is not None or is_many(data)


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
    training_graphs: Annotated[
        bool,
        typer.Option(
            help="Keep targets, ids and SMILES of the training graphs in the model file, for "
            "'predict --neighbors'."
        ),
    ] = True,
    random_state: Seed = 0,
    n_jobs: Jobs = 1,
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
    options = asking.options(settings.checked(asking.model), parts, random_state)
    context = Context(n_jobs=n_jobs, quiet=quiet, command=command_line())
    bad_rows = RejectsFile.beside(output, rejects)
    if how.standardizing is None and changes is not None:
        raise ValueError("--changes lists what --standardize changes; give both")
    changed = changes or output.with_name(f"{output.name}.changes.csv")
    check_writable(changed)
    _check_files(data, output, bad_rows, page)
    asked = asked_targets(target, targets)
    reading = how.for_model(asking.model)
    of_target = {"target": asked, "numeric": asking.task == "regression"}
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
        graphs, y, options, smiles=table.smiles, ids=[table.ids[row] for row in table.rows],
        dataset=dataset_of(data), context=context,
    )  # fmt: skip
    save_model(model, output, training_graphs=training_graphs)
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
    for line in [*training_lines(found), *map(name_options, found.notes)]:
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


@dataclass(frozen=True)
class ScaleJob:
    """What is to be trained out of core, as the command says it."""

    data: str
    output: Path
    target: str | list[str] | None
    reading: Mapping[str, Any]  # arguments of `iter_graphs`
    options: TrainingOptions

    @property
    def names(self) -> tuple[str, ...]:
        """Of the targets, which cannot be guessed from one of many files."""
        if self.target is None:
            raise ValueError("it is not known which column is the target; name it by `target`")
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


def check_in_core(given: Mapping[str, object]) -> None:
    """Raise ValueError for options that only training in memory has."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"--{name} is for training in memory; out of core there is no such choice"
            )


def fit_out_of_core(
    job: ScaleJob, options: ScaleOptions, bad_rows: RejectsFile, context: Context, as_json: bool
) -> None:
    """Train on shards, and save the model."""
    from fdgnn.model_files import save_model
    from fdgnn.scale.plan import check_trainable, plan_memory, workers_for
    from fdgnn.scale.shards import ShardRequest, find_shards
    from fdgnn.scale.training import read_shards, train_on_shards
    from fdgnn.training import new_model

    check_trainable(job.options)
    names, shards = job.names, find_shards(job.data)
    folder = options.work_dir or Path(f"{job.output}.work")
    plan = plan_memory(options.memory, context)
    with workers_for(options.cluster, plan, context) as workers:
        request = ShardRequest(job.reading, n_rows=plan.n_rows)
        read = read_shards(shards, request, folder, plan, workers, context)
        with bad_rows.listing() as rejected:
            for some in read.rejects():
                rejected.extend(some)
        listed = rejected.show(read.n_rows, context)
        targets = read.targets(names, job.options.task)
        say(f"{counted(len(targets), 'graph')} of {counted(len(shards), 'file')}", context.quiet)
        model = new_model(job.options, targets.classify)
        found = train_on_shards(model, read.graphs, targets)
    save_model(model, job.output)
    _print(model, found, read, job, listed, as_json)
    say(f"chunks are kept in {folder}; remove it when no other fit needs them", context.quiet)


def _print(
    model: Any,
    found: Evaluation,
    read: ReadShards,
    job: ScaleJob,
    listed: dict[str, object],
    as_json: bool,
) -> None:
    names = [each.name for each in model.estimators_]
    scores, n_held_out = {each.words: each.mean for each in found.metrics}, found.folds[0].n_test
    seconds = {"read": read.seconds, "train": found.times.total or 0.0}
    if as_json:
        facts = {
            "model": str(job.output),
            "task": found.task,
            "graphs": found.n_graphs,
            "held_out": n_held_out,
            "metric": found.metric,
            "score": found.score,
            "scores": scores,
            "seconds": seconds,
            "members": names,
            "alphas": [each.alpha for each in model.estimators_],
            "new_chunks": read.n_new,
        }
        typer.echo(json.dumps(facts | listed))
        return
    for what, value in scores.items():
        show(f"{what}, on {n_held_out} graphs held out  {value:.3f}")
    if len(set(names)) > 1:
        show(f"the average of: {'; '.join(names)}")
    show(f"{found.n_graphs} graphs, {sum(seconds.values()):.1f} s, written to {job.output}")

"""``fdgnn fit``: from a file of graphs to a model file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import typer

from fdgnn.cli.app import (
    OptionGroup,
    command,
    command_line,
    name_options,
    resumes_from,
    say,
    show,
)
from fdgnn.cli.options import (
    AsJson,
    AskedSplit,
    Cluster,
    Data,
    FitDataOptions,
    Force,
    Jobs,
    Quiet,
    Rejects,
    Seed,
    SomeTargets,
    SplitWords,
    TargetList,
    TrainingChoice,
    asked_targets,
    check_unused,
    with_atoms_of,
)
from fdgnn.cli.output import (
    check_outputs,
    listing,
    rejects_beside,
    report_rejects,
    write_changes,
)
from fdgnn.cli.pages import PageFile, check_page, dataset_of, model_data, page_at
from fdgnn.options import TrainingOptions
from fdgnn.schema import ModelName, ReadOptions
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.evaluation.record import Evaluation


MANY_GRAPHS = 50_000  # from here on, a hint names training out of core


class _Setting(NamedTuple):
    """An option that sets a parameter of a model."""

    option: str
    kind: Any
    models: tuple[ModelName, ...]
    help: str
    default: str = ""


# What is given is not searched. By parameter of the models.
_PAPER: tuple[ModelName, ...] = ("paper",)
_WL: tuple[ModelName, ...] = ("wl",)
SETTINGS = {
    "n_estimators": _Setting(
        "--initializations", int, _PAPER, "random initializations to average", "3"
    ),
    "n_units": _Setting("--units", int, _PAPER, "units in each layer", "50"),
    "n_layers": _Setting("--layers", int, _PAPER, "layers", "1 to 5 are tried"),
    "n_connections": _Setting("--connections", int, _PAPER, "connections of each unit", "1"),
    "n_projections": _Setting(
        "--projections", int, _PAPER, "random features; 0 means none", "2 for each unit"
    ),
    "effective_spectral_radius": _Setting(
        "--spectral-radius", float, _PAPER, "effective spectral radius, rho", "searched"
    ),
    "input_scaling": _Setting(
        "--input-scaling", float, _PAPER, "input scaling, omega(1)", "searched"
    ),
    "inter_layer_scaling": _Setting(
        "--inter-layer-scaling", float, _PAPER, "scaling between layers, omega", "searched"
    ),
    "n_iterations": _Setting("--iterations", int, _WL, "one model, of so many iterations"),
    "readout": _Setting(
        "--readout", Literal["auto", "linear", "rbf"], _WL, "one model with this readout"
    ),
    "alpha": _Setting("--alpha", float, (*_PAPER, *_WL), "regularization strength of the readout"),
}


def _settings() -> OptionGroup:
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                each.kind | None,
                typer.Option(
                    each.option,
                    help=f"With --model {' or '.join(each.models)}: {each.help}.",
                    show_default=each.default or False,
                ),
            ],
        )
        for name, each in SETTINGS.items()
    ]

    def given(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value is not None}

    return OptionGroup("Settings of one model", parameters, given)


@dataclass(frozen=True)
class ScaleOptions:
    """Options of `fit` for data that is not read into memory at once."""

    memory: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Train out of core, with at most this memory in all processes together, such as "
            "2GB. Patterns ('shards/*.parquet') and URLs are always trained out of core, by "
            "default in half of the machine's memory.",
        ),
    ] = None
    work_dir: Annotated[
        Path | None,
        typer.Option(
            help="Out of core: folder of encoded graphs, from which an interrupted or another fit "
            "resumes; by default OUTPUT.work. All workers of a cluster must see it."
        ),
    ] = None
    cluster: Cluster = None

    def wanted(self, data: str) -> bool:
        """Return whether training is to be out of core."""
        from fdgnn.scale.shards import is_many

        return self.memory is not None or self.cluster is not None or is_many(data)


@command("fdgnn fit molecules.csv --target active -o model.fdgnn")
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    how: FitDataOptions,
    choice: TrainingChoice,
    settings: Annotated[dict[str, Any], _settings()],
    scale: Annotated[ScaleOptions, OptionGroup.of(ScaleOptions, "Out of core")],
    target: SomeTargets = None,
    targets: TargetList = None,
    split: SplitWords = "random",
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
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on your graphs and save it; nothing has to be tuned.

    Checkpoints are kept beside the output, in OUTPUT.parts, until the model is written: if the
    command is interrupted, the same command resumes.
    """
    from fdgnn.checkpoints import remove_checkpoints
    from fdgnn.context import Context
    from fdgnn.datasets import read_graphs
    from fdgnn.model_files import save_model
    from fdgnn.tasks import table_targets
    from fdgnn.training import PAPER_ESTIMATORS, train

    parts = Path(f"{output}.parts")
    for name, value in settings.items():
        check_unused({name: value}, choice.model, *SETTINGS[name].models)
    if choice.model == "paper":
        settings = {"n_estimators": PAPER_ESTIMATORS, **settings}
    options = replace(choice, settings=settings, work_dir=parts, seed=random_state)
    options.checked(choice.task != "regression")
    context = Context(n_jobs=n_jobs, quiet=quiet, command=command_line())
    if how.standardize is None and changes is not None:
        raise ValueError("`changes` lists what `standardize` changes; give both")
    changed = changes or output.with_name(f"{output.name}.changes.csv")
    invalid = rejects_beside(output, rejects)
    if str(output) == "-":
        raise ValueError("a model is written to a file; give its name by -o")
    check_outputs(force, output, page, inputs=[data])
    check_outputs(force or parts.exists(), rejects, changes)  # or of this command
    check_outputs(True, output, page, invalid, changed, inputs=[data])
    if page is not None:
        check_page(page)
    reading = msgspec.structs.replace(
        with_atoms_of(how, choice.model),
        target=asked_targets(target, targets),
        numeric=choice.task == "regression",
    )
    names = reading.targets
    if scale.wanted(data):
        check_in_core(
            {
                "split": split if split != "random" else None,
                "search_on": choice.search_on,
                "n_configurations": choice.n_configurations,
                "descriptors": how.descriptors or None,
                "categories": how.categories or None,
                "changes": changes,
                "page": page,
            }
        )
        fit_out_of_core(data, output, reading, options, scale, invalid, context, as_json)
        return
    resumes_from(parts)
    held_out = AskedSplit.of(split)
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
        graphs, y, options, smiles=table.smiles, ids=[table.ids[row] for row in table.rows],
        dataset=dataset_of(data), context=context,
    )  # fmt: skip
    save_model(model, output, training_graphs=training_graphs)
    remove_checkpoints(parts)
    _print_training(model, model.evaluation_, output, listed, as_json)
    if page is None:
        typed = _typed(["report", str(output), "--data", data], names, "report.html")
        say(f"to see a page about it: {typed}", context.quiet)
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
    from fdgnn.cli.tables import by_metric, score_lines

    searched_on = found.protocol.n_searched or found.n_graphs
    names = [fitted.name for fitted in model.estimators_]
    if as_json:
        constant = found.baseline("constant")
        facts = {
            "model": str(output),
            "task": found.task,
            "graphs": found.n_graphs,
            "metric": found.metric,
            "score": found.score,
            "std": found.std,
            "scores": by_metric(found.metrics),
            "stds": {each.words: each.std for each in found.metrics},
            "split": found.protocol.split,
            "baseline": None if constant is None else constant.mean,
            "constant": by_metric([found.baseline("constant", m.metric) for m in found.metrics]),
            "morgan": by_metric([found.baseline("morgan", m.metric) for m in found.metrics]),
            "boosting": by_metric([found.baseline("boosting", m.metric) for m in found.metrics]),
            "wl_ceiling": found.targets[0].wl_ceiling if len(found.targets) == 1 else None,
            "seconds": found.times.total,
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
    for line in [*score_lines(found), *map(name_options, found.notes)]:
        show(line)
    if found.times.n_resumed:
        parts = counted(found.times.n_resumed, "part")
        verb = agreeing(found.times.n_resumed, "was", "were")
        show(f"{parts} of the search {verb} finished before, and kept")
    if len(found.folds) == 1:
        show(f"scored on one outer fold, {found.folds[0].n_test} of {searched_on} graphs")
    if searched_on < found.n_graphs:
        show(f"chosen and scored on {searched_on} graphs, trained on all")
    if len(set(names)) > 1:
        show(f"the average of: {'; '.join(names)}")
    show(f"{found.n_graphs} graphs, {found.times.total or 0.0:.1f} s, written to {output}")


def check_in_core(given: Mapping[str, object]) -> None:
    """Raise ValueError for options that only training in memory has."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"`{name}` is for training in memory; out of core there is no such choice"
            )


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
    from fdgnn.model_files import save_model
    from fdgnn.scale.plan import check_trainable, plan_memory, workers_for
    from fdgnn.scale.shards import ShardRequest, find_shards
    from fdgnn.scale.training import read_shards, train_on_shards
    from fdgnn.training import new_model

    check_trainable(options)
    if not reading.targets:
        raise ValueError("it is not known which column is the target; name it by `target`")
    shards, folder = find_shards(data), scale.work_dir or Path(f"{output}.work")
    resumes_from(folder)
    plan = plan_memory(scale.memory, context)
    with workers_for(scale.cluster, plan, context) as workers:
        request = ShardRequest(msgspec.to_builtins(reading), n_rows=plan.n_rows)
        read = read_shards(shards, request, folder, plan, workers, context)
        with listing(invalid) as rejected:
            for some in read.rejects():
                rejected.extend(some)
        listed = rejected.show(read.n_rows, context)
        targets = read.targets(reading.targets, options.task)
        say(f"{counted(len(targets), 'graph')} of {counted(len(shards), 'file')}", context.quiet)
        model = new_model(options, targets.classify)
        found = train_on_shards(model, read.graphs, targets)
    save_model(model, output)
    times = msgspec.structs.replace(found.times, total=read.seconds + (found.times.total or 0.0))
    found = msgspec.structs.replace(found, times=times)
    alphas = [each.alpha for each in model.estimators_]
    more = {"held_out": found.folds[0].n_test, "new_chunks": read.n_new, "alphas": alphas}
    _print_training(model, found, output, listed | more, as_json)
    say(f"chunks are kept in {folder}; remove it when no other fit needs them", context.quiet)

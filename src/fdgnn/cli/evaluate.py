"""``fdgnn evaluate`` and ``fdgnn demo``: nested cross-validation, by the paper's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from fdgnn.cli.app import command, command_line, resumes_from, say, show
from fdgnn.cli.options import (
    AsJson,
    AskedSplit,
    Data,
    FirstDataOptions,
    Force,
    Jobs,
    ProtocolName,
    Quiet,
    Seed,
    SomeTargets,
    Weighting,
    asked_targets,
    check_unused,
    with_atoms_of,
)
from fdgnn.cli.output import check_outputs, report_rejects
from fdgnn.cli.pages import (
    PageFile,
    WantPage,
    check_page,
    dataset_of,
    show_committee,
    show_run,
)
from fdgnn.files import expanduser
from fdgnn.schema import ModelName, ReadOptions, TaskName

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.evaluation.committee_records import CommitteeResult, QuantityResult
    from fdgnn.evaluation.models import CommitteeStudy
    from fdgnn.evaluation.records import RunResult
    from fdgnn.evaluation.study import Study
    from fdgnn.folds import Split
    from fdgnn.graphs import Array, GraphBatch
    from fdgnn.training import TrainingOptions

EvaluatedSplit = Annotated[
    str,
    typer.Option(
        metavar="random|scaffold|group COLUMN",
        help="How graphs are held out: at random; molecules of one scaffold together; or rows with "
        "one value in a column together.",
    ),
]
_LEAST = 4  # graphs of a class, for two folds inside of two


@command("fdgnn evaluate MUTAG --protocol quick --out runs/mutag")
def evaluate(
    data: Data,
    how: FirstDataOptions,
    target: SomeTargets = None,
    task: Annotated[
        TaskName | None,
        typer.Option(help="What the target of a table is, if it is not recognized."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Run directory; the same command resumes it. By default runs/NAME."),
    ] = None,
    model: Annotated[
        ModelName | None,
        typer.Option(
            help="paper is FDGNN as published, and the default for TU datasets. auto, the default "
            "for tables, averages a few models of WL features and reservoirs, wl and union such of "
            "one kind; the options down to --units are not for them."
        ),
    ] = None,
    protocol: Annotated[
        ProtocolName | None,
        typer.Option(help="How many configurations and networks are tried; by default 'paper'."),
    ] = None,
    configurations: Annotated[
        int | None, typer.Option(min=1, help="Random configurations; by default the protocol's.")
    ] = None,
    initializations: Annotated[
        int | None,
        typer.Option(
            min=1, help="Random initializations per configuration; by default the protocol's."
        ),
    ] = None,
    units: Annotated[
        int | None, typer.Option(min=1, help="Neurons per layer; by default the paper's.")
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="With --model auto, wl or union: what alpha is chosen by: accuracy, "
            "balanced_accuracy, roc_auc, average_precision, f1 or log_loss; r2, rmse, mae or "
            "spearman. By default accuracy, where a class is rare roc_auc, and r2 for numbers."
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="With the same models: tell two classes apart where accuracy, balanced_accuracy "
            "or f1 is best on the training graphs of an outer fold; f1 where a class is rare."
        ),
    ] = None,
    transform: Annotated[
        Literal["log10", "pIC50"] | None,
        typer.Option(help="Learn and score positive numbers on a logarithmic scale, as in fit."),
    ] = None,
    class_weight: Annotated[
        Weighting, typer.Option(help="balanced: errors on a rare class count more in training.")
    ] = "none",
    split: EvaluatedSplit = "random",
    seed: Seed = 0,
    jobs: Jobs = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, or 'local' to start one.")
    ] = None,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a dataset by nested cross-validation, as in the paper; resumable."""
    from fdgnn.context import Context
    from fdgnn.evaluation.models import evaluate_committee
    from fdgnn.evaluation.running import run_study
    from fdgnn.evaluation.study import PROTOCOLS, plan
    from fdgnn.training import TrainingOptions

    context, held_out = Context(jobs, quiet, command_line()), AskedSplit.of(split)
    if model is None:
        model = "auto" if is_table(data, how.format) else "paper"
    if model != "paper":
        given = {
            "protocol": protocol, "configurations": configurations,
            "initializations": initializations,
        }  # fmt: skip
        check_unused(given | {"units": units, "cluster": cluster}, model, "paper")
    weights = None if class_weight == "none" else class_weight
    options = TrainingOptions(scoring=scoring, threshold=threshold, class_weight=weights)
    _check_evaluated(model, options, held_out)
    reading = with_atoms_of(how, model) if is_table(data, how.format) else how
    found = read_labeled(
        data, target, reading, context, command="evaluate", columns=held_out.columns,
        task=task, transform=transform,
    )  # fmt: skip
    _check_target(found, model, scoring)
    out = out or Path("runs") / found.name
    resumes_from(out)
    if model != "paper":
        rows = held_out.of_table(found.table, context)
        committee = _committee(found, model, options, rows, seed, context)
        _print_result(evaluate_committee(committee, out, context), as_json)
        say(f"written to {out / 'result.json'}", quiet)
        if page:
            show_committee(committee, out, context)
        return
    study = plan(
        found.name, found.graphs, found.y, PROTOCOLS[protocol or "paper"],
        n_configurations=configurations, n_guesses=initializations, n_units=units, seed=seed,
        smiles=found.smiles,
    )  # fmt: skip
    result = run_study(study, out, context, cluster=cluster)
    _print_result(result, as_json)
    say(f"written to {out / 'result.json'}", quiet)
    if page:
        show_run(study, result, out, out / "report.html", context)


def _committee(
    found: Labeled,
    model: ModelName,
    options: TrainingOptions,
    split: Split,
    seed: int,
    context: Context,
) -> CommitteeStudy:
    """Decide what is left open, report class imbalance, and return the study."""
    from fdgnn.evaluation.models import CommitteeStudy
    from fdgnn.tasks import one_target
    from fdgnn.training import imbalance_note

    targets = one_target(found.y, found.task)
    options = options.with_defaults(targets)
    scoring = options.chosen_by(targets.classify)
    if (note := imbalance_note(targets, scoring, options.threshold)) is not None:
        say(note, context.quiet)
    weights = None if options.class_weight is None else str(options.class_weight)
    return CommitteeStudy(
        found.name, found.graphs, found.y, model, seed, scoring.name, split, found.task,
        options.threshold, weights,
    )  # fmt: skip


def _check_evaluated(model: ModelName, options: TrainingOptions, split: AskedSplit) -> None:
    """Refuse what the paper's protocol does not have, and a split that tests only some graphs."""
    for name in ("scoring", "threshold", "class_weight"):
        if model == "paper" and getattr(options, name) is not None:
            raise ValueError(
                f"`{name}` is not for --model paper, whose protocol chooses by accuracy and counts "
                "all errors alike"
            )
    if model == "paper" and split != AskedSplit():
        raise ValueError("--split is not for --model paper, whose protocol splits at random")
    if split.name == "time":
        raise ValueError("--split time is for fit; evaluate holds every graph out once")


def _check_target(found: Labeled, model: ModelName, scoring: str | None) -> None:
    """Refuse a model or a scoring that is not for such targets."""
    import numpy as np

    from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, known_scoring
    from fdgnn.tasks import text_among_numbers

    classify = found.task == "classification"
    odd = text_among_numbers(found.y) if classify else None
    if odd is not None and np.unique(found.y, return_counts=True)[1].min() < _LEAST:
        raise ValueError(
            f"the target is taken for classes because {odd!r} is no number, and classes have too "
            "few graphs for cross-validation; for quantities, choose --task regression"
        )
    if model == "paper" and not classify:
        raise ValueError(
            "--model paper is for classes, as the paper's protocol is, but the target is a number; "
            "choose --model auto"
        )
    if scoring is not None and known_scoring(scoring, not classify) is not None:
        this, other = ("classes", "numbers") if classify else ("numbers", "classes")
        names = ", ".join(OF_CLASSES if classify else OF_NUMBERS)
        guessed = found.table is not None and found.y.dtype.kind in "iuf"
        hint = f", or say by --task that it has {other}" if guessed else ""
        raise ValueError(
            f"--scoring {scoring} is for {other}, but the target has {this}: choose one of "
            f"{names}{hint}"
        )


@command("fdgnn demo")
def demo(
    jobs: Jobs = -1,
    page: PageFile = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate FDGNN on MUTAG by nested cross-validation, in about a minute."""
    from tempfile import TemporaryDirectory

    from fdgnn.context import Context
    from fdgnn.evaluation.running import run_study

    if page is not None:
        check_outputs(force, page)
        check_page(page)
    study = _demo_study()
    say(f"{study.dataset}: {study.graphs!r}", quiet)
    say(
        f"{study.protocol.n_configurations} configurations x {study.protocol.n_guesses} "
        f"networks, {study.protocol.n_outer} outer x {study.protocol.n_inner} inner folds",
        quiet,
    )
    with TemporaryDirectory() as directory:
        context = Context(jobs, quiet, command_line())
        result = run_study(study, Path(directory), context)
        _print_result(result, as_json)
        if page is None:
            say("to see a page about it: fdgnn demo --report demo.html", quiet)
        else:
            show_run(study, result, Path(directory), page, context, required=True)


def _demo_study() -> Study:
    """Take MUTAG if it is there without a download, else generated graphs, and say which."""
    from fdgnn.datasets import load_tu, make_motif_graphs
    from fdgnn.evaluation.study import PROTOCOLS, plan
    from fdgnn.exceptions import DatasetError

    try:
        name, (graphs, y) = "MUTAG", load_tu("MUTAG", download_if_missing=False)
    except DatasetError:
        say("MUTAG was not found (no data home, no GraKeL): using generated graphs")
        name, (graphs, y) = "generated motif graphs", make_motif_graphs(200, random_state=0)
    return plan(name, graphs, y, PROTOCOLS["quick"])


def _print_result(result: RunResult | CommitteeResult | QuantityResult, as_json: bool) -> None:
    if as_json:
        from fdgnn.records import encode

        show(encode(result).decode())
        return
    from rich.console import Console

    from fdgnn.cli.tables import committee_table, quantity_table, result_table
    from fdgnn.evaluation.committee_records import QuantityResult
    from fdgnn.evaluation.records import RunResult

    if isinstance(result, RunResult):
        table = result_table(result)
    elif isinstance(result, QuantityResult):
        table = quantity_table(result)
    else:
        table = committee_table(result)
    Console().print(table)


@dataclass(frozen=True)
class Labeled:
    """Graphs and their classes or numbers; `table` is what they were read from, if it is one."""

    name: str
    graphs: GraphBatch
    y: Array
    table: GraphTable | None = None
    task: TaskName = "classification"

    @property
    def smiles(self) -> Sequence[str] | None:
        """What molecules were read from."""
        return None if self.table is None else self.table.smiles


def read_labeled(
    data: str,
    target: list[str] | None,
    how: ReadOptions,
    context: Context,
    *,
    command: str,
    columns: Sequence[str] = (),
    task: TaskName | None = None,
    transform: str | None = None,
) -> Labeled:
    """Read a TU dataset, or a table with a column of targets; bad rows are told and left out.

    What the targets of a table are is guessed, unless `task` says it.
    """
    from fdgnn.datasets import read_graphs
    from fdgnn.tasks import table_targets

    if not is_table(data, how.format):
        return _tu_dataset(data, {"target": target, "task": task, "transform": transform}, how)
    table = read_graphs(
        data, how, target=asked_targets(target, None), numeric=task == "regression",
        columns=list(columns),
    )  # fmt: skip
    report_rejects(table.rejects, table.n_rows, context)
    graphs, targets = table_targets(table, task)
    targets = targets.transformed(transform)
    if not targets.flat:
        n = len(targets.names)
        raise ValueError(f"{command} takes one target, but there are {n}; give one")
    inferred: TaskName = "classification" if targets.classify else "regression"
    return Labeled(dataset_of(data), graphs, targets.of_target(0), table, inferred)


def is_table(data: str, format: str | None) -> bool:
    """Tell a file of rows from a TU dataset; raise an error for a file that is not there."""
    from fdgnn.datasets.files import recognize

    path = expanduser(data)
    is_file = data == "-" or path.exists() or path.suffix != ""  # names of TU datasets have none
    return is_file and recognize(data, format).format != "tu"


def _tu_dataset(data: str, asked: Mapping[str, object], how: ReadOptions) -> Labeled:
    from fdgnn.datasets import load_tu

    given = [name for name, value in asked.items() if value]
    given += msgspec.to_builtins(msgspec.structs.replace(how, vertex="auto", edge_labels="auto"))
    if given:
        raise ValueError(f"`{given[0]}` is for tables, and {data} is a TU dataset; leave it out")
    graphs, y = load_tu(data, vertex=how.vertex, edge_labels=how.edge_labels)
    return Labeled(dataset_name(data), graphs, y)


def dataset_name(name_or_path: str) -> str:
    """Name a TU dataset that was given by name or path."""
    path = Path(name_or_path)
    return path.stem if path.suffix == ".zip" else path.name

"""``fdgnn evaluate`` and ``fdgnn demo``: nested cross-validation, by the paper's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from fdgnn.cli.app import command, command_line, name_options, resumes_from, say, show
from fdgnn.cli.options import (
    AsJson,
    AskedSplit,
    Cluster,
    Data,
    FirstDataOptions,
    Force,
    Jobs,
    ProtocolName,
    Quiet,
    RunDirectory,
    ScoringChoice,
    Seed,
    SomeTargets,
    SplitWords,
    TargetList,
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
    show_run,
)
from fdgnn.files import expanduser
from fdgnn.options import TrainingOptions
from fdgnn.schema import ModelName, ReadOptions, TaskName

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.evaluation.record import Evaluation
    from fdgnn.graphs import GraphBatch
    from fdgnn.targets import Targets

FILE = "evaluation.json"  # in the run directory
_LEAST = 4  # graphs of a class, for two folds inside of two


@command("fdgnn evaluate MUTAG --protocol quick --out runs/mutag")
def evaluate(
    data: Data,
    how: FirstDataOptions,
    choice: ScoringChoice,
    target: SomeTargets = None,
    targets: TargetList = None,
    out: RunDirectory = None,
    model: Annotated[
        ModelName | None,
        typer.Option(
            help="paper is FDGNN as published, and the default for TU datasets. auto, the default "
            "for tables, is the ensemble; wl and union are ensembles of one kind of encoder. "
            "--protocol, --configurations and --units are for paper."
        ),
    ] = None,
    protocol: Annotated[
        ProtocolName | None,
        typer.Option(help="How thorough the search is; by default paper: 100 configurations x 20."),
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
    split: SplitWords = "random",
    splits: Annotated[
        Path | None,
        typer.Option(
            help="JSON file of published splits, as those of Errica et al.: validation graphs "
            "select, then training and validation graphs train, and test graphs score."
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate a model on a dataset by nested cross-validation, as in the paper; resumable."""
    from dataclasses import replace

    from fdgnn.context import Context
    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.evaluation.run import EvaluationTask, Evaluator, evaluate
    from fdgnn.evaluation.splits import read_splits
    from fdgnn.folds import nested_folds
    from fdgnn.training import NestedEvaluation, evaluation_folds

    context, held_out = Context(jobs, quiet, command_line()), AskedSplit.of(split)
    if model is None:
        model = "auto" if is_table(data, how.format) else "paper"
    if model != "paper":
        given = {
            "protocol": protocol, "configurations": configurations,
            "initializations": initializations,
        }  # fmt: skip
        check_unused(given | {"units": units, "cluster": cluster}, model, "paper")
    options = replace(choice, model=model, seed=seed)
    _check_evaluated(options, held_out, splits)
    reading = with_atoms_of(how, model) if is_table(data, how.format) else how
    found = read_labeled(
        data, asked_targets(target, targets), reading, context, columns=held_out.columns,
        task=choice.task, transform=choice.transform,
    )  # fmt: skip
    y = found.targets
    _check_target(found, model, choice.scoring)
    rows = held_out.of_table(found.table, context)
    words = rows.words
    if splits is not None:
        folds, words = read_splits(splits, len(y)), f"published splits ({splits.name})"
    elif model == "paper":
        folds = nested_folds(y.of_target(0), 10, 10, seed)
    else:
        folds = evaluation_folds(y, rows, seed)
    what = EvaluationTask(found.name, found.graphs, y, folds, words, seed, found.smiles, found.ids)
    evaluator: Evaluator
    if model == "paper":
        thorough = PROTOCOLS[protocol or "paper"]
        thorough = replace(
            thorough,
            n_configurations=configurations or thorough.n_configurations,
            n_initializations=initializations or thorough.n_initializations,
        )
        evaluator = PaperEvaluation(what, thorough, units, cluster)
    else:
        evaluator = NestedEvaluation(what, options.with_defaults(y))
    out = out or Path("runs") / found.name
    resumes_from(out)
    run = evaluate(evaluator, out, context)
    _print_result(run.evaluation, as_json, quiet)
    say(f"written to {out / FILE}", quiet)
    if page:
        show_run(run, out, out / "report.html", context)


def _check_evaluated(options: TrainingOptions, split: AskedSplit, splits: Path | None) -> None:
    """Raise ValueError for what the paper's protocol does not have, and for unusable splits."""
    for name in ("scoring", "threshold", "class_weight"):
        if options.model == "paper" and getattr(options, name) is not None:
            raise ValueError(
                f"`{name}` is not for --model paper, whose protocol chooses by accuracy and counts "
                "all errors alike"
            )
    if options.model == "paper" and split != AskedSplit():
        raise ValueError("--split is not for --model paper, whose protocol splits at random")
    if split.name == "time":
        raise ValueError("--split time is for fit; evaluate holds every graph out once")
    if splits is not None and split != AskedSplit():
        raise ValueError("--splits FILE says which graphs are held out; leave --split out")


def _check_target(found: Labeled, model: ModelName, scoring: str | None) -> None:
    """Raise ValueError for a model or a scoring that is not for such targets."""
    import numpy as np

    from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, known_scoring
    from fdgnn.tasks import text_among_numbers

    targets = found.targets
    classify, one, y = targets.classify, len(targets.names) == 1, targets.of_target(0)
    odd = text_among_numbers(y) if classify and one else None
    if odd is not None and np.unique(y, return_counts=True)[1].min() < _LEAST:
        raise ValueError(
            f"the target is inferred to be classes because {odd!r} is not a number, and classes "
            "have too few graphs for cross-validation; for regression, choose --task regression"
        )
    if model == "paper" and not (classify and one):
        raise ValueError(
            "--model paper is for classes of one target, as the paper's protocol is; choose "
            "--model auto"
        )
    if scoring is not None and known_scoring(scoring, not classify) is not None:
        this, other = ("classes", "numbers") if classify else ("numbers", "classes")
        names = ", ".join(OF_CLASSES if classify else OF_NUMBERS)
        guessed = found.table is not None and y.dtype.kind in "iuf"
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
    from fdgnn.datasets import load_tu, make_motif_graphs
    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.evaluation.run import EvaluationTask, evaluate
    from fdgnn.exceptions import DatasetError
    from fdgnn.folds import nested_folds
    from fdgnn.tasks import one_target

    if page is not None:
        check_outputs(force, page)
        check_page(page)
    try:
        name, (graphs, y) = "MUTAG", load_tu("MUTAG", download_if_missing=False)
    except DatasetError:
        say("MUTAG was not found (no data home, no GraKeL): using generated graphs")
        name, (graphs, y) = "generated motif graphs", make_motif_graphs(200, random_state=0)
    targets, quick = one_target(y, "classification"), PROTOCOLS["quick"]
    task = EvaluationTask(name, graphs, targets, nested_folds(y, 10, 10, 0))
    say(f"{name}: {graphs!r}", quiet)
    say(
        f"{quick.n_configurations} configurations x {quick.n_initializations} random "
        "initializations, 10 outer x 10 inner folds",
        quiet,
    )
    with TemporaryDirectory() as directory:
        context = Context(jobs, quiet, command_line())
        run = evaluate(PaperEvaluation(task, quick), Path(directory), context)
        _print_result(run.evaluation, as_json, quiet)
        if page is None:
            say("to see a page about it: fdgnn demo --report demo.html", quiet)
        else:
            show_run(run, Path(directory), page, context, required=True)


def _print_result(found: Evaluation, as_json: bool, quiet: bool) -> None:
    if as_json:
        from fdgnn.records import encode

        show(encode(found).decode())
        return
    from fdgnn.cli.tables import evaluation_lines

    for line in evaluation_lines(found):
        show(line)
    for note in map(name_options, found.notes):
        say(note, quiet)


# ---------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Labeled:
    """Graphs with targets; `table` is what they were read from, if it is one."""

    name: str
    graphs: GraphBatch
    targets: Targets
    table: GraphTable | None = None

    @property
    def smiles(self) -> Sequence[str] | None:
        """The SMILES that molecules were read from."""
        return None if self.table is None else self.table.smiles

    @property
    def ids(self) -> Sequence[object] | None:
        """The names of the graphs, if they have some."""
        return None if self.table is None else [self.table.ids[row] for row in self.table.rows]


def read_labeled(
    data: str,
    target: str | list[str] | None,
    how: ReadOptions,
    context: Context,
    *,
    columns: Sequence[str] = (),
    task: TaskName | None = None,
    transform: str | None = None,
) -> Labeled:
    """Read a TU dataset, or a table with targets; invalid rows are reported and left out.

    Whether the targets of a table are classes or numbers is inferred, unless `task` says it.
    """
    from fdgnn.datasets import read_graphs
    from fdgnn.tasks import table_targets

    if not is_table(data, how.format):
        return _tu_dataset(data, {"target": target, "task": task, "transform": transform}, how)
    table = read_graphs(
        data, how, target=target, numeric=task == "regression", columns=list(columns)
    )
    report_rejects(table.rejects, table.n_rows, context)
    graphs, targets = table_targets(table, task)
    return Labeled(dataset_of(data), graphs, targets.transformed(transform), table)


def is_table(data: str, format: str | None) -> bool:
    """Return whether data is a table rather than a TU dataset, or raise an error for no file."""
    from fdgnn.datasets.files import recognize

    path = expanduser(data)
    is_file = data == "-" or path.exists() or path.suffix != ""  # names of TU datasets have none
    return is_file and recognize(data, format).format != "tu"


def _tu_dataset(data: str, asked: Mapping[str, object], how: ReadOptions) -> Labeled:
    from fdgnn.datasets import load_tu
    from fdgnn.tasks import one_target

    given = [name for name, value in asked.items() if value]
    given += msgspec.to_builtins(msgspec.structs.replace(how, vertex="auto", edge_labels="auto"))
    if given:
        raise ValueError(f"`{given[0]}` is for tables, and {data} is a TU dataset; leave it out")
    graphs, y = load_tu(data, vertex=how.vertex, edge_labels=how.edge_labels)
    return Labeled(dataset_name(data), graphs, one_target(y, "classification"))


def dataset_name(name_or_path: str) -> str:
    """Name a TU dataset that was given by name or path."""
    path = Path(name_or_path)
    return path.stem if path.suffix == ".zip" else path.name

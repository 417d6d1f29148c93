"""``fdgnn evaluate``, ``compare`` and ``demo``: nested cross-validation in a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from fdgnn.cli import options as opt
from fdgnn.cli.app import command, name_options, resumes_from, say, show
from fdgnn.cli.output import check_outputs, report_rejects
from fdgnn.cli.pages import PageFile, WantPage, dataset_of, show_run
from fdgnn.files import expanduser
from fdgnn.options import TrainingOptions
from fdgnn.schema import ModelName, ReadOptions

if TYPE_CHECKING:
    from fdgnn.evaluation.record import Evaluation
    from fdgnn.evaluation.run import EvaluationTask
    from fdgnn.targets import Targets

FILE = "evaluation.json"  # in the run directory
Positive = Annotated[int | None, typer.Option(min=1)]
_LEAST = 4  # graphs of a class, for two folds inside of two


@command("fdgnn evaluate MUTAG --protocol quick --out runs/mutag")
def evaluate(
    data: opt.Data,
    how: opt.FirstDataOptions,
    choice: opt.ScoringChoice,
    asked: opt.TargetChoice,
    run: opt.RunChoice,
    out: opt.RunDirectory = None,
    model: ModelName | None = None,
    protocol: opt.ProtocolName | None = None,
    configurations: Positive = None,
    initializations: Positive = None,
    units: Positive = None,
    splits: Path | None = None,
    cluster: opt.Cluster = None,
    page: WantPage = True,
) -> None:
    """Evaluate a model by nested cross-validation.

    An interrupted run resumes when the command is repeated.

    Parameters
    ----------
    model : str, default=paper for TU datasets, auto for tables
        "paper" is FDGNN as published, with the options --protocol, --configurations and --units.
        "auto" is the ensemble of a few base models; "wl" and "union" are ensembles of one kind of
        encoder.
    protocol : str, default=paper
        How thorough the search is. "paper" is 100 configurations with 20 random initializations
        each; "quick" has fewer of both.
    configurations : int, default=set by the protocol
        Number of random configurations.
    initializations : int, default=set by the protocol
        Number of random initializations of each configuration.
    units : int, default=as in the paper
        Units in each layer.
    splits : path
        JSON file of splits in the format of Errica et al.: models are selected on validation
        graphs, trained on training and validation graphs, and scored on test graphs.
    """
    from dataclasses import replace

    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.evaluation.run import evaluate as evaluate_in
    from fdgnn.folds import N_FOLDS
    from fdgnn.training import NestedEvaluation, check_model

    if model is None:
        model = "auto" if is_table(data, how.format) else "paper"
    if model == "paper":
        for name in ("scoring", "threshold", "class_weight"):
            if getattr(choice, name) is not None:
                raise ValueError(
                    f"`{name}` is not for --model paper, whose protocol chooses by accuracy and "
                    "counts all errors alike"
                )
        if opt.SplitOption.of(asked.split) != opt.SplitOption():
            raise ValueError("--split is not for --model paper, whose protocol splits at random")
    else:
        given = {
            "protocol": protocol, "configurations": configurations,
            "initializations": initializations, "units": units, "cluster": cluster,
        }  # fmt: skip
        opt.check_unused(given, model, "paper")
    options = replace(choice, model=model, seed=run.random_state)
    check_model(options)
    n_inner = 10 if model == "paper" else N_FOLDS
    task = read_task(data, how, asked, options, run, n_inner, splits)
    evaluator: PaperEvaluation | NestedEvaluation
    if model == "paper":
        thorough = PROTOCOLS[protocol or "paper"]
        thorough = replace(
            thorough,
            n_configurations=configurations or thorough.n_configurations,
            n_initializations=initializations or thorough.n_initializations,
        )
        evaluator = PaperEvaluation(task, thorough, units, cluster)
    else:
        evaluator = NestedEvaluation(task, options.with_defaults(task.targets))
    out = out or Path("runs") / task.dataset
    resumes_from(out)
    done = evaluate_in(evaluator, out, run.context)
    _print_results(done.evaluation, run)
    say(f"written to {out / FILE}", run.quiet)
    if page:
        show_run(done, out, out / "report.html", run.context)


@command("fdgnn compare molecules.csv --target active --time-limit 300")
def compare(
    data: opt.Data,
    how: opt.FirstDataOptions,
    choice: Annotated[
        TrainingOptions,
        opt.library_options(
            TrainingOptions, "Targets and metrics", "task", "scoring", "class_weight", "transform"
        ),
    ],
    asked: opt.TargetChoice,
    run: opt.RunChoice,
    methods: Annotated[str | None, typer.Option("--with")] = None,
    out: opt.RunDirectory = None,
    protocol: opt.ProtocolName = "quick",
    configurations: Positive = None,
    inner_folds: Positive = None,
    choose_epochs: Annotated[bool, typer.Option("--choose-epochs/--all-epochs")] = True,
    time_limit: Annotated[float, typer.Option(min=1)] = 600.0,
    memory_limit: Annotated[float, typer.Option(min=1)] = 4000.0,
    page: WantPage = True,
) -> None:
    """Compare scores, time, memory and size of methods on the same folds.

    An interrupted run resumes when the command is repeated.

    Parameters
    ----------
    methods : str
        Methods, separated by commas: fdgnn-auto, fdgnn-wl, fdgnn-union, labels-rf, ecfp-lr,
        ecfp-rf, ecfp-gb, desc-rf, desc-gb, and for classification also wl, wl-oa, pk, gk, rw, gin,
        dgcnn, gnn. By default fdgnn-auto, labels-rf, wl; for molecules fdgnn-auto,
        ecfp-lr, ecfp-rf, desc-gb.
    protocol : str
        How thorough the hyperparameter search of the paper's model is.
    configurations : int, default=all
        Points of each method's grid to try.
    inner_folds : int, default=all for kernels, 1 for networks
        Inner folds to validate on.
    choose_epochs : bool
        Select the number of epochs of networks, or train for all published epochs.
    time_limit : float
        Seconds per method.
    memory_limit : float
        Megabytes per method.
    """
    from dataclasses import replace

    from fdgnn.evaluation.baselines import check_method
    from fdgnn.evaluation.comparison import Limits, Search, compare_methods
    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.training import check_model

    search = Search(
        n_configurations=configurations, inner_folds=inner_folds, choose_epochs=choose_epochs,
        scoring=choice.scoring, class_weight=choice.class_weight,
    )  # fmt: skip
    named = None
    if methods is not None:
        named = [name.strip().lower() for name in methods.split(",") if name.strip()]
        if not named:
            raise ValueError("--with is empty: name at least one method, or leave it out")
    check_model(choice)
    for name in named or ():  # before the graphs are read, which may take long
        check_method(name)
    if isinstance(asked.names, list):
        raise ValueError(f"--target names {len(asked.names)} columns; compare takes one")
    if how.vertex == "auto":  # all methods read the same: graph kernels and networks take labels
        how = msgspec.structs.replace(how, vertex="either")
    task = read_task(data, how, asked, choice, run, 10)
    out = out or Path("runs") / task.dataset
    resumes_from(out)
    limits = Limits(seconds=time_limit, megabytes=memory_limit)
    compared = compare_methods(
        task, out, named, run.context, PROTOCOLS[protocol], search=search, limits=limits
    )
    _print_results(compared, run)
    say(f"written to {out / FILE}", run.quiet)
    if page:
        done = None
        if compared[0].model.name == "paper" and compared[0].status == "finished":
            ours = PaperEvaluation(task, PROTOCOLS[protocol])  # from its checkpoints
            done = ours.run(out / "parts", replace(run.context, quiet=True))
        show_run(done, out, out / "report.html", run.context)
    states = {each.status for each in compared}
    if "failed" in states or "finished" not in states:
        raise typer.Exit(1)


@command("fdgnn demo")
def demo(
    n_jobs: opt.Jobs = -1,
    page: PageFile = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Evaluate FDGNN on MUTAG by nested cross-validation, in about a minute."""
    from tempfile import TemporaryDirectory

    from fdgnn.datasets import load_tu, make_motif_graphs
    from fdgnn.evaluation.protocol import PROTOCOLS, PaperEvaluation
    from fdgnn.evaluation.run import EvaluationTask
    from fdgnn.evaluation.run import evaluate as evaluate_in
    from fdgnn.exceptions import DatasetError
    from fdgnn.folds import Split
    from fdgnn.tasks import one_target

    if page is not None:
        check_outputs(force, page)
        from fdgnn.html.report import check_report

        check_report(page)
    try:
        name, (graphs, y) = "MUTAG", load_tu("MUTAG", download_if_missing=False)
    except DatasetError:
        say("MUTAG is neither in the data directory nor in GraKeL: using generated graphs")
        name, (graphs, y) = "generated motif graphs", make_motif_graphs(200, random_state=0)
    targets, quick = one_target(y, "classification"), PROTOCOLS["quick"]
    task = EvaluationTask(name, graphs, targets, Split().nested(targets, 10, 10))
    say(f"{name}: {graphs!r}", quiet)
    say(
        f"{quick.n_configurations} configurations x {quick.n_initializations} random "
        "initializations, 10 outer x 10 inner folds",
        quiet,
    )
    with TemporaryDirectory() as directory:
        run = opt.RunOptions(0, n_jobs, quiet, as_json)
        done = evaluate_in(PaperEvaluation(task, quick), Path(directory), run.context)
        _print_results(done.evaluation, run)
        if page is None:
            say("for an HTML report: fdgnn demo --report demo.html", quiet)
        else:
            show_run(done, Path(directory), page, run.context, required=True)


def _print_results(found: Evaluation | Sequence[Evaluation], run: opt.RunOptions) -> None:
    """Print an evaluation with its notes, or the table of a comparison."""
    from fdgnn.cli.output import comparison_lines, evaluation_lines
    from fdgnn.records import encode

    if run.as_json:
        lines = [encode(found).decode()]
    elif isinstance(found, Sequence):
        lines = comparison_lines(found)
    else:
        lines = evaluation_lines(found)
    for line in lines:
        show(line)
    if not (run.as_json or isinstance(found, Sequence)):
        for note in map(name_options, found.notes):
            say(note, run.quiet)


# ---------------------------------------------------------------------- reading


def read_task(
    data: str,
    how: ReadOptions,
    asked: opt.TargetOptions,
    options: TrainingOptions,
    run: opt.RunOptions,
    n_inner: int,
    splits: Path | None = None,
) -> EvaluationTask:
    """Read a TU dataset, or a table with targets, and make its folds.

    Invalid rows of a table are reported and left out. Whether its targets are classes or numbers is
    inferred, unless the options say it.
    """
    from fdgnn.datasets import load_tu, read_graphs
    from fdgnn.evaluation.run import EvaluationTask
    from fdgnn.evaluation.splits import read_splits
    from fdgnn.tasks import one_target, table_targets

    held_out, context, table = opt.SplitOption.of(asked.split), run.context, None
    reading = opt.with_vertices_of(how, options.model)
    if held_out.name == "time":
        raise ValueError("--split time is for fit; an evaluation holds every graph out once")
    if splits is not None and held_out != opt.SplitOption():
        raise ValueError("--splits FILE defines the held-out graphs; leave --split out")
    if is_table(data, how.format):
        name = dataset_of(data)
        table = read_graphs(
            data, reading, target=asked.names,
            numeric=options.task == "regression", columns=held_out.columns,
        )  # fmt: skip
        report_rejects(table.rejects, table.n_rows, context)
        graphs, targets = table_targets(table, options.task)
        if options.task is None:
            _check_inferred(targets, options)
        targets = targets.transformed(options.transform)
    else:
        path = Path(data)
        name = path.stem if path.suffix == ".zip" else path.name
        given = {"target": asked.names, "task": options.task, "transform": options.transform}
        names = [option for option, value in given.items() if value]
        of_tables = msgspec.structs.replace(how, vertex="auto", edge_labels="auto")
        names += msgspec.to_builtins(of_tables)
        if names:
            raise ValueError(
                f"`{names[0]}` is for tables, and {data} is a TU dataset; leave it out"
            )
        graphs, y = load_tu(data, how, vertex=reading.vertex)
        targets = one_target(y, "classification")
    if options.model == "paper" and not (targets.classify and len(targets.names) == 1):
        raise ValueError(
            "--model paper is for classes of one target, as the paper's protocol is; choose "
            "--model auto"
        )
    split = held_out.of_table(table, context)
    words = split.words
    if splits is not None:
        folds, words = read_splits(splits, len(targets)), f"published splits ({splits.name})"
    else:
        folds = split.nested(targets, 10, n_inner, run.random_state)
    ids = None if table is None else [table.ids[row] for row in table.rows]
    return EvaluationTask(name, graphs, targets, folds, words, run.random_state, ids)


def is_table(data: str, format: str | None) -> bool:
    """Return whether data is a table rather than a TU dataset, or raise an error for no file."""
    from fdgnn.datasets.files import recognize

    path = expanduser(data)
    is_file = data == "-" or path.exists() or path.suffix != ""  # names of TU datasets have none
    return is_file and recognize(data, format)[0] != "tu"


def _check_inferred(targets: Targets, options: TrainingOptions) -> None:
    """Raise ValueError where another task than the inferred one is likely to be meant."""
    import numpy as np

    from fdgnn.metrics import known_scoring
    from fdgnn.tasks import text_among_numbers

    y, scoring = targets.of_target(0), options.scoring
    odd = text_among_numbers(y) if len(targets.names) == 1 else None
    if odd is not None and np.unique(y, return_counts=True)[1].min() < _LEAST:
        raise ValueError(
            f"the target is inferred to be classes because {odd!r} is not a number, and classes "
            "have too few graphs for cross-validation; for regression, choose --task regression"
        )
    kinds = ("classification", "regression")
    inferred, other = kinds if targets.classify else kinds[::-1]
    of_other = scoring is not None and known_scoring(scoring, not targets.classify) is not None
    if of_other and y.dtype.kind in "iuf":
        raise ValueError(
            f"--scoring {scoring} is for {other}, and {inferred} is inferred from the target; "
            f"choose another metric, or --task {other}"
        )

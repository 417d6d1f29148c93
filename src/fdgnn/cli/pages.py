"""``fdgnn report``, ``playground`` and ``serve``, and the page at the end of a command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from fdgnn.cli.app import command, command_line, one_line, say
from fdgnn.cli.options import (
    AsJson,
    Coverage,
    DataOptions,
    FirstDataOptions,
    Force,
    Model,
    Quiet,
    Seed,
    SomeTargets,
    TargetList,
    asked_targets,
)
from fdgnn.cli.output import check_outputs, read_all
from fdgnn.schema import ReadOptions
from fdgnn.texts import counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.evaluation.run import EvaluationRun
    from fdgnn.html.report import Subject
    from fdgnn.html.report_data import ReportData

WantPage = Annotated[
    bool, typer.Option("--report/--no-report", help="Write a report page into the directory.")
]
PageOutput = Annotated[
    Path, typer.Option("--output", "--out", "-o", help="The HTML file to write.")
]
Title = Annotated[str | None, typer.Option(help="The title of the page.")]
PageFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report page into this HTML file.")
]


def check_page(output: Path) -> None:
    """Raise an error before the work if the report that `--report FILE` names cannot be written."""
    from fdgnn.html.report import check_report

    check_report(output)


def show_run(
    run: EvaluationRun | None,
    directory: Path,
    output: Path,
    context: Context,
    *,
    required: bool = False,
) -> None:
    """Write the report of a run directory, with report data of an evaluation if there is one."""
    with page_at(output, context, required=required):
        from fdgnn.html.collect import run_data
        from fdgnn.html.report import write_report
        from fdgnn.html.report_data import write_report_data

        if run is not None:
            data = run_data(run, command=context.command)
            write_report_data(directory / "report.json", data)
        write_report(directory, output)


@contextmanager
def page_at(output: Path, context: Context, *, required: bool = False) -> Iterator[None]:
    """Report where the page is that is written inside of the context.

    A failure is only reported, since the results are there, unless the page is `required` because
    the user named its file.
    """
    from fdgnn.exceptions import FDGNNError, StudyError

    try:
        yield
    except (FDGNNError, OSError, ValueError) as error:
        if required:
            raise StudyError(f"no report page: {one_line(error)}") from error
        say(f"no report page: {one_line(error)}")
    else:
        say(f"report page: {output}", context.quiet)


def model_data(
    model: Any, table: GraphTable, dataset: str, context: Context, *, unseen: bool = False
) -> list[ReportData]:
    """Compute the report data of a model on the graphs of a table, of each target they have."""
    from fdgnn.html.report_data import TARGETS

    several = len(model.targets_) > 1
    known = [each.name for each in model.targets_] if several else []
    names = list(table.targets) or known
    if names[TARGETS:]:
        say(
            f"the page shows {TARGETS} of {len(names)} targets, and scores of all; to see "
            f"others: fdgnn report with --target {names[TARGETS]}",
            context.quiet,
        )
    if not several:
        return [_target_data(model, table, dataset, "", context, unseen=unseen)]
    return [
        _target_data(
            model.for_target(name),
            table.of_target(name) if table.targets else table,
            dataset,
            name,
            context,
            unseen=unseen,
        )
        for name in names[:TARGETS]
    ]


def _target_data(
    model: Any, table: GraphTable, dataset: str, target: str, context: Context, *, unseen: bool
) -> ReportData:
    """Compute the report data of a model on those graphs of a table that it can take."""
    import numpy as np

    from fdgnn.exceptions import GraphError
    from fdgnn.html.collect import report_data

    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be used; {table.rejects[0]}")
    reasons = model.valid_graphs(table.graphs).errors
    valid = np.setdiff1d(np.arange(len(table.graphs)), list(reasons))
    if len(valid) == 0:
        raise GraphError(f"the model can use none of the graphs; {next(iter(reasons.values()))}")
    left_out = table.n_rows - len(valid)
    note = (
        f"{left_out} of {table.n_rows} rows left out, because they cannot be used or have no "
        "known target."
    )
    return report_data(
        model,
        table.graphs[valid],
        None if table.y is None else table.y[valid],
        dataset=dataset,
        target=target,
        unseen=unseen,
        ids=[table.ids[row] for row in table.rows[valid]],
        smiles=None if table.smiles is None else [table.smiles[g] for g in valid],
        command=context.command,
        notes=[note] if left_out else [],
    )


def dataset_of(data: str) -> str:
    """The name of graphs that were given by name or path."""
    if data == "-":
        return "standard input"
    return Path(data).stem if Path(data).exists() else data


@command("fdgnn report runs/MUTAG runs/PROTEINS -o report.html")
def report(
    subjects: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories of 'evaluate' or 'compare', and model files.",
            metavar="RUN_OR_MODEL",
        ),
    ],
    how: DataOptions,
    output: PageOutput = Path("report.html"),
    data: Annotated[
        str | None,
        typer.Option(help="Graphs to try the model files on: a name, file or folder."),
    ] = None,
    target: SomeTargets = None,
    targets: TargetList = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="The models have not seen these graphs in training.")
    ] = False,
    title: Title = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about runs and models: one HTML file that needs no network to be read."""
    from fdgnn.context import Context
    from fdgnn.html.report import check_report, write_report

    check_outputs(force, output, inputs=list(subjects))
    check_report(output)
    context = Context(quiet=quiet, command=command_line())
    found: list[Path | Subject] = list(subjects)
    how = msgspec.structs.replace(how, target=asked_targets(target, targets))
    if data is None:
        given = [f"`{name}`" for name in msgspec.to_builtins(how)] + ["--held-out"] * held_out
        if given:
            raise ValueError(f"{', '.join(given)}: only useful with --data; add it, or leave out")
    else:
        if all(map(Path.is_dir, subjects)):  # paths that do not exist are reported later
            raise ValueError("--data is for model files, but none is named; leave it out")
        found = [one for s in subjects for one in _with_data(s, data, how, held_out, context)]
    path = write_report(found, output, title=title)
    _print_written(path, quiet, as_json)


def _print_written(path: Path, quiet: bool, as_json: bool) -> None:
    size = path.stat().st_size
    say(f"written to {path}, {size / 1e6:.1f} MB; open it in a browser", quiet)
    if as_json:
        typer.echo(json.dumps({"output": str(path), "bytes": size}))


def _with_data(
    path: Path, data: str, how: ReadOptions, unseen: bool, context: Context
) -> Sequence[Path | Subject]:
    """Try a model file on the data; run directories have report data of their own."""
    if not path.is_file():
        return [path]
    from sklearn.base import is_classifier

    from fdgnn.datasets import read_graphs
    from fdgnn.html.report import model_subjects
    from fdgnn.prediction.predictor import load_predictor

    model = load_predictor(path)
    several = len(model.targets_) > 1
    if how.has_several and not several:
        raise ValueError("the model has one target; name one column by --target")
    target = how.targets or None if several else how.target
    table = read_graphs(data, how, like=model, target=target, numeric=not is_classifier(model))
    if table.graphs is not None:
        n_graphs = counted(len(table.graphs), "graph")
        say(f"{path.name} predicts {n_graphs}, which may take some seconds", context.quiet)
    known = model_data(model, table, dataset_of(data), context, unseen=unseen)
    if table.y is None:
        say(
            f"{data}: no column has targets, so the page shows no accuracy; name the "
            "column with --target if there is one",
            context.quiet,
        )
    for note in dict.fromkeys(note for one in known for note in one.notes):
        say(note)
    return model_subjects(path, known)


@command("fdgnn playground MUTAG -o play.html")
def playground(
    subject: Annotated[
        str,
        typer.Argument(
            help="A model file; or graphs with targets, as for 'fit', to which a model is "
            "fitted in a moment.",
            metavar="MODEL_OR_DATASET",
        ),
    ],
    how: FirstDataOptions,
    output: PageOutput = Path("play.html"),
    data: Annotated[
        str | None,
        typer.Option(help="Graphs to choose from beside a model file: a name, file or folder."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column with the targets; of a model of several targets, which."),
    ] = None,
    title: Title = None,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write an HTML page in which a model runs: change graphs, watch it, train by sliders."""
    from fdgnn.html.page import check_jinja
    from fdgnn.html.playground import fit_model, write

    check_outputs(force, output, inputs=[subject])
    check_jinja()
    model = _model_of(subject)
    if model is None and data is not None:
        raise ValueError("--data is for model files; the first argument has the graphs already")
    source = subject if model is None else data
    if source is None:
        graphs, answers, more = None, None, dict[str, Any]()
    else:
        several = model is not None and len(model.targets_) > 1
        named = [target] if several and target is not None else target
        table, _ = read_all(source, how, model, named)
        graphs, answers = _answered(table, model, target)
        more = _described(table, source, how, target) | {"dataset": dataset_of(source)}
        if answers is None:
            say(
                f"{source}: no column has targets, so the page cannot train; name the "
                "column with --target if there is one",
                quiet,
            )
    if model is not None and title is None and source is not None:
        title = f"A model to play with, and graphs of {dataset_of(source)}"
    if model is None:
        say(f"fitting a model to {graphs!r} ...", quiet)
        model = fit_model(graphs, answers, classify=answers is None or answers.classify, seed=seed)
        say(f"fitted {counted(len(model.estimators_), 'model')} to {graphs!r}", quiet)
        answers = answers.of_target(0) if answers is not None and answers.flat else None
    path = write(output, model, graphs, answers, target=target, title=title, **more)
    _print_written(path, quiet, as_json)


def _model_of(subject: str) -> Any:
    """Load a model file; None if it is none, and so a file of graphs or a name."""
    from fdgnn.exceptions import ModelFileError
    from fdgnn.prediction.predictor import load_predictor

    if not Path(subject).is_file():
        return None
    try:
        return load_predictor(subject)
    except ModelFileError:
        if Path(subject).suffix == ".fdgnn":
            raise
        return None


def _answered(table: GraphTable, model: Any, target: str | None) -> tuple[Any, Any]:
    """Return graphs and targets; without a model there must be some."""
    from fdgnn.tasks import table_targets

    if model is None:
        return table_targets(table)
    if len(model.targets_) > 1 and target is not None and table.targets:
        table = table.of_target(target)
    return table.graphs, table.y


def _described(
    table: GraphTable, source: str, how: ReadOptions, target: str | None
) -> dict[str, Any]:
    """Names and SMILES of the graphs, and the Python that reads them."""
    if table.schema is not None and table.schema.source == "tu":
        code = [
            "from fdgnn import FDGNNClassifier, load_tu",
            f"graphs, y = load_tu({source!r})",
        ]
    else:
        given = {"target": target} | _of_molecules(table) | msgspec.to_builtins(how)
        usual = (None, False, "auto", "drop")
        words = "".join(f", {name}={v!r}" for name, v in given.items() if v not in usual)
        code = [
            "from fdgnn import FDGNNClassifier, read_graphs",
            f"table = read_graphs({source!r}{words})",
            "graphs, y = table.graphs, table.y",
        ]
    ids = [table.ids[row] for row in table.rows]
    return {"ids": ids, "smiles": table.smiles, "code": code}


def _of_molecules(table: GraphTable) -> dict[str, Any]:
    """Arguments of `read_graphs` that read molecules as these were; nothing for other graphs."""
    schema = table.schema
    if schema is None or schema.atoms is None:
        return {}
    bonds = "auto" if schema.edge_labels == "labels" else schema.edge_labels
    return {
        "smiles_column": schema.smiles_column,
        "atoms": schema.atoms,
        "edge_labels": bonds,
        "standardize": schema.standardize,
        "stereo": schema.stereo,
    }


@command("fdgnn serve model.fdgnn --port 8000 --workers 2")
def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of the machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer requests.")] = 1,
    coverage: Coverage = None,
) -> None:
    """Serve predictions over HTTP: POST /predict with SMILES or graphs as JSON.

    The schema is at /openapi.json, the state at /health, and counts for Prometheus at /metrics.
    """
    from fdgnn.service import serve

    serve(model, host=host, port=port, n_workers=workers, coverage=coverage)

"""``fdgnn report``, ``playground`` and ``serve``, and the page at the end of a command."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from fdgnn.cli import options as opt
from fdgnn.cli.app import command, command_line, one_line, say
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
    bool, typer.Option("--report/--no-report", help="Write an HTML report to the directory.")
]
Output = Annotated[Path, typer.Option("--output", "--out", "-o", help="The HTML file to write.")]
Title = Annotated[str | None, typer.Option(help="The title of the page.")]
BesideModel = Annotated[
    str | None, typer.Option(help="Graphs for a model file: a name, file or folder.")
]
PageFile = Annotated[
    Path | None, typer.Option("--report", help="Write an HTML report to this file.")
]


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
            raise StudyError(f"no HTML report: {one_line(error)}") from error
        say(f"no HTML report: {one_line(error)}")
    else:
        say(f"HTML report: {output}", context.quiet)


def model_data(
    model: Any, table: GraphTable, dataset: str, context: Context, *, unseen: bool = False
) -> list[ReportData]:
    """Compute the report data of a model on the graphs of a table, of each target they have."""
    from fdgnn.exceptions import GraphError
    from fdgnn.html.collect import report_data
    from fdgnn.html.report_data import TARGETS
    from fdgnn.prediction.predictor import valid_rows

    several = len(model.targets_) > 1
    names = list(table.targets) or ([each.name for each in model.targets_] if several else [])
    if names[TARGETS:]:
        say(
            f"the page shows {TARGETS} of {len(names)} targets, and scores of all; to see "
            f"others: fdgnn report with --target {names[TARGETS]}",
            context.quiet,
        )
    found = []
    for name in names[:TARGETS] if several else [""]:
        own = table.of_target(name) if name and table.targets else table
        fitted = model.for_target(name) if name else model
        valid, rejects = valid_rows(fitted, own)
        if own.graphs is None or len(valid) == 0:
            raise GraphError(f"none of the {own.n_rows} rows can be used; {rejects[0]}")
        left_out = own.n_rows - len(valid)
        note = (
            f"{left_out} of {own.n_rows} rows left out, because they cannot be used or have no "
            "known target."
        )
        data = report_data(
            fitted,
            own.graphs[valid],
            None if own.y is None else own.y[valid],
            dataset=dataset,
            target=name,
            unseen=unseen,
            ids=[own.ids[row] for row in own.rows[valid]],
            smiles=None if own.smiles is None else [own.smiles[g] for g in valid],
            command=context.command,
            notes=[note] if left_out else [],
        )
        found.append(data)
    return found


def dataset_of(data: str) -> str:
    """Return the name of graphs that were given by name or path."""
    if data == "-":
        return "standard input"
    return Path(data).stem if Path(data).exists() else data


@command("fdgnn report runs/MUTAG runs/PROTEINS -o report.html")
def report(
    subjects: Annotated[list[Path], typer.Argument(metavar="RUN_OR_MODEL")],
    how: opt.DataOptions,
    asked: Annotated[
        opt.TargetOptions, opt.library_options(opt.TargetOptions, "Options", "target", "targets")
    ],
    output: Output = Path("report.html"),
    data: BesideModel = None,
    held_out: Annotated[bool, typer.Option("--held-out")] = False,
    title: Title = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write an HTML report of runs and models: one file without external resources.

    Parameters
    ----------
    subjects : list of path
        Run directories of 'evaluate' or 'compare', and model files.
    held_out : bool
        None of these graphs was in the training data. Training molecules among them are reported.
    """
    from fdgnn.context import Context
    from fdgnn.html.report import check_report, write_report

    check_outputs(force, output, inputs=list(subjects))
    check_report(output)
    context = Context(quiet=quiet, command=command_line())
    found: list[Path | Subject] = list(subjects)
    how = msgspec.structs.replace(how, target=asked.names)
    if data is None:
        given = [f"`{name}`" for name in msgspec.to_builtins(how)] + ["--held-out"] * held_out
        if given:
            raise ValueError(f"{', '.join(given)}: only useful with --data; add it, or leave out")
    else:
        if all(map(Path.is_dir, subjects)):  # paths that do not exist are reported later
            raise ValueError("--data is for model files, but none is named; leave it out")
        found = [one for s in subjects for one in _with_data(s, data, how, held_out, context)]
    _print_written(write_report(found, output, title=title), quiet, as_json)


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
        say(f"predicting {n_graphs} with {path.name}, which may take some seconds", context.quiet)
    known = model_data(model, table, dataset_of(data), context, unseen=unseen)
    _say_without_targets(table, data, "show scores", context.quiet)
    for note in dict.fromkeys(note for one in known for note in one.notes):
        say(note)
    return model_subjects(path, known)


@command("fdgnn playground MUTAG -o play.html")
def playground(
    subject: Annotated[str, typer.Argument(metavar="MODEL_OR_DATASET")],
    how: opt.FirstDataOptions,
    output: Output = Path("play.html"),
    data: BesideModel = None,
    target: str | None = None,
    title: Title = None,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write an HTML page in which the model runs: edit graphs, see predictions, tune by sliders.

    Parameters
    ----------
    subject : str
        A model file; or graphs with targets, as for 'fit', to which a small model is fitted.
    target : str
        Column with the targets; for a model of several targets, the one to show.
    """
    from fdgnn.html.page import check_jinja
    from fdgnn.html.playground import fit_model, write
    from fdgnn.tasks import table_targets

    check_outputs(force, output, inputs=[subject])
    check_jinja()
    model = _model_of(subject)
    if model is None and data is not None:
        raise ValueError("--data is for model files; the first argument has the graphs already")
    source = subject if model is None else data
    graphs: Any = None
    answers: Any = None
    more: dict[str, Any] = {}
    if source is not None:
        several = model is not None and len(model.targets_) > 1
        table, _ = read_all(source, how, model, [target] if several and target else target)
        if several and target is not None and table.targets:
            table = table.of_target(target)
        graphs, answers = table.graphs, table.y
        more = _described(table, source, how, target) | {"dataset": dataset_of(source)}
    if model is not None and source is not None:
        title = title or f"Playground: a model and graphs of {dataset_of(source)}"
        _say_without_targets(table, source, "train", quiet)
    if model is None:
        graphs, answers = table_targets(table)
        say(f"fitting a model to {graphs!r} ...", quiet)
        model = fit_model(graphs, answers, classify=answers is None or answers.classify, seed=seed)
        say(f"fitted {counted(len(model.estimators_), 'model')} to {graphs!r}", quiet)
        answers = answers.of_target(0) if answers is not None and answers.flat else None
    path = write(output, model, graphs, answers, target=target, title=title, **more)
    _print_written(path, quiet, as_json)


def _say_without_targets(table: GraphTable, source: str, lost: str, quiet: bool) -> None:
    if table.y is None and not table.targets:
        say(
            f"{source}: no column has targets, so the page cannot {lost}; name the column with "
            "--target if there is one",
            quiet,
        )


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


def _described(
    table: GraphTable, source: str, how: ReadOptions, target: str | None
) -> dict[str, Any]:
    """Return names and SMILES of the graphs, and the Python that reads them."""
    schema = table.schema
    if schema is not None and schema.source == "tu":
        code = ["from fdgnn import FDGNNClassifier, load_tu", f"graphs, y = load_tu({source!r})"]
    else:
        given: dict[str, Any] = {"target": target}
        if schema is not None and schema.atoms is not None:
            names = ("smiles_column", "atoms", "edge_labels", "standardize", "stereo")
            given |= {name: getattr(schema, name) for name in names}
            if schema.edge_labels == "labels":
                given["edge_labels"] = "auto"
        given |= msgspec.to_builtins(how)
        usual = (None, False, "auto", "drop")
        words = "".join(f", {name}={v!r}" for name, v in given.items() if v not in usual)
        code = [
            "from fdgnn import FDGNNClassifier, read_graphs",
            f"table = read_graphs({source!r}{words})",
            "graphs, y = table.graphs, table.y",
        ]
    ids = [table.ids[row] for row in table.rows]
    return {"ids": ids, "smiles": table.smiles, "code": code}


@command("fdgnn serve model.fdgnn --port 8000 --workers 2")
def serve(
    model: opt.Model,
    host: str = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    workers: Annotated[int, typer.Option(min=1)] = 1,
    coverage: opt.Coverage = None,
) -> None:
    """Serve predictions over HTTP: POST /predict with SMILES or graphs as JSON.

    The schema is at /openapi.json, the state at /health, and counts for Prometheus at /metrics.

    Parameters
    ----------
    host : str
        Address to listen on; 0.0.0.0 means all addresses of the machine.
    port : int
        Port; 0 selects a free one.
    workers : int
        Processes that answer requests.
    """
    from fdgnn.service import serve

    serve(model, host=host, port=port, n_workers=workers, coverage=coverage)

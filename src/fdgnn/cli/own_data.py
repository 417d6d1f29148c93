"""``fdgnn fit``, ``predict`` and ``explain``: from a user's file to a model and back."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, say
from fdgnn.cli.options import (
    ArcLabels,
    AsJson,
    Atoms,
    Data,
    Format,
    IdColumn,
    Jobs,
    Model,
    Quiet,
    Rejects,
    Seed,
    Smiles,
    Strict,
    Target,
    TaskName,
)
from fdgnn.cli.pages import PageFile, dataset_of, show_model

if TYPE_CHECKING:
    from fdgnn.datasets import Reject
    from fdgnn.workflow.training import Training

SHOWN = 5  # rejected rows told on the terminal; all are in the file


@app.command(epilog="Example: fdgnn fit molecules.csv --target active -o model.fdgnn")
def fit(
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    target: Target = None,
    format: Format = None,
    id_column: IdColumn = None,
    smiles: Smiles = None,
    task: Annotated[
        TaskName | None, typer.Option(help="What the target is, if not as it looks.")
    ] = None,
    search: Annotated[
        bool, typer.Option(help="Choose hyper-parameters, or take the defaults.")
    ] = True,
    configurations: Annotated[int, typer.Option(min=1, help="Configurations to try.")] = 20,
    guesses: Annotated[int, typer.Option(min=1, help="Networks that are averaged.")] = 3,
    arc_labels: Annotated[
        ArcLabels, typer.Option(help="What becomes of labels on arcs.")
    ] = ArcLabels.auto,
    atoms: Annotated[Atoms, typer.Option(help="What atoms carry.")] = Atoms.element,
    rejects: Rejects = None,
    strict: Strict = False,
    seed: Seed = 0,
    jobs: Jobs = 1,
    page: PageFile = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on your graphs and save it; hyper-parameters are chosen for you."""
    from fdgnn.datasets import read_graphs
    from fdgnn.files import check_writable
    from fdgnn.model_files import save_model
    from fdgnn.workflow.training import check_targets, train, vertex_kind

    if str(output) == "-":
        raise ValueError("a model is written to a file; give its name by -o")
    check_writable(output)
    check_writable(rejects or _beside(output))
    if page is not None:
        check_writable(page)
    # New graphs must be read as these are, so the model file remembers how.
    reading: dict[str, Any] = {
        "smiles_column": smiles,
        "arc_labels": arc_labels.value,
        "atoms": atoms.value,
    }
    table = read_graphs(
        data, format=format, target=target, id_column=id_column, strict=strict,
        numeric=task is TaskName.regression, **reading,
    )  # fmt: skip
    listed = _tell_rejects(table.rejects, table.n_rows, rejects or _beside(output), quiet)
    graphs, y = check_targets(table)
    say(f"{graphs!r}", quiet)
    training = train(
        graphs, y, task=task.value if task else None,
        search=search, n_configurations=configurations, n_guesses=guesses, seed=seed,
        n_jobs=jobs, quiet=quiet,
    )  # fmt: skip
    training.model.reading_ = reading | {"vertex": vertex_kind(graphs)}
    save_model(training.model, output, score=training.score)
    _print_training(training, output, listed, as_json)
    if page is None:
        say(f"a page of it: {_page_command(output, data, target)}", quiet)
    else:
        show_model(output, training.model, table, dataset_of(data), page, quiet)


def _page_command(model: Path, data: str, target: str | None) -> str:
    """How to get a page about the model on the graphs it was trained on."""
    words = ["fdgnn", "report", str(model), "--data", data]
    return shlex.join([*words, *(["--target", target] if target else []), "-o", "report.html"])


def _print_training(
    training: Training, output: Path, listed: dict[str, Any], as_json: bool
) -> None:
    facts: dict[str, Any] = {
        "model": str(output),
        "task": training.task,
        "graphs": training.n_graphs,
        "metric": training.metric,
        "score": training.score,
        "baseline": training.baseline,
        "wl_ceiling": training.ceiling,
        "seconds": training.seconds,
        "parameters": training.parameters,
        **listed,
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    constant = "majority class" if training.task == "classification" else "mean"
    shown = {
        f"{training.metric}, nested cross validation": training.score,
        f"always the {constant}": training.baseline,
        "best of any message passing (WL)": training.ceiling,
    }
    for what, value in shown.items():
        if value is not None:
            typer.echo(f"{what:35} {value:.3f}")
    typer.echo(f"{training.n_graphs} graphs, {training.seconds:.1f} s, written to {output}")


@app.command(epilog="Example: fdgnn predict model.fdgnn new.csv -o predictions.csv")
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".csv, .jsonl or .parquet; '-' prints CSV.")
    ] = "-",
    format: Format = None,
    id_column: IdColumn = None,
    smiles: Smiles = None,
    rejects: Rejects = None,
    strict: Strict = False,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new graphs: a row for each row of the input, in its order.

    The score is the model's output: of two classes, positive for the second; of several, that of
    the predicted one. Rows that cannot be predicted have their reason in the column 'error'.
    """
    from fdgnn.datasets import Reject
    from fdgnn.model_files import load_model
    from fdgnn.workflow.output import prediction_writer
    from fdgnn.workflow.predicting import predict_tables

    _check_outputs(data, output, rejects)
    fitted = load_model(model)
    tables = _tables(fitted, data, format, id_column, smiles, strict)
    found: list[Reject] = []
    n_rows = 0
    with prediction_writer(output, getattr(fitted, "classes_", ()), id_column) as write:
        for rows in predict_tables(fitted, tables, n_jobs=jobs):
            bad = ((n_rows + i, r) for i, r in enumerate(rows) if r.error is not None)
            found += [Reject(number, r.id, str(r.error)) for number, r in bad]
            n_rows += len(rows)
            write(rows)
    listed = _tell_rejects(tuple(found), n_rows, _rejects_file(output, rejects), quiet)
    if len(found) == n_rows:
        raise ValueError(f"none of the {n_rows} rows can be predicted; {found[0]}")
    say(f"{n_rows - len(found)} of {n_rows} rows predicted", quiet)
    _print_summary({"rows": n_rows, "predicted": n_rows - len(found), **listed}, output, as_json)


@app.command(epilog="Example: fdgnn explain model.fdgnn new.csv -o why.jsonl --draw pictures")
def explain(
    model: Model,
    data: Data,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".jsonl or .csv, a row a vertex; '-' prints.")
    ] = "-",
    row: Annotated[
        list[int] | None, typer.Option("--row", help="Only these rows, counted from 0.")
    ] = None,
    of: Annotated[str | None, typer.Option(help="The class whose score is explained.")] = None,
    edges: Annotated[bool, typer.Option(help="Also what taking away each edge does.")] = False,
    draw: Annotated[Path | None, typer.Option(help="Folder for a picture of each graph.")] = None,
    format: Format = None,
    id_column: IdColumn = None,
    smiles: Smiles = None,
    rejects: Rejects = None,
    strict: Strict = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Tell how much each vertex moved the score of a class, by default the predicted one.

    Contributions add up to the score minus that of an empty graph, which may be far away: compare
    vertices with each other, not with zero.
    """
    from fdgnn.model_files import load_model
    from fdgnn.workflow.explaining import draw_all, explain_table
    from fdgnn.workflow.output import explanation_writer

    if edges and Path(output).suffix != ".jsonl":
        raise ValueError("what edges do is written as JSON lines only; give -o NAME.jsonl")
    _check_outputs(data, output, rejects)
    fitted = load_model(model)
    wanted = None if not row else set(row)
    n_explained, n_rows = 0, 0
    found: list[Reject] = []
    with explanation_writer(output) as write:
        for table in _tables(fitted, data, format, id_column, smiles, strict):
            explained, bad = explain_table(fitted, table, wanted, target=of, edges=edges)
            write(explained)
            n_explained += len(explained)
            n_rows += table.n_rows
            found += bad
            if draw is not None:
                draw_all(explained, draw)
    listed = _tell_rejects(tuple(found), n_rows, _rejects_file(output, rejects), quiet)
    if n_explained == 0:
        why = str(found[0]) if found else f"rows are counted from 0 to {n_rows - 1}"
        raise ValueError(f"none of the rows asked for can be explained; {why}")
    say(f"{n_explained} of {n_rows} rows explained", quiet)
    _print_summary({"rows": n_rows, "explained": n_explained, **listed}, output, as_json)


def _check_outputs(data: str, output: str, rejects: Path | None) -> None:
    """Find out before the work what cannot be written after it."""
    from fdgnn.files import check_writable

    for path in (_rejects_file(output, rejects), None if output == "-" else Path(output)):
        if path is not None:
            check_writable(path)
            if path.exists() and Path(data).exists() and path.samefile(data):
                raise ValueError(f"{path}: it is the input; give another name")


def _rejects_file(output: str, rejects: Path | None) -> Path | None:
    return rejects or (None if output == "-" else _beside(Path(output)))


def _print_summary(summary: dict[str, Any], output: str, as_json: bool) -> None:
    if as_json and output != "-":
        typer.echo(json.dumps(summary | {"output": output}))


def _tables(
    fitted: Any, data: str, format: str | None, id_column: str | None, smiles: str | None,
    strict: bool,
) -> Any:  # fmt: skip
    """Tables of new graphs, read the way the model's training data was."""
    from fdgnn.datasets import iter_graphs

    reading = dict(getattr(fitted, "reading_", None) or {})
    options = {name: reading[name] for name in ("arc_labels", "atoms", "vertex") if name in reading}
    column = smiles or reading.get("smiles_column")
    if column is not None:
        options["smiles_column"] = column
    return iter_graphs(data, format=format, id_column=id_column, strict=strict, **options)


def _beside(output: Path) -> Path:
    return output.with_name(f"{output.name}.rejects.csv")


def _tell_rejects(
    rejects: tuple[Reject, ...], n_rows: int, path: Path | None, quiet: bool
) -> dict[str, Any]:
    """Tell of rejected rows and list them in a file; an older list would lie, so it goes."""
    if not rejects:
        if path is not None:
            path.unlink(missing_ok=True)
        return {"rejected": 0, "rejects": None}
    for reject in rejects[:SHOWN]:
        say(str(reject), quiet)
    where = ""
    if path is not None:
        from fdgnn.workflow.output import write_rejects

        write_rejects(path, rejects)
        where = f", listed in {path}"
    say(f"{len(rejects)} of {n_rows} rows rejected{where}", quiet)
    return {"rejected": len(rejects), "rejects": path and str(path)}

"""``fdgnn fit``, ``predict`` and ``explain``: from a user's file to a model and back."""

from __future__ import annotations

import json
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

if TYPE_CHECKING:
    from fdgnn.datasets import Reject
    from fdgnn.workflow import Training

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
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Train a model on your graphs and save it; hyper-parameters are chosen for you."""
    from fdgnn.datasets import read_graphs
    from fdgnn.files import check_writable
    from fdgnn.persistence import save_model
    from fdgnn.workflow import check_targets, train, vertex_kind

    check_writable(output)
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
    _tell_rejects(table.rejects, table.n_rows, rejects or _beside(output), quiet)
    graphs, y = check_targets(table)
    say(f"{graphs!r}", quiet)
    training = train(
        graphs, y, task=task.value if task else None,
        search=search, n_configurations=configurations, n_guesses=guesses, seed=seed,
        n_jobs=jobs, quiet=quiet,
    )  # fmt: skip
    training.model.reading_ = reading | {"vertex": vertex_kind(graphs)}
    save_model(training.model, output, score=training.score)
    _print_training(training, output, as_json)


def _print_training(training: Training, output: Path, as_json: bool) -> None:
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
    }
    if as_json:
        typer.echo(json.dumps(facts))
        return
    constant = "majority class" if training.task == "classification" else "mean"
    typer.echo(f"{training.metric}, nested cross validation   {training.score:.3f}")
    typer.echo(f"always the {constant:14}              {training.baseline:.3f}")
    if training.ceiling is not None:
        typer.echo(f"best of any message passing (WL)    {training.ceiling:.3f}")
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
) -> None:
    """Predict new graphs: a row for each row of the input, in its order."""
    from fdgnn.datasets import Reject
    from fdgnn.output import prediction_writer
    from fdgnn.persistence import load_model
    from fdgnn.workflow import predict_tables

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
    default = None if output == "-" else _beside(Path(output))
    _tell_rejects(tuple(found), n_rows, rejects or default, quiet)
    say(f"{n_rows - len(found)} of {n_rows} rows predicted", quiet)


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
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Tell how much each vertex moved the score; contributions add up to it."""
    from fdgnn.output import explanation_writer
    from fdgnn.persistence import load_model
    from fdgnn.workflow import draw_all, explain_table

    fitted = load_model(model)
    wanted = None if not row else set(row)
    n_explained = 0
    with explanation_writer(output) as write:
        for table in _tables(fitted, data, format, id_column, smiles, strict):
            explained = explain_table(fitted, table, wanted, target=of, edges=edges)
            write(explained)
            n_explained += len(explained)
            if draw is not None:
                draw_all(explained, draw)
    if n_explained == 0:
        raise ValueError("none of the rows can be explained; see 'fdgnn predict' for the reasons")
    say(f"{n_explained} graphs explained", quiet)


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


def _tell_rejects(rejects: tuple[Reject, ...], n_rows: int, path: Path | None, quiet: bool) -> None:
    if not rejects:
        return
    for reject in rejects[:SHOWN]:
        say(str(reject), quiet)
    where = ""
    if path is not None:
        from fdgnn.output import write_rejects

        write_rejects(path, rejects)
        where = f", listed in {path}"
    say(f"{len(rejects)} of {n_rows} rows rejected{where}", quiet)

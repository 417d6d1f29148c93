"""``fdgnn playground``: a page in which a model runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, say
from fdgnn.cli.options import AsJson, FirstDataOptions, Quiet, Seed, expand
from fdgnn.texts import counted

if TYPE_CHECKING:
    from fdgnn.datasets import GraphTable


@app.command(epilog="Example: fdgnn playground MUTAG -o play.html")
@expand
def playground(
    subject: Annotated[
        str,
        typer.Argument(
            help="A model file; or graphs with answers, as 'fit' takes them, to which a model is "
            "fitted in a moment.",
            metavar="MODEL_OR_DATASET",
        ),
    ],
    how: FirstDataOptions,
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The HTML file to write.")
    ] = Path("play.html"),
    data: Annotated[
        str | None,
        typer.Option(help="Graphs to choose from beside a model file: a name, file or folder."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help="Column with the answers; of a model of several targets, which."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write an HTML page in which a model runs: change graphs, watch it, train by sliders."""
    from fdgnn.cli.pages import dataset_of
    from fdgnn.files import check_writable
    from fdgnn.html.page import check_jinja
    from fdgnn.html.playground import fit_model, write

    check_writable(output)
    check_jinja()
    model = _model_of(subject)
    if model is None and data is not None:
        raise ValueError("--data is for model files; the first argument has the graphs already")
    source = subject if model is None else data
    table = None if source is None else _read(source, how, model, target)
    if table is None or table.graphs is None or source is None:
        graphs, answers, more = None, None, dict[str, Any]()
    else:
        graphs, answers = _answered(table, model, target)
        more = _described(table, source, how, target) | {"dataset": dataset_of(source)}
        if answers is None:
            say(
                f"{source}: no column has the true answers, so the page cannot train; name the "
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
    size = path.stat().st_size
    say(f"written to {path}, {size / 1e6:.1f} MB; open it in a browser", quiet)
    if as_json:
        typer.echo(json.dumps({"output": str(path), "bytes": size}))


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


def _read(source: str, how: FirstDataOptions, model: Any, target: str | None) -> GraphTable:
    """Read graphs, as the model reads them if there is one; tell of rows that cannot be read."""
    from fdgnn.exceptions import GraphError

    several = model is not None and len(model.targets_) > 1
    named = [target] if several and target is not None else target
    table = how.read(source, like=model, target=named)
    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be read; {table.rejects[0]}")
    if table.rejects:
        say(f"{len(table.rejects)} of {table.n_rows} rows left out; {table.rejects[0]}")
    return table


def _answered(table: GraphTable, model: Any, target: str | None) -> tuple[Any, Any]:
    """Give graphs and answers; without a model there must be some."""
    from fdgnn.tasks import table_targets

    if model is None:
        return table_targets(table)
    if len(model.targets_) > 1 and target is not None and table.targets:
        table = table.of_target(target)
    return table.graphs, table.y


def _described(
    table: GraphTable, source: str, how: FirstDataOptions, target: str | None
) -> dict[str, Any]:
    """Names and SMILES of the graphs, and the Python that reads them."""
    if table.schema is not None and table.schema.source == "tu":
        code = [
            "from fdgnn import FDGNNClassifier, load_tu",
            f"graphs, y = load_tu({source!r})",
        ]
    else:
        given = {"target": target} | _of_molecules(table) | _given(how.arguments)
        told = "".join(f", {name}={value!r}" for name, value in _given(given).items())
        code = [
            "from fdgnn import FDGNNClassifier, read_graphs",
            f"table = read_graphs({source!r}{told})",
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


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Take the arguments of `read_graphs` that differ from their defaults."""
    usual = (None, False, "auto")
    return {name: value for name, value in arguments.items() if value not in usual}

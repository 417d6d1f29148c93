"""``fdgnn report``: runs and models as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, command_line, say
from fdgnn.cli.options import AsJson, Format, IdColumn, Quiet, Smiles, Target

if TYPE_CHECKING:
    from fdgnn.report import Source


@app.command(epilog="Example: fdgnn report runs/MUTAG runs/PROTEINS -o report.html")
def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Run directories of 'evaluate' or 'compare', and model files.",
            metavar="RUN_OR_MODEL",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The HTML file to write.")
    ] = Path("report.html"),
    data: Annotated[
        str | None,
        typer.Option(help="Graphs to show model files at work on: a name, file or folder."),
    ] = None,
    target: Target = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="The models have not seen these graphs in training.")
    ] = False,
    format: Format = None,
    id_column: IdColumn = None,
    smiles: Smiles = None,
    title: Annotated[str | None, typer.Option(help="The page's title.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about runs and models: one HTML file that needs no network to be read."""
    from fdgnn.files import check_writable
    from fdgnn.report import write_report

    check_writable(output)
    found: list[Path | Source] = list(sources)
    reading = {
        "format": format, "target": target, "id_column": id_column, "smiles_column": smiles,
    }  # fmt: skip
    if data is None:
        _refuse_without_data(reading, held_out)
    else:
        if not any(map(Path.is_file, sources)):
            raise ValueError("--data is for model files, and none is named; leave it out")
        found = [_portrayed(s, data, reading, held_out, quiet) for s in sources]
    path = write_report(found, output, title=title)
    size = path.stat().st_size
    say(f"written to {path}, {size / 1e6:.1f} MB; open it in a browser", quiet)
    if as_json:
        typer.echo(json.dumps({"output": str(path), "bytes": size}))


def _portrayed(
    path: Path, data: str, reading: dict[str, Any], held_out: bool, quiet: bool
) -> Path | Source:
    """A model file together with what it does on the data; runs bring their own portraits."""
    if not path.is_file():
        return path
    from sklearn.base import is_classifier

    from fdgnn.cli.pages import dataset_of, portray
    from fdgnn.datasets import read_graphs
    from fdgnn.model_files import load_model
    from fdgnn.report import model_source

    model = load_model(path)
    # As the model's training data was read, unless the user says otherwise.
    known = {k: v for k, v in (getattr(model, "reading_", None) or {}).items() if v is not None}
    given = {k: v for k, v in reading.items() if v is not None}
    table = read_graphs(data, **(known | given | {"numeric": not is_classifier(model)}))
    portrait = portray(model, table, dataset_of(data), held_out=held_out, command=command_line())
    if table.y is None:
        say(
            f"{data}: no column says what is right, so the page shows no accuracy; name it with "
            "--target if there is one",
            quiet,
        )
    left_out = table.n_rows - portrait["data"]["n_graphs"]
    if not left_out:
        return model_source(path, portrait)
    text = f"{left_out} of {table.n_rows} rows left out, as they cannot be used"
    say(text, quiet)
    return model_source(path, portrait, [f"{text}."])


def _refuse_without_data(reading: dict[str, Any], held_out: bool) -> None:
    """Raise ValueError if options that only say how to use --data were given without it."""
    options = {
        "--target": reading["target"], "--format": reading["format"], "--id": reading["id_column"],
        "--smiles": reading["smiles_column"], "--held-out": held_out or None,
    }  # fmt: skip
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise ValueError(f"{', '.join(given)}: of use only with --data; add it, or leave this out")

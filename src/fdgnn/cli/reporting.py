"""``fdgnn report``: runs and models as one page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, command_line, say
from fdgnn.cli.options import (
    AsJson,
    Format,
    IdColumn,
    Quiet,
    Smiles,
    SomeTargets,
    TargetList,
    asked_targets,
    expand,
)
from fdgnn.texts import counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.html.report import Subject


@dataclass(frozen=True)
class _DataOptions:
    """Options that say how to read and use the data."""

    target: str | list[str] | None
    format: str | None
    id_column: str | None
    smiles_column: str | None
    held_out: bool

    def refuse(self) -> None:
        """Raise ValueError if one of them is given, though there is no data."""
        options = {
            "--target": self.target, "--format": self.format, "--id": self.id_column,
            "--smiles": self.smiles_column, "--held-out": self.held_out or None,
        }  # fmt: skip
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise ValueError(f"{', '.join(given)}: only useful with --data; add it, or leave out")


@app.command(epilog="Example: fdgnn report runs/MUTAG runs/PROTEINS -o report.html")
@expand
def report(
    subjects: Annotated[
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
        typer.Option(help="Graphs to try the model files on: a name, file or folder."),
    ] = None,
    target: SomeTargets = None,
    targets: TargetList = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="The models have not seen these graphs in training.")
    ] = False,
    format: Format = None,
    id_column: IdColumn = None,
    smiles: Smiles = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write a page about runs and models: one HTML file that needs no network to be read."""
    from fdgnn.context import Context
    from fdgnn.html.report import check_report, write_report

    check_report(output)
    context = Context(quiet=quiet, command=command_line())
    found: list[Path | Subject] = list(subjects)
    options = _DataOptions(asked_targets(target, targets), format, id_column, smiles, held_out)
    if data is None:
        options.refuse()
    else:
        if all(map(Path.is_dir, subjects)):  # what is not there is told when it is read
            raise ValueError("--data is for model files, but none is named; leave it out")
        found = [one for s in subjects for one in _with_data(s, data, options, context)]
    path = write_report(found, output, title=title)
    size = path.stat().st_size
    say(f"written to {path}, {size / 1e6:.1f} MB; open it in a browser", quiet)
    if as_json:
        typer.echo(json.dumps({"output": str(path), "bytes": size}))


def _with_data(
    path: Path, data: str, options: _DataOptions, context: Context
) -> Sequence[Path | Subject]:
    """Try a model file on the data; run directories have report data of their own."""
    if not path.is_file():
        return [path]
    from fdgnn.cli.pages import dataset_of, model_data
    from fdgnn.html.report import model_subjects
    from fdgnn.prediction.predictor import load_predictor

    model = load_predictor(path)
    table = _read_like(model, data, options)
    if table.graphs is not None:
        n_graphs = counted(len(table.graphs), "graph")
        say(f"{path.name} is tried on {n_graphs}, which may take some seconds", context.quiet)
    unseen = options.held_out
    known = model_data(model, table, dataset_of(data), context, unseen=unseen)
    if table.y is None:
        say(
            f"{data}: no column has the true answers, so the page shows no accuracy; name the "
            "column with --target if there is one",
            context.quiet,
        )
    for note in dict.fromkeys(note for one in known for note in one.notes):
        say(note, context.quiet)
    return model_subjects(path, known)


def _read_like(model: Any, data: str, options: _DataOptions) -> GraphTable:
    """Read graphs as the model's training data was read."""
    from sklearn.base import is_classifier

    from fdgnn.datasets import read_graphs

    target = options.target
    several = len(model.targets_) > 1
    if isinstance(target, list) and not several:
        raise ValueError("the model has one target; name one column by --target")
    return read_graphs(
        data,
        like=model,
        format=options.format,
        target=[target] if several and isinstance(target, str) else target,
        id_column=options.id_column,
        smiles_column=options.smiles_column,
        numeric=not is_classifier(model),
    )

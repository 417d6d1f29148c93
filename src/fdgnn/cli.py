"""The ``fdgnn`` command: thin; each command imports what it needs when it runs."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn._version import __version__

if TYPE_CHECKING:
    from fdgnn.study import Study

app = typer.Typer(
    help="Fast and Deep Graph Neural Networks: classify graphs in seconds on a CPU.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class ProtocolName(StrEnum):
    """The protocols of `fdgnn.study`."""

    paper = "paper"
    quick = "quick"


Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Processes; -1 takes all cores.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fdgnn {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example: fdgnn evaluate MUTAG --protocol quick --out runs/mutag")
def evaluate(
    name_or_path: Annotated[str, typer.Argument(help="A dataset's name, or a TU folder or zip.")],
    out: Annotated[Path, typer.Option(help="Run directory; the same command resumes it.")],
    protocol: Annotated[ProtocolName, typer.Option(help="How thorough.")] = ProtocolName.paper,
    configurations: Annotated[
        int | None, typer.Option(min=1, help="Random configurations, if not the protocol's.")
    ] = None,
    guesses: Annotated[
        int | None, typer.Option(min=1, help="Networks a configuration, if not the protocol's.")
    ] = None,
    units: Annotated[
        int | None, typer.Option(min=1, help="Neurons a layer; the paper's by default.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of folds, configurations and weights.")] = 0,
    jobs: Jobs = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, or 'local' to start one.")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Nested cross validation of FDGNN on a dataset, as in the paper; resumable."""
    from fdgnn.datasets import load_tu
    from fdgnn.study import PROTOCOLS, plan, run_study

    graphs, y = load_tu(name_or_path)
    study = plan(
        _dataset_name(name_or_path), graphs, y, PROTOCOLS[protocol.value],
        n_configurations=configurations, n_guesses=guesses, n_units=units, seed=seed,
    )  # fmt: skip
    result = run_study(study, out, n_jobs=jobs, cluster=cluster, quiet=quiet)
    _print_result(result, as_json)
    if not as_json:
        typer.echo(f"\nwritten to {out / 'result.json'}")


@app.command(epilog="Example: fdgnn demo")
def demo(jobs: Jobs = -1, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Train and evaluate on MUTAG with honest, nested cross validation, in about a minute."""
    from tempfile import TemporaryDirectory

    from fdgnn.study import run_study

    study = _demo_study()
    if not quiet:
        typer.echo(
            f"{study.dataset}: {study.graphs!r}\n"
            f"{study.protocol.n_configurations} configurations x {study.protocol.n_guesses} "
            f"networks, {study.protocol.n_outer} outer x {study.protocol.n_inner} inner folds",
            err=True,
        )
    with TemporaryDirectory() as directory:
        result = run_study(study, Path(directory), n_jobs=jobs, quiet=quiet)
    _print_result(result, as_json)


def _demo_study() -> Study:
    """MUTAG if it is at hand without a download, else generated graphs; says which."""
    from fdgnn.datasets import load_tu, make_motif_graphs
    from fdgnn.exceptions import DatasetError
    from fdgnn.study import PROTOCOLS, plan

    try:
        name, (graphs, y) = "MUTAG", load_tu("MUTAG", download_if_missing=False)
    except DatasetError:
        typer.echo(
            "MUTAG is not at hand (no data home, no GraKeL): using generated graphs", err=True
        )
        name, (graphs, y) = "generated motif graphs", make_motif_graphs(200, random_state=0)
    return plan(name, graphs, y, PROTOCOLS["quick"])


def _dataset_name(name_or_path: str) -> str:
    path = Path(name_or_path)
    return path.stem if path.suffix == ".zip" else path.name


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(result))
        return
    from rich.console import Console

    from fdgnn.tables import result_table

    Console().print(result_table(result))


def main() -> None:
    """Run the command; what a user can mend becomes one line and an exit code, no traceback."""
    from fdgnn.exceptions import FDGNNError

    try:
        app()
    except (FDGNNError, ValueError, OSError) as error:
        message = " ".join(str(error).split())
        typer.echo(f"error: {message}", err=True)
        sys.exit(1)

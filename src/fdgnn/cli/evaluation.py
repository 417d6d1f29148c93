"""``fdgnn evaluate`` and ``fdgnn demo``: the paper's protocol."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, command_line, say
from fdgnn.cli.options import AsJson, Jobs, ProtocolName, Quiet, Seed
from fdgnn.cli.pages import PageFile, WantPage, show_run

if TYPE_CHECKING:
    from fdgnn.experiments.study import Study


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
    seed: Seed = 0,
    jobs: Jobs = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, or 'local' to start one.")
    ] = None,
    page: WantPage = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Nested cross validation of FDGNN on a dataset, as in the paper; resumable."""
    from fdgnn.datasets import load_tu
    from fdgnn.experiments.study import PROTOCOLS, plan, run_study

    graphs, y = load_tu(name_or_path)
    study = plan(
        dataset_name(name_or_path), graphs, y, PROTOCOLS[protocol.value],
        n_configurations=configurations, n_guesses=guesses, n_units=units, seed=seed,
    )  # fmt: skip
    result = run_study(
        study, out, n_jobs=jobs, cluster=cluster, quiet=quiet, command=command_line()
    )
    _print_result(result, as_json)
    say(f"written to {out / 'result.json'}", quiet)
    if page:
        show_run(study, result, out, out / "report.html", quiet)


@app.command(epilog="Example: fdgnn demo")
def demo(
    jobs: Jobs = -1, page: PageFile = None, quiet: Quiet = False, as_json: AsJson = False
) -> None:
    """Train and evaluate on MUTAG with honest, nested cross validation, in about a minute."""
    from tempfile import TemporaryDirectory

    from fdgnn.experiments.study import run_study
    from fdgnn.files import check_writable

    if page is not None:
        check_writable(page)
    study = _demo_study()
    say(
        f"{study.dataset}: {study.graphs!r}\n"
        f"{study.protocol.n_configurations} configurations x {study.protocol.n_guesses} "
        f"networks, {study.protocol.n_outer} outer x {study.protocol.n_inner} inner folds",
        quiet,
    )
    with TemporaryDirectory() as directory:
        result = run_study(study, Path(directory), n_jobs=jobs, quiet=quiet, command=command_line())
        _print_result(result, as_json)
        if page is None:
            say("a page of it: fdgnn demo --report demo.html", quiet)
        else:
            show_run(study, result, Path(directory), page, quiet)


def _demo_study() -> Study:
    """MUTAG if it is at hand without a download, else generated graphs; says which."""
    from fdgnn.datasets import load_tu, make_motif_graphs
    from fdgnn.exceptions import DatasetError
    from fdgnn.experiments.study import PROTOCOLS, plan

    try:
        name, (graphs, y) = "MUTAG", load_tu("MUTAG", download_if_missing=False)
    except DatasetError:
        say("MUTAG is not at hand (no data home, no GraKeL): using generated graphs")
        name, (graphs, y) = "generated motif graphs", make_motif_graphs(200, random_state=0)
    return plan(name, graphs, y, PROTOCOLS["quick"])


def dataset_name(name_or_path: str) -> str:
    """What a dataset is called that was given by name or path."""
    path = Path(name_or_path)
    return path.stem if path.suffix == ".zip" else path.name


def _print_result(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        import json

        typer.echo(json.dumps(result))
        return
    from rich.console import Console

    from fdgnn.cli.tables import result_table

    Console().print(result_table(result))

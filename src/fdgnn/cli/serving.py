"""``fdgnn serve``: an HTTP service around a model."""

from __future__ import annotations

from typing import Annotated

import typer

from fdgnn.cli.app import app
from fdgnn.cli.options import Model, expand


@app.command(epilog="Example: fdgnn serve model.fdgnn --port 8000 --workers 2")
@expand
def serve(
    model: Model,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0 for all of the machine's.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    workers: Annotated[int, typer.Option(min=1, help="Processes that answer requests.")] = 1,
    coverage: Annotated[
        float | None,
        typer.Option(help="Also predict sets or intervals of this coverage, for instance 0.9."),
    ] = None,
) -> None:
    """Answer predictions over HTTP: POST /predict with SMILES or graphs as JSON.

    The schema is at /openapi.json, the state at /health, and counts for Prometheus at /metrics.
    """
    from fdgnn.service import serve

    serve(model, host=host, port=port, n_workers=workers, coverage=coverage)

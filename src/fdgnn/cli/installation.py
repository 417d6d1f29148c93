"""``fdgnn compile``: are the kernels there, and do they run?"""

from __future__ import annotations

import json
import os

import typer

from fdgnn.cli.app import app
from fdgnn.cli.options import AsJson


@app.command("compile", epilog="Example: fdgnn compile")
def compile_command(as_json: AsJson = False) -> None:
    """Check the kernels on this machine: they are compiled when fdgnn is installed, never later.

    For those who build images: nothing is written, and nothing is left to be compiled at first use.
    """
    from fdgnn.workflow.installation import compile_kernels

    found = compile_kernels()
    if as_json:
        typer.echo(json.dumps({"engine": found.engine, "runs": list(found.runs)}))
        return
    who = "FDGNN_ENGINE asks for" if os.environ.get("FDGNN_ENGINE") else "this processor takes"
    typer.echo(
        f"compiled when fdgnn was installed; {who} the engine '{found.engine}'; "
        f"this processor can run: {', '.join(found.runs)}"
    )

"""``fdgnn compile``: are the kernels there, and do they run?"""

from __future__ import annotations

import json
import os

import typer

from fdgnn.cli.app import app, say
from fdgnn.cli.options import AsJson, Quiet


@app.command("compile", epilog="Example: fdgnn compile")
def compile_command(quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Try the kernels on this machine, and make what else would be made at first use.

    For those who build images. Kernels are compiled when fdgnn is installed, never later. If the
    extra 'report' is installed, the script that draws the charts of its pages is made, and kept in
    the cache (FDGNN_CACHE).
    """
    from fdgnn.installation import compile_kernels

    found = compile_kernels(verbose=not quiet)
    charts = _make_charts()
    if as_json:
        told = {"engine": found.engine, "runs": list(found.runs), "charts": charts}
        typer.echo(json.dumps(told))
        return
    who = "FDGNN_ENGINE asks for" if os.environ.get("FDGNN_ENGINE") else "this processor takes"
    typer.echo(
        f"all is well: the kernels were compiled when fdgnn was installed, and work here; {who} "
        f"the engine '{found.engine}', of {', '.join(found.runs)}"
    )
    if charts is not None:
        say(f"the script that draws the charts of pages is kept: {charts}", quiet)


def _make_charts() -> str | None:
    """Make the script of charts; None if the extra is not installed, or nothing can be kept."""
    from fdgnn.exceptions import MissingDependencyError
    from fdgnn.html.page import cache_vega_bundle

    try:
        path = cache_vega_bundle()
    except MissingDependencyError:
        return None
    return None if path is None else str(path)

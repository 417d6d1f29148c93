"""A playground to touch, ``play.html``: made by `fdgnn playground` when the site is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def write_playground(app: Sphinx, failed: Exception | None) -> None:
    """Put the page beside the gallery, which links to it; a site that is only read needs none."""
    if failed is None and app.builder.format == "html":
        page = Path(app.outdir, "docs", "play.html")
        command = [sys.executable, "-m", "fdgnn", "playground", "MUTAG", "-o", str(page)]
        subprocess.run(command, check=True, env=os.environ | {"FDGNN_OFFLINE": "1"})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("build-finished", write_playground)
    return {"parallel_read_safe": True}

"""What to do where a source lacks what a section needs."""

from __future__ import annotations

import shlex

from fdgnn.report.figures import Missing
from fdgnn.report.sources import Source


def no_portrait(source: Source) -> Missing:
    """The command that adds a portrait."""
    if source.model is not None:
        return Missing(
            "A model file holds no graphs. Name the data to see the model at work on it:",
            f"fdgnn report {shlex.quote(source.path)} --data FILE --target COLUMN -o report.html",
        )
    result = source.result or {}
    data = result.get("source") or source.dataset
    command = f"fdgnn evaluate {shlex.quote(data)} --out {shlex.quote(source.path)}"
    if result.get("protocol") == "quick":
        command += " --protocol quick"
    return Missing(
        "This run has no portrait.json, which holds what is shown here. The same command again "
        "keeps what is finished and adds it:",
        result.get("command") or command,
    )

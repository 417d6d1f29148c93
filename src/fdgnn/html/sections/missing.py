"""What to do where a subject lacks what a section needs."""

from __future__ import annotations

import shlex
from pathlib import Path

from fdgnn.html.figures import Missing
from fdgnn.html.subjects import Subject


def no_portrait(subject: Subject) -> Missing:
    """Give the command that adds a portrait."""
    if subject.model is not None:
        return Missing(
            "A model file holds no graphs. Name the data to see what the model does on it:",
            f"fdgnn report {shlex.quote(subject.path)} --data FILE --target COLUMN -o report.html",
        )
    command = command_again(subject)
    why = "This run has no portrait.json, which holds what is shown here. "
    if subject.evaluation is None:
        why = "This run is not finished; what is shown here is made at its end. "
    if command is None:
        return Missing(
            f"{why}The command that started the run adds it, but the files of the run do not say "
            f"which command that was. Its directory (--out) is {subject.path}."
        )
    return Missing(f"{why}The same command again keeps what is finished and adds it:", command)


def command_again(subject: Subject) -> str | None:
    """Give the command that continues a run, where the run is now; None if it is not known."""
    given = subject.command
    if given is None:
        return None
    try:
        words = shlex.split(given.replace("--out=", "--out "))
        place = words.index("--out") + 1
        moved = Path(words[place]).resolve() != Path(subject.path).resolve()
    except (ValueError, IndexError, OSError):
        return given
    return shlex.join([*words[:place], subject.path, *words[place + 1 :]]) if moved else given

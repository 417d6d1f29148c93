"""What to do where a source lacks what a section needs."""

from __future__ import annotations

import shlex
from pathlib import Path

from fdgnn.report.figures import Missing
from fdgnn.report.outcomes import is_of_the_paper
from fdgnn.report.sources import Source


def no_portrait(source: Source) -> Missing:
    """The command that adds a portrait."""
    if source.model is not None:
        return Missing(
            "A model file holds no graphs. Name the data to see the model at work on it:",
            f"fdgnn report {shlex.quote(source.path)} --data FILE --target COLUMN -o report.html",
        )
    command = command_again(source)
    why = "This run has no portrait.json, which holds what is shown here. "
    if source.result is None:
        why = "This run is not finished; what is shown here is made at its end. "
    if command is None:
        return Missing(
            f"{why}The command that began it goes on with it, but its files do not say which it "
            f"was; its directory (--out) is {source.path}."
        )
    return Missing(f"{why}The same command again keeps what is finished and adds it:", command)


def command_again(source: Source) -> str | None:
    """The command that goes on with a run, where the run is now; None if it is not known."""
    given = source.command or _command_of_result(source)
    if given is None:
        return None
    try:
        words = shlex.split(given.replace("--out=", "--out "))
        place = words.index("--out") + 1
        moved = Path(words[place]).resolve() != Path(source.path).resolve()
    except (ValueError, IndexError, OSError):
        return given
    return shlex.join([*words[:place], source.path, *words[place + 1 :]]) if moved else given


def _command_of_result(source: Source) -> str | None:
    """Put together the command of a result that does not have it but all that was asked for."""
    result, settings = source.result, source.settings
    if result is None or settings is None or result["protocol"] not in ("quick", "paper"):
        return None
    data = result.get("source") or (source.dataset if is_of_the_paper(source) else None)
    if data is None:
        return None
    words = ["fdgnn", "evaluate", data, "--out", source.path, "--protocol", result["protocol"]]
    words += ["--configurations", str(result["n_configurations"])]
    words += ["--guesses", str(result["n_guesses"]), "--units", str(result["n_units"])]
    return shlex.join([*words, "--seed", str(result["seed"])])

"""Messages of the library, which name Python arguments, in the words of this program."""

from __future__ import annotations

import re
from dataclasses import fields

from fdgnn.cli.options import FirstDataOptions
from fdgnn.cli.settings import OF_BOTH, OF_COLORS, OF_RESERVOIRS

RENAMED = {
    "id_column": "id", "smiles_column": "smiles", "n_jobs": "jobs", "random_state": "seed",
    "n_configurations": "configurations", "n_guesses": "guesses",
    **OF_RESERVOIRS, **OF_COLORS, **OF_BOTH,
}  # fmt: skip
ARGUMENTS = {
    "target", "task", "threshold", "class_weight", "scoring", "descriptors", "categories",
    "coverage", "by_class", "smarts", "vertex_sets", "handle_unknown", *RENAMED,
    *(field.name for field in fields(FirstDataOptions)),
}  # fmt: skip
# As in `vertex='none'`, or bare: threshold="f1", n_units=0, scoring=
QUOTED = re.compile(r"`(\w+)(?:='?(\w+)'?)?`")
BARE = re.compile(r"(?<![\w`'\"])(\w+)=(?!\.\.\.)('[^']*'|\"[^\"]*\"|[\w.+-]*\w)?")


def name_options(message: str) -> str:
    """Replace Python arguments in a message of the library by this program's options."""
    return BARE.sub(_as_option, QUOTED.sub(_as_option, message))


def _as_option(mentioned: re.Match[str]) -> str:
    name, value = mentioned.groups()
    if name not in ARGUMENTS:
        return mentioned[0]
    value = None if value is None else value.strip("'\"")
    if name == "directed":
        return "--undirected" if value == "False" else "--directed"
    option = "--" + RENAMED.get(name, name).replace("_", "-")
    return f"{option} {value}" if value else option

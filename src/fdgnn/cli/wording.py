"""Messages of the library, which name Python arguments, in the words of this program."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

from fdgnn.cli.options import FirstDataOptions
from fdgnn.cli.settings import OF_BOTH, OF_RESERVOIRS, OF_WL

RENAMED = {
    "id_column": "id", "smiles_column": "smiles", "n_jobs": "jobs", "random_state": "seed",
    "n_configurations": "configurations", "n_estimators": "initializations",
    "n_guesses": "initializations",
    "columns": "split",
    **OF_RESERVOIRS, **OF_WL, **OF_BOTH,
}  # fmt: skip
ARGUMENTS = {
    "target", "task", "threshold", "class_weight", "scoring", "descriptors", "categories",
    "coverage", "by_class", "smarts", "vertex_sets", "handle_unknown", "memory", "search_on",
    *RENAMED, *(field.name for field in fields(FirstDataOptions)),
}  # fmt: skip
# As in `vertex='none'`, or bare: threshold="f1", n_units=0, scoring=
QUOTED = re.compile(r"`(\w+)(?:='?(\w+)'?)?`")
BARE = re.compile(r"(?<![\w`'\"])(\w+)=(?!\.\.\.)('[^']*'|\"[^\"]*\"|[\w.+-]*\w)?")


def name_options(message: str) -> str:
    """Replace Python arguments in a message of the library by this program's options."""
    return BARE.sub(_as_option, QUOTED.sub(_as_option, message))


# What the option parser says (typer, or click below older versions of it), and what users read.
_OF_THE_PARSER: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"Invalid value for '([^']*)'(?: / '[^']*')?: (?:Value error, )?", r"\1: "),
    (r"Input should be a valid integer\b.*", "expected a whole number"),
    (r"Input should be a valid number\b.*", "expected a number"),
    (r"'[^']*' is not a valid int(?:eger)?\b.*", "expected a whole number"),
    (r"'[^']*' is not a valid float\b.*", "expected a number"),
    (r"\S+ is not in the range x>=(\S+)", r"expected a number of at least \1"),
    (r"\S+ is not in the range x<=(\S+)", r"expected a number of at most \1"),
    (
        r"No such option '(\S+)'\.? \(Did you mean one of: (.*)\?\)",
        r"No such option: \1 (Possible options: \2)",
    ),
    (r"No such option '(\S+)'\.? Did you mean (.*)\?", r"No such option: \1 Did you mean \2?"),
    (r"No such option '(\S+)'", r"No such option: \1"),
    (r"(?<=\S )\('(\(Possible options: .*\))',\)", r"\1"),  # typer 0.26 shows a tuple
    (r"Input should be greater than or equal to ", "expected a number of at least "),
    (r"Input should be less than or equal to ", "expected a number of at most "),
    (r"No such option: (\S+) \(Possible options: (.*)\)", r"there is no option \1; near are \2"),
    (r"No such option: (\S+) Did you mean (.*)\?", r"there is no option \1; near is \2"),
    (r"No such option: (\S+)", r"there is no option \1"),
    (r"No such command '([^']*)'", r"there is no command '\1'"),
    (r"Missing (?:option|parameter) '([^']*)'(?: / '([^']*)')?", r"the option \1 is missing"),
    (r"Missing argument '([^']*)'", lambda found: f"the argument {found[1].lower()} is missing"),
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"nothing is known about \1"),
)


def usage_in_words(message: str) -> str:
    """Say what the option parser refuses, in this program's words and in one line."""
    text = " ".join(message.split()).removesuffix(".")
    for pattern, words in _OF_THE_PARSER:
        text = re.sub(pattern, words, text)
    return text


def _as_option(mentioned: re.Match[str]) -> str:
    name, value = mentioned.groups()
    if name not in ARGUMENTS:
        return mentioned[0]
    value = None if value is None else value.strip("'\"")
    if name == "directed":
        return "--undirected" if value == "False" else "--directed"
    option = "--" + RENAMED.get(name, name).replace("_", "-")
    return f"{option} {value}" if value else option

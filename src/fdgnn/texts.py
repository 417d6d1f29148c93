"""Untrusted text made safe for terminals and spreadsheets, shortened text, and counts.

Ids, labels and names of classes come from files, which can contain any character: some move the
cursor of a terminal, and some make a spreadsheet run a formula.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
# What a spreadsheet reads as a formula, after any number of the quotes that guard against it.
_FORMULA = re.compile(r"'*[=+\-@\t\r\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}"
                      r"\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}]")  # fmt: skip
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def printable(text: str) -> str:
    r"""Write characters that a terminal would obey, or not show, as ``\u001b``.

    In JSON, where they can only occur inside of texts, that means the same.

    >>> printable("a\x1b[2Jb")
    'a\\u001b[2Jb'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def parse_json(text: str) -> Any:
    r"""Parse untrusted JSON; raise ValueError if it is not JSON.

    Halves of characters, which JSON can have and no file can hold, are replaced.

    >>> parse_json(r'["a\ud800", 1]')
    ['a?', 1]
    """
    try:
        value = json.loads(text)
        if "\\u" in text:
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        return value
    except RecursionError:
        raise ValueError("nested too deeply") from None


def guarded(text: str) -> str:
    """Return text with a quote before it if a spreadsheet would run it as a formula.

    >>> guarded("=1+1"), guarded("-5"), guarded("C=O")
    ("'=1+1", '-5', 'C=O')
    """
    formula = _FORMULA.match(text) and not _NUMBER.fullmatch(text)
    return f"'{text}" if formula else text


def unguarded(text: str) -> str:
    """Remove the quote that `guarded` adds.

    >>> unguarded("'=1+1"), unguarded("'tis")
    ('=1+1', "'tis")
    """
    return text[1:] if text.startswith("'") and guarded(text[1:]) == text else text


def counted(n: int, one: str, many: str | None = None) -> str:
    """Count things in plain digits, in the singular where it is one.

    >>> counted(1, "part"), counted(1600, "part"), counted(2, "vertex", "vertices")
    ('1 part', '1600 parts', '2 vertices')
    """
    return f"{n} {one if n == 1 else many or one + 's'}"


def agreeing(n: int, one: str, many: str) -> str:
    """Choose the verb that follows a count.

    >>> f"1 of 30 rows {agreeing(1, 'is', 'are')} new"
    '1 of 30 rows is new'
    """
    return one if n == 1 else many


def listed(names: Iterable[object]) -> str:
    """Join names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    items = [str(name) for name in names]
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question that names the most similar of the known names, if there is one.

    >>> suggestion("mutagg", ["MUTAG", "NCI1"]), suggestion("x", ["MUTAG"])
    ("did you mean 'MUTAG'? ", '')
    """
    names = {each.upper(): each for each in known}
    nearest = difflib.get_close_matches(name.upper(), names, n=1)
    return f"did you mean {names[nearest[0]]!r}? " if nearest else ""


def reason_of(error: Exception) -> str:
    """Return the message of an error; for a file its name, and why it cannot be used.

    >>> reason_of(FileNotFoundError(2, "No such file or directory", "gone.csv"))
    'gone.csv: No such file or directory'
    """
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def cut(text: str, most: int) -> str:
    """Cut text to so many characters, the last one an ellipsis.

    >>> cut("carbon", 4), cut("carb", 4)
    ('car…', 'carb')
    """
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def html_table(rows: Mapping[str, object]) -> str:
    """Return names and values as a table for notebooks."""
    cells = "".join(
        f"<tr><th>{escape(str(name))}</th><td>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{cells}</table>"

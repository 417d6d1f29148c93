"""What all pages share: one HTML file each, that fetches nothing and runs no script but its own."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from fdgnn.extras import require

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import [^;]*? from "\./([\w-]+\.js)";\n', re.MULTILINE)


@functools.cache
def base_style() -> str:
    """Give the style that all pages begin with."""
    return (_HERE / "templates" / "base.css").read_text(encoding="utf-8")


@functools.cache
def early_script() -> str:
    """Give the script that runs before anything is shown."""
    return (_HERE / "scripts" / "early.js").read_text(encoding="utf-8")


@functools.cache
def joined_script(main: str) -> str:
    """Join a module of ``scripts`` with all that it imports to one script.

    The names of modules share one
    scope in the end, so that no two modules may have the same name at their top
    (``tests/test_pages.py``).
    """
    texts = modules_of(main)
    order = TopologicalSorter({name: set(_IMPORT.findall(text)) for name, text in texts.items()})
    bodies = (_IMPORT.sub("", texts[name]) for name in order.static_order())
    body = "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in bodies)
    return f'"use strict";\n(() => {{\n{body}\n}})();'


def modules_of(main: str) -> dict[str, str]:
    """Give the texts of a module and of all that it imports, by the names of their files."""
    found: dict[str, str] = {}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = (_HERE / "scripts" / name).read_text(encoding="utf-8")
            waiting += _IMPORT.findall(found[name])
    return found


def policy(scripts: Iterable[str], more: str = "") -> str:
    """Let the page's own scripts run and nothing else; nothing is fetched, whatever is inside."""
    digests = [hashlib.sha256(text.encode()).digest() for text in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        f"{more}base-uri 'none'; form-action 'none'"
    )


def check_jinja() -> None:
    """Raise MissingDependencyError if Jinja2, which fills in all pages, is not installed."""
    require("jinja2", "report", "Pages")


def markup(text: str) -> Any:
    """Return text that templates do not escape."""
    check_jinja()
    from markupsafe import Markup  # a dependency of Jinja2

    return Markup(text)


def templates() -> Any:
    """Return the Jinja templates; what is put into them is escaped."""
    jinja2 = require("jinja2", "report", "Pages")
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""The directive `{commands}`: all commands of ``fdgnn``, from the help that they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Commands(SphinxDirective):
    """A section for each command: what it does, its arguments and options, and an example."""

    def run(self) -> list[nodes.Node]:
        """Write the sections as Markdown, and let the page's own parser read them."""
        return self.parse_text_to_nodes("\n".join(reference()), allow_section_headings=True)


def reference() -> Iterator[str]:
    """Lines of Markdown about every command, sorted by name."""
    from typer.main import get_command

    from fdgnn.cli import app

    for name, command in sorted(_leaves("fdgnn", get_command(app))):
        yield from _section(name, command)


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Commands that do something; `fdgnn` alone only prints its help."""
    if name != "fdgnn":
        yield name, command
    for part, inner in getattr(command, "commands", {}).items():
        yield from _leaves(f"{name} {part}", inner)


def _section(name: str, command: Any) -> Iterator[str]:
    yield f"## {name}\n"
    yield from (_text(part) + "\n" for part in (command.help or "").split("\n\n"))
    if command.epilog:
        yield f"```sh\n{command.epilog.removeprefix('Example: ')}\n```\n"
    context = command.make_context(name, [], resilient_parsing=True)
    records = [p.get_help_record(context) for p in command.get_params(context)]
    if rows := [record for record in records if record]:
        yield from (f"`{names}`\n: {_text(help)}\n" for names, help in rows)


def _text(help: str) -> str:
    """One line, in which what looks like an option or a file name is written as code."""
    line = re.sub(r"([<*_])", r"\\\1", " ".join(help.split()))
    return re.sub(r"(?<![\w`-])(--?[a-z][\w-]*)", r"`\1`", line)


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}

"""Pages that are run: what they type is typed, and what they show must be what comes out.

    python tests/pages.py docs/tutorials/deploy.md

writes into a page what comes out today, where that differs; run it in a folder with its data.
"""

from __future__ import annotations

import doctest
import io
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path

from commands import fdgnn

BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_page(path, *, compare=True):
    """Run the page's blocks in order, in the working directory, and return it as it should be.

    `console` blocks have commands after ``$``, with what they print on standard output below them;
    `pycon` blocks are doctests that share their names. Other blocks are not run. What differs is an
    AssertionError if it is compared; a page on other data than its own only has to run.
    """
    names = {"__name__": "__main__"}
    same = doctest.OutputChecker().check_output

    def shown(typed, want, got):
        if same(want, got, FLAGS):
            return want
        assert not compare, f"{path.name}: {typed}\n{got}"
        return got

    def run_block(found):
        kind, text = found.groups()
        run = _run_examples if kind == "pycon" else _run_commands
        return f"```{kind}\n{run(text, shown, names)}```"

    return BLOCK.sub(run_block, path.read_text(encoding="utf-8"))


def are_pinned(*names):
    """Whether libraries have the versions of constraints.txt, with which pages were written."""
    constraints = Path(__file__).parent.parent / "constraints.txt"
    pins = constraints.read_text(encoding="utf-8").splitlines()
    return all(f"{name}=={version(name)}" in pins for name in names)


def _run_examples(text, shown, names):
    lines = []
    for example in doctest.DocTestParser().get_examples(text):
        first, *more = example.source.splitlines()
        lines += [f">>> {first}\n", *(f"... {line}".rstrip() + "\n" for line in more)]
        with redirect_stdout(io.StringIO()) as out:
            exec(compile(example.source, "page", "single"), names)
        lines.append(shown(first, example.want, out.getvalue()))
    return "".join(lines) + "\n"


def _run_commands(text, shown, names):
    return "".join(
        f"$ {command}\n" + shown(f"$ {command}", want, _run(command.replace("\\\n", "")))
        for command, want in COMMAND.findall(text)
    )


def _run(command):
    words = shlex.split(command)
    if words[0] == "fdgnn" and not {"|", ">", "<"} & set(words):
        done = fdgnn(*words[1:])
    else:
        line = re.sub(r"\bfdgnn (?=[a-z])", f"{shlex.quote(sys.executable)} -m fdgnn ", command)
        done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(run_page(page, compare=False), encoding="utf-8")

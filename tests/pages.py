"""Pages that are run: what they type is typed, and what they show must be what comes out."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys

from commands import fdgnn

BLOCK = re.compile(r"^```(console|pycon)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", flags=re.MULTILINE)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Anything(doctest.OutputChecker):
    """For a page on other data than its own: it must run, but prints other numbers."""

    def check_output(self, want, got, optionflags):
        return True


def run_page(path, *, compare=True):
    """Run the page's blocks in order, in the working directory; what differs is an AssertionError.

    `console` blocks have commands after ``$``, with what they print on standard output below them;
    `pycon` blocks are doctests that share their names. Other blocks are not run.
    """
    checker = doctest.OutputChecker() if compare else Anything()
    names = {"__name__": "__main__"}
    for kind, text in BLOCK.findall(path.read_text(encoding="utf-8")):
        if kind == "pycon":
            _run_examples(text, names, path.name, checker)
        for command, want in COMMAND.findall(text) if kind == "console" else ():
            got = _run_command(command.replace("\\\n", ""))
            assert checker.check_output(want, got, FLAGS), f"$ {command}\n{got}"


def _run_examples(text, names, page, checker):
    test = doctest.DocTestParser().get_doctest(text, names, page, page, 0)
    told = []
    doctest.DocTestRunner(checker, optionflags=FLAGS).run(test, out=told.append, clear_globs=False)
    names.update(test.globs)
    assert not told, "".join(told)


def _run_command(command):
    words = shlex.split(command)
    if words[0] == "fdgnn" and not {"|", ">", "<"} & set(words):
        done = fdgnn(*words[1:])
    else:
        line = _with_this_python(command)
        done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def _with_this_python(command):
    return re.sub(r"\bfdgnn (?=[a-z])", f"{shlex.quote(sys.executable)} -m fdgnn ", command)

"""The ``fdgnn`` command for tests: in this process, which spares its imports, or in its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from unittest import mock

from fdgnn.cli import main


def fdgnn(*words, **environment):
    """Run the command in this process, as far as it can tell in a new one."""
    words = list(map(str, words))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with (
        mock.patch.dict(os.environ, _environment(environment)),
        mock.patch.object(sys, "argv", ["fdgnn", *words]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        _filter_warnings_as_python_does()
        code = _exit_code()
    printed, told = (_text_of(stream) for stream in (out, err))
    return subprocess.CompletedProcess(words, code, printed, told)


def fdgnn_process(*words, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "fdgnn", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | _environment(environment),
        stdin=subprocess.DEVNULL,
    )


def assert_one_clear_line(run, *words):
    assert run.returncode != 0
    assert "Traceback" not in run.stderr
    lines = [line for line in run.stderr.splitlines() if line.startswith("error:")]
    assert len(lines) == 1, run.stderr
    for word in words:
        assert word in lines[0]


def _environment(given):
    return {"FDGNN_OFFLINE": "1"} | given


def _filter_warnings_as_python_does():
    warnings.resetwarnings()
    for hidden in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", hidden)


def _exit_code():
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _text_of(stream):
    stream.flush()
    return stream.buffer.getvalue().decode()

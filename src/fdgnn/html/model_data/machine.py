"""The machine that a portrait is made on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path

from fdgnn.html.model_data.records import Machine

_PROC = Path("/proc")  # Linux


def this_machine() -> Machine:
    """Describe this machine, as far as it tells."""
    kilobytes = _first("meminfo", r"MemTotal:\s*(\d+) kB")
    return Machine(
        python=platform.python_version(),
        system=platform.system(),
        cpu=platform.machine(),
        cores=os.cpu_count() or 1,
        cpu_model=_first("cpuinfo", r"model name\s*:[ \t]*(\S.*)"),
        memory_gb=None if kilobytes is None else round(int(kilobytes) * 1024 / 1e9, 1),
    )


def _first(file: str, pattern: str) -> str | None:
    """Return the captured group of the first line that matches, or None."""
    try:
        text = (_PROC / file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(f"^{pattern}$", text, re.MULTILINE)
    return found and found[1].strip()

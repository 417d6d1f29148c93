"""The machine that a portrait was made on, as far as it tells."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path
from typing import Any

_PROC = Path("/proc")  # Linux


def this_machine() -> dict[str, Any]:
    """The portrait's "machine"; what cannot be known is None."""
    kilobytes = _first("meminfo", r"MemTotal:\s*(\d+) kB")
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "cpu": platform.machine(),
        "cores": os.cpu_count() or 1,
        "cpu_model": _first("cpuinfo", r"model name\s*:[ \t]*(\S.*)"),
        "memory_gb": None if kilobytes is None else round(int(kilobytes) * 1024 / 1e9, 1),
    }


def _first(file: str, pattern: str) -> str | None:
    """What the first line of the pattern says."""
    try:
        text = (_PROC / file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(f"^{pattern}$", text, re.MULTILINE)
    return found and found[1].strip()

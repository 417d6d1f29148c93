"""The script that draws a page's charts: made by vl-convert once, and then kept.

Making it takes seconds, as Vega, Vega-Lite and Vega-Embed are compiled into one script.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any

from fdgnn.datasets.home import cache_home, tell_not_kept
from fdgnn.extras import require
from fdgnn.files import write_aside
from fdgnn.html.charts import altair


@functools.cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, in the version that Altair writes for."""
    path, version = _place()
    script = _kept(path)
    if script is None:
        script = str(_vl_convert().javascript_bundle(vl_version=version))
        _keep(path, script)
    script = script.replace("\r\n", "\n").replace("</script", "<\\/script")
    return f"(() => {{\n{script}\n}})();"  # its names stay its own


def keep_bundle() -> Path | None:
    """Make the script now, unless it is there; give its file, or None if nothing can be kept."""
    bundle()
    path, _ = _place()
    return None if _kept(path) is None else path


def _place() -> tuple[Path, str | None]:
    """Where the script is kept, and its version of Vega-Lite; None for vl-convert's own."""
    wanted = ".".join(altair().SCHEMA_VERSION.split(".")[:2])
    known = {f"v{v.removeprefix('v')}" for v in _vl_convert().get_vegalite_versions()}
    version = wanted if wanted in known else None
    name = f"vega-{_vl_convert().__version__}-{version or 'default'}.js"
    return cache_home() / name, version


def _vl_convert() -> Any:
    return require("vl_convert", "report", "Report pages")


def _kept(path: Path) -> str | None:
    """Read the script that was kept; None if there is none, or if it was damaged."""
    try:
        digest, _, script = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    whole = digest == hashlib.sha256(script).hexdigest().encode()
    return script.decode("utf-8") if whole else None


def _keep(path: Path, script: str) -> None:
    """Keep the script with its digest; where nothing can be kept, it is made again next time."""
    content = script.encode("utf-8")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(path) as file:
            file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
    except OSError as error:
        what = "the script that draws the charts of pages"
        tell_not_kept(what, "it will be made", path.parent, error)

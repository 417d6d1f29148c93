"""Builder of HTML pages: one file each, that fetches nothing and runs no script but its own.

A page NAME is made of ``templates/NAME.html.j2``, which extends ``page.html.j2``, the styles
``base.css`` and ``NAME.css``, ``scripts/NAME.js`` with all modules that it imports, and its data.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import shlex
from graphlib import TopologicalSorter
from pathlib import Path
from statistics import fmean
from typing import Any

from fdgnn._version import __version__
from fdgnn.datasets.home import cache_home, warn_not_cached
from fdgnn.exceptions import FDGNNError
from fdgnn.extras import require
from fdgnn.files import write_aside
from fdgnn.html import words
from fdgnn.texts import listed

_HERE = Path(__file__).parent
_IMPORT = re.compile(r'^import [^;]*? from "\./([\w-]+\.js)";\n', re.MULTILINE)


def check_jinja() -> None:
    """Raise MissingDependencyError if Jinja2, which fills in all pages, is not installed."""
    require("jinja2", "report", "Pages")


def build_page(
    name: str,
    data: str,
    *,
    title: str,
    summary: str,
    library: str | None = None,
    worker: str | None = None,
    **values: Any,
) -> bytes:
    """Return an HTML page.

    Parameters
    ----------
    name : str
        ``"report"`` or ``"playground"``: of its template, style and script.
    data : str
        What its script reads from the element ``page-data``, without ``<``: see `embedded_json`.
    title, summary : str
        Text of the header; escaped, as all text that the template fills in.
    library : str, optional
        A script that the page's own script uses, such as `vega_bundle`.
    worker : str, optional
        The module whose script the page runs in workers.
    **values
        Whatever else the template asks for.
    """
    check_jinja()
    scripts = {"early": _text("scripts/early.js"), "page": joined_script(f"{name}.js")}
    if library is not None:
        scripts["library"] = library
    template = _templates().get_template(f"{name}.html.j2")
    html: str = template.render(
        title=title,
        summary=summary,
        version=__version__,
        policy=_content_policy(*scripts.values(), workers=worker is not None),
        style=_markup(_text("templates/base.css") + _text(f"templates/{name}.css")),
        data=_markup(data),
        scripts={key: _markup(text) for key, text in scripts.items()},
        worker=worker and _markup(joined_script(worker)),
        **values,
    )
    return html.encode("utf-8", errors="replace")  # paths may hold bytes that are not text


def write_page(path: Path, page: bytes, error: type[FDGNNError]) -> None:
    """Write a page, completely or not at all; raise `error` if that fails."""
    try:
        with write_aside(path) as file:
            file.write(page)
    except OSError as failure:  # its own text names the temporary file beside the page
        why = failure.strerror or failure
        raise error(f"{path}: the page cannot be written ({why})") from failure


def embedded_json(content: Any) -> str:
    """Return JSON that a ``<script>`` element can hold, whatever text it contains."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _content_policy(*scripts: str, workers: bool) -> str:
    """Allow these scripts and nothing else; nothing is fetched, whatever the page contains."""
    digests = [hashlib.sha256(text.encode()).digest() for text in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        f"{'worker-src blob:; ' if workers else ''}base-uri 'none'; form-action 'none'"
    )


@functools.cache
def _templates() -> Any:
    """Return the templates, which escape the values that are filled in."""
    import jinja2

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    templates.filters |= {
        "count": words.count,
        "duration": words.duration,
        "json": lambda content: _markup(embedded_json(content)),
        "listed": listed,
        "mean": lambda known: fmean(known) if known else None,
        "percent": words.percent,
        "plain": words.plain,
        "plural": words.plural,
        "quoted": shlex.quote,
        "sentence": words.sentence,
        "setting_words": words.setting_words,
        "significant": words.significant,
        "with_unit": words.with_unit,
    }
    templates.globals |= {
        "metric_title": words.metric_title,
        "score": words.score,
        "spread": words.spread,
    }
    return templates


def _markup(text: str) -> Any:
    """Return text that templates do not escape."""
    from markupsafe import Markup  # a dependency of Jinja2

    return Markup(text)


@functools.cache
def _text(file: str) -> str:
    return (_HERE / file).read_text(encoding="utf-8")


# ---------------------------------------------------------------------- scripts


@functools.cache
def joined_script(main: str) -> str:
    """Join a module of ``scripts`` with all that it imports to one script.

    The names of modules share one scope in the end, so that no two modules may have the same name
    at their top (``tests/test_playground.py``).
    """
    texts = modules_of(main)
    order = TopologicalSorter({name: _IMPORT.findall(text) for name, text in texts.items()})
    bodies = (_IMPORT.sub("", texts[name]) for name in order.static_order())
    body = "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in bodies)
    return f'"use strict";\n(() => {{\n{body}\n}})();'


def modules_of(main: str) -> dict[str, str]:
    """Return the texts of a module and of all that it imports, by the names of their files."""
    found: dict[str, str] = {}
    waiting = [main]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = _text(f"scripts/{name}")
            waiting += _IMPORT.findall(found[name])
    return found


@functools.cache
def vega_bundle() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script.

    vl-convert compiles it, which takes seconds, so it is cached on disk.
    """
    vl_convert = require("vl_convert", "report", "Report pages")
    path = cache_home() / f"vega-{vl_convert.__version__}.js"
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        digest = content = b""
    if digest != hashlib.sha256(content).hexdigest().encode():  # missing or damaged
        content = vl_convert.javascript_bundle().encode("utf-8")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_aside(path) as file:
                file.write(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
        except OSError as error:
            what = "the script that draws the charts of pages"
            warn_not_cached(what, "it will be made", path.parent, error)
    script = content.decode("utf-8").replace("\r\n", "\n").replace("</script", "<\\/script")
    return f"(() => {{\n{script}\n}})();"  # its names stay its own

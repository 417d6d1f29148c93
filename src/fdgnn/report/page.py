"""From sources to one HTML file: everything it needs is inside, once, and nothing is fetched."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fdgnn._version import __version__
from fdgnn.exceptions import MissingDependencyError, StudyError
from fdgnn.report.charts import altair
from fdgnn.report.figures import Figure, Section
from fdgnn.report.numbers import listed
from fdgnn.report.sections import data, dynamics, errors, recipe, result, rivals, selection
from fdgnn.report.sources import Source

LARGEST = 6_000_000  # bytes of a page
DRAWINGS = 3_000_000  # bytes of its drawn graphs, of all sources together
_HERE = Path(__file__).parent / "templates"


def render(sources: Sequence[Source], title: str | None = None) -> bytes:
    """Give the page; drawn graphs are left out, the least telling first, until it is small."""
    sections = _sections(sources)
    for budget in (DRAWINGS, DRAWINGS // 4, DRAWINGS // 32):
        page = _render(sources, sections, title, budget // len(sources))
        if len(page) < LARGEST:
            return page
    raise StudyError(
        f"{len(sources)} sources make a page of more than {LARGEST // 1_000_000} MB; "
        "make several pages of fewer"
    )


def _sections(sources: Sequence[Source]) -> list[Section]:
    made = [
        result.section(sources),
        selection.section(sources),
        dynamics.section(sources),
        data.section(sources),
        errors.section(sources),
        rivals.section(sources),
        recipe.section(sources),
    ]
    return [s for s in made if s is not None and (s.figures or s.cards or s.blocks or s.after)]


def _render(
    sources: Sequence[Source], sections: Sequence[Section], title: str | None, budget: int
) -> bytes:
    from markupsafe import Markup

    names = list(dict.fromkeys(s.dataset for s in sources))
    what = listed(names) if len(names) <= 3 else f"{len(names)} datasets"
    content = {
        "charts": {
            panel.id: {"spec": panel.spec, "uses": list(panel.uses)}
            for figure in _figures(sections)
            for panel in figure.panels
        },
        "tables": {
            name: _columns(rows)
            for figure in _figures(sections)
            for name, rows in figure.data.items()
        },
        "drawings": {
            str(i): _drawings(s.portrait, budget) for i, s in enumerate(sources) if s.portrait
        },
    }
    scripts = {"early": _file("early.js"), "page": _file("page.js"), "bundle": bundle()}
    html: str = (
        _templates()
        .get_template("page.html.j2")
        .render(
            title=title or f"FDGNN on {what}",
            summary=result.summary(sources),
            sections=sections,
            sources=sources,
            version=__version__,
            policy=_policy(scripts.values()),
            style=Markup(_file("page.css")),
            content=Markup(embedded_json(content)),
            scripts={name: Markup(text) for name, text in scripts.items()},
        )
    )
    return html.encode("utf-8", errors="replace")  # halves of surrogate pairs cannot be written


def _figures(sections: Sequence[Section]) -> Iterator[Figure]:
    for section in sections:
        yield from section.figures
        for block in section.blocks:
            yield from block.figures
        yield from section.after


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows without their names, which are the same a thousand times."""
    fields = list(dict.fromkeys(name for row in rows for name in row))
    return {"fields": fields, "rows": [[row.get(name) for name in fields] for row in rows]}


def _drawings(portrait: dict[str, Any], budget: int) -> dict[str, Any]:
    """Mistakes first, then the others in their order, as long as there is room."""
    first = [str(number) for number in portrait["mistakes"]]
    kept: dict[str, Any] = {}
    for name in dict.fromkeys([*first, *portrait["drawings"]]):
        drawing = portrait["drawings"].get(name)
        if drawing is not None:
            budget -= len(_dumps(drawing))
            if budget < 0:
                break
            kept[name] = drawing
    return kept


# ---------------------------------------------------------------------- what is put inside


def embedded_json(content: Any) -> str:
    """JSON that a ``<script>`` element can hold, whatever the text in it is."""
    text = _dumps(content)
    for character in "<>&\N{LINE SEPARATOR}\N{PARAGRAPH SEPARATOR}":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _dumps(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@functools.cache
def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, of the version that Altair writes for."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError(
            "a report needs vl-convert; install it with: pip install 'fdgnn[report]'"
        ) from error
    wanted = ".".join(altair().SCHEMA_VERSION.split(".")[:2])
    known = {f"v{v.removeprefix('v')}" for v in vl_convert.get_vegalite_versions()}
    make: Any = vl_convert.javascript_bundle  # its types know of no default
    text = make(vl_version=wanted if wanted in known else None)
    script = str(text).replace("\r\n", "\n").replace("</script", "<\\/script")
    return f"(() => {{\n{script}\n}})();"  # names of its own, out of the page's way


@functools.cache
def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


def _policy(scripts: Any) -> str:
    """The page's own scripts run, nothing else, and nothing is fetched, whatever is in the data."""
    digests = [hashlib.sha256(text.encode()).digest() for text in scripts]
    allowed = " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@functools.cache
def _templates() -> Any:
    try:
        import jinja2
    except ImportError as error:
        raise MissingDependencyError(
            "a report needs Jinja2; install it with: pip install 'fdgnn[report]'"
        ) from error
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

"""From subjects to one HTML file: everything it needs is inside, once, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import to_builtins

from fdgnn.exceptions import StudyError
from fdgnn.html.charts import unchecked
from fdgnn.html.figures import Figure, Row, Section
from fdgnn.html.model_data.records import Drawing, Portrait
from fdgnn.html.numbers import listed
from fdgnn.html.page import build_page, embedded_json, vega_bundle
from fdgnn.html.sections import (
    data,
    dynamics,
    errors,
    recipe,
    result,
    rivals,
    selection,
    substructures,
    trust,
)
from fdgnn.html.subjects import Subject
from fdgnn.records import encode

LARGEST = 6_000_000  # bytes of a page
DRAWINGS = 3_000_000  # bytes of its drawn graphs, of all subjects together


def render(subjects: Sequence[Subject], title: str | None = None) -> bytes:
    """Give the page; drawn graphs are left out, mistakes last, until it is small enough."""
    with unchecked():
        sections = _sections(subjects)
    for budget in (DRAWINGS, DRAWINGS // 4, DRAWINGS // 32):
        page = _render(subjects, sections, title, budget // len(subjects))
        if len(page) < LARGEST:
            return page
    raise StudyError(
        f"{len(subjects)} runs and models make a page of more than {LARGEST // 1_000_000} MB; "
        "make several pages of fewer"
    )


def _sections(subjects: Sequence[Subject]) -> list[Section]:
    made = [
        result.section(subjects),
        selection.section(subjects),
        dynamics.section(subjects),
        data.section(subjects),
        substructures.section(subjects),
        errors.section(subjects),
        trust.section(subjects),
        rivals.section(subjects),
        recipe.section(subjects),
    ]
    return [s for s in made if s is not None and (s.figures or s.cards or s.parts or s.after)]


def _render(
    subjects: Sequence[Subject], sections: Sequence[Section], title: str | None, budget: int
) -> bytes:
    return build_page(
        "report",
        embedded_json(_content(subjects, sections, budget)),
        title=title or _title(subjects),
        summary=result.summary(subjects),
        library=vega_bundle(),
        sections=sections,
        subjects=subjects,
    )


def _title(subjects: Sequence[Subject]) -> str:
    names = list(dict.fromkeys(s.dataset for s in subjects))
    return f"FDGNN on {listed(names) if len(names) <= 3 else f'{len(names)} datasets'}"


def _content(subjects: Sequence[Subject], sections: Sequence[Section], budget: int) -> Any:
    """What the page's script draws from."""
    figures = list(_figures(sections))
    return {
        "charts": {
            panel.id: {"spec": panel.spec, "uses": list(panel.uses)}
            for figure in figures
            for panel in figure.panels
        },
        "tables": {
            name: _columns(rows) for figure in figures for name, rows in figure.data.items()
        },
        "drawings": {
            str(i): {str(d.graph): to_builtins(d) for d in _drawings(s.portrait, budget)}
            for i, s in enumerate(subjects)
            if s.portrait
        },
    }


def _figures(sections: Sequence[Section]) -> Iterator[Figure]:
    for section in sections:
        yield from section.figures
        for part in section.parts:
            yield from part.figures
        yield from section.after


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Take rows apart, so that the names of fields are in the page once."""
    fields = list(dict.fromkeys(name for row in rows for name in row))
    return {"fields": fields, "rows": [[row.get(name) for name in fields] for row in rows]}


def _drawings(portrait: Portrait, budget: int) -> Iterator[Drawing]:
    """Give mistakes and examples first, then the others in order, as long as there is room."""
    needed = {*portrait.mistakes, *(one.graph for one in portrait.substructures)}
    listed_first = sorted(portrait.drawings, key=lambda d: d.graph not in needed)
    for drawing in listed_first:
        budget -= len(encode(drawing))
        if budget < 0:
            return
        yield drawing

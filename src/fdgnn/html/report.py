"""The HTML report on runs and models: one file that needs no network.

`subjects` reads run directories and model files, `sections` turns them into figures with captions
and tables, and `page` builds the file. No model runs here: what needs one is in the report data
that `fdgnn.html.collect.report_data` computed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.files import check_writable
from fdgnn.html.figures import Section
from fdgnn.html.page import build_page, embedded_json, vega_bundle, write_page
from fdgnn.html.report_data import Drawing, ReportData
from fdgnn.html.sections import data, errors, model, result, selection
from fdgnn.html.subjects import Subject, model_subjects, named_apart, read_subject
from fdgnn.html.words import count
from fdgnn.records import encode
from fdgnn.texts import listed

__all__ = ["Subject", "model_subjects", "read_subject", "write_report"]

LARGEST = 6_000_000  # bytes of a page
DRAWINGS = 3_000_000  # bytes of its drawn graphs, of all subjects together
#: Sections beside the result: id, title, lead, and the function that gives the part of a subject.
_SECTIONS = (
    (
        "selection",
        "Model selection",
        "How the base models and their settings were chosen.",
        selection.part,
    ),
    ("data", "Data", "Statistics of the graphs, and a map of their features.", data.part),
    (
        "model",
        "Explanations",
        "Attributions of substructures and descriptors, and how the states of the reservoir "
        "converge.",
        model.part,
    ),
    (
        "errors",
        "Errors",
        "Wrong predictions, and the attributions of their vertices.",
        errors.part,
    ),
    (
        "uncertainty",
        "Uncertainty",
        "Calibration, conformal prediction and the applicability domain.",
        errors.uncertainty,
    ),
    ("recipe", "Reproduction", "Settings, versions, machine and command.", selection.recipe),
)


def check_report(output: str | os.PathLike[str]) -> None:
    """Raise an error now, rather than after the work, if no report can be written to `output`.

    Parameters
    ----------
    output : path
        The HTML file that is to be written.

    Raises
    ------
    MissingDependencyError
        A library of the extra 'report' is not installed.
    OSError
        The file cannot be written.
    """
    check_writable(Path(output))
    for library in ("jinja2", "networkx", "vl_convert"):
        require(library, "report", "Report pages")


def write_report(
    subjects: Iterable[str | os.PathLike[str] | Subject] | str | os.PathLike[str] | Subject,
    output: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> Path:
    """Write a report on runs and models, completely or not at all.

    Parameters
    ----------
    subjects : path or Subject, or several of them
        Run directories of `fdgnn evaluate` and `fdgnn compare`, model files, or what
        `read_subject` or `model_subjects` returned.
    output : path
        The HTML file. It is replaced if it is there.
    title : str, optional
        The title of the page; by default it names the datasets.

    Returns
    -------
    Path
        The HTML file. It has less than six million bytes.

    Raises
    ------
    StudyError
        A subject is missing or damaged, there are too many for one page, or the page cannot be
        written.
    ModelFileError
        A file is not a model file.
    MissingDependencyError
        Jinja2 or vl-convert is not installed.
    """
    if isinstance(subjects, str | os.PathLike | Subject):
        subjects = [subjects]
    path = Path(output)
    check_writable(path)
    read = [one for s in subjects for one in ([s] if isinstance(s, Subject) else read_subject(s))]
    if not read:
        raise StudyError("there is nothing to report on; name a run directory or a model file")
    write_page(path, _page(named_apart(read), title), StudyError)
    return path


def _page(subjects: Sequence[Subject], title: str | None) -> bytes:
    """Return the page; drawn graphs are left out, mistakes last, until it is small enough."""
    sections = [result.section(subjects)]
    for id_, heading, lead, part in _SECTIONS:
        made = [replace(part(i, s), run=i, name=s.name) for i, s in enumerate(subjects)]
        if parts := [one for one in made if not one.is_empty]:
            sections.append(Section(id_, heading, lead, parts))
    names, models = list(dict.fromkeys(s.dataset for s in subjects)), {s.model for s in subjects}
    where = listed(names) if len(names) <= 3 else f"{len(names)} datasets"
    model = subjects[0].model if len(models) == 1 else ""
    n_graphs: dict[str, int] = {}  # targets of one model are about the same graphs
    for s in subjects:
        for n in [s.data.data.n_graphs] if s.data else [e.n_graphs for e in s.evaluations]:
            n_graphs[s.path] = max(n, n_graphs.get(s.path, 0))
    what = f"From {subjects[0].origin}" if len(subjects) == 1 else listed(s.name for s in subjects)
    graphs = f"; {count(sum(n_graphs.values()))} graphs" if n_graphs else ""
    for budget in (DRAWINGS, DRAWINGS // 4, DRAWINGS // 32):
        page = build_page(
            "report",
            embedded_json(_content(subjects, sections, budget // len(subjects))),
            title=title or f"{model or 'Models'} on {where}",
            summary=f"{what}{graphs}.",
            library=vega_bundle(),
            sections=sections,
            subjects=subjects,
        )
        if len(page) < LARGEST:
            return page
    raise StudyError(
        f"{len(subjects)} runs and models make a page of more than {LARGEST // 1_000_000} MB; "
        "make several pages of fewer"
    )


def _content(subjects: Sequence[Subject], sections: Sequence[Section], budget: int) -> Any:
    """Return what the page's script draws from."""
    figures = [figure for s in sections for figure in s.figures]
    figures += [figure for s in sections for part in s.parts for figure in part.figures]
    charts, tables, drawings = {}, {}, {}
    for figure in figures:
        for panel in figure.panels:
            table = panel.spec["data"].get("name")  # or the chart has its rows
            charts[panel.id] = {"spec": panel.spec, "uses": [table] if table else []}
        for name, rows in figure.data.items():  # as columns, which have their names once
            fields = list(dict.fromkeys(field for row in rows for field in row))
            values = [[row.get(field) for field in fields] for row in rows]
            tables[name] = {"fields": fields, "rows": values}
    for i, s in enumerate(subjects):
        if s.data:
            drawings[str(i)] = {str(d.graph): to_builtins(d) for d in _drawings(s.data, budget)}
    return {"charts": charts, "tables": tables, "drawings": drawings}


def _drawings(own: ReportData, budget: int) -> Iterator[Drawing]:
    """Yield mistakes and examples first, then the others in order, as long as there is room."""
    needed = {*own.mistakes, *(one.graph for one in own.substructures)}
    for drawing in sorted(own.drawings, key=lambda d: d.graph not in needed):
        budget -= len(encode(drawing))
        if budget < 0:
            return
        yield drawing

"""The HTML report on runs and models: one file that needs no network.

`subjects` reads run directories and model files, `figures` has the rows of their charts and tables,
``templates/sections.html.j2`` shows these, and `page` builds the file. No model runs here: what
needs one is in the report data that `fdgnn.html.collect.report_data` computed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import to_builtins

from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.files import check_writable
from fdgnn.html import figures
from fdgnn.html.page import build_page, embedded_json, vega_bundle, write_page
from fdgnn.html.report_data import Drawing, ReportData
from fdgnn.html.subjects import Subject, model_subjects, named_apart, read_subject
from fdgnn.html.words import count
from fdgnn.records import encode
from fdgnn.texts import listed

__all__ = ["Subject", "model_subjects", "read_subject", "write_report"]

LARGEST = 6_000_000  # bytes of a page
DRAWINGS = 3_000_000  # bytes of its drawn graphs, of all subjects together


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
        drawings = {
            str(i): {
                str(d.graph): to_builtins(d) for d in _drawings(s.data, budget // len(subjects))
            }
            for i, s in enumerate(subjects)
            if s.data
        }
        page = build_page(
            "report",
            embedded_json({"drawings": drawings}),
            title=title or f"{model or 'Models'} on {where}",
            summary=f"{what}{graphs}.",
            library=vega_bundle(),
            subjects=subjects,
            figures=figures,
        )
        if len(page) < LARGEST:
            return page
    raise StudyError(
        f"{len(subjects)} runs and models make a page of more than {LARGEST // 1_000_000} MB; "
        "make several pages of fewer"
    )


def _drawings(own: ReportData, budget: int) -> Iterator[Drawing]:
    """Yield mistakes and examples first, then the others in order, as long as there is room."""
    needed = {*own.mistakes, *(one.graph for one in own.substructures)}
    for drawing in sorted(own.drawings, key=lambda d: d.graph not in needed):
        budget -= len(encode(drawing))
        if budget < 0:
            return
        yield drawing

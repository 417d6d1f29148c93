"""A page about runs and models: one HTML file that needs no network.

`subjects` reads run directories and model files, `sections` turns them into figures with captions
and tables, `charts` draws with Vega-Altair, and `page` puts everything into one file. No model is
run here: what needs one is in the portrait that `fdgnn.html.model_data` made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.files import check_writable, write_aside
from fdgnn.html.report_page import render
from fdgnn.html.subjects import Subject, model_subject, read_subject, read_subjects

__all__ = ["Subject", "model_subject", "read_subject", "write_report"]

Anything = str | os.PathLike[str] | Subject


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
    for library in ("altair", "jinja2", "networkx", "vl_convert"):
        require(library, "report", "Report pages")


def write_report(
    subjects: Iterable[Anything] | Anything,
    output: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> Path:
    """Write a page about runs and models, completely or not at all.

    Parameters
    ----------
    subjects : path or Subject, or several of them
        Run directories, directories with ``compare.json``, model files, or what `read_subject` or
        `model_subject` gave.
    output : path
        The HTML file. It is replaced if it is there.
    title : str, optional
        The title of the page; by default it names the datasets.

    Returns
    -------
    Path
        Where the page is. It has less than six million bytes.

    Raises
    ------
    StudyError
        A subject is missing or damaged, there are too many for one page, or the page cannot be
        written.
    ModelFileError
        A file is no model file.
    MissingDependencyError
        Vega-Altair or Jinja2 is not installed.
    """
    if isinstance(subjects, str | os.PathLike | Subject):
        subjects = [subjects]
    path = Path(output)
    check_writable(path)
    page = render(read_subjects(subjects), title)
    try:
        with write_aside(path) as file:
            file.write(page)
    except OSError as error:  # its own text names the temporary file beside the page
        why = error.strerror or error
        raise StudyError(f"{path}: the page cannot be written ({why})") from error
    return path

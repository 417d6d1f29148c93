"""A page that people would rather look at than read logs: one HTML file that needs no network.

`sources` reads run directories and model files and checks them, `sections` turns them into figures
with captions and tables, `charts` draws with Vega-Altair, and `page` puts all into one file. No
model is run here; what needs one is in the portrait that `fdgnn.portrait` made.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fdgnn.exceptions import StudyError
from fdgnn.files import check_writable, write_aside
from fdgnn.report.page import render
from fdgnn.report.sources import Source, model_source, read_source, read_sources

__all__ = ["Source", "model_source", "read_source", "write_report"]


def write_report(
    sources: Iterable[str | os.PathLike[str] | Source] | str | os.PathLike[str] | Source,
    output: str | os.PathLike[str],
    *,
    title: str | None = None,
) -> Path:
    """Write a page about runs and models, complete or not at all.

    Parameters
    ----------
    sources : path or Source, or several of them
        Run directories, directories with ``compare.json``, model files, or what `read_source` or
        `model_source` gave.
    output : path
        The HTML file, replaced if it is there.
    title : str, optional
        The page's title; by default it names the datasets.

    Returns
    -------
    Path
        Where the page is. It has less than six million bytes.

    Raises
    ------
    StudyError
        A source is missing, foreign or damaged, there are too many for one page, or the page
        cannot be written.
    ModelFileError
        A file is no model file.
    MissingDependencyError
        Vega-Altair or Jinja2 is not installed.
    """
    if isinstance(sources, str | os.PathLike | Source):
        sources = [sources]
    path = Path(output)
    check_writable(path)
    page = render(read_sources(sources), title)
    try:
        with write_aside(path) as file:
            file.write(page)
    except OSError as error:  # it would name the file beside, which nobody knows
        why = error.strerror or error
        raise StudyError(f"{path}: the page cannot be written ({why})") from error
    return path

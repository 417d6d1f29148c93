"""From run directories, comparisons and model files to what a page is made of."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fdgnn.exceptions import StudyError
from fdgnn.report import shapes
from fdgnn.report.search import Search, read_search


@dataclass(frozen=True)
class Source:
    """One run, model or comparison, read and checked; whatever it does not have is None or empty.

    Attributes
    ----------
    name : str
        How the page calls it: the dataset, and where two would be called alike, its folder, too.
    dataset : str
    path : str
        Where it came from, as the user wrote it.
    settings, result : dict, optional
        Of a run directory.
    search : Search, optional
        What the run's records say.
    portrait : dict, optional
        What `fdgnn.portrait` found out about the model and its data.
    rivals : list of dict
        The rows of ``compare.json``.
    model : dict, optional
        What `fdgnn.model_info` tells of a model file.
    """

    name: str
    dataset: str
    path: str
    settings: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    search: Search | None = None
    portrait: dict[str, Any] | None = None
    rivals: Sequence[dict[str, Any]] = field(default=())
    model: dict[str, Any] | None = None


def read_sources(sources: Iterable[str | os.PathLike[str] | Source]) -> list[Source]:
    """Read what is not read yet, and give every source a name of its own."""
    read = [s if isinstance(s, Source) else read_source(s) for s in sources]
    if not read:
        raise StudyError("there is nothing to report on; name a run directory or a model file")
    return _told_apart(read)


def read_source(path: str | os.PathLike[str]) -> Source:
    """Read a run directory, a directory with ``compare.json``, or a model file.

    Raises
    ------
    StudyError
        It is none of them, or it is damaged.
    ModelFileError
        It is a file, and no model file.
    """
    where = Path(path)
    if where.is_dir():
        return _read_run(where)
    if where.is_file():
        return model_source(where)
    raise StudyError(f"{where}: there is no such run directory or model file")


def model_source(path: str | os.PathLike[str], portrait: dict[str, Any] | None = None) -> Source:
    """Give a model file, and what is known of it on some data, as a source."""
    from fdgnn.persistence import model_info

    facts = model_info(path)
    if portrait is not None:
        check_portrait(portrait, os.fspath(path))
    dataset = Path(path).stem if portrait is None else portrait["dataset"]
    return Source(dataset, dataset, os.fspath(path), portrait=portrait, model=facts)


def check_portrait(portrait: Any, whose: str) -> None:
    """Raise StudyError if a portrait is not as `fdgnn.portrait.format` says."""
    try:
        shapes.check_portrait(portrait)
    except (ValueError, OverflowError) as error:
        raise StudyError(f"{whose}: the portrait is damaged ({error}); make it anew") from None


def _read_run(folder: Path) -> Source:
    settings, result, portrait, rivals = (
        shapes.read_json(folder / name, shape) if (folder / name).exists() else None
        for name, shape in {
            "settings.json": shapes.SETTINGS,
            "result.json": shapes.RESULT,
            "portrait.json": object,
            "compare.json": shapes.RIVALS,
        }.items()
    )
    if settings is None and rivals is None:
        raise StudyError(
            f"{folder}: it is no run directory (no settings.json); name one that "
            "'fdgnn evaluate --out' or 'fdgnn compare --out' has written"
        )
    if portrait is not None:
        check_portrait(portrait, str(folder / "portrait.json"))
    dataset = settings["dataset"] if settings else _dataset_of(rivals or [], folder)
    search = read_search(folder / "records.jsonl", settings, result) if settings else None
    return Source(
        dataset, dataset, str(folder), settings, result, search, portrait, tuple(rivals or ())
    )


def _dataset_of(rivals: list[dict[str, Any]], folder: Path) -> str:
    datasets = list(dict.fromkeys(row["dataset"] for row in rivals))
    return ", ".join(datasets) if datasets else folder.name


def _told_apart(sources: list[Source]) -> list[Source]:
    """Add the folder to names that would occur twice, and a number where that is not enough."""
    named = _renamed(sources, lambda s, _: f"{s.dataset} ({Path(s.path).name or s.path})")
    return _renamed(named, lambda s, i: f"{s.name} #{i + 1}")


def _renamed(sources: list[Source], name: Any) -> list[Source]:
    often = {n for n, times in Counter(s.name for s in sources).items() if times > 1}
    return [replace(s, name=name(s, i)) if s.name in often else s for i, s in enumerate(sources)]

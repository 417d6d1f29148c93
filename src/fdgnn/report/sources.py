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
from fdgnn.report.numbers import count, listed, plural
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
    asked : dict, optional
        What the run's last start was asked for, its command among it.
    search : Search, optional
        What the run's records say.
    portrait : dict, optional
        What `fdgnn.portrait` found out about the model and its data.
    rivals : list of dict
        The rows of ``compare.json``.
    model : dict, optional
        What `fdgnn.model_info` tells of a model file.
    notes : list of str
        Sentences about it that a reader should know, as of rows that were left out.
    """

    name: str
    dataset: str
    path: str
    settings: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    asked: dict[str, Any] | None = None
    search: Search | None = None
    portrait: dict[str, Any] | None = None
    rivals: Sequence[dict[str, Any]] = field(default=())
    model: dict[str, Any] | None = None
    notes: Sequence[str] = field(default=())

    @property
    def command(self) -> str | None:
        """The command that made the run, or None if its files do not say."""
        given = (self.result or {}).get("command") or (self.asked or {}).get("command")
        return str(given) if given else None

    @property
    def origin(self) -> str:
        """Where it can be found; the demonstration's run is gone when its page is read."""
        return "fdgnn demo" if (self.command or "").startswith("fdgnn demo") else self.path


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


def model_source(
    path: str | os.PathLike[str],
    portrait: dict[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Source:
    """Give a model file, and what is known of it on some data, as a source.

    Parameters
    ----------
    path : path
        The model file.
    portrait : dict, optional
        What `fdgnn.portrait.portrait_of_model` gave.
    notes : list of str
        Sentences about the data that the page is to show, as of rows that were left out.

    Raises
    ------
    StudyError
        The portrait is damaged.
    ModelFileError
        The file is no model file.
    """
    from fdgnn.model_files import model_info

    facts = model_info(path)
    if portrait is not None:
        check_portrait(portrait, os.fspath(path))
    dataset = Path(path).stem if portrait is None else portrait["dataset"]
    notes = [*notes, *_unknown_classes(facts, portrait)]
    return Source(dataset, dataset, os.fspath(path), portrait=portrait, model=facts, notes=notes)


def _unknown_classes(facts: dict[str, Any], portrait: dict[str, Any] | None) -> list[str]:
    """Classes of the data that the model has not met; a portrait has them last."""
    n_known = len((facts.get("classes") or {}).get("values") or ())
    if portrait is None or not n_known or len(portrait["classes"]) <= n_known:
        return []
    names = portrait["classes"][n_known:]
    counts = dict(map(tuple, portrait["data"]["class_counts"]))
    n = sum(counts.get(name, 0) for name in names)
    what = "the class" if len(names) == 1 else "the classes"
    shown = listed(names if len(names) <= 5 else [*names[:5], "others"])
    return [f"The model does not know {what} {shown}: {plural(n, 'graph')} it must get wrong."]


def check_portrait(portrait: Any, whose: str) -> None:
    """Raise StudyError if a portrait is not as `fdgnn.portrait.format` says."""
    try:
        shapes.check_portrait(portrait)
    except (ValueError, OverflowError) as error:
        raise StudyError(f"{whose}: the portrait is damaged ({error}); make it anew") from None


def _read_run(folder: Path) -> Source:
    settings, asked, result, portrait, rivals = (
        shapes.read_json(folder / name, shape) if (folder / name).exists() else None
        for name, shape in {
            "settings.json": shapes.SETTINGS,
            "asked.json": shapes.ASKED,
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
    if result is not None:
        _check_folds(result, folder / "result.json")
    if portrait is not None:
        check_portrait(portrait, str(folder / "portrait.json"))
        _check_same_graphs(portrait, settings, result, folder)
    dataset = settings["dataset"] if settings else _dataset_of(rivals or [], folder)
    search = read_search(folder / "records.jsonl", settings, result) if settings else None
    return Source(
        dataset,
        dataset,
        str(folder),
        settings,
        result,
        asked,
        search,
        portrait,
        tuple(rivals or ()),
    )


def _check_folds(result: dict[str, Any], path: Path) -> None:
    """Raise StudyError if a result has no folds, or not as many depths as accuracies."""
    n = len(result["fold_accuracies"])
    others = [result["fold_depths"], result["fold_configurations"]]
    others += [result["fold_alphas"]] if "fold_alphas" in result else []
    if n == 0 or any(len(values) != n for values in others):
        raise StudyError(f"{path}: it is damaged (its folds do not fit together); make it anew")


def _check_same_graphs(
    portrait: dict[str, Any],
    settings: dict[str, Any] | None,
    result: dict[str, Any] | None,
    folder: Path,
) -> None:
    """Raise StudyError if a portrait is of other graphs than the run."""
    name, n = portrait["dataset"], portrait["data"]["n_graphs"]
    own_name = settings["dataset"] if settings else name
    own_n = result["n_graphs"] if result else n
    if (name, n) != (own_name, own_n):
        raise StudyError(
            f"{folder / 'portrait.json'}: it shows {plural(n, 'graph')} of {name}, but the run is "
            f"of {own_name} with {count(own_n)}; delete it, or make it anew by the run's command"
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

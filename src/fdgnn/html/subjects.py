"""What a page is about: run directories, comparisons and model files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fdgnn.evaluation.committee_files import CommitteeRun, is_committee, read_committee
from fdgnn.evaluation.committee_records import CommitteeResult
from fdgnn.evaluation.records import Asked, ComparisonRow, RunResult, RunSettings
from fdgnn.evaluation.rundir import Run, read_run
from fdgnn.exceptions import StudyError
from fdgnn.html.model_data.records import Portrait, read_portrait
from fdgnn.html.models import ModelFacts, model_facts
from fdgnn.html.numbers import listed
from fdgnn.html.search import SearchSummary, summarize_search
from fdgnn.texts import agreeing, counted


@dataclass(frozen=True)
class Subject:
    """One run, model or comparison; what it does not have is None or empty.

    Attributes
    ----------
    name : str
        How the page calls it: by its dataset and, where two have the same, by its folder.
    dataset : str
    path : str
        Where it is, as the user wrote it.
    run : Run, optional
        What a run directory holds.
    committee : CommitteeRun, optional
        What the directory of an evaluated committee holds.
    search : SearchSummary, optional
        The scores of the run's networks.
    portrait : Portrait, optional
        The facts about the model and its data.
    model : ModelFacts, optional
        What a model file says about itself.
    notes : sequence of str
        Sentences that a reader should know, for instance about rows that were left out.
    """

    name: str
    dataset: str
    path: str
    run: Run | None = None
    search: SearchSummary | None = None
    portrait: Portrait | None = None
    model: ModelFacts | None = None
    notes: Sequence[str] = ()
    committee: CommitteeRun | None = None

    @property
    def settings(self) -> RunSettings | None:
        """The settings of the run."""
        return None if self.run is None else self.run.settings

    @property
    def asked(self) -> Asked | None:
        """What the last start of the run was asked for."""
        return None if self.run is None else self.run.asked

    @property
    def result(self) -> RunResult | None:
        """The summary of the run, if it is finished."""
        return None if self.run is None else self.run.result

    @property
    def evaluation(self) -> RunResult | CommitteeResult | None:
        """The summary of the run or of the committee's, if it is finished."""
        return self.result if self.committee is None else self.committee.result

    @property
    def rivals(self) -> Sequence[ComparisonRow]:
        """The rows of a comparison."""
        return () if self.run is None else self.run.rivals

    @property
    def has_model(self) -> bool:
        """Whether there is a model, or a run that selects one; a comparison alone has none."""
        return any(x is not None for x in (self.settings, self.model, self.committee))

    @property
    def command(self) -> str | None:
        """The command that made the run, or None if its files do not say."""
        if self.committee is not None:
            return self.committee.command
        given = (x.command for x in (self.result, self.asked) if x is not None and x.command)
        return next(given, None)

    @property
    def origin(self) -> str:
        """Where it can be found; the run of a demonstration is gone when its page is read."""
        return "fdgnn demo" if (self.command or "").startswith("fdgnn demo") else self.path


def read_subjects(subjects: Iterable[str | os.PathLike[str] | Subject]) -> list[Subject]:
    """Read those that are not read yet, and give each a name of its own."""
    read = [s if isinstance(s, Subject) else read_subject(s) for s in subjects]
    if not read:
        raise StudyError("there is nothing to report on; name a run directory or a model file")
    return _told_apart(read)


def read_subject(path: str | os.PathLike[str]) -> Subject:
    """Read a run directory, that of a committee, one with ``compare.json``, or a model file.

    Raises
    ------
    StudyError
        It is none of them, or it is damaged.
    ModelFileError
        It is a file, but no model file.
    """
    where = Path(path)
    if where.is_dir():
        return _committee_subject(where) if is_committee(where) else _run_subject(where)
    if where.is_file():
        return model_subject(where)
    raise StudyError(f"{where}: there is no such run directory or model file")


def model_subject(
    path: str | os.PathLike[str],
    portrait: Portrait | None = None,
    notes: Sequence[str] = (),
    target: str | None = None,
) -> Subject:
    """Take a model file, and what is known about it, or one of its targets, on some data.

    Parameters
    ----------
    path : path
        The model file.
    portrait : Portrait, optional
        What `fdgnn.html.model_data.portrait_of_model` gave.
    notes : list of str
        Sentences about the data that the page shows, for instance about rows that were left out.
    target : str, optional
        Which of the model's several targets the portrait shows.

    Raises
    ------
    ModelFileError
        The file is no model file.
    """
    facts = model_facts(path, target)
    dataset = Path(path).stem if portrait is None else portrait.dataset
    name = dataset if target is None else f"{dataset}, {target}"
    notes = [*notes, *_unknown_classes(facts, portrait)]
    return Subject(name, dataset, os.fspath(path), portrait=portrait, model=facts, notes=notes)


def _unknown_classes(facts: ModelFacts, portrait: Portrait | None) -> list[str]:
    """Name the classes of the data that the model does not know; a portrait has them last."""
    if portrait is None or not 0 < facts.n_classes < len(portrait.classes):
        return []
    names = portrait.classes[facts.n_classes :]
    counts = dict(portrait.data.class_counts)
    n = sum(counts.get(name, 0) for name in names)
    what = "the class" if len(names) == 1 else "the classes"
    shown = listed(names if len(names) <= 5 else [*names[:5], "others"])
    verb = agreeing(n, "has", "have")
    return [
        f"The model does not know {what} {shown}: it cannot be right about the "
        f"{counted(n, 'graph')} that {verb} {'it' if len(names) == 1 else 'them'}."
    ]


def _run_subject(folder: Path) -> Subject:
    run = read_run(folder)
    portrait = _portrait_of(run, folder / "portrait.json")
    dataset = run.settings.dataset if run.settings else _compared(run.rivals) or folder.name
    return Subject(dataset, dataset, str(folder), run, summarize_search(run), portrait)


def _committee_subject(folder: Path) -> Subject:
    run = read_committee(folder)
    portrait = _portrait_of(run, folder / "portrait.json")
    dataset = run.settings.dataset
    return Subject(dataset, dataset, str(folder), portrait=portrait, committee=run)


def _portrait_of(run: Run | CommitteeRun, path: Path) -> Portrait | None:
    """Read the portrait of a run; raise StudyError if it shows other graphs than the run's."""
    if not path.exists():
        return None
    portrait = read_portrait(path)
    name, n = portrait.dataset, portrait.data.n_graphs
    own_name = run.settings.dataset if run.settings else name
    own_n = run.result.n_graphs if run.result else n
    if (name, n) != (own_name, own_n):
        raise StudyError(
            f"{path}: it shows {counted(n, 'graph')} of {name}, but the run has {own_n} of "
            f"{own_name}; delete it, or run the command again that made the run"
        )
    return portrait


def _compared(rivals: Sequence[ComparisonRow]) -> str:
    return ", ".join(dict.fromkeys(row.dataset for row in rivals))


def _told_apart(subjects: list[Subject]) -> list[Subject]:
    """Add the folder to names that occur twice, and a number where that is not enough."""
    named = _renamed(subjects, lambda s, _: f"{s.name} ({Path(s.path).name or s.path})")
    return _renamed(named, lambda s, i: f"{s.name} #{i + 1}")


def _renamed(subjects: list[Subject], name: Callable[[Subject, int], str]) -> list[Subject]:
    often = {n for n, times in Counter(s.name for s in subjects).items() if times > 1}
    return [replace(s, name=name(s, i)) if s.name in often else s for i, s in enumerate(subjects)]

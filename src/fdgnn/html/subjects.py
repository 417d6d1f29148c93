"""The subjects of a report: run directories and model files, as one kind of record."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fdgnn.evaluation.record import (
    BaselineScores,
    Evaluation,
    MetricScores,
    PublishedScore,
)
from fdgnn.evaluation.rundir import read_file
from fdgnn.exceptions import StudyError
from fdgnn.html.old_runs import old_evaluations
from fdgnn.html.report_data import ReportData, read_report_data
from fdgnn.html.words import plural, significant
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS
from fdgnn.model_files import model_info
from fdgnn.model_files.description import MODELS


@dataclass(frozen=True)
class Subject:
    """A run, a comparison, or a model; of several targets of one, each may be a subject.

    Attributes
    ----------
    name : str
        How the page calls it: by its dataset and, where two have the same, by its folder.
    dataset : str
    path : str
        Where it is, as the user wrote it.
    evaluations : sequence of Evaluation
        One; several of a comparison; none of a model that was never evaluated.
    data : ReportData, optional
        The model and its graphs.
    settings, versions : mapping
        What a model file has beside its evaluation.
    notes : sequence of str
        Sentences that a reader should know.
    """

    name: str
    dataset: str
    path: str
    evaluations: Sequence[Evaluation] = ()
    data: ReportData | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, object] = field(default_factory=dict)
    notes: Sequence[str] = ()

    @property
    def is_comparison(self) -> bool:
        """Whether several models are compared."""
        return len(self.evaluations) > 1

    @property
    def is_model_file(self) -> bool:
        """Whether it is a model file, rather than a run directory."""
        return bool(self.settings)

    @property
    def evaluation(self) -> Evaluation | None:
        """The evaluation; of a comparison, that of the model with report data, which is ours."""
        if self.is_comparison:
            known = self.evaluations if self.data is not None else ()
            return next((one for one in known if is_ours(one)), None)
        return self.evaluations[0] if self.evaluations else None

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        known = [self.data] if self.data else self.evaluations
        return any(one.task == "regression" for one in known)

    @property
    def command(self) -> str | None:
        """The command that made it, with the directory where it is now; None if not known."""
        known = [one.command for one in self.evaluations]
        known += [self.data.command] if self.data else []
        command = next((one for one in known if one), None)
        return None if command is None else _moved(command, self.path)

    @property
    def origin(self) -> str:
        """Where it can be found; the run of a demonstration is gone when its page is read."""
        return "fdgnn demo" if (self.command or "").startswith("fdgnn demo") else self.path


def _moved(command: str, path: str) -> str:
    """Write the directory where a run is now into the command that made it."""
    try:
        words = shlex.split(command.replace("--out=", "--out "))
        place = words.index("--out") + 1
        moved = Path(words[place]).resolve() != Path(path).resolve()
    except (ValueError, IndexError, OSError):
        return command
    return shlex.join([*words[:place], path, *words[place + 1 :]]) if moved else command


# ---------------------------------------------------------------------- results


def is_ours(evaluation: Evaluation) -> bool:
    """Return whether a model of this library was evaluated, rather than another method."""
    return evaluation.model.kind in MODELS


@dataclass(frozen=True)
class Result:
    """Scores of one model on graphs that it has not seen; the first metric is the headline.

    `kind` says how a chart shows it: "ours", or "other" of a method it is compared with.
    """

    name: str
    how: str
    scores: Sequence[MetricScores]
    baselines: Sequence[BaselineScores] = ()
    wl_ceiling: float | None = None
    published: PublishedScore | None = None
    evaluation: Evaluation | None = None
    kind: str = "ours"

    @property
    def first(self) -> MetricScores:
        """The scores by the metric that models are chosen by."""
        return self.scores[0]


def headline(subject: Subject) -> Result | None:
    """Return what to expect of a subject on graphs that it has never seen; None if not known.

    Of a comparison, it is the first model of this library. Scores on graphs seen in training are
    no evidence.
    """
    found = [one for one in results(subject) if one.scores]
    return next((one for one in found if one.kind == "ours"), found[0] if found else None)


def results(subject: Subject) -> list[Result]:
    """Return all results of a subject: of a comparison each method, of several targets each."""
    own = _unseen(subject)
    found = [] if own is None else [own]
    datasets: set[str] = set()
    several = len({one.dataset for one in subject.evaluations}) > 1
    for evaluation in subject.evaluations:
        name = evaluation.model.title if subject.is_comparison else subject.name
        name = f"{name} on {evaluation.dataset}" if several else name
        found += _results(f"{name}, in training" if own else name, evaluation)
        if evaluation.dataset in datasets:  # baselines are those of the folds, once
            found[-1] = replace(found[-1], baselines=())
        datasets.add(evaluation.dataset)
    return found


def _unseen(subject: Subject) -> Result | None:
    """Return the scores of a model on graphs that it has not seen in training."""
    data = subject.data
    if data is None or data.predictions != "unseen" or not data.scores:
        return None
    chosen = subject.evaluation.protocol.scoring if subject.evaluation else ""
    order = sorted(data.scores, key=lambda name: name != chosen)
    constant = "mean target" if data.task == "regression" else "majority class"
    return Result(
        subject.name,
        f"{plural(data.data.n_graphs, 'graph')} that the model has not seen in training",
        [_single(name, data.scores[name]) for name in order],
        [
            BaselineScores(
                name="constant",
                title=f"always the {constant}",
                scores=[_single(n, data.baseline[n]) for n in order if n in data.baseline],
            )
        ],
        data.data.wl_ceiling,
    )


def metric_words(metric: str) -> str:
    """Return the name of a metric in words."""
    known = (OF_CLASSES | OF_NUMBERS).get(metric)
    return metric if known is None else known.words


def _single(metric: str, score: float) -> MetricScores:
    return MetricScores(metric=metric, words=metric_words(metric), folds=[], mean=score)


def _results(name: str, evaluation: Evaluation) -> list[Result]:
    """Return the mean over targets, then each of several targets."""
    n = len(evaluation.folds)
    how = f"mean of {plural(n, 'outer fold')}, {evaluation.protocol.split}"
    kind = "ours" if is_ours(evaluation) else "other"
    targets = evaluation.targets
    if len(targets) > 1:
        first = targets[0].baselines
        mean = [
            BaselineScores(name=b.name, title=b.title, scores=[s])
            for b in first
            if (s := evaluation.baseline(b.name)) is not None
        ]
        title = f"{name}, mean of {len(targets)} targets"
        found = [Result(title, how, evaluation.metrics, mean, evaluation=evaluation, kind=kind)]
        return found + [
            Result(f"{name}, {t.name}", how, t.scores, t.baselines, t.wl_ceiling, kind=kind)
            for t in targets
        ]
    target = targets[0] if targets else None
    return [
        Result(
            name,
            how,
            [] if target is None else target.scores,
            [] if target is None else target.baselines,
            None if target is None else target.wl_ceiling,
            evaluation.published,
            evaluation,
            kind,
        )
    ]


# ---------------------------------------------------------------------- reading


def read_subjects(subjects: Iterable[str | os.PathLike[str] | Subject]) -> list[Subject]:
    """Read those that are not read yet, and give each a name of its own."""
    read = [one for s in subjects for one in ([s] if isinstance(s, Subject) else read_subject(s))]
    if not read:
        raise StudyError("there is nothing to report on; name a run directory or a model file")
    named = _renamed(read, lambda s, _: f"{s.name} ({Path(s.path).name or s.path})")
    return _renamed(named, lambda s, i: f"{s.name} #{i + 1}")


def read_subject(path: str | os.PathLike[str]) -> list[Subject]:
    """Read a run directory or a model file; each target with report data is a subject.

    Raises
    ------
    StudyError
        It is neither, or it is damaged.
    ModelFileError
        It is a file, but not a model file.
    """
    where = Path(path)
    if where.is_file():
        return model_subjects(where)
    if not where.is_dir():
        raise StudyError(f"{where}: there is no such run directory or model file")
    evaluations = _evaluations(where)
    datasets = dict.fromkeys(one.dataset for one in evaluations)
    dataset = ", ".join(datasets) or where.name
    subject = Subject(dataset, dataset, str(where), evaluations)
    file = where / "report.json"
    if not file.exists():
        return [subject]
    data = read_report_data(file)
    if evaluations:
        _check_same(file, data, evaluations[0])
    return with_data(subject, data)


def _evaluations(folder: Path) -> list[Evaluation]:
    """Read the evaluations of a run directory."""
    file = folder / "evaluation.json"
    if not file.exists():
        return old_evaluations(folder)
    kind: Any = Evaluation | list[Evaluation]
    found = read_file(file, kind)
    return found if isinstance(found, list) else [found]


def _check_same(file: Path, data: Sequence[ReportData], evaluation: Evaluation) -> None:
    """Raise StudyError if report data are of other graphs than those of the run."""
    for one in data:
        if one.dataset != evaluation.dataset or one.data.n_graphs > evaluation.n_graphs:
            raise StudyError(
                f"{file}: shows {plural(one.data.n_graphs, 'graph')} of {one.dataset}, but the run "
                f"has {evaluation.n_graphs} of {evaluation.dataset}; delete the file, or run the "
                "command again that made the run"
            )


def model_subjects(path: str | os.PathLike[str], data: Sequence[ReportData] = ()) -> list[Subject]:
    """Return a model file as a subject, or each of its targets with report data.

    Raises
    ------
    ModelFileError
        The file is not a model file.
    """
    info = model_info(path)
    evaluation = info.evaluation
    first = info.estimators[0].encoder if info.estimators else info.encoder
    assert first is not None  # a file has a model or an encoder
    kind = info.model or first.kind
    facts = {name: value for name, value in first.facts.items() if not isinstance(value, list)}
    graphs = {"directed": info.graph_kind.directed, "vertices_carry": info.graph_kind.vertices}
    encoder = {"encoder": first.kind} | first.parameters | facts
    dataset = data[0].dataset if data else Path(path).stem
    subject = Subject(
        dataset,
        dataset,
        os.fspath(path),
        [] if evaluation is None else [evaluation],
        settings={"class": kind} | encoder | info.parameters | graphs,
        versions={"fdgnn": info.fdgnn, "format": info.format},
    )
    if evaluation is None and info.score is not None:
        how = "nested cross-validation" if info.nested else "as measured by whoever saved it"
        note = f"Score saved with the model: {significant(info.score)} ({how})."
        subject = replace(subject, notes=[note])
    return with_data(subject, data) if data else [subject]


def with_data(subject: Subject, data: Sequence[ReportData]) -> list[Subject]:
    """Return a subject for each target that there are report data of."""
    found = []
    for one in data:
        evaluations = subject.evaluations
        if one.target:
            evaluations = [each.of_target(one.target) for each in evaluations]
        name = f"{subject.name}, {one.target}" if one.target else subject.name
        found.append(
            replace(
                subject,
                name=name,
                data=one,
                evaluations=evaluations,
                notes=[*subject.notes, *one.notes],
            )
        )
    return found


def _renamed(subjects: list[Subject], name: Callable[[Subject, int], str]) -> list[Subject]:
    often = {n for n, times in Counter(s.name for s in subjects).items() if times > 1}
    return [replace(s, name=name(s, i)) if s.name in often else s for i, s in enumerate(subjects)]


def missing_data(subject: Subject) -> tuple[str, str]:
    """Return why a subject has no report data, and the command that adds them, if it is known."""
    if subject.is_model_file:
        return (
            "A model file holds no graphs. Name the data to see what the model does on them:",
            f"fdgnn report {shlex.quote(subject.path)} --data FILE --target COLUMN -o report.html",
        )
    why = "This run has no report.json, which holds what is shown here. "
    if any(one.status == "unfinished" for one in subject.evaluations):
        why = "This run is not finished; what is shown here is computed at its end. "
    if subject.command is None:
        return (
            f"{why}The command that started the run adds it, but the run does not record which "
            f"command that was. Its directory (--out) is {subject.path}.",
            "",
        )
    return f"{why}The same command again resumes the run and adds it:", subject.command

"""The HTML report on runs and models: one file that needs no network.

A `Subject` is a run directory or a model file, `figures` has the rows of charts and tables,
``templates/sections.html.j2`` shows these, and `page` builds the file. No model runs here: what
needs one is in the report data that `fdgnn.html.collect.report_data` computed.
"""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgspec import to_builtins

from fdgnn.evaluation.record import Evaluation
from fdgnn.evaluation.run import read_evaluations
from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.files import check_writable
from fdgnn.html import figures
from fdgnn.html.page import build_page, embedded_json, vega_bundle, write_page
from fdgnn.html.report_data import Drawing, ReportData, read_report_data
from fdgnn.html.words import count, plural
from fdgnn.model_files import model_info
from fdgnn.records import encode
from fdgnn.texts import listed

__all__ = ["Subject", "model_subjects", "read_subject", "write_report"]

LARGEST = 6_000_000  # bytes of a page
DRAWINGS = 3_000_000  # bytes of its drawn graphs, of all subjects together


@dataclass(frozen=True)
class Subject:
    """A run, a comparison or a model; with several targets there may be a subject for each.

    Attributes
    ----------
    name : str
        Name on the page: the dataset and, where two have the same, the folder.
    dataset : str
    path : str
        Path as given by the user.
    evaluations : sequence of Evaluation
        One; several for a comparison; none for a model that was never evaluated.
    data : ReportData, optional
        The model and its graphs.
    settings, versions : mapping
        Settings and versions in the model file.
    notes : sequence of str
        Notes for the reader.
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
        known = self.evaluations
        if self.is_comparison:
            known = [one for one in known if self.data is not None and figures.is_ours(one)]
        return known[0] if known else None

    @property
    def model(self) -> str:
        """The model in words; empty if several are compared, or none is known."""
        if self.is_comparison:
            return ""
        known = [one.model.kind for one in self.evaluations]
        kind = known[0] if known else str(self.settings.get("class", ""))
        return "FDGNN" if kind.startswith("FDGNN") else kind

    @property
    def command(self) -> str | None:
        """The command that made it, with the directory where it is now; None if not known."""
        known = [one.command for one in (*self.evaluations, self.data) if one is not None]
        command = next(filter(None, known), None)
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


# ---------------------------------------------------------------------- reading


def read_subject(path: str | os.PathLike[str]) -> list[Subject]:
    """Read a run directory or a model file; each target with report data is a subject.

    Raises
    ------
    StudyError
        The path is neither a run directory nor a model file, or it is damaged.
    ModelFileError
        The file is not a model file.
    """
    where = Path(path)
    if where.is_file():
        return model_subjects(where)
    if not where.is_dir():
        raise StudyError(f"{where}: there is no such run directory or model file")
    evaluations = read_evaluations(where)
    dataset = ", ".join(dict.fromkeys(one.dataset for one in evaluations)) or where.name
    file, run = where / "report.json", evaluations[0]
    data = read_report_data(file) if file.exists() else []
    for one in data:
        if one.dataset != run.dataset or one.data.n_graphs > run.n_graphs:
            raise StudyError(
                f"{file}: shows {plural(one.data.n_graphs, 'graph')} of {one.dataset}, but the run "
                f"has {run.n_graphs} of {run.dataset}; delete the file, or run the command again "
                "that made the run"
            )
    return _with_data(Subject(dataset, dataset, str(where), evaluations), data)


def model_subjects(path: str | os.PathLike[str], data: Sequence[ReportData] = ()) -> list[Subject]:
    """Return a model file as a subject, or each of its targets with report data.

    Raises
    ------
    ModelFileError
        The file is not a model file.
    """
    info = model_info(path)
    first = info.estimators[0].encoder if info.estimators else info.encoder
    assert first is not None  # a file has a model or an encoder
    facts = {name: value for name, value in first.facts.items() if not isinstance(value, list)}
    graphs = {"directed": info.graph_kind.directed, "vertices_carry": info.graph_kind.vertices}
    encoder = {"encoder": first.kind} | first.parameters | facts
    dataset = data[0].dataset if data else Path(path).stem
    evaluations = [] if info.evaluation is None else [info.evaluation]
    settings = {"class": info.model or first.kind} | encoder | info.parameters | graphs
    versions = {"fdgnn": info.fdgnn, "format": info.format}
    whole = Subject(dataset, dataset, os.fspath(path), evaluations, None, settings, versions)
    return _with_data(whole, data)


def _with_data(subject: Subject, data: Sequence[ReportData]) -> list[Subject]:
    """Return a subject for each target with report data; without any, the subject itself."""
    found = []
    for one in data:
        own = replace(subject, data=one, notes=[*subject.notes, *one.notes])
        if one.target:
            evaluations = [each.of_target(one.target) for each in subject.evaluations]
            own = replace(own, name=f"{own.name}, {one.target}", evaluations=evaluations)
        found.append(own)
    return found or [subject]


def named_apart(subjects: Sequence[Subject]) -> list[Subject]:
    """Return subjects with different names: with the folder where two are equal, or a number."""
    found = list(subjects)
    for name in ("{0.name} ({1})", "{0.name} #{2}"):
        often = Counter(one.name for one in found)
        for i, s in enumerate(found):
            if often[s.name] > 1:
                folder = Path(s.path).name or s.path
                found[i] = replace(s, name=name.format(s, folder, i + 1))
    return found


# ---------------------------------------------------------------------- writing


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

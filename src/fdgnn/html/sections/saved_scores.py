"""Scores that model files were saved with, by all measures and for each of several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fdgnn.evaluation.record import Evaluation
from fdgnn.html.figures import Figure, Table
from fdgnn.html.numbers import NONE, significant
from fdgnn.html.subjects import Subject

Scores = Mapping[str, float]


def figure(subjects: Sequence[Subject]) -> Figure | None:
    """A table with a row for each model or target; None if no file has such scores."""
    names = Counter(Path(subject.path).name for subject in subjects)
    rows: dict[str, Scores] = {}
    for subject in subjects:
        name = Path(subject.path).name  # of the model: it may be shown beside graphs of any file
        rows |= _rows(subject, name if names[name] == 1 else subject.path)
    rows = {name: scores for name, scores in rows.items() if scores}
    if not rows:
        return None
    measures = list(dict.fromkeys(measure for scores in rows.values() for measure in scores))
    cells = [[name, *(_shown(scores.get(m)) for m in measures)] for name, scores in rows.items()]
    found = [s.model.evaluation for s in subjects if s.model and s.model.evaluation]
    splits = dict.fromkeys(each.protocol.split for each in found)
    how = f" How graphs were held out: {'; '.join(splits)}." if splits else ""
    notes = dict.fromkeys(f" {note}." for each in found for note in each.notes)
    several = any(s.model is not None and len(s.model.targets) > 1 for s in subjects)
    each = " Of several targets, each is scored on the graphs for which it is known."
    return Figure(
        id="saved-scores",
        title="Scores on graphs held out, saved with the model",
        caption="By nested cross-validation: what was chosen and trained without a fold was scored "
        f"on it.{how}{each if several else ''}{''.join(notes)}",
        table=Table(["model", *measures], cells),
        open=True,
    )


def _rows(subject: Subject, file: str) -> Iterator[tuple[str, Scores]]:
    """The model's scores; of several targets, those of all in the file, and their mean.

    After each come those of Morgan counts, if there are any.
    """
    found = None if subject.model is None else subject.model.evaluation
    if found is None:
        return
    several = len(found.targets) > 1
    yield from _scores(f"{file}, mean of {len(found.targets)} targets" if several else file, found)
    for target in found.targets if several else []:
        yield from _scores(f"{file}, {target.name}", found.of_target(target.name))


def _scores(name: str, found: Evaluation) -> Iterator[tuple[str, Scores]]:
    yield name, {each.words: each.mean for each in found.metrics if each.mean is not None}
    way = "ridge" if found.task == "regression" else "logistic"
    morgan = [found.baseline("morgan", each.metric) for each in found.metrics]
    known = [each for each in morgan if each is not None]
    yield (
        f"{name}: Morgan counts and {way} regression",
        {each.words: each.mean for each in known if each.mean is not None},
    )


def _shown(score: float | None) -> str:
    return NONE if score is None else significant(score)

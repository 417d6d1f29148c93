"""Scores that model files were saved with, by all measures and for each of several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fdgnn.html.figures import Figure, Table
from fdgnn.html.models import means
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
    splits = dict.fromkeys(s.model.split for s in subjects if s.model and s.model.split)
    how = f" How graphs were held out: {'; '.join(splits)}." if splits else ""
    twins = dict.fromkeys(f" {s.model.repeats}." for s in subjects if s.model and s.model.repeats)
    several = any(s.model is not None and len(s.model.targets) > 1 for s in subjects)
    each = " Of several targets, each is scored on the graphs for which it is known."
    return Figure(
        id="saved-scores",
        title="Scores on graphs held out, saved with the model",
        caption="By nested cross-validation: what was chosen and trained without a fold was scored "
        f"on it.{how}{each if several else ''}{''.join(twins)}",
        table=Table(["model", *measures], cells),
        open=True,
    )


def _rows(subject: Subject, file: str) -> Iterator[tuple[str, Scores]]:
    """The model's scores; of several targets, those of all in the file, and their mean.

    After each come those of Morgan counts, if there are any.
    """
    model = subject.model
    if model is None:
        return
    rival = f"Morgan counts and {'ridge' if model.is_regressor else 'logistic'} regression"
    each = model.targets
    title = file if len(each) == 1 else f"{file}, mean of {len(each)} targets"
    named = [(title, means([one.scores for one in each]), means([one.rival for one in each]))]
    if len(each) > 1:
        named += [(f"{file}, {one.name}", one.scores, one.rival) for one in each]
    for name, scores, of_rival in named:
        yield name, scores
        yield f"{name}: {rival}", of_rival


def _shown(score: float | None) -> str:
    return NONE if score is None else significant(score)

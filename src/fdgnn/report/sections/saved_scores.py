"""Scores that model files were saved with, by all measures and for each of several targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean

from fdgnn.report.figures import Figure, Table
from fdgnn.report.numbers import NONE, significant
from fdgnn.report.subjects import Subject

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
    several = any(s.model is not None and s.model.targets for s in subjects)
    each = " Of several targets, each is scored on the graphs for which it is known."
    return Figure(
        id="saved-scores",
        title="Scores on graphs held out, saved with the model",
        caption="By nested cross validation: what was chosen and trained without a fold was scored "
        f"on it.{how}{each if several else ''}{''.join(twins)}",
        table=Table(["model", *measures], cells),
        open=True,
    )


def _rows(subject: Subject, file: str) -> Iterator[tuple[str, Scores]]:
    """The model's own scores; of several targets, all that are in the file, and their mean.

    After each come those of Morgan counts, if there are any.
    """
    model = subject.model
    if model is None:
        return
    rival = f"Morgan counts and {'ridge' if model.is_regressor else 'logistic'} regression"
    named = {file: ("", model.scores)}
    if model.targets:
        first = next(iter(model.targets.values()))
        each = model.targets.values()
        means = {m: mean(scores[m] for scores in each if m in scores) for m in first}
        named = {f"{file}, mean of {len(each)} targets": ("", means)}
        named |= {f"{file}, {name}": (name, own) for name, own in model.targets.items()}
    for title, (target, scores) in named.items():
        yield title, scores
        yield f"{title}: {rival}", model.rivals.get(target, {})


def _shown(score: float | None) -> str:
    return NONE if score is None else significant(score)

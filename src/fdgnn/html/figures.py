"""Rows of the charts of a report; ``templates/sections.html.j2`` shows them, and fills in tables.

A row has, by name, the fields that a chart reads, and values as text for tables and tooltips. Vega
uses the values that it groups by as names of JavaScript properties, and names such as
``__proto__`` break it: `keyed` puts a number before each value, so that no value is such a name.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.record import (
    BaselineScores,
    BaseModelScores,
    Evaluation,
    MetricScores,
    PublishedScore,
)
from fdgnn.html import words
from fdgnn.html.report_data import (
    BarCounts,
    Calibration,
    GraphRow,
    ReportData,
    SubstructureRow,
)
from fdgnn.html.words import NONE, duration, percent, plural, significant
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS
from fdgnn.model_files.description import MODELS
from fdgnn.texts import listed

if TYPE_CHECKING:
    from fdgnn.html.report import Subject

Row = dict[str, Any]

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
_METRICS = OF_CLASSES | OF_NUMBERS
MOST_CLASSES = 20  # of a confusion matrix that can be read
_TYPED_ATOM = re.compile(r"\b[A-Z][a-z]? \d+ H\d")  # as `atoms="typed"` writes them
_SEARCHED = (  # hyperparameters of the paper's model
    "effective_spectral_radius",
    "input_scaling",
    "inter_layer_scaling",
    "n_layers",
)


def shown_columns(
    rows: Sequence[Row], columns: Mapping[str, str] | None, n_words: int
) -> list[tuple[str, str]]:
    """Return titles and fields of columns without empty ones, except the first `n_words`."""
    fields = (columns or {title: title for title in rows[0]}).items()
    return [
        (title, field)
        for i, (title, field) in enumerate(fields)
        if i < n_words or any(row[field] not in (None, NONE, "") for row in rows)
    ]


def is_ours(evaluation: Evaluation) -> bool:
    """Return whether a model of this library was evaluated, rather than another method."""
    return evaluation.model.kind in MODELS


def keyed(rows: Sequence[Row], name: str) -> list[Row]:
    """Add a field "key" to rows: the value of a field, with a number before it."""
    numbers = {value: i for i, value in enumerate(dict.fromkeys(row[name] for row in rows))}
    return [row | {"key": f"{numbers[row[name]]}={row[name]}"} for row in rows]


def looks(classes: Sequence[str]) -> list[Row]:
    """Return the color and shape of each class in all figures; the first 49 differ."""
    n = len(SHAPES)
    return [
        {"key": f"c{i}", "name": name, "color": f"c{i % n + 1}", "shape": SHAPES[(i + i // n) % n]}
        for i, name in enumerate(classes)
    ]


def metric_words(metric: str) -> str:
    """Return a metric as people write it."""
    return _METRICS[metric].words if metric in _METRICS else metric


# ---------------------------------------------------------------------- results


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
    kind: str = "ours"
    notes: Sequence[str] = ()
    published: PublishedScore | None = None  # None of a target among several

    @property
    def first(self) -> MetricScores:
        """The scores by the metric that models are chosen by."""
        return self.scores[0]


def results_by_metric(subjects: Sequence[Subject]) -> dict[str, list[Result]]:
    """Return the results of all subjects by the metric that comes first."""
    found: dict[str, list[Result]] = defaultdict(list)
    for subject in subjects:
        for one in results(subject):
            if subject.is_comparison and len(subjects) > 1:  # methods of several comparisons
                one = replace(one, name=f"{subject.name}: {one.name}")
            found[one.first.metric].append(one)
    return found


def headline(subject: Subject) -> Result | None:
    """Return the first result of a model of this library, or else the first one."""
    found = results(subject)
    return next((one for one in found if one.kind == "ours"), found[0] if found else None)


def results(subject: Subject) -> list[Result]:
    """Return all results of a subject: of a comparison each method, of several targets each."""
    found = _unseen(subject)
    in_training = ", in training" * len(found)
    datasets: set[str] = set()
    several = len({one.dataset for one in subject.evaluations}) > 1
    for evaluation in subject.evaluations:
        name = evaluation.model.title if subject.is_comparison else subject.name
        name = f"{name} on {evaluation.dataset}" if several else name
        own = _evaluated(name + in_training, evaluation)
        if evaluation.dataset in datasets:  # baselines are those of the folds, once
            own = [replace(one, baselines=()) for one in own]
        datasets.add(evaluation.dataset)
        found += own
    return [one for one in found if one.scores]


def _unseen(subject: Subject) -> list[Result]:
    """Return the scores of a model on graphs that it has not seen in training."""
    data = subject.data
    if data is None or data.predictions != "unseen":
        return []
    chosen = subject.evaluation.protocol.scoring if subject.evaluation else ""

    def scored(known: Mapping[str, float]) -> list[MetricScores]:
        return [
            MetricScores(metric=name, words=metric_words(name), folds=[], mean=known[name])
            for name in sorted(known, key=lambda name: name != chosen)
        ]

    title = f"always the {constant_words(data)}"
    baseline = BaselineScores(name="constant", title=title, scores=scored(data.baseline))
    how = f"{plural(data.data.n_graphs, 'graph')} that the model has not seen in training"
    return [Result(subject.name, how, scored(data.scores), [baseline], data.data.wl_ceiling)]


def constant_words(data: ReportData) -> str:
    """Return what the best constant prediction is."""
    return "majority class" if data.classes else "mean target"


def _evaluated(name: str, evaluation: Evaluation) -> list[Result]:
    """Return the mean over targets, then each of several targets."""
    targets, kind = evaluation.targets, "ours" if is_ours(evaluation) else "other"
    nested = "nested " * (evaluation.protocol.n_inner > 0)
    n = plural(len(evaluation.folds), "outer fold")
    how = f"{nested}cross-validation, mean of {n}, {evaluation.protocol.split}"
    each = [
        Result(f"{name}, {t.name}", how, t.scores, t.baselines, t.wl_ceiling, kind) for t in targets
    ]
    whole = replace(each[0], name=name) if each else Result(name, how, [], kind=kind)
    if len(targets) > 1:
        metrics, title = evaluation.metrics, f"{name}, mean of {len(targets)} targets"
        means = []
        for b in targets[0].baselines:
            own = [evaluation.baseline(b.name, m.metric) for m in metrics]
            means.append(msgspec.structs.replace(b, scores=[s for s in own if s is not None]))
        whole = Result(title, how, metrics, means, kind=kind)
    whole = replace(whole, notes=evaluation.notes, published=evaluation.published)
    return [whole, *(each if len(targets) > 1 else ())]


def score_rows(found: Sequence[Result]) -> list[Row]:
    """Return the marks of results: folds, mean and spread, baselines, the published score.

    `what` is one of the kinds of ``templates/charts.json.j2``, or "fold".
    """
    rows: list[Row] = []
    for one in found:
        first, theirs = one.first, one.published
        marks: list[tuple[str, float | None, float | None, str, int]] = []
        equal: dict[float, list[int]] = defaultdict(list)  # equal folds would hide each other
        for i, fold in enumerate(first.folds, start=1):
            if fold is not None and one.kind == "ours":
                equal[fold].append(i)
        for fold, numbers in equal.items():
            title = f"fold{'s' * (len(numbers) > 1)} {listed(numbers)}"
            marks.append(("fold", fold, None, title, len(numbers)))
        for baseline in one.baselines:
            if (own := baseline.by(first.metric)) is not None:
                what = "constant" if baseline.name == "constant" else "linear"
                marks.append((what, own.mean, None, baseline.title, 1))
        if theirs is not None and first.metric == "accuracy":
            reference = theirs.reference or ""
            source = paper.REFERENCES.get(reference, reference) or "no source given"
            marks.append(("published", theirs.mean, theirs.std, f"published, {source}", 1))
        marks.append((one.kind, first.mean, first.std, one.how, 1))
        factor = 100 if words.is_share(first.metric) else 1
        rows += [
            {
                "row": one.name,
                "what": what,
                "value": float(f"{factor * mean:.6g}"),
                "low": float(f"{factor * (mean - (std or 0.0)):.6g}"),
                "high": float(f"{factor * (mean + (std or 0.0)):.6g}"),
                "words": title,
                "shown": words.spread(first.metric, mean, std),
                "folds": n,
            }
            for what, mean, std, title, n in marks
            if mean is not None
        ]
    return keyed(rows, "row")


# ---------------------------------------------------------------------- comparisons


def compared(subject: Subject) -> dict[str, list[Evaluation]]:
    """Return the methods of a comparison by dataset."""
    found: dict[str, list[Evaluation]] = defaultdict(list)
    for one in subject.evaluations if subject.is_comparison else ():
        found[one.dataset].append(one)
    return found


def our_evaluation(found: Sequence[Evaluation]) -> Evaluation | None:
    """Return the first evaluation of a model of this library that has scores."""
    return next((one for one in found if is_ours(one) and one.score is not None), None)


def better(found: Sequence[Evaluation], ours: Evaluation | None) -> list[str] | None:
    """Return the methods of others that have a better mean than ours; None without any scores."""
    others = [one for one in found if not is_ours(one) and one.score is not None]
    if ours is None or not others:
        return None
    return [one.model.title for one in others if best(ours.protocol.scoring, [ours, one]) is one]


def best(metric: str, scored: Sequence[Any]) -> Evaluation | BaseModelScores:
    """Return the first record with the best score."""
    found: Evaluation | BaseModelScores = max(scored, key=lambda one: _signed(metric, one.score))
    return found


def _signed(metric: str, value: float) -> float:
    """Return a score with the sign by which higher is better."""
    return -value if metric in _METRICS and _METRICS[metric].error else value


def paired(one: Evaluation, ours: Evaluation | None) -> str:
    """Return on how many folds ours is better than, equal to, and worse than another method."""
    first = ours.metrics[0] if ours is not None and one is not ours else None
    other = None if first is None else one.by(first.metric)
    if first is None or other is None or len(other.folds) != len(first.folds):
        return NONE
    gaps = [
        _signed(first.metric, a - b)
        for a, b in zip(first.folds, other.folds, strict=True)
        if a is not None and b is not None
    ]
    better, equal = sum(g > 1e-9 for g in gaps), sum(abs(g) <= 1e-9 for g in gaps)
    return f"{better}, {equal}, {len(gaps) - better - equal}"


# ---------------------------------------------------------------------- model selection


def search_rows(evaluation: Evaluation) -> list[Row]:
    """Return the configurations of a search with their validation scores, the best first."""
    metric = evaluation.protocol.scoring
    chosen = Counter(_identity(fold.configuration) for fold in evaluation.folds)
    factor = 100 if words.is_share(metric) else 1
    rows: list[Row] = []
    for number, one in enumerate(evaluation.tried, start=1):
        mean, n = sum(one.scores) / len(one.scores), chosen[_identity(one.configuration)]
        low, high = min(one.scores), max(one.scores)
        row: Row = {
            "words": f"number {number}",
            "mean": factor * mean,
            "low": factor * low,
            "high": factor * high,
            "shown": words.score(metric, mean),
            "span": f"{words.score(metric, low)} to {words.score(metric, high)}",
            "chosen": n,
            "times": str(n or ""),
            "by": f"by {plural(n, 'outer fold')}" if n else "no",
            "power": math.log10(one.alpha) if one.alpha > 0 else None,
            "alpha": words.power_of_ten(one.alpha),
        }
        known = {name: one.configuration.get(name) for name in _SEARCHED}
        rows.append(
            row | {name: v if isinstance(v, int | float) else None for name, v in known.items()}
        )
    return sorted(rows, key=lambda row: -row["mean"])


def varied(rows: Sequence[Row]) -> list[str]:
    """Return the hyperparameters that have several values."""
    return [name for name in _SEARCHED if len({row[name] for row in rows}) > 1]


def _identity(configuration: Mapping[str, object]) -> str:
    return repr(sorted((name, v) for name, v in configuration.items() if name != "alpha"))


def chosen_differently(evaluation: Evaluation) -> list[str]:
    """Return the hyperparameters in whose values the outer folds differ."""
    names = dict.fromkeys(name for fold in evaluation.folds for name in fold.configuration)
    values = {n: {repr(fold.configuration.get(n)) for fold in evaluation.folds} for n in names}
    return [n for n in names if len(values[n]) > 1 and n not in ("alpha", "random_state")]


# ---------------------------------------------------------------------- data


def peak(counts: BarCounts) -> tuple[str, str]:
    """Return the most common category and its share."""
    totals = counts.totals
    most = max(range(len(totals)), key=totals.__getitem__)
    return counts.names[most], percent(totals[most] / max(1, sum(totals)))


def map_rows(data: ReportData) -> list[Row]:
    """Return the mapped graphs; wrong ones are last, so that they are drawn on top."""
    number = {name: i for i, name in enumerate(data.classes)}
    rows = []
    for g in data.graphs:
        known = g.predicted if g.actual is None else g.actual
        size = f"{plural(g.n_vertices, 'vertex', 'vertices')}, {plural(g.n_edges, 'edge')}"
        row = {
            "x": float(f"{g.x:.4g}"),
            "y": float(f"{g.y:.4g}"),
            "look": f"c{number.get(str(known), 0)}",
            "value": None if data.classes else known,
            "wrong": g.correct is False,
            "judged": g.correct is not None,
            "score": significant(g.score) if data.classes else NONE,
            "probability": percent(g.probability),
            "size": size,
            "fold": g.fold,
        }
        rows.append(named(g) | row)
    return sorted(rows, key=lambda row: row["wrong"])


def named(g: GraphRow) -> Row:
    """Return a graph's number and id, and its target and prediction as text."""
    return {
        "graph": g.graph,
        "id": g.id,
        "words": str(g.graph) if g.id == str(g.graph) else f"{g.graph} ({g.id})",
        "actual": significant(g.actual),
        "predicted": significant(g.predicted),
    }


# ---------------------------------------------------------------------- explanations


def substructures(data: ReportData) -> dict[str, list[SubstructureRow]]:
    """Return substructures by title: for each class, or raising and lowering a value."""
    found: dict[str, list[SubstructureRow]] = defaultdict(list)
    for one in data.substructures:
        what = f"for class {one.target}"
        if not data.classes:
            what = f"that {'raise' if one.attribution > 0 else 'lower'} the value"
        found[f"Substructures {what}"].append(one)
    return found


def has_typed_atoms(found: Iterable[SubstructureRow]) -> bool:
    """Return whether substructures have atoms as ``atoms="typed"`` writes them."""
    return any(_TYPED_ATOM.search(one.words) for one in found)


# ---------------------------------------------------------------------- errors


def confusion(data: ReportData) -> tuple[list[str], Any, int, int, tuple[int, str, str] | None]:
    """Return the classes shown, the matrix, all graphs, wrong ones, and the worst confusion."""
    classes, matrix = data.classes[:MOST_CLASSES], np.array(data.confusion)
    wrong = matrix * (1 - np.eye(len(matrix), dtype=np.int64))
    shown, worst = wrong[: len(classes), : len(classes)], None
    if shown.any():
        i, j = np.unravel_index(shown.argmax(), shown.shape)
        worst = int(shown[i, j]), classes[i], classes[j]
    return classes, matrix.tolist(), int(matrix.sum()), int(wrong.sum()), worst


def scatter_rows(data: ReportData) -> list[Row]:
    """Return the graphs of a regression whose targets are known, the largest errors first."""
    rows = [
        named(g)
        | {
            "x": g.actual,
            "y": g.predicted,
            "low": g.predicted,
            "high": g.predicted,
            "n": 1,
            "error": significant(abs(g.actual - g.predicted)),
        }
        for g in data.graphs
        if not isinstance(g.actual, str | None) and not isinstance(g.predicted, str)
    ]
    return sorted(rows, key=lambda row: -abs(row["x"] - row["y"]))


def ends(rows: Sequence[Row], step: float = 0.0) -> list[float]:
    """Return the ends of both axes; of percentages, the lower one is a multiple of `step`."""
    low = min(row[name] for row in rows for name in ("x", "y", "low"))
    high = max(row[name] for row in rows for name in ("x", "y"))
    if step:
        return [step * math.floor(low / (1.0001 * step)), 100.0]
    return [low, high if high > low else low + 1]


# ---------------------------------------------------------------------- uncertainty


def calibration_rows(calibration: Calibration) -> list[Row]:
    """Return the bins of probability with Wilson's intervals, in percent."""
    from scipy.stats import binomtest

    rows = []
    for b in calibration.bins:
        interval = binomtest(round(b.accuracy * b.n), b.n).proportion_ci(0.95, method="wilson")
        low, high = round(100 * float(interval.low), 2), round(100 * float(interval.high), 2)
        row = {
            "x": round(100 * b.probability, 2),
            "y": round(100 * b.accuracy, 2),
            "low": low,
            "high": high,
            "n": b.n,
            "span": f"{percent(b.start, 0)} to {percent(b.stop, 0)}",
            "probability": percent(b.probability),
            "accuracy": percent(b.accuracy),
            "interval": f"{low:.1f} to {high:.1f}",
        }
        rows.append(row)
    return rows


# ---------------------------------------------------------------------- reproduction


def recipe(subject: Subject) -> dict[str, dict[str, object]]:
    """Return settings, versions and machine that reproduce the numbers."""
    settings, machine = dict(subject.settings), dict(subject.versions)
    if subject.data is not None:
        machine |= subject.data.versions | subject.data.machine
    if subject.evaluations:
        evaluation = subject.evaluations[0]
        own = {} if subject.is_comparison else evaluation.model.parameters
        settings = own | settings | {"data_hash": evaluation.data_hash}
        protocol = msgspec.structs.asdict(evaluation.protocol)
        settings |= {"n_graphs": evaluation.n_graphs, "protocol: name": protocol.pop("name")}
        settings |= protocol
        machine |= evaluation.versions | evaluation.machine
        times = {
            "last start of the command": evaluation.times.total,
            "selection, on one core": evaluation.times.selection,
        }
        machine |= {name: duration(time) for name, time in times.items() if time is not None}
    elif subject.data is not None:
        settings = subject.data.parameters | settings
    return {"Settings": settings, "Versions and machine": machine}

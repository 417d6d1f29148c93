"""The result: scores on unseen graphs, their spread over folds, baselines and published rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.record import BaselineScores, Evaluation, MetricScores, PublishedScore
from fdgnn.html.figures import KINDS, Figure, Key, Panel, Part, Row, Section, Table, scores
from fdgnn.html.report_data import ReportData
from fdgnn.html.sections.selection import sign_of, words_of
from fdgnn.html.subjects import Subject, is_ours
from fdgnn.html.words import (
    NONE,
    count,
    duration,
    is_share,
    percent,
    plural,
    score,
    significant,
    spread,
    times,
)
from fdgnn.texts import listed

_KIND_WORDS = {
    "ours": "fdgnn, mean ± standard deviation",
    "other": "a baseline, mean ± standard deviation",
    "linear": "a simple model; the table has its name",
    "published": "published, mean ± standard deviation",
}


def section(subjects: Sequence[Subject]) -> Section:
    """Return cards, scores by fold with baselines and published scores, and comparisons."""
    by_metric: dict[str, list[Result]] = defaultdict(list)  # by which a result is headed
    for subject in subjects:
        for one in results(subject):
            if subject.is_comparison and len(subjects) > 1:  # methods of several comparisons
                one = replace(one, name=f"{subject.name}: {one.name}")
            if one.scores:
                by_metric[one.first.metric].append(one)
    return Section(
        id="result",
        title="Result",
        lead="Expected performance on unseen graphs, compared with baselines.",
        cards=[_card(s) for s in subjects],
        figures=[_scores(metric, found) for metric, found in by_metric.items()],
        parts=[Part(_own_figures(i, s), run=i, name=s.name) for i, s in enumerate(subjects)],
    )


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


def results(subject: Subject) -> list[Result]:
    """Return all results of a subject: of a comparison each method, of several targets each."""
    found = _unseen(subject)
    in_training = ", in training" * len(found)
    datasets: set[str] = set()
    several = len({one.dataset for one in subject.evaluations}) > 1
    for evaluation in subject.evaluations:
        name = evaluation.model.title if subject.is_comparison else subject.name
        name = f"{name} on {evaluation.dataset}" if several else name
        found += _evaluated(name + in_training, evaluation)
        if evaluation.dataset in datasets:  # baselines are those of the folds, once
            found[-1] = replace(found[-1], baselines=())
        datasets.add(evaluation.dataset)
    return found


def _unseen(subject: Subject) -> list[Result]:
    """Return the scores of a model on graphs that it has not seen in training."""
    data = subject.data
    if data is None or data.predictions != "unseen" or not data.scores:
        return []
    chosen = subject.evaluation.protocol.scoring if subject.evaluation else ""

    def scored(known: Mapping[str, float]) -> list[MetricScores]:
        order = sorted(known, key=lambda name: name != chosen)
        return [MetricScores(metric=n, words=words_of(n), folds=[], mean=known[n]) for n in order]

    title, how = f"always the {_constant(data)}", "that the model has not seen in training"
    baseline = BaselineScores(name="constant", title=title, scores=scored(data.baseline))
    how = f"{plural(data.data.n_graphs, 'graph')} {how}"
    return [Result(subject.name, how, scored(data.scores), [baseline], data.data.wl_ceiling)]


def _constant(data: ReportData) -> str:
    return "mean target" if data.task == "regression" else "majority class"


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


# ---------------------------------------------------------------------- cards


def _card(subject: Subject) -> dict[str, str]:
    """Return the headline of a subject: the score by the metric that models are chosen by.

    Of a comparison, it is the first model of this library. Scores on training graphs are not
    evidence.
    """
    scored = [one for one in results(subject) if one.scores]
    found = next((one for one in scored if one.kind == "ours"), scored[0] if scored else None)
    data, evaluation, command = subject.data, subject.evaluation, subject.command or ""
    card = {"name": subject.name, "value": NONE, "spread": "", "command": ""}
    card["warning"] = _seen(subject)
    if found is None and evaluation is not None and evaluation.status != "finished":
        on = "To continue:" if command else "The command that started it continues it."
        note = f"{evaluation.reason or ''} {on if evaluation.status == 'unfinished' else ''}"
        return {**card, "how": evaluation.status, "note": note.strip(), "command": command,
                "warning": ""}  # fmt: skip
    if found is None:
        note = " ".join(subject.notes) or "Name some data to see what it does there."
        if data is not None and not data.scores:
            note = "These graphs have no known targets to compare with."
        return card | {"how": "the score on unseen graphs is not known", "note": note}
    first, theirs = found.first, found.published
    known = [(b.title, b.by(first.metric)) for b in found.baselines]
    notes = [f"{title}: {_with_unit(own)}" for title, own in known if own is not None]
    if theirs is not None and first.mean is not None and first.metric == "accuracy":
        std, points = 100 * (theirs.std or 0.0), 100 * (first.mean - theirs.mean)
        far = (
            f"{abs(points):.1f} points {'above' if points > 0 else 'below'} the published "
            f"{percent(theirs.mean)}, more than its standard deviation of {std:.1f}"
        )
        near = f"Within one standard deviation of the published {percent(theirs.mean)}"
        notes.append(near if abs(points) <= std else far)
    if data is not None and data.predictions == "unseen" and evaluation and evaluation.metrics:
        trained = evaluation.metrics[0]
        how = f"nested cross-validation, {evaluation.protocol.split}"
        notes.append(f"In training, by {how}: {trained.words} {_with_unit(trained)}.")
    notes += [*found.notes, *subject.notes]
    how = f"{first.words}, {found.how}"
    if subject.is_comparison:
        how += f", {found.name}, one of {len(subject.evaluations)} methods"
    return card | {
        "value": score(first.metric, first.mean),
        "how": how,
        "spread": "" if first.std is None else f"± {spread(first.metric, first.std, digits=1)}",
        "note": " ".join(f"{n[0].upper()}{n[1:].removesuffix('.')}." for n in notes if n),
    }


def _with_unit(one: MetricScores) -> str:
    unit = " %" if is_share(one.metric) and one.mean is not None else ""
    return f"{spread(one.metric, one.mean, one.std)}{unit}"


def _seen(subject: Subject) -> str:
    """Return scores on graphs that may be training graphs, with a warning."""
    data = subject.data
    if data is None or data.predictions != "seen" or not data.scores:
        return ""
    shown = [
        f"{words_of(n)} {score(n, v)} ({_constant(data)}: {score(n, data.baseline.get(n))})"
        for n, v in data.scores.items()
    ]
    return (
        f"On the graphs below: {listed(shown[:2])}. The model may have seen them in training: "
        "expect less on others."
    )


# ---------------------------------------------------------------------- scores


def _scores(metric: str, found: Sequence[Result]) -> Figure:
    """Return the figure of all results that are headed by one metric."""
    words = found[0].first.words
    rows = [row for one in found for row in _rows(one)]
    title = f"{words}, %" if is_share(metric) else words
    used = {row["what"]: row["words"] for row in rows}
    key = [
        Key(mark, color.removeprefix("var(--").removesuffix(")"), _KIND_WORDS.get(kind, used[kind]))
        for kind, (color, _, mark) in KINDS.items()
        if kind in used
    ]
    if "fold" in used:
        key.insert(0, Key("dot", "c1", "one outer fold; larger: several that are equal"))
    return Figure(
        id=f"scores-{metric}",
        title=f"{words[0].upper()}{words[1:]} on unseen graphs",
        caption=_caption(found),
        panels=[Panel(f"scores-{metric}", scores(rows, title))] if rows else [],
        table=_table(found),
        key=key,
        open=True,
    )


def _rows(one: Result) -> list[Row]:
    """Return the marks of one result: folds, mean and spread, baselines, the published score."""
    first, theirs = one.first, one.published
    factor = 100 if is_share(first.metric) else 1
    rows: list[Row] = []

    def add(what: str, mean: float | None, std: float | None, words: str, n: int = 1) -> None:
        if mean is not None:
            ends = [factor * (mean + sign * (std or 0.0)) for sign in (-1, 0, 1)]
            low, value, high = (float(f"{end:.6g}") for end in ends)
            rows.append({
                "row": one.name, "what": what, "value": value, "low": low, "high": high,
                "words": words, "shown": spread(first.metric, mean, std), "folds": n,
            })  # fmt: skip

    equal: dict[float, list[int]] = defaultdict(list)  # equal folds would hide each other
    for i, fold in enumerate(first.folds, start=1):
        if fold is not None and one.kind == "ours":
            equal[fold].append(i)
    for fold, numbers in equal.items():
        several = "s" if len(numbers) > 1 else ""
        add("fold", fold, None, f"fold{several} {listed(numbers)}", len(numbers))
    for baseline in one.baselines:
        if (own := baseline.by(first.metric)) is not None:
            add("constant" if baseline.name == "constant" else "linear", own.mean, None,
                baseline.title)  # fmt: skip
    if theirs is not None and first.metric == "accuracy":
        reference = theirs.reference or ""
        source = paper.REFERENCES.get(reference, reference) or "no source given"
        add("published", theirs.mean, theirs.std, f"published, {source}")
    add(one.kind, first.mean, first.std, one.how)
    return rows


def _caption(found: Sequence[Result]) -> str:
    if len(found) > 1:
        return f"{len(found)} results side by side. The bars are spreads over folds."
    first = found[0].first
    text = f"{found[0].name}: {_with_unit(first)}, {found[0].how}."
    folds = [value for value in first.folds if value is not None]
    if folds:
        low, high = score(first.metric, min(folds)), score(first.metric, max(folds))
        text += (
            f" Single folds range from {low} to {high}: differences smaller than that spread mean "
            "little."
        )
    if found[0].wl_ceiling is not None:
        ceiling = percent(found[0].wl_ceiling)
        text += f" The WL ceiling, the best accuracy of any message passing, is {ceiling}."
    return text


def _table(found: Sequence[Result]) -> Table:
    """Return all metrics of all results, each with its baselines below."""
    metrics = {each.metric: each.words for one in found for each in one.scores}
    n_folds = max(len(one.first.folds) for one in found)
    first = found[0].first.metric
    rows: list[list[str]] = []
    ours = []
    for one in found:
        if one.kind == "ours":
            ours.append(len(rows))
        named = [(one.name, one.scores)]
        named += [(f"{one.name}: {b.title}", b.scores) for b in one.baselines]
        if one.published is not None:
            mean, std = one.published.mean, one.published.std
            theirs = MetricScores(metric="accuracy", words="", folds=[], mean=mean, std=std)
            named.append((f"{one.name}: published", [theirs]))
        for name, known in named:
            own = {each.metric: each for each in known}
            cells = [spread(m, own[m].mean, own[m].std) if m in own else NONE for m in metrics]
            folds = own[first].folds if first in own else []
            cells += [spread(first, value) for value in folds] + [NONE] * (n_folds - len(folds))
            rows.append([name, *cells])
    heads = [f"{words}, %" if is_share(metric) else words for metric, words in metrics.items()]
    heads = ["model", *heads, *(f"fold {i + 1}" for i in range(n_folds))]
    note = "Mean ± standard deviation over the outer folds."
    return Table(heads, rows, note=note, ours=ours)


# ---------------------------------------------------------------------- of one subject


def _own_figures(run: int, subject: Subject) -> list[Figure]:
    by_dataset: dict[str, list[Evaluation]] = defaultdict(list)
    for one in subject.evaluations if subject.is_comparison else ():
        by_dataset[one.dataset].append(one)
    figures = [
        _methods(f"methods-{run}-{i}", dataset, own)
        for i, (dataset, own) in enumerate(by_dataset.items())
    ]
    evaluation = subject.evaluation
    known = None if evaluation is None else paper.DATASETS.get(evaluation.dataset)
    if evaluation is not None and known is not None and known.n_graphs == evaluation.n_graphs:
        own = evaluation.by("accuracy")
        if own is not None and own.mean is not None:
            figures.append(_published_rows(f"published-{run}", evaluation, own))
    return figures


def _methods(id_: str, dataset: str, found: Sequence[Evaluation]) -> Figure:
    """Return the costs of each method of a comparison, and its scores by fold."""
    ours = next((one for one in found if is_ours(one) and one.metrics), None)
    mine = None if ours is None else _mean([fold.train_seconds for fold in ours.folds])
    name, rows = ours.model.title if ours else "the first", []
    for one in found:
        first = one.metrics[0] if one.metrics else None
        own = _mean([fold.train_seconds for fold in one.folds])
        score = NONE if first is None else f"{_with_unit(first)} ({len(one.folds)} folds)"
        row = {
            "method": one.model.title,
            "state": one.status + (f": {one.reason}" if one.reason else ""),
            found[0].metric: score,
            f"{name} better, equal, worse": _paired(one, ours),
            "training": duration(own),
            "test": duration(_mean([fold.test_seconds for fold in one.folds])),
            "selection": duration(one.times.selection),
            f"times {name}'s training": times(own / mine)
            if mine and own and one is not ours
            else NONE,
            "weights": count(one.model.n_parameters),
            "memory": NONE if one.peak_mb is None else f"{significant(one.peak_mb)} MB",
        }
        rows.append(row)
    unfinished = Counter(one.status for one in found if one.status != "finished")
    text = (
        f"All methods were tested on the same folds. {_better(found, ours)}Times are means over "
        "the outer folds, of the selected model, on this machine."
    )
    if unfinished:
        each = [f"{plural(n, 'method')} {status}" for status, n in unfinished.items()]
        text += f" Not finished: {listed(each)}; the table has the reasons."
    marked = [i for i, one in enumerate(found) if is_ours(one)]
    table = Table.of(rows, n_words=2, ours=marked).without_empty()
    return Figure(id=id_, title=f"Methods on {dataset}", caption=text, table=table, open=True)


def _better(found: Sequence[Evaluation], ours: Evaluation | None) -> str:
    """Return which baselines have a better mean than ours, in a sentence."""
    others = [one for one in found if not is_ours(one) and one.score is not None]
    if ours is None or ours.score is None or not others:
        return ""
    sign = sign_of(ours.metrics[0].metric)
    better = [
        one.model.title for one in others if one.score and sign * (one.score - ours.score) > 0
    ]
    who = listed(better) if better else "No baseline"
    verb = "have" if len(better) > 1 else "has"
    return (
        f"{who} {verb} a better mean than {ours.model.title}. Where each is better on about half "
        "of the folds, these folds cannot decide which is better. "
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _paired(one: Evaluation, ours: Evaluation | None) -> str:
    """Return on how many folds ours is better than, equal to, and worse than another method."""
    first = ours.metrics[0] if ours is not None and one is not ours else None
    other = None if first is None else one.by(first.metric)
    if first is None or other is None or len(other.folds) != len(first.folds):
        return NONE
    gaps = [
        sign_of(first.metric) * (a - b)
        for a, b in zip(first.folds, other.folds, strict=True)
        if a is not None and b is not None
    ]
    better, equal = sum(g > 1e-9 for g in gaps), sum(abs(g) <= 1e-9 for g in gaps)
    return f"{better}, {equal}, {len(gaps) - better - equal}"


def _published_rows(id_: str, evaluation: Evaluation, own: MetricScores) -> Figure:
    """Return the rows of the paper's Table 1 for a dataset, and ours among them."""
    dataset, mean = evaluation.dataset, 100 * (own.mean or 0.0)
    known = {model: cells[dataset] for model, cells in paper.ACCURACY.items() if dataset in cells}
    mine = [evaluation.model.title, "this report", spread("accuracy", own.mean, own.std)]
    rows = [(mean, mine)]
    for model, one in known.items():
        shown = spread("accuracy", one.mean / 100, None if one.std is None else one.std / 100)
        rows.append((one.mean, [model, paper.REFERENCES[one.reference], shown]))
    rows.sort(key=lambda row: -row[0])
    cells = [row for _, row in rows]
    others = [one.mean for model, one in known.items() if not model.startswith("FDGNN")]
    better = sum(theirs > mean for theirs in others)
    return Figure(
        id=id_,
        title="Among published results (the paper's Table 1)",
        caption=f"{better} of {len(others)} other published models have a higher mean accuracy on "
        f"{dataset}. The rows come from works with different protocols, so small differences mean "
        "nothing.",
        table=Table(["model", "from", "accuracy, %"], cells, n_words=2, ours=[cells.index(mine)]),
    )

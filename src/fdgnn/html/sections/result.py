"""The result: scores on unseen graphs, their spread over folds, baselines and published rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

from fdgnn.evaluation import paper
from fdgnn.evaluation.record import Evaluation, MetricScores, PublishedScore
from fdgnn.html import charts
from fdgnn.html.figures import Card, Cell, Figure, Key, Panel, Part, Row, Section, Table
from fdgnn.html.subjects import Result, Subject, headline, is_ours, metric_words, results
from fdgnn.html.words import (
    NONE,
    count,
    duration,
    is_share,
    listed,
    percent,
    plural,
    score,
    significant,
    spread,
    times,
)


def section(subjects: Sequence[Subject]) -> Section:
    """Return cards, scores by fold beside baselines and published ones, and comparisons."""
    return Section(
        id="result",
        title="Result",
        lead="What to expect of the model on graphs it has never seen, and how that compares.",
        cards=[_card(s) for s in subjects],
        figures=_score_figures([r for s in subjects for r in _named(s, len(subjects)) if r.scores]),
        parts=[Part(i, s.name, _own_figures(i, s)) for i, s in enumerate(subjects)],
    )


def _named(subject: Subject, n_subjects: int) -> list[Result]:
    """Return the results of a subject; methods of one of several comparisons are told apart."""
    found = results(subject)
    if n_subjects == 1 or not subject.is_comparison:
        return found
    return [replace(one, name=f"{subject.name}: {one.name}") for one in found]


def summary(subjects: Sequence[Subject]) -> str:
    """Return the first sentence of the page."""
    n_graphs: dict[str, int] = {}  # targets of one model are about the same graphs
    for s in subjects:
        for n in [s.data.data.n_graphs] if s.data else [e.n_graphs for e in s.evaluations]:
            n_graphs[s.path] = max(n, n_graphs.get(s.path, 0))
    what = f"From {subjects[0].origin}" if len(subjects) == 1 else listed(s.name for s in subjects)
    return f"{what}; {count(sum(n_graphs.values()))} graphs." if n_graphs else f"{what}."


# ---------------------------------------------------------------------- cards


def _card(subject: Subject) -> Card:
    """Return the headline of a subject: the score by the metric that models are chosen by."""
    found = headline(subject)
    if found is None:
        return _without_score(subject)
    first = found.first
    std = "" if first.std is None else f"± {_plain(first.metric, first.std)}"
    notes = [_beside(first, found), _verdict(first, found), _other_metrics(found)]
    if subject.data is not None and subject.data.predictions == "unseen" and subject.evaluation:
        notes.append(_in_training(subject.evaluation))
    notes += [*(found.evaluation.notes if found.evaluation else ()), *subject.notes]
    return Card(
        subject.name,
        score(first.metric, first.mean),
        f"{first.words}, {found.how}"
        + (f", {found.name}, one of {len(subject.evaluations)} methods" * subject.is_comparison),
        std,
        " ".join(note if note.endswith((".", ":")) else f"{note}." for note in notes if note),
        _seen(subject),
    )


def _plain(metric: str, value: float) -> str:
    return f"{100 * value:.1f}" if is_share(metric) else significant(value, 2)


def _beside(first: MetricScores, found: Result) -> str:
    """Return the baselines by the same metric."""
    return " ".join(
        f"{b.title[0].upper()}{b.title[1:]}: {_with_unit(own)}."
        for b in found.baselines
        if (own := b.by(first.metric)) is not None
    )


def _with_unit(one: MetricScores) -> str:
    unit = " %" if is_share(one.metric) and one.mean is not None else ""
    return f"{spread(one.metric, one.mean, one.std)}{unit}"


def _other_metrics(found: Result) -> str:
    others = [f"{each.words} {_with_unit(each)}" for each in found.scores[1:]]
    return f"By other metrics: {listed(others)}." if others else ""


def _in_training(evaluation: Evaluation) -> str:
    first = evaluation.metrics[0] if evaluation.metrics else None
    if first is None:
        return ""
    how = f"nested cross-validation, {evaluation.protocol.split}"
    return f"In training, by {how}: {first.words} {_with_unit(first)}."


def _verdict(first: MetricScores, found: Result) -> str:
    """Compare a mean with the published one, in points and in standard deviations."""
    theirs = found.published
    if theirs is None or first.mean is None or first.metric != "accuracy":
        return ""
    std, points = theirs.std or 0.0, 100 * (first.mean - theirs.mean)
    if abs(points) <= 100 * std:
        return f"Within one standard deviation of the published {percent(theirs.mean)}."
    where = "above" if points > 0 else "below"
    return (
        f"{abs(points):.1f} points {where} the published {percent(theirs.mean)}, more than its "
        f"standard deviation of {100 * std:.1f}."
    )


def _seen(subject: Subject) -> str:
    """Return how a model does on graphs that it may have seen, and that this is no promise."""
    data = subject.data
    if data is None or data.predictions != "seen" or not data.scores:
        return ""
    shown = [f"{metric_words(name)} {score(name, v)}" for name, v in data.scores.items()]
    return (
        f"On the graphs below: {listed(shown[:2])}. The model may have seen them in training: "
        "expect less on others."
    )


def _without_score(subject: Subject) -> Card:
    """Return the card of what is not finished or was never scored."""
    evaluation = subject.evaluation
    if evaluation is not None and evaluation.status != "finished":
        known = subject.command or ""
        on = "To continue:" if known else "The command that started it continues it."
        note = f"{evaluation.reason or ''} {on if evaluation.status == 'unfinished' else ''}"
        return Card(subject.name, NONE, evaluation.status, note=note.strip(), command=known)
    note = " ".join(subject.notes) or "Name some data to see what it does there."
    if subject.data is not None and not subject.data.scores:
        note = "These graphs have no known targets to compare with."
    how = "the score on unseen graphs is not known"
    return Card(subject.name, NONE, how, note=note, warning=_seen(subject))


# ---------------------------------------------------------------------- scores


def _score_figures(found: Sequence[Result]) -> list[Figure]:
    """Return a figure for each metric that a result is headed by."""
    by_metric: dict[str, list[Result]] = defaultdict(list)
    for one in found:
        by_metric[one.first.metric].append(one)
    return [_score_figure(metric, own) for metric, own in by_metric.items()]


def _score_figure(metric: str, found: Sequence[Result]) -> Figure:
    words = found[0].first.words
    rows = [row for one in found for row in _rows(one)]
    title = f"{words}, %" if is_share(metric) else words
    used = {row["what"]: row["words"] for row in rows}
    key = [
        Key(charts.KINDS[kind][2], _variable(kind), _kind_words(kind, used[kind]))
        for kind in charts.KINDS
        if kind in used
    ]
    if "fold" in used:
        key.insert(0, Key("dot", "c1", "one outer fold; larger: several that are equal"))
    return Figure(
        id=f"scores-{metric}",
        title=f"{words[0].upper()}{words[1:]} on unseen graphs",
        caption=_caption(found),
        panels=[Panel(f"scores-{metric}", charts.scores(rows, title))] if rows else [],
        table=_table(found),
        key=key,
        open=True,
    )


def _variable(kind: str) -> str:
    return charts.KINDS[kind][0].removeprefix("var(--").removesuffix(")")


def _kind_words(kind: str, words: str) -> str:
    named = {
        "ours": "fdgnn, mean ± standard deviation",
        "other": "another method, mean ± standard deviation",
        "published": "published, mean ± standard deviation",
    }
    return named.get(kind, words)


def _rows(one: Result) -> list[Row]:
    """Return the marks of one result: folds, mean and spread, baselines, the published score."""
    first = one.first
    factor = 100 if is_share(first.metric) else 1
    equal: dict[float, list[int]] = defaultdict(list)  # equal folds would hide each other
    for i, value in enumerate(first.folds, start=1):
        if value is not None:
            equal[value].append(i)

    def row(what: str, mean: float, std: float | None, words: str, folds: int = 1) -> Row:
        low, high = factor * (mean - (std or 0.0)), factor * (mean + (std or 0.0))
        shown = spread(first.metric, mean, std)
        return {
            "row": one.name, "what": what, "value": _round(factor * mean), "low": _round(low),
            "high": _round(high), "words": words, "shown": shown, "folds": folds,
        }  # fmt: skip

    rows = []
    if one.kind == "ours":
        rows = [
            row("fold", v, None, f"fold{'s' if len(n) > 1 else ''} {listed(n)}", len(n))
            for v, n in equal.items()
        ]
    for baseline in one.baselines:
        own = baseline.by(first.metric)
        if own is not None and own.mean is not None:
            what = "constant" if baseline.name == "constant" else "linear"
            rows.append(row(what, own.mean, None, baseline.title))
    if one.published is not None and first.metric == "accuracy":
        rows.append(row("published", one.published.mean, one.published.std, _source(one.published)))
    if first.mean is not None:
        rows.append(row(one.kind, first.mean, first.std, one.how))
    return rows


def _round(value: float) -> float:
    return float(f"{value:.6g}")


def _source(published: PublishedScore) -> str:
    name = published.reference or ""
    return f"published, {paper.REFERENCES.get(name, name) or 'no source given'}"


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


def _higher_is_better(metric: str) -> bool:
    return metric not in ("log_loss", "rmse", "mae")


def _table(found: Sequence[Result]) -> Table:
    """Return all metrics of all results, each with its baselines below."""
    metrics = {each.metric: each.words for one in found for each in one.scores}
    n_folds = max(len(one.first.folds) for one in found)
    first = found[0].first.metric
    rows: list[list[Cell]] = []
    for one in found:
        kind = "ours" if one.kind == "ours" else ""
        named = [(one.name, one.scores, kind)]
        named += [(f"{one.name}: {b.title}", b.scores, "") for b in one.baselines]
        for name, scores, look in named:
            own = {each.metric: each for each in scores}
            cells = [
                NONE if metric not in own else spread(metric, own[metric].mean, own[metric].std)
                for metric in metrics
            ]
            folds = own[first].folds if first in own else []
            cells += [spread(first, value) for value in folds] + [NONE] * (n_folds - len(folds))
            rows.append([(text, look) for text in [name, *cells]])
        if one.published is not None:
            cells = [
                spread("accuracy", one.published.mean, one.published.std)
                if metric == "accuracy"
                else NONE
                for metric in metrics
            ]
            rows.append([f"{one.name}: published", *cells, *[NONE] * n_folds])
    heads = [f"{words}, %" if is_share(metric) else words for metric, words in metrics.items()]
    return Table(
        ["model", *heads, *(f"fold {i + 1}" for i in range(n_folds))],
        rows,
        note="Mean ± standard deviation over the outer folds.",
    )


# ---------------------------------------------------------------------- of one subject


def _own_figures(run: int, subject: Subject) -> list[Figure]:
    figures, evaluation = [], subject.evaluation
    if subject.is_comparison:
        by_dataset: dict[str, list[Evaluation]] = defaultdict(list)
        for one in subject.evaluations:
            by_dataset[one.dataset].append(one)
        figures = [
            _methods(f"methods-{run}-{i}", dataset, own)
            for i, (dataset, own) in enumerate(by_dataset.items())
        ]
    if evaluation is not None and _of_the_paper(evaluation):
        figures.append(_published_rows(f"published-{run}", evaluation))
    return figures


def _methods(id_: str, dataset: str, found: Sequence[Evaluation]) -> Figure:
    """Return what each method of a comparison cost, and how it does fold by fold."""
    ours = next((one for one in found if is_ours(one) and one.metrics), None)
    rows: list[list[Cell]] = []
    for one in found:
        first = one.metrics[0] if one.metrics else None
        cells = [
            one.model.title,
            one.status + (f": {one.reason}" if one.reason else ""),
            NONE if first is None else f"{_with_unit(first)} ({len(one.folds)} folds)",
            _paired(one, ours),
            duration(_mean([fold.train_seconds for fold in one.folds])),
            duration(_mean([fold.test_seconds for fold in one.folds])),
            duration(one.times.selection),
            _factor(one, ours),
            count(one.model.n_parameters),
            NONE if one.peak_mb is None else f"{significant(one.peak_mb)} MB",
        ]
        look = "ours" if is_ours(one) else ""
        rows.append([(text, look) for text in cells])
    name = ours.model.title if ours else "the first"
    unfinished = Counter(one.status for one in found if one.status != "finished")
    text = (
        f"All methods were tested on the same folds. {_better(found, ours)}Times are means over "
        "the outer folds, of the selected model, on this machine."
    )
    if unfinished:
        each = [f"{plural(n, 'method')} {status}" for status, n in unfinished.items()]
        text += f" Not finished: {listed(each)}; the table has the reasons."
    return Figure(
        id=id_,
        title=f"Methods on {dataset}",
        caption=text,
        table=Table.without_empty(
            ["method", "state", found[0].metric, f"{name} better, equal, worse", "training",
             "test", "selection", f"times {name}'s training", "weights", "memory"],
            rows,
            n_words=2,
        ),
        open=True,
    )  # fmt: skip


def _better(found: Sequence[Evaluation], ours: Evaluation | None) -> str:
    """Return which methods have a better mean than ours, in a sentence."""
    others = [one for one in found if not is_ours(one) and one.score is not None]
    if ours is None or ours.score is None or not others:
        return ""
    sign = 1 if _higher_is_better(ours.metrics[0].metric) else -1
    better = [
        one.model.title for one in others if one.score and sign * (one.score - ours.score) > 0
    ]
    who = listed(better) if better else "No other method"
    verb = "have" if len(better) > 1 else "has"
    return (
        f"{who} {verb} a better mean than {ours.model.title}. Where each is better on about half "
        "of the folds, these folds cannot tell which is better. "
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _paired(one: Evaluation, ours: Evaluation | None) -> str:
    """Return on how many folds ours is better than, equal to, and worse than another method."""
    if ours is None or one is ours or not one.metrics:
        return NONE
    first = ours.metrics[0]
    other = one.by(first.metric)
    if other is None or len(other.folds) != len(first.folds):
        return NONE
    sign = 1 if _higher_is_better(first.metric) else -1
    gaps = [
        sign * (a - b)
        for a, b in zip(first.folds, other.folds, strict=True)
        if a is not None and b is not None
    ]
    better, equal = sum(g > 1e-9 for g in gaps), sum(abs(g) <= 1e-9 for g in gaps)
    return f"{better}, {equal}, {len(gaps) - better - equal}"


def _factor(one: Evaluation, ours: Evaluation | None) -> str:
    """Return how many times as long as ours another method trains."""
    mine = None if ours is None else _mean([fold.train_seconds for fold in ours.folds])
    own = _mean([fold.train_seconds for fold in one.folds])
    return times(own / mine) if mine and own and one is not ours else NONE


# ---------------------------------------------------------------------- published rows


def _of_the_paper(evaluation: Evaluation) -> bool:
    """Return whether it is of one of the paper's datasets, and not another of the same name."""
    known = paper.DATASETS.get(evaluation.dataset)
    return (
        known is not None
        and known.n_graphs == evaluation.n_graphs
        and evaluation.by("accuracy") is not None
    )


def _published_rows(id_: str, evaluation: Evaluation) -> Figure:
    """Return the rows of the paper's Table 1 for a dataset, and ours among them."""
    own, dataset = evaluation.by("accuracy"), evaluation.dataset
    assert own is not None
    assert own.mean is not None
    rows: list[tuple[float, list[Cell]]] = [
        (
            scores[dataset].mean / 100,
            [
                model,
                paper.REFERENCES[scores[dataset].reference],
                spread("accuracy", scores[dataset].mean / 100, _share(scores[dataset].std)),
            ],
        )
        for model, scores in paper.ACCURACY.items()
        if dataset in scores
    ]
    mine = spread("accuracy", own.mean, own.std)
    ours: list[Cell] = [(text, "ours") for text in (evaluation.model.title, "this report", mine)]
    others = [mean for mean, cells in rows if not str(cells[0]).startswith("FDGNN")]
    better = sum(mean > own.mean for mean in others)
    ranked = sorted([*rows, (own.mean, ours)], key=lambda row: -row[0])
    return Figure(
        id=id_,
        title="Among published results (the paper's Table 1)",
        caption=f"{better} of {len(others)} other published models have a higher mean accuracy on "
        f"{dataset}. The rows come from works with different protocols, so small differences mean "
        "nothing.",
        table=Table(["model", "from", "accuracy, %"], [cells for _, cells in ranked], n_words=2),
    )


def _share(percentage: float | None) -> float | None:
    return None if percentage is None else percentage / 100

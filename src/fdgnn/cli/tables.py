"""Evaluations as text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fdgnn.texts import printable

if TYPE_CHECKING:
    from fdgnn.evaluation.record import Evaluation, MetricScores, PublishedScore

_ALWAYS = ("accuracy", "balanced_accuracy", "roc_auc")  # scores of classes that are always shown


def by_metric(scores: Sequence[MetricScores | None]) -> dict[str, float | None]:
    """Return means over the outer folds by metric, in words."""
    return {each.words: each.mean for each in scores if each is not None}


def score_lines(found: Evaluation) -> list[str]:
    """Write scores beside those of baselines in the same folds, and of several targets each.

    The metric that models are chosen by comes first. A mean over outer folds stands beside its
    standard deviation.
    """
    several = len(found.targets) > 1
    # Of several targets, each with its own unit, the mean of errors means nothing.
    chosen = found.protocol.scoring
    shown = [m for m in found.metrics if not several or m.metric in (chosen, *_ALWAYS, "r2")]
    names = [each.name for each in found.targets[0].baselines]
    heads = [f"nested cross-validation, {found.protocol.split}", "score"]
    heads += [each.title for each in found.targets[0].baselines]
    rows = [heads]
    for m in shown:
        others = [_spread(found.baseline(name, m.metric)) for name in names]
        rows.append([m.words, _spread(m), *others])
    errors = [] if several else [each.standard_error for each in found.targets[0].baselines]
    if any(error is not None for error in errors):
        cells = ["" if error is None else _number(error) for error in errors]
        what = f"{shown[0].words}, standard error of the difference"
        rows.insert(2, [what, "", *cells])
    ceiling = None if several else found.targets[0].wl_ceiling
    if ceiling is not None:
        rows.append(
            ["accuracy, best of any message passing (WL)", f"{ceiling:.3f}", *[""] * len(names)]
        )
    return [*_aligned(rows), *_target_lines(found)]


def _usual(found: Evaluation) -> list[MetricScores]:
    """Return the scores by the metric that chooses, and by those that most people ask for."""
    names = (found.protocol.scoring, *_ALWAYS, "r2", "rmse")
    return [each for each in found.metrics if each.metric in names]


def _spread(scores: MetricScores | PublishedScore | None) -> str:
    """Write a mean over the outer folds and its standard deviation."""
    if scores is None or scores.mean is None:
        return "-"
    return _number(scores.mean) + ("" if scores.std is None else f" ± {_number(scores.std)}")


def _number(value: float) -> str:
    """Write a score; errors have the unit of the target, so that it may have any size."""
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.5g}"


def _target_lines(found: Evaluation) -> list[str]:
    """Write a line for each of several targets: graphs for which it is known, and scores."""
    if len(found.targets) == 1:
        return []
    morgan = found.baseline("morgan") is not None
    metrics = [each.words for each in _usual(found)]
    rows = [["target", "known", *metrics, *(["Morgan"] if morgan else [])]]
    for target in found.targets:
        own = found.of_target(target.name)
        scores = [*_usual(own), *([own.baseline("morgan")] if morgan else [])]
        rows.append([target.name, str(target.n_known), *map(_spread, scores)])
    return _aligned(rows)


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Write rows of cells as lines, the first column to the left and the others to the right."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in shown
    ]


def evaluation_lines(found: Evaluation) -> list[str]:
    """Write all that is known of an evaluation: scores, base models, other protocols, times."""
    protocol = found.protocol
    title = f"{found.dataset}, {found.model.title}, seed {protocol.seed}"
    if protocol.name != "nested":
        counts = (protocol.n_configurations, protocol.n_initializations)
        title += ", {} configurations x {} random initializations".format(*counts)
    lines = [title, *score_lines(found)]
    if found.published is not None:
        lines.append(f"accuracy, published: {_spread(found.published)}")
    if found.base_models:
        n = len(found.folds)
        rows = [["base model alone", found.metric, "averaged in"]]
        for one in found.base_models:
            score = "-" if one.score is None else _number(one.score)
            rows.append([one.name, score, f"{one.n_kept} of {n} folds"])
        lines += _aligned(rows)
    for name, words in _VARIANTS.items():
        if name in found.variants:
            lines.append(f"accuracy, {words}: {_spread(found.variants[name])}")
    layers = [layer for fold in found.folds if (layer := fold.configuration.get("n_layers"))]
    if layers:
        lines.append(f"layers selected: {sum(map(float, layers)) / len(layers):.1f}")
    train, test = seconds_of(found)
    if train is not None and test is not None:
        lines.append(f"to train the selected model: {train:.3g} s; to test it: {test:.2g} s")
    return lines


_VARIANTS = {
    "ensemble": "outputs of random initializations averaged",
    "single_layer": "one layer",
}


def seconds_of(found: Evaluation) -> tuple[float | None, float | None]:
    """Return the mean seconds over outer folds to train and to test, where they are known."""
    pairs = [(fold.train_seconds, fold.test_seconds) for fold in found.folds]
    known = [(a, b) for a, b in pairs if a is not None and b is not None]
    if not known:
        return None, None
    return sum(a for a, _ in known) / len(known), sum(b for _, b in known) / len(known)


def comparison_lines(found: Sequence[Evaluation]) -> list[str]:
    """Write methods side by side, narrow enough for 80 columns; what nobody has takes no room."""
    published = any(each.published is not None for each in found)
    areas = [each.by("roc_auc") for each in found]
    with_area = any(each is not None and each.mean is not None for each in areas)
    ours = seconds_of(found[0])[0]
    metric = next((each.metric for each in found if each.targets), "score")
    with_area &= metric != "ROC AUC"
    heads = ["", metric, *(["published"] if published else []), *(["AUC"] if with_area else [])]
    rows = [[*heads, "train s", "slower", "test s", "weights", "MB"]]
    for one, area in zip(found, areas, strict=True):
        train, test = seconds_of(one)
        scores = one.by(one.protocol.scoring)
        cells = ["-" if scores is None else _spread(scores)]
        if one.status != "finished":
            cells = [f"{cells[0]} *" if one.folds else one.status]
        cells += [_spread(one.published)] if published else []
        if with_area:
            cells.append("-" if area is None or area.mean is None else f"{area.mean:.3f}")
        slower = "" if not ours or train is None or one is found[0] else times(train / ours)
        rows.append([
            one.model.name, *cells, "-" if train is None else f"{train:.3g}", slower,
            "-" if test is None else f"{test:.2g}",
            "-" if one.model.n_parameters is None else f"{one.model.n_parameters:,}",
            "-" if one.peak_mb is None else f"{one.peak_mb:.0f}",
        ])  # fmt: skip
    lines = [f"{found[0].dataset}: nested cross-validation, {found[0].protocol.split}"]
    lines += _aligned(rows)
    for one in found:
        if one.status != "finished":
            done = f"; * of {len(one.folds)} outer folds" if one.folds else ""
            lines.append(f"{one.model.name}: {one.status} ({one.reason}{done})")
    return lines


def times(ratio: float) -> str:
    """Write a ratio as one says it: 6.1x, 39x, 1,750x."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2g}x"

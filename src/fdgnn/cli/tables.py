"""Results as tables for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich import box
from rich.markup import escape
from rich.table import Table

from fdgnn.texts import printable

if TYPE_CHECKING:
    from fdgnn.evaluation.committee_records import CommitteeResult, QuantityResult
    from fdgnn.evaluation.record import Evaluation, MetricScores
    from fdgnn.evaluation.records import (
        ComparisonRow,
        FoldScores,
        Published,
        PublishedAccuracy,
        RunResult,
    )
    from fdgnn.metrics import Scoring

_ALWAYS = ("accuracy", "balanced_accuracy", "roc_auc")  # scores of classes that are always shown


def _shown(text: str) -> str:
    """Text that neither the terminal nor rich obeys."""
    return escape(printable(text))


def by_metric(scores: Sequence[MetricScores | None]) -> dict[str, float | None]:
    """Return means over the outer folds by metric, in words."""
    return {each.words: each.mean for each in scores if each is not None}


def training_lines(found: Evaluation) -> list[str]:
    """Write how a model does beside baselines in the same folds, and of several targets each."""
    how = f"nested cross-validation, {found.protocol.split}"
    several = len(found.targets) > 1
    # Of several targets, each with its own unit, the mean of errors means nothing.
    chosen = found.protocol.scoring
    shown = [m for m in _usual(found) if not several or m.metric in (chosen, *_ALWAYS, "r2")]
    rows: list[tuple[str, MetricScores | None]] = [(f"{m.words}, {how}", m) for m in shown]
    for baseline in found.targets[0].baselines:
        rows.append((f"{found.metric}, {baseline.title}", found.baseline(baseline.name)))
    lines = {what: _spread(each) for what, each in rows if each and each.mean is not None}
    if not several and found.targets[0].wl_ceiling is not None:
        lines["accuracy, best of any message passing (WL)"] = f"{found.targets[0].wl_ceiling:.3f}"
    width = max(map(len, lines))
    return [f"{what:{width}}  {value}" for what, value in lines.items()] + _target_lines(found)


def _usual(found: Evaluation) -> list[MetricScores]:
    """Return the scores by the metric that chooses, and by those that most people ask for."""
    names = (found.protocol.scoring, *_ALWAYS, "r2", "rmse")
    return [each for each in found.metrics if each.metric in names]


def _spread(scores: MetricScores | None) -> str:
    """Write a mean over the outer folds and its standard deviation."""
    if scores is None or scores.mean is None:
        return "-"
    return f"{scores.mean:.3f}" + ("" if scores.std is None else f" ± {scores.std:.3f}")


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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    ]


def result_table(result: RunResult) -> Table:
    """Show our numbers beside the paper's."""
    guesses = f"{result.n_configurations} configurations x {result.n_guesses} networks"
    table = Table(title=_shown(f"{result.dataset}, {guesses}, nested cross-validation"))
    table.add_column("")
    table.add_column("ours", justify="right")
    table.add_column("paper", justify="right")
    theirs = _paper_cells(result.published)
    for (what, ours), cell in zip(_our_cells(result).items(), theirs, strict=True):
        table.add_row(what, ours, cell)
    others = {"balanced accuracy": result.balanced_accuracy_mean, "ROC AUC": result.roc_auc_mean}
    for what, share in others.items():
        if share is not None:
            table.add_row(f"{what} of one network, %", f"{100 * share:.2f}", "")
    return table


def committee_table(result: CommitteeResult) -> Table:
    """Show how the members of a committee do alone, and their average."""
    from fdgnn.metrics import OF_CLASSES

    alone = [f"{100 * share:.2f}" for share in result.member_accuracies]
    table = _members_table(result, "accuracy, %", alone)
    mean, deviation = 100 * result.accuracy_mean, 100 * result.accuracy_std
    table.add_row("average", f"{mean:.2f} ± {deviation:.2f}", "", style="bold")
    table.add_row("average, balanced accuracy", f"{100 * result.balanced_accuracy_mean:.2f}", "")
    if result.roc_auc_mean is not None:
        table.add_row("average, ROC AUC", f"{100 * result.roc_auc_mean:.2f}", "")
    scoring = OF_CLASSES[result.scoring]
    if result.score_mean is not None and scoring.name not in _ALWAYS:
        score = result.score_mean if scoring.error else 100 * result.score_mean
        table.add_row(f"average, {scoring.words}", f"{score:.{4 if scoring.error else 2}f}", "")
    return table


def quantity_table(result: QuantityResult) -> Table:
    """Show how the members of a committee that predicts a number do alone, and their average."""
    from fdgnn.metrics import OF_NUMBERS

    chosen = OF_NUMBERS[result.scoring]
    alone = [_score_cell(chosen, score) for score in result.member_scores]
    table = _members_table(result, chosen.words, alone)
    average = _score_cell(chosen, result.score_mean)
    if result.score_std is not None:
        average += f" ± {_score_cell(chosen, result.score_std)}"
    table.add_row("average", average, "", style="bold")
    for name, scoring in OF_NUMBERS.items():
        if name != result.scoring:
            mean: float | None = getattr(result, f"{name}_mean")
            table.add_row(f"average, {scoring.words}", _score_cell(scoring, mean), "")
    return table


def _members_table(
    result: CommitteeResult | QuantityResult, score: str, alone: Sequence[str]
) -> Table:
    """Show the score of each member alone, and in how many folds it was averaged."""
    how = f"nested cross-validation, {result.split}, seed {result.seed}"
    table = Table(title=_shown(f"{result.dataset}, {result.model}, {how}"))
    table.add_column("")
    table.add_column(score, justify="right")
    table.add_column("averaged in", justify="right")
    for i, (name, cell) in enumerate(zip(result.members, alone, strict=True)):
        kept = sum(i in fold for fold in result.fold_kept)
        table.add_row(_shown(name), cell, f"{kept} of {len(result.fold_kept)} folds")
    return table


def _score_cell(scoring: Scoring, score: float | None) -> str:
    """Write a score; errors have the unit of the target, so that it may have any size."""
    if score is None:
        return "-"
    return f"{score:.4g}" if scoring.error else f"{score:.3f}"


def _our_cells(result: RunResult) -> dict[str, str]:
    return {
        "accuracy, %": _percent(result),
        "accuracy, outputs of networks averaged, %": _percent(result.ensemble),
        "accuracy with one layer, %": _percent(result.single_layer),
        "layers selected": f"{result.depth_mean:.1f}",
        "training, s": f"{np.mean(result.times.fold_train_seconds):.3f}",
        "test, s": f"{np.mean(result.times.fold_test_seconds):.4f}",
    }


def _paper_cells(published: Published | None) -> list[str]:
    if published is None:
        return ["-", "", "-", "-", "-", "-"]
    return [
        _percent(published),
        "",
        f"{100 * published.single_layer_accuracy_mean:.2f}",
        f"{published.depth_mean:.1f}",
        f"{published.train_seconds:.2f}",
        f"{published.test_seconds:.2f}",
    ]


def _percent(row: FoldScores | Published) -> str:
    return f"{100 * row.accuracy_mean:.2f} ± {100 * row.accuracy_std:.2f}"


def comparison_table(rows: Sequence[ComparisonRow]) -> Table:
    """Show FDGNN beside its rivals, narrow enough for 80 columns."""
    table = Table(
        title=_shown(f"{rows[0].dataset}: nested cross-validation, times on one core"),
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
    )
    table.add_column("")
    published = any(row.published is not None for row in rows)
    for column in _comparison_columns(published):
        table.add_column(column, justify="right")
    for row in rows:
        cells = _comparison_cells(row, rows[0].train_seconds, published)
        table.add_row(_shown(row.model), *cells)
    return table


def _comparison_columns(published: bool) -> list[str]:
    """Name the columns; what is not there for any row takes no room."""
    others = ["train s", "slower", "test s", "weights", "MB"]
    return ["accuracy %", *(["published"] if published else []), "AUC %", *others]


def unfinished_lines(rows: Sequence[ComparisonRow]) -> list[str]:
    """Say why some did not finish."""
    return [f"{r.model}: {r.status} ({r.reason})" for r in rows if r.status != "finished"]


def _comparison_cells(
    row: ComparisonRow, ours: float | None, with_published: bool
) -> tuple[str, ...]:
    published = (_short_percent(row.published),) if with_published else ()
    if row.status != "finished":
        return (row.status, *published)
    alone = row.model == "fdgnn" or not ours or row.train_seconds is None
    return (
        _short_percent(row),
        *published,
        "-" if row.roc_auc_mean is None else f"{100 * row.roc_auc_mean:.1f}",
        f"{row.train_seconds:.3g}",
        "" if alone else times((row.train_seconds or 0.0) / (ours or 1.0)),
        f"{row.test_seconds:.2g}",
        f"{row.parameters:,}",
        f"{row.peak_mb:.0f}",
    )


def times(ratio: float) -> str:
    """Write a ratio as one says it: 6.1x, 39x, 1,750x."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2g}x"


def _short_percent(row: ComparisonRow | PublishedAccuracy | None) -> str:
    if row is None or row.accuracy_mean is None:
        return "-"
    deviation = "" if row.accuracy_std is None else f" ± {100 * row.accuracy_std:.1f}"
    return f"{100 * row.accuracy_mean:.1f}{deviation}"

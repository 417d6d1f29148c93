"""Output of commands: files, lists of rejected rows, evaluations as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fdgnn.cli.app import say
from fdgnn.files import is_url, place_exists
from fdgnn.texts import agreeing, printable

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Change, GraphTable, Reject
    from fdgnn.evaluation.record import Evaluation, MetricScores, PublishedScore
    from fdgnn.graphs import GraphBatch
    from fdgnn.schema import ReadOptions

SHOWN = 5  # rejected rows that are shown on the terminal; the file lists all of them


def rejects_beside(output: str | Path, chosen: Path | None) -> Path | None:
    """Return the file for the list of rejected rows: the chosen one, or one next to the output.

    None if no file was chosen and the output is printed or is a URL.
    """
    if chosen is not None or str(output) == "-" or is_url(str(output)):
        return chosen
    return Path(output).with_name(f"{Path(output).name}.rejects.csv")


@contextmanager
def listing(path: Path | None) -> Iterator[RejectedRows]:
    """Yield a list to which rejected rows are appended; a file is written as it grows.

    If no row is rejected, an older file is removed.
    """
    from fdgnn.prediction.output import REJECTS, record_writer

    with record_writer(path, REJECTS) as write:
        found = RejectedRows(path, write)
        yield found
    if path is not None and not found.n:
        path.unlink(missing_ok=True)


def report_rejects(
    rejects: Sequence[Reject], n_rows: int, context: Context, path: Path | None = None
) -> dict[str, object]:
    """Show and list rejected rows, and return their entries of a summary."""
    with listing(path) as found:
        found.extend(rejects)
    return found.show(n_rows, context)


class RejectedRows:
    """Rejected rows of which the first are kept; all are counted and passed on to a file."""

    def __init__(self, path: Path | None, write: Callable[[Sequence[Reject]], None]) -> None:
        self.path, self.n, self._write = path, 0, write
        self.first: list[Reject] = []

    def extend(self, rejects: Sequence[Reject]) -> None:
        """Append some rejected rows."""
        self.n += len(rejects)
        self.first += rejects[: SHOWN - len(self.first)]
        self._write(rejects)

    def check(self, n_rows: int) -> None:
        """Raise an error if all rows are rejected."""
        if self.n == n_rows:
            where = "" if self.path is None else f"; all reasons are listed in {self.path}"
            raise ValueError(f"none of the {n_rows} rows can be predicted; {self.first[0]}{where}")

    def show(self, n_rows: int, context: Context) -> dict[str, object]:
        """Show the first rejected rows, and return the entries of a summary for all of them."""
        if not self.n:
            return {"rejected": 0, "rejects": None}
        where = "" if self.path is None else f", listed in {self.path}"
        if context.quiet:  # nothing is left out without a word
            where += f"; the first: {self.first[0]}"
        for reject in self.first:
            say(str(reject), context.quiet)
        say(f"{self.n} of {n_rows} rows rejected{where}")
        return {"rejected": self.n, "rejects": self.path and str(self.path)}


def check_outputs(
    force: bool,
    *outputs: str | Path | None,
    beside: Sequence[Path | None] = (),
    inputs: Sequence[str | Path] = (),
) -> None:
    """Raise an error now, rather than after the work, if something cannot be written.

    Files that exist are only overwritten with `force`, unless the command itself has put them
    `beside` its outputs; inputs never. "-" is standard output. No two outputs may be one file.
    """
    from fdgnn.files import check_writable

    beside = [each for each in beside if each not in outputs]
    seen: set[Path] = set()
    for output in (*outputs, *beside):
        if output is None or str(output) == "-":
            continue
        path = Path(output)
        if (place := path.absolute()) in seen:
            raise ValueError(f"{output}: two outputs have this name; give another one")
        seen.add(place)
        if is_url(str(output)):
            exists = place_exists(str(output))
        else:
            check_writable(path)
            exists = path.exists()
            if exists and any(Path(one).exists() and path.samefile(one) for one in inputs):
                raise ValueError(f"{output}: this is the input; give another name")
        if exists and not force and output not in beside:
            raise ValueError(
                f"{output}: the file exists; give another name, or --force to overwrite it"
            )


def read_all(
    data: str, how: ReadOptions, like: Any = None, target: str | list[str] | None = None
) -> tuple[GraphTable, GraphBatch]:
    """Read a table of which at least one row is valid, and report how many are not."""
    from fdgnn.datasets import read_graphs
    from fdgnn.exceptions import GraphError

    table = read_graphs(data, how, target=target, like=like)
    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be read; {table.rejects[0]}")
    if table.rejects:
        say(f"{len(table.rejects)} of {table.n_rows} rows left out; {table.rejects[0]}")
    return table, table.graphs


def write_changes(
    path: Path, changes: Sequence[Change], n_rows: int, context: Context
) -> dict[str, object]:
    """Count and list molecules that standardization changed; return the entries of a summary.

    If there are none, an older list is removed.
    """
    if not changes:
        path.unlink(missing_ok=True)
        return {"changed": 0, "changes": None}
    from fdgnn.graphs.molecules import STEPS
    from fdgnn.prediction.output import CHANGES, record_writer

    with record_writer(path, CHANGES) as write:
        write(changes)
    counts = Counter(step for change in changes for step in change.steps)
    done = ", ".join(f"{counts[step]} {words}" for step, words in STEPS.items() if counts[step])
    verb = agreeing(len(changes), "was", "were")
    say(
        f"{len(changes)} of {n_rows} molecules {verb} changed: {done}; listed in {path}",
        context.quiet,
    )
    return {"changed": len(changes), "changes": str(path)}


# ---------------------------------------------------------------------- evaluations as text

UPPER_BOUND = (
    "upper bound of accuracy: {:.3f} (the Weisfeiler-Lehman test, and so every "
    "message-passing network, cannot distinguish some graphs of different classes)"
)
_ALWAYS = ("accuracy", "balanced_accuracy", "roc_auc")  # scores of classes that are always shown


def score_lines(found: Evaluation) -> list[str]:
    """Write scores of the model and of baselines on the same folds, for each target.

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
    lines = _aligned(rows)
    ceiling = None if several else found.targets[0].wl_ceiling
    if ceiling is not None and ceiling < 1:
        lines.append(UPPER_BOUND.format(ceiling))
    return [*lines, *_target_lines(found)]


def _usual(found: Evaluation) -> list[MetricScores]:
    """Return the scores by the selection metric and the usual metrics."""
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
    """Return an evaluation as lines of text: scores, base models, other protocols, times."""
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
    """Write a table of methods in at most 80 columns, without empty columns."""
    published = any(each.published is not None for each in found)
    areas = [each.by("roc_auc") for each in found]
    with_area = any(each is not None and each.mean is not None for each in areas)
    ours = seconds_of(found[0])[0]
    metric = next((each.metric for each in found if each.targets), "score")
    with_area &= metric != "ROC AUC"
    heads = ["", metric, *(["published"] if published else []), *(["ROC AUC"] if with_area else [])]
    rows = [[*heads, "train s", "relative", "test s", "weights", "MB"]]
    for one, area in zip(found, areas, strict=True):
        train, test = seconds_of(one)
        scores = one.by(one.protocol.scoring)
        cells = ["-" if scores is None else _spread(scores)]
        if one.status != "finished":
            cells = [f"{cells[0]} *" if one.folds else one.status]
        cells += [_spread(one.published)] if published else []
        if with_area:
            cells.append("-" if area is None or area.mean is None else f"{area.mean:.3f}")
        relative = "" if not ours or train is None or one is found[0] else times(train / ours)
        rows.append([
            one.model.name, *cells, "-" if train is None else f"{train:.3g}", relative,
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
    """Write the ratio of two times: 0.04x, 6.1x, 39x, 1,750x."""
    return f"{ratio:,.0f}x" if ratio >= 100 else f"{ratio:.2g}x"

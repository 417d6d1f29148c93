"""What ``fdgnn predict`` does: one file, a stream, or a directory of shards; what it tells."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fdgnn.cli.app import say
from fdgnn.cli.options import DataOptions
from fdgnn.cli.rejects import RejectedRows, RejectsFile, check_outputs
from fdgnn.cli.wording import name_options
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import Reject
    from fdgnn.prediction.pieces import Counts
    from fdgnn.prediction.predictor import PredictedRows, Predictor


@dataclass(frozen=True)
class PredictionWanted:
    """What was typed."""

    model: Path
    data: tuple[str, ...]
    output: str
    how: DataOptions
    chunk: int
    guard: bool
    as_json: bool
    rejects: Path | None

    @property
    def to_directory(self) -> bool:
        """Whether each input file becomes a file of its own."""
        from fdgnn import places

        if self.output == "-":
            return False
        here = not places.is_url(self.output)
        if here and Path(self.output).exists():
            return Path(self.output).is_dir()
        return self.output.endswith("/") or not Path(self.output).suffix

    def check(self, directory_options: bool) -> None:
        """Raise ValueError if what was typed does not go together."""
        from fdgnn import places

        several = len(self.data) > 1 or any(map(places.is_pattern, self.data))
        if self.to_directory:
            if self.rejects is not None:
                raise ValueError(
                    "--rejects is for one output file; a directory has its own folder for them"
                )
        elif several or directory_options:
            what = "several input files" if several else "--cluster, --restart and --shard-format"
            raise ValueError(f"{what} need a directory as output; give -o DIRECTORY/")

    def stamp(self, predictor: Predictor) -> str:
        """Give a hash of everything that the output depends on."""
        from fdgnn import places

        given = self.data[0]
        source = Path(given)
        inside = sorted(source.iterdir()) if source.is_dir() else []
        files = [str(each) for each in inside if each.is_file()] or [given]
        stamps = [f"{each} {places.stamp_of(each)}" for each in files]
        asked = (predictor.coverage, self.how, self.chunk, self.guard, stamps)
        return hashlib.sha256(self.model.read_bytes() + repr(asked).encode()).hexdigest()


# ---------------------------------------------------------------------- one file


def predict_file(asked: PredictionWanted, predictor: Predictor, context: Context) -> None:
    """Predict a file, a folder that is one table, or standard input."""
    from fdgnn import places

    given = asked.data[0]
    if places.is_url(given):
        with places.fetched(given) as path:
            _predict_file(asked, predictor, context, str(path))
    else:
        _predict_file(asked, predictor, context, given)


def _predict_file(
    asked: PredictionWanted, predictor: Predictor, context: Context, given: str
) -> None:
    from fdgnn.prediction.counting import count_rows
    from fdgnn.prediction.rows import predict_rows, skip_rows

    output = asked.output
    bad_rows = RejectsFile.beside(output, asked.rejects)
    check_outputs(given, output, bad_rows)
    with (
        bad_rows.listing() as rejected,
        _writing(asked, predictor, given) as (write, counts, earlier),
    ):
        tables = asked.how.iterate(given, like=predictor.model, chunk_size=asked.chunk)
        if counts.rows:
            verb = agreeing(counts.rows, "was", "were")
            told = f"{verb} predicted before and {agreeing(counts.rows, 'is', 'are')} kept"
            say(f"{counted(counts.rows, 'row')} {told}", context.quiet)
            tables = skip_rows(tables, counts.rows)
            for some_rejects in earlier:
                rejected.extend(some_rejects)
        rows = predict_rows(predictor, tables, context.n_jobs)
        if output != "-":
            rows = context.track(rows, count_rows(given), "rows", done=counts.rows, size=len)
        for some in rows:
            write(some)
            counts.add(some)
            rejected.extend(some.rejects)
    _tell(counts, rejected, context, output, asked.as_json)


@contextmanager
def _writing(
    asked: PredictionWanted, predictor: Predictor, given: str
) -> Iterator[tuple[Callable[[PredictedRows], None], Counts, Iterable[list[Reject]]]]:
    """Yield a function that writes rows, and counts and rejected rows of an earlier command."""
    from fdgnn import places
    from fdgnn.prediction.output import kind_of, prediction_writer, rows_writer
    from fdgnn.prediction.pieces import Counts, PiecedFile

    output = asked.output
    if places.is_url(output):
        with (
            places.write_place(output) as file,
            rows_writer(file, kind_of(output), asked.guard) as write_table,
        ):
            yield lambda rows: write_table(rows.columns), Counts(), ()
    elif output == "-" or not Path(given).exists():  # printed, or not a file that could be repeated
        with prediction_writer(output, asked.guard, as_json=asked.as_json) as write:
            yield write, Counts(), ()
    else:
        pieces = PiecedFile(output, asked.stamp(predictor), asked.guard)
        with pieces.writing() as write:
            yield write, pieces.done, pieces.earlier_rejects()


def _tell(
    counts: Counts, rejected: RejectedRows, context: Context, output: str, as_json: bool
) -> None:
    n_rows = counts.rows
    listed = rejected.show(n_rows, context)
    if rejected.n == n_rows:
        raise ValueError(f"none of the {n_rows} rows can be predicted; {rejected.first[0]}")
    n_predicted = n_rows - rejected.n
    tell_unseen(counts.unseen, n_predicted, context)
    if counts.unlike:
        verb = agreeing(counts.unlike, "is", "are")
        told = f"{verb} unlike the training graphs; the column 'unlike' says why"
        say(f"{counts.unlike} of these {n_predicted} rows {told}", context.quiet)
    if counts.changed:
        verb = agreeing(counts.changed, "was", "were")
        told = f"molecules {verb} changed; the column 'standardized' has what was read"
        say(f"{counts.changed} of {n_rows} {told}", context.quiet)
    say(f"{n_predicted} of {n_rows} rows predicted", context.quiet)
    summary = {"rows": n_rows, "predicted": n_predicted, "unseen_labels": counts.unseen}
    summary |= {"unlike": counts.unlike, "changed": counts.changed}
    print_summary({**summary, **listed}, output, as_json)


# ---------------------------------------------------------------------- a directory


def predict_directory(
    asked: PredictionWanted,
    predictor: Predictor,
    context: Context,
    kind: str | None,
    cluster: str | None,
    restart: bool,
) -> None:
    """Predict each input file into a file of a directory."""
    from fdgnn.prediction.shards import ShardWork, plan_shards, predict_shards

    shards = plan_shards(asked.data, asked.output, kind)
    options = {**asked.how.arguments, "chunk_size": asked.chunk}
    work = ShardWork.of(predictor, asked.model.read_bytes(), options, asked.guard)
    found = predict_shards(work, shards, context, cluster=cluster, restart=restart)
    records = list(found.records.values())
    names = ("rows", "rejected", "unseen_labels", "unlike", "changed")
    summary = {name: sum(getattr(each, name) for each in records) for name in names}
    bad = [(each, told) for each in shards for told in _first_rejects(found.records, each.target)]
    for shard, told in bad[:5]:
        say(f"{shard.source}, {told}", context.quiet)
    if summary["rejected"]:
        where = f"listed in {asked.output.rstrip('/')}/rejects"
        say(f"{summary['rejected']} of {summary['rows']} rows rejected, {where}", context.quiet)
    for source, reason in list(found.failures.items())[:5]:
        say(name_options(reason if source in reason else f"{source}: {reason}"))
    if found.n_skipped:
        verb = agreeing(found.n_skipped, "was", "were")
        say(f"{found.n_skipped} of {len(shards)} shards {verb} finished before", context.quiet)
    if found.failures:
        n_failed, first = len(found.failures), next(iter(found.failures))
        further = "the others are finished, and a repeated command tries only what is missing"
        raise ValueError(
            f"{n_failed} of {counted(len(shards), 'shard')} cannot be predicted, first {first}; "
            + (further if n_failed < len(shards) else "a repeated command tries again")
        )
    n_predicted = summary["rows"] - summary["rejected"]
    of_shards = counted(len(shards), "shard")
    say(f"{n_predicted} of {summary['rows']} rows predicted, {of_shards}", context.quiet)
    print_summary({"shards": len(shards), **summary}, asked.output, asked.as_json)


def _first_rejects(records: Any, target: str) -> list[str]:
    found = records.get(target)
    return [] if found is None else list(found.first_rejects)


# ---------------------------------------------------------------------- what is told


def tell_unseen(n_unseen: int, n_rows: int, context: Context) -> None:
    """Say in one line, for all tables together, how many rows have unknown labels."""
    if n_unseen:
        from fdgnn.encoders.base import WHAT_IT_MEANS

        verb = agreeing(n_unseen, "has", "have")
        say(f"{n_unseen} of these {n_rows} rows {verb} {WHAT_IT_MEANS}", context.quiet)


def print_summary(summary: dict[str, object], output: str, as_json: bool) -> None:
    """Print a summary as JSON, unless rows are printed."""
    if as_json and output != "-":
        typer.echo(json.dumps(summary | {"output": output}))

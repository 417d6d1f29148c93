"""``fdgnn predict`` and ``explain``: predictions for new graphs, and the reasons for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from fdgnn.cli.app import command, name_options, resumes_from, say
from fdgnn.cli.options import (
    AsJson,
    Cluster,
    Coverage,
    Data,
    DataOptions,
    Force,
    FormulaGuard,
    Jobs,
    ManyData,
    Model,
    Quiet,
    Rejects,
    names_in,
)
from fdgnn.cli.output import SHOWN, check_outputs, listing, rejects_beside
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.prediction.predictor import RowCounts
    from fdgnn.prediction.shards import PredictedShard, ShardTask

Summary = dict[str, object]
# Of all shards.
COUNTED = ("rows", "rejected", "unknown_labels", "out_of_domain", "unanswered", "changed")


@command("fdgnn predict model.fdgnn new.csv -o predictions.csv")
def predict(
    model: Model,
    data: ManyData,
    how: DataOptions,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help=".csv, .jsonl, .parquet or .xlsx; a directory for a result of each input file; "
            "'-' prints CSV, with --json an object per row.",
        ),
    ] = "-",
    chunk_size: Annotated[
        int,
        typer.Option(
            min=1, help="Rows that are read, predicted and written at once; 1 for a slow pipe."
        ),
    ] = 2000,
    coverage: Coverage = None,
    by_class: Annotated[
        bool | None,
        typer.Option(help="Let coverage hold within each class; the default with class imbalance."),
    ] = None,
    neighbors: Annotated[
        int,
        typer.Option(min=0, help="Number of most similar training graphs to write for each row."),
    ] = 0,
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Columns of the input to keep in the output. Repeat it, or use commas."),
    ] = None,
    precision: Annotated[
        int, typer.Option(min=1, max=17, help="Significant digits of numbers.")
    ] = 5,
    rejects: Rejects = None,
    formula_guard: FormulaGuard = True,
    shard_format: Annotated[
        Literal["csv", "jsonl", "parquet"] | None,
        typer.Option(help="Of results in a directory; by default that of each input file."),
    ] = None,
    cluster: Cluster = None,
    jobs: Jobs = 1,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new graphs: one row of output for each row of the input, in the same order.

    The file is read as the model's training data was. With two classes, the score is positive for
    the second one; with more, it is that of the predicted class. The column 'novelty' has, from 0
    to 1, how much of a graph no training graph has, and 'out_of_domain' a reason if it is more than
    in 99 % of them. A graph of which the model knows nothing has no prediction. The column
    'warning' names a vertex label that no training graph has; the column 'error' says why a row
    cannot be predicted. Of several targets each has its own columns, which end with its name.

    If the output is a directory, each input file becomes one file there, and a command that was
    stopped resumes when it is repeated: finished files are kept, unless --force is given.
    """
    from fdgnn import places
    from fdgnn.context import Context
    from fdgnn.datasets import iter_graphs
    from fdgnn.prediction.output import table_writer
    from fdgnn.prediction.predictor import Predictor, RowCounts, load_predictor
    from fdgnn.prediction.rows import count_rows, predict_rows

    context = Context(n_jobs=jobs, quiet=quiet)
    to_directory = _is_directory(output)
    several = len(data) > 1 or any(map(places.is_pattern, data))
    if to_directory and rejects is not None:
        raise ValueError(
            "--rejects is for one output file; a directory has its own folder for them"
        )
    if not to_directory and (several or cluster is not None or shard_format is not None):
        what = "several input files" if several else "--cluster and --shard-format"
        raise ValueError(f"{what} need a directory as output; give -o DIRECTORY/")
    kept = tuple(names_in(keep))
    classes = "auto" if by_class is None else by_class
    loaded = load_predictor(model)
    predictor = Predictor(loaded, coverage, classes, neighbors, kept, precision)
    if to_directory:
        from fdgnn.prediction.shards import ShardTask, plan_shards

        if not places.is_url(output):
            resumes_from(Path(output))
        options = {**msgspec.to_builtins(how), "chunk_size": chunk_size, "columns": kept}
        task = ShardTask.of(predictor, model.read_bytes(), options, formula_guard)
        shards = plan_shards(data, output, None if shard_format is None else f".{shard_format}")
        summary = _predict_shards(task, shards, output, context, cluster, force)
    else:
        with places.fetched(data[0]) as path, ExitStack() as stack:
            invalid = rejects_beside(output, rejects)
            check_outputs(force, output, rejects, inputs=[path, model])
            check_outputs(True, output, invalid, inputs=[path, model])
            rejected = stack.enter_context(listing(invalid))
            write = stack.enter_context(table_writer(output, formula_guard, as_json=as_json))
            rows = predict_rows(
                predictor,
                iter_graphs(str(path), how, like=loaded, chunk_size=chunk_size, columns=kept),
                context.n_jobs,
            )
            if output != "-":
                rows = context.track(rows, count_rows(str(path)), "rows", size=len)
            counts = RowCounts()
            for some in rows:
                write(some.columns)
                counts = counts.with_rows(some)
                rejected.extend(some.rejects)
        listed = rejected.show(counts.rows, context)
        _report_rows(counts, context)
        summary = _summary(counts) | listed
    _print_summary(summary, output, as_json)


def _is_directory(output: str) -> bool:
    """Whether each input file becomes a file of its own."""
    from fdgnn import places

    if output == "-":
        return False
    if not places.is_url(output) and Path(output).exists():
        return Path(output).is_dir()
    return output.endswith("/") or not Path(output).suffix


def _summary(counts: RowCounts) -> Summary:
    """Return the entries of a summary for one file or for all shards."""
    return {
        "rows": counts.rows,
        "predicted": counts.rows - counts.rejected,
        "unknown_labels": counts.unknown_labels,
        "out_of_domain": counts.out_of_domain,
        "unanswered": counts.unanswered,
        "changed": counts.changed,
    }


def _report_rows(counts: RowCounts, context: Context) -> None:
    """Report how many rows of a file were predicted, and what is odd about some of them."""
    if counts.rejected == counts.rows:
        first = counts.first_rejects[0]
        raise ValueError(f"none of the {counts.rows} rows can be predicted; {first}")
    n_predicted = counts.rows - counts.rejected
    _report_unknown_labels(counts.unknown_labels, n_predicted, context)
    if counts.out_of_domain:
        verb = agreeing(counts.out_of_domain, "is", "are")
        text = f"{verb} out of domain; the column 'out_of_domain' says why"
        say(f"{counts.out_of_domain} of these {n_predicted} rows {text}", context.quiet)
    if counts.unanswered:
        verb = agreeing(counts.unanswered, "has", "have")
        text = f"{verb} nothing in common with the training graphs, and no prediction"
        say(f"{counts.unanswered} of these {n_predicted} rows {text}", context.quiet)
    if counts.changed:
        verb = agreeing(counts.changed, "was", "were")
        text = f"molecules {verb} changed; the column 'standardized' has what was read"
        say(f"{counts.changed} of {counts.rows} {text}", context.quiet)
    say(f"{n_predicted} of {counts.rows} rows predicted", context.quiet)


def _report_unknown_labels(n_unknown: int, n_rows: int, context: Context) -> None:
    """Report in one line, for all tables together, how many rows have unknown labels."""
    if n_unknown:
        from fdgnn.encoders.base import WHAT_IT_MEANS

        verb = agreeing(n_unknown, "has", "have")
        say(f"{n_unknown} of these {n_rows} rows {verb} {WHAT_IT_MEANS}", context.quiet)


def _predict_shards(
    task: ShardTask,
    shards: Sequence[PredictedShard],
    output: str,
    context: Context,
    cluster: str | None,
    force: bool,
) -> Summary:
    """Predict each input file into a file of a directory; return the summary of all."""
    from fdgnn.prediction.shards import predict_shards

    found = predict_shards(task, shards, context, cluster=cluster, restart=force)
    counts = [record.counts for record in found.records.values()]
    summary = {name: sum(getattr(each, name) for each in counts) for name in COUNTED}
    lines = [
        f"{shard.source}, {reject}"
        for shard in shards
        if shard.target in found.records
        for reject in found.records[shard.target].counts.first_rejects
    ]
    for line in lines[:SHOWN]:
        say(line, context.quiet)
    if summary["rejected"]:
        where = f"listed in {output.rstrip('/')}/rejects"
        say(f"{summary['rejected']} of {summary['rows']} rows rejected, {where}")
    for source, reason in list(found.failures.items())[:SHOWN]:
        reason = name_options(reason)
        say(reason if source in reason else f"{source}: {reason}")
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
    return {"shards": len(shards), **summary}


def _print_summary(summary: Summary, output: str, as_json: bool) -> None:
    """Print a summary as JSON, unless rows are printed."""
    if as_json and output != "-":
        typer.echo(json.dumps(summary | {"output": output}))


@command("fdgnn explain model.fdgnn new.csv -o why.jsonl --draw pictures")
def explain(
    model: Model,
    data: Data,
    how: DataOptions,
    output: Annotated[
        str, typer.Option("--output", "-o", help=".jsonl, or .csv with a row per vertex.")
    ] = "-",
    row: Annotated[
        list[int] | None, typer.Option("--row", help="Only these rows, counted from 0.")
    ] = None,
    of: Annotated[str | None, typer.Option(help="The class whose score is explained.")] = None,
    target: Annotated[
        str | None, typer.Option(help="Which target is explained, if the model has several.")
    ] = None,
    edges: Annotated[
        bool, typer.Option(help="Also show how the score changes without each edge.")
    ] = False,
    groups: Annotated[
        bool | None,
        typer.Option(
            help="Also explain by groups: rings and functional groups of molecules, which is the "
            "default; of other graphs, connected parts."
        ),
    ] = None,
    smarts: Annotated[
        list[str] | None,
        typer.Option(help="A group of your own: a SMARTS and, after a space, a name; repeat it."),
    ] = None,
    vertex_sets: Annotated[
        Path | None,
        typer.Option(help="Groups of your own: JSON lines with 'row', 'name' and 'vertices'."),
    ] = None,
    counterfactuals: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of counterfactuals: the smallest changes that change the predicted class, "
            "for molecules only chemically valid ones.",
        ),
    ] = 0,
    draw: Annotated[
        Path | None,
        typer.Option(help="Folder for pictures of each graph, SVG and PNG, named by its id."),
    ] = None,
    rejects: Rejects = None,
    formula_guard: FormulaGuard = True,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write the attribution of each vertex to the score of a class, or to a predicted number.

    By default it is the predicted class. Attributions add up to the score minus that of an empty
    graph: compare vertices with each other, not with zero. With groups, the column 'effect' is
    the change of the score when a vertex or a group is left out; effects do not add up.
    """
    from fdgnn.context import Context
    from fdgnn.datasets import iter_graphs
    from fdgnn.prediction.explanation import (
        GroupChoice,
        draw_all,
        explain_table,
        explanation_writer,
        read_vertex_sets,
    )
    from fdgnn.prediction.predictor import load_predictor

    given = None if vertex_sets is None else read_vertex_sets(vertex_sets)
    choice = GroupChoice(groups, tuple(smarts or ()), given)
    choice.check()
    if edges and Path(output).suffix != ".jsonl" and not (as_json and output == "-"):
        raise ValueError(
            "effects of edges can only be written as JSON lines; give -o NAME.jsonl, or --json"
        )
    context = Context(quiet=quiet)
    invalid = rejects_beside(output, rejects)
    check_outputs(force, output, rejects, inputs=[data, model])
    check_outputs(True, output, invalid, inputs=[data, model])
    if draw is not None and draw.is_dir() and any(draw.iterdir()) and not force:
        raise ValueError(f"{draw}: the folder is not empty; give another one, or --force")
    fitted = _of_target(load_predictor(model), target)
    wanted = None if not row else set(row)
    n_explained = n_unknown = n_rows = 0
    described, changes = fitted._descriptors is not None, bool(counterfactuals)
    drawn: dict[str, int] = {}
    with (
        listing(invalid) as rejected,
        explanation_writer(
            output, described, formula_guard, changes=changes, as_json=as_json
        ) as write,
    ):
        for table in iter_graphs(data, how, like=fitted):
            explained, refused = explain_table(
                fitted, table, wanted, target=of, edges=edges, groups=choice,
                n_counterfactuals=counterfactuals,
            )  # fmt: skip
            write(explained)
            n_explained += len(explained)
            n_unknown += sum(one.summary["warning"] is not None for one in explained)
            n_rows += table.n_rows
            rejected.extend(refused)
            if draw is not None:
                draw_all(explained, draw, drawn)
        if n_explained == 0:  # before any file is complete
            _check_rows(wanted or set(), n_rows)
            why = f"; {rejected.first[0]}" if rejected.n else ""
            raise ValueError(f"none of the requested rows can be explained{why}")
    listed = rejected.show(n_rows, context)
    _check_rows(wanted or set(), n_rows)
    _report_unknown_labels(n_unknown, n_explained, context)
    pictures = "" if draw is None else f", drawn in {draw}"
    say(f"{n_explained} of {n_rows} rows explained{pictures}", context.quiet)
    summary = {"rows": n_rows, "explained": n_explained, "unknown_labels": n_unknown, **listed}
    _print_summary(summary, output, as_json)


def _check_rows(wanted: set[int], n_rows: int) -> None:
    """Refuse rows that are not there; the others have been explained by then."""
    absent = sorted(row for row in wanted if not 0 <= row < n_rows)
    if absent:
        rows = ", ".join(map(str, absent[:10]))
        counted = f"rows are counted from 0 to {n_rows - 1}" if n_rows else "it has no rows"
        raise ValueError(f"--row {rows}: there is no such row; {counted}")


def _of_target(model: Any, target: str | None) -> Any:
    """Return the model of the target that is asked for."""
    if len(model.targets_) > 1 and target is None:
        names = ", ".join(each.name for each in model.targets_)
        raise ValueError(f"the model has several targets, {names}; name one by --target")
    return model if target is None else model.for_target(target)

"""``fdgnn predict`` and ``explain``: what a model says of new graphs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from fdgnn.cli.app import app, say
from fdgnn.cli.options import (
    AsJson,
    Data,
    DataOptions,
    FormulaGuard,
    Jobs,
    ManyData,
    Model,
    Quiet,
    Rejects,
    expand,
)
from fdgnn.cli.predicted import print_summary, tell_unseen
from fdgnn.cli.rejects import RejectsFile, check_outputs


class ShardKind(StrEnum):
    """How shards of results are written."""

    csv = "csv"
    jsonl = "jsonl"
    parquet = "parquet"


@app.command(epilog="Example: fdgnn predict model.fdgnn new.csv -o predictions.csv")
@expand
def predict(
    model: Model,
    data: ManyData,
    how: DataOptions,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help=".csv, .jsonl or .parquet; a directory for a result of each input file; '-' "
            "prints CSV, with --json an object per row.",
        ),
    ] = "-",
    chunk: Annotated[
        int,
        typer.Option(
            min=1, help="Rows that are read, predicted and written at once; 1 for a slow pipe."
        ),
    ] = 2000,
    coverage: Annotated[
        float | None,
        typer.Option(
            help="Also give the set of classes, or the interval, that holds the truth in this "
            "share of the rows, for instance 0.9."
        ),
    ] = None,
    by_class: Annotated[
        bool, typer.Option("--by-class", help="Let sets hold the truth so often in each class.")
    ] = False,
    rejects: Rejects = None,
    formula_guard: FormulaGuard = True,
    shard_format: Annotated[
        ShardKind | None,
        typer.Option(help="Of results in a directory; by default that of each input file."),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="Address of a Dask scheduler, whose workers read and write the shards."),
    ] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Predict what is finished in a directory again.")
    ] = False,
    jobs: Jobs = 1,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict new graphs: one row of output for each row of the input, in the same order.

    The file is read as the model's training data was. With two classes, the score is positive for
    the second one; with more, it is that of the predicted class. The column 'novelty' says, from 0
    to 1, how unlike the training graphs a graph is, and 'unlike' why, if it is more so than 99 % of
    them. The column 'warning' names a vertex label that no training graph has; the column 'error'
    says why a row cannot be predicted. Of several targets each has its own columns, which end with
    its name.

    If the output is a directory, each input file becomes one file there. A command that was
    stopped goes on where it was when it is repeated.
    """
    from fdgnn.cli.predicted import PredictionWanted, predict_directory, predict_file
    from fdgnn.context import Context
    from fdgnn.prediction.predictor import Coverage, Predictor, load_predictor

    context = Context(n_jobs=jobs, quiet=quiet)
    asked = PredictionWanted(
        model, tuple(data), output, how, chunk, formula_guard, as_json, rejects
    )
    asked.check(directory_options=cluster is not None or restart or shard_format is not None)
    fitted, wanted = load_predictor(model), Coverage(coverage, by_class)
    wanted.check(fitted)
    predictor = Predictor(fitted, wanted, how.id_column)
    if asked.to_directory:
        kind = None if shard_format is None else f".{shard_format.value}"
        predict_directory(asked, predictor, context, kind, cluster, restart)
    else:
        predict_file(asked, predictor, context)


@app.command(epilog="Example: fdgnn explain model.fdgnn new.csv -o why.jsonl --draw pictures")
@expand
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
    draw: Annotated[Path | None, typer.Option(help="Folder for a picture of each graph.")] = None,
    rejects: Rejects = None,
    formula_guard: FormulaGuard = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Show how much each vertex contributes to the score of a class, or to a predicted number.

    By default it is the predicted class. Contributions add up to the score minus that of an empty
    graph. That graph may be unlike yours: compare vertices with each other, not with zero. With
    groups, the column 'effect' says what the score loses without a vertex or a group; effects do
    not add up.
    """
    from fdgnn.context import Context
    from fdgnn.prediction.explanation import draw_all, explain_table
    from fdgnn.prediction.groups import GroupChoice, read_vertex_sets
    from fdgnn.prediction.output import explanation_writer
    from fdgnn.prediction.predictor import load_predictor

    given = None if vertex_sets is None else read_vertex_sets(vertex_sets)
    choice = GroupChoice(groups, tuple(smarts or ()), given)
    choice.check()
    if edges and Path(output).suffix != ".jsonl" and not (as_json and output == "-"):
        raise ValueError(
            "effects of edges can only be written as JSON lines; give -o NAME.jsonl, or --json"
        )
    context = Context(quiet=quiet)
    bad_rows = RejectsFile.beside(output, rejects)
    check_outputs(data, output, bad_rows)
    fitted = _of_target(load_predictor(model), target)
    wanted = None if not row else set(row)
    n_explained = n_unseen = n_rows = 0
    described = fitted._descriptors is not None
    with (
        bad_rows.listing() as rejected,
        explanation_writer(output, described, formula_guard, as_json=as_json) as write,
    ):
        for table in how.iterate(data, like=fitted):
            explained, refused = explain_table(
                fitted, table, wanted, target=of, edges=edges, groups=choice
            )
            write(explained)
            n_explained += len(explained)
            n_unseen += sum(one.warning is not None for one in explained)
            n_rows += table.n_rows
            rejected.extend(refused)
            if draw is not None:
                draw_all(explained, draw)
    listed = rejected.show(n_rows, context)
    _check_rows(wanted or set(), n_rows)
    if n_explained == 0:
        why = f"; {rejected.first[0]}" if rejected.n else ""
        raise ValueError(f"none of the rows asked for can be explained{why}")
    tell_unseen(n_unseen, n_explained, context)
    pictures = "" if draw is None else f", drawn in {draw}"
    say(f"{n_explained} of {n_rows} rows explained{pictures}", context.quiet)
    summary = {"rows": n_rows, "explained": n_explained, "unseen_labels": n_unseen, **listed}
    print_summary(summary, output, as_json)


def _check_rows(wanted: set[int], n_rows: int) -> None:
    """Refuse rows that are not there; the others have been explained by then."""
    absent = sorted(row for row in wanted if not 0 <= row < n_rows)
    if absent:
        rows = ", ".join(map(str, absent[:10]))
        counted = f"rows are counted from 0 to {n_rows - 1}" if n_rows else "it has no rows"
        raise ValueError(f"--row {rows}: there is no such row; {counted}")


def _of_target(model: Any, target: str | None) -> Any:
    """Give the model of the target that is asked for; of a single one there is no choice."""
    if len(model.targets_) > 1 and target is None:
        names = ", ".join(each.name for each in model.targets_)
        raise ValueError(f"the model has several targets, {names}; name one by --target")
    return model if target is None else model.for_target(target)

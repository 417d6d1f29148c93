"""``fdgnn predict`` and ``explain``: predictions for new graphs, and the reasons for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from fdgnn.cli import options as opt
from fdgnn.cli.app import command, name_options, names_in, resumes_from, say
from fdgnn.cli.output import SHOWN, check_outputs, listing, rejects_beside
from fdgnn.texts import agreeing, counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.prediction.predictor import PredictedShard, RowCounts, ShardTask

Summary = dict[str, object]
Output = Annotated[str, typer.Option("--output", "-o")]


@command("fdgnn predict model.fdgnn new.csv -o predictions.csv")
def predict(
    model: opt.Model,
    data: opt.ManyData,
    how: opt.DataOptions,
    output: Output = "-",
    chunk_size: Annotated[int, typer.Option(min=1)] = 2000,
    coverage: opt.Coverage = None,
    by_class: bool | None = None,
    neighbors: Annotated[int, typer.Option(min=0)] = 0,
    columns: Annotated[list[str] | None, typer.Option("--keep")] = None,
    precision: opt.Precision = 5,
    rejects: opt.Rejects = None,
    formula_guard: opt.FormulaGuard = True,
    shard_format: Literal["csv", "jsonl", "parquet"] | None = None,
    cluster: opt.Cluster = None,
    n_jobs: opt.Jobs = 1,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Predict new graphs: one row of output for each row of the input, in the same order.

    The file is read in the same way as the training data of the model. With two classes, the score
    is positive for the second class; with more classes, it is the score of the predicted class. The
    column 'domain_distance' is the distance from the applicability domain, from 0 to 1: the share
    of a graph's substructures that no training graph has; 'out_of_domain' has a reason if this
    share is larger than for 99 % of the training graphs. A graph that has nothing in common with
    the training graphs has no prediction and no neighbors. The column 'warning' names vertex labels
    that no training graph has; the column 'error' has the reason if a row cannot be predicted. With
    several targets, each target has its own columns, whose names end with the name of the target.

    If the output is a directory, it has one file for each input file, and an interrupted command
    resumes when it is repeated: finished files are kept, unless --force is given.

    If no row can be predicted, only the list of rejected rows is written. In a directory, each
    input file has an output, with the reasons in 'error'.

    Parameters
    ----------
    output : path
        .csv, .jsonl, .parquet or .xlsx; a directory for a file of results for each input file; '-'
        prints CSV, with --json an object per row.
    chunk_size : int
        Rows to read, predict and write at once; use 1 for a slow pipe.
    by_class : bool, default=with class imbalance
        Guarantee coverage within each class.
    neighbors : int
        Number of most similar training graphs to write for each row.
    columns : list of str
        Columns of the input to keep in the output. Repeat it, or use commas.
    shard_format : str, default=that of each input file
        Format of the results in a directory.
    """
    from fdgnn import files
    from fdgnn.context import Context
    from fdgnn.datasets import iter_graphs
    from fdgnn.prediction.output import table_writer
    from fdgnn.prediction.predictor import Predictor, load_predictor, predict_rows, write_rows
    from fdgnn.scale.shards import rows_about

    context = Context(n_jobs=n_jobs, quiet=quiet)
    to_directory = _is_directory(output)
    several = len(data) > 1 or any(map(files.is_pattern, data))
    if to_directory and rejects is not None:
        raise ValueError(
            "--rejects is for one output file; a directory has its own folder for them"
        )
    if not to_directory and (several or cluster is not None or shard_format is not None):
        what = "several input files" if several else "--cluster and --shard-format"
        raise ValueError(f"{what} need a directory as output; give -o DIRECTORY/")
    kept = tuple(names_in(columns))
    loaded = load_predictor(model)
    by_class_or_auto = "auto" if by_class is None else by_class
    predictor = Predictor(loaded, coverage, by_class_or_auto, neighbors, kept, precision)
    if neighbors and neighbors > (there := len(loaded._known_training_graphs())):
        say(f"--neighbors {neighbors}: the model has {there} training graphs; all are written")
    if to_directory:
        from fdgnn.prediction.predictor import ShardTask, plan_shards

        if not files.is_url(output):
            resumes_from(Path(output))
        options = {**msgspec.to_builtins(how), "chunk_size": chunk_size, "columns": kept}
        model_hash = sha256(model.read_bytes()).hexdigest()
        task = ShardTask(predictor, output, model_hash, options, formula_guard)
        shards = plan_shards(data, output, None if shard_format is None else f".{shard_format}")
        summary = _predict_shards(task, shards, output, context, cluster, force)
    else:
        with files.fetched(data[0]) as path:
            invalid = rejects_beside(output, rejects)
            check_outputs(force, output, rejects, beside=[invalid], inputs=[path, model])
            tables = iter_graphs(str(path), how, like=loaded, chunk_size=chunk_size, columns=kept)
            rows = predict_rows(predictor, tables, context.n_jobs)
            if output != "-":
                rows = context.track(rows, rows_about([str(path)]), "rows", size=len)
            with table_writer(output, formula_guard, as_json=as_json) as write:
                with listing(invalid) as rejected:
                    counts = write_rows(rows, write, rejected.extend)
                rejected.check(counts.rows)  # the list is complete, and the output is not written
        listed = rejected.show(counts.rows, context)
        _report_domain(counts, counts.rows - counts.rejected, context)
        summary = _summary(counts) | listed
        say(f"{summary['predicted']} of {counts.rows} rows predicted", context.quiet)
    if as_json and output != "-":
        typer.echo(json.dumps(summary | {"output": output}))


def _is_directory(output: str) -> bool:
    """Return whether each input file has its own output file."""
    from fdgnn import files

    if output == "-":
        return False
    if not files.is_url(output) and Path(output).exists():
        return Path(output).is_dir()
    return output.endswith("/") or not Path(output).suffix


def _summary(counts: RowCounts) -> Summary:
    """Return the entries of a summary for one file or for all shards."""
    found = msgspec.to_builtins(counts)
    del found["first_rejects"]
    return {**found, "predicted": counts.rows - counts.rejected - counts.unanswered}


def _report_domain(counts: RowCounts, n_valid: int, context: Context) -> None:
    """Report in one line each, for all tables together, what is odd about some valid rows."""
    from fdgnn.encoders.base import WHAT_IT_MEANS

    for n, one, many, text in (
        (counts.unknown_labels, "has", "have", WHAT_IT_MEANS),
        (counts.out_of_domain, "is", "are",
         "out of domain; the column 'out_of_domain' has the reasons"),
        (counts.unanswered, "has", "have",
         "nothing in common with the training graphs, and no prediction"),
        (counts.changed, "was", "were", "changed; the column 'standardized' has what was read"),
    ):  # fmt: skip
        if n:
            say(f"{n} of these {n_valid} rows {agreeing(n, one, many)} {text}", context.quiet)


def _predict_shards(
    task: ShardTask,
    shards: Sequence[PredictedShard],
    output: str,
    context: Context,
    cluster: str | None,
    force: bool,
) -> Summary:
    """Predict each input file into a file of a directory; return the summary of all."""
    from fdgnn.prediction.predictor import RowCounts, predict_shards

    found, n_skipped, failures = predict_shards(
        task, shards, context, cluster=cluster, restart=force
    )
    counts = sum(found.values(), RowCounts())
    summary = _summary(counts)
    lines = [
        f"{shard.source}, {reject}"
        for shard in shards
        if shard.target in found
        for reject in found[shard.target].first_rejects
    ]
    for line in lines[:SHOWN]:
        say(line, context.quiet)
    if counts.rejected:
        where = f"listed in {output.rstrip('/')}/rejects"
        say(f"{counts.rejected} of {counts.rows} rows rejected, {where}")
    for source, reason in list(failures.items())[:SHOWN]:
        reason = name_options(reason)
        say(reason if source in reason else f"{source}: {reason}")
    if n_skipped:
        verb = agreeing(n_skipped, "was", "were")
        say(f"{n_skipped} of {len(shards)} shards {verb} finished before", context.quiet)
    if failures:
        n_failed, first = len(failures), next(iter(failures))
        further = "the others are finished, and a repeated command tries only what is missing"
        raise ValueError(
            f"{n_failed} of {counted(len(shards), 'shard')} cannot be predicted, first {first}; "
            + (further if n_failed < len(shards) else "a repeated command tries again")
        )
    _report_domain(counts, counts.rows - counts.rejected, context)
    of_shards = counted(len(shards), "shard")
    say(f"{summary['predicted']} of {counts.rows} rows predicted, {of_shards}", context.quiet)
    return {"shards": len(shards), **summary}


@command("fdgnn explain model.fdgnn new.csv -o why.jsonl --draw pictures")
def explain(
    model: opt.Model,
    data: opt.Data,
    how: opt.DataOptions,
    output: Output = "-",
    row: list[int] | None = None,
    of: str | None = None,
    target: str | None = None,
    edges: Annotated[bool, typer.Option("--edges")] = False,
    groups: bool | None = None,
    smarts: list[str] | None = None,
    vertex_sets: Path | None = None,
    counterfactuals: Annotated[int, typer.Option(min=0)] = 0,
    draw: Path | None = None,
    precision: opt.Precision = 5,
    rejects: opt.Rejects = None,
    formula_guard: opt.FormulaGuard = True,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    as_json: opt.AsJson = False,
) -> None:
    """Explain predictions: the attribution of each vertex to the score.

    The score is the output for the predicted class or, with --of, for another class; in regression
    it is the predicted number. Attributions of vertices and descriptors add up to the score minus
    the score of an empty graph, so compare vertices with each other, not with zero. With groups,
    the column 'effect' is the change of the score when a vertex or a group is left out; effects do
    not add up.

    Parameters
    ----------
    output : path
        .jsonl, or .csv with a row per vertex, group and descriptor; '-' prints CSV, with --json
        JSON lines.
    row : list of int
        Explain only these rows, counted from 0; repeat it.
    of : str, default=the predicted class
        The class whose score is explained.
    target : str
        The target to explain, if the model has several.
    edges : bool
        Also show how the score changes without each edge.
    groups : bool
        Also explain by groups: rings and functional groups of molecules (the default for these), or
        connected parts of other graphs.
    smarts : list of str
        Your own group: a SMARTS pattern, a space and a name; repeat it for several groups.
    vertex_sets : path
        Your own groups: JSON lines with 'row', 'name' and 'vertices'.
    counterfactuals : int
        Number of counterfactuals: the smallest changes that change the predicted class, for
        molecules only chemically valid ones. If none changes it, those that come nearest are
        listed with 'flips' false; in regression, those with the largest effect.
    draw : path
        Folder for pictures of each graph, SVG and PNG, named by its id.
    """
    from fdgnn.context import Context
    from fdgnn.datasets import iter_graphs
    from fdgnn.prediction import explanation
    from fdgnn.prediction.predictor import RowCounts, load_predictor

    given = None if vertex_sets is None else explanation.read_vertex_sets(vertex_sets)
    choice = explanation.GroupChoice(groups, tuple(smarts or ()), given)
    if edges and Path(output).suffix != ".jsonl" and not (as_json and output == "-"):
        raise ValueError(
            "effects of edges can only be written as JSON lines; give -o NAME.jsonl, or --json"
        )
    context = Context(quiet=quiet)
    invalid = rejects_beside(output, rejects)
    check_outputs(force, output, rejects, beside=[invalid], inputs=[data, model])
    if draw is not None and draw.is_dir() and any(draw.iterdir()) and not force:
        raise ValueError(f"{draw}: the folder is not empty; give another one, or --force")
    fitted = _of_target(load_predictor(model), target)
    explained_class = explanation.class_called(of, fitted)
    wanted = None if not row else set(row)
    counts, n_explained, n_unflipped = RowCounts(), 0, 0
    described, changes = explanation.has_descriptors(fitted), bool(counterfactuals)
    drawn: dict[str, int] = {}
    with explanation.explanation_writer(
        output, described, formula_guard, changes=changes, as_json=as_json
    ) as write:
        with listing(invalid) as rejected:
            for table in iter_graphs(data, how, like=fitted):
                explained, rejected_rows = explanation.explain_table(
                    fitted, table, wanted, target=explained_class, edges=edges, groups=choice,
                    n_counterfactuals=counterfactuals, precision=precision,
                )  # fmt: skip
                write(explained)
                n_explained += len(explained)
                if changes and fitted.targets_[0].classes is not None:
                    tried = [one.counterfactuals for one in explained if one.counterfactuals]
                    n_unflipped += sum(not any(each.flips for each in some) for some in tried)
                found = [one.summary for one in explained]
                counts += RowCounts(
                    rows=table.n_rows,
                    unknown_labels=sum(each["warning"] is not None for each in found),
                    out_of_domain=sum(each["out_of_domain"] is not None for each in found),
                    unanswered=sum(each["score"] is None for each in found),
                )
                rejected.extend(rejected_rows)
                if draw is not None:
                    explanation.draw_all(explained, draw, drawn)
            if n_explained == 0:
                _check_rows(wanted or set(), counts.rows)
        if n_explained == 0:  # the list is complete, and the output is not written
            why = f"; {rejected.first[0]}" if rejected.n else ""
            raise ValueError(f"none of the requested rows can be explained{why}")
    listed = rejected.show(counts.rows, context)
    _check_rows(wanted or set(), counts.rows)
    _report_domain(counts, n_explained, context)
    if n_unflipped:
        say(f"{counted(n_unflipped, 'row')} without a change of the predicted class", context.quiet)
    pictures = "" if draw is None else f", drawn in {draw}"
    say(f"{n_explained} of {counts.rows} rows explained{pictures}", context.quiet)
    summary = {
        "rows": counts.rows, "explained": n_explained, "unknown_labels": counts.unknown_labels,
        "out_of_domain": counts.out_of_domain, "unanswered": counts.unanswered, **listed,
    }  # fmt: skip
    if as_json and output != "-":
        typer.echo(json.dumps(summary | {"output": output}))


def _check_rows(wanted: set[int], n_rows: int) -> None:
    """Reject rows that are not there; the others have been explained by then."""
    absent = sorted(row for row in wanted if not 0 <= row < n_rows)
    if absent:
        rows = ", ".join(map(str, absent[:10]))
        counted = f"rows are counted from 0 to {n_rows - 1}" if n_rows else "it has no rows"
        raise ValueError(f"--row {rows}: there is no such row; {counted}")


def _of_target(model: Any, target: str | None) -> Any:
    """Return the model of the requested target."""
    if len(model.targets_) > 1 and target is None:
        names = ", ".join(each.name for each in model.targets_)
        raise ValueError(f"`target`: the model has several targets, {names}; name one")
    if len(model.targets_) == 1 and target is not None:
        raise ValueError("`target`: the model has one target, so there is none to choose")
    return model if target is None else model.for_target(target)

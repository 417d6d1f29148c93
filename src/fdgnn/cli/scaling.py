"""``fdgnn fit`` on more graphs than fit in memory, here or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import say, show
from fdgnn.cli.lists import RejectsFile
from fdgnn.texts import counted

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.evaluation.record import Evaluation
    from fdgnn.scale.training import ReadShards
    from fdgnn.training import TrainingOptions


@dataclass(frozen=True)
class ScaleOptions:
    """Options of `fit` for data that is not read into memory at once."""

    memory: Annotated[
        str | None,
        typer.Option(
            metavar="AMOUNT",
            help="Train out of core, and use no more memory than this in all processes together, "
            "such as 2GB. So is a pattern of files ('shards/*.parquet') or a URL trained, by "
            "default in half of the machine's memory.",
        ),
    ] = None
    work_dir: Annotated[
        Path | None,
        typer.Option(
            help="Out of core: where encoded graphs are kept, for a stopped or another fit to "
            "begin with; by default OUTPUT.work. All workers of a cluster must see it."
        ),
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(help="Train on the Dask cluster with this scheduler address, or 'local'."),
    ] = None

    def wanted(self, data: str) -> bool:
        """Tell whether training is to be out of core."""
        from fdgnn.scale.shards import is_many

        return self.memory is not None or self.cluster is not None or is_many(data)


@dataclass(frozen=True)
class ScaleJob:
    """What is to be trained out of core, as the command says it."""

    data: str
    output: Path
    target: str | list[str] | None
    reading: Mapping[str, Any]  # arguments of `iter_graphs`
    options: TrainingOptions

    @property
    def names(self) -> tuple[str, ...]:
        """Of the targets, which cannot be guessed from one of many files."""
        if self.target is None:
            raise ValueError("it is not known which column is the target; name it by `target`")
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


def check_in_core(given: Mapping[str, object]) -> None:
    """Raise ValueError for options that only training in memory has."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"--{name} is for training in memory; out of core there is no such choice"
            )


def fit_out_of_core(
    job: ScaleJob, options: ScaleOptions, bad_rows: RejectsFile, context: Context, as_json: bool
) -> None:
    """Train on shards, and save the model."""
    from fdgnn.model_files import save_model
    from fdgnn.scale.plan import check_trainable, plan_memory, workers_for
    from fdgnn.scale.shards import ShardRequest, find_shards
    from fdgnn.scale.training import read_shards, train_on_shards
    from fdgnn.training import new_model

    check_trainable(job.options)
    names, shards = job.names, find_shards(job.data)
    folder = options.work_dir or Path(f"{job.output}.work")
    plan = plan_memory(options.memory, context)
    with workers_for(options.cluster, plan, context) as workers:
        request = ShardRequest(job.reading, n_rows=plan.n_rows)
        read = read_shards(shards, request, folder, plan, workers, context)
        with bad_rows.listing() as rejected:
            for some in read.rejects():
                rejected.extend(some)
        listed = rejected.show(read.n_rows, context)
        targets = read.targets(names, job.options.task)
        say(f"{counted(len(targets), 'graph')} of {counted(len(shards), 'file')}", context.quiet)
        model = new_model(job.options, targets.classify)
        found = train_on_shards(model, read.graphs, targets)
    save_model(model, job.output)
    _print(model, found, read, job, listed, as_json)
    say(f"chunks are kept in {folder}; remove it when no other fit needs them", context.quiet)


def _print(
    model: Any,
    found: Evaluation,
    read: ReadShards,
    job: ScaleJob,
    listed: dict[str, object],
    as_json: bool,
) -> None:
    names = [each.name for each in model.estimators_]
    scores, n_held_out = {each.words: each.mean for each in found.metrics}, found.folds[0].n_test
    seconds = {"read": read.seconds, "train": found.times.total or 0.0}
    if as_json:
        facts = {
            "model": str(job.output),
            "task": found.task,
            "graphs": found.n_graphs,
            "held_out": n_held_out,
            "metric": found.metric,
            "score": found.score,
            "scores": scores,
            "seconds": seconds,
            "members": names,
            "alphas": [each.alpha for each in model.estimators_],
            "new_chunks": read.n_new,
        }
        typer.echo(json.dumps(facts | listed))
        return
    for what, value in scores.items():
        show(f"{what}, on {n_held_out} graphs held out  {value:.3f}")
    if len(set(names)) > 1:
        show(f"the average of: {'; '.join(names)}")
    show(f"{found.n_graphs} graphs, {sum(seconds.values()):.1f} s, written to {job.output}")

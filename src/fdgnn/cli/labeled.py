"""Graphs with one target each, for commands that evaluate: a TU dataset, or a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from fdgnn.cli.lists import RejectsFile
from fdgnn.cli.options import FirstDataOptions, asked_targets
from fdgnn.cli.pages import dataset_of
from fdgnn.files import expanduser

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.graphs import Array, GraphBatch
    from fdgnn.tasks import TaskName


@dataclass(frozen=True)
class Labeled:
    """Graphs and their classes or numbers; `table` is what they were read from, if it is one."""

    name: str
    graphs: GraphBatch
    y: Array
    table: GraphTable | None = None
    task: TaskName = "classification"

    @property
    def smiles(self) -> Sequence[str] | None:
        """What molecules were read from."""
        return None if self.table is None else self.table.smiles


def read_labeled(
    data: str,
    target: list[str] | None,
    how: FirstDataOptions,
    context: Context,
    *,
    command: str,
    columns: Sequence[str] = (),
    task: TaskName | None = None,
) -> Labeled:
    """Read a TU dataset, or a table with a column of targets; bad rows are told and left out.

    What the targets of a table are is guessed, unless `task` says it.
    """
    from fdgnn.tasks import table_targets

    if not is_table(data, how.format):
        return _tu_dataset(data, {"target": target, "task": task}, how)
    table = how.read(
        data, target=asked_targets(target, None), numeric=task == "regression",
        columns=list(columns),
    )  # fmt: skip
    RejectsFile(None).write(table.rejects, table.n_rows, context)
    graphs, targets = table_targets(table, task)
    if not targets.flat:
        n = len(targets.names)
        raise ValueError(f"{command} takes one target, but there are {n}; give one")
    inferred: TaskName = "classification" if targets.classify else "regression"
    return Labeled(dataset_of(data), graphs, targets.of_target(0), table, inferred)


def is_table(data: str, format: str | None) -> bool:
    """Tell a file of rows from a TU dataset; raise an error for a file that is not there."""
    from fdgnn.datasets.files import recognize

    path = expanduser(data)
    is_file = data == "-" or path.exists() or path.suffix != ""  # names of TU datasets have none
    return is_file and recognize(data, format).format != "tu"


def _tu_dataset(data: str, asked: Mapping[str, object], how: FirstDataOptions) -> Labeled:
    from fdgnn.datasets import load_tu

    given = [name for name, value in asked.items() if value]
    read = ("vertex", "edge_labels")
    given += [
        f.name for f in fields(how) if f.name not in read and getattr(how, f.name) != f.default
    ]
    if given:
        raise ValueError(f"`{given[0]}` is for tables, and {data} is a TU dataset; leave it out")
    graphs, y = load_tu(data, vertex=how.vertex.value, edge_labels=how.edge_labels.value)
    return Labeled(dataset_name(data), graphs, y)


def dataset_name(name_or_path: str) -> str:
    """Name a TU dataset that was given by name or path."""
    path = Path(name_or_path)
    return path.stem if path.suffix == ".zip" else path.name

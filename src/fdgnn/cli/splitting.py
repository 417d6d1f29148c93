"""``--split``: how the rows of a table are held out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fdgnn.cli.options import SplitName

if TYPE_CHECKING:
    from fdgnn.context import Context
    from fdgnn.datasets import GraphTable
    from fdgnn.selection.splits import Split


def check_split(split: SplitName, column: str | None) -> list[str]:
    """Give the columns that a split needs, or raise ValueError."""
    needs_column = split in (SplitName.group, SplitName.time)
    if needs_column and column is None:
        raise ValueError(f"--split {split.value} needs a column; name it by --split-column")
    if column is not None and not needs_column:
        raise ValueError(f"--split-column is for --split group and time, not {split.value}")
    return [] if column is None else [column]


def split_of(table: GraphTable, split: SplitName, column: str | None, context: Context) -> Split:
    """Make the split of a table that was read with the columns it needs."""
    from fdgnn.selection.splits import Split

    if split is SplitName.random:
        return Split()
    if split is SplitName.scaffold:
        if table.smiles is None:
            raise ValueError("--split scaffold is for molecules, and these graphs are none")
        from fdgnn.workflow.chemistry import murcko_scaffolds

        return Split("group", murcko_scaffolds(table.smiles, context.n_jobs), "scaffolds")
    import numpy as np

    assert column is not None
    values = np.array(table.columns[column], dtype=object)
    return Split("group" if split is SplitName.group else "time", values, column)

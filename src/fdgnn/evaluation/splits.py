"""Published splits: which graphs each outer fold tests, and which select and train its model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta

from fdgnn.exceptions import StudyError
from fdgnn.folds import TEST, TRAIN, UNUSED, Folds
from fdgnn.records import Record, read_record

_Rows = list[Annotated[int, Meta(ge=0)]]


class _Selection(Record, frozen=True):
    """Graphs that are trained on and graphs that select, of one inner split."""

    train: _Rows
    validation: _Rows


class _OuterFold(Record, frozen=True):
    """The test graphs of an outer fold, and its inner splits."""

    test: _Rows
    model_selection: list[_Selection]


def read_splits(path: str | os.PathLike[str], n_graphs: int) -> Folds:
    """Read the splits of a dataset, in the format of Errica et al., "A Fair Comparison" (2020).

    The file is a JSON list of outer folds, each with ``test`` and a list ``model_selection`` of
    inner splits with ``train`` and ``validation``: positions of graphs, from 0. Hyperparameters are
    selected by the validation graphs, with a model that is trained on ``train``. The selected model
    is trained on both, ``train`` and ``validation``, and tested on ``test``.

    Returns
    -------
    (n_outer, n_graphs) int
        As in `FitTask`: the inner split that a graph validates, `TRAIN` for graphs that are in the
        training set of all inner splits, `TEST`, or `UNUSED`.

    Raises
    ------
    StudyError
        The file is damaged or of another dataset.
    """
    outer = read_record(Path(path), list[_OuterFold])
    if len(outer) < 2:
        raise StudyError(f"{path}: expected at least two outer folds, found {len(outer)}")
    rows = []
    for number, fold in enumerate(outer):
        where = f"{path}: fold {number}"
        row = np.full(n_graphs, UNUSED)
        if not (fold.test and fold.model_selection):
            raise StudyError(f"{where} has no test graphs or no `model_selection`")
        used = _members(fold.model_selection[0].train + fold.model_selection[0].validation, where)
        largest = max(*used, *fold.test)
        if largest >= n_graphs:
            raise StudyError(
                f"{where} names graph {largest}, but there are {n_graphs} graphs; give the splits "
                "of this dataset"
            )
        row[list(used)] = TRAIN
        for inner, selection in enumerate(fold.model_selection):
            validation = _members(selection.validation, where)
            if not validation or _members(selection.train, where) != used - validation:
                raise StudyError(
                    f"{where}: inner split {inner} must train on all graphs of `model_selection` "
                    "that it does not validate, and validate some"
                )
            if (row[list(validation)] != TRAIN).any():
                raise StudyError(f"{where}: a graph is in two validation sets")
            row[list(validation)] = inner
        if used & _members(fold.test, where):
            raise StudyError(f"{where} tests graphs that it trains on")
        row[fold.test] = TEST
        rows.append(row)
    folds = np.array(rows)
    if ((folds == TEST).sum(axis=0) > 1).any():
        raise StudyError(f"{path}: a graph is tested in two folds")
    return folds


def _members(rows: _Rows, where: str) -> set[int]:
    found = set(rows)
    if len(found) < len(rows):
        raise StudyError(f"{where}: a graph is named twice")
    return found

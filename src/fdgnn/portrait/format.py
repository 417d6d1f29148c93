"""The portrait's fields, and portraits as files.

`PORTRAIT` says of every field what it is, and `read_portrait` holds a file against it, so that
whoever shows a portrait need not check again. Lists are bounded, whatever the dataset: a file
stays below about 1.5 MB. Names, labels and ids are text from the user's files, to be escaped.
"""

from __future__ import annotations

import json
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

from fdgnn.exceptions import StudyError
from fdgnn.files import write_aside

FORMAT = 1


class OneOf(NamedTuple):
    """A field that may be of two kinds."""

    first: Any
    second: Any


class Each(NamedTuple):
    """An object with any names, whose values are of one kind."""

    kind: Any


class Later(NamedTuple):
    """A field that early portraits of this format do not have; it is always written."""

    kind: Any


# int, float (any number), str, bool, None (null), object (anything); [kind] is a list,
# (kind, kind) a list of that length, {name: kind} an object with at least these names.
_HISTOGRAM = {"edges": [float], "counts": [int]}
_LAYER = {
    "layer": int,  # from 1
    "spectral_radius": float,  # rho(W_H)
    "norm": float,  # ||W_H||
    "effective": float,  # rho(W_H) k
    "absolute_radius": Later(float),  # rho(|W_H|), which times rho(|A|) is a graph's certificate
    "certified": int,  # graphs that have one fixed point for certain
    "uncertified": int,
    "unconverged": int,  # graphs that moved by tol or more in the last step
    "iterations": [(int, int)],  # steps of the paper's loop, and how many graphs took them
}
_NETWORK = {  # whose dynamics are shown, and on whose features the map is made
    "fold": OneOf(int, None),  # the first, from 1, of those that chose what most chose
    "n_layers": int,
    "effective_spectral_radius": float,
    "folds_alike": OneOf(int, None),  # folds that chose this configuration; alpha may differ
    "n_folds": OneOf(int, None),
}
_CURVE = {
    "layer": int,
    "graph": int,
    "certified": bool,
    "residuals": [float],  # ||X_t - X_(t-1)||_F of the paper's loop, the first 200 steps
}
_GRAPH = {
    "graph": int,  # its number, from 0
    "id": str,
    "x": float,  # its place on the map, from -1 to 1, both axes on one scale
    "y": float,
    "actual": OneOf(OneOf(str, float), None),  # class or number; null if not known
    "predicted": OneOf(str, float),
    "correct": OneOf(bool, None),  # null for regression, or if not known
    "score": float,  # output for the predicted class; regression: the prediction
    "probability": OneOf(float, None),  # calibrated, of the predicted class
    "n_vertices": int,
    "n_edges": int,
    "fold": OneOf(int, None),  # the outer fold, from 1, that held it out
}
_DRAWING = {
    "positions": [int],  # x, y, x, y, ... from 0 to 1000, y downwards
    "edges": [int],  # u, v, u, v, ... an undirected edge once
    "directed": bool,
    "orders": OneOf([float], None),  # of a molecule's bonds; 1.5 is aromatic
    "labels": OneOf([str], None),
    "contributions": [float],  # to the score of the predicted class, relative to their mean
    "molecule": bool,
    "smiles": OneOf(str, None),
}
_BIN = {"from": float, "to": float, "n": int, "probability": float, "accuracy": float}
PORTRAIT = {
    "format": int,
    "dataset": str,
    "task": str,  # "classification" or "regression"
    "held_out": bool,  # no model saw in training what it predicts here
    "how": str,  # a sentence: which models made the predictions
    "classes": [str],  # all different, in the model's order; none for regression
    "n_networks": int,  # of a model
    "data": {
        "n_graphs": int,
        "n_vertices": int,
        "n_arcs": int,
        "n_self_loops": int,
        "n_merged_arcs": int,
        "undirected": bool,
        "n_distinct": int,  # graphs that 1-WL can tell apart
        "n_labels": int,
        "n_features": int,
        "majority": OneOf(float, None),  # share of the commonest class
        "wl_ceiling": OneOf(float, None),
        "class_counts": [(str, int)],  # of all classes, in their order
        "vertices_range": Later((int, int)),  # of the smallest and of the largest graph
        "max_degree": Later(int),  # largest number of neighbors
        "targets": OneOf(_HISTOGRAM, None),  # of a regression
        "sizes": {"edges": [int], "counts": Each([int])},  # vertices a graph, by class or "all"
        "degrees": {"values": [int], "labels": [str], "counts": [int]},  # vertices by neighbors
        "labels": [(str, int)],  # of vertices, the commonest first
    },
    "dynamics": {
        "network": Later(_NETWORK),
        "degree": float,  # k as used
        "tol": float,
        "max_iter": int,
        "n_graphs": int,  # that were iterated: all, or a part of a large dataset
        "layers": [_LAYER],
        "curves": [_CURVE],
        "radii": [(int, float, float, int)],  # graph, rho(A), largest neighborhood, vertices
    },
    "graphs": [_GRAPH],  # all, or a part of a large dataset with all of the mistakes listed
    "map": {"explained": (float, float)},  # shares of variance of x and y
    "drawings": Each(_DRAWING),  # by the graph's number; of small graphs
    "mistakes": [int],  # graphs: the most confident mistakes, or largest errors, first
    "confusion": OneOf([[int]], None),  # rows actual, columns predicted, over all graphs
    "calibration": OneOf({"bins": [_BIN], "brier": float, "expected_error": float}, None),
    "regression": OneOf({"r2": OneOf(float, None), "mean_absolute_error": float}, None),
    "settings": Each(object),  # of the model; a list where the folds' models differ
    "command": OneOf(str, None),
    "versions": Each(str),
    "machine": {
        "python": str,
        "system": str,
        "cpu": str,
        "cores": int,
        "cpu_model": Later(OneOf(str, None)),
        "memory_gb": Later(OneOf(float, None)),
    },
}


def write_portrait(path: str | os.PathLike[str], portrait: dict[str, Any]) -> None:
    """Write a portrait as a JSON file, complete or not at all.

    Raises
    ------
    StudyError
        The file cannot be written.
    """
    text = json.dumps(portrait, allow_nan=False, separators=(",", ":"))
    try:
        with write_aside(Path(path)) as file:
            file.write(text.encode())
    except OSError as error:
        raise StudyError(f"{path}: the portrait could not be written ({error})") from error


def read_portrait(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a portrait that `write_portrait` has written, every field checked.

    Raises
    ------
    StudyError
        The file cannot be read, is no portrait, or is damaged; the message says where.
    """
    try:
        content = json.loads(Path(path).read_bytes(), parse_constant=_refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise StudyError(f"{path}: it cannot be read as a portrait ({error})") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise StudyError(f"{path}: it is no portrait of format {FORMAT}; make it again")
    fault = find_fault(content)
    if fault is not None:
        raise StudyError(f"{path}: the portrait is damaged at {fault}; make it again")
    found: dict[str, Any] = content
    return found


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


# ---------------------------------------------------------------------- checking


def find_fault(portrait: Any) -> str | None:
    """Where a portrait is not as it should be, as in ``graphs[3].score``; None if it is."""
    fault = _fault(portrait, PORTRAIT, "")
    if fault is not None:
        return fault.lstrip(".") or "the top"
    for name, drawing in portrait["drawings"].items():
        if not _fits_together(drawing):
            return f"drawings.{name}"
    n = len(portrait["classes"])
    rows = portrait["confusion"]
    square = rows is None or (len(rows) == n and all(len(row) == n for row in rows))
    return None if square else "confusion"


def _fault(value: Any, kind: Any, place: str) -> str | None:
    if isinstance(kind, Later):
        return None if value is ... else _fault(value, kind.kind, place)
    if isinstance(kind, OneOf):
        faults = [_fault(value, one, place) for one in kind]
        return None if None in faults else max(map(str, faults), key=len)  # the one further inside
    if isinstance(kind, Each | dict):
        if not isinstance(value, dict):
            return place
        kinds = dict.fromkeys(value, kind.kind) if isinstance(kind, Each) else kind
        # A missing field is of no kind, not even null.
        parts = [(value.get(name, ...), inner, f"{place}.{name}") for name, inner in kinds.items()]
    elif isinstance(kind, list | tuple):
        if not isinstance(value, list) or (isinstance(kind, tuple) and len(value) != len(kind)):
            return place
        kinds_of_items = kind if isinstance(kind, tuple) else kind * len(value)
        pairs = zip(value, kinds_of_items, strict=True)
        parts = [(item, inner, f"{place}[{i}]") for i, (item, inner) in enumerate(pairs)]
    else:
        return None if _is(value, kind) else place
    return next(filter(None, (_fault(*part) for part in parts)), None)


def _is(value: Any, kind: Any) -> bool:
    if kind is None:
        return value is None
    if kind is int or kind is float:
        number = isinstance(value, int if kind is int else int | float)
        return number and not isinstance(value, bool) and math.isfinite(value)
    return isinstance(value, kind) and value is not ...


def _fits_together(drawing: dict[str, Any]) -> bool:
    """Whether a drawing has as many places, labels and contributions as vertices, and so on."""
    n, m = len(drawing["contributions"]), len(drawing["edges"]) // 2
    return (
        len(drawing["positions"]) == 2 * n
        and len(drawing["edges"]) == 2 * m
        and all(0 <= v < n for v in drawing["edges"])
        and (drawing["labels"] is None or len(drawing["labels"]) == n)
        and (drawing["orders"] is None or len(drawing["orders"]) == m)
    )

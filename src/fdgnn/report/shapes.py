"""JSON from a file that anyone may have written, checked against the shape it should have.

A shape is a type (`float` takes whole numbers, too, and neither takes truth values), ``[shape]`` a
list of any length, ``(shape, ...)`` a list of just these, ``{name: shape}`` an object with at least
these names (``"name?"``: it may be missing), ``{str: shape}`` an object with any names, and
``Maybe(shape)`` allows null. Whatever passes can be shown without a further look.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdgnn.exceptions import StudyError

LARGEST_FILE = 64 * 2**20  # bytes of a JSON file; the ones we write have less than two million


@dataclass(frozen=True)
class Maybe:
    """A value of that shape, or null."""

    shape: Any


def read_json(path: Path, shape: Any) -> Any:
    """Read a JSON file; anything but the right shape is an error in one line."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise StudyError(f"{path}: it is too large to be one of ours")
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=lambda _: None)
        check(content, shape, "")
    except OSError as error:
        raise StudyError(f"{path}: it cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        text = " ".join(str(error).split())
        raise StudyError(f"{path}: it is damaged ({text}); make it anew") from None
    return content


def check(value: Any, shape: Any, where: str) -> None:
    """Raise ValueError unless `value` has the shape; `where` says whose value it is."""
    if isinstance(shape, Maybe):
        if value is not None:
            check(value, shape.shape, where)
    elif isinstance(shape, dict):
        _check_object(value, shape, where)
    elif isinstance(shape, list):
        _expect(isinstance(value, list), where, "a list", value)
        for i, item in enumerate(value):
            check(item, shape[0], f"{where}[{i}]")
    elif isinstance(shape, tuple):
        right = isinstance(value, list) and len(value) == len(shape)
        _expect(right, where, f"a list of {len(shape)}", value)
        for i, item in enumerate(value):
            check(item, shape[i], f"{where}[{i}]")
    else:
        _check_plain(value, shape, where)


def _check_object(value: Any, shape: dict[Any, Any], where: str) -> None:
    _expect(isinstance(value, dict), where, "an object", value)
    if str in shape:
        for name, item in value.items():
            check(item, shape[str], f"{where}.{name[:40]}")
        return
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if name in value:
            check(value[name], inner, f"{where}.{name}")
        elif not key.endswith("?"):
            raise ValueError(f"{where.lstrip('.') or 'it'} has no {name!r}")


def _check_plain(value: Any, kind: type, where: str) -> None:
    if kind is float:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        _expect(number and abs(value) < 1e300 and math.isfinite(value), where, "a number", value)
    elif kind is int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        _expect(whole and abs(value) < 2**63, where, "a whole number", value)
    elif kind is not object:
        names = {str: "text", bool: "true or false"}
        _expect(isinstance(value, kind), where, names.get(kind, kind.__name__), value)


def _expect(right: bool, where: str, what: str, value: Any) -> None:
    if not right:
        found = repr(value)
        shown = found if len(found) < 40 else found[:40] + "..."
        raise ValueError(f"{where.lstrip('.') or 'it'} should be {what}, not {shown}")


# ---------------------------------------------------------------------- our files

_ROW = {"accuracy_mean": float, "accuracy_std": float, "fold_accuracies": [float]}

SETTINGS = {"dataset": str, "n_outer": int, "n_inner": int, "max_layers": int, "seed": int}

ASKED = {
    "command": Maybe(str),
    "protocol?": Maybe(str),
    "n_configurations?": Maybe(int),
    "n_guesses?": Maybe(int),
}

RESULT = _ROW | {
    "dataset": str,
    "protocol": str,
    "n_graphs": int,
    "n_units": int,
    "n_configurations": int,
    "n_guesses": int,
    "seed": int,
    "depth_mean": float,
    "depth_std": float,
    "fold_depths": [int],
    "fold_configurations": [{str: object}],
    "fold_alphas?": [[float]],
    "single_layer": _ROW,
    "common_penalty?": _ROW,
    "ensemble?": _ROW,
    "times": {
        "networks_seconds": float,
        "fold_train_seconds": [float],
        "fold_test_seconds": [float],
        "fold_unconverged_graphs?": [int],
        "this_run_seconds?": float,
        "after_networks_seconds?": float,
    },
    "versions": {str: str},
    "machine": {str: object},
    "configurations?": [{str: object}],
    "alphas?": [float],
    "source?": Maybe(str),
    "command?": Maybe(str),
}

RIVALS = [
    {
        "dataset": str,
        "model": str,
        "title": str,
        "status": str,
        "reason?": Maybe(str),
        "accuracy_mean": Maybe(float),
        "accuracy_std": Maybe(float),
        "fold_accuracies?": Maybe([float]),
        "train_seconds": Maybe(float),
        "test_seconds": Maybe(float),
        "selection_seconds?": Maybe(float),
        "peak_mb?": Maybe(float),
        "parameters?": Maybe(int),
        "published?": Maybe(
            {"accuracy_mean": float, "accuracy_std?": Maybe(float), "reference?": Maybe(str)}
        ),
    }
]


def check_portrait(portrait: Any) -> None:
    """Raise ValueError unless a portrait is as `fdgnn.portrait.format` says, and fits together."""
    from fdgnn.portrait.format import FORMAT, find_fault

    if not isinstance(portrait, dict) or portrait.get("format") != FORMAT:
        raise ValueError(f"it has not the format {FORMAT}, which this version reads")
    fault = find_fault(portrait)
    if fault is not None:
        raise ValueError(f"{fault} is not as it should be")
    data = portrait["data"]
    histograms = [(data["sizes"]["edges"], c) for c in data["sizes"]["counts"].values()]
    if data["targets"]:
        histograms.append((data["targets"]["edges"], data["targets"]["counts"]))
    for edges, counts in histograms:
        if len(edges) != len(counts) + 1:
            raise ValueError(f"a histogram has {len(counts)} bars and {len(edges)} edges")
    if len(data["degrees"]["labels"]) != len(data["degrees"]["counts"]):
        raise ValueError("data.degrees has not as many labels as counts")

"""Everything of a model that is not an array, as JSON and back, checked on the way back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from numbers import Integral
from typing import Any, NoReturn

import numpy as np

from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor, GraphReservoir
from fdgnn.exceptions import ModelFileError
from fdgnn.graphs import Array
from fdgnn.model_files.tensors import MOST_HEADER, parse_json

KINDS: dict[str, Any] = {c.__name__: c for c in (FDGNNClassifier, FDGNNRegressor, GraphReservoir)}
MOST_STEPS = 2**31 - 1  # max_iter, which is counted in 32 bits
_SEED = "seed_"  # written in place of a random state that is neither an integer nor None


# ---------------------------------------------------------------------- from a model


def settings_of(model: Any, score: float | None) -> dict[str, Any]:
    """What the file says of a fitted model."""
    networks = getattr(model, "networks_", None)
    reservoir = networks[0].reservoir if networks else model.reservoir_
    return {
        "class": type(model).__name__,
        "parameters": _parameters(model),
        "seed": _seed_as_json(model.seed_),
        "degree": float(model.degree_),
        "n_inputs": int(model.n_features_in_),
        "directed": bool(model.directed_),
        "vertex_input": model.vertex_input_,
        "vocabulary": None if reservoir.vocabulary is None else list(reservoir.vocabulary),
        "classes": _classes_as_json(getattr(model, "classes_", None)),
        "n_outputs": len(networks[0].intercept) if networks else 0,
        "one_output": getattr(model, "_one_output", None),
        "calibration": getattr(model, "calibration_", None),
        "score": None if score is None else float(score),
        "reading": getattr(model, "reading_", None),
    }


def as_text(settings: Mapping[str, Any]) -> str:
    """JSON, or a ModelFileError where a parameter is something JSON has no word for."""
    try:
        return json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"the model's settings cannot be written as JSON: {error}") from None


def _parameters(model: Any) -> dict[str, Any]:
    parameters = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in model.get_params(deep=False).items()
        if name != "n_jobs"
    }
    state = parameters["random_state"]
    if state is not None and not isinstance(state, Integral):
        parameters["random_state"] = _SEED
    return parameters


def _seed_as_json(seed: np.random.SeedSequence) -> dict[str, Any]:
    entropy: Any = seed.entropy
    many = np.ndim(entropy) > 0
    return {
        "entropy": [int(word) for word in entropy] if many else int(entropy),
        "spawn_key": [int(key) for key in seed.spawn_key],
    }


def _classes_as_json(classes: Array | None) -> dict[str, Any] | None:
    if classes is None:
        return None
    values = classes.tolist()
    if classes.dtype.kind not in "biufU" and not all(type(value) is str for value in values):
        raise ModelFileError(
            f"classes of dtype {classes.dtype} cannot be saved; fit with numbers or text as y"
        )
    return {"dtype": classes.dtype.str, "values": values}


# ---------------------------------------------------------------------- to a model


def parse(text: str) -> dict[str, Any]:
    """Read the settings of a file, each of the type it has to be of."""
    settings = parse_json(text, "its description of the model")
    if set(settings) != set(_FIELDS):
        odd = sorted(set(settings) ^ set(_FIELDS))[0]
        _refuse(f"its description of the model lacks {odd[:40]!r}, or has no place for it")
    for name, is_right in _FIELDS.items():
        if not is_right(settings[name]):
            _refuse(f"its {name} cannot be {str(settings[name])[:40]!r}")
    return settings


def restore(settings: Mapping[str, Any]) -> Any:
    """Build the model that the settings describe; its weights are still missing."""
    model = _with_parameters(KINDS[settings["class"]], settings["parameters"])
    _check_vertex_input(settings)
    _check_outputs(model, settings)
    model.seed_ = _seed_from_json(**settings["seed"])
    if model.random_state == _SEED:
        model.random_state = model.seed_
    model.degree_ = settings["degree"]
    model.n_features_in_ = settings["n_inputs"]
    model.directed_ = settings["directed"]
    model.vertex_input_ = settings["vertex_input"]
    model.training_score_ = settings["score"]
    model.reading_ = settings["reading"]
    if isinstance(model, FDGNNClassifier):
        model.classes_ = _classes_from_json(settings["classes"])
        if settings["calibration"] is not None:
            model.calibration_ = settings["calibration"]
    if isinstance(model, FDGNNRegressor):
        model._one_output = settings["one_output"]
    return model


def _with_parameters(kind: Any, parameters: dict[str, Any]) -> Any:
    """Set parameters; those a file does not mention are younger than it, and get their default."""
    unknown = set(parameters) - set(kind().get_params()) | set(parameters) & {"n_jobs"}
    if unknown:
        _refuse(f"a {kind.__name__} has no parameter {min(unknown)[:40]!r}; or not in a file")
    model = kind(**parameters)
    try:
        model._check_parameters()
    except (ValueError, TypeError, OverflowError) as error:
        _refuse(f"a parameter cannot be: {str(error)[:200]}")
    degree, state = model.degree, model.random_state
    if degree not in ("average", "max") and not (_is_size(degree) or _is_positive(degree)):
        _refuse("a parameter cannot be: degree, expected 'average', 'max' or a number above zero")
    if not (state is None or _is_natural(state) or state == _SEED):
        _refuse("a parameter cannot be: random_state, expected an integer")
    if model.max_iter > MOST_STEPS:
        _refuse(f"a parameter cannot be: max_iter, expected at most {MOST_STEPS}")
    return model


def _check_vertex_input(settings: Mapping[str, Any]) -> None:
    kind, vocabulary, n = (settings[f] for f in ("vertex_input", "vocabulary", "n_inputs"))
    if (vocabulary is None) != (kind != "vertex labels"):
        _refuse(f"its models see {kind}, which does not fit its vertex labels")
    if n != (len(vocabulary) if vocabulary else 1 if kind == "no vertex labels" else n):
        _refuse(f"its model has {n} inputs, which does not fit its vertex labels")


def _check_outputs(model: Any, settings: Mapping[str, Any]) -> None:
    """Check that classes and numbers of outputs are there as the kind of model has them."""
    classes, n, one = (settings[f] for f in ("classes", "n_outputs", "one_output"))
    if isinstance(model, FDGNNClassifier):
        n_classes = len(classes["values"]) if classes else 0
        fits = one is None and n_classes >= 2 and n == (1 if n_classes == 2 else n_classes)
    elif isinstance(model, FDGNNRegressor):
        fits = classes is None and one is not None and n >= 1 and (n == 1 or not one)
    else:
        fits = classes is None and one is None and n == 0
    if not fits or (settings["calibration"] and not isinstance(model, FDGNNClassifier)):
        _refuse(f"its classes and outputs are not those of a {type(model).__name__}")


def _seed_from_json(entropy: Any, spawn_key: list[int]) -> np.random.SeedSequence:
    return np.random.SeedSequence(entropy, spawn_key=tuple(spawn_key))


def _classes_from_json(classes: Mapping[str, Any]) -> Array:
    """Build the array, and see that nothing was cut off or rounded on the way."""
    values = classes["values"]
    try:
        dtype = np.dtype(classes["dtype"])
        if dtype.kind not in "biufUO" or dtype.itemsize * len(values) > 4 * MOST_HEADER:
            raise ValueError
        array = np.array(values, dtype=dtype)
        again = array.tolist()
        if again != values or list(map(type, again)) != list(map(type, values)):
            raise ValueError
        if len(np.unique(array)) < len(array):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        _refuse("its classes are not an array of different numbers or texts")
    return array


# ---------------------------------------------------------------------- what is right


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 < value < 2**63


def _is_natural(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_finite(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _is_positive(value: Any) -> bool:
    return _is_finite(value) and value > 0


def _is_seed(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"entropy", "spawn_key"}:
        return False
    words = value["entropy"] if isinstance(value["entropy"], list) else [value["entropy"]]
    keys = value["spawn_key"]
    return isinstance(keys, list) and len(words) > 0 and all(map(_is_natural, [*words, *keys]))


def _is_vocabulary(value: Any) -> bool:
    if value is None:
        return True
    if not isinstance(value, list) or len(value) == 0:
        return False
    kinds = {type(label) for label in value}
    return kinds in ({int}, {str}) and len(set(value)) == len(value)


def _is_class_list(value: Any) -> bool:
    return value is None or (
        isinstance(value, dict)
        and set(value) == {"dtype", "values"}
        and isinstance(value["dtype"], str)
        and isinstance(value["values"], list)
        and {type(v) for v in value["values"]} <= {int, float, str, bool}
    )


def _is_reading(value: Any) -> bool:
    """How the training data was read: a few names and words."""
    if value is None:
        return True
    if not isinstance(value, dict) or len(value) > 20:
        return False
    return all(v is None or (isinstance(v, str) and len(v) <= 1000) for v in value.values())


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "class": lambda value: isinstance(value, str) and value in KINDS,
    "parameters": lambda value: isinstance(value, dict),
    "seed": _is_seed,
    "degree": lambda value: _is_finite(value) and value >= 0,
    "n_inputs": _is_size,
    "directed": lambda value: isinstance(value, bool),
    "vertex_input": lambda v: v in ("vertex labels", "vertex features", "no vertex labels"),
    "vocabulary": _is_vocabulary,
    "classes": _is_class_list,
    "n_outputs": lambda value: value == 0 or _is_size(value),
    "one_output": lambda value: value is None or isinstance(value, bool),
    "calibration": lambda value: value is None or _is_positive(value),
    "score": lambda value: value is None or _is_finite(value),
    "reading": _is_reading,
    "redrawn": lambda value: isinstance(value, bool),
    "checksum": lambda value: isinstance(value, str),
}


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)

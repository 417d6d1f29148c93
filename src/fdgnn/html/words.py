"""Numbers and names as text for people, and as a file holds them: short."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from fdgnn.evaluation.record import MetricScores
from fdgnn.texts import cut, listed

LONGEST = 60  # letters of a name
SPACE = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
NONE = "\N{EN DASH}"
_UNITLESS = {"r2", "spearman", "log_loss"}  # shown with three decimals
_SHARES = {"accuracy", "balanced_accuracy", "roc_auc", "average_precision", "f1"}  # metrics


def percent(share: float | None, digits: int = 1) -> str:
    """88.6 %."""
    return NONE if share is None else f"{100 * share:.{digits}f}{SPACE}%"


def is_share(metric: str) -> bool:
    """Return whether scores of a metric are shares, which are shown in percent."""
    return metric in _SHARES


def score(metric: str, value: float | None) -> str:
    """Write a score by a metric: 88.6 % or 0.812."""
    return percent(value) if is_share(metric) else _decimal(metric, value)


def _decimal(metric: str, value: float | None, digits: int = 3) -> str:
    if value is None or metric not in _UNITLESS:
        return significant(value, digits)
    return f"{round(value, 3) + 0.0:.3f}".replace("-", MINUS)  # no negative zero


def spread(metric: str, mean: float | None, std: float | None = None, digits: int = 2) -> str:
    """Write mean and standard deviation, shares in percent: 88.56 ± 4.18 or 0.812 ± 0.031."""
    if mean is None:
        return NONE
    if is_share(metric):
        shown, more = f"{100 * mean:.{digits}f}", "" if std is None else f"{100 * std:.{digits}f}"
    else:
        shown, more = _decimal(metric, mean), "" if std is None else _decimal(metric, std, 2)
    return f"{shown}{SPACE}±{SPACE}{more}" if more else shown


def with_unit(one: MetricScores) -> str:
    """Write mean and standard deviation of scores, shares with their unit: 88.56 ± 4.18 %."""
    unit = " %" if is_share(one.metric) and one.mean is not None else ""
    return f"{spread(one.metric, one.mean, one.std)}{unit}"


def metric_title(metric: str, words: str) -> str:
    """Return the title of an axis or a column with scores."""
    return f"{words}, %" if is_share(metric) else words


def significant(value: float | str | None, digits: int = 3) -> str:
    """Round to a few digits: 0.0327, 12.4, 1530, 1e-08; text, such as a class, stays as it is."""
    if value is None or isinstance(value, str):
        return NONE if value is None else value
    if value != 0 and not 1e-4 <= abs(value) < 1e6:
        text = f"{value:.{digits - 1}e}"
    elif abs(rounded := float(f"{value:.{digits}g}")) < 10 ** (digits - 1):
        text = f"{rounded:#.{digits}g}" if rounded else f"{0:.{digits - 1}f}"
    else:
        text = f"{rounded:.0f}"
    return text.replace("-", MINUS)


def power_of_ten(value: float) -> str:
    """Write a regularization strength: 10⁻³ if it is a power of ten, or else its digits."""
    exponent = math.log10(value) if value > 0 else math.nan
    if not math.isfinite(exponent) or abs(exponent - round(exponent)) > 1e-9:
        return significant(value)
    digits = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"10{str(round(exponent)).translate(digits)}"


def duration(seconds: float | None) -> str:
    """4.3 ms, 1.24 s, 2 min 53 s, 1 h 12 min."""
    if seconds is None:
        return NONE
    if seconds < 0.9995:
        return f"{significant(1000 * seconds, 2 if seconds < 0.01 else 3)}{SPACE}ms"
    if seconds < 60:
        return f"{significant(seconds)}{SPACE}s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}{SPACE}min{SPACE}{whole % 60}{SPACE}s"
    return f"{whole // 3600}{SPACE}h{SPACE}{whole % 3600 // 60}{SPACE}min"


def count(n: int | None) -> str:
    """12 345, with a narrow space."""
    return NONE if n is None else f"{n:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def plural(n: int, one: str, many: str | None = None) -> str:
    """1 graph, 2 graphs."""
    return f"{count(n)} {one if n == 1 else many or one + 's'}"


def few(values: Sequence[object]) -> str:
    """Some of the values in words: a, b, and how many more there are."""
    more = len(values) - 5
    return listed([*values[:5], f"{more} more"] if more > 0 else values)


def sentence(text: str) -> str:
    """Return text with a capital letter at its start, and without a full stop."""
    return f"{text[:1].upper()}{text[1:].removesuffix('.')}"


_SETTINGS = {
    "effective_spectral_radius": "ρ, effective spectral radius",
    "input_scaling": "ω(1), input scaling",
    "inter_layer_scaling": "ω, scaling between layers",
    "n_layers": "L, layers",
    "n_units": "H, units per layer",
    "n_connections": "C, connections per unit",
    "n_projections": "P, projections",
    "n_estimators": "random initializations, averaged",
    "n_initializations": "random initializations",
    "alpha": "regularization strength (alpha)",
    "tol": "ε, tolerance",
    "max_iter": "ν, iterations at most",
    "degree": "k, degree",
    "random_state": "seed",
    "n_outer": "outer folds",
    "n_inner": "inner folds",
    "max_layers": "L, layers at most",
    "n_configurations": "configurations",
    "n_searched": "graphs of the search",
    "data_hash": "hash of the data",
    "n_graphs": "graphs",
}


def setting_words(name: str, *, short: bool = False) -> str:
    """Return a setting in words; if `short`, its symbol where it has one."""
    words = _SETTINGS.get(name, name.replace("_", " "))
    return words.split(",")[0] if short else words


def plain(value: object) -> str:
    """Write a setting as text; a number has six digits."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {plain(inner)}" for name, inner in value.items())
    return str(value)


# ---------------------------------------------------------------------- for files


def short(value: float) -> float:
    """Round to five digits, which is enough for a picture."""
    return float(f"{value:.5g}")


def clean(value: object) -> str:
    """Return text that can be written as UTF-8; names of files may have other bytes."""
    return str(value).encode("utf-8", errors="replace").decode("utf-8")


def clipped(value: object, mark: str = "", longest: int = LONGEST) -> str:
    """Cut text to a bounded length and put the mark at its end."""
    text, most = clean(value), longest - len(mark)
    return cut(text, most) + mark


def clipped_apart(values: Iterable[object]) -> list[str]:
    """Cut each value, and number those that would look like another one."""
    texts = [clean(value) for value in values]
    whole = {text for text in texts if len(text) <= LONGEST}  # nothing else may look like these
    names: dict[str, None] = {}
    for text in texts:
        name, n = clipped(text), 1
        while name in names or (name in whole and name != text):
            n += 1
            name = clipped(text, f" ({n})")
        names[name] = None
    return list(names)

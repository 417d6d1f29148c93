"""Parameters of estimators: the values each may have, and one check for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from types import MethodType
from typing import Any, Protocol

import numpy as np

from fdgnn.limits import MAX_NUMBER, Limit

LARGEST_WHOLE = 2**31 - 1  # kernels count in 32 bits


class Rule(Protocol):
    """A rule for the values of a parameter."""

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is fine."""


@dataclass(frozen=True)
class Number:
    """A finite number or integer that is at least `least`, and within a limit; or a word."""

    least: float
    whole: bool = False
    optional: bool = False
    most: Limit = MAX_NUMBER
    word: str | None = None

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is fine."""
        if (value is None and self.optional) or (isinstance(value, str) and value == self.word):
            return None
        fine = type(value) is int or (type(value) is float and not self.whole)  # most often
        if not fine:
            kind = Integral if self.whole else Real
            fine = isinstance(value, kind) and not isinstance(value, bool)
        if not fine or not value >= self.least:
            what = "an integer" if self.whole else "a number"
            or_word = f", or {self.word!r}" if self.word else ""
            return f"expected {what}, at least {self.least:g}{or_word}"
        if self.whole and value > LARGEST_WHOLE:
            return f"expected at most {LARGEST_WHOLE}"
        return self.most.in_words if self.most.is_below(value) else None


@dataclass(frozen=True)
class OneOf:
    """One of a few values."""

    values: tuple[Any, ...]

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is fine."""
        if value in self.values:
            return None
        return f"expected one of {', '.join(str(v) for v in self.values if v is not None)}"


class Jobs:
    """A number of threads or processes: None, or a whole number other than 0."""

    def expected(self, value: Any) -> str | None:
        """Return what was expected, or None if the value is fine."""
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        fine = value is None or (whole and value != 0)
        return None if fine else "expected None or an integer other than 0; -1 means all cores"


def check_parameters(estimator: Any, rules: Mapping[str, Rule]) -> None:
    """Raise ValueError for the first parameter of an estimator that breaks its rule."""
    for name, rule in rules.items():
        value = getattr(estimator, name)
        # A NumPy float32 cannot be compared with the largest float64 without a warning.
        expected = rule.expected(value.item() if isinstance(value, np.generic) else value)
        if expected is not None:
            raise ValueError(f"{name}={value!r}: {expected}")


class available_with:  # noqa: N801 - a decorator
    """Decorator of a method that only some objects have, as scikit-learn's ``available_if``.

    Otherwise, accessing it raises an AttributeError with advice.

    Parameters
    ----------
    condition : callable
        From the object to whether it has the method.
    remedy : str
        What to do to get the method.
    """

    def __init__(self, condition: Callable[[Any], Any], remedy: str) -> None:
        self.condition, self.remedy = condition, remedy

    def __call__(self, method: Callable[..., Any]) -> Any:
        """Keep the method."""
        self.method = method
        return self

    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self.method
        if not self.condition(owner):
            name = self.method.__name__
            raise AttributeError(f"this {kind.__name__} has no {name}: {self.remedy}")
        return MethodType(self.method, owner)

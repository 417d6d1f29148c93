"""Numbers and names as a portrait holds them: short, and fit for a file."""

from __future__ import annotations

from collections.abc import Iterable

from fdgnn.texts import cut

LONGEST = 60  # letters of a name


def short(value: float) -> float:
    """Round to five digits, which is enough for a picture."""
    return float(f"{value:.5g}")


def clean(value: object) -> str:
    """Give text that can be written as UTF-8: names of files may hold bytes that are no text."""
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

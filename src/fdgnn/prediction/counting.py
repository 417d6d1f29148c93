"""How many rows a file has, about, where that is cheap to find out."""

from __future__ import annotations

from pathlib import Path

from fdgnn.datasets.files import BLOCK, DAMAGE, open_unpacked
from fdgnn.datasets.formats import SUFFIXES

_LINES = ("csv", "tsv", "jsonl", "smi")  # formats that have a row per line
_WITH_HEADER = ("csv", "tsv")


def count_rows(place: str) -> int | None:
    """Count the rows of a file, as far as lines tell; None where nothing tells.

    It is for showing progress only.
    """
    path = Path(place)
    suffixes = [each.lower() for each in path.suffixes if each.lower() != ".gz"]
    format = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if not path.is_file() or format not in _LINES:
        return None
    try:
        with open_unpacked(path) as (stream, _):
            blocks = iter(lambda: stream.read(BLOCK), b"")
            return sum(block.count(b"\n") for block in blocks) - (format in _WITH_HEADER)
    except DAMAGE:  # whoever reads the rows will say what is wrong
        return None

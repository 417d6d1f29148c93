"""Folder of the examples' pictures: an argument of the command line, or docs/pictures."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def path_of(name: str) -> Path:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def save(figure: Figure, name: str) -> None:
    figure.savefig(path_of(name), dpi=90)
    shrink(name)


def shrink(name: str) -> None:
    """Reduce a picture to 256 colors, which halves its size."""
    with Image.open(path_of(name)) as picture:
        small = picture.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
    small.save(path_of(name), optimize=True)
    print(f"{path_of(name)} written")

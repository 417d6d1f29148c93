"""Where the examples' pictures go: the folder named on the command line, or docs/pictures."""

from __future__ import annotations

import sys
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

FOLDER = Path(__file__).parent.parent / "docs" / "pictures"


def save(figure: Figure, name: str) -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / name, dpi=90)
    with Image.open(folder / name) as picture:
        small = picture.convert("RGB").quantize(
            256, method=Image.Quantize.FASTOCTREE
        )  # half the bytes
    small.save(folder / name, optimize=True)
    print(f"{folder / name} written")

"""Number of functions and files of fdgnn that one operation runs through.

    python -m benchmarks.functions [--list]

The operations are `AutoGraphClassifier().fit` on a list of SMILES, and `predict` of another. A
function counts once, however often it is called; comprehensions and lambdas do not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import fdgnn
from fdgnn import AutoGraphClassifier

SOURCE = str(Path(fdgnn.__file__).parent)
MOLECULES = ["CCO", "CCCO", "CO", "CCN", "CCCN", "CN", "CC=O", "CC#N", "c1ccccc1O", "c1ccccc1N"] * 6
CLASSES = [0, 0, 0, 1, 1, 1, 0, 1, 0, 1] * 6


def functions_of(operation: Callable[[], Any]) -> set[tuple[str, str]]:
    """Run an operation, and return the functions of fdgnn that are called, with their files."""
    found = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        ours = code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<")
        if event == "call" and ours:
            found.add((code.co_filename[len(SOURCE) + 1 :], code.co_qualname))

    sys.setprofile(look)
    try:
        operation()
    finally:
        sys.setprofile(None)
    return found


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="also name the functions")
    asked = parser.parse_args()
    model = AutoGraphClassifier(random_state=0)
    operations = {
        "fit on a list of SMILES": lambda: model.fit(MOLECULES, CLASSES),
        "predict a list of SMILES": lambda: model.predict(MOLECULES[:10]),
    }
    model.fit(MOLECULES[:20], CLASSES[:20])  # imports that functions make are not counted
    for name, operation in operations.items():
        found = functions_of(operation)
        print(f"{name}: {len(found)} functions in {len({file for file, _ in found})} files")
        if asked.list:
            print(*(f"  {file}: {function}" for file, function in sorted(found)), sep="\n")


if __name__ == "__main__":
    main()

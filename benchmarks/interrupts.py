"""Cost of the kernels' checks for interrupts, relative to kernels compiled without them.

    python -m benchmarks.interrupts [--rounds 5] [--tree FOLDER]

The sources are copied with an `Interrupts` that does nothing, and compiled by cmake, with the
Python and the nanobind that it finds. Times and bits are measured by `benchmarks.beside`; the
ratios are written to results/interrupts.json.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.beside import OURS, best_times

RESULT = OURS.parent / "results" / "interrupts.json"
COUNT = re.compile(r"void count\(i64 n\) \{.*?\n    \}\n", re.DOTALL)


def deaf_sources(tree: Path) -> Path:
    """Make a copy of the library whose kernels count nothing and look at nothing."""
    shutil.copytree(OURS, tree / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(OURS.parent / "CMakeLists.txt", tree)
    header = tree / "src" / "kernels" / "interrupts.hpp"
    text, n = COUNT.subn("void count(i64) {}\n", header.read_text())
    assert n == 1, "interrupts.hpp has changed"
    header.write_text(text.replace("    i64 left = WORK_BETWEEN_CHECKS;\n", ""))
    build = ["cmake", "-S", str(tree), "-B", str(tree / "build"), "-DSKBUILD_STATE=editable"]
    subprocess.run(build, check=True, capture_output=True)
    subprocess.run(["cmake", "--build", str(tree / "build")], check=True, capture_output=True)
    install = ["cmake", "--install", str(tree / "build"), "--prefix", str(tree / "out")]
    subprocess.run(install, check=True, capture_output=True)
    return tree / "src"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--tree", type=Path, help="where deaf sources are, or shall be")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = options.tree or Path(folder)
        deaf = tree / "src" if (tree / "out").exists() else deaf_sources(tree)
        if options.rounds == 0:
            return
        found = best_times(deaf, options.rounds)
    ratios = {name: round(ours / theirs, 3) for name, (theirs, ours) in found.items()}
    for name, ratio in ratios.items():
        print(f"{name:30} {1e3 * found[name][1]:9.3f} ms   ratio {ratio:.3f}")
    RESULT.write_text(json.dumps({"rounds": options.rounds, "ratios": ratios}, indent=1) + "\n")


if __name__ == "__main__":
    main()

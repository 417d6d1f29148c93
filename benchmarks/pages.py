"""How long a report page takes.

    python -m benchmarks.pages runs/MUTAG [--times 10]

CPU seconds of `fdgnn.html.report.write_report`, the median of some calls. The first call, which
imports Vega-Altair and makes the script that draws charts, does not count.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fdgnn.html.report import write_report


def main() -> None:
    """Print the time of one page."""
    parser = argparse.ArgumentParser(description="How long a report page takes.")
    parser.add_argument("runs", nargs="+", type=Path, help="run directories and model files")
    parser.add_argument("--times", type=int, default=10, help="calls that count")
    options = parser.parse_args()
    seconds = []
    with TemporaryDirectory() as folder:
        for _ in range(options.times + 1):
            start = time.process_time()
            write_report(options.runs, Path(folder) / "page.html")
            seconds.append(time.process_time() - start)
    print(f"{np.median(seconds[1:]):.3f} s for a page, median of {options.times}")


if __name__ == "__main__":
    main()

"""``fdgnn predict`` on many SMILES with one process and with two.

``python -m benchmarks.predict_jobs [N]`` fits a model to BBBP of the data home, writes the first
N (200,000) SMILES of MOSES to a table, of which every 1,000th is invalid, and predicts it on the
command line with ``-j 1`` and ``-j 2``. Both must write the same rows, except for rounding. Printed
are elapsed seconds, CPU seconds of all processes, the largest memory of a process in MB, and the
speedup by two processes. The result is written to ``results/predict_jobs.json``.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from fdgnn import AutoGraphClassifier, read_graphs, save_model

N_ROWS, EVERY = 200_000, 1_000
RESULT = Path(__file__).parent.parent / "results" / "predict_jobs.json"


def write_table(source: Path, path: Path, n_rows: int) -> None:
    """Write a table of SMILES, some of which cannot be parsed."""
    with gzip.open(source, "rt") as smiles, path.open("w") as table:
        next(smiles)
        table.write("smiles\n")
        for i, line in enumerate(islice(smiles, n_rows)):
            table.write("C1CC\n" if i % EVERY == EVERY - 1 else line.split(",")[0].strip() + "\n")


def predicted(model: Path, table: Path, jobs: int) -> tuple[dict[str, float], bytes]:
    """Run the command; give what it cost, and what it wrote."""
    output = table.with_name(f"by_{jobs}.csv")
    words = ["predict", str(model), str(table), "-o", str(output), "-j", str(jobs), "--json", "-q"]
    words += ["--force"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-m", "fdgnn", *words], check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    told = json.loads(run.stdout)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cost = {"seconds": seconds, "processor_seconds": busy, "largest_mb": after.ru_maxrss / 1024}
    return cost | {"rows": told["rows"], "rejected": told["rejected"]}, output.read_bytes()


def check_same(one: bytes, other: bytes) -> None:
    """Raise AssertionError unless two tables have the same rows; numbers may be rounded."""
    pairs = zip(one.decode().splitlines(), other.decode().splitlines(), strict=True)
    for row, like in (pair for pair in pairs if pair[0] != pair[1]):
        for cell, other_cell in zip(row.split(","), like.split(","), strict=True):
            assert cell == other_cell or abs(float(cell) - float(other_cell)) < 1e-9, (row, like)


def main() -> None:
    """Measure, print and write."""
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    chem = Path(os.environ["FDGNN_DATA"]) / "chem"
    training = read_graphs(chem / "BBBP.csv", target="target", atoms="typed")
    fitted = AutoGraphClassifier(probability=True, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        model, table = Path(folder, "model.fdgnn"), Path(folder, "new.csv")
        save_model(fitted.fit(training.graphs, training.y), model)
        write_table(chem / "MOSES.csv.gz", table, n_rows)
        (one, alone), (two, shared) = (predicted(model, table, jobs) for jobs in (1, 2))
    found = {"-j 1": one, "-j 2": two, "faster": one["seconds"] / two["seconds"]}
    for jobs in ("-j 1", "-j 2"):
        print(f"{jobs}  {found[jobs]}")
    print(f"{found['faster']:.2f} times faster")
    check_same(alone, shared)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

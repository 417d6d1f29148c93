"""Training out of core on molecules of MOSES, from ten thousand to all 1.58 million.

    python -m benchmarks.scale [--sizes 10000 30000 100000] [--check 200000] [--beside 50000]
                               [--workers] [--folder DIR]

For each size: ``fdgnn fit FILE --model colors --rounds 3 --memory 2GB -j 2`` from a packed CSV,
whose target is whether RDKit counts more than two rings, then the same fit again from the encoded
parts. Printed and written to ``results/scale.json`` are seconds, seconds on a processor of all
processes, the largest sum of proportional memory (PSS) of all processes at a time, and the accuracy
on other molecules. ``--check`` is a size that the model of cost is not fitted to. ``--beside``
compares with a fit in memory: largest difference of scores beside their range, and seconds on a
processor. A command that is killed and given again must do nothing twice and give the same scores.
``--workers`` adds one and two workers of a Dask cluster. What is measured is written at once, so
that a benchmark that is stopped has kept it.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import psutil

RESULT = Path(__file__).parent.parent / "results" / "scale.json"
N_TEST = 100_000
COMMAND = ("--target", "y", "--model", "colors", "--rounds", "3", "--json", "-q")


# ---------------------------------------------------------------------- the data


def write_tables(source: Path, folder: Path, sizes: list[int], n_test: int) -> dict[int, Path]:
    """Write a packed table for each size, all from the beginning of MOSES, and one to test."""
    from rdkit import Chem

    most = max(sizes)
    paths = {n: folder / f"{n}.csv.gz" for n in (*sizes, 0)}  # 0: to test
    if all(path.exists() for path in paths.values()):
        return paths
    with ExitStack() as files, gzip.open(source, "rt") as smiles:
        opened = {
            n: files.enter_context(gzip.open(path, "wt", compresslevel=1))
            for n, path in paths.items()
        }
        for file in opened.values():
            file.write("smiles,y\n")
        rows = csv.reader(smiles)
        next(rows)
        for i, (text,) in enumerate(islice(rows, most + n_test)):
            molecule = Chem.MolFromSmiles(text, sanitize=False)
            Chem.FastFindRings(molecule)
            line = f"{text},{int(molecule.GetRingInfo().NumRings() > 2)}\n"
            for n, file in opened.items():
                if i < n or (n == 0 and i >= most):
                    file.write(line)
    return paths


# ---------------------------------------------------------------------- what a command costs


def pss(process: psutil.Process) -> int:
    """Bytes of a process and its children, shared ones counted once."""
    total = 0
    try:
        for one in (process, *process.children(recursive=True)):
            total += one.memory_full_info().pss
    except psutil.Error:
        pass
    return total


def run(words: list[str], stop_after: float | None = None) -> tuple[dict[str, float], Any]:
    """Run a command of fdgnn; give what it cost, and what it printed."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "fdgnn", *words]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, start_new_session=True)
        watched, largest = psutil.Process(process.pid), 0
        while process.poll() is None:
            largest = max(largest, pss(watched))
            if stop_after is not None and time.perf_counter() - start > stop_after:
                os.killpg(process.pid, signal.SIGKILL)
            time.sleep(0.2)
        out.seek(0)
        text = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cost = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": busy,
        "largest_mb": largest / 1e6,
    }
    if process.returncode and stop_after is None:
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return cost, json.loads(text) if text.strip() else None


def fitted(table: Path, model: Path, work: Path, *more: str) -> tuple[dict[str, float], Any]:
    """Fit out of core."""
    words = ["fit", str(table), "-o", str(model), "--work-dir", str(work), "--memory", "2GB"]
    return run([*words, "-j", "2", *COMMAND, *more])


def accuracy_and_scores(model: Path, table: Path) -> tuple[float, np.ndarray]:
    """Predict a table, and compare with its column y."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "out.csv")
        run(["predict", str(model), str(table), "-o", str(output), "--json", "-q"])
        with output.open() as file, gzip.open(table, "rt") as truth:
            pairs = list(zip(csv.DictReader(file), csv.DictReader(truth), strict=True))
    right = np.mean([row["prediction"] == true["y"] for row, true in pairs])
    return float(right), np.array([float(row["score"]) for row, _ in pairs])


# ---------------------------------------------------------------------- the questions


def in_memory(table: Path, model: Path) -> dict[str, float]:
    """Fit the same model in memory, in a process of its own."""
    script = (
        "import sys, time, json; from fdgnn import *\n"
        "from fdgnn.encoders import ColorCounts\n"
        "t = read_graphs(sys.argv[1], target='y', atoms='typed')\n"
        "m = FDGNNClassifier(encoder='colors', n_rounds=3, readout='linear', probability=True,"
        " random_state=0).fit(t.graphs, t.y)\n"
        "save_model(m, sys.argv[2])\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", script, str(table), str(model)], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"processor_seconds": busy, "largest_mb": after.ru_maxrss / 1024}


def killed_and_repeated(table: Path, folder: Path, whole: Path, seconds: float) -> dict[str, Any]:
    """Kill a fit in the middle of reading, and give the command again."""
    model, work = folder / "killed.fdgnn", folder / "killed"
    words = ["fit", str(table), "-o", str(model), "--work-dir", str(work), "--memory", "2GB"]
    run([*words, "-j", "2", *COMMAND], stop_after=seconds)
    kept = len(list(work.glob("parsed/*/*.npz")))
    cost, told = run([*words, "-j", "2", *COMMAND])
    made = len(list(work.glob("parsed/*/*.npz")))
    same = model.read_bytes() == whole.read_bytes()
    return {"kept": kept, "parts": made, "made_again": told["new_parts"] - (made - kept),
            "same_bytes": same, **cost}  # fmt: skip


def on_workers(table: Path, folder: Path, n: int) -> dict[str, float]:
    """Fit on so many workers of a Dask cluster on this machine."""
    model = folder / f"workers-{n}.fdgnn"
    words = ["fit", str(table), "-o", str(model), "--cluster", "local", "-j", str(n)]
    return run([*words, *COMMAND])[0]


def model_of_cost(sizes: dict[str, Any]) -> dict[str, Any]:
    """Fit seconds on a processor as a + b n, for reading with encoding, and for solving."""
    n = np.array([float(size) for size in sizes])
    found: dict[str, Any] = {}
    for what in ("read_and_encode", "solve"):
        second = np.array([each["again"]["processor_seconds"] for each in sizes.values()])
        first = np.array([each["first"]["processor_seconds"] for each in sizes.values()])
        y = second if what == "solve" else first - second
        slope, fixed = np.polyfit(n, y, 1)
        found[what] = {"fixed_seconds": fixed, "microseconds_a_graph": 1e6 * slope}
    total = np.array([each["first"]["processor_seconds"] for each in sizes.values()])
    found["growth"] = float(np.polyfit(np.log(n), np.log(total), 1)[0])
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--beside", type=int, default=50_000)
    parser.add_argument("--test", type=int, default=N_TEST)
    parser.add_argument("--workers", action="store_true")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    folder = asked.folder or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    source = Path(os.environ["FDGNN_DATA"]) / "chem" / "MOSES.csv.gz"
    others = [n for n in (asked.check, asked.beside) if n]
    paths = write_tables(source, folder, sorted({*asked.sizes, *others}), asked.test)
    found: dict[str, Any] = {"sizes": {}, "load_average": os.getloadavg()[1]}

    def keep(what: str, value: Any) -> None:
        found[what] = value
        print(what, json.dumps(value), flush=True)
        RESULT.write_text(json.dumps(found, indent=1) + "\n")

    def sized(n: int) -> dict[str, Any]:
        model, work = folder / f"{n}.fdgnn", folder / f"work-{n}"
        shutil.rmtree(work, ignore_errors=True)
        first, _ = fitted(paths[n], model, work)
        again, told = fitted(paths[n], folder / "again.fdgnn", work)
        right, scores = accuracy_and_scores(model, paths[0])
        np.save(folder / f"scores-{n}.npy", scores)
        return {"first": first, "again": again, "accuracy": right, "penalty": told["penalties"],
                "held_out_accuracy": told["scores"]["accuracy"]}  # fmt: skip

    for n in asked.sizes:
        keep("sizes", found["sizes"] | {str(n): sized(n)})
    if len(asked.sizes) > 1:
        keep("cost", model_of_cost(found["sizes"]))
    if asked.beside:
        n = asked.beside
        here = found["sizes"].get(str(n)) or sized(n)
        cost = in_memory(paths[n], folder / "memory.fdgnn")
        right, scores = accuracy_and_scores(folder / "memory.fdgnn", paths[0])
        own = np.load(folder / f"scores-{n}.npy")
        keep("beside_memory", {
            "graphs": n, "in_memory": cost, "out_of_core": here, "accuracy_in_memory": right,
            "difference_beside_range": float(np.abs(own - scores).max() / np.ptp(scores)),
            "times": here["first"]["processor_seconds"] / cost["processor_seconds"],
        })  # fmt: skip
        half = here["first"]["seconds"] / 3
        keep("killed", killed_and_repeated(paths[n], folder, folder / f"{n}.fdgnn", half))
    if asked.workers:
        n = asked.beside or asked.sizes[-1]
        one, two = (on_workers(paths[n], folder, workers) for workers in (1, 2))
        keep("workers", {"one": one, "two": two, "faster": one["seconds"] / two["seconds"]})
    if asked.check:
        measured, cost = sized(asked.check), found["cost"]
        told = sum(
            cost[what]["fixed_seconds"] + 1e-6 * cost[what]["microseconds_a_graph"] * asked.check
            for what in ("read_and_encode", "solve")
        )
        keep("check", {"graphs": asked.check, **measured, "predicted_processor_seconds": told})


if __name__ == "__main__":
    main()

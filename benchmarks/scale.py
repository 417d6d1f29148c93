"""Training out of core on molecules of MOSES, up to all 1.58 million: what issue-sized claims cost.

    python -m benchmarks.scale [PART ...] [--folder DIR] [--again] [--sitting SECONDS]

Parts: ``sizes whole memory numbers killed workers lost workers_whole cost``; without one, all that
``results/scale.json`` does not have yet. What is measured is written at once, and tables, models
and encoded chunks stay in the folder, so that a benchmark that is stopped resumes. With
``--sitting`` it stops itself: where others want the machine, a long fit is made in several goes.

The target is whether RDKit counts more than two rings (``numbers``: logP). Rows are drawn at random
from the whole file: it is sorted by series of alike molecules, so that rows further down are of
other series, and harder than any held out of the same rows. 100,000 are for testing; the others
train, all of them (``whole``), or 10,000 to 300,000 of them (``sizes``), always by::

    fdgnn fit TABLE.csv.gz --target y --model wl --iterations 3 --memory 2GB -j 2

then the same again from the encoded chunks. Written are seconds, seconds on a processor of all
processes, the largest sum of proportional memory (PSS) of all processes at a time, and the accuracy
on graphs held out and on the others. ``memory`` fits 50,000 in memory as well; ``killed`` ends a
fit by kill -9 and gives the command again; ``workers`` fits 300,000 on one and two workers of Dask,
``workers_whole`` all, and ``lost`` 300,000 on two of which one is killed in the middle; ``cost``
fits seconds to sizes and tells ``whole``.
``python -m benchmarks.predict_many`` measures prediction.
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
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.predict_many import moses, parsing_seconds
from fdgnn.linear.ridge import MANY

RESULT = Path(__file__).parent.parent / "results" / "scale.json"
SIZES, BESIDE, N_TEST = (10_000, 30_000, 100_000, 300_000), 50_000, 100_000
ON_WORKERS = SIZES[-1]
TEST, WHOLE = "test", "whole"
ROUNDS_OF_WORKERS = 3
COMMAND = ("--model", "wl", "--iterations", "3", "--json", "-q")


# ---------------------------------------------------------------------- the data


def write_tables(folder: Path) -> None:
    """Write a packed table for each size, one of all rows, and one to test."""
    from rdkit import Chem
    from rdkit.Chem.Crippen import MolLogP

    sizes = {str(n): n for n in (*SIZES, BESIDE)}
    if table(folder, WHOLE).exists():
        return
    smiles = list(moses())
    rank = np.random.default_rng(0).permutation(len(smiles)) - N_TEST  # below 0: to test
    with ExitStack() as files:
        opened = {
            name: files.enter_context(gzip.open(folder / f"{name}.part", "wt", compresslevel=1))
            for name in (*sizes, TEST, WHOLE)
        }
        for name, file in opened.items():
            file.write("smiles,y,logp\n" if name == str(BESIDE) else "smiles,y\n")
        for text, place in zip(smiles, rank.tolist(), strict=True):
            molecule = Chem.MolFromSmiles(text, sanitize=False)
            Chem.FastFindRings(molecule)
            line = f"{text},{int(molecule.GetRingInfo().NumRings() > 2)}"
            for name in [n for n, size in sizes.items() if 0 <= place < size]:
                logp = f",{MolLogP(Chem.MolFromSmiles(text)):.4f}" if name == str(BESIDE) else ""
                opened[name].write(f"{line}{logp}\n")
            opened[TEST if place < 0 else WHOLE].write(f"{line}\n")
    for name in (*sizes, TEST, WHOLE):  # the whole one last: it says that all are there
        (folder / f"{name}.part").rename(table(folder, name))


def table(folder: Path, name: str) -> Path:
    """Where a table lies."""
    return folder / f"{name}.csv.gz"


# ---------------------------------------------------------------------- what a command costs


def pss(process: psutil.Process) -> int:
    """Bytes of a process and its children, shared ones counted once."""
    total = 0
    for one in (process, *process.children(recursive=True)):
        try:
            total += one.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total


def run(words: list[str], watch: Any = lambda seconds, process: None) -> tuple[dict, Any]:
    """Run a command of fdgnn; give what it cost, and what it printed.

    `watch` is called every now and then with the seconds since the start and the process.
    """
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "fdgnn", *words]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out, start_new_session=True)
        watched, largest = psutil.Process(process.pid), 0
        while process.poll() is None:
            try:
                largest = max(largest, pss(watched))
                watch(time.perf_counter() - start, watched)
            except psutil.Error:
                pass
            time.sleep(0.5)
        out.seek(0)
        text = out.read()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cost = {
        "seconds": time.perf_counter() - start,
        "processor_seconds": busy,
        "largest_mb": largest / 1e6,
        "load_average": os.getloadavg()[1],
    }
    if process.returncode not in (0, -signal.SIGKILL):
        raise RuntimeError(f"{' '.join(words)} ended with {process.returncode}")
    return cost, json.loads(text) if text.strip() else None


def finished(folder: Path, key: str, words: list[str], seconds: float) -> tuple[dict, Any]:
    """Run a command, if need be in several sittings; give what it cost in all of them.

    A sitting ends by kill -9 after so many seconds. What the last one printed is kept in a file, so
    that a command that is finished is not run again.
    """
    path = folder / f"{key}.cost.json"
    known = json.loads(path.read_text()) if path.exists() else {"sittings": [], "told": None}
    if known["told"] is None:
        cost, known["told"] = run(words, lambda now, process: now > seconds and kill(process))
        known["sittings"].append(cost)
        path.write_text(json.dumps(known))
    if known["told"] is None:
        raise SystemExit(f"{key}: {seconds:g} s are over; give the command again to go on")
    sittings = known["sittings"]
    total = {
        what: sum(each[what] for each in sittings) for what in ("seconds", "processor_seconds")
    }
    most = {what: max(each[what] for each in sittings) for what in ("largest_mb", "load_average")}
    return {"sittings": len(sittings), **total, **most}, known["told"]


def kill(process: psutil.Process) -> None:
    """Kill a command and all of its processes."""
    os.killpg(process.pid, signal.SIGKILL)


def words_of(folder: Path, name: str, model: str, work: str, *more: str) -> list[str]:
    """Give the command that fits out of core."""
    files = [str(table(folder, name)), "-o", str(folder / f"{model}.fdgnn")]
    where = ["--work-dir", str(folder / f"work-{work}"), "--memory", "2GB", "-j", "2"]
    target = [] if "--target" in more else ["--target", "y"]
    return ["fit", *files, *where, *COMMAND, *target, "--force", *more]


def accuracy_and_scores(folder: Path, model: str) -> tuple[float, np.ndarray]:
    """Predict the molecules to test, and compare with their targets."""
    output, tested = folder / f"{model}.predicted.csv", table(folder, TEST)
    words = ["predict", str(folder / f"{model}.fdgnn"), str(tested), "-o", str(output), "--json"]
    run([*words, "-q", "-j", "2", "--force"])
    with output.open() as file, gzip.open(tested, "rt") as truth:
        pairs = [
            (row["prediction"] == true["y"], float(row["score"]))
            for row, true in zip(csv.DictReader(file), csv.DictReader(truth), strict=True)
        ]
    right, scores = zip(*pairs, strict=True)
    return float(np.mean(right)), np.array(scores)


# ---------------------------------------------------------------------- the questions


def sized(folder: Path, name: str, seconds: float) -> dict[str, Any]:
    """Fit a table, and again from what is encoded."""
    if not (folder / f"{name}.cost.json").exists():
        shutil.rmtree(folder / f"work-{name}", ignore_errors=True)
    first, told = finished(folder, name, words_of(folder, name, name, name), seconds)
    second = words_of(folder, name, f"{name}-again", name)
    again, _ = finished(folder, f"{name}-again", second, seconds)
    right, _ = accuracy_and_scores(folder, name)
    return {
        "graphs": told["graphs"], "first": first, "again": again, "told_seconds": told["seconds"],
        "accuracy": right, "held_out_accuracy": told["scores"]["accuracy"],
        "held_out": told["held_out"], "penalty": told["alphas"],
        "work_dir_mb": {
            kind: sum(f.stat().st_size for f in folder.glob(f"work-{name}/{kind}/**/*.npz")) / 1e6
            for kind in ("parsed", "encoded")
        },
    }  # fmt: skip


def whole(folder: Path, seconds: float) -> dict[str, Any]:
    """Fit all rows but those to test; say the share of parsing."""
    parsing = parsing_seconds(folder)
    found = sized(folder, WHOLE, seconds)
    parsing = (parsing + parsing_seconds(folder)) / 2 * found["graphs"]
    share = parsing / found["first"]["processor_seconds"]
    return found | {"parsing_processor_seconds": parsing, "parsing_share": share}


def in_memory(folder: Path, seconds: float) -> dict[str, Any]:
    """Fit the same model in memory, in a process of its own, and compare."""
    script = (
        "import sys; from fdgnn import *\n"
        "t = read_graphs(sys.argv[1], target='y', atoms='typed')\n"
        "m = GraphClassifier(WLCounts(n_iterations=3), 'linear', probability=True,"
        " random_state=0).fit(t.graphs, t.y)\n"
        "save_model(m, sys.argv[2])\n"
    )
    name = str(BESIDE)
    here = sized(folder, name, seconds)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [str(table(folder, name)), str(folder / "memory.fdgnn")]
    subprocess.run([sys.executable, "-c", script, *words], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    right, scores = accuracy_and_scores(folder, "memory")
    _, own = accuracy_and_scores(folder, name)
    return {
        "graphs": BESIDE, "out_of_core": here, "accuracy_in_memory": right,
        "in_memory_processor_seconds": busy,
        "times": here["first"]["processor_seconds"] / busy,
        "difference_beside_range": float(np.abs(own - scores).max() / np.ptp(scores)),
    }  # fmt: skip


def numbers(folder: Path, seconds: float) -> dict[str, Any]:
    """Fit logP, from graphs that are encoded already."""
    name = str(BESIDE)
    cost, told = run(words_of(folder, name, "logp", name, "--target", "logp"))
    return {"graphs": told["graphs"], **cost, "held_out": told["scores"]}


def killed(folder: Path, seconds: float) -> dict[str, Any]:
    """Kill a fit while it reads, and once more while it solves; then let it end."""
    name = str(BESIDE)
    work = folder / "work-killed"
    shutil.rmtree(work, ignore_errors=True)
    words = words_of(folder, name, "killed", "killed")
    kept = {}

    def at(pattern: str, n: int) -> Any:
        def watch(now: float, process: psutil.Process) -> None:
            if len(list(work.glob(pattern))) >= n:
                kill(process)

        return watch

    run(words, at("parsed/*.npz", 2))
    kept["parsed"] = stamps(work, "parsed")
    run(words, at("encoded/*.npz", 5))
    kept["encoded"] = stamps(work, "encoded")
    spent, _ = run(words)
    same = (folder / "killed.fdgnn").read_bytes() == (folder / f"{name}.fdgnn").read_bytes()
    twice = {kind: len(set(old.items()) - set(stamps(work, kind).items())) for kind, old in
             kept.items()}  # fmt: skip
    return {
        "kept": {kind: len(old) for kind, old in kept.items()}, "made_twice": twice,
        "same_bytes": same, **spent,
    }  # fmt: skip


def stamps(work: Path, kind: str) -> dict[str, int]:
    """When each finished part was written."""
    return {str(path): path.stat().st_mtime_ns for path in work.glob(f"{kind}/**/*.npz")}


def on_workers(
    folder: Path,
    n: int,
    model: str,
    watch: Any = lambda now, process: None,
    name: str = str(ON_WORKERS),
) -> dict:
    """Fit on workers of a Dask cluster on this machine."""
    files = [str(table(folder, name)), "-o", str(folder / f"{model}.fdgnn")]
    work = folder / f"work-{model}"
    shutil.rmtree(work, ignore_errors=True)
    where = ["--cluster", "local", "-j", str(n), "--work-dir", str(work)]
    words = ["fit", *files, *where, "--target", "y", *COMMAND, "--force"]
    return run(words, watch)[0]


def workers(folder: Path, seconds: float) -> dict[str, Any]:
    """Compare one worker with two, in turns; of each the fastest counts: the machine is noisy."""
    tries = [
        {n: on_workers(folder, n, f"workers-{n}") for n in (1, 2)} for _ in range(ROUNDS_OF_WORKERS)
    ]
    one, two = (min((each[n] for each in tries), key=lambda t: t["seconds"]) for n in (1, 2))
    return {
        "graphs": ON_WORKERS, "one": one, "two": two, "faster": one["seconds"] / two["seconds"],
        "all_seconds": [[each[n]["seconds"] for n in (1, 2)] for each in tries],
    }  # fmt: skip


def workers_whole(folder: Path, seconds: float) -> dict[str, Any]:
    """Compare one worker with two on all graphs."""
    one, two = (on_workers(folder, n, f"whole-on-{n}", name=WHOLE) for n in (1, 2))
    return {"one": one, "two": two, "faster": one["seconds"] / two["seconds"]}


def lost(folder: Path, seconds: float) -> dict[str, Any]:
    """Kill one of two workers in the middle, and compare with the model of a fit without loss."""
    usual = json.loads(RESULT.read_text())["workers"]["two"]["seconds"]
    victims: list[int] = []

    def watch(now: float, process: psutil.Process) -> None:
        if now > 0.6 * usual and not victims:
            busiest = max(process.children(recursive=True), key=lambda one: one.cpu_times().user)
            victims.append(busiest.pid)
            busiest.kill()

    cost = on_workers(folder, 2, "lost", watch)
    _, scores = accuracy_and_scores(folder, "lost")
    differences = {}
    for name in ("workers-2", str(ON_WORKERS)):  # a cluster that lost nobody, and this machine
        _, own = accuracy_and_scores(folder, name)
        differences[name] = float(np.abs(own - scores).max() / np.ptp(scores))
    return {"killed": len(victims), "differences_beside_range": differences, **cost}


def cost(found: dict[str, Any]) -> dict[str, Any]:
    """Fit seconds on a processor as a + b n to sizes with one fold held out; tell the largest."""
    sizes = [each for each in found["sizes"].values() if each["graphs"] > MANY]
    n = np.array([float(each["graphs"]) for each in sizes])
    if len(n) < 2:
        return {"sizes_measured": len(n)}
    told: dict[str, Any] = {}
    for what in ("read_and_encode", "solve"):
        again = np.array([each["again"]["processor_seconds"] for each in sizes])
        first = np.array([each["first"]["processor_seconds"] for each in sizes])
        slope, fixed = np.polyfit(n, again if what == "solve" else first - again, 1)
        told[what] = {"fixed_seconds": fixed, "microseconds_a_graph": 1e6 * slope}
    if "whole" in found:
        every = [*found["sizes"].values(), found["whole"]]
        graphs = np.log([each["graphs"] for each in every])
        spent = np.log([each["first"]["processor_seconds"] for each in every])
        told["growth"] = float(np.polyfit(graphs, spent, 1)[0])
        told["whole_processor_seconds"] = sum(
            each["fixed_seconds"] + 1e-6 * each["microseconds_a_graph"] * found["whole"]["graphs"]
            for each in (told["read_and_encode"], told["solve"])
        )
    return told


def unfinished(folder: Path) -> dict[str, Any]:
    """Sittings of commands that are to be gone on with, and the parts that are kept of them."""
    found = {}
    for path in folder.glob("*.cost.json"):
        known, name = json.loads(path.read_text()), path.name.split(".")[0]
        if known["told"] is None:
            kept = {
                kind: len(stamps(folder / f"work-{name}", kind)) for kind in ("parsed", "encoded")
            }
            found[name] = {"sittings": known["sittings"], "parts_kept": kept}
    return found


PARTS = {
    "whole": whole, "memory": in_memory, "numbers": numbers, "killed": killed, "workers": workers,
    "lost": lost, "workers_whole": workers_whole,
}  # fmt: skip


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["sizes", *PARTS, "cost", []], metavar="PART")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "fdgnn-scale"))
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--sitting", type=float, default=float("inf"), metavar="SECONDS")
    parser.add_argument("--again", action="store_true", help="measure what is there, too")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if asked.again:
        for path in asked.folder.glob("*.cost.json"):
            path.unlink()
    write_tables(asked.folder)
    found: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}

    def keep(what: str, value: Any) -> None:
        found[what] = value
        print(what, json.dumps(value), flush=True)
        RESULT.write_text(json.dumps(found, indent=1) + "\n")

    keep("unfinished", unfinished(asked.folder))
    for part in asked.parts or ["sizes", *PARTS, "cost"]:
        if part == "sizes":
            for n in asked.sizes:
                sizes = found.get("sizes", {})
                if asked.again or str(n) not in sizes:
                    keep("sizes", sizes | {str(n): sized(asked.folder, str(n), asked.sitting)})
        elif part == "cost":
            keep("cost", cost(found))
        elif asked.again or part not in found:
            keep(part, PARTS[part](asked.folder, asked.sitting))


if __name__ == "__main__":
    main()

"""``fdgnn predict`` on many SMILES with one process, relative to RDKit's parsing.

``python -m benchmarks.predict_many [N]`` computes a target for 12,000 molecules of MOSES (more
than two rings), fits WL features with the linear readout, writes the first N (all, 1.58 million)
other SMILES to a gzipped CSV, and predicts it on the command line, ``-j 1``. RDKit's parsing alone
(``MolFromSmiles`` of the same rows, in a loop) is measured in a separate process, before and after
on a sample, in CPU seconds, because the machine may be busy. Both, the difference, and the largest
memory are printed and written to ``results/predict_many.json``. With ``--rbf N``, a model with
the RBF readout of N training molecules is also measured.
"""

from __future__ import annotations

import argparse
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
from typing import Any

from fdgnn import GraphClassifier, KernelRidge, Ridge, WLCounts, save_model

N_TRAINING, N_SAMPLE = 12_000, 20_000
RESULT = Path(__file__).parent.parent / "results" / "predict_many.json"
PARSE = """
import sys, time
from rdkit import Chem, rdBase
rdBase.DisableLog("rdApp.*")
smiles = open(sys.argv[1]).read().split()
start = time.process_time()
for each in smiles:
    Chem.MolFromSmiles(each)
print((time.process_time() - start) / len(smiles))
"""


def moses() -> Any:
    path = Path(os.environ["FDGNN_DATA"]) / "chem" / "MOSES.csv.gz"
    with gzip.open(path, "rt") as lines:
        next(lines)
        for line in lines:
            yield line.split(",")[0].strip()


def fitted(n_training: int, readout: Ridge | KernelRidge) -> GraphClassifier:
    from rdkit import Chem

    smiles = list(islice(moses(), n_training))
    molecules = [Chem.MolFromSmiles(each) for each in smiles]
    y = [int(mol.GetRingInfo().NumRings() > 2) for mol in molecules]
    model = GraphClassifier(WLCounts(), readout, probability=True, random_state=0)
    return model.fit(smiles, y)


def parsing_seconds(folder: Path) -> float:
    """Seconds of the processor that RDKit needs for one SMILES."""
    path = folder / "sample.txt"
    path.write_text("\n".join(islice(moses(), N_TRAINING, N_TRAINING + N_SAMPLE)))
    run = subprocess.run(
        [sys.executable, "-c", PARSE, str(path)], check=True, capture_output=True, text=True
    )
    return float(run.stdout)


def predicted(model: Path, table: Path) -> dict[str, float]:
    """Run the command; give what it cost."""
    output = table.with_name("predicted.csv")
    words = ["predict", str(model), str(table), "-o", str(output), "-j", "1", "--json", "-q"]
    words += ["--force"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-m", "fdgnn", *words], check=True, capture_output=True, text=True
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "rows": json.loads(run.stdout)["rows"],
        "seconds": seconds,
        "processor_seconds": busy,
        "largest_mb": after.ru_maxrss / 1024,
    }


def measured(model: GraphClassifier, table: Path, folder: Path) -> dict[str, float]:
    """Predict a table; tell parsing apart by what it costs just before and just after."""
    path = folder / "model.fdgnn"
    save_model(model, path)
    before = parsing_seconds(folder)
    cost = predicted(path, table)
    parsing = (before + parsing_seconds(folder)) / 2 * cost["rows"]
    beside = cost["processor_seconds"] - parsing
    return cost | {
        "parsing_seconds": parsing,
        "parsing_share": parsing / cost["processor_seconds"],
        "beside_parsing_seconds": beside,
        "beside_parsing_microseconds_a_row": 1e6 * beside / cost["rows"],
    }


def write_table(path: Path, n_rows: int | None) -> None:
    with gzip.open(path, "wt", compresslevel=1) as table:
        table.write("smiles\n")
        for smiles in islice(moses(), n_rows):
            table.write(f"{smiles}\n")


def main() -> None:
    """Measure, print and write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("n_rows", nargs="?", type=int)
    options.add_argument("--rbf", type=int, default=0)
    options.add_argument("--rbf-rows", type=int, default=50_000)
    asked = options.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "all.csv.gz", asked.n_rows)
        model = fitted(N_TRAINING, Ridge(alpha=1.0))
        found["linear"] = measured(model, folder / "all.csv.gz", folder)
        if asked.rbf:
            write_table(folder / "some.csv.gz", asked.rbf_rows)
            model = fitted(asked.rbf, KernelRidge(alpha=1.0))
            found[f"RBF, {asked.rbf} examples"] = measured(model, folder / "some.csv.gz", folder)
    print(json.dumps(found, indent=1))
    RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

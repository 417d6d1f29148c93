"""Run the evaluations for the tables in this folder: ``python results/beyond/run.py``.

Every result is the ``evaluation.json`` of one command,

    fdgnn evaluate NAME --model MODEL --seed SEED --out runs/beyond/NAME-MODEL-SEED

copied to NAME-MODEL-SEED.json in this folder. Existing results are kept, and interrupted runs
resume. The paper's model uses ``--protocol quick``, 20 configurations x 3 random initializations.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
DATASETS = (
    "MUTAG", "PTC_MR", "COX2", "IMDB-BINARY", "IMDB-MULTI", "PROTEINS", "REDDIT-BINARY", "NCI1",
    "COLLAB",
)  # fmt: skip
MODELS = ("auto", "wl", "union", "paper")
SEEDS = (0, 1, 2)


def main() -> None:
    """Run all commands whose result is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="*", default=DATASETS)
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--runs", type=Path, default=Path("runs/beyond"))
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    for name, model, seed in itertools.product(asked.datasets, asked.models, asked.seeds):
        result = HERE / f"{name}-{model}-{seed}.json"
        if not result.exists():
            out = asked.runs / result.stem
            more = ["--protocol", "quick"] if model == "paper" else []
            command = ["evaluate", name, "--model", model, "--seed", str(seed), "--out", str(out)]
            command += ["--jobs", str(asked.jobs), "--no-report", *more]
            subprocess.run([sys.executable, "-m", "fdgnn", *command, "--quiet"], check=True)
            shutil.copy(out / "evaluation.json", result)


if __name__ == "__main__":
    main()

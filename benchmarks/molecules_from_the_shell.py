"""``fdgnn fit`` and ``fdgnn predict`` on molecules, with default options.

    python -m benchmarks.molecules_from_the_shell [--data FOLDER] [--only BACE HIV-whole ...]

Each run writes a training and a test table, calls both commands with no option but the target and
``--scoring roc_auc`` (in regression, the target alone), and scores the predictions. Simple models
are trained and tested on the same rows.

* Classification, scaffold split 80/10/10: the rarest Murcko scaffolds are the test part. The middle
  tenth is not used for selection; it is either added to the training part (``NAME-scaffold-90``)
  or left out (``NAME-scaffold``). ROC AUC of logistic regression on Morgan counts.
* Classification, random split 80/20, several seeds (one for HIV): the same.
* Regression, random split 80/20: RMSE of a support vector machine on Morgan bits whose kernel
  width and C are tuned on a fifth of its training part.
* ``HIV-whole``, ``AQSOLDB-whole``: ``fit`` of all rows in one process: elapsed and CPU seconds, and
  the largest memory (PSS). The time of reading the table is measured separately.

Rows that RDKit cannot parse are left out by all models; the target of HIV is active (CM, CA) or
not. Results are written to results/molecules_from_the_shell.json as soon as they are finished;
existing results are computed again only if they are named.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.svm import SVR

from benchmarks.scale import pss
from fdgnn.evaluation.molecules import morgan_counts

OUT = Path(__file__).parent.parent / "results" / "molecules_from_the_shell.json"
AT_LEAST = {"BACE": 82.0, "BBBP": 70.5, "HIV": 79.0}  # ROC AUC of scaffold splits
NUMBERS = ("LIPO", "AQSOLDB")
SEEDS = {"BACE": 5, "BBBP": 5, "HIV": 1}  # of random splits
WHOLE = ("HIV-whole", "AQSOLDB-whole")


class Table(NamedTuple):
    """SMILES that RDKit can read, and their targets."""

    smiles: list[str]
    y: Any


class Run(NamedTuple):
    """What a command printed, and what it took."""

    printed: str
    seconds: float
    cpu_seconds: float
    megabytes: float


def load(path: Path, classes: bool) -> Table:
    """Read the rows of a table."""
    from rdkit import Chem, RDLogger

    RDLogger.DisableLog("rdApp.*")
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if Chem.MolFromSmiles(row["smiles"])]
    values = [row["target"] for row in rows]
    if classes:
        y = np.array([value not in ("0", "CI") for value in values]).astype(int)
    else:
        y = np.array(values, dtype=float)
    return Table([row["smiles"] for row in rows], y)


def write(path: Path, table: Table, rows: Any, target: bool = True) -> None:
    """Write some rows; without the target for prediction."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "target"] if target else ["smiles"])
        for i in rows:
            writer.writerow([table.smiles[i], table.y[i]] if target else [table.smiles[i]])


def fdgnn(*words: object) -> Run:
    """Run the command, and watch its memory."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "fdgnn", *map(str, words)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    largest = [0.0]
    watch = threading.Thread(target=_watch, args=(process, largest), daemon=True)
    watch.start()
    out, err = process.communicate()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    watch.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: {err}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(out, seconds, cpu, largest[0])


def _watch(process: subprocess.Popen[str], largest: list[float]) -> None:
    while process.poll() is None:
        with suppress(psutil.Error):  # it may have just ended
            largest[0] = max(largest[0], pss(psutil.Process(process.pid)) / 1e6)
        time.sleep(0.2)


def fitted_and_asked(table: Table, train: Any, test: Any, scoring: list[str]) -> tuple[Any, Run]:
    """Fit and predict from the shell; give scores or predictions of the test rows."""
    with tempfile.TemporaryDirectory() as folder:
        model, learned = Path(folder) / "model.fdgnn", Path(folder) / "train.csv"
        asked, answers = Path(folder) / "test.csv", Path(folder) / "predictions.csv"
        write(learned, table, train)
        write(asked, table, test, target=False)
        run = fdgnn("fit", learned, "--target", "target", *scoring, "-o", model, "--json")
        fdgnn("predict", model, asked, "-o", answers)
        with answers.open(encoding="utf-8") as file:
            column = "score" if scoring else "prediction"
            found = [float(row[column]) for row in csv.DictReader(file)]
    return np.array(found), run


# ---------------------------------------------------------------------- runs


def classes(name: str, table: Table, train: Any, test: Any) -> dict[str, Any]:
    """ROC AUC on test rows, ours and that of Morgan counts."""
    scores, run = fitted_and_asked(table, train, test, ["--scoring", "roc_auc"])
    X, y = morgan_counts(table.smiles), table.y
    theirs = LogisticRegression(max_iter=2000).fit(X[train], y[train]).decision_function(X[test])
    told = json.loads(run.printed)
    return {
        "dataset": name, "n_train": len(train), "n_test": len(test),
        "ROC AUC": 100 * roc_auc_score(y[test], scores),
        "Morgan counts, logistic regression": 100 * roc_auc_score(y[test], theirs),
        "reported by fit": told["scores"], "base models": told["base_models"],
        "CPU seconds of fit": run.cpu_seconds, "megabytes": run.megabytes,
    }  # fmt: skip


def numbers(name: str, table: Table, train: Any, test: Any) -> dict[str, Any]:
    """RMSE on test rows, ours and that of a support vector machine."""
    found, run = fitted_and_asked(table, train, test, [])
    theirs, chosen = tuned_svr(morgan_bits(table.smiles), table.y, train, test)
    told = json.loads(run.printed)
    return {
        "dataset": name, "n_train": len(train), "n_test": len(test),
        "RMSE": float(np.sqrt(((found - table.y[test]) ** 2).mean())),
        "Morgan bits, SVM": theirs, "SVM": chosen,
        "reported by fit": told["scores"], "base models": told["base_models"],
        "CPU seconds of fit": run.cpu_seconds, "megabytes": run.megabytes,
    }  # fmt: skip


def whole(dataset: str, table: Table) -> dict[str, Any]:
    """Train on all rows with one process."""
    with tempfile.TemporaryDirectory() as folder:
        data, model = Path(folder) / "data.csv", Path(folder) / "model.fdgnn"
        write(data, table, range(len(table.y)))
        reading = (
            "import time; from fdgnn import read_graphs; s = time.process_time();"
            f"read_graphs({str(data)!r}, target='target', atoms='typed');"
            "print(time.process_time() - s)"
        )
        alone = subprocess.run([sys.executable, "-c", reading], capture_output=True, check=True)
        scoring = [] if dataset in NUMBERS else ["--scoring", "roc_auc"]
        run = fdgnn("fit", data, "--target", "target", *scoring, "--json", "-o", model)
    told = json.loads(run.printed)
    return {
        "dataset": dataset, "n_train": len(table.y), "seconds": run.seconds,
        "CPU seconds": run.cpu_seconds, "reading, CPU seconds": float(alone.stdout),
        "largest sum of megabytes": run.megabytes, "load": os.getloadavg()[0],
        "reported by fit": told["scores"], "Morgan, reported by fit": scores_of(told, "morgan"),
    }  # fmt: skip


def scores_of(told: dict[str, Any], baseline: str) -> dict[str, float]:
    """Return the scores of a baseline that fit has printed."""
    (target,) = told["evaluation"]["targets"]
    (found,) = [each for each in target["baselines"] if each["name"] == baseline]
    return {each["words"]: each["mean"] for each in found["scores"]}


def scaffold_split(smiles: list[str], with_middle: bool = False) -> tuple[Any, Any]:
    """Return the training and the test part, by scaffolds of falling size: the last tenth.

    The tenth before it is left out, or belongs to the training part.
    """
    from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

    groups: dict[str, list[int]] = {}
    for i, one in enumerate(smiles):
        groups.setdefault(MurckoScaffoldSmiles(one), []).append(i)
    parts: dict[str, list[int]] = {"train": [], "middle": [], "test": []}
    seen = 0
    for members in sorted(groups.values(), key=lambda m: (len(m), m[0]), reverse=True):
        fits = len(parts["train"]) + len(members) <= 0.8 * len(smiles)
        before = len(parts["train"]) + len(parts["middle"])
        middle = before + len(members) <= 0.9 * len(smiles)
        parts["train" if fits else "middle" if middle else "test"] += members
        seen += len(members)
    assert seen == len(smiles)
    training = parts["train"] + (parts["middle"] if with_middle else [])
    return np.array(training), np.array(parts["test"])


def tuned_svr(X: Any, y: Any, train: Any, test: Any) -> tuple[float, dict[str, float]]:
    """Return the RMSE of an RBF support vector machine that is tuned on its training part."""
    order = np.random.default_rng(0).permutation(train)  # a table may be sorted
    held_out, rest = order[: len(order) // 5], order[len(order) // 5 :]
    unit = _distances(X[order], X[order]).mean()

    def error(gamma: float, C: float, fitted: Any, tested: Any) -> float:
        def kernel(rows: Any) -> Any:
            return np.exp(_distances(X[rows], X[fitted]) * (-gamma / unit))

        machine = SVR(kernel="precomputed", C=C, epsilon=0.1, cache_size=1000)
        machine.fit(kernel(fitted), y[fitted])
        return _rmse(machine.predict(kernel(tested)), y[tested])

    grid = list(itertools.product((0.3, 1.0, 3.0), (1.0, 5.0, 25.0)))
    gamma, C = min(grid, key=lambda point: error(*point, rest, held_out))
    return error(gamma, C, train, test), {"gamma": gamma, "C": C}


def _distances(A: Any, B: Any) -> Any:
    """Squared distances of the rows of `A` to those of `B`."""
    return np.maximum((A**2).sum(1)[:, None] + (B**2).sum(1) - 2 * A @ B.T, 0.0)


def _rmse(predicted: Any, y: Any) -> float:
    return float(np.sqrt(((predicted - y) ** 2).mean()))


def morgan_bits(smiles: list[str]) -> Any:
    """Return Morgan fingerprints of radius 2 in 2048 columns."""
    from rdkit.Chem import MolFromSmiles
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

    read = GetMorganGenerator(radius=2, fpSize=2048).GetFingerprintAsNumPy
    return np.array([read(MolFromSmiles(one)) for one in smiles], dtype=np.float64)


def random_split(n: int, seed: int) -> tuple[Any, Any]:
    """Train and test part: a random fifth is tested."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n // 5 :]), np.sort(order[: n // 5])


def measured(name: str, folder: Path) -> dict[str, Any]:
    """Carry out one run by its name."""
    dataset, _, part = name.partition("-")
    table = load(folder / f"{dataset}.csv", dataset not in NUMBERS)
    if name in WHOLE:
        return whole(dataset, table)
    if part.startswith("scaffold"):
        train, test = scaffold_split(table.smiles, part == "scaffold-90")
        return classes(dataset, table, train, test) | {"at least": AT_LEAST[dataset]}
    train, test = random_split(len(table.y), int(part.removeprefix("random-")))
    return (numbers if dataset in NUMBERS else classes)(dataset, table, train, test)


def all_runs() -> list[str]:
    """Names of all runs."""
    found = [f"{name}-scaffold{part}" for name in AT_LEAST for part in ("", "-90")]
    found += [f"{name}-random-{seed}" for name in AT_LEAST for seed in range(SEEDS[name])]
    return [*found, *(f"{name}-random-0" for name in NUMBERS), *WHOLE]


def main() -> None:
    """Carry out the runs that are asked for, or all that are not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "chem"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--only", nargs="*", help="BACE, BACE-scaffold, BACE-random-0, HIV-whole")
    options = parser.parse_args()
    done = json.loads(OUT.read_text()) if OUT.exists() else {}
    asked = [n for n in all_runs() if any(n.startswith(part) for part in options.only or [])]
    for name in asked if options.only else [n for n in all_runs() if n not in done]:
        found = measured(name, options.data)
        print(name, json.dumps(found), flush=True)
        done = json.loads(OUT.read_text()) if OUT.exists() else {}
        OUT.write_text(json.dumps(done | {name: found}, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

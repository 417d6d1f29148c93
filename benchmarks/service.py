"""`fdgnn serve` with eight clients, compared with a service around Morgan fingerprints.

    python -m benchmarks.service [--output results/service.json]

Both run in uvicorn with one worker on this machine; each of eight clients keeps its connection
open and sends its next request after each response. Requests have one molecule or a
hundred. Memory is the resident set of the service, after a tenth and after all of the predictions.
Models are fitted on the molecules of BACE (FDGNN_DATA), and responses are compared with theirs.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from fdgnn import AutoGraphClassifier, FDGNNClassifier, GraphClassifier, read_graphs, save_model

BACE = Path(os.environ.get("FDGNN_DATA", ""), "chem", "BACE.csv")
N_CLIENTS = 8
MODELS = {
    "reservoir": FDGNNClassifier(probability=True, random_state=0),
    "wl": GraphClassifier("wl", probability=True, random_state=0),
    "auto": AutoGraphClassifier(probability=True, random_state=0),
}
SHARES = {"reservoir": 1.0, "wl": 1.0, "auto": 0.05}  # of the predictions whose memory is measured
BASELINES = ("morgan-logistic", "morgan-forest")


# ---------------------------------------------------------------------- the service of scikit-learn


def morgan_app() -> Any:
    """Return the ASGI application of a scikit-learn model of Morgan fingerprints, fitted now."""
    from rdkit import Chem
    from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    generator = GetMorganGenerator(radius=2, fpSize=2048)

    def features(smiles: list[str]) -> np.ndarray:
        molecules = map(Chem.MolFromSmiles, smiles)
        return np.array([generator.GetFingerprintAsNumPy(each) for each in molecules], np.float32)

    kinds = {
        "morgan-logistic": LogisticRegression(max_iter=1000),
        "morgan-forest": RandomForestClassifier(n_estimators=100, random_state=0),
    }
    smiles, y = molecules()
    model = kinds[os.environ["BENCHMARK_MODEL"]].fit(features(smiles), y)

    def predict(body: bytes) -> list[dict[str, float]]:
        chances = model.predict_proba(features(json.loads(body)["smiles"]))
        return [
            {"prediction": int(model.classes_[each.argmax()]), "probability_1": float(each[1])}
            for each in chances
        ]

    async def answer(request: Any) -> JSONResponse:
        return JSONResponse({"predictions": await run_in_threadpool(predict, await request.body())})

    return Starlette(routes=[Route("/predict", answer, methods=["POST"])])


def molecules() -> tuple[list[str], list[int]]:
    with BACE.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return [row["smiles"] for row in rows], [int(row["target"]) for row in rows]


# ---------------------------------------------------------------------- clients


@contextmanager
def served(command: list[str], **environment: str) -> Iterator[tuple[psutil.Process, int]]:
    """Start a service on a free port; yield its process and port."""
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], stderr=log, env=os.environ | environment
        )
        try:
            text = ""
            while "running on" not in text:
                assert process.poll() is None, text
                time.sleep(0.1)
                log.seek(0)
                text = log.read()
            port = text.split("running on http://127.0.0.1:")[1].split()[0]
            yield psutil.Process(process.pid), int(port)
        finally:
            process.terminate()
            process.wait(60)


def ask(port: int, requests: list[list[str]]) -> tuple[list[float], list[Any]]:
    """Send requests one after the other; return the seconds of each, and the predictions."""
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    seconds, found = [], []
    for smiles in requests:
        body = json.dumps({"smiles": smiles})
        begun = time.perf_counter()
        connection.request("POST", "/predict", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        seconds.append(time.perf_counter() - begun)
        assert answer.status == 200, content
        found += [row["prediction"] for row in json.loads(content)["predictions"]]
    connection.close()
    return seconds, found


def measured(port: int, smiles: list[str], n_rows: int, n_requests: int) -> dict[str, float]:
    """Return requests per second and the percentiles of their milliseconds, with eight clients."""
    start = np.arange(n_requests) * n_rows % (len(smiles) - n_rows)
    requests = [smiles[i : i + n_rows] for i in start]
    begun = time.perf_counter()
    with ThreadPoolExecutor(N_CLIENTS) as pool:
        each = [requests[i::N_CLIENTS] for i in range(N_CLIENTS)]
        seconds = [s for found, _ in pool.map(lambda own: ask(port, own), each) for s in found]
    took = time.perf_counter() - begun
    cuts = statistics.quantiles(seconds, n=100)
    return {
        "requests_per_second": round(n_requests / took, 1),
        "rows_per_second": round(n_requests * n_rows / took, 1),
        "p50_ms": round(1e3 * cuts[49], 2),
        "p99_ms": round(1e3 * cuts[98], 2),
    }


def benchmark(
    name: str, process: psutil.Process, port: int, smiles: list[str], expected: Any, options: Any
) -> dict[str, Any]:
    found = ask(port, [smiles[i : i + 100] for i in range(0, len(smiles), 100)])[1]  # warm
    assert expected is None or found == expected
    result: dict[str, Any] = {
        "one molecule": measured(port, smiles, 1, options.requests),
        "a hundred molecules": measured(port, smiles, 100, max(options.requests // 20, N_CLIENTS)),
    }
    if name in SHARES:
        wanted = max(int(SHARES[name] * options.predictions), 2000)
        result["memory_mb"] = {}
        for n, so_far in ((wanted // 10, wanted // 10), (wanted - wanted // 10, wanted)):
            measured(port, smiles, 100, n // 100)
            used = round(process.memory_info().rss / 1e6, 1)
            result["memory_mb"][f"after {so_far:,} predictions"] = used
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--predictions", type=int, default=200_000)
    parser.add_argument("--only", default=",".join([*MODELS, *BASELINES]), metavar="NAMES")
    parser.add_argument("--output", type=Path, help="others that it has are kept")
    options = parser.parse_args()
    smiles, _ = molecules()
    found: dict[str, Any] = {}
    if options.output and options.output.exists():
        found = json.loads(options.output.read_text(encoding="utf-8"))
    only = options.only.split(",")
    table = read_graphs(BACE, target="target")
    with tempfile.TemporaryDirectory() as folder:
        for name in (each for each in MODELS if each in only):
            model = MODELS[name]
            model.fit(table.graphs, table.y)
            model.input_schema_ = table.schema
            path = f"{folder}/{name}.fdgnn"
            save_model(model, path)
            expected = [int(each) for each in model.predict(table.graphs)]
            with served(["fdgnn", "serve", path, "--port", "0"]) as (process, port):
                found[name] = benchmark(name, process, port, smiles, expected, options)
            print(name, json.dumps(found[name]), flush=True)
    app = [
        "uvicorn",
        "benchmarks.service:morgan_app",
        "--factory",
        "--port",
        "0",
        "--no-access-log",
    ]
    for name in (each for each in BASELINES if each in only):
        with served(app, BENCHMARK_MODEL=name) as (process, port):
            found[name] = benchmark(name, process, port, smiles, None, options)
        print(name, json.dumps(found[name]), flush=True)
    found["load"] = round(os.getloadavg()[0], 2)  # of the machine: how busy it was
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

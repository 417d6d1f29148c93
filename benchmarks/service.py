"""How long the service of docs/tutorials/deploy.md takes for one graph, connection included.

    python -m benchmarks.service [--output results/service.json]

The code is the page's own. Client and server are one process here, so its CPU time has both.
"""

from __future__ import annotations

import argparse
import contextlib
import doctest
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from fdgnn import AutoGraphClassifier, FDGNNClassifier, Graph, GraphClassifier, load_tu, save_model

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tutorials" / "deploy.md"
MODELS = {
    "reservoir": FDGNNClassifier(probability=True, random_state=0),
    "wl": GraphClassifier("wl", probability=True, random_state=0),
    "auto": AutoGraphClassifier(probability=True, random_state=0),
}


def names_of_the_page() -> dict:
    """Run the page's Python up to its first request; the model file must be there."""
    names: dict = {"__name__": "service"}
    for example in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")):
        if example.source.startswith("ask("):
            return names
        exec(compile(example.source, PAGE.name, "exec"), names)
    raise SystemExit(f"{PAGE} has no request")


def timed(name: str, n_requests: int) -> dict[str, float]:
    found, y = load_tu("MUTAG")
    graphs = [Graph(graph.edge_index, labels=graph.labels) for graph in found]  # without bonds
    model = MODELS[name].fit(graphs, y)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        save_model(model, "model.fdgnn")
        names = names_of_the_page()
    asked = [
        {"edge_index": graph.edge_index.tolist(), "labels": graph.labels.tolist()}
        for graph in graphs
    ]
    seconds, before = [], time.process_time()
    for i in range(n_requests):
        begun = time.perf_counter()
        status, answer = names["ask"](asked[i % len(asked)])
        seconds.append(time.perf_counter() - begun)
        assert status == 200, (i, answer)
    used = time.process_time() - before
    names["connection"].close()
    names["server"].shutdown()
    names["server"].server_close()
    return {
        "median_ms": round(1e3 * statistics.median(seconds), 3),
        "cpu_ms": round(1e3 * used / n_requests, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    found = {name: timed(name, options.requests) for name in MODELS}
    found["load"] = os.getloadavg()[0]  # of the machine: how busy it was
    print(json.dumps(found, indent=1))
    if options.output:
        options.output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

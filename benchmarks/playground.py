"""The playground in Chromium: training time on MUTAG, and its SMILES parser compared with RDKit.

``python -m benchmarks.playground --json results/playground.json``; with ``--only`` the other part
of the file is kept. ``--picture FILE`` takes a picture of the page for the documentation.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn import FDGNNClassifier, GraphClassifier, load_tu, playground, read_graphs
from fdgnn.datasets.home import data_home

MOLECULES = 1500  # of each file, at most
_READ = """(all) => all.map((smiles) => {
  const { stage } = playground;
  try {
    stage.start(playground.read(smiles).sketch);
  } catch (error) {
    return null;
  }
  const { labels, edges, edgeLabels } = stage.graph();
  return [labels, edges.map(([u, v], e) => [Math.min(u, v), Math.max(u, v), edgeLabels[e]]).sort()];
})"""
_TRAIN = """async (settings) => {
  const form = document.getElementById("sliders"), { dataset } = document.getElementById("train");
  for (const [name, value] of Object.entries(settings)) form.elements[name].value = value;
  delete dataset.trained;
  form.elements.rho.dispatchEvent(new Event("input"));
  while (!dataset.trained) await new Promise((go) => setTimeout(go, 5));
  return [Number(dataset.milliseconds), playground.train.result.times.all];
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--only", choices=["training", "smiles"])
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--headless", "--no-sandbox"]
        )
        if arguments.picture:
            picture(browser, Path(folder), arguments.picture)
            return
        found: dict[str, Any] = {}
        if arguments.only != "smiles":
            found["training"] = training(browser, Path(folder), arguments.moves)
        if arguments.only != "training":
            found["smiles"] = [smiles(browser, Path(folder), name) for name in ("BACE", "BBBP")]
        browser.close()
    print(json.dumps(found, indent=1))
    if arguments.json:
        known = json.loads(arguments.json.read_text("utf-8")) if arguments.json.exists() else {}
        arguments.json.write_text(json.dumps(known | found, indent=1) + "\n", encoding="utf-8")


def opened(browser: Any, path: Path) -> Any:
    page = browser.new_page()
    page.set_default_timeout(600_000)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    return page


def picture(browser: Any, folder: Path, output: Path) -> None:
    """The page of ``fdgnn playground MUTAG``, as it opens."""
    graphs, y = load_tu("MUTAG")
    page = opened(
        browser, playground.write(folder / "mutag.html", None, graphs, y, dataset="MUTAG")
    )
    page.set_viewport_size({"width": 1280, "height": 772})
    page.screenshot(path=output)


# Sliders of the page: the first and the last place, how many steps there are, and where they begin.
SLIDERS = {
    "rho": (0.02, 1.5, 75, 0.9), "omega1": (0.02, 2, 100, 1.0), "omega": (0.02, 2, 100, 1.0),
    "depth": (1, 6, 6, 3), "units": (5, 100, 20, 50), "strength": (-6, 3, 37, -3),
    "seed": (0, 50, 51, 0),
}  # fmt: skip


def training(browser: Any, folder: Path, moves: int) -> dict[str, Any]:
    """Milliseconds from the move of a slider to the shown result, and inside of the worker.

    Single sliders are moved over their whole range, the others stay where the page begins; then
    all sliders are moved at once, at random.
    """
    graphs, y = load_tu("MUTAG")
    model = FDGNNClassifier(random_state=0).fit(graphs, y)
    page = opened(browser, playground.write(folder / "mutag.html", model, graphs, y))
    page.click("#tab-train")
    page.wait_for_selector("#train[data-trained]")
    begin = {name: first for name, (_, _, _, first) in SLIDERS.items()}
    single = [
        {**begin, name: place}
        for name, (low, high, _, _) in SLIDERS.items()
        for place in np.linspace(low, high, 7)
    ]
    rng = np.random.default_rng(0)
    together = [
        {name: rng.choice(np.linspace(low, high, n)) for name, (low, high, n, _) in SLIDERS.items()}
        for _ in range(moves)
    ]
    found = {
        "one slider": timed(page, single),
        "all sliders at once": timed(page, together),
        "load": os.getloadavg()[0],
    }
    page.close()
    return found


def timed(page: Any, moves: list[dict[str, float]]) -> dict[str, Any]:
    """Times of moves; numbers that are whole for a slider are made so by the page.

    Processor time is that of all threads of the page, compilation and cleaning up included. It is
    about the time that a move takes on a machine without other work.
    """
    found = []
    for move in moves:
        before = _processor_ms()
        found.append([*page.evaluate(_TRAIN, move), _processor_ms() - before])
    shown, worked, used = np.array(found).T
    slowest = moves[int(used.argmax())]
    return {
        "moves": len(moves),
        "shown_ms": _spread(shown),
        "worker_ms": _spread(worked),
        "processor_ms": _spread(used),
        "within 200 ms": int((shown <= 200).sum()),
        "within 200 ms of processor time": int((used <= 200).sum()),
        "slowest": {name: round(float(place), 2) for name, place in slowest.items()},
    }


def _processor_ms() -> float:
    """Milliseconds that the renderers which this process started have used so far (Linux)."""
    parents, renderers = {}, []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int(
                (folder / "stat").read_text().rsplit(")", 1)[1].split()[1]
            )
            if b"--type=renderer" in (folder / "cmdline").read_bytes():
                renderers.append(int(folder.name))

    def ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and ours(parents[pid]))

    tasks = [task for pid in renderers if ours(pid) for task in Path(f"/proc/{pid}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e6


def _spread(values: Any) -> dict[str, float]:
    parts = {"least": values.min(), "median": np.median(values), "most": values.max()}
    return {name: round(float(value), 1) for name, value in parts.items()}


def smiles(browser: Any, folder: Path, name: str) -> dict[str, Any]:
    """How many molecules the page reads as RDKit does, by all labels of atoms and bonds."""
    with (data_home() / "chem" / f"{name}.csv").open(encoding="utf-8") as file:
        given = [row["smiles"] for row in csv.DictReader(file)][:MOLECULES]
    table, wanted = read_graphs(given), {}
    for row, graph in zip(table.rows.tolist(), table.graphs, strict=True):
        ends, kinds = np.asarray(graph.edge_index), np.asarray(graph.edge_labels)
        once = ends[0] < ends[1]
        bonds = zip(*ends[:, once].tolist(), kinds[once].tolist(), strict=True)
        labels = [str(label) for label in graph.labels]
        wanted[given[row]] = [labels, sorted(list(bond) for bond in bonds)]
    some = list(wanted)[:40]
    model = GraphClassifier("wl", random_state=0).fit(some, np.arange(len(some)) % 2)
    page = opened(browser, playground.write(folder / f"{name}.html", model, some))
    read = page.evaluate(_READ, list(wanted))
    page.close()
    same = sum(
        found is not None and found[0] == right[0] and sorted(found[1]) == right[1]
        for found, right in zip(read, wanted.values(), strict=True)
    )
    refused = sum(found is None for found in read)
    return {"file": name, "molecules": len(wanted), "same": same, "refused": refused}


if __name__ == "__main__":
    main()

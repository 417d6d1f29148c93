"""``auto`` on the published splits of Errica et al., with the ensemble's own selection inside.

    python -m benchmarks.published_splits [--data FOLDER] [--only PROTEINS ...]

For each of the ten outer folds the ensemble is fitted to all graphs outside of the fold, selects
by their out-of-fold predictions, and is scored on the test graphs once. (The
published inner split holds out a tenth for selection: ``fdgnn evaluate NAME --splits FILE``.)
FOLDER has NAME_splits.json; the default is ``splits`` in the data home (FDGNN_DATA). Accuracies of
folds are written to results/beyond/splits.json, and existing ones are not computed again.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from fdgnn import AutoGraphClassifier, load_tu

NAMES = ("PROTEINS", "IMDB-BINARY", "IMDB-MULTI", "NCI1", "REDDIT-BINARY", "COLLAB")


def main() -> None:
    """Run the folds that are missing."""
    parser = argparse.ArgumentParser(description="auto on the splits of Errica et al.")
    home = Path(os.environ.get("FDGNN_DATA", ".")) / "splits"
    parser.add_argument("--data", type=Path, default=home)
    parser.add_argument("--json", type=Path, default=Path("results/beyond/splits.json"))
    parser.add_argument("--only", nargs="*", default=NAMES)
    options = parser.parse_args()
    done = json.loads(options.json.read_text()) if options.json.exists() else {}
    for name in options.only:
        graphs, y = load_tu(name)
        splits = json.loads((options.data / f"{name}_splits.json").read_text())
        scores = done.setdefault(name, [])
        for fold in splits[len(scores) :]:
            test = np.zeros(len(y), dtype=bool)
            test[fold["test"]] = True
            model = AutoGraphClassifier(random_state=0).fit(graphs[~test], y[~test])
            scores.append(100 * model.score(graphs[test], y[test]))
            options.json.write_text(json.dumps(done, indent=1) + "\n")
        print(f"{name:15} {np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}", flush=True)


if __name__ == "__main__":
    main()

"""What each part of the colors adds: accuracy of one model at a time, with one part changed.

    python -m benchmarks.ablation [--json results/beyond/ablation.json] [--datasets ...]

Nested stratified 10 x 10 cross validation, the penalty by the inner folds, as in ``fdgnn evaluate
--model``; three seeds of folds. What is in the JSON file already is not run again.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn import ColorCounts, Encoder, GraphReservoir, load_tu
from fdgnn.committee import PENALTIES, Member, ReadoutRecipe
from fdgnn.encoders import GraphKind, JoinedEncoder
from fdgnn.readout.gaussian import GaussianRidge
from fdgnn.readout.linear import LinearRidge
from fdgnn.selection.committees import member_outputs, score_committee
from fdgnn.selection.folds import nested_folds
from fdgnn.selection.scores import classification_task

LINE, BELL = LinearRidge(relative=True), GaussianRidge()
LABELED = ("MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1")
PLAIN = ("IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY")
SEEDS = {"NCI1": (0,), "REDDIT-BINARY": (0,)}  # three for the others


def labeled() -> dict[str, tuple[Encoder, ReadoutRecipe]]:
    """Variants for graphs with vertex labels; the model to compare with has 3 rounds, Gaussian."""
    rounds = {f"{r} rounds": (ColorCounts(n_rounds=r), BELL) for r in (0, 1, 2, 3, 4, 6)}
    return rounds | {
        "linear readout": (ColorCounts(n_rounds=3), LINE),
        "linear, plain counts": (ColorCounts(n_rounds=3, counts="sum"), LINE),
        "linear, presence": (ColorCounts(n_rounds=3, counts="presence"), LINE),
        "plain counts": (ColorCounts(n_rounds=3, counts="sum"), BELL),
        "Gaussian, half as wide": (ColorCounts(n_rounds=3), GaussianRidge(gamma=4.0)),
        "Gaussian, twice as wide": (ColorCounts(n_rounds=3), GaussianRidge(gamma=0.25)),
        "without arc labels": (ColorCounts(n_rounds=3, arc_labels=False), BELL),
        "degrees instead of labels": (
            ColorCounts(n_rounds=3, vertices="degree", histograms=False),
            BELL,
        ),
        "histograms too": (ColorCounts(n_rounds=3, histograms=True), BELL),
        "4096 buckets": (ColorCounts(n_rounds=3, n_buckets=2**12), BELL),
        "reservoir, 300 units": (GraphReservoir(n_units=300), LINE),
        "reservoir and colors": (_joined(3), BELL),
        "reservoir and colors, linear": (_joined(3), LINE),
    }


def plain() -> dict[str, tuple[Encoder, ReadoutRecipe]]:
    """Variants for graphs without labels; the model to compare with counts structure, Gaussian."""
    found: dict[str, tuple[Encoder, ReadoutRecipe]] = {}
    for vertices, r in itertools.product(("degree", "log degree"), (0, 1, 2)):
        encoder = ColorCounts(n_rounds=r, vertices=vertices, histograms=False)
        found |= {f"{vertices}, {r} rounds": (encoder, BELL)}
        found |= {f"{vertices}, {r} rounds, linear": (encoder, LINE)}
    return found | {
        "structure": (ColorCounts(n_rounds=0), BELL),
        "structure, linear": (ColorCounts(n_rounds=0), LINE),
        "structure, linear, plain counts": (ColorCounts(n_rounds=0, counts="sum"), LINE),
        "structure and 1 round": (ColorCounts(n_rounds=1), BELL),
        "reservoir, 300 units": (GraphReservoir(n_units=300), LINE),
        "reservoir and structure": (_joined(0), BELL),
    }


def _joined(n_rounds: int) -> Encoder:
    return JoinedEncoder([GraphReservoir(n_units=300), ColorCounts(n_rounds=n_rounds)])


class OneMember:
    """An estimator that trains a single member."""

    n_projections = None

    def __init__(self, member: Member, seed: int) -> None:
        self.member, self.random_state = member, seed

    def members(self, kind: GraphKind, n_graphs: int) -> tuple[Member, ...]:
        """Give the member."""
        return (self.member,)


def accuracy(graphs: Any, y: Any, encoder: Encoder, recipe: ReadoutRecipe, seed: int) -> float:
    """Mean over the outer folds, %."""
    task = classification_task(graphs, y, nested_folds(y, 10, 10, seed), PENALTIES)
    found = member_outputs(task, OneMember(Member("", encoder, recipe), seed), 0)
    return 100 * float(score_committee(task, [found], classify=True).test.mean())


def main() -> None:
    """Run what is missing, and print the table."""
    parser = argparse.ArgumentParser(description="What each part of the colors adds.")
    parser.add_argument("--json", type=Path, default=Path("results/beyond/ablation.json"))
    parser.add_argument("--datasets", nargs="*", default=[*LABELED, *PLAIN])
    options = parser.parse_args()
    done = json.loads(options.json.read_text()) if options.json.exists() else {}
    for name in options.datasets:
        graphs, y = load_tu(name)
        variants = plain() if GraphKind.of(graphs).vertices == "nothing" else labeled()
        rows = done.setdefault(name, {})
        for what, (encoder, recipe) in variants.items():
            seeds = SEEDS.get(name, (0, 1, 2))
            if len(rows.get(what, ())) < len(seeds):
                rows[what] = [accuracy(graphs, y, encoder, recipe, seed) for seed in seeds]
                options.json.write_text(json.dumps(done, indent=1) + "\n")
            print(f"{name:15} {what:35} {np.mean(rows[what]):6.2f}", flush=True)


if __name__ == "__main__":
    main()

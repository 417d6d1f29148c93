"""What a study is: one dataset, one protocol, one seed.

`fdgnn.experiments.running` carries it out, in three steps: the networks are scored and the best
are *selected* (`choice`), the selected models are *measured* (`measures`), and the numbers are
*summarized* (`summary`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.metadata import version

import numpy as np

from fdgnn._version import __version__
from fdgnn.arrays import padded
from fdgnn.estimators import FDGNNClassifier
from fdgnn.experiments import paper
from fdgnn.experiments.records import Configuration, RunSettings
from fdgnn.graphs import Array, GraphBatch
from fdgnn.reservoir import average_degree
from fdgnn.selection.folds import nested_folds
from fdgnn.selection.rule import PAPER
from fdgnn.selection.scores import (
    Candidate,
    SelectionTask,
    candidates_of,
    classification_task,
)
from fdgnn.selection.space import (
    ALPHAS,
    depth_of,
    draw_configurations,
)

#: Raised by one when kernels, seeds or the readout change what a network scores: a run that was
#: begun with another number is not continued.
ENGINE = 4


@dataclass(frozen=True)
class Protocol:
    """How thorough an evaluation is."""

    name: str
    n_configurations: int
    n_guesses: int
    n_outer: int = 10
    n_inner: int = 10
    max_layers: int = 5


PROTOCOLS = {
    "paper": Protocol("paper", n_configurations=100, n_guesses=20),
    "quick": Protocol("quick", n_configurations=20, n_guesses=3),
}


@dataclass(frozen=True)
class Study:
    """One dataset, one protocol, one seed: everything that the numbers of a run depend on.

    `smiles` are what the graphs were read from, if they are molecules: some rivals need them.
    """

    dataset: str
    graphs: GraphBatch
    y: Array
    protocol: Protocol
    n_units: int = 50
    seed: int = 0
    smiles: Sequence[str] | None = None

    def some(self, mask: Array) -> GraphBatch:
        """Give the graphs where a mask is true."""
        return self.graphs[mask]

    def settings(self) -> RunSettings:
        """Give what must agree for a run to be continued."""
        return RunSettings(
            dataset=self.dataset,
            data=fingerprint(self.graphs, self.y),
            n_outer=self.protocol.n_outer,
            n_inner=self.protocol.n_inner,
            max_layers=self.protocol.max_layers,
            n_units=self.n_units,
            alphas=list(ALPHAS),
            seed=self.seed,
            engine=ENGINE,
            fdgnn=__version__,
        )

    def configurations(self) -> list[Configuration]:
        """Draw the random configurations: rho, omega(1), omega and the depth."""
        protocol = self.protocol
        return drawn_configurations(protocol.max_layers, self.seed, protocol.n_configurations)

    def estimator(self, configuration: Configuration) -> FDGNNClassifier:
        """Make the model of a configuration, with the k of the whole dataset as in the paper."""
        model = FDGNNClassifier(n_units=self.n_units, degree=average_degree(self.graphs) or 1.0)
        model.set_params(**configuration)
        return model

    def task(self) -> SelectionTask:
        """Give what the networks are scored on."""
        folds = nested_folds(self.y, self.protocol.n_outer, self.protocol.n_inner, self.seed)
        return classification_task(self.graphs, self.y, folds, ALPHAS)

    def candidates(self) -> list[Candidate]:
        """Give all networks, each to be scored at depth one and at its own depth."""
        estimators = [self.estimator(c) for c in self.configurations()]
        depths = [(1, depth_of(e)) for e in estimators]
        return candidates_of(estimators, depths, self.protocol.n_guesses, PAPER)


def drawn_configurations(max_layers: int, seed: int, n_configurations: int) -> list[Configuration]:
    """Draw the configurations of a study; a longer list begins with a shorter one."""
    base = FDGNNClassifier()
    depths = {base.depth_parameter: list(range(1, max_layers + 1))}
    space = {**base.search_space, **{n: values for n, values in depths.items() if n is not None}}
    return draw_configurations(space, n_configurations, seed)


def plan(
    dataset: str,
    graphs: GraphBatch,
    y: Array,
    protocol: Protocol,
    *,
    n_configurations: int | None = None,
    n_guesses: int | None = None,
    n_units: int | None = None,
    seed: int = 0,
    smiles: Sequence[str] | None = None,
) -> Study:
    """Put a study together; what is not given is the protocol's and, for H, the paper's."""
    protocol = replace(
        protocol,
        n_configurations=n_configurations or protocol.n_configurations,
        n_guesses=n_guesses or protocol.n_guesses,
    )
    facts = paper.DATASETS.get(dataset)
    n_units = n_units or (facts.n_units if facts else 50)
    return Study(dataset, graphs, y, protocol, n_units, seed, smiles)


def versions() -> dict[str, str]:
    """Give the versions of the libraries that the numbers are made with."""
    names = ("numpy", "scipy", "scikit-learn", "joblib")
    return {"fdgnn": __version__} | {name: version(name) for name in names}


def fingerprint(graphs: GraphBatch, y: Array) -> str:
    """Tell data apart: a hash of graphs, without the labels of arcs, and classes."""
    digest = hashlib.sha256(np.asarray(y).astype(str).tobytes())
    for field in fields(graphs):
        # The paper's model does not know of arc labels: its scores do not depend on them, and a
        # run that was begun before they were read goes on.
        if field.name.startswith("arc_label"):
            continue
        value = getattr(graphs, field.name)
        if isinstance(value, np.ndarray):
            digest.update(np.ascontiguousarray(padded(value)).tobytes())
    return digest.hexdigest()[:16]

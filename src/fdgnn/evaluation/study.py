"""What a study is: one dataset, one protocol, one seed.

`fdgnn.evaluation.running` carries it out, in three steps: all random initializations of all
configurations are scored and the best are *selected* (`choice`), the selected models are *measured*
(`measures`), and the numbers are *summarized* (`summary`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from fdgnn._version import __version__
from fdgnn.arrays import padded
from fdgnn.encoders import GraphKind, GraphReservoir
from fdgnn.estimators import FDGNNClassifier
from fdgnn.evaluation import paper
from fdgnn.evaluation.records import Configuration, RunSettings
from fdgnn.fitting import BaseModel, FitTask
from fdgnn.folds import nested_folds
from fdgnn.graphs import Array, GraphBatch
from fdgnn.linear import Ridge
from fdgnn.metrics import accuracy
from fdgnn.seeds import seed_sequence
from fdgnn.selection.search import draw_configurations
from fdgnn.targets import read_targets

#: Raised by one when kernels, seeds or the readout change scores: a run that was begun with another
#: number is not continued.
ENGINE = 5


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

    @property
    def alphas(self) -> tuple[float, ...]:
        """The paper's grid of regularization strengths."""
        return Ridge(normalize=False).grid(len(self.graphs), classify=True)

    def settings(self) -> RunSettings:
        """Return what must agree for a run to be continued."""
        return RunSettings(
            dataset=self.dataset,
            data=fingerprint(self.graphs, self.y),
            n_outer=self.protocol.n_outer,
            n_inner=self.protocol.n_inner,
            max_layers=self.protocol.max_layers,
            n_units=self.n_units,
            alphas=list(self.alphas),
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
        model = FDGNNClassifier(n_units=self.n_units, degree=self.graphs.average_degree or 1.0)
        model.set_params(**configuration)
        return model

    def base_model(self, configuration: Configuration) -> BaseModel:
        """Make the base model of a configuration, with the seeds of all random initializations."""
        model = self.estimator(configuration).set_params(n_estimators=self.protocol.n_guesses)
        seed = seed_sequence(model.random_state)
        bases = model._base_models(GraphKind.of(self.graphs), len(self.graphs), seed)
        base: BaseModel = bases[0]
        return base

    def task(self) -> FitTask:
        """Return the targets and all folds."""
        targets = read_targets(self.y, self.graphs, classify=True)
        protocol = self.protocol
        folds = nested_folds(self.y, protocol.n_outer, protocol.n_inner, self.seed)
        return FitTask(targets, folds, accuracy)


def drawn_configurations(max_layers: int, seed: int, n_configurations: int) -> list[Configuration]:
    """Draw the configurations of a study; a longer list begins with a shorter one."""
    space = {**GraphReservoir.search_space(), "n_layers": list(range(1, max_layers + 1))}
    drawn = draw_configurations(space, n_configurations, seed)
    return [params | {"random_state": own_seed} for own_seed, params in drawn]


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
    """Make a study; what is not given is the protocol's and, for H, the paper's."""
    protocol = replace(
        protocol,
        n_configurations=n_configurations or protocol.n_configurations,
        n_guesses=n_guesses or protocol.n_guesses,
    )
    facts = paper.DATASETS.get(dataset)
    n_units = n_units or (facts.n_units if facts else 50)
    return Study(dataset, graphs, y, protocol, n_units, seed, smiles)


def fingerprint(graphs: GraphBatch, y: Array) -> str:
    """Return a hash of graphs, without the labels of arcs, and of their targets."""
    digest = hashlib.sha256(np.asarray(y).astype(str).tobytes())
    for field in fields(graphs):
        # The paper's model ignores arc labels: its scores do not depend on them, and a run that was
        # begun before they were read can be resumed.
        if field.name.startswith("edge_label"):
            continue
        value = getattr(graphs, field.name)
        if isinstance(value, np.ndarray):
            digest.update(np.ascontiguousarray(padded(value)).tobytes())
    return digest.hexdigest()[:16]

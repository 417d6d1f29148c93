"""`MoleculeDescriptors`: RDKit's descriptors of whole molecules as features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from fdgnn.arrays import Array, Features, Floats, Ints, dense
from fdgnn.encoders.base import Encoder, GraphKind
from fdgnn.encoders.registry import register_encoder, take
from fdgnn.exceptions import GraphError, ModelFileError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.graph import Kind
from fdgnn.graphs.smiles import DESCRIPTOR_SETS, NOT_MOLECULES, DescriptorSet, descriptor_names
from fdgnn.limits import MAX_UNITS
from fdgnn.parameters import Number, OneOf, Rule

_QUANTILES = 65  # of the training molecules that are kept of each descriptor
_LARGEST = 3.0  # standard deviations; a molecule far outside moves a prediction no farther
_UNIT = 2.0**-6  # of features, so that files of models that keep those of all molecules are small


@register_encoder
@dataclass(eq=False, repr=False)
class MoleculeDescriptors(Encoder):
    """Descriptors of whole molecules, computed by RDKit, on the scale of a normal distribution.

    Each descriptor is mapped to its quantile among the training molecules, and then to the value of
    a standard normal distribution, clipped to [-3, 3]. A descriptor that cannot be computed is
    replaced by the median. Graphs must be read from molecules: SMILES, or RDKit ``Mol`` objects.

    Parameters
    ----------
    descriptors : {"fast", "all"}, default="fast"
        210 that RDKit computes fast (properties, MQN, surface areas by charge, refractivity and
        lipophilicity, partial charges, and counts of functional groups), or all of
        ``rdkit.Chem.Descriptors``, which takes four times as long.
    n_projections : int, default=0
        Random features ``tanh(W x)`` of the descriptors that a model's readout has instead of the
        descriptors, so that a linear readout is not linear in them; 0 for none.

    Attributes
    ----------
    quantiles_ : (n_descriptors, 65) float64
        Values of the training molecules, ascending.
    """

    descriptors: DescriptorSet = "fast"
    n_projections: int = 0

    kind = "descriptors"
    draws = False
    prefers_rbf = True
    has_own_kernel = True
    expansion_norm = 3.0  # the arguments of a thousand random features have the size 1, about
    rules: ClassVar[Mapping[str, Rule]] = {
        "descriptors": OneOf(DESCRIPTOR_SETS),
        "n_projections": Number(0, whole=True, most=MAX_UNITS),
    }

    def _draw(self, graphs: GraphBatch, seed: np.random.SeedSequence) -> None:
        values = self._values(graphs)
        known = np.isfinite(values)
        some = np.where(known.any(axis=0), values, 0.0)  # else nanquantile warns
        levels = np.linspace(0.0, 1.0, _QUANTILES)
        self.quantiles_ = np.ascontiguousarray(np.nanquantile(some, levels, axis=0).T)

    def _values(self, graphs: GraphBatch) -> Floats:
        if graphs.smiles is None:
            raise GraphError(NOT_MOLECULES)
        return graphs.smiles.descriptors(self.descriptors)

    def features_of(self, graphs: GraphBatch, n_jobs: int | None = None) -> Floats:
        """Compute the descriptors of checked molecules, and map them."""
        values, levels = self._values(graphs), np.linspace(0.0, 1.0, _QUANTILES)
        X = np.zeros(values.shape)
        for column, own, found in zip(values.T, self.quantiles_, X.T, strict=True):
            # Where several quantiles are equal, their middle is the level.
            low = np.interp(-column, -own[::-1], -levels[::-1])
            level = (np.interp(column, own, levels) - low) / 2
            found[:] = np.clip(ndtri(level), -_LARGEST, _LARGEST) if own[0] < own[-1] else 0.0
        return np.asarray(np.round(np.nan_to_num(X) / _UNIT) * _UNIT)

    def attribute(self, graphs: GraphBatch, n_jobs: int | None = None) -> DescriptorParts:
        """Compute the descriptors of checked molecules."""
        return DescriptorParts(graphs, self.features_of(graphs), descriptor_names(self.descriptors))

    def expanded_size(self, n_features: int, n_projections: int | None) -> int:
        """Return the number of random features."""
        return self.n_projections if n_projections is None else n_projections

    @property
    def n_features_out(self) -> int:  # type: ignore[override]
        """The number of descriptors."""
        return len(descriptor_names(self.descriptors))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the descriptors."""
        return np.array(descriptor_names(self.descriptors), dtype=object)

    def kind_error(self, kind: Kind) -> str | None:
        """Return an error for graphs that were not read from molecules."""
        return None if kind.smiles else "it" + NOT_MOLECULES.removeprefix("the graphs")

    def arrays(self) -> dict[str, Array]:
        """Return the quantiles of the training molecules."""
        return {"quantiles": self.quantiles_}

    def restore(self, facts: Any, arrays: Mapping[str, Array], graph_kind: GraphKind) -> None:
        """Restore and check the quantiles from a model file."""
        rest = dict(arrays)
        found = take(rest, "quantiles", 2)
        if found.shape[1:] != (_QUANTILES,) or not (found[:, 1:] >= found[:, :-1]).all():
            raise ModelFileError("the quantiles of its descriptors do not ascend")
        if len(found) != len(descriptor_names(self.descriptors)):
            raise ModelFileError(
                f"{len(found)} descriptors of molecules, but this version of RDKit has "
                f"{len(descriptor_names(self.descriptors))}; fit it again"
            )
        super().restore(facts, rest, graph_kind)
        self.quantiles_ = found


@dataclass(frozen=True)
class DescriptorParts:
    """Descriptors of molecules: none of them belongs to a vertex."""

    graphs: GraphBatch
    features: Floats
    names: tuple[str, ...]

    def contributions(self, directions: Features, of_graph: Ints) -> Floats:
        """Return zeros for all vertices."""
        return np.zeros(self.graphs.n_vertices)

    def of_graphs(self, directions: Features, of_graph: Ints) -> dict[str, Floats]:
        """Split ``features[g] @ directions[of_graph[g]]`` over the descriptors of each graph."""
        own = self.features * dense(directions)[of_graph]
        return dict(zip(self.names, own.T, strict=True))

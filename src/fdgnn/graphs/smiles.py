"""`SmilesColumn`: the molecules of a batch as SMILES, and what RDKit computes from them.

Graphs have what atoms and bonds carry. What only some encoders read, pharmacophore features of
atoms and descriptors of whole molecules, is computed from the SMILES when it is first needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, offsets_of
from fdgnn.extras import require
from fdgnn.records import cached_property

DescriptorSet = Literal["fast", "all"]
DESCRIPTOR_SETS: tuple[DescriptorSet, ...] = ("fast", "all")

NOT_MOLECULES = (
    "the graphs do not come from SMILES or RDKit Mols, but the model reads what is computed from "
    "these; pass the molecules, or fit on graphs without them"
)
_DRAWN = 8  # molecules in a notebook's picture of a batch
_LARGEST = 1e12  # beyond which a descriptor says nothing more


class Smiles(NamedTuple):
    """The molecule of a graph, and the atoms of its vertices.

    Attributes
    ----------
    text : str
    atoms : (n_vertices,) int
        The atom of each vertex, counted from left to right.
    """

    text: str
    atoms: Ints


@dataclass(frozen=True, eq=False)
class SmilesColumn:
    """The molecules of a batch.

    Attributes
    ----------
    texts : (n_graphs,) object
        SMILES.
    atoms : (n_vertices,) int64
        Which atom of its SMILES each vertex is.
    """

    texts: Array
    atoms: Ints

    @classmethod
    def of(cls, each: Sequence[Smiles]) -> SmilesColumn:
        """Join the molecules of graphs."""
        texts = np.empty(len(each), dtype=object)
        texts[:] = [one.text for one in each]
        atoms = np.concatenate([one.atoms for one in each]) if each else np.empty(0)
        return cls(texts, atoms.astype(np.int64))

    def take(self, graphs: Ints, vertices: Ints) -> SmilesColumn:
        """Return those of some graphs, which have these vertices."""
        found = SmilesColumn(self.texts[graphs], self.atoms[vertices])
        found.computed.update({name: values[graphs] for name, values in self.computed.items()})
        return found

    @cached_property
    def computed(self) -> dict[str, Array]:
        """Values of each molecule that have been computed, by name."""
        return {}

    def pharmacophores(self, graph_of_vertex: Array) -> npt.NDArray[np.uint8]:
        """Return what each vertex is, as bits of `PHARMACOPHORES`, (n_vertices,)."""
        if "invariants" not in self.computed:
            rd = require("rdkit.Chem.rdMolDescriptors", "chem", "molecules")
            found = np.empty(len(self.texts), dtype=object)
            for g, mol in enumerate(self._mols()):
                found[g] = np.array(rd.GetFeatureInvariants(mol), dtype=np.uint8)
            self.computed["invariants"] = found
        invariants = self.computed["invariants"]  # an array for each molecule
        starts = offsets_of([len(each) for each in invariants])
        together = np.concatenate([*invariants, np.empty(0, dtype=np.uint8)])
        return np.asarray(together[starts[graph_of_vertex] + self.atoms], dtype=np.uint8)

    def descriptors(self, which: DescriptorSet) -> Floats:
        """Return the descriptors of all molecules, (n_graphs, n_descriptors), NaN where unknown."""
        if which not in self.computed:
            names, compute = _calculator(which)
            found = np.array([compute(mol) for mol in self._mols()], dtype=np.float64)
            found = found.reshape(len(self.texts), len(names))
            found[~(np.abs(found) <= _LARGEST)] = np.nan
            self.computed[which] = found
        return self.computed[which]

    def picture(self) -> str:
        """Return a picture of the first molecules, as SVG."""
        draw = require("rdkit.Chem.Draw", "chem", "molecules")
        mols = [mol for _, mol in zip(range(_DRAWN), self._mols(), strict=False)]
        return str(draw.MolsToGridImage(mols, molsPerRow=4, useSVG=True))

    def _mols(self) -> Any:
        chem = require("rdkit.Chem", "chem", "molecules")
        with require("rdkit.rdBase", "chem", "molecules").BlockLogs():
            for text in self.texts.tolist():
                yield chem.MolFromSmiles(text)


#: What the bits of `SmilesColumn.pharmacophores` say of an atom; RDKit finds it by SMARTS.
PHARMACOPHORES = ("donor", "acceptor", "aromatic", "halogen", "basic", "acidic")


def pharmacophore_names() -> list[str]:
    """Return the name of each combination of features, by its bits."""
    return [
        " ".join(name for bit, name in enumerate(PHARMACOPHORES) if code >> bit & 1) or "none"
        for code in range(64)
    ]


def descriptor_names(which: DescriptorSet) -> tuple[str, ...]:
    """Return the names of the descriptors of a set."""
    return _calculator(which)[0]


@cache
def _calculator(which: DescriptorSet) -> tuple[tuple[str, ...], Any]:
    """Return the names of the descriptors of a set, and a function that computes them of a Mol."""
    listed = require("rdkit.Chem.Descriptors", "chem", "molecules").descList
    if which == "all":
        return tuple(name for name, _ in listed), lambda mol: [f(mol) for _, f in listed]
    rd = require("rdkit.Chem.rdMolDescriptors", "chem", "molecules")
    properties = rd.Properties()
    groups = (rd.MQNs_, rd.PEOE_VSA_, rd.SMR_VSA_, rd.SlogP_VSA_)
    titles = ("MQN", "PEOE_VSA", "SMR_VSA", "SlogP_VSA")
    ethane = require("rdkit.Chem", "chem", "molecules").MolFromSmiles("CC")
    names = [*properties.GetPropertyNames()]
    for title, group in zip(titles, groups, strict=True):
        names += [f"{title}{i + 1}" for i in range(len(group(ethane)))]
    others = [
        (name, f)
        for name, f in listed
        if name.startswith("fr_") or name.endswith("PartialCharge")  # functional groups, charges
    ]

    def compute(mol: Any) -> list[float]:
        found = [*properties.ComputeProperties(mol)]
        for group in groups:
            found += group(mol)
        return found + [f(mol) for _, f in others]

    return (*names, *(name for name, _ in others)), compute

"""From SMILES to a batch of graphs: what it costs beside RDKit's parsing, and by other ways.

    python -m benchmarks.molecule_schema [--rows 10000] [--tries 5] [--json FILE]

The first rows of AQSOLDB.csv and HIV.csv (``chem`` under FDGNN_DATA) are read by

- ``read``: `as_batch`, the only reader there is;
- ``parse``: RDKit's ``MolFromSmiles`` alone;
- ``getters``: six functions of each atom and three of each bond, after parsing;
- ``json``: RDKit's ``MolToJSON`` of each molecule and its decoding, after parsing;
- ``binary``: RDKit's ``Mol.ToBinary``, after parsing; to take it apart is not included.

CPU seconds for 10,000 molecules, on one core. Ways alternate on parts of 500 molecules, and the
best of several tries of each part counts, as other processes may be busy.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from rdkit import Chem, rdBase

from fdgnn import as_batch

N_PART = 500
Way = Callable[[list[str], list[Any]], Any]


def read(smiles: list[str], mols: list[Any]) -> Any:
    return as_batch(smiles)


def parse(smiles: list[str], mols: list[Any]) -> Any:
    return [Chem.MolFromSmiles(each) for each in smiles]


def getters(smiles: list[str], mols: list[Any]) -> Any:
    Atom, Bond = Chem.Atom, Chem.Bond
    of_atoms = (
        Atom.GetAtomicNum, Atom.GetDegree, Atom.GetTotalNumHs, Atom.GetFormalCharge,
        Atom.GetIsAromatic, Atom.IsInRing,
    )  # fmt: skip
    of_bonds = (Bond.GetBeginAtomIdx, Bond.GetEndAtomIdx, Bond.GetBondTypeAsDouble)
    for mol in mols:
        atoms = [mol.GetAtomWithIdx(i) for i in range(mol.GetNumAtoms())]
        bonds = [mol.GetBondWithIdx(i) for i in range(mol.GetNumBonds())]
        [list(map(get, atoms)) for get in of_atoms]
        [list(map(get, bonds)) for get in of_bonds]


def decoded_json(smiles: list[str], mols: list[Any]) -> Any:
    return [msgspec.json.decode(Chem.MolToJSON(mol)) for mol in mols]


def binary(smiles: list[str], mols: list[Any]) -> Any:
    options = Chem.PropertyPickleOptions
    bare = int(options.NoConformers | options.NoProps)
    return [mol.ToBinary(bare) for mol in mols]


WAYS: dict[str, Way] = {
    "read": read, "parse": parse, "getters": getters, "json": decoded_json, "binary": binary,
}  # fmt: skip


def molecules(name: str, n_rows: int) -> list[str]:
    """The first SMILES of a table that RDKit can parse."""
    path = Path(os.environ["FDGNN_DATA"]) / "chem" / f"{name}.csv"
    with path.open(encoding="utf-8") as file:
        written = [row["smiles"] for row in csv.DictReader(file)][:n_rows]
    return [each for each in written if Chem.MolFromSmiles(each)]


def measured(smiles: list[str], tries: int) -> dict[str, float]:
    """CPU seconds for 10,000 molecules, by each way."""
    total = dict.fromkeys(WAYS, 0.0)
    for start in range(0, len(smiles), N_PART):
        part = smiles[start : start + N_PART]
        best = dict.fromkeys(WAYS, float("inf"))
        for _ in range(tries):
            for name, way in WAYS.items():
                mols = [Chem.MolFromSmiles(each) for each in part]  # nothing is kept with them
                begin = time.process_time()
                way(part, mols)
                best[name] = min(best[name], time.process_time() - begin)
        total = {name: seconds + best[name] for name, seconds in total.items()}
    return {name: seconds * 10_000 / len(smiles) for name, seconds in total.items()}


def main() -> None:
    """Measure, print and, if asked, write."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=10_000)
    options.add_argument("--tries", type=int, default=5)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    rdBase.DisableLog("rdApp.*")
    found = {}
    for name in ("AQSOLDB", "HIV"):
        found[name] = measured(molecules(name, asked.rows), asked.tries)
        print(name, {way: round(seconds, 3) for way, seconds in found[name].items()})
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

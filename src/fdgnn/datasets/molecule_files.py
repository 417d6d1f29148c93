"""Molecules in files: a column of SMILES, SMILES with names line by line (``.smi``), and SDF."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from fdgnn.datasets.rows import BadRow, Cells, Row
from fdgnn.datasets.tables import BLANK, LOOK_AHEAD, Columns, Source, decoded, raw_lines, read_lines
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.extras import require
from fdgnn.graphs.molecules import Molecule, MoleculeReader
from fdgnn.limits import MAX_ROW_BYTES, MAX_SMILES, MAX_VERTICES


def smiles_column(columns: Sequence[str]) -> str | None:
    """Find the column with SMILES: "smiles" in any case, or the only one with that word in it."""
    exact = [c for c in columns if c.lower() in ("smiles", "smi")]
    alike = exact or [c for c in columns if "smiles" in c.lower()]
    return alike[0] if len(alike) == 1 else None


def molecule_of(reader: MoleculeReader, column: str, row: Cells) -> Molecule:
    """Read the molecule in a column of a row, or raise GraphError."""
    return reader.read(row.get(column))


NAME = "name"  # the column with the names that such files give to molecules
BLOCK = "\0mol block"  # the column that holds a record's mol block; no file has it
END_OF_RECORD, END_OF_BLOCK = "$$$$", "M  END"


# ---------------------------------------------------------------------- SMILES with names


def read_smi(path: Source) -> tuple[Columns, Iterator[Row]]:
    """Return the columns and the rows: a SMILES and, after a space or a tab, its name.

    A first line that begins with the word "smiles" names the columns.
    """
    lines = read_lines(path)
    first = next(lines)
    columns = ["smiles", NAME]
    if isinstance(first, str):
        delimiter = "\t" if "\t" in first else None
        words = first.split(delimiter)
        if words[0].strip().lower() in ("smiles", "smi"):
            columns = [word.strip() for word in words]
            return columns, (_smi_row(line, columns, delimiter) for line in lines)
    return columns, (_smi_row(line, columns, None) for line in chain([first], lines))


def _smi_row(line: str | BadRow, columns: Columns, delimiter: str | None) -> Row:
    if isinstance(line, BadRow) or not line:
        return line or BLANK
    words = [word.strip() for word in line.split(delimiter, len(columns) - 1)]
    return dict(zip(columns, words, strict=False))


# ---------------------------------------------------------------------- SDF


def read_sdf(path: Source, look_ahead: int = LOOK_AHEAD) -> tuple[Columns, Iterator[Row]]:
    """Find the columns, as the first records have them, and the rows, one per record."""
    records = _records(path)
    first = list(islice(records, look_ahead))
    if not first:
        raise DatasetFormatError(f"{path}: no rows")
    found = dict.fromkeys(chain.from_iterable(r for r in first if isinstance(r, dict)))
    return [BLOCK, *(c for c in found if c != BLOCK)], chain(first, records)


def _records(path: Source) -> Iterator[Row]:
    lines: list[str] = []
    size, most = 0, int(MAX_ROW_BYTES.value)
    for line in raw_lines(path):
        text = "" if isinstance(line, BadRow) else decoded(line).rstrip("\r\n")
        if text.startswith(END_OF_RECORD):
            yield _record(lines, size > most)
            lines, size = [], 0
            continue
        size += most + 1 if isinstance(line, BadRow) else len(line)
        if size <= most:
            lines.append(text)
    if any(line.strip() for line in lines) or size > most:  # the last one may lack its end
        yield _record(lines, size > most)


def _record(lines: list[str], too_long: bool) -> Row:
    if too_long:
        return BadRow(f"record is too long; {MAX_ROW_BYTES.in_words}")
    if END_OF_BLOCK not in lines:
        return BadRow(f"record has no line {END_OF_BLOCK!r}")
    end = lines.index(END_OF_BLOCK) + 1
    row: dict[str, Any] = {BLOCK: "\n".join(lines[:end]) + "\n"}
    # Data items: a line such as ``> <activity>``, and its value up to a blank line.
    found: dict[str, list[str]] = {}
    own: list[str] | None = None
    for line in lines[end:]:
        if line.startswith(">") and "<" in line:
            own = found[line[line.index("<") + 1 : line.rfind(">")].strip()] = []
        elif not line.strip():
            own = None
        elif own is not None:
            own.append(line)
    row |= {name: "\n".join(values) for name, values in found.items()}
    row.setdefault(NAME, lines[0].strip() or None)
    return row


def molecule_of_block(reader: MoleculeReader, row: Cells) -> Molecule:
    """Read a record of an SDF file by its SMILES, whose atoms are vertices, or raise GraphError."""
    Chem = require("rdkit.Chem", "chem", "SDF files")
    # RDKit allocates memory for the declared numbers of atoms and bonds at once. Each atom and
    # each bond has a line of its own.
    lines = row[BLOCK].splitlines()
    for n_atoms, n_bonds in _declared_counts(lines):
        declared = f"counts line declares {n_atoms} atoms"
        if n_atoms + n_bonds > len(lines):
            raise GraphError(
                f"{declared} and {n_bonds} bonds, but its mol block has only {len(lines)} "
                "lines; write the file again"
            )
        if MAX_VERTICES.is_below(n_atoms):
            raise GraphError(f"{declared}; {MAX_VERTICES.in_words}")
    with reader.quietly():
        mol = Chem.MolFromMolBlock(row[BLOCK])
    if mol is None:
        raise GraphError("mol block is not a molecule that RDKit can read")
    if MAX_SMILES.is_below(mol.GetNumAtoms()):  # each atom has at least one character
        raise GraphError(f"molecule has {mol.GetNumAtoms()} atoms; {MAX_SMILES.in_words}")
    return reader.read(Chem.MolToSmiles(mol))


# In V3000, "-" at the end of a line continues it in the next one.
_CONTINUED = re.compile(r"-\nM  V30 ")
_COUNTS = re.compile(r"^M  V30 \s*COUNTS\b[ \t]*(\S*)[ \t]*(\S*)", re.MULTILINE | re.IGNORECASE)


def _declared_counts(lines: list[str]) -> list[tuple[int, int]]:
    """Return the numbers of atoms and bonds of each counts line, V2000 or V3000."""
    found = _COUNTS.findall(_CONTINUED.sub("", "\n".join(lines)))
    if len(lines) > 3:  # columns of three characters
        found.append((lines[3][:3], lines[3][3:6]))
    return [(_count(n_atoms), _count(n_bonds)) for n_atoms, n_bonds in found]


def _count(text: str) -> int:
    """Read a count of at most nine digits; an empty one is 0."""
    text = text.strip()
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise GraphError(f"counts line has {text[:20]!r}, expected a number of atoms or bonds")
    return int(text)

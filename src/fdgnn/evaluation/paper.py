"""The paper's tables and dataset facts, from ``paper.json``.

C. Gallicchio and A. Micheli, "Fast and Deep Graph Neural Networks", AAAI 2020. Datasets have
their names in the TU collection here; `DATASETS` gives the paper's own names.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fdgnn.records import Record, read_record


class Value(NamedTuple):
    """A mean over the ten outer folds and its standard deviation, where the paper has one."""

    mean: float
    std: float | None = None


class Score(NamedTuple):
    """An accuracy in percent, and the work it is quoted from."""

    mean: float
    std: float | None
    reference: str


class Times(NamedTuple):
    """Seconds to train and to test the selected configuration, on one core."""

    train: Value
    test: Value


@dataclass(frozen=True)
class Dataset:
    """A row of Table 5, with what the text says about it and what the files contain.

    Attributes
    ----------
    paper_name : str
        As in the paper's tables.
    n_graphs, n_vertices, n_classes : int
    mean_vertices : float
        As printed.
    has_labels : bool
        Whether vertices are labeled; where they are not, the input is a constant 1.
    n_units : int
        H, the number of units in each layer.
    n_arcs : int
        Not in the paper: arcs in the file once repeated ones are merged.
    n_self_loops : int
        Not in the paper: how many of those lead from a vertex to itself.
    """

    paper_name: str
    n_graphs: int
    n_vertices: int
    mean_vertices: float
    n_classes: int
    has_labels: bool
    n_units: int
    n_arcs: int
    n_self_loops: int = 0


class _Tables(Record, frozen=True):
    datasets: dict[str, Dataset]
    atoms: dict[str, tuple[str, ...]]
    bonds: dict[str, dict[str, str]]
    classes: dict[str, dict[str, str]]
    references: dict[str, str]
    accuracy: dict[str, dict[str, Score]]
    others_accuracy: dict[str, dict[str, Score]]
    depth: dict[str, Value]
    times: dict[str, Times]
    mutag_training_times: dict[str, Value]
    mutag_gin_protocol: dict[str, float | tuple[float, float]]


_TABLES = read_record(Path(__file__).with_name("paper.json"), _Tables)

#: Table 5, and Section "Experimental settings".
DATASETS = _TABLES.datasets
#: Not in the paper: the elements behind vertex labels 0, 1, ..., as the datasets' own notes say.
ATOMS = _TABLES.atoms
#: The same for the labels of edges.
BONDS = _TABLES.bonds
#: What classes mean, by their codes; 125 of the 188 compounds of MUTAG are mutagenic.
CLASSES = _TABLES.classes
REFERENCES = _TABLES.references
#: Table 1: accuracy by model and dataset; cells the paper leaves empty are left out.
ACCURACY = _TABLES.accuracy
#: Table 2: layers of the selected configurations.
DEPTH = _TABLES.depth
#: Table 3: in MATLAB, single core of an Intel Xeon E5-263L v3.
TIMES = _TABLES.times
#: Table 4: seconds to train on MUTAG, all on one machine.
MUTAG_TRAINING_TIMES = _TABLES.mutag_training_times
#: MUTAG in GIN's protocol, the best accuracy on the validation folds: FDGNN's, and GIN's range.
MUTAG_GIN_PROTOCOL = _TABLES.mutag_gin_protocol


def published_accuracy(model: str, dataset: str) -> Score | None:
    """Return what is printed for a model on a dataset, in the paper or elsewhere.

    Not in the paper are GIN's accuracies, by its authors, whose epoch is the best on the same folds
    that are reported, and those of the optimal assignment kernel, by others than its authors.
    """
    return (ACCURACY | _TABLES.others_accuracy).get(model, {}).get(dataset)

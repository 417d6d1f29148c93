"""The paper's tables and dataset facts, as data.

C. Gallicchio and A. Micheli, "Fast and Deep Graph Neural Networks", AAAI 2020. Datasets have
their names in the TU collection here; `DATASETS` gives the paper's own names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


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


# Table 5, and Section "Experimental settings".
DATASETS = {
    "MUTAG": Dataset("MUTAG", 188, 3371, 17.9, 2, True, 50, 7442),
    "PTC_MR": Dataset("PTC", 344, 4915, 14.3, 2, True, 50, 10108),
    "COX2": Dataset("COX2", 467, 19252, 41.2, 2, True, 50, 40578),
    "PROTEINS": Dataset("PROTEINS", 1113, 43471, 39.1, 2, True, 50, 162088),
    "NCI1": Dataset("NCI1", 4110, 122747, 29.9, 2, True, 500, 265506),
    "IMDB-BINARY": Dataset("IMDB-b", 1000, 19773, 19.8, 2, False, 50, 193062),
    "IMDB-MULTI": Dataset("IMDB-m", 1500, 19502, 13.0, 3, False, 50, 197806),
    "REDDIT-BINARY": Dataset("REDDIT", 2000, 859254, 429.6, 2, False, 50, 1991016),
    "COLLAB": Dataset("COLLAB", 5000, 372474, 74.5, 3, False, 500, 24574995, 2837),
}

#: Not in the paper: the elements behind vertex labels 0, 1, ..., as the datasets' own notes say.
ATOMS = {
    "MUTAG": ("C", "N", "O", "F", "I", "Cl", "Br"),
    "PTC_MR": (
        "In", "P", "O", "N", "Na", "C", "Cl", "S", "Br", "F", "K", "Cu", "Zn", "I", "Ba", "Sn",
        "Pb", "Ca",
    ),
}  # fmt: skip

#: The same for the labels of edges.
BONDS = {
    "MUTAG": {"0": "aromatic", "1": "single", "2": "double", "3": "triple"},
    "PTC_MR": {"0": "triple", "1": "double", "2": "single", "3": "aromatic"},
}

# What classes mean, by their codes; 125 of the 188 compounds of MUTAG are mutagenic.
CLASSES = {"MUTAG": {"-1": "not mutagenic", "1": "mutagenic"}}

REFERENCES = {
    "this": "Gallicchio & Micheli, AAAI 2020 (this paper)",
    "uwents2011": "Uwents et al., Neural networks for relational learning, 2011",
    "zhang2018": "Zhang et al., An end-to-end deep learning architecture, AAAI 2018",
    "tran2018": "Tran et al., On filter size in graph convolutional networks, 2018",
    "yanardag2015": "Yanardag & Vishwanathan, Deep graph kernels, KDD 2015",
    "neumann2016": "Neumann et al., Propagation kernels, 2016",
    "nikolentzos2018": "Nikolentzos et al., Kernel graph convolutional neural networks, 2018",
    "xu2019": "Xu et al., How powerful are graph neural networks?, ICLR 2019",
    "bacciu2018": "Bacciu et al., Contextual graph Markov model, ICML 2018",
    "morris2020": "Morris et al., TUDataset: a collection of benchmark datasets, 2020",
    "horn2022": "quoted in Horn et al., Topological graph neural networks, ICLR 2022",
}

_TABLE_1 = """
model        reference        MUTAG       PTC_MR      COX2        PROTEINS    NCI1
FDGNN        this             88.51±3.77  63.43±5.35  83.39±2.88  76.77±2.86  77.81±1.62
FDGNN(L=1)   this             87.38±6.55  63.43±5.35  82.41±2.67  76.77±2.86  77.11±1.52
GNN          uwents2011       80.49±0.81  -           -           -           -
RelNN        uwents2011       87.77±2.48  -           -           -           -
DGCNN        zhang2018        85.83±1.66  58.59±2.47  -           75.54±0.94  74.44±0.47
PGC-DGCNN    tran2018         87.22±1.43  61.06±1.83  -           76.45±1.02  76.13±0.73
DCNN         tran2018         -           -           -           61.29±1.60  56.61±1.04
PSCN         tran2018         -           -           -           75.00±2.51  76.34±1.68
GK           zhang2018        81.39±1.74  55.65±0.46  -           71.39±0.31  62.49±0.27
DGK          yanardag2015     82.66±1.45  57.32±1.13  -           71.68±0.50  62.48±0.25
RW           zhang2018        79.17±2.07  55.91±0.32  -           59.57±0.09  -
PK           zhang2018        76.00±2.69  59.50±2.44  -           73.68±0.68  82.54±0.47
PK           neumann2016      -           -           81.00±0.20  -           -
WL           zhang2018        84.11±1.91  57.97±2.49  -           74.68±0.49  84.46±0.45
WL           neumann2016      -           -           83.20±0.20  -           -
KCNN         nikolentzos2018  -           62.94±1.69  -           75.76±0.28  77.21±0.22
CGMM         bacciu2018       85.30       -           -           -           -

model        reference        IMDB-BINARY IMDB-MULTI  REDDIT-BINARY  COLLAB
FDGNN        this             72.36±3.63  50.03±1.25  89.48±1.00     74.44±2.02
FDGNN(L=1)   this             71.79±3.37  49.34±1.70  87.74±1.61     73.82±2.32
DGCNN        zhang2018        70.03±0.86  47.83±0.85  -              73.76±0.49
PGC-DGCNN    tran2018         71.62±1.22  47.25±1.44  -              75.00±0.58
PSCN         tran2018         71.00±2.29  45.23±2.84  -              72.60±2.15
GK           yanardag2015     65.87±0.98  43.89±0.38  77.34±0.18     72.84±0.56
DGK          yanardag2015     66.96±0.56  44.55±0.52  78.04±0.39     73.09±0.25
KCNN         nikolentzos2018  71.45±0.15  47.46±0.21  81.85±0.12     74.93±0.14
"""


def _scores(table: str) -> dict[str, dict[str, Score]]:
    scores: dict[str, dict[str, Score]] = {}
    for block in table.strip().split("\n\n"):
        (_, _, *names), *rows = (line.split() for line in block.splitlines())
        for model, reference, *cells in rows:
            for name, cell in zip(names, cells, strict=True):
                mean, _, std = cell.partition("±")
                if mean != "-":
                    score = Score(float(mean), float(std) if std else None, reference)
                    scores.setdefault(model, {})[name] = score
    return scores


#: Table 1: accuracy by model and dataset; cells the paper leaves empty are left out.
ACCURACY = _scores(_TABLE_1)

#: Not in the paper: the accuracies that GIN's authors published. Their epoch is the best on the
#: same folds that are reported.
GIN_ACCURACY = _scores("""
model  reference  MUTAG     PTC_MR    PROTEINS  NCI1
GIN    xu2019     89.4±5.6  64.6±7.0  76.2±2.8  82.7±1.7

model  reference  IMDB-BINARY  IMDB-MULTI  REDDIT-BINARY  COLLAB
GIN    xu2019     75.1±5.1     52.3±2.8    92.4±2.5       80.2±1.9
""")

#: Not in the paper: the optimal assignment kernel, in experiments of others than its authors.
WL_OA_ACCURACY = _scores("""
model  reference   NCI1
WL-OA  morris2020  85.0

model  reference  IMDB-BINARY  REDDIT-BINARY
WL-OA  horn2022   74.0±0.7     87.6±0.3
""")


def published_accuracy(model: str, dataset: str) -> Score | None:
    """Return what is printed for a model on a dataset, in the paper or elsewhere."""
    return (ACCURACY | GIN_ACCURACY | WL_OA_ACCURACY).get(model, {}).get(dataset)


#: Table 2: layers of the selected configurations.
DEPTH = {
    "MUTAG": Value(3.2, 1.0),
    "PTC_MR": Value(1.0, 0.0),
    "COX2": Value(2.7, 0.8),
    "PROTEINS": Value(1.0, 0.0),
    "NCI1": Value(3.8, 0.6),
    "IMDB-BINARY": Value(3.2, 1.2),
    "IMDB-MULTI": Value(4.4, 0.8),
    "REDDIT-BINARY": Value(3.0, 0.0),
    "COLLAB": Value(4.5, 0.8),
}


#: Table 3: in MATLAB, single core of an Intel Xeon E5-263L v3.
TIMES = {
    "MUTAG": Times(Value(0.56, 0.33), Value(0.06, 0.04)),
    "PTC_MR": Times(Value(0.16, 0.03), Value(0.02, 0.00)),
    "COX2": Times(Value(1.36, 0.42), Value(0.15, 0.05)),
    "PROTEINS": Times(Value(2.16, 0.47), Value(0.24, 0.04)),
    "NCI1": Times(Value(120.0, 27.0), Value(13.36, 3.02)),
    "IMDB-BINARY": Times(Value(7.46, 3.14), Value(0.83, 0.35)),
    "IMDB-MULTI": Times(Value(8.68, 1.73), Value(0.98, 0.22)),
    "REDDIT-BINARY": Times(Value(148.2, 0.6), Value(16.49, 0.28)),
    "COLLAB": Times(Value(1371.6, 282.0), Value(152.4, 31.2)),
}

#: Table 4: seconds to train on MUTAG, all on one machine.
MUTAG_TRAINING_TIMES = {
    "FDGNN": Value(0.56, 0.33),
    "GNN": Value(202.28, 166.87),
    "GIN": Value(499.24, 2.25),
    "WL": Value(1.16, 0.03),
}

#: MUTAG in GIN's protocol, the best accuracy on the validation folds: FDGNN's, and GIN's range.
MUTAG_GIN_PROTOCOL = {"FDGNN": 94.8, "GIN": (83.5, 90.0)}

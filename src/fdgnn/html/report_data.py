"""Report data: what an HTML report shows of a model and its graphs, and its file ``report.json``.

Reading a file checks every field, so that a report can trust what it shows. Lists have a largest
length, whatever the dataset, and a file stays below about 1.5 MB for each target. Names, labels and
ids are text from the user's files; whoever shows them has to escape them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from fdgnn.exceptions import StudyError
from fdgnn.files import write_aside
from fdgnn.records import Record, decode, encode, read_record

MAPPED = 1000  # graphs on the map, at most
MISTAKES = 12  # graphs listed as mistakes, at most
ITERATED = 2000  # graphs whose convergence is measured, at most
BARS = 40  # bars of a histogram, about
LABELS = 30  # vertex labels that are counted one by one, at most
CLASSES = 50  # classes that are shown one by one, at most
BINS = 10  # bins of probability, at most
SUBSTRUCTURES = 200  # of all classes together, at most
BASE_MODELS = 200  # that are listed, at most
DESCRIPTORS = 100  # that are listed, at most
OUT_OF_DOMAIN = 50  # out-of-domain graphs that are listed, at most
TARGETS = 6  # targets of a model whose data are shown, at most

Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Numbered = Annotated[int, Meta(ge=1, le=2**63 - 1)]  # counted from 1
Setting = bool | int | float | str | None


class BarCounts(Record, frozen=True, kw_only=True):
    """Counts by category (labels, degrees, intervals of sizes), for each class where there are."""

    names: Annotated[list[str], Meta(max_length=CLASSES)]
    series: Annotated[
        list[tuple[str, Annotated[list[Count], Meta(max_length=CLASSES)]]],
        Meta(min_length=1, max_length=CLASSES),
    ]  # of each class, or one with the name ""

    def __post_init__(self) -> None:
        for name, counts in self.series:
            if len(counts) != len(self.names):
                raise ValueError(
                    f"{len(self.names)} categories, but {len(counts)} counts of {name!r}"
                )

    @property
    def totals(self) -> list[int]:
        """The counts of all classes together."""
        return [sum(each) for each in zip(*(counts for _, counts in self.series), strict=True)]


class DataStatistics(Record, frozen=True, kw_only=True):
    """Statistics of the graphs and their targets."""

    n_graphs: Count
    n_vertices: Count
    n_arcs: Count
    n_self_loops: Count
    n_merged_arcs: Count
    undirected: bool
    n_distinct: Count  # graphs that 1-WL distinguishes
    n_labels: Count
    n_features: Count
    majority: Share | None  # share of the most common class
    wl_ceiling: Share | None  # the best accuracy that message passing can reach
    vertices_range: tuple[Count, Count]  # of the smallest and of the largest graph
    max_degree: Count
    sizes: BarCounts  # graphs by their number of vertices
    mean_sizes: list[tuple[str, Number]]  # vertices per graph, by class
    degrees: BarCounts  # vertices by their number of neighbors
    labels: BarCounts | None  # vertices by label, the most common first
    targets: BarCounts | None  # graphs by class, or by intervals of the target


class BaseModelRow(Record, frozen=True, kw_only=True):
    """A base model of an ensemble, or the only one."""

    name: str
    encoder: str  # the class of the encoder, or those that a union joins
    readout: str
    alpha: Number | None  # None where it is not known
    n_estimators: Numbered  # random initializations


class SubstructureRow(Record, frozen=True, kw_only=True):
    """A WL label that counts for a class, or moves a number, and a graph that has it."""

    target: str | None  # the class; None for a regression
    words: str
    attribution: Number  # what it adds to the score, averaged over the graphs that have it
    n_graphs: Count  # graphs that have it
    graph: Count  # the example
    steps: list[Annotated[int, Meta(ge=-1)]]  # of each vertex from the label; -1: out of its sight
    radius: Count  # edges belong to it that have an end less than so many steps away


class LayerDynamics(Record, frozen=True, kw_only=True):
    """One layer of a reservoir, and how its states converge."""

    layer: Numbered
    spectral_radius: Number  # rho(W_H)
    norm: Number  # ||W_H||
    effective: Number  # rho(W_H) k
    absolute_radius: Number  # rho(|W_H|), which times rho(|A|) is a graph's certificate
    certified: Count  # graphs that have one fixed point for certain
    uncertified: Count
    unconverged: Count  # graphs that moved by tol or more in the last iteration
    mean_iterations: Number  # of the paper's loop


class ReservoirDynamics(Record, frozen=True, kw_only=True):
    """The convergence of the states of a reservoir, by the paper's loop."""

    model: str  # which reservoir it is
    degree: Number  # k as used
    tol: Number
    max_iter: Count
    n_graphs: Count  # graphs that were iterated: all, or a part of a large dataset
    layers: list[LayerDynamics]


class GraphRow(Record, frozen=True, kw_only=True):
    """One graph on the map, and its prediction."""

    graph: Count  # its position, from 0
    id: str
    x: Number  # its place on the map, from -1 to 1, both axes on one scale
    y: Number
    actual: str | Number | None  # class or number; None if it is not known
    predicted: str | Number
    correct: bool | None  # None for a regression, or if it is not known
    score: Number  # output for the predicted class; of a regression, the prediction
    probability: Share | None  # calibrated, of the predicted class
    n_vertices: Count
    n_edges: Count
    fold: Numbered | None  # the outer fold that held it out


class Drawing(Record, frozen=True, kw_only=True):
    """A graph laid out for a page, with what each vertex adds to the score."""

    graph: Count
    positions: list[Annotated[int, Meta(ge=0, le=1000)]]  # x, y, x, y, ...; y points downward
    edges: list[Count]  # u, v, u, v, ...; an undirected edge occurs once
    directed: bool
    orders: list[Number] | None  # of a molecule's bonds; 1.5 is aromatic
    labels: list[str] | None
    attributions: list[Number]  # to the score of the predicted class, relative to their mean
    molecule: bool
    smiles: str | None

    def __post_init__(self) -> None:
        n, m = len(self.attributions), len(self.edges) // 2
        fits = (
            len(self.positions) == 2 * n
            and len(self.edges) == 2 * m
            and max(self.edges, default=-1) < n
            and (self.labels is None or len(self.labels) == n)
            and (self.orders is None or len(self.orders) == m)
        )
        if not fits:
            raise ValueError("the vertices, edges and labels of the drawing do not fit together")


class ProbabilityBin(Record, frozen=True, kw_only=True):
    """Graphs that were predicted with a similar probability."""

    start: Share
    stop: Share
    n: Numbered
    probability: Share  # mean
    accuracy: Share


class Calibration(Record, frozen=True, kw_only=True):
    """Calibration: frequencies of correct predictions by their probabilities."""

    bins: Annotated[list[ProbabilityBin], Meta(max_length=BINS)]
    brier: Number
    expected_error: Number


class Coverage(Record, frozen=True, kw_only=True):
    """Coverage: how often prediction sets or intervals contain the truth."""

    coverage: Share  # as requested
    covered: Share | None  # None if the truth is not known
    size: Number  # classes in a set, or the width of an interval, on average
    empty: Share | None = None  # sets without a class; None for a regression


class OutOfDomainGraph(Record, frozen=True, kw_only=True):
    """A graph outside of the applicability domain."""

    graph: Count
    id: str
    score: Share
    reason: str


class DomainSummary(Record, frozen=True, kw_only=True):
    """Which graphs are out of domain.

    Errors are shares of wrong classes, or mean absolute errors; None where there are no such graphs
    or the truth is not known.
    """

    n_outside: Count
    error_outside: Number | None
    error_inside: Number | None
    graphs: Annotated[list[OutOfDomainGraph], Meta(max_length=OUT_OF_DOMAIN)]  # farthest first


class ReportData(Record, frozen=True, kw_only=True):
    """Report data of a model, one of its targets, and a set of graphs."""

    format: Literal[5] = 5
    dataset: str
    target: str = ""  # of several
    task: Literal["classification", "regression"]
    # By models that may have seen the graphs in training, by one that has not, or by the models of
    # the outer folds that held the graphs out.
    predictions: Literal["seen", "unseen", "out of fold"]
    classes: list[str]  # all different, in the model's order; none for a regression
    model: str  # a sentence: whose features make the map
    data: DataStatistics
    graphs: Annotated[list[GraphRow], Meta(max_length=MAPPED)]  # all mistakes are among them
    explained: tuple[Number, Number]  # shares of variance of x and y
    drawings: Annotated[list[Drawing], Meta(max_length=MAPPED)]  # of small graphs
    mistakes: Annotated[list[Count], Meta(max_length=MISTAKES)]  # most confident, or largest, first
    # By metric, over all graphs, first the one that models are chosen by; errors are positive.
    scores: dict[str, Number]
    baseline: dict[str, Number]  # the same for the best constant prediction
    confusion: list[list[Count]] | None  # rows actual, columns predicted, over all graphs
    calibration: Calibration | None
    coverages: list[Coverage]
    domain: DomainSummary | None  # where the graphs may be new to the model
    base_models: Annotated[list[BaseModelRow], Meta(max_length=BASE_MODELS)]
    dynamics: ReservoirDynamics | None  # None where no base model has a reservoir
    # Over the graphs on the map, the largest sums of attributions first; of a regression, those
    # that raise the value, and then those that lower it.
    substructures: Annotated[list[SubstructureRow], Meta(max_length=SUBSTRUCTURES)]
    # Graph-level features that the model reads, with the sizes of their attributions, averaged over
    # the graphs on the map; the largest first.
    descriptors: Annotated[list[tuple[str, Number]], Meta(max_length=DESCRIPTORS)]
    parameters: dict[str, Setting]  # of the model
    versions: dict[str, str]
    machine: dict[str, str]
    command: str | None
    notes: list[str] = field(default_factory=list)  # for instance about rows that were left out

    def __post_init__(self) -> None:
        n = len(self.classes)
        rows = [[0] * n] * n if self.confusion is None else self.confusion
        if [len(row) for row in rows] != [n] * n:
            raise ValueError(f"the confusion matrix is not {n} x {n}, though there are {n} classes")
        sizes = {drawing.graph: len(drawing.attributions) for drawing in self.drawings}
        for one in self.substructures:
            if one.steps and len(one.steps) != sizes.get(one.graph, len(one.steps)):
                raise ValueError(f"a substructure does not fit the drawing of graph {one.graph}")
            if one.target is not None and one.target not in self.classes:
                raise ValueError(
                    f"a substructure is for the class {one.target}, which is not there"
                )


# ---------------------------------------------------------------------- files


def write_report_data(path: str | os.PathLike[str], data: list[ReportData]) -> None:
    """Write report data, one entry for each target, as a JSON file, completely or not at all.

    Raises
    ------
    ValueError
        The data have something that they must not have, for instance a number that is NaN.
    StudyError
        The file cannot be written.
    """
    content = encode(data)
    decode(content, list[ReportData])
    try:
        with write_aside(Path(path)) as file:
            file.write(content)
    except OSError as error:
        raise StudyError(f"{path}: the report data cannot be written ({error})") from error


def read_report_data(path: str | os.PathLike[str]) -> list[ReportData]:
    """Read report data and check every field.

    Raises
    ------
    StudyError
        The file cannot be read, has no report data, or is damaged; the message says where.
    """
    return read_record(Path(path), list[ReportData])

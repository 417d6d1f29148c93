"""The portrait's fields, and portraits as files.

A `Portrait` is a tree of records. ``portrait.json`` is its JSON, and reading it checks every field,
so that a page can trust what it shows. Lists have a largest length, whatever the dataset, and a
file stays below about 1.5 MB. Names, labels and ids are text from the user's files. Whoever shows
them has to escape them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, field

from fdgnn.exceptions import StudyError
from fdgnn.files import write_aside
from fdgnn.limits import MAX_RUN_FILE_BYTES
from fdgnn.records import Record, decode, encode

FORMAT = 3  # of Portrait.format

MAPPED = 1000  # graphs on the map, at most
MISTAKES = 12  # graphs listed as mistakes, at most
ITERATED = 2000  # graphs whose convergence is measured, at most
CURVES = 60  # curves of all layers together, at most
STEPS = 200  # steps of a curve, at most
BARS = 40  # bars of a histogram, about
LABELS = 30  # vertex labels that are counted one by one, at most
CLASSES = 50  # classes that are shown one by one, at most
BINS = 10  # bins of probability, at most
SUBSTRUCTURES = 200  # of all classes together, at most
BASE_MODELS = 200  # that are listed, at most
DESCRIPTORS = 100  # columns beside the graphs that are listed, at most
UNLIKE = 50  # graphs unlike those of training that are listed, at most

T = TypeVar("T")
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Share = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Numbered = Annotated[int, Meta(ge=1, le=2**63 - 1)]  # counted from 1
Bars = Annotated[list[Count], Meta(max_length=BARS + 1)]
Setting = bool | int | float | str | None
Settings = dict[str, Setting | list[Setting]]


class Histogram(Record, frozen=True, kw_only=True):
    """Counts between edges: bar i reaches from edge i to edge i + 1."""

    edges: Annotated[list[Number], Meta(max_length=BARS + 2)]
    counts: Bars

    def __post_init__(self) -> None:
        _check_bars(self.edges, self.counts)


class ClassSizes(Record, frozen=True, kw_only=True):
    """How many graphs of a class are in each bar of the sizes."""

    name: str  # a class, or "all"
    counts: Bars


class SizeHistogram(Record, frozen=True, kw_only=True):
    """Graphs by their number of vertices: bar i has sizes from edge i to below edge i + 1."""

    edges: Annotated[list[Count], Meta(max_length=BARS + 2)]
    classes: Annotated[list[ClassSizes], Meta(max_length=CLASSES)]

    def __post_init__(self) -> None:
        for one in self.classes:
            _check_bars(self.edges, one.counts)


def _check_bars(edges: list[T], counts: list[int]) -> None:
    if len(edges) != len(counts) + 1:
        raise ValueError(f"a histogram has {len(counts)} bars, but {len(edges)} edges")


class DegreeBars(Record, frozen=True, kw_only=True):
    """Vertices by their number of neighbors; a bar covers several numbers where they are rare."""

    labels: Annotated[list[str], Meta(max_length=BARS + 1)]
    counts: Bars

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.counts):
            raise ValueError(f"{len(self.counts)} bars have {len(self.labels)} labels")


class GraphCounts(Record, frozen=True, kw_only=True):
    """Counts of a set of graphs."""

    n_graphs: Count
    n_vertices: Count
    n_arcs: Count
    n_self_loops: Count
    n_merged_arcs: Count
    undirected: bool
    n_distinct: Count  # graphs that 1-WL can tell apart
    n_labels: Count
    n_features: Count
    majority: Share | None  # share of the most common class
    wl_ceiling: Share | None  # the best accuracy that message passing can reach


class DataFacts(GraphCounts, frozen=True, kw_only=True):
    """What the graphs are like."""

    class_counts: list[tuple[str, Count]]  # of all classes, in their order
    vertices_range: tuple[Count, Count]  # of the smallest and of the largest graph
    max_degree: Count  # largest number of neighbors
    targets: Histogram | None  # of a regression
    sizes: SizeHistogram
    degrees: DegreeBars
    labels: Annotated[list[tuple[str, Count]], Meta(max_length=LABELS)]  # most common first


class ShownModel(Record, frozen=True, kw_only=True):
    """A fitted model whose features make the map, or whose dynamics are shown."""

    encoder: str  # the class of its encoder
    name: str = ""  # of its base model, where there are several
    fold: Numbered | None  # the first of the folds that chose what most folds chose
    folds_alike: Count | None  # folds that chose this configuration; alpha may differ
    n_folds: Count | None
    n_layers: Count | None  # None where the encoder has no layers
    effective_spectral_radius: Number | None


class BaseModelFacts(Record, frozen=True, kw_only=True):
    """A base model of an ensemble."""

    name: str
    encoder: str  # the class of the encoder, or those that a union joins
    readout: str
    alpha: Number | None  # None where it is not known
    n_estimators: Numbered  # random initializations


class SubstructureFacts(Record, frozen=True, kw_only=True):
    """A WL label that counts for or against a class, and a graph that has it."""

    target: str | None  # the class; None for a regression
    words: str
    round: Count  # WL iteration
    weight: Number  # what it adds to the score, averaged over all graphs
    contribution: Number  # averaged over the graphs that have it
    n_graphs: Count  # graphs that have it
    graph: Count  # the example
    steps: list[Annotated[int, Meta(ge=-1)]]  # of each vertex from the label; -1: it is not seen
    radius: Count  # edges are seen that have an end less than so many steps away


class DescriptorFacts(Record, frozen=True, kw_only=True):
    """A column that the model reads beside the graphs."""

    name: str
    values: str  # a range or the categories, as in training
    n_missing: Count  # of all graphs
    moves: Number  # the size of its contribution, averaged over the graphs on the map


class LayerFacts(Record, frozen=True, kw_only=True):
    """One layer of a reservoir, and how its states converge."""

    layer: Numbered
    spectral_radius: Number  # rho(W_H)
    norm: Number  # ||W_H||
    effective: Number  # rho(W_H) k
    absolute_radius: Number  # rho(|W_H|), which times rho(|A|) is a graph's certificate
    certified: Count  # graphs that have one fixed point for certain
    uncertified: Count
    unconverged: Count  # graphs that moved by tol or more in the last step
    iterations: list[tuple[Count, Count]]  # steps of the paper's loop, and graphs that took them


class Curve(Record, frozen=True, kw_only=True):
    """How one graph converges in one layer."""

    layer: Numbered
    graph: Count
    certified: bool
    residuals: Annotated[list[Number], Meta(max_length=STEPS)]  # ||X_t - X_(t-1)||_F, step by step


class DynamicsFacts(Record, frozen=True, kw_only=True):
    """How the states of a reservoir converge, by the paper's loop."""

    degree: Number  # k as used
    tol: Number
    max_iter: Count
    n_graphs: Count  # graphs that were iterated: all, or a part of a large dataset
    layers: list[LayerFacts]
    curves: Annotated[list[Curve], Meta(max_length=CURVES)]
    radii: Annotated[list[Number], Meta(max_length=ITERATED)]  # rho(|A|) of the iterated graphs


class GraphRow(Record, frozen=True, kw_only=True):
    """One graph on the map, and what the model says about it."""

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
    contributions: list[Number]  # to the score of the predicted class, relative to their mean
    molecule: bool
    smiles: str | None

    def __post_init__(self) -> None:
        n, m = len(self.contributions), len(self.edges) // 2
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


class CalibrationFacts(Record, frozen=True, kw_only=True):
    """How often predictions are right, beside their probabilities."""

    bins: Annotated[list[ProbabilityBin], Meta(max_length=BINS)]
    brier: Number
    expected_error: Number


class RegressionFacts(Record, frozen=True, kw_only=True):
    """How far a regressor is off."""

    r2: Number | None  # None where all targets are equal
    mean_absolute_error: Number


class CoverageFacts(Record, frozen=True, kw_only=True):
    """How often sets of classes, or intervals, hold the truth."""

    coverage: Share  # as asked for
    covered: Share | None  # None if the truth is not known
    size: Number  # classes in a set, or the width of an interval, on average
    empty: Share | None = None  # sets without a class; None for a regression


class UnlikeGraph(Record, frozen=True, kw_only=True):
    """A graph that is unlike those of training."""

    graph: Count
    id: str
    novelty: Share
    words: str  # why


class TrustFacts(Record, frozen=True, kw_only=True):
    """How far predictions for graphs that models have not seen can be trusted.

    Errors are shares of wrong classes, or mean absolute errors; None where there are no such graphs
    or the truth is not known.
    """

    coverages: list[CoverageFacts]
    n_unlike: Count
    error_unlike: Number | None
    error_others: Number | None
    unlike: Annotated[list[UnlikeGraph], Meta(max_length=UNLIKE)]  # the most unlike first


class Machine(Record, frozen=True, kw_only=True):
    """The machine that a portrait was made on; what it does not tell is None."""

    python: str
    system: str
    cpu: str
    cores: Count
    cpu_model: str | None
    memory_gb: Number | None


class Portrait(Record, frozen=True, kw_only=True):
    """What a page shows of a model and its data."""

    format: Literal[3] = 3
    dataset: str
    task: Literal["classification", "regression"]
    held_out: bool  # whether no model saw in training what it predicts here
    how: str  # a sentence: which models made the predictions
    classes: list[str]  # all different, in the model's order; none for a regression
    n_estimators: Count
    shown: ShownModel
    data: DataFacts
    dynamics: DynamicsFacts | None  # None where no base model has a reservoir
    graphs: Annotated[list[GraphRow], Meta(max_length=MAPPED)]  # all mistakes are among them
    explained: tuple[Number, Number]  # shares of variance of x and y
    drawings: Annotated[list[Drawing], Meta(max_length=MAPPED)]  # of small graphs
    mistakes: Annotated[list[Count], Meta(max_length=MISTAKES)]  # most confident, or largest, first
    confusion: list[list[Count]] | None  # rows actual, columns predicted, over all graphs
    calibration: CalibrationFacts | None
    regression: RegressionFacts | None
    settings: Settings  # of the model; a list where the models of the folds differ
    command: str | None
    versions: dict[str, str]
    machine: Machine
    base_models: Annotated[list[BaseModelFacts], Meta(max_length=BASE_MODELS)] = field(
        default_factory=list
    )
    dynamics_of: ShownModel | None = None  # where it is not the model of the map
    # Over the graphs on the map; for each class those for it, and then those against it.
    substructures: Annotated[list[SubstructureFacts], Meta(max_length=SUBSTRUCTURES)] = field(
        default_factory=list
    )
    roc_auc: Share | None = None  # None for a regression, or if it is not known
    # What moves scores most comes first.
    descriptors: Annotated[list[DescriptorFacts], Meta(max_length=DESCRIPTORS)] = field(
        default_factory=list
    )
    trust: TrustFacts | None = None  # where the graphs are new to the models that predict them

    def __post_init__(self) -> None:
        n = len(self.classes)
        rows = [[0] * n] * n if self.confusion is None else self.confusion
        if [len(row) for row in rows] != [n] * n:
            raise ValueError(f"the confusion matrix is not {n} x {n}, though there are {n} classes")
        sizes = {drawing.graph: len(drawing.contributions) for drawing in self.drawings}
        for one in self.substructures:
            if one.steps and len(one.steps) != sizes.get(one.graph, len(one.steps)):
                raise ValueError(f"a substructure does not fit the drawing of graph {one.graph}")
            if one.target is not None and one.target not in self.classes:
                raise ValueError(
                    f"a substructure is for the class {one.target}, which is not there"
                )


# ---------------------------------------------------------------------- files


def write_portrait(path: str | os.PathLike[str], portrait: Portrait) -> None:
    """Write a portrait as a JSON file, completely or not at all.

    Raises
    ------
    ValueError
        The portrait has something that it must not have, for instance a number that is NaN.
    StudyError
        The file cannot be written.
    """
    content = encode(portrait)
    decode(content, Portrait)
    try:
        with write_aside(Path(path)) as file:
            file.write(content)
    except OSError as error:
        raise StudyError(f"{path}: the portrait cannot be written ({error})") from error


def read_portrait(path: str | os.PathLike[str]) -> Portrait:
    """Read a portrait and check every field.

    Raises
    ------
    StudyError
        The file cannot be read, is no portrait, or is damaged; the message says where.
    """
    if not Path(path).is_file():  # a pipe would be waited for
        raise StudyError(f"{path}: it cannot be read (there is no such file)")
    try:
        if MAX_RUN_FILE_BYTES.is_below(Path(path).stat().st_size):
            raise StudyError(f"{path}: it is too large; {MAX_RUN_FILE_BYTES.in_words}")
        content = Path(path).read_bytes()
    except OSError as error:
        raise StudyError(f"{path}: it cannot be read ({error.strerror or error})") from error
    try:
        return decode(content, Portrait)
    except ValueError as error:
        raise StudyError(f"{path}: {_fault(content, error)}; make it again") from None


class _Formatted(msgspec.Struct):
    format: int


def _fault(content: bytes, error: ValueError) -> str:
    """What is wrong: another format, or the first field that is not as it should be."""
    try:
        found = decode(content, _Formatted).format
    except ValueError:
        return f"it is no portrait ({error})"
    if found != FORMAT:
        return f"it has the format {found}, but this version reads format {FORMAT}"
    return f"the portrait is damaged ({error})"

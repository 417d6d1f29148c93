"""What a playground page holds, as typed records; numbers in bulk are arrays beside them."""

from __future__ import annotations

from typing import Literal

import msgspec

from fdgnn.records import Record

Label = int | str


class DrawnProjection(Record, frozen=True, kw_only=True):
    """How a projection W_phi was drawn: the page draws it again, which takes less room."""

    entropy: list[int]  # of the seed, in words of 32 bits
    key: list[int]
    rows: int  # P
    columns: int  # features of the encoder
    norm: float  # that it was divided by


class PageModel(Record, frozen=True, kw_only=True):
    """A fitted model as its file would have it, and what follows from its arrays."""

    record: msgspec.Raw  # `fdgnn.model_files.description.ModelRecord`
    radii: dict[str, list[float]]  # rho(|W_H|) of the layers, by the place of the encoder
    projections: dict[str, DrawnProjection]  # those that are drawn again, by name


class MoleculeRules(Record, frozen=True, kw_only=True):
    """How the model reads molecules, for the page to read them alike."""

    atoms: Literal["element", "typed", "rich"]
    bonds: Literal["types", "orders"] | None
    stereo: bool = False
    standardize: str | None = None


class PageGraphs(Record, frozen=True, kw_only=True):
    """Graphs of a page; their arrays lie end to end under names that begin with ``graphs.``."""

    ids: list[str]
    directed: bool
    labels: list[Label] | None  # different labels of vertices, that arrays have numbers of
    edge_labels: list[Label] | None
    n_features: int | None
    weighted: bool
    elements: list[str] | None = None  # of atoms, that arrays have numbers of
    n_all: int  # how many graphs the dataset has, of which these may be some
    classes: list[Label | bool | float] | None = None  # that the array of answers has numbers of


class PageTraining(Record, frozen=True, kw_only=True):
    """What training in the page needs besides the graphs."""

    degree: float  # k: the mean over graphs of the largest neighborhood
    n_folds: int
    code: list[str]  # lines of Python that give `graphs` and `y`


class PageContent(Record, frozen=True, kw_only=True):
    """All that a page holds, beside arrays."""

    title: str
    version: str
    dataset: str
    model: PageModel
    graphs: PageGraphs | None
    training: PageTraining | None
    molecules: MoleculeRules | None
    names: dict[str, str]  # what vertex labels are called, by their text
    edge_names: dict[str, str]
    class_names: dict[str, str]
    notes: list[str]

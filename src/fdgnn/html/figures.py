"""The elements of a report: sections of parts, figures with captions, and their tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fdgnn.html.words import NONE

Row = dict[str, Any]  # the fields of one mark of a chart, by name
Spec = dict[str, Any]  # a chart as Vega-Lite reads it
Cell = str | tuple[str, str]  # text, or text and a class of the style sheet


@dataclass(frozen=True)
class Table:
    """Rows of text; the first `n_words` columns are words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_words: int = 1
    note: str = ""

    @classmethod
    def without_empty(
        cls, head: Sequence[str], rows: Sequence[Sequence[Cell]], n_words: int = 1, note: str = ""
    ) -> Table:
        """Return a table without the columns of numbers that are not known in any row."""
        empty = {NONE, (NONE, ""), (NONE, "ours")}
        kept = [
            i for i in range(len(head)) if i < n_words or any(row[i] not in empty for row in rows)
        ]
        cells = [[row[i] for i in kept] for row in rows]
        return cls([head[i] for i in kept], cells, n_words, note)


@dataclass(frozen=True)
class Key:
    """One entry of a legend: how a mark looks, and what it means."""

    mark: str  # circle, diamond, square, triangle, tick, band, line, dashes, ring, dot
    color: str  # a variable of the style sheet, such as "c1", "ink" or "quiet"
    words: str


@dataclass(frozen=True)
class Panel:
    """One chart of a figure; it needs a title where a figure has several charts.

    `uses` names tables of the page that the chart reads, beside the rows in its specification.
    """

    id: str
    spec: Spec
    title: str = ""
    uses: Sequence[str] = ()


@dataclass(frozen=True)
class MapBody:
    """A map of graphs with a chosen graph beside it."""

    kind: ClassVar[str] = "map"
    run: int
    toggle: bool  # whether colors can show right and wrong
    modes: tuple[str, str]
    keys: Sequence[tuple[str, Sequence[Key]]]  # a legend for each mode
    first: int  # the graph that is shown first


@dataclass(frozen=True)
class ConfusionCell:
    """How many graphs of one class were predicted as another."""

    n: str
    share: str
    depth: float  # of the color
    right: bool


@dataclass(frozen=True)
class ConfusionBody:
    """A confusion matrix: for each actual class, its name and a cell per predicted class."""

    kind: ClassVar[str] = "confusion"
    classes: Sequence[str]
    rows: Sequence[tuple[str, Sequence[ConfusionCell]]]


@dataclass(frozen=True)
class GraphCard:
    """A graph that is drawn, with a title and a line of text.

    With `steps`, numbers of each vertex apart by spaces, a substructure is marked in it.
    """

    graph: int
    title: str
    words: str
    note: str = ""
    steps: str | None = None
    radius: int = 0


@dataclass(frozen=True)
class CardsBody:
    """Cards of drawn graphs."""

    kind: ClassVar[str] = "cards"
    run: int
    cards: Sequence[GraphCard]


@dataclass(frozen=True)
class Figure:
    """Charts with one caption, which says what to see, and one table.

    A figure that shows something other than charts has a `body`. `data` are tables that charts
    share, by name.
    """

    id: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    table: Table | None = None
    key: Sequence[Key] = ()
    body: MapBody | ConfusionBody | CardsBody | None = None
    half: bool = False  # whether it may share its line with another figure
    linked: bool = False  # whether a row under the pointer is lit in all panels
    open: bool = False  # whether the table is shown from the start
    data: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Which part of the template shows it."""
        return "charts" if self.body is None else self.body.kind


@dataclass(frozen=True)
class Missing:
    """Why a part cannot be shown, and the command that would add it."""

    why: str
    command: str = ""


@dataclass(frozen=True)
class Card:
    """A result in a few words."""

    name: str
    value: str
    how: str
    spread: str = ""
    note: str = ""
    warning: str = ""
    command: str = ""


@dataclass(frozen=True)
class Part:
    """What a section shows of one subject."""

    run: int
    name: str
    figures: Sequence[Figure] = ()
    facts: Sequence[tuple[str, str]] = ()
    missing: Missing | None = None
    lead: str = ""
    command: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return not (self.figures or self.facts or self.missing or self.command)


@dataclass(frozen=True)
class Section:
    """A section of the page: cards and figures of all subjects together, then a part for each."""

    id: str
    title: str
    lead: str
    parts: Sequence[Part] = ()
    figures: Sequence[Figure] = ()
    cards: Sequence[Card] = ()

    @property
    def all_figures(self) -> list[Figure]:
        """The figures of the section and of its parts."""
        return [*self.figures, *(figure for part in self.parts for figure in part.figures)]

"""What a page is put together from: sections, figures with captions, and the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Cell = str | tuple[str, str]  # text, or text and a class of the style sheet


@dataclass(frozen=True)
class Table:
    """Rows of text; the first `n_words` columns are words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    n_words: int = 1
    note: str = ""


@dataclass(frozen=True)
class Key:
    """One entry of a figure's legend: how a mark looks, and what it says."""

    mark: str  # circle, diamond, square, triangle, tick, band, line, dashes, ring, dot
    color: str  # a variable of the style sheet, as "c1", "ink" or "quiet"
    words: str


@dataclass(frozen=True)
class Panel:
    """One chart of a figure; `title` is needed where a figure has several.

    `uses` names tables of the page that the chart reads, beside what is in its specification.
    """

    id: str
    spec: dict[str, Any]
    title: str = ""
    uses: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """Charts with one caption, which says what to see, and one table.

    `kind` is "charts", or "map", "confusion" or "cards" for those that the template builds itself
    from `extra`. `data` are tables that charts share, by name.
    """

    id: str
    title: str
    caption: str
    panels: Sequence[Panel] = ()
    table: Table | None = None
    key: Sequence[Key] = ()
    kind: str = "charts"
    half: bool = False  # whether it may share its line with another
    heads: bool = False  # whether panels have their titles above them
    linked: bool = False  # whether a row under the pointer is lit in all panels
    open: bool = False  # whether the table is shown from the start
    extra: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Sequence[dict[str, Any]]] = field(default_factory=dict)


@dataclass(frozen=True)
class Missing:
    """A part that cannot be shown: why, and the command that would change it."""

    why: str
    command: str = ""


@dataclass(frozen=True)
class Block:
    """What a section has to say of one source."""

    run: int
    name: str
    figures: Sequence[Figure] = ()
    facts: Sequence[tuple[str, str]] = ()
    missing: Missing | None = None
    lead: str = ""
    tables: Sequence[tuple[str, Table]] = ()
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page: figures of all sources together, then a block for each."""

    id: str
    title: str
    lead: str
    figures: Sequence[Figure] = ()
    blocks: Sequence[Block] = ()
    cards: Sequence[dict[str, str]] = ()
    after: Sequence[Figure] = ()

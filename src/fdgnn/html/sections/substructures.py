"""Substructures: what the model looks for, drawn in examples."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from fdgnn.html.figures import (
    Figure,
    Key,
    Part,
    Section,
    SubstructureCard,
    SubstructuresBody,
    Table,
)
from fdgnn.html.model_data.records import Portrait, SubstructureFacts
from fdgnn.html.numbers import count, plural, significant
from fdgnn.html.subjects import Subject

_TYPED_ATOM = re.compile(r"\b[A-Z][a-z]? \d+ H\d")  # as `atoms="typed"` writes them
_KEY = (
    Key("circle", "c1", "the vertex that is meant"),
    Key("ring", "c1", "what belongs to it"),
    Key("pale", "quiet", "the rest of the graph"),
)


def section(subjects: Sequence[Subject]) -> Section:
    """Return figures for each class, where the model has WL features."""
    return Section(
        id="substructures",
        title="Substructures",
        lead="A WL label stands for a vertex and all that is some steps around it. These are the "
        "WL labels that move the score most, averaged over the graphs on the map, each drawn in a "
        "small graph that has it.",
        parts=[
            Part(i, s.name, _figures(i, s.portrait), lead=_lead(s.portrait))
            for i, s in enumerate(subjects)
            if s.portrait is not None and s.portrait.substructures
        ],
    )


def _lead(portrait: Portrait) -> str:
    text = "Larger substructures contain smaller ones, which are counted for themselves."
    if len(portrait.classes) == 2:
        text += " What speaks for one of the two classes speaks against the other."
    if any(one.encoder == "GraphReservoir" for one in portrait.base_models):
        text += (
            " The reservoir has no WL labels: what it adds to the score is not in these numbers."
        )
    if any(_TYPED_ATOM.search(one.words) for one in portrait.substructures):
        text += " An atom is written as its element, its neighbors and its hydrogens (H)."
    return text


@dataclass(frozen=True)
class _Group:
    """What is drawn in one figure, and what is only in its table."""

    title: str
    drawn: Sequence[SubstructureFacts]
    others: Sequence[SubstructureFacts] = ()


def _figures(run: int, portrait: Portrait) -> list[Figure]:
    regression = portrait.task == "regression"
    groups = _directions(portrait) if regression else _classes(portrait)
    return [
        _figure(f"substructures-{run}-{i}", run, group, portrait)
        for i, group in enumerate(groups)
        if group.drawn or group.others
    ]


def _directions(portrait: Portrait) -> list[_Group]:
    """What raises a value, and what lowers it."""
    found = portrait.substructures
    return [
        _Group("What raises the value", [one for one in found if one.weight > 0]),
        _Group("What lowers the value", [one for one in found if one.weight < 0]),
    ]


def _classes(portrait: Portrait) -> list[_Group]:
    """What speaks for each class; what speaks against it is in the table."""
    found: dict[str | None, list[SubstructureFacts]] = defaultdict(list)
    for one in portrait.substructures:
        found[one.target].append(one)
    return [
        _Group(
            f"What speaks for class {name}",
            [one for one in own if one.weight > 0],
            [one for one in own if one.weight < 0],
        )
        for name, own in found.items()
    ]


def _figure(id_: str, run: int, group: _Group, portrait: Portrait) -> Figure:
    n = len(portrait.graphs)
    return Figure(
        id=id_,
        title=group.title,
        caption=_caption(group, n, portrait.task == "regression"),
        table=_table([*group.drawn, *group.others]),
        body=SubstructuresBody(run, [_card(one, n) for one in group.drawn]),
        key=_KEY,
    )


def _caption(group: _Group, n: int, regression: bool) -> str:
    score = "value" if regression else "score of this class"
    end = " The table also has what speaks against the class." if group.others else ""
    if not group.drawn:
        return f"No color moves the {score} in this direction, on average over the graphs.{end}"
    first = group.drawn[0]
    where = "all" if first.n_graphs == n else f"{count(first.n_graphs)} of {count(n)}"
    return (
        f"The strongest first: {first.words}. It is in {where} graphs, and moves the {score} of "
        f"such a graph by {significant(first.contribution, 2)} on average.{end}"
    )


def _card(one: SubstructureFacts, n: int) -> SubstructureCard:
    verb = "adds" if one.contribution > 0 else "takes"
    often = f"in {count(one.n_graphs)} of {plural(n, 'graph')}"
    return SubstructureCard(
        graph=one.graph,
        words=one.words,
        facts=f"{often}, where it {verb} {significant(abs(one.contribution), 2)}",
        steps=" ".join(map(str, one.steps)),
        radius=one.radius,
    )


def _signed(value: float) -> str:
    return f"+{significant(value, 2)}" if value > 0 else significant(value, 2)


def _table(found: Sequence[SubstructureFacts]) -> Table:
    rows = [
        [
            one.words, _signed(one.weight), _signed(one.contribution), count(one.n_graphs),
            str(one.round), str(one.graph),
        ]
        for one in found
    ]  # fmt: skip
    return Table(
        ["substructure", "mean over all graphs", "where it is", "graphs", "rounds", "example"],
        rows,
        note="What its vertices add to the score together, as explanations count it, averaged "
        "over all graphs on the map and over those that have it. A color of r rounds sees r steps "
        "far; structural numbers see one or two steps.",
    )

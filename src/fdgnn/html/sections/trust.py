"""Whether a single prediction can be trusted: sets, intervals, and graphs unlike the training."""

from __future__ import annotations

from collections.abc import Sequence

from fdgnn.html.figures import Figure, Part, Section, Table
from fdgnn.html.model_data.records import CoverageFacts, Portrait, TrustFacts
from fdgnn.html.numbers import NONE, count, percent, plural, significant
from fdgnn.html.sections.graph_map import answer
from fdgnn.html.subjects import Subject


def section(subjects: Sequence[Subject]) -> Section:
    """A part for each subject whose graphs were new to the models that predicted them."""
    return Section(
        id="trust",
        title="Trust",
        lead="How far to trust the prediction of a single graph that the model has not seen.",
        parts=[
            Part(i, s.name, _figures(i, s.portrait, s.portrait.trust))
            for i, s in enumerate(subjects)
            if s.portrait is not None and s.portrait.trust is not None
        ],
    )


def _figures(run: int, portrait: Portrait, trust: TrustFacts) -> list[Figure]:
    covered = [_coverages(run, portrait, trust.coverages)] if trust.coverages else []
    return [*covered, _unlike(run, portrait, trust)]


# ---------------------------------------------------------------------- sets and intervals


def _coverages(run: int, portrait: Portrait, coverages: Sequence[CoverageFacts]) -> Figure:
    regression = portrait.task == "regression"
    what = "intervals" if regression else "sets of classes"
    head = ["asked for", "covered", *(["width"] if regression else ["classes", "empty sets"])]
    rows = [
        [percent(c.coverage, 0), percent(c.covered), significant(c.size)]
        + ([] if regression else [percent(c.empty)])
        for c in coverages
    ]
    return Figure(
        id=f"coverage-{run}",
        half=True,
        open=True,
        title="Intervals" if regression else "Sets of classes",
        caption=_coverage_caption(portrait, coverages, what),
        table=Table(head, rows, n_words=0),
    )


def _coverage_caption(portrait: Portrait, coverages: Sequence[CoverageFacts], what: str) -> str:
    n, largest = portrait.data.n_graphs, coverages[-1]
    text = f"How often the truth is in the model's {what}, beside how often it should be."
    if largest.covered is not None:
        chance = (largest.coverage * (1 - largest.coverage) / n) ** 0.5
        text += (
            f" By chance alone, the share of {plural(n, 'graph')} that is covered at "
            f"{percent(largest.coverage, 0)} varies by about {100 * chance:.1f} points."
        )
    size = significant(largest.size)
    if portrait.task == "regression":
        return f"{text} An interval for {percent(largest.coverage, 0)} is {size} wide."
    return f"{text} A set for {percent(largest.coverage, 0)} has {size} classes on average."


# ---------------------------------------------------------------------- unlike the training


def _unlike(run: int, portrait: Portrait, trust: TrustFacts) -> Figure:
    graphs = {g.graph: g for g in portrait.graphs}
    rows: list[list[str]] = []
    for one in trust.unlike:
        g = graphs.get(one.graph)
        said = [NONE, NONE] if g is None else [answer(g.actual), answer(g.predicted)]
        rows.append([str(one.graph), one.id, *said, percent(one.novelty, 0)])
    head = ["graph", "id", "actual", "predicted", "novelty"]
    shown = len(trust.unlike)
    note = f"The {shown} most unlike." if shown < trust.n_unlike else ""
    return Figure(
        id=f"unlike-{run}",
        half=True,
        title="Graphs unlike those of training",
        caption=_unlike_caption(portrait, trust),
        table=Table(head, rows, n_words=2, note=note) if rows else None,
    )


def _unlike_caption(portrait: Portrait, trust: TrustFacts) -> str:
    n = portrait.data.n_graphs
    text = (
        f"{count(trust.n_unlike)} of {plural(n, 'graph')}, {percent(trust.n_unlike / max(n, 1))}, "
        "are unlike the training graphs: more so than 99 % of these are among each other. Of "
        "graphs of the same kind, 1 % are."
    )
    for most in trust.unlike[:1]:
        text += f" The most unlike is graph {most.graph}: {most.words}."
    if trust.error_unlike is None or trust.error_others is None:
        return text
    if portrait.task == "regression":
        theirs, others = significant(trust.error_unlike), significant(trust.error_others)
        return (
            f"{text} The mean absolute error of these graphs is {theirs}, of the others {others}."
        )
    theirs, others = percent(trust.error_unlike), percent(trust.error_others)
    return f"{text} Of these graphs {theirs} are predicted wrongly, of the others {others}."

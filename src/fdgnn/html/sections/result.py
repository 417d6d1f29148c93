"""The result: accuracy by fold, beside the paper's row and what is possible at all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from fdgnn.evaluation import paper
from fdgnn.evaluation.committee_files import CommitteeRun
from fdgnn.html import charts
from fdgnn.html.figures import Card, Figure, Key, Panel, Row, Section, Table
from fdgnn.html.numbers import (
    NONE,
    count,
    listed,
    percent,
    plural,
    published_spread,
    significant,
    spread,
)
from fdgnn.html.outcomes import (
    Outcome,
    is_of_the_paper,
    is_regression,
    outcome_of,
    published_of,
    right_of,
    saved_score,
    shown_score,
    verdict,
    why_no_row,
)
from fdgnn.html.sections import saved_scores, table1
from fdgnn.html.sections.missing import command_again
from fdgnn.html.subjects import Subject

Shown = Sequence[tuple[Subject, Outcome]]


def section(subjects: Sequence[Subject]) -> Section:
    """Cards, accuracy by fold, ours among the published rows, and Table 1."""
    outcomes = [outcome_of(s) for s in subjects]
    shown = [(s, o) for s, o in zip(subjects, outcomes, strict=True) if o is not None and o.here]
    figures = [_folds(shown)] if shown else []
    known = [(s, o) for s, o in shown if is_of_the_paper(s)]
    if known:
        figures.append(table1.figure(known))
    figures += [saved] if (saved := saved_scores.figure(subjects)) is not None else []
    return Section(
        id="result",
        title="Result",
        lead="What to expect of the model on graphs it has never seen, and how that compares.",
        figures=figures,
        cards=[_card(s, o) for s, o in zip(subjects, outcomes, strict=True)],
    )


def summary(subjects: Sequence[Subject]) -> str:
    """The first sentence of the page."""
    n_graphs: dict[str, int] = {}  # targets of one model are about the same graphs
    for s in subjects:
        if facts := s.evaluation or (s.portrait and s.portrait.data):
            n_graphs[s.path] = max(facts.n_graphs, n_graphs.get(s.path, 0))
    what = f"From {subjects[0].origin}" if len(subjects) == 1 else listed(s.name for s in subjects)
    return f"{what}; {count(sum(n_graphs.values()))} graphs." if n_graphs else f"{what}."


# ---------------------------------------------------------------------- in a few words


def _card(subject: Subject, outcome: Outcome | None) -> Card:
    if outcome is not None:
        std = "" if outcome.std is None else f"± {100 * outcome.std:.1f}"
        how, note = f"accuracy, {outcome.how}", _beside(subject, outcome)
        card = Card(subject.name, percent(outcome.mean), how, std, note)
    elif subject.model is not None:
        card = _model_card(subject)
    else:
        card = _unfinished(subject)
    seen = subject.portrait is not None and not subject.portrait.held_out
    return replace(
        card,
        note=" ".join(filter(None, [card.note, *subject.notes])),
        warning=_seen(subject) if seen else "",
    )


def _beside(subject: Subject, outcome: Outcome) -> str:
    """What to compare the accuracy with."""
    if subject.evaluation is None:
        saved = _saved_beside(subject) if outcome.here else ""
        return f"{saved}{_other_measures(outcome)}".strip()
    published = published_of(subject)
    if published is None:
        text = why_no_row(subject)
    else:
        words = verdict(outcome, published)
        text = words[0].upper() + words[1:] + "."
    return text + _other_measures(outcome)


def _other_measures(outcome: Outcome) -> str:
    text = ""
    if outcome.balanced is not None:
        text += f" With all classes counting alike, the accuracy is {percent(outcome.balanced)}."
    if outcome.roc_auc is not None:
        text += f" The area under the ROC curve is {percent(outcome.roc_auc)}."
    return text


def _saved_beside(subject: Subject) -> str:
    saved = saved_score(subject)
    if saved is None:
        return ""
    return f"In its training: {shown_score(saved[0], subject)} ({saved[1]})."


def _model_card(subject: Subject) -> Card:
    """A model file without an accuracy on graphs held out: R2, or what was saved with it."""
    portrait, saved, name = subject.portrait, saved_score(subject), subject.name
    scores = None if portrait is None else portrait.regression
    if portrait and portrait.held_out and scores and scores.r2 is not None:
        error = significant(scores.mean_absolute_error)
        note = f"A prediction is off by {error} on average. {_saved_beside(subject)}"
        return Card(name, significant(scores.r2), "R², graphs held out", note=note.strip())
    what = "R²" if is_regression(subject) else "accuracy"
    note = ""
    if portrait is None:
        n_targets = 0 if subject.model is None else len(subject.model.targets)
        what += f", mean of {n_targets} targets" if n_targets > 1 else ""
        note = "Name some data to see what it does there."
    elif all(g.actual is None for g in portrait.graphs):
        note = "These graphs have no known answers to compare with."
    if saved is None:
        return Card(name, NONE, f"{what} on unseen graphs is not known", note=note)
    return Card(name, shown_score(saved[0], subject), f"{what}, {saved[1]}", note=note)


def _seen(subject: Subject) -> str:
    """How the model does on graphs that it may have seen, and that this is no promise."""
    right = right_of(subject)
    scores = None if subject.portrait is None else subject.portrait.regression
    if right is not None:
        what = f"Here it is right in {percent(right[0] / right[1])} of the cases"
    elif scores is not None and scores.r2 is not None:
        error = significant(scores.mean_absolute_error)
        what = f"Here R² is {significant(scores.r2)} and the mean absolute error {error}"
    else:
        return ""
    return f"{what}, but it may have seen these graphs in training: expect less on others."


def _unfinished(subject: Subject) -> Card:
    name = subject.name
    if subject.committee is not None:
        return _unfinished_committee(subject, subject.committee)
    if subject.settings is None:
        return Card(name, NONE, "a comparison", note="See its accuracies in the section on rivals.")
    command = command_again(subject) or ""
    on = "To continue:" if command else "The command that started it continues it."
    if subject.search is None:
        note = f"No network is scored yet. {on}"
        return Card(name, NONE, "not started", note=note, command=command)
    asked, n_estimators = subject.asked, subject.search.n_estimators
    wanted = (asked.n_configurations or 0) * (asked.n_guesses or 0) if asked else 0
    n = plural(n_estimators, "network")
    if wanted >= n_estimators:
        n = f"{count(n_estimators)} of {plural(wanted, 'network')}"
    note = f"{n} scored so far. {on}"
    return Card(name, NONE, "unfinished", note=note, command=command)


def _unfinished_committee(subject: Subject, run: CommitteeRun) -> Card:
    command = command_again(subject) or ""
    on = "To continue:" if command else "The command that started it continues it."
    total = plural(len(run.settings.members), "model")
    note = f"{count(run.n_trained)} of {total} trained so far. {on}"
    return Card(subject.name, NONE, "unfinished", note=note, command=command)


# ---------------------------------------------------------------------- accuracy by fold


def _folds(shown: Shown) -> Figure:
    rows = [row for s, o in shown for row in _fold_rows(s, o)]
    folds = any(o.folds for _, o in shown)
    return Figure(
        id="folds",
        title="Accuracy by outer fold" if folds else "Accuracy",
        caption=_folds_caption(shown),
        panels=[Panel("folds", charts.folds(rows, len(shown)))],
        table=_folds_table(shown),
        key=_folds_key(shown, folds),
    )


def _folds_key(shown: Shown, folds: bool) -> list[Key]:
    key = [Key("circle", "c1", "mean ± standard deviation" if folds else "ours")]
    if folds:
        equal = any(len(set(o.folds)) < len(o.folds) for _, o in shown)
        words = "one outer fold; larger: several that are equal" if equal else "one outer fold"
        key.insert(0, Key("dot", "c1", words))
    if any(published_of(s) for s, _ in shown):
        key.append(Key("diamond", "c2", "the paper, mean ± standard deviation"))
    if any(_bounds(s) for s, _ in shown):
        key.append(Key("band", "band", "from always the majority class to the WL ceiling"))
    return key


def _bounds(subject: Subject) -> tuple[float, float] | None:
    if subject.portrait is None:
        return None
    low, high = subject.portrait.data.majority, subject.portrait.data.wl_ceiling
    return None if low is None or high is None else (low, high)


def _fold_rows(subject: Subject, outcome: Outcome) -> list[Row]:
    def row(what: str, value: float, std: float | None, words: str) -> Row:
        low, high = value - (std or 0), value + (std or 0)
        return {
            "run": subject.name,
            "what": what,
            "lane": "paper" if what == "paper" else "ours",
            "value": round(100 * value, 3),
            "low": round(100 * low, 3),
            "high": round(100 * high, 3),
            "words": words,
            "shown": percent(value) if std is None else f"{spread(value, std)} %",
            "folds": 1,
        }

    rows = []
    bounds, published = _bounds(subject), published_of(subject)
    if bounds is not None:
        low, high = bounds
        band = row("possible", low, None, "always the majority class, to the WL ceiling")
        shown = f"{percent(low)} to {percent(high)}"
        rows.append(band | {"high": round(100 * high, 3), "shown": shown})
    for value, folds in _equal_folds(outcome).items():
        words = f"fold{'s' if len(folds) > 1 else ''} {listed(folds)}"
        rows.append(row("fold", value, None, words) | {"folds": len(folds)})
    rows.append(row("ours", outcome.mean, outcome.std, outcome.how))
    if published is not None:
        std = None if published.std is None else published.std / 100
        rows.append(row("paper", published.mean / 100, std, "the paper"))
    return rows


def _equal_folds(outcome: Outcome) -> dict[float, list[int]]:
    """Folds, from 1, by accuracy: those with the same accuracy would hide each other."""
    equal = defaultdict(list)
    for i, value in enumerate(outcome.folds, start=1):
        equal[value].append(i)
    return equal


def _folds_caption(shown: Shown) -> str:
    text = _alone(*shown[0]) if len(shown) == 1 else _side_by_side(shown)
    if any(_bounds(s) for s, _ in shown):
        text += (
            " The band begins at the accuracy of a model that always says the majority class. It "
            "ends at the WL ceiling, the best that any message passing can reach on these graphs."
        )
    return text


def _alone(subject: Subject, outcome: Outcome) -> str:
    published = published_of(subject)
    text = f"{subject.name}: {percent(outcome.mean)}, {outcome.how}"
    text += f", {verdict(outcome, published)}." if published else "."
    if not outcome.folds:
        return text
    low, high = percent(min(outcome.folds)), percent(max(outcome.folds))
    n = (subject.evaluation.n_graphs if subject.evaluation else 0) / len(outcome.folds)
    few = f"with only about {n:.0f} graphs in each, " if n < 100 else ""
    return (
        f"{text} Single folds range from {low} to {high}: {few}differences smaller than that "
        "spread mean little."
    )


def _side_by_side(shown: Shown) -> str:
    def is_near(outcome: Outcome, score: paper.Score) -> bool:
        return abs(100 * outcome.mean - score.mean) <= (score.std or 0)

    compared = [(s, o, p) for s, o in shown if (p := published_of(s)) is not None]
    text = f"{len(shown)} results side by side."
    if compared and any(s.committee for s, _ in shown):
        # A committee is another model than the paper's, and need not be near it.
        return f"{text} Each card above says how far a result is from the paper's."
    if not compared:
        return text
    far = [s.name for s, o, p in compared if not is_near(o, p)]
    of = f"{len(compared) - len(far)} of the {len(compared)}" if far else "All"
    text += f" {of} that the paper has a row for are within one standard deviation of it"
    return f"{text}; {listed(far)} {'is' if len(far) == 1 else 'are'} not." if far else f"{text}."


def _folds_table(shown: Shown) -> Table:
    n_folds = max((len(o.folds) for _, o in shown), default=0)
    balanced = any(o.balanced is not None for _, o in shown)
    ranked = any(o.roc_auc is not None for _, o in shown)
    rows = []
    for subject, outcome in shown:
        bounds, published = _bounds(subject), published_of(subject)
        folds = [f"{100 * v:.2f}" for v in outcome.folds]
        rows.append(
            [
                subject.name,
                spread(outcome.mean, outcome.std),
                *([spread(outcome.balanced, None)] if balanced else []),
                *([spread(outcome.roc_auc, None)] if ranked else []),
                NONE if published is None else published_spread(published),
                NONE if bounds is None else f"{100 * bounds[0]:.2f}",
                NONE if bounds is None else f"{100 * bounds[1]:.2f}",
                *folds,
                *[NONE] * (n_folds - len(folds)),
            ]
        )
    head = ["run", "ours, %", *(["balanced, %"] if balanced else [])]
    head += ["ROC AUC, %"] if ranked else []
    head += ["paper, %", "majority, %", "WL ceiling, %"]
    return Table([*head, *(f"fold {i + 1}" for i in range(n_folds))], rows)

"""Selection of the model, choices of the outer folds, base models, and reproduction."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from fdgnn.evaluation.record import Evaluation
from fdgnn.html.figures import Figure, Key, Panel, Part, Row, Table, search
from fdgnn.html.report_data import BaseModelRow
from fdgnn.html.subjects import Subject
from fdgnn.html.words import (
    NONE,
    SPACE,
    count,
    duration,
    is_share,
    plain,
    plural,
    power_of_ten,
    score,
    significant,
    spread,
)
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, ranks
from fdgnn.texts import listed

_WORDS = {
    "effective_spectral_radius": "ρ, effective spectral radius",
    "input_scaling": "ω(1), input scaling",
    "inter_layer_scaling": "ω, scaling between layers",
    "n_layers": "L, layers",
    "n_units": "H, units per layer",
    "n_connections": "C, connections per unit",
    "n_projections": "P, projections",
    "n_estimators": "random initializations, averaged",
    "n_initializations": "random initializations",
    "alpha": "regularization strength (alpha)",
    "tol": "ε, tolerance",
    "max_iter": "ν, iterations at most",
    "degree": "k, degree",
    "random_state": "seed",
    "n_outer": "outer folds",
    "n_inner": "inner folds",
    "max_layers": "L, layers at most",
    "n_configurations": "configurations",
    "n_searched": "graphs of the search",
    "data_hash": "hash of the data",
    "n_graphs": "graphs",
}
_SEARCHED = (  # hyperparameters of the paper's model
    "effective_spectral_radius",
    "input_scaling",
    "inter_layer_scaling",
    "n_layers",
)
_VARIANTS = {
    "single_layer": "the first layer alone",
    "common_alpha": "one alpha for all random initializations",
    "ensemble": "outputs averaged over random initializations",
    "best_for_all_test_folds": "one configuration for all folds, chosen on the test folds, which "
    "is optimistically biased",
    "best_on_test_folds": "chosen on the test folds, which is optimistically biased",
}


def part(run: int, subject: Subject) -> Part:
    """Return the search, the choices of the outer folds, and the base models."""
    evaluation, rows = subject.evaluation, subject.data.base_models if subject.data else []
    figures = []
    if evaluation is not None and evaluation.tried:
        figures.append(_search(run, evaluation))
    if evaluation is not None and evaluation.folds:
        figures.append(_folds(run, evaluation))
    if rows or (evaluation is not None and evaluation.base_models):
        figures.append(_base_models(run, evaluation, rows))
    return Part(figures, lead=_lead(evaluation) if evaluation is not None else "")


def _lead(evaluation: Evaluation) -> str:
    """Return in words what is chosen, by which metric, and on which graphs."""
    outer = (
        " Each outer fold makes its own choice, by validation on the graphs of the other folds "
        "alone: the test graphs play no part in it."
    ) * bool(evaluation.folds)
    name = evaluation.protocol.scoring
    if not evaluation.base_models:
        n = evaluation.protocol.n_configurations
        best = f"Of {plural(n, 'configuration')}, the best by {words_of(name)} is selected."
        return f"{best if n > 1 else ''}{outer}".strip()
    scoring = (OF_CLASSES | OF_NUMBERS).get(name)
    ranking = scoring is not None and ranks(scoring.metric)
    error = "number of pairs in the wrong order" if ranking else "squared error"
    # Accuracy is replaced in `fdgnn.fitting`.
    chosen = "smallest squared error" if name == "accuracy" else f"best {words_of(name)}"
    return (
        f"Each base model has the regularization strength (alpha) with the {chosen} on the "
        "validation graphs. Outputs are averaged over all base models except those whose "
        f"{error} on the validation graphs exceeds that of the best by more than three standard "
        f"errors.{outer}"
    )


def words_of(metric: str) -> str:
    """Return a metric as people write it."""
    known = (OF_CLASSES | OF_NUMBERS).get(metric)
    return metric if known is None else known.words


def sign_of(metric: str) -> int:
    """Return 1 if a higher score is better, else -1."""
    return -1 if metric in ("log_loss", "rmse", "mae") else 1


# ---------------------------------------------------------------------- the search


def _search(run: int, evaluation: Evaluation) -> Figure:
    """Draw validation scores against each hyperparameter that was varied."""
    metric, table = evaluation.protocol.scoring, f"search-{run}"
    chosen = Counter(_identity(fold.configuration) for fold in evaluation.folds)
    factor, words = (100, f"{metric}, %") if is_share(metric) else (1, metric)
    rows: list[Row] = []
    for number, one in enumerate(evaluation.tried, start=1):
        mean, n = sum(one.scores) / len(one.scores), chosen[_identity(one.configuration)]
        low, high = min(one.scores), max(one.scores)
        known = {name: one.configuration.get(name) for name in _SEARCHED}
        rows.append({
            "words": f"number {number}",
            "mean": factor * mean,
            "low": factor * low,
            "high": factor * high,
            "shown": score(metric, mean),
            "span": f"{score(metric, low)} to {score(metric, high)}",
            "chosen": n,
            "by": f"by {plural(n, 'outer fold')}" if n else "no",
            "power": math.log10(one.alpha) if one.alpha > 0 else None,
            "lambda_": power_of_ten(one.alpha),
            **{name: value for name, value in known.items() if isinstance(value, int | float)},
        })  # fmt: skip
    rows.sort(key=lambda row: -row["mean"])
    varied = [name for name in _SEARCHED if len({row.get(name) for row in rows}) > 1]
    axes = {name: _WORDS[name] for name in varied} | {"power": "alpha, powers of ten"}
    cells = [
        {"configuration": row["words"]}
        | {_letter(name): significant(row.get(name)) for name in varied}
        | {"usual alpha": row["lambda_"], "mean": row["shown"], "worst and best": row["span"]}
        | {"chosen": str(row["chosen"] or "")}
        for row in rows
    ]
    note = "Best first; worst and best random initialization; chosen: by how many outer folds."
    return Figure(
        id=table,
        title="Validation scores over the search",
        caption=_search_caption(evaluation, rows, varied),
        panels=[
            Panel(f"{name}-{run}", search(table, name, words), title)
            for name, title in axes.items()
        ],
        table=Table.of(cells, note=note),
        key=[
            Key("circle", "c1", "a configuration, mean over its random initializations"),
            Key("line", "quiet", "its worst to its best random initialization"),
            Key("diamond", "c2", "chosen by at least one outer fold"),
        ],
        data={table: rows},
    )


def _letter(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " ")).split(",")[0]


def _identity(configuration: Mapping[str, object]) -> str:
    return repr(sorted((name, v) for name, v in configuration.items() if name != "alpha"))


def _search_caption(evaluation: Evaluation, ranked: Sequence[Row], varied: Sequence[str]) -> str:
    protocol, top = evaluation.protocol, ranked[: max(3, len(ranked) // 10)]
    spans = [
        f"{_letter(name)} from {min(values):.2g} to {max(values):.2g}"
        for name in varied
        if (values := [row[name] for row in top if row.get(name) is not None])
    ]
    text = (
        f"{plural(len(ranked), 'configuration')} with up to "
        f"{plural(protocol.n_initializations, 'random initialization')} each, each with its best "
        f"alpha. Means range from {ranked[-1]['shown']} to {ranked[0]['shown']}."
    )
    return f"{text} The {len(top)} best have {listed(spans)}." if spans else text


# ---------------------------------------------------------------------- folds and base models


def _folds(run: int, evaluation: Evaluation) -> Figure:
    """Return what each outer fold selected, in a table."""
    names = dict.fromkeys(name for fold in evaluation.folds for name in fold.configuration)
    chosen = {n: {repr(fold.configuration.get(n)) for fold in evaluation.folds} for n in names}
    several = [n for n in chosen if len(chosen[n]) > 1 and n not in ("alpha", "random_state")]
    n_models = len(evaluation.model.base_models)
    rows = []
    for number, fold in enumerate(evaluation.folds, start=1):
        values = [(name, fold.configuration.get(name)) for name in several]
        counts = Counter(fold.alphas)
        alphas = [f"{plain(alpha)}{SPACE}({counts[alpha]})" for alpha in sorted(counts)]
        row = {
            "fold": str(number),
            "graphs, training and test": f"{count(fold.n_train)}, {count(fold.n_test)}",
            **{_letter(n): significant(v) if isinstance(v, float) else plain(v) for n, v in values},
            "alpha": ", ".join(alphas if len(fold.alphas) > 1 else map(plain, counts)) or NONE,
            "base models averaged": f"{len(fold.kept)} of {n_models}" if n_models > 1 else NONE,
            "training": duration(fold.train_seconds),
            "test": duration(fold.test_seconds),
            "not converged": count(fold.n_unconverged),
        }
        rows.append(row)
    text = "" if evaluation.model.base_models else "The outer folds selected the same."
    if several:
        text = f"Folds differ in {listed(map(_letter, several))}: where they do, several "
        text += "choices do about equally well."
    for name, one in evaluation.variants.items():
        text += f" With {_VARIANTS.get(name, name)}: {spread(one.metric, one.mean, one.std)}."
    if evaluation.times.selection is not None:
        text += f" The whole selection took {duration(evaluation.times.selection)} on one core."
    return Figure(
        id=f"chosen-{run}",
        title="What each outer fold selected",
        caption=text,
        table=Table.of(rows).without_empty(),
        open=True,
    )


def _base_models(run: int, evaluation: Evaluation | None, known: Sequence[BaseModelRow]) -> Figure:
    """Return the base models: what they are, how each does alone, how often it is averaged."""
    alone = {} if evaluation is None else {one.name: one for one in evaluation.base_models}
    rows, table = {one.name: one for one in known}, []
    heads, caption, metric = ["base model", "encoder", "readout", "alpha"], "", ""
    if len(rows) > 1:
        caption = "The outputs of all base models are averaged."
    if evaluation is not None and alone:
        heads += ["alone", "folds that average it", "time"]
        metric, caption = evaluation.protocol.scoring, "Outputs are averaged over base models."
        scored = [
            (sign_of(metric) * one.score, one)
            for one in evaluation.base_models
            if one.score is not None
        ]
        if scored:
            _, best = max(scored, key=lambda pair: pair[0])
            caption = (
                f"The average reaches {score(metric, evaluation.score)}. The base model that is "
                f"the best alone, {best.name}, reaches {score(metric, best.score)}, but it could "
                "not be identified before the test."
            )
    for name in dict.fromkeys([*alone, *rows]):
        row, own = rows.get(name), alone.get(name)
        cells = [name, "not in the final model", NONE, NONE]
        if row is not None:
            often = f" \N{MULTIPLICATION SIGN} {row.n_estimators}" * (row.n_estimators > 1)
            cells = [name + often, row.encoder, row.readout, plain(row.alpha)]
        if own is not None and evaluation is not None:
            kept = f"{own.n_kept} of {len(evaluation.folds)}"
            cells += [score(metric, own.score), kept, duration(own.seconds)]
        table.append(cells + [NONE] * (len(heads) - len(cells)))
    return Figure(
        id=f"base-models-{run}",
        title="Base models",
        caption=caption or "The encoder and the readout of the model.",
        table=Table(heads, table, 3).without_empty(),
        open=True,
    )


# ---------------------------------------------------------------------- recipe


def recipe(run: int, subject: Subject) -> Part:
    """Return settings, versions and the command that reproduce the numbers."""
    settings, machine = dict(subject.settings), dict(subject.versions)
    if subject.data is not None:
        machine |= subject.data.versions | subject.data.machine
    if subject.evaluations:
        evaluation = subject.evaluations[0]
        own = {} if subject.is_comparison else evaluation.model.parameters
        settings = own | settings | {"data_hash": evaluation.data_hash}
        protocol = {n: v for n, v in asdict(evaluation.protocol).items() if v is not None}
        name = {"protocol: name": protocol.pop("name")}
        settings |= {"n_graphs": evaluation.n_graphs} | name | protocol
        machine |= evaluation.versions | evaluation.machine
        times = {
            "last start of the command": evaluation.times.total,
            "selection, on one core": evaluation.times.selection,
        }
        machine |= {name: duration(time) for name, time in times.items() if time is not None}
    elif subject.data is not None:
        settings = subject.data.parameters | settings
    figures = []
    named = {"Settings": settings, "Versions and machine": machine}
    for i, (title, values) in enumerate(named.items()):
        rows = [
            [_WORDS.get(name, name.replace("_", " ")), plain(value)]
            for name, value in values.items()
            if value is not None and (i or value != "")
        ]
        table = Table(["name", "value"], rows, n_words=2)
        if rows:
            figures.append(Figure(f"recipe-{run}-{i}", title, table=table, half=True, open=True))
    lead = f"Read from {subject.origin}."
    if subject.command is None and not subject.is_model_file:
        lead += " Its files do not record the command that made it."
    return Part(figures, lead=lead, command=subject.command or "")

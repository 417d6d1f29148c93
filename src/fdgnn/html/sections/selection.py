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
    )
    outer = outer if evaluation.folds else ""
    name = evaluation.protocol.scoring
    scoring = (OF_CLASSES | OF_NUMBERS).get(name)
    words = name if scoring is None else scoring.words
    if not evaluation.base_models:
        n = evaluation.protocol.n_configurations
        best = f"Of {plural(n, 'configuration')}, the best by {words} is selected." if n > 1 else ""
        return f"{best}{outer}".strip()
    ranking = scoring is not None and ranks(scoring.metric)
    error = "number of pairs in the wrong order" if ranking else "squared error"
    by_error = evaluation.protocol.scoring == "accuracy"  # `fdgnn.fitting`
    chosen = "smallest squared error" if by_error else f"best {words}"
    return (
        f"Each base model has the regularization strength (alpha) with the {chosen} on the "
        "validation graphs. Outputs are averaged over all base models except those whose "
        f"{error} on the validation graphs exceeds that of the best by more than three standard "
        f"errors.{outer}"
    )


# ---------------------------------------------------------------------- the search


def _search(run: int, evaluation: Evaluation) -> Figure:
    """Draw validation scores against each hyperparameter that was varied."""
    metric, tried = evaluation.protocol.scoring, evaluation.tried
    chosen = Counter(_identity(fold.configuration) for fold in evaluation.folds)
    factor, words = (100, f"{metric}, %") if is_share(metric) else (1, metric)
    rows: list[Row] = []
    for number, one in enumerate(tried, start=1):
        mean, n = sum(one.scores) / len(one.scores), chosen[_identity(one.configuration)]
        rows.append(
            {
                "c": number,
                "words": f"number {number}",
                "mean": factor * mean,
                "low": factor * min(one.scores),
                "high": factor * max(one.scores),
                "shown": score(metric, mean),
                "span": f"{score(metric, min(one.scores))} to {score(metric, max(one.scores))}",
                "chosen": n,
                "by": f"by {plural(n, 'outer fold')}" if n else "no",
                "power": math.log10(one.alpha) if one.alpha > 0 else None,
                "lambda_": power_of_ten(one.alpha),
                **{name: v for name, v in one.configuration.items() if _is_number(v)},
            }
        )
    ranked = sorted(rows, key=lambda row: -row["mean"])
    varied = [name for name in _SEARCHED if len({row.get(name) for row in rows}) > 1]
    axes = {name: _WORDS[name] for name in varied} | {"power": "alpha, powers of ten"}
    table = f"search-{run}"
    return Figure(
        id=table,
        title="Validation scores over the search",
        caption=_search_caption(evaluation, ranked, varied),
        panels=[
            Panel(f"{name}-{run}", search(table, name, words), title, [table])
            for name, title in axes.items()
        ],
        table=Table(
            ["configuration", *map(_letter, varied), "usual alpha",
             "mean", "worst and best", "chosen"],
            [
                [row["words"], *(significant(row.get(name)) for name in varied), row["lambda_"],
                 row["shown"], row["span"], str(row["chosen"] or "")]
                for row in ranked
            ],
            note="Best first; worst and best random initialization; chosen: by how many outer "
            "folds.",
        ),
        key=[
            Key("circle", "c1", "a configuration, mean over its random initializations"),
            Key("line", "quiet", "its worst to its best random initialization"),
            Key("diamond", "c2", "chosen by at least one outer fold"),
        ],
        data={table: ranked},
    )  # fmt: skip


def _letter(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " ")).split(",")[0]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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
    heads = ["graphs, training and test", *map(_letter, several)]
    heads += ["alpha"] * any(fold.alphas for fold in evaluation.folds)
    heads += ["base models averaged"] * (n_models > 1)
    rows = []
    for number, fold in enumerate(evaluation.folds, start=1):
        cells = [str(number), f"{count(fold.n_train)}, {count(fold.n_test)}"]
        for value in map(fold.configuration.get, several):
            cells.append(significant(value) if isinstance(value, float) else plain(value))
        if "alpha" in heads:
            counts = Counter(fold.alphas)
            shown = [f"{plain(alpha)}{SPACE}({counts[alpha]})" for alpha in sorted(counts)]
            cells.append(", ".join(shown if len(fold.alphas) > 1 else map(plain, counts)))
        cells += [f"{len(fold.kept)} of {n_models}"] * (n_models > 1)
        stuck = NONE if fold.n_unconverged is None else count(fold.n_unconverged)
        cells += [duration(fold.train_seconds), duration(fold.test_seconds), stuck]
        rows.append(cells)
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
        table=Table(["fold", *heads, "training", "test", "not converged"], rows).without_empty(),
        open=True,
    )


def _base_models(run: int, evaluation: Evaluation | None, known: Sequence[BaseModelRow]) -> Figure:
    """Return the base models: what they are, how each does alone, how often it is averaged."""
    alone = {} if evaluation is None else {one.name: one for one in evaluation.base_models}
    rows = {one.name: one for one in known}
    n_folds = 0 if evaluation is None else len(evaluation.folds)
    metric = evaluation.protocol.scoring if evaluation is not None else ""
    cells = []
    for name in dict.fromkeys([*alone, *rows]):
        row, own = rows.get(name), alone.get(name)
        many = row is not None and row.n_estimators > 1
        own_cells = [
            f"{name} \N{MULTIPLICATION SIGN} {row.n_estimators}" if many and row else name,
            row.encoder if row else "not in the final model",
            row.readout if row else NONE,
            plain(row.alpha) if row else NONE,
        ]
        if own is not None:
            kept = f"{own.n_kept} of {n_folds}"
            own_cells += [score(metric, own.score), kept, duration(own.seconds)]
        cells.append(own_cells + [NONE] * (3 if alone and own is None else 0))
    heads = ["alone", "folds that average it", "time"] if alone else []
    heads = ["base model", "encoder", "readout", "alpha", *heads]
    caption = "The encoder and the readout of the model."
    if len(rows) > 1:
        caption = "The outputs of all base models are averaged."
    if evaluation is not None and alone:
        caption = "Outputs are averaged over base models."
        sign = -1 if metric in ("rmse", "mae", "log_loss") else 1
        models = evaluation.base_models
        scored = [(sign * one.score, one) for one in models if one.score is not None]
        if scored:
            _, best = max(scored, key=lambda pair: pair[0])
            caption = (
                f"The average reaches {score(metric, evaluation.score)}. The base model that is "
                f"the best alone, {best.name}, reaches {score(metric, best.score)}, but which one "
                "that is, is not known before the test."
            )
    return Figure(
        id=f"base-models-{run}",
        title="Base models",
        caption=caption,
        table=Table(heads, cells, 3).without_empty(),
        open=True,
    )


# ---------------------------------------------------------------------- recipe


def recipe(run: int, subject: Subject) -> Part:
    """Return settings, versions and the command that reproduce the numbers."""
    named = {"Settings": _settings(subject), "Versions and machine": _machine(subject)}
    figures = []
    for i, (title, values) in enumerate(named.items()):
        rows = [[_WORDS.get(name, name.replace("_", " ")), plain(v)] for name, v in values.items()]
        table = Table(["name", "value"], rows, n_words=2)
        if rows:
            figures.append(Figure(f"recipe-{run}-{i}", title, table=table, half=True, open=True))
    lead = f"Read from {subject.origin}."
    if subject.command is None and not subject.is_model_file:
        lead += " Its files do not record the command that made it."
    return Part(figures, lead=lead, command=subject.command or "")


def _settings(subject: Subject) -> Mapping[str, object]:
    found = dict(subject.settings)
    evaluation = subject.evaluations[0] if subject.evaluations else None
    if evaluation is not None:
        protocol = {f"protocol: {n}" if n == "name" else n: v for n, v in
                    asdict(evaluation.protocol).items() if v is not None}  # fmt: skip
        own = {} if subject.is_comparison else evaluation.model.parameters
        found |= {"data_hash": evaluation.data_hash, "n_graphs": evaluation.n_graphs}
        found = own | found | protocol
    elif subject.data is not None:
        found = subject.data.parameters | found
    return {name: value for name, value in found.items() if value not in ("", None)}


def _machine(subject: Subject) -> Mapping[str, object]:
    found = dict(subject.versions)
    evaluation = subject.evaluations[0] if subject.evaluations else None
    if subject.data is not None:
        found |= subject.data.versions | subject.data.machine
    if evaluation is not None:
        found |= evaluation.versions | evaluation.machine
        found |= {
            "last start of the command": _time(evaluation.times.total),
            "selection, on one core": _time(evaluation.times.selection),
        }
    return {name: value for name, value in found.items() if value is not None}


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else duration(seconds)

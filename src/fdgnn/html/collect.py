"""Report data of a model and its graphs: `report_data` computes the content of a report."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.encoders import Encoder
from fdgnn.estimators.base import Answers
from fdgnn.evaluation.run import EvaluationRun
from fdgnn.evaluation.scores import plain, provenance
from fdgnn.exceptions import ConvergenceWarning, GraphError, OutOfDomainWarning
from fdgnn.explanations import Explanation, explain, has_attributions, substructures
from fdgnn.explanations.drawing import EXACT_UP_TO, check_networkx, place_vertices, relative
from fdgnn.extras import require
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.html import model_views
from fdgnn.html import report_data as records
from fdgnn.html.data_statistics import data_statistics, edge_counts, elements_of_labels
from fdgnn.html.words import clean, clipped, clipped_apart, count, few, plural, short
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, default_scoring, named_scoring
from fdgnn.neighbors import difficulty, fit_difficulty, kernel_models, training_conditions
from fdgnn.targets import check_one_each, targets_like, transformed_back, winning_class
from fdgnn.uncertainty import ConformalScores

COVERAGES = (0.8, 0.9, 0.95)
_SUBSTRUCTURES = 6  # for each class; of a regression, in each direction
_SUBSTRUCTURE_CLASSES = 10  # whose substructures are shown, at most
_LONGEST = 240  # letters that describe a substructure


@dataclass(frozen=True)
class OutOfFold:
    """Predictions for each graph by the models of the outer fold that held it out.

    Attributes
    ----------
    outputs : (n_graphs, q)
        Positive for the second of two classes.
    probabilities : (n_graphs, n_classes) or None
    fold : (n_graphs,)
        The outer fold, from 0.
    conditions : (n_graphs, n_conditions) or None
        Of a regression: conditions of the difficulty (`fdgnn.neighbors`) among the graphs of other
        folds; None: intervals have one width.
    """

    outputs: Floats
    probabilities: Floats | None
    fold: Ints
    conditions: Floats | None = None


def report_data(
    model: Any,
    graphs: Any,
    y: Any = None,
    *,
    dataset: str,
    target: str = "",
    unseen: bool = False,
    out_of_fold: OutOfFold | None = None,
    ids: Sequence[object] | None = None,
    smiles: Sequence[str | None] | None = None,
    command: str | None = None,
    notes: Sequence[str] = (),
) -> records.ReportData:
    """Compute what a report shows of a fitted model and a set of graphs.

    Parameters
    ----------
    model : any model of this library, or FDGNNSearchCV
        Of several targets, `for_target` gives the model of one.
    graphs : GraphBatch or list of graphs
    y : (n_graphs,), optional
        Without it there are predictions, but neither mistakes nor scores.
    dataset : str
        The name of the graphs.
    target : str, optional
        The name of the target, if the model is one of a model of several.
    unseen : bool, default=False
        Whether the model has not seen any of the graphs in training.
    out_of_fold : OutOfFold, optional
        Predictions of an evaluation, which take the place of the model's own. All else is of the
        model, which was trained on all graphs.
    ids : sequence, optional
        The names of the single graphs, by default their positions from 0.
    smiles : sequence of str, optional
        The graphs as SMILES. A graph that is this molecule is drawn as a molecule.
    command : str, optional
        The command line that made it.
    notes : sequence of str, optional
        Notes for the reader, for instance about rows that were left out.
    """
    model = model_views.fitted(model)
    if isinstance(model, Encoder):
        name = type(model).__name__
        raise TypeError(f"a {name} predicts nothing; expected a classifier or a regressor")
    check_networkx()
    graphs = as_batch(graphs, like=model)
    if len(graphs) == 0:
        raise GraphError("no graphs: there is nothing to show")
    truth = _checked_targets(model, graphs, y)
    for name, given in (("ids", ids), ("smiles", smiles)):
        if given is not None and len(given) != len(graphs):
            raise ValueError(f"{name} has {len(given)} entries, but there are {len(graphs)} graphs")
    ids = range(len(graphs)) if ids is None else ids
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reports count these graphs
        warnings.simplefilter("ignore", OutOfDomainWarning)
        found = _predictions(model, graphs, truth, out_of_fold)
        mistakes = found.mistakes
        mapped = _mapped_graphs(len(graphs), mistakes)
        part = graphs if len(mapped) == len(graphs) else graphs[mapped]
        places, explained = model_views.principal_map(model_views.features_of(model, part))
        elements = elements_of_labels(clean(dataset), graphs, molecules=smiles is not None)
        known = _substructures(found, mapped, part, elements)
        needed = np.union1d(mistakes, np.array([one.graph for one in known], dtype=np.int64))
        scores, baseline = _scores(found)
        return records.ReportData(
            dataset=clean(dataset),
            target=target,
            task="regression" if found.regression else "classification",
            predictions="out of fold" if out_of_fold else "unseen" if unseen else "seen",
            classes=found.classes,
            model=model_views.shown_in_words(
                model, model_views.encoder_of(model), model.estimators_[0].name
            ),
            data=data_statistics(graphs, found.actual, found.classes, elements),
            graphs=_graph_rows(found, mapped, places, ids),
            explained=explained,
            drawings=_drawings(found, needed, mapped, smiles, elements),
            mistakes=mistakes.tolist(),
            scores=scores,
            baseline=baseline,
            confusion=_confusion(found),
            calibration=_calibration(found),
            coverages=_coverages(found, unseen),
            domain=None if out_of_fold or not (unseen or truth is None) else _domain(found, ids),
            base_models=model_views.base_models_of(model),
            dynamics=model_views.reservoir_dynamics(model, graphs),
            substructures=known,
            descriptors=_descriptors(model, part),
            parameters={
                name: " ".join(clean(value).split()) if isinstance(value, str) else value
                for name, value in plain(model.get_params(deep=False)).items()
            },
            **provenance(),
            command=None if command is None else clean(command),
            notes=[
                *map(clean, notes),
                *(_training_molecules(model, graphs) if unseen else ()),
                *_unknown_classes(found),
            ],
        )


def run_data(run: EvaluationRun, *, command: str | None = None) -> list[records.ReportData]:
    """Compute the report data of an evaluated model, for each target.

    Predictions and probabilities are those of the outer folds. All else is of the model that is
    trained on all graphs.
    """
    task = run.task
    targets, model = task.targets, clone(run.model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # reports count these graphs
        model.fit(task.graphs, targets)
    outputs, tested = run.predictions.last(), run.predictions.tested
    conditions = None  # of the difficulty of all graphs, by target, if intervals vary
    if any(target.difficulty is not None for target in model.targets_):
        models = [model.estimators_[i] for i in kernel_models(model.estimators_)]
        distances = None if model._domain is None else model._domain.of_training
        errors, fold = np.abs(targets.values - outputs), np.argmax(tested, axis=0)
        conditions = training_conditions(models, distances, errors, fold)
    found = []
    for t, target in enumerate(targets.each[: records.TARGETS]):
        several = len(targets.names) > 1
        some = np.flatnonzero(targets.known[:, t] & tested.any(axis=0))
        y = transformed_back(targets.values[some, t], target.transform)
        chances = run.probabilities(t)
        out_of_fold = OutOfFold(
            outputs[some][:, target.columns],
            None if chances is None else chances[some],
            np.argmax(tested, axis=0)[some],
            None if conditions is None else conditions[t][some],
        )
        found.append(
            report_data(
                model.for_target(target.name) if several else model,
                task.graphs if len(some) == len(targets) else task.graphs[some],
                y if target.classes is None else target.classes[y],
                dataset=task.dataset,
                target=target.name if several else "",
                out_of_fold=out_of_fold,
                ids=None if task.ids is None else [task.ids[g] for g in some.tolist()],
                smiles=None if task.smiles is None else [task.smiles[g] for g in some.tolist()],
                command=command,
            )
        )
    return found


def _checked_targets(model: Any, graphs: GraphBatch, y: Any) -> Array | None:
    if len(model.targets_) > 1:
        n_targets = len(model.targets_)
        raise ValueError(f"a report shows one target, but the model has {n_targets}")
    if y is None:
        return None
    truth: Array = np.asarray(y)
    check_one_each(graphs, truth)
    if truth.ndim > 1:
        raise ValueError(f"y has shape {truth.shape}; expected (n_graphs,)")
    model_views.check_classes(model, truth)
    if model.targets_[0].classes is None and not np.isfinite(truth.astype(np.float64)).all():
        raise ValueError("y has values that are NaN or infinite; leave such graphs out")
    if model._target_transform is not None:  # as the outputs are
        truth = targets_like(model.targets_, truth, graphs).values[:, 0]
    return truth


def _training_molecules(model: Any, graphs: GraphBatch) -> list[str]:
    """Return a sentence about graphs that are molecules on which the model was trained."""
    kept = model._training_graphs
    if kept is None or kept.smiles is None or graphs.smiles is None:
        return []
    Chem = require("rdkit.Chem", "chem", "SMILES")

    def canonical(text: str) -> str:
        mol = Chem.MolFromSmiles(text)
        return text if mol is None else str(Chem.MolToSmiles(mol))

    known = set(map(canonical, kept.smiles.tolist()))
    n = sum(canonical(text) in known for text in graphs.smiles.texts.tolist())
    return [
        f"{count(n)} of the {plural(len(graphs), 'graph')} {'is' if n == 1 else 'are'} among the "
        "training molecules of the model: they are not held out, and scores are too high."
    ] * bool(n)


# ---------------------------------------------------------------------- predictions


@dataclass(frozen=True)
class Predictions:
    """Predictions for all graphs, of an evaluation or else of the model, and the truth.

    For a classification, `actual` and `predicted` are positions in `classes`, which are text. In
    regression they are numbers, without classes. `actual` is None where the truth is not known.
    """

    model: Any
    graphs: GraphBatch
    out_of_fold: OutOfFold | None
    classes: list[str]
    actual: Array | None
    outputs: Floats  # (n, q), for the classes that the model knows
    predicted: Array
    score: Floats  # the output for the predicted class, or the predicted number
    probabilities: Floats | None = None  # (n, n_classes), calibrated
    probability: Floats | None = None  # of the predicted class

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return not self.classes

    @property
    def errors(self) -> Floats | None:
        """The absolute error of each graph; of a class, 1 where it is wrong."""
        if self.actual is None:
            return None
        gaps = np.abs(self.actual - self.predicted)
        return np.asarray(gaps if self.regression else (gaps > 0).astype(np.float64))

    @property
    def mistakes(self) -> Ints:
        """Return graphs with mistakes, the most confident or largest errors first."""
        if self.errors is None:
            return np.empty(0, dtype=np.int64)
        confidence = self.score if self.probability is None else self.probability
        order = np.argsort(-(self.errors if self.regression else confidence), kind="stable")
        return order[self.regression | (self.errors[order] > 0)][: records.MISTAKES]


def _at(values: Array, columns: Array) -> Array:
    """Return one value of each row."""
    return np.asarray(values[np.arange(len(columns)), columns])


def _predictions(
    model: Any, graphs: GraphBatch, y: Array | None, given: OutOfFold | None
) -> Predictions:
    """Return the predictions of an evaluation, or those of the model."""
    target = model.targets_[0]
    outputs = model.outputs(graphs) if given is None else given.outputs
    if target.classes is None:
        actual, numbers = None if y is None else y.astype(np.float64), outputs[:, 0]
        return Predictions(model, graphs, given, [], actual, outputs, numbers, numbers)
    chances = None if given is None else given.probabilities
    if given is None and target.slope is not None:
        chances = target.probabilities(outputs)
    names = [str(name) for name in target.classes.tolist()]
    if y is not None:  # classes that the model does not know come last
        try:
            names += map(str, sorted(set(y.tolist())))
        except TypeError:  # values of several types
            names += map(str, sorted(set(y.tolist()), key=str))
    position = {name: c for c, name in enumerate(dict.fromkeys(names))}
    if chances is not None:
        chances = np.pad(chances, ((0, 0), (0, len(position) - chances.shape[1])))
    codes = None if y is None else np.array([position[str(value)] for value in y.tolist()])
    predicted = winning_class(outputs)
    return Predictions(
        model,
        graphs,
        given,
        clipped_apart(position),
        codes,
        outputs,
        predicted,
        score=np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else outputs.max(axis=1),
        probabilities=chances,
        probability=None if chances is None else _at(chances, predicted),
    )


def _unknown_classes(found: Predictions) -> list[str]:
    """Return a sentence about classes of the graphs that are unknown to the model."""
    if found.regression or found.actual is None:
        return []
    n_known = len(found.model.targets_[0].classes)
    names, n = found.classes[n_known:], int((found.actual >= n_known).sum())
    which, it = ("class", "it") if len(names) == 1 else ("classes", "them")
    return [
        f"The training data have no {which} {few(names)}, so the model cannot predict {it} for the "
        f"{plural(n, 'graph')} that {'has' if n == 1 else 'have'} {it}."
    ] * bool(names)


# ---------------------------------------------------------------------- scores


def _scores(found: Predictions) -> tuple[dict[str, float], dict[str, float]]:
    """Score predictions by all metrics that are defined, and the best constant prediction.

    The metric that the model was chosen by, or the usual one, comes first.
    """
    if found.actual is None:
        return {}, {}
    outputs, known = found.outputs, OF_NUMBERS if found.regression else OF_CLASSES
    first = default_scoring(None if found.regression else found.actual)
    scoring = getattr(found.model, "scoring", None)
    if isinstance(scoring, str):
        first = named_scoring(scoring, not found.regression)
    if found.regression:
        constant = np.full_like(outputs, found.actual.mean())
    else:
        winners = np.eye(len(found.classes))
        if len(winners) > max(outputs.shape[1], 2):
            # Outputs do not rank classes that the model does not know.
            outputs = winners[found.predicted]
            known = {name: known[name] for name in ("accuracy", "balanced_accuracy", "f1")}
        elif outputs.shape[1] == 1:
            winners = np.array([[-1.0], [1.0]])
        constant = winners[[np.bincount(found.actual).argmax()] * len(outputs)]
    scores: tuple[dict[str, float], dict[str, float]] = {}, {}
    for one in sorted(known.values(), key=lambda one: one.name != first.name):
        for own, values in zip(scores, (outputs, constant), strict=True):
            if not one.of_probabilities:
                score = one.shown(float(one.metric(found.actual, values)))
                if np.isfinite(score):
                    own[one.name] = short(score)
    return scores


def _confusion(found: Predictions) -> list[list[int]] | None:
    """Count graphs by actual class (rows) and predicted class (columns), unless they are many."""
    n = len(found.classes)
    if found.regression or found.actual is None or n > records.CLASSES:
        return None
    pairs = found.actual * n + found.predicted
    counts: list[list[int]] = np.bincount(pairs, minlength=n * n).reshape(n, n).tolist()
    return counts


def _calibration(found: Predictions) -> records.Calibration | None:
    """Compare probabilities with frequencies of correct predictions.

    `expected_error` is the mean over graphs of the difference between probability and accuracy
    of their bin. `brier` is half the squared distance of probabilities to the truth, 0 to 1; for
    two classes that is the usual one.
    """
    probability = found.probability
    if found.probabilities is None or probability is None or found.actual is None:
        return None
    right = found.actual == found.predicted
    number = np.clip((probability * records.BINS).astype(np.int64), 0, records.BINS - 1)
    bins = [
        records.ProbabilityBin(
            start=round(b / records.BINS, 4),
            stop=round((b + 1) / records.BINS, 4),
            n=int((number == b).sum()),
            probability=short(probability[number == b].mean()),
            accuracy=short(right[number == b].mean()),
        )
        for b in np.unique(number).tolist()
    ]
    gaps = [b.n * abs(b.probability - b.accuracy) for b in bins]
    truth = np.eye(len(found.classes))[found.actual]
    return records.Calibration(
        bins=bins,
        brier=short(np.square(found.probabilities - truth).sum(axis=1).mean() / 2),
        expected_error=short(sum(gaps) / len(probability)),
    )


# ---------------------------------------------------------------------- uncertainty


def _coverages(found: Predictions, unseen: bool) -> list[records.Coverage]:
    """Measure prediction sets or intervals: of the model, or of each fold by the other folds."""
    target, held_out, n = found.model.targets_[0], found.out_of_fold, len(found.outputs)
    distances = None if found.probabilities is None else 1.0 - found.probabilities
    if found.classes and distances is None:
        return []
    fold, difficulties = np.zeros(n, dtype=np.int64), np.ones(n)
    scores = {0: target.scores}
    if held_out is not None:
        assert found.actual is not None
        assert found.errors is not None
        own = found.errors if distances is None else _at(distances, found.actual)
        fold, scores = held_out.fold, {}
        for f in np.unique(fold).tolist():
            others, relative = fold != f, np.ones(n)
            if held_out.conditions is not None:
                weights = fit_difficulty(held_out.conditions[others], own[others])
                relative = difficulty(held_out.conditions, weights)
            scores[f] = ConformalScores.of([(own / relative)[others]])
            difficulties[~others] = relative[~others]
    elif target.scores is None or not (unseen or found.actual is None):
        return []
    elif found.regression:
        difficulties = Answers(found.model, found.graphs).difficulty[:, 0]
    measured = []
    for share in COVERAGES:
        try:
            limit = difficulties * np.array([scores[f].limit(share) for f in fold.tolist()])
        except ValueError:  # too few graphs to promise so much
            continue
        covered = empty = None
        if distances is None:
            covered = None if found.errors is None else found.errors <= limit
            size = 2 * limit
        else:
            sets = distances <= limit[:, None]
            if held_out is None:
                sets = target.sets(found.outputs, share)
                sets = np.pad(sets, ((0, 0), (0, len(found.classes) - sets.shape[1])))
            covered = None if found.actual is None else _at(sets, found.actual)
            size, empty = sets.sum(axis=1), short((~sets.any(axis=1)).mean())
        covered = None if covered is None else short(covered.mean())
        measured.append(
            records.Coverage(coverage=share, covered=covered, size=short(size.mean()), empty=empty)
        )
    return measured


def _domain(found: Predictions, ids: Sequence[object]) -> records.DomainSummary | None:
    """Return which graphs are out of domain; None if the model has no applicability domain."""
    if found.model._domain is None:
        return None
    scores = found.model.domain_distance(found.graphs)
    reasons = found.model._out_of_domain(found.graphs, scores)
    outside = np.isin(np.arange(len(found.graphs)), list(reasons))
    errors = [
        short(found.errors[chosen].mean()) if found.errors is not None and chosen.any() else None
        for chosen in (outside, ~outside)
    ]
    farthest = sorted(reasons, key=lambda g: (-scores[g], g))[: records.OUT_OF_DOMAIN]
    return records.DomainSummary(
        n_outside=len(reasons),
        error_outside=errors[0],
        error_inside=errors[1],
        graphs=[
            records.OutOfDomainGraph(
                graph=g, id=clipped(ids[g]), score=short(scores[g]), reason=reasons[g]
            )
            for g in farthest
        ],
    )


# ---------------------------------------------------------------------- graphs


def _mapped_graphs(n: int, keep: Ints) -> Ints:
    """Choose all of n graphs, or a random part that contains the graphs `keep`."""
    if n <= records.MAPPED:
        return np.arange(n)
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(n), keep))
    return np.sort(np.concatenate([keep, others[: records.MAPPED - len(keep)]]))


def _graph_rows(
    found: Predictions, mapped: Ints, places: Floats, ids: Sequence[object]
) -> list[records.GraphRow]:
    """Return one row for each mapped graph, at its place (n_mapped, 2)."""
    n_vertices, n_edges = np.diff(found.graphs.vertex_offsets), edge_counts(found.graphs)
    score, probability, held_out = found.score, found.probability, found.out_of_fold

    def shown(values: Array, g: int) -> str | float:
        return short(values[g]) if found.regression else found.classes[int(values[g])]

    rows = []
    for g, (x, y) in zip(mapped.tolist(), places.tolist(), strict=True):
        actual = None if found.actual is None else shown(found.actual, g)
        predicted = shown(found.predicted, g)
        row = records.GraphRow(
            graph=g,
            id=clipped(ids[g]),
            x=round(x, 4),
            y=round(y, 4),
            actual=actual,
            predicted=predicted,
            correct=None if actual is None or found.regression else actual == predicted,
            score=short(score[g]),
            probability=None if probability is None else short(probability[g]),
            n_vertices=int(n_vertices[g]),
            n_edges=int(n_edges[g]),
            fold=None if held_out is None else int(held_out.fold[g]) + 1,
        )
        rows.append(row)
    return rows


# ---------------------------------------------------------------------- drawings

_SIDE = 1000  # places are whole numbers from 0 to this
_VERTICES, LARGEST_DRAWN = 250, 600  # vertices of a drawn graph, at most; and of one that is needed
_EDGES = 3000  # of a drawn graph, at most
_BYTES = 1_000_000  # for all drawings together, about
_SECONDS = 10.0  # for all drawings together, about


def _drawings(
    found: Predictions,
    needed: Ints,
    mapped: Ints,
    smiles: Sequence[str | None] | None,
    elements: Mapping[str, str],
) -> list[records.Drawing]:
    """Draw the graphs that are needed, and as many of the mapped ones as time and space allow.

    Drawings show attributions, of the predicted class, so that there are none for models without
    these.
    """
    model = found.model
    if not has_attributions(model):
        return []
    chosen = _drawn(found.graphs, needed, mapped)
    codes = np.zeros(len(chosen), dtype=np.int64) if found.regression else found.predicted[chosen]
    explained: dict[int, Explanation] = {}
    for code in np.unique(codes).tolist():
        some = chosen[codes == code]
        target = None if found.regression else model.targets_[0].classes[code]
        each = explain(model, found.graphs[some], target=target)
        explained |= zip(some.tolist(), each, strict=True)
    drawings = []
    for g in chosen.tolist():
        graph, text = found.graphs[g], None if smiles is None else smiles[g]
        edges = np.asarray(graph.edge_index)
        edges = edges if graph.directed else edges[:, edges[0] <= edges[1]]
        molecule = None if text is None else _molecule(text, graph, edges)
        places, orders, labels = molecule or (place_vertices(graph), None, None)
        if molecule is None and graph.labels is not None:
            labels = [elements.get(name, name) for name in map(clipped, graph.labels)]
        # Whole numbers from 0 to _SIDE, y downward; the longer side fills the canvas.
        low, high = places.min(axis=0), places.max(axis=0)
        scale = _SIDE / (float((high - low).max()) or 1.0)
        at = ((places - (low + high) / 2) * [scale, -scale] + _SIDE / 2).round().astype(np.int64)
        drawing = records.Drawing(
            graph=g,
            positions=at.ravel().tolist(),
            edges=edges.T.ravel().tolist(),
            directed=graph.directed,
            orders=orders,
            labels=labels,
            attributions=[float(f"{c:.3g}") for c in relative(explained[g])],
            molecule=molecule is not None,
            smiles=None if text is None else clean(text),
        )
        drawings.append(drawing)
    return drawings


def _drawn(graphs: GraphBatch, needed: Ints, mapped: Ints) -> Ints:
    """Choose by size alone, small graphs first, so that all machines choose the same."""
    n = np.diff(graphs.vertex_offsets)
    m = np.diff(graphs.indptr[graphs.vertex_offsets])
    few = m <= (_EDGES if graphs.directed else 2 * _EDGES)
    must = needed[few[needed] & (n[needed] <= LARGEST_DRAWN)]
    may = np.setdiff1d(mapped[few[mapped] & (n[mapped] <= _VERTICES)], must)
    order = np.concatenate([must, may[np.argsort(n[may] ** 2 + m[may], kind="stable")]])
    # Estimates from measurements: characters of JSON, and seconds of networkx.
    size = 150 + 22.0 * n[order] + (8.0 if graphs.directed else 4.0) * m[order]
    seconds = 3e-3 + np.where(n[order] <= EXACT_UP_TO, 1.2e-5, 3e-6) * n[order] ** 2.0
    fits = (np.cumsum(size) <= _BYTES) & (np.cumsum(seconds) <= _SECONDS)
    return np.sort(order[fits | (np.arange(len(order)) < len(must))])


def _molecule(
    smiles: str, graph: Graph, edges: Ints
) -> tuple[Floats, list[float], list[str]] | None:
    """Return places, bond orders and element symbols, or None if the graph is not this molecule."""
    try:
        from rdkit import Chem, rdBase
        from rdkit.Chem import rdDepictor
    except ImportError:
        return None
    with rdBase.BlockLogs():
        molecule: Any = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() != graph.n_vertices:
        return None
    bonds = [molecule.GetBondBetweenAtoms(u, v) for u, v in edges.T.tolist() if u != v]
    if None in bonds or len(bonds) != molecule.GetNumBonds() or len(bonds) != edges.shape[1]:
        return None
    rdDepictor.Compute2DCoords(molecule)
    places = np.array(molecule.GetConformer().GetPositions())[:, :2]
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return places, [bond.GetBondTypeAsDouble() for bond in bonds], symbols


# ---------------------------------------------------------------------- the model


def _substructures(
    found: Predictions, mapped: Ints, part: GraphBatch, elements: Mapping[str, str]
) -> list[records.SubstructureRow]:
    """Find the substructures that count most for each class on the mapped graphs."""
    known = [None] if found.regression else list(found.model.targets_[0].classes)
    targets = [None] if len(known) <= _SUBSTRUCTURE_CLASSES else known[:_SUBSTRUCTURE_CLASSES]
    name = dict(zip(known, found.classes, strict=False))
    return [
        records.SubstructureRow(
            target=name.get(one.target),
            words=clipped(one.words, longest=_LONGEST),
            attribution=short(one.attribution),
            n_graphs=one.n_graphs,
            graph=int(mapped[one.graph]),
            steps=one.steps.tolist() if len(one.steps) <= LARGEST_DRAWN else [],
            radius=one.radius,
        )
        for target in targets
        for one in substructures(
            found.model, part, target=target, n_most=_SUBSTRUCTURES, names=elements
        )
        if found.regression or one.weight > 0
    ]


def _descriptors(model: Any, part: GraphBatch) -> list[tuple[str, float]]:
    """Explain the mapped graphs, and list what moves their scores most first."""
    block = model._descriptors
    if block is None or part.descriptors is None or not has_attributions(model):
        return []
    explained = [[one.descriptors[name] for name in block.names] for one in explain(model, part)]
    effects = np.abs(explained).mean(axis=0)
    return [
        (clipped(block.names[j]), short(effects[j]))
        for j in np.argsort(-effects, kind="stable")[: records.DESCRIPTORS].tolist()
    ]

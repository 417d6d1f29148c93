"""Report data of a model and its graphs: `report_data` computes all that a report shows of them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.encoders import Encoder
from fdgnn.evaluation.run import EvaluationRun
from fdgnn.evaluation.scores import machine, plain, versions
from fdgnn.exceptions import ConvergenceWarning, GraphError
from fdgnn.explanations import explain, has_attributions, substructures
from fdgnn.explanations.drawing import EXACT_UP_TO, check_networkx, place_vertices, relative
from fdgnn.graphs import Graph, GraphBatch
from fdgnn.graphs.converters import as_batch
from fdgnn.graphs.descriptors import known_in
from fdgnn.html.data_statistics import data_statistics, elements_of_labels
from fdgnn.html.model_views import (
    base_models_of,
    encoder_of,
    features_of,
    fitted,
    principal_map,
    reservoir_dynamics,
    shown_in_words,
)
from fdgnn.html.report_data import (
    BINS,
    CLASSES,
    DESCRIPTORS,
    MAPPED,
    MISTAKES,
    OUT_OF_DOMAIN,
    TARGETS,
    ApplicabilityDomain,
    Calibration,
    Coverage,
    DescriptorRow,
    Drawing,
    GraphRow,
    OutOfDomainGraph,
    ProbabilityBin,
    ReportData,
    SubstructureRow,
)
from fdgnn.html.words import clean, clipped, clipped_apart, listed, plural, short
from fdgnn.metrics import OF_CLASSES, OF_NUMBERS, default_scoring, named_scoring
from fdgnn.records import cached_property
from fdgnn.targets import check_one_each, targets_like, winning_class
from fdgnn.uncertainty import ConformalScores

COVERAGES = (0.8, 0.9, 0.95)
_SUBSTRUCTURES = 6  # for each class, and as many against it
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
    """

    outputs: Floats
    probabilities: Floats | None
    fold: Ints


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
) -> ReportData:
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
        Sentences that a reader should know, for instance about rows that were left out.
    """
    model = fitted(model)
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
        found = _predictions(model, graphs, truth, out_of_fold)
        mistakes = found.mistakes
        mapped = mapped_graphs(found, MAPPED, mistakes)
        part = graphs if len(mapped) == len(graphs) else graphs[mapped]
        places, explained = principal_map(features_of(model, part))
        elements = elements_of_labels(clean(dataset), graphs, molecules=smiles is not None)
        known = _substructures(model, part, mapped, found.classes, elements)
        needed = np.union1d(mistakes, np.array([one.graph for one in known], dtype=np.int64))
        scores, baseline = _scores(found, getattr(model, "scoring", None))
        return ReportData(
            dataset=clean(dataset),
            target=target,
            task="regression" if found.regression else "classification",
            predictions="out of fold" if out_of_fold else "unseen" if unseen else "seen",
            classes=found.classes,
            model=shown_in_words(model, encoder_of(model), model.estimators_[0].name),
            data=data_statistics(graphs, found.actual, found.classes, elements),
            graphs=_graph_rows(found, graphs, mapped, places, ids, out_of_fold),
            explained=explained,
            drawings=_drawings(model, found, graphs, needed, mapped, smiles, elements),
            mistakes=mistakes.tolist(),
            scores=scores,
            baseline=baseline,
            confusion=_confusion(found),
            calibration=_calibration(found),
            coverages=_coverages(model, found, graphs, out_of_fold, unseen),
            domain=None
            if out_of_fold or not (unseen or truth is None)
            else _domain(model, found, graphs, ids),
            base_models=base_models_of(model),
            dynamics=reservoir_dynamics(model, graphs),
            substructures=known,
            descriptors=_descriptors(model, graphs, part),
            parameters={
                name: " ".join(clean(value).split()) if isinstance(value, str) else value
                for name, value in plain(model.get_params(deep=False)).items()
            },
            versions=versions(),
            machine=machine(),
            command=None if command is None else clean(command),
            notes=[*map(clean, notes), *_unknown_classes(model, found)],
        )


def run_data(run: EvaluationRun, *, command: str | None = None) -> list[ReportData]:
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
    found = []
    for t, target in enumerate(targets.each[:TARGETS]):
        several = len(targets.names) > 1
        some = np.flatnonzero(targets.known[:, t] & tested.any(axis=0))
        y, chances = targets.values[some, t], run.probabilities(t)
        out_of_fold = OutOfFold(
            outputs[some][:, target.columns],
            None if chances is None else chances[some],
            np.argmax(tested, axis=0)[some],
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
    if model.targets_[0].classes is None and not np.isfinite(truth.astype(np.float64)).all():
        raise ValueError("y has values that are NaN or infinite; leave such graphs out")
    if model._target_transform is not None:  # as the outputs are
        truth = targets_like(model.targets_, truth, graphs).values[:, 0]
    return truth


# ---------------------------------------------------------------------- predictions


@dataclass(frozen=True)
class Predictions:
    """Predictions for all graphs, and the truth.

    For a classification, `actual` and `predicted` are positions in `classes`, which are text. For
    a regression they are numbers, and there are no classes. `actual` is None where the truth is
    not known.
    """

    classes: list[str]
    actual: Array | None
    outputs: Floats  # (n, q), for the classes that the model knows
    probabilities: Floats | None  # (n, n_classes), calibrated

    @property
    def regression(self) -> bool:
        """Whether numbers are predicted."""
        return not self.classes

    @cached_property
    def predicted(self) -> Array:
        """Positions of the predicted classes, or the predicted numbers."""
        return self.outputs[:, 0] if self.regression else winning_class(self.outputs)

    @property
    def score(self) -> Floats:
        """The output for the predicted class, or the predicted number."""
        if self.regression:
            return self.outputs[:, 0]
        single = self.outputs.shape[1] == 1
        return np.asarray(np.abs(self.outputs[:, 0]) if single else self.outputs.max(axis=1))

    @property
    def probability(self) -> Floats | None:
        """The probability of the predicted class."""
        return None if self.probabilities is None else _at(self.probabilities, self.predicted)

    @cached_property
    def errors(self) -> Floats | None:
        """The absolute error of each graph; of a class, 1 where it is wrong."""
        if self.actual is None:
            return None
        if self.regression:
            return np.asarray(np.abs(self.actual - self.predicted))
        return np.asarray((self.actual != self.predicted).astype(np.float64))

    @property
    def mistakes(self) -> Ints:
        """Graphs with mistakes: the most confident, or the largest error, first."""
        if self.errors is None:
            return np.empty(0, dtype=np.int64)
        if self.regression:
            return np.argsort(-self.errors, kind="stable")[:MISTAKES]
        wrong = np.flatnonzero(self.errors)
        confidence = self.score if self.probability is None else self.probability
        return wrong[np.argsort(-confidence[wrong], kind="stable")[:MISTAKES]]


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
        return Predictions([], None if y is None else y.astype(np.float64), outputs, None)
    chances = None if given is None else given.probabilities
    if given is None and target.slope is not None:
        chances = target.probabilities(outputs)
    names = [str(name) for name in target.classes.tolist()]
    if y is not None:
        values = y.tolist()
        try:
            more = sorted(set(values))
        except TypeError:  # values of several types
            more = sorted(set(values), key=str)
        names += map(str, more)  # classes that the model does not know come last
    position = {name: c for c, name in enumerate(dict.fromkeys(names))}
    if chances is not None:
        chances = np.pad(chances, ((0, 0), (0, len(position) - chances.shape[1])))
    codes = None if y is None else np.array([position[str(value)] for value in y.tolist()])
    return Predictions(clipped_apart(position), codes, outputs, chances)


def _unknown_classes(model: Any, found: Predictions) -> list[str]:
    """Return a sentence about classes of the graphs that the model does not know."""
    n_known = len(model.targets_[0].classes) if found.classes else 0
    names = found.classes[n_known:]
    if not names or found.actual is None:
        return []
    n = int((found.actual >= n_known).sum())
    shown = listed(names if len(names) <= 5 else [*names[:5], "others"])
    which, it = ("class", "it") if len(names) == 1 else ("classes", "them")
    return [
        f"The model does not know the {which} {shown}: it cannot be right about the "
        f"{plural(n, 'graph')} that {'has' if n == 1 else 'have'} {it}."
    ]


# ---------------------------------------------------------------------- scores


def _scores(found: Predictions, scoring: Any) -> tuple[dict[str, float], dict[str, float]]:
    """Score predictions by all metrics that are defined, and the best constant prediction.

    The metric that the model was chosen by, `scoring` or the usual one, comes first.
    """
    if found.actual is None:
        return {}, {}
    if found.regression:
        outputs, constant = found.outputs, np.full_like(found.outputs, found.actual.mean())
        known, first = OF_NUMBERS, default_scoring(None)
    else:
        n_known, n = max(found.outputs.shape[1], 2), len(found.classes)
        winners, outputs = np.eye(n), found.outputs
        known, first = OF_CLASSES, default_scoring(found.actual)
        if n > n_known:  # outputs do not rank classes that the model does not know
            outputs = winners[found.predicted]
            known = {name: known[name] for name in ("accuracy", "balanced_accuracy", "f1")}
        elif outputs.shape[1] == 1:
            winners = np.array([[-1.0], [1.0]])
        majority = np.bincount(found.actual).argmax()
        constant = winners[[majority] * len(found.actual)]
    if isinstance(scoring, str):
        first = named_scoring(scoring, not found.regression)
    order = sorted(known.values(), key=lambda each: each.name != first.name)

    def scored(values: Floats) -> dict[str, float]:
        each = {
            one.name: one.shown(float(one.metric(found.actual, values)))  # type: ignore[arg-type]
            for one in order
            if not one.of_probabilities
        }
        return {name: short(score) for name, score in each.items() if np.isfinite(score)}

    return scored(outputs), scored(constant)


def _confusion(found: Predictions) -> list[list[int]] | None:
    """Count graphs by actual class (rows) and predicted class (columns), unless they are many."""
    n = len(found.classes)
    if found.regression or found.actual is None or n > CLASSES:
        return None
    pairs = found.actual * n + found.predicted
    counts: list[list[int]] = np.bincount(pairs, minlength=n * n).reshape(n, n).tolist()
    return counts


def _calibration(found: Predictions) -> Calibration | None:
    """Compare probabilities with how often the predictions are right.

    `expected_error` is the mean over graphs of the difference between probability and accuracy
    of their bin. `brier` is half the squared distance of probabilities to the truth, 0 to 1; for
    two classes that is the usual one.
    """
    probability = found.probability
    if found.probabilities is None or probability is None or found.actual is None:
        return None
    right = found.actual == found.predicted
    number = np.clip((probability * BINS).astype(np.int64), 0, BINS - 1)
    bins = [
        ProbabilityBin(
            start=round(b / BINS, 4),
            stop=round((b + 1) / BINS, 4),
            n=int((number == b).sum()),
            probability=short(probability[number == b].mean()),
            accuracy=short(right[number == b].mean()),
        )
        for b in np.unique(number).tolist()
    ]
    gaps = [b.n * abs(b.probability - b.accuracy) for b in bins]
    truth = np.eye(len(found.classes))[found.actual]
    return Calibration(
        bins=bins,
        brier=short(np.square(found.probabilities - truth).sum(axis=1).mean() / 2),
        expected_error=short(sum(gaps) / len(probability)),
    )


# ---------------------------------------------------------------------- uncertainty


def _coverages(
    model: Any,
    found: Predictions,
    graphs: GraphBatch,
    out_of_fold: OutOfFold | None,
    unseen: bool,
) -> list[Coverage]:
    """Measure prediction sets or intervals: of the model, or of each fold by the other folds."""
    distances = None if found.probabilities is None else 1.0 - found.probabilities
    difficulty: Any = 1.0
    if found.classes and distances is None:
        return []
    if out_of_fold is None:
        if not (unseen or found.actual is None):
            return []
        scores = {0: model.targets_[0].scores}
        fold = np.zeros(len(found.outputs), dtype=np.int64)
        if found.regression and scores[0] is not None:
            difficulty = model._answers(graphs).difficulty[:, 0]
    else:
        own = found.errors
        if distances is not None and found.actual is not None:
            own = _at(distances, found.actual)
        if own is None:
            return []
        fold = out_of_fold.fold
        scores = {f: ConformalScores.of([own[fold != f]]) for f in np.unique(fold).tolist()}
    if any(one is None for one in scores.values()):
        return []
    measured = []
    for share in COVERAGES:
        try:
            limit = difficulty * np.array([scores[f].limit(share) for f in fold.tolist()])
        except ValueError:  # too few graphs to promise so much
            continue
        covered = empty = None
        if distances is None:
            covered = None if found.errors is None else found.errors <= limit
            size = 2 * limit
        else:
            sets = distances <= limit[:, None]
            if out_of_fold is None:
                sets = model.targets_[0].sets(found.outputs, share)
            covered = None if found.actual is None else _at(sets, found.actual)
            size, empty = sets.sum(axis=1), short((~sets.any(axis=1)).mean())
        measured.append(
            Coverage(
                coverage=share,
                covered=None if covered is None else short(covered.mean()),
                size=short(size.mean()),
                empty=empty,
            )
        )
    return measured


def _domain(
    model: Any, found: Predictions, graphs: GraphBatch, ids: Sequence[object]
) -> ApplicabilityDomain | None:
    """Return which graphs are out of domain; None if the model has no applicability domain."""
    if model._novelty is None:
        return None
    scores = model.novelty(graphs)
    reasons = model._out_of_domain(graphs, scores)
    outside = np.isin(np.arange(len(graphs)), list(reasons))
    errors = [
        short(found.errors[chosen].mean()) if found.errors is not None and chosen.any() else None
        for chosen in (outside, ~outside)
    ]
    return ApplicabilityDomain(
        n_outside=len(reasons),
        error_outside=errors[0],
        error_inside=errors[1],
        graphs=[
            OutOfDomainGraph(graph=g, id=clipped(ids[g]), score=short(scores[g]), reason=reasons[g])
            for g in sorted(reasons, key=lambda g: (-scores[g], g))[:OUT_OF_DOMAIN]
        ],
    )


# ---------------------------------------------------------------------- graphs


def mapped_graphs(found: Predictions, at_most: int, keep: Ints) -> Ints:
    """Choose all graphs, or a random part that keeps the classes' shares and the graphs `keep`."""
    n = len(found.predicted)
    if n <= at_most:
        return np.arange(n)
    codes = np.zeros(n, dtype=np.int64)
    if not found.regression:
        codes = found.predicted if found.actual is None else found.actual
    place = np.empty(n)  # of a graph among those of its class in random order, from 0 to 1
    order = np.random.default_rng(0).permutation(n)
    for c in np.unique(codes):
        own = order[codes[order] == c]
        place[own] = (np.arange(len(own)) + 0.5) / len(own)
    place[keep] = -1
    return np.sort(np.argsort(place, kind="stable")[:at_most])


def _graph_rows(
    found: Predictions,
    graphs: GraphBatch,
    mapped: Ints,
    places: Floats,
    ids: Sequence[object],
    out_of_fold: OutOfFold | None,
) -> list[GraphRow]:
    """Return one row for each mapped graph, at its place (n_mapped, 2)."""
    n_vertices, n_edges = np.diff(graphs.vertex_offsets), _edge_counts(graphs)
    score, probability, actual = found.score, found.probability, found.actual
    judged = actual is not None and not found.regression

    def shown(values: Array, g: int) -> str | float:
        return short(values[g]) if found.regression else found.classes[int(values[g])]

    return [
        GraphRow(
            graph=g,
            id=clipped(ids[g]),
            x=round(x, 4),
            y=round(y, 4),
            actual=None if actual is None else shown(actual, g),
            predicted=shown(found.predicted, g),
            correct=bool(actual[g] == found.predicted[g]) if judged else None,  # type: ignore[index]
            score=short(score[g]),
            probability=None if probability is None else short(probability[g]),
            n_vertices=int(n_vertices[g]),
            n_edges=int(n_edges[g]),
            fold=None if out_of_fold is None else int(out_of_fold.fold[g]) + 1,
        )
        for g, (x, y) in zip(mapped.tolist(), places.tolist(), strict=True)
    ]


def _edge_counts(graphs: GraphBatch) -> Ints:
    """Count the edges of each graph: an undirected edge, a self-loop and an arc count once."""
    n_arcs = np.diff(graphs.indptr[graphs.vertex_offsets])
    if graphs.directed:
        return n_arcs
    local = np.arange(graphs.n_vertices) - graphs.vertex_offsets[graphs.graph_of_vertex]
    degrees = np.diff(graphs.indptr)
    loops = np.repeat(local, degrees) == graphs.neighbors
    graph_of_arc = np.repeat(graphs.graph_of_vertex, degrees)
    n_loops = np.bincount(graph_of_arc[loops], minlength=len(graphs))
    return np.asarray((n_arcs + n_loops) // 2)


# ---------------------------------------------------------------------- drawings

SIDE = 1000  # places are whole numbers from 0 to this
_VERTICES, LARGEST_DRAWN = 250, 600  # vertices of a drawn graph, at most; and of one that is needed
_EDGES = 3000  # of a drawn graph, at most
_BYTES = 1_000_000  # for all drawings together, about
_SECONDS = 10.0  # for all drawings together, about


def _drawings(
    model: Any,
    found: Predictions,
    graphs: GraphBatch,
    needed: Ints,
    mapped: Ints,
    smiles: Sequence[str | None] | None,
    elements: Mapping[str, str],
) -> list[Drawing]:
    """Draw the graphs that are needed, and as many of the mapped ones as time and space allow.

    Drawings show attributions, of the predicted class, so that there are none for models without
    these.
    """
    if not has_attributions(model):
        return []
    chosen = _drawn(graphs, needed, mapped)
    codes = np.zeros(len(chosen), dtype=np.int64) if found.regression else found.predicted[chosen]
    drawings: dict[int, Drawing] = {}
    for code in np.unique(codes).tolist():
        some = chosen[codes == code]
        target = None if found.regression else model.targets_[0].classes[code]
        for g, one in zip(some.tolist(), explain(model, graphs[some], target=target), strict=True):
            text = None if smiles is None else smiles[g]
            drawings[g] = _drawing(g, graphs[g], relative(one), text, elements)
    return [drawings[g] for g in chosen.tolist()]


def _drawn(graphs: GraphBatch, needed: Ints, mapped: Ints) -> Ints:
    """Choose by size alone, small graphs first, so that all machines choose the same."""
    n = np.diff(graphs.vertex_offsets)
    m = np.diff(graphs.indptr[graphs.vertex_offsets])
    drawable = m <= (_EDGES if graphs.directed else 2 * _EDGES)
    must = needed[drawable[needed] & (n[needed] <= LARGEST_DRAWN)]
    may = np.setdiff1d(mapped[drawable[mapped] & (n[mapped] <= _VERTICES)], must)
    order = np.concatenate([must, may[np.argsort(n[may] ** 2 + m[may], kind="stable")]])
    # Estimates from measurements: characters of JSON, and seconds of networkx.
    size = 150 + 22.0 * n[order] + (8.0 if graphs.directed else 4.0) * m[order]
    slow = n[order] <= EXACT_UP_TO
    seconds = 3e-3 + np.where(slow, 1.2e-5, 3e-6) * n[order] ** 2.0
    fits = (np.cumsum(size) <= _BYTES) & (np.cumsum(seconds) <= _SECONDS)
    fits[: len(must)] = True
    return np.sort(order[fits])


def _drawing(
    g: int, graph: Graph, contributions: Floats, smiles: str | None, elements: Mapping[str, str]
) -> Drawing:
    edges = np.asarray(graph.edge_index)
    edges = edges if graph.directed else edges[:, edges[0] <= edges[1]]
    molecule = None if smiles is None else _molecule(smiles, graph, edges)
    if molecule is None:
        names = None if graph.labels is None else [clipped(v) for v in graph.labels]
        labels = None if names is None else [elements.get(name, name) for name in names]
        places, orders = place_vertices(graph), None
    else:
        places, orders, labels = molecule
    # Whole numbers from 0 to SIDE, y downward; the longer side fills the canvas.
    low, high = places.min(axis=0), places.max(axis=0)
    scale = SIDE / (float((high - low).max()) or 1.0)
    at = ((places - (low + high) / 2) * [scale, -scale] + SIDE / 2).round().astype(np.int64)
    return Drawing(
        graph=g,
        positions=at.ravel().tolist(),
        edges=edges.T.ravel().tolist(),
        directed=graph.directed,
        orders=orders,
        labels=labels,
        contributions=[float(f"{c:.3g}") for c in contributions],
        molecule=molecule is not None,
        smiles=None if smiles is None else clean(smiles),
    )


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
    bonds = {
        (min(ends), max(ends)): bond.GetBondTypeAsDouble()
        for bond in molecule.GetBonds()
        for ends in [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())]
    }
    pairs = [(min(u, v), max(u, v)) for u, v in edges.T.tolist()]
    if set(pairs) != set(bonds):
        return None
    rdDepictor.Compute2DCoords(molecule)
    places = np.array(molecule.GetConformer().GetPositions())[:, :2]
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    return places, [bonds[pair] for pair in pairs], symbols


# ---------------------------------------------------------------------- the model


def _substructures(
    model: Any,
    part: GraphBatch,
    mapped: Ints,
    classes: Sequence[str],
    elements: Mapping[str, str],
) -> list[SubstructureRow]:
    """Find the substructures that count most for and against each class on the mapped graphs."""
    known = list(model.targets_[0].classes) if classes else [None]
    targets = [None] if len(known) <= _SUBSTRUCTURE_CLASSES else known[:_SUBSTRUCTURE_CLASSES]
    name = dict(zip(known, classes, strict=False))
    return [
        SubstructureRow(
            target=name.get(one.target),
            words=clipped(one.words, longest=_LONGEST),
            iteration=one.iteration,
            weight=short(one.weight),
            contribution=short(one.contribution),
            n_graphs=one.n_graphs,
            graph=int(mapped[one.graph]),
            steps=one.steps.tolist() if len(one.steps) <= LARGEST_DRAWN else [],
            radius=one.radius,
        )
        for target in targets
        for one in substructures(model, part, target=target, n_most=_SUBSTRUCTURES, names=elements)
    ]


def _descriptors(model: Any, graphs: GraphBatch, part: GraphBatch) -> list[DescriptorRow]:
    """Explain the mapped graphs, and list what moves their scores most first."""
    block = model._descriptors
    if block is None or graphs.descriptors is None or not has_attributions(model):
        return []
    explained = [[one.descriptors[name] for name in block.names] for one in explain(model, part)]
    effects = np.abs(explained).mean(axis=0)
    order = np.argsort(-effects, kind="stable")[:DESCRIPTORS].tolist()
    given = dict(zip(graphs.descriptors.names, graphs.descriptors.columns, strict=True))
    rows = []
    for j in order:
        column = block.columns[j]
        if column.kind == "category":
            values = ", ".join(column.categories)
        else:
            values = f"{column.low:.4g} to {column.high:.4g}"
        rows.append(
            DescriptorRow(
                name=clipped(block.names[j]),
                values=clipped(values),
                n_missing=int((~known_in(given[block.names[j]])).sum()),
                effect=short(effects[j]),
            )
        )
    return rows

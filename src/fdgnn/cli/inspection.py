"""``fdgnn datasets``, ``stability`` and ``model``: facts about graphs and models."""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, command, show
from fdgnn.cli.options import AsJson, Data, FirstDataOptions, Like, SomeTargets
from fdgnn.cli.output import read_all

if TYPE_CHECKING:
    from fdgnn.encoders.descriptors import DescriptorColumn
    from fdgnn.graphs import Array, GraphBatch
    from fdgnn.model_files import ModelInfo
    from fdgnn.model_files.state import TargetRecord
    from fdgnn.schema import InputSchema

SHOWN_CLASSES = 20  # numbers with more values are regression targets; of texts the largest
STRONG_SKEW = 2.0  # from which a logarithm is worth a hint
_QUANTILES = ("minimum", "quartile", "median", "quartile", "maximum")
RADII = (0.3, 0.5, 0.7, 0.9, 0.99)  # effective spectral radii shown by `stability`

datasets_app = typer.Typer(
    help="List the TU datasets known by name, or describe graphs.",
    invoke_without_command=True,
    epilog="Example: fdgnn datasets info MUTAG",
)
app.add_typer(datasets_app, name="datasets")


@datasets_app.callback()
def datasets(context: typer.Context, as_json: AsJson = False) -> None:
    """List the TU datasets known by name, and whether they are available locally."""
    if context.invoked_subcommand is not None:
        return
    from fdgnn.datasets.home import KNOWN_NAMES, data_home, find_local

    here = {name: find_local(name, data_home()) for name in KNOWN_NAMES}
    if as_json:
        typer.echo(json.dumps({name: path and str(path) for name, path in here.items()}))
        return
    for name, path in here.items():
        show(f"{name:18} {path or '(to be downloaded)'}")


@command("fdgnn datasets info MUTAG", of=datasets_app)
def info(
    data: Data,
    how: FirstDataOptions,
    target: SomeTargets = None,
    like: Like = None,
    as_json: AsJson = False,
) -> None:
    """Describe graphs: sizes, targets, duplicates.

    For molecules also salts, scaffolds and elements.
    """
    if target is not None and len(target) > 1:
        raise ValueError(f"--target is given {len(target)} times; this command shows one at a time")
    table, graphs = read_all(data, how, _model(like), None if target is None else target[0])
    facts = describe(graphs, table.y)
    if table.smiles is not None:
        facts["molecules"] = describe_molecules(table.smiles, table.y)
    _print(facts if as_json else _in_words(facts), as_json)


def _model(path: Path | None) -> Any:
    if path is None:
        return None
    from fdgnn.model_files import load_model  # imports scikit-learn

    return load_model(path)


def describe(graphs: GraphBatch, y: Array | None) -> dict[str, Any]:
    """Return facts about a set of graphs and their target."""
    import numpy as np

    from fdgnn.html.data_statistics import graph_counts

    numeric = False
    if y is not None and y.dtype.kind in "iuf":  # as `tasks.infer_task`, without scikit-learn
        numeric = bool((y != np.round(y)).any()) or len(np.unique(y)) > SHOWN_CLASSES
    classes = None if y is None or numeric else y
    sizes, edge_labels = np.diff(graphs.vertex_offsets), graphs.edge_label_codes
    loops, directed = graphs.n_self_loops, graphs.directed
    facts = graph_counts(graphs, classes) | {
        "n_edges": graphs.n_arcs if directed else (graphs.n_arcs + loops) // 2,
        "n_edge_labels": 0 if edge_labels is None else len(np.unique(edge_labels)),
        "class_counts": [],
        "vertices_min": int(sizes.min()),
        "vertices_mean": float(sizes.mean()),
        "vertices_max": int(sizes.max()),
        "k": graphs.average_degree,
        "max_degree": graphs.largest_degree,
    }
    if classes is not None:
        values, counts = np.unique(classes, return_counts=True)
        pairs = zip(values.tolist(), counts.tolist(), strict=True)
        facts["class_counts"] = [list(pair) for pair in pairs]
    if y is not None and numeric:
        quantiles = np.quantile(y, (0, 0.25, 0.5, 0.75, 1)).tolist()
        mean, sd = float(y.mean()), float(y.std())
        skewness = float(((y - mean) ** 3).mean() / sd**3) if sd else 0.0
        facts["target"] = {"mean": mean, "sd": sd, "quantiles": quantiles, "skewness": skewness}
    return facts


def describe_molecules(smiles: Sequence[str], y: Array | None) -> dict[str, Any]:
    """Return facts about molecules: numbers of molecules, unless the name says otherwise."""
    from fdgnn.evaluation.molecules import murcko_scaffolds
    from fdgnn.extras import require

    chem = require("rdkit.Chem", "chem", "Facts about molecules")
    elements: Counter[str] = Counter()
    targets: dict[str, list[Any]] = {}
    n_charged = n_stereo = 0
    without_logs = require("rdkit.rdBase", "chem", "Facts about molecules").BlockLogs
    for i, text in enumerate(smiles):
        with without_logs():  # reported when they were read
            molecule = chem.MolFromSmiles(text)
        elements.update({atom.GetSymbol() for atom in molecule.GetAtoms()})
        n_charged += chem.GetFormalCharge(molecule) != 0
        canonical = chem.MolToSmiles(molecule)
        n_stereo += canonical != chem.MolToSmiles(molecule, isomericSmiles=False)
        targets.setdefault(canonical, []).append(None if y is None else y[i])
    scaffolds = Counter(murcko_scaffolds(smiles).tolist())
    repeated = [found for found in targets.values() if len(found) > 1]
    return {
        "elements": dict(elements.most_common()),
        "n_several_fragments": sum("." in text for text in smiles),
        "n_charged": n_charged,
        "n_stereo": n_stereo,
        "n_acyclic": scaffolds.pop("", 0),
        "n_scaffolds": len(scaffolds),
        "largest_scaffold": max(scaffolds.values(), default=0),
        "n_repeated": sum(map(len, repeated)),
        "n_contradicting": sum(len(found) for found in repeated if len(set(found)) > 1),
    }


def _in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the facts in words; for molecules, in terms of chemistry."""
    molecules = facts.get("molecules")
    graph, vertex, edge = ("molecule", "atom", "bond") if molecules else ("graph", "vertex", "edge")
    vertices = "atoms" if molecules else "vertices"
    sizes = "{vertices_min} to {vertices_max}, mean {vertices_mean:.1f}".format(**facts)
    words: dict[str, Any] = {
        f"{graph}s": facts["n_graphs"],
        f"{vertices} per {graph}": sizes,
        f"{edge}s per {graph}, mean": round(facts["n_edges"] / facts["n_graphs"], 1),
        f"kinds of {vertex} labels": facts["n_labels"],
        f"kinds of {edge} labels": facts["n_edge_labels"],
    }
    if facts["n_features"]:
        words[f"features per {vertex}"] = facts["n_features"]
    if molecules:
        words |= _molecules_in_words(molecules)
    else:
        words |= {
            "directed": "no" if facts["undirected"] else "yes",
            "repeated edges merged": facts["n_merged_arcs"],
            "self-loops": facts["n_self_loops"],
            "largest degree": f"{facts['max_degree']:g}",
            "largest degree, mean over graphs (k)": round(facts["k"], 3),
        }
    words[f"distinct {graph}s (1-WL)"] = facts["n_distinct"]
    if counts := facts["class_counts"]:
        shown = counts
        if len(counts) > SHOWN_CLASSES:
            shown = sorted(counts, key=lambda each: -each[1])[:SHOWN_CLASSES]
        more = ", ..." if len(counts) > len(shown) else ""
        words["classes"] = f"{len(counts)}: " + ", ".join(f"{c} ({n})" for c, n in shown) + more
        words["accuracy, always the majority class"] = f"{facts['majority']:.3f}"
        words["accuracy, upper bound of message passing (WL)"] = f"{facts['wl_ceiling']:.3f}"
    if "target" in facts:
        target = facts["target"]
        quantiles = zip(_QUANTILES, target["quantiles"], strict=True)
        strong = target["skewness"] > STRONG_SKEW and target["quantiles"][0] > 0
        hint = "; --transform log10 learns the logarithm" if strong else ""
        words |= {
            "target": "mean {mean:.4g}, standard deviation {sd:.4g}".format(**target),
            "quantiles of the target": ", ".join(f"{name} {q:.4g}" for name, q in quantiles),
            "skewness of the target": f"{target['skewness']:.1f}{hint}",
        }
    return words


def _molecules_in_words(facts: dict[str, Any]) -> dict[str, str]:
    total = ", ".join(f"{symbol} ({n})" for symbol, n in facts["elements"].items())
    repeated = f"{facts['n_repeated']}"
    if facts["n_contradicting"]:
        repeated += f", {facts['n_contradicting']} of them with different targets"
    several, stereo = facts["n_several_fragments"], facts["n_stereo"]
    return {
        "elements (molecules with them)": total,
        "salts and mixtures": f"{several}" + (several > 0) * "; --standardize parent reduces them",
        "with a net charge": f"{facts['n_charged']}",
        "with stereochemistry": f"{stereo}" + (stereo > 0) * "; --stereo reads it",
        "scaffolds (Murcko)": f"{facts['n_scaffolds']}, the largest of {facts['largest_scaffold']} "
        f"molecules; {facts['n_acyclic']} molecules without rings",
        "duplicates": repeated,
    }


@command("fdgnn stability PROTEINS")
def stability(
    data: Data, how: FirstDataOptions, like: Like = None, as_json: AsJson = False
) -> None:
    """Count the graphs whose states provably converge, by effective spectral radius.

    A certified graph has exactly one fixed point, to which states converge from any start.
    """
    import numpy as np

    graphs = read_all(data, how, _model(like))[1]
    k, radii = graphs.average_degree, graphs.spectral_radii
    certified = {rho: int((rho * radii < k).sum()) if k else len(graphs) for rho in RADII}
    median, largest, n_above = float(np.median(radii)), float(radii.max()), int((radii > k).sum())
    if as_json:
        facts = {
            "n_graphs": len(graphs),
            "k": k,
            "radius_median": median,
            "radius_max": largest,
            "n_above_k": n_above,
            "certified": {str(rho): n for rho, n in certified.items()},
        }
        _print(facts, as_json)
        return
    words: dict[str, Any] = {
        "k, mean over graphs of the largest neighborhood": round(k, 3),
        "rho(A), median": round(median, 3),
        "rho(A), largest": round(largest, 3),
        "graphs with rho(A) above k": n_above,
    }
    for rho, n in certified.items():
        words[f"certified at effective spectral radius {rho}"] = f"{n} of {len(graphs)}"
    _print(words, as_json)


@command("fdgnn model model.fdgnn")
def model(
    path: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    as_json: AsJson = False,
) -> None:
    """Describe a model file: targets, scores, base models, input schema."""
    from fdgnn.model_files import model_info
    from fdgnn.records import as_plain

    info = model_info(path)
    _print(as_plain(info) if as_json else model_in_words(info), as_json)


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for i, line in enumerate(lines):
            show(f"{name if i == 0 else '':{width}}  {line}")


_CLASSES = 10  # that are named
_STANDARDIZED = {"parent": "largest fragment", "tautomer": "canonical tautomer"}
_READOUTS = {"linear": "ridge regression", "rbf": "RBF kernel ridge regression"}
_VERTICES = {"labels": "vertex labels", "features": "features per vertex"}


def model_in_words(info: ModelInfo) -> dict[str, object]:
    """Return facts about a model by name, in the order in which they are shown."""
    from fdgnn.cli.output import score_lines

    encoder = "" if info.encoder is None else info.encoder.kind
    words: dict[str, object] = {"model": info.model or f"encoder {encoder}"}
    if info.model is not None:
        words["predicts"] = [_target(each) for each in info.targets]
    found = info.evaluation
    if found is not None:
        words["scores"] = score_lines(found)
        if found.notes:
            words["notes"] = "; ".join(found.notes)
    if info.model is not None:
        counts = [sum(each.conformal) for each in info.targets if each.conformal is not None]
        conformal = f"yes, by conformal scores of {sum(counts)} out-of-fold predictions"
        classify = any(target.classes for target in info.targets)
        words["sets" if classify else "intervals"] = (
            conformal if counts else "no: the file has no conformal scores"
        )
    kind, inputs = info.graph_kind, "nothing on vertices"
    if kind.vertices in _VERTICES:
        inputs = f"{kind.n_inputs} {_VERTICES[kind.vertices]}"
    words["graphs"] = f"{'directed' if kind.directed else 'undirected'}, {inputs}"
    if info.descriptors:
        words["graph-level features"] = ", ".join(
            _descriptor(column) for column in info.descriptors
        )
    if info.schema is not None:
        words["read from"] = _schema_in_words(info.schema)
    if info.estimators:
        words["base models"] = _estimators(info)
    words["parameters"] = _parameters(info) or "all by default"
    words["written by"] = f"fdgnn {info.fdgnn}, in format {info.format}"
    return words


def _target(target: TargetRecord) -> str:
    what = "a number"
    if target.classes is not None:
        values = target.classes.values
        more = ", ..." if len(values) > _CLASSES else ""
        what = f"{len(values)} classes: {', '.join(map(str, values[:_CLASSES]))}{more}"
        what += ", with probabilities" if target.slope is not None else ""
    return f"{target.name}: {what}" if target.name else what


def _descriptor(column: DescriptorColumn) -> str:
    kinds = f"{len(column.categories)} categories" if column.kind == "category" else "number"
    return f"{column.name} ({kinds}{', some missing' if column.missing else ''})"


def _schema_in_words(schema: InputSchema) -> str:
    known = {
        "column": schema.smiles_column,
        "atoms": schema.atoms,
        "vertices": ", ".join(schema.vertex_attributes),
        "edges": schema.edge_attribute,
        "edge values": None if schema.edge_labels == "ignore" else f"as {schema.edge_labels}",
        "standardized,": _STANDARDIZED.get(schema.standardize or ""),
        "stereo": "distinguished" if schema.stereo else None,
    }
    found = [f"{name} {value}" for name, value in known.items() if value]
    return "; ".join([schema.source, *found])


def _estimators(info: ModelInfo) -> list[str]:
    """Return one line for each kind of base models that are alike."""
    alike: Counter[str] = Counter()
    for model in info.estimators:
        given = model.alpha if isinstance(model.alpha, list) else [model.alpha]
        known = [f"{alpha:g}" for alpha in given if alpha is not None]
        alpha = f", regularization strength alpha {', '.join(known)}" if known else ""
        alike[f"{model.name} ({_READOUTS[model.readout]}{alpha})"] += 1
    return [f"{n} x {line}" if n > 1 else line for line, n in alike.items()]


def _parameters(info: ModelInfo) -> str:
    """Return parameters that differ from the defaults."""
    from fdgnn.model_files.description import MODELS

    kind = MODELS.get(info.model or "")
    usual = {} if kind is None else inspect.signature(kind).parameters
    given = info.parameters if info.encoder is None or info.model else info.encoder.parameters
    changed = {
        name: value
        for name, value in given.items()
        if name not in usual or usual[name].default != value
    }
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())

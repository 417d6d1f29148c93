"""``fdgnn datasets``, ``stability`` and ``model``: facts about graphs and models."""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, say, show
from fdgnn.cli.options import AsJson, Data, FirstDataOptions, Quiet, SomeTargets, expand

if TYPE_CHECKING:
    from fdgnn.datasets import GraphTable
    from fdgnn.encoders.base import GraphKind
    from fdgnn.encoders.descriptors import DescriptorColumn
    from fdgnn.encoders.registry import EncoderRecord
    from fdgnn.evaluation.record import Evaluation, MetricScores
    from fdgnn.graphs import Array, GraphBatch
    from fdgnn.model_files import ModelInfo
    from fdgnn.model_files.description import EstimatorRecord
    from fdgnn.model_files.state import TargetRecord
    from fdgnn.schema import InputSchema

MOST_CLASSES = 20  # targets with more different values are quantities
RADII = (0.3, 0.5, 0.7, 0.9, 0.99)  # effective spectral radii shown by `stability`

datasets_app = typer.Typer(
    help="List the TU datasets that are known by name, or describe graphs.",
    invoke_without_command=True,
    epilog="Example: fdgnn datasets info MUTAG",
)
app.add_typer(datasets_app, name="datasets")


@datasets_app.callback()
def datasets(context: typer.Context, as_json: AsJson = False) -> None:
    """List the TU datasets that are known by name, and which of them are here."""
    if context.invoked_subcommand is not None:
        return
    from fdgnn.datasets.home import KNOWN_NAMES, data_home, find_local

    here = {name: find_local(name, data_home()) for name in KNOWN_NAMES}
    if as_json:
        typer.echo(json.dumps({name: path and str(path) for name, path in here.items()}))
        return
    for name, path in here.items():
        show(f"{name:18} {path or '(to be downloaded)'}")


Like = Annotated[
    Path | None, typer.Option(help="A model file: read DATA as its training data was read.")
]


@datasets_app.command(epilog="Example: fdgnn datasets info MUTAG")
@expand
def info(
    data: Data,
    how: FirstDataOptions,
    target: SomeTargets = None,
    like: Like = None,
    as_json: AsJson = False,
) -> None:
    """Show sizes, degrees, classes, repeated graphs, and the best accuracy that is possible."""
    if target is not None and len(target) > 1:
        raise ValueError(f"--target is given {len(target)} times; this command shows one at a time")
    table, graphs = _read(data, how, like, None if target is None else target[0])
    facts = describe(graphs, table.y)
    _print(facts if as_json else _in_words(facts), as_json)


def _read(
    data: str, how: FirstDataOptions, like: Path | None, target: str | None = None
) -> tuple[GraphTable, GraphBatch]:
    """Read a table, and say how many of its rows are bad."""
    from fdgnn.exceptions import GraphError

    model = None
    if like is not None:
        from fdgnn.model_files import load_model  # imports scikit-learn

        model = load_model(like)
    table = how.read(data, target=target, like=model)
    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be read; {table.rejects[0]}")
    if table.rejects:
        say(f"{len(table.rejects)} of {table.n_rows} rows left out; {table.rejects[0]}")
    return table, table.graphs


def describe(graphs: GraphBatch, y: Array | None) -> dict[str, Any]:
    """Collect facts about a set of graphs."""
    import numpy as np

    from fdgnn.html.data_statistics import graph_counts

    classes = y if y is not None and len(np.unique(y)) <= MOST_CLASSES else None
    sizes = np.diff(graphs.vertex_offsets)
    values, counts = np.unique([] if classes is None else classes, return_counts=True)
    return graph_counts(graphs, classes) | {
        "n_edge_labels": 0
        if graphs.edge_label_codes is None
        else len(np.unique(graphs.edge_label_codes)),
        "class_counts": [list(p) for p in zip(values.tolist(), counts.tolist(), strict=True)],
        "vertices_min": int(sizes.min()),
        "vertices_mean": float(sizes.mean()),
        "vertices_max": int(sizes.max()),
        "k": graphs.average_degree,
        "max_degree": graphs.largest_degree,
    }


def _in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """Put the facts into words."""
    sizes = "{vertices_min} to {vertices_max}, mean {vertices_mean:.1f}".format(**facts)
    words: dict[str, Any] = {
        "graphs": facts["n_graphs"],
        "vertices": facts["n_vertices"],
        "vertices per graph": sizes,
        "arcs": facts["n_arcs"],
        "repeated arcs merged": facts["n_merged_arcs"],
        "self-loops": facts["n_self_loops"],
        "vertex labels": facts["n_labels"],
        "features per vertex": facts["n_features"],
        "arc labels": facts["n_edge_labels"],
        "largest neighborhood, mean over graphs (k)": round(facts["k"], 3),
        "largest neighborhood": facts["max_degree"],
        "distinct graphs (1-WL)": facts["n_distinct"],
    }
    if facts["class_counts"]:
        words["classes"] = ", ".join(f"{c}: {n}" for c, n in facts["class_counts"])
        words["majority class"] = round(facts["majority"], 4)
        words["WL ceiling"] = round(facts["wl_ceiling"], 4)
    return words


@app.command(epilog="Example: fdgnn stability PROTEINS")
@expand
def stability(
    data: Data, how: FirstDataOptions, like: Like = None, as_json: AsJson = False
) -> None:
    """Show at which effective spectral radius graphs are certain to have one fixed point."""
    import numpy as np

    graphs = _read(data, how, like)[1]
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


@app.command(epilog="Example: fdgnn model model.fdgnn")
def model(
    path: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False
) -> None:
    """Show what a model file says of its model: classes, score, networks; with --json, all."""
    from fdgnn.model_files import model_info
    from fdgnn.records import as_plain

    info = model_info(path)
    if as_json:
        _print(as_plain(info), as_json)
        return
    _print(model_in_words(info), as_json)


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
_VERTICES = {"labels": "vertex labels", "features": "features per vertex"}


def model_in_words(info: ModelInfo) -> dict[str, object]:
    """Facts about a model by name, in the order in which they are shown."""
    words: dict[str, object] = {"model": info.model or f"encoder {_kind(info.encoder)}"}
    if info.model is not None:
        words["targets" if len(info.targets) > 1 else "predicts"] = _targets(info)
    found = info.evaluation
    if found is None and info.score is not None:
        how = "nested cross-validation" if info.nested else "of the training"
        words["score"] = f"{info.score:.4f} ({how})"
    if found is not None:
        words["score"] = (
            f"{_scores(found.metrics)} (nested cross-validation, {found.protocol.split})"
        )
        morgan = [found.baseline("morgan", each.metric) for each in found.metrics]
        if known := [each for each in morgan if each is not None]:
            words["Morgan counts"] = f"{_scores(known)} (in the same folds)"
        if found.notes:
            words["notes"] = "; ".join(found.notes)
    if info.model is not None:
        classify = any(target.classes for target in info.targets)
        words["sets" if classify else "intervals"] = _conformal(info.targets)
    words["graphs"] = _kind_in_words(info.graph_kind)
    if info.descriptors:
        words["descriptors"] = ", ".join(_descriptor(column) for column in info.descriptors)
    if info.schema is not None:
        words["read from"] = _schema_in_words(info.schema)
    if info.estimators:
        words["base models"] = _estimators(info)
    words["parameters"] = _parameters(info) or "all by default"
    words["written by"] = f"fdgnn {info.fdgnn}, in format {info.format}"
    return words


def _kind(encoder: EncoderRecord | None) -> str:
    return "" if encoder is None else encoder.kind


def _conformal(targets: Sequence[TargetRecord]) -> str:
    """Whether there are sets or intervals, and what they rest on."""
    counts = [sum(target.conformal) for target in targets if target.conformal is not None]
    if not counts:
        return "no: the file has no conformal scores"
    return f"yes, by conformal scores of {sum(counts)} out-of-fold predictions"


def _kind_in_words(kind: GraphKind) -> str:
    direction = "directed" if kind.directed else "undirected"
    inputs = f"{kind.n_inputs} {_VERTICES[kind.vertices]}" if kind.vertices in _VERTICES else ""
    return f"{direction}, {inputs or 'nothing on vertices'}"


def _targets(info: ModelInfo) -> str | list[str]:
    """The only target, or one line for each."""
    each = [_target(target, info.evaluation) for target in info.targets]
    return each[0] if len(each) == 1 else each


def _target(target: TargetRecord, evaluation: Evaluation | None) -> str:
    what = "a number"
    if target.classes is not None:
        values = target.classes.values
        more = ", ..." if len(values) > _CLASSES else ""
        what = f"{len(values)} classes: {', '.join(map(str, values[:_CLASSES]))}{more}"
        what += ", with probabilities" if target.slope is not None else ""
    if not target.name:
        return what
    scores = _scores([] if evaluation is None else evaluation.of_target(target.name).metrics)
    return f"{target.name}: {what}" + (f"; {scores}" if scores else "")


def _scores(scores: Sequence[MetricScores]) -> str:
    """Write means over the outer folds, with their standard deviations."""
    each = []
    for one in scores:
        if one.mean is not None:
            deviation = "" if one.std is None else f" ± {one.std:.4f}"
            each.append(f"{one.words} {one.mean:.4f}{deviation}")
    return ", ".join(each)


def _descriptor(column: DescriptorColumn) -> str:
    kinds = f"{len(column.categories)} categories" if column.kind == "category" else "number"
    return f"{column.name} ({kinds}{', some missing' if column.missing else ''})"


def _schema_in_words(schema: InputSchema) -> str:
    known = {
        "column": schema.smiles_column,
        "atoms": schema.atoms,
        "vertices": ", ".join(schema.vertex_attributes),
        "edges": schema.edge_attribute,
        "arcs": None if schema.edge_labels == "ignore" else f"as {schema.edge_labels}",
        "standardized,": _STANDARDIZED.get(schema.standardize or ""),
        "stereo": "told" if schema.stereo else None,
    }
    found = [f"{name} {value}" for name, value in known.items() if value]
    return "; ".join([schema.source, *found])


def _estimators(info: ModelInfo) -> list[str]:
    """One line for those that are alike."""
    alike = Counter((model.name, model.readout, _alpha(model)) for model in info.estimators)
    lines = []
    for (name, readout, alpha), n in alike.items():
        times = f"{n} x " if n > 1 else ""
        lines.append(f"{times}{name} ({readout} readout{alpha})")
    return lines


def _alpha(model: EstimatorRecord) -> str:
    given = model.alpha if isinstance(model.alpha, list) else [model.alpha]
    known = [f"{alpha:g}" for alpha in given if alpha is not None]
    return f", alpha {', '.join(known)}" if known else ""


def _parameters(info: ModelInfo) -> str:
    """Parameters that differ from the defaults."""
    from fdgnn.model_files.description import MODELS

    kind = MODELS.get(info.model or "")
    usual = {} if kind is None else inspect.signature(kind).parameters
    given = info.parameters
    if not info.model and info.encoder is not None:
        given = info.encoder.parameters
    changed = {
        name: value
        for name, value in given.items()
        if name not in usual or usual[name].default != value
    }
    return ", ".join(f"{name}={value!r}" for name, value in changed.items())


@app.command("compile", epilog="Example: fdgnn compile")
def compile_command(quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Try the kernels on this machine, and make what else would be made at first use.

    For those who build images. Kernels are compiled when fdgnn is installed, never later. If the
    extra 'report' is installed, the script that draws the charts of its pages is made, and kept in
    the cache (FDGNN_CACHE).
    """
    from fdgnn.installation import compile_kernels

    found = compile_kernels(verbose=not quiet)
    charts = _make_charts()
    if as_json:
        told = {"engine": found.engine, "runs": list(found.runs), "charts": charts}
        typer.echo(json.dumps(told))
        return
    who = "FDGNN_ENGINE asks for" if os.environ.get("FDGNN_ENGINE") else "this processor takes"
    typer.echo(
        f"all is well: the kernels were compiled when fdgnn was installed, and work here; {who} "
        f"the engine '{found.engine}', of {', '.join(found.runs)}"
    )
    if charts is not None:
        say(f"the script that draws the charts of pages is kept: {charts}", quiet)


def _make_charts() -> str | None:
    """Make the script of charts; None if the extra is not installed, or nothing can be kept."""
    from fdgnn.exceptions import MissingDependencyError
    from fdgnn.html.page import cache_vega_bundle

    try:
        path = cache_vega_bundle()
    except MissingDependencyError:
        return None
    return None if path is None else str(path)

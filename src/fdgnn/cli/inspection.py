"""``fdgnn datasets``, ``stability`` and ``model``: facts about graphs and models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, say, show
from fdgnn.cli.options import AsJson, Data, FirstDataOptions, SomeTargets, expand

if TYPE_CHECKING:
    from fdgnn.datasets import GraphTable
    from fdgnn.graphs import Array, GraphBatch

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
    from msgspec.structs import asdict

    from fdgnn.html.data_statistics import graph_counts

    classes = y if y is not None and len(np.unique(y)) <= MOST_CLASSES else None
    sizes = np.diff(graphs.vertex_offsets)
    values, counts = np.unique([] if classes is None else classes, return_counts=True)
    return asdict(graph_counts(graphs, classes)) | {
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
    from fdgnn.cli.describing import model_in_words

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

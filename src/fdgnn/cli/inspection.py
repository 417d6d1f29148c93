"""``fdgnn datasets``, ``info`` and ``stability``: looking before leaping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fdgnn.cli.app import app, say
from fdgnn.cli.options import AsJson, Data, Format, Smiles, Target

if TYPE_CHECKING:
    from fdgnn.graphs import Array, GraphBatch

MOST_CLASSES = 20  # more different targets are quantities
RADII = (0.3, 0.5, 0.7, 0.9, 0.99)  # effective spectral radii shown by `stability`

datasets_app = typer.Typer(
    help="List the TU datasets that are known by name, or tell about one.",
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
        typer.echo(f"{name:18} {path or '(to be downloaded)'}")


@datasets_app.command(epilog="Example: fdgnn datasets info MUTAG")
def info(
    data: Data,
    target: Target = None,
    format: Format = None,
    smiles: Smiles = None,
    as_json: AsJson = False,
) -> None:
    """Sizes, degrees, classes, repeated graphs, and the best accuracy that can be reached."""
    table = _read(data, target=target, format=format, smiles_column=smiles)
    facts = describe(table.graphs, table.y)
    _print(facts if as_json else _in_words(facts), as_json)


def _read(data: str, **options: Any) -> Any:
    """Read a table whose bad rows are counted aloud."""
    from fdgnn.datasets import read_graphs
    from fdgnn.exceptions import GraphError

    table = read_graphs(data, **options)
    if table.graphs is None:
        raise GraphError(f"none of the {table.n_rows} rows can be read; {table.rejects[0]}")
    if table.rejects:
        say(f"{len(table.rejects)} of {table.n_rows} rows left out; {table.rejects[0]}")
    return table


def describe(graphs: GraphBatch, y: Array | None) -> dict[str, Any]:
    """Facts about a set of graphs."""
    import numpy as np

    from fdgnn.portrait.data import counts_of

    classes = y if y is not None and len(np.unique(y)) <= MOST_CLASSES else None
    sizes = np.diff(graphs.vertex_offsets)
    return counts_of(graphs, classes) | {
        "vertices_min": int(sizes.min()),
        "vertices_mean": float(sizes.mean()),
        "vertices_max": int(sizes.max()),
        "k": float(graphs.max_degrees.mean()),
        "max_degree": float(graphs.max_degrees.max()),
    }


def _in_words(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts as a person would like to read them."""
    sizes = "{vertices_min} to {vertices_max}, mean {vertices_mean:.1f}".format(**facts)
    words: dict[str, Any] = {
        "graphs": facts["n_graphs"],
        "vertices": facts["n_vertices"],
        "vertices a graph": sizes,
        "arcs": facts["n_arcs"],
        "repeated arcs merged": facts["n_merged_arcs"],
        "self-loops": facts["n_self_loops"],
        "vertex labels": facts["n_labels"],
        "features a vertex": facts["n_features"],
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
def stability(
    data: Data, format: Format = None, smiles: Smiles = None, as_json: AsJson = False
) -> None:
    """Which graphs are certain to have one fixed point, at which effective spectral radius."""
    import numpy as np

    graphs = _read(data, format=format, smiles_column=smiles).graphs
    facts: dict[str, Any]
    k, radii = float(graphs.max_degrees.mean()), graphs.spectral_radii
    certified = {rho: int((rho * radii < k).sum()) if k else len(graphs) for rho in RADII}
    facts = {
        "n_graphs": len(graphs),
        "k": k,
        "radius_median": float(np.median(radii)),
        "radius_max": float(radii.max()),
        "n_above_k": int((radii > k).sum()),
        "certified": {str(rho): n for rho, n in certified.items()},
    }
    words = {
        "k, mean over graphs of the largest neighborhood": round(k, 3),
        "rho(A), median": round(facts["radius_median"], 3),
        "rho(A), largest": round(facts["radius_max"], 3),
        "graphs with rho(A) above k": facts["n_above_k"],
    } | {
        f"certified at effective spectral radius {rho}": f"{n} of {len(graphs)}"
        for rho, n in certified.items()
    }
    _print(facts if as_json else words, as_json)


@app.command(epilog="Example: fdgnn model model.fdgnn")
def model(
    path: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False
) -> None:
    """What a model file says of itself: parameters, classes, score, versions."""
    from fdgnn.model_files import model_info

    _print(model_info(path), as_json)


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:{width}}  {value}")

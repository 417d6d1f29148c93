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
    _print(describe(table.graphs, table.y), as_json)


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

    sizes = np.diff(graphs.vertex_offsets)
    facts: dict[str, Any] = {
        "graphs": len(graphs),
        "vertices": graphs.n_vertices,
        "vertices a graph": f"{sizes.min()} to {sizes.max()}, mean {sizes.mean():.1f}",
        "arcs": graphs.n_arcs,
        "repeated arcs merged": graphs.n_merged_arcs,
        "self-loops": graphs.n_self_loops,
        "vertex labels": 0 if graphs.label_values is None else len(graphs.label_values),
        "features a vertex": 0 if graphs.features is None else graphs.features.shape[1],
        "largest neighbourhood, mean over graphs (k)": round(float(graphs.max_degrees.mean()), 3),
        "largest neighbourhood": float(graphs.max_degrees.max()),
        "distinct graphs (1-WL)": graphs.n_distinct_graphs,
    }
    if y is not None:
        classes, counts = np.unique(y, return_counts=True)
        if len(classes) <= 20:
            named = zip(classes.tolist(), counts.tolist(), strict=True)
            facts["classes"] = ", ".join(f"{c}: {n}" for c, n in named)
            facts["majority class"] = round(float(counts.max() / len(y)), 4)
            facts["WL ceiling"] = round(graphs.wl_ceiling(y), 4)
    return facts


@app.command(epilog="Example: fdgnn stability PROTEINS")
def stability(
    data: Data, format: Format = None, smiles: Smiles = None, as_json: AsJson = False
) -> None:
    """Which graphs are certain to have one fixed point, at which effective spectral radius."""
    import numpy as np

    graphs = _read(data, format=format, smiles_column=smiles).graphs
    k, radii = float(graphs.max_degrees.mean()), graphs.spectral_radii
    facts: dict[str, Any] = {
        "k, mean over graphs of the largest neighbourhood": round(k, 3),
        "rho(A), median": round(float(np.median(radii)), 3),
        "rho(A), largest": round(float(radii.max()), 3),
        "graphs with rho(A) above k": int((radii > k).sum()),
    }
    for rho in RADII:
        certified = int((rho * radii < k).sum()) if k else len(graphs)
        facts[f"certified at effective spectral radius {rho}"] = f"{certified} of {len(graphs)}"
    _print(facts, as_json)


@app.command(epilog="Example: fdgnn model model.fdgnn")
def model(
    path: Annotated[Path, typer.Argument(help="A model file.")], as_json: AsJson = False
) -> None:
    """What a model file says of itself: parameters, classes, score, versions."""
    from fdgnn.persistence import model_info

    _print(model_info(path), as_json)


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        typer.echo(f"{name:{width}}  {value}")

"""Settings of a model as options of a command: what is given is not searched."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from fdgnn.cli.options import ModelName


class ReadoutName(StrEnum):
    """How features become outputs."""

    auto = "auto"
    linear = "linear"
    rbf = "rbf"


# Options, by the parameter that each sets.
OF_RESERVOIRS = {
    "n_units": "units", "n_layers": "layers", "n_connections": "connections",
    "n_projections": "projections", "effective_spectral_radius": "spectral-radius",
    "input_scaling": "input-scaling", "inter_layer_scaling": "inter-layer-scaling",
}  # fmt: skip
OF_WL = {"n_iterations": "iterations", "readout": "readout"}
OF_BOTH = {"alpha": "alpha"}


@dataclass(frozen=True)
class ModelSettings:
    """Options that set parameters of a model; what is not given is searched, or by default."""

    n_units: Annotated[
        int | None, typer.Option("--units", help="With --model paper: units in each layer, or 50.")
    ] = None
    n_layers: Annotated[
        int | None,
        typer.Option("--layers", help="With --model paper: layers, or 1 to 5 are tried."),
    ] = None
    n_connections: Annotated[
        int | None,
        typer.Option("--connections", help="With --model paper: connections of each unit, or 1."),
    ] = None
    n_projections: Annotated[
        int | None,
        typer.Option("--projections", help="With --model paper: random features; 0 means none."),
    ] = None
    effective_spectral_radius: Annotated[
        float | None,
        typer.Option("--spectral-radius", help="With --model paper: rho, or it is searched."),
    ] = None
    input_scaling: Annotated[
        float | None,
        typer.Option("--input-scaling", help="With --model paper: omega(1), or it is searched."),
    ] = None
    inter_layer_scaling: Annotated[
        float | None,
        typer.Option("--inter-layer-scaling", help="With --model paper: omega, or it is searched."),
    ] = None
    n_iterations: Annotated[
        int | None,
        typer.Option("--iterations", help="With --model wl: one model, of so many iterations."),
    ] = None
    readout: Annotated[
        ReadoutName | None,
        typer.Option("--readout", help="With --model wl: one model with this readout."),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            "--alpha",
            min=0,
            help="With --model paper or wl: regularization strength of the readout.",
        ),
    ] = None

    def checked(self, model: ModelName) -> dict[str, Any]:
        """Give the parameters that are set, or raise ValueError if the model has none of these."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        for names, models in (
            (OF_RESERVOIRS, (ModelName.paper,)),
            (OF_WL, (ModelName.wl,)),
            (OF_BOTH, (ModelName.paper, ModelName.wl)),
        ):
            for name in given:
                if name in names and model not in models:
                    raise ValueError(
                        f"--{names[name]} is for --model {' or '.join(models)}; --model "
                        f"{model.value} has no such choice"
                    )
        return {n: v.value if isinstance(v, StrEnum) else v for n, v in given.items()}

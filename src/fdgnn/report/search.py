"""What a run's records say of its search, summed up while they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.experiments import paper

Floats = npt.NDArray[np.float64]
MOST = 20_000  # configurations, and guesses of one, that a page can show


class Network(NamedTuple):
    """One record: the validation accuracy at its own depth for each penalty, over all folds.

    Test scores stay in the file: a page that shows how a choice was made must not show them.
    """

    configuration: int
    guess: int
    seconds: float
    validation: Floats  # (n_alphas,)


@dataclass(frozen=True)
class Search:
    """The networks of a run: `validation` is NaN where one is missing."""

    configurations: list[dict[str, Any]]
    alphas: list[float]
    validation: Floats  # (n_configurations, n_guesses, n_alphas)
    seconds: float
    n_networks: int
    n_unreadable: int

    @property
    def means(self) -> Floats:
        """Over guesses: (n_configurations, n_alphas)."""
        return _nan_mean(self.validation, axis=1)

    def summary(self) -> list[dict[str, Any]]:
        """One row for each configuration: mean and range over guesses, each at its best penalty."""
        rows = []
        for c, configuration in enumerate(self.configurations):
            found = self.validation[c][~np.isnan(self.validation[c]).any(axis=1)]
            if len(found) == 0:
                continue
            guesses = found.max(axis=1)
            a = int(np.bincount(found.argmax(axis=1)).argmax())  # the penalty that most take
            rows.append(
                {
                    "c": c,
                    "rho": configuration.get("effective_spectral_radius"),
                    "omega1": configuration.get("input_scaling"),
                    "omega": configuration.get("inter_layer_scaling"),
                    "depth": configuration.get("n_layers"),
                    "lambda": self.alphas[a],
                    "mean": float(guesses.mean()),
                    "low": float(guesses.min()),
                    "high": float(guesses.max()),
                    "guesses": len(guesses),
                }
            )
        return rows


def read_search(
    path: Path, settings: dict[str, Any], result: dict[str, Any] | None
) -> Search | None:
    """Sum up ``records.jsonl``; None if it is missing or has no line that can be read."""
    result = result or {}
    alphas = [
        float(a) for a in result.get("alphas") or settings.get("alphas") or paper.SETTINGS.alphas
    ]
    found: dict[tuple[int, int], Network] = {}
    n_lines = 0
    for network in _networks(path, len(alphas)):
        n_lines += 1
        if network is not None:
            found.setdefault((network.configuration, network.guess), network)
    if not found:
        return None
    n_configurations = 1 + max(c for c, _ in found)
    shape = (n_configurations, 1 + max(g for _, g in found), len(alphas))
    validation = np.full(shape, np.nan)
    for (c, g), network in found.items():
        validation[c, g] = network.validation
    return Search(
        configurations=_configurations(settings, result, n_configurations),
        alphas=alphas,
        validation=validation,
        seconds=sum(n.seconds for n in found.values()),
        n_networks=len(found),
        n_unreadable=n_lines - len(found),
    )


def _networks(path: Path, n_alphas: int) -> Iterator[Network | None]:
    """Record by record, None for a line that cannot be read, as the torn last one."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for text in lines:
            yield _network(text, n_alphas)


def _network(text: str, n_alphas: int) -> Network | None:
    try:
        line = json.loads(text)
        own_depth = np.array(line["validation"][-1], dtype=np.float64)  # (n_outer, n_alphas)
        network = Network(
            int(line["configuration"]),
            int(line["guess"]),
            float(line["seconds"]),
            own_depth.mean(axis=0),
        )
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError):
        return None
    usable = (
        0 <= network.configuration < MOST
        and 0 <= network.guess < MOST
        and network.validation.shape == (n_alphas,)
        and bool(np.isfinite(network.validation).all())
        and 0 <= network.seconds < 1e12
    )
    return network if usable else None


def _configurations(
    settings: dict[str, Any], result: dict[str, Any], n: int
) -> list[dict[str, Any]]:
    """As the result lists them; a run without a result, or an old one, draws them again."""
    listed: list[dict[str, Any]] = result.get("configurations") or []
    if len(listed) >= n:
        return listed[:n]
    from fdgnn.selection.scores import PAPER_RANGES, draw_configurations

    depths = {"n_layers": list(range(1, settings["max_layers"] + 1))}
    return draw_configurations(PAPER_RANGES | depths, n, settings["seed"])


def _nan_mean(values: Floats, axis: int) -> Floats:
    """Like `numpy.nanmean`, without its warning for a slice that is empty."""
    there = ~np.isnan(values)
    sums = np.where(there, values, 0).sum(axis=axis)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / there.sum(axis=axis))

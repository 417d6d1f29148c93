"""What is searched: penalties, depths, and configurations drawn at random."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from fdgnn.seeds import integer_seed, seed_sequence

#: Parameters of an estimator by name; a value is whatever the estimator takes.
Parameters: TypeAlias = dict[str, Any]

ALPHAS: tuple[float, ...] = tuple(10.0**e for e in range(-8, 4))  # the paper's grid of lambda


def at_depth(estimator: Any, depth: int) -> Parameters:
    """Give the parameters that set an estimator's depth; none where there is one depth only."""
    name = estimator.depth_parameter
    return {} if name is None else {name: depth}


def depth_of(estimator: Any) -> int:
    """Give the depth that an estimator is set to."""
    name = estimator.depth_parameter
    return 1 if name is None else int(estimator.get_params()[name])


def draw_configurations(
    distributions: Mapping[str, Any], n_configurations: int, seed: int
) -> list[Parameters]:
    """Draw configurations at random, each with the seed of its own networks.

    Configuration c depends on `seed` and c only, so a longer search contains a shorter one.
    """
    root = seed_sequence(seed)
    drawn = (
        _draw(dict(distributions), np.random.RandomState(integer_seed(root, c, 0)))
        for c in range(n_configurations)
    )
    return [
        {
            name: value.item() if isinstance(value, np.generic) else value
            for name, value in d.items()
        }
        | {"random_state": integer_seed(root, c, 1)}
        for c, d in enumerate(drawn)
    ]


def _draw(distributions: Parameters, rng: np.random.RandomState) -> Parameters:
    """Draw one value of each parameter, as scikit-learn's ``ParameterSampler`` does."""
    if not any(hasattr(values, "rvs") for values in distributions.values()):
        from sklearn.model_selection import ParameterSampler  # slow to import

        return dict(next(iter(ParameterSampler(distributions, 1, random_state=rng))))
    return {
        name: values.rvs(random_state=rng)
        if hasattr(values, "rvs")
        else values[rng.randint(len(values))]
        for name, values in sorted(distributions.items())
    }

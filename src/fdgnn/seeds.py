"""Seeds and random streams: all randomness starts here and is handed down.

Every matrix of every layer has a stream of its own, so that adding a layer or a network leaves
the others unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


class Matrix:
    """Which stream draws which matrix; the numbers are part of what a seed means."""

    INPUT, RECURRENT, BIAS, PROJECTION = range(4)


@dataclass(frozen=True)
class Uniform:
    """Numbers from 0 to 1, drawn as by ``scipy.stats.uniform``, which takes a second to import."""

    def rvs(self, size: Any = None, random_state: Any = None) -> Any:
        """Draw numbers; `random_state` is None, an integer or NumPy's ``RandomState``."""
        from sklearn.utils import check_random_state

        return check_random_state(random_state).uniform(size=size)


def seed_sequence(random_state: Any) -> np.random.SeedSequence:
    """Turn what scikit-learn calls a random state into the root of all streams.

    Raises
    ------
    ValueError
        It is none.
    """
    if isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(int(random_state.integers(2**63)))
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(int(random_state.randint(2**31 - 1)))
    try:
        return np.random.SeedSequence(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r}: expected None, an integer of at least 0, a "
            f"RandomState, a Generator or a SeedSequence ({error})"
        ) from None


def child_seed(seed: np.random.SeedSequence, *key: int) -> np.random.SeedSequence:
    """Return the child at `key`; it does not depend on how many others are made, or when."""
    return np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, *key))


def stream(seed: np.random.SeedSequence, *key: int) -> np.random.Generator:
    """Return the random numbers of the child at `key`."""
    return np.random.Generator(np.random.PCG64(child_seed(seed, *key)))


def stream_words(seed: np.random.SeedSequence, *key: int) -> npt.NDArray[np.uint32]:
    """Return the words that NumPy mixes into the stream of the child at `key`, for the kernels."""
    words = words_of(seed.entropy)
    words += [0] * (4 - len(words))  # so that keys are no part of shorter seeds
    return np.array(words + words_of((*seed.spawn_key, *key)), dtype=np.uint32)


def words_of(value: Any) -> list[int]:
    """Split whole numbers into words of 32 bits, as SeedSequence does."""
    if type(value) is int and 0 <= value < 2**32:  # most often
        return [value]
    if isinstance(value, str):  # SeedSequence takes texts in lists
        value = int(value, 0)
    if not isinstance(value, int | np.integer):
        return [word for each in value for word in words_of(each)]
    n_words = max(1, -(-int(value).bit_length() // 32))
    return [int(value) >> 32 * i & 0xFFFFFFFF for i in range(n_words)]


def integer_seed(root: np.random.SeedSequence, *key: int) -> int:
    """Return the child at `key` as a number that fits an estimator's `random_state`."""
    return int(child_seed(root, *key).generate_state(1)[0])

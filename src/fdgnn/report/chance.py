"""What chance alone can do to a share of a few graphs."""

from __future__ import annotations

import math


def wilson_interval(right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's interval for a share, by default of 95 %; unlike others, it holds at 0 and 1."""
    share, weight = right / n, z * z / n
    middle = (share + weight / 2) / (1 + weight)
    half = z * math.sqrt(share * (1 - share) / n + weight / (4 * n)) / (1 + weight)
    return max(0.0, middle - half), min(1.0, middle + half)


def binomial_test(right: int, n: int, probability: float) -> float:
    """How likely a count at least as unlikely as this one is, exactly and on both sides."""
    if not 0 < probability < 1:
        return float(right == round(n * probability))
    steps = [_log_chance(k, n, probability) for k in range(n + 1)]
    least = steps[right] + 1e-7  # equally unlikely ones, as rounding leaves them
    return min(1.0, math.fsum(math.exp(step) for step in steps if step <= least))


def _log_chance(right: int, n: int, probability: float) -> float:
    ways = math.lgamma(n + 1) - math.lgamma(right + 1) - math.lgamma(n - right + 1)
    return ways + right * math.log(probability) + (n - right) * math.log1p(-probability)

"""Strongly connected components of a reservoir: our kernel and SciPy's function.

    python -m benchmarks.components

A schedule needs the components, their topological order, and, within a cycle, an order in which
each unit follows the unit that it reads. SciPy computes only the components. The rest is
added here in the fastest way that we know, and results are compared before times.
Figures are CPU microseconds per layer, the best of many, after compilation.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from benchmarks.engine import cpu
from fdgnn.kernels import strong_components

REPEATS = 300


def wiring(H: int, C: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    rows = [np.sort(rng.permutation(H)[:C]) for _ in range(H)]
    return np.arange(0, H * C + 1, C), np.concatenate(rows).astype(np.int32)


def by_scipy(indptr: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """Give the component of each neuron, in no promised order."""
    H = len(indptr) - 1
    W = sp.csr_array((np.ones(len(sources)), sources, indptr), (H, H))
    return connected_components(W, directed=True, connection="strong")[1]


def by_scipy_in_order(indptr: np.ndarray, sources: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Components by SciPy, then Kahn's algorithm over them, then a walk around each."""
    labels = by_scipy(indptr, sources)
    n = int(labels.max()) + 1
    readers: list[set[int]] = [set() for _ in range(n)]
    missing = [0] * n
    members: list[list[int]] = [[] for _ in range(n)]
    for h, label in enumerate(labels.tolist()):
        members[label].append(h)
        for s in labels[sources[indptr[h] : indptr[h + 1]]].tolist():
            if s != label and label not in readers[s]:
                readers[s].add(label)
                missing[label] += 1
    ready = [c for c in range(n) if missing[c] == 0]
    order: list[int] = []
    offsets = [0]
    while ready:
        c = ready.pop()
        order += _walk(members[c], indptr, sources, labels)
        offsets.append(len(order))
        for reader in readers[c]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    return np.array(order), np.array(offsets)


def _walk(
    neurons: list[int], indptr: np.ndarray, sources: np.ndarray, labels: np.ndarray
) -> list[int]:
    """Put each neuron of a cycle after the one that it reads."""
    path = [neurons[0]]
    seen = set(path)
    for _ in neurons[1:]:
        read = sources[indptr[path[-1]] : indptr[path[-1] + 1]].tolist()
        step = [s for s in read if labels[s] == labels[path[-1]] and s not in seen]
        if not step:  # denser than a cycle: any order will do
            return path[::-1] + [h for h in neurons if h not in seen]
        path.append(step[0])
        seen.add(step[0])
    return path[::-1]


def partition(order: np.ndarray, offsets: np.ndarray) -> list[list[int]]:
    return sorted(sorted(part.tolist()) for part in np.split(order, offsets[1:-1]))


def main() -> None:
    print("   H  C   kernel   SciPy's labels   SciPy's labels, put in order")
    for H, C in ((50, 1), (50, 3), (500, 1), (500, 3)):
        arcs = wiring(H, C)
        assert partition(*strong_components(*arcs)) == partition(*by_scipy_in_order(*arcs))
        times = [
            1e6 * cpu(partial(f, *arcs), REPEATS)
            for f in (strong_components, by_scipy, by_scipy_in_order)
        ]
        print(f"{H:4} {C:2} {times[0]:8.1f} {times[1]:16.1f} {times[2]:30.1f}")


if __name__ == "__main__":
    main()

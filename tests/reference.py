"""The paper, line by line: eq. 1-3 for one graph, one vertex at a time, in float64, no tricks.

Slow and plain on purpose: everything fast is tested against it.
"""

from __future__ import annotations

import numpy as np


def neighborhood(graph, v):
    """(neighbor, weight) pairs of the arcs that lead into v, each arc once."""
    arcs = {}
    for a, (source, target) in enumerate(np.asarray(graph.edge_index).T):
        weight = 1.0 if graph.weights is None else float(graph.weights[a])
        arcs[int(source), int(target)] = weight
        if not graph.directed:
            arcs[int(target), int(source)] = weight
    return [(u, weight) for (u, target), weight in arcs.items() if target == v]


def vertex_input(graph, v, vocabulary):
    """l(v): one-hot label, real features, or the constant 1."""
    if graph.labels is not None:
        return np.array([1.0 if graph.labels[v] == label else 0.0 for label in vocabulary])
    if graph.features is not None:
        return np.asarray(graph.features, dtype=float)[v]
    return np.array([1.0])


def fixed_point(graph, u, W_I, W_H, bias, eps, max_iter):
    """Iterate eq. 1 from zero until successive states differ by less than eps (Frobenius)."""
    n, H = graph.n_vertices, len(bias)
    into = [neighborhood(graph, v) for v in range(n)]
    x = [np.zeros(H) for _ in range(n)]
    t, distance = 0, np.inf
    while t < max_iter and distance >= eps:
        t += 1
        x_new = []
        for v in range(n):
            total = W_I @ u[v] + bias
            for neighbor, weight in into[v]:
                total = total + weight * (W_H @ x[neighbor])
            x_new.append(np.tanh(total))
        distance = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(x_new, x, strict=True)))
        x = x_new
    return x, t, distance


def embed_graph(graph, layers, vocabulary=None, eps=1e-3, max_iter=50):
    """States of all layers, (L, n, H); iterations and last distance of each layer."""
    u = [vertex_input(graph, v, vocabulary) for v in range(graph.n_vertices)]
    states, steps, distances = [], [], []
    for layer in layers:
        W_I, W_H = layer.input_weights.toarray(), layer.recurrent_weights.toarray()
        u, t, distance = fixed_point(graph, u, W_I, W_H, layer.bias, eps, max_iter)
        states.append(u)
        steps.append(t)
        distances.append(distance)
    return np.array(states), steps, distances


def output(states, W_phi, W_Y, bias_Y):
    """Eq. 3 on the states of the last layer."""
    pooled = sum(states[-1])
    return W_Y @ np.tanh(W_phi @ pooled) + bias_Y


def tikhonov(features, targets, alpha):
    """W_Y and its bias that minimize ||targets - features W_Y^T - b||^2 + alpha ||W_Y||^2."""
    mean, level = features.mean(axis=0), targets.mean(axis=0)
    Z, T = features - mean, targets - level
    U, s, Vt = np.linalg.svd(Z, full_matrices=False)
    W_Y = ((Vt.T * (s / (s**2 + alpha))) @ (U.T @ T)).T
    return W_Y, level - W_Y @ mean


def state_distances(recurrent_weights, drive, graphs, n_steps):
    """The definition of GES: (n_steps + 1, n_graphs) distances of two random states, step by step.

    `drive` (n_vertices, H) is what the layer receives from outside, ``U W_I^T + bias``.
    """
    A, W = graphs.adjacency().toarray(), recurrent_weights.toarray()
    rng = np.random.default_rng(0)
    X, Z = rng.uniform(-1, 1, size=(2, *drive.shape))
    distances = []
    for step in range(n_steps + 1):
        if step:
            X, Z = (np.tanh(drive + A @ S @ W.T) for S in (X, Z))
        squares = np.square(X - Z).sum(axis=1)
        distances.append(np.sqrt(np.add.reduceat(squares, graphs.vertex_offsets[:-1])))
    return np.array(distances)

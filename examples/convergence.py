"""Convergence of reservoir states, and the certificate that proves it. Draws convergence.png.

    python examples/convergence.py [FOLDER]

A layer has exactly one fixed point if rho(|W_H|) rho(|A|) < 1. The left side shows the graphs by
this product, the right side how far their states move in each step: below 1 they converge in a
few steps, above 1 they may or may not.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from pictures import save

from fdgnn import GraphReservoir
from fdgnn.datasets import make_random_graphs
from fdgnn.plot import plot_convergence, plot_stability


def main() -> None:
    graphs = make_random_graphs(300, n_vertices=(6, 60), density=0.3, random_state=0)
    reservoir = GraphReservoir(n_layers=3, effective_spectral_radius=0.99, random_state=0)
    reservoir.fit(graphs)

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    plot_stability(reservoir, graphs, ax=left)
    left.set_title("Graphs that provably have one fixed point")
    plot_convergence(reservoir, graphs, ax=right)
    right.set_title("Convergence of their states")
    save(figure, "convergence.png")


if __name__ == "__main__":
    main()

"""Embeddings of an untrained reservoir, as maps of graphs by class. Draws embedding.png.

    python examples/embedding.py [FOLDER]

The reservoir is random and has not seen the classes. Still, graphs of one class are close
together, so that a linear readout is enough.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from pictures import save

from fdgnn import FDGNNClassifier, load_tu
from fdgnn.datasets import make_motif_graphs
from fdgnn.exceptions import DatasetError
from fdgnn.plot import plot_embedding

MOTIFS = ("cycle", "house", "star", "clique")


def main() -> None:
    model = FDGNNClassifier(
        n_layers=3, effective_spectral_radius=0.6, input_scaling=0.1, random_state=0
    )
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)

    graphs, codes = make_motif_graphs(400, motifs=MOTIFS, random_state=0)
    names = np.array(MOTIFS)[codes]
    plot_embedding(model.fit(graphs, names), graphs, names, ax=left)
    left.set_title("Which of four motifs hangs on a random tree?")

    try:
        graphs, y = load_tu("MUTAG", download_if_missing=False)
        names, title = np.where(y == 1, "mutagenic", "not"), "Is the molecule mutagenic? (MUTAG)"
    except DatasetError:
        graphs, codes = make_motif_graphs(200, n_vertices=(10, 30), random_state=1)
        names, title = np.array(MOTIFS)[codes], "Cycle or house, on trees of many sizes?"
    plot_embedding(model.fit(graphs, names), graphs, names, ax=right)
    right.set_title(title)
    save(figure, "embedding.png")


if __name__ == "__main__":
    main()

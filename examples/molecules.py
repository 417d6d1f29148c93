"""Attributions of atoms to the score of "mutagenic". Draws molecules.png.

    python examples/molecules.py [FOLDER]

A model is trained on nine tenths of MUTAG. Three other molecules are drawn, with each
atom colored by its attribution to the score of "mutagenic", whichever class is predicted. If
MUTAG is not available, generated graphs are used: trees with a clique or a star.
"""

from __future__ import annotations

from matplotlib.figure import Figure
from pictures import save
from sklearn.model_selection import train_test_split

from fdgnn import FDGNNClassifier, draw_explanation, explain, load_tu, paper
from fdgnn.datasets import make_motif_graphs
from fdgnn.exceptions import DatasetError


def main() -> None:
    try:
        graphs, y = load_tu("MUTAG", download_if_missing=False)
        names, elements = {1: "mutagenic", -1: "not mutagenic"}, paper.ATOMS["MUTAG"]
    except DatasetError:
        graphs, y = make_motif_graphs(200, motifs=("star", "clique"), random_state=0)
        names, elements = {1: "clique", 0: "star"}, None
    train, test, y_train, y_test = train_test_split(
        graphs, y, test_size=0.1, stratify=y, random_state=0
    )
    model = FDGNNClassifier(
        n_layers=2, effective_spectral_radius=0.5, n_estimators=20, alpha=1e-2, probability=True,
        random_state=0,
    )  # fmt: skip
    model.fit(train, y_train)
    chances = model.predict_proba(test)[:, 1]  # of the class 1
    right = (chances > 0.5) == (y_test == 1)
    print(f"{right.mean():.0%} of {len(test)} unseen graphs are right")

    by_chance = [g for g in chances.argsort()[::-1].tolist() if right[g]]
    figure = Figure(figsize=(14, 3.6), layout="constrained")
    for ax, g in zip(figure.subplots(1, 3), (*by_chance[1:3], by_chance[-1]), strict=True):
        graph = test[g]
        labels = None if elements is None else [elements[label] for label in graph.labels]
        found = explain(model, [graph], target=1)[0]
        draw_explanation(graph, found, ax=ax, labels=labels)
        ax.set_title(f"{names[int(y_test[g])]} (predicted: {chances[g]:.0%} {names[1]})")
    *others, last = figure.axes[3:]
    for bar in others:
        bar.set_ylabel("")  # the last one has it
    last.set_ylabel(f"attribution to the score of\n\u201c{names[1]}\u201d, minus the mean")
    save(figure, "molecules.png")


if __name__ == "__main__":
    main()

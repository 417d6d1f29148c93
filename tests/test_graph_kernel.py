"""`GraphKernel`: normalized kernel matrices, in scikit-learn's support vector machines."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from fdgnn import Graph, GraphKernel, GraphReservoir, PairCounts, WLCounts, as_batch
from fdgnn.datasets import make_cycles, make_motif_graphs

GRAPHS, Y = make_motif_graphs(60, random_state=0)
ENCODERS = {
    "wl": WLCounts(n_iterations=2),
    "exact": WLCounts(n_iterations=2, n_features=None),
    "pairs": PairCounts(max_distance=3),
    "dense": GraphReservoir(n_units=10, random_state=0),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_it_is_the_cosine_of_features(name):
    found = GraphKernel(ENCODERS[name]).fit(GRAPHS[:40]).transform(GRAPHS[40:])
    encoder = ENCODERS[name].fit(GRAPHS[:40])
    Z, X = (encoder.transform(graphs) for graphs in (GRAPHS[40:], GRAPHS[:40]))
    Z, X = ((M.toarray() if sp.issparse(M) else M) for M in (Z, X))
    lengths = np.outer(np.linalg.norm(Z, axis=1), np.linalg.norm(X, axis=1))
    np.testing.assert_allclose(found, Z @ X.T / lengths, atol=1e-12)


@pytest.mark.parametrize("name", ENCODERS)
def test_of_training_graphs_it_is_a_gram_matrix(name):
    K = GraphKernel(ENCODERS[name]).fit_transform(GRAPHS)
    np.testing.assert_allclose(K, K.T, atol=1e-12)
    np.testing.assert_allclose(np.diag(K), 1.0)
    assert np.linalg.eigvalsh(K).min() > -1e-9


def test_support_vector_machines_take_it():
    model = make_pipeline(GraphKernel(WLCounts()), SVC(kernel="precomputed"))
    search = GridSearchCV(model, {"graphkernel__encoder__n_iterations": [1, 2], "svc__C": [1, 10]})
    easy, y = make_motif_graphs(60, motifs=("star", "clique"), random_state=0)
    assert cross_val_score(search, as_batch(easy), y, cv=3).mean() > 0.9
    assert model.fit(easy, y)[:-1].get_feature_names_out()[-1] == "graph59"


def test_graphs_without_known_features_have_the_kernel_zero():
    graphs = [Graph(np.empty((2, 0), int), n_vertices=1, labels=[label]) for label in (0, 1, 7)]
    kernel = GraphKernel(WLCounts(n_features=None)).fit(graphs[:2])
    with pytest.warns(match="not seen"):
        assert kernel.transform(graphs[2:]).tolist() == [[0.0, 0.0]]


def test_unused_columns_are_left_out_on_request():
    all_columns = WLCounts(n_iterations=2).fit_transform(GRAPHS)
    used = WLCounts(n_iterations=2, n_features=None).fit(GRAPHS)
    X = used.transform(GRAPHS)
    assert X.shape[1] < all_columns.shape[1] == 2**18
    assert (X.sum(axis=0) > 0).all()
    names = used.get_feature_names_out()
    assert len(names) == len(set(names)) == X.shape[1]
    exact, hashed = ((M @ M.T).toarray() for M in (X, all_columns))
    assert (exact <= hashed).all()  # a few features share a column
    np.testing.assert_allclose(exact, hashed, rtol=0.01)
    assert used.transform(make_cycles([40])).shape == (1, X.shape[1])

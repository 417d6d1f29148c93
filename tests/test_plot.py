"""What notebooks show: plots that say what the model says, and estimators as HTML."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    FDGNNSearchCV,
    Graph,
    GraphClassifier,
    GraphReservoir,
    draw_explanation,
    explain,
)
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.encoders import Encoder
from fdgnn.exceptions import MissingDependencyError
from fdgnn.html.collect import report_data
from fdgnn.plot import plot_embedding

pytest.importorskip("matplotlib")

GRAPHS, Y = make_motif_graphs(40, random_state=0)
SMALL = {"n_layers": 2, "n_units": 12, "effective_spectral_radius": 0.5, "random_state": 0}


def plot_attributions(model, graph, *, target=None, labels=None, ax=None):
    """Draw an explanation, as `examples/molecules.py` does."""
    return draw_explanation(graph, explain(model, [graph], target=target)[0], ax=ax, labels=labels)


def search():
    return FDGNNSearchCV(FDGNNClassifier(n_estimators=2), n_configurations=1, cv=2, random_state=0)


MODELS = {
    "reservoir": lambda: GraphReservoir(**SMALL),
    "classifier": lambda: FDGNNClassifier(**SMALL, n_estimators=2),
    "regressor": lambda: FDGNNRegressor(**SMALL),
    "search": search,
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param]().fit(GRAPHS, Y)


@pytest.fixture
def ax():
    return pytest.importorskip("matplotlib.figure").Figure().subplots()


@pytest.fixture(autouse=True)
def nothing_is_shown(monkeypatch):
    import matplotlib.pyplot as plt

    def show(*args, **kwargs):
        raise AssertionError("a plot must not show itself")

    monkeypatch.setattr(plt, "show", show)
    yield
    plt.close("all")


def drawn(ax, *, laid_out=False):
    """Draw for real: an error of Matplotlib may come as late as that.

    Making room for labels draws them several times more; the plots of one model are laid out.
    """
    if not laid_out:
        ax.figure.set_layout_engine("none")
    ax.figure.canvas.draw()
    return ax


# ---------------------------------------------------------------------- all plots


def test_the_embedding_takes_every_model_any_graphs_and_given_axes(model, ax):
    assert plot_embedding(model, list(GRAPHS), ax=ax) is ax
    new = drawn(plot_embedding(model, GRAPHS), laid_out=isinstance(model, GraphReservoir))
    assert new is not ax
    for axis in (new.xaxis, new.yaxis):
        assert axis.label.get_text()
    drawn(plot_embedding(model, [GRAPHS[0]]))


@pytest.mark.parametrize("kind", MODELS)
def test_models_must_be_fitted(kind):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        plot_embedding(MODELS[kind](), GRAPHS)


def test_other_objects_than_models_are_rejected():
    with pytest.raises(TypeError, match="got a RidgeClassifier"):
        plot_embedding(RidgeClassifier(), GRAPHS)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    model = GraphReservoir(**SMALL).fit(GRAPHS)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match="extra 'plot'"):
        plot_embedding(model, GRAPHS)


class Degrees(Encoder):
    """A trial encoder: each graph's histogram of degrees."""

    kind = "trial-degrees"

    def vertex_features(self, graphs):
        return np.eye(8)[np.minimum(np.diff(graphs.indptr), 7)]


def test_other_encoders_are_plotted_as_far_as_they_can_be(ax):
    model = GraphClassifier(Degrees()).fit(GRAPHS, Y)
    drawn(plot_embedding(model, GRAPHS, Y, ax=ax))
    drawn(plot_embedding(Degrees().fit(GRAPHS), GRAPHS))
    drawn(plot_attributions(model, GRAPHS[0]))


@pytest.mark.filterwarnings("ignore::fdgnn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model", [AutoGraphClassifier(random_state=0), GraphClassifier("union"), GraphClassifier("wl")]
)
def test_ensembles_and_wl_features_are_plotted_as_far_as_they_can_be(ax, model):
    graphs = make_random_graphs(30, random_state=0)
    model = clone(model).fit(graphs, np.arange(30) % 2)
    drawn(plot_embedding(model, graphs, np.arange(30) % 2, ax=ax))
    drawn(plot_attributions(model, graphs[0]))


# ---------------------------------------------------------------------- one by one


def test_the_embedding_is_the_map_of_the_report(ax):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, Y)
    plot_embedding(model, GRAPHS, Y, ax=ax)
    found = report_data(model, GRAPHS, Y, dataset="motifs")
    places = np.array([[row.x, row.y] for row in found.graphs])
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["0", "1"]
    for value, points in enumerate(ax.collections):
        np.testing.assert_allclose(points.get_offsets(), places[value == Y], atol=1e-4)
    looks = {(tuple(p.get_facecolor()[0]), p.get_paths()[0].vertices.size) for p in ax.collections}
    assert len(looks) == 2
    assert f"{found.explained[0]:.0%} of the variance" in ax.get_xlabel()


def test_numbers_get_a_color_bar(ax):
    y = np.diff(GRAPHS.vertex_offsets) + np.linspace(0, 1, 40)
    plot_embedding(FDGNNRegressor(**SMALL).fit(GRAPHS, y), GRAPHS, y, ax=ax)
    np.testing.assert_array_equal(ax.collections[0].get_array(), y)
    assert ax.figure.axes[1].get_ylabel() == "target"
    whole = plot_embedding(FDGNNRegressor(**SMALL).fit(GRAPHS, Y), GRAPHS, Y)
    assert whole.get_legend() is None  # few whole numbers, but a regressor's
    reservoir = GraphReservoir(**SMALL).fit(GRAPHS)
    assert plot_embedding(reservoir, GRAPHS, y).get_legend() is None
    assert plot_embedding(reservoir, GRAPHS, Y).get_legend() is not None
    many = plot_embedding(reservoir, GRAPHS, np.array([f"class {i}" for i in range(40)]))
    assert many.get_legend() is None
    assert len(many.collections) == 40
    with pytest.raises(ValueError, match=r"y has shape \(3,\), but there are 40 graphs"):
        plot_embedding(reservoir, GRAPHS, y[:3])


NO_FORMULA = r"$\frac{$"  # as a formula, it cannot be parsed


def test_names_with_dollars_are_shown_letter_by_letter(ax, tmp_path):
    names = np.array([NO_FORMULA, "$x$"])
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, names[Y])
    plot_embedding(model, GRAPHS, names[Y], ax=ax)
    for text in ax.get_legend().get_texts():
        shown, formula = text._preprocess_math(text.get_text())
        assert (shown in names.tolist(), formula) == (True, False)
    drawn(ax)
    graph = Graph([[0, 1], [1, 2]])
    drawn(plot_attributions(model, graph, target=NO_FORMULA))
    draw_explanation(
        graph,
        explain(model, [graph], target=NO_FORMULA)[0],
        tmp_path / "graph.svg",
        labels=[NO_FORMULA, "$x$", r"\$"],
    )
    assert (tmp_path / "graph.svg").stat().st_size > 1000
    labels = plot_attributions(model, graph, labels=["$x$", r"\$", "$"]).texts
    assert [t._preprocess_math(t.get_text()) for t in labels] == [
        ("$x$", False), (r"\$", False), ("$", False),
    ]  # fmt: skip


def test_attributions_are_the_explanation(ax):
    model = FDGNNClassifier(**SMALL).fit(GRAPHS, np.array(["cycle", "house"])[Y])
    assert plot_attributions(model, GRAPHS[0], target="house", ax=ax) is ax
    why = explain(model, GRAPHS[:1], target="house")[0].vertices
    np.testing.assert_allclose(ax.collections[-1].get_array(), why - why.mean(), atol=1e-12)
    assert ax.get_title().startswith("Score for class house")
    assert ax.figure.axes[1].get_ylabel() == "Attribution of each vertex to the score"
    raw = Graph([[0, 1], [1, 2]])
    named = drawn(plot_attributions(model, raw, labels="xyz"))
    assert [t.get_text() for t in named.texts] == ["x", "y", "z"]


def test_directed_graphs_with_features_are_plotted():
    graphs = make_random_graphs(8, n_features=2, directed=True, weighted=True, random_state=0)
    model = FDGNNClassifier(**SMALL).fit(graphs, np.arange(8) % 3)
    drawn(plot_embedding(model, graphs))
    drawn(plot_attributions(model, graphs[0]))


# ---------------------------------------------------------------------- estimators as HTML


def body(html):
    """The part after the style sheet."""
    return html[html.index("</style>") :]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("fitted", [False, True])
def test_estimators_show_their_parameters_as_html(kind, fitted):
    model = MODELS[kind]()
    html = body((model.fit(GRAPHS, Y) if fitted else model)._repr_html_())
    assert type(model).__name__ in html
    for name in model.get_params(deep=False):
        assert name in html
    assert "<span>Fitted</span>" in html if fitted else "<span>Not fitted</span>" in html
    assert not re.findall(r'href="', html)  # no page of ours is on scikit-learn's site


def test_estimators_are_shown_inside_others():
    inside = FDGNNSearchCV(FDGNNRegressor(n_units=17), n_configurations=1)
    assert "FDGNNRegressor" in body(inside._repr_html_())
    assert "17" in body(inside._repr_html_())
    pipeline = make_pipeline(GraphReservoir(n_units=10), RidgeClassifier())
    for model in (pipeline, pipeline.fit(GRAPHS, Y)):
        html = body(model._repr_html_())
        assert "GraphReservoir" in html
        assert "effective_spectral_radius" in html
        assert not re.findall(r'href="[^"]*(?:fdgnn|GraphReservoir)', html)

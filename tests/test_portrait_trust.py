"""What a portrait says of trust: what models say of graphs that are new to them, and no other."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import GraphClassifier, GraphRegressor
from fdgnn.datasets import make_cycles, make_motif_graphs
from fdgnn.evaluation.running import run_study
from fdgnn.evaluation.study import Protocol, Study
from fdgnn.graphs.converters import as_batch
from fdgnn.html.model_data.making import portrait_of_model, portrait_of_study
from fdgnn.html.model_data.records import read_portrait, write_portrait

pytest.importorskip("networkx")
pytestmark = pytest.mark.usefixtures("vertices_on_a_circle")

GRAPHS, Y = make_motif_graphs(120, random_state=0)
NOISY = np.where(np.random.default_rng(0).random(120) < 0.2, 1 - Y, Y)
STRANGE = as_batch([*GRAPHS[80:], *make_cycles([50, 90])])
TRUTH = np.append(NOISY[80:], [0, 1])


def trust_of(model, y=TRUTH, **options):
    return portrait_of_model(model, STRANGE, y, dataset="motifs", **options).trust


def test_sets_are_counted_as_the_model_gives_them(tmp_path):
    model = GraphClassifier("wl", probability=True).fit(GRAPHS[:80], NOISY[:80])
    found = portrait_of_model(model, STRANGE, TRUTH, dataset="motifs", held_out=True)
    assert [facts.coverage for facts in found.trust.coverages] == [0.8, 0.9, 0.95]
    for facts in found.trust.coverages:
        sets = model.predict_set(STRANGE, facts.coverage)
        assert facts.covered == pytest.approx(sets[np.arange(42), TRUTH].mean(), rel=1e-4)
        assert facts.size == pytest.approx(sets.sum(axis=1).mean(), rel=1e-4)
        assert facts.empty == pytest.approx((~sets.any(axis=1)).mean(), abs=1e-5)
    write_portrait(tmp_path / "portrait.json", found)
    assert read_portrait(tmp_path / "portrait.json") == found


def test_graphs_unlike_the_training_are_listed_with_their_errors():
    model = GraphClassifier("wl").fit(GRAPHS[:80], NOISY[:80])
    found = trust_of(model, held_out=True, ids=[f"g{i}" for i in range(42)])
    told = model.unlike(STRANGE)
    assert {41, 40} <= set(told)
    assert found.coverages == []  # the model was not asked to learn probabilities
    assert found.n_unlike == len(told)
    assert [one.graph for one in found.unlike[:2]] == [41, 40]
    assert {one.graph: one.words for one in found.unlike} == told
    assert {one.id for one in found.unlike} == {f"g{g}" for g in told}
    wrong = model.predict(STRANGE) != TRUTH
    unlike = np.isin(np.arange(42), list(told))
    assert found.error_unlike == pytest.approx(wrong[unlike].mean(), rel=1e-4)
    assert found.error_others == pytest.approx(wrong[~unlike].mean(), rel=1e-4)


def test_intervals_and_errors_of_a_regression():
    model = GraphRegressor("wl", intervals=True).fit(GRAPHS[:80], NOISY[:80])
    found = trust_of(model, held_out=True)
    errors = np.abs(model.predict(STRANGE) - TRUTH)
    for facts in found.coverages:
        low, high = model.predict_interval(STRANGE, facts.coverage).T
        assert facts.covered == pytest.approx(((low <= TRUTH) & (high >= TRUTH)).mean(), rel=1e-4)
        assert facts.size == pytest.approx((high - low).mean(), rel=1e-4)
        assert facts.empty is None
    unlike = np.isin(np.arange(42), list(model.unlike(STRANGE)))
    assert found.error_others == pytest.approx(errors[~unlike].mean(), rel=1e-4)


def test_graphs_that_may_have_been_seen_say_nothing_of_trust():
    model = GraphClassifier("wl", probability=True).fit(GRAPHS[:80], NOISY[:80])
    assert trust_of(model) is None
    new = trust_of(model, y=None)  # without answers they are new ones
    assert [facts.covered for facts in new.coverages] == [None] * 3
    assert (new.error_unlike, new.error_others) == (None, None)
    model._novelty = None  # as in a model of too many features
    assert trust_of(model, held_out=True) is None


def test_each_graph_of_a_study_is_judged_by_the_model_that_has_not_seen_it(tmp_path):
    protocol = Protocol("tiny", n_configurations=2, n_guesses=1, n_outer=3, n_inner=3, max_layers=1)
    study = Study("motifs", GRAPHS, NOISY, protocol, n_units=10)
    found = portrait_of_study(study, run_study(study, tmp_path / "run")).trust
    assert [facts.coverage for facts in found.coverages] == [0.8, 0.9, 0.95]
    assert all(abs(facts.covered - facts.coverage) < 0.15 for facts in found.coverages)
    assert found.n_unlike < 12

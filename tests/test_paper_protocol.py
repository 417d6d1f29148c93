"""Selection by the paper's protocol: the same as fitting and scoring everything one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from fdgnn import FDGNNClassifier
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.evaluation import protocol
from fdgnn.evaluation.protocol import (
    PaperEvaluation,
    Protocol,
    best_of,
    choose,
    drawn_configurations,
    score_initialization,
)
from fdgnn.evaluation.run import EvaluationTask
from fdgnn.fitting import draw_features, fit_depths
from fdgnn.folds import nested_folds
from fdgnn.targets import read_targets

PROTOCOL = Protocol("small", n_configurations=2, n_initializations=3, max_layers=2)
CONFIGURATION = {"effective_spectral_radius": 0.5, "n_layers": 2, "random_state": 3}
ALPHAS = (1e-6, 1e-2, 1.0)


def study_of(graphs, y):
    folds = nested_folds(y, 3, 4, 0)
    task = EvaluationTask("some", graphs, read_targets(y, graphs, True), folds)
    return PaperEvaluation(task, PROTOCOL, n_units=10)


@pytest.fixture(scope="module")
def motifs():
    return study_of(*make_motif_graphs(60, random_state=0))


@pytest.fixture(scope="module")
def three_classes():
    graphs = make_random_graphs(90, random_state=0)
    return study_of(graphs, np.searchsorted([10, 14], np.diff(graphs.vertex_offsets)))


def scores_of(study, number=0, configuration=CONFIGURATION):
    base, graphs = study.base_model(configuration), study.task.graphs
    _, _, found = score_initialization(base, graphs, study.fit_task, ALPHAS, 0, number)
    return found["validation"], found["test"]


# ---------------------------------------------------------------------- random initializations


@pytest.mark.parametrize("data", ["motifs", "three_classes"])
@pytest.mark.parametrize("depth", [1, 2])
def test_scores_are_those_of_separate_fits(data, depth, request):
    study = request.getfixturevalue(data)
    graphs, y = study.task.graphs, study.task.targets.of_target(0)
    validation, test = scores_of(study)
    for o, fold in enumerate(study.task.folds):
        for a, alpha in enumerate(ALPHAS):
            model = study.model(CONFIGURATION | {"n_layers": depth, "alpha": alpha})
            fits = [
                model.fit(graphs[(fold >= 0) & (fold != f)], y[(fold >= 0) & (fold != f)])
                .score(graphs[fold == f], y[fold == f])
                for f in range(4)
            ]  # fmt: skip
            assert validation[depth - 1, o, a] == pytest.approx(np.mean(fits))
            outer = model.fit(graphs[fold >= 0], y[fold >= 0])
            assert test[depth - 1, o, a] == outer.score(graphs[fold < 0], y[fold < 0])


def test_a_random_initialization_is_that_of_the_fitted_model(motifs):
    graphs = motifs.task.graphs
    model = motifs.model(CONFIGURATION).set_params(n_estimators=3)
    model.fit(graphs, motifs.task.targets.of_target(0))
    base = motifs.base_model(CONFIGURATION)
    features = draw_features(replace(base, seeds=base.seeds[2:]), graphs)[0]
    np.testing.assert_array_equal(features, model.estimators_[2].features(graphs))
    assert (scores_of(motifs, 2)[0] != scores_of(motifs, 1)[0]).any()


def test_a_depth_that_is_asked_for_twice_is_computed_once(motifs, monkeypatch):
    asked = []

    def fit(base, graphs, task, depths, **options):
        asked.append(depths)
        return fit_depths(base, graphs, task, depths, **options)

    monkeypatch.setattr(protocol, "fit_depths", fit)
    once = scores_of(motifs, configuration=CONFIGURATION | {"n_layers": 1})
    both = scores_of(motifs)
    assert asked == [(1,), (1, 2)]
    for mine, other in zip(once, both, strict=True):
        np.testing.assert_array_equal(mine, [other[0]] * 2)


def test_configurations_of_a_longer_run_begin_with_those_of_a_shorter_one():
    drawn = drawn_configurations(5, 0, 50)
    assert drawn[:4] == drawn_configurations(5, 0, 4)
    assert len({one["random_state"] for one in drawn}) == 50
    assert {one["n_layers"] for one in drawn} == {1, 2, 3, 4, 5}
    searched = {"effective_spectral_radius", "input_scaling", "inter_layer_scaling"}
    assert set(drawn[0]) == searched | {"n_layers", "random_state"}


# ---------------------------------------------------------------------- what an outer fold selects


def scores_at_random(rng, shape=(5, 3, 4, 6)):
    return rng.integers(0, 4, shape) / 4  # few values, so that many are equal


def test_among_equals_the_most_regularized_wins_and_then_the_first():
    validation = np.zeros((3, 4))
    assert best_of(validation) == (0, 3)
    validation[2, 2] = validation[1, 2] = validation[0, 1] = 1.0
    assert best_of(validation) == (1, 2)


def test_the_papers_choice_by_hand():
    """Each random initialization has its own alpha, then the mean; among equals the first."""
    rng = np.random.default_rng(0)
    validation, test = scores_at_random(rng), scores_at_random(rng)
    chosen = choose(validation, test)
    for o in range(4):
        best, expected = -1.0, None
        for c in range(5):
            own = [5 - int(validation[c, g, o, ::-1].argmax()) for g in range(3)]
            mean = np.mean([validation[c, g, o, own[g]] for g in range(3)])
            if mean > best:
                tested = np.mean([test[c, g, o, own[g]] for g in range(3)])
                best, expected = mean, (c, own, tested)
        assert [chosen.configurations[o], chosen.alphas[o].tolist()] == list(expected[:2])
        assert chosen.scores[o] == pytest.approx(expected[2])


def test_the_choice_of_a_common_alpha_by_hand():
    rng = np.random.default_rng(1)
    validation, test = scores_at_random(rng), scores_at_random(rng)
    chosen = choose(validation, test, common_alpha=True)
    for o in range(4):
        c, a = best_of(validation[:, :, o].mean(axis=1))
        assert chosen.configurations[o] == c
        assert chosen.alphas[o].tolist() == [a] * 3
        assert chosen.scores[o] == pytest.approx(test[c, :, o, a].mean())


# ---------------------------------------------------------------------- timed models


def test_timed_fits_have_one_thread_of_blas(motifs):
    seen = []

    class Watched(FDGNNClassifier):
        def fit(self, graphs, y):
            seen.append({p["num_threads"] for p in threadpool_info() if p["user_api"] == "blas"})
            return super().fit(graphs, y)

    class Timed(PaperEvaluation):
        def model(self, configuration):
            return Watched(**super().model(configuration).get_params())

    timed, fold = Timed(motifs.task, PROTOCOL), motifs.task.folds[0]
    with threadpool_limits(2):
        timed._test(fold, CONFIGURATION | {"alpha": 1.0})
    assert seen == [{1}]


def test_models_have_the_degree_of_the_whole_dataset(motifs):
    model = motifs.model(CONFIGURATION)
    assert isinstance(model, FDGNNClassifier)
    assert model.degree == motifs.task.graphs.max_degrees.mean()

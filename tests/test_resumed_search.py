"""Searches that go on where they were stopped, that look at some graphs, and given settings."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import FDGNNClassifier, FDGNNSearchCV, load_model, model_info
from fdgnn.cli.wording import name_options
from fdgnn.datasets import make_motif_graphs
from fdgnn.readout.several import class_targets
from fdgnn.selection import committees, scores
from fdgnn.selection.finished import forget
from fdgnn.workflow.searching import Wishes, sample_of
from fdgnn.workflow.training import train
from test_fit_options import run_fdgnn  # noqa: F401

GRAPHS, Y = make_motif_graphs(60, random_state=0)
SEARCH = {"n_configurations": 5, "n_guesses": 1, "depths": (1, 2), "cv": 3, "outer_cv": 3}
AUTO = FDGNNClassifier(encoder="auto", candidates="colors", random_state=0)
KINDS = {
    "configurations": (scores, "score_candidate", dict(SEARCH)),
    "members": (committees, "member_outputs", {"estimator": AUTO, "cv": 3, "outer_cv": 3}),
}


class Stopped(BaseException):
    """As if the process was killed."""


def counted(monkeypatch, module, name, stop_after=None):
    """Count the calls of a function, of which only so many come back."""
    work, calls = getattr(module, name), []

    def call(*given):
        if len(calls) == stop_after:
            raise Stopped
        calls.append(given)
        return work(*given)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.mark.parametrize("kind", KINDS)
def test_a_search_goes_on_where_it_was_stopped(kind, tmp_path, monkeypatch):
    module, name, options = KINDS[kind]
    whole = FDGNNSearchCV(**options, random_state=0).fit(GRAPHS, Y)
    n = len(whole.cv_results_["param_member"]) if kind == "members" else 5
    work = tmp_path / "parts"
    search = FDGNNSearchCV(**options, random_state=0, work_dir=work)
    with monkeypatch.context() as patch:
        counted(patch, module, name, stop_after=2)
        with pytest.raises(Stopped):
            search.fit(GRAPHS, Y)
    assert len(list(work.iterdir())) == 2
    calls = counted(monkeypatch, module, name)
    search.fit(GRAPHS, Y)
    assert (search.n_resumed_, len(calls)) == (2, n - 2)
    assert search.best_params_ == whole.best_params_
    assert search.nested_score_ == whole.nested_score_
    np.testing.assert_array_equal(search.nested_outputs_, whole.nested_outputs_)
    np.testing.assert_array_equal(search.decision_function(GRAPHS), whole.decision_function(GRAPHS))
    forget(work)
    assert not work.exists()


@pytest.mark.parametrize("change", ["y", "graphs", "cv", "parameter", "seed", "scoring"])
def test_parts_of_another_search_are_not_taken(change, tmp_path):
    options = SEARCH | {"n_configurations": 2, "work_dir": tmp_path, "random_state": 0}
    FDGNNSearchCV(**options).fit(GRAPHS, Y)
    graphs, y = GRAPHS, Y
    if change == "y":
        y = np.roll(Y, 1)
    elif change == "graphs":
        graphs = GRAPHS[::-1]
    elif change == "cv":
        options["cv"] = 4
    elif change == "parameter":
        options["estimator"] = FDGNNClassifier(n_units=20)
    elif change == "seed":
        options["random_state"] = 1
    else:
        options["scoring"] = "roc_auc"
    assert FDGNNSearchCV(**options).fit(graphs, y).n_resumed_ == 0
    assert FDGNNSearchCV(**options).fit(graphs, y).n_resumed_ == 2


def test_a_longer_search_takes_the_configurations_of_a_shorter_one(tmp_path):
    options = SEARCH | {"work_dir": tmp_path, "random_state": 0}
    FDGNNSearchCV(**options | {"n_configurations": 2}).fit(GRAPHS, Y)
    assert FDGNNSearchCV(**options).fit(GRAPHS, Y).n_resumed_ == 2


def test_a_damaged_part_is_made_again(tmp_path):
    options = SEARCH | {"n_configurations": 2, "work_dir": tmp_path, "random_state": 0}
    first = FDGNNSearchCV(**options).fit(GRAPHS, Y)
    part = min(tmp_path.iterdir())
    part.write_bytes(part.read_bytes()[:100])
    again = FDGNNSearchCV(**options).fit(GRAPHS, Y)
    assert again.n_resumed_ == 1
    assert again.best_score_ == first.best_score_


# ---------------------------------------------------------------------- a search on some graphs


def test_a_sample_has_all_classes_alike_and_keeps_the_order():
    y = np.repeat(["a", "b", "c"], [600, 300, 100])
    some = sample_of(y, 100, 0)
    assert (np.diff(some) > 0).all()
    assert np.unique(y[some], return_counts=True)[1].tolist() == [60, 30, 10]
    assert sample_of(y, 1000, 0) is None
    assert sample_of(y, None, 0) is None


@pytest.mark.parametrize("model", ["paper", "colors"])
def test_what_is_chosen_on_some_graphs_is_fitted_on_all(model):
    wishes = Wishes(model=model, search_on=40, n_configurations=2, n_guesses=1)
    found = train(GRAPHS, Y, wishes)
    assert (found.n_searched, found.n_graphs) == (40, 60)
    some = sample_of(Y, 40, 0)
    of_some = train(GRAPHS[some], Y[some], Wishes(model=model, n_configurations=2, n_guesses=1))
    assert found.scores == of_some.scores
    assert found.parameters == of_some.parameters
    chosen = [network.alpha for network in of_some.model.networks_]
    assert [network.alpha for network in found.model.networks_] == chosen
    assert found.members == of_some.members
    n_scores = [sum(map(len, each.model.conformal_.groups)) for each in (found, of_some)]
    assert n_scores == [60, 40]


def test_several_targets_are_searched_on_some_graphs_too():
    several = class_targets({"a": Y, "b": np.arange(60) % 2}, GRAPHS)
    found = train(GRAPHS, several, Wishes(model="colors", search_on=40))
    assert found.model.predict(GRAPHS).shape == (60, 2)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    ends = ["O", "N", "F", "Cl", "CC", "C#N", "OC", "NC", "CO", "S"]
    rows = [f"{end}CC{'C' * n}c1ccccc1,{int('N' in end)}" for n in range(4) for end in ends]
    path.write_text("smiles,active\n" + "\n".join(rows) + "\n")
    return path


WORDS = ["--target", "active", "--model", "paper", "--guesses", "1", "-q"]


def test_the_command_goes_on_and_leaves_nothing_behind(file, run_fdgnn, monkeypatch):  # noqa: F811
    pytest.importorskip("rdkit")
    out = file.with_name("m.fdgnn")
    words = ["fit", file, *WORDS, "--configurations", "3", "-o", out]
    with monkeypatch.context() as patch:
        counted(patch, scores, "score_candidate", stop_after=2)
        with pytest.raises(Stopped):
            run_fdgnn(*words)
    parts = file.with_name("m.fdgnn.parts")
    assert len(list(parts.iterdir())) == 2
    run = run_fdgnn(*words)
    assert run.exit_code == 0, run.output
    assert "2 parts of the search were finished before, and kept" in run.output
    assert out.exists()
    assert not parts.exists()


def test_settings_of_the_model_are_options(file, run_fdgnn):  # noqa: F811
    pytest.importorskip("rdkit")
    out = file.with_name("m.fdgnn")
    given = ["--units", "7", "--layers", "2", "--spectral-radius", "0.5", "--alpha", "0.1"]
    words = ["--configurations", "2", "--search-on", "30"]
    run = run_fdgnn("fit", file, *WORDS, *given, *words, "-o", out)
    assert run.exit_code == 0, run.output
    assert "chosen and scored on 30 graphs, trained on all" in run.output
    model = load_model(out)
    assert (model.n_units, model.n_layers, model.alpha) == (7, 2, 0.1)
    assert model.effective_spectral_radius == 0.5
    assert model.input_scaling != FDGNNClassifier().input_scaling  # it was searched
    colors = ["--model", "colors", "--rounds", "2", "--readout", "linear"]
    run = run_fdgnn("fit", file, "--target", "active", *colors, "-o", out, "-q")
    assert run.exit_code == 0, run.output
    info = model_info(out)
    assert (info.encoder.kind, info.parameters["n_rounds"]) == ("colors", 2)
    assert [network.readout for network in info.networks] == ["linear"]


@pytest.mark.parametrize(("options", "message"), [
    (["--units", "3"], "--units is for --model paper; --model auto has no such choice"),
    (["--model", "paper", "--rounds", "3"], "--rounds is for --model colors; --model paper has no"),
    (["--model", "both", "--alpha", "1"], "--alpha is for --model paper or colors; --model both"),
    (["--model", "paper", "--units", "0"], "--units 0: expected an integer, at least 1"),
    (["--model", "paper", "--layers", "0"], "--layers 0: expected an integer, at least 1"),
    (["--model", "paper", "--spectral-radius", "-1"], "--spectral-radius -1.0: expected"),
])  # fmt: skip
def test_settings_that_cannot_be_name_options(file, run_fdgnn, options, message):  # noqa: F811
    pytest.importorskip("rdkit")
    words = ["--target", "active", "-o", file.with_name("m.fdgnn"), "-q"]
    run = run_fdgnn("fit", file, *words, *options)
    assert run.exit_code == 1
    assert message in run.output
    assert len(run.output.strip().splitlines()) == 1


@pytest.mark.parametrize(("message", "words"), [
    ("n_units=0: expected an integer", "--units 0: expected an integer"),
    ("scoring= chooses otherwise; threshold=\"f1\" or class_weight=\"balanced\" predicts",
     "--scoring chooses otherwise; --threshold f1 or --class-weight balanced predicts"),
    ("use `vertex='none'`, or `directed=False`", "use --vertex none, or --undirected"),
    ("target='a b' is none of the model's", "--target a b is none of the model's"),
    ("`memory`: expected an amount", "--memory: expected an amount"),
    ("as_batch(graphs, descriptors=...)", "as_batch(graphs, descriptors=...)"),
    ("row 3: 'C=C' and tol=1e-5", "row 3: 'C=C' and tol=1e-5"),
])  # fmt: skip
def test_messages_of_the_library_in_words_of_the_command(message, words):
    assert name_options(message) == words

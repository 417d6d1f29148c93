"""Searches on some of the graphs, and `fdgnn fit` with checkpoints and given settings."""

from __future__ import annotations

import numpy as np
import pytest

from fdgnn import FDGNNClassifier, load_model, model_info
from fdgnn.cli.app import name_options
from fdgnn.datasets import make_motif_graphs, make_random_graphs
from fdgnn.selection import search as searching
from fdgnn.targets import class_targets, read_targets
from fdgnn.training import TrainingOptions, sample_of, train
from test_checkpoints import Stopped, counted
from test_fit_options import run_fdgnn  # noqa: F401

GRAPHS, Y = make_motif_graphs(60, random_state=0)


# ---------------------------------------------------------------------- a search on some graphs


def test_a_sample_has_all_classes_alike_and_keeps_the_order():
    y = np.repeat(["a", "b", "c"], [600, 300, 100])
    targets = read_targets(y, make_random_graphs(20, random_state=0)[np.arange(1000) % 20], True)
    some = sample_of(targets, 100, 0)
    assert (np.diff(some) > 0).all()
    assert np.unique(y[some], return_counts=True)[1].tolist() == [60, 30, 10]
    assert sample_of(targets, 1000, 0) is None
    assert sample_of(targets, None, 0) is None


@pytest.mark.parametrize("model", ["paper", "wl"])
def test_what_is_chosen_on_some_graphs_is_fitted_on_all(model):
    targets = read_targets(Y, GRAPHS, True)
    n = 2 if model == "paper" else None
    found = train(GRAPHS, targets, TrainingOptions(model=model, search_on=40, n_configurations=n))
    evaluation = found.evaluation_
    assert (evaluation.protocol.n_searched, evaluation.n_graphs) == (40, 60)
    some = sample_of(targets, 40, 0)
    of_some = train(GRAPHS[some], targets[some], TrainingOptions(model=model, n_configurations=n))
    assert evaluation.targets == of_some.evaluation_.targets
    assert evaluation.model == of_some.evaluation_.model
    chosen = {m.name: m.alpha for m in of_some.estimators_}
    fitted = {m.name: m.alpha for m in found.estimators_}
    assert fitted.items() <= chosen.items()
    scores = [each.targets_[0].scores for each in (found, of_some)]
    n_scores = [sum(map(len, each.groups)) for each in scores]
    assert n_scores == [60, 40]


def test_several_targets_are_searched_on_some_graphs_too():
    several = class_targets({"a": Y, "b": np.arange(60) % 2}, GRAPHS)
    found = train(GRAPHS, several, TrainingOptions(model="wl", search_on=40))
    assert found.predict(GRAPHS).shape == (60, 2)


# ---------------------------------------------------------------------- the command


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    ends = ["O", "N", "F", "Cl", "CC", "C#N", "OC", "NC", "CO", "S"]
    rows = [f"{end}CC{'C' * n}c1ccccc1,{int('N' in end)}" for n in range(4) for end in ends]
    path.write_text("smiles,active\n" + "\n".join(rows) + "\n")
    return path


WORDS = ["--target", "active", "--model", "paper", "-q"]


def test_the_command_goes_on_and_leaves_nothing_behind(file, run_fdgnn, monkeypatch):  # noqa: F811
    pytest.importorskip("rdkit")
    out = file.with_name("m.fdgnn")
    words = ["fit", file, *WORDS, "--configurations", "3", "-o", out]
    with monkeypatch.context() as patch:
        counted(patch, searching, "_fit_base_model", stop_after=2)
        with pytest.raises(Stopped):
            run_fdgnn(*words)
    parts = file.with_name("m.fdgnn.parts")
    assert len(list(parts.iterdir())) == 2
    run = run_fdgnn(*words)
    assert run.exit_code == 0, run.output
    assert "2 checkpoints of the search were reused" in run.output
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
    colors = ["--model", "wl", "--iterations", "2", "--readout", "linear"]
    run = run_fdgnn("fit", file, "--target", "active", *colors, "-o", out, "-q", "--force")
    assert run.exit_code == 0, run.output
    info = model_info(out)
    encoder = info.estimators[0].encoder
    assert (encoder.kind, encoder.parameters["n_iterations"]) == ("wl", 2)
    assert [each.readout for each in info.estimators] == ["linear"]


@pytest.mark.parametrize(("options", "message"), [
    (["--units", "3"], "--units is for --model paper; --model auto does not use it"),
    (["--model", "paper", "--iterations", "3"], "--iterations is for --model wl; --model paper"),
    (["--model", "union", "--alpha", "1"], "--alpha is for --model paper or wl; --model union"),
    (["--model", "paper", "--units", "0"], "--units 0: expected an integer, at least 1"),
    (["--model", "paper", "--layers", "0"], "--layers 0: expected an integer, at least 1"),
    (["--model", "paper", "--spectral-radius", "-1"], "--spectral-radius -1.0: expected"),
])  # fmt: skip
def test_settings_that_cannot_be_name_options(file, run_fdgnn, options, message):  # noqa: F811
    pytest.importorskip("rdkit")
    words = ["--target", "active", "-o", file.with_name("m.fdgnn"), "-q"]
    run = run_fdgnn("fit", file, *words, *options)
    assert run.exit_code == 1
    *rejected, told = run.output.strip().splitlines()
    assert message in told
    assert all(line.startswith("4 of 40 rows rejected") for line in rejected)


@pytest.mark.parametrize(("message", "words"), [
    ("n_units=0: expected an integer", "--units 0: expected an integer"),
    ("`scoring` overrides this; `threshold=\"f1\"` or `class_weight=\"balanced\"` predicts",
     "--scoring overrides this; --threshold f1 or --class-weight balanced predicts"),
    ("use `vertex='none'`, or `directed=False`", "use --vertex none, or --undirected"),
    ("target='a b': no such target", "--target a b: no such target"),
    ("`memory`: expected an amount", "--memory: expected an amount"),
    ("as_batch(graphs, descriptors=...)", "as_batch(graphs, descriptors=...)"),
    ("row 3: 'C=C' and tol=1e-5", "row 3: 'C=C' and tol=1e-5"),
    ("class `a is odd", "class `a is odd"),
])  # fmt: skip
def test_messages_of_the_library_in_words_of_the_command(message, words, run_fdgnn):  # noqa: F811
    assert run_fdgnn("fit", "--help").exit_code == 0  # the running command
    assert name_options(message) == words

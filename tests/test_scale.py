"""Training out of core: the same model as in memory, and nothing lost on the way."""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import json
import os
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from fdgnn import (
    AutoGraphClassifier,
    FDGNNClassifier,
    FDGNNRegressor,
    GraphClassifier,
    GraphRegressor,
    Ridge,
    WLCounts,
    fit_batches,
    read_graphs,
    save_model,
)
from fdgnn.context import Context
from fdgnn.datasets import make_cycles, make_motif_graphs
from fdgnn.exceptions import DatasetFormatError, DatasetNotFoundError, GraphError, StudyError
from fdgnn.folds import N_FOLDS, TRAIN, choice_folds, signature_folds
from fdgnn.linear.ridge import LARGE_ALPHAS, MANY
from fdgnn.scale import chunks
from fdgnn.scale.shards import ShardRequest, find_shards, is_many, rows_about
from fdgnn.scale.training import (
    check_trainable,
    folds_of,
    plan_memory,
    read_shards,
    train_on_shards,
)
from fdgnn.seeds import integer_seed, seed_sequence
from fdgnn.training import TrainingOptions, new_model
from fdgnn.workers import Workers

QUIET = Context()
PLAN = plan_memory("2GB", QUIET)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Take a hundred graphs for many, so that they are solved as a million would be."""
    monkeypatch.setenv("FDGNN_MAX_KERNEL_BYTES", "10000")  # of 50 graphs
    for module in ("folds", "scale.training"):
        monkeypatch.setattr(f"fdgnn.{module}.MANY_GRAPHS", 50)


def take_for_many(monkeypatch, many):
    """Take so many graphs for very many, of which one fold is held out."""
    for module in ("linear.ridge", "scale.training"):
        monkeypatch.setattr(f"fdgnn.{module}.MANY", many)


def rows(n=120, seed=0):
    """Labeled graphs as rows of a table, with a class and a number."""
    graphs, y = make_motif_graphs(n, random_state=seed)
    rng = np.random.default_rng(seed)
    for graph, target in zip(graphs, y.tolist(), strict=True):
        labels = rng.integers(3, size=graph.n_vertices).tolist()
        yield {
            "edge_index": graph.edge_index.tolist(),
            "num_nodes": graph.n_vertices,
            "node_feat": labels,
            "y": target,
            "size": graph.n_vertices + 0.5 * labels[0],
        }


def write(path, table):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in table)


@pytest.fixture
def shards(tmp_path):
    table = list(rows())
    folder = tmp_path / "shards"
    folder.mkdir()
    for number, name in enumerate(("a.jsonl", "b.jsonl.gz", "c.jsonl")):
        write(folder / name, table[40 * number : 40 * (number + 1)])
    return folder


def read(shards, work, target="y", n_rows=15, workers=None, context=QUIET, **options):
    request = ShardRequest({"target": target, **options}, n_rows=n_rows)
    listed = find_shards(str(shards))
    return read_shards(listed, request, work, PLAN, workers or Workers(), context)


def trained(shards, work, model, target="y", names=None, task=None, **options):
    found = read(shards, work, target, **options)
    train_on_shards(model, found, found.targets(names or (target,), task))
    return model


def alphas(model):
    return [each.alpha for each in model.estimators_]


def scores(model):
    return {each.metric: each.mean for each in model.evaluation_.metrics}


def n_held_out(model):
    return model.evaluation_.folds[0].n_test


def in_memory(n=120):
    table = list(rows(n))
    lines = io.StringIO("".join(json.dumps(row) + "\n" for row in table))
    return read_graphs(lines, format="jsonl").graphs, table


# ---------------------------------------------------------------------- the same model


def colors(kind=GraphClassifier, alpha="cv", **parameters):
    return kind(WLCounts(n_features=2**10), Ridge(alpha), random_state=0, **parameters)


def test_wl_features_give_the_model_of_memory(shards, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.linear.passes.TOLERANCE", 1e-9)  # in memory few are exact
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    whole = colors(probability=True).fit(graphs, y)
    found = trained(shards, tmp_path / "w", colors(probability=True))
    assert found.estimators_[0].alpha == whole.estimators_[0].alpha
    scores = whole.decision_function(graphs)
    np.testing.assert_allclose(
        found.decision_function(graphs), scores, atol=1e-6 * (scores.max() - scores.min())
    )
    np.testing.assert_allclose(found.targets_[0].slope, whole.targets_[0].slope, rtol=1e-5)
    np.testing.assert_allclose(found.domain_distance(graphs), whole.domain_distance(graphs))


def test_a_reservoir_is_the_model_of_memory(shards, tmp_path):
    graphs, table = in_memory()
    y = np.array([row["size"] for row in table])
    reservoir = FDGNNRegressor(n_units=10, random_state=0)
    whole = reservoir.fit(graphs, y)
    found = trained(shards, tmp_path / "w", FDGNNRegressor(n_units=10, random_state=0), "size")
    np.testing.assert_allclose(found.predict(graphs), whole.predict(graphs), rtol=1e-6)
    found, whole = (m.estimators_[0].encoder for m in (found, whole))
    assert found.degree_ == pytest.approx(whole.degree_)


def test_a_reservoir_has_the_random_features_that_are_asked_for(shards, tmp_path):
    found = trained(
        shards, tmp_path / "w", FDGNNRegressor(n_units=10, n_projections=30, random_state=0), "size"
    )
    assert found.estimators_[0].expansion.projection_.shape == (30, 10)


def test_several_targets_with_unknown_values(shards, tmp_path):
    table = list(rows())
    for row in table[::7]:
        row["size"] = None
    for number, path in enumerate(sorted(shards.iterdir())):
        write(path, table[40 * number : 40 * (number + 1)])
    wanted = {"target": ["y", "size"], "names": ("y", "size"), "task": "regression"}
    model = colors(GraphRegressor, intervals=True)
    told = trained(shards, tmp_path / "w", model, numeric=True, **wanted)
    graphs, _ = in_memory()
    targets = {"y": [r["y"] for r in table], "size": [r["size"] for r in table]}
    whole = colors(GraphRegressor, alpha=1.0, intervals=True).fit(graphs, targets)
    alone = colors(GraphRegressor, alpha=1.0, intervals=True)
    again = trained(shards, tmp_path / "w", alone, numeric=True, **wanted)
    np.testing.assert_allclose(again.predict(graphs), whole.predict(graphs), atol=5e-3)
    assert told.predict(graphs).shape == (120, 2)
    assert told.predict_interval(graphs, 0.8).shape == (120, 2, 2)


def test_committees_and_weights(shards, tmp_path):
    model = new_model(TrainingOptions(class_weight="balanced", threshold="f1"), True)
    found = trained(shards, tmp_path / "w", model)
    assert {each.name for each in found.estimators_} <= {
        "WL, 2 iterations", "WL, 3 iterations", "reservoir", "another reservoir"
    }  # fmt: skip
    assert 0.5 < scores(found)["accuracy"] <= 1.0
    assert found.predict_proba(in_memory()[0]).shape == (120, 2)


def test_of_very_many_graphs_one_fold_chooses(shards, tmp_path, monkeypatch):
    take_for_many(monkeypatch, 50)
    found = trained(shards, tmp_path / "w", colors(probability=True))
    assert 10 < n_held_out(found) < 40
    assert alphas(found)[0] in [(120 / 50) ** 0.5 * alpha for alpha in LARGE_ALPHAS]
    same = trained(shards, tmp_path / "w", colors(alpha=alphas(found)[0]))
    graphs, _ = in_memory()
    np.testing.assert_array_equal(found.outputs(graphs), same.outputs(graphs))
    assert scores(found) == scores(same)


def test_very_many_graphs_try_larger_alphas():
    few, many = (Ridge().grid(n, classify=True) for n in (MANY, 4 * MANY))
    assert few == LARGE_ALPHAS
    assert many == tuple(2 * alpha for alpha in LARGE_ALPHAS[1:])


@pytest.mark.parametrize(("many", "n_left_out"), [(10**5, N_FOLDS), (50, 1)])
def test_held_out_scores_are_of_models_that_have_not_seen_the_graphs(
    many, n_left_out, shards, tmp_path, monkeypatch
):
    take_for_many(monkeypatch, many)
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    found = trained(shards, tmp_path / "w", colors(alpha=0.1))
    salt = integer_seed(found.seed_)
    folds = signature_folds(graphs.coloring.signatures, salt, N_FOLDS)
    outputs = np.full(len(y), np.nan)
    for fold in range(n_left_out):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        alone = colors(alpha=0.1).fit(graphs[train], y[train])
        outputs[test] = alone.decision_function(graphs[test])
    some = ~np.isnan(outputs)
    assert n_held_out(found) == some.sum()
    assert scores(found)["accuracy"] == pytest.approx(((outputs > 0) == y)[some].mean())
    assert scores(found)["roc_auc"] == pytest.approx(
        roc_auc_score(y[some], outputs[some]), abs=2e-3
    )


# ---------------------------------------------------------------------- nothing done twice


def test_what_is_finished_is_found_again(shards, tmp_path, monkeypatch):
    work = tmp_path / "w"
    save, count = chunks.save_chunk, []

    def stopped(*arguments):
        count.append(arguments)
        if len(count) == 6:
            raise KeyboardInterrupt
        return save(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(chunks, "save_chunk", stopped)
        with pytest.raises(KeyboardInterrupt):
            read(shards, work)
    assert read(shards, work).n_new == 9 - 5
    assert read(shards, work).n_new == 0
    encode, made = chunks.sparse_rows, []
    monkeypatch.setattr(chunks, "sparse_rows", lambda *each: made.append(1) or encode(*each))
    one = trained(shards, work, colors())
    assert len(made) == 9
    two = trained(shards, work, colors(alpha=0.3))
    assert len(made) == 9
    assert alphas(two) == [0.3] != alphas(one)
    os.utime(shards / "a.jsonl", ns=(1, 1))
    assert read(shards, work).n_new == 3


def test_damage_in_a_work_directory_is_told_or_mended(shards, tmp_path):
    graphs, _ = in_memory(20)
    work = tmp_path / "w"
    expected = trained(shards, work, colors()).decision_function(graphs)
    files = [path for path in work.rglob("*") if path.is_file()]
    assert sum(path.suffix == ".npz" for path in files) == 18  # as they were read, and encoded
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        if path.suffix == ".npz" and path.parent.name == "parsed":
            with pytest.raises(StudyError, match=r"chunk \d of .*jsonl.* is damaged"):
                trained(shards, work, colors())
        else:  # it is made again
            found = trained(shards, work, colors()).decision_function(graphs)
            assert np.array_equal(found, expected)
        path.write_bytes(content)


def test_chunks_that_do_not_fit_in_memory_are_read_again(shards, tmp_path, monkeypatch):
    found, coefs = read(shards, tmp_path / "w"), []
    for cache_bytes in (10**9, 0):
        model = colors()
        graphs = replace(found, cache_bytes=cache_bytes)
        train_on_shards(model, graphs, found.targets(("y",)))
        coefs.append(model.estimators_[0].readout.coef)
    assert (coefs[0] == coefs[1]).all()


def test_bad_rows_are_told_with_their_numbers(shards, tmp_path):
    with (shards / "c.jsonl").open("a") as file:
        file.write('{"edge_index": [[0], [9]], "num_nodes": 2, "node_feat": [0, 1], "y": 1}\n')
    found = read(shards, tmp_path / "w")
    (reject,) = itertools.chain(*found.rejects())
    assert reject.row == 40
    assert "is out of range" in reject.reason
    assert [*itertools.chain(*read(shards, tmp_path / "w").rejects())] == [reject]


def test_reports_of_chunks_do_not_grow_with_their_bad_rows(shards, tmp_path):
    sizes, good = [], (shards / "c.jsonl").read_text()
    for n in (10, 1000):
        (shards / "c.jsonl").write_text(good + "no row\n" * n)
        found = read(shards, tmp_path / "w", n_rows=100)
        assert sum(chunk.report.n_rejects for chunk in found.chunks) == n
        sizes.append(max(len(pickle.dumps(chunk)) for chunk in found.chunks))
    assert max(sizes) < 2 * min(sizes)


# ---------------------------------------------------------------------- bad input


def test_another_schema(shards, tmp_path):
    write(shards / "d.jsonl", [{"smiles": "CCO", "y": 1}])
    with pytest.raises(DatasetFormatError, match=r"d\.jsonl.*edge_index"):
        read(shards, tmp_path / "w")
    write(shards / "a.jsonl", [{"smiles": "CCO", "y": 1}])
    with pytest.raises(DatasetFormatError, match=r"b\.jsonl\.gz: there is no column with SMILES"):
        read(shards, tmp_path / "w")


def test_an_unreadable_shard(shards, tmp_path):
    (shards / "d.jsonl.gz").write_bytes(b"\x1f\x8bnonsense")
    with pytest.raises(DatasetFormatError, match=r"d\.jsonl\.gz"):
        read(shards, tmp_path / "w")
    (shards / "d.jsonl.gz").unlink()
    assert read(shards, tmp_path / "w").n_new == 0  # the others were finished


def test_a_shard_that_vanishes(shards, tmp_path):
    listed = find_shards(str(shards))
    (shards / "b.jsonl.gz").unlink()
    with pytest.raises(DatasetNotFoundError, match=r"b\.jsonl\.gz"):
        read_shards(listed, ShardRequest({"target": "y"}), tmp_path / "w", PLAN, Workers(), QUIET)


def test_mixed_targets(shards, tmp_path):
    table = [{**row, "y": "active"} for row in rows(10)]
    write(shards / "d.jsonl", table)
    with pytest.raises(DatasetFormatError, match=r"text in .*d\.jsonl, but numbers in .*a\.jsonl"):
        read(shards, tmp_path / "w").targets(("y",))


def test_one_class_in_all_shards(shards, tmp_path):
    for path in shards.iterdir():
        write(path, [{**row, "y": 3} for row in rows(20)])
    found = read(shards, tmp_path / "w")
    with pytest.raises(ValueError, match="one value only, 3"):
        found.targets(("y",))


def test_a_full_disk(shards, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez", full)
        with pytest.raises(StudyError, match="No space left on device; what is finished is kept"):
            read(shards, tmp_path / "w")
    assert read(shards, tmp_path / "w").n_new == 9


def test_nothing_to_find(tmp_path):
    assert is_many("shards/*.csv")
    assert is_many("s3://bucket/shards")
    assert not is_many(str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match="no file has such a name"):
        find_shards(str(tmp_path / "*.csv"))


@pytest.mark.parametrize("text", ["2", "much", "1.2.3GB", "GB", "2 G", "1e400GB", "nanGB", "-1GB"])
def test_amounts_of_memory(text):
    assert plan_memory("2GB", QUIET).total == 2 * plan_memory("1000 MB", QUIET).total == 2 * 10**9
    with pytest.raises(ValueError, match="such as 2GB"):
        plan_memory(text, QUIET)


def test_too_little_memory():
    with pytest.raises(ValueError, match=r"need .* MB at least"):
        plan_memory("300MB", QUIET)
    assert plan_memory("2GB", Context(n_jobs=2)).n_rows == 10_000


def test_what_is_not_trained_out_of_core():
    with pytest.raises(ValueError, match="'union' cannot be trained out of core"):
        check_trainable(TrainingOptions(model="union"))
    with pytest.raises(ValueError, match="descriptors of molecules are not computed out of core"):
        check_trainable(TrainingOptions(molecule_descriptors="fast"))


# ---------------------------------------------------------------------- folds


def test_folds_are_those_of_memory_wherever_a_row_is(shards, tmp_path, monkeypatch):
    found = read(shards, tmp_path / "w")
    targets, seed = found.targets(("y",)), seed_sequence(7)
    graphs, _ = in_memory()
    assert (found.signatures == graphs.coloring.signatures).all()
    folds = folds_of(found, targets, seed)
    assert set(folds.tolist()) == {0, 1, 2, 3, 4}
    assert (folds == choice_folds(targets, graphs, seed)).all()
    turned = signature_folds(found.signatures[::-1], integer_seed(seed))
    assert (turned[::-1] == folds).all()
    take_for_many(monkeypatch, 50)
    few = folds_of(found, targets, seed)
    assert (few == np.where(folds == 0, 0, TRAIN)).all()


# ---------------------------------------------------------------------- piece by piece, in code


@pytest.mark.parametrize("cuts", [(0, 120), (0, 17, 90, 120)])
def test_pieces_of_a_reservoir_are_one_fit(cuts):
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    model = FDGNNClassifier(n_units=10, n_estimators=2, random_state=0)
    whole = FDGNNClassifier(n_units=10, n_estimators=2, random_state=0).fit(graphs, y)
    for a, b in reversed(list(itertools.pairwise(cuts))):  # in any order
        model.partial_fit(graphs[a:b], y[a:b], classes=[0, 1], like=graphs)
    np.testing.assert_allclose(
        model.decision_function(graphs), whole.decision_function(graphs), atol=1e-6
    )


def test_pieces_that_cannot_be():
    graphs, table = in_memory(20)
    y = [row["y"] for row in table]
    with pytest.raises(ValueError, match="needs all `classes`"):
        FDGNNClassifier().partial_fit(graphs, y)
    with pytest.raises(ValueError, match="there are no classes"):
        FDGNNClassifier().partial_fit(graphs, y, classes=[])
    with pytest.raises(ValueError, match="has the class 7"):
        FDGNNClassifier().partial_fit(graphs, [*y[:-1], 7], classes=[0, 1])
    with pytest.raises(ValueError, match="learn uncertainty"):
        FDGNNClassifier(probability=True).partial_fit(graphs, y, classes=[0, 1])
    for other in (AutoGraphClassifier(), GraphClassifier()):  # rows of WL features would be kept
        assert not hasattr(other, "partial_fit")


def test_batches_from_an_iterator_are_one_fit(monkeypatch):
    monkeypatch.setattr("fdgnn.linear.passes.TOLERANCE", 1e-9)  # in memory few are exact
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    whole = colors(probability=True).fit(graphs, y)
    pieces = ((graphs[i : i + 25], y[i : i + 25]) for i in range(0, 120, 25))
    model = fit_batches(colors(probability=True), pieces)
    np.testing.assert_allclose(model.outputs(graphs), whole.outputs(graphs), atol=2e-6)
    with pytest.raises(GraphError, match="nothing to fit"):
        fit_batches(colors(), iter(()))


@pytest.mark.parametrize("model", [AutoGraphClassifier("wl"), FDGNNClassifier(alpha="cv")])
def test_graphs_that_are_all_equal_lie_in_one_fold(model):
    """Nothing is left to train on without that fold."""
    graphs, y = make_cycles([5] * 40), np.arange(40) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        fitted = fit_batches(clone(model).set_params(random_state=0), [(graphs, y)])
    assert np.isfinite(fitted.decision_function(graphs)).all()


# ---------------------------------------------------------------------- progress


def test_rows_that_are_read_are_shown_with_their_rate_and_the_time_left(
    shards, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("fdgnn.context._SECONDS_BETWEEN_LINES", 0.0)
    for n_jobs in (1, 2):
        context = Context(n_jobs=n_jobs, quiet=False)
        read(shards, tmp_path / f"w{n_jobs}", n_rows=10, workers=Workers(n_jobs), context=context)
        lines = [line for line in capsys.readouterr().err.splitlines() if "rows read" in line]
        assert len(lines) >= (2 if n_jobs == 1 else 1)
        assert re.search(r"rows read: \d+ of \d+", lines[-1])
        if n_jobs == 1:
            assert re.search(r"per second, .* left", lines[-1])


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_rows_are_guessed_from_the_beginning_of_a_file(tmp_path, name):
    opened, rng = gzip.open if name.endswith(".gz") else open, np.random.default_rng(0)
    for number in range(2):
        with opened(tmp_path / name.replace("a", f"a{number}"), "wt") as file:
            file.writelines(f"{n:x},{n % 2}\n" for n in rng.integers(2**62, size=200_000))
    found = rows_about([shard.path for shard in find_shards(str(tmp_path))])
    assert found == pytest.approx(400_000, rel=0.2)
    (tmp_path / "b.parquet").write_bytes(b"")
    assert rows_about([str(tmp_path / "b.parquet")]) is None


# ---------------------------------------------------------------------- processes


@pytest.mark.parametrize("memory", ["400MB", "600MB", "1GB", "2GB", "100GB"])
def test_rows_of_a_chunk_do_not_depend_on_the_number_of_processes(memory):
    plans = [plan_memory(memory, Context(n_jobs=n)) for n in (1, 2, 64)]
    assert len({(plan.n_rows, plan.solver, plan.cache) for plan in plans}) == 1
    for n, plan in zip((1, 2, 64), plans, strict=True):
        assert 1 <= plan.n_processes <= n
        reading = plan.n_processes * (150e6 + 40e3 * plan.n_rows) + 150e6
        assert reading <= plan.total


@pytest.mark.parametrize("model", [colors(), FDGNNClassifier(n_units=10, random_state=0)])
def test_a_model_is_bitwise_the_same_with_two_processes(model, shards, tmp_path):
    """One shard is read in blocks, and their strides follow the number of processes."""
    table = list(rows(200))
    if isinstance(model, FDGNNClassifier):  # sums of fractions depend on their order
        for row in table:
            row["edge_weight"] = [1 / (1 + a + b) for a, b in zip(*row["edge_index"], strict=True)]
    write(tmp_path / "one.jsonl", table)
    for data in (tmp_path / "one.jsonl", shards):
        found = []
        for n in (1, 2):
            work = tmp_path / f"{data.name}-{n}"
            fitted = trained(data, work, clone(model), workers=Workers(n, n))
            save_model(fitted, tmp_path / "model.fdgnn")
            found.append((tmp_path / "model.fdgnn").read_bytes())
        assert found[0] == found[1]

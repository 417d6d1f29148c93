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
from fdgnn.fitting import FitTask
from fdgnn.folds import N_FOLDS, salt_of, signature_folds
from fdgnn.linear import preconditioner
from fdgnn.linear.conjugate import TOLERANCE
from fdgnn.linear.path import LARGE_ALPHAS
from fdgnn.scale import parts, sparse
from fdgnn.scale.coding import Coding
from fdgnn.scale.local import Local
from fdgnn.scale.plan import check_trainable, memory_of, plan_memory
from fdgnn.scale.shards import ShardRequest, find_shards, is_many, rows_about
from fdgnn.scale.training import read_shards, task_asked, train_on_shards
from fdgnn.training import TrainingOptions, new_model

QUIET = Context()


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Take a hundred graphs for many, so that they are solved as a million would be."""
    monkeypatch.setenv("FDGNN_MAX_KERNEL_BYTES", "10000")  # of 50 graphs
    monkeypatch.setattr("fdgnn.folds.MANY_GRAPHS", 50)
    monkeypatch.setattr(preconditioner, "MOST_ROWS", 8)


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


def read(shards, work, target="y", n_rows=15, **options):
    asked = ShardRequest({"target": target, **options}, n_rows=n_rows)
    executor = Local(work, 10**9)
    return read_shards(find_shards(str(shards)), asked, executor, QUIET), executor


def trained(shards, work, model, target="y", names=None, **options):
    found, executor = read(shards, work, target, **options)
    return train_on_shards(model, found, names or (target,), executor, QUIET)


def in_memory(n=120):
    table = list(rows(n))
    lines = io.StringIO("".join(json.dumps(row) + "\n" for row in table))
    return read_graphs(lines, format="jsonl").graphs, table


# ---------------------------------------------------------------------- the same model


def colors(kind=GraphClassifier, alpha="cv", **parameters):
    return kind(WLCounts(n_features=2**10), Ridge(alpha), random_state=0, **parameters)


def test_wl_features_give_the_model_of_memory(shards, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.linear.conjugate.TOLERANCE", 1e-9)  # in memory few are exact
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    whole = colors(probability=True).fit(graphs, y)
    found = trained(shards, tmp_path / "w", colors(probability=True)).model
    assert found.estimators_[0].alpha == whole.estimators_[0].alpha
    scores = whole.decision_function(graphs)
    np.testing.assert_allclose(
        found.decision_function(graphs), scores, atol=1e-6 * (scores.max() - scores.min())
    )
    np.testing.assert_allclose(found.targets_[0].slope, whole.targets_[0].slope, rtol=1e-5)
    np.testing.assert_allclose(found.novelty(graphs), whole.novelty(graphs))


def test_a_reservoir_is_the_model_of_memory(shards, tmp_path):
    graphs, table = in_memory()
    y = np.array([row["size"] for row in table])
    reservoir = FDGNNRegressor(n_units=10, random_state=0)
    whole = reservoir.fit(graphs, y)
    found = trained(shards, tmp_path / "w", FDGNNRegressor(n_units=10, random_state=0), "size")
    np.testing.assert_allclose(found.model.predict(graphs), whole.predict(graphs), rtol=1e-6)
    found, whole = (m.estimators_[0].encoder for m in (found.model, whole))
    assert found.degree_ == pytest.approx(whole.degree_)


def test_a_reservoir_has_the_random_features_that_are_asked_for(shards, tmp_path):
    found = trained(
        shards, tmp_path / "w", FDGNNRegressor(n_units=10, n_projections=30, random_state=0), "size"
    )
    assert found.model.projection_.shape == (30, 10)


def test_several_targets_with_unknown_values(shards, tmp_path):
    table = list(rows())
    for row in table[::7]:
        row["size"] = None
    for number, path in enumerate(sorted(shards.iterdir())):
        write(path, table[40 * number : 40 * (number + 1)])
    model = colors(GraphRegressor, intervals=True)
    found, executor = read(shards, tmp_path / "w", ["y", "size"], numeric=True)
    told = train_on_shards(model, found, ("y", "size"), executor, QUIET, task="regression")
    graphs, _ = in_memory()
    targets = {"y": [r["y"] for r in table], "size": [r["size"] for r in table]}
    whole = colors(GraphRegressor, alpha=1.0, intervals=True).fit(graphs, targets)
    alone = colors(GraphRegressor, alpha=1.0, intervals=True)
    again = train_on_shards(alone, found, ("y", "size"), executor, QUIET, task="regression").model
    np.testing.assert_allclose(again.predict(graphs), whole.predict(graphs), atol=5e-3)
    assert told.model.predict(graphs).shape == (120, 2)
    assert told.model.predict_interval(graphs, 0.8).shape == (120, 2, 2)


def test_committees_and_weights(shards, tmp_path):
    model = new_model(TrainingOptions(class_weight="balanced", threshold="f1"), True)
    found = trained(shards, tmp_path / "w", model)
    assert found.task == "classification"
    assert set(found.members) <= {
        "WL, 2 iterations", "WL, 3 iterations", "reservoir", "another reservoir"
    }  # fmt: skip
    assert 0.5 < found.scores["accuracy"] <= 1.0
    assert found.model.predict_proba(in_memory()[0]).shape == (120, 2)


@pytest.mark.parametrize("many", [50, 100])
def test_of_many_graphs_some_choose(many, shards, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.scale.coding.MANY", many)
    found = trained(shards, tmp_path / "w", colors(probability=True))
    assert 10 < found.n_held_out < 40
    same = colors(alpha=found.alphas[0])
    whole = trained(shards, tmp_path / "w", same)
    graphs, _ = in_memory()
    off = found.model.outputs(graphs) - whole.model.outputs(graphs)
    assert np.linalg.norm(off) <= 2 * TOLERANCE * np.sqrt(len(graphs))
    assert found.scores["accuracy"] >= whole.scores["accuracy"] - 1e-9


def test_few_graphs_say_the_same_together_and_by_passes(shards, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.scale.coding.MANY", 50)
    monkeypatch.setattr("fdgnn.linear.conjugate.TOLERANCE", 1e-9)
    table, executor = read(shards, tmp_path / "w")
    executor.solver_bytes = 10**9
    outputs, held_out = [], sparse.SparseTraining.held_out
    monkeypatch.setattr(
        sparse.SparseTraining,
        "held_out",
        lambda self, alphas: outputs.append(held_out(self, alphas)) or outputs[-1],
    )
    models = []
    for entry in (12, 10**9):  # bytes: the second is too much to have them together
        monkeypatch.setattr(sparse, "_ENTRY", entry)
        models.append(train_on_shards(colors(), table, ("y",), executor, QUIET))
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-6)
    assert models[0].alphas == models[1].alphas


def test_alphas_of_all_graphs_are_raised_where_that_does_better(shards, tmp_path, monkeypatch):
    monkeypatch.setattr("fdgnn.scale.coding.MANY", 50)
    asked = []

    choose = FitTask.choose

    def last(self, predictions, alphas):
        asked.append(tuple(alphas))
        found = choose(self, predictions, alphas)
        return found._replace(positions=np.full_like(found.positions, len(alphas) - 1))

    monkeypatch.setattr(FitTask, "choose", last)
    found = trained(shards, tmp_path / "w", colors())
    share = 50 / (120 * 0.8)
    assert asked == [LARGE_ALPHAS, pytest.approx((1.0, share**-0.5, 1 / share))]
    assert found.alphas == [pytest.approx(LARGE_ALPHAS[-1] / share)]
    asked.clear()
    assert trained(shards, tmp_path / "w", colors(alpha=0.2)).alphas == [0.2]  # as is asked


@pytest.mark.parametrize(("many", "n_left_out"), [(10**5, N_FOLDS), (50, 1)])
def test_held_out_scores_are_of_models_that_have_not_seen_the_graphs(
    many, n_left_out, shards, tmp_path, monkeypatch
):
    monkeypatch.setattr("fdgnn.scale.coding.MANY", many)
    graphs, table = in_memory()
    y = np.array([row["y"] for row in table])
    found = trained(shards, tmp_path / "w", colors(alpha=0.1))
    salt = salt_of(found.model.seed_)
    folds = signature_folds(graphs.coloring.signatures, salt, N_FOLDS)
    outputs = np.full(len(y), np.nan)
    for fold in range(n_left_out):
        train, test = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        alone = colors(alpha=0.1).fit(graphs[train], y[train])
        outputs[test] = alone.decision_function(graphs[test])
    some = ~np.isnan(outputs)
    assert found.n_held_out == some.sum()
    assert found.scores["accuracy"] == pytest.approx(((outputs > 0) == y)[some].mean())
    assert found.scores["ROC AUC"] == pytest.approx(roc_auc_score(y[some], outputs[some]), abs=2e-3)


# ---------------------------------------------------------------------- nothing done twice


def test_what_is_finished_is_found_again(shards, tmp_path, monkeypatch):
    work = tmp_path / "w"
    parse, count = parts.parsed, []

    def stopped(table, source):
        count.append(source)
        if len(count) == 6:
            raise KeyboardInterrupt
        return parse(table, source)

    with monkeypatch.context() as patch:
        patch.setattr(parts, "parsed", stopped)
        with pytest.raises(KeyboardInterrupt):
            read(shards, work)
    first, _ = read(shards, work)
    assert first.n_new == 9 - 5
    assert read(shards, work)[0].n_new == 0
    encode, made = parts.encoded, []
    monkeypatch.setattr(parts, "encoded", lambda *each: made.append(1) or encode(*each))
    one = trained(shards, work, colors())
    assert len(made) == 9
    two = trained(shards, work, colors(alpha=0.3))
    assert len(made) == 9
    assert two.alphas == [0.3] != one.alphas
    os.utime(shards / "a.jsonl", ns=(1, 1))
    assert read(shards, work)[0].n_new == 3


def test_damage_in_a_work_directory_is_told_or_mended(shards, tmp_path):
    graphs, _ = in_memory(20)
    work = tmp_path / "w"
    expected = trained(shards, work, colors()).model.decision_function(graphs)
    files = [path for path in work.rglob("*") if path.is_file()]
    assert sum(path.suffix == ".npz" for path in files) == 18  # as they were read, and encoded
    for path in files:
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        if path.suffix == ".npz":
            with pytest.raises(StudyError, match=f"{path.name}: it is damaged"):
                trained(shards, work, colors())
        else:  # the list of parts of a file, which is then looked through again
            found = trained(shards, work, colors()).model.decision_function(graphs)
            assert np.array_equal(found, expected)
        path.write_bytes(content)


def test_parts_that_do_not_fit_in_memory_are_read_again(shards, tmp_path):
    found, executor = read(shards, tmp_path / "w")
    kept = train_on_shards(colors(), found, ("y",), executor, QUIET).model
    small = Local(tmp_path / "w", 0)
    again = train_on_shards(colors(), found, ("y",), small, QUIET).model
    assert (again.estimators_[0].readout.coef == kept.estimators_[0].readout.coef).all()


def test_what_is_kept_of_one_fit_is_not_taken_for_another(shards, tmp_path):
    found, executor = read(shards, tmp_path / "w")

    def scores(seed, executor):  # with another seed, other graphs are held out together
        model = colors(alpha=1.0).set_params(random_state=seed)
        return train_on_shards(model, found, ("y",), executor, QUIET).scores

    first, second = scores(0, executor), scores(1, executor)
    assert second == scores(1, Local(tmp_path / "w", 10**9)) != first


def test_bad_rows_are_told_with_their_numbers(shards, tmp_path):
    with (shards / "c.jsonl").open("a") as file:
        file.write('{"edge_index": [[0], [9]], "num_nodes": 2, "node_feat": [0, 1], "y": 1}\n')
    found, executor = read(shards, tmp_path / "w")
    assert found.n_rejects == 1
    (reject,) = itertools.chain(*found.rejects(executor))
    assert reject.row == 40
    assert "points past" in reject.reason
    again, executor = read(shards, tmp_path / "w")
    assert [*itertools.chain(*again.rejects(executor))] == [reject]


def test_reports_of_parts_do_not_grow_with_their_bad_rows(shards, tmp_path):
    sizes, good = [], (shards / "c.jsonl").read_text()
    for n in (10, 1000):
        (shards / "c.jsonl").write_text(good + "no row\n" * n)
        (shard,) = find_shards(str(shards / "c.jsonl"))
        asked = ShardRequest({"target": ("y",)}, n_rows=100).settled(find_shards(str(shards))[0])
        for folder in (None, tmp_path / str(n)):
            _, report = parts.parse_block(asked, parts.Block(shard), folder)
            assert sum(part.n_rejects for part in report.parts) == n
            sizes.append(max(len(pickle.dumps(part)) for part in report.parts))
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
    assert read(shards, tmp_path / "w")[0].n_new == 0  # the others were finished


def test_a_shard_that_vanishes(shards, tmp_path):
    listed = find_shards(str(shards))
    (shards / "b.jsonl.gz").unlink()
    with pytest.raises(DatasetNotFoundError, match=r"b\.jsonl\.gz"):
        read_shards(listed, ShardRequest({"target": "y"}), Local(tmp_path / "w", 0), QUIET)


def test_mixed_targets(shards, tmp_path):
    table = [{**row, "y": "active"} for row in rows(10)]
    write(shards / "d.jsonl", table)
    with pytest.raises(DatasetFormatError, match=r"text in .*d\.jsonl, but numbers in .*a\.jsonl"):
        read(shards, tmp_path / "w")


def test_one_class_in_all_shards(shards, tmp_path):
    for path in shards.iterdir():
        write(path, [{**row, "y": 3} for row in rows(20)])
    found, executor = read(shards, tmp_path / "w")
    assert task_asked(found.survey, ("y",), None) == "classification"
    with pytest.raises(DatasetFormatError, match="one value only, 3"):
        train_on_shards(colors(), found, ("y",), executor, QUIET)


def test_a_full_disk(shards, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parts.np, "savez", full)
        with pytest.raises(StudyError, match="No space left on device; what is finished is kept"):
            read(shards, tmp_path / "w")
    assert read(shards, tmp_path / "w")[0].n_new == 9


def test_nothing_to_find(tmp_path):
    assert is_many("shards/*.csv")
    assert is_many("s3://bucket/shards")
    assert not is_many(str(tmp_path))
    with pytest.raises(DatasetNotFoundError, match="no file has such a name"):
        find_shards(str(tmp_path / "*.csv"))


@pytest.mark.parametrize("text", ["2", "much", "GB", "2 G", "1e400GB", "nanGB", "-1GB"])
def test_amounts_of_memory(text):
    assert memory_of("2GB") == 2 * memory_of("1000 MB") == 2_000_000_000
    with pytest.raises(ValueError, match="such as 2GB"):
        memory_of(text)


def test_too_little_memory():
    with pytest.raises(ValueError, match=r"need .* MB at least"):
        plan_memory("300MB", QUIET)
    assert plan_memory("2GB", Context(n_jobs=2)).n_rows == 10_000


def test_what_is_not_trained_out_of_core():
    with pytest.raises(ValueError, match="'union' cannot be trained out of core"):
        check_trainable(TrainingOptions(model="union"))


# ---------------------------------------------------------------------- folds


def test_folds_do_not_depend_on_the_place_of_a_row(shards, tmp_path):
    found, _ = read(shards, tmp_path / "w")
    coding = Coding.of(("y",), found.survey, "classification", 7)
    answers = [p.answers for h in found.handles for p in h.parsed()]
    signatures = np.concatenate([each.signatures for each in answers])
    assert (signatures == in_memory()[0].coloring.signatures).all()
    folds = np.concatenate([coding.folds(each) for each in answers])
    assert set(folds.tolist()) == {0, 1, 2, 3, 4}
    turned = answers[0]._replace(signatures=answers[0].signatures[::-1])
    assert (coding.folds(turned)[::-1] == coding.folds(answers[0])).all()


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
    monkeypatch.setattr("fdgnn.linear.conjugate.TOLERANCE", 1e-9)  # in memory few are exact
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
        executor = Local(tmp_path / f"w{n_jobs}", 10**9, context)
        asked = ShardRequest({"target": "y"}, n_rows=10)
        read_shards(find_shards(str(shards)), asked, executor, context)
        lines = [line for line in capsys.readouterr().err.splitlines() if "rows read" in line]
        assert len(lines) >= (2 if n_jobs == 1 else 1)
        assert re.search(r"rows read: \d+ of \d+", lines[-1])
        if n_jobs == 1:
            assert re.search(r"a second, \d+ s left", lines[-1])


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_rows_are_guessed_from_the_beginning_of_a_file(tmp_path, name):
    opened, rng = gzip.open if name.endswith(".gz") else open, np.random.default_rng(0)
    for number in range(2):
        with opened(tmp_path / name.replace("a", f"a{number}"), "wt") as file:
            file.writelines(f"{n:x},{n % 2}\n" for n in rng.integers(2**62, size=200_000))
    found = rows_about(find_shards(str(tmp_path)))
    assert found == pytest.approx(400_000, rel=0.2)
    (tmp_path / "b.parquet").write_bytes(b"")
    assert rows_about(find_shards(str(tmp_path / "b.parquet"))) is None


# ---------------------------------------------------------------------- processes


@pytest.mark.parametrize("memory", ["400MB", "600MB", "1GB", "2GB", "100GB"])
def test_rows_of_a_part_do_not_depend_on_the_number_of_processes(memory):
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
        for n_jobs in (1, 2):
            context = Context(n_jobs=n_jobs)
            executor = Local(tmp_path / f"{data.name}-{n_jobs}", 10**9, context)
            request = ShardRequest({"target": "y"}, n_rows=15)
            read = read_shards(find_shards(str(data)), request, executor, context)
            fitted = train_on_shards(clone(model), read, ("y",), executor, context).model
            save_model(fitted, tmp_path / "model.fdgnn")
            found.append((tmp_path / "model.fdgnn").read_bytes())
        assert found[0] == found[1]

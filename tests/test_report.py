"""The HTML report, without a browser; tests/browser opens it in one."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import report_examples as examples
from fdgnn import FDGNNClassifier, FDGNNRegressor, save_model
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.record import ModelDescription, TriedConfiguration
from fdgnn.exceptions import FDGNNWarning, MissingDependencyError, ModelFileError, StudyError
from fdgnn.extras import require
from fdgnn.html import figures, report, words
from fdgnn.html.page import embedded_json, vega_bundle
from fdgnn.html.report import Subject, model_subjects, read_subject, write_report
from fdgnn.html.words import NONE
from fdgnn.records import as_plain
from report_examples import HOSTILE, HOSTILE_END, HOSTILE_IMAGE, as_data, write_run

vl_convert = pytest.importorskip("vl_convert")


class Page(HTMLParser):
    """What a page says: elements, the text of each, and its data."""

    def __init__(self, path):
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.elements = []
        self._open = []
        self.feed(self.html)
        self.drawings = json.loads(self.text("script", id="page-data"))["drawings"]
        blocks = [e for e in self.all("script", type="application/json")]
        #: Specifications of charts by their names, and the rows of figures by theirs.
        self.charts = {
            e["parent"]["data-chart"]: json.loads(e["text"]) for e in blocks if "class" not in e
        }
        self.charted = {e["inside"][-1]: json.loads(e["text"]) for e in blocks if "class" in e}

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        element["inside"] = [e["id"] for e in self._open if "id" in e]
        element["parent"] = self._open[-1] if self._open else None
        self.elements.append(element)
        if tag not in ("meta", "input", "br", "img", "path", "circle", "rect"):
            self._open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if self._open and self._open[-1] is self.elements[-1]:
            self._open.pop()

    def handle_endtag(self, tag):
        while self._open and self._open.pop()["tag"] != tag:
            pass

    def handle_data(self, data):
        if self._open and self._open[-1]["tag"] == "script":  # which is no text of the page
            self._open[-1]["text"] += data
            return
        for element in self._open:
            element["text"] += data

    def all(self, tag, **attributes):
        return [
            e
            for e in self.elements
            if e["tag"] == tag and all(e.get(k) == v for k, v in attributes.items())
        ]

    def text(self, tag, **attributes):
        (element,) = self.all(tag, **attributes)
        return element["text"]

    def caption(self, figure):
        """The caption of a figure, with plain spaces."""
        return plain(self.text("p", id=f"{figure}-caption"))

    def table(self, figure):
        """Rows of the table behind a figure, by their first cells, as mappings."""
        head, *rows = self.rows(figure)
        return {row[0]: dict(zip(head, row, strict=True)) for row in rows}

    def section(self, name):
        """The text of a section, with plain spaces."""
        return plain(self.text("section", id=name))

    def codes(self):
        """All commands."""
        return [e["text"] for e in self.all("code")]

    def rows(self, figure):
        """Cells of the table behind a figure, row by row, with plain spaces."""
        rows, cells = [], [e for e in self.elements if figure in e["inside"]]
        for cell in cells:
            if cell["tag"] == "tr":
                rows.append([])
            elif cell["tag"] in ("td", "th") and rows:
                rows[-1].append(plain(cell["text"].strip()))
        return rows


def plain(text):
    """Text as a browser shows it: with single spaces."""
    return re.sub(r"[ \n]+", " ", text.replace(words.SPACE, " ")).strip()


def make(tmp_path, *sources, **options):
    return Page(write_report(sources, tmp_path / "report.html", **options))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mutag"
    return write_run(folder, examples.evaluation_of(), examples.data_of())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("models") / "motifs.fdgnn")


def saved(path, *, regression=False):
    """A model file, as code or as ``fdgnn fit`` writes it."""
    graphs, y = make_motif_graphs(40, random_state=0)
    kind = FDGNNRegressor if regression else FDGNNClassifier
    fitted = kind(n_units=5, random_state=0).fit(graphs, y)
    save_model(fitted, path)
    return path


def of_model(path, data, evaluation=None):
    """A model file with report data, and maybe an evaluation."""
    (subject,) = model_subjects(path, [as_data(data)])
    return replace(subject, evaluations=[] if evaluation is None else [evaluation])


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    return Page(write_report([run], tmp_path_factory.mktemp("page") / "report.html"))


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    folder = write_run(tmp_path_factory.mktemp("runs") / "comparison", examples.comparison_of())
    return Page(write_report([folder], folder / "report.html"))


# ---------------------------------------------------------------------- the examples are right


def test_examples_are_report_data():
    for data in (examples.data_of(), examples.regression_data_of(), examples.without_targets()):
        assert as_data(data).format == 5


# ---------------------------------------------------------------------- one file


def test_everything_is_inside_once(whole):
    for tag, name in (("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")):
        assert not [e for e in whole.all(tag) if name in e]
    assert all(e["href"].startswith("#") for e in whole.all("a"))
    style = whole.text("style")
    assert "url(" not in style
    assert "@import" not in style
    assert whole.html.count("window.vegaEmbed=") == 1
    assert "vega-embed (BSD-3-Clause)\nCopyright" in whole.html
    assert len(whole.html.encode()) < report.LARGEST


def test_only_the_pages_own_scripts_may_run(whole):
    (policy,) = [e["content"] for e in whole.all("meta") if "http-equiv" in e]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    assert policy.count("'sha256-") == 3
    assert not [name for e in whole.elements for name in e if name.startswith("on")]


def test_page_is_the_same_whenever_it_is_made(run, tmp_path):
    first, second = (write_report(run, tmp_path / f"{i}.html").read_bytes() for i in range(2))
    assert first == second


def test_every_figure_has_a_caption_and_a_table(whole):
    figures = whole.all("figure")
    assert len(figures) == 19
    for figure in figures:
        if "recipe" not in figure["inside"]:
            assert len(whole.caption(figure["id"]).split()) > 5
        if not figure["id"].startswith(("mistakes", "substructures")):  # whose cards have words
            assert len(whole.rows(figure["id"])) > 1, figure["id"]
        assert whole.text("h3", id=figure["aria-labelledby"])
    charts = [e for e in whole.all("div") if "data-chart" in e]
    assert len(charts) == 12
    assert {e["data-chart"] for e in charts} == set(whole.charts)
    assert all(e["role"] == "img" and e["aria-label"] for e in charts)


def test_charts_are_what_vega_lite_understands(whole):
    for spec in whole.charts.values():
        assert spec["width"] == "container"
        spec |= {"width": 300, "datasets": {"rows": []}}
        marks = [mark["type"] for mark in vl_convert.vegalite_to_vega(spec)["marks"]]
        assert len(marks) >= len(spec.get("layer", [spec]))
    with pytest.raises(ValueError, match="Invalid"):
        vl_convert.vegalite_to_vega(spec | {"layer": [{"marks": "point"}]})


SECTIONS = ["result", "selection", "data", "model", "errors", "uncertainty", "recipe"]


def test_contents_lead_to_the_sections(whole):
    assert [e["id"] for e in whole.all("section")] == SECTIONS
    links = [e["href"] for e in whole.all("a") if "toc" not in e["inside"]]
    assert [f"#{name}" for name in SECTIONS] == [h for h in links if h != "#content"]


# ---------------------------------------------------------------------- the result


def card_of(shown):
    """Value, spread, what it is with notes, and warnings of the only card."""
    texts = {e.get("class"): plain(e["text"].strip()) for e in shown.all("p")}
    small = " ".join(plain(e["text"].strip()) for e in shown.all("p") if e.get("class") == "small")
    return texts["value"], small, texts.get("warning", "")


def test_result_of_a_run_beside_baseline_and_published(whole):
    value, small, warning = card_of(whole)
    assert value == "87.5 % ± 6.5"
    assert small.startswith("accuracy, nested cross-validation, mean of 4 outer folds, random s")
    assert "Always the majority class: 66.50 ± 0.58 %." in small
    assert "Within one standard deviation of the published 88.5 %." in small
    assert warning == ""
    rows = whole.table("scores-accuracy")
    ours, constant = rows["MUTAG"], rows["MUTAG: always the majority class"]
    assert ours["accuracy, %"] == "87.50 ± 6.45"
    assert constant["ROC AUC, %"] == "50.00 ± 0.00"  # beside every metric
    assert rows["MUTAG: published"]["accuracy, %"] == "88.51 ± 3.77"
    assert [ours[f"fold {i}"] for i in range(1, 5)] == ["80.00", "90.00", "85.00", "95.00"]
    assert "Single folds range from 80.0 % to 95.0 %" in whole.caption("scores-accuracy")
    assert "WL ceiling, the best accuracy of any message passing, is 99.0 %" in whole.section(
        "result"
    )


def test_result_far_from_the_published_is_not_called_near(tmp_path):
    found = examples.evaluation_of(folds=(0.8, 0.8, 0.8, 0.81))
    assert (
        "8.3 points below the published 88.5 %"
        in card_of(make(tmp_path, write_run(tmp_path / "run", found)))[1]
    )


def test_the_headline_is_the_metric_that_models_are_chosen_by(tmp_path):
    """With class imbalance that is ROC AUC, and accuracy comes after it."""
    found = examples.evaluation_of()
    (target,) = found.targets
    found = msgspec.structs.replace(
        found,
        protocol=msgspec.structs.replace(found.protocol, scoring="roc_auc"),
        targets=[msgspec.structs.replace(target, scores=target.scores[::-1])],
        notes=["Class 1 is rare."],
    )
    shown = make(tmp_path, write_run(tmp_path / "run", found))
    value, small, _ = card_of(shown)
    assert value == "91.5 % ± 6.5"
    assert small.startswith("ROC AUC, nested cross-validation, mean of 4 outer folds")
    assert "Always the majority class: 50.00 ± 0.00 %." in small
    assert "published" not in small  # those are accuracies
    assert "Class 1 is rare." in small
    assert shown.rows("scores-roc_auc")[0][1] == "ROC AUC, %"


def test_two_runs_of_one_dataset_are_told_apart(tmp_path):
    runs = [write_run(tmp_path / name) for name in ("first", "second")]
    shown = make(tmp_path, *runs)
    names = ["MUTAG (first)", "MUTAG (second)"]
    assert set(names) <= set(shown.table("scores-accuracy"))
    assert [e["text"] for e in shown.all("option")] == names
    again = make(tmp_path, runs[0], runs[0])
    assert {"MUTAG (first) #1", "MUTAG (first) #2"} <= set(again.table("scores-accuracy"))


def test_equal_folds_make_one_larger_point(tmp_path):
    found = examples.evaluation_of(folds=(0.9, 0.8, 0.9, 0.9))
    shown = make(tmp_path, write_run(tmp_path / "run", found))
    rows = shown.charted["scores-accuracy"]
    found = {(r["words"], r["folds"]) for r in rows if r["what"] == "fold"}
    assert found == {("folds 1, 3 and 4", 3), ("fold 2", 1)}


# ---------------------------------------------------------------------- regression, targets


def test_an_evaluation_of_a_regression_has_a_report(tmp_path):
    data = examples.regression_data_of()
    shown = make(tmp_path, write_run(tmp_path / "run", examples.regression_of(), data))
    value, small, _ = card_of(shown)
    assert value == "0.815 ± 0.013"
    assert small.startswith("R2, nested cross-validation, mean of 4 outer folds, scaffold split")
    assert "Morgan counts and ridge regression: 0.815 ± 0.013." in small
    rows = shown.table("scores-r2")
    assert rows["solubility: always the mean"]["RMSE"] == "1.41 ± 0.013"
    assert [e["id"] for e in shown.all("section")] == SECTIONS
    caption = shown.caption("predictions-0")
    assert "The mean absolute error is 0.300; always the mean target: 1.20." in caption
    assert shown.all("figure", id="targets-0")
    assert not shown.all("figure", id="confusion-0")
    assert all(row[-1] == "0.300" for row in shown.rows("predictions-0")[1:])
    assert "raises the value" in shown.html
    assert "the score of the prediction" not in shown.html


def test_each_of_several_targets_is_shown(tmp_path):
    data = [examples.regression_data_of() | {"target": name} for name in ("logP", "logS")]
    found = examples.regression_of(targets=("logP", "logS"))
    shown = make(tmp_path, write_run(tmp_path / "run", found, data))
    names = ["solubility, logP", "solubility, logS"]
    assert [e["text"] for e in shown.all("option")] == names
    assert set(names) <= set(shown.table("scores-r2"))
    assert {"map-0", "map-1"} <= {e["id"] for e in shown.all("figure")}
    alone = make(tmp_path, write_run(tmp_path / "alone", found))
    assert "solubility, mean of 2 targets" in alone.table("scores-r2")


# ---------------------------------------------------------------------- the selection


def test_the_search_is_summed_up(whole):
    rows = whole.table("search-0")
    best = max(examples.tried_of(), key=lambda one: np.mean(one.scores))
    number = examples.tried_of().index(best) + 1
    first = rows[f"number {number}"]
    assert whole.rows("search-0")[1][0] == f"number {number}"
    assert first["mean"] == plain(words.percent(np.mean(best.scores)))
    chosen = {name: row["chosen"] for name, row in rows.items() if row["chosen"]}
    assert chosen == {"number 2": "2", "number 3": "1", "number 6": "1"}
    assert {"n_layers-0", "effective_spectral_radius-0", "power-0"} <= set(whole.charts)
    folds = whole.table("chosen-0")
    assert folds["3"]["alpha"] == "0.1 (2), 10 (1)"
    assert "With the first layer alone: 85.00 ± 0.00." in whole.caption("chosen-0")


def test_search_over_other_hyperparameters(tmp_path):
    tried = [
        TriedConfiguration(configuration={"n_bins": n}, alpha=1.0, scores=[0.5 + n / 100])
        for n in (4, 8)
    ]  # fmt: skip
    shown = make(tmp_path, write_run(tmp_path / "run", examples.evaluation_of(tried=tried)))
    assert [name for name in shown.charts if name.endswith("-0")] == ["power-0"]


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ensembles") / "auto"
    write_run(folder, examples.ensemble_of(), examples.data_of())
    return Page(write_report([folder], folder / "report.html"))


def test_base_models_are_listed_with_how_often_they_are_averaged(ensemble):
    head, *rows = ensemble.rows("base-models-0")
    assert head[4:] == ["alone", "folds that average it", "time"]
    assert rows == [
        ["WL, 2 iterations", "WLCounts", "RBF", "0.3", "89.0 %", "4 of 4", "1.50 s"],
        ["reservoir × 2", "GraphReservoir", "linear", "0.01", "86.0 %", "3 of 4", "250 ms"],
        ["another reservoir", "not in the final model", NONE, NONE, "61.0 %", "0 of 4", "250 ms"],
    ]
    caption = ensemble.caption("base-models-0")
    assert "The average reaches 90.0 %" in caption
    assert "the best alone, WL, 2 iterations, reaches 89.0 %" in caption
    assert ensemble.table("chosen-0")["3"]["base models averaged"] == "1 of 3"
    assert "the test graphs play no part in it." in ensemble.section("selection")
    assert not ensemble.all("figure", id="search-0")


def test_runs_ensembles_models_and_comparisons_on_one_page(tmp_path, run, model):
    ensemble = write_run(tmp_path / "auto", examples.ensemble_of(), examples.data_of())
    compared = write_run(tmp_path / "compared", examples.comparison_of())
    shown = make(tmp_path, ensemble, run, model, compared)
    names = [e["text"] for e in shown.all("option")]
    assert names == ["MUTAG (auto)", "MUTAG (mutag)", "motifs", "MUTAG (compared)"]
    rows = shown.table("scores-accuracy")
    assert "MUTAG (compared): Weisfeiler-Lehman kernel, SVC" in rows
    figures = {e["id"] for e in shown.all("figure")}
    assert {"base-models-0", "search-1", "methods-3-0"} <= figures


def test_a_page_is_named_by_its_model(whole, ensemble, comparison, tmp_path, model):
    assert whole.text("h1") == "FDGNN on MUTAG"
    assert ensemble.text("h1") == "AutoGraphClassifier on MUTAG"
    assert comparison.text("h1") == "Models on MUTAG"
    alone = make(tmp_path, of_model(model, examples.data_of()))
    assert alone.text("h1") == "FDGNN on MUTAG"
    sentence = "Each outer fold makes its own choice"
    assert sentence in whole.section("selection")
    assert sentence not in alone.section("selection")


# ---------------------------------------------------------------------- comparisons


def test_methods_and_those_that_did_not_finish(comparison):
    table = comparison.table("methods-0-0")
    kernel = table["Weisfeiler-Lehman kernel, SVC"]
    assert kernel["times FDGNN's training"] == "20 ×"
    assert kernel["accuracy"] == "83.75 ± 4.79 % (4 folds)"
    assert kernel["FDGNN better, equal, worse"] == "3, 1, 0"
    assert kernel["weights"] == words.count(3210)
    assert table["FDGNN"]["memory"] == "210 MB"
    walks = table["Random walk kernel, SVC"]
    assert walks["state"] == "out of time: no result after 600 s"
    assert walks["accuracy"] == NONE
    caption = comparison.caption("methods-0-0")
    assert "No baseline has a better mean than FDGNN." in caption
    assert "Not finished: 1 method out of time" in caption
    rows = comparison.table("scores-accuracy")
    assert rows["Weisfeiler-Lehman kernel, SVC: published"]["accuracy, %"] == "84.11"
    assert sum("always the majority class" in name for name in rows) == 1
    assert "87.5 % ± 6.5" in card_of(comparison)[0]


def test_partial_results_of_a_method_are_shown(tmp_path):
    ours, kernel, walks = examples.comparison_of()
    partial = msgspec.structs.replace(
        kernel, model=walks.model, folds=kernel.folds[:2], variants={}, status="out of time",
        targets=[examples.target_of([0.9, 0.95])], reason="600 s, 2 of 4 folds",
    )  # fmt: skip
    shown = make(tmp_path, write_run(tmp_path / "run", [ours, partial]))
    row = shown.table("methods-0-0")["Random walk kernel, SVC"]
    assert row["accuracy"] == "92.50 ± 3.54 % (2 folds)"
    assert "FDGNN better, equal, worse" not in row  # not the same folds
    assert "Random walk kernel, SVC has a better mean" in shown.caption("methods-0-0")


def test_a_comparison_with_report_data_shows_our_model(tmp_path):
    folder = write_run(tmp_path / "run", examples.comparison_of(), examples.data_of())
    shown = make(tmp_path, folder)
    assert [e["id"] for e in shown.all("section")] == SECTIONS
    figures = {e["id"] for e in shown.all("figure")}
    assert {"methods-0-0", "search-0", "map-0", "confusion-0"} <= figures


def test_no_method_is_called_worse_without_scores(tmp_path):
    ours, _, walks = examples.comparison_of()
    shown = make(tmp_path, write_run(tmp_path / "run", [ours, walks]))
    assert "better mean" not in shown.caption("methods-0-0")


def test_comparison_of_which_nothing_finished(tmp_path):
    walks = examples.comparison_of()[2:]
    shown = make(tmp_path, write_run(tmp_path / "run", [*walks, *walks]))
    assert "Not finished: 2 methods out of time" in shown.caption("methods-0-0")
    assert not shown.charts


def test_errors_are_better_where_they_are_smaller(tmp_path):
    def with_rmse(folds, **model):
        found = examples.regression_of()
        scores = examples.scores_of("rmse", "RMSE", folds)
        targets = [msgspec.structs.replace(found.targets[0], scores=[scores], baselines=[])]
        protocol = msgspec.structs.replace(found.protocol, scoring="rmse")
        found = msgspec.structs.replace(found, targets=targets, protocol=protocol)
        description = ModelDescription(**model) if model else found.model
        return msgspec.structs.replace(found, model=description)

    forest = with_rmse([0.8, 0.9, 0.7, 0.8], name="rf", title="forest", kind="RandomForest")
    shown = make(tmp_path, write_run(tmp_path / "run", [with_rmse([0.7, 0.8, 0.8, 0.8]), forest]))
    assert shown.table("methods-0-0")["forest"]["FDGNN auto better, equal, worse"] == "2, 1, 1"
    assert "No baseline has a better mean than FDGNN auto." in shown.caption("methods-0-0")


# ---------------------------------------------------------------------- unfinished, without data


def test_run_without_report_data_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write_run(tmp_path / "runs" / "example")
    shown = make(tmp_path, folder)
    assert not shown.all("figure", id="map-0")
    assert "This run has no report.json" in shown.section("data")
    assert shown.codes() == ["fdgnn evaluate MUTAG --out runs/example"] * 2
    moved = folder.rename(tmp_path / "moved away")
    assert make(tmp_path, moved).codes() == [f"fdgnn evaluate MUTAG --out '{moved}'"] * 2


def test_unfinished_run_says_how_far_it_is_and_how_to_continue(tmp_path):
    folder = tmp_path / "run"
    command = f"fdgnn evaluate data/MUTAG --protocol quick --out {folder}"
    shown = make(tmp_path, write_run(folder, examples.unfinished_of(command=command)))
    value, small, _ = card_of(shown)
    assert (value, small) == (NONE, "unfinished 3 of 24 parts are finished To continue:")
    assert shown.codes()[0] == command
    assert "This run is not finished" in shown.section("data")
    assert not shown.all("figure", id="scores-accuracy")


def test_a_command_that_is_not_known_is_not_made_up(tmp_path):
    folder = write_run(tmp_path / "run", examples.unfinished_of(command=None))
    shown = make(tmp_path, folder)
    assert not shown.codes()
    assert f"Its directory (--out) is {folder}." in shown.section("data")
    assert "Its files do not record the command that made it." in shown.section("recipe")
    assert "The command that started it continues it." in shown.html


def test_demonstration_names_no_directory_that_is_gone(tmp_path):
    found = examples.evaluation_of(command="fdgnn demo --report x.html")
    folder = write_run(tmp_path / "run", found, examples.data_of())
    shown = make(tmp_path, folder)
    assert str(folder) not in shown.html
    assert "From fdgnn demo; 188 graphs." in shown.html


# ---------------------------------------------------------------------- model files


def test_score_on_graphs_seen_in_training_is_never_the_headline(tmp_path, model):
    seen = examples.data_of() | {"predictions": "seen"}
    shown = make(tmp_path, of_model(model, seen, examples.evaluation_of()))
    value, small, warning = card_of(shown)
    assert value == "87.5 % ± 6.5"
    assert "mean of 4 outer folds" in small
    assert warning.startswith("On the graphs below: accuracy 86.0 % (majority class: 66.0 %) and")
    assert "expect less on others" in warning
    assert "86.00" not in str(shown.rows("scores-accuracy"))


def test_seen_graphs_give_a_model_no_headline(tmp_path):
    path = saved(tmp_path / "m.fdgnn")
    value, small, _ = card_of(
        make(tmp_path, of_model(path, examples.data_of() | {"predictions": "seen"}))
    )
    assert value == NONE
    assert "nested" not in small


def test_model_without_a_score_on_unseen_graphs_has_no_headline(tmp_path):
    path = saved(tmp_path / "m.fdgnn")
    value, small, _ = card_of(make(tmp_path, path))
    assert value == NONE
    assert small.startswith("the score on unseen graphs is not known")
    assert "Name some data to see what it does there." in small


def test_scores_on_unseen_graphs_are_the_headline(tmp_path, model):
    unseen = examples.data_of() | {"predictions": "unseen"}
    shown = make(tmp_path, of_model(model, unseen))
    value, small, warning = card_of(shown)
    assert (value, warning) == ("86.0 %", "")
    assert small.startswith("accuracy, 188 graphs that the model has not seen in training")
    assert "Always the majority class: 66.00 %." in small
    both = make(tmp_path, of_model(model, unseen, examples.evaluation_of(published=None)))
    value, small, _ = card_of(both)
    assert value == "86.0 %"
    assert "In training, by nested cross-validation, random split: accuracy 87.50 ± 6.4" in small
    assert both.table("scores-accuracy")["MUTAG, in training"]["accuracy, %"] == "87.50 ± 6.45"


def test_regression_on_graphs_seen_or_unseen(tmp_path):
    path = saved(tmp_path / "m.fdgnn", regression=True)
    data, evaluation = examples.regression_data_of(), examples.regression_of()
    shown = make(tmp_path, of_model(path, data | {"predictions": "seen"}, evaluation))
    value, _, warning = card_of(shown)
    assert value == "0.815 ± 0.013"
    assert "R2 0.810" in warning
    unseen = make(tmp_path, of_model(path, data | {"predictions": "unseen"}, evaluation))
    assert card_of(unseen)[0] == "0.810"


def test_graphs_without_known_targets(tmp_path, model):
    shown = make(tmp_path, of_model(model, examples.without_targets()))
    assert "no known targets" in shown.html
    assert not shown.all("figure", id="confusion-0")
    assert len(shown.charted["map-0"]) == 30


def test_notes_are_beside_the_result_and_the_data(tmp_path, model):
    data = examples.data_of() | {"notes": ["2 of 9 rows left out."]}
    shown = make(tmp_path, of_model(model, data, examples.evaluation_of()))
    assert shown.html.count("2 of 9 rows left out.") == 2


def test_model_file_alone(tmp_path, model):
    shown = make(tmp_path, model)
    assert "FDGNNClassifier" in shown.section("recipe")
    commands = [command.split(" --target")[0] for command in shown.codes()]
    assert f"fdgnn report {model} --data FILE" in commands


# ---------------------------------------------------------------------- the data


def with_data(tmp_path, **changes):
    return make(tmp_path, write_run(tmp_path / "run", data=examples.data_of() | changes))


def test_map_and_drawings_are_those_of_the_data(whole):
    data = examples.data_of()
    rows = whole.charted["map-0"]
    assert {r["graph"] for r in rows if r["wrong"]} == set(data["mistakes"])
    by_graph = {r["graph"]: r for r in rows}
    for g in data["graphs"]:
        row = by_graph[g["graph"]]
        assert (row["actual"], row["predicted"]) == (g["actual"], g["predicted"])
        assert row["look"] == f"c{data['classes'].index(g['actual'])}"
        assert row["fold"] == g["fold"]
    assert whole.drawings["0"] == {str(d["graph"]): d for d in data["drawings"]}
    assert "WL, 2 iterations is shown (WLCounts)" in whole.caption("map-0")


def test_captions_of_the_data(tmp_path):
    data = examples.data_of()["data"] | {
        "vertices_range": [3, 1234], "max_degree": 77, "mean_sizes": [["-1", 9.6], ["1", 22.2]],
        "degrees": {"names": ["1", "2", "64 to 80"], "series": [["", [40, 35, 25]]]},
    }  # fmt: skip
    shown = with_data(tmp_path, data=data)
    sizes = shown.caption("sizes-0")
    assert sizes.startswith(f"Graphs have 3 to {words.count(1234)} vertices.")
    assert "On average 10 in class -1 and 22 in class 1" in sizes
    degrees = shown.caption("degrees-0")
    assert degrees.startswith("40.0 % of the vertices have 1 neighbor; the largest degree is")


def test_bars_are_in_the_order_of_their_names(tmp_path):
    """Though a class may have no graph of a size."""
    data = examples.data_of()["data"]
    data["sizes"] = {"names": ["5", "6", "7"], "series": [["-1", [1, 0, 2]], ["1", [0, 3, 1]]]}
    rows = with_data(tmp_path, data=data).charted["sizes-0"]
    assert [row["key"] for row in rows] == ["0=5", "1=6", "2=7", "2=7"]


def test_classes_look_alike_in_all_figures(tmp_path):
    classes = tuple("abcdefghij")
    data = examples.data_of(classes=classes)
    data["data"]["sizes"]["series"].reverse()
    shown = make(tmp_path, write_run(tmp_path / "run", data=data))
    assert [row[0] for row in shown.rows("targets-0")[1:]] == list(classes)
    for chart, name in (("sizes-0", "kind"), ("targets-0", "name")):
        rows = shown.charted[chart]
        assert {(r[name], r["look"]) for r in rows} == {(c, f"c{i}") for i, c in enumerate(classes)}
    points = shown.charts["map-0"]["layer"][0]["encoding"]
    looks = list(
        zip(points["color"]["scale"]["range"], points["shape"]["scale"]["range"], strict=False)
    )
    assert len(set(looks[:10])) == 10


# ---------------------------------------------------------------------- the model


def test_substructures_are_drawn_and_explained(whole):
    cards = [e for e in whole.all("div") if "data-steps" in e]
    shown = examples.data_of()["substructures"]
    assert [int(e["data-graph"]) for e in cards] == [one["graph"] for one in shown]
    for card, one in zip(cards, shown, strict=True):
        assert [int(step) for step in card["data-steps"].split()] == one["steps"]
        assert int(card["data-radius"]) == one["radius"]
        assert card["data-graph"] in whole.drawings["0"]
    titles = [e["text"] for e in whole.all("h3") if e.get("id", "").startswith("substructures")]
    assert titles == ["Substructures for class -1", "Substructures for class 1"]
    caption = whole.caption("substructures-0-0")
    assert "C, next to 2 × N is in 12 of 30 graphs" in caption
    assert "A reservoir has no WL labels" in caption
    assert "in 12 of 30 graphs, where it adds 0.25" in whole.section("model")


def test_a_regression_is_raised_and_lowered(tmp_path, model):
    shown = make(tmp_path, of_model(model, examples.regression_data_of()))
    titles = [e["text"] for e in shown.all("h3") if e.get("id", "").startswith("substructures")]
    assert titles == ["Substructures that raise the value", "Substructures that lower the value"]
    assert "where it adds 0.25" in shown.html
    assert "where it takes 0.10" in shown.html


def test_a_substructure_whose_example_is_too_large_is_not_drawn(tmp_path, model):
    data = examples.data_of()
    data["substructures"][0] |= {"steps": [], "graph": 29}
    data["drawings"] = data["drawings"][:-1]
    shown = make(tmp_path, of_model(model, data))
    (card,) = [e for e in shown.all("div") if e.get("data-steps") == ""]
    assert card["data-graph"] == "29"


def test_what_a_model_does_not_have_is_left_out(tmp_path, model):
    data = examples.data_of() | {
        "substructures": [], "base_models": [], "dynamics": None, "coverages": [], "domain": None,
        "calibration": None,
    }  # fmt: skip
    shown = make(tmp_path, of_model(model, data))
    assert not shown.all("section", id="model")
    assert not shown.all("section", id="uncertainty")
    assert "#model" not in [e.get("href") for e in shown.all("a")]
    assert not shown.all("figure", id="base-models-0")
    assert len(shown.rows("confusion-0")) > 1


def test_baselines_of_a_comparison_are_shown_once_for_each_target(tmp_path):
    methods = [examples.regression_of(targets=("a", "b")) for _ in range(2)]
    other = ModelDescription(name="ecfp-rf", title="Morgan + random forest", kind="Pipeline")
    methods[1] = msgspec.structs.replace(methods[1], model=other)
    (subject,) = read_subject(write_run(tmp_path / "run", methods))
    found = figures.results(subject)
    assert [len(one.baselines) for one in found] == [2, 2, 2, 0, 0, 0]
    assert [one.name for one in found[3:]] == [
        "Morgan + random forest, mean of 2 targets",
        "Morgan + random forest, a",
        "Morgan + random forest, b",
    ]


def test_descriptors_are_listed_by_their_effect(tmp_path):
    shown = with_data(tmp_path, descriptors=[["pH", 0.25]])
    assert "The score depends most on pH, by 0.25 on average" in shown.caption("descriptors-0")
    assert shown.rows("descriptors-0")[1] == ["pH", "0.25"]


def test_layers_of_the_reservoir_and_their_certificates(whole, tmp_path):
    caption = whole.caption("convergence-0")
    assert "reservoir is shown (GraphReservoir, 2 layers)" in caption
    assert "The numbers are for 30 of the 188 graphs." in caption
    assert "In layer 1, 2 of 30 graphs have no certificate" in caption
    first = whole.table("convergence-0")["1"]
    assert (first["ρ(|W_H|)"], first["certified"], first["not converged"]) == ("0.300", "28", "0")
    dynamics = examples.data_of()["dynamics"]
    for layer in dynamics["layers"]:
        layer |= {"certified": 30, "uncertified": 0, "unconverged": 7}
    shown = with_data(tmp_path, dynamics=dynamics)
    assert "14 times a graph had not converged there." in shown.caption("convergence-0")
    assert "no certificate" not in shown.caption("convergence-0")


# ---------------------------------------------------------------------- errors and uncertainty


def test_confusion_and_calibration(whole):
    text = whole.caption("confusion-0")
    assert text.startswith("5 of 30 graphs have a wrong prediction, 16.7 %.")
    assert whole.rows("confusion-0")[1] == ["actual", "-1", "1"]
    cells = [int(e["text"]) for e in whole.all("b") if "confusion-0" in e["inside"]]
    assert cells == [n for row in examples.data_of()["confusion"] for n in row]
    assert whole.rows("calibration-0")[1][1:] == ["10", "60.0 %", "50.0 %", "23.7 to 76.3"]


def test_the_most_common_confusion_is_named(tmp_path):
    shown = with_data(tmp_path, confusion=[[10, 5], [2, 13]])
    assert "Most often, 5 times, class -1 is predicted as 1." in shown.caption("confusion-0")


def test_coverage_and_graphs_out_of_domain(whole):
    caption = whole.caption("coverage-0")
    assert "the share of 188 graphs that is covered at 95 % varies by about 1.6 points" in caption
    assert "come from the errors of the other folds" in caption
    assert caption.endswith("At 95 %, a set has 1.40 classes on average.")
    assert whole.rows("coverage-0") == [
        ["requested", "covered", "classes", "empty sets"],
        ["80 %", "81.0 %", "0.900", "12.0 %"],
        ["95 %", "94.7 %", "1.40", "0.0 %"],
    ]
    caption = whole.caption("domain-0")
    assert caption.startswith("2 of 188 graphs, 1.1 %, are out of the model's applicability domain")
    assert "The farthest is graph 3: 44 % of its substructures are" in caption
    assert caption.endswith("Of these graphs 50.0 % have a wrong prediction, of the others 12.5 %.")
    head, first, second = whole.rows("domain-0")
    assert (head[-1], first[:2], first[-1]) == ("domain distance", ["3", "g3"], "44 %")
    assert second == ["37", "not on the map", NONE, NONE, "40 %"]


def test_intervals(tmp_path, model):
    shown = make(tmp_path, of_model(model, examples.regression_data_of()))
    assert shown.rows("coverage-0")[1] == ["90 %", "91.0 %", "2.50"]
    assert shown.caption("coverage-0").endswith("At 90 %, an interval is 2.50 wide on average.")
    assert "mean absolute error of these graphs is 1.50" in shown.caption("domain-0")


def test_recipe(whole, ensemble):
    text = whole.section("recipe")
    for word in ("0123456789abcdef", "selection, on one core", "6.00 s", "16.4", "outer folds"):
        assert word in text
    assert "fdgnn evaluate MUTAG --model auto --out" in ensemble.section("recipe")


# ---------------------------------------------------------------------- untrusted text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    data = examples.data_of(
        HOSTILE,
        classes=(HOSTILE, HOSTILE_IMAGE),
        labels=(HOSTILE, HOSTILE_END, "C"),
        smiles=HOSTILE_END,
        id_text=HOSTILE_IMAGE,
    ) | {"notes": [HOSTILE_END], "model": HOSTILE_END}
    names = [HOSTILE, HOSTILE_IMAGE, "__proto__"]
    found = examples.ensemble_of(HOSTILE, names)
    found = msgspec.structs.replace(
        found, command=HOSTILE, versions={HOSTILE: HOSTILE}, machine={"cpu": HOSTILE_END},
        tried=examples.tried_of(), notes=[HOSTILE_IMAGE],
    )  # fmt: skip
    runs = [
        write_run(folder / "run", found, data),
        write_run(folder / "compared", examples.comparison_of(HOSTILE, HOSTILE_END)),
    ]
    return Page(write_report(runs, folder / "report.html", title=HOSTILE_IMAGE))


def test_untrusted_text_stays_text(hostile):
    assert len([e for e in hostile.all("script") if e.get("type") != "application/json"]) == 5
    assert not hostile.all("img")
    assert hostile.text("h1") == HOSTILE_IMAGE
    assert HOSTILE in hostile.codes()
    for text in (HOSTILE, HOSTILE_IMAGE, HOSTILE_END):
        assert text not in hostile.html
    assert not any("\u2028" in e["text"] for e in hostile.all("script"))
    assert hostile.drawings["0"]["0"]["labels"][1] == HOSTILE_END
    assert [row[0] for row in hostile.rows("base-models-0")[1:3]] == [HOSTILE, HOSTILE_IMAGE]


def test_untrusted_text_is_never_code_for_vega(hostile):
    """Values may hold anything; expressions, field names and formats are ours."""

    def walk(value, inside_data=False):
        if isinstance(value, dict):
            for name, inner in value.items():
                assert HOSTILE not in name
                walk(inner, inside_data or name in ("datasets", "values", "domain"))
        elif isinstance(value, list):
            for inner in value:
                walk(inner, inside_data)
        elif isinstance(value, str) and not inside_data:
            assert "__pwned" not in value

    for spec in hostile.charts.values():
        walk(spec)


def test_embedded_json_survives_anything():
    text = embedded_json({"a": "</script><!-- & \u2028\u2029 \ud800 é"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028\u2029 \ud800 é"}
    with pytest.raises(ValueError):
        embedded_json(float("nan"))


def test_bytes_that_are_no_text_do_not_stop_the_page(tmp_path):
    run = write_run(tmp_path / "a \udcff b")
    assert f"From {tmp_path}/a ? b; 188 graphs." in make(tmp_path, run).html


# ---------------------------------------------------------------------- what is wrong

EVALUATION, DATA = as_plain(examples.evaluation_of()), examples.data_of()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("evaluation.json", "{"),
        ("evaluation.json", "[" * 100_000),
        ("evaluation.json", {}),
        ("evaluation.json", [EVALUATION | {"dataset": 7}]),
        ("evaluation.json", [EVALUATION | {"n_graphs": -1}]),
        ("evaluation.json", [EVALUATION | {"folds": EVALUATION["folds"][:2]}]),
        ("evaluation.json", [EVALUATION | {"times": None}]),
        ("evaluation.json", [EVALUATION | {"status": "known"}]),
        ("evaluation.json", [EVALUATION, {"dataset": "MUTAG"}]),
        ("report.json", {}),
        ("report.json", DATA),
        ("report.json", [DATA | {"format": 1}]),
        ("report.json", [DATA | {"graphs": [{}]}]),
        ("report.json", [DATA | {"confusion": [[1]]}]),
        ("report.json", [DATA | {"drawings": [{}]}]),
        ("report.json", [examples.data_of("PROTEINS")]),
    ],
)
def test_damaged_files_are_reported_in_one_line(tmp_path, name, content):
    folder = write_run(tmp_path / "run", data=examples.data_of())
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(StudyError) as told:
        write_report(folder, tmp_path / "report.html")
    assert str(folder / name) in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400
    assert not (tmp_path / "report.html").exists()


def test_data_of_other_graphs_are_rejected(tmp_path):
    folder = write_run(tmp_path / "run", data=examples.data_of("COX2"))
    with pytest.raises(StudyError, match=r"report\.json: shows 467 graphs of COX2, but"):
        read_subject(folder)
    data = examples.data_of()
    data["data"]["n_graphs"] = 189
    with pytest.raises(StudyError, match="the run has 188 of MUTAG"):
        read_subject(write_run(tmp_path / "run", data=data))


def test_drawing_with_an_edge_to_nowhere_is_rejected(tmp_path):
    data = examples.data_of()
    data["drawings"][3]["edges"][0] = 99
    folder = write_run(tmp_path / "run", data=data)
    with pytest.raises(StudyError, match=r"report\.json.*drawings\[3\]"):
        write_report(folder, tmp_path / "report.html")


def test_missing_foreign_and_no_sources(tmp_path):
    with pytest.raises(StudyError, match="no such run directory or model file"):
        write_report(tmp_path / "nowhere", tmp_path / "report.html")
    (tmp_path / "other").mkdir()
    with pytest.raises(StudyError, match="run directory"):
        write_report(tmp_path / "other", tmp_path / "report.html")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="text: not a model file"):
        write_report(tmp_path / "text", tmp_path / "report.html")
    with pytest.raises(StudyError, match="nothing to report on"):
        write_report([], tmp_path / "report.html")


def test_page_is_written_completely_or_not_at_all(tmp_path, run):
    target = tmp_path / "report.html"
    target.write_text("the old page")
    bad = write_run(tmp_path / "bad")
    (bad / "evaluation.json").write_text("{")
    with pytest.raises(StudyError):
        write_report([run, bad], target)
    assert target.read_text() == "the old page"
    assert write_report(run, target) == target
    assert target.read_text().startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["report.html"]
    with pytest.raises(OSError, match="no directory"):
        write_report(run, tmp_path / "nowhere" / "report.html")


def test_the_script_of_charts_is_made_once_and_kept(monkeypatch, tmp_path):
    """Other processes find it; a damaged one is made again."""
    import vl_convert

    made = []
    monkeypatch.setenv("FDGNN_CACHE", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", lambda: made.append(1) or "charts()")
    scripts = []
    for damage in (None, None, b"other()"):
        vega_bundle.cache_clear()
        scripts.append(vega_bundle())
        (kept,) = tmp_path.iterdir()
        if damage is not None:
            kept.write_bytes(damage)
            vega_bundle.cache_clear()
            scripts.append(vega_bundle())
    assert len(made) == 2
    assert set(scripts) == {"(() => {\ncharts()\n})();"}
    monkeypatch.setenv("FDGNN_CACHE", str(kept))  # no folder: nothing can be kept
    vega_bundle.cache_clear()
    told = pytest.warns(FDGNNWarning, match="the script .* cannot be kept in .*FDGNN_CACHE")
    with told as caught:
        assert vega_bundle() == scripts[0]
    assert caught[0].filename == __file__
    vega_bundle.cache_clear()


@pytest.mark.usefixtures("no_home")
def test_a_library_that_looks_for_a_home_finds_one(monkeypatch):
    def imported(name):
        homes.append(Path.home())
        return sys

    homes = []
    monkeypatch.setattr("fdgnn.extras.import_module", imported)
    assert require("vl_convert", "report", "Pages") is sys
    assert homes
    assert not any(home.exists() for home in homes)  # nobody can have put anything there
    assert "HOME" not in os.environ


@pytest.mark.parametrize("library", ["vl_convert", "jinja2"])
def test_missing_library_is_named_with_its_remedy(monkeypatch, run, tmp_path, library):
    vega_bundle.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match="extra 'report'"):
        write_report(run, tmp_path / "report.html")


# ---------------------------------------------------------------------- sizes


def large_data(n=1000):
    data = examples.data_of(n=n)
    many = examples.drawing_of(4)
    big = many | {
        name: (many[name] or []) * 14
        for name in ("positions", "edges", "orders", "labels", "attributions")
    }
    data["drawings"] = [big | {"graph": g} for g in range(n)]
    for one in data["substructures"]:
        one["steps"] = [0] * len(big["attributions"])
    data["mistakes"] = [row["graph"] for row in data["graphs"] if not row["correct"]][-12:]
    return data


def test_page_of_large_data_stays_small(tmp_path):
    """Report data of five times 1.5 MB and more: drawings give way, those of mistakes last."""
    data = large_data()
    assert len(json.dumps(data)) > 1_500_000
    shown = make(tmp_path, *(write_run(tmp_path / str(i), data=data) for i in range(5)))
    assert len(shown.html.encode()) < report.LARGEST
    for run in map(str, range(5)):
        kept = shown.drawings[run]
        assert set(map(str, data["mistakes"])) <= set(kept)
        assert len(kept) < 1000
        assert len(shown.charted[f"map-{run}"]) == 1000


def test_too_much_for_one_page(monkeypatch, run, tmp_path):
    monkeypatch.setattr(report, "LARGEST", 900_000)
    with pytest.raises(StudyError, match="make several pages"):
        write_report([run, run], tmp_path / "report.html")


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00123, "1.2 ms"), (0.0456, "45.6 ms"), (0.9999, "1.00 s"), (1.236, "1.24 s"),
        (59.4, "59.4 s"), (173.1, "2 min 53 s"), (3599.7, "1 h 0 min"), (4321, "1 h 12 min"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert words.duration(seconds).replace(words.SPACE, " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"), (0.03268, "0.0327"), (12.44, "12.4"), (1530.4, "1530"), (-0.5, "−0.500"),
        (1e-8, "1.00e−08"), (100.0, "100"), (None, "–"),
    ],
)  # fmt: skip
def test_significant_digits(value, text):
    assert words.significant(value) == text


def test_other_numbers():
    assert words.power_of_ten(1e-3) == "10⁻³"
    assert words.power_of_ten(0.02) == "0.0200"
    assert plain(words.spread("accuracy", 0.88563, 0.0418)) == "88.56 ± 4.18"
    assert plain(words.spread("rmse", 0.88563, 0.0418)) == "0.886 ± 0.042"
    assert plain(words.spread("log_loss", 0.88563)) == "0.886"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed([]) == ""
    assert words.plural(1, "graph") == "1 graph"
    assert words.count(12345) == "12\N{NARROW NO-BREAK SPACE}345"


# ---------------------------------------------------------------------- the command


def command(capsys, monkeypatch, *arguments):
    from fdgnn.cli import main

    monkeypatch.setattr(sys, "argv", ["fdgnn", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    told = capsys.readouterr()
    return end.value.code or 0, told.out, told.err


def test_command_writes_a_page_and_says_where(capsys, monkeypatch, run, tmp_path):
    out = tmp_path / "page.html"
    code, _, err = command(capsys, monkeypatch, run, "-o", out, "--title", "Mine")
    assert code == 0
    assert f"written to {out}, " in err
    assert Page(out).text("h1") == "Mine"
    code, told, err = command(
        capsys, monkeypatch, run, "--out", out, "--quiet", "--json", "--force"
    )
    assert (code, err) == (0, "")
    assert json.loads(told) == {"output": str(out), "bytes": out.stat().st_size}


def test_command_shows_a_model_at_work(capsys, monkeypatch, tmp_path):
    from tu_files import write_batch

    graphs, y = make_motif_graphs(60, random_state=0)
    data = write_batch(tmp_path / "MOTIFS", graphs, y)
    model = FDGNNClassifier(n_units=5, probability=True, random_state=0).fit(graphs[:40], y[:40])
    save_model(model, tmp_path / "model.fdgnn")
    out = tmp_path / "page.html"
    code, _, err = command(
        capsys, monkeypatch, tmp_path / "model.fdgnn", "--data", data, "--held-out", "-o", out
    )
    assert code == 0, err
    shown = Page(out)
    assert shown.text("h1") == "FDGNN on MOTIFS"
    assert len(shown.charted["map-0"]) == 60
    right = int((model.predict(graphs) == y).sum())
    assert f"{60 - right} of 60 graphs have a wrong prediction" in shown.html
    assert "may have seen" not in shown.html
    row = shown.table("scores-accuracy")["MOTIFS"]
    balanced = balanced_accuracy_score(y, model.predict(graphs))
    assert row["balanced accuracy, %"] == f"{100 * balanced:.2f}"
    area = roc_auc_score(y, model.decision_function(graphs))
    assert float(row["ROC AUC, %"]) == pytest.approx(100 * area, abs=0.01)
    assert f"fdgnn report {tmp_path / 'model.fdgnn'} --data {data}" in shown.codes()[-1]


def test_command_on_graphs_of_which_some_cannot_be_used(capsys, monkeypatch, tmp_path):
    rows = [
        {"edge_index": [[0, 1], [1, 2]], "x": ["a", "b", "a"], "y": i / 10} for i in range(20)
    ] + [{"edge_index": [[0], [1]], "x": ["a", "new"], "y": 1.0}]
    table = tmp_path / "graphs.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows[:20]))
    from fdgnn import read_graphs

    read = read_graphs(table, target="y")
    model = FDGNNRegressor(n_units=5, handle_unknown="error", random_state=0)
    model.fit(read.graphs, read.y)
    save_model(model, tmp_path / "model.fdgnn")
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "page.html"
    given = [tmp_path / "model.fdgnn", "--data", table, "-o", out]
    code, _, err = command(capsys, monkeypatch, *given, "--target", "y")
    assert code == 0, err
    assert "1 of 21 rows left out" in err
    assert "1 of 21 rows left out" in Page(out).html
    assert len(Page(out).charted["map-0"]) == 20


def test_command_says_when_nothing_tells_right_from_wrong(capsys, monkeypatch, tmp_path, model):
    table = tmp_path / "graphs.jsonl"
    rows = [{"edge_index": [[0, 1, 2], [1, 2, 0]], "num_nodes": 3 + i, "y": i} for i in range(3)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = saved(tmp_path / "m.fdgnn")
    given = [path, "--data", table, "-o", tmp_path / "page.html"]
    code, _, err = command(capsys, monkeypatch, *given)
    assert code == 0, err
    assert "name the column with --target" in err
    code, _, err = command(capsys, monkeypatch, *given, "--target", "y", "--force")
    assert code == 0, err
    assert "name the column with --target" not in err


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["nowhere"], "no such run directory or model file"),
        (["nowhere", "--data", "MUTAG"], "no such run directory or model file"),
        (["{run}", "--data", "MUTAG"], "--data is for model files"),
        (["{run}", "-o", "{run}"], "is a directory"),
        (["{model}", "--data", "no such data"], "no such data"),
        (["{model}", "--target", "y", "--held-out"], "--target, --held-out: only useful with"),
        (["{run}", "-o", "/proc/page.html"], "/proc/page.html: the page cannot be written"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(
    capsys, monkeypatch, run, model, tmp_path, given, told
):
    monkeypatch.setenv("FDGNN_OFFLINE", "1")
    given = [word.format(run=run, model=model) for word in given]
    if "-o" not in given:
        given += ["-o", tmp_path / "page.html"]
    code, _, err = command(capsys, monkeypatch, *given)
    assert code == 1
    (line,) = [line for line in err.splitlines() if line.startswith("error:")]
    assert told in line


def test_source_can_be_made_in_code(tmp_path, run):
    (source,) = read_subject(run)
    assert isinstance(source, Subject)
    by_source = write_report(source, tmp_path / "a.html").read_bytes()
    assert by_source == write_report(str(run), tmp_path / "b.html").read_bytes()

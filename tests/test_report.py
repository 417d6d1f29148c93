"""The report page, without a browser; tests/browser opens it in one."""

from __future__ import annotations

import json
import os
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

import report_examples as examples
from fdgnn import FDGNNClassifier, FDGNNRegressor, paper, save_model
from fdgnn.datasets import make_motif_graphs
from fdgnn.evaluation.rundir import read_run
from fdgnn.evaluation.study import PROTOCOLS, plan
from fdgnn.exceptions import FDGNNWarning, MissingDependencyError, ModelFileError, StudyError
from fdgnn.html import charts, numbers
from fdgnn.html import report_page as page
from fdgnn.html.page import cache_vega_bundle, embedded_json, vega_bundle
from fdgnn.html.report import Subject, model_subject, read_subject, write_report
from fdgnn.html.search import summarize_search
from fdgnn.html.sections import selection
from report_examples import (
    HOSTILE,
    HOSTILE_END,
    HOSTILE_IMAGE,
    as_portrait,
    write_committee,
    write_run,
)

alt = pytest.importorskip("altair")
pytest.importorskip("vl_convert")


class Page(HTMLParser):
    """What a page says: elements, the text of each, and its data."""

    def __init__(self, path):
        super().__init__()
        self.html = path.read_text(encoding="utf-8")
        self.elements = []
        self._open = []
        self.feed(self.html)
        self.data = json.loads(self.text("script", id="page-data"))

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        element["inside"] = [e["id"] for e in self._open if "id" in e]
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

    def rows(self, figure):
        """Cells of the table behind a figure, row by row."""
        rows, cells = [], [e for e in self.elements if figure in e["inside"]]
        for cell in cells:
            if cell["tag"] == "tr":
                rows.append([])
            elif cell["tag"] in ("td", "th") and rows:
                rows[-1].append(cell["text"].strip())
        return rows


def make(tmp_path, *sources, **options):
    return Page(write_report(sources, tmp_path / "report.html", **options))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "mutag"
    return write_run(folder, portrait=examples.portrait_of(), rivals=examples.rivals_of())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    graphs, y = make_motif_graphs(40, random_state=0)
    path = tmp_path_factory.mktemp("models") / "motifs.fdgnn"
    save_model(FDGNNClassifier(n_units=5, random_state=0).fit(graphs, y), path, score=0.75)
    return path


@pytest.fixture(scope="module")
def whole(run, tmp_path_factory):
    return Page(write_report([run], tmp_path_factory.mktemp("page") / "report.html"))


# ---------------------------------------------------------------------- the examples are right


def test_examples_are_portraits():
    for portrait in (examples.portrait_of(), examples.regression_of(), examples.without_targets()):
        assert as_portrait(portrait).format == 3


# ---------------------------------------------------------------------- one file


def test_everything_is_inside_once(whole):
    for tag, name in (("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")):
        assert not [e for e in whole.all(tag) if name in e]
    assert all(e["href"].startswith("#") for e in whole.all("a"))
    style = whole.text("style")
    assert "url(" not in style
    assert "@import" not in style
    assert whole.html.count("window.vegaEmbed=") == 1
    assert len(whole.html.encode()) < page.LARGEST


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
    assert len(figures) == 23
    for figure in figures:
        (caption,) = [e for e in whole.all("p") if e.get("id") == f"{figure['id']}-caption"]
        assert len(caption["text"].split()) > 10
        assert len(whole.rows(figure["id"])) > 1, figure["id"]
        assert whole.text("h3", id=figure["aria-labelledby"])
    charts = [e for e in whole.all("div") if "data-chart" in e]
    assert {e["data-chart"] for e in charts} == set(whole.data["charts"])
    assert all(e["role"] == "img" and e["aria-label"] for e in charts)


def test_charts_are_what_vega_lite_understands(whole):
    import jsonschema
    from altair.utils.schemapi import validate_jsonschema

    schema = alt.load_schema()
    for chart in whole.data["charts"].values():
        assert chart["spec"]["width"] == "container"
        validate_jsonschema(chart["spec"], schema)
        assert set(chart["uses"]) <= set(whole.data["tables"])
    with pytest.raises(jsonschema.ValidationError, match="heigth"):
        validate_jsonschema(chart["spec"] | {"heigth": 200}, schema)


def test_no_chart_lets_altair_search_its_schema(run, tmp_path, monkeypatch):
    """It does for a channel that is no object, which takes longer than the rest of a chart."""

    def search(*_, **__):
        raise AssertionError("a channel is no object")

    monkeypatch.setattr(alt.SchemaBase, "from_dict", search)
    assert make(tmp_path, run).data["charts"]


def test_layers_are_those_of_altair():
    """To the last bit, but for the sizes and the style of a page."""
    rows, others = charts.base.inline([{"a": 1}]), charts.base.inline([{"a": 2}])
    first, same, other = (
        alt.Chart(data).mark_point().encode(x=alt.X("a:Q")) for data in (rows, rows, others)
    )
    hot = alt.param(name="hot", value=-1)
    for layers, params in (([first, same], {}), ([first, other], {"hot": -1})):
        expected = alt.layer(*layers)
        expected = (expected.add_params(hot) if params else expected).to_dict()
        spec = charts.base.finish_layers(layers, 200, **params)
        for name in ("width", "height", "autosize"):
            del spec[name]
        assert json.dumps(spec | {"config": expected["config"]}) == json.dumps(expected)


def test_contents_lead_to_the_sections(whole):
    sections = [e["id"] for e in whole.all("section")]
    assert sections == [
        "result", "selection", "dynamics", "data", "substructures", "errors", "trust", "rivals",
        "recipe",
    ]  # fmt: skip
    links = [e["href"] for e in whole.all("a") if "toc" not in e["inside"]]
    assert [f"#{name}" for name in sections] == [h for h in links if h != "#content"]


# ---------------------------------------------------------------------- the result


def test_result_says_how_it_compares(whole):
    caption = whole.text("p", id="folds-caption")
    assert f"87.5{numbers.SPACE}%" in caption
    assert f"within one standard deviation of the paper's 88.5{numbers.SPACE}%" in caption
    head, row = whole.rows("folds")
    cells = dict(zip(head, row, strict=True))
    assert cells["ours, %"] == numbers.spread(0.875, np.std([0.8, 0.9, 0.85, 0.95], ddof=1))
    assert cells["majority, %"] == "66.00"
    assert cells["WL ceiling, %"] == "99.00"
    assert [cells[f"fold {i}"] for i in range(1, 5)] == ["80.00", "90.00", "85.00", "95.00"]


def test_result_far_from_the_papers_is_not_called_near(tmp_path):
    folder = write_run(tmp_path / "run")
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"accuracy_mean": 0.8}))
    caption = make(tmp_path, folder).text("p", id="folds-caption")
    assert "8.5 points below the paper's" in caption


def test_table_1_has_every_published_row_beside_ours(tmp_path):
    runs = [write_run(tmp_path / name, name) for name in ("MUTAG", "COX2")]
    rows = make(tmp_path, *runs).rows("published")
    assert rows[0] == ["model", "from", "MUTAG, %", "COX2, %"]
    ours = numbers.spread(0.875, np.std([0.8, 0.9, 0.85, 0.95], ddof=1))
    assert rows[1] == ["FDGNN, ours", "this page", ours, ours]
    shown = {row[0]: row[2:] for row in rows[3:]}
    for model, cells in paper.ACCURACY.items():
        if "MUTAG" in cells or "COX2" in cells:
            expected = [
                numbers.published_spread(cells[d]) if d in cells else numbers.NONE
                for d in ("MUTAG", "COX2")
            ]
            assert shown.pop(model.replace("(L=1)", " (L=1)")) == expected
    assert not shown


def test_dataset_the_paper_does_not_have(tmp_path):
    shown = make(tmp_path, write_run(tmp_path / "mine", "my own graphs"))
    assert not shown.all("figure", id="published")
    assert "The paper has no row for this dataset." in shown.html
    assert shown.rows("seconds")[1][2] == numbers.NONE


def test_two_runs_of_one_dataset_are_told_apart(tmp_path):
    runs = [write_run(tmp_path / "first"), write_run(tmp_path / "second", seed=1)]
    shown = make(tmp_path, *runs)
    names = [row[0] for row in shown.rows("folds")[1:]]
    assert names == ["MUTAG (first)", "MUTAG (second)"]
    assert [e["text"] for e in shown.all("option")] == names
    ours = [row[0] for row in shown.rows("published")[1:5:2]]
    assert ours == [f"FDGNN, ours: {name}" for name in names]
    again = make(tmp_path, runs[0], runs[0])
    assert [row[0] for row in again.rows("folds")[1:]] == ["MUTAG (first) #1", "MUTAG (first) #2"]


# ---------------------------------------------------------------------- the selection


def test_test_scores_are_not_on_the_page(tmp_path):
    """Nothing may be chosen, or seem to be, by what the test folds say."""
    folder = write_run(tmp_path / "run")
    before = write_report(folder, tmp_path / "before.html").read_bytes()
    records = examples.records_of()
    for record in records:
        record["test"] = [[[0.123456789] * 3] * 4] * 2
    (folder / "records.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
    assert write_report(folder, tmp_path / "after.html").read_bytes() == before


def test_selection_sums_up_all_networks(tmp_path):
    folder = write_run(tmp_path / "run", n_configurations=6, n_guesses=4)
    source = read_subject(folder)
    validation = np.zeros((6, 4, 3))
    for record in examples.records_of(6, 4):
        own_depth = np.array(record["validation"][1])
        validation[record["configuration"], record["guess"]] = own_depth.mean(axis=0)
    np.testing.assert_allclose(source.search.validation, validation)
    for score in source.search.scores():
        guesses = validation[score.number].max(axis=1)  # each network at its own best penalty
        usual = np.bincount(validation[score.number].argmax(axis=1)).argmax()
        assert score.alpha == examples.ALPHAS[usual]
        expected = pytest.approx((guesses.mean(), guesses.min(), guesses.max()))
        assert (score.mean, score.low, score.high) == expected


def test_chosen_configurations_are_marked(run):
    source = read_subject(run)
    choices = selection.choices_of(source)
    assert sorted(choice.number for choice in choices) == [1, 1, 2, 5]
    assert [choice.alphas for choice in choices] == [{0.1}] * 4
    rows = {r["c"]: r["chosen"] for r in selection.rows_of(source.search, choices)}
    assert rows == {0: 0, 1: 2, 2: 1, 3: 0, 4: 0, 5: 1, 6: 0, 7: 0}


def test_networks_mark_the_penalties_they_took(tmp_path):
    run = write_run(tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    first, second, third = examples.ALPHAS
    result["fold_alphas"] = [[first, second, second]] * 2 + [[third] * 3] * 2
    (run / "result.json").write_text(json.dumps(result))
    source = read_subject(run)
    choices = selection.choices_of(source)
    rows = selection.rows_of(source.search, choices)
    assert {r["c"]: r["chosen"] for r in rows if r["chosen"]} == {1: 2, 2: 1, 5: 1}
    points = selection.penalty_rows(source.search, [r["c"] for r in rows], choices)
    marked = {(p["c"], p["power"]): p["chosen"] for p in points if p["chosen"]}
    power = {alpha: round(np.log10(alpha), 4) for alpha in examples.ALPHAS}
    assert marked == {
        (1, power[first]): 2, (1, power[second]): 2, (2, power[third]): 1, (5, power[third]): 1
    }  # fmt: skip
    (run / "result.json").write_text(json.dumps(result | {"fold_alphas": [[first]]}))
    with pytest.raises(StudyError, match="4 fold_accuracies, but 1 fold_alphas"):
        read_subject(run)


def test_unfinished_runs_draw_the_same_configurations(tmp_path):
    graphs, y = make_motif_graphs(60, random_state=0)
    study = plan("motifs", graphs, y, PROTOCOLS["quick"], n_configurations=5, seed=7)
    folder = write_run(tmp_path / "run", n_configurations=5, finished=False)
    settings = examples.settings_of(seed=7) | {"max_layers": study.protocol.max_layers}
    (folder / "settings.json").write_text(json.dumps(settings))
    found = summarize_search(read_run(folder))
    assert found.configurations == study.configurations()


def test_unfinished_run_with_a_torn_line(tmp_path):
    folder = write_run(tmp_path / "run", finished=False)
    with (folder / "records.jsonl").open("a") as file:
        file.write('{"configuration": 1, "gue')
    shown = make(tmp_path, folder)
    assert "24 networks scored so far" in shown.html
    assert "1 line of the records could not be read" in shown.html
    assert not shown.all("figure", id="folds")
    assert len(shown.rows("search-0")) == 1 + 8


@pytest.mark.parametrize(
    "line",
    [
        "[]", "null", "{}", '{"configuration": -1}', "not JSON", "",
        json.dumps(examples.records_of()[0] | {"configuration": 10**9}),
        json.dumps(examples.records_of()[0] | {"configuration": 1e400}),
        json.dumps(examples.records_of()[0] | {"validation": [[0.5, 0.5]]}),
        json.dumps(examples.records_of()[0] | {"validation": [[[0.5, None, 0.5]]]}),
        json.dumps(examples.records_of()[0] | {"seconds": "long"}),
    ],
)  # fmt: skip
def test_damaged_records_do_not_count(tmp_path, line):
    folder = write_run(tmp_path / "run", n_guesses=1)
    with (folder / "records.jsonl").open("a") as file:
        file.write(line + "\n")
    search = read_subject(folder).search
    assert (search.n_estimators, search.n_unreadable) == (8, 1)


def test_run_without_any_record(tmp_path):
    folder = write_run(tmp_path / "run", finished=False)
    (folder / "records.jsonl").unlink()
    assert "No network is scored yet." in make(tmp_path, folder).html


# ---------------------------------------------------------------------- portraits


def test_run_without_portrait_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = write_run(tmp_path / "runs" / "example")
    shown = make(tmp_path, run)
    assert not shown.all("figure", id="map-0")
    commands = [e["text"] for e in shown.all("code")]
    assert commands == ["fdgnn evaluate MUTAG --out runs/example"] * 4
    moved = run.rename(tmp_path / "moved away")
    commands = [e["text"] for e in make(tmp_path, moved).all("code")]
    assert commands[:3] == [f"fdgnn evaluate MUTAG --out '{moved}'"] * 3
    assert commands[3:] == ["fdgnn evaluate MUTAG --out runs/example"]  # as it was made


def test_unfinished_run_tells_the_command_it_was_asked_for(tmp_path):
    run = tmp_path / "run"
    command = f"fdgnn evaluate data/MUTAG --protocol quick --initializations 5 --out {run}"
    asked = {"command": command, "protocol": "quick", "n_configurations": 8, "n_guesses": 5}
    shown = make(tmp_path, write_run(run, finished=False, asked=asked))
    assert [e["text"] for e in shown.all("code")] == [command] * 5
    assert "24 of 40 networks scored so far. To continue:" in shown.html


@pytest.mark.parametrize("asked", [None, {"command": None}])
def test_command_that_nobody_wrote_down_is_not_made_up(tmp_path, asked):
    shown = make(tmp_path, write_run(tmp_path / "run", finished=False, asked=asked))
    assert not shown.all("code")
    assert f"Its directory (--out) is {tmp_path / 'run'}." in shown.html
    assert "Its files do not say with which command it was made." in shown.html


def test_map_and_drawings_are_the_portraits(whole):
    portrait = examples.portrait_of()
    table = whole.data["tables"]["graphs-0"]
    rows = [dict(zip(table["fields"], row, strict=True)) for row in table["rows"]]
    assert {r["graph"] for r in rows if r["answer"] == "wrong"} == set(portrait["mistakes"])
    by_graph = {r["graph"]: r for r in rows}
    for g in portrait["graphs"]:
        row = by_graph[g["graph"]]
        assert (row["actual"], row["predicted"]) == (g["actual"], g["predicted"])
        assert row["key"] == f"c{portrait['classes'].index(g['actual'])}"
        assert row["fold"] == g["fold"]
    assert whole.data["drawings"]["0"] == {str(d["graph"]): d for d in portrait["drawings"]}


def test_confusion_and_calibration(whole):
    text = whole.text("p", id="confusion-0-caption")
    assert text.startswith(f"5 of 30 graphs are predicted wrongly, 16.7{numbers.SPACE}%.")
    assert whole.rows("confusion-0")[1] == ["actual", "-1", "1"]
    cells = [int(e["text"]) for e in whole.all("b") if "confusion-0" in e["inside"]]
    assert cells == [n for row in examples.portrait_of()["confusion"] for n in row]
    assert f"stated 60.0{numbers.SPACE}%" not in whole.text("p", id="calibration-0-caption")
    shares = [numbers.percent(0.6), numbers.percent(0.5)]
    assert whole.rows("calibration-0")[1][1:] == ["10", *shares, "23.7 to 76.3", "0.53"]


def test_regression(tmp_path, model):
    source = model_subject(model, as_portrait(examples.regression_of()))
    shown = make(tmp_path, source)
    assert "R² is 0.810" in shown.text("p", id="predictions-0-caption")
    assert shown.all("figure", id="targets-0")
    assert not shown.all("figure", id="confusion-0")
    assert "A prediction is off by 0.300 on average." in shown.html
    error = numbers.significant(0.3)
    assert all(row[3] == error for row in shown.rows("predictions-0")[1:])


def test_graphs_without_known_answers(tmp_path, model):
    shown = make(tmp_path, model_subject(model, as_portrait(examples.without_targets())))
    assert "no known answers" in shown.html
    assert not shown.all("figure", id="confusion-0")
    table = shown.data["tables"]["graphs-0"]
    assert len(table["rows"]) == 30


def saved(path, *, regression=False, score=None, from_fit=False):
    """A model file, as code or as ``fdgnn fit`` writes it."""
    graphs, y = make_motif_graphs(40, random_state=0)
    kind = FDGNNRegressor if regression else FDGNNClassifier
    fitted = kind(n_units=5, random_state=0).fit(graphs, y)
    save_model(fitted, path, score=score, nested=from_fit)
    return path


def card_of(shown):
    """Value, what it is, and warnings of the only card."""
    texts = {e.get("class"): e["text"].strip() for e in shown.all("p")}
    return texts["value"], texts["small"], texts.get("warning", "")


def small_texts(shown):
    return [e["text"].strip() for e in shown.all("p") if e.get("class") == "small"]


def test_score_on_graphs_seen_in_training_is_never_the_headline(tmp_path):
    path = saved(tmp_path / "m.fdgnn", score=0.75, from_fit=True)
    seen = examples.portrait_of() | {"held_out": False}
    shown = make(tmp_path, model_subject(path, as_portrait(seen)))
    value, _, warning = card_of(shown)
    assert value == f"75.0{numbers.SPACE}%"
    assert small_texts(shown)[0] == "accuracy, nested cross-validation, saved with the model"
    assert warning.startswith(f"Here it is right in 83.3{numbers.SPACE}% of the cases, but it may")
    assert not shown.all("figure", id="folds")
    alone = make(tmp_path, path)
    assert card_of(alone)[0] == f"75.0{numbers.SPACE}%"
    assert "nested cross-validation" in small_texts(alone)[0]


def test_score_of_unknown_origin_is_not_called_nested(tmp_path):
    path = saved(tmp_path / "m.fdgnn", score=0.75)
    seen = examples.portrait_of() | {"held_out": False}
    for source in (path, model_subject(path, as_portrait(seen))):
        shown = make(tmp_path, source)
        assert "nested" not in " ".join(small_texts(shown))
        assert "as measured by whoever made it" in small_texts(shown)[0]


def test_model_without_any_honest_score_has_no_headline(tmp_path):
    path = saved(tmp_path / "m.fdgnn")
    shown = make(
        tmp_path, model_subject(path, as_portrait(examples.portrait_of() | {"held_out": False}))
    )
    assert card_of(shown)[0] == numbers.NONE
    assert small_texts(shown)[0] == "accuracy on unseen graphs is not known"


def test_regression_on_graphs_seen_in_training(tmp_path):
    path = saved(tmp_path / "m.fdgnn", regression=True, score=0.5, from_fit=True)
    shown = make(
        tmp_path, model_subject(path, as_portrait(examples.regression_of() | {"held_out": False}))
    )
    value, _, warning = card_of(shown)
    assert value == "0.500"
    assert "R² is 0.810" in warning
    held_out = make(tmp_path, model_subject(path, as_portrait(examples.regression_of())))
    assert card_of(held_out)[0] == "0.810"
    assert "In its training: 0.500 (nested cross-validation" in " ".join(small_texts(held_out))


def test_graphs_held_out_are_the_headline(tmp_path, model):
    shown = make(tmp_path, model_subject(model, as_portrait(examples.portrait_of())))
    value, _, warning = card_of(shown)
    assert value == f"83.3{numbers.SPACE}%"
    assert warning == ""
    assert shown.all("figure", id="folds")


def test_papers_rows_are_for_evaluations_of_its_graphs_only(tmp_path, model):
    """Neither for a model on MUTAG, nor for a file that is merely called so."""
    of_a_model = make(tmp_path, model_subject(model, as_portrait(examples.portrait_of("MUTAG"))))
    run = write_run(tmp_path / "run", "MUTAG")
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"n_graphs": 20}))
    of_others = make(tmp_path, run)
    assert "MUTAG has 188 graphs and this one 20" in of_others.html
    for shown in (of_a_model, of_others):
        assert not shown.all("figure", id="published")
        assert "the paper's 88.5" not in shown.html
    assert of_others.rows("depths")[1][-1] == numbers.NONE
    assert of_others.rows("seconds")[1][2] == numbers.NONE


def values_of(spec, part):
    """Rows that a chart, or a layer of it, is drawn from."""
    return spec["datasets"][part["data"]["name"]]


def with_layers(**layer):
    portrait = examples.portrait_of()
    for one in portrait["dynamics"]["layers"]:
        one |= layer
    return portrait


def test_certificates_are_of_absolute_weights(tmp_path):
    portrait = with_layers(absolute_radius=0.6)
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    head, first, _ = shown.rows("stability-0")
    cells = dict(zip(head, first, strict=True))
    assert cells["ρ(|W_H|)"] == "0.600"
    radii = portrait["dynamics"]["radii"]
    assert int(cells["below 1"]) == sum(0.6 * r < 1 for r in radii)
    assert float(cells["largest"]) == pytest.approx(0.6 * max(radii), rel=1e-2)
    assert "ρ(|W_H|) ρ(|A|) &lt; 1" in shown.html


def other_encoder():
    """The portrait of a model with an encoder that is no reservoir."""
    portrait = examples.portrait_of() | {"dynamics": None}
    portrait["shown"] |= {"encoder": "Degrees", "name": ""}
    return portrait | {"settings": {"encoder": "Degrees(n_bins=8)", "alpha": 0.1}}


def test_encoder_that_is_no_reservoir_has_no_dynamics(tmp_path, model):
    for subject in (
        model_subject(model, as_portrait(other_encoder())),
        write_run(tmp_path / "run", portrait=other_encoder()),
    ):
        shown = make(tmp_path, subject)
        assert not shown.all("section", id="dynamics")
        assert "#dynamics" not in [e.get("href") for e in shown.all("a")]
        assert not shown.all("figure", id="convergence-0")
        assert not shown.all("figure", id="stability-0")
        assert "outer fold 3 is shown: Degrees, the" in shown.text("p", id="map-0-caption")
        assert len(shown.rows("confusion-0")) > 1


# ---------------------------------------------------------------------- trust


def plain_spaces(text):
    return text.replace(numbers.SPACE, " ")


def told_rows(page, figure):
    return [[plain_spaces(cell) for cell in row] for row in page.rows(figure)]


def test_sets_and_graphs_unlike_the_training_are_told(whole):
    caption = plain_spaces(whole.text("p", id="coverage-0-caption"))
    assert "the share of 188 graphs that is covered at 95 % varies by about 1.6 points" in caption
    assert caption.endswith("A set for 95 % has 1.40 classes on average.")
    assert told_rows(whole, "coverage-0") == [
        ["asked for", "covered", "classes", "empty sets"],
        ["80 %", "81.0 %", "0.900", "12.0 %"],
        ["95 %", "94.7 %", "1.40", "0.0 %"],
    ]
    caption = plain_spaces(whole.text("p", id="unlike-0-caption"))
    assert caption.startswith("2 of 188 graphs, 1.1 %, are unlike the training graphs")
    assert "The most unlike is graph 3: 44 % of the surroundings of its vertices are" in caption
    assert caption.endswith("Of these graphs 50.0 % are predicted wrongly, of the others 12.5 %.")
    head, first, second = told_rows(whole, "unlike-0")
    assert (head[-1], first[:2], first[-1]) == ("novelty", ["3", "g3"], "44 %")
    assert second == ["37", "not on the map", numbers.NONE, numbers.NONE, "40 %"]


def test_intervals_are_told(tmp_path, model):
    shown = make(tmp_path, model_subject(model, as_portrait(examples.regression_of())))
    assert told_rows(shown, "coverage-0")[1] == ["90 %", "91.0 %", "2.50"]
    caption = plain_spaces(shown.text("p", id="coverage-0-caption"))
    assert caption.endswith("An interval for 90 % is 2.50 wide.")
    assert "mean absolute error of these graphs is 1.50" in shown.text("p", id="unlike-0-caption")


def test_without_new_graphs_there_is_nothing_to_trust(tmp_path, model):
    portrait = examples.portrait_of()
    del portrait["trust"]
    shown = make(tmp_path, model_subject(model, as_portrait(portrait)))
    assert not shown.all("section", id="trust")


# ---------------------------------------------------------------------- substructures, networks


def test_substructures_are_drawn_and_told(whole):
    cards = [e for e in whole.all("div") if "data-steps" in e]
    shown = [one for one in examples.portrait_of()["substructures"] if one["weight"] > 0]
    assert [int(e["data-graph"]) for e in cards] == [one["graph"] for one in shown]
    for card, one in zip(cards, shown, strict=True):
        assert [int(step) for step in card["data-steps"].split()] == one["steps"]
        assert int(card["data-radius"]) == one["radius"]
        assert card["data-graph"] in whole.data["drawings"]["0"]
    titles = [e["text"] for e in whole.all("h3") if e.get("id", "").startswith("substructures")]
    assert titles == ["What speaks for class -1", "What speaks for class 1"]
    caption = whole.text("p", id="substructures-0-0-caption")
    assert "C, next to 2 × N. It is in 12 of 30 graphs" in caption
    head, first, second = whole.rows("substructures-0-0")
    assert dict(zip(head, first, strict=True))["mean over all graphs"] == "+0.10"
    assert second[0] == "O"
    assert second[1] == f"{numbers.MINUS}0.050"
    (section,) = whole.all("section", id="substructures")
    assert "speaks against the other" in section["text"]
    assert "The reservoir has no WL labels" in section["text"]


def test_a_regression_is_raised_and_lowered(tmp_path, model):
    portrait = examples.regression_of()
    shown = make(tmp_path, model_subject(model, as_portrait(portrait)))
    titles = [e["text"] for e in shown.all("h3") if e.get("id", "").startswith("substructures")]
    assert titles == ["What raises the value", "What lowers the value"]
    assert "where it adds 0.25" in shown.html
    assert "where it takes 0.10" in shown.html


def test_a_substructure_whose_example_is_too_large_is_told_but_not_drawn(tmp_path, model):
    portrait = examples.portrait_of()
    portrait["substructures"][0] |= {"steps": [], "graph": 29}
    portrait["drawings"] = portrait["drawings"][:-1]
    shown = make(tmp_path, model_subject(model, as_portrait(portrait)))
    (card,) = [e for e in shown.all("div") if e.get("data-steps") == ""]
    assert card["data-graph"] == "29"


def test_without_substructures_there_is_no_section(tmp_path, model):
    portrait = examples.portrait_of() | {"substructures": [], "base_models": []}
    shown = make(tmp_path, model_subject(model, as_portrait(portrait)))
    assert not shown.all("section", id="substructures")
    assert "Base models" not in [e["text"] for e in shown.all("h3")]


def test_base_models_are_listed_and_the_shown_ones_named(whole):
    cells = [
        e["text"].strip() for e in whole.all("th") + whole.all("td") if "recipe" in e["inside"]
    ]
    assert {"WL, 2 iterations", "reservoir × 2", "WLCounts", "RBF"} <= set(cells)
    assert "Outputs of all of them are averaged." in whole.text("section", id="recipe")
    assert "this one is shown: WL, 2 iterations (WLC" in whole.text("p", id="map-0-caption")
    dynamics = whole.text("section", id="dynamics")
    assert "models of outer fold 3, this one is shown: reservoir (2 layers," in dynamics


def test_a_portrait_without_what_has_defaults_is_read(tmp_path, model):
    portrait = examples.portrait_of()
    for name in ("substructures", "base_models", "dynamics_of"):
        del portrait[name]
    del portrait["shown"]["name"]
    shown = make(tmp_path, model_subject(model, as_portrait(portrait)))
    assert not shown.all("section", id="substructures")
    assert shown.all("section", id="dynamics")


def test_search_over_other_hyper_parameters(tmp_path):
    run = write_run(tmp_path / "run", portrait=other_encoder())
    result = json.loads((run / "result.json").read_text())
    for configurations in (result["configurations"], result["fold_configurations"]):
        for i, configuration in enumerate(configurations):
            configurations[i] = {"n_bins": 4 + i, "random_state": configuration["random_state"]}
    (run / "result.json").write_text(json.dumps(result))
    shown = make(tmp_path, run)
    charts = [name for name in shown.data["charts"] if name.endswith("-0") and "rho" in name]
    assert charts == []
    assert "lambda-0" in shown.data["charts"]
    assert "best have" not in shown.text("p", id="search-0-caption")


def test_which_model_is_shown(tmp_path, model):
    portrait = examples.portrait_of()
    portrait |= {"shown": portrait["dynamics_of"] | {"name": ""}, "dynamics_of": None}
    whole = make(tmp_path, model_subject(model, as_portrait(portrait)))
    text = "The model of outer fold 3 is shown: 2 layers, effective spectral radius 0.900"
    assert whole.html.count(f"{text}, the configuration that 2 of 4 outer folds chose.") == 2


def test_layers_with_equal_weights_share_a_row(tmp_path):
    portrait = examples.portrait_of()
    layer = portrait["dynamics"]["layers"][0] | {"absolute_radius": 0.3123456}  # many digits
    portrait["dynamics"]["layers"] = [layer | {"layer": i} for i in (1, 2, 3)]
    portrait["dynamics"]["layers"].append(layer | {"layer": 4, "absolute_radius": 0.1})
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    spec = shown.data["charts"]["stability-0"]["spec"]
    points = values_of(spec, spec["layer"][-1])
    assert {r["layer"] for r in points} == {"layers 1 to 3", "layer 4"}
    assert "layers 1 to 3 and layer 4" in shown.text("p", id="stability-0-caption")
    # Where the region is cut off at the top of the chart there is no border.
    top = spec["layer"][1]["encoding"]["y"]["scale"]["domain"][1]
    edge = values_of(spec, spec["layer"][1])
    assert edge
    assert all(r["weight"] < top for r in edge)
    assert all(r["weight"] * r["radius"] == pytest.approx(1, abs=1e-3) for r in edge)


def test_part_of_the_graphs_is_not_called_all(whole):
    part = "30 of the 188 graphs"
    for figure in ("iterations-0", "stability-0"):
        assert part in whole.text("p", id=f"{figure}-caption")
    assert "The numbers here are for 30 of the 188 graphs." in whole.html


def test_all_graphs_are_called_all(tmp_path):
    portrait = examples.portrait_of(n=188)
    for layer in portrait["dynamics"]["layers"]:
        layer |= {"certified": 188, "uncertified": 0}
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    assert "In every layer all 188 graphs are certified" in shown.html
    assert "Of all 188 graphs, none was still moving there" in shown.html


def test_captions_of_the_data_say_what_is_true(tmp_path):
    portrait = examples.portrait_of()
    portrait["data"] |= {
        "vertices_range": [3, 1234], "max_degree": 77,
        "degrees": {"labels": ["1", "2", "64-80"], "counts": [40, 35, 25]},
    }  # fmt: skip
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    sizes, degrees = (shown.text("p", id=f"{f}-0-caption") for f in ("sizes", "degrees"))
    assert sizes.startswith(f"Graphs have 3 to {numbers.count(1234)} vertices.")
    assert degrees.startswith(
        f"40.0{numbers.SPACE}% of the vertices have 1 neighbor, the most common number; the "
        "largest neighborhood has 77."
    )
    assert "more than half" in make(
        tmp_path, write_run(tmp_path / "b", portrait=examples.portrait_of())
    ).text("p", id="degrees-0-caption")


def test_demonstration_names_no_directory_that_is_gone(tmp_path):
    run = write_run(tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(result | {"command": "fdgnn demo --report x.html"}))
    write_run(run, portrait=examples.portrait_of(), finished=False)
    shown = make(tmp_path, run)
    assert str(run) not in shown.html
    assert "From fdgnn demo; 188 graphs." in shown.html


def test_equal_folds_make_one_larger_point(tmp_path):
    run = write_run(tmp_path / "run")
    result = json.loads((run / "result.json").read_text())
    folds = {"fold_accuracies": [0.9, 0.8, 0.9, 0.9]}
    (run / "result.json").write_text(json.dumps(result | folds))
    spec = make(tmp_path, run).data["charts"]["folds"]["spec"]
    (rows,) = spec["datasets"].values()
    found = {(r["words"], r["folds"]) for r in rows if r["what"] == "fold"}
    assert found == {("folds 1, 3 and 4", 3), ("fold 2", 1)}


def test_published_models_are_counted_without_the_papers_own(tmp_path):
    text = make(tmp_path, write_run(tmp_path / "run")).text("p", id="published-caption")
    others = [m for m, cells in paper.ACCURACY.items() if "MUTAG" in cells and "FDGNN" not in m]
    better = sum(paper.ACCURACY[m]["MUTAG"].mean > 87.5 for m in others)
    assert f"a higher mean than ours: {better} of {len(others)} on MUTAG." in text
    assert "The paper's own FDGNN is higher on MUTAG." in text


def test_ties_are_told(tmp_path):
    portrait = examples.portrait_of() | {"confusion": [[10, 5], [5, 10]]}
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    assert "The most common mistakes, 5 times each" in shown.text("p", id="confusion-0-caption")
    assert "The largest classes, -1 and 1, have" in shown.text("p", id="classes-0-caption")


def test_states_that_do_not_come_to_rest_are_counted(tmp_path):
    portrait = examples.portrait_of()
    portrait["dynamics"]["curves"][0]["residuals"] = [2.0, 1.9, 1.8]
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    assert "Of these graphs 1 still moves where a curve ends." in shown.html


def test_chance_is_judged_exactly(tmp_path):
    # Thirty graphs that are all right at a stated 95.7 % are no surprise; at 70 % they are.
    for stated, told in [(0.957, "No group is further"), (0.7, "Off by more than chance: the 30")]:
        portrait = examples.portrait_of()
        only = {"start": 0.6, "stop": 1.0, "n": 30, "probability": stated, "accuracy": 1.0}
        portrait["calibration"]["bins"] = [only]
        shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
        assert told in shown.text("p", id="calibration-0-caption")


def test_classes_look_alike_in_all_figures(tmp_path):
    classes = tuple("abcdefghij")
    portrait = examples.portrait_of(classes=classes)
    portrait["data"]["sizes"]["classes"].reverse()
    portrait["data"]["class_counts"].reverse()
    shown = make(tmp_path, write_run(tmp_path / "run", portrait=portrait))
    assert shown.rows("sizes-0")[0][1:] == [f"class {c}" for c in classes]
    assert [row[0] for row in shown.rows("classes-0")[1:]] == list(classes)
    for chart, name in (("sizes-0", "kind"), ("classes-0", "name")):
        spec = shown.data["charts"][chart]["spec"]
        rows = values_of(spec, spec)
        assert {(r[name], r["look"]) for r in rows} == {(c, f"c{i}") for i, c in enumerate(classes)}
    points = shown.data["charts"]["map-0"]["spec"]["layer"][0]["encoding"]
    looks = list(
        zip(points["color"]["scale"]["range"], points["shape"]["scale"]["range"], strict=False)
    )
    assert len(set(looks[:10])) == 10


def test_portrait_of_other_graphs_is_refused(tmp_path):
    run = write_run(tmp_path / "run", portrait=examples.portrait_of("COX2"))
    with pytest.raises(StudyError, match=r"portrait\.json: it shows 467 graphs of COX2, but"):
        read_subject(run)
    portrait = examples.portrait_of()
    portrait["data"]["n_graphs"] = 187
    with pytest.raises(StudyError, match="the run has 188 of MUTAG"):
        read_subject(write_run(tmp_path / "run", portrait=portrait))


def test_classes_that_the_model_does_not_know(tmp_path, model):
    portrait = examples.portrait_of(classes=("0", "1", "new"))
    shown = make(tmp_path, model_subject(model, as_portrait(portrait), ["2 of 9 rows left out."]))
    told = "The model does not know the class new: it cannot be right about the 10 graphs"
    assert f"{told} that have it." in shown.html
    assert shown.html.count("2 of 9 rows left out.") == 2  # beside the result, and the data
    portrait["data"]["class_counts"][-1][1] = 1600
    (note,) = model_subject(model, as_portrait(portrait)).notes
    assert "the 1600 graphs that have it" in note  # a terminal shows it, too


def test_words_of_a_regression(tmp_path):
    path = saved(tmp_path / "m.fdgnn", regression=True)
    shown = make(tmp_path, model_subject(path, as_portrait(examples.regression_of())))
    assert "raises the value" in shown.html
    assert "speaks for the prediction" not in shown.html
    assert "the configuration and penalty with the best validation accuracy" not in shown.html
    assert "whether it knew" not in shown.html


def test_model_file_alone(tmp_path, model):
    shown = make(tmp_path, model)
    assert f"75.0{numbers.SPACE}%" in shown.html
    assert "FDGNNClassifier" in shown.html
    assert f"fdgnn report {model} --data FILE" in [
        e["text"].split(" --target")[0] for e in shown.all("code")
    ]


# ---------------------------------------------------------------------- rivals


def test_rivals_and_those_that_did_not_finish(whole):
    head, *rows = whole.rows("rivals-0-0")
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    wl = table["Weisfeiler-Lehman kernel, SVC"]
    assert wl["times FDGNN's"] == numbers.times(20)
    assert wl["published, %"] == "84.11"
    assert wl["parameters"] == numbers.count(3210)
    rw = table["Random walk kernel, SVC"]
    assert rw["state"] == "out of time: no result after 600 s"
    assert rw["accuracy, %"] == numbers.NONE
    caption = whole.text("p", id="rivals-0-0-caption")
    assert "No rival has a higher mean than FDGNN." in caption
    assert "Random walk kernel, SVC (out of time)" in caption
    assert wl["FDGNN better, equal, worse"] == "0, 2, 0"


def test_variants_of_ours_are_no_rivals(tmp_path):
    ours, *others = examples.rivals_of()
    auto = {"model": "fdgnn-auto", "title": "FDGNN auto", "accuracy_mean": 0.9,
            "train_seconds": 0.04}  # fmt: skip
    (tmp_path / "compare.json").write_text(json.dumps([ours, ours | auto, *others]))
    shown = make(tmp_path, tmp_path)
    head, *rows = shown.rows("rivals-0-0")
    table = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert table["FDGNN auto"]["times FDGNN's"] == numbers.times(10)
    caption = shown.text("p", id="rivals-0-0-caption")
    assert "FDGNN auto has a higher mean than the paper's FDGNN." in caption
    assert "selects while it trains" in shown.text("p", id="rival-seconds-0-0-caption")
    assert "FDGNN and its variants" in shown.text("figure", id="rivals-0-0")


def test_comparison_of_which_nothing_finished(tmp_path):
    rows = [r for r in examples.rivals_of() if r["status"] != "finished"]
    (tmp_path / "compare.json").write_text(json.dumps(rows))
    shown = make(tmp_path, tmp_path)
    assert "No model has finished" in shown.text("p", id="rivals-0-0-caption")


# ---------------------------------------------------------------------- strangers' text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    portrait = examples.portrait_of(
        HOSTILE,
        classes=(HOSTILE, HOSTILE_IMAGE),
        labels=(HOSTILE, HOSTILE_END, "C"),
        smiles=HOSTILE_END,
        id_text=HOSTILE_IMAGE,
    )
    portrait["how"] = HOSTILE_END
    run = write_run(
        folder / "run", HOSTILE, portrait=portrait, rivals=examples.rivals_of(HOSTILE, HOSTILE_END)
    )
    result = json.loads((run / "result.json").read_text())
    result |= {"command": HOSTILE, "versions": {HOSTILE: HOSTILE}, "machine": {"cpu": HOSTILE_END}}
    (run / "result.json").write_text(json.dumps(result))
    return Page(write_report([run], folder / "report.html", title=HOSTILE_IMAGE))


def test_strangers_text_stays_text(hostile):
    assert len(hostile.all("script")) == 4
    assert not hostile.all("img")
    assert hostile.text("h1") == HOSTILE_IMAGE
    assert HOSTILE in [e["text"] for e in hostile.all("code")]
    for text in (HOSTILE, HOSTILE_IMAGE, HOSTILE_END):
        assert text not in hostile.html
    assert "\u2028" not in hostile.text("script", id="page-data")
    assert hostile.data["drawings"]["0"]["0"]["labels"][1] == HOSTILE_END


def test_strangers_text_is_never_code_for_vega(hostile):
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

    for chart in hostile.data["charts"].values():
        walk(chart["spec"])


def test_embedded_json_survives_anything():
    text = embedded_json({"a": "</script><!-- & \u2028\u2029 \ud800 é"})
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028\u2029 \ud800 é"}
    with pytest.raises(ValueError):
        embedded_json(float("nan"))


def test_bytes_that_are_no_text_do_not_stop_the_page(tmp_path):
    run = write_run(tmp_path / "a \udcff b")
    assert f"From {tmp_path}/a ? b; 188 graphs." in make(tmp_path, run).html


# ---------------------------------------------------------------------- committees


@pytest.fixture(scope="module")
def committee(tmp_path_factory):
    folder = tmp_path_factory.mktemp("committees") / "auto"
    return write_committee(folder, portrait=examples.portrait_of())


@pytest.fixture(scope="module")
def committee_page(committee, tmp_path_factory):
    return Page(write_report([committee], tmp_path_factory.mktemp("page") / "report.html"))


def section_ids(page):
    return [e["id"] for e in page.all("section")]


def test_page_of_a_committee_has_all_that_a_models_page_has(committee_page):
    wanted = "result selection dynamics data substructures errors trust recipe"
    assert section_ids(committee_page) == wanted.split()
    figures = {e["id"] for e in committee_page.all("figure")}
    assert {"folds", "published", "members-0", "map-0", "confusion-0", "mistakes-0"} <= figures
    assert not {"depths", "seconds"} & figures  # a committee has neither
    assert committee_page.data["drawings"]["0"]


def test_result_of_a_committee_beside_the_papers(committee_page):
    text = committee_page.text("section", id="result")
    assert "90.0\xa0%" in text
    assert "mean of 4 outer folds with the model auto" in text
    assert "Within one standard deviation of the paper's 88.5\xa0%." in text
    assert "With all classes counting alike, the accuracy is 87.5\xa0%." in text
    head, row = committee_page.rows("folds")
    cells = dict(zip(head, row, strict=True))
    assert cells["ours, %"] == "90.00\xa0±\xa04.08"
    assert (cells["balanced, %"], cells["paper, %"]) == ("87.50", "88.51\xa0±\xa03.77")
    assert [cells[f"fold {i}"] for i in (1, 2, 3, 4)] == ["90.00", "95.00", "85.00", "90.00"]
    ours = [row for row in committee_page.rows("published") if "ours" in row[0]]
    assert ours == [["FDGNN auto, ours", "this page", "90.00\xa0±\xa04.08"]]


def test_members_of_a_committee_are_listed_with_how_often_they_count(committee_page):
    head, *rows = committee_page.rows("members-0")
    assert head == ["model", "λ (outer folds)", "accuracy, %", "averaged in", "time"]
    assert rows == [
        ["WL, 2 iterations", "0.1\xa0(3), 10\xa0(1)", "89.00", "4 of 4", "1.50\xa0s"],
        ["reservoir", "0.001\xa0(4)", "86.00", "3 of 4", "250\xa0ms"],
        ["another reservoir", "10\xa0(4)", "61.00", "0 of 4", "250\xa0ms"],
        ["average", "", "90.00\xa0±\xa04.08", "", "2.00\xa0s"],
    ]
    caption = committee_page.text("p", id="members-0-caption")
    assert "1.0 points above the model that turns out to be the best alone" in caption
    assert "Averaged in all 4 outer folds: WL, 2 iterations." in caption
    assert "Never averaged: another reservoir." in caption
    (values,) = committee_page.data["charts"]["members-0"]["spec"]["datasets"].values()
    drawn = [(v["row"], v["what"], v["value"]) for v in values]
    assert drawn[0] == ("average", "average", 90.0)
    assert drawn[-1] == ("another reservoir", "left out", 61.0)
    selection = committee_page.text("section", id="selection")
    assert "The test graphs play no part in either choice." in selection
    assert "configuration with the best validation accuracy" not in selection


def test_recipe_of_a_committee(committee_page):
    text = committee_page.text("section", id="recipe")
    for word in ("0123456789abcdef", "all models and folds, on one core", "2.00\xa0s", "auto"):
        assert word in text
    assert "fdgnn evaluate MUTAG --model auto --out runs/example" in text


def test_committees_runs_and_models_on_one_page(tmp_path, committee, run, model):
    page = make(tmp_path, committee, run, model)
    names = [e["text"] for e in page.all("option")][:3]
    assert names == ["MUTAG (auto)", "MUTAG (mutag)", "motifs"]
    ours = [row[0] for row in page.rows("published") if "ours" in row[0]]
    assert ours == ["FDGNN auto, ours", "FDGNN, ours", "FDGNN (L=1), ours"]
    assert "All that the paper has a row for" not in page.text("p", id="folds-caption")
    figures = {e["id"] for e in page.all("figure")}
    assert {"members-0", "search-1", "depths", "seconds"} <= figures
    selection = page.text("section", id="selection")
    assert "The test graphs play no part in either choice." in selection
    assert "configuration with the best validation accuracy" in selection
    head, first, second = page.rows("folds")[:3]
    place = head.index("balanced, %")
    assert (first[place], second[place]) == ("87.50", numbers.NONE)


def test_names_of_members_stay_text(tmp_path):
    names = [HOSTILE, HOSTILE_IMAGE, "__proto__"]
    folder = write_committee(tmp_path / "auto", HOSTILE)
    for name, content in {
        "committee.json": examples.committee_settings_of(HOSTILE, names),
        "result.json": examples.committee_result_of(HOSTILE, names),
    }.items():
        (folder / name).write_text(json.dumps(content))
    page = make(tmp_path, folder)
    assert [row[0] for row in page.rows("members-0")[1:4]] == names
    assert HOSTILE not in page.html
    assert not page.all("img")
    (values,) = page.data["charts"]["members-0"]["spec"]["datasets"].values()
    assert [v["key"] for v in values][-1] == "3=__proto__"


def test_committee_without_a_portrait_says_how_to_add_it(tmp_path):
    folder = write_committee(tmp_path / "auto")
    page = make(tmp_path, folder)
    again = f"fdgnn evaluate MUTAG --model auto --out {folder}"
    for name in ("data", "errors"):
        text = page.text("section", id=name)
        assert "This run has no portrait.json" in text
        assert again in text
    assert page.rows("members-0")
    assert "90.0\xa0%" in page.text("section", id="result")


def test_unfinished_committee_says_how_far_it_is(tmp_path):
    command = "fdgnn evaluate MUTAG --model auto --out elsewhere"
    folder = write_committee(tmp_path / "auto", finished=False, asked={"command": command})
    page = make(tmp_path, folder)
    text = page.text("section", id="result")
    assert "2 of 3 models trained so far. To continue:" in text
    assert f"fdgnn evaluate MUTAG --model auto --out {folder}" in text
    assert "What is averaged is decided when all of them are." in page.text(
        "section", id="selection"
    )
    silent = make(tmp_path, write_committee(tmp_path / "silent", finished=False))
    assert "The command that started it continues it." in silent.text("section", id="result")


COMMITTEE, JUDGED = examples.committee_settings_of(), examples.committee_result_of()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("committee.json", "{"),
        ("committee.json", COMMITTEE | {"members": []}),
        ("committee.json", COMMITTEE | {"seed": "0"}),
        ("result.json", "{"),
        ("result.json", examples.result_of()),
        ("result.json", JUDGED | {"accuracy_mean": 7}),
        ("result.json", JUDGED | {"fold_kept": [[0]]}),
        ("result.json", JUDGED | {"fold_kept": [[0], [0], [0], [3]]}),
        ("result.json", JUDGED | {"fold_kept": [[0], [0], [0], []]}),
        ("result.json", JUDGED | {"fold_alphas": [[0.1]] * 4}),
        ("result.json", JUDGED | {"member_accuracies": [0.5]}),
        ("result.json", JUDGED | {"member_seconds": [1.0, 1.0]}),
        ("result.json", examples.committee_result_of("PROTEINS")),
        ("result.json", examples.committee_result_of(members=["a", "b", "c"])),
        ("asked.json", {"command": 7}),
        ("portrait.json", "{"),
        ("portrait.json", examples.portrait_of("PROTEINS")),
    ],
)
def test_damaged_files_of_a_committee_are_told_in_one_line(tmp_path, name, content):
    folder = write_committee(tmp_path / "auto", portrait=examples.portrait_of())
    (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(StudyError) as told:
        write_report(folder, tmp_path / "report.html")
    assert str(folder / name) in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


# ---------------------------------------------------------------------- what is wrong


def damaged(folder, name, content):
    run = write_run(folder, portrait=examples.portrait_of(), rivals=examples.rivals_of())
    (run / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return run


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("settings.json", "{"),
        ("settings.json", "[" * 100_000),
        ("settings.json", []),
        ("settings.json", examples.settings_of() | {"dataset": 7}),
        ("settings.json", examples.settings_of() | {"seed": True}),
        ("result.json", {}),
        ("result.json", examples.result_of() | {"fold_accuracies": ["0.8"]}),
        ("result.json", examples.result_of() | {"accuracy_mean": float("nan")}),
        ("result.json", examples.result_of() | {"accuracy_mean": 1e400}),
        ("result.json", examples.result_of() | {"times": None}),
        ("result.json", examples.result_of() | {"fold_accuracies": []}),
        ("result.json", examples.result_of() | {"fold_depths": [1]}),
        ("asked.json", {"command": 7}),
        ("portrait.json", {}),
        ("portrait.json", []),
        ("portrait.json", examples.portrait_of() | {"format": 1}),
        ("portrait.json", examples.portrait_of() | {"graphs": [{}]}),
        ("portrait.json", examples.portrait_of() | {"confusion": [[1]]}),
        ("portrait.json", examples.portrait_of() | {"drawings": [{}]}),
        ("portrait.json", examples.portrait_of() | {"data": examples.portrait_of()["data"] | {
            "sizes": {"edges": [1, 2], "classes": [{"name": "a", "counts": [1, 2]}]}}}),
        ("compare.json", {}),
        ("compare.json", [{"dataset": "MUTAG"}]),
        ("compare.json", [examples.rivals_of()[0] | {"train_seconds": "fast"}]),
    ],
)  # fmt: skip
def test_damaged_files_are_told_in_one_line(tmp_path, name, content):
    run = damaged(tmp_path / "run", name, content)
    with pytest.raises(StudyError) as told:
        write_report(run, tmp_path / "report.html")
    assert str(run / name) in str(told.value)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400
    assert not (tmp_path / "report.html").exists()


def test_drawing_with_an_edge_to_nowhere_is_refused(tmp_path):
    portrait = examples.portrait_of()
    portrait["drawings"][3]["edges"][0] = 99
    run = write_run(tmp_path / "run", portrait=portrait)
    with pytest.raises(StudyError, match=r"portrait\.json.*drawings\[3\]"):
        write_report(run, tmp_path / "report.html")


def test_missing_foreign_and_no_sources(tmp_path):
    with pytest.raises(StudyError, match="no such run directory or model file"):
        write_report(tmp_path / "nowhere", tmp_path / "report.html")
    (tmp_path / "other").mkdir()
    with pytest.raises(StudyError, match="it is no run directory"):
        write_report(tmp_path / "other", tmp_path / "report.html")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="text: not a model file"):
        write_report(tmp_path / "text", tmp_path / "report.html")
    with pytest.raises(StudyError, match="nothing to report on"):
        write_report([], tmp_path / "report.html")


def test_page_is_written_completely_or_not_at_all(tmp_path, run):
    target = tmp_path / "report.html"
    target.write_text("the old page")
    bad = damaged(tmp_path / "bad", "result.json", "{")
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
    monkeypatch.setattr(
        vl_convert, "javascript_bundle", lambda vl_version: made.append(vl_version) or "charts()"
    )
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
    assert cache_vega_bundle() == kept
    monkeypatch.setenv("FDGNN_CACHE", str(kept))  # no folder: nothing can be kept
    vega_bundle.cache_clear()
    told = pytest.warns(FDGNNWarning, match="the script .* cannot be kept in .*FDGNN_CACHE")
    with told as caught:
        assert vega_bundle() == scripts[0]
    assert caught[0].filename == __file__
    assert cache_vega_bundle() is None
    vega_bundle.cache_clear()


@pytest.mark.usefixtures("no_home")
def test_a_library_that_looks_for_a_home_finds_one(monkeypatch):
    def imported(name):
        homes.append(Path.home())
        return sys

    homes = []
    monkeypatch.setattr("fdgnn.extras.import_module", imported)
    assert charts.altair() is sys
    assert homes
    assert not any(home.exists() for home in homes)  # nobody can have put anything there
    assert "HOME" not in os.environ


@pytest.mark.parametrize("library", ["altair", "vl_convert", "jinja2"])
def test_missing_library_is_named_with_its_remedy(monkeypatch, run, tmp_path, library):
    vega_bundle.cache_clear()
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match="extra 'report'"):
        write_report(run, tmp_path / "report.html")


# ---------------------------------------------------------------------- sizes


def large_portrait(n=1000):
    portrait = examples.portrait_of(n=n)
    many = examples.drawing_of(4)
    big = many | {
        name: (many[name] or []) * 14
        for name in ("positions", "edges", "orders", "labels", "contributions")
    }
    portrait["drawings"] = [big | {"graph": g} for g in range(n)]
    for one in portrait["substructures"]:
        one["steps"] = [0] * len(big["contributions"])
    portrait["mistakes"] = [row["graph"] for row in portrait["graphs"] if not row["correct"]][-12:]
    return portrait


def test_page_of_large_portraits_stays_small(tmp_path):
    """Five portraits of 1.5 MB and more: drawings give way, those of mistakes last."""
    portrait = large_portrait()
    assert len(json.dumps(portrait)) > 1_500_000
    sources = [
        read_subject(write_run(tmp_path / str(i), portrait=portrait, n_configurations=10))
        for i in range(5)
    ]
    shown = make(tmp_path, *sources)
    assert len(shown.html.encode()) < page.LARGEST
    for run in map(str, range(5)):
        kept = shown.data["drawings"][run]
        assert set(map(str, portrait["mistakes"])) <= set(kept)
        assert len(kept) < 1000
        assert len(shown.data["tables"][f"graphs-{run}"]["rows"]) == 1000


def test_too_much_for_one_page(monkeypatch, run, tmp_path):
    monkeypatch.setattr(page, "LARGEST", 900_000)
    with pytest.raises(StudyError, match="make several pages"):
        write_report([run, run], tmp_path / "report.html")


def test_thousands_of_configurations_are_thinned(tmp_path):
    folder = write_run(tmp_path / "run", n_configurations=3000, n_guesses=1)
    source = read_subject(folder)
    rows = selection.rows_of(source.search, selection.choices_of(source))
    assert len(rows) <= selection.MOST_POINTS
    assert {1, 2, 5} <= {r["c"] for r in rows}  # the chosen ones
    best = max(source.search.scores(), key=lambda score: score.mean)
    assert best.number in {r["c"] for r in rows}


# ---------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.00123, "1.2 ms"), (0.0456, "45.6 ms"), (0.9999, "1.00 s"), (1.236, "1.24 s"),
        (59.4, "59.4 s"), (173.1, "2 min 53 s"), (3599.7, "1 h 0 min"), (4321, "1 h 12 min"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert numbers.duration(seconds).replace(numbers.SPACE, " ") == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.00"), (0.03268, "0.0327"), (12.44, "12.4"), (1530.4, "1530"), (-0.5, "−0.500"),
        (1e-8, "1.00e−08"), (100.0, "100"), (None, "–"),
    ],
)  # fmt: skip
def test_significant_digits(value, text):
    assert numbers.significant(value) == text


def test_other_numbers():
    assert numbers.power_of_ten(1e-3) == "10⁻³"
    assert numbers.power_of_ten(0.02) == "0.0200"
    assert numbers.spread(0.88563, 0.0418).replace(numbers.SPACE, " ") == "88.56 ± 4.18"
    assert numbers.listed(["a", "b", "c"]) == "a, b and c"
    assert numbers.listed([]) == ""
    assert numbers.plural(1, "graph") == "1 graph"
    assert numbers.count(12345) == "12\N{NARROW NO-BREAK SPACE}345"


# ---------------------------------------------------------------------- the command


def command(capsys, monkeypatch, *words):
    from fdgnn.cli import main, reporting

    assert reporting.report
    monkeypatch.setattr(sys, "argv", ["fdgnn", "report", *map(str, words)])
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
    code, told, err = command(capsys, monkeypatch, run, "--out", out, "--quiet", "--json")
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
    assert len(shown.data["tables"]["graphs-0"]["rows"]) == 60
    right = int((model.predict(graphs) == y).sum())
    assert f"{60 - right} of 60 graphs are predicted wrongly" in shown.html
    assert "may have seen these graphs" not in shown.html
    balanced = balanced_accuracy_score(y, model.predict(graphs))
    assert f"counting alike, the accuracy is {numbers.percent(balanced)}." in shown.html
    area = roc_auc_score(y, model.decision_function(graphs))
    assert f"The area under the ROC curve is {numbers.percent(area)}." in shown.html
    assert f"fdgnn report {tmp_path / 'model.fdgnn'} --data {data}" in shown.all("code")[-1]["text"]


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
    words = [tmp_path / "model.fdgnn", "--data", table, "-o", out]
    code, _, err = command(capsys, monkeypatch, *words, "--target", "y")
    assert code == 0, err
    assert "1 of 21 rows left out" in err
    assert "1 of 21 rows left out" in Page(out).html
    assert len(Page(out).data["tables"]["graphs-0"]["rows"]) == 20


def test_command_says_when_nothing_tells_right_from_wrong(capsys, monkeypatch, tmp_path, model):
    table = tmp_path / "graphs.jsonl"
    rows = [{"edge_index": [[0, 1, 2], [1, 2, 0]], "num_nodes": 3 + i, "y": i} for i in range(3)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = saved(tmp_path / "m.fdgnn")
    words = [path, "--data", table, "-o", tmp_path / "page.html"]
    code, _, err = command(capsys, monkeypatch, *words)
    assert code == 0, err
    assert "name the column with --target" in err
    assert (
        "name the column with --target"
        not in command(capsys, monkeypatch, *words, "--target", "y")[2]
    )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere"], "no such run directory or model file"),
        (["nowhere", "--data", "MUTAG"], "no such run directory or model file"),
        (["{run}", "--data", "MUTAG"], "--data is for model files"),
        (["{run}", "-o", "{run}"], "it is a directory"),
        (["{model}", "--data", "no such data"], "no such data"),
        (["{model}", "--target", "y", "--held-out"], "--target, --held-out: only useful with"),
        (["{run}", "-o", "/proc/page.html"], "/proc/page.html: the page cannot be written"),
    ],
)
def test_command_says_in_one_line_what_is_wrong(
    capsys, monkeypatch, run, model, tmp_path, words, told
):
    monkeypatch.setenv("FDGNN_OFFLINE", "1")
    words = [word.format(run=run, model=model) for word in words]
    if "-o" not in words:
        words += ["-o", tmp_path / "page.html"]
    code, _, err = command(capsys, monkeypatch, *words)
    assert code == 1
    (line,) = [line for line in err.splitlines() if line.startswith("error:")]
    assert told in line


def test_source_can_be_made_in_code(tmp_path, run):
    source = read_subject(run)
    assert isinstance(source, Subject)
    by_source = write_report(source, tmp_path / "a.html").read_bytes()
    assert by_source == write_report(str(run), tmp_path / "b.html").read_bytes()

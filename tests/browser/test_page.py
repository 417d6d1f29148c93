"""The page in a real browser, from a file, without a network."""

from __future__ import annotations

import re

import pytest

import report_examples as examples
from browser.conftest import ready
from fdgnn.html.report import write_report
from report_examples import HOSTILE, HOSTILE_END, HOSTILE_IMAGE, write_run

pytest.importorskip("vl_convert", reason="a page needs the extra 'report'")
expect = pytest.importorskip("playwright.sync_api", reason="pip install playwright").expect

pytestmark = pytest.mark.xdist_group("browser")
N_GRAPHS = 30
TRIED = examples.tried_of()
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"  # one letter of five characters
EMOJI = (f"ab{FAMILY}cde", FAMILY * 5, "\U0001f600" * 6)
TAKEN = ("__proto__", "constructor", "hasOwnProperty")  # names that JavaScript's objects have


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Pages by what is on them: little, one run, several, untrusted text, odd names."""
    folder = tmp_path_factory.mktemp("pages")
    whole = write_run(folder / "whole", examples.ensemble_of(tried=TRIED), examples.data_of())
    bare = write_run(folder / "bare", examples.unfinished_of("COX2"))
    data = examples.data_of(
        HOSTILE,
        classes=(HOSTILE, HOSTILE_IMAGE),
        labels=(HOSTILE, HOSTILE_END),
        smiles=HOSTILE_END,
        id_text=HOSTILE_IMAGE,
    ) | {"notes": [HOSTILE_END]}
    names = [HOSTILE, HOSTILE_IMAGE, HOSTILE_END]
    untrusted = write_run(
        folder / "untrusted", examples.ensemble_of(HOSTILE, names, tried=TRIED), data
    )
    compared = write_run(folder / "compared", examples.comparison_of(HOSTILE, HOSTILE_END))
    data = examples.data_of(TAKEN[0], classes=TAKEN[:2], labels=TAKEN)
    taken = write_run(folder / "taken", examples.ensemble_of(TAKEN[0], list(TAKEN)), data)
    emoji = write_run(
        folder / "emoji", examples.evaluation_of(TAKEN[1]), examples.data_of(TAKEN[1], labels=EMOJI)
    )
    return {
        "little": write_report(write_run(folder / "little"), folder / "little.html"),
        "names": write_report([taken, emoji], folder / "names.html"),
        "one": write_report(whole, folder / "one.html"),
        "several": write_report([whole, bare, untrusted], folder / "several.html"),
        "hostile": write_report(
            [untrusted, compared], folder / "hostile.html", title=HOSTILE_IMAGE
        ),
    }


@pytest.fixture
def visit(visits, pages):
    """``visit("one")``: the page, drawn anew, for a test that changes it."""
    return lambda name, **options: visits.open(pages[name], **options)


@pytest.fixture
def look(visits, pages):
    """``look("one")``: the page as it is when drawn, for tests that look, or put things back."""
    return lambda name, **options: visits.look(pages[name], **options)


def points(page, chart, mark=".mark-symbol"):
    """Marks of a chart that can be pointed at, and where their centers are."""
    return page.locator(f"[data-chart='{chart}'] {mark} path").evaluate_all(
        """paths => paths.map(p => {
            const box = p.getBoundingClientRect();
            return [box.x + box.width / 2 + scrollX, box.y + box.height / 2 + scrollY];
        })"""
    )


def over(page, place):
    """Put a place of the document under the pointer; give where in the window that is."""
    x, y = place
    y -= scrolled_to(page, y)
    page.mouse.move(x, y - 3)
    page.mouse.move(x, y)
    return x, y


def scrolled_to(page, y):
    """Scroll a height of the document into the middle, and tell how far that was."""
    return page.evaluate(
        "y => { scrollTo({ top: y - 450, behavior: 'instant' }); return scrollY; }", y
    )


# ---------------------------------------------------------------------- it opens


@pytest.mark.parametrize("name", ["one", "several", "hostile"])
def test_every_chart_is_drawn_and_nothing_is_fetched(look, name):
    charts = shown_charts(look(name))
    assert len(charts) >= 12
    for chart, state, marks in charts:
        assert state == "drawn", chart
        assert marks >= 1, chart


def shown_charts(page):
    """Name, state and number of marks of each chart that is in view."""
    return page.locator(".chart").evaluate_all(
        """charts => charts.filter(c => c.checkVisibility() && c.clientHeight).map(c => [
            c.dataset.chart, c.dataset.state,
            c.querySelectorAll("[class*='mark-'] path, [class*='mark-'] line").length,
        ])"""
    )


def test_charts_show_as_many_marks_as_there_are_numbers(look):
    page = look("one")
    assert len(points(page, "effective_spectral_radius-0")) == len(TRIED)
    assert len(points(page, "map-0")) == N_GRAPHS + 1  # and a ring around the chosen one


def test_without_scripts_all_numbers_are_there(browser, pages):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(pages["several"].as_uri())
    assert page.locator("noscript").inner_text().startswith("Charts and drawings need JavaScript")
    assert page.locator(".block").filter(visible=True).count() == page.locator(".block").count()
    page.locator("#search-0 summary").click()
    expect(page.locator("#search-0 table")).to_be_visible()
    context.close()


# ---------------------------------------------------------------------- it answers


def test_hover_tells_the_configuration(look):
    page = look("one")
    over(page, points(page, "effective_spectral_radius-0")[2])
    tip = page.locator(".tip")
    tip.wait_for(state="visible")
    text = tip.inner_text()
    number = int(re.search(r"number (\d+)", text).group(1))
    mean = sum(TRIED[number - 1].scores) / len(TRIED[number - 1].scores)
    assert f"mean\n{100 * mean:.1f}" in text
    page.mouse.move(2, 2)
    tip.wait_for(state="hidden")


def test_tap_tells_the_configuration(visit):
    page = visit("little", width=390, touch=True)
    x, y = points(page, "effective_spectral_radius-0")[2]
    y -= scrolled_to(page, y)
    page.wait_for_timeout(100)
    page.touchscreen.tap(x, y)
    tip = page.locator(".tip")
    tip.wait_for(state="visible")
    page.wait_for_timeout(300)  # and it stays
    assert "number" in tip.inner_text()
    page.touchscreen.tap(5, 5)
    tip.wait_for(state="hidden")


def vertices(page):
    return page.locator("#map-0 .picture .vertex").count()


def choose(page, graph):
    """Show a graph by the list beside the map."""
    page.select_option("#map-0 select", graph)
    page.wait_for_selector(f"#map-0[data-shown='{graph}']")


def test_click_on_the_map_shows_that_graph(look):
    page = look("one")
    first = page.get_attribute("#map-0", "data-shown")
    for place in points(page, "map-0")[:4]:
        x, y = over(page, place)
        tip = page.locator(".tip")
        tip.wait_for(state="visible")
        graph = int(re.search(r"(\d+) \(g", tip.inner_text()).group(1))
        page.mouse.click(x, y)
        page.wait_for_selector(f"#map-0[data-shown='{graph}']")
        assert vertices(page) == 5 + graph % 5
        assert page.locator("#map-0 select").input_value() == str(graph)
        facts = page.locator("#map-0 .facts").inner_text()
        assert f"{graph}, g{graph}" in facts
        assert f"{5 + graph % 5} vertices" in facts
    # Off the mark, which makes the pointer a hand, and back to the graph that was shown first.
    page.hover("[data-chart='map-0'] svg", position={"x": 1, "y": 1})
    choose(page, first)


def test_keyboard_shows_any_graph(look):
    page = look("one")
    page.focus("#map-0 .after")
    first = int(page.get_attribute("#map-0", "data-shown"))
    page.keyboard.press("Enter")
    page.wait_for_selector(f"#map-0[data-shown='{first + 1}']")
    assert vertices(page) == 5 + (first + 1) % 5
    page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.tagName") == "SELECT"
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(f"#map-0[data-shown='{first + 2}']")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    page.wait_for_selector(f"#map-0[data-shown='{first + 1}']")
    page.keyboard.press("Space")
    page.wait_for_selector(f"#map-0[data-shown='{first}']")


def test_keyboard_reaches_everything_and_shows_where_it_is(visit):
    page = visit("one")
    page.keyboard.press("Tab")
    assert page.locator(":focus").inner_text() == "Skip to the result"
    assert page.locator(":focus").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        told = page.evaluate(
            """() => { const e = document.activeElement, style = getComputedStyle(e);
                return [e.tagName, style.outlineStyle !== "none"]; }"""
        )
        if told[0] == "BODY":
            break
        assert told[1], told
        reached.add(told[0])
    assert {"SUMMARY", "SELECT", "BUTTON"} <= reached


def test_wrong_predictions_are_outlined_on_the_map(look):
    page = look("one")
    marks = "[data-chart='map-0'] .mark-symbol path[stroke-width='1.5']"
    assert page.locator(marks).count() == len(examples.data_of()["mistakes"])
    legend = page.locator("#map-0 .key").inner_text().splitlines()
    assert legend == ["class -1", "class 1", "larger, with an outline: wrong prediction"]


def test_mistakes_are_drawn_as_molecules(look):
    page = look("one")
    mistakes = examples.data_of()["mistakes"]
    cards = page.locator("#mistakes-0 .mistakes li")
    assert cards.count() == len(mistakes)
    for i, graph in enumerate(mistakes):
        card = cards.nth(i)
        n = 5 + graph % 5
        assert card.locator(".vertex").count() == n
        assert card.locator(".aromatic").count() == n - 1  # the ring
        assert card.locator(".bond:not(.aromatic)").count() == (n - 1) + 2  # and a double bond
        names = card.locator(".names text").all_text_contents()
        assert names == [label for v in range(n) if (label := "CNO"[v % 3]) != "C"]
    cards.first.locator("summary").click()
    # The table is made when the browser tells that it was opened, which is some time later.
    expect(cards.first.locator("tbody tr")).to_have_count(5 + mistakes[0] % 5)
    cards.first.locator("summary").click()
    cards.first.locator("details div").evaluate("table => table.remove()")  # as it was


def test_substructures_are_marked_in_their_examples(look):
    page = look("one")
    cards = page.locator("#model [data-steps]")
    assert cards.count() == 2
    for i in range(2):
        card = cards.nth(i)
        steps = [int(step) for step in card.get_attribute("data-steps").split()]
        assert card.locator(".center").count() == steps.count(0) == 1
        assert card.locator(".around").count() == sum(step > 0 for step in steps) == 2
        assert card.locator(".pale").count() == steps.count(-1)
        assert card.locator("g.near").count() == 2  # the edges from the vertex that is meant
        assert card.locator("g.far").count() == len(steps) - 2
        center, pale = (card.locator(kind).first for kind in (".center", ".pale"))
        assert float(center.get_attribute("r")) > 1.5 * float(pale.get_attribute("r"))
        assert "meant: vertex 0" in card.locator("svg").get_attribute("aria-label")
        assert "is meant" in center.locator("title").text_content()


def test_choice_of_the_run(look):
    page = look("several")
    assert page.locator("#map-0").is_visible()
    assert not page.locator("#map-2").is_visible()
    page.select_option("#run", "2")
    page.wait_for_selector("[data-chart='map-2'][data-state=drawn]")
    ready(page)
    assert not page.locator("#map-0").is_visible()
    assert page.locator("[data-chart='map-2'] svg").bounding_box()["width"] > 300
    page.select_option("#run", "1")
    ready(page)
    assert page.locator("#data .missing").filter(visible=True).count() == 1


def test_command_is_copied(look):
    page = look("one")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator("#recipe [data-copy]")
    button.click()
    page.wait_for_function("b => b.textContent === 'Copied'", arg=button.element_handle())
    copied = page.evaluate("navigator.clipboard.readText()")
    page.context.clear_permissions()
    assert copied == page.locator("#recipe code").inner_text()
    assert copied.startswith("fdgnn evaluate MUTAG --model auto --out ")
    expect(button).to_have_text("Copy")


# ---------------------------------------------------------------------- it can be read


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_theme_follows_the_system_the_button_and_memory(visit):
    page = visit("little", theme="dark")
    body, night = page.locator("body"), background(page)
    page.emulate_media(color_scheme="light")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")
    assert night != "rgb(255, 255, 255)"
    page.click("#theme")
    expect(body).to_have_css("background-color", night)
    for _ in range(20):  # the browser hands what a page stores to its next process in its own time
        page.reload()
        if background(ready(page)) == night:
            break
    assert background(page) == night
    page.click("#theme")
    expect(body).to_have_css("background-color", "rgb(255, 255, 255)")


CONTRAST = """
selectors => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = color => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const found = rgb(getComputedStyle(e).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255];
  };
  return selectors.map(([selector, property]) => {
    const element = document.querySelector(selector);
    if (!element) return [selector, 0];
    const pair = [rgb(getComputedStyle(element)[property]), ground(element.closest("div"))];
    const [a, b] = pair.map(light).sort((x, y) => y - x);
    return [selector, (a + 0.05) / (b + 0.05)];
  });
}
"""
TEXTS = [
    ("h1", "color"), ("#result .lead", "color"), (".toc a", "color"),
    ("#scores-accuracy-caption", "color"), ("#scores-accuracy summary", "color"),
    (".key span", "color"), (".cards .small", "color"),
    ("#scores-accuracy th.ours", "color"), (".facts dt", "color"), (".facts .wrong", "color"),
    (".mistakes p", "color"), ("footer", "color"), (".tiles dt", "color"),
    ("[data-chart='scores-accuracy'] .role-axis-label text", "fill"),
    ("[data-chart='scores-accuracy'] .role-axis-title text", "fill"),
]  # fmt: skip
MARKS = [
    ("[data-chart='effective_spectral_radius-0'] .mark-symbol path", "fill"),
    ("[data-chart='targets-0'] .mark-rect path[fill='var(--c1)']", "fill"),
    ("[data-chart='targets-0'] .mark-rect path[fill='var(--c2)']", "fill"),
    ("#map-0 .vertex.for", "stroke"), ("#map-0 .vertex.against", "stroke"),
]  # fmt: skip


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_marks_stand_out(look, theme):
    """At least 4.5 to 1 for text and 3 to 1 for marks, as WCAG asks for."""
    page = look("one", theme=theme)
    wrong = examples.data_of()["mistakes"][0]
    page.wait_for_selector(f"#map-0[data-shown='{wrong}']")
    for least, selectors in ((4.5, TEXTS), (3.0, MARKS)):
        for selector, ratio in page.evaluate(CONTRAST, selectors):
            assert ratio >= least, (selector, ratio)


SHOWN_CHARTS = """all => all.map(svg => svg.getBoundingClientRect()).filter(box => box.width)
  .map(box => [box.left, box.right])"""
FIRST_CHART = "document.querySelector(\"[data-chart='scores-accuracy'] svg\")"


def test_phone_needs_no_sideways_scrolling(visit):
    page = visit("hostile", width=360)
    open_all(page)
    check_that_all_fits(page, 360)
    page.set_viewport_size({"width": 800, "height": 900})
    page.wait_for_function(f"() => {FIRST_CHART}.clientWidth > 360")
    check_that_all_fits(page, 800)


def check_that_all_fits(page, width):
    assert page.evaluate("document.documentElement.scrollWidth") == width
    sides = page.locator(".chart svg").evaluate_all(SHOWN_CHARTS)
    assert len(sides) >= 12
    for left, right in sides:
        assert left >= 0
        assert right <= width + 1


def open_all(page):
    """Open everything that can be opened."""
    page.locator("details").evaluate_all("all => { for (const one of all) one.open = true; }")


def test_charts_follow_the_window(visit):
    page = visit("little")
    chart = page.locator("[data-chart='scores-accuracy'] svg")
    before = chart.bounding_box()["width"]
    page.set_viewport_size({"width": 500, "height": 900})
    page.wait_for_function(f"() => {FIRST_CHART}.clientWidth < 500")
    assert chart.bounding_box()["width"] < before
    page.set_viewport_size({"width": 1280, "height": 900})
    expect(chart).to_have_js_property("clientWidth", before)


def test_printed_page_is_light_and_without_buttons(look):
    page = look("one", theme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#theme").is_visible()
    assert not page.locator(".toc").is_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"


def test_printed_page_of_several_runs_says_which_it_shows(look):
    page = look("hostile")
    note = page.locator(".chooser .printed")
    assert not note.is_visible()
    page.emulate_media(media="print")
    assert note.is_visible()
    assert note.inner_text().startswith("One of 2")


# ---------------------------------------------------------------------- it trusts nobody


def test_untrusted_text_stays_text(look):
    page = look("hostile")
    for place in points(page, "map-0")[:3]:
        x, y = over(page, place)
        page.locator(".tip").wait_for(state="visible")
        assert HOSTILE_IMAGE in page.locator(".tip").inner_text()
        page.mouse.click(x, y)
    open_all(page)
    page.wait_for_timeout(200)
    assert page.evaluate("window.__pwned") is None
    assert page.locator("img").count() == 0
    assert page.locator("script:not([type='application/json'])").count() == 5
    assert page.locator("h1").inner_text() == HOSTILE_IMAGE
    assert HOSTILE in page.locator("#map-0 .facts").inner_text()
    assert HOSTILE_END.split("\u2028")[0] in page.locator("#map-0 tbody").first.inner_text()
    labels = page.locator("#map-0 .picture title").all_text_contents()
    assert any(HOSTILE_END in label for label in labels)


def test_names_that_scripts_have_taken_are_names(look):
    """A class, label or dataset may be called as what every JavaScript object has."""
    page = look("names")
    labels = {
        "labels-0": TAKEN, "targets-0": TAKEN[:2], "scores-accuracy": TAKEN[:2],
    }  # fmt: skip
    assert {state for _, state, _ in shown_charts(page)} == {"drawn"}
    for chart, names in labels.items():
        place = page.locator(f"[data-chart='{chart}']")
        shown = place.locator(".role-axis-label text").all_text_contents()
        for name in names:
            assert any(text[:6] == name[:6] for text in shown), (chart, name)  # long ones are cut
    bars = page.locator("[data-chart='labels-0'] .mark-rect path").evaluate_all(
        "paths => paths.map(p => p.getBBox().height)"
    )
    assert len(bars) == 3
    assert min(bars) > 100
    assert page.locator("[data-chart='sizes-0'] .mark-rect path").count() == 10


def test_chart_that_fails_says_so(visits, pages, tmp_path):
    """Vega only logs what goes wrong while it draws, and would leave the chart empty."""
    text = pages["names"].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    # Stacked by names that scripts have taken, as no chart of ours is.
    ours = '"field": "key", "type": "nominal", "sort": null, "title": "label"'
    assert ours in text
    text = text.replace(ours, ours.replace("key", "name"))
    broken.write_text(text, encoding="utf-8")
    failed = visits.open(broken).locator("[data-state=failed]")
    assert [f.get_attribute("data-chart") for f in failed.all()] == ["labels-0"]
    assert "could not be drawn" in failed.inner_text()
    assert len(visits.heard()) == 1


def test_script_that_slipped_in_would_not_run(visit, visits):
    """Should an escape ever be forgotten, the page's own rules stop what was let in."""
    page = visit("little")
    page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "window.__pwned = 4";
            document.body.append(script);
            const image = document.createElement("div");
            image.innerHTML = '<img src="data:,x" onerror="window.__pwned = 5">';
            document.body.append(image);
        }"""
    )
    page.wait_for_timeout(300)
    assert page.evaluate("window.__pwned") is None
    refused = visits.heard()
    assert len(refused) == 2
    assert all("Content Security Policy" in text for text in refused)


def test_labels_are_not_cut_inside_of_an_emoji(look):
    page = look("names")
    shown = set(page.locator("#map-1 .picture svg text").all_text_contents())
    assert shown
    assert shown <= {f"ab{FAMILY}…", f"{FAMILY * 3}…", "\U0001f600" * 3 + "…"}

"""One Chromium for all tests of pages, and few tabs: starting and loading one takes long."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="the page is opened with Playwright: pip install it"
    )
    if CHROMIUM is None:
        pytest.skip("no Chromium: install it, or set CHROMIUM to it")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def tabs(browser):
    """The two tabs in which tests load pages in turn: one has a mouse, one is touched."""
    contexts = {touch: browser.new_context(has_touch=touch) for touch in (False, True)}
    return {touch: Tab(context) for touch, context in contexts.items()}


@pytest.fixture(scope="module")
def kept(tabs):
    """Tabs whose pages stay for the tests of a file, by path."""
    found = {}
    yield found
    for tab in found.values():
        tab.page.close()


@pytest.fixture
def visits(tabs, kept):
    """The pages that a test opens; whatever they complain of fails the test."""
    found = Visits(tabs, kept)
    yield found
    complaints = found.heard()
    found.end()
    assert not complaints


class Visits:
    """What one test opens."""

    def __init__(self, tabs, kept):
        self.tabs, self.kept, self._own, self._shared = tabs, kept, [], []

    def open(self, path, *, width=1280, theme="light", touch=False):
        """Load a file, in place of the one before; give the page when it says that it is ready."""
        tab = self.tabs[touch]
        self._own.append(tab)
        tab.begin(width, theme)
        tab.load(path)
        return tab.page

    def look(self, path, *, width=1280, theme="light"):
        """Give a page as it is when it is loaded, though an earlier test may have loaded it.

        It is loaded again only if the test before has not left it as it was.
        """
        if path not in self.kept:
            self.kept[path] = Tab(self.tabs[False].page.context)
        tab = self.kept[path]
        self._shared.append(tab)
        tab.begin(width, theme)
        if not tab.unchanged():
            tab.load(path)
            tab.remember()
        return tab.page

    def heard(self):
        """Take what the pages have complained of until now."""
        complaints = []
        for tab in {*self._own, *self._shared}:
            complaints += tab.complaints
            if tab.complaints:  # the next test is to load the page again, and to hear them, too
                tab.forget()
            tab.complaints.clear()
        return complaints

    def end(self):
        """Let the common tabs forget this test."""
        for tab in set(self._own):
            tab.page.evaluate("localStorage.clear()")


# What a test may change of a page. Where it is scrolled to is put back at once.
STATE = """() => {
  scrollTo({ top: 0, behavior: "instant" });
  const fields = [...document.querySelectorAll("select, input")];
  const values = fields.map((field) => field.checked ?? field.value);
  return [document.querySelector("main")?.innerHTML, ...values].join();
}"""


class Tab:
    """A page, and what it complains of: errors, and whatever it fetches beside itself."""

    def __init__(self, context):
        self.page, self.address, self.complaints = context.new_page(), "about:blank", []
        self.page.on("console", self._logged)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._fetched)

    def _logged(self, message):
        if message.type == "error":
            self.complaints.append(message.text)

    def _fetched(self, request):
        if request.url != self.address and not request.url.startswith("blob:"):
            self.complaints.append(f"fetches {request.url}")

    def begin(self, width, theme):
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="null", color_scheme=theme)
        self.page.mouse.move(0, 0)

    def load(self, path):
        self.address = path.as_uri()
        self.page.goto(self.address)
        ready(self.page)

    def remember(self):
        self.page.evaluate(f"() => {{ window.asLoaded = ({STATE})(); }}")

    def forget(self):
        self.page.evaluate("() => { delete window.asLoaded; }")

    def unchanged(self):
        """Whether the page is as it was when it was remembered."""
        return self.page.evaluate(f"() => window.asLoaded === ({STATE})()")


def ready(page):
    """Wait until the scripts of a page have drawn it."""
    # Not by a selector: Playwright would look for it at every frame, while the page has work to do.
    is_ready = "() => document.documentElement.dataset.ready === 'yes'"
    page.wait_for_function(is_ready, polling=50, timeout=120_000)
    return page

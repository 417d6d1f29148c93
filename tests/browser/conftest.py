"""One Chromium for all tests of pages, and one tab for most of them."""

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
def tab(browser):
    """The tab that tests take in turn: a process of its own would take a second to start."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.fixture
def visits(browser, tab):
    """The pages that a test opens; whatever they complain of fails the test."""
    found = Visits(browser, tab)
    yield found
    found.end()
    assert not found.complaints


class Visits:
    """Opens files in the common tab first, and in others if a test needs more, or options."""

    def __init__(self, browser, tab):
        self.browser, self.free = browser, [tab]
        self.complaints, self._contexts, self._heard = [], [], []

    def open(self, path, *, width=1280, theme="light", **options):
        """Give the page when it says that it is ready."""
        page = self._page(options)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(media="null", color_scheme=theme)
        address = path.as_uri()

        def fetched(request):
            if request.url != address and not request.url.startswith("blob:"):
                self.complaints.append(f"fetches {request.url}")

        self._hear(page, "console", lambda m: m.type == "error" and self.complaints.append(m.text))
        self._hear(page, "pageerror", lambda error: self.complaints.append(str(error)))
        self._hear(page, "request", fetched)
        page.goto(address)
        return ready(page)

    def _page(self, options):
        if self.free and not options:
            return self.free.pop()
        self._contexts.append(self.browser.new_context(**options))
        return self._contexts[-1].new_page()

    def _hear(self, page, event, listener):
        page.on(event, listener)
        self._heard.append((page, event, listener))

    def end(self):
        """Close what was opened, and let the common tab forget this test."""
        for page, event, listener in self._heard:
            page.remove_listener(event, listener)
        for page in {page for page, _, _ in self._heard if page.context not in self._contexts}:
            page.evaluate("localStorage.clear()")
            page.mouse.move(0, 0)
            page.goto("about:blank")
        for context in self._contexts:
            context.close()


def ready(page):
    """Wait until the scripts of a page have drawn it."""
    page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=120_000)
    return page

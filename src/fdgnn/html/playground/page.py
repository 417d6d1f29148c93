"""From content to one HTML file in which the model runs."""

from __future__ import annotations

from collections.abc import Mapping

from fdgnn.arrays import Array
from fdgnn.exceptions import PlaygroundError
from fdgnn.html.page import build_page
from fdgnn.html.playground.packing import packed
from fdgnn.html.playground.records import PageContent

LARGEST = 3_000_000  # bytes of a page


def render(content: PageContent, arrays: Mapping[str, Array], summary: str) -> bytes:
    """Give the page.

    Raises
    ------
    PlaygroundError
        It would be larger than a page may be.
    """
    page = build_page(
        "playground",
        packed(content, arrays),
        title=content.title,
        summary=summary,
        worker="worker.js",
        training=content.training is not None,
    )
    if len(page) > LARGEST:
        raise PlaygroundError(
            f"the page would have {len(page) / 1e6:.1f} MB, more than {LARGEST // 1_000_000}: "
            "the model is too large; fit it to fewer graphs, with readout='linear', or with fewer "
            "WL features (n_features)"
        )
    return page

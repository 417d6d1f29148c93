"""Python objects except plain graphs: molecules, SMARTS, targets, descriptors, chunks, pages."""

from __future__ import annotations

import base64
import gzip
import re
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fdgnn import (
    FDGNNClassifier,
    FDGNNRegressor,
    Graph,
    as_batch,
    molecule_groups,
    playground,
)
from fdgnn.exceptions import FDGNNError
from fuzz import files
from fuzz.checks import is_sound
from fuzz.mutation import anything, as_json, number, of_json, plain, some_of, text
from fuzz.running import Target

REFUSED = (FDGNNError, TypeError, ValueError)  # as scikit-learn does


def targets() -> list[Target]:
    """Return all targets."""
    return [
        Target("molecules", as_json(_molecules), _read_molecules),
        Target("smarts", as_json(some_of(_smarts, 1, 2)), _find_groups),
        Target("answers", as_json(_answers), _fit_answers),
        Target("descriptors", as_json(_descriptors), _fit_described),
        Target("pieces", as_json(_pieces), _fit_pieces),
        Target("playground", as_json(_page), _write_page),
    ]


# ---------------------------------------------------------------------- molecules

_SIGNS = (
    "C", "c", "N", "[NH3+]", "O", "=", "#", "(", ")", "1", "2", "%10", ".", "[", "]", "@", "/",
    "\\", "[13CH4]", "[*]", "[#6]", ":", "~", "$", "!", "&", ";", ",", "-", "H", "\0", " ",
)  # fmt: skip
_SMARTS = (
    "[CX3](=O)[OX2H1]", "c1ccccc1 ring", "[$([NX3][#6])]", "[!#6;r5]", "*~*", "C", "cC benzylic",
)  # fmt: skip


def _edited(rng: Random, one: str) -> str:
    """Return a SMILES or SMARTS with some characters changed."""
    signs = list(one)
    for _ in range(rng.randint(0, 3)):
        at = rng.randrange(len(signs) + 1)
        signs[at : at + rng.randint(0, 2)] = rng.choices(_SIGNS, k=rng.randint(0, 2))
    return "".join(signs)


def _molecules(rng: Random) -> Any:
    def one() -> Any:
        return _edited(rng, rng.choice(files.SMILES)) if rng.random() < 0.9 else plain(rng)

    return [one() for _ in range(rng.randint(1, 4))]


def _read_molecules(case: bytes) -> None:
    items = of_json(case)
    try:
        batch = as_batch(items)
    except REFUSED:
        return
    assert len(batch) == len(items)
    is_sound(batch)


def _smarts(rng: Random) -> Any:
    return [_edited(rng, rng.choice(_SMARTS)), _edited(rng, rng.choice(files.SMILES))]


def _find_groups(case: bytes) -> None:
    for smarts, smiles in of_json(case):
        try:
            groups = molecule_groups(smiles, smarts)
        except REFUSED:
            continue
        n = as_batch([smiles])[0].n_vertices
        for group in groups:
            assert len(group.vertices)
            assert 0 <= group.vertices.min() <= group.vertices.max() < n


# ---------------------------------------------------------------------- targets and descriptors

_FEW = 8


@cache
def _graphs() -> list[Graph]:
    return files.graphs()[0][:_FEW]


def _value(rng: Random) -> Any:
    return rng.randint(0, 1) if rng.random() < 0.7 else plain(rng)


def _column(rng: Random) -> list[Any]:
    kind = rng.random()
    if kind < 0.3:
        return [rng.randint(0, 1) for _ in range(_FEW)]
    if kind < 0.5:
        return [number(rng) for _ in range(_FEW)]
    return [_value(rng) for _ in range(_FEW + (rng.random() < 0.05))]


def _answers(rng: Random) -> Any:
    task, weights = rng.choice(("classes", "numbers")), None
    y: Any = [_column(rng) for _ in range(rng.randint(1, 3))]
    y = y[0] if rng.random() < 0.4 else list(map(list, zip(*y, strict=False)))
    if rng.random() < 0.1:
        y = anything(rng)
    if rng.random() < 0.3:
        weights = [number(rng) for _ in range(_FEW)]
    return {"task": task, "y": y, "weights": weights}


def _model(task: str) -> Any:
    kind = FDGNNRegressor if task == "numbers" else FDGNNClassifier
    return kind(n_units=3, n_projections=4, random_state=0)


def _fit_answers(case: bytes) -> None:
    told = of_json(case)
    try:
        model = _model(told["task"]).fit(_graphs(), told["y"], sample_weight=told["weights"])
        answers = np.asarray(model.predict(_graphs()))
    except REFUSED:
        return
    _are_finite(answers)


def _are_finite(answers: Any) -> None:
    assert len(answers) == _FEW
    assert answers.dtype.kind != "f" or np.isfinite(answers).all()


def _descriptors(rng: Random) -> Any:
    if rng.random() < 0.1:
        return anything(rng)
    if rng.random() < 0.3:
        return [[number(rng) for _ in range(2)] for _ in range(_FEW)]
    return {text(rng): _column(rng) for _ in range(rng.randint(1, 3))}


def _fit_described(case: bytes) -> None:
    try:
        batch = as_batch(_graphs()).with_descriptors(of_json(case))
        model = _model("classes").fit(batch, [0, 1] * (_FEW // 2))
        answers = np.asarray(model.decision_function(batch))
    except REFUSED:
        return
    _are_finite(answers)


# ---------------------------------------------------------------------- pieces


def _pieces(rng: Random) -> Any:
    def piece() -> Any:
        start, n = rng.randrange(_FEW), rng.randint(0, 4)
        y = [rng.randint(0, 1) if rng.random() < 0.9 else plain(rng) for _ in range(n)]
        return {"start": start, "n": n if rng.random() < 0.9 else n + 1, "y": y}

    classes = [0, 1] if rng.random() < 0.7 else [plain(rng) for _ in range(rng.randint(0, 3))]
    n = rng.randint(1, 3)
    return {"classes": classes, "pieces": [piece() for _ in range(n)]}


def _fit_pieces(case: bytes) -> None:
    told = of_json(case)
    model = FDGNNClassifier(n_units=3, n_projections=4, alpha=1.0, random_state=0)
    try:
        for piece in told["pieces"]:
            some = (_graphs() * 2)[piece["start"] : piece["start"] + piece["n"]]
            model.partial_fit(some, piece["y"], classes=told["classes"], like=_graphs())
        answers = np.asarray(model.decision_function(_graphs()))
    except REFUSED:
        return
    _are_finite(answers)


# ---------------------------------------------------------------------- pages

_HTML = (
    "</script>", "<!--", "<script>alert(1)</script>", "\u2028", "\u2029", "]]>", "&lt;", "'\"`",
    "${x}", "{{ 7 * 7 }}", "</textarea>", "<img src=x onerror=alert(1)>", "\U0001f600" * 50,
    "javascript:1",
)  # fmt: skip
_TAG = re.compile(rb"<[A-Za-z!/][^\s>]*")
_DATA = re.compile(rb'<script type="text/plain" id="page-data">([^<]*)</script>')


def _hostile(rng: Random) -> str:
    return rng.choice(_HTML) + text(rng) if rng.random() < 0.5 else text(rng)


def _page(rng: Random) -> Any:
    return {
        "labels": [_hostile(rng) for _ in range(3)],
        "classes": [_hostile(rng), _hostile(rng)],
        "ids": [_hostile(rng) for _ in range(4)],
        "title": _hostile(rng),
        "dataset": _hostile(rng),
        "code": [_hostile(rng)],
    }


def _write_page(case: bytes) -> None:
    """Check that labels and names change neither the elements of a page nor its data."""
    page = _made_page(of_json(case))
    if page is None:
        return
    plain_page = _plain_page()
    assert _TAG.findall(_without_data(page)) == _TAG.findall(_without_data(plain_page))
    data = _DATA.search(page)
    assert data is not None
    content = gzip.decompress(base64.b64decode(data[1]))
    length = int.from_bytes(content[:4], "little")
    of_json(content[8 : 8 + length])


def _without_data(page: bytes) -> bytes:
    return _DATA.sub(b"", page)


@cache
def _plain_page() -> bytes:
    page = _made_page({
        "labels": ["a", "b", "c"], "classes": ["x", "y"], "ids": list("1234"), "title": "t",
        "dataset": "d", "code": ["graphs = 1"],
    })  # fmt: skip
    assert page is not None
    return page


def _made_page(told: Any) -> bytes | None:
    arcs = np.array([[0, 1], [1, 2]])
    graphs = [Graph(arcs, 3, labels=told["labels"])] * 2 + [
        Graph(arcs, 3, labels=told["labels"][::-1])
    ] * 2
    y = np.array([*told["classes"], *told["classes"]])
    try:
        model = FDGNNClassifier(n_units=3, n_projections=4, random_state=0).fit(graphs, y)
        path = playground.write(
            Path("page.html"), model, graphs, y, ids=told["ids"], title=told["title"],
            dataset=told["dataset"], code=told["code"],
        )  # fmt: skip
    except REFUSED:
        return None
    return path.read_bytes()

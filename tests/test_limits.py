"""Limits: listed where users look, and changeable."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from fdgnn import RandomExpansion, limits, read_graphs
from fdgnn.datasets import arrow
from fdgnn.evaluation.run import read_evaluations
from fdgnn.exceptions import DatasetFormatError, StudyError
from fdgnn.html.report_data import read_report_data

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize("limit", limits.ALL.values(), ids=limits.ALL)
def test_the_docs_list_each_limit_with_its_reason(limit):
    with limits.changed(**{limit.name: limit.default}):
        shown = limit.in_words.split("(")[0]
    value = f"{limit.default:,}" if isinstance(limit.default, int) else f"{limit.default:g}"
    assert value in shown
    rows = (DOCS / "reference" / "limits.md").read_text(encoding="utf-8").splitlines()
    (reason,) = [
        row.split(" | ")[2] for row in rows if row.startswith(f"| `{limit.name}` | {value} |")
    ]
    assert len(reason) > 20


def test_the_docs_list_nothing_else():
    rows = (DOCS / "reference" / "limits.md").read_text(encoding="utf-8").splitlines()
    assert [row.split("`")[1] for row in rows if row.startswith("| `")] == list(limits.ALL)


@pytest.mark.parametrize("limit", limits.ALL.values(), ids=limits.ALL)
def test_each_limit_can_be_changed(limit, monkeypatch):
    assert limit.value == limit.default
    monkeypatch.setenv(limit.name, "7")
    assert limit.value == 7
    assert f"({limit.name})" in limit.in_words
    with limits.changed(**{limit.name: 11}):
        assert limit.value == 11
        assert not limit.is_below(11)
        assert limit.is_below(12)
        assert limit.is_below(float("nan"))
    assert limit.value == 7


def test_a_random_expansion_of_many_units_is_refused_before_it_is_drawn():
    with pytest.raises(ValueError, match=r"131,070 features .*FDGNN_MAX_PROJECTION"):
        RandomExpansion().fit(np.zeros((1, 65_535)))
    with (
        limits.changed(FDGNN_MAX_PROJECTION=7),
        pytest.raises(ValueError, match="up to 7 weights"),
    ):
        RandomExpansion(4).fit(np.zeros((1, 2)))


@pytest.mark.parametrize("read", [read_report_data, read_evaluations])
def test_files_of_runs_have_a_limit(read, tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with (
        limits.changed(FDGNN_MAX_RUN_FILE_BYTES=1),
        pytest.raises(StudyError, match=r"x\.json: (it is )?too large; .* of up to 1 bytes"),
    ):
        read(tmp_path / "x.json")


def test_readers_of_arrow_files_have_a_limit_of_time(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")

    def out_of_time(complaints):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        return subprocess.Popen(["sh", "-c", "kill -XCPU $$"], **pipes)

    monkeypatch.setattr(arrow, "start_reader", out_of_time)
    (tmp_path / "x.arrow").write_bytes(b"ARROW1")
    with pytest.raises(DatasetFormatError, match=r"too long; 60 seconds.*FDGNN_MAX_READER_SEC"):
        read_graphs(tmp_path / "x.arrow")

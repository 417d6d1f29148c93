"""Where datasets are looked for, and what happens when they are nowhere."""

from __future__ import annotations

import http.server
import importlib.util
import threading
from pathlib import Path

import pytest

from fdgnn import load_tu, paper
from fdgnn.datasets import home
from fdgnn.exceptions import DatasetNotFoundError, DownloadError
from tu_files import write_folder, write_zip


@pytest.fixture(autouse=True)
def nothing_here(tmp_path, monkeypatch) -> Path:
    """An empty data home, no GraKeL, no downloads."""
    folder = tmp_path / "home"
    monkeypatch.setenv("FDGNN_DATA", str(folder))
    monkeypatch.setenv("FDGNN_OFFLINE", "1")
    monkeypatch.setattr(home, "_places_in_grakel", lambda name: [])
    monkeypatch.chdir(tmp_path)
    return folder


def classes(name: str, **options) -> list[int]:
    return load_tu(name, vertex="labels", **options)[1].tolist()


def test_the_order_of_places(tmp_path, nothing_here, monkeypatch):
    """Each place hides those after it; class labels tell which one was read."""
    grakel = write_folder(tmp_path / "grakel", "MUTAG", graph_labels="5\n5\n")
    monkeypatch.setattr(home, "_places_in_grakel", lambda name: [grakel])
    assert classes("MUTAG") == [5, 5]
    write_folder(nothing_here / "MUTAG", "MUTAG", graph_labels="4\n4\n")
    assert classes("MUTAG") == [4, 4]
    write_zip(nothing_here / "MUTAG.zip", "MUTAG", graph_labels="3\n3\n")
    assert classes("MUTAG") == [3, 3]
    write_folder(nothing_here / "tu" / "MUTAG", "MUTAG", graph_labels="2\n2\n")
    assert classes("MUTAG") == [2, 2]
    write_zip(nothing_here / "tu" / "MUTAG.zip", "MUTAG", graph_labels="1\n1\n")
    assert classes("MUTAG") == [1, 1]
    other = tmp_path / "other"
    write_folder(other / "MUTAG", "MUTAG", graph_labels="0\n0\n")
    assert classes("MUTAG", data_home=other) == [0, 0]
    assert classes(str(nothing_here / "MUTAG.zip")) == [3, 3]


def test_a_known_name_is_not_a_folder_that_happens_to_be_here(tmp_path, nothing_here):
    (tmp_path / "MUTAG").mkdir()
    write_zip(nothing_here / "MUTAG.zip", "MUTAG", graph_labels="3\n3\n")
    assert classes("MUTAG") == [3, 3]


def test_any_name_in_the_data_home_will_do(nothing_here):
    write_zip(nothing_here / "tu" / "MINE.zip", "MINE")
    assert classes("MINE") == [-1, 1]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("MUTAGG", "MUTAG"), ("mutag", "MUTAG"), ("PTC", "PTC_MR"), ("imdb-b", "IMDB-BINARY"),
     ("mutagenicity", "Mutagenicity"), ("MIEN", "MINE")],
)  # fmt: skip
def test_unknown_names_are_answered_with_the_nearest(nothing_here, name, nearest):
    write_zip(nothing_here / "tu" / "MINE.zip", "MINE")
    with pytest.raises(
        DatasetNotFoundError, match=f"no dataset {name!r} among .*; did you mean '{nearest}'"
    ):
        load_tu(name)


def test_unknown_names_near_nothing():
    with pytest.raises(
        DatasetNotFoundError, match="no dataset 'qqqq' among the known TU names"
    ) as caught:
        load_tu("qqqq")
    assert "others need the path" in str(caught.value)
    assert isinstance(caught.value, LookupError)


def test_the_papers_datasets_are_known():
    assert set(paper.DATASETS) <= set(home.KNOWN_NAMES)


def test_homes_without_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("FDGNN_DATA")
    monkeypatch.delenv("FDGNN_CACHE")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_args, **_options: str(tmp_path))
    assert home.data_home() == tmp_path
    assert home.cache_home() == tmp_path / "parsed"


@pytest.mark.usefixtures("no_home")
def test_without_a_home_a_download_names_no_place_there(nothing_here, monkeypatch):
    monkeypatch.delenv("FDGNN_DATA")
    with pytest.raises(DownloadError, match=r"no home directory to keep it in; set .* FDGNN_DATA"):
        home.find("ENZYMES", home.data_home())


def test_grakels_mutag_is_the_papers(monkeypatch, nothing_here):
    if importlib.util.find_spec("grakel") is None:
        pytest.skip("GraKeL is not installed, so there is no copy of MUTAG in it")
    monkeypatch.undo()
    monkeypatch.setenv("FDGNN_DATA", str(nothing_here))
    graphs, y = load_tu("MUTAG", download_if_missing=False)
    facts = paper.DATASETS["MUTAG"]
    assert (len(graphs), graphs.n_vertices, graphs.n_arcs) == (188, facts.n_vertices, facts.n_arcs)
    assert sorted(set(y.tolist())) == [-1, 1]


# ---------------------------------------------------------------------- downloads


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A site of our own on this machine; the folder is what it serves."""
    folder = tmp_path / "site"
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args):
            pass

    monkeypatch.delenv("FDGNN_OFFLINE")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        monkeypatch.setattr(home, "URL", f"http://127.0.0.1:{server.server_port}/{{name}}.zip")
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder
        server.shutdown()


def test_a_download_comes_to_stay(site, nothing_here):
    write_zip(site / "ENZYMES.zip", "ENZYMES")
    assert classes("ENZYMES") == [-1, 1]
    (site / "ENZYMES.zip").unlink()
    assert classes("ENZYMES") == [-1, 1]
    assert [p.name for p in (nothing_here / "tu").iterdir()] == ["ENZYMES.zip"]


def refused(folder: Path, message: str, **options) -> None:
    with pytest.raises(DownloadError, match=message) as caught:
        load_tu("ENZYMES", **options)
    assert f"put it at {folder / 'tu' / 'ENZYMES.zip'}" in str(caught.value)
    assert not (folder / "tu").exists() or list((folder / "tu").iterdir()) == []


def test_switched_off(site, nothing_here, monkeypatch):
    write_zip(site / "ENZYMES.zip", "ENZYMES")
    refused(nothing_here, "download_if_missing is off", download_if_missing=False)
    monkeypatch.setenv("FDGNN_OFFLINE", "1")
    refused(nothing_here, "FDGNN_OFFLINE is set")
    monkeypatch.setenv("FDGNN_OFFLINE", "0")
    assert classes("ENZYMES") == [-1, 1]


def test_not_on_the_site(site, nothing_here):
    refused(nothing_here, "404")


def test_an_answer_that_is_no_zip(site, nothing_here):
    (site / "ENZYMES.zip").write_text("<html>we moved</html>")
    refused(nothing_here, "not a complete zip")


def test_an_answer_that_was_cut(site, nothing_here):
    path = write_zip(site / "ENZYMES.zip", "ENZYMES")
    path.write_bytes(path.read_bytes()[:-30])
    refused(nothing_here, "not a complete zip")


def test_an_answer_without_end(site, nothing_here, monkeypatch):
    monkeypatch.setenv("FDGNN_MAX_DOWNLOAD_BYTES", "100")
    write_zip(site / "ENZYMES.zip", "ENZYMES")
    refused(nothing_here, "too large; downloads of up to 100 bytes are accepted")


def test_no_network(nothing_here, site, monkeypatch):
    monkeypatch.setattr(home, "URL", "http://127.0.0.1:9/{name}.zip")
    refused(nothing_here, r"could not be downloaded \(127.0.0.1:9 cannot be reached\)")


def test_a_data_home_one_cannot_write_to(site, nothing_here):
    write_zip(site / "ENZYMES.zip", "ENZYMES")
    nothing_here.write_text("a file is in the way")
    refused(nothing_here, "could not be downloaded")


def test_the_site_is_asked_over_https():
    assert home.URL.startswith("https://")

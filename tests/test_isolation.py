"""The tests' own promises: no network, and no traces in the user's cache."""

from __future__ import annotations

import os
import socket
import tempfile
import urllib.request
from pathlib import Path

import pytest

import conftest


def test_network_is_blocked():
    with pytest.raises(RuntimeError, match=r"a test tried to reach example\.org"):
        urllib.request.urlopen("https://example.org", timeout=1)
    with (
        socket.socket() as sock,
        pytest.raises(RuntimeError, match=r"a test tried to reach 192\.0\.2\.1"),
    ):
        sock.connect(("192.0.2.1", 80))


def test_this_machine_can_be_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        socket.create_connection(("localhost", server.getsockname()[1])).close()


def test_cache_is_temporary():
    assert Path(tempfile.gettempdir()) in Path(os.environ["FDGNN_CACHE"]).parents


def test_missing_data_skips(request):
    request.node.add_marker(pytest.mark.real_data("NO-SUCH-DATASET"))
    with pytest.raises(pytest.skip.Exception, match="NO-SUCH-DATASET"):
        conftest.pytest_runtest_setup(request.node)


def test_stored_data_is_found(monkeypatch, tmp_path, tu_path):
    monkeypatch.setenv("FDGNN_DATA", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"neither X\.zip nor a folder X"):
        tu_path("X")
    (tmp_path / "tu").mkdir()
    (tmp_path / "tu" / "X.zip").touch()
    assert tu_path("X") == tmp_path / "tu" / "X.zip"
    monkeypatch.delenv("FDGNN_DATA")
    with pytest.raises(pytest.skip.Exception, match="set FDGNN_DATA"):
        tu_path("X")

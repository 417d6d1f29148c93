"""For all tests: no network, no traces in the user's cache, real data only where it is."""

from __future__ import annotations

import gc
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import cpu_times
import missing_extras

# One thread for BLAS, in commands that tests start as well: on small matrices and beside other
# test processes more threads wait for each other, which takes twice the processor's time.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# Every run tries the same examples; HYPOTHESIS_PROFILE=thorough looks for new ones.
settings.register_profile("fdgnn", derandomize=True, deadline=None, max_examples=60, database=None)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fdgnn"))

_patch = pytest.MonkeyPatch()
_cache: list[str] = []


pytest_addoption = cpu_times.add_option


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(cpu_times)
    config.pluginmanager.register(missing_extras)
    # Here and not in a fixture, so that doctests outside this folder are covered, too.
    if not hasattr(config, "workerinput"):  # pytest-xdist's workers share their parent's cache
        _cache.append(tempfile.mkdtemp(prefix="fdgnn-tests-"))
        _patch.setenv("FDGNN_CACHE", _cache[0])
    _block_network()
    _check_kernels()


def _check_kernels() -> None:
    """Refuse to test kernels that are older than their sources."""
    home = Path(__file__).parent.parent
    modules = list(home.glob("src/fdgnn/_*.so"))
    sources = [home / "CMakeLists.txt", *home.glob("src/kernels/*")]
    if modules and _newest(sources) > min(path.stat().st_mtime for path in modules):
        raise pytest.UsageError("the kernels are older than src/kernels; run: make kernels")


def _newest(paths: list[Path]) -> float:
    return max(path.stat().st_mtime for path in paths)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let one worker run all tests of a file (`--dist loadgroup`), so that fixtures are made once.

    Tests that share more than that name their group: those with a browser, torch, Dask, or faults.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[Any]:
    """Spare the garbage collector all tests and libraries, which stay to the end.

    It comes less often, too: most of what tests make is gone without it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    _patch.undo()
    for folder in _cache:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------------- no network


class NetworkBlockedError(RuntimeError):
    """Not an OSError, so that code which copes with a broken network cannot hide it."""


def _block_network() -> None:
    """Let sockets reach this machine only."""

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family != getattr(socket, "AF_UNIX", None):
                _check_local(address[0])
            return original(self, address)

        return connect

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        _check_local(host)
        return resolve(host, *args, **kwargs)

    resolve = socket.getaddrinfo
    _patch.setattr(socket.socket, "connect", guarded(socket.socket.connect))
    _patch.setattr(socket.socket, "connect_ex", guarded(socket.socket.connect_ex))
    _patch.setattr(socket, "getaddrinfo", getaddrinfo)


def _check_local(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else str(host or "localhost")
    own = ("localhost", "::1", "0.0.0.0", "::", socket.gethostname())
    if name not in own and not name.startswith("127."):
        raise NetworkBlockedError(f"a test tried to reach {name}; tests have no network")


# ---------------------------------------------------------------------- faults


@pytest.fixture(scope="session")
def faults() -> Iterator[Callable[..., dict[str, list[Any]]]]:
    """`fault_driver.drive`, in one process for all tests."""
    from fault_driver import started

    with started() as drive:
        yield drive


# ---------------------------------------------------------------------- no home


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of whom the system knows no home, as containers have them."""

    def unknown(number: int) -> None:
        raise KeyError(number)

    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)


# ---------------------------------------------------------------------- small searches


@pytest.fixture(scope="session", autouse=True)
def times_are_taken_once() -> None:
    """Do not repeat short work to time it well: no test looks at how long it took."""
    from fdgnn.evaluation import timing

    timing.MOST_REPETITIONS = 1


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the methods of comparisons here."""
    from methods_here import run_here

    monkeypatch.setattr("fdgnn.evaluation.comparison.run_in_process", run_here)


@pytest.fixture
def few_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search two of FDGNN's configurations, in commands that have no option for it."""
    from fdgnn.evaluation.protocol import PROTOCOLS, Protocol

    monkeypatch.setitem(
        PROTOCOLS, "quick", Protocol("quick", n_configurations=2, n_initializations=1)
    )


# ---------------------------------------------------------------------- drawings


@pytest.fixture
def vertices_on_a_circle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay graphs out without networkx, where a test does not look at the places of vertices.

    Layouts take most of the time of report data.
    """
    import numpy as np

    def place_part(n: int, edges: bytes) -> Any:
        angles = 2 * np.pi * np.arange(n) / n
        return np.column_stack([1 + np.cos(angles), 1 + np.sin(angles)])

    monkeypatch.setattr("fdgnn.explanations.drawing._place_part", place_part)


# ---------------------------------------------------------------------- real data


def _tu_path(name: str) -> Path:
    """The stored dataset, or a skipped test."""
    home = os.environ.get("FDGNN_DATA")
    if not home:
        pytest.skip(f"{name}: real data is needed; set FDGNN_DATA to a folder with {name}.zip")
    for folder in (Path(home) / "tu", Path(home)):
        for path in (folder / f"{name}.zip", folder / name):
            if path.exists():
                return path
    pytest.skip(f"{name}: neither {name}.zip nor a folder {name} is in FDGNN_DATA={home}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip ``@pytest.mark.real_data("MUTAG", ...)`` where a named dataset is missing."""
    for marker in item.iter_markers("real_data"):
        for name in marker.args:
            _tu_path(name)


@pytest.fixture
def tu_path() -> Callable[[str], Path]:
    """``tu_path("MUTAG")``: where the file is, or a skipped test with the reason."""
    return _tu_path

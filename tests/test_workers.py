"""Worker processes end with their command, and SIGTERM ends a command as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from commands import assert_one_clear_line, fdgnn
from fdgnn.datasets import make_motif_graphs
from tu_files import write_batch

pytest.importorskip("rdkit")

SECONDS = 300  # much more than is needed, on a busy machine; no test depends on less
# As `python -m fdgnn`, but a command that unwinds slowly on a busy machine is not cut short.
FDGNN = f"""
from fdgnn import cli, workers
workers._SECONDS_TO_UNWIND = {SECONDS}
cli.main()
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A model, and tables and graphs that take minutes."""
    folder = tmp_path_factory.mktemp("workers")
    smiles = [f"{'C' * (1 + i % 7)}{'NO'[i % 2]}{'C' * (i % 11)}c1ccccc1{'F' * (i % 3 > 0)}"
              for i in range(2000)]  # fmt: skip
    lines = [f"{one},{i % 2}\n" for i, one in enumerate(smiles)]
    write_table(folder / "small.csv", lines[:200])
    write_table(folder / "large.csv", lines * 300)
    (folder / "shards").mkdir()
    for name in "abcd":
        write_table(folder / "shards" / f"{name}.csv", lines * 75)
    (folder / "few").mkdir()
    for name, times in {"a": 1, "b": 10, "c": 10, "d": 10}.items():
        write_table(folder / "few" / f"{name}.csv", lines * times)
    graphs, y = make_motif_graphs(300, random_state=0)
    write_batch(folder / "MOTIFS", graphs, y)
    run = fdgnn("fit", folder / "small.csv", "--target", "y", "--model", "wl", "-o",
                folder / "model.fdgnn")  # fmt: skip
    assert run.returncode == 0, run.stderr
    return folder


def write_table(path, lines):
    path.write_text("smiles,y\n" + "".join(lines))


def words_of(command, data):
    model = data / "model.fdgnn"
    many = ("--configurations", 500, "--units", 200)
    return {
        "predict a file": ("predict", model, data / "large.csv", "-o", "out.csv"),
        "predict shards": ("predict", model, data / "shards", "-o", "out"),
        "fit out of core": ("fit", data / "shards", "--target", "y", "--model", "wl",
                            "--memory", "1GB", "-o", "out.fdgnn"),
        "fit": ("fit", data / "small.csv", "--target", "y", "--model", "paper", "-o", "out.fdgnn",
                *many),
        "evaluate": ("evaluate", data / "MOTIFS", "--out", "run", "--no-report", *many),
    }[command]  # fmt: skip


COMMANDS = ("predict a file", "predict shards", "fit out of core", "fit", "evaluate")


def started(words, folder):
    """Start a command with two workers, and wait until both are at work."""
    process = subprocess.Popen(
        [sys.executable, "-c", FDGNN, *map(str, words), "-j", "2"], cwd=folder,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"FDGNN_OFFLINE": "1"},
    )  # fmt: skip
    end = time.monotonic() + SECONDS
    busy = []
    while len(busy) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
        family = psutil.Process(process.pid).children(recursive=True)
        busy = [each for each in family if seconds_of(each) > 1.5]
    return process, family


def seconds_of(process):
    try:
        return process.cpu_times().user
    except psutil.Error:
        return 0.0


def ended(process, family, signum):
    """Send a signal to the command alone; return what it wrote when all is over."""
    process.send_signal(signum)
    try:
        out, err = process.communicate(timeout=SECONDS)
        alive = psutil.wait_procs(family, timeout=SECONDS)[1]
    finally:
        for each in family:
            if each.is_running():
                each.kill()
    assert alive == []
    return out, err


@pytest.mark.parametrize("command", COMMANDS)
def test_workers_do_not_outlive_a_killed_command(command, data, tmp_path):
    process, family = started(words_of(command, data), tmp_path)
    ended(process, family, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("command", COMMANDS)
def test_sigterm_ends_a_command_and_its_workers_in_one_line(command, data, tmp_path):
    process, family = started(words_of(command, data), tmp_path)
    _, err = ended(process, family, signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    (told,) = [line for line in err.splitlines() if "error" in line.lower()]
    assert told.startswith("error: terminated by SIGTERM")
    assert ("the same command resumes" in told) == (command != "predict a file")
    assert "Traceback" not in err
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize("command", ["predict a file", "predict shards"])
def test_sigterm_ends_a_command_while_a_worker_starts(command, data, tmp_path):
    """Under load, a worker takes its time: here it is stopped as soon as it is there."""
    words = (*words_of(command, data), "-j", "2")
    process = subprocess.Popen(
        [sys.executable, "-c", FDGNN, *map(str, words)], cwd=tmp_path, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    end, family = time.monotonic() + SECONDS, []
    while len(family) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)
        children = psutil.Process(process.pid).children()
        family = [each for each in children if "spawn_main" in " ".join(each.cmdline())]
    for each in family:
        each.suspend()
    _, err = ended(process, family, signal.SIGTERM)
    assert process.returncode == 128 + signal.SIGTERM
    assert err.splitlines()[-1].startswith("error: terminated by SIGTERM")
    assert not list(tmp_path.rglob("*.part"))


def test_a_terminated_prediction_resumes(data, tmp_path):
    words = ("predict", data / "model.fdgnn", data / "few", "-o", "out")
    process, family = started(words, tmp_path)
    end = time.monotonic() + SECONDS
    while len(list(tmp_path.glob("out/.fdgnn/*.json"))) < 2:  # the first has the settings
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    ended(process, family, signal.SIGTERM)
    finished = len(list(tmp_path.glob("out/.fdgnn/*.json"))) - 1
    assert 0 < finished < 4
    again = subprocess.run(
        [sys.executable, "-m", "fdgnn", *map(str, words), "-j", "2"], cwd=tmp_path,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert f"{finished} of 4 shards" in again.stderr
    assert len(list(tmp_path.glob("out/*.csv"))) == 4


STUBBORN = """
import contextlib, pathlib, sys, time
from fdgnn import workers

def catch_everything(path):
    while True:
        with contextlib.suppress(BaseException):
            pathlib.Path(path).touch()
            time.sleep(1000)

if __name__ == "__main__":
    workers._SECONDS_TO_CLEAN_UP = 1.0
    pool = workers.WorkerPool(1, catch_everything)
    pool.call(sys.argv[1])
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
    pool.terminate()
    pool.shutdown()
"""

# The command gives tasks to its pools in another thread than the one that is interrupted.
LATE = """
from concurrent.futures.process import BrokenProcessPool
from fdgnn import workers

if __name__ == "__main__":
    pool = workers.WorkerPool(1, print)
    workers.terminate_workers()
    try:
        pool.call("late")
    except BrokenProcessPool:
        print("refused")
    pool.shutdown()
"""


# A result is sent in many writes; its worker ends between two of them.
HALF_SENT = """
import contextlib, time
from concurrent.futures.process import BrokenProcessPool
from fdgnn import workers

class Slow:  # to unpickle, so that the pipe is full while its worker is terminated
    def __reduce__(self):
        return time.sleep, (1.5,)

def result(slow):
    return (slow and Slow(), bytes(50_000_000))

if __name__ == "__main__":
    pool = workers.WorkerPool(2, result)
    slow, large = pool.call(True), pool.call(False)
    while not pool._result_queue._reader.poll():
        time.sleep(0.01)
    pool.terminate()
    for each in (slow, large):
        with contextlib.suppress(BrokenProcessPool):
            each.result()
    pool.shutdown()
"""


@pytest.mark.parametrize(("script", "out"), [(STUBBORN, ""), (LATE, "refused\n"), (HALF_SENT, "")])
def test_no_worker_is_left_when_a_pool_was_terminated(script, out, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(script)
    words = [sys.executable, path, tmp_path / "started"]
    run = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert (run.returncode, run.stdout, run.stderr) == (0, out, "")


def test_a_second_prediction_into_one_file_is_rejected_while_the_first_one_runs(data, tmp_path):
    words = ("predict", data / "model.fdgnn", data / "large.csv", "-o", tmp_path / "out.csv")
    process, family = started(words, tmp_path)
    second = fdgnn(*words)
    assert_one_clear_line(second, "out.csv", "another process is writing it")
    assert process.poll() is None
    ended(process, family, signal.SIGKILL)
    assert not (tmp_path / "out.csv").exists()
    words = ("predict", data / "model.fdgnn", data / "small.csv", "-o", tmp_path / "out.csv")
    assert fdgnn(*words).returncode == 0  # the lock ended with its process
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 201

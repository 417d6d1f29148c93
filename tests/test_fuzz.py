"""The search for input that hurts finds what it should find, and nothing in the library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rdkit")
pytest.importorskip("pyarrow")
pytest.importorskip("networkx")
ROOT = Path(__file__).parents[1]

FAULTY = """
import os, signal, sys
from fuzz import running
from fuzz.running import Ledger, Target, run_again, run_child, run_rounds

running.CPU_SECONDS = 1

def crash(case):
    if case == b"bad":
        os.kill(os.getpid(), signal.SIGSEGV)

def hang(case):
    while case == b"bad":
        pass

def hungry(case):
    if case == b"bad":
        bytearray(4 * 2**30)

def wrong(case):
    assert len(case) < 3

def fine(case):
    pass

cases = lambda rng: rng.choice([b"good", b"fine", b"bad"])
for check, kind in ((crash, "crashes"), (hang, "hangs"), (hungry, "wrong")):
    outcome = run_child(Target(check.__name__, cases, check), 0)
    assert getattr(outcome.tally, kind) == outcome.tally.n_found == 1, (check, outcome)
    assert outcome.case == b"bad"
    again = run_again(Target(check.__name__, cases, check), b"bad")
    assert getattr(again.tally, kind) == 1
    assert run_again(Target(check.__name__, cases, check), b"good").tally.n_found == 0
def slow_when_smaller(case):
    while len(case) < 6:
        pass
    assert not case

both = run_child(Target("slow_when_smaller", lambda rng: b"123456", slow_when_smaller), 0)
assert both.tally.wrong == both.tally.n_found == 1 and both.case == b"123456", both
smaller = run_child(Target("wrong", lambda rng: rng.randbytes(rng.randrange(50)), wrong), 0)
assert len(smaller.case) == 3, smaller
assert "AssertionError" in smaller.story

seen = []
def noted(case):
    with open(sys.argv[2], "ab") as file:
        file.write(case)

ledger = Ledger.read(running.Path(sys.argv[1]))
targets = [Target("noted", lambda rng: rng.randbytes(4), noted)]
for _, outcome in run_rounds(targets, ledger, 0.0, 2, 30):
    assert outcome.tally.cases == 30
    assert outcome.tally.n_found == 0
assert Ledger.read(ledger.path).targets["noted"].cases == 60
"""


def run(*arguments, cwd=ROOT):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=cwd, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def test_crashes_hangs_memory_and_wrong_answers_are_found_and_counted(tmp_path):
    noted = tmp_path / "noted"
    done = run("-c", FAULTY, tmp_path / "ledger.json", noted)
    assert done.returncode == 0, done.stderr
    first, second = noted.read_bytes()[:120], noted.read_bytes()[120:]
    assert first != second  # the second round tries others than the first
    assert json.loads((tmp_path / "ledger.json").read_text())["total"]["cases"] == 60


def test_kept_cases_do_no_harm():
    done = run("-m", "fuzz", "--replay")
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((ROOT / "tests" / "cases").glob("*/*"))


def test_a_short_search_finds_nothing(tmp_path):
    more = ("--ledger", tmp_path / "ledger.json", "--keep", tmp_path / "cases")
    done = run("-m", "fuzz", "--rounds", 1, "--cases", 20, *more)
    assert done.returncode == 0, done.stdout + done.stderr
    tallies = json.loads((tmp_path / "ledger.json").read_text())["targets"]
    assert set(tallies) >= {"model", "as_batch", "parameters", "solvers", "rows", "read.arrow"}
    assert all(one["cases"] == 20 for one in tallies.values())
    assert not (tmp_path / "cases").exists()

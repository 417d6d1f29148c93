"""``make fuzz SECONDS=600``, or ``python -m fuzz``: test malicious and damaged input.

Cases that fail are kept in tests/cases, and the exit code is 1. results/fuzz.json counts the cases
of all runs; each run generates new ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from fuzz.running import CASES, Ledger, Outcome, Target, run_again, run_rounds
from fuzz.targets import targets

ROOT = Path(__file__).parents[1]


def main() -> int:
    """Run, and print failures and the counts of all runs."""
    known = targets()
    asked = _asked([target.name for target in known])
    chosen = [target for target in known if not asked.only or target.name in asked.only]
    ledger = Ledger.read(asked.ledger)
    if asked.replay:
        outcomes = _kept(asked.keep, chosen)
    else:
        outcomes = run_rounds(chosen, ledger, asked.seconds, asked.rounds, asked.cases, asked.jobs)
    n_found = 0
    for n_done, (target, outcome) in enumerate(outcomes, 1):
        if outcome.tally.n_found:
            n_found += 1
            place = _keep(asked.keep, target, outcome.case or b"")
            print(f"{target.name}: kept {place}\n{outcome.story.strip()[-1500:]}", flush=True)
        elif sys.stderr.isatty():
            print(f"\r{n_done} children, {n_found} faults", end="", file=sys.stderr)
    if not asked.replay:
        _show(ledger)
    print(f"{n_found} faults")
    return 1 if n_found else 0


def _asked(names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long, about")
    parser.add_argument("--rounds", type=int, help="so many children of each target, instead")
    parser.add_argument("--cases", type=int, default=CASES, help="of one child")
    parser.add_argument("--jobs", type=int, default=1, help="children at a time")
    parser.add_argument("--only", nargs="*", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--replay", action="store_true", help="run the kept cases again, only")
    parser.add_argument("--ledger", type=Path, default=ROOT / "results" / "fuzz.json")
    parser.add_argument("--keep", type=Path, default=ROOT / "tests" / "cases")
    return parser.parse_args()


def _kept(folder: Path, chosen: list[Target]) -> Iterator[tuple[Target, Outcome]]:
    for target in chosen:
        for path in sorted((folder / target.name).glob("*")):
            yield target, run_again(target, path.read_bytes())


def _keep(folder: Path, target: Target, case: bytes) -> Path:
    path = folder / target.name / sha256(case).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case)
    return path


def _show(ledger: Ledger) -> None:
    print(
        f"{'target':14} {'cases':>9} {'clean':>9} {'crashes':>8} {'hangs':>6} {'wrong':>6} "
        f"{'slowest':>8} {'MB':>6}"
    )
    for name, one in [*sorted(ledger.targets.items()), ("total", ledger.total)]:
        counts = f"{one.cases:9} {one.clean:9} {one.crashes:8} {one.hangs:6} {one.wrong:6}"
        print(f"{name:14} {counts} {one.slowest:7.2f}s {one.largest / 1e6:6.0f}")


if __name__ == "__main__":
    sys.exit(main())

"""Write results/compare/README.md from the rows that ``fdgnn compare`` left beside it.

    python results/make_comparison.py [--add runs/NAME/compare.json ...]

``--add`` puts the rows of further runs into NAME.json first. A model that has a row already gets
the new one, except for FDGNN itself, whose row comes from the paper's whole protocol.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fdgnn.cli.tables import times
from fdgnn.evaluation import paper
from fdgnn.evaluation.baselines import RIVALS
from fdgnn.evaluation.records import ComparisonRow, PublishedAccuracy
from fdgnn.evaluation.rundir import read_file
from fdgnn.records import write_record

HERE = Path(__file__).parent / "compare"

HEAD = """# Side by side

Made by `make results` from the `NAME.json` beside this page, each the `compare.json` of a run of
`fdgnn compare NAME` ([how everything is measured](../../docs/how-to/baselines.md)). Times are
seconds on one core, means over ten outer folds. *Off by* is our mean less the published one, in
the larger of the two standard deviations. *Searched*: configurations, and inner folds they were
validated on; 0 folds: nothing was chosen, the first configuration of the grid was trained for all
published epochs.
FDGNN's accuracy is averaged over its random initializations, a rival's is of one model; both over
the same folds.
*FDGNN auto* selects while it trains: its training time includes the selection, which has no time of
its own.
Our own variants and WL-OA ran later than the other rivals, on the same kind of machine; *faster by*
is beside the same row of FDGNN for all.
[What is behind the differences](../../docs/how-to/baselines.md#what-was-found).
"""

MOLECULES = ("BACE", "BBBP")  # files of SMILES beside the paper's datasets
TABLE_4 = ("fdgnn", "gnn", "gin", "wl")


def percent(row: ComparisonRow | PublishedAccuracy | None) -> str:
    if row is None or row.accuracy_mean is None:
        return "-"
    std = row.accuracy_std
    return f"{100 * row.accuracy_mean:.2f}" + ("" if std is None else f" ± {100 * std:.2f}")


def off_by(row: ComparisonRow) -> str:
    theirs = row.published
    if theirs is None or row.accuracy_mean is None:
        return "-"
    std = max(row.accuracy_std or 0.0, theirs.accuracy_std or 0.0)
    return f"{(row.accuracy_mean - theirs.accuracy_mean) / std:+.1f}" if std else "-"


def dataset(name: str, rows: Sequence[ComparisonRow]) -> list[str]:
    lines = [
        f"## {name}",
        "",
        "| | accuracy, % | published | off by | training | FDGNN is faster by | test | selection |"
        " weights | MB | searched |",
        "|---" * 11 + "|",
    ]
    ours = rows[0].train_seconds
    for row in rows:
        head = f"| {row.title} | "
        if row.status != "finished":
            lines.append(
                f"{head}{row.status}: {row.reason} | {percent(row.published)} |" + " |" * 8
            )
            continue
        alone = row.model == "fdgnn" or not ours
        faster = "" if alone else times(row.train_seconds / ours)
        guesses = f" x {row.n_guesses}" if (row.n_guesses or 1) > 1 else ""
        lines.append(
            f"{head}{percent(row)} | {percent(row.published)} | {off_by(row)} | "
            f"{row.train_seconds:.3g} | {faster} | {row.test_seconds:.2g} | "
            f"{row.selection_seconds:.0f} | {row.parameters} | {row.peak_mb:.0f} | "
            f"{row.n_configurations}{guesses} on {row.inner_folds} folds |"
        )
    return lines


def table_4(rows: Sequence[ComparisonRow]) -> list[str]:
    """Training times as the paper measured them: networks for all their epochs."""
    by_name = {row.model: row for row in rows if row.status == "finished"}
    if "fdgnn" not in by_name:
        return []
    ours = by_name["fdgnn"].train_seconds
    lines = [
        "## Table 4: seconds to train on MUTAG (`make table4`)",
        "",
        "| | ours | beside FDGNN | paper | beside FDGNN |",
        "|---|---|---|---|---|",
    ]
    theirs = {name.lower(): value for name, value in paper.MUTAG_TRAINING_TIMES.items()}
    for name in (n for n in TABLE_4 if n in by_name):
        row, printed = by_name[name], theirs[name]
        lines.append(
            f"| {name.upper()} | {row.train_seconds:.3g} ± {row.train_seconds_std:.2g} | "
            f"{times(row.train_seconds / ours)} | {printed.mean} ± {printed.std} | "
            f"{times(printed.mean / theirs['fdgnn'].mean)} |"
        )
    return lines


def page() -> str:
    found = {
        name: read_file(HERE / f"{name}.json", list[ComparisonRow])
        for name in (*paper.DATASETS, *MOLECULES)
        if (HERE / f"{name}.json").exists()
    }
    sections = [dataset(name, rows) for name, rows in found.items()]
    timed = HERE / "table4.json"
    if timed.exists():
        sections.insert(0, table_4(read_file(timed, list[ComparisonRow])))
    return HEAD + "".join("\n" + "\n".join(lines) + "\n" for lines in sections)


def add(rows: Sequence[ComparisonRow]) -> None:
    """Put rows of one dataset into its file, in the order of ``fdgnn compare``."""
    path = HERE / f"{rows[0].dataset}.json"
    known = read_file(path, list[ComparisonRow]) if path.exists() else []
    by_model = {row.model: row for row in rows} | {r.model: r for r in known if r.model == "fdgnn"}
    by_model = {row.model: row for row in known} | by_model
    write_record(path, [by_model[name] for name in ("fdgnn", *RIVALS) if name in by_model])


def main() -> None:
    parser = argparse.ArgumentParser(description="The page of rivals, made from their rows.")
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="compare.json of new runs")
    for path in parser.parse_args().add:
        add(read_file(path, list[ComparisonRow]))
    (HERE / "README.md").write_text(page())
    timed = HERE / "table4.json"
    if timed.exists():
        print("\n".join(table_4(read_file(timed, list[ComparisonRow]))))


if __name__ == "__main__":
    main()

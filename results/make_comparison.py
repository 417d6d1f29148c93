"""Write results/compare/README.md from the evaluations of ``fdgnn compare`` in the same folder.

    python results/make_comparison.py [--add runs/NAME ...]

``--add`` first adds the rows of further runs to NAME.json. The new row replaces an existing row of
the same model, except for FDGNN itself, whose row comes from the paper's whole protocol.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from fdgnn.cli.output import seconds_of, times
from fdgnn.evaluation import paper
from fdgnn.evaluation.baselines import METHODS
from fdgnn.evaluation.record import Evaluation, MetricScores, PublishedScore
from fdgnn.evaluation.run import read_evaluations
from fdgnn.records import write_record
from fdgnn.texts import counted

HERE = Path(__file__).parent / "compare"

HEAD = """# Comparison with baselines

Written by `make results` from the `NAME.json` in this folder, each the `evaluation.json` of a run
of `fdgnn compare NAME` ([protocol](../../docs/how-to/baselines.md#the-protocol)), on the folds of
seed 0, mean ± standard deviation over ten outer folds. The rows *FDGNN auto* were measured with
earlier base models; [results of the current ones](../beyond/README.md), over three or more seeds,
differ.

* *Difference*: our mean minus the published one, in units of the larger standard deviation.
* *Training*: CPU seconds to train the selected model on one core, mean over the outer folds.
  *Relative to FDGNN*: this time divided by FDGNN's. *Selection*: CPU seconds of the hyperparameter
  search, for all outer folds together. FDGNN is trained in milliseconds, but its search takes
  minutes. *FDGNN auto* selects during training, so its training time is its total time.
* *Searched*: the number of configurations, and of inner folds for their validation. With 0 folds,
  nothing was selected; the first configuration of the grid was trained for all published epochs.
* FDGNN's accuracy is a mean over its random initializations; other accuracies are of one model.
* *FDGNN auto* and WL-OA were measured later than the others, on the same kind of machine.

[Conclusions](../../docs/how-to/baselines.md#what-was-found).
"""

MOLECULES = ("BACE", "BBBP")  # files of SMILES beside the paper's datasets
TABLE_4 = ("paper", "gnn", "gin", "wl")


def percent(row: MetricScores | PublishedScore | None) -> str:
    if row is None or row.mean is None:
        return "-"
    return f"{100 * row.mean:.2f}" + ("" if row.std is None else f" ± {100 * row.std:.2f}")


def off_by(row: Evaluation) -> str:
    theirs = row.published
    if theirs is None or row.score is None:
        return "-"
    std = max(row.std or 0.0, theirs.std or 0.0)
    return f"{(row.score - theirs.mean) / std:+.1f}" if std else "-"


def dataset(name: str, rows: Sequence[Evaluation]) -> list[str]:
    lines = [
        f"## {name}",
        "",
        "| | accuracy, % | published | difference | training, s | relative to FDGNN | test, s |"
        " selection, s |"
        " weights | MB | searched |",
        "|---" * 11 + "|",
    ]
    ours = seconds_of(rows[0])[0]
    for row in rows:
        head = f"| {row.model.title} | "
        train, test = seconds_of(row)
        if row.status != "finished":
            lines.append(
                f"{head}{row.status}: {row.reason} | {percent(row.published)} |" + " |" * 8
            )
            continue
        protocol = row.protocol
        alone = row.model.name == "paper" or not ours
        faster = "" if alone else times(train / ours)
        many = protocol.n_initializations
        initializations = f" x {many}" if many > 1 else ""
        lines.append(
            f"{head}{percent(row.by('accuracy'))} | {percent(row.published)} | {off_by(row)} | "
            f"{train:.3g} | {faster} | {test:.2g} | "
            f"{row.times.selection:.0f} | {row.model.n_parameters} | {row.peak_mb:.0f} | "
            f"{protocol.n_configurations}{initializations} on {counted(protocol.n_inner, 'fold')} |"
        )
    return lines


def table_4(rows: Sequence[Evaluation]) -> list[str]:
    """Training times as the paper measured them: networks for all their epochs."""
    by_name = {row.model.name: row for row in rows if row.status == "finished"}
    if "paper" not in by_name:
        return []
    ours = seconds_of(by_name["paper"])[0]
    lines = [
        "## Table 4: seconds to train on MUTAG (`make table4`)",
        "",
        "| | ours | relative to FDGNN | paper | relative to FDGNN |",
        "|---|---|---|---|---|",
    ]
    theirs = paper.MUTAG_TRAINING_TIMES
    for name in (n for n in TABLE_4 if n in by_name):
        title = "FDGNN" if name == "paper" else name.upper()
        train, printed = seconds_of(by_name[name])[0], theirs[title]
        lines.append(
            f"| {title} | {train:.3g} | "
            f"{times(train / ours)} | {printed.mean} ± {printed.std} | "
            f"{times(printed.mean / theirs['FDGNN'].mean)} |"
        )
    return lines


def page() -> str:
    found = {
        name: read_evaluations(HERE / f"{name}.json")
        for name in (*paper.DATASETS, *MOLECULES)
        if (HERE / f"{name}.json").exists()
    }
    sections = [dataset(name, rows) for name, rows in found.items()]
    timed = HERE / "table4.json"
    if timed.exists():
        sections.insert(0, table_4(read_evaluations(timed)))
    return HEAD + "".join("\n" + "\n".join(lines) + "\n" for lines in sections)


def add(rows: Sequence[Evaluation]) -> None:
    """Add evaluations of one dataset to its file, in the order of ``fdgnn compare``."""
    path = HERE / f"{rows[0].dataset}.json"
    known = read_evaluations(path) if path.exists() else []
    by_name = {row.model.name: row for row in (*known, *rows)}
    by_name |= {row.model.name: row for row in known if row.model.name == "paper"}
    write_record(path, [by_name[name] for name in ("paper", *METHODS) if name in by_name])


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the page of baselines.")
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="directories of new runs")
    for path in parser.parse_args().add:
        add(read_evaluations(path))
    (HERE / "README.md").write_text(page())
    timed = HERE / "table4.json"
    if timed.exists():
        print("\n".join(table_4(read_evaluations(timed))))


if __name__ == "__main__":
    main()

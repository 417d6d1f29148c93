"""Write the table of the project's README from the comparisons in results/compare."""

from __future__ import annotations

from pathlib import Path

from fdgnn.evaluation.records import ComparisonRow
from fdgnn.records import decode

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
BEGIN, END = "<!-- results: made by `make results` -->\n", "<!-- /results -->"
NAMES = ("MUTAG", "PTC_MR", "PROTEINS", "IMDB-BINARY", "NCI1")


def cell(row: ComparisonRow | None) -> str:
    """Accuracy, and seconds to train."""
    if row is None or row.accuracy_mean is None or row.train_seconds is None:
        return "-"
    chosen = "" if row.inner_folds else "\\*"
    return f"{100 * row.accuracy_mean:.1f}{chosen}, {seconds(row.train_seconds)}"


def seconds(value: float) -> str:
    if value < 0.1:
        return f"{1e3 * value:.0f} ms"
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"


def table() -> str:
    rows = {
        name: {
            row.model: row
            for row in decode((HERE / "compare" / f"{name}.json").read_bytes(), list[ComparisonRow])
        }
        for name in NAMES
    }
    models = dict.fromkeys(model for found in rows.values() for model in found)
    titles = {model: row.title for found in rows.values() for model, row in found.items()}
    lines = [
        "| accuracy in %, time to train | " + " | ".join(NAMES) + " |",
        "|---" * (len(NAMES) + 1) + "|",
        *(
            f"| {titles[model]} | " + " | ".join(cell(rows[n].get(model)) for n in NAMES) + " |"
            for model in models
        ),
        "",
        "\\* nothing was selected: the first configuration of the published grid, for all epochs.",
    ]
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Put the table between its two marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8")), encoding="utf-8")

"""Write the tables of results beyond the paper to this folder's README.md and the project's.

The input is NAME-MODEL-SEED.json (`run.py`), ablation.json (`python -m benchmarks.ablation`),
rules.json (`python -m benchmarks.rules`), molecules.json (`python -m benchmarks.molecules`),
training_times.json (`python -m benchmarks.training_times`) and speed.json
(`python -m benchmarks.colors`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from fdgnn.evaluation import paper
from fdgnn.evaluation.run import read_evaluations

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- beyond: made by `make results` -->\n", "<!-- /beyond -->"
DATASETS = (
    "MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1", "IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY",
    "COLLAB",
)  # fmt: skip
MODELS = ("auto", "wl", "union", "paper")
TITLES = {
    "auto": "**auto**",
    "wl": "WL features only",
    "union": "union of reservoir and WL features",
    "paper": "the paper's model",
}
N_SPLITS = 10
SIMPLE = ("boosting on descriptors", "Morgan counts, linear")
#: Base models that runs name otherwise than today, and their names.
RENAMED = {
    "colors, 2 rounds": "WL, 2 iterations", "colors, 3 rounds": "WL, 3 iterations",
    "degrees, refined once": "degrees, 1 iteration",
    "degrees in bins, refined once": "degrees in bins, 1 iteration",
    "structure, Gaussian": "structure, RBF", "degrees, Gaussian": "degrees, RBF",
}  # fmt: skip
#: Best published accuracy on the splits of Errica et al., and its source.
SPLITS = {
    "PROTEINS": "75.8 (no structure)", "NCI1": "80.0 (GIN)", "IMDB-BINARY": "74.5 (LTP)",
    "IMDB-MULTI": "50.0 (LTP)", "REDDIT-BINARY": "91.6 (iCGMM)", "COLLAB": "79.4 (LTP)",
}  # fmt: skip
#: Published accuracies that were not chosen on the folds they are reported on, %, and their source.
PUBLISHED = {
    "FDGNN": ("the paper", {n: row.mean for n, row in paper.ACCURACY["FDGNN"].items()}),
    "WL": (
        "Weisfeiler-Lehman kernel, the TUDataset paper; IMDB-MULTI as quoted by Errica et al.",
        {"NCI1": 84.2, "IMDB-MULTI": 50.5},
    ),
    "WL-OA": (
        "optimal assignment, the TUDataset paper; IMDB-BINARY as quoted in TOGL's paper",
        {"NCI1": 85.0, "IMDB-BINARY": 74.0, "REDDIT-BINARY": 88.3},
    ),
    "shortest paths": ("shortest-path kernel, the TUDataset paper", {"PROTEINS": 75.6}),
    "no structure": ("baseline without edges, Errica et al.", {"PROTEINS": 75.8}),
    "RWNN": ("random walk graph neural network, its paper, the splits of Errica et al.",
             {"MUTAG": 89.2}),
    "WWL": ("Wasserstein Weisfeiler-Lehman, its paper", {"MUTAG": 87.2, "PTC_MR": 66.3}),
    "GIN": ("Errica et al., A Fair Comparison of Graph Neural Networks",
            {"NCI1": 80.0, "COLLAB": 75.6}),
    "iCGMM": ("its paper, the same splits", {"REDDIT-BINARY": 91.6, "COLLAB": 78.9}),
    "LTP": ("local topological profile, its paper, the same splits",
            {"IMDB-BINARY": 74.5, "IMDB-MULTI": 50.0, "REDDIT-BINARY": 91.1, "COLLAB": 79.4}),
}  # fmt: skip


def accuracies(name: str, model: str) -> list[float]:
    """Mean accuracies of the seeds that were run, %."""
    files = sorted(HERE.glob(f"{name}-{model}-[0-9].json"))
    return [100 * read_evaluations(file)[0].score for file in files]


def our_rows() -> list[str]:
    """Return rows of our models over seeds, and of the paper's model by its full protocol."""
    rows = []
    for model in MODELS:
        found = {name: accuracies(name, model) for name in DATASETS}
        if any(found.values()):
            rows.append(_row(TITLES[model], [_with_spread(found[name]) for name in DATASETS]))
    full = [f"{100 * _full(name):.1f}" for name in DATASETS]
    return [*rows, _row("the paper's model, its own protocol, one seed", full)]


def _mean(values: list[float]) -> str:
    """Return the mean, with the number of seeds if it is not three."""
    if not values:
        return "-"
    seeds = "" if len(values) == 3 else f" ({len(values)})"
    return f"{np.mean(values):.1f}{seeds}"


def _full(name: str) -> float:
    score: float = read_evaluations(HERE.parent / f"{name}.json")[0].score
    return score


def _with_spread(values: list[float]) -> str:
    """Return mean ± standard deviation over seeds, with their number if it is not three."""
    spread = f" ± {np.std(values, ddof=1):.1f}" if len(values) > 1 else ""
    mean, *seeds = _mean(values).split(" ", 1)
    return " ".join([mean + spread, *seeds])


def published_rows() -> list[str]:
    """Return rows of published results, and of baselines run here on the folds of seed 0."""
    rows = [
        _row(f"{model}, published", [_number(found.get(name)) for name in DATASETS])
        for model, (_, found) in PUBLISHED.items()
    ]
    baselines: dict[str, dict[str, float]] = {}
    for name in DATASETS:
        path = HERE.parent / "compare" / f"{name}.json"
        if path.exists():
            for row in read_evaluations(path):
                if row.score is not None and not row.model.name.startswith(("fdgnn", "paper")):
                    baselines.setdefault(row.model.title, {})[name] = 100 * row.score
    return rows + [
        _row(f"{title}, run here", [_number(found.get(name)) for name in DATASETS])
        for title, found in baselines.items()
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def time_rows() -> list[str]:
    """Return training times (`python -m benchmarks.training_times`), in CPU seconds."""
    found = _json("training_times.json") or {}
    titles = {
        "auto": "*auto*: training and selection, CPU s",
        "paper": "the paper's model: training, CPU s",
        "search": "the paper's model: search and training, CPU s",
    }
    return [
        _row(title, [_seconds(found.get(name, {}).get(what)) for name in DATASETS])
        for what, title in titles.items()
        if found
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _row(what: str, cells: list[str]) -> str:
    return f"| {what} | " + " | ".join(cells) + " |"


def table(rows: list[str], *, first: str = "accuracy, %", names: Any = DATASETS) -> str:
    """Return a Markdown table."""
    return "\n".join([_row(first, list(names)), "|---" * (len(names) + 1) + "|", *rows]) + "\n"


def ablation_table(
    names: tuple[str, ...], found: dict[str, Any], first: str = "accuracy of one model, %"
) -> str:
    """Return a table with a column for each dataset; rows in the order in which they were run."""
    there = [name for name in names if name in found]
    whats = dict.fromkeys(what for name in there for what in found[name])
    rows = [
        _row(_singular(what), [_mean_of(found[name].get(what)) for name in there]) for what in whats
    ]
    return table(rows, first=first, names=there)


def _singular(what: str) -> str:
    """Write "1 iteration" where a run is named "1 iterations"."""
    return re.sub(r"\b1 (iteration|standard error)s", r"1 \1", what)


def _mean_of(values: list[float] | None) -> str:
    return "-" if not values else f"{np.mean(values):.1f}"


def page() -> str:
    """Return the text of README.md of this folder."""
    text = (HERE / "template.md").read_text(encoding="utf-8")
    sources = "\n".join(f"- {model}: {source}" for model, (source, _) in PUBLISHED.items())
    ablation = _json("ablation.json") or {}
    parts = {
        "accuracy": table([*our_rows(), *published_rows()]),
        "times": table(time_rows(), first="CPU seconds"),
        "sources": sources + "\n",
        "labeled": ablation_table(("MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1"), ablation),
        "without": ablation_table(
            ("MUTAG", "PTC_MR", "NCI1", "COX2", "PROTEINS", "IMDB-BINARY", "IMDB-MULTI"),
            _json("without.json") or {},
            "accuracy, %",
        ),
        "rules": ablation_table(DATASETS, _json("rules.json") or {}, "accuracy, %"),
        "plain": ablation_table(("IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY"), ablation),
        "molecules": molecules_table(_json("molecules.json") or {}),
        "linear": molecules_table(_json("linear.json") or {}),
        "splits": splits_table(_json("splits.json") or {}),
        "alone": alone_table(("MUTAG", "PTC_MR", "COX2", "PROTEINS", "NCI1")),
        "alone_plain": alone_table(("IMDB-BINARY", "IMDB-MULTI", "REDDIT-BINARY", "COLLAB")),
        "speed": speed_table(_json("speed.json") or []),
    }
    return re.sub(r"\{\{(\w+)\}\}\n", lambda match: parts[match[1]] + "\n", text)


def _json(name: str) -> Any:
    path = HERE / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def molecules_table(found: dict[str, dict[str, Any]]) -> str:
    """Return a row for each dataset: means over thirty tasks, mean and spread over seeds."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for key, row in sorted(found.items()):
        groups.setdefault(re.sub(r"-[0-9]$|/.*", "", key), []).append(row)
    groups["MoleculeACE"] = [row for row in groups.get("MoleculeACE", []) if "n_test" in row]
    rows = []
    for name, each in groups.items():
        if each:
            title = f"{name}, mean of {len(each)} tasks" if name == "MoleculeACE" else name
            if "random" in each[0]["measure"]:
                title += f", seeds: {len(each)}"
            columns = ("auto", *SIMPLE)
            scores = [_mean_and_spread(each, column) for column in columns]
            averaged = dict.fromkeys(model for row in each for model in row["base models"])
            seconds = f"{np.mean([row['CPU seconds'] for row in each]):.0f} s"
            cells = [each[0]["measure"], *scores, seconds, "; ".join(averaged)]
            rows.append(_row(title, cells))
    names = ("measure", "auto", *SIMPLE, "training, CPU", "averaged")
    return table(rows, first="molecules", names=names)


def _mean_and_spread(rows: list[dict[str, Any]], column: str) -> str:
    """Return the mean over tasks or seeds, for seeds with the standard deviation."""
    values = [row[column] for row in rows if column in row]
    if not values:
        return ""
    digits = 1 if "AUC" in rows[0]["measure"] else 3
    spread = f" ± {np.std(values, ddof=1):.{digits}f}" if 1 < len(values) < 10 else ""
    return f"{np.mean(values):.{digits}f}{spread}"


def alone_table(names: tuple[str, ...]) -> str:
    """Return the accuracy of each base model of auto, and how often it is averaged."""
    found: dict[str, dict[str, list[Any]]] = {}
    for name in names:
        for path in sorted(HERE.glob(f"{name}-auto-[0-9].json")):
            for base in read_evaluations(path)[0].base_models:
                title = RENAMED.get(base.name, base.name)
                found.setdefault(title, {}).setdefault(name, []).append(base)
    rows = [
        _row(what, [_score_and_share(each.get(name)) for name in names])
        for what, each in found.items()
    ]
    averages = [_mean(accuracies(name, "auto")) for name in names]
    return table([*rows, _row("average of the selected ones", averages)], names=names)


def _score_and_share(bases: list[Any] | None) -> str:
    """Return the mean accuracy and the mean number of outer folds in which it is averaged."""
    if not bases:
        return "-"
    kept = np.mean([base.n_kept for base in bases])
    return f"{100 * np.mean([base.score for base in bases]):.1f} ({kept:.0f})"


def splits_table(found: dict[str, list[float]]) -> str:
    """Return two rows: auto, and the best published accuracy on the same splits."""
    ours = [
        f"{np.mean(found[name]):.1f} ± {np.std(found[name], ddof=1):.1f}"
        if len(found.get(name, [])) == N_SPLITS
        else "-"
        for name in SPLITS
    ]
    rows = [_row("**auto**", ours), _row("best published", list(SPLITS.values()))]
    return table(rows, names=tuple(SPLITS))


def speed_table(found: list[dict[str, Any]]) -> str:
    """Return a row for each figure."""
    rows = [_row(one["what"], [f"{one['figure']:.3g}", one["must"]]) for one in found]
    return table(rows, first="", names=("measured", "goal"))


def with_table(text: str) -> str:
    """Return the project's README with the short table between its two marks."""
    best = {
        name: max((row[1][name], model) for model, row in PUBLISHED.items() if name in row[1])
        for name in DATASETS
    }
    rows = [
        _row("**auto**", [_with_spread(accuracies(name, "auto")) for name in DATASETS]),
        _row("best published", [f"{v:.1f} ({m})" for v, m in best.values()]),
        _row("the paper's model", [_with_spread(accuracies(n, "paper")) for n in DATASETS]),
        *time_rows(),
    ]
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(rows) + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(), encoding="utf-8")
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")

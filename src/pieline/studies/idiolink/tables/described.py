"""IdioLink's Tables 3, 4 and 6, which describe: hyperparameters, artifacts and checkpoints.

Nothing computes them. Ours is what this project records or this run is set to; the printed text
stands beside it where it is another.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from pieline.core.files import read_text
from pieline.core.upstream import load_upstream
from pieline.core.yamls import read_yaml
from pieline.reporting.given import Given
from pieline.reporting.printed import Statement, number_in, read_printed, state
from pieline.reporting.tables import Cell, Group, Head, Number, Row, TableContent
from pieline.studies.idiolink.datasets.tuples import HARD_NEGATIVES, SOFT_NEGATIVES
from pieline.studies.idiolink.settings import FineTuning

_BESIDE = "The printed value stands beside ours where it is another."
_DRAMA = "drama-1b"
_UNNAMED = "neither models.yaml nor idiolink.construction names it"
MAGPIE = "magpie/MAGPIE_unfiltered.jsonl"


class Package(NamedTuple):
    """A Python package: its name in the lock file, and the licence of its project."""

    name: str
    licence: str


PACKAGES = {
    "Agno": Package("agno", "Apache-2.0"),
    "SentenceTransformer": Package("sentence-transformers", "Apache-2.0"),
    "PyTorch": Package("torch", "BSD-3-Clause"),
    "rank-bm25": Package("rank-bm25", "Apache-2.0"),
}
"""The packages of Table 4, as it calls them."""


def hyperparameters(given: Given) -> TableContent:
    """Table 3: what this run's trainings are set to.

    `options` are the settings of fine-tuning, as JSON.
    """
    tuning = FineTuning.model_validate(given.options)
    batch_size = tuning.batch_size
    found: dict[str, tuple[str, float | None]] = {
        "soft_negatives": ("“Soft” negatives", SOFT_NEGATIVES),
        "hard_negatives": ("“Hard” negatives", HARD_NEGATIVES),
        "max_epochs": ("Max epochs", tuning.max_epochs),
        "batch_size": ("Batch size", batch_size),
        "batch_size_drama": (
            "Batch size of Drama-1B",
            tuning.batch_sizes.get(_DRAMA, batch_size) if _DRAMA in tuning.models else None,
        ),
        "learning_rate": ("Learning rate", tuning.learning_rate),
        "warm_up_steps": ("Warm-up steps (linear)", tuning.warmup_steps),
        "early_stopping_min_delta": ("Min-delta (early stopping)", tuning.min_delta),
        "early_stopping_patience_epochs": ("Patience epochs (early stopping)", tuning.patience),
    }
    absent = "" if tuning.models else "no model is fine-tuned in this configuration"
    rows = []
    for row in read_printed(given.files["published"]):
        name, printed = row["parameter"], row["value"]
        label, value = found[name]
        if absent or value is None:
            reason = absent or f"{_DRAMA} is not fine-tuned in this configuration"
            stated = state("", printed, reason=f"not run: {reason}")
            rows.append(Row((label,), (_cell(stated, parameter=name),), reason))
        else:
            stated = state(printed if float(printed) == value else f"{value:g}", printed)
            rows.append(Row((label,), (_cell(stated, parameter=name),)))
    return TableContent(
        heads=((Head("Parameter"), Head("this run")),),
        groups=(Group(tuple(rows)),),
        caption=f"Fine-tuning hyperparameters. {_BESIDE}",
        wide=False,
    )


def artifacts(given: Given) -> TableContent:
    """Table 4: data and packages, their licences, and the versions that this project pins.

    Kind and usage are the paper's words; nothing of ours stands beside them.
    """
    pinned = dict(
        re.findall(r"^([\w.-]+)==(\S+)", read_text(given.files["lock"]), flags=re.MULTILINE)
    )
    magpie = load_upstream(given.files["upstream"])[MAGPIE]
    rows = []
    for row in read_printed(given.files["published"]):
        name = row["artifact"]
        package = PACKAGES.get(name)
        if package:
            licence, version = package.licence, pinned[package.name]
        else:
            licence = read_yaml(given.files["licences"])[name.lower()]["released"]
            kind, _, digest = magpie.identity.rpartition(" ")
            version = f"{kind} {digest[:8]}" if digest else "not pinned"
        cells = (
            Cell(text=row["type"]),
            _cell(state(licence, row["licence"]), artifact=name, metric="licence"),
            _cell(state(version, ""), artifact=name, metric="version"),
            Cell(text=row["usage"]),
        )
        rows.append(Row((name,), cells))
    return TableContent(
        heads=(tuple(map(Head, ("Artifact", "Type", "License", "Version here", "Usage"))),),
        groups=(Group(tuple(rows)),),
        caption=f"Artifacts used during experiments; type and usage as printed. {_BESIDE}",
        texts=True,
    )


def checkpoints(given: Given) -> TableContent:
    """Table 6: checkpoints, licences and sizes, and the revisions that models.yaml pins.

    `options` are the fields of models' entries by the checkpoint as Table 6 prints it.
    """
    rows = []
    for row in read_printed(given.files["published"]):
        name, entry = row["model"], given.options.get(row["checkpoint"])
        if entry is None:
            names = ("checkpoint", "licence", "parameters", "revision")
            stated = {key: state("", row.get(key, ""), reason=_UNNAMED) for key in names}
        else:
            stated = _of_entry(entry, row)
        model = entry["name"] if entry else name
        cells = {key: _cell(each, model=model, metric=key) for key, each in stated.items()}
        commit = re.fullmatch("[0-9a-f]{40}", stated["revision"].ours)
        if commit:
            cells["revision"] = Cell(cells["revision"].number, text=commit[0][:8])
        rows.append(Row((name,), tuple(cells.values()), "" if entry else _UNNAMED))
    return TableContent(
        heads=(tuple(map(Head, ("Model", "Checkpoint", "License", "# Param", "Revision here"))),),
        groups=(Group(tuple(rows)),),
        caption=f"Checkpoints used during experiments, as models.yaml has them. {_BESIDE}"
        " Where a maker does not tell a model's size, the paper estimates it.",
        texts=True,
    )


def _of_entry(entry: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, Statement]:
    """What an entry of models.yaml states beside a row of Table 6."""
    size = entry["parameters"] or "not told"
    if row["parameters_are_estimated"] == "yes":
        size, why = "not told", "its maker tells no size; the printed one is an estimate"
    elif size == row["parameters"]:
        why = ""
    elif same_size(size, row["parameters"]):
        why = "as printed, rounded"
    else:
        why = "not the printed size, however rounded"
    places = {"api": "at its provider", "package": f"package {entry.get('package')}"}
    return {
        "checkpoint": state(entry["checkpoint"], row["checkpoint"]),
        "licence": state(entry["licence"], row["licence"]),
        "parameters": state(size, row["parameters"], reason=why),
        "revision": state(entry.get("revision") or places.get(entry["source"], "not pinned"), ""),
    }


def same_size(ours: str, printed: str) -> bool:
    """Whether ours, rounded to the digits that are printed, is the printed number of parameters.

    Sizes are text such as `22.7M` or `9B`; closing zeros are no digits.
    """
    one, other = number_in(ours), number_in(printed)
    if one is None or other is None:
        return False
    digits = len(printed[:-1].replace(".", "").strip("0"))
    return float(f"{one:.{digits - 1}e}") == other


def _cell(stated: Statement, **key: str) -> Cell:
    return Cell(Number({**key, "metric": key.get("metric", "value")}, stated))

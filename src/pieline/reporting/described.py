"""Tables of facts that are not measured, such as hyperparameters, artifacts and checkpoints.

The values are not computed: they come from this project's records or this run's settings. The
printed text is shown where it differs from ours.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from pieline.core.errors import pluralize
from pieline.core.files import read_text
from pieline.core.measures import Measure
from pieline.core.upstream import UpstreamFile, load_upstream
from pieline.core.yamls import read_yaml
from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.numbers import rows_of
from pieline.reporting.ours import OurNumbers
from pieline.reporting.printed import StatedText, general, number_in, state
from pieline.reporting.tables import BESIDE, Cell, Group, Row, TableContent, headers

R = TypeVar("R")
PrintedTexts = Iterable[Mapping[str, str]]
"""Rows of a file in published/, as `read_printed` returns them."""

_UNUSED = "not used in this project"


class Package(NamedTuple):
    """Name of a Python package in the lock file, and its license."""

    name: str
    licence: str


PACKAGES = {
    "Agno": Package("agno", "Apache-2.0"),
    "SentenceTransformer": Package("sentence-transformers", "Apache-2.0"),
    "PyTorch": Package("torch", "BSD-3-Clause"),
    "rank-bm25": Package("rank-bm25", "Apache-2.0"),
}
"""Packages in the papers' tables, by printed name."""
SERVICES = {
    "Together AI": ("Proprietary", "managed by the provider"),
    "Label Studio AI": ("Apache-2.0", "not installed here"),
}
"""License and version of external services: an API and an annotation platform."""


def text_row(labels: Sequence[str], *texts: str | StatedText, reason: str = "") -> Row:
    """Return a row of texts; a plain text is not compared with a printed one."""
    cells = (
        Cell(text=text) if isinstance(text, str) else Cell(stated=text, text=_short(text.ours))
        for text in texts
    )
    return Row(tuple(labels), tuple(cells), reason)


def _short(text: str) -> str:
    """Return the start of a commit; empty for other texts, which are shown as they are."""
    return text[:8] if re.fullmatch("[0-9a-f]{40}", text) else ""


def hyperparameter_numbers(
    inputs: DisplayInputs,
    measures: Iterable[Measure[R]],
    settings: R | None,
    *,
    file: str,
    not_run: str = "",
) -> pd.DataFrame:
    """Return our rows of hyperparameters, none of which is measured.

    Args:
        inputs: Inputs with the printed `file`.
        measures: Hyperparameters of the settings.
        settings: This run's settings; None if `not_run` states why it has none.
        file: Name in published/ of the printed values.
        not_run: Why the settings are not used.
    """
    printed, numbers = inputs.printed(file, "parameter"), OurNumbers(inputs.study)
    for measure in measures:
        of_paper = printed.get((measure.name,), {}).get("value")
        is_same = settings is not None and measure.value(settings) == of_paper
        stated = f"stated, not measured: {'as printed' if is_same else 'not as printed'}"
        obstacles = [] if of_paper is None or settings is None else [stated]
        numbers.add({}, [measure], settings, obstacles=obstacles, not_run=not_run)
    return numbers.frame()


def hyperparameters(numbers: pd.DataFrame, labels: Mapping[str, str], caption: str) -> TableContent:
    """Return the table of this run's training hyperparameters.

    Args:
        numbers: Frame of numbers with a row per hyperparameter.
        labels: Labels by hyperparameter.
        caption: Caption of the table.
    """
    (by_name,) = rows_of(numbers, ()).values()  # without keys, all numbers are one row
    rows = []
    for name, label in labels.items():
        number = by_name[name]
        stated = state(general(number.ours), general(number.printed), reason=number.reason)
        rows.append(text_row((label,), stated, reason=number.missing))
    return TableContent(
        heads=(headers(["Parameter", "this run"]),),
        groups=(Group(tuple(rows)),),
        caption=f"{caption} {BESIDE}",
        wide=False,
    )


def artifacts(inputs: DisplayInputs, printed: PrintedTexts) -> TableContent:
    """Return the table of data and software, with licenses and the versions pinned here.

    Type and usage are as printed.

    Args:
        inputs: Inputs with the files `lock`, `upstream` and `licences`.
        printed: Rows of the printed table.
    """
    pinned = dict(
        re.findall(r"^([\w.-]+)==(\S+)", read_text(inputs.files["lock"]), flags=re.MULTILINE)
    )
    public, licences = load_upstream(inputs.files["upstream"]), read_yaml(inputs.files["licences"])
    rows = []
    for row in printed:
        name, reason = row["artifact"], ""
        if package := PACKAGES.get(name):
            licence, version = package.licence, pinned[package.name]
        elif name in SERVICES:
            licence, version = SERVICES[name]
        elif corpus := licences.get(name.lower()):
            licence, version = corpus["released"], _pinned(public, f"{name.lower()}/")
        else:
            licence = version = ""
            reason = _UNUSED
        texts = (
            row["type"],
            state(licence, row["licence"], reason=reason),
            state(version, "", reason=reason),
            row["usage"],
        )
        rows.append(text_row((name,), *texts, reason=reason))
    return TableContent(
        heads=(headers(["Artifact", "Type", "License", "Version here", "Usage"]),),
        groups=(Group(tuple(rows)),),
        caption=f"Artifacts used during experiments; type and usage as printed. {BESIDE}",
        texts=True,
    )


def artifact_inputs(study: ConfiguredStudy) -> DisplayInputs:
    """Return the inputs of `artifacts`."""
    here = study.project.here
    files = {"lock": here("envs/requirements.lock"), "licences": here("data/licences.yaml")}
    return study.display_inputs().with_files(**files, upstream=study.project.upstream)


def _pinned(public: Mapping[str, UpstreamFile], folder: str) -> str:
    """Return how a corpus is pinned.

    This is the start of the digest of its only file, the number of its files with a digest, or "not
    pinned" if none has one.
    """
    files = [file.identity for name, file in public.items() if name.startswith(folder)]
    digests = [identity for identity in files if identity]
    if len(files) > 1 and digests:
        return f"{len(digests)} of {pluralize(len(files), 'file')} by digest"
    kind, _, digest = digests[0].rpartition(" ") if digests else ("not", "", "pinned")
    return f"{kind} {digest[:8]}"


def checkpoints(
    inputs: DisplayInputs, printed: PrintedTexts, *, unnamed: str = "not a model of this project"
) -> TableContent:
    """Return the table of checkpoints, with licenses, sizes and the revisions in models.yaml.

    Args:
        inputs: Inputs whose `options` are the fields of models.yaml entries, by printed model or
            checkpoint.
        printed: Rows of the printed table.
        unnamed: Reason why a row has no entry.
    """
    rows = []
    for row in printed:
        entry = inputs.options.get(row["checkpoint"]) or inputs.options.get(row["model"])
        if entry is None:
            names = ("checkpoint", "licence", "parameters", "revision")
            texts = [state("", row.get(name, ""), reason=unnamed) for name in names]
        else:
            texts = _of_entry(entry, row)
        rows.append(text_row((row["model"],), *texts, reason="" if entry else unnamed))
    return TableContent(
        heads=(headers(["Model", "Checkpoint", "License", "# Param", "Revision here"]),),
        groups=(Group(tuple(rows)),),
        caption=f"Checkpoints used during experiments, from models.yaml. {BESIDE}"
        " If a model's size is not published, the paper estimates it.",
        texts=True,
    )


def checkpoint_options(
    study: ConfiguredStudy, names: Iterable[str], printed: Callable[[Any], str | None]
) -> DisplayInputs:
    """Return the inputs of `checkpoints`: the entries of models by the name in the printed table.

    Args:
        study: The study.
        names: Models of models.yaml; the first with a printed name is shown.
        printed: Function from an entry to its printed name; models without one are omitted.
    """
    fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
    found: dict[str, Any] = {}
    for name in names:
        entry = study.project.registry[name]
        stated = entry.model_dump(include=fields)
        if entry.kind == "llm":
            stated["checkpoint"] = entry.litellm_id.partition("/")[2]
        if label := printed(entry):
            found.setdefault(label, stated)
    return study.display_inputs().model_copy(update={"options": found})


def _of_entry(entry: Mapping[str, Any], row: Mapping[str, str]) -> list[StatedText]:
    """Compare an entry of models.yaml with a printed row, in the order of our columns."""
    size, printed = entry["parameters"] or "not published", row["parameters"]
    if row["parameters_are_estimated"] == "yes":
        size, why = "not published", "size not published; the printed one is an estimate"
    elif size == printed or not printed:
        why = ""
    elif same_size(size, printed):
        why = "as printed, rounded"
    else:
        why = "differs from the printed size even when rounded"
    checkpoint, name = entry["checkpoint"], row["checkpoint"]
    shortened = "printed without its organization" if checkpoint.endswith(f"/{name}") else ""
    places = {"api": "managed by the provider", "package": f"package {entry.get('package')}"}
    revision = entry.get("revision") or places.get(entry["source"], "not pinned")
    return [
        state(checkpoint, name, reason=shortened),
        state(entry["licence"], row["licence"]),
        state(size, printed, reason=why),
        state(revision, ""),
    ]


def same_size(ours: str, printed: str) -> bool:
    """Return whether our parameter count, rounded to the printed digits, equals the printed one.

    Sizes are texts such as `22.7M` or `9B`; leading and trailing zeros do not count as digits.
    """
    one, other = number_in(ours), number_in(printed)
    if one is None or other is None:
        return False
    digits = len(printed[:-1].replace(".", "").strip("0"))
    return float(f"{one:.{digits - 1}e}") == other

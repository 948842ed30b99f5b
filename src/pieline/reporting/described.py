"""Tables of facts that are not measured: hyperparameters, artifacts and checkpoints.

The facts come from this project's records and from this run's settings. A table shows the paper's
text only where the paper's text differs from ours.
"""

import math
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
"""Rows of a CSV file in published/, each of which maps the name of a column to a text."""

_UNUSED = "not used in this project"


class Package(NamedTuple):
    """A Python package: its name in the lock file, and its license."""

    name: str
    licence: str


PACKAGES = {
    "Agno": Package("agno", "Apache-2.0"),
    "SentenceTransformer": Package("sentence-transformers", "Apache-2.0"),
    "PyTorch": Package("torch", "BSD-3-Clause"),
    "rank-bm25": Package("rank-bm25", "Apache-2.0"),
}
"""Packages by the name that the papers print."""
SERVICES = {
    "Together AI": ("Proprietary", "managed by the provider"),
    "Label Studio AI": ("Apache-2.0", "not installed here"),
}
"""License and version of each external service, by the name that the papers print."""


def text_row(labels: Sequence[str], *texts: str | StatedText, reason: str = "") -> Row:
    """Return a row of text cells.

    Args:
        labels: Texts of the label columns.
        texts: Texts of the other columns. A `StatedText` is shown with the text that the paper
            prints, if the paper's text differs from ours.
        reason: Why no run computed the row, for the table's note; empty if the row needs no note.
    """
    cells = []
    for text in texts:
        if isinstance(text, StatedText):
            cells.append(Cell(stated=text, text=_abbreviate_commit(text.ours)))
        else:
            cells.append(Cell(text=text))
    return Row(tuple(labels), tuple(cells), reason)


def _abbreviate_commit(text: str) -> str:
    """Return the first eight digits of a commit; empty if the text is not a commit."""
    return text[:8] if re.fullmatch("[0-9a-f]{40}", text) else ""


def hyperparameter_numbers(
    inputs: DisplayInputs,
    measures: Iterable[Measure[R]],
    settings: R | None,
    *,
    file: str,
    not_run: str = "",
) -> pd.DataFrame:
    """Return one row of the frame of numbers per hyperparameter.

    If our value and the printed value are known, the row states that the value is not measured, and
    whether it is as printed.

    Args:
        inputs: Inputs of the table, including the file named `file`.
        measures: Measures that each read one hyperparameter from the settings.
        settings: This run's settings; None if this run does not train, as `not_run` explains.
        file: Name of the file in published/ that contains the printed hyperparameters.
        not_run: Why this run does not train; empty if it trains.
    """
    printed_parameters = inputs.printed(file, "parameter")
    numbers = OurNumbers(inputs.study)
    for measure in measures:
        printed_row = printed_parameters.get((measure.name,))
        printed = printed_row.get("value") if printed_row else None
        obstacles = []
        if printed is not None and settings is not None:
            is_as_printed = measure.value(settings) == printed
            agreement = "as printed" if is_as_printed else "not as printed"
            obstacles = [f"stated, not measured: {agreement}"]
        numbers.add({}, [measure], settings, obstacles=obstacles, not_run=not_run)
    return numbers.frame()


def hyperparameters(numbers: pd.DataFrame, labels: Mapping[str, str], caption: str) -> TableContent:
    """Return the table of this run's training hyperparameters.

    Args:
        numbers: Frame of numbers with one row per hyperparameter.
        labels: Labels of the hyperparameters to show, by the hyperparameter's name in the frame.
        caption: Caption of the table.
    """
    all_in_one_row = rows_of(numbers, by=())
    number_by_name = all_in_one_row[()]
    rows = []
    for name, label in labels.items():
        number = number_by_name[name]
        stated = state(general(number.ours), general(number.printed), reason=number.reason)
        rows.append(text_row((label,), stated, reason=number.missing))
    return TableContent(
        heads=(headers(["Parameter", "this run"]),),
        groups=(Group(tuple(rows)),),
        caption=f"{caption} {BESIDE}",
        wide=False,
    )


def artifacts(inputs: DisplayInputs, printed: PrintedTexts) -> TableContent:
    """Return the table of data and software, with the licenses and the versions pinned here.

    The columns for type and usage contain the texts that the paper prints.

    Args:
        inputs: Inputs of the table, with the files `lock`, `upstream` and `licences`.
        printed: Rows of the printed table.
    """
    lock = read_text(inputs.files["lock"])
    pinned_versions = dict(re.findall(r"^([\w.-]+)==(\S+)", lock, flags=re.MULTILINE))
    upstream_files = load_upstream(inputs.files["upstream"])
    corpora = read_yaml(inputs.files["licences"])
    rows = []
    for row in printed:
        name = row["artifact"]
        corpus = name.lower()
        reason = ""
        if name in PACKAGES:
            package = PACKAGES[name]
            licence, version = package.licence, pinned_versions[package.name]
        elif name in SERVICES:
            licence, version = SERVICES[name]
        elif corpus in corpora:
            licence = corpora[corpus]["released"]
            version = _describe_pins(upstream_files, f"{corpus}/")
        else:
            licence, version, reason = "", "", _UNUSED
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
    """Return the inputs of the table of artifacts."""
    here = study.project.here
    files = {"lock": here("envs/requirements.lock"), "licences": here("data/licences.yaml")}
    return study.display_inputs().with_files(**files, upstream=study.project.upstream)


def _describe_pins(upstream_files: Mapping[str, UpstreamFile], folder: str) -> str:
    """Describe how the version of a corpus, which is a folder of public files, is pinned.

    Args:
        upstream_files: Public files by path.
        folder: Folder of the corpus, with a final slash.

    Returns:
        The start of the file's digest if the corpus is a single file; the number of files with a
        digest if the corpus has several files; "not pinned" if no file has a digest.
    """
    identities = [file.identity for path, file in upstream_files.items() if path.startswith(folder)]
    digests = [identity for identity in identities if identity]
    if not digests:
        return "not pinned"
    if len(identities) > 1:
        return f"{len(digests)} of {pluralize(len(identities), 'file')} by digest"
    algorithm, _, digest = digests[0].rpartition(" ")
    return f"{algorithm} {digest[:8]}"


def checkpoints(
    inputs: DisplayInputs, printed: PrintedTexts, *, unnamed: str = "not a model of this project"
) -> TableContent:
    """Return the table of checkpoints, with their licenses, sizes and revisions in models.yaml.

    Args:
        inputs: Inputs from `checkpoint_options`.
        printed: Rows of the printed table.
        unnamed: Reason to show for a printed model without an entry in models.yaml.
    """
    rows = []
    for row in printed:
        entry = inputs.options.get(row["checkpoint"]) or inputs.options.get(row["model"])
        if entry is None:
            columns = ("checkpoint", "licence", "parameters", "revision")
            texts = [state("", row.get(column, ""), reason=unnamed) for column in columns]
        else:
            texts = _compare_entry(entry, row)
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
    """Return the inputs of the table of checkpoints, with the models' entries as `options`.

    Args:
        study: Study whose inputs are returned.
        names: Names of models in models.yaml. If several models have the same printed name, the
            table shows the first.
        printed: Function from a models.yaml entry to the model's name in the printed table. If the
            function returns None, the entry is omitted.
    """
    fields = {"checkpoint", "licence", "parameters", "revision", "source", "package"}
    entry_by_printed_name: dict[str, Any] = {}
    for name in names:
        entry = study.project.registry[name]
        printed_name = printed(entry)
        if not printed_name or printed_name in entry_by_printed_name:
            continue
        shown_fields = entry.model_dump(include=fields)
        if entry.kind == "llm":
            _, _, name_without_provider = entry.litellm_id.partition("/")
            shown_fields["checkpoint"] = name_without_provider
        entry_by_printed_name[printed_name] = shown_fields
    return study.display_inputs().model_copy(update={"options": entry_by_printed_name})


def _compare_entry(entry: Mapping[str, Any], row: Mapping[str, str]) -> list[StatedText]:
    """Compare a models.yaml entry with a printed row.

    Returns:
        The texts for the checkpoint, the license, the size and the revision.
    """
    checkpoint, printed_name = entry["checkpoint"], row["checkpoint"]
    is_shortened = checkpoint.endswith(f"/{printed_name}")
    return [
        state(
            checkpoint,
            printed_name,
            reason="printed without its organization" if is_shortened else "",
        ),
        state(entry["licence"], row["licence"]),
        _compare_sizes(entry["parameters"], row),
        state(_revision_of(entry), ""),
    ]


def _compare_sizes(size: str | None, row: Mapping[str, str]) -> StatedText:
    """Compare the number of parameters in a models.yaml entry with that in a printed row.

    Args:
        size: Number of parameters as a text such as `22.7M`; None if it is not published.
        row: Printed row by column.
    """
    printed_size = row["parameters"]
    if row["parameters_are_estimated"] == "yes":
        # The entry only repeats the paper's estimate.
        reason = "size not published; the printed one is an estimate"
        return state("not published", printed_size, reason=reason)
    if size is None:
        size = "not published"
    if size == printed_size or not printed_size:
        return state(size, printed_size)
    if is_same_size(size, printed_size):
        return state(size, printed_size, reason="as printed, rounded")
    reason = "differs from the printed size even when rounded"
    return state(size, printed_size, reason=reason)


def _revision_of(entry: Mapping[str, Any]) -> str:
    """Return the commit of a checkpoint, or a text on what determines its version instead."""
    if entry.get("revision"):
        return str(entry["revision"])
    if entry["source"] == "api":
        return "managed by the provider"
    if entry["source"] == "package":
        return f"package {entry.get('package')}"
    return "not pinned"


def is_same_size(ours: str, printed: str) -> bool:
    """Return whether two parameter counts are equal if ours is rounded like the printed one.

    The counts are texts such as `22.7M` or `9B`. Final zeros before the unit may result from
    rounding, so `109M` equals the printed `110M`.
    """
    our_count, printed_count = number_in(ours), number_in(printed)
    if our_count is None or printed_count is None:
        return False
    significant_digits = len(re.sub(r"\D", "", printed).strip("0"))
    if significant_digits == 0:  # the printed count is 0
        return our_count == printed_count
    rounded_count = float(f"{our_count:.{significant_digits - 1}e}")
    return math.isclose(rounded_count, printed_count)

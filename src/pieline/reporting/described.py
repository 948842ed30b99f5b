"""Descriptive tables: hyperparameters, artifacts and checkpoints.

The values are not computed: they come from this project's records or this run's settings. The
printed text is shown where it differs from ours.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pieline.core.errors import pluralize
from pieline.core.files import read_text
from pieline.core.upstream import UpstreamFile, load_upstream
from pieline.core.yamls import read_yaml
from pieline.reporting.displays import ConfiguredStudy
from pieline.reporting.inputs import DisplayInputs
from pieline.reporting.printed import StatedText, number_in, read_printed, state
from pieline.reporting.tables import BESIDE, Cell, Group, Head, Number, Row, TableContent

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


def hyperparameters(
    inputs: DisplayInputs, values: Mapping[str, tuple[str, float | None, str]], caption: str
) -> TableContent:
    """Return the table of this run's training hyperparameters.

    Args:
        inputs: Inputs with the `published` file of the printed values.
        values: Label, value and the reason for a missing value, by printed parameter.
        caption: Caption of the table.
    """
    rows = []
    for row in read_printed(inputs.files["published"]):
        name, printed = row["parameter"], row["value"]
        label, value, reason = values[name]
        if value is None:
            stated = state("", printed, reason=f"not run: {reason}")
        else:
            stated = state(printed if float(printed) == value else f"{value:g}", printed)
            reason = ""
        rows.append(Row((label,), (described(stated, parameter=name),), reason))
    return TableContent(
        heads=((Head("Parameter"), Head("this run")),),
        groups=(Group(tuple(rows)),),
        caption=f"{caption} {BESIDE}",
        wide=False,
    )


def artifacts(inputs: DisplayInputs) -> TableContent:
    """Return the table of data and software, with licenses and the versions pinned here.

    Type and usage are as printed.

    Args:
        inputs: Inputs with the files `published`, `lock`, `upstream` and `licences`.
    """
    pinned = dict(
        re.findall(r"^([\w.-]+)==(\S+)", read_text(inputs.files["lock"]), flags=re.MULTILINE)
    )
    public, licences = load_upstream(inputs.files["upstream"]), read_yaml(inputs.files["licences"])
    rows = []
    for row in read_printed(inputs.files["published"]):
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
        cells = (
            Cell(text=row["type"]),
            described(
                state(licence, row["licence"], reason=reason), artifact=name, metric="licence"
            ),
            described(state(version, "", reason=reason), artifact=name, metric="version"),
            Cell(text=row["usage"]),
        )
        rows.append(Row((name,), cells, reason))
    return TableContent(
        heads=(tuple(map(Head, ("Artifact", "Type", "License", "Version here", "Usage"))),),
        groups=(Group(tuple(rows)),),
        caption=f"Artifacts used during experiments; type and usage as printed. {BESIDE}",
        texts=True,
    )


def artifact_inputs(study: ConfiguredStudy) -> DisplayInputs:
    """Return the inputs of `artifacts`, besides the printed table."""
    here = study.project.here
    files = {"lock": here("envs/requirements.lock"), "licences": here("data/licences.yaml")}
    return DisplayInputs(files={**files, "upstream": study.project.upstream})


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
    inputs: DisplayInputs, *, unnamed: str = "not a model of this project"
) -> TableContent:
    """Return the table of checkpoints, with licenses, sizes and the revisions in models.yaml.

    Args:
        inputs: Inputs whose `options` are the fields of models.yaml entries, by printed model or
            checkpoint.
        unnamed: Reason why a row has no entry.
    """
    rows = []
    for row in read_printed(inputs.files["published"]):
        name = row["model"]
        entry = inputs.options.get(row["checkpoint"]) or inputs.options.get(name)
        if entry is None:
            names = ("checkpoint", "licence", "parameters", "revision")
            stated = {key: state("", row.get(key, ""), reason=unnamed) for key in names}
        else:
            stated = _of_entry(entry, row)
        model = entry["name"] if entry else name
        cells = {key: described(each, model=model, metric=key) for key, each in stated.items()}
        commit = re.fullmatch("[0-9a-f]{40}", stated["revision"].ours)
        if commit:
            cells["revision"] = Cell(cells["revision"].number, text=commit[0][:8])
        rows.append(Row((name,), tuple(cells.values()), "" if entry else unnamed))
    return TableContent(
        heads=(tuple(map(Head, ("Model", "Checkpoint", "License", "# Param", "Revision here"))),),
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
            found.setdefault(label, {"name": name, **stated})
    return DisplayInputs(options=found)


def _of_entry(entry: Mapping[str, Any], row: Mapping[str, str]) -> dict[str, StatedText]:
    """Compare an entry of models.yaml with a printed row, by column of our table."""
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
    return {
        "checkpoint": state(checkpoint, name, reason=shortened),
        "licence": state(entry["licence"], row["licence"]),
        "parameters": state(size, printed, reason=why),
        "revision": state(entry.get("revision") or places.get(entry["source"], "not pinned"), ""),
    }


def same_size(ours: str, printed: str) -> bool:
    """Return whether our parameter count, rounded to the printed digits, equals the printed one.

    Sizes are texts such as `22.7M` or `9B`; leading and trailing zeros do not count as digits.
    """
    one, other = number_in(ours), number_in(printed)
    if one is None or other is None:
        return False
    digits = len(printed[:-1].replace(".", "").strip("0"))
    return float(f"{one:.{digits - 1}e}") == other


def described(stated: StatedText, **key: str) -> Cell:
    """Return a cell with a stated text; `key` identifies its row in the CSV."""
    return Cell(Number({**key, "metric": key.get("metric", "value")}, stated))

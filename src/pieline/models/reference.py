"""Compare the entries of a run with pieline's own entries for the papers' models.

`python -m pieline.models.reference` copies pieline's own entries from models.yaml to
published/model_entries.json. In this module, pieline's own entries are called shipped entries.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pieline.core.files import canonical_json, read_json, write_json
from pieline.models.entries import ModelEntry
from pieline.models.registry import load_registry

Specs = Mapping[str, Sequence[Mapping[str, Any]]]
"""Execution specs of the shipped entries, by the model's name in the paper."""
CHANGE_NO_NUMBER = {
    "accepts", "api_base", "api_key_env", "batch_size", "max_output_tokens", "prices",
}  # fmt: skip
"""Fields of execution specs that do not change results."""


def load_reference(path: str | Path) -> Specs:
    """Return the specs in published/model_entries.json."""
    specs: Specs = read_json(path)
    return specs


def entry_deviations(entry: ModelEntry, reference: Specs) -> tuple[str, ...]:
    """Describe how an entry differs from the shipped entry for the same model of a paper.

    If there are several shipped entries (for an API and for weights), the one with the fewest
    differences is used. The result is empty for models that are not in a paper.

    Args:
        entry: Entry of a run.
        reference: Specs of the shipped entries (see `load_reference`).
    """
    spec = _comparable_spec(entry)
    shipped_specs = reference.get(entry.published_as or "", ())
    return min((_deviations(spec, shipped) for shipped in shipped_specs), key=len, default=())


def _deviations(spec: Mapping[str, Any], shipped: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe the fields in which an execution spec differs from a shipped spec."""
    deviations = []
    for field in sorted({*spec, *shipped}):
        # A commit that is pinned for a shipped entry without a commit is no deviation.
        if field == "revision" and field not in shipped:
            continue
        if spec.get(field) != shipped.get(field):
            deviations.append(
                f"{field.replace('_', ' ')} {_format_value(spec.get(field))}, the paper's model"
                f" {_format_value(shipped.get(field))}"
            )
    return tuple(deviations)


def _format_value(value: object) -> str:
    return value if isinstance(value, str) and value else canonical_json(value)


def _comparable_spec(entry: ModelEntry) -> dict[str, Any]:
    """Return the execution spec of an entry without the fields that do not change results."""
    spec = json.loads(entry.execution_spec())
    return {field: value for field, value in spec.items() if field not in CHANGE_NO_NUMBER}


def main() -> None:
    """Write published/model_entries.json from models.yaml."""
    specs: dict[str, list[dict[str, Any]]] = {}
    for entry in load_registry("models.yaml").values():
        if entry.published_as:
            specs.setdefault(entry.published_as, []).append(_comparable_spec(entry))
    write_json("published/model_entries.json", specs)


if __name__ == "__main__":
    main()

"""Compare entries with the shipped entries of the papers' models.

`python -m pieline.models.reference` writes the shipped entries in models.yaml to
published/model_entries.json.
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
    """Read published/model_entries.json."""
    specs: Specs = read_json(path)
    return specs


def entry_deviations(entry: ModelEntry, reference: Specs) -> tuple[str, ...]:
    """Describe how an entry differs from the shipped entry for the same model of a paper.

    If there are several shipped entries (for an API and for weights), the one with the fewest
    differences is used. The result is empty for models that are not in a paper.
    """
    own = _spec(entry)
    nearest: tuple[str, ...] = ()
    # A commit that is pinned for an entry without one is no deviation.
    pin = {"revision": own["revision"]} if "revision" in own else {}
    for shipped in reference.get(entry.published_as or "", ()):
        spec = pin | dict(shipped)
        deviations = tuple(
            f"{name.replace('_', ' ')} {_shown(own.get(name))}, the paper's model"
            f" {_shown(spec.get(name))}"
            for name in sorted({*own, *spec})
            if own.get(name) != spec.get(name)
        )
        if not deviations:
            return ()
        nearest = deviations if not nearest or len(deviations) < len(nearest) else nearest
    return nearest


def _shown(value: object) -> str:
    return value if isinstance(value, str) and value else canonical_json(value)


def _spec(entry: ModelEntry) -> dict[str, Any]:
    spec = json.loads(entry.execution_spec())
    return {name: value for name, value in spec.items() if name not in CHANGE_NO_NUMBER}


def main() -> None:
    """Write published/model_entries.json from models.yaml."""
    specs: dict[str, list[dict[str, Any]]] = {}
    for entry in load_registry("models.yaml").values():
        if entry.published_as:
            specs.setdefault(entry.published_as, []).append(_spec(entry))
    write_json("published/model_entries.json", specs)


if __name__ == "__main__":
    main()

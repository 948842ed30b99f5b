"""Which archived runs a configuration can take, and why not others."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from pieline.archives.manifest import ArchivedRun

_OF_METRICS = ("bootstrap_resamples", "permutations", "scoring")
"""Settings that decide how predictions are scored, not the predictions."""
_SHOWN = 60
"""Characters of a value that a difference shows."""


def differences(run: ArchivedRun, asked: str, digest: Callable[[str], str]) -> list[str]:
    """List how an archived run differs from what a configuration asks for.

    Args:
        run: of an archive.
        asked: conditions of the configuration's run, as canonical JSON.
        digest: SHA-256 of a raw file of this configuration, empty if it is not known yet; whether
            it is the same is then checked by the evidence when the file is there.
    """
    wanted = json.loads(asked)
    theirs = run.conditions.model_dump(mode="json")
    found = [
        f"{part.removesuffix('s')} {difference}"
        for part in ("settings", "weights")
        for difference in _differences(wanted[part], theirs[part])
    ]
    for name, stated in run.raw.items():
        known = digest(name)
        if known and known != stated:
            found.append(f"{name}: SHA-256 {known[:12]}, archive {stated[:12]}")
    return found


def _differences(ours: Any, theirs: Any) -> Iterator[str]:
    for name in sorted(ours.keys() | theirs.keys()):
        here, there = ours.get(name), theirs.get(name)
        if name in _OF_METRICS or here == there:
            continue
        if isinstance(here, dict) and isinstance(there, dict):
            yield from (f"{name} {difference}" for difference in _differences(here, there))
        else:
            yield f"{name} {_shown(here)}, archive {_shown(there)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

"""Read the archives of a configuration, and the conditions that they state."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pieline.archives.manifest import Archive, ArchivedRun, read_archive
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.models.reference import CHANGE_NO_NUMBER

_SHOWN = 60
"""Maximum number of characters shown per differing value."""

Defaults = Mapping[str, Collection[Any]]
"""Default values of settings and of fields of models, by name."""


def load_archives(paths: Iterable[str], root: Path) -> tuple[Archive, ...]:
    """Read the manifests of the configured archives.

    Args:
        paths: Paths, which are looked up in the working directory, then in `root`.
        root: Project folder.

    Raises:
        UserError: An archive is missing or invalid, or two archives have the same name.
    """
    archives: dict[str, Archive] = {}
    for path in paths:
        archive = read_archive(path if Path(path).exists() else root / path)
        if archive.name in archives:
            raise UserError("another archive has this name", where=archive.path, hint="rename one")
        archives[archive.name] = archive
    return tuple(archives.values())


def stated_conditions(
    run: ArchivedRun,
    configured: Conditions,
    *,
    scoring: Collection[str],
    defaults: Defaults,
    digest: Callable[[str], str | None],
) -> Conditions:
    """Return the conditions of an archived run, which is scored with this configuration.

    The predictions were made as the archive states. Each difference between the archive and the
    configuration is a deviation.

    Args:
        run: The archived run.
        configured: Conditions of the configured run.
        scoring: Names of the settings that affect only scoring.
        defaults: Default values by name. A setting that the archive does not state is newer than
            the archive, so its default counts. For a stated setting that no longer exists, the
            deviations that the archive states count.
        digest: Function that returns the SHA-256 of a file in this configuration: None if there is
            no such file, and empty if it is not known yet.
    """
    stated = run.conditions
    ignored = {*scoring, *CHANGE_NO_NUMBER}
    changed = dict(_differences(stated.settings, configured.settings, defaults, ignored))
    changed |= _differences(stated.weights, configured.weights, defaults, ignored)
    known = {*defaults, *configured.settings, *configured.weights}
    gone = {*stated.settings, *stated.weights} - known
    reasons = [one for one in configured.deviations if not _is_about(one, changed)]
    reasons += [one for one in stated.deviations if _is_about(one, gone)]
    reasons += changed.values()
    for name, theirs in run.raw.items():
        if (ours := digest(name)) is None:
            reasons.append(f"made from {name}, which is not here")
        elif ours and ours != theirs:
            reasons.append(f"made from another {name}")
    if not run.raw:
        reasons.append("the archive does not state the data")
    made = {name: value for name, value in stated.settings.items() if name not in scoring}
    scored = {name: value for name, value in configured.settings.items() if name in scoring}
    return Conditions(
        settings=made | scored,
        weights=stated.weights,
        deviations=tuple(dict.fromkeys(reasons)),
    )


def _differences(
    stated: Mapping[str, Any],
    configured: Mapping[str, Any],
    defaults: Defaults,
    ignored: Collection[str],
) -> Iterator[tuple[str, str]]:
    """Yield the name and a description of each difference between stated and configured values."""
    for name in sorted({*stated, *configured} - {*ignored}):
        theirs, ours = stated.get(name), configured.get(name)
        if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            for _, what in _differences(theirs, ours, defaults, ignored):
                yield name, f"{_spelled(name)}: {what}"
        elif name in stated and name in configured:
            if theirs != ours:
                yield name, _difference(name, theirs, ours)
        elif name in defaults:
            if (theirs if name in stated else ours) not in defaults[name]:
                yield name, _difference(name, theirs, ours)
        elif name in configured:
            yield name, _difference(name, theirs, ours)


def _difference(name: str, theirs: Any, ours: Any) -> str:
    return f"{_spelled(name)} {_shorten(theirs)}, this configuration {_shorten(ours)}"


def _is_about(deviation: str, names: Iterable[str]) -> bool:
    """Return whether a deviation is about one of these settings, whose name it starts with."""
    return any(deviation.startswith(f"{_spelled(name)} ") for name in names)


def _spelled(name: str) -> str:
    return name.replace("_", " ")


def _shorten(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

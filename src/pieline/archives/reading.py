"""Read the archives of a configuration, and the conditions of the runs in archives."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pieline.archives.manifest import Archive, ArchivedRun, read_archive
from pieline.core.conditions import Conditions
from pieline.core.errors import UserError
from pieline.models.reference import CHANGE_NO_NUMBER

_MAX_LENGTH = 60
"""Maximum number of characters of a value in a deviation."""

Defaults = Mapping[str, Collection[Any]]
"""Default values of settings and of fields of models, by name."""


def load_archives(paths: Iterable[str], root: Path) -> tuple[Archive, ...]:
    """Read the manifests of the configured archives.

    Args:
        paths: Paths relative to the working directory or, if no such file exists, to `root`.
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
    """Return the conditions of an archived run that is scored with this configuration.

    The predictions were made under the conditions in the archive. Each difference between the
    archive and the configuration is a deviation.

    Args:
        run: The archived run.
        configured: Conditions of the configured run.
        scoring: Names of the settings that affect only scoring.
        defaults: Default values by name. If the archive does not contain a setting, the setting is
            newer than the archive, and its default is assumed. If a setting in the archive no
            longer exists, the archive's own deviation for this setting is kept.
        digest: Function that returns the SHA-256 of a file in this configuration: None if there is
            no such file, and empty if the digest is not known yet.
    """
    stated = run.conditions
    ignored = {*scoring, *CHANGE_NO_NUMBER}
    # A name can occur several times: for each different value in a nested setting.
    differences = [
        *_differences(stated.settings, configured.settings, defaults, ignored),
        *_differences(stated.weights, configured.weights, defaults, ignored),
    ]
    differing_names = {name for name, _ in differences}
    current_names = {*defaults, *configured.settings, *configured.weights}
    removed_names = {*stated.settings, *stated.weights} - current_names
    reasons = [
        deviation
        for deviation in configured.deviations
        if not _starts_with_name(deviation, differing_names)
    ]
    reasons += [
        deviation for deviation in stated.deviations if _starts_with_name(deviation, removed_names)
    ]
    reasons += [description for _, description in differences]
    reasons += _differing_inputs(run, digest)
    settings = {
        **{name: value for name, value in stated.settings.items() if name not in scoring},
        **{name: value for name, value in configured.settings.items() if name in scoring},
    }
    unique_reasons = tuple(dict.fromkeys(reasons))
    return Conditions(settings=settings, weights=stated.weights, deviations=unique_reasons)


def _differing_inputs(run: ArchivedRun, digest: Callable[[str], str | None]) -> Iterator[str]:
    """Yield a deviation for each input of an archived run that is missing or differs here."""
    if not run.raw:
        yield "the archive does not state the data"
    for path, archived_digest in run.raw.items():
        our_digest = digest(path)
        if our_digest is None:
            yield f"made from {path}, which is not here"
        elif our_digest and our_digest != archived_digest:
            yield f"made from another {path}"


def _differences(
    stated: Mapping[str, Any],
    configured: Mapping[str, Any],
    defaults: Defaults,
    ignored: Collection[str],
) -> Iterator[tuple[str, str]]:
    """Yield the name of each setting whose stated and configured values differ, and how.

    For nested settings, the outermost name is yielded once for each difference.
    """
    for name in sorted({*stated, *configured} - set(ignored)):
        theirs, ours = stated.get(name), configured.get(name)
        if isinstance(theirs, Mapping) and isinstance(ours, Mapping):
            for _, description in _differences(theirs, ours, defaults, ignored):
                yield name, f"{_with_spaces(name)}: {description}"
            continue
        if name in stated and name in configured:
            is_different = theirs != ours
        elif name in defaults:
            # Where the value is not stated, the default applied.
            only_value = theirs if name in stated else ours
            is_different = only_value not in defaults[name]
        else:
            # A value that is only in the archive belongs to a setting that no longer exists.
            is_different = name in configured
        if is_different:
            archived, here = _shorten(theirs), _shorten(ours)
            yield name, f"{_with_spaces(name)} {archived}, this configuration {here}"


def _starts_with_name(deviation: str, names: Iterable[str]) -> bool:
    """Return whether the first words of a deviation are the name of one of the settings `names`."""
    return any(deviation.startswith(f"{_with_spaces(name)} ") for name in names)


def _with_spaces(name: str) -> str:
    """Return the name of a setting as deviations spell it."""
    return name.replace("_", " ")


def _shorten(value: Any) -> str:
    """Return a value as text of at most `_MAX_LENGTH` characters."""
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"

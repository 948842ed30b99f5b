"""Runs that are taken from archives instead of being computed."""

import re
from collections import Counter
from collections.abc import Iterable

from pieline.archives.manifest import METRICS, PREDICTIONS, member_sidecar
from pieline.archives.matching import Extraction, Offer
from pieline.core.errors import pluralize
from pieline.plan import Plan, Run


def archive_of(run: Run) -> str:
    """Return the name of the archive from which a run is taken; empty for other runs."""
    return run.offer.archive.name if run.offer and run.archived else ""


def _taken(runs: Iterable[Run]) -> list[tuple[Run, Offer]]:
    return [(run, run.offer) for run in runs if run.archived and run.offer]


def extractions(plan: Plan) -> list[Extraction]:
    """Return the extractions from archives, one per study, model and archive."""
    groups: dict[tuple[str, str, str], list[tuple[Run, Offer]]] = {}
    for run, match in _taken(plan):
        groups.setdefault((run.study, run.model, match.archive.name), []).append((run, match))
    # Several archives may contain a file; it is extracted only once, with its own run.
    owner = {member_sidecar(run.metrics): run.metrics for run in plan}
    rules: Counter[str] = Counter()
    found = []
    for (study, model, archive), taken in groups.items():
        files: dict[str, str] = {}
        for run, match in taken:
            for name in match.run.files:
                key = member_sidecar(name).replace(PREDICTIONS, METRICS, 1)
                if owner.setdefault(key, run.metrics) == run.metrics:
                    files[name] = match.archive.manifest.files[name]
        rule = re.sub(r"\W", "_", f"take_{study}_{model}_from_{archive}")
        rules[rule] += 1
        found.append(
            Extraction(
                rule=f"{rule}_{rules[rule]}" if rules[rule] > 1 else rule,
                archive=taken[0][1].archive.path,
                files=files,
                recordings={
                    match.run.recordings: run.recordings
                    for run, match in taken
                    if match.run.recordings
                },
            )
        )
    return found


def notes(plan: Plan, study: str) -> list[str]:
    """Return a line per archive in use, and a line per reason for not using archived runs."""
    counts = Counter(match.archive.name for _, match in _taken(plan))
    lines = [
        f"taken from archive {name}: {pluralize(count, 'run')} of {study}"
        for name, count in counts.items()
    ]
    reasons: dict[str, list[str]] = {}
    for run in plan:
        if run.offer and not run.archived:
            differences = run.offer.differences
            why = differences[0] if differences else "its job also makes runs that differ"
            reasons.setdefault(f"{run.offer.archive.name} ({why})", []).append(run.metrics)
    return lines + [
        f"not taken from archive {reason}: {pluralize(len(paths), 'run')}, such as {paths[0]}"
        for reason, paths in reasons.items()
    ]


def archived_models(plan: Plan) -> set[str]:
    """Return the models whose runs all come from archives, so that no weights are needed."""
    return {run.base for run in plan if run.archived} - {
        run.base for run in plan if not run.archived
    }


def marks(plan: Plan) -> dict[str, str]:
    """Return label marks for the models that have runs from an archive, by model."""
    computed = {run.base for run in plan if not run.archived}
    archives: dict[str, set[str]] = {}
    for run, match in _taken(plan):
        archives.setdefault(run.base, set()).add(match.archive.name)
    return {
        model: f"{'partly ' if model in computed else ''}from archive {', '.join(sorted(names))}"
        for model, names in archives.items()
    }

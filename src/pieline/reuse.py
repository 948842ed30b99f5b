"""Runs that are read from archives instead of being computed."""

import re
from collections import Counter
from pathlib import Path

from pieline.archives.extraction import Extraction
from pieline.archives.manifest import member_sidecar
from pieline.core.errors import pluralize
from pieline.plan import Plan, Run


def extractions(plan: Plan) -> list[Extraction]:
    """Return the extractions from archives, one per study, model and archive."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in plan:
        if run.archive:
            groups.setdefault((run.study, run.model, run.archive.path), []).append(run)
    extracted: set[str] = set()
    found: list[Extraction] = []
    for (study, model, path), runs in groups.items():
        files: dict[str, str] = {}
        recordings = {}
        for run in runs:
            assert run.archive
            archived = run.archive.runs[run.metrics]
            digests = run.archive.manifest.files
            # Rankings by BM25 share their tuned parameters.
            for name in filter(lambda name: name not in extracted, archived.made):
                files |= {each: digests[each] for each in (name, member_sidecar(name))}
                extracted.add(name)
            if archived.recordings:
                recordings[archived.recordings] = run.recordings
        rule = re.sub(r"\W", "_", f"take_{study}_{model}_from_{Path(path).name.partition('.')[0]}")
        # Another archive or model may have the same name with other punctuation.
        while any(rule == other.rule for other in found):
            rule += "_"
        found.append(Extraction(rule, path, files, recordings))
    return found


def notes(plan: Plan, study: str) -> list[str]:
    """Return a line per archive in use."""
    counts = Counter(run.archive.name for run in plan if run.archive)
    return [
        f"taken from archive {name}: {pluralize(count, 'run')} of {study}"
        for name, count in counts.items()
    ]

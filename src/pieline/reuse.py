"""Plan which runs are extracted from archives instead of being computed."""

import re
from collections import Counter
from pathlib import Path

from pieline.archives.extraction import Extraction
from pieline.archives.manifest import member_sidecar
from pieline.core.errors import pluralize
from pieline.plan import Plan, Run


def extractions(plan: Plan) -> list[Extraction]:
    """Return the jobs that extract runs from archives, one per study, model and archive."""
    runs_by_job: dict[tuple[str, str, str], list[Run]] = {}
    for run in plan:
        if run.archive:
            runs_by_job.setdefault((run.study, run.model, run.archive.path), []).append(run)
    jobs: list[Extraction] = []
    extracted: set[str] = set()
    for (study, model, archive_path), runs in runs_by_job.items():
        files: dict[str, str] = {}
        recordings: dict[str, str] = {}
        for run in runs:
            assert run.archive
            archived_run = run.archive.runs[run.metrics]
            digests = run.archive.manifest.files
            for member in archived_run.members_to_extract:
                # Rankings by BM25 share a member with the tuned parameters.
                if member not in extracted:
                    files[member] = digests[member]
                    files[member_sidecar(member)] = digests[member_sidecar(member)]
                    extracted.add(member)
            if archived_run.recordings:
                recordings[archived_run.recordings] = run.recordings
        rule = _rule_name(study, model, archive_path)
        # Names that differ only in punctuation have the same rule name.
        while rule in [job.rule for job in jobs]:
            rule += "_"
        jobs.append(Extraction(rule, archive_path, files, recordings))
    return jobs


def _rule_name(study: str, model: str, archive_path: str) -> str:
    """Return the name of the rule that extracts the runs of a model from an archive."""
    archive_name = Path(archive_path).name.partition(".")[0]
    return re.sub(r"\W", "_", f"take_{study}_{model}_from_{archive_name}")


def notes(plan: Plan, study: str) -> list[str]:
    """Return a line for each archive in use, with the number of runs taken from the archive."""
    runs_by_archive = Counter(run.archive.name for run in plan if run.archive)
    return [
        f"taken from archive {archive}: {pluralize(runs, 'run')} of {study}"
        for archive, runs in runs_by_archive.items()
    ]

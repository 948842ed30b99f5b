"""Files that the jobs of the IdioTS study read."""

from typing import get_args

from pieline.project import alternatives
from pieline.studies.idiots import paths
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.paths import no_data, raw_name
from pieline.studies.idiots.settings import DetectionSetting, IdiotsSettings
from pieline.study import Study

Idiots = Study[IdiotsSettings]


def constraints(study: Idiots, *kinds: str) -> dict[str, str]:
    """Return the wildcard constraints of runs of models of these kinds (default: all kinds)."""
    return {
        "model": study.project.constraint(*kinds or ("llm", "predictions")),
        "setting": alternatives(
            {*get_args(DetectionSetting), *study.settings.prompts, *study.external_settings()}
        ),
    }


def kinds(study: Idiots) -> str | None:
    """Return the path of the file with kinds of distractors, if any."""
    return paths.SAMPLE_KINDS if study.project.is_sample else study.settings.distractor_kinds


def raw_files(study: Idiots) -> list[str]:
    """Return the paths of the sentences and the kinds of distractors; [] without sentences."""
    if no_data(study):
        return []
    files = [f"results/raw/{raw_name(study)}"]
    if kinds_file := kinds(study):
        files.append(kinds_file)
    return files


def origin(study: Idiots) -> Origin:
    """Return the origin of the sentences before their digest is checked."""
    return "unverified" if study.project.data == "released" else study.project.data


def other_targets(study: Idiots) -> list[str]:
    """Return the paths of the files with cases for human judgment."""
    return [paths.CASES.format(**run.where) for run in study.plan.made()]

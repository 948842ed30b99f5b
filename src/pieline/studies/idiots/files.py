"""Files that the jobs of the IdioTS study read."""

from typing import get_args

from pieline.project import alternatives
from pieline.studies.idiots import paths
from pieline.studies.idiots.datasets import Origin
from pieline.studies.idiots.paths import no_data_reason, raw_name
from pieline.studies.idiots.settings import DetectionSetting, IdiotsSettings
from pieline.study import Study

Idiots = Study[IdiotsSettings]


def constraints(study: Idiots, *kinds: str) -> dict[str, str]:
    """Return the regular expressions for the wildcards `model` and `setting` in paths of runs.

    `kinds` are the allowed kinds of models. If none are given, all kinds of the study are allowed.
    """
    model_kinds = kinds or ("llm", "predictions")
    settings = {*get_args(DetectionSetting), *study.settings.prompts, *study.external_settings()}
    return {
        "model": study.project.constraint(*model_kinds),
        "setting": alternatives(settings),
    }


def kinds(study: Idiots) -> str | None:
    """Return the path of the file with the kinds of distractors; None if there is no such file."""
    return paths.SAMPLE_KINDS if study.project.is_sample else study.settings.distractor_kinds


def raw_files(study: Idiots) -> list[str]:
    """Return the paths of the raw files with the sentences and, if any, with distractor kinds.

    The result is empty if the sentences are missing.
    """
    if no_data_reason(study):
        return []
    files = [f"results/raw/{raw_name(study)}"]
    kinds_file = kinds(study)
    if kinds_file:
        files.append(kinds_file)
    return files


def origin(study: Idiots) -> Origin:
    """Return the origin of the sentences; public data is "unverified" until it is verified."""
    return "unverified" if study.project.data == "released" else study.project.data


def other_targets(study: Idiots) -> list[str]:
    """Return the paths of the files with cases that people can judge, one file per run."""
    return [paths.CASES.format(**run.where) for run in study.plan.made()]

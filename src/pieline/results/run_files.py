"""List the files of all studies, for the rules that read several studies."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from pieline.archives.extraction import Extraction
from pieline.project import Project
from pieline.reuse import extractions
from pieline.study import Study

Studies = Iterable[Study[Any]]


def metrics(studies: Studies) -> list[str]:
    """Return the paths of the metric files from which the studies' tables and figures are made."""
    return list(dict.fromkeys(chain.from_iterable(study.metrics() for study in studies)))


def inputs_of_metrics(studies: Studies) -> list[str]:
    """Return the paths of the predictions and datasets from which the metrics are computed."""
    paths: set[str] = set()
    for study in studies:
        for metric_file in study.metrics():
            if metric_file in study.plan:
                paths.update(study.plan[metric_file].behind)
    return sorted(paths)


def items(studies: Studies) -> list[str]:
    """Return the paths of the files that contain one row per prediction of the studies."""
    paths: list[str] = []
    for study in studies:
        declaration = study.items()
        if declaration:
            paths += declaration.files.values()
    return paths


def raw_files(studies: Studies) -> list[str]:
    """Return the paths of the files in results/raw/ on which the studies' results depend."""
    paths = chain.from_iterable(study.raw_files() for study in studies)
    return sorted({path for path in paths if path.startswith("results/raw/")})


def recordings(studies: Studies) -> list[str]:
    """Return the paths of the recordings on which predictions depend; a path may not exist yet."""
    return sorted({task.recordings for study in studies for task in study.tasks()})


def published(project: Project) -> list[str]:
    """Return the paths of the files with the papers' printed numbers and claims."""
    folder = project.root / "published"
    return sorted(project.here("published", path.name) for path in folder.iterdir())


def archive_extractions(studies: Studies) -> list[Extraction]:
    """Return the extractions that provide the studies' runs with files from archives."""
    return [extraction for study in studies for extraction in extractions(study.plan)]

"""Files of a run that several studies share, for the rules that cover all studies."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

from pieline.archives.extraction import Extraction
from pieline.project import Project
from pieline.reuse import extractions
from pieline.study import Study

Studies = Iterable[Study[Any]]


def metrics(studies: Studies) -> list[str]:
    """Return the metric files behind the tables."""
    return list(dict.fromkeys(chain.from_iterable(study.metrics() for study in studies)))


def behind(studies: Studies) -> list[str]:
    """Return the predictions and datasets behind the metric files, for the results page."""
    paths: set[str] = set()
    for study in studies:
        for name in study.metrics():
            if name in study.plan:
                paths.update(study.plan[name].behind)
    return sorted(paths)


def items(studies: Studies) -> list[str]:
    """Return the paths of all item files."""
    declared = (study.items() for study in studies)
    return [path for each in declared if each for path in each.files.values()]


def raw_files(studies: Studies) -> list[str]:
    """Return the paths of the raw files below results/raw/ on which the results depend."""
    names = chain.from_iterable(study.raw_files() for study in studies)
    return sorted({name for name in names if name.startswith("results/raw/")})


def recordings(studies: Studies) -> list[str]:
    """Return the recordings files on which predictions depend; some may not exist."""
    return sorted({task.recordings for study in studies for task in study.tasks()})


def published(project: Project) -> list[str]:
    """Return the files with the papers' printed numbers and claims."""
    folder = project.root / "published"
    return sorted(project.here("published", path.name) for path in folder.iterdir())


def archive_extractions(studies: Studies) -> list[Extraction]:
    """Return the extractions from archives."""
    return [extraction for study in studies for extraction in extractions(study.plan)]

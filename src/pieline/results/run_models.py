"""Models of a run, and what running the papers' models requires."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from pieline.core.files import canonical_json
from pieline.models.entries import ModelEntry
from pieline.models.llm import LLMEntry
from pieline.models.sizing import describe_requirement
from pieline.project import Project
from pieline.results.provenance import Model
from pieline.reuse import marks
from pieline.study import Study

Studies = Iterable[Study[Any]]
Registry = Mapping[str, ModelEntry]


def used_models(studies: Studies, registry: Registry) -> list[Model]:
    """Return the models that the configuration uses, sorted by name."""
    names = {name for study in studies for name in study.models()}
    return [_model(name, registry[name]) for name in sorted(names)]


def other_models(studies: Studies, registry: Registry) -> dict[str, str]:
    """Return the labels of the used models of which the papers print no row, by name."""
    models = used_models(studies, registry)
    return {one.name: one.label for one in models if not registry[one.name].published_as}


def model_records(studies: Studies, registry: Registry) -> str:
    """Return the configured models as canonical JSON."""
    return canonical_json([model.model_dump() for model in used_models(studies, registry)])


def _model(name: str, entry: ModelEntry) -> Model:
    fields = {field: getattr(entry, field, None) for field in Model.model_fields}
    if isinstance(entry, LLMEntry):
        fields["checkpoint"] = entry.litellm_id
    return Model.model_validate(fields | {"name": name})


def needs(registry: Registry) -> dict[str, str]:
    """Return the requirements for running each of the papers' models, by printed name."""
    entries = [entry for entry in registry.values() if entry.published_as]
    # Entries of retired models come last, since weights of the same model may be available.
    found: dict[str, str] = {}
    for entry in sorted(entries, key=lambda entry: bool(getattr(entry, "retired", None))):
        found.setdefault(str(entry.published_as), describe_requirement(entry))
    return found


def printed_names(registry: Registry) -> dict[str, str]:
    """Return the printed names of models by our names."""
    return {name: entry.published_as for name, entry in registry.items() if entry.published_as}


def printed_labels(registry: Registry) -> dict[str, str]:
    """Return the labels of the papers' models, by printed name."""
    entries = reversed([*registry.values()])
    return {entry.published_as: entry.label for entry in entries if entry.published_as}


def described_models(studies: Studies, project: Project) -> str:
    """Return descriptions of the papers' and the run's models for the page, as JSON.

    Other models are omitted, so that a new entry in models.local.yaml does not make the page stale.
    """
    studies = list(studies)
    used = {name for study in studies for name in study.models()}
    names = [name for name, entry in project.registry.items() if entry.published_as or name in used]
    of_archives = dict(chain.from_iterable(marks(study.plan).items() for study in studies))
    return canonical_json(
        [model.model_dump() for model in project.describe_models(names, of_archives)]
    )

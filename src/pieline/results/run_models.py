"""Models of a run, and what running the papers' models requires."""

from collections.abc import Iterable, Mapping
from typing import Any

from pieline.core.files import canonical_json
from pieline.models.entries import ModelEntry
from pieline.models.llm import LLMEntry
from pieline.models.sizing import describe_requirement
from pieline.project import Project
from pieline.results.provenance import Model
from pieline.study import Study

Studies = Iterable[Study[Any]]
Registry = Mapping[str, ModelEntry]


def used_models(studies: Studies, registry: Registry) -> list[Model]:
    """Return the models that the configuration uses, sorted by name."""
    names = {name for study in studies for name in study.models()}
    return [_model(name, registry[name]) for name in sorted(names)]


def other_models(studies: Studies, registry: Registry) -> dict[str, str]:
    """Return the labels of the used models that no paper lists, by name.

    Reference models, with which such models are compared, are excluded.
    """
    references = {name for study in studies for name in study.reference_models}
    return {
        one.name: one.label
        for one in used_models(studies, registry)
        if not registry[one.name].published_as and one.name not in references
    }


def model_records(studies: Studies, registry: Registry) -> str:
    """Return the configured models as canonical JSON."""
    return canonical_json([model.model_dump() for model in used_models(studies, registry)])


def _model(name: str, entry: ModelEntry) -> Model:
    fields = {field: getattr(entry, field, None) for field in Model.model_fields}
    if isinstance(entry, LLMEntry):
        fields["checkpoint"] = entry.litellm_id
    return Model.model_validate(fields | {"name": name})


def names_by_printed(registry: Registry) -> dict[str, list[str]]:
    """Return the names of models by printed name.

    Entries of retired models come last, since weights of the same model may be available.
    """
    entries = sorted(registry.items(), key=lambda item: bool(getattr(item[1], "retired", None)))
    names: dict[str, list[str]] = {}
    for name, entry in entries:
        if entry.published_as:
            names.setdefault(entry.published_as, []).append(name)
    return names


def needs(registry: Registry) -> dict[str, str]:
    """Return the requirements for running each of the papers' models, by name."""
    return {
        name: describe_requirement(registry[names[0]])
        for names in names_by_printed(registry).values()
        for name in names
    }


def shown_labels(studies: Studies, registry: Registry) -> dict[str, str]:
    """Return the labels of the papers' and the run's models, by name."""
    used = {name for study in studies for name in study.models()}
    return {
        name: entry.label for name, entry in registry.items() if entry.published_as or name in used
    }


def described_models(studies: Studies, project: Project) -> str:
    """Return descriptions of the papers' and the run's models for the page, as JSON.

    Other models are omitted, so that a new entry in models.local.yaml does not make the page stale.
    """
    used = {name for study in studies for name in study.models()}
    names = [name for name, entry in project.registry.items() if entry.published_as or name in used]
    return canonical_json([model.model_dump() for model in project.describe_models(names)])

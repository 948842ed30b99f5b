"""Describe the models of a run, and what running the papers' models requires."""

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
    """Return the labels of the user's own models, by name in models.yaml.

    The user's own models are the configured models that no paper lists and that are not reference
    models of a study.
    """
    reference_models = {name for study in studies for name in study.reference_models}
    labels = {}
    for model in used_models(studies, registry):
        is_in_paper = bool(registry[model.name].published_as)
        if not is_in_paper and model.name not in reference_models:
            labels[model.name] = model.label
    return labels


def model_records(studies: Studies, registry: Registry) -> str:
    """Return the models that the configuration uses, as canonical JSON."""
    return canonical_json([model.model_dump() for model in used_models(studies, registry)])


def _model(name: str, entry: ModelEntry) -> Model:
    fields = {field: getattr(entry, field, None) for field in Model.model_fields}
    if isinstance(entry, LLMEntry):
        fields["checkpoint"] = entry.litellm_id
    return Model.model_validate(fields | {"name": name})


def names_by_printed(registry: Registry) -> dict[str, list[str]]:
    """Map each model name that the papers print to the names of its entries in models.yaml.

    Retired entries come last, because another entry may have available weights of the same model.
    """

    def is_retired(name: str) -> bool:
        return bool(getattr(registry[name], "retired", None))

    names_by_printed_name: dict[str, list[str]] = {}
    for name in sorted(registry, key=is_retired):
        printed_name = registry[name].published_as
        if printed_name:
            names_by_printed_name.setdefault(printed_name, []).append(name)
    return names_by_printed_name


def requirement_by_model(registry: Registry) -> dict[str, str]:
    """Return what is required to run each of the papers' models, by name in models.yaml.

    Models with the same printed name have the requirement of the first of these models (see
    `names_by_printed`).
    """
    requirements = {}
    for names in names_by_printed(registry).values():
        requirement = describe_requirement(registry[names[0]])
        requirements.update(dict.fromkeys(names, requirement))
    return requirements


def shown_labels(studies: Studies, registry: Registry) -> dict[str, str]:
    """Return the labels of the papers' models and of this run's models, by name in models.yaml."""
    used = {name for study in studies for name in study.models()}
    return {
        name: entry.label for name, entry in registry.items() if entry.published_as or name in used
    }


def described_models(studies: Studies, project: Project) -> str:
    """Return the descriptions of the papers' models and of this run's models, as canonical JSON.

    Other models are omitted, so that a new entry in models.local.yaml does not cause the results
    page to be made again.
    """
    used = {name for study in studies for name in study.models()}
    names = [name for name, entry in project.registry.items() if entry.published_as or name in used]
    return canonical_json([model.model_dump() for model in project.describe_models(names)])

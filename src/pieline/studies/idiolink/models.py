"""Return the models of the IdioLink study, and their configuration."""

from collections.abc import Collection, Iterable, Sequence
from typing import get_args

from pieline.core.errors import UserError
from pieline.core.files import canonical_json
from pieline.models.api_embedder import ApiEmbedderEntry
from pieline.models.embedder import ConfiguredEmbedder, EmbedderEntry
from pieline.models.rankers import RerankerEntry
from pieline.models.registry import AnyEntry
from pieline.project import alternatives
from pieline.studies.idiolink import paths, records
from pieline.studies.idiolink.inputs import OWN_RANKERS, models_to_fine_tune, models_to_rank
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.originals.splits import SPLITS
from pieline.studies.idiolink.records import QUERY_MODES
from pieline.studies.idiolink.settings import (
    PAPER_PARAMETERS,
    Bm25Tuning,
    Composition,
    IdiolinkSettings,
    Origin,
)
from pieline.studies.idiolink.training.settings import Loss, TrainingSettings
from pieline.study import Study

Idiolink = Study[IdiolinkSettings]
COLLECTIONS: tuple[records.Collection, ...] = get_args(records.Collection)
TEXT_FILES = ("indexes", "queries")


def wildcards() -> dict[str, str]:
    """Return a regular expression for each wildcard in the study's path patterns."""
    compositions = alternatives(set(get_args(Composition)) - {"full"})
    return {
        "split": alternatives(SPLITS),
        "index": rf"({alternatives(SPLITS)})(-({compositions}))?",
        "composition": compositions,
        "query_mode": alternatives(QUERY_MODES),
        "train_mode": alternatives(QUERY_MODES),
        "loss": alternatives(get_args(Loss)),
        "collection": alternatives(COLLECTIONS),
        "origin": alternatives(get_args(Origin)),
    }


def embedder_constraint(study: Idiolink) -> str:
    """Return a regular expression for the names of local embedders, including fine-tuned ones."""
    local_embedders = set(study.project.names("embedder")).difference(api_embedders(study))
    train_mode, loss = alternatives(QUERY_MODES), alternatives(get_args(Loss))
    return rf"({alternatives(local_embedders)})(\+({train_mode})\+({loss}))?"


def api_embedders(study: Idiolink) -> list[str]:
    """Return the names of the embedders in models.yaml that call an API."""
    entries = study.project.registry.items()
    return [name for name, entry in entries if isinstance(entry, ApiEmbedderEntry)]


def ranker_constraint(study: Idiolink) -> str:
    """Return a regular expression for the names of all models that rank documents."""
    other_rankers = study.project.constraint("bm25", *OWN_RANKERS, "predictions")
    return f"{embedder_constraint(study)}|{alternatives(api_embedders(study))}|{other_rankers}"


def entry(study: Idiolink, model: str) -> AnyEntry:
    """Return a model's entry; for a fine-tuned model, the entry of its base model."""
    return study.project.entry(paths.base_of(model))


def all_models(study: Idiolink) -> list[str]:
    """Return the names of all models that this configuration uses, without duplicates."""
    used_models = models_to_rank(study)
    used_models += first_stages(study, used_models).values()
    used_models += models_to_fine_tune(study)
    if constructs(study):
        used_models += model_by_role(study).values()
    return list(dict.fromkeys(used_models))


def first_stages(study: Idiolink, models: Iterable[str]) -> dict[str, str]:
    """Map each reranker among `models` to its first-stage model."""
    first_stage_by_reranker = {}
    for model in models:
        model_entry = study.project.registry[model]
        if isinstance(model_entry, RerankerEntry):
            first_stage_by_reranker[model] = model_entry.first_stage
    return first_stage_by_reranker


def archived_models(study: Idiolink) -> set[str]:
    """Return the models that do not run here, because all their results come from archives."""
    models_with_archived_runs = study.plan.archived_models()
    if not constructs(study):
        return models_with_archived_runs
    # The models that construct the dataset run in any case.
    return models_with_archived_runs.difference(model_by_role(study).values())


def is_tuned(study: Idiolink) -> bool:
    """Return whether BM25 is tuned, which requires a validation split."""
    return "val" in splits(study, study.settings.dataset)


def bm25_points(study: Idiolink) -> Bm25Tuning:
    """Return the values of k1 and b to try for BM25.

    Without a validation split, BM25 cannot be tuned. The result then contains a single pair of
    values: the configured pair, or the paper's pair if several values are configured.
    """
    grid = study.settings.bm25
    is_single_point = len(grid.k1) == len(grid.b) == 1
    if is_tuned(study) or is_single_point:
        return grid
    return grid.model_copy(update=PAPER_PARAMETERS)


def embedder(study: Idiolink, model: str) -> ConfiguredEmbedder:
    """Return an embedder's entry, with the configured format of inputs and the configured device.

    Raises:
        UserError: The model is not an embedder.
    """
    model_entry = entry(study, model)
    if not isinstance(model_entry, EmbedderEntry):
        raise UserError(
            f"{model!r} is of kind {model_entry.kind!r}, not an embedder", hint="use an embedder"
        )
    return model_entry.with_inputs(study.settings.inputs, study.settings.device)


def embedder_spec(study: Idiolink, model: str) -> str:
    """Return the fields of an embedder's entry that affect its vectors, as JSON."""
    return embedder(study, model).execution_spec()


def training_spec(study: Idiolink, model: str, train_mode: str) -> str:
    """Return the fields of an embedder's entry that affect its training, as JSON."""
    has_instructions = train_mode.startswith("instruction")
    return embedder(study, model).training_spec(instructed=has_instructions)


def training(
    study: Idiolink, model: str, train_mode: str, loss: str, seed: str
) -> TrainingSettings:
    """Return the settings of a training run."""
    hyperparameters = study.settings.finetuning.hyperparameters(model).model_dump()
    return TrainingSettings.model_validate(
        {**hyperparameters, "loss": loss, "train_mode": train_mode, "seed": seed}
    )


def training_settings(study: Idiolink, model: str, train_mode: str, loss: str, seed: str) -> str:
    """Return the settings of a training run as canonical JSON."""
    return training(study, model, train_mode, loss, seed).canonical()


def constructs(study: Idiolink) -> bool:
    """Return whether this configuration constructs a dataset from MAGPIE."""
    return study.settings.construction.enabled


def model_by_role(study: Idiolink) -> dict[str, str]:
    """Map each role in the construction to the name of the language model in this role."""
    return study.settings.construction.model_dump(
        include={"index_writer", "query_writer", "validator"}
    )


def pie_options(study: Idiolink) -> str:
    """Return the settings that select PIEs and (PIE, domain) pairs, as canonical JSON."""
    fields = set(FilterOptions.model_fields)
    return canonical_json(study.settings.construction.model_dump(include=fields))


def splits(study: Idiolink, origin: str) -> list[str]:
    """Return the splits that the texts of an origin (see `files.data_folder`) have.

    Only the user's own data can lack splits. In this data, only `test` is required.
    """
    if origin == "constructed" or not study.project.own_data:
        return list(SPLITS)
    available_splits: list[str] = []
    for split in SPLITS:
        has_file = any(
            study.project.is_available(f"idiolink/{split}/{name}.json") for name in TEXT_FILES
        )
        if split == "test" or has_file:
            available_splits.append(split)
    return available_splits


def models_to_run(
    study: Idiolink, computed_models: Collection[str], models: Sequence[str]
) -> list[str]:
    """Return the models that must run here to make the rankings of `models`.

    Args:
        study: The study.
        computed_models: Models with rankings that do not come from an archive.
        models: Names of models for ranking.

    Returns:
        The computed models among `models`, and the first-stage models of the rerankers among them,
        unless the rankings of a first-stage model come from an archive.
    """
    needed_models = [model for model in models if model in computed_models]
    from_archives = set(models).difference(needed_models)
    for first_stage in first_stages(study, needed_models).values():
        if first_stage not in from_archives and first_stage not in needed_models:
            needed_models.append(first_stage)
    return needed_models

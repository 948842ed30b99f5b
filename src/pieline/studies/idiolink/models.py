"""Models of the IdioLink study, and how they are configured."""

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
from pieline.studies.idiolink.inputs import OWN_RANKERS, ranked, tuned_bases
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
    """Return a regular expression for each wildcard in the study's paths."""
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
    """Return a regular expression that matches local embedders, including fine-tuned ones."""
    modes, losses = alternatives(QUERY_MODES), alternatives(get_args(Loss))
    local = alternatives({*study.project.names("embedder")} - {*api_embedders(study)})
    return rf"({local})(\+({modes})\+({losses}))?"


def api_embedders(study: Idiolink) -> list[str]:
    """Return the embedders in models.yaml that call an API."""
    entries = study.project.registry.items()
    return [name for name, entry in entries if isinstance(entry, ApiEmbedderEntry)]


def ranker_constraint(study: Idiolink) -> str:
    """Return a regular expression that matches all ranking models."""
    others = study.project.constraint("bm25", *OWN_RANKERS, "predictions")
    return f"{embedder_constraint(study)}|{alternatives(api_embedders(study))}|{others}"


def entry(study: Idiolink, model: str) -> AnyEntry:
    """Return the entry of a model; for a fine-tuned model, that of its base model."""
    return study.project.entry(paths.base_of(model))


def all_models(study: Idiolink) -> list[str]:
    """Return the models for ranking, fine-tuning and, if enabled, construction."""
    names = ranked(study)
    names += first_stages(study, names).values()
    names += tuned_bases(study)
    if constructs(study):
        names += roles(study).values()
    return list(dict.fromkeys(names))


def first_stages(study: Idiolink, models: Iterable[str]) -> dict[str, str]:
    """Return the first-stage models of the rerankers among these models, by reranker."""
    entries = ((name, study.project.registry[name]) for name in models)
    return {name: entry.first_stage for name, entry in entries if isinstance(entry, RerankerEntry)}


def archived_models(study: Idiolink) -> set[str]:
    """Return the models with only archived runs, except those that construct the dataset."""
    archived = study.plan.archived_models()
    return archived.difference(roles(study).values()) if constructs(study) else archived


def is_tuned(study: Idiolink) -> bool:
    """Return whether there is a validation split on which BM25 is tuned."""
    return "val" in splits(study, study.settings.dataset)


def bm25_points(study: Idiolink) -> Bm25Tuning:
    """Return the BM25 grid.

    Without a validation split, the paper's values replace a grid with several points.
    """
    grid = study.settings.bm25
    if is_tuned(study) or len(grid.k1) == len(grid.b) == 1:
        return grid
    return grid.model_copy(update=PAPER_PARAMETERS)


def embedder(study: Idiolink, model: str) -> ConfiguredEmbedder:
    """Return the entry of an embedder with the configured inputs and device.

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
    """Return the parts of an embedder's entry that affect its vectors, as JSON."""
    return embedder(study, model).execution_spec()


def training_spec(study: Idiolink, model: str, train_mode: str) -> str:
    """Return the parts of an embedder's entry that affect its training, as JSON."""
    instructed = train_mode.startswith("instruction")
    return embedder(study, model).training_spec(instructed=instructed)


def training(
    study: Idiolink, model: str, train_mode: str, loss: str, seed: str
) -> TrainingSettings:
    """Return the settings of a training run."""
    shared = study.settings.finetuning.hyperparameters(model).model_dump()
    return TrainingSettings.model_validate(
        shared | {"loss": loss, "train_mode": train_mode, "seed": seed}
    )


def training_settings(study: Idiolink, model: str, train_mode: str, loss: str, seed: str) -> str:
    """Return the settings of a training run as canonical JSON."""
    return training(study, model, train_mode, loss, seed).canonical()


def constructs(study: Idiolink) -> bool:
    """Return whether this run constructs the dataset from MAGPIE."""
    return study.settings.construction.enabled


def roles(study: Idiolink) -> dict[str, str]:
    """Return the construction's language models by role."""
    return study.settings.construction.model_dump(
        include={"index_writer", "query_writer", "validator"}
    )


def pie_options(study: Idiolink) -> str:
    """Return the settings that select PIEs and pairs, as canonical JSON."""
    fields = set(FilterOptions.model_fields)
    return canonical_json(study.settings.construction.model_dump(include=fields))


def splits(study: Idiolink, origin: str) -> list[str]:
    """Return the available splits; in the user's own data, only `test` is required."""
    if origin == "constructed" or not study.project.own_data:
        return list(SPLITS)
    available: list[str] = []
    for split in SPLITS:
        files = [f"idiolink/{split}/{name}.json" for name in TEXT_FILES]
        if split == "test" or any(map(study.project.is_available, files)):
            available.append(split)
    return available


def embedding_models(study: Idiolink, computed: Collection[str], names: Sequence[str]) -> list[str]:
    """Return the models among `names` that are computed here, and the first stages that they need.

    A first stage whose rankings come from an archive is not needed.
    """
    needed = [name for name in names if name in computed]
    archived = set(names).difference(needed)
    for first in first_stages(study, needed).values():
        if first not in archived and first not in needed:
            needed.append(first)
    return needed

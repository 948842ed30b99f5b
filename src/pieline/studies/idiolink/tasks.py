"""Return the tasks for language models and embedding APIs in the IdioLink study."""

from functools import partial
from itertools import product

from pieline.studies.idiolink import inputs, models, paths
from pieline.studies.idiolink.models import Idiolink
from pieline.studies.idiolink.predictions.api_embedding import Embedding
from pieline.studies.idiolink.variants.generation import Writing
from pieline.studies.idiolink.variants.validation import Validation
from pieline.study import LLMTaskSpec

TEXT_MODES = ("sentence", "instruction_sentence")
"""Query modes that an API embedder supports."""


def writing(study: Idiolink, collection: str) -> Writing:
    """Return the task that generates the texts of a collection."""
    settings = study.settings.construction
    model = settings.index_writer if collection == "documents" else settings.query_writer
    return Writing(
        model=model,
        spec=study.project.language_model(model).execution_spec(),
        inputs={"pairs": paths.PAIRS, "prompt": prompt(study, collection)},
        outputs={
            "texts": paths.TEXTS.format(collection=collection),
            "report": paths.TEXTS_REPORT.format(collection=collection),
        },
        recordings=_recordings(study, model, f"write_{collection}"),
        # The comparison narrows the type to the two literals.
        collection="documents" if collection == "documents" else "queries",
        attempts=settings.attempts,
    )


def validation(study: Idiolink, collection: str) -> Validation:
    """Return the task that validates the texts of a collection."""
    model = study.settings.construction.validator
    return Validation(
        model=model,
        spec=study.project.language_model(model).execution_spec(),
        inputs={
            "texts": paths.TEXTS.format(collection=collection),
            "prompt": prompt(study, "validate"),
        },
        outputs={"verdicts": paths.VERDICTS.format(collection=collection)},
        recordings=_recordings(study, model, f"validate_{collection}"),
    )


def prompt(study: Idiolink, name: str) -> str:
    """Return the path of a prompt for the construction, such as `documents` or `validate`."""
    folder = study.settings.construction.prompts or study.project.here("prompts/idiolink")
    return f"{folder}/{name}.jinja"


def _recordings(study: Idiolink, model: str, task: str) -> str:
    return study.project.recordings("idiolink_construction", model, f"{task}.jsonl")


def embedding(study: Idiolink, split: str, model: str, texts: str, seed: str) -> Embedding:
    """Return the task in which an API embeds texts of a split.

    `texts` is `documents`, or the query mode in which the queries are embedded.
    """
    collection = "documents" if texts == "documents" else "queries"
    vectors = paths.API_VECTORS.format(split=split, model=model, texts=texts, seed=seed)
    return Embedding(
        model=model,
        spec=study.project.entry(model).execution_spec(),
        inputs={"texts": paths.dataset(split)[collection]},
        outputs={"vectors": vectors},
        recordings=vector_recordings(study, model, texts),
        texts=texts,
    )


def vector_recordings(study: Idiolink, model: str, texts: str) -> str:
    """Return the path of the recorded vectors that an API returned for `texts`.

    `texts` is `documents` or a query mode, as in `embedding`.
    """
    return study.project.recordings("idiolink_embedding", model, f"{texts}.jsonl")


def llm_tasks(study: Idiolink) -> list[LLMTaskSpec]:
    """Return the specifications of the generation, validation and API embedding tasks."""
    constructed_collections = []
    if models.constructs(study):
        constructed_collections = [{"collection": name} for name in models.COLLECTIONS]
    return [
        LLMTaskSpec("idiolink_generate", Writing, partial(writing, study), constructed_collections),
        LLMTaskSpec(
            "idiolink_validate",
            Validation,
            partial(validation, study),
            constructed_collections,
            after_answers=("texts",),
        ),
        LLMTaskSpec(
            "idiolink_embed",
            Embedding,
            partial(embedding, study),
            _embedded_texts(study),
        ),
    ]


def _embedded_texts(study: Idiolink) -> list[dict[str, str]]:
    """Return the wildcards of each task that embeds the documents, or the queries in one mode."""
    computed_models = {run.model for run in study.plan if not run.archive}
    needed_models = models.models_to_run(study, computed_models, inputs.models_to_rank(study))
    api_embedders = [model for model in needed_models if model in models.api_embedders(study)]
    query_modes = [mode for mode in TEXT_MODES if mode in study.settings.query_modes]
    return [
        {"split": "test", "model": model, "texts": texts, "seed": "0"}
        for model, texts in product(api_embedders, ["documents", *query_modes])
    ]

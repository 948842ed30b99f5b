"""Kinds of language model tasks of the IdioLink study."""

from functools import partial

from pieline.project import alternatives
from pieline.studies.idiolink import inputs, models, paths, questions, runs
from pieline.studies.idiolink.models import Idiolink
from pieline.studies.idiolink.predictions.api_embedding import Embedding
from pieline.studies.idiolink.variants.generation import Writing
from pieline.studies.idiolink.variants.votes import Validation
from pieline.study import LLMTaskSpec

TEXT_MODES = ("sentence", "instruction_sentence")


def llm_tasks(study: Idiolink) -> list[LLMTaskSpec]:
    """Return the specifications of the generation, validation and API embedding tasks."""
    collections = (
        [{"collection": name} for name in models.COLLECTIONS] if models.constructs(study) else []
    )
    apis = models.api_embedders(study)
    computed = {run.model for run in study.plan if not run.archived}
    where = {"collection": alternatives(models.COLLECTIONS)}
    return [
        LLMTaskSpec(
            "idiolink_generate",
            Writing,
            {"texts": paths.TEXTS, "report": paths.TEXTS_REPORT},
            partial(questions.writing, study),
            collections,
            where,
        ),
        LLMTaskSpec(
            "idiolink_validate",
            Validation,
            {"verdicts": paths.VERDICTS},
            partial(questions.validation, study),
            collections,
            where,
            after_answers=("texts",),
        ),
        LLMTaskSpec(
            "idiolink_embed",
            Embedding,
            {"vectors": paths.API_VECTORS},
            partial(questions.embedding, study),
            [
                {"split": "test", "model": model, "texts": texts, "seed": "0"}
                for model in runs.embedding_models(study, computed, inputs.ranked(study))
                if model in apis
                for texts in ("documents", *TEXT_MODES)
                if texts == "documents" or texts in study.settings.query_modes
            ],
            {
                "model": alternatives(apis),
                "texts": alternatives(["documents", *TEXT_MODES]),
            },
        ),
    ]

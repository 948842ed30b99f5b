"""Settings in the `idiolink` section of config.yaml."""

from typing import Annotated, Literal

from pydantic import PositiveFloat, PositiveInt

from pieline.core.settings import Field, Seed, Settings
from pieline.models.embedder import Device, Inputs
from pieline.models.names import EmbedderName, ModelKinds, TrainedEmbedderName
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.originals.splits import SplitSizes
from pieline.studies.idiolink.records import QueryMode
from pieline.studies.idiolink.training.settings import Hyperparameters, Loss

Composition = Literal["full", "lit_sim_sense", "lit_idiom"]
Origin = Literal["released_format", "constructed"]


class Bm25Tuning(Settings):
    """Grid and method for tuning k1 and b on the validation split (IdioLink, appendix E.1).

    The full index always uses the values tuned on sentence queries, because the paper reports a
    single pair of values for both query modes.
    """

    k1: list[PositiveFloat] = Field(
        default=[0.6, 0.9, 1.2, 1.5, 2.0],
        min_length=1,
        affects="predictions",
        description="Values to try for k1, the saturation of term frequency.",
    )
    b: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=[0.2, 0.4, 0.6, 0.75, 0.9],
        min_length=1,
        affects="predictions",
        description="Values to try for b, the strength of length normalization.",
    )
    tuning: Literal["per_mode_and_composition", "sentence"] = Field(
        default="per_mode_and_composition",
        affects="predictions",
        deviates=False,
        description="Values for the ablation's indexes: tuned per query mode on the validation"
        " index with the same usages, as in the released code, or those of the full index.",
    )


PAPER_PARAMETERS = {"k1": [0.9], "b": [0.4]}
"""The paper's tuned values, used for data without a validation split."""


class FineTuning(Hyperparameters):
    """Settings of contrastive fine-tuning (IdioLink, section 4.3)."""

    models: list[TrainedEmbedderName] = Field(
        default=[], affects="display", description="Embedders in models.yaml to fine-tune."
    )
    train_modes: list[QueryMode] = Field(
        default=["sentence", "instruction_sentence", "span", "instruction_span"],
        min_length=1,
        affects="display",
        description="Query modes; each trains a model of its own.",
    )
    losses: list[Loss] = Field(
        default=["paper"],
        min_length=1,
        affects="display",
        description="'paper': equation 2; 'released': InfoNCE with in-batch negatives and"
        " temperature 0.05, as in the released code.",
    )
    tuples: Literal["sampled", "released", "released_where_available"] = Field(
        default="sampled",
        affects="predictions",
        deviates=False,
        description="Training tuples: sampled with the seed (section 4.3), or the released mined"
        " tuples. 'released_where_available' falls back to sampled tuples if the mirror folder"
        " lacks the mined ones, which the table notes.",
    )
    seeds: list[Seed] = Field(
        default=[42, 43, 44],
        min_length=1,
        affects="display",
        description="Seeds; each trains a model of its own.",
    )
    batch_sizes: dict[TrainedEmbedderName, PositiveInt] = Field(
        default={"drama-1b": 8},
        affects="predictions",
        deviates=False,
        description="Batch sizes of single models, overriding batch_size.",
    )
    threads: PositiveInt = Field(
        default=1,
        affects="predictions",
        deviates=False,
        description="Threads per training on CPU; results depend on it.",
    )


class GenerationParameters(Settings):
    """Request parameters of IdioLink's construction (section 3.2); null omits a parameter."""

    temperature: float | None = Field(
        default=1, ge=0, affects="predictions", description="Sampling temperature; null: not sent."
    )
    max_tokens: PositiveInt | None = Field(
        default=None,
        affects="predictions",
        description="Maximum tokens per answer; null: not sent.",
    )


class Construction(FilterOptions):
    """Settings for constructing a validated dataset with splits from MAGPIE (section 3.2)."""

    enabled: bool = Field(
        default=False,
        affects="display",
        description="Construct the dataset. With the real data, this requires MAGPIE, paid models"
        " and human reviewers.",
    )
    exclusions: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="TSV (pie, reason) of manually excluded PIEs; null: the sample's file, or the"
        " exclusions that the released files imply.",
    )
    index_writer: str = Field(
        default="gemini-2.5-pro",
        affects="predictions",
        description="Model that writes the documents.",
    )
    query_writer: str = Field(
        default="gemini-3-flash-preview",
        affects="predictions",
        description="Model that writes the queries.",
    )
    validator: str = Field(
        default="gpt-4o-mini", affects="predictions", description="Model that validates all texts."
    )
    prompts: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Folder with documents.jinja, queries.jinja and validate.jinja; null:"
        " prompts/idiolink.",
    )
    parameters: GenerationParameters = GenerationParameters()
    attempts: PositiveInt = Field(
        default=3,
        affects="predictions",
        deviates=False,
        description="Maximum number of answers per (PIE, domain) pair.",
    )
    runs: PositiveInt = Field(default=3, affects="predictions", description="Votes per text.")
    split_source: Literal["drawn", "released"] = Field(
        default="drawn",
        affects="predictions",
        deviates=False,
        description="Draw the splits with the seed, or use the released ones.",
    )
    splits: SplitSizes = SplitSizes()
    seed: Seed = Field(
        default=42,
        affects="predictions",
        deviates=False,
        description="Seed for sampling MAGPIE's sentences and drawing the splits.",
    )
    corrections: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Reviewers' decisions (completed CSV or Label Studio export); null: the"
        " sample's file, or none.",
    )
    unreviewed: Literal["refuse", "keep"] = Field(
        default="refuse",
        affects="predictions",
        deviates=False,
        description="Texts that still need human review: raise an error, or keep them unchanged.",
    )


class IdiolinkSettings(Settings):
    """Settings of the IdioLink study."""

    models: list[
        Annotated[
            str,
            ModelKinds(("bm25", "embedder", "reranker", "late_interaction", "predictions")),
        ]
    ] = Field(default=["bm25", "sbert"], affects="display", description="Names in models.yaml.")
    leave_out: dict[EmbedderName, Annotated[str, Field(min_length=1)]] = Field(
        default={},
        affects="display",
        description="Embedders to skip in this run, with the reasons shown in the tables.",
    )
    inputs: Inputs = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="Format of queries and documents: that of appendix B, or that of the released"
        " code for models where it differs (`released_inputs` in models.yaml).",
    )
    device: Device | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="'mps': embed on an Apple GPU; the last digits differ from those on a CPU.",
    )
    query_modes: list[QueryMode] = Field(
        default=["sentence", "span", "instruction_sentence", "instruction_span"],
        affects="display",
        description="Query modes: the sentence or its span, each with or without the instruction.",
    )
    compositions: list[Composition] = Field(
        default=["full", "lit_sim_sense", "lit_idiom"],
        affects="display",
        description="Index compositions; all except 'full' are the ablation.",
    )
    top_k: PositiveInt = Field(
        default=100, affects="predictions", description="Documents kept per query."
    )
    embedding_threads: PositiveInt = Field(
        default=8,
        affects="nothing",
        description="Maximum number of threads for embedding on CPU; results do not depend on it.",
    )
    dataset: Origin = Field(
        default="released_format",
        affects="predictions",
        deviates=False,
        description="Texts of the experiments: the released files (or the sample in their format),"
        " or the construction.",
    )
    construction: Construction = Construction()
    bm25: Bm25Tuning = Bm25Tuning()
    finetuning: FineTuning = FineTuning()
    permutations: PositiveInt = Field(
        default=10_000,
        affects="scoring",
        description="Maximum number of sign patterns over PIEs in the tests between query modes"
        " and between models.",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000,
        affects="scoring",
        description="Bootstrap resamples of the PIEs, for intervals.",
    )

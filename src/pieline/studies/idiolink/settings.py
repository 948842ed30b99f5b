"""Settings in the `idiolink` section of config.yaml."""

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from pieline.core.settings import Seed, Settings
from pieline.models.embedder import Device, Inputs
from pieline.studies.idiolink.originals.domains import DOMAINS, Domain
from pieline.studies.idiolink.originals.pie_filter import FilterThresholds, Semantics
from pieline.studies.idiolink.originals.splits import SplitSizes
from pieline.studies.idiolink.records import QueryMode
from pieline.studies.idiolink.training.settings import Hyperparameters, Loss, TrainMode

Composition = Literal["full", "lit_sim_sense", "lit_idiom"]
Origin = Literal["released_format", "constructed"]


class Bm25Tuning(Settings):
    """Grid and method for tuning k1 and b on the validation split (IdioLink, appendix E.1).

    The full index always uses the values tuned on sentence queries, because the paper reports a
    single pair of values for both query modes.
    """

    k1: list[PositiveFloat] = Field(default=[0.6, 0.9, 1.2, 1.5, 2.0], min_length=1)
    b: list[Annotated[float, Field(ge=0, le=1)]] = Field(
        default=[0.2, 0.4, 0.6, 0.75, 0.9], min_length=1
    )
    tuning: Literal["per_mode_and_composition", "sentence"] = Field(
        default="per_mode_and_composition",
        description="What the ablation's indexes take: the point of each query mode on the"
        " validation index without the same usages, as the released code, or the full index's.",
    )


PAPERS_POINT = {"k1": [0.9], "b": [0.4]}
"""The paper's tuned values, used for data without a validation split."""


class FineTuning(Hyperparameters):
    """Contrastive fine-tuning (IdioLink, section 4.3), with the hyperparameters of Table 3."""

    models: list[str] = Field(
        default=[], description="Embedders of models.yaml; none: no training."
    )
    train_modes: list[TrainMode] = Field(
        default=["sentence", "instruction_sentence", "span", "instruction_span"], min_length=1
    )
    losses: list[Loss] = Field(
        default=["paper"],
        min_length=1,
        description="'paper': equation 2; 'released': InfoNCE with in-batch negatives and"
        " temperature 0.05, as the released code.",
    )
    tuples: Literal["sampled", "released", "released_where_available"] = Field(
        default="sampled",
        description="Training tuples drawn by the seed (section 4.3), or the released mined ones,"
        " which only a mirror folder can have; where available: else the drawn ones, as the table"
        " says.",
    )
    seeds: list[Seed] = Field(default=[42, 43, 44], min_length=1)
    batch_sizes: dict[str, PositiveInt] = Field(
        default={"drama-1b": 8}, description="Tuples a step of single models, not batch_size."
    )
    threads: PositiveInt = Field(
        default=1,
        description="Threads of a training on CPU, whatever the cores: sums depend on it.",
    )


class GenerationParameters(Settings):
    """Request parameters of IdioLink's construction (section 3.2); null omits a parameter."""

    temperature: float | None = Field(default=1, ge=0)
    max_tokens: PositiveInt | None = None


class Construction(Settings):
    """Construction of IdioLink, from MAGPIE to a validated data set with splits (section 3.2)."""

    enabled: bool = Field(
        default=False,
        description="Construct the data set. With the real data it needs MAGPIE, paid models and"
        " people who review.",
    )
    semantics: Semantics = Field(
        default="released",
        description="The three criteria as the released code applies them, which gives the released"
        " list, or as the paper states them, which keeps close to no PIE of MAGPIE.",
    )
    thresholds: FilterThresholds = FilterThresholds()
    exclusions: str | None = Field(
        default=None,
        description="TSV (pie, reason) of PIEs removed by hand; null: the sample's own, or what the"
        " released files imply.",
    )
    pies: list[str] | None = Field(
        default=None,
        min_length=1,
        description="Of the PIEs that pass the filter only these; null: all.",
    )
    domains: list[Domain] = Field(default=list(DOMAINS), min_length=1)
    index_writer: str = Field(default="gemini-2.5-pro", description="Writes the documents.")
    query_writer: str = Field(default="gemini-3-flash-preview", description="Writes the queries.")
    validator: str = Field(default="gpt-4o-mini", description="Judges all texts.")
    prompts: str | None = Field(
        default=None,
        description="Folder with documents.jinja, queries.jinja and validate.jinja; null: this"
        " project's, prompts/idiolink.",
    )
    parameters: GenerationParameters = GenerationParameters()
    attempts: PositiveInt = Field(
        default=3, description="Answers asked for a (PIE, domain) pair until one can be used."
    )
    runs: PositiveInt = Field(default=3, description="Votes on each text.")
    split_source: Literal["drawn", "released"] = Field(
        default="drawn", description="Drawn with the seed, or as in the released files."
    )
    splits: SplitSizes = SplitSizes()
    seed: Seed = 42
    corrections: str | None = Field(
        default=None,
        description="Decisions of people (filled-in CSV, or Label Studio export); null: the"
        " sample's own, or none.",
    )
    unreviewed: Literal["refuse", "keep"] = Field(
        default="refuse",
        description="Texts that people should review and have not: refuse, or keep as they are.",
    )


class IdiolinkSettings(Settings):
    """Settings of the IdioLink study."""

    models: list[str] = Field(default=["bm25", "sbert"], description="Names of models.yaml.")
    leave_out: dict[str, Annotated[str, Field(min_length=1)]] = Field(
        default={},
        description="Embedders that are named and yet not run here, with the reason, which"
        " stands in the tables.",
    )
    inputs: Inputs = Field(
        default="paper",
        description="How queries and documents are written: by appendix B, or as the released code"
        " writes them where it does otherwise (`released_inputs` in models.yaml).",
    )
    device: Device | None = Field(
        default=None,
        description="'mps': embed on Apple's GPU, whose last digits differ from a CPU's.",
    )
    query_modes: list[QueryMode] = Field(
        default=["sentence", "span", "instruction_sentence", "instruction_span"]
    )
    compositions: list[Composition] = Field(
        default=["full", "lit_sim_sense", "lit_idiom"],
        description="Index compositions; every one but 'full' is the ablation.",
    )
    top_k: PositiveInt = Field(default=100, description="Documents kept for each query.")
    embedding_threads: PositiveInt = Field(
        default=8,
        description="Threads that embed on CPU, of the cores there are; no number depends on it.",
    )
    dataset: Origin | Literal["archived"] = Field(
        default="released_format",
        description="Texts of the experiments: from the released files (or the sample in their"
        " format), or from the construction; 'archived': none, what scoring needs to know of them"
        " is taken from `archives`, as are all runs.",
    )
    construction: Construction = Construction()
    bm25: Bm25Tuning = Bm25Tuning()
    finetuning: FineTuning = FineTuning()
    permutations: PositiveInt = Field(
        default=10_000,
        description="Sign patterns over PIEs in the tests between query modes and between models,"
        " where all are more.",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000, description="Draws of the PIEs, for intervals."
    )
    shortcuts: bool = Field(
        default=False,
        description="Whether queries that share more words with their relevant documents are found"
        " better: the tables idiolink_overlap and idiolink_shortcuts, and a figure.",
    )

"""Define the settings in the `idiolink` section of config.yaml."""

from typing import Annotated, Literal

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from pieline.core.settings import Field, LearningRate, Seed, Settings
from pieline.models.embedder import Device, Inputs
from pieline.models.names import EmbedderName, ModelKinds, TrainedEmbedderName
from pieline.studies.idiolink.originals.pie_filter import FilterOptions
from pieline.studies.idiolink.originals.splits import SplitSizes
from pieline.studies.idiolink.records import QueryMode
from pieline.studies.idiolink.training.settings import BATCH_SIZES, TABLE_3, Hyperparameters, Loss

Composition = Literal["full", "lit_sim_sense", "lit_idiom"]
Origin = Literal["released_format", "constructed"]


class Bm25Tuning(Settings):
    """Values of k1 and b to try on the validation split (IdioLink, appendix E.1)."""

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


PAPER_PARAMETERS = {"k1": [0.9], "b": [0.4]}
"""The values that the paper chose; they replace the grid if the data has no validation split."""


class FineTuning(Settings):
    """Settings of contrastive fine-tuning (IdioLink, section 4.3)."""

    models: list[TrainedEmbedderName] = Field(
        default=[], affects="display", description="Embedders in models.yaml to fine-tune."
    )
    train_modes: list[QueryMode] = Field(
        default=["sentence", "instruction_sentence", "span", "instruction_span"],
        min_length=1,
        affects="display",
        description="Query modes; a separate model is trained for each.",
    )
    losses: list[Loss] = Field(
        default=["paper"],
        min_length=1,
        affects="display",
        description="'paper': equation 2; 'released': InfoNCE with in-batch negatives and"
        " temperature 0.05, as in the authors' code.",
    )
    tuples: Literal["sampled", "released", "released_where_available"] = Field(
        default="sampled",
        affects="predictions",
        deviates=False,
        description="Training tuples: sampled with the seed ('sampled', section 4.3), or mined by"
        " the authors ('released'). 'released_where_available' uses sampled tuples if the authors'"
        " tuples are not in the mirror folder; the table then has a note.",
    )
    seeds: list[Seed] = Field(
        default=[42, 43, 44],
        min_length=1,
        affects="display",
        description="Seeds; a separate model is trained for each.",
    )
    form: Literal["paper", "released"] = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="'paper': as in Table 3; 'released': as in the authors' code, in which the"
        " last, incomplete batch of an epoch is dropped, and early stopping requires no minimum"
        " improvement.",
    )
    learning_rate: LearningRate = Field(
        default=TABLE_3.learning_rate,
        affects="predictions",
        description="Learning rate of AdamW after warm-up; it decreases linearly to zero.",
    )
    batch_size: PositiveInt = Field(
        default=TABLE_3.batch_size,
        affects="predictions",
        description="Number of tuples per step; at most 8 for drama-1b.",
    )
    max_epochs: PositiveInt = Field(
        default=TABLE_3.max_epochs,
        affects="predictions",
        description="Maximum number of epochs; early stopping may end training before.",
    )
    warmup_steps: NonNegativeInt = Field(
        default=TABLE_3.warmup_steps,
        affects="predictions",
        description="Number of steps of linear warm-up.",
    )
    threads: PositiveInt = Field(
        default=1,
        affects="predictions",
        deviates=False,
        description="Number of threads per training run on a CPU; results depend on it.",
    )

    def hyperparameters(self, model: str = "") -> Hyperparameters:
        """Return the hyperparameters for fine-tuning a model.

        Args:
            model: Name of the model; empty for any model that `BATCH_SIZES` does not contain.
        """
        values = self.model_dump(include=set(Hyperparameters.model_fields))
        maximum_batch_size = BATCH_SIZES.get(model, self.batch_size)
        values["batch_size"] = min(self.batch_size, maximum_batch_size)
        if self.form == "released":
            values["drop_last"] = True
            values["min_delta"] = 0.0
        return Hyperparameters(**values)


class Construction(FilterOptions):
    """Settings for constructing a dataset from MAGPIE, with validation and splits (section 3.2)."""

    enabled: bool = Field(
        default=False,
        affects="display",
        description="Whether to construct the dataset. On the papers' data, this requires MAGPIE,"
        " paid models and human reviewers.",
    )
    exclusions: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="TSV (pie, reason) of manually excluded PIEs; null: the sample's file, or the"
        " exclusions that the public files imply.",
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
    attempts: PositiveInt = Field(
        default=3,
        affects="predictions",
        deviates=False,
        description="Maximum number of answers per (PIE, domain) pair.",
    )
    split_source: Literal["drawn", "released"] = Field(
        default="drawn",
        affects="predictions",
        deviates=False,
        description="Draw the splits at random ('drawn'), or use the authors' splits ('released').",
    )
    splits: SplitSizes = SplitSizes()
    corrections: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="File of the reviewers' decisions (completed CSV or Label Studio export); null:"
        " the sample's file, or none.",
    )
    unreviewed: Literal["refuse", "keep"] = Field(
        default="refuse",
        affects="predictions",
        deviates=False,
        description="What to do with texts that still need human review: stop with an error"
        " ('refuse'), or keep them unchanged ('keep').",
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
        description="Format of queries and documents: that of appendix B ('paper'), or for models"
        " where it differs, that of the authors' code ('released';"
        " `pieline.models.embedder.RELEASED_INPUTS`).",
    )
    device: Device | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="'mps': compute embeddings on an Apple GPU; the last digits differ from those"
        " of a CPU.",
    )
    query_modes: list[QueryMode] = Field(
        default=["sentence", "span", "instruction_sentence", "instruction_span"],
        affects="display",
        description="Query modes: the sentence or its span, each with or without the instruction.",
    )
    compositions: list[Composition] = Field(
        default=["full", "lit_sim_sense", "lit_idiom"],
        affects="display",
        description="Documents in the index; all values except 'full' are the ablation.",
    )
    top_k: PositiveInt = Field(
        default=100, affects="predictions", description="Number of documents kept per query."
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
        description="Texts of the experiments: the public files or the sample ('released_format'),"
        " or the dataset that this project constructs ('constructed').",
    )
    construction: Construction = Construction()
    bm25: Bm25Tuning = Bm25Tuning()
    finetuning: FineTuning = FineTuning()
    permutations: PositiveInt = Field(
        default=10_000,
        affects="scoring",
        deviates=False,
        description="Maximum number of sign patterns over PIEs in the tests between query modes"
        " and between models.",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000,
        affects="scoring",
        deviates=False,
        description="Number of bootstrap resamples of the PIEs, for intervals.",
    )

"""What to run: the settings of config.yaml."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from pieline.errors import UserError
from pieline.idiolink.construction.domains import DOMAINS, Domain
from pieline.idiolink.construction.pie_filter import FilterThresholds, Semantics
from pieline.idiolink.construction.splits import SplitSizes
from pieline.idiolink.retrieval.training_settings import Hyperparameters, Loss, TrainMode
from pieline.jam.prompt_settings import FewShot, PromptSetting, ZeroShot
from pieline.jam.tagging.settings import TaggingSettings
from pieline.llm.spec import LLMSettings
from pieline.records import explain
from pieline.registry import Registry
from pieline.spans import Scoring
from pieline.words import Language

DetectionSetting = Literal["zero_shot", "zero_shot_schema"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
Study = Literal["jam", "idiolink", "idiots"]


class Settings(BaseModel):
    """A part of config.yaml: unknown keys are errors, everything has a default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Bm25Grid(Settings):
    """Grid for k1 and b, searched on the validation split (IdioLink, appendix E.1)."""

    k1: list[PositiveFloat] = Field(default=[0.6, 0.9, 1.2, 1.5, 2.0], min_length=1)
    b: list[float] = Field(default=[0.2, 0.4, 0.6, 0.75, 0.9], min_length=1)


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
    tuples: Literal["sampled", "released"] = Field(
        default="sampled",
        description="Training tuples drawn by the seed (section 4.3), or the released mined ones.",
    )
    seeds: list[NonNegativeInt] = Field(default=[42, 43, 44], min_length=1)
    batch_sizes: dict[str, PositiveInt] = Field(
        default={}, description="Tuples a step of single models, instead of batch_size."
    )
    threads: PositiveInt = Field(
        default=1,
        description="Threads of a training on CPU, whatever the cores: sums depend on it.",
    )


class GenerationParameters(Settings):
    """Request parameters of IdioLink's construction (section 3.2); null sends none."""

    temperature: float | None = Field(default=1, ge=0)
    max_tokens: PositiveInt | None = None


class Construction(Settings):
    """IdioLink from its beginning: MAGPIE to a validated, split data set (section 3.2)."""

    enabled: bool | None = Field(
        default=None,
        description="Construct the data set; null does so with the sample data only. With the real"
        " data it needs MAGPIE, paid models and people who review.",
    )
    semantics: Semantics = Field(
        default="paper", description="The three criteria as the paper says or as its code does."
    )
    thresholds: FilterThresholds = FilterThresholds()
    exclusions: str | None = Field(
        default=None,
        description="TSV (pie, reason) of PIEs removed by hand; null: the sample's own, or what the"
        " released files imply.",
    )
    pies: list[str] | None = Field(
        default=None, description="Of the PIEs that pass the filter only these; null: all."
    )
    domains: list[Domain] = Field(default=list(DOMAINS), min_length=1)
    index_writer: str = Field(default="gemini-2.5-pro", description="Writes the documents.")
    query_writer: str = Field(default="gemini-3-flash-preview", description="Writes the queries.")
    validator: str = Field(default="gpt-4o-mini", description="Judges all texts.")
    parameters: GenerationParameters = GenerationParameters()
    attempts: PositiveInt = Field(
        default=3, description="Answers asked for a (PIE, domain) pair until one can be used."
    )
    runs: PositiveInt = Field(default=3, description="Votes on each text.")
    split_source: Literal["drawn", "released"] = Field(
        default="drawn", description="Drawn with the seed, or as in the released files."
    )
    splits: SplitSizes = SplitSizes()
    seed: NonNegativeInt = 42
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
    """The IdioLink study."""

    models: list[str] = Field(default=["bm25", "sbert"], description="Names of models.yaml.")
    query_modes: list[QueryMode] = Field(
        default=["sentence", "span", "instruction_sentence", "instruction_span"]
    )
    compositions: list[Literal["full", "lit_sim_sense", "lit_idiom"]] = Field(
        default=["full", "lit_sim_sense", "lit_idiom"],
        description="Index compositions; every one but 'full' is the ablation.",
    )
    top_k: PositiveInt = Field(default=100, description="Documents kept for each query.")
    dataset: Literal["released_format", "constructed"] = Field(
        default="released_format",
        description="Texts of the experiments: from the released files (or the sample in their"
        " format), or from the construction.",
    )
    construction: Construction = Construction()
    bm25: Bm25Grid = Bm25Grid()
    finetuning: FineTuning = FineTuning()
    permutations: PositiveInt = Field(
        default=10_000, description="Of the randomisation test between query modes."
    )


class DetectionParameters(Settings):
    """Request parameters of IdioTS (section 4.1); null sends none."""

    temperature: float | None = Field(default=0, ge=0)
    top_k: PositiveInt | None = 40
    top_p: float | None = Field(default=0.95, gt=0, le=1)
    max_tokens: PositiveInt | None = 800


class IdiotsSettings(Settings):
    """The IdioTS study."""

    models: list[str] = Field(
        default=["smollm2-135m-instruct"], min_length=1, description="Names of models.yaml."
    )
    settings: list[DetectionSetting] = Field(
        default=["zero_shot"],
        min_length=1,
        description="'zero_shot' is the paper's; 'zero_shot_schema' has the provider enforce the"
        " JSON fields that the prompt asks for.",
    )
    seeds: list[NonNegativeInt] = Field(
        default=[0], min_length=1, description="Sent where the provider accepts a seed."
    )
    parameters: DetectionParameters = DetectionParameters()
    distractor_kinds: str | None = Field(
        default=None,
        description="CSV (sentence_id,kind) for the released distractors; the sample has its own.",
    )
    verdicts: str | None = Field(
        default=None,
        description="Cases that people judged (JSONL or CSV), which replace automatic verdicts.",
    )
    bootstrap_resamples: PositiveInt = 2000


class VariantChecks(Settings):
    """Bounds of the automatic checks of hard variants."""

    min_context_words: PositiveInt = 3
    max_context_words: PositiveInt = 120
    duplicate_similarity: float = Field(
        default=0.9, gt=0, le=1, description="From here on a context is its sibling's duplicate."
    )


class JamVariants(Settings):
    """Hard variants of ID10M-JAM: where they come from and which are valid (sections 3.3, 3.4)."""

    source: Literal["sample", "released", "generated", "none"] = Field(
        default="sample",
        description="Our validated sample, the released dataset, a model; 'none': no variants.",
    )
    model: str | None = Field(
        default=None, description="Language model that writes and validates generated variants."
    )
    generated: PositiveInt = Field(default=5, description="Variants written of each original.")
    temperature: float = Field(default=1.0, ge=0)
    max_tokens: PositiveInt = Field(default=16384, description="Of one answer, thoughts included.")
    generation_seed: NonNegativeInt | None = Field(
        default=None, description="Sent to the model where its provider accepts one."
    )
    review: Literal["human", "automatic"] = Field(
        default="human",
        description="Whether a variant nobody judged is invalid, or valid if no check flags it.",
    )
    annotations: dict[Language, list[str]] = Field(
        default={}, description="Label Studio exports (JSON), by language."
    )
    adjudications: dict[Language, str] = Field(
        default={}, description="Decisions on disputed variants (TSV), by language."
    )
    checks: VariantChecks = VariantChecks()
    min_valid: PositiveInt = Field(
        default=3, description="Valid variants that an original needs to stay."
    )
    kept: PositiveInt = Field(default=3, description="Valid variants kept of each original.")
    seed: NonNegativeInt = Field(default=42, description="Of the choice among valid variants.")

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.kept > self.min_valid:
            raise ValueError(f"kept ({self.kept}) is above min_valid ({self.min_valid})")
        if self.source == "generated" and self.model is None:
            raise ValueError("source 'generated' needs a model")
        return self


class JamFineTuning(TaggingSettings):
    """Fine-tuning of encoders (ID10M-JAM, appendix D), with the hyperparameters of Table 4."""

    seeds: list[NonNegativeInt] = Field(default=[5, 7, 42, 123, 1773], min_length=1)
    negatives_per_idiom: float | None = Field(
        default=None,
        gt=0,
        description="Training sentences without an idiom for each with one; null: all.",
    )


class NeutralAblation(Settings):
    """Whose confusing variants are rewritten with a neutral context (ID10M-JAM, appendix G)."""

    model: str = Field(description="One of jam.models.")
    setting: PromptSetting | Literal["fine_tuned"] = Field(
        default="zero_shot", description="'fine_tuned' for an encoder."
    )
    seed: NonNegativeInt = 42
    language: Language = "english"


class AttentionAnalysis(Settings):
    """Attention from the PIE to its context (ID10M-JAM, appendix H)."""

    model: str = Field(description="A causal model, or an embedder that is one.")
    language: Language = "english"
    pairs: PositiveInt = Field(
        default=10, description="Originals with a variant that misled a model and one that did not."
    )


class JamSettings(Settings):
    """The ID10M-JAM study."""

    languages: list[Language] = Field(default=["english", "german"], min_length=1)
    decisions: str | None = Field(
        default=None,
        description="Folder with <language>.tsv that filters ID10M's test split; null: those of the"
        " sample, or for real data those derived from the released originals.",
    )
    variants: JamVariants = JamVariants()
    models: list[str] = Field(
        default=[], description="Language models and encoders of models.yaml; none: only the data."
    )
    settings: list[PromptSetting] = Field(
        default=["zero_shot", "few_shot_sc_cotbest"],
        min_length=1,
        description="How language models are prompted (section 4.2); reasoning models only"
        " zero_shot. 'zero_shot_schema' is ours: the provider enforces the form of the answer.",
    )
    seeds: list[NonNegativeInt] = Field(
        default=[42, 43, 44], min_length=1, description="Of prompted models."
    )
    seeds_by_model: dict[str, list[NonNegativeInt]] = Field(
        default={}, description="Of prompted models that are run with other seeds."
    )
    zero_shot: ZeroShot = ZeroShot()
    few_shot: FewShot = FewShot()
    train_split: Literal["train", "dev"] = Field(
        default="train",
        description="Split of ID10M that encoders learn from and examples are drawn from. Of 'dev'"
        " a tenth is held out to choose the epoch.",
    )
    fine_tuning: JamFineTuning = JamFineTuning()
    scoring: Scoring = Field(
        default="paper",
        description="What counts as right: the paper's rule or the released analysis's.",
    )
    bootstrap_resamples: PositiveInt = 2000
    neutral: NeutralAblation | None = Field(
        default=None, description="The neutral-context ablation (appendix G); null: none."
    )
    humans: str | None = Field(
        default=None,
        description="Two people's labels of variants (CSV, section 5.1); the sample has simulated"
        " ones.",
    )
    attention: AttentionAnalysis | None = Field(
        default=None, description="The attention analysis (appendix H); null: none."
    )


class PageSettings(Settings):
    """How much of the predictions the results page holds."""

    items: PositiveInt = Field(
        default=40, description="Queries, sentences or originals shown behind a number."
    )
    depth: PositiveInt = Field(default=10, description="Documents shown for a query.")


class Config(Settings):
    """The whole of config.yaml."""

    studies: list[Study] = ["idiolink"]
    data: Literal["sample", "released"] = Field(
        default="sample", description="Our sample corpora, or the real public files."
    )
    mirror: str | None = Field(
        default=None,
        description="Folder that holds the real files; naming one sets data to 'released'.",
    )
    jam: JamSettings = JamSettings()
    idiolink: IdiolinkSettings = IdiolinkSettings()
    idiots: IdiotsSettings = IdiotsSettings()
    llm: LLMSettings = LLMSettings()
    page: PageSettings = PageSettings()

    @property
    def constructs_idiolink(self) -> bool:
        """Whether IdioLink is constructed from MAGPIE, and not only read."""
        enabled = self.idiolink.construction.enabled
        return self.data == "sample" if enabled is None else enabled


def load_config(
    raw: Mapping[str, Any], registry: Registry, *, where: str = "config.yaml"
) -> Config:
    """Validate the configuration that Snakemake merged from file and command line.

    Args:
        raw: the merged mapping.
        registry: the models that exist.
        where: the file to name in an error.

    Raises:
        UserError: an unknown key (with the nearest known one), a wrong value, an unknown model.
    """
    try:
        config = Config.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        if first["type"] == "extra_forbidden":
            known = _keys_at(first["loc"][:-1])
            raise UserError(
                f"unknown key {location!r}",
                where=where,
                mend=_suggest(str(first["loc"][-1]), known),
            ) from None
        raise UserError(
            explain(error), where=where, mend="see schemas/config.schema.yaml"
        ) from None
    _check_models(
        config.idiolink.models, {"bm25", "embedder"}, registry, f"{where}: idiolink.models"
    )
    tuning = config.idiolink.finetuning
    place = f"{where}: idiolink.finetuning"
    _check_models(tuning.models, {"embedder"}, registry, f"{place}.models")
    _check_models(tuning.batch_sizes, {"embedder"}, registry, f"{place}.batch_sizes")
    construction = config.idiolink.construction
    roles = (construction.index_writer, construction.query_writer, construction.validator)
    _check_models(roles, {"llm"}, registry, f"{where}: idiolink.construction")
    _check_models(config.idiots.models, {"llm"}, registry, f"{where}: idiots.models")
    if config.mirror:
        config = config.model_copy(update={"data": "released"})
    _check_variants(config, registry, f"{where}: jam.variants")
    _check_jam_models(config.jam, registry, f"{where}: jam")
    if config.idiolink.dataset == "constructed" and not config.constructs_idiolink:
        raise UserError(
            "the experiments take the constructed data set and nothing constructs it",
            where=f"{where}: idiolink.dataset",
            mend="set idiolink.construction.enabled: true, or choose 'released_format'",
        )
    if tuning.models and tuning.tuples == "released" and config.data == "sample":
        raise UserError(
            "the sample data has no released tuples",
            where=f"{place}.tuples",
            mend="choose 'sampled', or data: released",
        )
    return config


def _check_variants(config: Config, registry: Registry, where: str) -> None:
    """Raise a `UserError` if the hard variants cannot belong to the originals."""
    variants = config.jam.variants
    if variants.model is not None:
        _check_models([variants.model], {"llm"}, registry, f"{where}.model")
    impossible = {"released": "sample", "sample": "released"}[config.data]
    if "jam" in config.studies and variants.source == impossible:
        raise UserError(
            f"the {impossible} variants do not belong to the {config.data} originals",
            where=f"{where}.source",
            mend=f"choose {config.data!r}, 'generated' or 'none'",
        )


def _check_jam_models(jam: JamSettings, registry: Registry, where: str) -> None:
    """Raise a `UserError` for a model that the ID10M-JAM experiments cannot use."""
    _check_models(jam.models, {"llm", "encoder"}, registry, f"{where}.models")
    _check_models(jam.seeds_by_model, {"llm"}, registry, f"{where}.seeds_by_model")
    if jam.attention:
        _check_models(
            [jam.attention.model], {"embedder", "causal_lm"}, registry, f"{where}.attention.model"
        )
    if jam.neutral and jam.neutral.model not in jam.models:
        raise UserError(
            f"{jam.neutral.model!r} is not among jam.models",
            where=f"{where}.neutral.model",
            mend="choose one of them",
        )


def _check_models(names: Iterable[str], kinds: set[str], registry: Registry, where: str) -> None:
    """Raise a `UserError` for a name that models.yaml lacks or whose kind the study cannot use."""
    usable = sorted(name for name, entry in registry.items() if entry.kind in kinds)
    for name in names:
        if name not in registry:
            raise UserError(f"unknown model {name!r}", where=where, mend=_suggest(name, usable))
        if name not in usable:
            raise UserError(
                f"model {name!r} is of kind {registry[name].kind!r}",
                where=where,
                mend=f"this study takes {' and '.join(sorted(kinds))}",
            )


def _keys_at(location: tuple[int | str, ...]) -> list[str]:
    """Keys that config.yaml may have at a place."""
    model: Any = Config
    for part in location:
        if hasattr(model, "model_fields"):
            model = model.model_fields[str(part)].annotation
        else:  # a mapping: its keys are free, its values are of one kind
            model = get_args(model)[1]
    return list(model.model_fields)


def _suggest(given: str, known: list[str]) -> str:
    """A mend that names the nearest known word, or all of them."""
    near = get_close_matches(given, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(known))}"


def config_schema() -> dict[str, Any]:
    """JSON schema of config.yaml, for editors and for Snakemake's `validate`."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | Config.model_json_schema()

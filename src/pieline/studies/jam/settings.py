"""Define the settings of ID10M-JAM, which are the section `jam` of config.yaml."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import PositiveInt, model_validator

from pieline.core.records import Name
from pieline.core.settings import Field, OfModel, Seed, Settings, check_settings
from pieline.languages.settings import LanguageName
from pieline.models.names import LanguageModelName, ModelKinds
from pieline.studies.jam.metrics.identification import Scoring
from pieline.studies.jam.predictions.prompt_settings import (
    FewShot,
    OwnPrompt,
    PromptSetting,
)
from pieline.studies.jam.training.settings import TaggingSettings

NO_VARIANTS = "this configuration uses no hard variants (jam.variants.source: none)"
"""Reason why a configuration without hard variants has no numbers on variants."""


class JamVariants(Settings):
    """Settings for the source and validation of hard variants (sections 3.3 and 3.4)."""

    source: Literal["sample", "released", "generated", "none"] = Field(
        default="released",
        affects="predictions",
        deviates=False,
        description="Origin of the variants. 'sample': the bundled sample; 'released': the public"
        " files, or a model for languages that are not in them; 'generated': a model; 'none': no"
        " variants.",
    )
    model: LanguageModelName | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Language model that writes and validates generated variants.",
    )
    max_tokens: PositiveInt = Field(
        default=16384,
        affects="predictions",
        deviates=False,
        description="Maximum number of tokens per answer, including reasoning.",
    )
    review: Literal["human", "automatic"] = Field(
        default="human",
        affects="predictions",
        deviates=False,
        description="'human': variants without a review are invalid; 'automatic': they are valid"
        " unless a check flags them.",
    )
    annotations: dict[LanguageName, list[str]] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Label Studio exports (JSON) with reviews of variants, by language.",
    )
    adjudications: dict[LanguageName, str] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Files with decisions on disputed variants (TSV), by language.",
    )

    @model_validator(mode="after")
    def _has_required_model(self) -> Self:
        if self.source == "generated" and self.model is None:
            raise ValueError("source 'generated' needs a model")
        return self


class JamFineTuning(TaggingSettings):
    """Settings for fine-tuning encoders (ID10M-JAM, appendix D and Table 4)."""

    seeds: list[Seed] = Field(
        default=[5, 7, 42, 123, 1773],
        min_length=1,
        affects="display",
        description="Seeds; a separate encoder is trained for each.",
    )
    negatives_per_idiom: float | None = Field(
        default=None,
        gt=0,
        affects="predictions",
        description="Number of training sentences without an idiom per sentence with an idiom;"
        " null: all sentences.",
    )


FINE_TUNED = "fine_tuned"
"""Setting of encoders without added training texts."""
AddedTexts = Literal["originals", "neutral", "hard"]
ADDED: Mapping[str, str] = {f"{FINE_TUNED}_{name}": name for name in get_args(AddedTexts)}
"""Kind of texts added to the training data, by encoder setting (docs/beyond.md)."""
BASELINE = "baseline"
"""Setting of baselines, which use no model."""
NEUTRAL = "neutral"
"""Name of the neutral-context ablation as a side experiment (appendix G)."""
ANALYZED = "english"
"""Language of the neutral-context ablation and of the attention analysis (appendices G and H)."""


class FewShotSettings(Settings):
    """Numbers of examples and answers in the setting `few_shot_sc_cotbest`."""

    examples: PositiveInt = Field(
        default=FewShot().examples,
        affects="predictions",
        description="Number of examples with an idiom, which is also the number of examples without"
        " an idiom.",
    )
    samples: PositiveInt = Field(
        default=FewShot().samples,
        affects="predictions",
        description="Number of answers per sentence; more than half must agree on an idiom.",
    )


class JamSettings(Settings):
    """Settings of the ID10M-JAM study."""

    form: Literal["paper", "released"] = Field(
        default="paper",
        affects="predictions",
        deviates=False,
        description="'paper': as in the paper's text; 'released': as in the authors' code. This"
        " affects prompts, votes, the models counted in Figure 3, the training of encoders and,"
        " unless `scoring` is set, scoring (docs/studies/jam_experiments.md compares both forms).",
    )
    languages: list[LanguageName] = Field(
        default=["english", "german"],
        min_length=1,
        affects="display",
        description="Languages of the sentences; each is evaluated on its own.",
    )
    decisions: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="Folder of files <language>.tsv that decide which sentences of ID10M's test"
        " split become originals. For languages without a file, the sample's decisions are used; on"
        " other data, decisions are derived from the public originals or, without these, from"
        " ID10M's tags.",
    )
    variants: JamVariants = JamVariants()
    models: list[Annotated[str, ModelKinds(("llm", "encoder", "predictions"))]] = Field(
        default=[],
        affects="display",
        description="Names of language models and encoders in models.yaml; without any, only the"
        " data is prepared.",
    )
    settings: list[PromptSetting | str] = Field(
        default=["zero_shot", "few_shot_sc_cotbest"],
        min_length=1,
        affects="display",
        description="Prompt settings of language models (section 4.2); reasoning models use only"
        " 'zero_shot'. With 'zero_shot_schema', which is not in the paper, the provider enforces"
        " the response format. Other names are those of `prompts`.",
    )
    by_model: dict[LanguageModelName, OfModel] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Settings, seeds and maximum lengths of answers for single models.",
    )
    prompts: dict[Name, OwnPrompt] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Custom prompt settings by name (docs/adding/code.md).",
    )
    seeds: list[Seed] = Field(
        default=[42, 43, 44],
        min_length=1,
        affects="display",
        description="Seeds of prompted models.",
    )
    few_shot: FewShotSettings = FewShotSettings()
    train_split: Literal["train", "dev"] = Field(
        default="train",
        affects="predictions",
        deviates=False,
        description="ID10M split from which encoders are trained and examples are drawn. With"
        " 'dev', a tenth of the split is held out to score each epoch.",
    )
    fine_tuning: JamFineTuning = JamFineTuning()
    scoring: Scoring = Field(
        default="paper",
        affects="scoring",
        deviates=False,
        description="Scoring rule: that of the paper ('paper'), or that of the authors' code"
        " ('released').",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000,
        affects="scoring",
        deviates=False,
        description="Number of bootstrap resamples, for intervals.",
    )
    permutations: PositiveInt = Field(
        default=9999,
        affects="display",
        description="Maximum number of sign patterns of the paired test.",
    )
    neutral: Annotated[str, ModelKinds(("llm", "encoder"))] | None = Field(
        default=None,
        affects="display",
        description="Model, one of `models`, whose misjudged variants get neutral contexts"
        " (appendix G); null: no such analysis.",
    )
    humans: str | list[str] | None = Field(
        default=None,
        affects="scoring",
        deviates=False,
        description="Files with two people's labels of variants (section 5.1): one CSV with both,"
        " or filled-in forms or Label Studio exports. The sample has simulated labels.",
    )
    attention: Annotated[str, ModelKinds(("embedder", "causal_lm"), have_weights=True)] | None = (
        Field(
            default=None,
            affects="display",
            description="Model of the attention analysis (appendix H): a causal model, or an"
            " embedder with a causal model; null: no analysis.",
        )
    )

    @model_validator(mode="before")
    @classmethod
    def _scoring_follows_form(cls, fields: Any) -> Any:
        """Return the fields; with the form `released`, `scoring` is `released` by default."""
        if isinstance(fields, Mapping) and fields.get("form") == "released":
            return {"scoring": "released", **fields}
        return fields

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        """Raise a `ValueError` if `settings` or `by_model` names an unknown prompt setting."""
        requested_settings = list(self.settings)
        settings_with_limit: list[str] = []
        for model_settings in self.by_model.values():
            requested_settings += model_settings.settings or []
            settings_with_limit += model_settings.max_tokens.keys()
        settings_without_prompt = [FINE_TUNED, *ADDED, BASELINE]
        misused = sorted(set(settings_without_prompt).intersection(requested_settings))
        if misused:
            raise ValueError(f"{misused[0]!r} is not a setting of language models")
        check_settings(
            requested_settings + settings_with_limit,
            self.prompts,
            [*get_args(PromptSetting), *settings_without_prompt],
        )
        return self

    def settings_of(self, model: str) -> list[str]:
        """Return the prompt settings of a language model."""
        return self.by_model.get(model, OfModel()).settings or self.settings

    def seeds_of(self, model: str) -> list[int]:
        """Return the seeds of a language model."""
        return self.by_model.get(model, OfModel()).seeds or self.seeds

"""Settings in the `idiots` section of config.yaml."""

from typing import Annotated, Literal, Self, get_args

from pydantic import PositiveInt, model_validator

from pieline.core.records import Name
from pieline.core.settings import Field, OfModel, Seed, Settings, check_settings
from pieline.models.names import LanguageModelName, ModelKinds

DetectionSetting = Literal["zero_shot", "zero_shot_schema"]


class DetectionParameters(Settings):
    """Request parameters of IdioTS (section 4.1); a parameter that is null is not sent."""

    temperature: float | None = Field(
        default=0, ge=0, affects="predictions", description="Sampling temperature; null: not sent."
    )
    top_k: PositiveInt | None = Field(
        default=40,
        affects="predictions",
        description="Number of most likely tokens to sample from; null: not sent.",
    )
    top_p: float | None = Field(
        default=0.95,
        gt=0,
        le=1,
        affects="predictions",
        description="Total probability of the tokens to sample from; null: not sent.",
    )
    max_tokens: PositiveInt | None = Field(
        default=800,
        affects="predictions",
        description="Maximum number of tokens per answer; null: not sent.",
    )


class OwnParameters(DetectionParameters):
    """Request parameters of a custom prompt, and whether the prompt negates the question."""

    negated: bool = Field(
        default=False,
        affects="predictions",
        description="Whether the prompt asks if the sentence is free of idioms. The answer then has"
        " the field freeOfIdioms instead of hasIdiom, and is inverted.",
    )


class DetectionPrompt(OwnParameters):
    """A custom prompt: its template and parameters."""

    file: str = Field(
        affects="predictions",
        deviates=False,
        description="Template of the turns, which must contain {{ sentence }}.",
    )


class IdiotsSettings(Settings):
    """Settings of the IdioTS study."""

    models: list[Annotated[str, ModelKinds(("llm", "predictions"))]] = Field(
        default=["smollm2-135m-instruct"],
        min_length=1,
        affects="display",
        description="Names in models.yaml.",
    )
    settings: list[DetectionSetting | str] = Field(
        default=["zero_shot"],
        min_length=1,
        affects="display",
        description="'zero_shot' is the paper's setting; with 'zero_shot_schema', the provider"
        " enforces the JSON fields that the prompt requests; other names are those of `prompts`.",
    )
    by_model: dict[LanguageModelName, OfModel] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Settings, seeds and maximum lengths of answers for single models.",
    )
    prompts: dict[Name, DetectionPrompt] = Field(
        default={},
        affects="predictions",
        deviates=False,
        description="Custom prompts by name (docs/adding/code.md).",
    )
    seeds: list[Seed] = Field(
        default=[0],
        min_length=1,
        affects="display",
        description="Seeds of the runs, which are sent if the provider accepts a seed.",
    )
    distractor_kinds: str | None = Field(
        default=None,
        affects="predictions",
        deviates=False,
        description="CSV (sentence_id,kind) with the kind of each public distractor; the sample has"
        " such a file.",
    )
    verdicts: str | None = Field(
        default=None,
        affects="scoring",
        deviates=False,
        description="File of human verdicts on answers (JSONL or CSV), which replace automatic"
        " verdicts.",
    )
    bootstrap_resamples: PositiveInt = Field(
        default=2000,
        affects="scoring",
        deviates=False,
        description="Number of bootstrap resamples, for intervals.",
    )
    permutations: PositiveInt = Field(
        default=9999,
        affects="scoring",
        deviates=False,
        description="Number of permutations in the paired test of two prompts.",
    )

    @model_validator(mode="after")
    def _settings_are_known(self) -> Self:
        named_settings = list(self.settings)
        for settings_of_model in self.by_model.values():
            named_settings += settings_of_model.settings or []
            named_settings += settings_of_model.max_tokens.keys()
        check_settings(named_settings, self.prompts, get_args(DetectionSetting))
        return self

    def settings_of(self, model: str) -> list[str]:
        """Return the prompt settings in which a language model is run."""
        return self.by_model.get(model, OfModel()).settings or self.settings

    def seeds_of(self, model: str) -> list[int]:
        """Return the seeds with which a language model is run."""
        return self.by_model.get(model, OfModel()).seeds or self.seeds

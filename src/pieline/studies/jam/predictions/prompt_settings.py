"""How language models are prompted; apart, so that reading a configuration loads little."""

from typing import Literal, Self

from pydantic import Field, PositiveInt, model_validator

from pieline.core.records import Frozen

PromptSetting = Literal["zero_shot", "zero_shot_schema", "few_shot_sc_cotbest"]
Voting = Literal["paper", "released"]


class ZeroShot(Frozen):
    """The plain prompt: no examples, no explanations."""

    temperature: float = Field(default=0.3, ge=0)
    max_tokens: PositiveInt | None = Field(default=None, description="null sends no limit.")


class OwnPrompt(ZeroShot):
    """A prompt of one's own: its template and how it is asked."""

    file: str = Field(
        description="Template of the turns, with a place for {{ sentence }} (and {{ language }})."
    )


class FewShot(Frozen):
    """Few-shot + SC + CoTBest: examples, several answers, candidates before at most one idiom."""

    temperature: float = Field(default=0.8, ge=0)
    max_tokens: PositiveInt | None = Field(default=None, description="null sends no limit.")
    idiomatic_examples: int = Field(default=5, ge=0)
    literal_examples: int = Field(default=5, ge=0)
    samples: PositiveInt = Field(default=5, description="Answers to each sentence.")
    min_votes: PositiveInt = Field(default=3, description="Answers that must name an idiom.")
    voting: Voting = Field(
        default="paper",
        description="'paper': at least min_votes answers, each of which selects one idiom and may"
        " spell it as it likes; 'released': at least half of the answers that could be read, by"
        " equal words.",
    )

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.min_votes > self.samples:
            raise ValueError(f"min_votes ({self.min_votes}) is above samples ({self.samples})")
        return self

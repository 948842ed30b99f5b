"""Prompt settings of language models; no slow imports, so configurations load quickly."""

from typing import Literal, Self

from pydantic import PositiveInt, model_validator

from pieline.core.settings import Field, Settings

PromptSetting = Literal["zero_shot", "zero_shot_schema", "few_shot_sc_cotbest"]
FEW_SHOT: PromptSetting = "few_shot_sc_cotbest"
Examples = Literal["random", "contrastive"]
Votes = Literal["majority", "half", "first"]
Context = Literal["first", "last", "none", "other", "neutral"]
RELEASED_FORM = (
    "the provider enforces the form of the answer, the paper's prompt only asks for JSON",
    "the sentence follows 'Sentence:' without a space, and a line break follows it; the paper has a"
    " space and no line break",
    "a line break after each sentence of the system turn, the paper has a blank line in it",
    "the language is in lowercase in the system turn, the paper has 'English'",
)
"""Differences between the released code's prompts and the paper's text."""
RELEASED_EXAMPLES = (
    "the fields of the enforced form ask for candidates, the paper's prompt does",
    "examples are 'sentence: ...' and the filled-in form, the paper's 'Sentence: ...' and"
    " 'idioms: [...]'",
)
"""Further differences between the released code's prompts with examples and the paper's text."""


class ZeroShot(Settings):
    """Request parameters of the plain prompt, which has no examples or explanations."""

    temperature: float = Field(
        default=0.3, ge=0, affects="predictions", description="Sampling temperature."
    )
    max_tokens: PositiveInt | None = Field(
        default=None, affects="predictions", description="null sends no limit."
    )


class Arranged(ZeroShot):
    """Request parameters of a custom prompt, and the context that it shows."""

    context: Context = Field(
        default="first",
        affects="predictions",
        description="Added context of a variant in `sentence`. 'first': before the original, as in"
        " the data; 'last': after the original; 'none': no context; 'other': the context of a"
        " variant of another original with a similar length; 'neutral': a neutral context of about"
        " the same length (appendix G).",
    )


class OwnPrompt(Arranged):
    """A custom prompt: template, request parameters and context."""

    file: str = Field(
        affects="predictions",
        deviates=False,
        description="Template of the messages with {{ sentence }} and optionally {{ language }}.",
    )


class FewShot(Settings):
    """Parameters of few-shot + SC + CoTBest: examples, candidate idioms and a vote over answers."""

    temperature: float = Field(
        default=0.8, ge=0, affects="predictions", description="Sampling temperature."
    )
    max_tokens: PositiveInt | None = Field(
        default=None, affects="predictions", description="null sends no limit."
    )
    idiomatic_examples: int = Field(
        default=5,
        ge=0,
        affects="predictions",
        description="Number of examples with an idiom in the prompt.",
    )
    literal_examples: int = Field(
        default=5,
        ge=0,
        affects="predictions",
        description="Number of examples without an idiom in the prompt.",
    )
    examples: Examples = Field(
        default="random",
        affects="predictions",
        description="'random': drawn as in the released code; 'contrastive': prefers sentences with"
        " a literally used PIE as examples without an idiom.",
    )
    samples: PositiveInt = Field(
        default=5, affects="predictions", description="Number of answers per sentence."
    )
    min_votes: PositiveInt = Field(
        default=3, affects="predictions", description="Answers required for an idiom."
    )
    votes: Votes = Field(
        default="majority",
        affects="predictions",
        description="How answers are combined. 'majority': an idiom needs min_votes answers, each"
        " of which selects one idiom in any inflection; 'half': an idiom needs half of the readable"
        " answers with the same words, as in the released runner; 'first': only the first answer"
        " counts, as in the released scripts for Tables 3 and 5.",
    )

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if self.min_votes > self.samples:
            raise ValueError(f"min_votes ({self.min_votes}) exceeds samples ({self.samples})")
        return self

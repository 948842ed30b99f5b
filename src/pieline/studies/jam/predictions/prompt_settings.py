"""Define the prompt settings of language models.

This module imports no slow packages, so that configurations load quickly.
"""

from typing import Literal

from pydantic import PositiveInt

from pieline.core.records import Frozen
from pieline.core.settings import Field, Settings

PromptSetting = Literal["zero_shot", "zero_shot_schema", "few_shot_sc_cotbest"]
FEW_SHOT: PromptSetting = "few_shot_sc_cotbest"
Votes = Literal["majority", "first"]
Context = Literal["first", "last", "none", "other", "neutral"]
RELEASED_FORM = (
    "the provider enforces the form of the answer, the paper's prompt only asks for JSON",
    "the sentence follows 'Sentence:' without a space, and a line break follows it; the paper has a"
    " space and no line break",
    "a line break after each sentence of the system turn, the paper has a blank line in it",
    "the language is in lowercase in the system turn, the paper has 'English'",
)
"""Differences of the prompts in the authors' code (form: released) from the paper's text."""
RELEASED_EXAMPLES = (
    "the fields of the enforced form ask for candidates, the paper's prompt does",
    "examples are 'sentence: ...' and the filled-in form, the paper's 'Sentence: ...' and"
    " 'idioms: [...]'",
)
"""Further differences of the few-shot prompt in the authors' code from the paper's text."""


class ZeroShot(Frozen):
    """Request parameters of the zero-shot prompt.

    Attributes:
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens per answer; None to send no limit.
    """

    temperature: float = 0.3
    max_tokens: int | None = None


class FewShot(Frozen):
    """Request parameters of the few-shot prompt with self-consistency and CoTBest (section 4.2).

    Attributes:
        temperature: Sampling temperature.
        max_tokens: Maximum number of tokens per answer; None to send no limit.
        examples: Number of examples with an idiom, and also of examples without an idiom.
        samples: Number of answers per sentence.
        votes: How to combine the answers. With `majority`, each answer selects at most one idiom,
            and more than half of the answers must select the same idiom, in any inflection. With
            `first`, only the first answer counts, as in the authors' code for Tables 3 and 5.
    """

    temperature: float = 0.8
    max_tokens: int | None = None
    examples: int = 5
    samples: int = 5
    votes: Votes = "majority"


class Arranged(Settings):
    """Request parameters of a custom prompt, and the context that the prompt shows."""

    temperature: float = Field(
        default=ZeroShot().temperature,
        ge=0,
        affects="predictions",
        description="Sampling temperature.",
    )
    max_tokens: PositiveInt | None = Field(
        default=None,
        affects="predictions",
        description="Maximum number of tokens per answer; null: no limit is sent.",
    )
    context: Context = Field(
        default="first",
        affects="predictions",
        description="Context that a variant adds to its original in `sentence`. 'first': before the"
        " original, as in the data; 'last': after the original; 'none': no context; 'other': the"
        " context of another original's variant, of similar length; 'neutral': a neutral context of"
        " about the same length (appendix G).",
    )


class OwnPrompt(Arranged):
    """A custom prompt: template, request parameters and context."""

    file: str = Field(
        affects="predictions",
        deviates=False,
        description="Template of the messages with {{ sentence }} and optionally {{ language }}.",
    )

"""Limits of automatic checks; no slow imports, so configurations load quickly."""

from pydantic import PositiveInt

from pieline.core.settings import Field, Settings


class VariantChecks(Settings):
    """Limits of the automatic checks of hard variants."""

    min_context_words: PositiveInt = Field(
        default=3,
        affects="predictions",
        deviates=False,
        description="Minimum number of words in the context of a variant.",
    )
    max_context_words: PositiveInt = Field(
        default=120,
        affects="predictions",
        deviates=False,
        description="Maximum number of words in the context of a variant.",
    )
    duplicate_similarity: float = Field(
        default=0.9,
        gt=0,
        le=1,
        affects="predictions",
        deviates=False,
        description="Minimum similarity of duplicate contexts.",
    )


USUAL_CHECKS = VariantChecks()

"""Define the records that several stages of IdioLink share, the ten domains, and text ids."""

import re
from typing import Literal, NamedTuple, Self, get_args

from pydantic import model_validator

from pieline.core.errors import UserError
from pieline.core.records import Id, Record

Usage = Literal["literal", "idiomatic", "simplification", "sense"]
QueryUsage = Literal["literal", "idiomatic"]
QueryMode = Literal["sentence", "span", "instruction_sentence", "instruction_span"]
QUERY_MODES: tuple[QueryMode, ...] = get_args(QueryMode)
SOFT_NEGATIVES = 3
"""Documents with other PIEs per training tuple (Table 3, and the authors' mined tuples)."""
HARD_NEGATIVES = 2
"""Documents with the opposite meaning per training tuple (Table 3, and the authors' tuples)."""


class Meaning(Record):
    """The fields of a text that scoring reads.

    Attributes:
        pie: Canonical form of the PIE.
        subject: Domain of the text.
    """

    id: Id
    pie: str
    subject: str
    usage: Usage


class JudgedMeaning(Meaning):
    """A line of meanings.jsonl, which describes a document or a query but omits its wording."""

    text: Literal["document", "query"]


class PieText(Meaning):
    """A text with a marked span that carries the meaning of a PIE (IdioLink, section 3.1).

    Attributes:
        sentence: The text.
        span: Words in `sentence` that carry the meaning of the PIE.
        is_gold: Whether a human annotator checked the text.
    """

    sentence: str
    span: str
    is_gold: bool

    @model_validator(mode="after")
    def _span_is_verbatim(self) -> Self:
        if not self.span or self.span not in self.sentence:
            # Escaped, because a span in other Unicode characters may look the same.
            raise ValueError(f"span {self.span!a} is not in its sentence {self.sentence!a}")
        return self


class Document(PieText):
    """A document of an IdioLink index."""


class Query(PieText):
    """An IdioLink query, which uses its PIE literally or idiomatically."""

    usage: QueryUsage


def query_scores_file(metrics: str) -> str:
    """Return the path of the per-query scores that belong to a metric file."""
    return f"{metrics.removesuffix('.json')}.queries.csv"


Domain = Literal[
    "Politics",
    "Sport",
    "Technology",
    "History",
    "Medicine",
    "Culture",
    "Entertainment",
    "Food",
    "Business",
    "Environment",
]
Collection = Literal["documents", "queries"]

DOMAINS: tuple[Domain, ...] = get_args(Domain)
DOMAIN_CODES: dict[str, str] = {
    domain: f"s{number:02d}" for number, domain in enumerate(DOMAINS, start=1)
}
"""Code of each domain in the ids of the public data."""

USAGE_CODES = {
    "literal": "lit",
    "idiomatic": "idiom",
    "simplification": "sim",
    "sense": "sense",
}
"""Code of each usage in the ids of the public data."""

TEXTS_PER_PAIR: dict[Collection, dict[str, int]] = {
    "documents": {"literal": 4, "idiomatic": 2, "simplification": 2, "sense": 2},
    "queries": {"literal": 1, "idiomatic": 1},
}
"""Number of texts per (PIE, domain) pair, by collection and usage (section 3.2.2)."""

_ID = re.compile(
    r"(?P<query>q_)?(?P<pie>\d{3,})_(?P<domain>s\d\d)_(?P<usage>lit|idiom|sim|sense)_(?P<number>\d\d)"
)


class TextId(NamedTuple):
    """Parts of a text id; `str()` returns the id."""

    collection: Collection
    pie_number: int
    domain: str
    usage: str
    number: int

    def __str__(self) -> str:
        prefix = "q_" if self.collection == "queries" else ""
        usage_code = USAGE_CODES[self.usage]
        domain_code = DOMAIN_CODES[self.domain]
        return f"{prefix}{self.pie_number:03d}_{domain_code}_{usage_code}_{self.number:02d}"


def parse_id(text: str) -> TextId:
    """Parse an id of the public data, such as `001_s01_idiom_01` or `q_001_s01_lit_01`.

    Raises:
        UserError: The id is not in the format of the public data.
    """
    match = _ID.fullmatch(text)
    domain_by_code = {code: domain for domain, code in DOMAIN_CODES.items()}
    if not match or match["domain"] not in domain_by_code:
        hint = "ids look like 001_s01_idiom_01 or q_001_s01_lit_01"
        raise UserError(f"id {text!r} is not in the released format", hint=hint)
    usage_by_code = {code: usage for usage, code in USAGE_CODES.items()}
    return TextId(
        collection="queries" if match["query"] else "documents",
        pie_number=int(match["pie"]),
        domain=domain_by_code[match["domain"]],
        usage=usage_by_code[match["usage"]],
        number=int(match["number"]),
    )


class Bm25Parameters(Record):
    """Values of the BM25 parameters k1 and b."""

    k1: float
    b: float


class GridPoint(Bm25Parameters):
    """Parameter values that were tried, and their nDCG@10 on the validation split (fraction)."""

    ndcg_at_10: float


class Tuning(Record):
    """BM25 parameters chosen for one query mode and index composition.

    Attributes:
        grid: All tried parameters with their scores; empty without a validation split.
    """

    query_mode: str
    composition: str
    chosen: Bm25Parameters
    grid: list[GridPoint]

"""The ten domains of IdioLink (section 3.2.2), their codes, and text ids."""

import re
from typing import Literal, NamedTuple, get_args

from pieline.core.errors import UserError

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
"""Codes in released ids, by domain."""

USAGE_CODES = {
    "literal": "lit",
    "idiomatic": "idiom",
    "simplification": "sim",
    "sense": "sense",
}
"""Codes in released ids, by usage."""

TEXTS_PER_PAIR: dict[Collection, dict[str, int]] = {
    "documents": {"literal": 4, "idiomatic": 2, "simplification": 2, "sense": 2},
    "queries": {"literal": 1, "idiomatic": 1},
}
"""Number of texts per (PIE, domain) pair, by collection and usage (section 3.2.2)."""

_ID = re.compile(r"(q_)?(\d{3,})_(s\d\d)_(lit|idiom|sim|sense)_(\d\d)")


class TextId(NamedTuple):
    """Parts of a text id."""

    collection: Collection
    pie_number: int
    domain: str
    usage: str
    number: int

    def __str__(self) -> str:
        prefix = "q_" if self.collection == "queries" else ""
        usage = USAGE_CODES[self.usage]
        domain = DOMAIN_CODES[self.domain]
        return f"{prefix}{self.pie_number:03d}_{domain}_{usage}_{self.number:02d}"


def parse_id(text: str) -> TextId:
    """Parse a released id, such as `001_s01_idiom_01` or `q_001_s01_lit_01`.

    Raises:
        UserError: The id is not in the released format.
    """
    match = _ID.fullmatch(text)
    domains = {code: domain for domain, code in DOMAIN_CODES.items()}
    if not match or match[3] not in domains:
        hint = "ids look like 001_s01_idiom_01 or q_001_s01_lit_01"
        raise UserError(f"id {text!r} is not in the released format", hint=hint)
    usages = {code: usage for usage, code in USAGE_CODES.items()}
    collection: Collection = "queries" if match[1] else "documents"
    return TextId(collection, int(match[2]), domains[match[3]], usages[match[4]], int(match[5]))

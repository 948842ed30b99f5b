"""Texts of queries and documents as input of models, by query mode (IdioLink, appendix B)."""

from dataclasses import dataclass
from typing import Protocol

from pieline.models.embedder import ConfiguredEmbedder, EmbedderEntry
from pieline.studies.idiolink.records import Document, Query

INSTRUCTION = (
    "Based on the literal/idiomatic usage of the span '{span}' in the query, "
    "retrieve documents that contain a span conveying the same conceptual meaning."
)
"""The instruction of appendix B. The paper prints it without quotes around the span, but its
numbers match the form with single quotes (without quotes, SBERT reaches 28.92/48.31; the paper
prints 32.57/52.76).
"""


@dataclass(frozen=True)
class QueryText:
    """A model's input, with the position of the span.

    Attributes:
        text: Input of the tokenizer.
        span: Start and exclusive end of the span, in characters.
        instruction_end: Exclusive end, in characters, of an instruction or prefix that the model
            excludes from pooling (InstructOR, GritLM); 0 if the whole text is pooled.
        head_end: Exclusive end, in characters, of the instruction or prefix; 0 if there is none.
    """

    text: str
    span: tuple[int, int] = (0, 0)
    instruction_end: int = 0
    head_end: int = 0


INSTRUCTION_FORMATS: dict[str, str] = {
    "instruction_newline_query": "{instruction}\nQuery: {query}",
    "instruct_query": "Instruct: {instruction}\nQuery: {query}",
    "instruct_query_unspaced": "Instruct: {instruction}\nQuery:{query}",
    "instruction_space_query": "{instruction} {query}",
    "instruction_sep_query": "{instruction} [SEP] {query}",
    "instruction_query_pair": "{instruction}{query}",
    "nomic_search_query": "search_query: {instruction}\nQuery: {query}",
    "gemma_instruct_query": "<instruct>{instruction}\n<query>{query}",
    "gritlm_user_embed": "<|user|>\n{instruction}\n<|embed|>\n{query}",
    "represent_sentence_query": "Represent this sentence for searching relevant passages: {query}",
    "search_query": "search_query: {query}",
}
"""Templates that combine instruction and query, by name in models.yaml. In the last two, from the
authors' code for BGE and Nomic, the prefix replaces the paper's instruction.
"""

_UNPOOLED_FORMAT = "instruction_query_pair"
"""Format of InstructOR, which excludes the instruction from pooling."""
_UNPOOLED_HEAD = "<|embed|>\n"
"""End of GritLM's instructions and prefixes, which it excludes from pooling."""


def plain_text(query: Query, *, query_prefix: str) -> QueryText:
    """Return the prefixed query without an instruction; the span is its first occurrence."""
    start = query.sentence.find(query.span)
    return _prepend(query_prefix, query, start)


def instructed_text(query: Query, *, instruction_format: str) -> QueryText:
    """Return the query after its instruction, with the span at its last occurrence."""
    instruction = INSTRUCTION.format(span=query.span)
    head = INSTRUCTION_FORMATS[instruction_format].format(instruction=instruction, query="")
    start = query.sentence.rfind(query.span)
    return _prepend(head, query, start, is_unpooled=instruction_format == _UNPOOLED_FORMAT)


def _prepend(head: str, query: Query, start: int, *, is_unpooled: bool = False) -> QueryText:
    """Prepend a prefix or instruction to a query whose span starts at character `start`."""
    first = len(head) + start
    span = (first, first + len(query.span))
    unpooled = len(head) if is_unpooled else _unpooled(head)
    return QueryText(head + query.sentence, span, unpooled, len(head))


def _unpooled(head: str) -> int:
    """Return the number of characters of a prefix or instruction that are excluded from pooling."""
    return len(head) if head.endswith(_UNPOOLED_HEAD) else 0


def query_text(
    query: Query, entry: ConfiguredEmbedder, *, instructed: bool, by_span: bool = False
) -> QueryText:
    """Return a model's input for a query, with or without the instruction.

    Args:
        query: The query.
        entry: Entry of the model.
        instructed: Whether to prepend the instruction.
        by_span: Whether the input is for the span's vector; the authors' code of some models uses a
            different text for this vector.
    """
    if instructed:
        own = entry.span_instruction_format if by_span else None
        return instructed_text(query, instruction_format=own or entry.instruction_format)
    prefix = entry.query_prefix
    if by_span and entry.span_query_prefix is not None:
        prefix = entry.span_query_prefix
    return plain_text(query, query_prefix=prefix)


class QueryFormat(Protocol):
    """Entry fields that determine the texts of queries."""

    @property
    def instruction_format(self) -> str:
        """Name of the template that combines instruction and query."""

    @property
    def query_prefix(self) -> str:
        """Prefix of queries that have no instruction."""


def text_in_mode(query: Query, entry: QueryFormat, mode: str) -> QueryText:
    """Return a query's input for a model that has the same input in sentence and span modes."""
    if mode.startswith("instruction"):
        return instructed_text(query, instruction_format=entry.instruction_format)
    return plain_text(query, query_prefix=entry.query_prefix)


def document_text(document: Document, entry: EmbedderEntry) -> QueryText:
    """Return a model's input for a document: prefix and sentence, without span (section 4.1)."""
    prefix = entry.passage_prefix
    return QueryText(
        prefix + document.sentence, instruction_end=_unpooled(prefix), head_end=len(prefix)
    )

"""Model inputs for queries and documents, by query mode (IdioLink, appendix B)."""

from dataclasses import dataclass
from typing import Protocol

from pieline.models.embedder import ConfiguredEmbedder, EmbedderEntry
from pieline.studies.idiolink.records import Document, Query

INSTRUCTION = (
    "Based on the literal/idiomatic usage of the span '{span}' in the query, "
    "retrieve documents that contain a span conveying the same conceptual meaning."
)
"""The instruction of appendix B. The paper prints the instruction without quotes around the span,
but the paper's scores match the form with single quotes: without quotes, SBERT reaches 28.92/48.31,
while the paper prints 32.57/52.76.
"""


@dataclass(frozen=True)
class QueryText:
    """A model's input, with the positions of its parts in characters.

    Attributes:
        text: Input of the tokenizer: an instruction or prefix, if any, and a sentence.
        span: Start and exclusive end of the span.
        instruction_end: Exclusive end of an instruction or prefix that the model always excludes
            from pooling (InstructOR, GritLM); 0 for other models.
        head_end: Exclusive end of any instruction or prefix; 0 if there is none.
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
"""Templates that combine instruction and query, by name in models.yaml. In the last two templates,
which are from the authors' code for BGE and Nomic, a prefix replaces the paper's instruction.
"""

_UNPOOLED_FORMAT = "instruction_query_pair"
"""Format of InstructOR, which excludes instructions from pooling."""
_UNPOOLED_HEAD = "<|embed|>\n"
"""End of GritLM's instructions and prefixes, which GritLM excludes from pooling."""


def plain_text(query: Query, *, query_prefix: str) -> QueryText:
    """Return a prefix followed by a query; the span is located at its first occurrence."""
    start = query.sentence.find(query.span)
    return _prepend(query_prefix, query, start)


def instructed_text(query: Query, *, instruction_format: str) -> QueryText:
    """Return an instruction followed by a query; the span is located at its last occurrence.

    The last occurrence counts because the instruction contains the query's span, too.
    """
    instruction = INSTRUCTION.format(span=query.span)
    head = INSTRUCTION_FORMATS[instruction_format].format(instruction=instruction, query="")
    start = query.sentence.rfind(query.span)
    return _prepend(head, query, start, is_unpooled=instruction_format == _UNPOOLED_FORMAT)


def _prepend(head: str, query: Query, start: int, *, is_unpooled: bool = False) -> QueryText:
    """Prepend an instruction or prefix to a query.

    Args:
        head: The instruction or prefix.
        query: The query.
        start: Start of the span in the query, in characters.
        is_unpooled: Whether the model excludes any instruction or prefix from pooling.
    """
    span_start = len(head) + start
    return QueryText(
        text=head + query.sentence,
        span=(span_start, span_start + len(query.span)),
        instruction_end=len(head) if is_unpooled else _unpooled_length(head),
        head_end=len(head),
    )


def _unpooled_length(head: str) -> int:
    """Return the length of an instruction or prefix in GritLM's format; 0 in any other format."""
    return len(head) if head.endswith(_UNPOOLED_HEAD) else 0


def query_text(
    query: Query, entry: ConfiguredEmbedder, *, instructed: bool, by_span: bool = False
) -> QueryText:
    """Return a model's input for a query, with or without the instruction.

    Args:
        query: The query.
        entry: Entry of the model.
        instructed: Whether to prepend the instruction.
        by_span: Whether the input is for the span's vector. For some models, the authors' code uses
            another text for the span's vector.
    """
    if instructed:
        instruction_format = entry.instruction_format
        if by_span and entry.span_instruction_format:
            instruction_format = entry.span_instruction_format
        return instructed_text(query, instruction_format=instruction_format)
    prefix = entry.query_prefix
    if by_span and entry.span_query_prefix is not None:
        prefix = entry.span_query_prefix
    return plain_text(query, query_prefix=prefix)


class QueryFormat(Protocol):
    """The fields of a model's entry that determine the inputs for queries."""

    @property
    def instruction_format(self) -> str:
        """Name of the template that combines instruction and query."""

    @property
    def query_prefix(self) -> str:
        """Prefix of queries that have no instruction."""


def text_in_mode(query: Query, entry: QueryFormat, mode: str) -> QueryText:
    """Return a model's input for a query in a query mode.

    This function is only for models whose inputs in a span mode and its sentence mode are equal.
    """
    if mode.startswith("instruction"):
        return instructed_text(query, instruction_format=entry.instruction_format)
    return plain_text(query, query_prefix=entry.query_prefix)


def document_text(document: Document, entry: EmbedderEntry) -> QueryText:
    """Return a model's input for a document: the model's prefix and the sentence (section 4.1)."""
    prefix = entry.passage_prefix
    return QueryText(
        prefix + document.sentence, instruction_end=_unpooled_length(prefix), head_end=len(prefix)
    )

"""What text of a query an embedder reads, in each query mode (IdioLink, appendix B)."""

from collections.abc import Callable
from dataclasses import dataclass

from pieline.core.errors import UserError
from pieline.models.embedder import EmbedderEntry
from pieline.studies.idiolink.records import Document, Query

INSTRUCTION = (
    "Based on the literal/idiomatic usage of the span '{span}' in the query, "
    "retrieve documents that contain a span conveying the same conceptual meaning."
)
"""The instruction of appendix B. The printed text has no quotes around the span; the printed
numbers come from the form with single quotes (unquoted, SBERT reaches 28.92/48.31 where the paper
prints 32.57/52.76)."""


@dataclass(frozen=True)
class QueryText:
    """An embedder's input and the characters of the span in it.

    Attributes:
        text: what the tokenizer reads.
        span: first character of the span and one past its last.
        instruction_end: characters before this one are an instruction or prefix that the model's
            own pooling leaves out of the sentence embedding (InstructOR, GritLM); 0 where it
            counts them.
    """

    text: str
    span: tuple[int, int] = (0, 0)
    instruction_end: int = 0


def _instruction_newline_query(instruction: str, query: str) -> tuple[str, int]:
    return f"{instruction}\nQuery: {query}", 0


def _instruct_query(instruction: str, query: str) -> tuple[str, int]:
    return f"Instruct: {instruction}\nQuery: {query}", 0


def _instruct_query_unspaced(instruction: str, query: str) -> tuple[str, int]:
    return f"Instruct: {instruction}\nQuery:{query}", 0


def _instruction_space_query(instruction: str, query: str) -> tuple[str, int]:
    return f"{instruction} {query}", 0


def _instruction_sep_query(instruction: str, query: str) -> tuple[str, int]:
    return f"{instruction} [SEP] {query}", 0


def _instruction_query_pair(instruction: str, query: str) -> tuple[str, int]:
    return f"{instruction}{query}", len(instruction)


def _nomic_search_query(instruction: str, query: str) -> tuple[str, int]:
    return f"search_query: {instruction}\nQuery: {query}", 0


def _gemma_instruct_query(instruction: str, query: str) -> tuple[str, int]:
    return f"<instruct>{instruction}\n<query>{query}", 0


def _gritlm_user_embed(instruction: str, query: str) -> tuple[str, int]:
    head = f"<|user|>\n{instruction}\n<|embed|>\n"
    return head + query, len(head)


INSTRUCTION_FORMATS: dict[str, Callable[[str, str], tuple[str, int]]] = {
    "instruction_newline_query": _instruction_newline_query,
    "instruct_query": _instruct_query,
    "instruct_query_unspaced": _instruct_query_unspaced,
    "instruction_space_query": _instruction_space_query,
    "instruction_sep_query": _instruction_sep_query,
    "instruction_query_pair": _instruction_query_pair,
    "nomic_search_query": _nomic_search_query,
    "gemma_instruct_query": _gemma_instruct_query,
    "gritlm_user_embed": _gritlm_user_embed,
}
"""Text and length of the part that pooling leaves out, by the name that models.yaml uses."""


def plain_text(query: Query, *, query_prefix: str, pool_prefix: bool = True) -> QueryText:
    """The query without instruction; the span is its first occurrence in the sentence.

    Raises:
        UserError: the span is not in the sentence.
    """
    start = _found(query.sentence.find(query.span), query) + len(query_prefix)
    return QueryText(
        query_prefix + query.sentence,
        (start, start + len(query.span)),
        0 if pool_prefix else len(query_prefix),
    )


def instructed_text(query: Query, *, instruction_format: str) -> QueryText:
    """The query behind its instruction; the span is its last occurrence in the sentence.

    Raises:
        UserError: the span is not in the sentence.
    """
    instruction = INSTRUCTION.format(span=query.span)
    text, instruction_end = INSTRUCTION_FORMATS[instruction_format](instruction, query.sentence)
    offset = len(text) - len(query.sentence)
    start = offset + _found(query.sentence.rfind(query.span), query)
    return QueryText(text, (start, start + len(query.span)), instruction_end)


def query_text(query: Query, entry: EmbedderEntry, *, instructed: bool) -> QueryText:
    """What a model reads of a query, with or without the instruction.

    Raises:
        UserError: the span is not in the sentence.
    """
    if instructed:
        return instructed_text(query, instruction_format=entry.instruction_format)
    return plain_text(query, query_prefix=entry.query_prefix, pool_prefix=entry.pool_prefixes)


def document_text(document: Document, entry: EmbedderEntry) -> QueryText:
    """What a model reads of a document: the whole sentence, no span (section 4.1)."""
    uncounted = 0 if entry.pool_prefixes else len(entry.passage_prefix)
    return QueryText(entry.passage_prefix + document.sentence, instruction_end=uncounted)


def _found(position: int, query: Query) -> int:
    if position < 0:
        raise UserError(
            f"span {query.span!r} is not in its sentence", where=query.id, mend="correct the query"
        )
    return position

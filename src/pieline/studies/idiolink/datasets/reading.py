"""Readers of an IdioLink split: a strict one, and a lenient one for checks of the data."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from pieline.core.errors import UserError
from pieline.core.texts import check_texts, covers, quote_both, refuse_above, text_key
from pieline.languages.identification import check_language
from pieline.languages.near_duplicates import warn_of_near_duplicates
from pieline.languages.spelling import normalize
from pieline.studies.idiolink.datasets.dataset import meaning_qrels
from pieline.studies.idiolink.originals.splits import SplitName
from pieline.studies.idiolink.raw import read_rows, read_texts
from pieline.studies.idiolink.records import Collection, Document, PieText, Query, parse_id

_MAX_SHARE_WITHOUT_PIE = 0.05
"""The data are rejected if at least this share of literal and idiomatic spans contain no word of
their PIE.
"""
MOST_WHOLE = 0.05
"""Maximum share of spans that cover three quarters of their sentence."""
MOST_WITH_PIE = 0.05
"""Maximum share of simplification and sense spans that are the PIE."""
MOST_LITERAL = 0.05
"""Maximum share of simplification and sense texts that are copies of literal texts, and of sense
texts that are copies of idiomatic texts, apart from the span."""
_FEWEST = 2


def read_split(documents: str | Path, queries: str | Path) -> tuple[list[Document], list[Query]]:
    """Read `indexes.json` and `queries.json` of one split.

    Raises:
        UserError: A file is invalid (see `read_texts`), a text is repeated or is both a document
            and a query, a usage, PIE or subject contradicts the ids, too many spans or usages are
            implausible, too many texts are damaged or not in English, a PIE or subject has two
            spellings, or a query has no relevant document.
    """
    index, query_texts = read_texts(documents, Document), read_texts(queries, Query)
    names = {text_key(query.sentence): query.id for query in query_texts}
    for document in index:
        if query := names.get(text_key(document.sentence)):
            raise UserError(
                f"the document is also query {query!r} in {queries}",
                where=f"{documents}: {document.id}",
                hint="remove it from one of the files",
            )
    spellings: dict[str, str] = {}
    places: list[tuple[str | Path, PieText]] = [
        *((documents, text) for text in index),
        *((queries, text) for text in query_texts),
    ]
    for path, text in places:
        for field, value in (("idiom", text.pie), ("subject", text.subject)):
            spelling = spellings.setdefault(f"{field} {normalize(value).replace(' ', '')}", value)
            if value != spelling:
                ours, other = quote_both(value, spelling)
                raise UserError(
                    f"{field} {ours} is spelled {other} in another record",
                    where=f"{path}: {text.id}",
                    hint="use the same spelling in all records",
                )
    _check_texts(index, documents)
    _check_texts(query_texts, queries)
    _check_ids(places)
    relevant = meaning_qrels(query_texts, index)
    if without := [query for query in query_texts if not relevant[query.id]]:
        raise UserError(
            f"no relevant document for {without[0].pie!r} ({len(without)} of {len(query_texts)}"
            " queries have none)",
            where=f"{queries}: {without[0].id}",
            hint=f"use queries and {documents} from the same split",
        )
    texts = [(text.id, text.sentence, (text.pie, text.usage)) for _, text in places]
    warn_of_near_duplicates(texts, documents)
    return index, query_texts


def _check_ids(places: Iterable[tuple[str | Path, PieText]]) -> None:
    """Raise a `UserError` if equal parts of ids in the released format state different values."""
    first: dict[tuple[str, int | str], PieText] = {}
    for path, text in places:
        try:
            parts = parse_id(text.id)
        except UserError:
            continue
        for field, part, name in (
            ("idiom", parts.pie_number, "pie"),
            ("subject", parts.domain, "subject"),
        ):
            other = first.setdefault((field, part), text)
            if getattr(other, name) != getattr(text, name):
                raise UserError(
                    f"{field} is {getattr(text, name)!r}, but {getattr(other, name)!r} in"
                    f" {other.id}, whose id states the same {field}",
                    where=f"{path}: {text.id}",
                    hint=f"correct the {field}, or use ids in another format",
                )


def _check_texts(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Check one file for repeated texts and for usages and spans that contradict other columns.

    Raises:
        UserError: A text is repeated, a usage contradicts the id, or too many spans or usages are
            implausible, or texts damaged or not in English.
    """
    places = {text.id: f"{path}: {text.id}" for text in texts}
    sentences = [(places[text.id], text.sentence) for text in texts]
    check_texts(sentences, repeated=False)
    ids: dict[tuple[str, str], str] = {}
    for text in texts:
        first = ids.setdefault((text_key(text.sentence), text.pie), text.id)
        if first != text.id:
            problem = f"same sentence and idiom as {first}"
            raise UserError(problem, where=f"{path}: {text.id}", hint="remove one of them")
        if (usage_of_id := _usage_of_id(text.id)) not in (None, text.usage):
            raise UserError(
                f"usage is {text.usage!r}, but the id says {usage_of_id!r}",
                where=f"{path}: {text.id}",
                hint="correct the usage, or use ids in another format",
            )
    marked = [text for text in texts if text.usage in ("literal", "idiomatic")]
    mismatches = [text for text in marked if not _starts(text.span) & _starts(text.pie)]
    if mismatches and len(mismatches) >= _MAX_SHARE_WITHOUT_PIE * len(marked):
        raise UserError(
            f"{len(mismatches)} of {len(marked)} literal and idiomatic spans do not match their"
            f" idiom, such as {mismatches[0].span!r} for {mismatches[0].pie!r}",
            where=f"{path}: {mismatches[0].id}",
            hint="check that the column idiom belongs to these texts",
        )
    whole = [text for text in texts if covers(text.span, text.sentence)]
    others = [text for text in texts if text.usage in ("simplification", "sense")]
    with_pie = [text for text in others if _starts(text.pie) <= _starts(text.span)]
    idiomatic = {_context(text) for text in texts if text.usage == "idiomatic"}
    contexts = {_context(text) for text in texts if text.usage == "literal"} - idiomatic
    copies = [text for text in others if _context(text) in contexts]
    senses = [text for text in texts if text.usage == "sense"]
    idiomatic_copies = [text for text in senses if _context(text) in idiomatic]
    copied = "simplification and sense texts are copies of literal texts"
    hint = "check that the column usage belongs to these texts"
    for most, found, among, problem in (
        (MOST_WHOLE, whole, texts, "spans are whole sentences"),
        (MOST_WITH_PIE, with_pie, others, "simplification and sense spans are the idiom"),
        (MOST_LITERAL, copies, others, copied),
        (MOST_LITERAL, idiomatic_copies, senses, "sense texts are copies of idiomatic texts"),
    ):
        refuse_above(
            most,
            [(places[text.id], repr(text.span)) for text in found],
            len(among),
            problem,
            fewest=_FEWEST,
            hint="mark only the words with the meaning" if found is whole else hint,
        )
    check_language(sentences)


def _context(text: PieText) -> tuple[str, str, str]:
    """Return the PIE and what surrounds the span, which a simplification keeps."""
    before, _, after = text.sentence.partition(text.span)
    return text.pie, text_key(before), text_key(after)


def _starts(text: str) -> set[str]:
    """Return the first three letters of each word, without the results a, an and the."""
    return {word[:3] for word in normalize(text).split()} - {"a", "an", "the"}


def _usage_of_id(text_id: str) -> str | None:
    """Return the usage in an id of the released format, or None for other ids."""
    try:
        return parse_id(text_id).usage
    except UserError:
        return None


FILE_NAMES: dict[Collection, str] = {"documents": "indexes.json", "queries": "queries.json"}
"""Names of the released files, by collection."""


class LooseText(BaseModel):
    """A record in the released format whose values may be invalid."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)

    id: str
    sentence: str
    pie: str = Field(alias="idiom")
    span: str
    subject: str
    usage: str
    is_gold: bool
    split: SplitName
    collection: Collection

    @property
    def outside_span(self) -> tuple[str, str]:
        """The text before and after the span; for a missing span, the whole sentence and ""."""
        before, _, after = self.sentence.partition(self.span) if self.span else ("", "", "")
        return (before, after) if self.span else (self.sentence, "")


def read_loosely(
    folders: Iterable[tuple[SplitName, str | Path]],
) -> tuple[list[LooseText], list[Path]]:
    """Return the texts of several splits, and the paths of the files that were read.

    Raises:
        UserError: A file is missing or not a JSON array of objects, or an object has a missing or
            mistyped field.
    """
    texts: list[LooseText] = []
    files = []
    for split, folder in folders:
        for collection, name in FILE_NAMES.items():
            files.append(Path(folder) / name)
            texts += read_rows(files[-1], LooseText, split=split, collection=collection)
    return texts, files

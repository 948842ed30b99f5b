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
"""The data is rejected if at least this share of literal and idiomatic spans contains no word of
the PIE.
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
        UserError: A file is invalid (see `read_texts`); a text is repeated, or is both a document
            and a query; a usage, PIE or subject contradicts the ids; too many spans or usages are
            implausible; too many texts are damaged or not in English; a PIE or subject has two
            spellings; or a query has no relevant document.
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
    texts: list[tuple[str | Path, PieText]] = [(documents, text) for text in index]
    texts += [(queries, text) for text in query_texts]
    _check_spelling(texts)
    _check_texts(index, documents)
    _check_texts(query_texts, queries)
    _check_ids(texts)
    relevant = meaning_qrels(query_texts, index)
    if without := [query for query in query_texts if not relevant[query.id]]:
        raise UserError(
            f"no relevant document for {without[0].pie!r} ({len(without)} of {len(query_texts)}"
            " queries have none)",
            where=f"{queries}: {without[0].id}",
            hint=f"use queries and {documents} from the same split",
        )
    described = [(text.id, text.sentence, (text.pie, text.usage)) for _, text in texts]
    warn_of_near_duplicates(described, documents)
    return index, query_texts


def _check_spelling(texts: Iterable[tuple[str | Path, PieText]]) -> None:
    """Raise a `UserError` if a PIE or subject has two spellings; `texts` have their paths."""
    spellings: dict[tuple[str, str], str] = {}
    for path, text in texts:
        for field, value in (("idiom", text.pie), ("subject", text.subject)):
            letters = normalize(value).replace(" ", "")
            spelling = spellings.setdefault((field, letters), value)
            if value != spelling:
                ours, other = quote_both(value, spelling)
                raise UserError(
                    f"{field} {ours} is spelled {other} in another record",
                    where=f"{path}: {text.id}",
                    hint="use the same spelling in all records",
                )


def _check_ids(places: Iterable[tuple[str | Path, PieText]]) -> None:
    """Raise a `UserError` if ids in the released format contradict the idioms or subjects."""
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
        UserError: A text is repeated; a usage contradicts the id; too many spans or usages are
            implausible; or too many texts are damaged or not in English.
    """
    sentences = [(f"{path}: {text.id}", text.sentence) for text in texts]
    check_texts(sentences, repeated=False)
    _check_repetitions_and_usages(texts, path)
    _check_idioms(texts, path)
    _check_spans(texts, path)
    _check_copies(texts, path)
    check_language(sentences)


def _check_repetitions_and_usages(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if a text is repeated, or its usage contradicts its id."""
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


def _check_idioms(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many literal and idiomatic spans have no word of their PIE."""
    marked = [text for text in texts if text.usage in ("literal", "idiomatic")]
    mismatches = [text for text in marked if not _starts(text.span) & _starts(text.pie)]
    if mismatches and len(mismatches) >= _MAX_SHARE_WITHOUT_PIE * len(marked):
        raise UserError(
            f"{len(mismatches)} of {len(marked)} literal and idiomatic spans do not match their"
            f" idiom, such as {mismatches[0].span!r} for {mismatches[0].pie!r}",
            where=f"{path}: {mismatches[0].id}",
            hint="check that the column idiom belongs to these texts",
        )


_USAGE_HINT = "check that the column usage belongs to these texts"


def _check_spans(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many spans are whole sentences, or the PIE despite their usage."""
    refuse_above(
        MOST_WHOLE,
        _places([text for text in texts if covers(text.span, text.sentence)], path),
        len(texts),
        "spans are whole sentences",
        fewest=_FEWEST,
        hint="mark only the words with the meaning",
    )
    reworded = [text for text in texts if text.usage in ("simplification", "sense")]
    with_pie = [text for text in reworded if _starts(text.pie) <= _starts(text.span)]
    refuse_above(
        MOST_WITH_PIE,
        _places(with_pie, path),
        len(reworded),
        "simplification and sense spans are the idiom",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )


def _check_copies(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many texts are copies of texts with another meaning."""
    idiomatic = {_context(text) for text in texts if text.usage == "idiomatic"}
    only_literal = {_context(text) for text in texts if text.usage == "literal"} - idiomatic
    reworded = [text for text in texts if text.usage in ("simplification", "sense")]
    refuse_above(
        MOST_LITERAL,
        _places([text for text in reworded if _context(text) in only_literal], path),
        len(reworded),
        "simplification and sense texts are copies of literal texts",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )
    senses = [text for text in texts if text.usage == "sense"]
    refuse_above(
        MOST_LITERAL,
        _places([text for text in senses if _context(text) in idiomatic], path),
        len(senses),
        "sense texts are copies of idiomatic texts",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )


def _places(texts: Iterable[PieText], path: str | Path) -> list[tuple[str | Path, str]]:
    """Return the place and the span of each text, for an error message."""
    return [(f"{path}: {text.id}", repr(text.span)) for text in texts]


def _context(text: PieText) -> tuple[str, str, str]:
    """Return the PIE and the words around the span, which a simplification keeps."""
    before, _, after = text.sentence.partition(text.span)
    return text.pie, text_key(before), text_key(after)


def _starts(text: str) -> set[str]:
    """Return the first three letters of each word except articles."""
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
        if not self.span:
            return self.sentence, ""
        before, _, after = self.sentence.partition(self.span)
        return before, after


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

"""Readers of IdioLink's texts: `read_split` rejects faulty data, `read_loosely` accepts it."""

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
"""A file is rejected if at least this share of the literal and idiomatic spans contains no word of
the PIE."""
MOST_WHOLE = 0.05
"""Maximum share of spans that cover at least three quarters of their sentence."""
MOST_WITH_PIE = 0.05
"""Maximum share of simplification and sense spans that contain the PIE."""
MOST_LITERAL = 0.05
"""Maximum share of simplification and sense texts that copy a literal text, and maximum share of
sense texts that copy an idiomatic text. A copy may have another span."""
_FEWEST = 2
"""Minimum number of implausible texts for which a file is rejected."""


def read_split(documents: str | Path, queries: str | Path) -> tuple[list[Document], list[Query]]:
    """Read `indexes.json` and `queries.json` of one split, and check whether they are plausible.

    A warning is printed if some texts are near-duplicates.

    Raises:
        UserError: A file is invalid (see `read_texts`); a text is repeated, or is both a document
            and a query; a usage, PIE or subject contradicts the ids; too many spans or usages are
            implausible; too many texts are damaged or not in English; a PIE or subject has two
            spellings; or a query has no relevant document.
    """
    index, query_texts = read_texts(documents, Document), read_texts(queries, Query)
    query_id_by_text = {text_key(query.sentence): query.id for query in query_texts}
    for document in index:
        if query_id := query_id_by_text.get(text_key(document.sentence)):
            raise UserError(
                f"the document is also query {query_id!r} in {queries}",
                where=f"{documents}: {document.id}",
                hint="remove it from one of the files",
            )
    texts_with_paths: list[tuple[str | Path, PieText]] = [(documents, text) for text in index]
    texts_with_paths += [(queries, text) for text in query_texts]
    _check_spelling(texts_with_paths)
    _check_texts(index, documents)
    _check_texts(query_texts, queries)
    _check_ids(texts_with_paths)
    qrels = meaning_qrels(query_texts, index)
    if unanswerable := [query for query in query_texts if not qrels[query.id]]:
        raise UserError(
            f"no relevant document for {unanswerable[0].pie!r} ({len(unanswerable)} of"
            f" {len(query_texts)} queries have none)",
            where=f"{queries}: {unanswerable[0].id}",
            hint=f"use queries and {documents} from the same split",
        )
    texts_with_kinds = [
        (text.id, text.sentence, (text.pie, text.usage)) for _, text in texts_with_paths
    ]
    warn_of_near_duplicates(texts_with_kinds, documents)
    return index, query_texts


def _check_spelling(texts_with_paths: Iterable[tuple[str | Path, PieText]]) -> None:
    """Raise a `UserError` if a PIE or subject has two spellings."""
    first_spellings: dict[tuple[str, str], str] = {}
    for path, text in texts_with_paths:
        for field, value in (("idiom", text.pie), ("subject", text.subject)):
            letters = normalize(value).replace(" ", "")
            first_spelling = first_spellings.setdefault((field, letters), value)
            if value != first_spelling:
                quoted_value, quoted_first = quote_both(value, first_spelling)
                raise UserError(
                    f"{field} {quoted_value} is spelled {quoted_first} in another record",
                    where=f"{path}: {text.id}",
                    hint="use the same spelling in all records",
                )


def _check_ids(texts_with_paths: Iterable[tuple[str | Path, PieText]]) -> None:
    """Raise a `UserError` if ids state the same PIE or subject, but the texts have different ones.

    Ids that do not have the form of the public ids are not checked.
    """
    first_text_by_pie_number: dict[int, PieText] = {}
    first_text_by_domain: dict[str, PieText] = {}
    for path, text in texts_with_paths:
        try:
            parsed = parse_id(text.id)
        except UserError:
            continue
        where = f"{path}: {text.id}"
        text_of_pie = first_text_by_pie_number.setdefault(parsed.pie_number, text)
        _check_equal("idiom", text.pie, text_of_pie.pie, text_of_pie.id, where=where)
        text_of_domain = first_text_by_domain.setdefault(parsed.domain, text)
        _check_equal(
            "subject", text.subject, text_of_domain.subject, text_of_domain.id, where=where
        )


def _check_equal(field: str, value: str, other_value: str, other_id: str, *, where: str) -> None:
    """Raise a `UserError` if a field differs from the same field of the text `other_id`."""
    if value != other_value:
        raise UserError(
            f"{field} is {value!r}, but {other_value!r} in {other_id}, whose id states the same"
            f" {field}",
            where=where,
            hint=f"correct the {field}, or use ids in another format",
        )


def _check_texts(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Check the texts of one file.

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
    """Raise a `UserError` if a text is repeated, or if its usage contradicts its id."""
    first_id_by_text: dict[tuple[str, str], str] = {}
    for text in texts:
        first_id = first_id_by_text.setdefault((text_key(text.sentence), text.pie), text.id)
        if first_id != text.id:
            problem = f"same sentence and idiom as {first_id}"
            raise UserError(problem, where=f"{path}: {text.id}", hint="remove one of them")
        usage_in_id = _usage_in_id(text.id)
        if usage_in_id is not None and usage_in_id != text.usage:
            raise UserError(
                f"usage is {text.usage!r}, but the id says {usage_in_id!r}",
                where=f"{path}: {text.id}",
                hint="correct the usage, or use ids in another format",
            )


def _check_idioms(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many literal and idiomatic spans contain no word of their PIE.

    Words are compared by their first three letters.
    """
    texts_with_pie = [text for text in texts if text.usage in ("literal", "idiomatic")]
    mismatches = [
        text
        for text in texts_with_pie
        if _word_starts(text.span).isdisjoint(_word_starts(text.pie))
    ]
    if mismatches and len(mismatches) >= _MAX_SHARE_WITHOUT_PIE * len(texts_with_pie):
        example = mismatches[0]
        raise UserError(
            f"{len(mismatches)} of {len(texts_with_pie)} literal and idiomatic spans do not match"
            f" their idiom, such as {example.span!r} for {example.pie!r}",
            where=f"{path}: {example.id}",
            hint="check that the column idiom belongs to these texts",
        )


_USAGE_HINT = "check that the column usage belongs to these texts"


def _check_spans(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many spans are implausible.

    A span is implausible if it covers most of its sentence, or if it contains the PIE although the
    text is a simplification or sense text.
    """
    too_long = [text for text in texts if covers(text.span, text.sentence)]
    refuse_above(
        MOST_WHOLE,
        _findings(too_long, path),
        len(texts),
        "spans are whole sentences",
        fewest=_FEWEST,
        hint="mark only the words with the meaning",
    )
    reworded = [text for text in texts if text.usage in ("simplification", "sense")]
    with_pie = [
        text for text in reworded if _word_starts(text.pie).issubset(_word_starts(text.span))
    ]
    refuse_above(
        MOST_WITH_PIE,
        _findings(with_pie, path),
        len(reworded),
        "simplification and sense spans are the idiom",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )


def _check_copies(texts: Sequence[Document | Query], path: str | Path) -> None:
    """Raise a `UserError` if too many texts copy a text of an implausible usage.

    A copy has the same words around the span. Simplifications should copy idiomatic texts, and
    sense texts should copy no text.
    """
    idiomatic_contexts = {_context(text) for text in texts if text.usage == "idiomatic"}
    literal_contexts = {_context(text) for text in texts if text.usage == "literal"}
    only_literal_contexts = literal_contexts - idiomatic_contexts
    reworded = [text for text in texts if text.usage in ("simplification", "sense")]
    copies_of_literal = [text for text in reworded if _context(text) in only_literal_contexts]
    refuse_above(
        MOST_LITERAL,
        _findings(copies_of_literal, path),
        len(reworded),
        "simplification and sense texts are copies of literal texts",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )
    sense_texts = [text for text in texts if text.usage == "sense"]
    copies_of_idiomatic = [text for text in sense_texts if _context(text) in idiomatic_contexts]
    refuse_above(
        MOST_LITERAL,
        _findings(copies_of_idiomatic, path),
        len(sense_texts),
        "sense texts are copies of idiomatic texts",
        fewest=_FEWEST,
        hint=_USAGE_HINT,
    )


def _findings(texts: Iterable[PieText], path: str | Path) -> list[tuple[str | Path, str]]:
    """Return the place (file and text id) and the quoted span of each text, for `refuse_above`."""
    return [(f"{path}: {text.id}", repr(text.span)) for text in texts]


def _context(text: PieText) -> tuple[str, str, str]:
    """Return a text's PIE and the text around its span; copies of a text have an equal context."""
    before, _, after = text.sentence.partition(text.span)
    return text.pie, text_key(before), text_key(after)


def _word_starts(text: str) -> set[str]:
    """Return the first three letters of each word of a text, except articles."""
    return {word[:3] for word in normalize(text).split()} - {"a", "an", "the"}


def _usage_in_id(text_id: str) -> str | None:
    """Return the usage in an id, or None if the id does not have the form of the public ids."""
    try:
        return parse_id(text_id).usage
    except UserError:
        return None


FILE_NAMES: dict[Collection, str] = {"documents": "indexes.json", "queries": "queries.json"}
"""Name of the public file in a split's folder, by collection."""


class LooseText(BaseModel):
    """A record in the public data's format; its values may be invalid."""

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
        """The text before the span and the text after the span.

        If the span is empty or not in the sentence, the result is the whole sentence and "".
        """
        if not self.span:
            return self.sentence, ""
        before, _, after = self.sentence.partition(self.span)
        return before, after


def read_loosely(
    folders: Iterable[tuple[SplitName, str | Path]],
) -> tuple[list[LooseText], list[Path]]:
    """Read the texts of several splits; return the texts and the paths of the files.

    Args:
        folders: Name and folder of each split.

    Raises:
        UserError: A file is missing or not a JSON array of objects, or an object has a missing or
            mistyped field.
    """
    texts: list[LooseText] = []
    paths = []
    for split, folder in folders:
        for collection, file_name in FILE_NAMES.items():
            path = Path(folder) / file_name
            texts += read_rows(path, LooseText, split=split, collection=collection)
            paths.append(path)
    return texts, paths

"""Reading a split of IdioLink; what would make its numbers wrong is an error."""

from pathlib import Path

from pieline.core.errors import UserError
from pieline.languages.spelling import normalise
from pieline.studies.idiolink.datasets.relevance import meaning_qrels
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document, PieText, Query


def read_split(documents: str | Path, queries: str | Path) -> tuple[list[Document], list[Query]]:
    """Read `indexes.json` and `queries.json` of one split.

    Raises:
        UserError: as `read_texts`; a document that is also a query, one PIE or subject in two
            spellings, or a query without a relevant document.
    """
    index, asked = read_texts(documents, Document), read_texts(queries, Query)
    names = {normalise(query.sentence): query.id for query in asked}
    for document in index:
        if query := names.get(normalise(document.sentence)):
            raise UserError(
                f"is also query {query!r} in {queries}",
                where=f"{documents}: {document.id}",
                mend="remove it from one",
            )
    spellings: dict[str, str] = {}
    places: list[tuple[str | Path, PieText]] = [
        *((documents, text) for text in index),
        *((queries, text) for text in asked),
    ]
    for path, text in places:
        for field, value in (("idiom", text.pie), ("subject", text.subject)):
            known = spellings.setdefault(f"{field} {normalise(value).replace(' ', '')}", value)
            if value != known:
                raise UserError(
                    f"{field} {value!r} is {known!r} in another record",
                    where=f"{path}: {text.id}",
                    mend="spell it alike everywhere",
                )
    relevant = meaning_qrels(asked, index)
    if lacking := [query for query in asked if not relevant[query.id]]:
        raise UserError(
            f"no document of {lacking[0].pie!r} in its meaning ({len(lacking)} of {len(asked)}"
            " queries have none)",
            where=f"{queries}: {lacking[0].id}",
            mend=f"take it and {documents} of one split",
        )
    return index, asked

"""Stand-in for IdioLink: documents, queries and mined tuples."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path
from random import Random

from pieline.core.files import write_text
from pieline.studies.idiolink.datasets.assembly import save_released_format
from pieline.studies.idiolink.datasets.loose import FILE_NAMES
from pieline.studies.idiolink.datasets.tuples import sample_tuples
from pieline.studies.idiolink.originals.domains import (
    DOMAINS,
    TEXTS_PER_PAIR,
    Collection,
    TextId,
    parse_id,
)
from pieline.studies.idiolink.originals.splits import Splits, SplitSizes, draw_splits
from pieline.studies.idiolink.raw.released import read_texts
from pieline.studies.idiolink.records import Document, PieText, Query
from rehearsal.corpora.prose import Expression, Prose, language_material
from rehearsal.corpora.sizes import Size, scaled

ENGLISH = language_material("english")

_RECORDS: dict[Collection, type[Document | Query]] = {"documents": Document, "queries": Query}

GOLD_TEXTS: dict[tuple[str, Collection], int] = {
    ("train", "documents"): 234,
    ("train", "queries"): 79,
    ("val", "documents"): 201,
    ("val", "queries"): 61,
    ("test", "documents"): 2291,
    ("test", "queries"): 383,
}
"""Numbers of texts marked gold in the release, by split and collection."""

TOPICS: dict[str, tuple[str, ...]] = {
    domain: tuple(words.split())
    for domain, words in {
        "Politics": "senators ballots cabinets envoys mayors parties treaties votes campaigns",
        "Sport": "goals referees sprinters rackets leagues stadiums coaches medals regattas",
        "Technology": "software robots sensors batteries servers chips drones modems circuits",
        "History": "empires dynasties castles crusades archives knights emperors ruins scrolls",
        "Medicine": "vaccines surgeries symptoms clinics fevers pills nerves patients doctors",
        "Culture": "sculptures poems customs museums operas ballets folklore galleries novels",
        "Entertainment": "movies concerts comedies actors sitcoms festivals trailers podcasts",
        "Food": "recipes noodles bakeries spices soups cheeses menus desserts vineyards",
        "Business": "invoices shares startups mergers profits brands markets loans suppliers",
        "Environment": "glaciers wetlands emissions forests reefs droughts species rivers soils",
    }.items()
}
"""Topic words by domain."""


def sizes(size: Size) -> SplitSizes:
    """Return the number of PIEs per split; soft negatives need at least two in validation."""
    full = SplitSizes()
    return SplitSizes(
        train=scaled(full.train, size),
        val=scaled(full.val, size, least=2),
        test=scaled(full.test, size),
        gold=scaled(full.gold, size),
    )


def write_texts(folder: Path, size: Size, random: Random) -> None:
    """Write the documents and queries of every split in the released format."""
    wanted = sizes(size)
    pies = sorted(random.sample(ENGLISH.pies, wanted.train + wanted.val + wanted.test))
    meanings = iter(random.sample(ENGLISH.meanings, len(ENGLISH.meanings)))
    used: set[str] = set()
    texts = [
        text
        for number, pie in enumerate(pies, start=1)
        for text in _texts_of(pie, number, list(islice(meanings, 3)), random, used)
    ]
    splits = draw_splits([pie.base for pie in pies], wanted, seed=random.getrandbits(32))
    gold = _marked_gold(texts, splits, size, random)
    marked = (text.model_copy(update={"is_gold": text.id in gold}) for text in texts)
    save_released_format(marked, splits, folder)


def write_tuples(folder: Path, random: Random) -> None:
    """Write one training tuple per query of the split in `folder`, in the released format."""
    documents = read_texts(folder / FILE_NAMES["documents"], Document)
    queries = read_texts(folder / FILE_NAMES["queries"], Query)
    by_id: dict[str, Document] = {text.id: text for text in documents}
    lines = []
    drawn = sample_tuples(queries, documents, seed=random.getrandbits(32))
    for query, item in zip(queries, drawn, strict=True):
        row = {
            "query": query.sentence,
            "positive": by_id[item.positive].sentence,
            "negatives": [by_id[name].sentence for name in (*item.hard, *item.soft)],
            "query_idiom": query.pie,
            "query_usage": query.usage,
            "positive_usage": by_id[item.positive].usage,
        }
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
    write_text(folder / f"triplets_{folder.name}_full.jsonl", "".join(lines))


def _texts_of(
    pie: Expression, number: int, meanings: Sequence[Expression], random: Random, used: set[str]
) -> Iterator[PieText]:
    """Yield all texts of a PIE; usages that do not contain the PIE use its meanings."""
    expressions = {"literal": [pie] * 4, "idiomatic": [pie] * 2, "sense": meanings[1:]}

    def write(collection: Collection, domain: str, usage: str) -> list[Prose]:
        kind = f"{collection}_{'literal' if usage == 'literal' else 'figurative'}".upper()
        return [
            ENGLISH.grammar.new_sentence(kind, random, used, item, random.choice(TOPICS[domain]))
            for item in expressions[usage][: TEXTS_PER_PAIR[collection][usage]]
        ]

    for collection, domain in product(TEXTS_PER_PAIR, DOMAINS):
        prose: dict[str, list[Prose]] = {}
        for usage in TEXTS_PER_PAIR[collection]:
            prose[usage] = (
                [
                    item.with_expression(new, pie)
                    for item, new in zip(prose["idiomatic"], meanings, strict=False)
                ]
                if usage == "simplification"
                else write(collection, domain, usage)
            )
        for usage, items in prose.items():
            for again, item in enumerate(items, start=1):
                yield _RECORDS[collection].model_validate(
                    {
                        "id": str(TextId(collection, number, domain, usage, again)),
                        "sentence": item.text,
                        "pie": pie.base,
                        "span": item.span_text,
                        "subject": domain,
                        "usage": usage,
                        "is_gold": False,
                    }
                )


def _marked_gold(texts: Sequence[PieText], splits: Splits, size: Size, random: Random) -> set[str]:
    """Return the ids of gold texts: the documents of the gold PIEs, and randomly drawn others."""
    by_place: dict[tuple[str, Collection], list[PieText]] = defaultdict(list)
    for text in texts:
        by_place[splits.split_of(text.pie), parse_id(text.id).collection].append(text)
    marked: set[str] = set()
    for place, count in GOLD_TEXTS.items():
        members = by_place[place]
        gold_documents = (
            {text.id for text in members if text.pie in splits.gold}
            if "documents" in place
            else set()
        )
        others = [text.id for text in members if text.id not in gold_documents]
        marked |= gold_documents
        marked.update(random.sample(others, scaled(count, size) - len(gold_documents)))
    return marked
